# slurm_common.sh - what the tests with Slurm share: a cluster, an experiment, spaces of it, and questions about stores. Sourced.
. tests/tap.sh
cluster=$tmp/cluster
if ! sh tests/slurm_cluster.sh start "$cluster" >"$tmp/started" 2>&1; then
    case $(cat "$tmp/started") in
    *"not installed"* | *"only root"*) skip "sweeps on Slurm" "$(tail -n 1 "$tmp/started")" ;;
    *) is "the cluster starts" sh -c 'cat "$1"; false' sh "$tmp/started" ;;
    esac
    finish
fi
trap 'sh "$here/tests/slurm_cluster.sh" stop "$cluster"; rm -rf "$tmp"' EXIT
eval "$(sh tests/slurm_cluster.sh env "$cluster")"
daemon() { sh "$here/tests/slurm_cluster.sh" daemon "$cluster" "$@"; }
sweep=$BUILD/sweep samples=$BUILD/samples
cd "$tmp" || exit 1

cat >work.sh <<'E2'
#!/bin/sh
echo "$TUNE_INPUT_A" >>"$TUNE_INPUT_LOG"
case $TUNE_INPUT_HOW in
fail) echo "it cannot be" >&2; exit 7 ;;
esac
sleep "$TUNE_INPUT_SECONDS"
echo "{\"t\": $TUNE_INPUT_A}" >"$TUNE_OUTPUT/report.json"
E2
chmod +x work.sh
cat >work.json <<E2
{"identifier": "work", "actuator": "custom_experiments", "program": "./work.sh", "output": null,
 "inputs": [{"identifier": "a", "required": true, "domain": {"domainRange": [0, 100000], "interval": 1}},
  {"identifier": "seconds", "default": 0.0, "domain": {"domainRange": [0, 1000]}},
  {"identifier": "how", "default": "fine", "domain": {"values": ["fine", "fail"]}},
  {"identifier": "log", "default": "$tmp/log", "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}}],
 "rules": [{"require": "a != 13", "reason": "thirteen"}],
 "targets": [{"identifier": "t"}]}
E2
# space FILE LOW HIGH [SECONDS [HOW]] - of the points from LOW to below HIGH
space() {
    cat >"$1" <<E2
entitySpace: [{identifier: a, propertyDomain: {domainRange: [$2, $3], interval: 1}}]
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work, parameterization: [
  {property: {identifier: seconds}, value: ${4:-0.001}}${5:+, {property: {identifier: how\}, value: $5\}}]}]
E2
}
rows() { "$samples" rows custom_experiments.work --experiments work.json --store "$1" --columns "$2" --output-format csv | tail -n +2; }
# slurm SPACE STORE OPTION... - the sweep; the nodes are one machine, so they share its cores.
slurm() { s=$1 st=$2; shift 2; timeout 300 "$sweep" "$s" --experiments work.json --store "$st" --launcher slurm --share-cores "$@" >"$tmp/shown" 2>&1 || { code=$?; cat "$tmp/shown"; return $code; }; }
resume() { op=$1 st=$2; shift 2; timeout 300 "$sweep" --resume "$op" --experiments work.json --store "$st" --share-cores "$@" >"$tmp/shown" 2>&1 || { code=$?; cat "$tmp/shown"; return $code; }; }
says() { grep -qE -e "$1" "$tmp/shown" || { cat "$tmp/shown"; false; }; }
# whole STORE LOW HIGH - the store is sound and has each point once.
whole() { "$samples" check --store "$1" && rows "$1" a | sort -n >"$tmp/got" && seq "$2" $(($3 - 1)) | diff - "$tmp/got"; }
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
