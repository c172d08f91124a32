#!/bin/sh
# bench_packing.sh [ROUNDS] [STEPS] - four figures of RECIPE (finetune_lora, all linear layers, r 16; or finetune_full) on
# smollm2-135m's shape (LAYERS=12: cut to 12 of its 30 layers), float32. PARTS: "packing", "curve", "fit",
# "stream", or some of them.
#
# Packing: tokens of rows a second with --packing over those without, batch 8, length 2048, on instruction rows: those of
# DATA (an Alpaca-shaped JSON array) if that is there, else rows of the same lengths. Beside it what no padding could save at
# most, positions computed without packing over tokens of rows. Ten padded steps for each packed one (of about as many
# rows), behind a first one that takes its memory; rounds take turns, of each way the best one counts.
#
# Masked share: positions a second at length 512, batch 1, where the first 0, 25, 50, 75, 90 and 99 % of each row are not
# trained: masked positions take no part in the output projection. Rounds take turns, the best step but the first counts.
#
# Fit: packs of an epoch of the instruction rows, length 512, as our steps of 8, 16 and 32 packs take them, beside what it takes to
# sort all rows first, the longest first (best fit decreasing, which has to read the set before it trains). A tiny model.
#
# Stream: from the start to the end of the first step over a million rows (1.1 GB, ten of the instruction rows to each), and resident
# memory after twenty, with packing and without. A tiny model.
BUILD=${BUILD:-build}
DATA=${DATA:-../shared/data/text/instruction_data.json}
RECIPE=${RECIPE:-finetune_lora}
PARTS=${PARTS:-packing curve fit stream}
layers=${LAYERS:-30}
rounds=${1:-2}
steps=${2:-1}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$BUILD/init_model" --like smollm2-135m --layers "$layers" --seed 1 "$tmp/model" >/dev/null || exit 1
case $RECIPE in *lora*) options="--lora-r 16 --lora-alpha 32" ;; *) options= ;; esac
echo "# $RECIPE $options, $layers layers"

# train NAME SKIP DATASET OPTION... - round, tokens, positions, labels and seconds of each step behind step SKIP, onto NAME.
train() {
    name=$1 skip=$2 rows=$3
    shift 3
    "$BUILD/$RECIPE" --model "$tmp/model" --dataset "$rows" $options --no-save --output "$tmp/run" --overwrite "$@" \
        >"$tmp/out" 2>&1 || { cat "$tmp/out"; exit 1; }
    tr -d '{}"' <"$tmp/run/metrics.jsonl" | awk -F '[:,]' -v skip="$skip" -v round="$round" '
        { for (i = 1; i < NF; i += 2) v[$i] = $(i + 1) }
        v["step"] > skip { print round, v["tokens"], v["padded_tokens"], v["labels"], v["step_s"] }' >>"$tmp/$name"
}

# Each row's text in one field; then as many copies as the longest run takes.
instruction_rows() {
    if [ -r "$DATA" ]; then
        echo "# rows of ${DATA##*/}"
        awk '/^ *"(instruction|input|output)": / {
                sub(/^ *"[a-z]*": "/, ""); sub(/",?$/, ""); row = row (row == "" ? "" : "\\n") $0
            }
            /^ *}/ { print "{\"text\": \"" row "\"}"; row = "" }' "$DATA" >"$tmp/one.jsonl"
    else
        echo "# rows made here, of 70 to 500 characters, most of them short"
        awk 'BEGIN { for (i = 0; i < 1100; i++) { row = ""; n = 12 + int(75 * ((i * 7919 % 1000) / 1000) ^ 3)
                for (k = 0; k < n; k++) row = row " word" (i * 31 + k * 17) % 97
                print "{\"text\": \"" row "\"}" } }' >"$tmp/one.jsonl"
    fi
    for copy in 1 2 3 4 5 6 7 8; do cat "$tmp/one.jsonl"; done >"$tmp/rows.jsonl"
}

packing() {
    instruction_rows
    for round in $(seq "$rounds"); do
        echo "# packing, round $round of $rounds" >&2
        train padded 1 "$tmp/rows.jsonl" --max-length 2048 --batch-size 8 --max-steps $((steps * 10 + 1))
        train packed 1 "$tmp/rows.jsonl" --max-length 2048 --batch-size 8 --max-steps $((steps + 1)) --packing
    done
    awk '
        { f = file[++n] = FILENAME; tokens[f] += $2; places[f] += $3; rounds = $1; done[f, $1] += $2; s[f, $1] += $5 }
        END {
            a = file[1]; b = file[n]
            for (i = 1; i <= 2 * rounds; i++) {
                f = i % 2 ? a : b; k = int((i + 1) / 2)
                if (done[f, k] / s[f, k] > best[f]) best[f] = done[f, k] / s[f, k]
            }
            printf "%-24s %9.0f tokens/s   %5.1f %% padding\n", "padded", best[a], 100 * (1 - tokens[a] / places[a])
            printf "%-24s %9.0f tokens/s   %5.1f %% padding\n", "packed", best[b], 100 * (1 - tokens[b] / places[b])
            most = places[a] / tokens[a]
            printf "packed / padded: %.3f   padded positions / tokens: %.3f   ", best[b] / best[a], most
            printf "their ratio: %.3f (asked 0.90)\n", best[b] / best[a] / most
        }' "$tmp/padded" "$tmp/packed"
}

