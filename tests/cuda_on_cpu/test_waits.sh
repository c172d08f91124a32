#!/bin/sh
# test_waits.sh - the host waits for the emulated GPU once for a log line, and in no other step: no synchronization, no
# blocking copy, no allocation. Full, LoRA, QLoRA with DoRA and dropout, DPO; accumulated, bfloat16, Muon.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
where=
for c in g++ clang++; do [ ! -x "$BUILD/cuda_on_cpu/$c/finetune_full" ] || where=${where:-$BUILD/cuda_on_cpu/$c}; done
[ -n "$where" ] || { skip "waits for the emulated device" "no C++ compiler"; finish; }
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
once() { # WHAT PROGRAM OPTION...
    what=$1
    shift
    waits "$@" >found.txt
    is "$what: a wait for each line, no other" eval 'printf "4 cudaStreamSynchronize waits\n8 cudaStreamSynchronize waits\n9 steps\n" | diff - found.txt'
}
once "full" finetune_full --dataset rows.jsonl
once "full, bfloat16, accumulated, Muon" finetune_full --dataset rows.jsonl --dtype bfloat16 --accumulate 2 --optimizer muon
once "full, checkpointing, an average" finetune_full --dataset rows.jsonl --activation-checkpointing full --ema 0.9
once "LoRA with dropout" finetune_lora --dataset rows.jsonl --lora-r 4 --lora-dropout 0.1
once "QLoRA with DoRA" finetune_lora --dataset rows.jsonl --lora-r 4 --lora-dora --base-dtype nf4
once "DPO" finetune_dpo --max-length 64 --dataset pairs.jsonl --chat-template plain --lora-r 4
finish
