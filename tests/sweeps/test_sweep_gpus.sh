#!/bin/sh
# test_sweep_gpus.sh - sweep on GPUs that are only pretended: each measurement has one for itself, as many go on at a time as there
# are, also with two sweeps at once, after failures, after Ctrl-C and after kill -9. The programs note which GPU they had and
# when. And which GPUs there are, by a library that stands for NVIDIA's.
. tests/tap.sh
cd "$tmp" || exit 1
unset CUDA_VISIBLE_DEVICES
sweep=$BUILD/sweep samples=$BUILD/samples
mkdir exp
# "+ GPUS SECONDS", then "- GPUS SECONDS". On a GPU it goes on until as many have begun as `together` says, and, if i is below 8,
# until the file `hold` is gone. SIGTERM takes it a while, as it takes a training that saves.
cat >exp/toy.sh <<'E2'
#!/bin/sh
here=$(dirname "$0")
note() { echo "$1 ${CUDA_VISIBLE_DEVICES-unset} $(date +%s.%N)" >>"$here/log"; }
trap 'sleep 0.7; note -; exit 1' TERM
note +
[ -z "$CUDA_VISIBLE_DEVICES" ] || until [ "$(grep -c "^+ [0-9G]" "$here/log")" -ge "$(cat "$here/together")" ] && { [ "$TUNE_INPUT_I" -ge 8 ] || [ ! -e "$here/hold" ]; }; do sleep 0.05; done
sleep 0.1
case $TUNE_INPUT_I in 13*) note -; echo bad luck >&2; exit 1 ;; esac
echo '{"x": 1}' >"$TUNE_OUTPUT/report.json"
note -
E2
chmod +x exp/toy.sh
echo '{"identifier": "toy", "program": "./toy.sh", "output": null, "inputs": [
 {"identifier": "number_gpus", "required": true, "domain": {"domainRange": [0, 33], "interval": 1}},
 {"identifier": "i", "required": true, "domain": {"domainRange": [0, 1000], "interval": 1}}],
 "targets": [{"identifier": "x", "unit": ""}]}' >exp/toy.json
space() { # FILE NUMBER_GPUS I
    printf 'entitySpace:\n  - {identifier: i, propertyDomain: {values: [%s]}}\n  - {identifier: number_gpus, propertyDomain: {values: [%s]}}\nexperiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: toy}]\n' "$3" "$2" >"$1"
}
run() { "$sweep" "$@" --experiments exp --retries 0; }
# history - "MOST-AT-A-TIME MOST-ON-ONE-GPU BEGUN ENDED GPUS", of the log. Measurements without a GPU are on "none".
history() {
    sort -k3,3n exp/log | awk '
        { n = split($2, gpu, ","); if ($2 == "") { n = 1; gpu[1] = "none" } }
        $1 == "+" { begun++; if (++all > most) most = all; for (i = 1; i <= n; i++) { names[gpu[i]]; if (++on[gpu[i]] > worst) worst = on[gpu[i]] } }
        $1 == "-" { ended++; all--; for (i = 1; i <= n; i++) on[gpu[i]]-- }
        END { for (g in names) count++; print most + 0, worst + 0, begun + 0, ended + 0, count + 0 }'
}
# A measurement without a GPU has an empty word there.
sed -i 's|\${CUDA_VISIBLE_DEVICES-unset}|$(echo "${CUDA_VISIBLE_DEVICES-unset}" \| sed "s/^$/none/")|' exp/toy.sh
is_history() { got=$(history); [ "$got" = "$1" ] || { echo "$got, expected $1"; cat exp/log; return 1; }; }
said() { grep -q -- "$1" "$2" || { echo "no \"$1\" in:"; cat "$2"; return 1; }; } # TEXT FILE
together() { rm -f exp/log; echo "$1" >exp/together; }

