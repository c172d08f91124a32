# slurm_begin.sh - start a cluster of the test's own, or skip the test; $what names it. Sourced by the tests with Slurm, after tests/tap.sh.
cluster=$tmp/cluster
trap 'sh "$here/tests/slurm/slurm_cluster.sh" stop "$cluster"; rm -rf "$tmp"' EXIT
if ! sh tests/slurm/slurm_cluster.sh start "$cluster" >"$tmp/started" 2>&1; then
    case $(cat "$tmp/started") in
    *"not installed"* | *"only root"*) skip "$what" "$(tail -n 1 "$tmp/started")" ;;
    *) is "the cluster starts" sh -c 'cat "$1"; false' sh "$tmp/started" ;;
    esac
    finish
fi
eval "$(sh tests/slurm/slurm_cluster.sh env "$cluster")"
