#!/bin/sh
# slurm.sh - sweep --launcher slurm on a real Slurm of four nodes (tests/slurm/slurm_cluster.sh): what it measures, and jobs that Slurm
# ends. Called by `make test-slurm`, as root.
. tests/slurm/slurm_common.sh

# ---- measuring ----
space s.yaml 0 20 0.1
is "20 points, each in a job of its own" eval 'slurm s.yaml st --name one && says "^# finished +19 valid, 1 invalid, 0 failed" && whole st 0 20'
is "each program ran once, and the rule was applied" eval '[ "$(sort -n log | tr "\n" " ")" = "$(seq 0 19 | sed /13/d | tr "\n" " ")" ]'
is "... the files are the jobs' own" eval '[ "$(ls st/*.h5 | wc -l)" -ge 19 ]'
is "... nothing is left of them" eval '[ ! -e st/launch ] && [ -z "$(ls st/claims)" ] && idle'
is "another operation finds what is known" eval 'slurm s.yaml st --name two && says "0 valid, 0 invalid, 0 failed, 20 known" && whole st 0 20'
space packs.yaml 100 120
is "packs of 7: three jobs" eval 'slurm packs.yaml st --name packs --points-per-job 7 && says "^# jobs in Slurm +3, called sweep-" && says "^# finished +20 valid" && idle'
space few.yaml 200 206 0.5
is "at most two jobs at a time" eval '(while [ ! -e over ]; do squeue -h -t running -o %i | wc -l; sleep 0.1; done >live) & slurm few.yaml st --name few --max-jobs 2; touch over; wait; says "^# finished +6 valid" && [ "$(sort -n live | tail -n 1)" = 2 ]'
is "--repeat: results are numbered" eval 'space one.yaml 300 302 && slurm one.yaml st --name repeat --repeat 3 && says "^# finished +6 valid" && [ "$(rows st a,repeat | grep "^30" | sort | tr "\n" " ")" = "300,0 300,1 300,2 301,0 301,1 301,2 " ]'
is "--order model: jobs in batches, and no point twice" eval 'space model.yaml 500 560 0.1 && rm -f log && slurm model.yaml st --name model --order model --maximize t --entities 8 --max-jobs 4 && says "^# in batches of  *4 measurements" && [ "$(grep -c "^# jobs in Slurm  *4," shown)" = 2 ] && says "^# finished +[0-9]+ valid" && [ "$(sort -u log | wc -l)" = 8 ] && [ "$(wc -l <log)" = 8 ] && idle'
is "--dry-run prints the script, and submits nothing" eval 'space dry.yaml 400 410 && slurm dry.yaml st --dry-run --slurm "--partition=all --time=30" && says "^#SBATCH --job-name=sweep-[a-z0-9]+-.* --array=1-10$" && says "^#SBATCH --partition=all --time=30$" && says "^exec .*--at-most 1 --job" && [ -z "$(squeue -h)" ]'
is "... which the shell reads" eval 'sed -n "/^#!/,\$p" shown | sh -n'
idle

# ---- jobs that Slurm ends ----
space long.yaml 1000 1008 4
behind cancelled long.yaml can
measuring can cancelled 8
scancel "--jobname=$(squeue -h -o %j | head -n 1)"
is "all jobs cancelled: sweep stops, and says so" eval 'ended 0 && says "^# 8 points are left, because jobs were cancelled" && says "^# go on with +sweep --resume cancelled"'
is "... --resume measures them" eval 'resume cancelled can && says "^# finished +8 valid" && whole can 1000 1008'

cancel_slowly slow 2000
is "cancelled slowly: what ended well meanwhile is no result" eval 'ended 0 && says "^# 2 points are left, because jobs were cancelled" && [ -z "$(rows slow a)" ]'
is "... --resume measures them" eval 'resume slowly slow && says "^# finished +2 valid" && whole slow 2000 2002'
restart