# ---- one sweep ----
# Names that no other test has: GPUs are reserved on the whole machine.
gpu=$$.0 two=$$.0,$$.1 four=$$.0,$$.1,$$.2,$$.3 back=$$.3,$$.2,$$.1,$$.0
space eight.yaml 1 "0, 1, 2, 3, 4, 5, 6, 7"
is "four GPUs: four at a time, each with one that nobody else has" eval 'together 4; run eight.yaml --store st --gpus $four >out 2>&1 && is_history "4 1 8 8 4" && said "^# on GPUs *4 at a time, each on its own GPU, of 4$" out && said "8 valid" out'
is "--in-flight: fewer" eval 'together 1; run eight.yaml --store st2 --gpus $four --in-flight 1 >out 2>&1 && is_history "1 1 8 8 1"'
space both.yaml "0, 1" "0, 1, 2, 3"
is "on the CPU alone: one at a time, beside none on a GPU" eval 'together 2; run both.yaml --store st3 --gpus $two --order sequential-grouped --grouping number_gpus >out 2>&1 && is_history "2 1 8 8 3" && sort -k3,3n exp/log | awk "\$1 == \"+\" { if (\$2 == \"none\" ? cpu + gpu : cpu) bad = 1; if (\$2 == \"none\") cpu++; else gpu++ } \$1 == \"-\" { if (\$2 == \"none\") cpu--; else gpu-- } END { exit bad }"'
space two.yaml "2, 5" "0, 1, 2"
is "number_gpus 2 has two; more than there are is unknown here" eval 'together 2; run two.yaml --store st4 --gpus $four >out 2>&1; is_history "2 1 3 3 4" && [ "$(grep -c "it needs 5 GPUs, but 4 are available; --gpus chooses GPUs" out)" = 3 ]'
is "without a GPU: unknown, said, and exit code 1" eval 'space one.yaml 1 0; rm exp/log; run one.yaml --store st5 --gpus "" >out 2>&1; [ $? = 1 ] && [ ! -e exp/log ] && said "it needs 1 GPU, but 0 are available" out'
is "... a dry run says it too" eval 'run one.yaml --store nowhere --gpus "" --dry-run >out && said "^unknown .*cannot run here: it needs 1 GPU, but 0 are available" out && said "^# 0 of 1 would be measured, 0 are known, 1 cannot be measured" out'
space bad.yaml 1 "130, 131, 1, 132, 2, 133, 3"
is "a measurement that fails gives its GPU back" eval 'together 2; run bad.yaml --store st6 --gpus $two --max-failures 0 >out 2>&1; is_history "2 1 7 7 2" && said "3 valid, 0 invalid, 4 failed" out'
refused "--env may not say which GPUs" 2 "--gpus says which GPUs" run eight.yaml --store st7 --env CUDA_VISIBLE_DEVICES=0
space cpu.yaml 0 "0, 1"
refused "--gpus where nothing takes one" 2 "no entity of this space has a number_gpus above 0" run cpu.yaml --store st7 --gpus $gpu
refused "a GPU named twice" 2 "GPU $$.1 is named twice" run eight.yaml --store st7 --gpus $two,$$.1
is "CUDA_VISIBLE_DEVICES is taken for --gpus" eval 'together 1; CUDA_VISIBLE_DEVICES=$$.5,$$.6 run one.yaml --store st8 >out 2>&1 && is_history "1 1 1 1 1" && grep -q "^+ $$.5 " exp/log'

mkdir more && sed 's|"inputs": \[|&{"identifier": "kind", "default": "plain", "domain": {"values": ["plain", "odd"]}},{"identifier": "n", "default": 2, "domain": {"values": [1, 2]}},|' exp/toy.json >more/toy.json
is "an input that is added later has its default in older rows" eval 'rm -f exp/log; mv exp/toy.json old.json && cp more/toy.json exp && run one.yaml --store st8 --gpus $$.5 --accept any-host >out 2>&1; cat out; said "1 known" out && [ ! -e exp/log ] && "$samples" show one.yaml --store st8 --experiments exp --include matching --columns x --output-format csv | grep -qx 1.0'
is "... another value is another measurement" eval 'together 1; sed "s/experimentIdentifier: toy/&, parameterization: [{property: {identifier: kind}, value: odd}]/" one.yaml >odd_one.yaml; run odd_one.yaml --store st8 --gpus $$.5 --accept any-host >out 2>&1; cat out; said "1 valid" out && is_history "1 1 1 1 1"; mv old.json exp/toy.json'

# ---- several sweeps ----
is "two sweeps at once never share a GPU, and use them all" eval 'together 4; run eight.yaml --store a --gpus $four >out1 2>&1 & run eight.yaml --store b --gpus $back >out2 2>&1 & wait; is_history "4 1 16 16 4" && said "8 valid" out1 && said "8 valid" out2'
is "... who finds none free waits, and says so" eval 'together 1; touch exp/hold; space two.yaml 1 "0, 1"; run two.yaml --store c --gpus $gpu >out1 2>&1 & await $! has 1 exp/log; run two.yaml --store d --gpus $gpu >out2 2>&1 & await $! grep "^# other sweeps measure on these GPUs: waiting until enough GPUs are free" out2; told=$?; rm exp/hold; wait; [ $told = 0 ] && is_history "1 1 4 4 1"'

