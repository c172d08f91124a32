# shards.sh - for tests of --shard $shard: ranks have the figures of ranks without shards, and runs go on. $shared_out: what the
# header says is shared out, as an ERE. Sourced from the folder $tmp.
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
    train "$of.ddp" "$recipe" "$ranks" "$@" && train "$of" "$recipe" "$ranks" "$@" --shard $shard && agree "$of.ddp" "$of"
}
# part FOLDER NAME - MiB of that part in the plan of its rank 0.
part() { sed -n "s/.*memory.*[:,] $2 \([0-9.]*\),.*/\1/p" "$1.out" | head -n 1; }

is "one rank with four micro-batches" train one finetune_full 1 $rows --epochs 2 --accumulate 4
is "full: two ranks have the figures of --shard ddp" alike two finetune_full 2 $rows --epochs 2 --accumulate 2 --save-every 2
is "... and those of one rank" agree one two
is "four ranks" alike four finetune_full 4 $rows --epochs 2
is "... as one" agree one four
is "three ranks, which divide no size" alike three finetune_full 3 $rows --epochs 2
is "... twice: the same bits" eval 'train three2 finetune_full 3 $rows --epochs 2 --shard $shard && same_run three three2 README.md'
# Without clipping, and with one micro-batch, each number is the sum over the ranks in their order.
is "without clipping: the weights have the bits of --shard ddp" eval '
    alike bits finetune_full 3 $rows --max-steps 5 --clip-norm 0 && cmp bits/checkpoint-final/model.safetensors bits.ddp/checkpoint-final/model.safetensors'
is "... and so have the moments" cmp bits/checkpoint-final/state/optimizer.safetensors bits.ddp/checkpoint-final/state/optimizer.safetensors
is "the header says what is shared out" grep -q "^# ranks  *3 processes.*$shared_out" three.out
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
is "stop at step 3 of a run on two ranks" train part finetune_full 2 $rows --epochs 2 --accumulate 2 --save-every 2 --shard $shard --stop-at-step 3
cp -r part other
is "... and go on with shards: to the bit as without a stop" eval '"$full" --resume part --ranks 2 --stop-at-step 0 >more.out 2>&1 && same_run two part README.md || { tail -n 5 more.out; false; }'
is "... and go on with four ranks and no shards: the same figures" eval '
    "$full" --resume other --ranks 4 --shard ddp --stop-at-step 0 >more.out 2>&1 && agree two other || { tail -n 5 more.out; false; }'
