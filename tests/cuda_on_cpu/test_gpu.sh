#!/bin/sh
# test_gpu.sh - tests/gpu.sh, the bench of GPUs and the figures on paper, tried out on the emulated device. It shows that the
# script runs everything, counts right and finds a fault. No figure of it is one of a GPU.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
emulated "gpu.sh on the emulated device"

# ---- gpu.sh ----
mkdir -p "$tmp/programs/tests/gpu" "$tmp/programs/tests/bench"
for p in init_model make_tales; do ln -s "$BUILD/$p" "$tmp/programs/$p"; done
for p in finetune_full finetune_lora; do ln -s "$BUILD/cuda_on_cpu/$cxx/$p" "$tmp/programs/$p"; done
ln -s "$BUILD/cuda_on_cpu/$cxx/bench_gpu" "$tmp/programs/tests/bench/bench_gpu"
# One of the tests: the others run by themselves.
for t in attention norms products operations updates; do printf '#!/bin/sh\necho "ok 1 - nothing"\n' >"$tmp/programs/tests/gpu/test_$t"; done
chmod +x "$tmp"/programs/tests/gpu/*
ln -s "$BUILD/cuda_on_cpu/test_device.$cxx" "$tmp/programs/tests/gpu/test_device"
gpu() {
    GPU_STEPS=3 GPU_CURVE="--max-length 24 --batch-size 1" GPU_BENCH="0.01 tiny" GPU_RESULT="$tmp/result.txt" TUNE_PYTHON=/bin/false CUDA_HOME=/nowhere \
        sh tests/gpu.sh "${1:-$tmp/programs}" >"$tmp/out" 2>&1
}
is "gpu.sh runs to its end" eval 'gpu || { cat "$tmp/out"; false; }'
is "... and writes what it printed" eval 'head -n "$(wc -l <"$tmp/result.txt")" "$tmp/out" | diff - "$tmp/result.txt"'
has() { grep -qE -- "$1" "$tmp/result.txt" || { echo "no line: $1"; cat "$tmp/result.txt"; return 1; }; }
is "... the device" has '^# cuda: CUDA on the CPU'
is "... the tests' checks" has '^ok - test_device: [0-9]{2} checks'
for curve in "full, float32" "full, bfloat16" "LoRA, float32" "LoRA, bfloat16" "QLoRA, float32"; do
    is "... $curve: the CPU's curve" has "^ok - $curve: loss [0-9.]+ to [0-9.]+, at most [0-9.e-]+ from the CPU's"
done
for figure in "product 32x32x32" "copy, float32" swiglu_forward swiglu_backward rmsnorm_forward rmsnorm_backward rope adamw \
    attention_forward attention_backward; do
    is "... a figure: $figure" has "^$figure.* us .* of (the product|copying)"
done
for case in tiny-lora tiny-full; do is "... steps of $case" has "^$case .* tokens/s, .* loss [0-9.]+;"; done
is "... what is missing is skipped by name" has "^ok - (compute-sanitizer|peers) # SKIP "
is "... and the sum" has '^12 passed, 0 failed, [0-9] skipped$'

tar -C "$tmp/programs" -czhf "$tmp/programs.tar.gz" .
is "an archive is unpacked and run" eval 'GPU_PARTS=operations gpu "$tmp/programs.tar.gz" && has "^6 passed, 0 failed, 0 skipped"'
printf '#!/bin/sh\necho "not ok 1 - a wrong sum"\nexit 1\n' >"$tmp/programs/tests/gpu/test_norms"
is "a test that fails is reported" eval '! GPU_PARTS=operations gpu && grep -q "^not ok 1 - a wrong sum" "$tmp/result.txt" && grep -q "^5 passed, 1 failed" "$tmp/result.txt"'
sed -i 's/^exit 1/sleep 60/; s/^echo.*//' "$tmp/programs/tests/gpu/test_norms"
is "when time is over the rest is skipped" eval 'GPU_PARTS="operations benches" GPU_SECONDS=6 gpu; grep -q "^ok - test_norms # SKIP not done in its time" "$tmp/result.txt" && grep -q "^ok - benches # SKIP no time is left" "$tmp/result.txt"'
ln -sf "$BUILD/tests/bench/bench_gpu" "$tmp/programs/tests/bench/bench_gpu"
[ -x "$BUILD/tests/bench/bench_gpu" ] || cp "$BUILD/finetune_full" "$tmp/programs/tests/bench/bench_gpu"
rm -f "$tmp/result.txt"
is "without a GPU it ends with 3, and writes nothing" eval 'gpu; [ $? = 3 ] && [ ! -e "$tmp/result.txt" ]'

# ---- on paper ----
paper() { CUDA_ON_CPU_MEMORY=141000000000 TUNE_DEFAULTS="$here/defaults" "$BUILD/cuda_on_cpu/cuda_paper.$cxx" "$@" >"$tmp/paper" 2>&1; }
is "the figures on paper" eval 'paper tests/cuda_compiled.txt || { tail -n 5 "$tmp/paper"; false; }'
expected() { sed -n "s/^expected $1: .* a step, \([0-9]*\) tokens.*/\1/p" "$tmp/paper"; }
# By hand: 8.0e9 weights, 4 FLOPs a frozen one and token, are 31 ms for 1000 tokens at the peak; and not much more.
is "... llama3-8b: between a quarter and all of the peak" eval 't=$(expected llama3-8b-lora) && [ "$t" -gt 7000 ] && [ "$t" -lt 31000 ]'
# 135e6 weights, 6 FLOPs each and token, are 1.2 million tokens/s at the peak.
is "... smollm2-135m: below the peak, above a tenth of it" eval 't=$(expected smollm2-135m-full) && [ "$t" -gt 50000 ] && [ "$t" -lt 1200000 ]'
# 8192 tokens; 7.5e9 frozen weights behind the embedding, 42e6 trained; 4 TFLOP in attention.
is "... the counted FLOPs are the model's" eval 'awk "/^# the step:/ { print \$4 }" "$tmp/paper" | head -n 1 | awk "{ exit !(\$1 > 245 && \$1 < 260) }"'
grep -v ' adamw$' tests/cuda_compiled.txt >"$tmp/bounds"
is "a kernel without registers is named" eval '! paper "$tmp/bounds" tiny-full && grep -q "^# adamw is not among the compiled kernels" "$tmp/paper"'
finish
