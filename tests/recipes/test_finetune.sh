#!/bin/sh
# test_finetune.sh - the recipe end to end: the same bits twice, whatever is recomputed; a folder saved as it was read.
. tests/tap.sh
data=$here/datasets/stories.jsonl
cd "$tmp" || exit 1
tiny model 1 --dtype float32 --hidden-size 48 --intermediate-size 96 --heads 3 --vocab-size 400 >/dev/null
run() { # NAME OPTION...
    name=$1
    shift
    "$BUILD/finetune_full" --model model --dataset "$data" --max-length 96 --batch-size 4 --accumulate 2 --lr 3e-3 --threads 2 \
        --max-steps 8 --train-split 0.95 --verbose --output "$name" "$@" >"$name.out" 2>&1 || { cat "$name.out"; false; }
}
same_numbers() { numbers "$1" >a.txt && numbers "$2" >b.txt && cmp a.txt b.txt; }
same_weights() { cmp "$1/checkpoint-final/model.safetensors" "$2/checkpoint-final/model.safetensors"; }

is "a run" run first
is "eight steps and an evaluation in metrics.jsonl" test "$(wc -l <first/metrics.jsonl)" = 9
is "the loss falls" awk 'BEGIN { exit !('"$(sed -n 's/.*"loss_last":[^0-9]*\([0-9.]*\).*/\1/p' first/report.json)"' < '"$(sed -n 's/.*"loss_first":[^0-9]*\([0-9.]*\).*/\1/p' first/report.json)"') }'
is "the same run twice" run second
is "gives the same numbers" same_numbers first second
is "and the same weights" same_weights first second
is "checkpointing on" run recompute --activation-checkpointing full
is "gives the same numbers" same_numbers first recompute
is "and the same weights" same_weights first recompute
is "one thread" run one --threads 1
is "log-every 3" run sparse --log-every 3
is "leaves one object per step all the same" same_numbers first sparse
awk '{ sub(/^\{"text": "/, ""); sub(/"\}$/, ""); gsub(/\\./, ""); print "{\"text\": \"" substr($0, 1, 8 + NR * 37 % 90) "\"}" }' "$data" >short.jsonl
pack() { name=$1 && shift && run "$name" --dataset short.jsonl --packing --max-length 120 --batch-size 2 --eval-every 4 "$@"; }
is "packing" pack packed
is "the same run twice" pack again
is "gives the same numbers" same_numbers packed again
is "and the same weights" same_weights packed again
is "checkpointing on" pack packed_full --activation-checkpointing full
is "gives the same numbers" same_numbers packed packed_full
is "and the same weights" same_weights packed packed_full
evaluated() { sed -n 's/.*"eval_loss":[^0-9]*\([0-9.]*\).*/\1/p' "$1/report.json"; }
run still --dataset short.jsonl --max-length 120 --lr 0 --max-steps 1 >/dev/null
pack packed_still --lr 0 --max-steps 1 >/dev/null
is "evaluated in packs the loss is that of the rows ($(evaluated packed_still), $(evaluated still))" \
    awk "BEGIN { d = $(evaluated packed_still) / $(evaluated still) - 1; exit !(d * d < 1e-12) }"
