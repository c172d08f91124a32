#!/bin/sh
# slurm_requeue.sh - the job script of docs/resume.md, submitted once to a real Slurm: it meets its time limit twice or more, and
# ends with a finished run. A job that is cancelled stays so. Slurm's daemons run here, as one node of four processors, with
# their files in a folder of their own. Minutes long: Slurm looks at limits every 30 s. (Everything else: tests/test_requeue.sh.)
cd "$(dirname "$0")/.." || exit 1
. tests/tap.sh
for program in slurmctld slurmd munged sbatch scontrol; do
    command -v $program >/dev/null 2>&1 && continue
    skip "--requeue in a real Slurm" "no $program; apt-get install slurmctld slurmd slurm-client munge"
    finish
done
[ "$(id -u)" = 0 ] || { skip "--requeue in a real Slurm" "its daemons are started as root here"; finish; }

# ---- a cluster of one node ----
cluster=$tmp/cluster
chmod 755 "$tmp"
mkdir -p "$cluster/state" "$cluster/spool" "$cluster/munge" && chmod 700 "$cluster/munge"
(umask 077 && head -c 128 /dev/urandom >"$cluster/munge/key")
munge="$cluster/munge/socket"
port=$((20000 + $$ % 20000))
node=$(hostname -s)
cat >"$cluster/slurm.conf" <<E2
ClusterName=requeue
SlurmctldHost=$node(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket=$munge,cred_expire=2
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/slurmd.pid
SlurmctldLogFile=$cluster/slurmctld.log
SlurmdLogFile=$cluster/slurmd.log
SlurmctldPort=$port
SlurmdPort=$((port + 1))
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
JobRequeue=1
KillWait=5
NodeName=$node NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=$node Default=YES MaxTime=INFINITE State=UP
E2
export SLURM_CONF="$cluster/slurm.conf"
down() {
    scancel --user=root 2>/dev/null
    for pid in slurmd.pid slurmctld.pid munge/pid; do
        [ ! -s "$cluster/$pid" ] || kill "$(cat "$cluster/$pid")"
    done
    sleep 1
    rm -rf "$tmp"
}
trap down EXIT
munged --force --key-file "$cluster/munge/key" --socket "$munge" --pid-file "$cluster/munge/pid" --log-file "$cluster/munge/log" \
    --seed-file "$cluster/munge/seed" && slurmctld -f "$SLURM_CONF" && slurmd -f "$SLURM_CONF"
until_is() { # SECONDS COMMAND... - waits until the command succeeds
    tries=$(($1 * 2))
    shift
    until "$@"; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || return 1
        sleep 0.5
    done
}
idle() { sinfo -h -o %T 2>/dev/null | grep -q idle; }
is "a cluster of one node is up" until_is 60 idle
[ $failures = 0 ] || { tail -n 20 "$cluster"/*.log | sed 's/^/# /'; finish; }

# ---- the script of the page ----
head -60 datasets/stories.jsonl >"$tmp/my.jsonl"
cd "$tmp" || exit 1
tiny models/SmolLM2-135M 1 >/dev/null && mkdir build && ln -s "$BUILD/finetune_full" build
"$BUILD/finetune_full" --model models/SmolLM2-135M --dataset my.jsonl --max-length 48 --threads 1 --stop-after-seconds 3 --epochs 1e6 \
    --output pace >/dev/null 2>&1
steps=$(($(wc -l <pace/metrics.jsonl) * 30)) # of 90 s
sed -n 's/^    //p' "$here/docs/resume.md" | sed -n '/^#!\/bin\/sh$/,/--output runs\/long$/p' >page.sh
sed "s/--time=60/--time=1/; s/TERM@120/TERM@55/; s/--threads 2/--threads 1 --max-length 48 --max-steps $steps/" page.sh >job.sh
is "the page has a job script" grep -q 'exec build/finetune_full .*' job.sh
field() { scontrol show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
ended() { case $(field "$1" JobState) in COMPLETED | FAILED | CANCELLED | TIMEOUT | NODE_FAIL) ;; *) false ;; esac; }
job=$(sbatch --parsable --output=job.out job.sh) || exit 1
sed 's/ --requeue//; s/runs\/long/runs\/straight/' job.sh >straight.sh
sh straight.sh >straight.out 2>&1
is "the same run in one go" test -e runs/straight/checkpoint-final
is "the job ends" until_is 600 ended "$job"
is "by itself, and well" test "$(field "$job" JobState)" = COMPLETED
is "it met two time limits or more" test "$(field "$job" Restarts)" -ge 2
is "each start went on" test "$(grep -c '"from_step"' runs/long/run.json)" = $(($(field "$job" Restarts) + 1))
is "to the same bits" same_run runs/straight runs/long
[ $failures = 0 ] || sed 's/^/# /' job.out | grep -v '^# step' | tail -n 40

# ---- cancelled, and at its limit without --signal ----
sed 's/--signal=[^ ]*//; s/--max-steps [0-9]*/--max-steps 100000000/; s/runs\/long/runs\/plain/' job.sh >plain.sh
job=$(sbatch --parsable --output=plain.out plain.sh)
is "a job without --signal meets its limit and starts again" until_is 200 eval '[ "$(field $job Restarts)" = 1 ] && [ "$(field $job JobState)" = RUNNING ]'
before=$(grep -c . runs/plain/metrics.jsonl)
is "it goes on" until_is 30 eval '[ "$(grep -c "\"from_step\"" runs/plain/run.json)" = 2 ]'
is "from where it was" test "$(grep -o '"from_step":[^0-9]*[0-9]*' runs/plain/run.json | tail -n 1 | tr -cd 0-9)" -ge "$((before / 2))"
scancel "$job"
is "scancel ends it" until_is 60 ended "$job"
is "for good" test "$(field "$job" JobState)" = CANCELLED
is "it says that it was cancelled" grep -q "job $job was cancelled, so it was not put back" plain.out
finish
