#!/bin/sh
# bench_ranks.sh [PAIRS] - what two ranks cost: a step of 4,096 tokens a rank on two ranks of one thread, ÷ the same rows on one rank of two
# threads (a model of 10 M weights, float32, length 512). Pairs of runs take turns, and the median counts. Bar of R22.9: 0.85.
# MODEL: a folder, in place of that model; not for the table.
# bench_ranks.sh shards - a table: each --shard on 1, 2 and 4 ranks of one thread, 2,048 tokens a rank and step. What rank 0 sent in a step,
# beside the arithmetic: (N - 1) / N x the float32 gradients, and once more for the sums or the updated weights. With fsdp the weights go
# once forward, and backward all layers but the last two. Then the highest anonymous memory of rank 0.
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
# row SHARD RANKS
row() {
    "$BUILD/finetune_full" --model "$model" --dataset "$tmp/rows.jsonl" --max-length 512 --batch-size 4 --packing --max-steps 8 --no-save --seed 1 \
        --threads 1 --ranks "$2" --shard "$1" --output "$tmp/$1$2" --overwrite >"$tmp/out" 2>&1 || { cat "$tmp/out" >&2; exit 1; }
    value() { sed -n "s/.*\"$1\":[^0-9]*\([0-9.e+]*\).*/\1/p" "$tmp/$2/report.json" | head -n 1; }
    ms=$(steps_of "$tmp/$1$2" 3 | awk '{ t += $2 } END { printf "%.0f", 1000 * t / NR }')
    sent=$(value rank_sent_bytes "$1$2")
    echo "$1 $2 $ms ${sent:-0} $(value peak_anonymous_bytes "$1$2") $weights $again" | awk '{
        by = ($2 - 1) / $2 * (2 * $6 + ($1 == "fsdp" ? $7 : 0))
        printf "| %s | %d | %d | %.1f | %.1f | %.0f |\n", $1, $2, $3, $4 / 8 / 1e6, by / 1e6, $5 / 1048576 }'
}
if [ "$pairs" = shards ]; then
    [ -z "${MODEL:-}" ] || { echo "bench_ranks.sh shards: leave out MODEL"; exit 2; }
    # that model's weights in float32, and those of four of its six layers
    layer=$((4 * (4 * 320 * 320 + 3 * 320 * 864 + 2 * 320)))
    weights=$((6 * layer + 4 * (4096 * 320 + 320))) again=$((4 * layer))
    echo "| --shard | ranks | ms a step | MB sent in a step | by arithmetic | MiB of rank 0 |"
    echo "|---|---|---|---|---|---|"
    for shard in ddp optimizer fsdp; do for n in 1 2 4; do row $shard $n; done; done
    exit
fi
for pair in $(seq "$pairs"); do
    one=$(speed one --threads 2 --accumulate 4) && two=$(speed two --ranks 2 --accumulate 2) || exit 1
    echo "$one $two" | awk '{ printf "one rank of 2 threads %8.1f tokens/s, two ranks of 1 thread %8.1f: %.3f\n", $1, $2, $2 / $1 }' | tee -a "$tmp/all"
done
sed 's/.*: //' "$tmp/all" | sort -n | awk '{ v[NR] = $1 } END { printf "median of %d pairs: %.3f (bar 0.85)\n", NR, NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
