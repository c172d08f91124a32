#!/bin/sh
# test_model_names.sh - what --model and --adapter may be beside a folder of a model: a run, its name, a name in models/ or runs/,
# a file of the folder; and an adapter's base. What a name was taken for is said.
. tests/tap.sh
cd "$tmp" || exit 1
tiny base 1 >/dev/null
head -n 20 "$here/datasets/stories.jsonl" >rows.jsonl
train() { out=$1 program=$2 && shift 2 && "$BUILD/$program" --model base --dataset rows.jsonl --max-length 32 --threads 1 --lr 1e-3 --output "$out" "$@" >log 2>&1 || { cat log; false; }; }
answer() { "$BUILD/generate" --prompt "Once upon" --max-new-tokens 6 "$@" >out 2>notes || { cat notes; false; }; }
same() { # TEXT EXPECTED_OPTIONS -- OPTIONS: the answer of the options is that of the expected ones, and the notes have the text
    text=$1 && shift
    # shellcheck disable=SC2086 # words
    answer $1 && cp out expected && shift && answer "$@" && cmp out expected && grep -q -- "$text" notes || { cat notes; false; }
}
is "runs" eval 'train runs/full finetune_full --max-steps 6 --train-split 0.7 --eval-every 2 --save-every 2 --keep-last 9 && train runs/plain finetune_full --max-steps 2 --lr 1 --save-every 1 --keep-last 9 && train runs/lora finetune_lora --max-steps 3 --lr 1e-1'
best=$(readlink runs/full/checkpoint-best)
is "a run's name is its best checkpoint" same "^# model  *full: runs/full/$best, the best checkpoint of the run runs/full$" "--model runs/full/$best" --model full
is "... so is its folder" same "^# model  *runs/full: runs/full/$best, the best" "--model runs/full/$best" --model runs/full
rm -f runs/plain/checkpoint-best
is "... without a best one, the newest" same "runs/plain/checkpoint-2, the newest checkpoint of the run runs/plain; none is its best" "--model runs/plain/checkpoint-2" --model plain
mkdir models && cp -r base models/mine && cp -r base models/full
is "a name in models/" same "^# model  *mine: models/mine, that model in models/$" "--model base" --model mine
is "... which comes before one in runs/" same "^# model  *full: models/full, that model in models/$" "--model base" --model full
is "a file of the folder" same "^# model  *base/model.safetensors: base, the folder of that file$" "--model base" --model base/model.safetensors
is "... config.json" same "the folder of that file" "--model base" --model base/config.json
is "a folder that is a model is taken without a word" eval 'answer --model base && ! grep -q "^# model" notes'
is "an adapter without --model: its base" same "^# model  *base: the base that the adapter names$" "--model base --adapter runs/lora/checkpoint-3" --adapter runs/lora/checkpoint-3
is "... the adapter by its run's name" same "^# adapter  *lora: runs/lora/checkpoint-3, the " "--model base --adapter runs/lora/checkpoint-3" --adapter lora
is "... as --model: on its base" same "^# model  *runs/lora/checkpoint-3: an adapter; taken as --adapter$" "--model base --adapter runs/lora/checkpoint-3" --model lora
is "merge_adapter takes them too" eval '"$BUILD/merge_adapter" --adapter lora --output merged >out 2>&1 && grep -q "the base that the adapter names" out && [ -e merged/config.json ]'
refused "a program without --adapter says what it is" 1 "this is a LoRA adapter; give it with --adapter" "$BUILD/finetune_full" --model lora --dataset rows.jsonl --max-steps 1 --output runs/no
is "training goes on from a run's best" eval '"$BUILD/finetune_full" --model runs/full --dataset rows.jsonl --max-length 32 --max-steps 1 --output runs/more >out 2>&1 && grep -q "\"model\":.*\"runs/full/$best\"" runs/more/run.json'
refused "a name near another" 2 "give --model runs/plain/checkpoint-2" "$BUILD/generate" --model plaim --prompt x
refused "a checkpoint that is not there" 2 "give --model runs/full/checkpoint-" "$BUILD/generate" --model runs/full/checkpoint-99 --prompt x
mkdir runs/empty && echo '{}' >runs/empty/run.json
refused "a run without checkpoints" 2 'neither a folder' "$BUILD/generate" --model empty --prompt x
echo '{"base_model_name_or_path": null, "peft_type": "LORA"}' >runs/lora/checkpoint-3/adapter_config.json
refused "an adapter that names no base" 2 "its adapter_config.json names no base (base_model_name_or_path); give --model" "$BUILD/generate" --adapter runs/lora/checkpoint-3 --prompt x
printf '{"base_model_name_or_path": "ba\\nse\\u001b[2J", "peft_type": "LORA"}' >runs/lora/checkpoint-3/adapter_config.json
is "a base's name stays on its line" eval '! "$BUILD/generate" --adapter runs/lora/checkpoint-3 --prompt x >out 2>notes; grep -q "^# model  *ba?se?\[2J: the base" notes'
finish
