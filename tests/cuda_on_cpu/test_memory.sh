#!/bin/sh
# test_memory.sh - the memory plan of --device cuda against what the emulator counts: all of cudaMalloc. The plan is never
# below, and at most 2 % above what varies. Training takes no device memory after its first step. build/fit and
# --plan-memory say the same without any GPU.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
emulated "plans of the emulated device"
cd "$tmp" || exit 1
export OMP_NUM_THREADS=2 TUNE_DEFAULTS="$here/defaults" TUNE_CUDA_ALGORITHMS=off # timing takes memory for a moment

"$BUILD/make_tales" --rows 40 --seed 1 --output text.jsonl
printf 'One day\n\nThe dog\n' >prompts.txt
"$BUILD/make_tasks" --rows 8 --seed 1 --pairs --output pairs.jsonl
"$BUILD/init_model" --like tinyllama-1.1b --heads 4 --kv-heads 2 --seed 1 --dtype float32 --max-positions 96 --layers 2 \
    --hidden-size 32 --intermediate-size 512 --vocab-size 2000 --tokenizer-text text.jsonl llama >/dev/null

figure() { sed -n "s/.*\"$1\":[^0-9]*\([0-9]*\).*/\1/p" run/report.json; }
# trained STEPS PROGRAM OPTION... - peak and calls of cudaMalloc, as the emulator counts
trained() {
    steps=$1 program=$2
    shift 2
    rm -f counted
    CUDA_ON_CPU_REPORT=counted "$where/$program" --device cuda --model llama --max-length 40 --batch-size 2 --max-steps "$steps" \
        --lr 1e-3 --overwrite --output run "$@" >log 2>&1 || { tail -n 2 log >&2; return 1; }
    sed -n 's/^\([0-9]*\) bytes at most, in \([0-9]*\) calls of cudaMalloc$/\1 \2/p' counted
}
WORKSPACE=33554432 # cuBLASLt's: all else is compared without it
# plan WHAT PROGRAM OPTION...
plan() {
    what=$1
    shift
    one=$(trained 1 "$@") && two=$(trained 2 "$@") || { is "$what" false; return; }
    is "$what: no device memory is taken after the first step" [ "$one" = "$two" ]
    peak=${two% *} planned=$(figure estimated_device_bytes) own=$(figure peak_device_bytes)
    echo "# $what: counted $peak, planned $planned, by the device itself $own"
    is "$what: the plan is what the device takes" [ "$own" = "$planned" ]
    is "$what: the emulator counts at most that, and not 2 % less" \
        awk "BEGIN { p = $planned - $WORKSPACE; c = $peak - $WORKSPACE; exit !(c > 0 && c <= p && p <= 1.02 * c) }"
    program=$1
    shift
    text=$("$BUILD/$program" --device cuda --model llama --max-length 40 --batch-size 2 --plan-memory "$@" 2>&1)
    shown=$(printf '%s\n' "$text" | sed -n 's/^memory: \([0-9.]*\) MiB on the device: .*/\1/p')
    is "$what: --plan-memory says the same without a GPU" \
        awk "BEGIN { d = ${shown:-0} - $planned / 1048576; exit !(d > -0.06 && d < 0.06) }"
}
refused "what a GPU has not: exit code 3, and what would help" 3 "not enough memory on the device cuda" env CUDA_ON_CPU_MEMORY=38000000 \
    "$where/finetune_full" --device cuda --model llama --max-length 40 --batch-size 2 --plan-memory

# A run that is planned to the last bytes of the GPU: kernels are loaded in its first steps, and graphs are made.
full_on() { # MEMORY OPTION...
    CUDA_ON_CPU_MEMORY=$1
    shift
    CUDA_ON_CPU_MEMORY=$CUDA_ON_CPU_MEMORY CUDA_ON_CPU_LOAD=8000000 "$where/finetune_full" --device cuda --model llama --max-length 40 \
        --batch-size 2 --dataset text.jsonl --max-steps 3 --overwrite --output run "$@"
}
fewest() { # the least memory of a GPU that the plan accepts, in KiB
    low=0 high=$((1 << 20))
    while [ $((high - low)) -gt 1 ]; do
        middle=$(((low + high) / 2))
        if full_on $((middle * 1024)) --plan-memory >/dev/null 2>&1; then high=$middle; else low=$middle; fi
    done
    echo $high
}
least=$(fewest)
echo "# the plan accepts a GPU of $least KiB"
is "a run that takes all of a GPU loads its kernels" full_on $((least * 1024))
refused "... with a KiB less it is refused before it begins" 3 "not enough memory on the device cuda" full_on $(((least - 1) * 1024))

plan "full" finetune_full --dataset text.jsonl
# 320 positions; logits of 131 are 1 MiB, so chunks have 192
plan "full, logits of 1 MiB" finetune_full --dataset text.jsonl --packing --accumulate 1 --batch-size 8 --logits-chunk 1
few=$planned
plan "full, logits of all positions" finetune_full --dataset text.jsonl --packing --accumulate 1 --batch-size 8 --logits-chunk 16
is "... take more memory" [ "$planned" -gt $((few + (320 - 192) * 2000 * 4)) ]
plan "full, bfloat16, checkpointing" finetune_full --dataset text.jsonl --dtype bfloat16 --activation-checkpointing full
plan "LoRA, checkpointing" finetune_lora --dataset text.jsonl --lora-r 4 --activation-checkpointing full
plan "LoRA, bfloat16" finetune_lora --dataset text.jsonl --lora-r 4 --base-dtype bfloat16 --dtype bfloat16
plan "QLoRA" finetune_lora --dataset text.jsonl --lora-r 4 --base-dtype nf4
plan "QLoRA, bfloat16, checkpointing" finetune_lora --dataset text.jsonl --lora-r 4 --base-dtype nf4 --dtype bfloat16 \
    --activation-checkpointing full
plan "DPO, checkpointing" finetune_dpo --dataset pairs.jsonl --max-length 56 --chat-template plain --lora-r 4 --activation-checkpointing full
plan "DPO, bfloat16" finetune_dpo --dataset pairs.jsonl --max-length 56 --chat-template plain --lora-r 4 --dtype bfloat16
plan "DPO of all weights" finetune_dpo --dataset pairs.jsonl --max-length 56 --chat-template plain --lora-r 0 --dtype bfloat16
plan "DoRA on NF4, with dropout" finetune_lora --dataset text.jsonl --lora-r 4 --lora-dora --lora-dropout 0.1 --base-dtype nf4 \
    --dtype bfloat16
plan "LoRA of two modules that trains the output, too" finetune_lora --dataset text.jsonl --lora-r 4 --lora-targets q_proj,down_proj \
    --modules-to-save lm_head,embed_tokens --base-dtype bfloat16 --dtype bfloat16
plan "Muon, packed, averages" finetune_full --dataset text.jsonl --packing --optimizer muon --ema 0.9 --dtype bfloat16
plan "held-out rows and previews" finetune_full --dataset text.jsonl --train-split 0.8 --preview-every 1 --preview-prompts prompts.txt \
    --preview-tokens 20 --dtype bfloat16
finish
