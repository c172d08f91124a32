#!/bin/sh
# bench_step.sh [ROUNDS] - model FLOP/s of finetune_full on smollm2-135m's shape (float32, length 512, batch 1, accumulation 4)
# beside what OpenBLAS makes of the same step's matrix products, and beside the cores' FMA peak; rounds take turns, the best
# of each counts. Model FLOPs: 6 N per token over all matmul weights, output projection included, + 6 L T H D causal
# attention; nothing recomputed is counted.
BUILD=${BUILD:-build}
. tests/bench/full_steps.sh
rounds=${1:-3}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$BUILD/init_model" --like smollm2-135m --seed 1 "$tmp/model" >/dev/null || exit 1
full_rows "$tmp/rows.jsonl"
for round in $(seq "$rounds"); do
    echo "# round $round of $rounds" >&2
    "$BUILD/tests/bench/bench_gemm" 10 >>"$tmp/gemm" || exit 1
    "$BUILD/finetune_full" --model "$tmp/model" --dataset "$tmp/rows.jsonl" --max-length 512 --accumulate 4 --max-steps 4 \
        --output "$tmp/run" --overwrite >"$tmp/out" || { cat "$tmp/out"; exit 1; }
    steps_of "$tmp/run" 2 >>"$tmp/steps"
done
grep -h '^# ' "$tmp/gemm" | sort -u | grep -v 'FMA peak'
awk -v layers=30 -v length_=512 -v width=576 -v weights=134479872 '
    FILENAME ~ /gemm$/ && /FMA peak/ { if ($4 > peak) peak = $4 }
    FILENAME ~ /gemm$/ && /FLOP-weighted/ { if ($2 > blas) blas = $2; if ($3 > ours) ours = $3 }
    FILENAME ~ /steps$/ { rate = $3 / $2; if (rate > best) best = rate; sum += rate; n++ }
    END {
        flops = 6 * weights + 6 * layers * length_ * width
        printf "%-52s %8.1f GFLOP/s\n", "FMA peak", peak
        printf "%-52s %8.1f GFLOP/s\n", "one step'"'"'s products by OpenBLAS, its best kernel", blas
        printf "%-52s %8.1f GFLOP/s\n", "the same by ours", ours
        printf "%-52s %8.1f GFLOP/s   %.1f tokens/s (mean of %d steps %.1f)\n", "finetune_full, model FLOP/s of its best step", best * flops / 1e9, best, n, sum / n
        printf "model FLOP/s / OpenBLAS products: %.3f (asked 0.85)   / FMA peak: %.3f (aimed at 0.85)\n", best * flops / 1e9 / blas, best * flops / 1e9 / peak
    }' "$tmp/gemm" "$tmp/steps"
