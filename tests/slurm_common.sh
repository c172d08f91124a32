# slurm_common.sh - what the tests of sweeps on Slurm share: a cluster, and the sweeps on it. Sourced.
. tests/tap.sh
what="sweeps on Slurm"
. tests/slurm_begin.sh
daemon() { sh "$here/tests/slurm_cluster.sh" daemon "$cluster" "$@"; }
sweep=$BUILD/sweep samples=$BUILD/samples
cd "$tmp" || exit 1

. "$here/tests/sweep_work.sh"
# slurm SPACE STORE OPTION... - the sweep; the nodes are one machine, so they share its cores.
slurm() { s=$1 st=$2; shift 2; timeout 300 "$sweep" "$s" --experiments work.json --store "$st" --launcher slurm --share-cores "$@" >"$tmp/shown" 2>&1 || { code=$?; cat "$tmp/shown"; return $code; }; }
resume() { op=$1 st=$2; shift 2; timeout 300 "$sweep" --resume "$op" --experiments work.json --store "$st" --share-cores "$@" >"$tmp/shown" 2>&1 || { code=$?; cat "$tmp/shown"; return $code; }; }
says() { grep -qE -e "$1" "$tmp/shown" || { cat "$tmp/shown"; false; }; }
idle() { until [ -z "$(squeue -h -o %i)" ]; do sleep 0.2; done; }

field() { sed -n "s/.*\"$2\":\"*\([^,\"}]*\).*/\1/p" "$1"; } # CLAIM KEY
# measuring STORE OPERATION N - waits until that many jobs measure; their claims are in $claims.
measuring() {
    until claims=$(grep -l '^{"state":"held".*"job"' "$1/claims/$2"/* 2>/dev/null) && [ "$(echo "$claims" | wc -l)" -ge "$3" ]; do
        sleep 0.1
        [ -e "$tmp/begun" ] || return 1
    done
}
# behind NAME SPACE STORE OPTION... - the sweep as a process of its own, $pid; its output is in $tmp/NAME.out.
behind() {
    op=$1 s=$2 st=$3
    shift 3
    : >"$tmp/begun"
    "$sweep" "$s" --experiments work.json --store "$st" --launcher slurm --share-cores --name "$op" "$@" >"$tmp/$op.out" 2>&1 &
    pid=$!
}
ended() { wait $pid; code=$?; cp "$tmp/$op.out" "$tmp/shown"; [ $code = "$1" ] || { echo "exit code $code, not $1"; cat "$tmp/shown"; false; }; }
