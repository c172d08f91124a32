#!/bin/sh
# test_config.sh - a recipe whose --config is YAML: the run of the same JSON, what is refused, a machine without libyaml.
. tests/tap.sh
cd "$tmp" || exit 1
full=$BUILD/finetune_full
tiny model 1 >said 2>&1 || { cat said; exit 1; }
cat >c.json <<'TEXT'
{"lr": 2e-3, "batch_size": 2, "max_length": 32, "max_steps": 3, "seed": 9007199254740993, "shuffle": false,
 "schedule": "cosine", "clip_norm": "inf", "text_field": null, "threads": 2}
TEXT
cat >c.yaml <<'TEXT'
# the same
lr: 2e-3
batch_size: 2
max_length: 32   # tokens
max_steps: 3
seed: 9007199254740993
shuffle: no
schedule: cosine
clip_norm: .inf
text_field: ~
threads: 2
TEXT
run() { "$full" --config "$1" --model model --dataset "$here/datasets/stories.jsonl" --output "$2" >said 2>&1 || { cat said; false; }; }
losses() { grep -o '"loss":[0-9.e+-]*' "$1/metrics.jsonl"; }
options() { sed -n "/^	\"options\"/,/^	}/p" "$1/run.json" | grep -v '"output":'; }
is "a run by JSON" run c.json by_json
is "a run by YAML" run c.yaml by_yaml
is "the same losses" eval 'losses by_json >a && losses by_yaml | diff a - && [ "$(wc -l <a)" -ge 3 ]'
is "the same options are recorded" eval 'options by_json >a && options by_yaml | diff a - && grep -q "\"seed\":.9007199254740993" a'
is "their source is the config" grep -q '"batch_size":."config"' by_yaml/run.json
sed -n '/^# run.yaml$/,/^```$/p' "$here/docs/other-tools.md" | grep -v '^```' >run.yaml
is "the config that the page prints" eval '"$full" --config run.yaml --model model --dataset "$here/datasets/stories.jsonl" --max-length 32 --max-steps 2 --output page >said 2>&1 && grep -q "\"packing\":.true" page/run.json'
sed -i 's/^lr:/learning_rate:/' run.yaml
refused "the refusal that it prints" 2 "$(tr '\n' ' ' <"$here/docs/other-tools.md" | grep -o 'run.yaml:5:1: [^`]*')" "$full" --config run.yaml
printf 'lr: 1\nbatchsize: 2\n' >bad.yaml
refused "an unknown option, with its place and the nearest" 2 'bad.yaml:2:1: unknown option "batchsize"; the nearest is batch-size' "$full" --config bad.yaml
printf 'max_seq_length: 2\n' >bad.yaml
refused "a name of other tools, with the name here" 2 'bad.yaml:1:1: unknown option "max_seq_length"; here it is --max-length' "$full" --config bad.yaml
printf 'lr: 1\nbatch_size: two\n' >bad.yaml
refused "a bad value, with its place" 2 'bad.yaml:2:13: batch-size: expected a number, found a string' "$full" --config bad.yaml
printf 'lr: [1\n' >bad.yaml
refused "bad YAML, with its place" 2 'bad.yaml:2:1: ' "$full" --config bad.yaml
mkdir none && : >none/libyaml-0.so.2 # found first, and no library
refused "a libyaml that cannot be opened" 3 "c.yaml: this is YAML, and libyaml-0.so.2, which reads it, cannot be opened: $tmp/none/libyaml-0.so.2: file too short" \
    env LD_LIBRARY_PATH="$tmp/none" "$full" --config c.yaml
if [ -e "$BUILD/space" ]; then
    refused "... also for a space" 3 "which reads it, cannot be opened: " env LD_LIBRARY_PATH="$tmp/none" "$BUILD/space" describe "$here/defaults/spaces/laptop.yaml"
else
    skip "... also for a space" "this build has no space: HDF5 is missing"
fi
is "... and JSON is read as ever" eval 'LD_LIBRARY_PATH=$tmp/none run c.json without'
finish
