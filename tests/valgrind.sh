#!/bin/sh
# valgrind.sh - a tiny model made, its tokenizer used, itself trained, evaluated and saved under valgrind: no invalid or undefined
# read, nothing lost. TAP. BUILD: a build of its own, for valgrind knows no AVX-512 (`make test-valgrind`).
cd "$(dirname "$0")/.." || exit 1
. tests/tap.sh
if ! command -v valgrind >/dev/null 2>&1; then
    skip "a tiny model under valgrind" "no valgrind"
    finish
fi
watch() {
    valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect "$@"
}
data=$here/datasets/stories.jsonl
cd "$tmp" || exit 1
head -n 40 "$data" >rows.jsonl
echo '{"text": "Once upon a time there were 12 hedgehogs."}' >line
fit() { watch "$BUILD/finetune_full" --threads 2 --model model --dataset rows.jsonl --max-length 24 --max-steps 2 --train-split 0.8 --eval-every 1 --save-every 1 "$@"; }
is "init_model" watch "$BUILD/init_model" --layers 2 --hidden-size 32 --intermediate-size 64 --heads 2 --kv-heads 1 --vocab-size 300 --max-positions 64 --seed 1 --dtype float32 model
is "tokenize" sh -c 'exec "$@" <line' sh valgrind -q --error-exitcode=99 --leak-check=full "$BUILD/tokenize" --model model
is "finetune_full" fit --output first
is "and on with it" watch "$BUILD/finetune_full" --resume first/checkpoint-1 --overwrite
is "finetune_full in bfloat16, layers computed twice" fit --dtype bfloat16 --activation-checkpointing full --batch-size 2 --accumulate 2 --output second
is "a broken row" sh -c 'echo broken >>rows.jsonl; "$@"; [ $? = 1 ]' sh valgrind -q --error-exitcode=99 "$BUILD/finetune_full" --threads 1 --model model --dataset rows.jsonl --max-length 24 --epochs 3 --output third
is "valgrind would have said so" sh -c '"$@"; [ $? = 99 ]' sh valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=all "$BUILD/finetune_full" --help
finish
