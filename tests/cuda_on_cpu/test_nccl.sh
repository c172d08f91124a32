#!/bin/sh
# test_nccl.sh - ranks with emulated GPUs: NCCL's part of the comm between processes, and whole recipes on two GPUs against one.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
emulated "ranks with emulated GPUs"
export OMP_NUM_THREADS=1 TUNE_DEFAULTS="$here/defaults" TMPDIR="$tmp"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
ranks=$where/gpu_ranks
cd "$tmp" || exit 1
unset NCCL_ALGO NCCL_PROTO NCCL_MIN_NCHANNELS NCCL_MAX_NCHANNELS TUNE_NCCL
is "one rank, without MPI" eval '"$ranks" >one.out && grep -q "^1 ranks, gradients stay on the GPUs; added by NCCL 2.28.9: NCCL_ALGO=Ring NCCL_PROTO=Simple NCCL_MIN_NCHANNELS=8" one.out || { cat one.out; false; }'
mpi_here || { skip "several ranks" "no MPI here (Debian: libopenmpi-dev openmpi-bin)"; finish; }
# run N WORD... - so many ranks and GPUs.
run() { n=$1; shift; CUDA_ON_CPU_GPUS=${gpus:-$n} timeout 280 mpirun -q --bind-to none -n "$n" "$ranks" "$@" >out 2>err </dev/null; }
if ! run 2 && ! grep -q '^gpu_ranks: ' err; then
    skip "several ranks" "mpirun does not work here: $(grep -v '^ *$\|^--*$' err | head -n 1)"
    finish
fi
good() { run "$@" && grep -q "^$1 ranks, gradients stay on the GPUs" out || { cat err; return 1; }; }
hash() { sed 's/.* //' "$1"; }
is "two ranks: sums, shares, broadcasts" good 2
is "... twice: the same bits" eval 'cp out first && good 2 && cmp out first'
is "three ranks, in the order of a ring" eval 'good 3 && cp out ring'
is "... exactly: the sums of plain loops, to the bit" eval 'good 3 exact && grep -q "added in the order of the ranks, and moved by NCCL" out'
is "... which are others" eval '[ "$(hash out)" != "$(hash ring)" ]'
is "what the user has set stays, and is said" eval 'NCCL_PROTO=LL good 2 && grep -q NCCL_PROTO=LL out'

# ---- faults ----
says() { grep -q "$1" err || { cat err; return 1; }; }
once() { [ "$(grep -c '^gpu_ranks: ' err)" = 1 ] || { cat err; return 1; }; }
is "ranks that do different things" eval '! run 2 differs 1 && says "rank 0 on .* is at broadcast of \"some\", 1000 elements of 4 bytes of GPUs from rank 0, step 0; rank 1 on .* 999 elements" && once'
is "one has its array in host memory" eval '! run 2 host 1 && says "1000 elements of 4 bytes of GPUs .* 1000 elements of 4 bytes from rank 0" && once'
is "a rank is killed before a collective" eval '! run 3 killed 1 && says "rank 1 of 3 (process [0-9]* on .*) has ended; rank [02] waited for it in broadcast" && once'
for call in 1 4 9; do
    is "a rank is killed in NCCL's call $call, in which the others wait" eval '! CUDA_ON_CPU_NCCL_SIGNAL=1:$call:9 run 3 && says "rank 1 of 3 (process [0-9]* on .*) has ended; rank [02] waited for it in [a-z_]* of \".*\", .* of GPUs" && once'
done
is "... and if sums are exact" eval '! CUDA_ON_CPU_NCCL_SIGNAL=0:3:9 run 2 exact && says "rank 0 of 2 (process [0-9]* on .*) has ended" && once'
is "a rank stands still there: the others give up" eval '! CUDA_ON_CPU_NCCL_SIGNAL=1:4:19 GPU_RANKS_TIMEOUT=5 run 2 && says "NCCL: .*: the GPUs were not done within 5 s"'
is "two ranks and one GPU: said once" eval '! gpus=1 run 2 && says "ranks 0 and 1 on .* both have the GPU 00000000:00:00.0: each of the 2 ranks there needs one of its own" && once'
is "no library: through host memory" eval '! TUNE_NCCL=off run 2 && says "gradients go through host memory: as TUNE_NCCL=off says"'
is "a library that cannot be opened" eval '! TUNE_NCCL=/nowhere.so run 2 && says "cannot load /nowhere.so.*TUNE_NCCL=off in the environment does without"'
none "nothing stays behind" "$(ps -eo args | grep -F "$ranks" | grep -v grep)"

