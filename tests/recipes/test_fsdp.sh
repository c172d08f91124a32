#!/bin/sh
# test_fsdp.sh - ranks that share out weights, gradients and moments (--shard fsdp): the figures of ranks that do not, memory, saves, resuming.
. tests/tap.sh
cd "$tmp" || exit 1
shard=fsdp shared_out='part of the weights, gradients and moments'
. "$here/tests/recipes/shards.sh"

is "KTO of adapters, some ranks without rows" alike kl finetune_dpo 3 $pairs --loss kto --epochs 2
is "... and of all weights beside answers that lack (a reference that was begun)" eval 'train short finetune_dpo 1 $pairs --loss kto --lora-r 0 --max-steps 1 --reference ref.safetensors && cp ref.safetensors ref2.safetensors &&
    train more.ddp finetune_dpo 3 $pairs --loss kto --lora-r 0 --epochs 1 --reference ref.safetensors && train more finetune_dpo 3 $pairs --loss kto --lora-r 0 --epochs 1 --reference ref2.safetensors --shard fsdp && agree more.ddp more'
is "a run without shards goes on with fsdp on four ranks" eval '
    train begun finetune_full 2 $rows --epochs 2 --accumulate 2 --save-every 2 --stop-at-step 3 && "$full" --resume begun --ranks 4 --shard fsdp --stop-at-step 0 >more.out 2>&1 &&
    agree two begun || { tail -n 5 more.out; false; }'

# ---- memory ----
"$BUILD/init_model" --layers 24 --hidden-size 256 --intermediate-size 1024 --heads 4 --kv-heads 4 --vocab-size 300 --max-positions 64 --dtype bfloat16 wide >/dev/null
small="--model wide --dataset rows.jsonl --max-length 16 --batch-size 1 --max-steps 2 --no-save --threads 1 --seed 3 --verbose"
for n in 1 2 4; do
    is "a larger model on $n" train wide$n finetune_full $n $small --shard fsdp
    is "... the device's memory is what the plan says, to the byte" eval 'planned=$(figure wide$n estimated_device_bytes) && [ -n "$planned" ] && [ "$planned" = "$(figure wide$n peak_device_bytes)" ]'
    is "... the process's is near the plan" awk -v a="$(figure wide$n estimated_memory_bytes)" -v b="$(figure wide$n peak_anonymous_bytes)" \
        'BEGIN { d = a > b ? a - b : b - a; print a, b; exit !(b > 60e6 && d < 33554432) }'
done
# Weights, gradients and moments take 16 bytes for each of 25 million weights. Two layers are whole at a time, each twice.
is "weights, gradients and moments fall as 1 / N" awk -v a="$(figure wide1 peak_anonymous_bytes)" -v b="$(figure wide2 peak_anonymous_bytes)" \
    -v c="$(figure wide4 peak_anonymous_bytes)" 'BEGIN { all = 16 * 25.3e6; print a, b, c; exit !(a - b > 0.4 * all && a - b < 0.55 * all && a - c > 0.63 * all && a - c < 0.8 * all) }'
is "the plan's text has it" grep -q ' gathered units [0-9]' wide4.out

# ---- what is refused ----
refused "Muon, which needs whole matrices" 2 'with --shard a rank has parts of them' "$full" $rows --optimizer muon --ranks 2 --shard fsdp --output no
is "one rank has nothing to share out" train alone finetune_full 1 $rows --max-steps 2 --optimizer muon --shard fsdp
finish
