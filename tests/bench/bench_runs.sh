#!/bin/sh
# bench_runs.sh [RUNS...] - `runs list` over this many run folders (1,000 and 10,000), copies of one run of 45 steps that differ in
# the learning rate: the best of three, with the cores to itself.
. tests/tap.sh >/dev/null
cd "$tmp" || exit 1
tiny model 1 >/dev/null
"$BUILD/finetune_full" --model model --dataset "$here/datasets/stories.jsonl" --max-length 48 --lr 1e-3 --max-steps 45 --output one >log 2>&1 || { cat log; exit 1; }
for n in ${*:-1000 10000}; do
    rm -rf runs && mkdir runs && seq "$n" | while read -r i; do
        mkdir "runs/r$i" && ln one/metrics.jsonl "runs/r$i/metrics.jsonl" && sed "1,/\"lr\":/s/\"lr\":[^,]*/\"lr\": $((i % 1000 + 1))e-6/" one/run.json >"runs/r$i/run.json"
    done
    best=$(for k in 1 2 3; do
        begin=$(date +%s%N) && "$BUILD/runs" list >list && echo $((($(date +%s%N) - begin) / 1000000))
    done | sort -n | head -n 1)
    printf '%6d runs, %d lines: %d ms\n' "$n" "$(wc -l <list)" "$best"
done
