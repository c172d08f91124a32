#!/bin/sh
# test_fit.sh - build/fit: its figures are the plan of the recipe whose command it prints; one row or one token more does not
# fit. No GPU is needed, and no model.
. tests/tap.sh
cd "$tmp" || exit 1
HF_HUB_CACHE=$tmp/nothing
TUNE_CUDA=$tmp/no_such_device.so
export HF_HUB_CACHE TUNE_CUDA
fit=$BUILD/fit
# field NAME METHOD FILE - of the object with that method
field() { tr -d '\n\t' <"$3" | sed 's/}, {/}\n{/g' | grep "\"method\":\"$2\"" | sed -n -e "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" -e "s/.*\"$1\":\([0-9]*\).*/\1/p" | grep .; }
# of NAME GPU FILE - the field of that GPU, of a list with one method
of() { tr -d '\n\t' <"$3" | sed 's/}, {/}\n{/g' | grep "\"gpu\":\"$2\"" | sed -n -e "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" -e "s/.*\"$1\":\([0-9]*\).*/\1/p" | grep .; }
# mib OPTION... - what the recipe of the command in $command plans on the device
mib() { eval "\"$BUILD\"/$command \"\$@\" --plan-memory" 2>err | sed -n 's/^memory: \([0-9.]*\) MiB on the device: .*/\1/p'; }
# below MIB BYTES - to the tenth that the recipe prints
below() { awk "BEGIN { exit !($1 <= $2 / 1048576 + 0.06) }"; }
above() { awk "BEGIN { exit !($1 > $2 / 1048576 - 0.06) }"; }

# fits METHOD FILE MODEL_CONTEXT - batch and length are the largest that fit
fits() {
    command=$(field command "$1" "$2") batch=$(field batch "$1" "$2") length=$(field length "$1" "$2") needed=$(field needed "$1" "$2")
    room=$(awk "BEGIN { printf \"%.0f\", $(field gpu_memory_bytes "$1" "$2") - $(field driver_bytes "$1" "$2") }")
    echo "$command: batch $batch, length $length, $needed bytes, of $room"
    plan=$(mib) && below "$plan" "$needed" && above "$plan" "$needed" || { echo "the recipe plans $plan MiB"; return 1; }
    below "$(mib --batch-size "$batch")" "$room" && above "$(mib --batch-size $((batch + 1)))" "$room" || { echo "a larger batch"; return 1; }
    below "$(mib --max-length "$length")" "$room" && { [ "$length" = "$3" ] || above "$(mib --max-length $((length + 1)))" "$room"; }
}
"$fit" --model tinyllama-1.1b --gpu-memory 20GiB --max-length 512 --json >tiny.json
for method in full lora qlora; do
    is "$method: the figures are the recipe's, and the largest" fits $method tiny.json 2048
done
"$fit" --model llama-3.2-1b --gpu rtx-3060-12gb --activation-checkpointing none --dtype float32 --base-dtype float32 --lora-r 4 \
    --lora-targets q_proj,v_proj --json >one.json
for method in lora qlora; do
    is "$method, float32, all activations, two modules: too" fits $method one.json 131072
done
"$fit" --model smollm2-360m --gpu rtx-3060-12gb --method full --optimizer sgd --momentum 0.9 --ema 0.999 --batch-size 3 --json >sgd.json
is "other optimizers and averages: too" fits full sgd.json 8192
"$fit" --model smollm2-360m --gpu-memory 5GB --method lora,full --lora-dora --json >dora.json
is "DoRA: too" fits lora dora.json 8192
is "... and what does not fit has batch 0" eval '[ "$(field batch full dora.json)" = 0 ] && [ "$(field length full dora.json)" = 0 ]'
tiny small 1 >/dev/null

