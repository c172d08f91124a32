#!/bin/sh
# slurm_cluster.sh - a real Slurm of four nodes on this machine, to try things and for tests/slurm/slurm.sh.
#
#     sh tests/slurm/slurm_cluster.sh start /tmp/cluster      munge, slurmctld and four slurmd
#     eval "$(sh tests/slurm/slurm_cluster.sh env /tmp/cluster)"   sinfo, sbatch, squeue now ask this cluster
#     sh tests/slurm/slurm_cluster.sh stop /tmp/cluster       end them; the folder stays, with the logs
#     sh tests/slurm/slurm_cluster.sh daemon /tmp/cluster slurmctld       start one of them again; or: slurmd n2
#
# It needs root, and the packages of tools/setup.sh slurm. It listens on 127.0.0.1 and keeps all its files in the folder, so it
# leaves any other Slurm of the machine alone.
# The nodes n1 to n4 are daemons on one machine, each with a port of its own. They share its cores and all its files.
# SLURM_PORT: first of the seven ports that it takes (free ones above 17700).
# SLURM_CONF_MORE: lines to add to slurm.conf, such as MinJobAge=2 (the last of two equal lines counts).
# SLURM_NODE_CPUS: processors that each node says it has (2).
# SLURM_CGROUPS=1: jobs in control groups (version 1), with the memory that they ask for (--mem) as a limit.
# SLURM_ACCOUNTING=1: slurmdbd and a database of its own, so that sacct answers.
set -u
command=${1:-} dir=${2:-}
case $command in
start | stop | env | daemon) ;;
*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
[ -n "$dir" ] || { echo "slurm_cluster.sh: which folder? slurm_cluster.sh $command FOLDER" >&2; exit 2; }
mkdir -p "$dir" || exit 1
dir=$(cd "$dir" && pwd) || exit 1

# free_ports - a number from which on seven ports are free.
free_ports() {
    first=$((17700 + $$ % 500 * 10)) # two clusters may start at once
    while [ $first -lt 30000 ]; do
        taken=
        for p in 0 1 2 3 4 5 6; do grep -qi ":$(printf %04X $((first + p))) [0-9A-F:]* 0A" /proc/net/tcp && taken=1; done
        [ -n "$taken" ] || break
        first=$((first + 10))
    done
    echo $first
}

# cgroups, accounting - their lines of slurm.conf; their own files are written.
cgroups() {
    if [ -z "${SLURM_CGROUPS:-}" ]; then
        printf '%s\n' ProctrackType=proctrack/linuxproc TaskPlugin=task/none SelectTypeParameters=CR_CPU
        return
    fi
    printf '%s\n' CgroupPlugin=cgroup/v1 CgroupMountpoint=/sys/fs/cgroup ConstrainRAMSpace=yes >"$dir/cgroup.conf"
    printf '%s\n' ProctrackType=proctrack/cgroup TaskPlugin=task/cgroup SelectTypeParameters=CR_CPU_Memory
}
accounting() {
    if [ -z "${SLURM_ACCOUNTING:-}" ]; then
        echo AccountingStorageType=accounting_storage/none
        return
    fi
    sed 's/^ *//' >"$dir/slurmdbd.conf" <<E2
        AuthType=auth/munge
        AuthInfo=socket=$dir/munge/socket
        DbdHost=localhost
        DbdAddr=127.0.0.1
        DbdPort=$((port + 5))
        SlurmUser=root
        LogFile=$dir/slurmdbd.log
        PidFile=$dir/slurmdbd.pid
        StorageType=accounting_storage/mysql
        StorageHost=127.0.0.1
        StoragePort=$((port + 6))
        StorageUser=slurm
        StoragePass=slurm
        StorageLoc=slurm
E2
    chmod 600 "$dir/slurmdbd.conf"
    printf '%s\n' AccountingStorageType=accounting_storage/slurmdbd AccountingStorageHost=127.0.0.1 "AccountingStoragePort=$((port + 5))" "AccountingStoragePass=$dir/munge/socket"
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
AuthInfo=socket=$dir/munge/socket,cred_expire=10
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd-%n.log
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
$(cgroups)
$(accounting)
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerType=sched/backfill
SchedulerParameters=defer_batch,sched_interval=1,bf_interval=2,sched_min_interval=0,batch_sched_delay=0
ReturnToService=2
# Small, so that tests see the end of things. A job that was put back starts again after cred_expire seconds; for less than 5
# Slurm takes 120.
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

# until_true COMMAND... - waits for it, for at most five minutes.
until_true() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 1500 ] || return 1
        sleep 0.2
    done
}

