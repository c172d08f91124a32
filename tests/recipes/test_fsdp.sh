#!/bin/sh
# test_fsdp.sh - ranks that share out weights, gradients and moments (--shard fsdp): the figures of ranks that do not, memory, saves, resuming.
. tests/tap.sh
cd "$tmp" || exit 1
. "$here/tests/recipes/ranks.sh"

train() { # FOLDER PROGRAM RANKS OPTION...
    to=$1 program=$2 n=$3
    shift 3
    "$BUILD/$program" "$@" --ranks "$n" --output "$to" >"$to.out" 2>&1 || { tail -n 5 "$to.out"; return 1; }
}
# alike NAME PROGRAM RANKS OPTION... - the same ranks with and without shards: equal figures.
alike() {
    of=$1 recipe=$2 ranks=$3
    shift 3
    train "$of.ddp" "$recipe" "$ranks" "$@" && train "$of" "$recipe" "$ranks" "$@" --shard fsdp && agree "$of.ddp" "$of"
}
# part FOLDER NAME - MiB of that part in the plan of its rank 0.
part() { sed -n "s/.*memory.*[:,] $2 \([0-9.]*\),.*/\1/p" "$1.out" | head -n 1; }

is "one rank with four micro-batches" train one finetune_full 1 $rows --epochs 2 --accumulate 4
is "full: two ranks have the figures of --shard ddp" alike two finetune_full 2 $rows --epochs 2 --accumulate 2 --save-every 2
is "... and those of one rank" agree one two
is "four ranks" alike four finetune_full 4 $rows --epochs 2
is "... as one" agree one four
is "three ranks, which divide no size" alike three finetune_full 3 $rows --epochs 2
is "... twice: the same bits" eval 'train three2 finetune_full 3 $rows --epochs 2 --shard fsdp && same_run three three2 README.md'
# Without clipping and with one micro-batch, each number is the sum over the ranks in their order.
is "without clipping: the weights have the bits of --shard ddp" eval '
    alike bits finetune_full 3 $rows --max-steps 5 --clip-norm 0 && cmp bits/checkpoint-final/model.safetensors bits.ddp/checkpoint-final/model.safetensors'
is "... and so have the moments" cmp bits/checkpoint-final/state/optimizer.safetensors bits.ddp/checkpoint-final/state/optimizer.safetensors
is "the header says what is shared out" grep -q '^# ranks  *3 processes.*part of the weights, gradients and moments' three.out
is "averages, checkpointing, packing, SGD" alike ema finetune_full 2 $rows --ema 0.9 --activation-checkpointing full --packing --optimizer sgd --momentum 0.9 --epochs 2
printf 'Say 3\nSay 14\n' >prompts.txt
is "AdamW's averages, evaluated, saved, previewed and answered" alike answered finetune_full 3 $rows --ema 0.9 --max-steps 6 --save-every 2 \
    --preview-every 2 --preview-prompts prompts.txt --preview-tokens 4 --eval-metrics exact_match --eval-answers 4
is "... with equal previews" eval 'cmp answered/samples.jsonl answered.ddp/samples.jsonl'
is "LoRA with dropout" alike lora finetune_lora 3 $rows --lora-dropout 0.2 --max-steps 6
is "QLoRA, DoRA, and a trained copy" alike qlora finetune_lora 2 $rows --base-dtype nf4 --lora-dora --modules-to-save embed_tokens --max-steps 4
is "DPO" alike dpo finetune_dpo 2 $pairs --epochs 2
is "KTO of all weights" alike kto finetune_dpo 3 $pairs --loss kto --lora-r 0 --epochs 2

# ---- going on ----
is "stop at step 3 of a run on two ranks" train part finetune_full 2 $rows --epochs 2 --accumulate 2 --save-every 2 --shard fsdp --stop-at-step 3
cp -r part other
is "... and go on with shards: to the bit as without a stop" eval '"$full" --resume part --ranks 2 --stop-at-step 0 >more.out 2>&1 && same_run two part README.md || { tail -n 5 more.out; false; }'
is "... and go on with four ranks and no shards: the same figures" eval '
    "$full" --resume other --ranks 4 --shard ddp --stop-at-step 0 >more.out 2>&1 && agree two other || { tail -n 5 more.out; false; }'

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
