#!/bin/sh
# test_fit_gpus.sh - build/fit --gpus N: what each of N GPUs holds and sends is arithmetic on the plan of one. No GPU is needed.
. tests/tap.sh
cd "$tmp" || exit 1
HF_HUB_CACHE=$tmp/nothing
TUNE_CUDA=$tmp/no_such_device.so
export HF_HUB_CACHE TUNE_CUDA
fit=$BUILD/fit
# of NAME GPU FILE - the field of that GPU, in CSV without commas in texts
of() { tr -d '\r' <"$3" | awk -F, -v name="$1" -v gpu="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } $1 == gpu { print $at }'; }
# parts FILE OPTION... - the parts of a run of llama3-8b on an A100, as CSV
parts() { out=$1; shift; "$fit" --gpu a100-80gb --model llama3-8b --max-length 512 --output-format csv "$@" >"$out"; }
said() { tr -s '\n# ' ' ' <out | grep -qF -- "$1" || { echo "no \"$1\" in:"; cat out; return 1; }; }
equal() { [ "$1" = "$2" ] || { echo "$1 is not $2"; return 1; }; }

# ---- what each holds ----
parts one.csv --method full; parts ddp.csv --method full --gpus 4; parts fsdp.csv --method full --gpus 4 --shard fsdp; parts three.csv --method full --gpus 3 --shard fsdp
is "ddp: each GPU holds what one would" eval 'for c in weights gradients optimizer activations loss working needed; do equal "$(of $c a100-80gb ddp.csv)" "$(of $c a100-80gb one.csv)" || return 1; done'
is "fsdp: a share of weights, gradients and moments" eval 'for n in 3 4; do for c in weights gradients optimizer; do f=fsdp.csv; [ $n = 4 ] || f=three.csv; over=$(( $(of $c a100-80gb $f) - $(of $c a100-80gb one.csv) / n )); [ $over -ge 0 ] && [ $over -lt 20000 ] || { echo "$c of $n: $over bytes more"; return 1; }; done; done'
is "... all of the rest, which is of its own rows" eval 'for c in activations loss working; do equal "$(of $c a100-80gb fsdp.csv)" "$(of $c a100-80gb one.csv)" || return 1; done'
# llama3-8b by hand, float32: a layer; the output projection with the last norm, which takes turns with the embedding.
layer=$(( 4 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 4096 * 14336 + 2 * 4096) )) end=$(( 4 * (128256 * 4096 + 4096) ))
is "... two layers and an end are whole, with their gradients" equal "$(of gathered a100-80gb fsdp.csv)" $(( 2 * (2 * layer + end) ))
is "... the sum is what it needs" eval 'equal "$(of needed a100-80gb fsdp.csv)" $(( $(of weights a100-80gb fsdp.csv) + $(of gradients a100-80gb fsdp.csv) + $(of optimizer a100-80gb fsdp.csv) + $(of activations a100-80gb fsdp.csv) + $(of loss a100-80gb fsdp.csv) + $(of working a100-80gb fsdp.csv) + $(of gathered a100-80gb fsdp.csv) ))'
is "adapters: the frozen base is shared out, too" eval 'parts lora1.csv --method lora; parts lora.csv --method lora --gpus 2 --shard fsdp; over=$(( $(of weights a100-80gb lora.csv) - $(of weights a100-80gb lora1.csv) / 2 )); [ $over -ge 0 ] && [ $over -lt 20000 ] && [ "$(of gathered a100-80gb lora.csv)" -lt $(( layer + end )) ]'
is "a model of one layer: at most all of it is gathered" eval 'mkdir small && echo "{\"model_type\": \"llama\", \"hidden_size\": 64, \"intermediate_size\": 128, \"num_hidden_layers\": 1, \"num_attention_heads\": 4, \"num_key_value_heads\": 4, \"vocab_size\": 512, \"max_position_embeddings\": 128, \"rms_norm_eps\": 1e-5, \"rope_theta\": 10000, \"tie_word_embeddings\": true, \"hidden_act\": \"silu\"}" >small/config.json && "$fit" --gpu l4 --model small/config.json --method full --gpus 2 --shard fsdp --output-format csv >small.csv && equal "$(of gathered l4 small.csv)" $(( 2 * ($(of weights l4 small.csv) * 2) ))'

