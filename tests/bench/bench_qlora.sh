#!/bin/sh
# bench_qlora.sh [MODEL] [STEPS] [OPTION...] - peak memory of finetune_lora on a base in NF4 beside that base's weights in bfloat16:
# smollm2-1.7b's shape, all linear layers, r 16, length 512, batch 1, activations recomputed, to the end of the save.
#
# Anonymous memory (RssAnon, sampled every tenth of a second from outside) is what the run needs. Resident memory (VmHWM) has the
# pages of mapped files as well, which the kernel drops when memory is short; of the weights' file they are given back tensor by
# tensor. Takes as much disk as the weights have, for as long as it runs: 3.4 GB.
BUILD=${BUILD:-build}
. tests/bench/full_steps.sh
like=${1:-smollm2-1.7b}
steps=${2:-2}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] && shift
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
if [ "$(df -Pk "$tmp" | awk 'NR == 2 { print $4 }')" -lt 5000000 ]; then echo "# skipped: less than 5 GB free in $tmp"; exit 0; fi
"$BUILD/init_model" --like "$like" --seed 1 --dtype bfloat16 "$tmp/model" >/dev/null || exit 1
full_rows "$tmp/rows.jsonl"
"$BUILD/finetune_lora" --model "$tmp/model" --dataset "$tmp/rows.jsonl" --max-length 512 --batch-size 1 --max-steps "$steps" --lora-r 16 \
    --lora-alpha 32 --base-dtype nf4 --activation-checkpointing full --output "$tmp/run" "$@" >"$tmp/out" 2>&1 &
run=$!
while kill -0 $run 2>/dev/null; do
    sed -n 's/^RssAnon:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$run/status" 2>/dev/null
    sleep 0.1
done >"$tmp/anonymous"
wait $run || { cat "$tmp/out"; exit 1; }
grep -E '^# (memory|first step)' "$tmp/out"
steps_of "$tmp/run" 1 >"$tmp/steps"
awk -v weights="$(cat "$tmp"/model/*.safetensors | wc -c)" -v resident="$(sed -n 's/.*"peak_memory_bytes":[^0-9]*\([0-9]*\).*/\1/p' "$tmp/run/report.json")" '
    FILENAME ~ /anonymous$/ && $1 * 1024 > most { most = $1 * 1024 }
    FILENAME ~ /steps$/ && $3 / $2 > best { best = $3 / $2 }
    END {
        printf "weights in bfloat16      %8.0f MiB\n", weights / 1048576
        printf "peak anonymous memory    %8.0f MiB   %.3f of them (asked 0.55)\n", most / 1048576, most / weights
        printf "peak resident memory     %8.0f MiB   %.3f of them\n", resident / 1048576, resident / weights
        printf "best step                %8.1f tokens/s\n", best
    }' "$tmp/anonymous" "$tmp/steps"