# ---- the table ----
is "a row for each known model and method" eval '"$fit" --gpu-memory 24GiB >out && [ "$(grep -cE " (full|lora|qlora) " out)" = $((3 * $(ls "$here"/defaults/models/*.json | wc -l))) ] && head -n 1 out | grep -q "^# 24GiB: 24.0 GiB, 0.9 of them for its driver (an estimate)$"'
is "what is known: 24 GiB take QLoRA of 8 billion weights, not all of them" eval 'grep -qE "^llama3-8b +full +no +no " out && grep -qE "^llama3-8b +qlora +[1-9][0-9]* +8192 " out'
is "a table for each GPU" eval '"$fit" --gpu h100-80gb,RTX-4090 --gpu h200 --gpu-memory "16 GB,16384MiB" --model smollm2-135m >out && [ "$(grep "^# .*its driver" out | sed "s/:.*//" | tr "\n" " ")" = "# h100-80gb # rtx-4090 # h200 # 16 GB # 16384MiB " ]'
bytes() { "$fit" --gpu-memory "$1" --model smollm2-135m --method lora --json | sed -n 's/.*"gpu_memory_bytes":[^0-9]*\([0-9]*\).*/\1/p'; }
is "... at 80 columns, no line is longer, and each block says model and method" eval '"$fit" --gpu l4,h200 --model llama3-8b --width 80 >out && [ "$(awk "{ if (length > n) n = length } END { print n }" out)" -le 80 ] && [ "$(grep -cE "^llama3-8b +qlora " out)" = 4 ]'
is "units" [ "$(for m in 16GiB 16384MiB 16GB 16000MB 1TiB '16 gib'; do bytes "$m"; done | tr '\n' ' ')" = "17179869184 17179869184 16000000000 16000000000 1099511627776 17179869184 " ]
parts() { "$fit" --gpu-memory 24GiB --model tinyllama-1.1b --max-length "$1" --json | sed 's/--max-length [0-9]*//'; }
is "rows are no longer than the model's context" eval 'parts 2048 >a && parts 100000 >b && parts 1024 >c && cmp a b && ! cmp -s a c'
is "... the command says so" eval '"$fit" --gpu-memory 24GiB --model tinyllama-1.1b --max-length 100000 --json >out && [ "$(grep -c -- "--max-length 2048 " out)" = 3 ]'
is "the parts add up" eval '"$fit" --gpu rtx-3060-12gb --model smollm2-135m --json | tr -d "\t," | awk -F: "/\"(weights|gradients|optimizer|activations|loss|working)\"/ { sum += \$2 } /\"needed\"/ { if (sum != \$2) exit 1; sum = 0; n++ } END { exit n != 3 }"'
is "a folder is a model, too" eval '"$fit" --gpu rtx-3060-12gb --model small --max-length 32 >out && grep -qE "^small +full +4096 " out'
mkdir -p shape && cp small/config.json shape/config.json && cp small/config.json shape/other.json
is "a config.json alone is a model: the same figures" eval '"$fit" --gpu l4 --model small --json | sed "s/small/shape/" >a && "$fit" --gpu l4 --model shape/config.json --json >b && sed "s|/config.json||" b | cmp a - && (cd shape && "$fit" --gpu l4 --model config.json --json | grep -q "finetune_full --model \. ")'
is "... of another name, too; no recipe takes that" eval '"$fit" --model shape/other.json --method full --json >b && [ "$(grep -c "command.:.null" b)" = "$("$fit" --gpu list | wc -l)" ] && [ "$(of needed l4 b)" -gt 0 ]'
refused "a config.json that is not there" 2 "none/config.json" "$fit" --model none/config.json
echo '{"model_type": "llama"' >shape/broken.json
refused "a broken one" 1 "shape/broken.json" "$fit" --model shape/broken.json
echo '{"model_type": "bert"}' >shape/bert.json
refused "one of another family" 1 "shape/bert.json" "$fit" --model shape/bert.json
is "the known GPUs" eval '"$fit" --gpu list | grep -qE "^a100-80gb +79.1 GiB  A100 SXM 80 GB$" && "$fit" --gpu list | grep -qE "^t4 +14.6 GiB  T4 16 GB \(too old\)$"'
is "a GPU that is too old: why, and nothing fits" eval '"$fit" --gpu t4 --model smollm2-135m >out && grep -qE "^smollm2-135m +qlora +no +no " out && grep -qx "# no run works on it: compute capability 7.5; the kernels need 8.0, for bfloat16" out'