# ---- recipes ----
"$BUILD/make_tales" --rows 40 --seed 1 --output text.jsonl
tiny model 1 --dtype float32 --tokenizer-text text.jsonl >/dev/null
export CUDA_ON_CPU_GPUS=2
rows="--device cuda --model model --dataset text.jsonl --max-length 40 --batch-size 3 --lr 1e-3 --train-split 0.8 --max-steps 6 --seed 31"
train() { # FOLDER PROGRAM OPTION...
    to=$1 program=$2
    shift 2
    "$where/$program" $rows --overwrite --output "$to" "$@" >"$to.out" 2>&1 || { tail -n 3 "$to.out"; return 1; }
}
# agree A B - losses and norms of six steps: the first loss within 1e-6, the rest within 1e-5.
agree() {
    for run in "$1" "$2"; do
        sed -n 's/.*"loss":\([^,}]*\).*"grad_norm":\([^,}]*\).*/\1 \2/p' "$run/metrics.jsonl" >"$run.numbers"
    done
    paste -d ' ' "$1.numbers" "$2.numbers" | awk 'function far(a, b) { return (a > b ? a - b : b - a) / b }
        NF == 4 { n++; if (far($1, $3) > (n == 1 ? 1e-6 : 1e-5) || far($2, $4) > 1e-5) { print; bad = 1 } } END { exit bad || n != 6 }' ||
        { paste -d ' ' "$1.numbers" "$2.numbers"; return 1; }
}
same() { cmp "$1/checkpoint-final/$3" "$2/checkpoint-final/$3"; }
for recipe in full lora; do
    file=model.safetensors options=
    [ $recipe = full ] || { file=adapter_model.safetensors; options="--lora-r 4 --lora-dropout 0.2"; }
    is "$recipe: one GPU, two micro-batches" train one$recipe finetune_$recipe $options --accumulate 2
    is "... two GPUs, one each" train two$recipe finetune_$recipe $options --ranks 2
    is "... the same figures" agree one$recipe two$recipe
    is "... exactly: the same figures" eval 'train exact$recipe finetune_$recipe $options --ranks 2 --exact-ranks && agree one$recipe exact$recipe'
    is "... and the bits of sums in host memory" eval 'TUNE_NCCL=off train host$recipe finetune_$recipe $options --ranks 2 && same exact$recipe host$recipe $file'
    is "... twice: the same bits" eval 'train again$recipe finetune_$recipe $options --ranks 2 && same two$recipe again$recipe $file'
done
for recipe in full lora; do
    file=model.safetensors options=
    [ $recipe = full ] || { file=adapter_model.safetensors; options="--lora-r 4 --lora-dropout 0.2"; }
    for shard in optimizer fsdp; do
        is "$recipe, --shard $shard: two GPUs" train $shard$recipe finetune_$recipe $options --ranks 2 --shard $shard
        is "... the figures of one" agree one$recipe $shard$recipe
        is "... exactly, and through host memory: the same bits" eval 'train exact$shard finetune_$recipe $options --ranks 2 --shard $shard --exact-ranks &&
            TUNE_NCCL=off train host$shard finetune_$recipe $options --ranks 2 --shard $shard && same exact$shard host$shard $file'
    done
done
is "fsdp, twice: the same bits" eval 'train again finetune_full --ranks 2 --shard fsdp && same fsdpfull again model.safetensors'
tiny deep 1 --layers 8 --dtype float32 --tokenizer-text text.jsonl >/dev/null
for shard in ddp fsdp; do is "more layers, --shard $shard" train deep$shard finetune_full --model deep --ranks 2 --shard $shard --max-steps 2; done
# Weights, gradients and moments take 16 bytes a weight: half of them are not here. Two layers and the embedding are whole, and their gradients.
layer=$((64 * 64 * 3 + 3 * 64 * 128 + 128)) embedding=$((300 * 64)) saved=$(($(figure deepddp peak_device_bytes) - $(figure deepfsdp peak_device_bytes)))
is "gradients are sent unit by unit, while the GPU computes" eval 'train beside finetune_full --model deep --ranks 2 --max-steps 3 --profile 2 && grep -q "^# ranks .*moved for [0-9.]* s so far; .* and [1-9][0-9]* % ran beside backward" beside.out || { cat beside.out; false; }'
# killed N WORD... - rank 1 is killed in its call N of NCCL.
killed() { call=$1; shift; ! OMPI_MCA_odls_base_sigkill_timeout=3 CUDA_ON_CPU_NCCL_SIGNAL=1:$call:9 "$where/finetune_full" $rows --model deep --ranks 2 --overwrite --output killed "$@" >killed.out 2>&1 || { cat killed.out; return 1; }; }
is "... so a run that fails lists them by unit" eval 'killed 40 && grep -q "\"gradients of unit [0-9]" killed/run.json'
is "... in one piece if they are added in the order of the ranks" eval 'killed 3 --exact-ranks && grep -q "\"gradients\"" killed/run.json && ! grep -q "gradients of unit" killed/run.json'
is "... each GPU takes what the plan says, and keeps half" eval '[ "$(figure deepfsdp peak_device_bytes)" = "$(figure deepfsdp estimated_device_bytes)" ] &&
    off=$((saved - 8 * (8 * layer + embedding - 2 * layer - embedding))) && echo "$saved, $off from the arithmetic" && [ $off -gt -2000 ] && [ $off -lt 2000 ]'
