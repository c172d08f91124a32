#!/bin/sh
# test_rows_left_out.sh - rows without a token to train on: left out and counted, at every size of a step; no step dies of them.
. tests/tap.sh
cd "$tmp" || exit 1
tiny model 1 --dtype float32 >/dev/null
# 60 rows of prompt and completion. By number: two of three are kept, 14 have no answer, 6 lose it to --max-length.
awk 'BEGIN { for (i = 1; i <= 60; i++) {
    prompt = "q" i; answer = "the answer is " i * 7
    if (i % 4 == 1 && i % 12 != 9) answer = ""
    if (i % 10 == 6) for (k = 0; k < 60; k++) prompt = prompt " " k
    printf "{\"prompt\": \"%s\", \"completion\": \"%s\"}\n", prompt, answer > "all.jsonl"
    if (answer != "" && i % 10 != 6) printf "{\"prompt\": \"%s\", \"completion\": \"%s\"}\n", prompt, answer > "kept.jsonl"
} }'
kept=$(wc -l <kept.jsonl) empty=$(grep -c '"completion": ""' all.jsonl)
long=$((60 - kept - empty))
fit() { # NAME DATA OPTION...
    who=$1 rows=$2
    shift 2
    "$BUILD/finetune_full" --model model --dataset "$rows" --append-token none --max-length 48 --lr 3e-3 --schedule constant --warmup-steps 2 --threads 1 --seed 4 --epochs 2 \
        --output "$who" "$@" >"$who.out" 2>&1
    code=$?
    [ $code = 0 ] || tail -n 3 "$who.out"
    return $code
}
losses() { sed 's/,"epoch":[^,}]*//; s/,"step_s":[^,}]*//; s/,"tokens_per_s":[^,}]*//; s/,"elapsed_s":[^,}]*//' "$1/metrics.jsonl"; }
alike() { losses "$1" >a.txt && losses "$2" >b.txt && diff a.txt b.txt && cmp "$1/checkpoint-final/model.safetensors" "$2/checkpoint-final/model.safetensors"; }

is "the rows are of three kinds ($kept, $empty, $long)" test "$kept" -gt 30 -a "$empty" -gt 9 -a "$long" -gt 2
for o in "--batch-size 1" "--batch-size 2" "--batch-size 7" "--batch-size 2 --accumulate 3" "--batch-size 1 --packing" "--batch-size 7 --packing"; do
    n=$((n + 1))
    is "$o" fit a$n all.jsonl --no-shuffle $o
    is "is a run on the $kept rows that are left" eval "fit k$n kept.jsonl --no-shuffle $o && alike a$n k$n"
    is "to the same number of steps" test "$(figure a$n training_steps)" = "$(figure k$n training_steps)"
    is "shuffled, stopped and gone on with: the same bits" eval "fit s$n all.jsonl --save-every 2 $o &&
        fit t$n all.jsonl --save-every 2 $o --stop-at-step 3 && '$BUILD/finetune_full' --resume t$n >/dev/null && same_run s$n t$n"
done
is "they are counted" grep -q "^# rows met .*120 read by this process, $((2 * long)) cut to the length; left out: $((2 * empty)) without a token to train on, $((2 * long)) cut before the first token to train on" a1.out
is "beside bad ones" eval 'sed "7s/.*/broken/" all.jsonl >worse.jsonl && fit worse worse.jsonl --skip-bad-rows --batch-size 2 && grep -q "left out: .*, 2 bad" worse.out'
is "rows to evaluate on, likewise" eval 'fit ea kept.jsonl --eval-dataset all.jsonl --max-steps 2 --batch-size 3 && fit ek kept.jsonl --eval-dataset kept.jsonl --max-steps 2 --batch-size 3 && [ -n "$(figure ea eval_loss)" ] && [ "$(figure ea eval_loss)" = "$(figure ek eval_loss)" ]'
is "and those held out" fit held all.jsonl --train-split 0.7 --max-steps 2 --eval-every 1
awk 'BEGIN { for (i = 0; i < 1100; i++) print "{\"prompt\": \"q\", \"completion\": \"\"}"; print "{\"prompt\": \"q\", \"completion\": \"a\"}" }' >late.jsonl
is "1,100 rows before the first that has an answer" fit late late.jsonl --no-shuffle --batch-size 2
is "are a warning" grep -q '^# warning.*not one of the first 1000 rows has a token to train on' late.out
is "and one step an epoch" test "$(figure late training_steps)" = 2
head -n 1050 late.jsonl >never.jsonl
refused "none in the whole file" 1 "not one of 1050 rows has a token to train on: 0 cannot be read, 1050 have no text or answer" \
    "$BUILD/finetune_full" --model model --dataset never.jsonl --append-token none --max-length 48 --output never
is "is said in run.json" grep -q '"failed"' never/run.json
printf '{"text": ""}\n{"text": "a story"}\n{"text": ""}\n' >texts.jsonl
is "empty texts" fit texts texts.jsonl --batch-size 1
is "are no steps" test "$(figure texts training_steps)" = 2
# ---- --limit ----
head -n 20 kept.jsonl >twenty.jsonl
is "--limit: a run on the first rows alone" eval 'fit l1 kept.jsonl --limit 20 --batch-size 2 && fit l2 twenty.jsonl --batch-size 2 && alike l1 l2'
is "... said in the header" grep -qE "^# format .*; the first 20 of $kept rows \(--limit\)" l1.out
is "... those held out are among them" eval 'fit l3 kept.jsonl --limit 20 --train-split 0.7 && fit l4 twenty.jsonl --train-split 0.7 && alike l3 l4'
is "... of each of several files; --eval-dataset is read whole" eval 'fit l5 kept.jsonl,twenty.jsonl --limit 5 --eval-dataset twenty.jsonl --max-steps 2 --verbose && grep -q "^# rows  *of 2 sets, 10 to train on" l5.out && grep -q "^# evaluation .*20 rows" l5.out || { cat l5.out; false; }'
is "... pieces of a text: of its first paragraphs" eval 'printf "one\n\ntwo\n\nthree\n" >p.txt && fit l6 p.txt --limit 2 --chunk && grep -q "2 to train on" l6.out'
is "... more than there are" eval 'fit l7 twenty.jsonl --limit 90 && grep -q "^# format .*; all 20 rows (--limit 90)" l7.out && fit l8 twenty.jsonl && alike l7 l8'
hash_of() { sed -n 's/.*"data_hash":[^"]*"\([^"]*\)".*/\1/p' "$1/report.json"; }
is "... changes what a store of measurements knows the data by" eval 'fit l9 kept.jsonl --limit 21 --max-steps 1 && fit l10 kept.jsonl --max-steps 1 && [ -n "$(hash_of l1)" ] && [ "$(hash_of l1)" != "$(hash_of l9)" ] && [ "$(hash_of l1)" != "$(hash_of l10)" ] && [ "$(hash_of l7)" = "$(hash_of l8)" ]'
is "... a run goes on with its limit" eval 'fit l11 kept.jsonl --limit 20 --batch-size 2 --stop-at-step 3 && "$BUILD/finetune_full" --resume l11 >/dev/null && same_run l1 l11'
refused "... and with no other" 2 "--limit (was 20, now 30)" "$BUILD/finetune_full" --resume l11 --limit 30
is "generate --limit" eval '"$BUILD/generate" --model model --input kept.jsonl --limit 3 --max-new-tokens 1 >answers 2>notes && [ $(wc -l <answers) = 3 ] && grep -q "the first 3 of $kept rows" notes'

finish
