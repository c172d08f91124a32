#!/bin/sh
# slurm_wrong.sh - sweep --launcher slurm: what users and clusters get wrong. Called by `make test-slurm`, as root.
. tests/slurm/slurm_common.sh

space bad.yaml 4000 4012 0.2
space s.yaml 1 2
# once CODE TEXT STORE OPTION... - the sweep ends with that code, and says that once.
once() {
    wanted=$1 text=$2 st=$3
    shift 3
    "$sweep" bad.yaml --experiments work.json --store "$st" --launcher slurm --share-cores "$@" >shown 2>&1
    code=$?
    cat shown
    [ $code = "$wanted" ] && [ "$(grep -cF -e "$text" shown)" = 1 ]
}
wrong() { n=$1; shift; is "$n" once "$@"; } # NAME, and as for once
wrong "a partition that does not exist: Slurm's message, once" 3 "Slurm does not accept the jobs: invalid partition specified: nope" bad --slurm "--partition=nope"
wrong "an option that sbatch does not know" 3 "Slurm does not accept the jobs: " bad --slurm "--nonsense=1"
wrong "--join and --launcher" 2 "--launcher cannot share an operation" bad --join x
wrong "--stop-when and --launcher" 2 "--stop-when with --launcher needs --order model" bad --stop-when one:5%
refused "--slurm without --launcher" 2 "are only for --launcher slurm" "$sweep" bad.yaml --experiments work.json --store bad --slurm "--time=1"
refused "--at-most without --join" 2 "--at-most needs --join OPERATION" "$sweep" bad.yaml --experiments work.json --store bad --at-most 1
refused "--job that is none" 2 "such as 12_3/0" "$sweep" bad.yaml --experiments work.json --store bad --at-most 1 --join x --job 12
"$sweep" bad.yaml --experiments work.json --store one --entities 1 >shown 2>&1
refused "--at-most: an operation that is not there is not begun" 2 "there is no operation nobody" "$sweep" --experiments work.json --store one --join nobody --at-most 1
mkdir none
refused "no sbatch here" 3 "needs the programs of Slurm on this machine" env PATH="$tmp/none" "$sweep" bad.yaml --experiments work.json --store bad2 --launcher slurm

# All measurements fail: the brake.
space fails.yaml 4100 4130 0.001 fail
is "the brake ends the jobs, too" eval '"$sweep" fails.yaml --experiments work.json --store brake --launcher slurm --share-cores --max-jobs 1 >shown 2>&1; [ $? = 1 ] && says "^# 5 failed in a row .*exit code 7" && idle && [ "$(rows brake a | wc -l)" -lt 25 ]'

# slurmctld is away: at the start, and in the middle.
quit() { p=$(cat "$cluster/$1.pid"); kill "$p"; await 0 dead "$p"; }
quit slurmctld
wrong "slurmctld is away at the start" 3 "Unable to contact slurm controller" away
daemon slurmctld
space middle.yaml 4200 4208 30
behind middle middle.yaml middle
measuring middle middle 8
quit slurmctld
await $pid grep "Unable to contact" middle.out
sleep 10 # in which it asks again
daemon slurmctld
is "slurmctld is away in the middle: said once; the jobs go on" eval 'ended 0 && [ "$(grep -c "Unable to contact" shown)" = 1 ] && says "^# finished +8 valid" && whole middle 4200 4208'

# nodes COMMAND - all four start again, each in a mount namespace where the command was run.
nodes() {
    for node in n1 n2 n3 n4; do
        quit slurmd-$node
        export node
        unshare -m sh -c "mount --make-rprivate / && { $1; } && exec sh '$here/tests/slurm/slurm_cluster.sh' daemon '$cluster' slurmd $node"
    done
    until [ "$(sinfo -h -p all -t idle -o %D)" = 4 ]; do sleep 0.3; done
}
if unshare -m true 2>/dev/null; then
    mkdir shared local
    nodes "[ \$node != n1 ] || mount -t tmpfs none '$tmp/shared'"
    wrong "a store that a node does not see: the first job says it" 3 "n1 does not see the store $tmp/shared/st" shared/st --slurm --partition=one
    is "... and no job is left" eval '[ -z "$(squeue -h -o %i)" ]'

    cp work.sh local/work.sh && sed 's|./work.sh|local/work.sh|' work.json >other.json
    { cat work.sh; echo "# another build"; } >another.sh && chmod +x another.sh
    printf '#!/bin/sh\necho "sweep: unknown option --at-most" >&2\nexit 2\n' >oldsweep && chmod +x oldsweep
    nodes "[ \$node != n2 ] || mount --bind '$tmp/another.sh' '$tmp/local/work.sh'"
    space builds.yaml 4300 4316 1
    is "a node with another build: its rows say so" eval '"$sweep" builds.yaml --experiments other.json --store builds --launcher slurm --share-cores >shown 2>&1; says "^# finished +16 valid" && [ "$("$samples" show custom_experiments.work --experiments other.json --store builds --columns build_id --output-format csv | tail -n +2 | sort -u | wc -l)" = 2 ]'
    nodes "[ \$node != n1 ] || mount --bind '$tmp/oldsweep' '$sweep'"
    wrong "a node with another sweep: its message" 3 "ended with exit code 2: sweep: unknown option --at-most" old --slurm --partition=one

    "$sweep" s.yaml --experiments work.json --store disk --entities 1 >shown 2>&1
    mkdir -p disk/runs
    nodes "[ \$node != n3 ] || mount -t tmpfs -o nr_inodes=1 none '$tmp/disk/runs'"
    is "a full disk on one node: its points are measured elsewhere" eval '"$sweep" bad.yaml --experiments work.json --store disk --launcher slurm --share-cores --name disk >shown 2>&1; says "^# job [0-9_]+ on n3 failed .exit code 1.: .*No space left" && says "^# finished +12 valid" && "$samples" check --store disk && [ "$(rows disk a | sort -n | tail -n +2 | tr "\n" " ")" = "$(seq 4000 4011 | tr "\n" " ")" ]'
else
    skip "nodes with mounts of their own" "no mount namespaces here"
fi
finish
