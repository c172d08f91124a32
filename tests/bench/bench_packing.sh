#!/bin/sh
# bench_packing.sh [ROUNDS] [STEPS] - two figures of finetune_full, smollm2-135m's shape cut to LAYERS layers (12; whole: 30), float32.
#
# Packing: tokens of rows a second with --packing over those without, batch 8, length 2048, on instruction rows: those of
# DATA (an Alpaca-shaped JSON array) if that is there, else rows of the same lengths. Beside it what no padding could save at
# most, positions computed without packing over tokens of rows. Rounds take turns; all steps but the first count, of each way
# the best round.
#
# Masked share: positions a second at length 512 where the first 0, 1/4, 1/2, 3/4 and 15/16 of each row are not trained:
# masked positions take no part in the output projection.
BUILD=${BUILD:-build}
DATA=${DATA:-../shared/data/text/instruction_data.json}
layers=${LAYERS:-12}
rounds=${1:-2}
steps=${2:-2}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$BUILD/init_model" --like smollm2-135m --layers "$layers" --seed 1 "$tmp/model" >/dev/null || exit 1

# Each row's text in one field; then as many copies as the longest run takes.
if [ -r "$DATA" ]; then
    echo "# rows of ${DATA##*/}"
    awk '/^ *"(instruction|input|output)": / {
            sub(/^ *"[a-z]*": "/, ""); sub(/",?$/, ""); row = row (row == "" ? "" : "\\n") $0
        }
        /^ *}/ { print "{\"text\": \"" row "\"}"; row = "" }' "$DATA" >"$tmp/one.jsonl"
else
    echo "# rows made here, of 70 to 500 characters, most of them short"
    awk 'BEGIN { for (i = 0; i < 1100; i++) { row = ""; n = 12 + int(75 * ((i * 7919 % 1000) / 1000) ^ 3)
            for (k = 0; k < n; k++) row = row " word" (i * 31 + k * 17) % 97; print "{\"text\": \"" row "\"}" } }' >"$tmp/one.jsonl"
fi
for copy in 1 2 3 4 5 6 7 8; do cat "$tmp/one.jsonl"; done >"$tmp/rows.jsonl"

# train NAME DATASET OPTION... - tokens, positions and seconds of the steps behind the first, a line onto NAME.
train() {
    name=$1 rows=$2
    shift 2
    "$BUILD/finetune_full" --model "$tmp/model" --dataset "$rows" --no-save --output "$tmp/run" --overwrite "$@" >"$tmp/out" 2>&1 ||
        { cat "$tmp/out"; exit 1; }
    sed -n 's/.*"step":\([0-9]*\),.*"step_s":\([0-9.e-]*\),.*"tokens":\([0-9]*\),"padded_tokens":\([0-9]*\).*/\1 \2 \3 \4/p' \
        "$tmp/run/metrics.jsonl" | awk '$1 > 1 { s += $2; t += $3; p += $4 } END { print t, p, s }' >>"$tmp/$name"
}

for round in $(seq "$rounds"); do
    echo "# round $round of $rounds" >&2
    train padded "$tmp/rows.jsonl" --max-length 2048 --batch-size 8 --max-steps $((steps * 10 + 1))
    train packed "$tmp/rows.jsonl" --max-length 2048 --batch-size 8 --max-steps $((steps + 1)) --packing
done
awk '
    { rate = $1 / $3; if (rate > best[FILENAME]) best[FILENAME] = rate; tokens[FILENAME] += $1; places[FILENAME] += $2; file[++n] = FILENAME }
    END {
        a = file[1]; b = file[n]
        printf "%-24s %9.0f tokens/s   %5.1f %% padding\n", "padded", best[a], 100 * (1 - tokens[a] / places[a])
        printf "%-24s %9.0f tokens/s   %5.1f %% padding\n", "packed", best[b], 100 * (1 - tokens[b] / places[b])
        most = places[a] / tokens[a]
        printf "packed / padded: %.3f   padded positions / tokens: %.3f   their ratio: %.3f (asked 0.90)\n", best[b] / best[a], most, best[b] / best[a] / most
    }' "$tmp/padded" "$tmp/packed"

# Rows longer than 512 tokens, the answer from a marker on.
for masked in 0 4 8 12 15; do
    awk -v masked="$masked" '{ sub(/^\{"text": "/, ""); sub(/"\}$/, ""); gsub(/\\./, ""); row = row " " $0
        if (NR % 12 == 0) { row = substr(row, 1, 1900); at = int(length(row) * masked / 16)
            print "{\"text\": \"" substr(row, 1, at) "=>" substr(row, at + 1) "\"}"; row = "" } }' \
        datasets/stories.jsonl >"$tmp/masked$masked.jsonl"
done
for round in $(seq "$rounds"); do
    for masked in 0 4 8 12 15; do
        train "curve$masked" "$tmp/masked$masked.jsonl" --response-template "=>" --max-length 512 --batch-size 2 --max-steps $((steps + 2))
    done
done
for masked in 0 4 8 12 15; do
    awk -v masked="$masked" '{ rate = $1 / $3; if (rate > best) best = rate }
        END { printf "masked share %2d/16: %9.0f tokens/s\n", masked, best }' "$tmp/curve$masked"
done