share() { sed -n 's/.*"padding_share":[^0-9]*\([0-9.]*\).*/\1/p' "$1/report.json"; }
run padded --dataset short.jsonl --max-length 120 --batch-size 2 >/dev/null
is "less padding ($(share packed) %, padded $(share padded) %)" awk "BEGIN { exit !($(share packed) < $(share padded)) }"
is "an epoch is at most as many steps as said, and ends whole" eval 'pack whole --max-steps -1 && \
    grep -q "^# plan  *at most [0-9]* steps of 2 x 2 packs of rows, at most 120 tokens each" whole.out && \
    steps=$(grep -c "\"loss\"" whole/metrics.jsonl) && most=$(sed -n "s/^# plan  *at most \([0-9]*\) steps.*/\1/p" whole.out) && \
    [ "$steps" -gt 8 ] && [ "$steps" -le "$most" ] && tail -n 2 whole/metrics.jsonl | grep -q "\"epoch\":1}" && \
    [ "$(sed -n "s/.*\"planned_steps\":[^0-9]*\([0-9]*\).*/\1/p" whole/run.json)" = "$(grep -c "\"loss\"" whole/metrics.jsonl)" ]'
{ head -n 5 "$data" && echo nonsense && tail -n +6 "$data" | head -n 6; } >bad.jsonl
gaps() { "$BUILD/finetune_full" --model model --dataset bad.jsonl --max-length 96 --skip-bad-rows --no-shuffle --threads 2 --output "$@" >gaps.out; }
is "a step left out for its bad row, every step logged" gaps often
is "or all at the end" gaps seldom --log-every 100
is "the same epochs either way" same_numbers often seldom
is "the last one whole" grep -q '"epoch":1}' seldom/metrics.jsonl
is "--profile 3" run profiled --profile 3 --log-every 4
is "--profile of a run that is too short says so" eval 'run short --profile 3 --max-steps 1 && grep -q "^# profile .*no step" short.out'
is "changes no number" same_numbers first profiled
is "nor a weight" same_weights first profiled
is "and leaves table, JSON and trace" test -s profiled/profile.txt -a -s profiled/profile.json -a -s profiled/profile.trace.json
is "of steps 3 to 5, printed too" eval 'grep -q "steps 3 to 5" profiled/profile.txt && grep -q "^#   all .* 100.0%" profiled.out'
is "eight micro-batches of one row" run single --batch-size 1 --accumulate 8
close() { # losses within 1e-5 relative
    paste -d' ' a.txt b.txt | sed -n 's/.*"step":\([0-9]*\),"loss":\([0-9.e-]*\),.*"loss":\([0-9.e-]*\),.*/\1 \2 \3/p' |
        awk '{ d = $2 - $3; if (d < 0) d = -d; if (d > 1e-5 * $3) { print; bad = 1 } n++ } END { exit bad || n != 8 }'
}
numbers first >a.txt
numbers single >b.txt
is "equal one step of two micro-batches of four within 1e-5" close
numbers one >b.txt
is "one thread agrees with two within 1e-5" close
is "save-every" run saved --save-every 3
for s in 3 6 8; do is "checkpoint-$s is there" test -f saved/checkpoint-$s/model.safetensors -a -f saved/checkpoint-$s/state/optimizer.safetensors; done
is "nothing half-written is left" sh -c '! ls saved | grep -q tmp'
is "checkpoint-best and -final are relative links" test "$(readlink saved/checkpoint-final)" = checkpoint-8 -a "$(readlink saved/checkpoint-best)" = checkpoint-8
is "a run of a checkpoint" "$BUILD/finetune_full" --model saved/checkpoint-final --dataset "$data" --max-length 96 --max-steps 1 --output from
is "bfloat16 activations" run bf16 --dtype bfloat16
numbers bf16 >b.txt
is "follow float32 within 2 percent" sh -c "paste -d' ' a.txt b.txt | sed -n 's/.*\"step\":\([0-9]*\),\"loss\":\([0-9.e-]*\),.*\"loss\":\([0-9.e-]*\),.*/\1 \2 \3/p' | awk '{ d = \$2 - \$3; if (d < 0) d = -d; if (d > 0.02 * \$3) exit 1; n++ } END { exit n != 8 }'"
is "sgd with momentum" run sgd --optimizer sgd --momentum 0.9 --lr 0.1

# A folder loaded and saved: lr 0 changes nothing, so every tensor has the bytes it was read with.
for dtype in float32 bfloat16 float16; do
    "$BUILD/init_model" --like qwen3-0.6b --layers 2 --hidden-size 48 --intermediate-size 96 --heads 2 --kv-heads 1 --head-dim 32 \
        --vocab-size 300 --max-positions 64 --dtype $dtype q-$dtype >/dev/null
    "$BUILD/finetune_full" --model q-$dtype --dataset "$data" --max-length 32 --max-steps 1 --lr 0 --output s-$dtype >/dev/null
    is "$dtype loaded and saved: the same bytes" cmp q-$dtype/model.safetensors s-$dtype/checkpoint-final/model.safetensors
    if [ $dtype = float32 ]; then is "no second copy of float32 weights" test ! -e s-$dtype/checkpoint-final/state/weights.safetensors; else
        is "$dtype: the float32 weights are beside the moments" test -f s-$dtype/checkpoint-final/state/weights.safetensors
    fi