shares="0 25 50 75 90 99"
curve() {
    for masked in $shares; do # rows longer than 512 tokens, trained from a marker on
        awk -v masked="$masked" '{ sub(/^\{"text": "/, ""); sub(/"\}$/, ""); gsub(/\\./, ""); row = row " " $0
            if (NR % 12 == 0) { row = substr(row, 1, 1900); at = int(length(row) * masked / 100)
                print "{\"text\": \"" substr(row, 1, at) "=>" substr(row, at + 1) "\"}"; row = "" } }' \
            datasets/stories.jsonl >"$tmp/masked$masked.jsonl"
    done
    for round in $(seq "$rounds"); do
        echo "# masked share, round $round of $rounds" >&2
        for masked in $shares; do
            train "curve$masked" 1 "$tmp/masked$masked.jsonl" --response-template "=>" --no-shuffle --max-length 512 \
                --max-steps $((4 * steps + 1))
        done
    done
    for masked in $shares; do
        awk '{ rate = $2 / $5; if (rate > best) best = rate; tokens += $2; labels += $4 }
            END { print 100 * (1 - labels / tokens), best }' "$tmp/curve$masked"
    done | awk '{ if (NR == 1) none = $2; bar = ""; for (i = 0; i < 40 * $2 / none; i++) bar = bar "#"
        printf "masked share %5.1f %%: %9.0f tokens/s  %5.2f  %s\n", $1, $2, $2 / none, bar }'
}

fit() {
    instruction_rows
    "$BUILD/init_model" --like smollm2-135m --layers 1 --hidden-size 64 --intermediate-size 64 --heads 1 --kv-heads 1 --seed 1 \
        "$tmp/tiny" >/dev/null || exit 1
    rows=$tmp/one.jsonl
    [ -r "$DATA" ] && rows=$DATA # with alpaca's prompts
    for packs in 1 8 16 32; do
        if [ $packs = 1 ]; then packing=; else packing=--packing; fi
        "$BUILD/$RECIPE" --model "$tmp/tiny" --dataset "$rows" --max-length 512 --batch-size $packs $packing --epochs 1 \
            --no-save --output "$tmp/fit$packs" >"$tmp/out" 2>&1 || { cat "$tmp/out"; exit 1; }
        sed -n 's/.*"tokens":\([0-9]*\),.*/\1/p' "$tmp/fit$packs/metrics.jsonl" >"$tmp/tokens$packs"
    done
    sort -rn "$tmp/tokens1" | awk '
        { best = 0
          for (p = 1; p <= n; p++) if (used[p] + $1 <= 512 && (!best || used[p] > used[best])) best = p
          if (!best) best = ++n
          used[best] += $1; all += $1 }
        END { printf "%d rows, %.0f tokens in the mean; sorted first: %d packs, %.1f %% empty\n", NR, all / NR, n, 100 * (1 - all / n / 512) }'
    for packs in 8 16 32; do
        awk -v packs=$packs '{ all += $1; if (NR > 1) full += last; last = $1 }
            END { printf "steps of %2d packs: %d steps, %.1f %% empty in all but the last\n", packs, NR, 100 * (1 - full / (NR - 1) / packs / 512) }' \
            "$tmp/tokens$packs"
    done
}

stream() {
    instruction_rows
    if [ "$(df -Pk "$tmp" | awk 'NR == 2 { print $4 }')" -lt 2000000 ]; then echo "# skipped: less than 2 GB free in $tmp"; return; fi
    "$BUILD/init_model" --like smollm2-135m --layers 1 --hidden-size 64 --intermediate-size 64 --heads 1 --kv-heads 1 --vocab-size 300 \
        --seed 1 "$tmp/small" >/dev/null || exit 1
    awk '{ sub(/^\{"text": "/, ""); sub(/"\}$/, ""); text[n++] = $0 }
        END { for (i = 0; i < 1000000; i++) { row = ""
            for (k = 0; k < 10; k++) row = row (k ? "\\n" : "") text[(i * 10 + k * 7) % n]
            print "{\"text\": \"" row "\"}" } }' "$tmp/one.jsonl" >"$tmp/million.jsonl"
    for packing in --packing --no-packing; do
        "$BUILD/$RECIPE" --model "$tmp/small" --dataset "$tmp/million.jsonl" $packing --max-length 128 --batch-size 8 --epochs 1 \
            --stop-at-step 20 --no-save --output "$tmp/run" --overwrite >"$tmp/out" 2>&1 || { cat "$tmp/out"; exit 1; }
        sed -n "s/^# first step */$packing: first step /p" "$tmp/out"
        sed -n "s/.*\"peak_memory_bytes\":[^0-9]*\([0-9]*\).*/\1/p" "$tmp/run/report.json" |
            awk -v p=$packing '{ printf "%s: resident at most %.0f MB\n", p, $1 / 1e6 }'
    done
}

for part in $PARTS; do
    "$part"
done