# ---- the end of a sweep ----
is "Ctrl-C ends what runs, and gives the GPUs back" eval 'together 2; touch exp/hold; setsid "$sweep" eight.yaml --experiments exp --store e --gpus $two >out 2>&1 & pid=$!; await $pid has 2 exp/log && kill -INT $pid; wait $pid; [ $? = 130 ] && is_history "2 1 2 2 2" && said "^# go on with" out && rm exp/hold && run two.yaml --store e2 --gpus $two >out 2>&1 && is_history "2 1 4 4 2"'
is "after kill -9 a GPU is free when what ran on it has ended" eval 'together 2; touch exp/hold; "$sweep" eight.yaml --experiments exp --store f --gpus $two >out 2>&1 & pid=$!; await $pid has 2 exp/log; kill -9 $pid; wait $pid; space late.yaml 1 "8, 9"; run late.yaml --store f2 --gpus $two >out2 2>&1 && is_history "2 1 4 4 2" && said "2 valid" out2'
is "... and the operation goes on" eval 'rm exp/hold; op=$(sed -n "s/^# operation *//p" out) && "$sweep" --resume "$op" --experiments exp --store f --gpus $two >out 2>&1 && said "8 valid" out'

# ---- which there are ----
sed "s/GPU-aaaa/&$$/; s/GPU-bbbb/&$$/" "$here/tests/fake_nvml.c" >nvml.c
if $CC -shared -fPIC -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so.1 nvml.c 2>/dev/null; then
    driver() { LD_LIBRARY_PATH=$tmp run "$@"; }
    is "all GPUs of the machine, by UUID" eval 'together 2; driver two.yaml --store g >out 2>&1 && is_history "2 1 2 2 2" && grep -q "^+ GPU-aaaa$$ " exp/log && grep -q "^+ GPU-bbbb$$ " exp/log'
    is "an index, a bus id and a UUID name the same GPU" eval 'together 1; driver one.yaml --store h1 --gpus 1 >out 2>&1 && driver one.yaml --store h2 --gpus 0000:02:00.0 >out 2>&1 && driver one.yaml --store h3 --gpus GPU-bbbb$$ >out 2>&1 && is_history "1 1 3 3 1" && grep -q "^+ GPU-bbbb$$ " exp/log'
    refused "... so it is named twice" 2 "GPU GPU-bbbb$$ is named twice" driver one.yaml --store h4 --gpus 1,GPU-bbbb$$
    refused "a GPU that is not there" 2 "GPU 7: Not Found" driver one.yaml --store h4 --gpus 7
else
    skip "which GPUs there are" "no compiler for shared libraries"
fi

# ---- the experiments of this distribution ----
HF_HUB_CACHE=$tmp/nothing
export HF_HUB_CACHE
cat >ours.yaml <<'E2'
entitySpace:
  - {identifier: model_name, propertyDomain: {values: [smollm2-135m]}}
  - {identifier: number_gpus, propertyDomain: {values: [1, 2]}}
  - {identifier: model_max_length, propertyDomain: {values: [512]}}
  - {identifier: batch_size, propertyDomain: {values: [2]}}
experiments:
  - {actuatorIdentifier: SFTTrainer, experimentIdentifier: finetune_full_benchmark-v1.0.0}
  - {actuatorIdentifier: SFTTrainer, experimentIdentifier: finetune_lora_benchmark-v1.0.0}
