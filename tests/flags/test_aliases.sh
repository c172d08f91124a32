#!/bin/sh
# test_aliases.sh - --config with files of axolotl, LLaMA-Factory, torchtune and TRL: what is taken, left out, stops a run.
. tests/tap.sh
cd "$tmp" || exit 1
full=$BUILD/finetune_full lora=$BUILD/finetune_lora dpo=$BUILD/finetune_dpo
tiny model 1 --max-positions 4096 >printed 2>&1 || { cat printed; exit 1; }
cp "$here/defaults/chat_templates/chatml.jinja" model/chat_template.jinja
# rows FORMAT FILE - 40 rows of different texts.
rows() { for i in $(seq 40); do printf "$1\n" "$i" "$i"; done >"$2"; }
rows '{"instruction": "Add %s", "input": "", "output": "%s"}' alpaca.jsonl
rows '{"talk": [{"from": "human", "value": "Say %s"}, {"from": "gpt", "value": "%s"}]}' talk.jsonl
rows '{"ask": "Say %s", "good": "yes %s", "bad": "no"}' pairs.jsonl
mkdir data && cp alpaca.jsonl data/plus.jsonl && rows '{"conversations": [{"from": "human", "value": "Say %s"}], "chosen": {"from": "gpt", "value": "%s"}, "rejected": {"from": "gpt", "value": "no"}}' data/rank.jsonl
cat >data/dataset_info.json <<'TEXT'
{"sums": {"file_name": "plus.jsonl"},
 "ranks": {"file_name": "rank.jsonl", "formatting": "sharegpt", "ranking": true, "columns": {"messages": "conversations"}},
 "pictures": {"file_name": "p.json", "columns": {"images": "images"}}}