# ---- what fits, and how fast ----
run() { "$fit" --model llama3-8b --length 512 --batch 2 "$@"; }
run --method lora --output-format csv >one.csv; run --method lora --gpus 4 --output-format csv >ddp.csv; run --method lora --gpus 4 --shard fsdp --output-format csv >fsdp.csv
is "fsdp: a GPU too small for ddp, and the advice says so" eval 'equal "$(of fits rtx-3060-12gb ddp.csv)" no && equal "$(of fits rtx-3060-12gb fsdp.csv)" yes && of fits_with rtx-3060-12gb ddp.csv | grep -qF -- "--shard fsdp"'
is "... a larger batch" [ "$(of batch l4 fsdp.csv)" -gt "$(of batch l4 ddp.csv)" ]
gradients=$(of gradients a100-80gb lora1.csv) weights=$(of weights a100-80gb lora1.csv)
is "ddp sends the gradients 2 (N - 1) / N times" equal "$(of bytes_sent l4 ddp.csv)" $(( gradients * 3 / 2 ))
is "fsdp sends the weights twice, the gradients once" equal "$(of bytes_sent l4 fsdp.csv)" $(( (2 * weights + gradients) * 3 / 4 ))
is "one GPU sends nothing" equal "$(of gpus l4 one.csv)$(of shard l4 one.csv) $(of bytes_sent l4 one.csv)" "1 0"
# speed FILE - of four L4, whose links are PCIe 4.0 with 16 lanes: after the step of one GPU its bytes are sent.
speed() { awk "BEGIN { tokens = 2 * 512; want = 4 * tokens / (tokens / $(of tokens_per_second l4 one.csv) + $(of bytes_sent l4 "$1") / (0.8 * 32e9)); got = $(of tokens_per_second l4 "$1"); print want, got; exit !((want - got) ^ 2 < (0.005 * want) ^ 2) }"; }
is "tokens/s: the step of one, and its bytes over the link" eval 'speed ddp.csv && speed fsdp.csv'
is "the command starts the ranks" eval 'grep -q "finetune_lora .* --ranks 4 --shard ddp " ddp.csv && grep -q " --ranks 4 --shard fsdp " fsdp.csv && grep "finetune_lora" one.csv | { ! grep -q -e --ranks; }'
is "prices are of all GPUs" eval 'printf "gpu,usd_per_hour\nl4,0.5\n" >prices.csv && run --method lora --gpus 4 --price prices.csv --output-format csv >priced.csv && equal "$(of price_per_hour l4 priced.csv)" 2 || equal "$(of price_per_hour l4 priced.csv)" 2.00'

# ---- what it says ----
is "it says that it is arithmetic, and what it assumes" eval 'run --method full --gpus 4 --shard fsdp --width 100 >out && said "On each of 4 GPUs of one machine, --shard fsdp. No such run was done: this is arithmetic." && said "a step has 4 times its rows" && said "at 0.8 x the link of its data sheet, NVLink or PCIe; that share is assumed"'
is "... on a named GPU, too" eval '"$fit" --gpu l4 --model llama3-8b --gpus 2 --shard fsdp --width 120 >out && said "No such run was done" && head -n 2 out | grep -q " gathered "'
is "one GPU: as before, with a hint" eval 'run --method full --width 100 >out && said "These are figures of one GPU. --gpus N says by arithmetic what N of them would do." && ! grep -q "No such run" out'
refused "--shard with one GPU" 2 "--shard fsdp needs --gpus N" run --shard fsdp
refused "a way of sharding that is none" 2 "ddp|optimizer|fsdp" run --gpus 2 --shard all
refused "Muon with shards" 2 "needs whole matrices" run --gpus 2 --shard fsdp --optimizer muon
refused "no GPU" 2 "--gpus" run --gpus 0
refused "a store, whose rows are of one GPU" 2 "--store has runs of one GPU" run --gpus 2 --store nowhere
finish
