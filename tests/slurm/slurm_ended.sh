#!/bin/sh
# slurm_ended.sh - sweep --launcher slurm where jobs have a limit of memory (control groups), and where Slurm forgets ended jobs soon,
# so that the accounting is asked (sacct). Called by `make test-slurm`, as root.
export SLURM_ACCOUNTING=1 SLURM_CONF_MORE=MinJobAge=2
[ ! -w /sys/fs/cgroup/memory/tasks ] || [ ! -w /sys/fs/cgroup/freezer/tasks ] || export SLURM_CGROUPS=1
. tests/slurm/slurm_common.sh
cat >hungry.sh <<'E2'
#!/bin/sh
case $TUNE_INPUT_HOW in
eat) exec awk 'BEGIN { for (;;) s = s "this text grows without an end, until there is no memory left for it" }' ;;
spare) # the sweep above this is killed first
    p=$PPID
    while [ "$(cat /proc/$p/comm)" != sweep ]; do p=$(sed -n 's/^PPid:[^0-9]*//p' /proc/$p/status); done
    echo 1000 >/proc/$p/oom_score_adj
    exec awk 'BEGIN { for (;;) s = s "this text grows without an end, until there is no memory left for it" }' ;;
esac
exec ./work.sh
E2
chmod +x hungry.sh
sed 's/work\.sh/hungry.sh/; s/"fine", "fail"/"fine", "fail", "eat", "spare"/' work.json >hungry.json && mv hungry.json work.json
mem="--mem=100"

# ---- memory ----
if [ -n "${SLURM_CGROUPS:-}" ]; then
    space eat.yaml 0 2 0.1 eat
    is "a program that takes too much memory: rows with the reason, each point once" eval '{ slurm eat.yaml eat --name eat --slurm "$mem" || true; } && says "^# finished +0 valid, 2 invalid, 0 failed" && says "out of memory: the kernel killed it" && whole eat 0 2'
    space fine.yaml 20 24 0.1
    is "... others fit" eval 'slurm fine.yaml eat --name fine --slurm "$mem" && says "^# finished +4 valid"'
    space spare.yaml 30 31 0.1 spare
    is "the sweep in its job is killed for its memory: a row with Slurm's reason" eval '! slurm spare.yaml spare --name spare --slurm "$mem" && says "Slurm ended job [0-9_]+ on n[1-4]: OUT_OF_MEMORY" && whole spare 30 31 && [ "$(grep -c "jobs in Slurm" shown)" = 1 ]'
    is "... no lease and no job is left" eval '[ -z "$(ls spare/claims)" ] && idle'
else
    skip "limits of memory" "no control groups of version 1 here"
fi

# ---- signals, in control groups if there are some ----
cancel_slowly slow 40 "$mem"
is "cancelled slowly: what ended well meanwhile is no result" eval 'ended 0 && says "^# 2 points are left, because jobs were cancelled" && [ -z "$(rows slow a)" ]'
restart

# ---- the accounting ----
# forgotten JOBS - waits until squeue does not know them any more.
forgotten() { await 0 eval '[ -z "$(squeue -h -t all -o %i --jobs='"$1"')" ]'; }
space long.yaml 50 54 200
behind later long.yaml later --slurm "$mem --time=1"
measuring later later 4
kill -9 $pid
jobs=
for i in 1 2 3 4; do
    lease=$(echo "$leases" | sed -n ${i}p)
    jobs="$jobs$(field "$lease" job) "
done
set -- $jobs
cancelled=$1 killed=$2 long=$3 longer=$4
scancel "$cancelled"
kill -9 "$(field "$(echo "$leases" | sed -n 2p)" pid)"
is "jobs that end after their sweep, and that squeue forgets" eval 'idle && forgotten "$(echo $jobs | tr " " ,)" && sacct -n -X -P -o JobID,State >told; grep "^$cancelled|CANCELLED" told && grep "^$killed|FAILED" told && grep "^$long|TIMEOUT" told && grep "^$longer|TIMEOUT" told'
is "... sweep --resume asks sacct: rows for those that met the limit" eval '{ resume later later --time-limit 20 || true; } && says "failed .*Slurm ended job $long on n[1-4]: TIMEOUT" && says "failed .*Slurm ended job $longer on n[1-4]: TIMEOUT" && says "^# tried again .*Slurm ended job $killed on n[1-4]: FAILED" && says "^# tried again .*Slurm ended job $cancelled on n[1-4]: CANCELLED" && [ "$(rows later status)" = "failed
failed" ]'
scancel -u root
idle
finish
