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
finish
