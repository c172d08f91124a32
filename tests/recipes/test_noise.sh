#!/bin/sh
# test_noise.sh - NEFTune and label smoothing in the recipes: the same bits run twice, resumed and recomputed; evaluations
# without them. (The numbers of smoothing: test_optimizer_flags.sh. The noise of one call: test_kernels.c.)
. tests/tap.sh
cd "$tmp" || exit 1
is "a model" tiny model 1 --max-positions 512
is "a model whose embedding is scaled before the noise" tiny gemma 1 --like gemma-3-270m --head-dim 32 --max-positions 512
run() { # NAME PROGRAM OPTION...
    who=$1 program=$2
    shift 2
    "$BUILD/$program" --model model --dataset "$here/datasets/stories.jsonl" --max-length 64 --batch-size 2 --max-steps 6 --lr 1e-3 \
        --train-split 0.8 --eval-every 3 --save-every 2 --threads 2 --output "$who" "$@" >"$who.out" 2>&1 || { tail -n 3 "$who.out"; false; }
}
last() { sed -n "s|.*\"$2\":\([-0-9.e+]*\).*|\1|p" "$1/metrics.jsonl" | tail -n 1; }
first() { sed -n "s|^{\"step\":1,.*\"$2\":\([-0-9.e+]*\).*|\1|p" "$1/metrics.jsonl"; }
differ() { awk "BEGIN { d = $1 - $2; exit !(d * d > 1e-10) }"; }
for program in finetune_full "finetune_lora --lora-dropout 0.1" "finetune_full --dtype bfloat16" "finetune_full --packing" "finetune_full --model gemma"; do
    n=$((n + 1))
    # shellcheck disable=SC2086 # words
    {
    is "$program without noise" run a$n $program
    is "with noise" run b$n $program --neftune-alpha 5
    is "... the loss is another" differ "$(first a$n loss)" "$(first b$n loss)"
    is "... the same bits twice" eval 'run c$n $program --neftune-alpha 5 && same_run b$n c$n'
    is "... and recomputed" eval 'run d$n $program --neftune-alpha 5 --activation-checkpointing full && same_run b$n d$n'
    is "... stopped and gone on" eval 'run e$n $program --neftune-alpha 5 --stop-at-step 3 && "$BUILD/${program%% *}" --resume e$n >more 2>&1 && same_run b$n e$n'
    is "another seed, other noise" eval 'run f$n $program --neftune-alpha 5 --no-shuffle --seed 1 && run g$n $program --neftune-alpha 5 --no-shuffle --seed 2 && differ "$(first f$n loss)" "$(first g$n loss)"'
    }
done
is "an evaluation has no noise, and is not smoothed" eval 'run h finetune_full --max-steps 0 && run i finetune_full --max-steps 0 --neftune-alpha 100 --label-smoothing 0.5 && [ "$(last h eval_loss)" = "$(last i eval_loss)" ]'
is "noise of every micro-batch is its own" eval 'printf "{\"text\": \"aaaa\"}\n{\"text\": \"aaaa\"}\n" >twice.jsonl && for a in 1 2; do "$BUILD/finetune_full" --model model --dataset twice.jsonl --accumulate $a --max-steps 1 --neftune-alpha 50 --no-shuffle --no-save --output t$a >out 2>&1 || exit 1; done && differ "$(first t1 loss)" "$(first t2 loss)"'
refused "a negative alpha" 2 "is outside its range" "$BUILD/finetune_full" --neftune-alpha -1
finish