is "two GPUs with fsdp go on as one, and as two with ddp" eval 'train begun finetune_full --ranks 2 --shard fsdp --stop-at-step 3 && cp -r begun begun2 &&
    for more in "begun --ranks 1 --accumulate 2" "begun2 --ranks 2 --shard ddp"; do "$where/finetune_full" --resume $more --stop-at-step 0 >more.out 2>&1 || { tail -n 3 more.out; return 1; }; done
    agree onefull begun && agree onefull begun2'

# ---- a space ----
# Nothing measures the emulated GPUs.
mkdir exp && sed "/\"gpu_[a-z_]*_\(min\|avg\|max\|peak\)\"/d; s|\"program\": \"|&$where/|; s/\"finetune_full_benchmark/\"emulated/; s/\"--response-template\", \"[^\"]*\", //" "$here/defaults/experiments/finetune_full_benchmark-v1.0.0.json" >exp/full.json
{
    echo entitySpace:
    for one in "number_gpus:1, 2" "fsdp_sharding_strategy:FULL_SHARD, NO_SHARD" model_name:model model_max_length:32 batch_size:2; do
        echo "  - {identifier: ${one%%:*}, propertyDomain: {values: [${one#*:}]}}"
    done
    printf 'experiments:\n  - actuatorIdentifier: SFTTrainer\n    experimentIdentifier: emulated-v1.0.0\n    parameterization:\n'
    for one in dataset_id:news-chars-512-entries-256 gradient_accumulation_steps:1 torch_dtype:float32 max_steps:2; do
        echo "      - {property: {identifier: ${one%%:*}}, value: ${one#*:}}"
    done
} >space.yaml
is "points of one and two GPUs are measured" eval '"$BUILD/sweep" space.yaml --experiments exp --store st --gpus $$.0,$$.1 --retries 0 --in-flight 1 --env TUNE_MPI,CUDA_ON_CPU_GPUS,OMP_NUM_THREADS,OMPI_ALLOW_RUN_AS_ROOT,OMPI_ALLOW_RUN_AS_ROOT_CONFIRM,OMPI_MCA_rmaps_base_oversubscribe,OMPI_MCA_btl_vader_single_copy_mechanism >sweep.out 2>&1; grep -q "4 valid, 0 invalid, 0 failed" sweep.out || { cat sweep.out; false; }'
is "... rates for each GPU are those of all, halved" eval '"$BUILD/samples" show space.yaml --experiments exp --store st --where "number_gpus == 2" --derive "share = round(100 * train_tokens_per_gpu_per_second / train_tokens_per_second)" --columns share --output-format csv >out && [ "$(grep -c "^50" out)" = 2 ] || { cat out; false; }'
is "... the command shares the weights out as the strategy says" eval 'for p in 2:FULL_SHARD:fsdp 2:NO_SHARD:ddp 1:FULL_SHARD:ddp; do IFS=: read -r n strategy shard <<E2
$p
E2
    "$BUILD/samples" best space.yaml --experiments exp --store st --maximize loss_last --where "number_gpus == $n and fsdp_sharding_strategy == \"$strategy\"" --print-command >out 2>&1
    grep -q -- "--device cuda.* --ranks $n .*--shard $shard\|--device cuda.*--shard $shard.* --ranks $n" out || { cat out; return 1; }; done'
is "the header says how gradients travel" grep -q '^# gradients  *stay on the GPUs; added by NCCL 2.28.9: NCCL_ALGO=Ring' twofull.out
is "... and that they are added in order" grep -q '^# gradients  *stay on the GPUs; added in the order of the ranks, and moved by NCCL' exactfull.out
is "... and that they cross host memory" grep -q '^# gradients  *through host memory: as TUNE_NCCL=off says' hostfull.out
refused "more ranks than GPUs" 2 "ranks 0 and 2 on" "$where/finetune_full" $rows --ranks 3 --output many
refused "a GPU by its number, for two ranks" 2 "both have the GPU" "$where/finetune_full" $rows --device cuda:1 --ranks 2 --output many
finish
