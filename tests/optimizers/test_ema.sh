#!/bin/sh
# test_ema.sh - --ema in the recipes: the averages are evaluated and saved, the weights go on; the same bits where a run was
# stopped or killed and went on. (The numbers, beside PyTorch: test_optimizer_flags.sh. Of one call: test_kernels.c.)
. tests/tap.sh
cd "$tmp" || exit 1
is "models" eval 'tiny model 1 --max-positions 512 && tiny wide 1 --max-positions 512 --dtype float32'
sed 's/^{"text": "//; s/[."\\].*//' "$here/datasets/stories.jsonl" | awk 'length > 40 {
    half = int(length($0) / 2)
    printf "{\"prompt\": \"%s\", \"chosen\": \"%s\", \"rejected\": \" No, no, no\"}\n", substr($0, 1, half), substr($0, half + 1)
}' | head -40 >pairs.jsonl
run() { # NAME PROGRAM OPTION...
    who=$1 program=$2 rows=$here/datasets/stories.jsonl
    shift 2
    case $program in finetune_dpo*) rows=pairs.jsonl ;; esac
    # shellcheck disable=SC2086 # words
    "$BUILD"/$program --model model --dataset "$rows" --max-length 64 --batch-size 2 --max-steps 8 --lr 1e-2 --train-split 0.8 \
        --eval-every 3 --save-every 4 --threads 2 --verbose --output "$who" "$@" >"$who.out" 2>&1 || { tail -n 3 "$who.out"; false; }
}
more() { "$BUILD/${2%% *}" --resume "$1" >more.out 2>&1 || { tail -n 3 more.out; false; }; }
last() { sed -n "s|.*\"$2\":\([-0-9.e+]*\).*|\1|p" "$1/metrics.jsonl" | tail -n 1; }
column() { sed -n "s|.*\"$2\":\([-0-9.e+]*\).*|\1|p" "$1/metrics.jsonl"; }
line="--model model --max-length 64 --batch-size 2 --lr 1e-2 --train-split 0.8 --eval-every 3 --save-every 4 --threads 2 --ema 0.7 --max-steps 60"
cut_off() { # NAME - killed behind its first checkpoint, wherever it is then
    # shellcheck disable=SC2086 # words
    "$BUILD/finetune_full" $line --dataset "$here/datasets/stories.jsonl" --output "$1" >"$1.out" 2>&1 &
    await $! [ -e "$1/checkpoint-4" ] && kill -9 $!
    wait $!
    [ ! -e "$1/report.json" ] && more "$1" finetune_full
}

for program in finetune_full "finetune_full --model wide --optimizer muon" "finetune_full --dtype bfloat16 --save-dtype bfloat16" \
    "finetune_lora --lora-dropout 0.1" "finetune_lora --base-dtype nf4 --lora-dora" "finetune_dpo --lora-r 0" "finetune_dpo --loss orpo"; do
    n=$((n + 1))
    is "$program" run a$n "$program" --ema 0.7
    is "... says so, also in run.json" eval 'grep -q "^# averages  *of the weights, decay 0.7, .*evaluated and saved" a$n.out && grep -q "\"averages\":.*decay 0.7" a$n/run.json'
    is "... plans them" grep -q "^# memory .* averages [0-9]" a$n.out
    is "... trains as without" eval 'run b$n "$program" && column a$n loss >a.txt && column b$n loss >b.txt && cmp a.txt b.txt && grep -q . a.txt'
    is "... evaluates and saves something else" eval '[ "$(last a$n eval_loss)" != "$(last b$n eval_loss)" ] && ! cmp -s a$n/checkpoint-8/*model.safetensors b$n/checkpoint-8/*model.safetensors'
    is "... its best is that of the averages" eval '[ "$(figure a$n best_eval_loss)" = "$(column a$n eval_loss | sort -g | head -n 1)" ]'
    is "... stopped and gone on: the same bits" eval 'run c$n "$program" --ema 0.7 --stop-at-step 3 && more c$n "$program" && same_run a$n c$n'
    is "... stopped twice" eval 'run d$n "$program" --ema 0.7 --stop-at-step 1 && "$BUILD/${program%% *}" --resume d$n --stop-at-step 5 >more.out 2>&1 && more d$n "$program" && same_run a$n d$n'
done
is "the weights in state/ are those of the run without averages" eval 'for n in 1 3 6; do
    cmp a$n/checkpoint-8/state/weights.safetensors b$n/checkpoint-8/state/weights.safetensors || break; done && [ $n = 6 ]'
is "killed and gone on: the same bits" eval 'run k finetune_full --ema 0.7 --max-steps 60 && cut_off l && same_run k l'

# what is saved is what was evaluated: another program finds its loss
head -n 20 "$here/datasets/stories.jsonl" >held.jsonl
is "a float32 model" run saved "finetune_full --model wide" --ema 0.7 --eval-dataset held.jsonl --train-split 1
is "its evaluation again" run again finetune_full --model saved/checkpoint-final --max-steps 0 --eval-dataset held.jsonl --train-split 1
is "... is the same loss" near "$(last saved eval_loss)" "$(last again eval_loss)"
is "an adapter" run part "finetune_lora --model wide" --ema 0.7
is "... begins another run: its evaluation is the same" eval 'run parted "finetune_lora --model wide --adapter part/checkpoint-final" --max-steps 0 && near "$(last part eval_loss)" "$(last parted eval_loss)"'
is "averages begin as the adapter that the run begins from" eval 'run still "finetune_lora --model wide --adapter part/checkpoint-final" --lr 0 --ema 0.7 && near "$(last part eval_loss)" "$(last still eval_loss)"'

is "before the first step, the weights are evaluated" eval 'run early finetune_full --ema 0.7 --max-steps 0 && run plain finetune_full --max-steps 0 && [ "$(last early eval_loss)" = "$(last plain eval_loss)" ]'
is "--ema 0 is none" eval 'run zero finetune_full --ema 0 && same_run zero b1 && [ ! -e zero/checkpoint-8/state/extra.safetensors ] && ! grep -q averages zero.out zero/run.json'
refused "1 is no decay" 2 "--ema: \"1\" is outside its range" "$BUILD/finetune_full" --ema 1
refused "nor is -0.1" 2 "is outside its range" "$BUILD/finetune_lora" --ema -0.1
refused "other names" 2 "--ema" "$BUILD/finetune_full" --ema-decay 0.9
refused "another decay is another run" 2 "ema" "$BUILD/finetune_full" --resume c1 --ema 0.8
is "... also without averages, and though it is allowed: there are none to go on from" eval 'run late finetune_full --stop-at-step 3; ! "$BUILD/finetune_full" --resume late --ema 0.5 --allow-changed >out 2>&1 && grep -q "cannot go on from .*extra.safetensors" out'
finish
