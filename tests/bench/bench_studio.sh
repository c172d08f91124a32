#!/bin/sh
# bench_studio.sh [RUNS STEPS LONG POINTS] - the studio's runs (1,000 of 1,000 steps): memory, the list, and LONG runs (20 of 10^5
# points) overlaid: the first time, then the best of three. Times of whole requests, with the cores to itself. Then what
# the page asks for every 1.5 s: whether the answer has a run that has just come.
. tests/tap.sh >/dev/null
. tests/studio/server.sh >/dev/null
many=$BUILD/tests/helpers/many_runs
mkdir "$tmp/root" && "$many" "$tmp/root/runs" "${1:-1000}" "${2:-1000}" || exit 1
serve "$tmp/root" || exit 1
indexed() { get '/api/runs?limit=0' | grep -q '"indexed":true'; }
await $server indexed || exit 1
# time_of NAME PATH - the first request, and the best of three more.
time_of() {
    first=$(curl -sS -o "$tmp/answer" -w '%{time_total}' "$url$2")
    best=$(for k in 1 2 3; do curl -sS -o "$tmp/answer" -w '%{time_total}\n' "$url$2"; done | sort -n | head -n 1)
    printf '%-24s first %s s, then %s s, %d bytes\n' "$1" "$first" "$best" "$(wc -c <"$tmp/answer")"
}
time_of "list" /api/runs
awk '/^VmRSS/ { printf "memory of the server      %.1f MB\n", $2 / 1000 }' "/proc/$server/status"
for k in 1 2 3 4 5; do
    sleep 1.5
    cp -r "$root/runs/r00000" "$root/runs/shell$k"
    curl -sS -o "$tmp/answer" -w "a run of the shell       known after %{time_total} s" "$url/api/runs/changes?since=0"
    if grep -q "shell$k" "$tmp/answer"; then echo; else echo ": NOT YET"; fi
done
stopped
mkdir "$tmp/long" && "$many" "$tmp/long/runs" "${3:-20}" "${4:-100000}" || exit 1
serve "$tmp/long" && await $server indexed || exit 1
ids=$(awk -v n="${3:-20}" 'BEGIN { for (i = 0; i < n; i++) printf "runs%%2Fr%05d,", i }')
time_of "curves" "/api/runs/curves?ids=$ids&metric=loss"
time_of "picture" "/api/runs/plot.svg?ids=$ids&metrics=loss&legend=false&width=800"
stopped
