#!/bin/sh
# bench_threads.sh [ROUNDS] - what each more thread gains: multiply-adds in registers (their mean over 2 s), the products of a
# step, and a step of finetune_full on smollm2-135m's shape (float32, length 512). 1 to as many threads as there are cores, or
# 1, 2, 4, ... above 8. Rounds take turns; the best of each counts. Gain: ÷ one thread's. The last column: the step's gain ÷ that
# of the multiply-adds.
BUILD=${BUILD:-build}
. tests/bench/full_steps.sh
rounds=${1:-3}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$BUILD/init_model" --like smollm2-135m --seed 1 "$tmp/model" >/dev/null || exit 1
full_rows "$tmp/rows.jsonl"
cores=$("$BUILD/tests/helpers/device" cpu | sed -n 's/.*, \([0-9]*\) threads\{0,1\},.*/\1/p')
list=$(awk -v n="$cores" 'BEGIN { for (i = 1; i < n; i += n > 8 ? i : 1) printf "%d ", i; print n }')
export OPENBLAS_CORETYPE="${OPENBLAS_CORETYPE:-Haswell}" # bench_gemm need not try them: ours counts
for round in $(seq "$rounds"); do
    echo "# round $round of $rounds" >&2
    for n in $list; do
        "$BUILD/tests/bench/bench_peak" 2 "$n" | sed "s/^/peak $n /" >>"$tmp/all"
        "$BUILD/tests/bench/bench_gemm" 2 "$n" | awk -v n="$n" '/FLOP-weighted/ { print "gemm", n, $3 }' >>"$tmp/all"
        "$BUILD/finetune_full" --model "$tmp/model" --dataset "$tmp/rows.jsonl" --max-length 512 --max-steps 5 --no-save \
            --threads "$n" --output "$tmp/run" --overwrite >"$tmp/out" || { cat "$tmp/out"; exit 1; }
        steps_of "$tmp/run" 2 | awk -v n="$n" '{ print "step", n, $3 / $2 }' >>"$tmp/all"
    done
done
"$BUILD/tests/helpers/device" cpu | sed 's/^/# /'
awk -v list="$list" '
    { if ($3 > best[$1, $2]) best[$1, $2] = $3 }
    END {
        n = split(list, threads, " ")
        printf "%7s %16s %6s %16s %6s %14s %6s %8s\n", "threads", "multiply-adds", "gain", "products", "gain", "step, tokens/s", "gain", "÷ gain"
        for (i = 1; i <= n; i++) {
            t = threads[i]
            p = best["peak", t] / best["peak", 1]; g = best["gemm", t] / best["gemm", 1]; s = best["step", t] / best["step", 1]
            printf "%7d %8.1f GFLOP/s %6.2f %8.1f GFLOP/s %6.2f %14.1f %6.2f %7.3f\n", t, best["peak", t], p, best["gemm", t], g, best["step", t], s, s / p
        }
    }' "$tmp/all"