# database - the database of slurmdbd; a new one has nothing but the user that slurmdbd is.
database() {
    mkdir -p "$dir/db" && chmod 700 "$dir/db"
    [ -d "$dir/db/mysql" ] || mariadb-install-db --no-defaults --datadir="$dir/db" --user=root --auth-root-authentication-method=socket \
        --skip-test-db >"$dir/mariadbd.log" 2>&1 || return 1
    mariadbd --no-defaults --datadir="$dir/db" --user=root --bind-address=127.0.0.1 --port=$((port + 6)) --socket="$dir/db.sock" \
        --pid-file="$dir/mariadbd.pid" --innodb-buffer-pool-size=64M --skip-name-resolve >>"$dir/mariadbd.log" 2>&1 &
    until_true mariadb --no-defaults --socket="$dir/db.sock" --user=root \
        -e "CREATE USER IF NOT EXISTS slurm@'127.0.0.1' IDENTIFIED BY 'slurm'; GRANT ALL ON slurm.* TO slurm@'127.0.0.1'" 2>/dev/null
}

# daemon munged|mariadbd|slurmdbd|slurmctld|slurmd [NODE] - start it unless it runs.
daemon() {
    export SLURM_CONF="$dir/slurm.conf"
    port=$(sed -n 's/^SlurmctldPort=//p' "$SLURM_CONF")
    case $1 in
    munged) alive "$dir/munged.pid" || munged --force --key-file="$dir/munge.key" --socket="$dir/munge/socket" \
        --pid-file="$dir/munged.pid" --log-file="$dir/munged.log" --seed-file="$dir/munge.seed" ;;
    mariadbd) alive "$dir/mariadbd.pid" || database ;;
    slurmdbd) alive "$dir/slurmdbd.pid" || SLURM_CONF="$dir/slurm.conf" slurmdbd ;;
    slurmctld) alive "$dir/slurmctld.pid" || slurmctld -f "$dir/slurm.conf" 2>>"$dir/slurmctld.log" ;;
    slurmd) alive "$dir/slurmd-$2.pid" || slurmd -N "$2" -f "$dir/slurm.conf" 2>>"$dir/slurmd-$2.log" ;;
    *) echo "slurm_cluster.sh: no daemon $1" >&2; return 2 ;;
    esac
}

missing() { for p in munged slurmctld slurmd sbatch ${SLURM_ACCOUNTING:+slurmdbd mariadbd mariadb}; do command -v $p >/dev/null 2>&1 || echo $p; done; }

# whole - whether all four nodes are there for jobs.
whole() { [ "$(sinfo -h -p all -t idle,alloc,mix -o %D 2>/dev/null | awk '{ n += $1 } END { print n + 0 }')" = 4 ]; }

start() {
    absent=$(missing)
    [ -z "$absent" ] || { echo "slurm_cluster.sh: not installed:" $absent "(sh tools/setup.sh slurm)" >&2; return 3; }
    [ "$(id -u)" = 0 ] || { echo "slurm_cluster.sh: only root can start these daemons" >&2; return 3; }
    [ -z "${SLURM_CGROUPS:-}" ] || { [ -w /sys/fs/cgroup/memory/tasks ] && [ -w /sys/fs/cgroup/freezer/tasks ]; } ||
        { echo "slurm_cluster.sh: not installed: control groups of version 1" >&2; return 3; }
    configure && daemon munged || return 1
    if [ -n "${SLURM_ACCOUNTING:-}" ]; then
        daemon mariadbd && daemon slurmdbd && until_true timeout 30 sacctmgr -i --quiet add cluster tune >/dev/null 2>&1 ||
            { echo "slurm_cluster.sh: the accounting does not come up; see $dir/*.log" >&2; return 1; }
    fi
    daemon slurmctld || return 1
    for node in n1 n2 n3 n4; do
        mkdir -p "$dir/spool/$node"
        daemon slurmd $node || return 1
    done
    until_true whole || { echo "slurm_cluster.sh: the nodes do not come up; see $dir/*.log" >&2; return 1; }
}

stop() {
    export SLURM_CONF="$dir/slurm.conf"
    scancel --quiet --state=running,pending,suspended -u root 2>/dev/null
    for f in "$dir"/slurmd-n?.pid "$dir/slurmctld.pid" "$dir/slurmdbd.pid" "$dir/mariadbd.pid" "$dir/munged.pid"; do
        alive "$f" && kill "$(cat "$f" 2>/dev/null)"
    done
    for f in "$dir"/slurmd-n?.pid "$dir/slurmctld.pid" "$dir/slurmdbd.pid" "$dir/mariadbd.pid" "$dir/munged.pid"; do
        tries=0
        while alive "$f" && [ $tries -lt 100 ]; do
            tries=$((tries + 1))
            sleep 0.1
        done
        alive "$f" && kill -9 "$(cat "$f" 2>/dev/null)"
    done
    find /sys/fs/cgroup/*/slurm_n[1-4] -depth -type d -exec rmdir {} + 2>/dev/null
    return 0
}

case $command in
start) start ;;
stop) stop ;;
env) echo "export SLURM_CONF='$dir/slurm.conf'" ;;
daemon) shift 2; daemon "$@" ;;
esac
