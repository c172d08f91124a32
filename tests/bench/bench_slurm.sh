#!/bin/sh
# bench_slurm.sh - what sweep --launcher slurm costs, on a real Slurm of four nodes on this machine (tests/slurm/slurm_cluster.sh): beside a
# bare job for each point, beside plain sweeps in jobs, and how often Slurm is asked about 10,000 jobs.
# It needs root and Slurm (tools/setup.sh slurm). FOLLOW_S: how long to follow the 10,000 jobs (65).
. tests/tap.sh >/dev/null
cluster=$tmp/cluster
if ! sh tests/slurm/slurm_cluster.sh start "$cluster" >"$tmp/started" 2>&1; then
    echo "left out: $(tail -n 1 "$tmp/started")"
    exit 0
fi
trap 'sh "$here/tests/slurm/slurm_cluster.sh" stop "$cluster"; rm -rf "$tmp"' EXIT
eval "$(sh tests/slurm/slurm_cluster.sh env "$cluster")"
sweep=$BUILD/sweep
cd "$tmp" || exit 1
cat >work.sh <<'E2'
#!/bin/sh
sleep 0.001
[ -z "$TUNE_OUTPUT" ] || echo "{\"t\": $TUNE_INPUT_A}" >"$TUNE_OUTPUT/report.json"
E2
chmod +x work.sh
cat >work.json <<'E2'
{"identifier": "work", "actuator": "custom_experiments", "program": "./work.sh", "output": null,
 "inputs": [{"identifier": "a", "required": true, "domain": {"domainRange": [0, 100000], "interval": 1}}], "targets": [{"identifier": "t"}]}
E2
space() {
    cat >"$1" <<E2
entitySpace: [{identifier: a, propertyDomain: {domainRange: [$2, $3], interval: 1}}]
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work}]
E2
}
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.3f", b - a }'; }
# array OPTION... - submits an array and waits for its end.
array() { sbatch --quiet --output=/dev/null "$@" >/dev/null; until [ -z "$(squeue -h -o %i)" ]; do sleep 0.1; done; }
# slurm SPACE STORE OPTION... - the sweep; its own processor time goes to the file `used`.
slurm() { s=$1 st=$2; shift 2; "$sweep" "$s" --experiments work.json --store "$st" --launcher slurm --share-cores "$@" >shown 2>&1 || cat shown; }

echo "machine: $(nproc) cores, $(squeue --version), 4 nodes of 2 processors on it"
# ---- the command of a job ----
# The same 30 points by the script that Slurm would run, one after the other, and by the program alone. All in one job.
space one.yaml 0 30
"$sweep" one.yaml --experiments work.json --store one --launcher slurm --share-cores --name one --slurm "--begin=now+1day" >shown 2>&1 &
pid=$!
until grep -q "jobs in Slurm" shown 2>/dev/null; do sleep 0.1; done
cp one/launch/one/job.sh .
cat >turns.sh <<'E2'
for turn in 1 2 3; do
    i=0 bare=0 whole=0
    while [ $i -lt 10 ]; do
        i=$((i + 1))
        begin=$(now)
        sh -c "exec ./work.sh"
        bare=$(awk -v s="$bare" -v d="$(since "$begin")" 'BEGIN { print s + d }')
        begin=$(now)
        SLURM_ARRAY_JOB_ID=$turn SLURM_ARRAY_TASK_ID=$i sh job.sh
        whole=$(awk -v s="$whole" -v d="$(since "$begin")" 'BEGIN { print s + d }')
    done
    awk -v b="$bare" -v w="$whole" -v t=$turn 'BEGIN { printf "10 points, a job each, turn %d: the program %.0f ms, the job %.0f ms: %.0f ms more a point\n", t, b * 100, w * 100, (w - b) * 100 }'
done
E2
{ sed -n '/^now()/p; /^since()/p' "$here/tests/bench/bench_slurm.sh"; cat turns.sh; } >job_turns.sh
sbatch --quiet --wait --output=turns.txt --wrap ". ./job_turns.sh" >/dev/null
cat turns.txt
kill -INT $pid 2>/dev/null
wait $pid
scancel -u root

# ---- packs ----
space many.yaml 0 1000
i=0
while [ $i -lt 20 ]; do
    i=$((i + 1))
    space pack.$i.yaml $(((i - 1) * 50)) $((i * 50))
done
for turn in 1 2 3; do
    rm -rf alone.*
    begin=$(now)
    array --array=1-20 --wrap "exec $sweep pack.\$SLURM_ARRAY_TASK_ID.yaml --experiments work.json --store alone.\$SLURM_ARRAY_TASK_ID --share-cores"
    alone=$(since "$begin")
    begin=$(now)
    slurm many.yaml many.$turn --points-per-job 50
    whole=$(since "$begin")
    awk -v a="$alone" -v w="$whole" -v t=$turn 'BEGIN { printf "1,000 points of 1 ms in 20 jobs, turn %d: sweeps on their own in such jobs %.2f s, --launcher slurm %.2f s: %+.1f %%\n", t, a, w, (w / a - 1) * 100 }'
done

# ---- 10,000 jobs that wait ----
mkdir bin && printf '#!/bin/sh\ndate +%%s.%%N >>"%s/asked"\nexec %s "$@"\n' "$tmp" "$(command -v squeue)" >bin/squeue && chmod +x bin/squeue
space wait.yaml 0 10000
begin=$(now)
PATH="$tmp/bin:$PATH" timeout -s INT "${FOLLOW_S:-65}" "$sweep" wait.yaml --experiments work.json --store wait --launcher slurm --slurm "--begin=now+1day" >shown 2>&1 &
wait $!
grep "jobs in Slurm" shown
awk -v s="$(since "$begin")" 'NR > 1 && (least == 0 || $1 - last < least) { least = $1 - last } { last = $1 } END {
    printf "10,000 jobs followed for %.0f s: Slurm was asked %d times, %.1f s apart at least\n", s, NR, least }' asked
begin=$(now)
squeue --me --noheader --array --states=all --Format=JobArrayID:48 | wc -l | tr '\n' ' '
echo "jobs in one answer of $(since "$begin") s"
scancel -u root
