#!/bin/sh
# test_faults.sh - a training on the emulated GPU whose calls fail: each call of the runtime and of cuBLASLt that opens the
# device or belongs to the first steps, with "out of memory", and with an illegal address, after which the GPU does nothing
# more. A program ends with exit code 3 or 1 and one message that says what failed. No signal, no hang. Every checkpoint is
# whole, and the run goes on from it to the bits of the run that had no fault.
# FAULT_STRIDE: beyond the first call of each name, take every that many calls only (60). 1: all of them, in half an hour.
[ -n "$TMPDIR" ] || [ ! -w /dev/shm ] || export TMPDIR=/dev/shm
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
emulated "faults of the emulated device"
stride=${FAULT_STRIDE:-60} full=$where/finetune_full
head -24 datasets/stories.jsonl >"$tmp/rows.jsonl"
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 CUDA_ON_CPU_MEMORY=500000000
tiny model 1 --layers 1 --hidden-size 16 --intermediate-size 32 --vocab-size 262 --max-positions 64 >/dev/null || exit 1
# Rows of 64 tokens: their products are timed. What is timed stays in the file.
arguments="--device cuda --model model --dataset rows.jsonl --max-length 64 --batch-size 1 --packing --max-steps 2 --save-every 1"
train() { timeout 300 "$full" $arguments --output "$@"; }

# ---- opening ----
# opens NAME CODE TEXT VARIABLE... - a run in that environment is refused, and makes no folder
opens() {
    name=$1 code=$2 text=$3
    shift 3
    refused "$name" "$code" "$text" env "$@" "$full" $arguments --output refused
}
opens "no driver" 3 "the NVIDIA driver is missing or too old (no driver, built with 13.0); install a newer one, or use --device cpu" \
    CUDA_ON_CPU_FAIL=cudaGetDeviceCount:cudaErrorInsufficientDriver CUDA_ON_CPU_DRIVER=0
opens "a driver older than the toolkit" 3 "missing or too old (driver for CUDA 12.2, built with 13.0)" \
    CUDA_ON_CPU_FAIL=cudaGetDeviceCount:cudaErrorInsufficientDriver CUDA_ON_CPU_DRIVER=12020
opens "no GPU" 3 "no GPU is visible (driver for CUDA 13.0, built with 13.0); look at nvidia-smi and at CUDA_VISIBLE_DEVICES" \
    CUDA_ON_CPU_FAIL=cudaGetDeviceCount:cudaErrorNoDevice
opens "a driver that does not fit its kernel module" 3 "cuda, listing the GPUs (driver for CUDA 13.0, built with 13.0): system has unsupported display driver" \
    CUDA_ON_CPU_FAIL=cudaGetDeviceCount:cudaErrorSystemDriverMismatch
opens "a GPU without bfloat16" 3 "of compute capability 7.5; bfloat16 products need 8.0 or newer" CUDA_ON_CPU_ARCH=75
opens "a GPU that somebody has for himself" 3 "another process has it for itself, or its mode forbids processes" \
    CUDA_ON_CPU_FAIL=cudaSetDevice:cudaErrorDevicesUnavailable
opens "the same, noticed when the context is made" 3 "another process has it for itself" CUDA_ON_CPU_FAIL=cudaFree:cudaErrorDevicesUnavailable
opens "a GPU whose memory others have taken" 3 "cuda:0, CUDA on the CPU, as sm_90, opening it: out of memory" CUDA_ON_CPU_FAIL=cudaFree:cudaErrorMemoryAllocation
opens "no kernel for this GPU" 3 'tune_cuda.so was not built for this GPU' "CUDA_ON_CPU_FAIL=launch begin_step:cudaErrorNoKernelImageForDevice"

is "none of them left a folder" [ ! -e refused ]

# ---- a run without a fault ----
is "a run without a fault" train straight
is "what it timed is kept" eval '[ "$(ls algorithms/*.txt | wc -l)" = 1 ]'
numbers straight >straight.numbers
(cd straight/checkpoint-final && find . -type f ! -name progress.json ! -name README.md -printf '%P %s\n' | sort) >sizes.txt

# ---- the walk ----
# A call before the first step is named by its number, a later one by its distance from the step's beginning. In between, the
# program measures the speed of a product for some time, so numbers differ from run to run.
CUDA_ON_CPU_CALLS=calls.txt train counted >counted.out 2>&1
awk -v stride="$stride" '
    { name = $0; sub(/^[0-9]+ /, "", name); sub(/ waits$/, "", name) }
    name == "launch begin_step" && ++steps == 6 { begin = NR; split("", seen); next }
    name == "cublasLtMatmul" && !begin && products++ { measured = 1 }
    !begin && measured { next }
    !seen[name]++ || n++ % stride == 0 { print (begin ? "launch begin_step#6+" NR - begin : NR) "\t" name }' calls.txt >walk.txt
is "the walk has calls of all kinds, before and in the steps" \
    eval '[ "$(cut -f2 walk.txt | sort -u | wc -l)" -ge 50 ] && [ "$(grep -c "#6+" walk.txt)" -gt 50 ] && [ "$(grep -vc "#6+" walk.txt)" -gt 30 ]'