TEXT
# show PROGRAM FILE - --show-config into the file shown; its exit code. set OPTION VALUE - whether it is among the options. has_line
# TEXT - a line that begins with it.
show() { "$1" --config "$2" --show-config >shown 2>complained; code=$?; cat shown complained; return $code; }
set_to() { sed -n '/^options that are set/,$p' shown | grep -qxF -- "  --$1$(printf "%$((24 - ${#1}))s" "")$2  (config)" || { cat shown; false; }; }
all_set() { while [ $# -gt 0 ]; do set_to "$1" "$2" || return 1; shift 2; done; }
stops() { sed -n '/^stops the run/,/^$/p' shown | grep -qF -- "$1" || { cat shown; false; }; }
left() { sed -n '/^left out/,/^stops\|^options/p' shown | grep -qF -- "$1" || { cat shown; false; }; }
# step PROGRAM FILE [OPTION...] - one step of it. recorded OPTION VALUE - what run.json has.
step() { program=$1 file=$2; shift 2; rm -rf run; "$program" --config "$file" --max-steps 1 --output run "$@" >printed 2>&1 || { cat printed; false; }; grep -q '"step":' run/metrics.jsonl; }
recorded() { tr -d '\t ' <run/run.json | grep -qF -- "\"$1\":$2" || { grep "$1" run/run.json; false; }; }

# ---- axolotl ----

cat >ax.yml <<'TEXT'
base_model: model
load_in_4bit: true
adapter: qlora
datasets:
  - path: talk.jsonl
    type: chat_template
    field_messages: talk
    message_property_mappings: {role: from, content: value}
val_set_size: 0.1
sequence_len: 1_024
sample_packing: true
lora_r: 4
lora_alpha: 8
lora_target_modules: [q_proj, v_proj]
lora_target_linear: true
micro_batch_size: 2
gradient_accumulation_steps: 1
num_epochs: 2
optimizer: paged_adamw_8bit
lr_scheduler: cosine
learning_rate: 3e-4
bf16: auto
tf32: true
gradient_checkpointing: true
flash_attention: true
wandb_project:
warmup_ratio: 0.2
weight_decay: 0.0
special_tokens: {pad_token: <pad>}
TEXT
is "axolotl's file is shown" show "$lora" ax.yml
is "what it sets" all_set model model base-dtype nf4 dataset talk.jsonl format sharegpt columns conversations=talk train-split 0.9 max-length 1024 \
    packing true lora-r 4 lora-alpha 8 lora-targets all-linear batch-size 2 epochs 2 optimizer adamw schedule cosine lr 3e-4 dtype bfloat16 \
    warmup-ratio 0.2 weight-decay 0.0
is "what axolotl's own defaults set" all_set clip-norm 1 lora-dropout 0 seed 42
is "what is left out, and why" eval 'left "products are float32 or bfloat16" && left "flash_attention: true" && left "special_tokens.pad_token: <pad>"'
is "an empty value is not given" eval '! grep -q wandb shown'
is "a value that is not quite the same has a note" grep -q 'optimizer: paged_adamw_8bit .*--optimizer adamw  (its moments are float32, not 8 bits, and not paged)' shown
is "it trains" step "$lora" ax.yml
is "the run says so once" eval '[ "$(grep -c "ax.yml is a file of axolotl: .* settings are taken, .* are left out; --show-config lists them" printed)" = 1 ]'
is "the options are recorded as ours" eval 'recorded base_dtype "\"nf4\"" && recorded lora_targets "\"all-linear\""'
is "flags override it" eval 'step "$lora" ax.yml --lora-r 2 --dataset alpaca.jsonl --format alpaca --columns instruction=instruction && recorded lora_r 2'
refused "another program is named, with the line to type" 2 "this file is for finetune_lora, by its adapter qlora: $BUILD/finetune_lora --config ax.yml --max-steps 1" \
    "$full" --config ax.yml --max-steps 1
is "... and by --show-config" eval '! show "$full" ax.yml && tail -n 1 shown | grep -q "^this file is for finetune_lora, by its adapter qlora: .*/finetune_lora --config ax.yml --show-config$"'
{ cat ax.yml; printf 'load_in_8bit: true\nqat: {weight_dtype: int4}\nmystery_key: 3\n'; } >stops.yml
refused "what would train something else stops, with its line" 2 'load_in_8bit true (line 30): there are no 8-bit weights' "$lora" --config stops.yml
refused "... also a name that nobody knows" 2 'mystery_key 3 (line 32): this name is not known' "$lora" --config stops.yml
is "--show-config lists them, and ends with 2" eval 'show "$lora" stops.yml; [ $code = 2 ] && stops "mystery_key: 3" && stops "qat.weight_dtype: int4" && grep -qx "3 settings would stop the run" shown'
is "--ignore-keys goes on without them" eval 'step "$lora" stops.yml --ignore-keys load_in_8bit,qat,mystery_*'
refused "... without those that it names only" 2 'mystery_key 3 (line 32)' "$lora" --config stops.yml --ignore-keys load_in_8bit,qat
printf 'base_model: model\nsequence_len: 64\nmicro_batch_size: 1\nlearning_rate: 1e-3\nrl: dpo\ndatasets:\n  - {path: pairs.jsonl, type: chatml.prompt_pairs, field_chosen: good, field_rejected: bad, field_messages: ask}\n' >rl.yml
is "rl: dpo is finetune_dpo, of all weights" eval 'show "$dpo" rl.yml && all_set lora-r 0 columns chosen=good,rejected=bad,prompt=ask && step "$dpo" rl.yml'
sed 's/rl: dpo/rl: kto/' rl.yml >kto.yml
refused "rl: kto stops, and names what does it" 2 'rl kto (line 5): finetune_dpo --loss kto trains so, but not by this file' "$full" --config kto.yml
printf 'kto_desirable_weight: 2\nkto_undesirable_weight: 0.5\n' >>kto.yml
is "... by whose options the weights are taken" eval 'show "$dpo" kto.yml; [ $code = 2 ] && all_set desirable-weight 2 undesirable-weight 0.5'
printf 'base_model: model\nmicro_batch_size: 1\ndatasets:\n  - {path: alpaca.jsonl, type: alpaca}\n  - {path: talk.jsonl, type: chat_template, field_messages: talk, message_property_mappings: {role: from}}\n' >two.yml
is "two data sets, each with its format" eval 'show "$full" two.yml && all_set dataset alpaca.jsonl,talk.jsonl format alpaca,sharegpt columns ";conversations=talk" && step "$full" two.yml'
sed 's/path: alpaca.jsonl/path: a\/b, split: "train[:3%]"/; /talk/d' two.yml >split.yml
refused "a split that is not known stops" 2 'datasets.0.split train[:3%] (line 4): give a file with the rows' "$full" --config split.yml
is "... unless --dataset replaces it" eval 'step "$full" split.yml --dataset alpaca.jsonl'
printf '{"base_model": "model", "micro_batch_size": 1, "learning_rate": 5e-4, "datasets": [{"path": "alpaca.jsonl", "type": "alpaca"}]}' >ax.json
is "the same as JSON" eval 'show "$full" ax.json && all_set lr 0.0005 format alpaca'
sed -n '/^# axolotl.yml$/,/^```$/p' "$here/docs/other-tools.md" | grep -v '^```' >page.yml
is "the file that the page prints" eval 'step "$lora" page.yml --model model --dataset alpaca.jsonl && recorded format "\"alpaca\""'
refused "--ignore-keys without such a file" 2 "--ignore-keys x: it is for settings in a --config file of another tool" "$full" --ignore-keys x
printf 'base_model: model\nmicro_batch_size: 1\noutput_dir: "x${base_model}${y}${output_dir}"\ndatasets: {"4000000000": {path: a}, "7": {path: alpaca.jsonl}}\n' >odd.yml
is "numbers and references without end do no harm" eval 'show "$full" odd.yml; [ $code -lt 3 ]'

# ---- LLaMA-Factory ----

cat >lf.yaml <<'TEXT'
model_name_or_path: model
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 4
lora_target: all
dataset: sums
template: qwen3
cutoff_len: 128
max_samples: 30
overwrite_output_dir: true
per_device_train_batch_size: 2
learning_rate: 1.0e-4
num_train_epochs: 1.0
lr_scheduler_type: cosine
warmup_ratio: 0.1
bf16: true
report_to: none
TEXT
is "LLaMA-Factory's file is shown" show "$lora" lf.yaml
is "what it and dataset_info.json set" all_set dataset data/plus.jsonl format alpaca-chat max-length 128 lora-r 4 lora-alpha 8 lora-targets all-linear \
    batch-size 2 lr 1.0e-4 base-dtype bfloat16
is "it trains" step "$lora" lf.yaml
is "an old run folder is not removed because of it" left "overwrite_output_dir: true"
sed 's/dataset: sums/dataset: ranks/; s/stage: sft/stage: dpo/; $a pref_beta: 0.3' lf.yaml >lfdpo.yaml
is "stage: dpo" eval 'show "$dpo" lfdpo.yaml && all_set beta 0.3 format sharegpt-preference lora-r 4 && step "$dpo" lfdpo.yaml'
refused "... for finetune_dpo only" 2 "this file is for finetune_dpo, by its stage dpo" "$lora" --config lfdpo.yaml
sed 's/dataset: sums/dataset: pictures/' lf.yaml >pictures.yaml
refused "images stop" 2 "dataset pictures (line 7): there are no images here" "$lora" --config pictures.yaml
sed 's/dataset: sums/dataset: sums, other/' lf.yaml >other.yaml
refused "a set that dataset_info.json has not stops" 2 'data/dataset_info.json has no entry "other"' "$lora" --config other.yaml
sed '$a dataset_dir: nowhere' lf.yaml >nowhere.yaml
is "without dataset_info.json, --show-config says what to give" eval 'show "$lora" nowhere.yaml && left "nowhere/dataset_info.json, which says where it is, is not here; give --dataset FILE and --format"'
sed 's/stage: sft/stage: rm/' lf.yaml >rm.yaml
refused "a reward model stops" 2 "stage rm (line 2): there are no classifiers and reward models" "$lora" --config rm.yaml

# ---- torchtune ----

cat >tt.yaml <<'TEXT'
output_dir: tt_out
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer, path: /x/tokenizer.model, max_seq_len: 96}
model:
  _component_: torchtune.models.llama3_2.lora_llama3_2_1b
  lora_attn_modules: [q_proj, output_proj]
  apply_lora_to_mlp: true
  lora_rank: 4
  lora_alpha: 8
checkpointer: {_component_: torchtune.training.FullModelHFCheckpointer, checkpoint_dir: model, output_dir: "${output_dir}"}
dataset: {_component_: torchtune.datasets.alpaca_cleaned_dataset, packed: false, split: "train[:95%]"}
dataset_val: {_component_: torchtune.datasets.alpaca_cleaned_dataset, split: "train[95%:]"}
seed: null
batch_size: 2
optimizer: {_component_: torch.optim.AdamW, lr: 3e-4, weight_decay: 0.05, fused: true, betas: [0.8, 0.95]}
lr_scheduler: {_component_: torchtune.training.lr_schedulers.get_cosine_schedule_with_warmup, num_warmup_steps: 1}
loss: {_component_: torchtune.modules.loss.LinearCrossEntropyLoss}
epochs: 2
max_steps_per_epoch: 3
gradient_accumulation_steps: 1
device: cuda
dtype: bf16
metric_logger: {_component_: torchtune.training.metric_logging.DiskLogger, log_dir: "${output_dir}/logs"}
TEXT
is "torchtune's file is shown" show "$lora" tt.yaml
is "what it sets" all_set model model max-length 96 lora-targets q_proj,o_proj,gate_proj,up_proj,down_proj lora-r 4 dataset yahma/alpaca-cleaned format alpaca \
    train-on all train-split 0.95 lr 3e-4 weight-decay 0.05 beta1 0.8 beta2 0.95 schedule cosine warmup-steps 1 max-steps 6 dtype bfloat16 \
    clip-norm 0 decay all output tt_out
is "names of settings are filled in" left "metric_logger.log_dir: tt_out/logs"
is "it trains" step "$lora" tt.yaml --dataset alpaca.jsonl
sed 's/lora_llama3_2_1b/llama3_2_1b/; /lora/d' tt.yaml >ttfull.yaml
is "a whole model is finetune_full" eval 'step "$full" ttfull.yaml --dataset alpaca.jsonl'
sed 's/\.llama3_2\.lora_llama3_2_1b/.gemma.lora_gemma_2b/' tt.yaml >gemma.yaml
refused "another family stops" 2 "model._component_ torchtune.models.gemma.lora_gemma_2b (line 4): the families are llama" "$lora" --config gemma.yaml

# ---- TRL ----

printf 'model_name_or_path: model\ndataset_name: alpaca.jsonl\nreport_to: none\nlearning_rate: 0.0001\nlr_scheduler_type: constant\nwarmup_steps: 5\n' >trl.yaml
is "TRL's file is shown" show "$full" trl.yaml
is "what it and TRL's defaults set" all_set dataset alpaca.jsonl lr 0.0001 schedule constant warmup-ratio 0 epochs 3 batch-size 8 max-length 1024
is "it trains, by the recipe that one starts" eval 'step "$full" trl.yaml && step "$lora" trl.yaml'
printf 'compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_processes: 8\n' >accelerate.yaml
refused "a file of accelerate is told" 2 "a file of accelerate, asks for what is not done here: the file: it says how accelerate starts processes" "$full" --config accelerate.yaml

# ---- our own ----

printf 'lr: 1e-3\nbatch_size: 2\nschedule: constant\n' >own.yaml
is "--show-config of our own file" eval 'show "$full" own.yaml && all_set lr 1e-3 batch-size 2 schedule constant && ! grep -q "a file of" shown'
printf 'model: model\ndataset: alpaca.jsonl\nlr: 1e-3\noutput_dir: x\n' >mixed.yaml
refused "a name of others among ours is an error, as before" 2 'mixed.yaml:4:1: unknown option "output_dir"; here it is --output' "$full" --config mixed.yaml
is "values as others write them are taken, and said" eval 'rm -rf words; "$full" --model model --dataset alpaca.jsonl --max-steps 1 --output words --dtype bf16 --optimizer adamw_torch --activation-checkpointing true >printed 2>&1 || { cat printed; false; }
    grep -q -- "--dtype bf16 is read as bfloat16" printed && grep -q -- "--optimizer adamw_torch is read as adamw" printed && grep -q -- "--activation-checkpointing true is read as full" printed && grep -q "\"dtype\":.\"bfloat16\"" words/run.json'
refused "a value that has no equivalent is told why" 2 "expected one of adamw|sgd|muon; there is no such optimizer" "$full" --optimizer adafactor
refused "without the file of names, they are unknown" 2 'ax.json:1: unknown option "base_model"' env TUNE_DEFAULTS="$tmp/none" "$full" --config ax.json
mkdir broken && echo '{"settings": [' >broken/aliases.json && echo 'base_model: m' >broken.yml
refused "a damaged file of names" 1 "aliases.json: this file of other tools' names cannot be read" env TUNE_DEFAULTS="$tmp/broken" "$BUILD/finetune_full" --config broken.yml --show-config
finish
