#!/bin/sh
# test_recipes.sh - whole recipes on the emulated CUDA device against the CPU: three steps of tiny models, full, LoRA, DoRA,
# QLoRA, DPO, generation. Losses and gradient norms agree within 1e-5 in float32, 2e-2 in bfloat16. Two runs, a resumed one
# and one with activation checkpointing have the same bits.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
emulated "recipes on the emulated device"
cd "$tmp" || exit 1
export OMP_NUM_THREADS=2 TUNE_DEFAULTS="$here/defaults"

"$BUILD/make_tales" --rows 40 --seed 1 --output text.jsonl
"$BUILD/make_tasks" --rows 24 --seed 1 --output tasks.jsonl
"$BUILD/make_tasks" --rows 24 --seed 1 --pairs --output pairs.jsonl
tiny() { # NAME LIKE OPTION...
    name=$1 like=$2
    shift 2
    "$BUILD/init_model" --like "$like" --seed 1 --dtype float32 --max-positions 96 --layers 2 --hidden-size 32 \
        --intermediate-size 48 --vocab-size 280 --tokenizer-text text.jsonl "$@" "$name" >/dev/null
}
# train DEVICE FOLDER PROGRAM OPTION...
train() {
    device=$1 run=$2 program=$3
    shift 3
    "$where/$program" --device "$device" --max-length 40 --batch-size 2 --max-steps 3 --lr 1e-3 --overwrite "$@" \
        --output "$run" >"$run.log" 2>&1 || { tail -n 2 "$run.log"; return 1; }
}
# Largest relative difference of losses and of norms in two runs' metrics; 9 if a step is missing.
apart() {
    for run in "$1" "$2"; do
        sed -n 's/.*"loss":\([^,}]*\).*"grad_norm":\([^,}]*\).*/\1 \2/p' "$run/metrics.jsonl" >"$run.numbers"
    done
    paste -d ' ' "$1.numbers" "$2.numbers" | awk '
        function far(a, b) { return (a > b ? a - b : b - a) / (b < 0 ? -b : b) }
        NF == 4 { n++; d = far($1, $3); e = far($2, $4); worst = d > worst ? d : worst; worst = e > worst ? e : worst }
        END { printf "%.2g", n == 3 ? worst : 9 }'
}
# agree WHAT LIMIT PROGRAM OPTION...
agree() {
    what=$1 limit=$2
    shift 2
    train cpu c "$@" && train cuda g "$@" || { not_ok "$what"; return; }
    far=$(apart g c)
    echo "# $what: $far apart"
    is "$what: CUDA is the CPU" awk "BEGIN { exit !($far <= $limit) }"
}
not_ok() { is "$1" false; }
# same_bits FILE PROGRAM OPTION... - two runs, one with checkpointing, a resumed one: the same FILE. The first stays in first.
same_bits() {
    file=checkpoint-final/$1
    shift
    train cuda first "$@"
    train cuda g "$@"
    is "... two runs: the same bits" cmp g/$file first/$file
    train cuda g "$@" --activation-checkpointing full
    is "... checkpointing: the same bits" cmp g/$file first/$file
    train cuda g "$@" --save-every 2
    rm -rf g/checkpoint-final
    "$where/$1" --resume g >resumed.log 2>&1
    is "... resumed: the same bits" cmp g/$file first/$file
}

tiny llama tinyllama-1.1b --heads 4 --kv-heads 2
agree "llama, full" 1e-5 finetune_full --model llama --dataset text.jsonl
same_bits model.safetensors finetune_full --model llama --dataset text.jsonl
TUNE_CUDA_GRAPHS=0 train cuda g finetune_full --model llama --dataset text.jsonl
is "... without graphs: the same bits" cmp g/checkpoint-final/model.safetensors first/checkpoint-final/model.safetensors
train cuda g finetune_full --model llama --dataset text.jsonl --pad-to-multiple-of 7
is "... batches of another length: other graphs, nearly the same loss" eval '! cmp -s g/metrics.jsonl first/metrics.jsonl && awk "BEGIN { exit !($(apart g first) <= 1e-5) }"'
train cuda g finetune_full --model llama --dataset text.jsonl --profile 2
is "... profiled: the same bits" cmp g/checkpoint-final/model.safetensors first/checkpoint-final/model.safetensors
agree "llama, full, bfloat16" 2e-2 finetune_full --model llama --dataset text.jsonl --dtype bfloat16
agree "llama, packed, accumulated, Muon" 1e-5 finetune_full --model llama --dataset tasks.jsonl --chat-template plain \
    --packing --accumulate 2 --optimizer muon
for like in qwen2.5-0.5b qwen3-0.6b mistral-7b granite-3.1-2b smollm3-3b phi-3-mini-4k olmo2-1b gemma-3-270m; do
    # not the known model's own name: its defaults would come with it, bfloat16 among them
    tiny "tiny-$like" "$like" --heads 4 --kv-heads 2 || { not_ok "a tiny $like"; continue; }
    agree "$like" 1e-5 finetune_full --model "tiny-$like" --dataset text.jsonl
done
# dropout draws by the place in the batch, so both need the same length
agree "LoRA with dropout" 1e-5 finetune_lora --model llama --dataset text.jsonl --lora-r 4 --lora-dropout 0.2 --pad-to-multiple-of 8
agree "LoRA, bfloat16" 2e-2 finetune_lora --model llama --dataset text.jsonl --lora-r 4 --dtype bfloat16
export CUDA_ON_CPU_REFUSE=uneven,algorithm=0
agree "LoRA, bfloat16, while cuBLASLt refuses slices" 2e-2 finetune_lora --model llama --dataset text.jsonl --lora-r 4 --dtype bfloat16
unset CUDA_ON_CPU_REFUSE
is "... and the run says so" grep -q '^# warning: device  *cuBLASLt refused products [0-9]* times, first \[' g.log
agree "DoRA" 1e-5 finetune_lora --model llama --dataset text.jsonl --lora-r 4 --lora-dora
agree "QLoRA" 1e-5 finetune_lora --model llama --dataset text.jsonl --lora-r 4 --base-dtype nf4
echo "# QLoRA with DoRA and dropout, bfloat16"
same_bits adapter_model.safetensors finetune_lora --model llama --dataset text.jsonl --lora-r 4 --lora-dora --lora-dropout 0.2 \
    --base-dtype nf4 --dtype bfloat16
agree "DPO" 1e-5 finetune_dpo --model llama --dataset pairs.jsonl --chat-template plain --lora-r 4
for device in cpu cuda; do
    "$where/generate" --device $device --model llama --input tasks.jsonl --chat-template plain --max-new-tokens 8 \
        --batch-size 3 --output $device.jsonl >generate.log 2>&1
done
is "generate: the same answers" cmp cpu.jsonl cuda.jsonl
is "... 24 of them" [ "$(wc -l <cuda.jsonl)" = 24 ]
CUDA_ON_CPU_REFUSE=algorithm=0 "$where/generate" --device cuda --model llama --prompt a --max-new-tokens 2 >generate.out 2>generate.log
is "... and it says what cuBLASLt refused" grep -q '^# warning: device: cuBLASLt refused products [0-9]* times, first \[' generate.log
finish
