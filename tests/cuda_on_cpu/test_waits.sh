#!/bin/sh
# test_waits.sh - the host waits for the emulated GPU once for a log line, and in no other step: no synchronization, no
# blocking copy, no allocation. Full, LoRA, QLoRA with DoRA and dropout; accumulated, bfloat16, Muon. DPO waits twice in each
# step, because the recipe reads the log probabilities of the policy and of the reference on the host.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
emulated "waits for the emulated device"
head -24 datasets/stories.jsonl >"$tmp/rows.jsonl"
"$BUILD/make_tasks" --rows 24 --seed 1 --pairs --output "$tmp/pairs.jsonl"
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1
tiny model 1 --layers 1 --hidden-size 32 --intermediate-size 64 --vocab-size 262 --max-positions 64 >/dev/null || exit 1
# waits WHAT PROGRAM OPTION... - "STEP CALL" of each call that waits, in steps 2 to 8 of 9, with a line each 4 steps. A step
# goes from its begin_step to the next one's; opening the device takes five.
waits() {
    program=$1
    shift
    CUDA_ON_CPU_CALLS=calls.txt "$where/$program" --device cuda --model model --max-steps 9 --log-every 4 --max-length 32 \
        --batch-size 2 --overwrite --output run "$@" >run.log 2>&1 || { tail -n 2 run.log; return 1; }
    awk '{ call = $0; sub(/^[0-9]+ /, "", call) }
        call == "launch begin_step" { step++ }
        step - 5 >= 2 && step - 5 <= 8 && / waits$/ { print step - 5, call }
        END { print step - 5, "steps" }' calls.txt
}
# each N WHAT PROGRAM OPTION... - N waits in each step, and one for a line
each() {
    for step in 2 3 4 5 6 7 8; do
        seq $(($1 + (step % 4 == 0))) | sed "s/.*/$step cudaStreamSynchronize waits/"
    done >expected.txt
    echo "9 steps" >>expected.txt
    what=$2
    shift 2
    waits "$@" >found.txt
    is "$what" diff expected.txt found.txt
}
once() { each 0 "$@"; }
once "full: a wait for each line, no other" finetune_full --dataset rows.jsonl
once "full, bfloat16, accumulated, Muon: a wait for each line, no other" finetune_full --dataset rows.jsonl --dtype bfloat16 --accumulate 2 --optimizer muon
once "full, checkpointing, an average: a wait for each line, no other" finetune_full --dataset rows.jsonl --activation-checkpointing full --ema 0.9
once "LoRA with dropout: a wait for each line, no other" finetune_lora --dataset rows.jsonl --lora-r 4 --lora-dropout 0.1
once "QLoRA with DoRA: a wait for each line, no other" finetune_lora --dataset rows.jsonl --lora-r 4 --lora-dora --base-dtype nf4
# Products that are new to this GPU are timed in the step where they first come. Here the file knows them from a run before.
waits finetune_dpo --max-length 64 --dataset pairs.jsonl --chat-template plain --lora-r 4 >before.txt
is "DPO: products are timed in the first run" grep -q cudaEventSynchronize before.txt
each 2 "... then the recipe waits where it reads log probabilities, and for a line" finetune_dpo --max-length 64 --dataset pairs.jsonl --chat-template plain --lora-r 4
finish
