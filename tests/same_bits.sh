#!/bin/sh
# same_bits.sh BUILD_A BUILD_B - whether two builds compute the same bits: losses, gradient norms and saved weights of every way to
# train, and generated texts, for each family, on each kind of CPU kernels. For a change that must not change any number. Exit code
# 1: they differ; the first difference is printed. Example: sh tests/same_bits.sh ../before/build build
# TUNE_CPU_KINDS: kinds to try, in place of all that this CPU has.
[ $# = 2 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
a=$(realpath "$1") b=$(realpath "$2") top=$(realpath "$(dirname "$0")/..")
tmp=$(mktemp -d "${TMPDIR:-/tmp}/tune-bits.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
head -n 24 "$top/datasets/stories.jsonl" >rows.jsonl
awk 'BEGIN { for (i = 0; i < 8; i++) printf "{\"prompt\": \"Tell me %d\", \"chosen\": \"The cat saw %d birds.\", \"rejected\": \"A dog ran %d miles away.\"}\n", i, i * 3, i + 7 }' >pairs.jsonl
compared=0
# numbers FOLDER - what must be equal: losses and norms of each step, and the bytes of the saved weights.
numbers() {
    sed 's/[{}]//g' "$1/metrics.jsonl" | tr ',' '\n' | grep -E '"(step|loss|grad_norm|eval_loss|rewards[^"]*|margins)"'
    find "$1" -name '*.safetensors' ! -path '*/state/*' | sort | while read -r file; do sha256sum <"$file"; done
}
# same NAME PROGRAM OPTION... - both builds train alike.
same() {
    name=$1 program=$2
    shift 2
    for side in a b; do
        eval "build=\$$side"
        "$build/$program" --model "models/$family" --output "$side" --overwrite --threads 2 --max-steps 3 --batch-size 2 --max-length 64 \
            --save-every 2 --log-every 1 --seed 5 "$@" >"$side.said" 2>&1 || { echo "$family $name $kind: $build/$program failed:"; tail -n 3 "$side.said"; exit 1; }
        numbers "$side" >"$side.numbers"
    done
    [ "$(grep -c loss a.numbers)" -ge 3 ] && [ "$(grep -c -- - a.numbers)" -ge 1 ] || { echo "$family $name: no numbers to compare"; exit 1; }
    diff a.numbers b.numbers >difference || { echo "$family $name $kind: they differ"; head -n 4 difference; exit 1; }
    compared=$((compared + 1))
}
for model in smollm2-135m qwen2.5-0.5b qwen3-0.6b mistral-7b granite-3.1-2b smollm3-3b phi-3-mini-4k olmo2-1b gemma-3-270m; do
    "$a/init_model" "models/$model" --like $model --layers 3 --hidden-size 64 --intermediate-size 96 --heads 4 --kv-heads 2 --head-dim 16 \
        --vocab-size 300 --dtype float32 >said 2>&1 || { cat said; exit 1; }
done
# tried KIND - a run of no step with these kernels
tried() { TUNE_CPU=$1 "$b/finetune_full" --model models/smollm2-135m --dataset rows.jsonl --eval-dataset rows.jsonl --max-steps 0 --output tried --overwrite 2>&1; }
for kind in ${TUNE_CPU_KINDS:-$(tried none | sed -n 's/.*TUNE_CPU=none: expected one of: //p' | tr -d ,)}; do
    tried "$kind" >said || { grep -q "TUNE_CPU" said && echo "$kind: this CPU has it not" && continue; cat said; exit 1; }
    export TUNE_CPU=$kind
    for family in $(ls models); do
        case $family in phi*) targets=qkv_proj,gate_up_proj ;; *) targets=q_proj,up_proj ;; esac
        same full finetune_full --dataset rows.jsonl
        same packed finetune_full --dataset rows.jsonl --packing --activation-checkpointing full
        same bfloat16 finetune_full --dataset rows.jsonl --dtype bfloat16 --optimizer muon
        same lora finetune_lora --dataset rows.jsonl --lora-dropout 0.1
        same dora finetune_lora --dataset rows.jsonl --lora-dora --base-dtype bfloat16 --neftune-alpha 5
        same qlora finetune_lora --dataset rows.jsonl --base-dtype nf4 --activation-checkpointing full --lora-targets $targets
        same dpo finetune_dpo --dataset pairs.jsonl
        same dpo-full finetune_dpo --dataset pairs.jsonl --lora-r 0
        for side in a b; do
            eval "build=\$$side"
            "$build/generate" --model "models/$family" --prompt "Once upon a time" --max-new-tokens 24 --threads 2 >"$side.text" 2>/dev/null || { echo "$build/generate failed"; exit 1; }
        done
        cmp a.text b.text || { echo "$family generate $kind: they differ"; exit 1; }
        compared=$((compared + 1))
    done
done
echo "$compared runs are equal, to the bit"
