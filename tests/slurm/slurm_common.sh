# slurm_common.sh - what the tests of sweeps on Slurm share: a cluster, and the sweeps on it. Sourced.
. tests/tap.sh
what="sweeps on Slurm"
. tests/slurm/slurm_begin.sh
daemon() { sh "$here/tests/slurm/slurm_cluster.sh" daemon "$cluster" "$@"; }
sweep=$BUILD/sweep samples=$BUILD/samples
cd "$tmp" || exit 1

. "$here/tests/slurm/sweep_work.sh"
# slurm SPACE STORE OPTION... - the sweep; the nodes are one machine, so they share its cores.
slurm() { s=$1 st=$2; shift 2; timeout 300 "$sweep" "$s" --experiments work.json --store "$st" --launcher slurm --share-cores "$@" >"$tmp/shown" 2>&1 || { code=$?; cat "$tmp/shown"; return $code; }; }
resume() { op=$1 st=$2; shift 2; timeout 300 "$sweep" --resume "$op" --experiments work.json --store "$st" --share-cores "$@" >"$tmp/shown" 2>&1 || { code=$?; cat "$tmp/shown"; return $code; }; }
says() { grep -qE -e "$1" "$tmp/shown" || { cat "$tmp/shown"; false; }; }
dead() { ! grep -q '^State:.[^ZX]' "/proc/$1/status"; } # PID: nobody may have reaped it yet
idle() { until [ -z "$(squeue -h -o %i)" ]; do sleep 0.2; done; }

field() { sed -n "s/.*\"$2\":\"*\([^,\"}]*\).*/\1/p" "$1"; } # LEASE KEY
# measuring STORE OPERATION N - waits until that many jobs measure; their leases are in $leases.
measuring() {
    await $pid eval 'leases=$(grep -l "^{\"state\":\"held\".*\"job\"" '"$1/claims/$2"'/*) && [ "$(echo "$leases" | wc -l)" -ge '"$3"' ]'
}
# behind NAME SPACE STORE OPTION... - the sweep as a process of its own, $pid; its output is in $tmp/NAME.out.
behind() {
    op=$1 s=$2 st=$3
    shift 3
    "$sweep" "$s" --experiments work.json --store "$st" --launcher slurm --share-cores --name "$op" "$@" >"$tmp/$op.out" 2>&1 &
    pid=$!
}
ended() { wait $pid; code=$?; cp "$tmp/$op.out" "$tmp/shown"; [ $code = "$1" ] || { echo "exit code $code, not $1"; cat "$tmp/shown"; false; }; }

# restart [LIBRARY] - the daemon of node n1, with the library.
restart() {
    slurmd=$(cat "$cluster/slurmd-n1.pid")
    kill "$slurmd"
    await 0 dead "$slurmd"
    LD_PRELOAD=${1:-} daemon slurmd n1
}
# cancel_slowly STORE FIRST [OPTION] - two points of 4 s, whose jobs are cancelled while they measure. The daemon of their node takes
# 0.2 s between the signals that it sends, so a program whose child was killed ends well before the sweep in its job hears of the end.
cancel_slowly() {
    $CC -std=gnu11 -D_GNU_SOURCE -O1 -shared -fPIC -o slow_kill.so "$here/tests/faults/slow_kill.c" -ldl || exit 1
    restart "$tmp/slow_kill.so"
    space slow.yaml "$2" $(($2 + 2)) 4
    behind slowly slow.yaml "$1" --slurm "${3:-} --partition=one"
    measuring "$1" slowly 2
    scancel "--jobname=$(squeue -h -o %j | head -n 1)"
}
