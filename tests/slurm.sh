#!/bin/sh
# slurm.sh - sweep --launcher slurm on a real Slurm of four nodes (tests/slurm_cluster.sh): what it measures; jobs that Slurm ends;
# sweeps, jobs and daemons that are killed; what users and clusters get wrong. Called by `make test-slurm`, as root.
# SLURM_KILLS: how often to kill (50).
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
kills=${SLURM_KILLS:-50} sweep=$BUILD/sweep samples=$BUILD/samples
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
resume() { name=$1 st=$2; shift 2; timeout 300 "$sweep" --resume "$name" --experiments work.json --store "$st" --share-cores "$@" >"$tmp/shown" 2>&1 || { code=$?; cat "$tmp/shown"; return $code; }; }
says() { grep -qE -e "$1" "$tmp/shown" || { cat "$tmp/shown"; false; }; }
# whole STORE LOW HIGH - the store is sound and has each point once.
whole() { "$samples" check --store "$1" && rows "$1" a | sort -n >"$tmp/got" && seq "$2" $(($3 - 1)) | diff - "$tmp/got"; }
idle() { until [ -z "$(squeue -h -o %i)" ]; do sleep 0.2; done; }

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
is "--dry-run prints the script, and submits nothing" eval 'space dry.yaml 400 410 && slurm dry.yaml st --dry-run --slurm "--partition=all --time=30" && says "^#SBATCH --job-name=sweep-[a-z0-9]+-.* --array=1-10$" && says "^#SBATCH --partition=all --time=30$" && says "^exec .*--points 1 --job" && [ -z "$(squeue -h)" ]'
is "... which the shell reads" eval 'sed -n "/^#!/,\$p" shown | sh -n'
finish