behind requeued long.yaml req
measuring req requeued 8
job=$(field "$(echo "$leases" | sed -n 1p)" job) other=$(echo "$leases" | sed -n 2p)
scontrol requeue "$job"
kill -9 "$(field "$other" pid)"
is "a requeued job, and a sweep that was killed in its job: both points are tried again" eval 'ended 0 && says "^# tried again .*Slurm ended job $job on [a-z0-9]+: REQUEUED" && says "^# tried again .*: FAILED" && whole req 1000 1008'
scancel -u root
idle

behind preempted long.yaml pre
measuring pre preempted 8
sbatch --quiet --partition=urgent --exclusive --nodes=1 --output=/dev/null --wrap 'sleep 3' >/dev/null
is "preempted jobs: their points are tried again" eval 'ended 0 && says "^# tried again .*REQUEUED" && whole pre 1000 1008'
scancel -u root
idle

space limit.yaml 5000 5002 200
behind limit limit.yaml limit --slurm "--time=1"
is "the time limit of jobs: rows with the reason" eval 'ended 1 && [ "$(grep -c "failed .*Slurm ended job [0-9_]* on n[1-4]: TIMEOUT" shown)" = 2 ] && whole limit 5000 5002'
idle

# Slurm's own account of an end that this cluster cannot make: it has no control groups. (With them: slurm_ended.sh.)
mkdir fake && cat >fake/squeue <<E2
#!/bin/sh
$(command -v squeue) "\$@" | sed 's/FAILED       /OUT_OF_MEMORY/'
E2
chmod +x fake/squeue
PATH="$tmp/fake:$PATH" behind oom long.yaml oom
measuring oom oom 8
kill -9 "$(field "$(echo "$leases" | sed -n 1p)" pid)"
is "out of memory, as Slurm would say it (not made here): a row with the reason" eval 'ended 0 && says "failed .*Slurm ended job [0-9_]+ on n[1-4]: OUT_OF_MEMORY" && whole oom 1000 1008 && [ "$(rows oom status | grep -c failed)" = 1 ]'
idle
# Its row comes while others of the batch are still measured.
PATH="$tmp/fake:$PATH" behind batch long.yaml batch --order model --maximize t --entities 8
measuring batch batch 8
kill -9 "$(field "$(echo "$leases" | sed -n 1p)" pid)"
is "... in a batch of --order model" eval 'ended 0 && says "failed .*Slurm ended job [0-9_]+ on n[1-4]: OUT_OF_MEMORY" && says "^# finished +7 valid, 0 invalid, 1 failed" && [ "$(rows batch status | grep -c failed)" = 1 ]'
idle

# ---- values of --env ----
cat >work.sh <<E2
#!/bin/sh
echo "\$TUNE_INPUT_A \$MY_TOKEN" >>$tmp/seen
until [ -e $tmp/go ]; do sleep 0.1; done
echo "{\"t\": 1}" >"\$TUNE_OUTPUT/report.json"
E2
echo hf_SECRET >secret
printf "%s\n" "6000 it's hf_SECRET" "6001 it's hf_SECRET" >expected
space env.yaml 6000 6002
(umask 022 && exec "$sweep" env.yaml --experiments work.json --store env --share-cores --launcher slurm --name env --env "MY_TOKEN=it's hf_SECRET" --env-secrets >env.out 2>&1) &
pid=$! op=env
is "--env: the values reach the programs of jobs" eval 'await $pid has 2 seen && sort seen | diff expected -'
none "... they stand in no file of the store or of Slurm that others can read" "$(find env "$cluster" -type f -perm /044 -exec grep -lF -f secret {} +)"
none "... nor in what Slurm says of a job" "$(for job in $(squeue -h -o %A); do scontrol show job -d "$job"; scontrol write batch_script "$job" -; done | grep -F -f secret)"
none "... nor on a command line but ours" "$(grep -lF -f secret /proc/[0-9]*/cmdline 2>/dev/null | grep -v "^/proc/$pid/")"
touch go
is "... and nothing is left of them" eval 'ended 0 && says "^# finished +2 valid" && [ -z "$(grep -rlF -f secret env)" ] && [ ! -e env/launch ]'
idle
finish