done
"$BUILD/finetune_full" --model q-bfloat16 --dataset "$data" --max-length 32 --max-steps 1 --lr 0 --save-dtype float32 --output wide >/dev/null
is "--save-dtype float32 widens" test "$(stat -c %s wide/checkpoint-final/model.safetensors)" -gt "$(stat -c %s q-float32/model.safetensors)" -o "$(stat -c %s wide/checkpoint-final/model.safetensors)" = "$(stat -c %s q-float32/model.safetensors)"
is "and config.json says so" grep -q '"float32"' wide/checkpoint-final/config.json
is "run.json and report.json say that the weights are random" sh -c 'grep -q "\"weights\":[[:space:]]*\"random\"" first/run.json && grep -q "\"weights\":[[:space:]]*\"random\"" first/report.json'
is "recipe.c is the recipe" cmp "$here/recipes/finetune_full.c" first/recipe.c
"$BUILD/finetune_full" --model model --dataset "$data" --max-length 32 --stop-after-seconds 0.2 --epochs 1000 --output brief >/dev/null
is "--stop-after-seconds stops a long run" test -f brief/report.json

# Runs that are only measured.
measure() { out=$1; shift; "$BUILD/finetune_full" --model model --dataset "$data" --max-length 32 --verbose --output "$out" "$@" >"$out.out"; }
is "--no-save" measure unsaved --max-steps 4 --no-save
is "leaves no checkpoint" sh -c '! ls -d unsaved/checkpoint* 2>/dev/null'
is "plans no files to save" sh -c 'grep -q "^# memory" unsaved.out && ! grep -q "files to save" unsaved.out && grep -q "files to save" first.out'
is "and its report is whole" grep -q '"training_steps":[[:space:]]*4,' unsaved/report.json
refused "--resume of it" 1 "no checkpoint, it was made without saving" "$BUILD/finetune_full" --resume unsaved
is "--no-save stopped" measure cut --max-steps 8 --no-save --stop-at-step 4 --save-every 3
is "says that this was not saved" grep -q '^# stopped .*; nothing was saved there, as asked$' cut.out
is "--save-every saves its own" test "$(echo cut/checkpoint-*)" = cut/checkpoint-3
is "from which it goes on, and still saves no end" sh -c '"$1" --resume cut >cut.out && grep -q "behind step 3" cut.out && [ "$(echo cut/checkpoint-*)" = "cut/checkpoint-3 cut/checkpoint-6" ]' sh "$BUILD/finetune_full"
is "unless it is told to, though it had come to its end" sh -c '"$1" --resume cut --save >cut.out && [ "$(readlink cut/checkpoint-final)" = checkpoint-8 ]' sh "$BUILD/finetune_full"
is "after which nothing is left to do" sh -c '"$1" --resume cut | grep -q "nothing left to do"' sh "$BUILD/finetune_full"
is "--until-stable" measure stable --epochs 1000 --until-stable 50 --no-save
is "stops when the speed is known" grep -q '"reason":.*"--until-stable at step [1-9][0-9]* of ' stable/run.json
is "after ten steps at least" test "$(wc -l <stable/metrics.jsonl)" -ge 10
is "and reports it" grep -q '"tokens_per_second_stable_half_width":[[:space:]]*[0-9]' stable/report.json
refused "more than all of it" 2 "--until-stable" measure never --until-stable 101

"$BUILD/finetune_full" --model model --dataset "$data" --max-length 32 --epochs 1000 --output signalled >signalled.out 2>&1 &
pid=$!
await $pid grep '^step' signalled.out
kill -TERM $pid
wait $pid
code=$?
is "SIGTERM: finishes the step, saves, exits 143" test $code = 143 -a -n "$(ls -d signalled/checkpoint-[0-9]* 2>/dev/null)"
is "and is not called final" test ! -e signalled/checkpoint-final
"$BUILD/finetune_full" --model model --dataset "$data" --max-length 24 --show-tokens 2 >shown.txt
is "--show-tokens shows tokens and makes no run" sh -c 'test $(wc -l <shown.txt) -gt 40 && ! test -e runs'