# ---- the other way round: on which GPUs it fits ----
"$fit" --model llama3-8b --method qlora --length 2048 --batch 2 --json >all.json
is "all GPUs are listed, smallest memory first" eval 'sed -n "s/.*\"gpu_memory_bytes\":[^0-9]*\([0-9]*\).*/\1/p" all.json >sizes && [ "$(wc -l <sizes)" = "$("$fit" --gpu list | wc -l)" ] && sort -n -c sizes'
# planned GPU FILE - what it says fits is what the recipe of its command plans
planned() {
    command=$(of command "$1" "$2") needed=$(of needed "$1" "$2") batch=$(of batch "$1" "$2")
    room=$(awk "BEGIN { printf \"%.0f\", $(of gpu_memory_bytes "$1" "$2") - $(of driver_bytes "$1" "$2") }")
    plan=$(mib) && echo "$command: $needed bytes of $room; the recipe plans $plan MiB" && below "$plan" "$needed" && above "$plan" "$needed" || return 1
    case $(of fits "$1" "$2") in
    yes) below "$plan" "$room" && [ "$batch" -ge 2 ] ;;
    no) above "$plan" "$room" && [ "$batch" -lt 2 ] ;;
    *) false ;;
    esac && below "$(mib --batch-size "$batch")" "$room" && above "$(mib --batch-size $((batch + 1)))" "$room"
}
for gpu in rtx-3080-10gb l4 b200; do
    is "$gpu: fits or not, and the largest batch, as the recipe plans" planned $gpu all.json
done
is "a GPU that is too old takes nothing" eval '[ "$(of fits t4 all.json)" = "too old" ] && [ "$(of batch t4 all.json)" = 0 ] && [ "$(of why_not v100-32gb all.json)" = "compute capability 7.0; the kernels need 8.0, for bfloat16" ]'
# enough OPTION... FILE - each change that it names for a GPU makes the run fit there; at least one is named
enough() {
    "$fit" "$@" --json >change.json || return 1
    for gpu in rtx-3060-12gb rtx-3090 a100-40gb h20; do
        of fits_with $gpu change.json | sed 's/ or /\n/g' | sed "s/ and / /g; s/^/$gpu /"
    done >changes
    [ -s changes ] || { echo "no change is named"; return 1; }
    while read -r gpu change; do
        "$fit" "$@" --gpu $gpu $change --json >changed.json && [ "$(of needed $gpu changed.json)" -le $(($(of gpu_memory_bytes $gpu changed.json) - $(of driver_bytes $gpu changed.json))) ] || { echo "$gpu: not with $change"; return 1; }
    done <changes
}
is "what would make it fit makes it fit: batch, length, method" enough --model llama3-8b --method lora --length 4096 --batch-size 16
is "... optimizer" eval 'enough --model llama3-8b --method full --max-length 2048 --batch-size 16 && grep -q "^h20 --optimizer sgd$" changes && grep -q "^rtx-3090 --method lora --batch-size 1$" changes'
is "... checkpointing, bfloat16, rank" eval 'enough --model smollm2-360m --method lora --activation-checkpointing none --dtype float32 --base-dtype float32 --lora-r 16 --batch-size 9 --max-length 4096 && grep -q -- "--activation-checkpointing full" changes && grep -q -- "--dtype bfloat16" changes'
is "... rank, alone and with others" eval 'enough --model llama3-8b --method lora --lora-r 256 --length 512 && grep -q "^rtx-3090 --lora-r 8$" changes && enough --model qwen3-14b --method qlora --lora-r 256 --length 1024 --batch 2 && grep -q "^rtx-3060-12gb --batch-size 1 --lora-r 8 --max-length [0-9]*$" changes'
is "where no option is enough, it says so" eval '"$fit" --model qwen3-32b --method full >out && tr -s "\n " " " <out | grep -qF "rtx-3080-10gb 9.7" && grep -q "GiB too much; no batch, length, method or rank is enough$" out && grep -qx "# It fits on none of them." out'
is "the smallest is the first that fits" eval '"$fit" --model llama3-8b --method qlora --batch 2 --width 80 >out && grep -q "^# Smallest that fits: rtx-3060-12gb, 11.7 GiB. Fastest by tokens/s: b200.$" out && [ "$(awk "/ yes / { print \$1; exit }" out)" = rtx-3060-12gb ]'
is "at 80 columns, no line is longer" eval '"$fit" --model llama3-8b --batch 16 --width 80 >out && [ "$(awk "{ if (length > n) n = length } END { print n }" out)" -le 80 ]'
is "it says what is float32" eval '"$fit" --model smollm2-135m --width 200 >out && grep -q "^# smollm2-135m, full: float32 weights and moments; " out && grep -q "lora: the base frozen in bfloat16, adapters of rank 16 with float32 weights and$" out && "$fit" --gpu l4 --model smollm2-135m | grep -q "^# What is trained has float32 weights, gradients and moments: 16 bytes"'
is "tokens/s is called an estimate" eval 'tr -s "\n# " " " <out | grep -qF "~tokens/s: an estimate, not measured. A step takes FLOPs / (0.5 x the data sheet" && [ "$(of speed l4 all.json)" = estimate ]'
is "... in float32 there is none" eval '"$fit" --model smollm2-135m --dtype float32 --method full >out && grep -q "tokens/s is estimated for --dtype bfloat16 only" out && ! grep -q " ~[0-9]" out'
is "of two names of an option, the last one counts" eval '"$fit" --model llama3-8b --method qlora --batch 1 --batch-size 2 --max-length 1 --length 2048 --json >last.json && cmp all.json last.json'
is "CSV has the numbers of JSON" eval '"$fit" --model llama3-8b --method qlora --length 2048 --batch 2 --output-format csv >all.csv && head -n 1 all.csv | grep -q "^gpu,gpu_memory_bytes,driver_bytes,needed,fits,batch,length,tokens_per_second,low,high,speed,rows,price_per_hour,cost_per_million_tokens,currency,why_not,fits_with," && grep -q "^l4,$(of gpu_memory_bytes l4 all.json),$(of driver_bytes l4 all.json),$(of needed l4 all.json),yes,$(of batch l4 all.json),$(of length l4 all.json)," all.csv'
is "... on named GPUs, too" eval '"$fit" --gpu l4,h200 --model smollm2-135m --method full --output-format csv >two.csv && [ "$(cut -d, -f1 two.csv | tr "\n" " ")" = "gpu l4 h200 " ]'