whole() { # RUN - each checkpoint under its name has all its files
    for c in "$1"/checkpoint-*; do
        case $c in *[!0-9]) continue ;; esac
        [ ! -d "$c" ] || (cd "$c" && find . -type f ! -name progress.json ! -name README.md -printf '%P %s\n' | sort) | cmp - sizes.txt || { echo "$c is not whole"; return 1; }
    done
}
same() { numbers "$1" | cmp - straight.numbers && diff -r "$1/checkpoint-final" straight/checkpoint-final; }
# goes_on RUN - resumed, or started again, it comes to the bits of the run without a fault
goes_on() {
    if ls -d "$1"/checkpoint-* >/dev/null 2>&1; then
        timeout 300 "$full" --resume "$1" >"$1.out" 2>&1 || { cat "$1.out"; return 1; }
    else
        train "$1" --overwrite >"$1.out" 2>&1 || { cat "$1.out"; return 1; }
    fi
    same "$1"
}
# fault RUN CALL ERROR CODE TEXT - the run ends as it should
fault() {
    r=$1
    rm -rf "$r"
    CUDA_ON_CPU_FAIL="$2:$3" train "$r" >"$r.out" 2>"$r.err"
    code=$?
    if [ $code = 0 ]; then # a call whose failure changes nothing
        case $2 in *+*) when=step ;; *) when=set-up ;; esac
        echo "$when $called" >>harmless.txt
        [ ! -s "$r.err" ] && same "$r"
        return
    fi
    [ $code = "$4" ] || { echo "exit code $code, expected $4"; return 1; }
    sed -n 1p "$r.err" | grep -E '^finetune_full: ' | grep -E 'cuda(:0)?, [^:]+|no memory on cuda for ' | grep -qE "$5" || { echo "no clear message"; return 1; }
    sed 1d "$r.err" | grep -vE '^finetune_full: (and |saved |the newest checkpoint is )' && { echo "more than one message"; return 1; }
    whole "$r"
}
# walk ERROR CODE TEXT - each of the calls, two at a time. Every fifth run goes on afterwards.
walk() {
    : >wrong.txt
    for worker in 0 1; do
        awk -v w=$worker 'NR % 2 == w' walk.txt | {
            n=0
            while IFS='	' read -r call called; do
                said=$(fault w$worker "$call" "$1" "$2" "$3" 2>&1) || { echo "$call, $called: $said"; cat w$worker.err; } >>wrong.txt
                n=$((n + 1))
                [ $((n % 5)) != 0 ] || [ ! -e w$worker ] || said=$(goes_on w$worker 2>&1) || echo "$call, $called, afterwards: $said" >>wrong.txt
            done
        } &
    done
    wait
    [ ! -s wrong.txt ] || { cat wrong.txt; return 1; }
}
is "out of memory at each of $(wc -l <walk.txt) calls: exit code 3, and what failed" \
    walk cudaErrorMemoryAllocation 3 '(no memory|out of memory).*(--batch-size|batch_size)'
is "an illegal address noticed at each of them: exit code 1, and what failed" \
    walk cudaErrorIllegalAddress 1 'illegal memory access.*CUDA_LAUNCH_BLOCKING=1.*resumed run'
sort -u harmless.txt >once.txt
# What gives something back, or only looks, may fail unnoticed. So may memory for measuring the speed before the first step.
none "no other call fails unnoticed" "$(grep -vE '^[a-z-]+ (cudaFree|cudaFreeHost|cuda[A-Za-z]*Destroy|cublasLt[A-Za-z]*Destroy|cudaDriverGetVersion|cudaRuntimeGetVersion|cudaMemGetInfo|cudaStreamSynchronize)$' once.txt | grep -vE '^set-up (cudaMalloc|cudaMemsetAsync)$')"
for call in "launch finish_step#1" "cudaMemcpyAsync#40"; do
    is "faulty memory at $call: exit code 1, and which GPU" fault ecc "$call" cudaErrorECCUncorrectable 1 'faulty.*another one'
done
is "and the run goes on" goes_on ecc

# ---- while algorithms are timed ----
export TUNE_CUDA_ALGORITHMS="$tmp/fresh"
CUDA_ON_CPU_CALLS=timed.txt train timed >timed.out 2>&1
# The calls between the fourth product's description and the next one's.
is "the first product's calls are found" eval 'grep -n cudaEventElapsedTime timed.txt | head -n 1 >first.txt && [ -s first.txt ]'
# Without memory for a product that is timed, nothing is timed. The run goes on, with other bits.
untimed() { rm -rf t && CUDA_ON_CPU_FAIL="$1:cudaErrorMemoryAllocation" train t >t.out 2>t.err && whole t; }
walk_timing() {
    line=$(cut -d: -f1 first.txt) bad=0
    for at in $(seq $((line - 4)) $((line + 6))); do
        for e in "cudaErrorMemoryAllocation 3 out.of.memory" "cudaErrorIllegalAddress 1 illegal.memory.access"; do
            set -- $e
            rm -rf fresh
            case "$1 $(sed -n ${at}p timed.txt)" in
            cudaErrorMemoryAllocation*cublasLtMatmul) untimed $at && none_timed=yes ;;
            *) fault t $at "$1" "$2" "$3" ;;
            esac || { echo "call $at, $(sed -n ${at}p timed.txt)"; cat t.err; bad=1; }
        done
    done
    return $bad
}
none_timed=
is "faults while algorithms are timed" eval 'walk_timing && [ -n "$none_timed" ]'
finish