is "a model of no known name has the learning rate of its size" eval '"$BUILD/finetune_full" --model model --dataset short.jsonl --max-length 24 --max-steps 1 --output sized >sized.out && grep -q "^# model defaults --lr 5e-4$" sized.out && grep -q "^# by size  .*below 10 million parameters: defaults/sizes.json" sized.out'
is "a short run by default is warned of" eval '"$BUILD/finetune_full" --model model --dataset short.jsonl --limit 40 --max-length 24 --output few >few.out && grep -q "^# warning: few steps  40 steps of learning rate 0.0005 teach little; --epochs 3 makes about 120 of them" few.out'
is "... and not one that was asked for, or is long" eval '! grep -q "few steps" sized.out && "$BUILD/finetune_full" --model model --dataset short.jsonl --limit 100 --max-length 24 --output long >long.out && ! grep -q "few steps" long.out'

# ---- the header ----
typed="$BUILD/finetune_full --model first/checkpoint-final --dataset short.jsonl --max-length 128 --max-steps 1 --train-split 0.95"
in_terminal() { # COLUMNS OPTION... - the run's lines, in a terminal of that width
    COLUMNS= TERM=xterm script -qec "stty cols $1; unset COLUMNS; $typed $2" /dev/null </dev/null | tr -d '\r'
}
header() { in_terminal "$@" >shown.out; awk '/^# run folder/ { on = 1 } on && !/^#|^  /{ exit } on' shown.out >header.out; }
deep=$(printf 'd%.0s' $(seq 60))/$(printf 'e%.0s' $(seq 60))
mkdir -p "$deep" && cp short.jsonl "$deep/rows.jsonl"
whole() { # COLUMNS - the header in that width has the path in one piece
    COLUMNS=$1 $BUILD/finetune_full --model first/checkpoint-final --dataset short.jsonl --max-length 128 --max-steps 1 --eval-dataset "$deep/rows.jsonl" --verbose --output "deep$1" >deep.out 2>&1 &&
        tr -s " \n" "\n\n" <deep.out | grep -A 1 -x -e --eval-dataset | grep -qxF "$deep/rows.jsonl" || { cat deep.out; false; }
}
is "a path longer than the line is printed whole" eval 'whole 40 && whole 80'
if command -v script >/dev/null 2>&1; then
    is "a header has at most 12 lines of 80 columns" eval 'header 80 "--output h80 --lr 1e-3" && [ "$(wc -l <header.out)" -ge 8 ] && [ "$(wc -l <header.out)" -le 12 ] && [ "$(wc -L <header.out)" -lt 80 ] || { cat shown.out; false; }'
    words_of() { tr -s ' \n' '\n\n' <header.out | sed '/^h[0-9]*$/d; s/[0-9.]*//g'; } # without figures of time
    is "... is folded between words" eval 'header 300 "--output h300" && words_of >words.wide && header 50 "--output h50" && [ "$(wc -L <header.out)" -lt 50 ] && words_of >words.narrow && diff words.wide words.narrow'
    is "... --verbose prints all that the last line names" eval 'header 300 "--output hmore" && sed -n "s/^# more  *\(.*\): .*/\1/p" header.out | sed "s/, /\n/g" >named && grep -q memory named && in_terminal 300 "--output hall --verbose" >all.out && while read -r key; do grep -q "^# $key " all.out || { echo "no $key"; exit 1; }; done <named'
else
    skip "the header in a terminal" "no script(1)"
fi
# ---- what a disk writes otherwise than it was told ----
. "$here/tests/faults/flips.sh"
head -6 "$data" >six.jsonl
tiny little 1 --dtype float32 --layers 1 --hidden-size 16 --intermediate-size 16 --heads 1 --head-dim 16 >/dev/null
small() { "$@" "$BUILD/finetune_full" --model little --dataset six.jsonl --max-length 16 --batch-size 2 --threads 1 --max-steps 1 --overwrite --output flipped >flipped.out 2>&1; }
wrong_bits model.safetensors
finish