# ---- prices ----
printf 'gpu_model,usd_per_hour,watts\nNVIDIA-A100-80GB-PCIe,1.89,300\nH100,3.29,700\nl4,0.71,72\n"MI300X",3,750\n' >prices.csv
priced() { "$fit" --model llama3-8b --method qlora --length 2048 --batch 2 --price "$@"; }
is "prices: per hour, and a million tokens at the estimate" eval 'priced prices.csv --json >priced.json && awk "BEGIN { want = 3.29 / 3600 / $(of tokens_per_second h100-80gb priced.json) * 1e6; got = $(sed -n "/h100-80gb/,/currency/s/.*cost_per_million_tokens\":[^0-9]*\([0-9.]*\),/\1/p" priced.json); print want, got; exit !(got > 0 && (got - want) ^ 2 < (0.001 * want) ^ 2) }" && [ "$(of currency l4 priced.json)" = USD ] && ! of cost_per_million_tokens l40 priced.json'
is "... in the table, with what was left out, and the cheapest" eval 'priced prices.csv --width 100 >out && grep -qE "^l4 .* 0.71 +0.1[0-9]+" out && grep -qE "^a100-80gb-pcie .* 1.89 " out && grep -qx "# prices.csv: 1 row names no known GPU, and is left out: MI300X. --gpu list prints the names." out && grep -qx "# prices.csv: columns left out: watts." out && tr -s "\n# " " " <out | grep -qE "Cheapest by the hour: l4, 0.71 USD. Cheapest by the token, at tokens/s: h100-80gb, 0.0[0-9]+ USD for a million. .* Without a price: rtx-3080-10gb, .*, b200. $"'
is "... it fits 80 columns in one block, names whole" eval 'priced prices.csv --width 80 >out && [ "$(grep -c "^gpu  " out)" = 1 ] && [ "$(awk "{ if (length > n) n = length } END { print n }" out)" -le 80 ] && grep -q "^a100-80gb-pcie " out'
is "... programs read on stderr what was left out" eval 'priced prices.csv --output-format csv 2>err >out && grep -qx "fit: prices.csv: 1 of 4 rows name no known GPU, and are left out: MI300X" err && grep -qx "fit: prices.csv: columns left out: watts" err'
printf 'gpu,\033]0;x_per_hour,\033[31mred\nl4,1,2\n\033[2Jgone,1,2\n' >escapes.csv
is "what a file of prices says moves no cursor" eval 'priced escapes.csv --width 100 >out 2>&1 && priced escapes.csv --output-format csv >>out 2>&1 && priced escapes.csv --json >>out 2>&1 && grep -qF "is left out: ?[2Jgone" out && ! grep -q "$(printf "\033")" out'
printf '{"l4": 0.71, "h100-80gb": 3.29, "NVIDIA A100 80GB PCIe": 1.89}' >prices.json
printf 'l4: 0.71\nh100: 3.29\na100-80gb-pcie: 1.89\n' >prices.yaml
is "prices in JSON and YAML are the same" eval 'priced prices.json --width 100 >a && priced prices.yaml --width 100 >b && priced prices.csv --width 100 >c && for f in a b c; do grep -E "^[a-z]" $f >$f.rows; done && cmp a.rows b.rows && cmp a.rows c.rows'
bad() { printf "$2" >bad.$1; refused "a broken file of prices: $3" 2 "$3" "$fit" --model smollm2-135m --price bad.$1; }
bad csv '' "bad.csv is empty"
bad csv 'name,price\nl4,1\n' "bad.csv: the heading has no column gpu; expected gpu,usd_per_hour"
bad csv 'gpu,price\nl4,1\n' "bad.csv: the heading has no column that ends in per_hour"
bad csv 'gpu,usd_per_hour,eur_per_hour\nl4,1,1\n' "bad.csv: two columns of the heading are prices per hour"
bad csv 'gpu,usd_per_hour\nl4,cheap\n' "bad.csv:2: the price of l4: expected a number per hour"
bad csv 'gpu,usd_per_hour\nl4,1 USD\n' "bad.csv:2: the price of l4: expected a number per hour"
bad csv 'gpu,usd_per_hour\nl4,-1\n' "bad.csv:2: the price of l4: expected a number per hour"
bad csv 'gpu,usd_per_hour\nl4,nan\n' "bad.csv:2: the price of l4: expected a number per hour"
bad csv 'gpu,usd_per_hour\nl4,1\nh100,2\nL4 24GB,3\n' "bad.csv:4: L4 24GB is l4, whose price line 2 has, too"
bad csv 'gpu,usd_per_hour\nl4\n' "bad.csv:2: this row has 1 value, but the heading has 2"
bad csv 'gpu,usd_per_hour\n' "bad.csv has no prices"
bad json '[1]' "bad.json:1:1: expected a map from names of GPUs to prices per hour"
bad json '{"l4": [1]}' "bad.json:1: the price of l4: expected a number per hour"
bad yaml 'l4: {}\n' "bad.yaml:1: the price of l4: expected a number per hour"
refused "a file of prices that is not there" 1 "none.csv" "$fit" --model smollm2-135m --price none.csv
refused "prices with one GPU" 2 "--price goes with the list of all GPUs" "$fit" --gpu l4 --model smollm2-135m --price prices.csv

