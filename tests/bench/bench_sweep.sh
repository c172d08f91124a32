#!/bin/sh
# bench_sweep.sh [SECONDS] - what sweep adds to what it measures: on a script that does nothing, beside the script by itself; on the
# laptop example (smollm2-135m's shape, four entities of SECONDS each, 30 if not given): the whole beside the sum of what was
# asked and each one's last step; and the same again, when all is known. SECONDS 0: without the example.
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$(pwd)/$BUILD ;; esac
seconds=${1:-30} here=$(pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
now() { date +%s.%N; }
printf '#!/bin/sh\necho "{\\"t\\": 1}" >"$TUNE_OUTPUT/report.json"\n' >nothing.sh && chmod +x nothing.sh
cat >nothing.json <<'E2'
{"identifier": "nothing", "actuator": "custom_experiments", "program": "./nothing.sh", "output": null,
 "inputs": [{"identifier": "a", "required": true, "domain": {"domainRange": [0, 1000], "interval": 1}}], "targets": [{"identifier": "t"}]}
E2
echo 'entitySpace: [{identifier: a, propertyDomain: {domainRange: [0, 100], interval: 1}}]
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: nothing}]' >nothing.yaml
a=$(now)
for i in $(seq 100); do TUNE_OUTPUT=. ./nothing.sh; done
b=$(now)
"$BUILD/sweep" nothing.yaml --experiments nothing.json --store st >/dev/null || exit 1
c=$(now)
"$BUILD/sweep" nothing.yaml --experiments nothing.json --store st >/dev/null || exit 1
d=$(now)
awk -v a="$a" -v b="$b" -v c="$c" -v d="$d" 'BEGIN {
    printf "a script of %.1f ms: measured in %.1f ms each, %.1f ms of them sweep; a known one %.2f ms\n", (b - a) * 10, (c - b) * 10, (c - b - (b - a)) * 10, (d - c) * 10 }'
[ "$seconds" != 0 ] || exit 0
"$BUILD/init_model" --like smollm2-135m --seed 1 models/SmolLM2-135M >/dev/null || exit 1
mkdir data && "$BUILD/make_news" news-tokens-16384plus-entries-4096 --output data/news-tokens-16384plus-entries-4096.jsonl >/dev/null || exit 1
sed "s/value: 30/value: $seconds/" "$here/defaults/spaces/laptop.yaml" >laptop.yaml
a=$(now)
"$BUILD/sweep" laptop.yaml --store laptop --keep-runs | tee out
b=$(now)
"$BUILD/sweep" laptop.yaml --store laptop >/dev/null || exit 1
c=$(now)
for run in laptop/runs/*/*/run-0/metrics.jsonl; do
    tail -n 1 "$run" | sed -n 's/.*"step_s":\([0-9.e-]*\).*/\1/p'
done | awk -v a="$a" -v b="$b" -v c="$c" -v s="$seconds" '
    { bound += s + $1 + 3; last = last sprintf("%s%.1f", NR > 1 ? " + " : "", $1) }
    END {
        total = b - a
        printf "laptop example: %.1f s in all; asked: under %d x (%g + 3) s and the last steps (%s) = %.1f s: %s\n", total, NR, s, last, bound, NR == 4 && total < bound ? "ok" : "MISS"
        printf "the same again: %.3f s; asked: under 0.2 s: %s\n", c - b, c - b < 0.2 ? "ok" : "MISS"
    }'
"$BUILD/samples" show laptop.yaml --store laptop --output-format csv
