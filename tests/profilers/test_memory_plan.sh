#!/bin/sh
# test_memory_plan.sh - --plan-memory of the recipes, and sweep --dry-run, which asks for it.
. tests/tap.sh
cd "$tmp" || exit 1
sweep=$BUILD/sweep
HF_HUB_CACHE=$tmp/nothing
export HF_HUB_CACHE
is "a model" tiny model 1
planned() { # SUM PROGRAM... - the MiB that it plans
    "$@" --plan-memory >out 2>err || { cat err >&2; return 1; }
    sed -n 's/^memory: \([0-9.]*\) MiB: .*/\1/p' out
}
run() { "$BUILD/finetune_full" --model model --dataset "$here/datasets/stories.jsonl" --max-length 64 --batch-size 4 --max-steps 1 --no-save --output "$1"; }
is "the plan without data is that of the run" eval 'run r1 >run.out 2>&1 && planned=$(planned "$BUILD/finetune_full" --model model --max-length 64 --batch-size 4 --no-save) && real=$(sed -n "s/.*\"estimated_memory_bytes\":[^0-9]*\([0-9]*\).*/\1/p" r1/report.json) && echo "$planned $real" && awk "BEGIN { d = $planned * 1048576 / $real; exit !(d > 0.9 && d < 1.1) }"'
is "... nothing is made" eval 'planned "$BUILD/finetune_full" --model model --max-length 64 --dataset nothing.jsonl --output r2 >/dev/null && [ ! -e r2 ]'
is "a known model need not be here" eval 'full=$(planned "$BUILD/finetune_full" --model smollm2-135m --dtype float32) && lora=$(planned "$BUILD/finetune_lora" --model smollm2-135m --dtype float32) && awk "BEGIN { exit !($full > 2052 && $lora > 513 && $lora < $full) }"'
is "... with 16 bytes for each of 134.5 M weights" eval 'awk "BEGIN { exit !($(planned "$BUILD/finetune_full" --model smollm2-135m --batch-size 1 --max-length 8) < 2200) }"'
refused "what does not fit: exit code 3" 3 "not enough memory" "$BUILD/finetune_full" --model llama3-8b --batch-size 4096 --max-length 8192 --plan-memory
refused "a model that nobody knows" 2 "no-such" "$BUILD/finetune_full" --model no-such --plan-memory
refused "no model" 2 "--model is missing" "$BUILD/finetune_full" --plan-memory

# ---- sweep --dry-run ----
cat >space.yaml <<'E2'
entitySpace:
  - {identifier: model_name, propertyDomain: {values: [smollm2-135m, llama3-8b]}}
  - {identifier: number_gpus, propertyDomain: {values: [0]}}
  - {identifier: model_max_length, propertyDomain: {values: [8, 8192]}}
  - {identifier: batch_size, propertyDomain: {values: [1, 4096]}}
experiments: [{actuatorIdentifier: SFTTrainer, experimentIdentifier: finetune_full_benchmark-v1.0.0}]
constraints: ['model_name == "smollm2-135m" or batch_size > 1']
E2
is "a dry run says which entities will not fit, without their models" eval '"$sweep" space.yaml --store nowhere --dry-run >out && grep -q "smollm2-135m.*length.8192-batch_size.4096  will not fit: not enough memory: [0-9.]* MiB are still to be taken, [0-9.]* MiB are available" out && grep -q "^run .*smollm2-135m.*length.8-batch_size.1 .*its model is not on this machine  .*benchmark-v1.0.0" out && n=$(grep -c "will not fit:" out) && [ "$n" -ge 3 ] && grep -q "^# memory *$n of these will not fit" out && [ ! -e nowhere ]'
mkdir exp
printf '#!/bin/sh\necho "$@" >>"$(dirname "$0")/log"\ncase "$*" in *--check*) [ "$2" -lt 3 ] || { echo "toy: too much: $2. And more." >&2; exit $((2 + $2 %% 2)); } ;; esac\n' >exp/toy.sh
chmod +x exp/toy.sh
echo '{"identifier": "toy", "program": "./toy.sh", "arguments": [], "output": null, "plan": ["--check", "only"],
 "inputs": [{"identifier": "a", "required": true, "flag": "--a", "domain": {"domainRange": [0, 10], "interval": 1}}],
 "targets": [{"identifier": "x", "unit": ""}]}' >exp/toy.json
printf 'entitySpace: [{identifier: a, propertyDomain: {values: [1, 2, 3, 4]}}]\nexperiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: toy}]\n' >toy.yaml
is "any program with a plan is asked, once for each entity" eval '"$sweep" toy.yaml --experiments exp --store nowhere --dry-run --repeat 3 >out; cat out exp/log; [ "$(grep -c "will not fit:" out)" = 1 ] && grep -q "^run .*a.3  will not fit: too much: 3  custom_experiments.toy$" out && [ "$(cat exp/log)" = "$(for a in 1 2 3 4; do echo "--a $a --check only"; done)" ]'
is "... only in a dry run" eval 'rm exp/log; "$sweep" toy.yaml --experiments exp --store st >out 2>&1; ! grep -q check exp/log'
finish