# ---- measured ----
if [ -x "$BUILD/tests/helpers/fill" ]; then
    cat >gpus.yaml <<'E2'
entitySpace:
  - {identifier: model_name, propertyDomain: {values: [llama3-8b, smollm2-135m]}}
  - {identifier: number_gpus, propertyDomain: {values: [1]}}
  - {identifier: gpu_model, propertyDomain: {values: [null, NVIDIA-A100-80GB-PCIe]}}
  - {identifier: model_max_length, propertyDomain: {values: [2048]}}
  - {identifier: batch_size, propertyDomain: {values: [1, 2]}}
experiments: [{actuatorIdentifier: SFTTrainer, experimentIdentifier: finetune_lora_benchmark-v1.0.0}]
E2
    measured() { "$fit" --model meta-llama/Meta-Llama-3-8B --method lora --length 2048 --batch 2 --store store "$@"; }
    # speed GPU - of the list in JSON, with digits
    speed() { sed -n "/\"$1\"/,/speed/s/.*tokens_per_second\":[^0-9]*\([0-9.]*\),/\1/p" measured.json; }
    others_are_estimates() {
        for o in "--batch 3" "--method full" "--base-dtype float32" "--activation-checkpointing none" "--length 1024"; do
            measured $o --json >other.json && [ "$(of rows l40s other.json)" = 0 ] || { echo "$o"; return 1; }
        done
    }
    # mean GPU_MODEL - of the rows that samples has
    mean() { "$BUILD/samples" export --store store --output-format csv --columns model_name,batch_size,gpu_model,train_tokens_per_second | awk -F, -v m="$1" '$1 == "llama3-8b" && $2 == 2 && (m == "" || $3 == m) { sum += $4; n++ } END { printf "%.6f", sum / n }'; }
    "$BUILD/tests/helpers/fill" store gpus.yaml 8 3 first "x86_64 Xeon x16, 128 GiB, NVIDIA L40S x1, driver 570.1" b1 7 >/dev/null
    is "where rows of the store measured the run, their mean is tokens/s" eval 'measured --json >measured.json && echo "$(speed l40s) $(mean "")" && awk "BEGIN { exit !(($(speed l40s) - $(mean "")) ^ 2 < 1e-8) }" && [ "$(of speed l40s measured.json)" = measured ] && [ "$(of rows l40s measured.json)" = 6 ] && [ "$(of speed l40 measured.json)" = estimate ]'
    is "... the row's own GPU counts, not the input gpu_model" [ "$(of speed a100-80gb-pcie measured.json)" = estimate ]
    is "... the table says which are measured, and how many rows" eval 'measured --width 100 >out && grep -qE "^l40s .* yes +[0-9]+ +[0-9]+ +[0-9]+$" out && grep -qE "^l40 .* ~[0-9]+$" out && tr -s "\n# " " " <out | grep -qF "is measured: the mean of a GPU'"'"'s rows in store, where 6 of 24 are of this run."'
    is "... rows of another batch, method, dtype or checkpointing do not count" others_are_estimates
    is "... it says that none has a base of 4 bits" eval 'measured --method qlora >out && tr -s "\n# " " " <out | grep -qF "store has 24 rows; none counts, since no experiment has a base of 4 bits."'
    "$BUILD/tests/helpers/fill" store gpus.yaml 8 1 second "x86_64 Xeon x2, 8 GiB" b1 9 >/dev/null
    is "without a GPU in the host class, gpu_model says it" eval 'measured --json >measured.json && [ "$(of rows a100-80gb-pcie measured.json)" = 1 ] && [ "$(of rows l40s measured.json)" = 6 ]'
    "$BUILD/tests/helpers/fill" store gpus.yaml 8 1 third "x86_64 Xeon x2, 8 GiB, NVIDIA GeForce RTX 3060 x1, driver 570.1" b1 9 >/dev/null
    is "what ran although the plan says no is told" eval 'measured --width 100 >out && tr -s "\n" " " <out | grep -qE "rtx-3060-12gb 11.7 .* no .*GiB too much; it fits with [^;]*; yet 2 rows of the store ran on it"'
    is "prices take the measured speed" eval 'printf "gpu,eur_per_hour\nl40s,1\n" >eur.csv && measured --price eur.csv --json >measured.json && awk "BEGIN { want = 1 / 3600 / $(speed l40s) * 1e6; got = $(sed -n "/l40s/,/currency/s/.*cost_per_million_tokens\":[^0-9]*\([0-9.]*\),/\1/p" measured.json); print want, got; exit !((want - got) ^ 2 < 1e-12 * want ^ 2) }"'
    # A store whose speeds are 100 x batch^0.5 x length^0.25, so that a model of them can be held against the truth.
    { echo "model_name,number_gpus,gpu_model,model_max_length,batch_size,gradient_checkpointing,torch_dtype,train_tokens_per_second"
      for b in 1 2 8 16; do for l in 512 1024 4096 8192; do awk -v b=$b -v l=$l 'BEGIN { printf "llama3-8b,1,L40S,%d,%d,True,bfloat16,%.6f\n", l, b, 100 * b ^ 0.5 * l ^ 0.25 }'; done; done; } >speeds.csv
    "$BUILD/samples" import csv speeds.csv --experiment finetune_lora_benchmark-v1.0.0 --store around >/dev/null 2>err || cat err
    around() { "$fit" --model llama3-8b --method lora --store around "$@"; }
    is "between measured batches and lengths, a model of the rows predicts" eval 'around --length 2048 --batch 4 --json >measured.json && truth=$(awk "BEGIN { print 100 * 4 ^ 0.5 * 2048 ^ 0.25 }") && low=$(sed -n "/l40s/,/high/s/.*low\":[^0-9]*\([0-9.]*\),/\1/p" measured.json) high=$(sed -n "/l40s/,/high/s/.*high\":[^0-9]*\([0-9.]*\),/\1/p" measured.json) && echo "$truth: $(speed l40s), $low to $high" && awk "BEGIN { s = $(speed l40s); exit !(s > 0.95 * $truth && s < 1.05 * $truth && $low < s && s < $high) }" && [ "$(of speed l40s measured.json)" = model ] && [ "$(of rows l40s measured.json)" = 16 ] && [ "$(of speed l40 measured.json)" = estimate ]'
    is "... the table marks it" eval 'around --length 2048 --batch 4 --width 100 >out && grep -qE "^l40s .* \*[0-9]+$" out && grep -q "^# \*tokens/s is predicted, from rows of that GPU" out'
    is "... beyond them it is an estimate" eval 'for o in "--length 256 --batch 4" "--length 2048 --batch 17" "--length 2048 --batch 4 --activation-checkpointing none"; do around $o --json >measured.json; of speed l40s measured.json || echo none; done >kinds && cat kinds && [ "$(wc -l <kinds)" = 3 ] && ! grep -q model kinds'
    is "... a measured point is measured" eval 'around --length 1024 --batch 8 --json >measured.json && [ "$(of speed l40s measured.json)" = measured ] && awk "BEGIN { exit !(($(speed l40s) - 100 * 8 ^ 0.5 * 1024 ^ 0.25) ^ 2 < 1e-6) }"'
    refused "a store that is not there" 2 "nowhere" "$fit" --model llama3-8b --method lora --store nowhere
