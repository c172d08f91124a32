#!/bin/sh
# bench_ranks.sh [PAIRS] - what two ranks cost: a step of 4,096 tokens a rank on two ranks of one thread, ÷ the same rows on one rank of two
# threads (a model of 10 M weights, float32, length 512). Pairs of runs take turns, and the median counts. Bar of R22.9: 0.85.
# MODEL: a folder, in place of that model.
BUILD=${BUILD:-build}
. tests/bench/full_steps.sh
pairs=${1:-5}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
[ "$(nproc)" -ge 2 ] || { echo "bench_ranks.sh: needs two cores"; exit 0; }
command -v mpirun >/dev/null && [ -e "$BUILD/tune_mpi.so" ] || { echo "bench_ranks.sh: no MPI"; exit 0; }
model=${MODEL:-$tmp/model}
[ -n "${MODEL:-}" ] || "$BUILD/init_model" --layers 6 --hidden-size 320 --intermediate-size 864 --heads 5 --kv-heads 5 --vocab-size 4096 \
    --max-positions 512 --seed 1 "$model" >/dev/null || exit 1
full_rows "$tmp/rows.jsonl"
# speed NAME OPTION... - its tokens a second, without the first two steps.
speed() {
    name=$1
    shift
    "$BUILD/finetune_full" --model "$model" --dataset "$tmp/rows.jsonl" --max-length 512 --batch-size 4 --packing --max-steps 8 --no-save --seed 1 \
        --output "$tmp/$name" --overwrite "$@" >"$tmp/out" 2>&1 || { cat "$tmp/out" >&2; exit 1; }
    steps_of "$tmp/$name" 3 | awk '{ s += $2; t += $3 } END { printf "%.1f\n", t / s }'
}
for pair in $(seq "$pairs"); do
    one=$(speed one --threads 2 --accumulate 4) && two=$(speed two --ranks 2 --accumulate 2) || exit 1
    echo "$one $two" | awk '{ printf "one rank of 2 threads %8.1f tokens/s, two ranks of 1 thread %8.1f: %.3f\n", $1, $2, $2 / $1 }' | tee -a "$tmp/all"
done
sed 's/.*: //' "$tmp/all" | sort -n | awk '{ v[NR] = $1 } END { printf "median of %d pairs: %.3f (bar 0.85)\n", NR, NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
