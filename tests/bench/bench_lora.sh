#!/bin/sh
# bench_lora.sh [ROUNDS] [OPTION...] - model FLOP/s of finetune_lora on smollm2-135m's shape (all linear layers, r 16, length 512,
# batch 1, accumulation 4) beside what OpenBLAS makes of the same step's matrix products, adapters' among them; rounds take turns,
# the best of each counts. Model FLOPs: 4 N per token over all matmul weights, output projection included, 6 for each of the
# adapters' numbers, + 6 L T H D causal attention. Options go to finetune_lora: --base-dtype nf4.
BUILD=${BUILD:-build}
. tests/bench/full_steps.sh
rounds=${1:-3}
[ $# -gt 0 ] && shift
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$BUILD/init_model" --like smollm2-135m --seed 1 "$tmp/model" >/dev/null || exit 1
full_rows "$tmp/rows.jsonl"
for round in $(seq "$rounds"); do
    echo "# round $round of $rounds" >&2
    "$BUILD/tests/bench/bench_gemm" 10 0 16 >>"$tmp/gemm" || exit 1
    "$BUILD/finetune_lora" --model "$tmp/model" --dataset "$tmp/rows.jsonl" --max-length 512 --batch-size 1 --accumulate 4 --max-steps 4 \
        --lora-r 16 --lora-alpha 32 --no-save --verbose "$@" --output "$tmp/run" --overwrite >"$tmp/out" || { cat "$tmp/out"; exit 1; }
    steps_of "$tmp/run" 2 >>"$tmp/steps"
done
grep -h '^# ' "$tmp/gemm" | sort -u | grep -v 'FMA peak'
grep '^# memory' "$tmp/out"
# r (in + out) over q, k, v, o, gate, up, down of 30 layers.
awk -v layers=30 -v length_=512 -v width=576 -v weights=134479872 -v r=16 '
    FILENAME ~ /gemm$/ && /FMA peak/ { if ($4 > peak) peak = $4 }
    FILENAME ~ /gemm$/ && /FLOP-weighted/ { if ($2 > blas) blas = $2; if ($3 > ours) ours = $3 }
    FILENAME ~ /steps$/ { rate = $3 / $2; if (rate > best) best = rate; sum += rate; n++ }
    END {
        adapters = layers * r * (2 * (576 + 576) + 2 * (576 + 192) + 3 * (576 + 1536))
        flops = 4 * weights + 6 * adapters + 6 * layers * length_ * width
        printf "%-52s %8.1f GFLOP/s\n", "FMA peak", peak
        printf "%-52s %8.1f GFLOP/s\n", "one step'"'"'s products by OpenBLAS, its best kernel", blas
        printf "%-52s %8.1f GFLOP/s\n", "the same by ours", ours
        printf "%-52s %8.1f GFLOP/s   %.1f tokens/s (mean of %d steps %.1f)\n", "finetune_lora, model FLOP/s of its best step", best * flops / 1e9, best, n, sum / n
        printf "model FLOP/s / OpenBLAS products: %.3f (asked 0.80)\n", best * flops / 1e9 / blas
    }' "$tmp/gemm" "$tmp/steps"