else
    skip "measured rows" "no HDF5"
fi
refused "a store with one GPU" 2 "--store goes with the list of all GPUs" "$fit" --gpu l4 --model smollm2-135m --store store

# ---- what is wrong ----
refused "neither a model nor a GPU is named" 2 "which model, or which GPU?" "$fit"
refused "a GPU named twice" 2 "the GPU h100-80gb is named twice: as NVIDIA-H100-80GB-HBM3, too" "$fit" --gpu l4,h100,NVIDIA-H100-80GB-HBM3
refused "two formats" 2 "--json and --output-format csv exclude each other" "$fit" --model smollm2-135m --json --output-format csv
refused "an unknown model, without a GPU" 2 "no-such" "$fit" --model no-such
refused "an unknown method, without a GPU" 2 "expected full, lora, qlora" "$fit" --model smollm2-135m --method q
refused "an unknown GPU" 2 "--gpu gtx-1: known are rtx-3080-10gb, rtx-3060-12gb, " "$fit" --gpu gtx-1
for bad in 24 x 0GiB -3GiB infGiB 24GiBs; do refused "--gpu-memory $bad" 2 "expected a number and GiB" "$fit" --gpu-memory=$bad; done
refused "an unknown method" 2 "expected full, lora, qlora" "$fit" --gpu rtx-3060-12gb --method fulll
refused "an unknown model" 2 "no-such" "$fit" --gpu rtx-3060-12gb --model no-such
refused "unknown modules" 2 "no_proj" "$fit" --gpu rtx-3060-12gb --model smollm2-135m --lora-targets no_proj
is "its version" eval '[ "$("$fit" --version)" = "$("$BUILD/runs" --version | sed s/runs/fit/)" ]'

# ---- a plan without the GPU ----
is "--plan-memory --device cuda needs no GPU, and says that it compared with none" eval '"$BUILD/finetune_full" --model smollm2-135m --device cuda --plan-memory >out && grep -qE "^memory: [0-9.]+ MiB on the device: weights .*, working memory [0-9.]+; [0-9.]+ MiB on the host: " out && grep -q "^# no GPU can be opened here, so this was not compared with its memory" out'
is "... it says which size of logits it took" grep -qx "# up to 1024 MiB of logits at a time are planned, the most of any GPU; one with less than 32 GiB takes less. --logits-chunk sets the size" out
is "... with --logits-chunk it takes that, and less memory" eval '"$BUILD/finetune_full" --model smollm2-135m --device cuda --plan-memory --logits-chunk 64 >less && ! grep -q "of logits" less && awk "/^memory:/ { print \$2 }" less out | awk "{ m[NR] = \$1 } END { exit !(m[1] + 200 < m[2]) }"'
refused "... a run does" 3 "$TUNE_CUDA" "$BUILD/finetune_full" --model small --dataset "$here/datasets/stories.jsonl" --device cuda --output run
finish
