#!/bin/sh
# slurm_cluster.sh - a real Slurm of four nodes on this machine, to try things and for tests/slurm.sh.
#
#     sh tests/slurm_cluster.sh start /tmp/cluster      munge, slurmctld and four slurmd
#     eval "$(sh tests/slurm_cluster.sh env /tmp/cluster)"   sinfo, sbatch, squeue now ask this cluster
#     sh tests/slurm_cluster.sh stop /tmp/cluster       end them; the folder stays, with the logs
#     sh tests/slurm_cluster.sh daemon /tmp/cluster slurmctld       start one of them again; or: slurmd n2
#
# It needs root, and Debian's packages slurmctld, slurmd, slurm-client and munge (tools/setup.sh slurm). It listens on
# 127.0.0.1 and keeps all its files in the folder, so it leaves any other Slurm of the machine alone.
# The nodes n1 to n4 are daemons on one machine, each with a port of its own. They share its cores and all its files.
# SLURM_PORT: first of the five ports that it takes (five free ones above 17700).
# SLURM_CONF_MORE: lines to add to slurm.conf, such as MinJobAge=2 (the last of two equal lines counts).
# SLURM_NODE_CPUS: processors that each node says it has (2).
set -u
command=${1:-} dir=${2:-}
case $command in
start | stop | env | daemon) ;;
*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
[ -n "$dir" ] || { echo "slurm_cluster.sh: which folder? slurm_cluster.sh $command FOLDER" >&2; exit 2; }
mkdir -p "$dir" || exit 1
dir=$(cd "$dir" && pwd) || exit 1

# free_ports - a number from which on five ports are free.
free_ports() {
    first=$((17700 + $$ % 500 * 10)) # two clusters may start at once
    while [ $first -lt 30000 ]; do
        taken=
        for p in 0 1 2 3 4; do grep -qi ":$(printf %04X $((first + p))) [0-9A-F:]* 0A" /proc/net/tcp && taken=1; done
        [ -n "$taken" ] || break
        first=$((first + 10))
    done
    echo $first
}

configure() {
    port=${SLURM_PORT:-$(free_ports)}
    mkdir -p "$dir/state" "$dir/spool" "$dir/munge" || return 1
    chmod 755 "$dir" "$dir/munge"
    sed '/^#/d' >"$dir/slurm.conf" <<E2
ClusterName=tune
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd-%n.log
SlurmdParameters=config_overrides
# The nodes are one machine: no control groups, and a job's processes are found by their session.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerType=sched/backfill
SchedulerParameters=defer_batch,sched_interval=1,bf_interval=2,sched_min_interval=0,batch_sched_delay=0
ReturnToService=2
# Small, so that tests see the end of things.
MinJobAge=300
MaxArraySize=10001
MaxJobCount=20000
KillWait=5
SlurmdTimeout=20
InactiveLimit=0
OverTimeLimit=0
JobRequeue=1
${SLURM_CONF_MORE:-}
NodeName=n1 NodeAddr=127.0.0.1 NodeHostname=localhost Port=$((port + 1)) CPUs=${SLURM_NODE_CPUS:-2} RealMemory=2000
NodeName=n2 NodeAddr=127.0.0.1 NodeHostname=localhost Port=$((port + 2)) CPUs=${SLURM_NODE_CPUS:-2} RealMemory=2000
NodeName=n3 NodeAddr=127.0.0.1 NodeHostname=localhost Port=$((port + 3)) CPUs=${SLURM_NODE_CPUS:-2} RealMemory=2000
NodeName=n4 NodeAddr=127.0.0.1 NodeHostname=localhost Port=$((port + 4)) CPUs=${SLURM_NODE_CPUS:-2} RealMemory=2000
PartitionName=all Nodes=n[1-4] Default=YES MaxTime=INFINITE State=UP PriorityTier=1 OverSubscribe=NO
PartitionName=urgent Nodes=n[1-4] MaxTime=INFINITE State=UP PriorityTier=9
PartitionName=one Nodes=n1 MaxTime=INFINITE State=UP PriorityTier=1
E2
    [ -s "$dir/munge.key" ] || head -c 128 /dev/urandom >"$dir/munge.key" || return 1
    chmod 600 "$dir/munge.key"
}

# alive FILE - whether the process whose number the file holds runs; a dead one may stand in the table for a while.
alive() { [ -s "$1" ] && grep -q '^State:.[^ZX]' "/proc/$(cat "$1")/status" 2>/dev/null; }

# daemon munged|slurmctld|slurmd [NODE] - start it unless it runs.
daemon() {
    export SLURM_CONF="$dir/slurm.conf"
    case $1 in
    munged) alive "$dir/munged.pid" || munged --force --key-file="$dir/munge.key" --socket="$dir/munge/socket" \
        --pid-file="$dir/munged.pid" --log-file="$dir/munged.log" --seed-file="$dir/munge.seed" ;;
    slurmctld) alive "$dir/slurmctld.pid" || slurmctld -f "$dir/slurm.conf" 2>>"$dir/slurmctld.log" ;;
    slurmd) alive "$dir/slurmd-$2.pid" || slurmd -N "$2" -f "$dir/slurm.conf" 2>>"$dir/slurmd-$2.log" ;;
    *) echo "slurm_cluster.sh: no daemon $1" >&2; return 2 ;;
    esac
}

missing() { for p in munged slurmctld slurmd sbatch; do command -v $p >/dev/null 2>&1 || echo $p; done; }

# whole - whether all four nodes are there for jobs.
whole() { [ "$(sinfo -h -p all -t idle,alloc,mix -o %D 2>/dev/null | awk '{ n += $1 } END { print n + 0 }')" = 4 ]; }

start() {
    absent=$(missing)
    [ -z "$absent" ] || { echo "slurm_cluster.sh: not installed:" $absent "(sh tools/setup.sh slurm)" >&2; return 3; }
    [ "$(id -u)" = 0 ] || { echo "slurm_cluster.sh: only root can start these daemons" >&2; return 3; }
    configure && daemon munged && daemon slurmctld || return 1
    for node in n1 n2 n3 n4; do
        mkdir -p "$dir/spool/$node"
        daemon slurmd $node || return 1
    done
    tries=0
    until whole; do
        tries=$((tries + 1))
        [ $tries -lt 150 ] || { echo "slurm_cluster.sh: the nodes do not come up; see $dir/*.log" >&2; return 1; }
        sleep 0.2
    done
}

stop() {
    export SLURM_CONF="$dir/slurm.conf"
    scancel --quiet --state=running,pending,suspended -u root 2>/dev/null
    for f in "$dir"/slurmd-n?.pid "$dir/slurmctld.pid" "$dir/munged.pid"; do
        alive "$f" && kill "$(cat "$f" 2>/dev/null)"
    done
    for f in "$dir"/slurmd-n?.pid "$dir/slurmctld.pid" "$dir/munged.pid"; do
        tries=0
        while alive "$f" && [ $tries -lt 100 ]; do
            tries=$((tries + 1))
            sleep 0.1
        done
        alive "$f" && kill -9 "$(cat "$f" 2>/dev/null)"
    done
    return 0
}

case $command in
start) start ;;
stop) stop ;;
env) echo "export SLURM_CONF='$dir/slurm.conf'" ;;
daemon) shift 2; daemon "$@" ;;
esac