E2
is "number_gpus 2 cannot run with one GPU" eval '"$sweep" ours.yaml --store nowhere --gpus 0 --dry-run >out 2>&1; cat out; [ "$(grep -c "^unknown .*number_gpus.2-.*cannot run here: it needs 2 GPUs, but 1 is available" out)" = 2 ] && [ "$(grep -c "^run .*number_gpus.1-" out)" = 2 ] && ! said "will not fit" out'
is "... with two it can" eval '"$sweep" ours.yaml --store nowhere --gpus $two --dry-run >out 2>&1; cat out; [ "$(grep -c "^run .*number_gpus.[12]-" out)" = 4 ]'
# shared DIMENSION VALUES - a dry run on four GPUs, with that dimension more; the lines of number_gpus 2 into out.
shared() {
    sed "s/^experiments:/  - {identifier: $1, propertyDomain: {values: [$2]}}\n&/; s/values: \[1, 2\]/values: [1, 2, 3]/; /batch_size/s/values: \[2\]/values: [6]/; /full_benchmark/d" ours.yaml >shared.yaml
    "$sweep" shared.yaml --store nowhere --gpus $four --dry-run >all 2>&1
    grep "number_gpus.[23]-" all >out || cat all
}
is "number_nodes: the machines of a run, which divide its GPUs" eval 'shared number_nodes 2; [ "$(wc -l <out)" = 2 ] && said "^unknown .*number_gpus.2-.*cannot run here: a sweep measures a run on one machine: number_nodes must be 1" out && said "^invalid .*number_gpus.3-.*  number_gpus is not divisible by number_nodes" out && said "^invalid .*number_gpus.1-" all'
is "distributed_backend: None is for one GPU" eval 'shared distributed_backend "DDP, \"None\", FSDP"; cat out; [ "$(grep -c "cannot run here: one process trains on one GPU: with more of them, distributed_backend must be DDP or FSDP" out)" = 2 ] && [ "$(grep -c "^run " out)" = 4 ] && [ "$(grep -c "^run .*number_gpus.1-" all)" = 3 ]'
is "fsdp_sharding_strategy: what is shared out together" eval 'shared fsdp_sharding_strategy "FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, HYBRID_SHARD_ZERO2"; cat out; [ "$(grep -cE "(GRAD_OP|ZERO2) .*cannot run here: weights, gradients and moments are shared out together, or none" out)" = 4 ] && [ "$(grep -c "^run " out)" = 6 ] && [ "$(grep -c "^run .*number_gpus.1-" all)" = 5 ]'
is "a batch that the GPUs do not divide is invalid, and the row says so" eval 'sed "s/values: \[1, 2\]/values: [2]/; s/values: \[2\]}}$/values: [3]}}/" ours.yaml | sed "s/number_gpus, propertyDomain: {values: \[3\]/number_gpus, propertyDomain: {values: [2]/" >odd.yaml; "$sweep" odd.yaml --store odd --gpus $two >out 2>&1; cat out; [ "$("$samples" show finetune_lora_benchmark-v1.0.0 --store odd --columns is_valid,status,reason --output-format csv | tail -n 1)" = "0,invalid,batch_size is not divisible by number_gpus" ]'
# ---- GPUs that are not here ----
is "a gpu_model that is not here: no row names it" eval 'shared gpu_model NVIDIA-A100-80GB-PCIe; cat all; said "^unknown .*number_gpus.1-.*cannot run here: it names the GPU NVIDIA-A100-80GB-PCIe, but the GPU here is of no known model" all && sed "s/values: \[1, 2, 3\]/values: [0]/" shared.yaml >cpu.yaml && "$sweep" cpu.yaml --store nowhere --dry-run >out && said "^unknown .*cannot run here: it names the GPU NVIDIA-A100-80GB-PCIe, but number_gpus 0 measures on the CPU" out'
seed=$here/defaults/spaces/a100.yaml
is "the example of 80 describes and counts" eval '"$BUILD/space" describe "$seed" >out && said "Number entities: 80" out && said "^  SFTTrainer.finetune-lora-fsdp-r-4-a-16-tm-default-v1.2.0  yes" out && [ "$(sed -n "/Outputs:/,/^$/p" out | grep -c "^    ")" = 18 ]'
is "... a dry run says for each point that it cannot run here" eval '"$sweep" "$seed" --store nowhere --dry-run >out 2>&1; said "^unknown .*number_gpus.2-.*cannot run here: it needs 2 GPUs (NVIDIA-A100-80GB-PCIe), but 0 are available" out && said "^# 0 of 80 would be measured, 0 are known, 80 cannot be measured" out && [ ! -e nowhere ]'
is "... a sweep says it, and stores no row" eval '"$sweep" "$seed" --store seed >out 2>&1; [ $? = 1 ] && [ "$(grep -c "unknown .*cannot run here: it needs [24] GPUs (NVIDIA-A100-80GB-PCIe), but 0 are available" out)" = 80 ] && said "^# unknown             80: the store has no row of them, and they cannot run here" out && [ -z "$(find seed -name "*.h5")" ] && [ ! -e data ]'
finish
