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

# ---- a GPU that is not here ----
gpu() { TUNE_CUDA=$tmp/no_such_device.so "$BUILD/finetune_lora" --model llama3-8b --device cuda --dtype bfloat16 --activation-checkpointing full --max-length 2048 --batch-size 1 --plan-memory "$@"; }
is "--plan-gpu compares with a GPU that is not here" eval 'gpu --base-dtype nf4 --plan-gpu l4 >out && grep -q "^memory: [0-9.]* MiB on the device: weights " out && grep -qx "# this was compared with l4, of 22.0 GiB, which need not be here; 896 MiB of it are kept for its driver, kernels and graphs (an estimate)" out && ! grep -q "no GPU can be opened" out'
is "... with its size of logits, as fit does" eval 'plan=$(sed -n "s/^memory: \([0-9.]*\) MiB.*/\1/p" out) && needed=$("$BUILD/fit" --gpu l4 --model llama3-8b --method qlora --json | sed -n "s/.*\"needed\":[^0-9]*\([0-9]*\).*/\1/p") && echo "$plan $needed" && awk "BEGIN { exit !(($plan - $needed / 1048576) ^ 2 < 0.01) }"'
refused "... what does not fit there: exit code 3, and by how much" 3 "not enough memory on the device rtx-3060-12gb: " gpu --base-dtype bfloat16 --plan-gpu NVIDIA-GeForce-RTX-3060
refused "... one that is too old" 3 "t4 runs no training: compute capability 7.5" gpu --plan-gpu Tesla-T4
refused "... one that nobody knows" 2 "--plan-gpu gtx-1: no GPU of that name is known" gpu --plan-gpu gtx-1
is "... on the CPU it says that it counts for nothing" eval '"$BUILD/finetune_full" --model model --max-length 64 --plan-memory --plan-gpu l4 >out && grep -qx "# --plan-gpu is for --device cuda, and counts for nothing here" out'
refused "... a run with it is refused" 2 "--plan-gpu l4: a run trains on the GPU that is here; leave it out, or add --plan-memory" "$BUILD/finetune_full" --model model --dataset "$here/datasets/stories.jsonl" --plan-gpu l4 --output r3

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
cat >gpus.yaml <<'E2'
entitySpace:
  - {identifier: model_name, propertyDomain: {values: [llama3-8b]}}
  - {identifier: number_gpus, propertyDomain: {values: [0, 1]}}
  - {identifier: gpu_model, propertyDomain: {values: [Tesla-T4, L40S, NVIDIA-A100-80GB-PCIe]}}
  - {identifier: model_max_length, propertyDomain: {values: [2048]}}
  - {identifier: batch_size, propertyDomain: {values: [1, 24]}}
experiments: [{actuatorIdentifier: SFTTrainer, experimentIdentifier: finetune_lora_benchmark-v1.0.0}]
constraints: ['number_gpus == 1 or batch_size == 1']
E2
is "a dry run asks for GPUs that are not here" eval 'TUNE_CUDA=$tmp/no_such_device.so "$sweep" gpus.yaml --store nowhere --dry-run >out; cat out; grep -q "number_gpus.1-gpu_model.Tesla-T4-.*batch_size.1  will not fit: t4 runs no training: compute capability 7.5; " out && grep -q "number_gpus.1-gpu_model.L40S-.*batch_size.24  will not fit: not enough memory on the device l40s: " out && ! grep -E "gpu_model.(L40S|NVIDIA-A100-80GB-PCIe)-.*batch_size.1 .*will not fit" out && ! grep -E "number_gpus.1-gpu_model.NVIDIA-A100-80GB-PCIe.*batch_size.24 .*will not fit" out && ! grep -E "number_gpus.0-.*(t4|l40s)" out'
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
