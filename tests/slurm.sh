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
resume() { op=$1 st=$2; shift 2; timeout 300 "$sweep" --resume "$op" --experiments work.json --store "$st" --share-cores "$@" >"$tmp/shown" 2>&1 || { code=$?; cat "$tmp/shown"; return $code; }; }
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
idle

# ---- jobs that Slurm ends ----
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

space long.yaml 1000 1008 4
behind cancelled long.yaml can
measuring can cancelled 8
scancel "--jobname=$(squeue -h -o %j | head -n 1)"
is "all jobs cancelled: sweep stops, and says so" eval 'ended 0 && says "^# 8 points are left, because jobs were cancelled" && says "^# go on with +sweep --resume cancelled"'
is "... --resume measures them" eval 'resume cancelled can && says "^# finished +8 valid" && whole can 1000 1008'

behind requeued long.yaml req
measuring req requeued 8
job=$(field "$(echo "$claims" | sed -n 1p)" job) other=$(echo "$claims" | sed -n 2p)
scontrol requeue "$job"
kill -9 "$(field "$other" pid)"
is "a requeued job, and a sweep that was killed in its job: both points are tried again" eval 'ended 0 && says "^# tried again .*Slurm ended job $job on [a-z0-9]+: REQUEUED" && says "^# tried again .*: FAILED" && whole req 1000 1008'
scancel -u root
idle

behind preempted long.yaml pre
measuring pre preempted 8
sbatch --quiet --partition=urgent --exclusive --nodes=1 --output=/dev/null --wrap 'sleep 3' >/dev/null
is "preempted jobs: their points are tried again" eval 'ended 0 && says "^# tried again .*REQUEUED" && whole pre 1000 1008'
scancel -u root
idle

# Slurm's own account of an end that this cluster cannot make: it has no control groups.
mkdir fake && cat >fake/squeue <<E2
#!/bin/sh
$(command -v squeue) "\$@" | sed 's/FAILED       /OUT_OF_MEMORY/'
E2
chmod +x fake/squeue
PATH="$tmp/fake:$PATH" behind oom long.yaml oom
measuring oom oom 8
kill -9 "$(field "$(echo "$claims" | sed -n 1p)" pid)"
is "out of memory, as Slurm would say it (not made here): a row with the reason" eval 'ended 0 && says "failed .*Slurm ended job [0-9_]+ on n[1-4]: OUT_OF_MEMORY" && whole oom 1000 1008 && [ "$(rows oom status | grep -c failed)" = 1 ]'
idle

# ---- killed ----
space killed.yaml 2000 2030 1
behind killed killed.yaml kil
measuring kil killed 8
kill -9 $pid
wait $pid 2>/dev/null
is "kill -9 of the sweep: jobs go on, and --resume finds what they did" eval 'sleep 4; [ "$(rows kil a | wc -l)" -ge 8 ] && resume killed kil && says "^# finished +30 valid" && whole kil 2000 2030'
is "... it submitted no more jobs than needed" eval '[ "$(squeue -h -t all -o "%i %j" | grep -c killed)" -le 34 ]'

# draw N - $drawn is a random whole number from 0 to below N, the same ones each time.
seed=7919
draw() {
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    drawn=$((seed / 65536 % $1))
}
# hit - kill something of the operation, or of Slurm.
hit() {
    claims=$(grep -l '^{"state":"held".*"job"' any/claims/any/* 2>/dev/null)
    draw 8
    claim=$(echo "$claims" | sed -n "$((drawn + 1))p")
    victim=$([ -z "$claim" ] || field "$claim" pid)
    draw 4
    node=n$((drawn + 1))
    draw 7
    case $drawn in
    0) kill -9 $pid; wait $pid 2>/dev/null ;;
    1 | 2) [ -z "$victim" ] || kill -9 "$victim" ;;
    3) [ -z "$victim" ] || kill -9 $(pgrep -P "$victim") ;; # the guard of what it measures
    4) kill -9 "$(cat "$cluster/slurmd-$node.pid")"; sleep 0.3; daemon slurmd $node ;;
    5) kill -9 "$(cat "$cluster/slurmctld.pid")"; sleep 0.3; daemon slurmctld ;;
    6) [ -z "$claim" ] || scontrol requeue "$(field "$claim" job)" ;;
    esac >>hits 2>&1
    echo "$drawn $node $victim" >>hits
}
space any.yaml 3000 3400 0.5
behind any any.yaml any --points-per-job 3
measuring any any 4
hits=0
while [ $hits -lt "$kills" ]; do
    draw 9
    sleep "0.$drawn"
    hit
    hits=$((hits + 1))
    kill -0 $pid 2>/dev/null || {
        "$sweep" --resume any --experiments work.json --store any --share-cores >>any.out 2>&1 &
        pid=$!
    }
done
wait $pid
code=$?
is "$kills random kills over sweep, jobs, measurements, slurmd and slurmctld: it ends" eval '[ $code = 0 ] || { tail -n 5 any.out; resume any any; }'
is "... nothing is lost, nothing twice" whole any 3000 3400
is "... and no point failed" eval '[ "$(rows any status | sort | uniq -c | tr -s " ")" = " 400 valid" ]'
finish
