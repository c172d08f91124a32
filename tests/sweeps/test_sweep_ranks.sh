#!/bin/sh
# test_sweep_ranks.sh - a space whose points are trained by several ranks: the sister of ado's example for a machine without GPUs.
. tests/tap.sh
cd "$tmp" || exit 1
sweep=$BUILD/sweep samples=$BUILD/samples
HF_HUB_CACHE=$tmp/nothing
export HF_HUB_CACHE
space=$here/defaults/spaces/cpu-ranks.yaml experiment=finetune-lora-ddp-cpu-ranks-r-4-a-16-tm-default-v1.0.0
said() { grep -q -- "$1" "$2" || { echo "no \"$1\" in:"; cat "$2"; return 1; }; } # TEXT FILE
# cell COLUMN - of the rows of the store, in the order of the space
cell() { "$samples" show few.yaml --store st --columns number_ranks,"$1" --output-format csv | tail -n +2 | tr '\n' ' '; }

# The command that makes the model is in the space file.
sed -n 's/^#     //p' "$space" | sed "s|^build/|$BUILD/|" >make.sh
is "the model of the space file is made by the command there" eval 'sh make.sh >out 2>&1 && [ -d models/tiny ]'
is "it has 80 entities" eval '"$BUILD/space" describe "$space" >out && said "Number entities: 80" out && said "^  SFTTrainer.$experiment-max_steps.16  yes" out'
is "a dry run: 50 would be measured; 30 batches are not divisible by the ranks" eval '"$sweep" "$space" --store nowhere --dry-run >out 2>&1 && said "^# 50 of 80 would be measured, 0 are known, 30 cannot be measured" out && said "^invalid .*number_ranks.4-.*batch_size.2-.*  batch_size is not divisible by number_ranks" out'
if ! mpi_here; then
    skip "points of 2 and 4 ranks" "no mpirun, or no tune_mpi.so"
    finish
fi
sed '/model_max_length/{n;s/{.*/{values: [32]}/;};/ batch_size/{n;s/{values.*/{values: [2, 4]}/;};/accumulation_steps/{n;s/{.*/{values: [1]}/;};s/value: 16/value: 4/' "$space" >few.yaml
is "points of 2 and 4 ranks are measured" eval '"$sweep" few.yaml --store st --retries 0 --env ASAN_OPTIONS >out 2>&1; cat out; said "3 valid, 1 invalid, 0 failed" out'
is "... the rows carry the ranks" eval '[ "$(cell is_valid)" = "2,1 2,1 4,0 4,1 " ] || { cell is_valid; false; }'
# 4 steps of the batch, cut to 32 tokens: all ranks count.
is "... tokens and rows are those of all ranks" eval '"$samples" show few.yaml --store st --where "status == \"valid\"" --derive "rows = round(train_samples_per_second * train_runtime); tokens = round(dataset_tokens_per_second * train_runtime)" --columns batch_size,rows,tokens --output-format csv | tail -n +2 >rows; cat rows; [ "$(cat rows)" = "$(printf "2,8.0,256.0\n4,16.0,512.0\n4,16.0,512.0")" ]'
is "... what more ranks do is told" eval '"$samples" effect few.yaml --store st --x number_ranks --property dataset_tokens_per_second >out && said "^pairs  *1$" out'
is "... the command starts them" eval '"$samples" best few.yaml --store st --maximize loss_last --where "number_ranks == 4" --print-command >out 2>&1; said "finetune_lora .*--batch-size 1 --ranks 4 " out'
finish
