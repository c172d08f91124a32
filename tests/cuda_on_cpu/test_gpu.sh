#!/bin/sh
# test_gpu.sh - tests/gpu.sh, the bench of GPUs and the figures on paper, tried out on the emulated device. It shows that the
# script runs everything, counts right and finds a fault. No figure of it is one of a GPU.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
emulated "gpu.sh on the emulated device"

# ---- gpu.sh ----
mkdir -p "$tmp/programs/tests/gpu" "$tmp/programs/tests/bench" "$tmp/bin"
for p in init_model make_tales; do ln -s "$BUILD/$p" "$tmp/programs/$p"; done
for p in finetune_full finetune_lora; do ln -s "$BUILD/cuda_on_cpu/$cxx/$p" "$tmp/programs/$p"; done
ln -s "$BUILD/cuda_on_cpu/$cxx/bench_gpu" "$tmp/programs/tests/bench/bench_gpu"
ln -s "$BUILD/cuda_on_cpu/$cxx/gpu_ranks" "$tmp/programs/tests/gpu/gpu_ranks"
ln -s "$BUILD/cuda_on_cpu/$cxx/tune_nccl.so" "$tmp/programs/tune_nccl.so"
ln -s "$BUILD/tune_mpi.so" "$tmp/programs/tune_mpi.so"
# One of the tests: the others run by themselves.
for t in attention norms products operations updates; do printf '#!/bin/sh\necho "ok 1 - nothing"\n' >"$tmp/programs/tests/gpu/test_$t"; done
chmod +x "$tmp"/programs/tests/gpu/*
ln -s "$BUILD/cuda_on_cpu/test_device.$cxx" "$tmp/programs/tests/gpu/test_device"
# NVIDIA's tools, as far as the script reads them. They run the program that they are given.
cat >"$tmp/bin/nvidia-smi" <<'S'
#!/bin/sh
case $* in *=index*) seq "${GPUS:-1}" ;; *-lms*) echo 11; echo 4321; exec sleep 600 ;; *compute_cap,memory*) echo "GPU of the test, 1.0" ;; *compute_cap*) echo 9.0 ;; *) echo "NVIDIA Test 1" ;; esac
S
cat >"$tmp/bin/nvcc" <<'S'
#!/bin/sh
case $1 in --version) echo "nvcc of the test, release 0.1"; exit ;; esac
while [ "$1" != -o ]; do case $1 in *.cu) [ -e "$1" ] || exit 1 ;; -arch=*) echo "$1" ;; esac; shift; done
echo object >"$2"
S
cat >"$tmp/bin/ncu" <<'S'
#!/bin/sh
csv=
[ "$TUNE_CUDA_GRAPHS $TUNE_CUDA_ALGORITHMS" = "0 off" ] || exit 5
while [ "$1" != sh ]; do [ "$1" != --csv ] || csv=1; shift; done
"$@" || exit
[ -n "$csv" ] || { echo "  kernel (1, 1, 1)x(2, 1, 1), Context 1, Stream 7"; echo "    Duration  us  3"; exit; }
printf '"ID","Kernel Name","Block Size","gpu__time_duration.sum"\n"","","","ns"\n"0","glu<a, b>(c, d)","(1, 1, 1)","1,000.5"\n"1","glu<a, b>(c, d)","(1, 1, 1)","20"\n"2","rotate(c)","(1, 1, 1)","7"\n'
S
cat >"$tmp/bin/compute-sanitizer" <<'S'
#!/bin/sh
case $1 in --version) echo "compute-sanitizer of the test, 1.0"; exit ;; esac
case $* in *racecheck*test_norms*) echo "ERROR SUMMARY: 1 error"; exit 9 ;; esac
while [ "$1" != sh ]; do shift; done
exec "$@"
S
chmod +x "$tmp"/bin/*
gpu() {
    PATH=$tmp/bin:$PATH GPU_STEPS=3 GPU_CURVE="--max-length 24 --batch-size 1" GPU_BENCH="0.01 tiny" GPU_LOGITS="0.008 1" GPU_RESULT="$tmp/result.txt" \
        TUNE_PYTHON=${peer:-/bin/false} NVCC=$tmp/bin/nvcc CUDA_HOME=/nowhere sh tests/gpu.sh "$@" >"$tmp/out" 2>&1
}
has() { grep -qE -- "$1" "$tmp/result.txt" || { echo "no line: $1"; cat "$tmp/result.txt"; return 1; }; }
is "gpu.sh: alive" eval 'gpu "$tmp/programs" alive || { cat "$tmp/out"; false; }'
is "... what it printed is in the file" eval 'head -n "$(wc -l <"$tmp/result.txt")" "$tmp/out" | diff - "$tmp/result.txt"'
is "... the device" has '^# cuda: CUDA on the CPU'
is "... the tests' checks" has '^ok - test_device: [0-9]{2} checks'
is "... each test's whole output" eval '[ "$(cat "$tmp/result.d/test_norms.txt")" = "ok 1 - nothing" ] && [ "$(grep -c "^ok" "$tmp/result.d/test_device.txt")" -ge 10 ]'
for curve in "full, float32" "full, bfloat16" "LoRA, float32" "LoRA, bfloat16" "QLoRA, float32"; do
    is "... $curve: the CPU's curve" has "^ok - $curve: loss [0-9.]+ to [0-9.]+, at most [0-9.e-]+ from the CPU's"
done
is "... the kernels are compiled there, for that GPU" eval 'has "^ok - kernels built anew for sm_90a: built in" && [ "$(grep -c "^-arch=sm_90a$" "$tmp/result.d/nvcc.txt")" = $(($(ls components/devices/cuda/*.cu | wc -l) + 1)) ]'
is "... and the sum" has '^12 passed, 0 failed, 0 skipped, in [0-9]+ s$'
is "gpu.sh: ranks, on one GPU" eval 'gpu "$tmp/programs" ranks || { cat "$tmp/out"; false; }'
is "... one rank through NCCL" eval 'has "^1 ranks, gradients stay on the GPUs; added by NCCL" && has "^ok - one rank through NCCL" && has "^ok - two ranks # SKIP this machine has one GPU" && has "^2 passed, 0 failed, 1 skipped"'
is "... without NCCL they are skipped" eval 'mv "$tmp/programs/tune_nccl.so" "$tmp/away"; TUNE_NCCL=/nowhere.so gpu "$tmp/programs" ranks; mv "$tmp/away" "$tmp/programs/tune_nccl.so"; has "^ok - ranks # SKIP NCCL is not installed"'
if mpi_here; then
    is "gpu.sh: ranks, on two GPUs" eval 'OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none GPUS=2 CUDA_ON_CPU_GPUS=2 gpu "$tmp/programs" ranks || { cat "$tmp/out"; false; }'
    is "... by NCCL and exactly, twice each" eval 'has "^ok - two ranks through NCCL, exactly" && [ "$(grep -c "^ok - ... the same bits twice" "$tmp/result.txt")" = 2 ] && has "^11 passed, 0 failed, 0 skipped"'
    is "... trainings on both have the losses of one GPU" eval 'for shard in ddp optimizer fsdp; do has "^ok - a training on two GPUs, --shard $shard: loss [0-9.]* to [0-9.]*, at most [0-9.e-]* from one GPU" || return 1; done'
else
    skip "gpu.sh: ranks, on two GPUs" "no MPI here"
fi
is "gpu.sh: numbers, why and peers, by name" eval 'gpu "$tmp/programs" numbers why peers || { cat "$tmp/out"; false; }'
for figure in "product 32x32x32" "copy, float32" glu_forward glu_backward rmsnorm_forward rmsnorm_backward rope adamw \
    "attention_forward, texts of 32" "attention_backward, texts of 16" "lm_head, 16 rows" "lm_head dx, 64 rows" "cross_entropy, 32 rows" \
    "rank_16 y \\+= h B'" "rank_16 dA \\+= dh' x" "NF4 product 64x48x32" "embed_backward, four tokens"; do
    is "... a figure: $figure" has "^$figure.* us .* of (the product|copying)"
done
for case in tiny-lora tiny-full; do
    is "... steps of $case" has "^$case .* tokens/s, .* the fourth step's loss [0-9.]+; logits of 96 rows at a time; [0-9.]+ GiB of tensors, [0-9.]+ MiB for graphs;"
    is "... the same bits with kept algorithms, and without graphs" eval 'has "^ok - $case with kept algorithms: the bits of $case$" && has "^ok - $case without graphs: the bits of $case$"'
    is "... a graph takes memory, and none does without" eval 'grep -q " 0\.0 MiB for graphs" "$tmp/result.d/$case-without-graphs.txt" && ! grep -q " 0\.0 MiB for graphs" "$tmp/result.d/$case.txt"'
    is "... what nvidia-smi saw" has "^# $case: nvidia-smi saw at most 4321 MiB in use"
done
is "... chunks of logits of other sizes, to about the same loss" eval 'for c in tiny-lora tiny-full; do for m in 0.008 1; do cat "$tmp/result.d/$c--logits-of-$m-MiB.txt"; done; done | sed -n "s/.*loss \([0-9.]*\); logits of \([0-9]*\) rows.*/\2 \1/p" | awk "{ n[\$1]++; loss[NR] = \$2 } END { for (i = 1; i < 4; i += 2) { d = loss[i] - loss[i + 1]; if (d * d > 1e-6) exit 1 } exit n[64] != 2 || n[96] != 2 }"'
is "... a time for every kernel" eval 'has "^ *1020\.5 ns +2 x glu<a, b>$" && has "^ *7\.0 ns +1 x rotate$"'
for kernel in forward gradients cross_entropy glu glu_dx rotate rmsnorm_dx move_rows expand adamw; do is "... ncu of $kernel" has "^ok - ncu, $kernel$"; done
is "... peers are skipped by name" has "^ok - peers # SKIP ended with 1"
is "gpu.sh: sanitizers, of which one finds something" eval '! gpu "$tmp/programs" sanitizers'
is "... it is named, with what was said" eval 'has "^not ok - racecheck, test_norms: exit code 9" && has "^ERROR SUMMARY: 1 error"'
is "... the others went on" eval 'has "^ok - initcheck, test_products: 1 checks" && has "^ok - memcheck, three steps of finetune_lora" && has "^16 passed, 1 failed, 0 skipped"'
is "a first word that is neither a part nor a folder is refused" eval 'gpu numebrs; [ $? = 2 ] && grep -q "neither a part nor a folder: \"numebrs\"" "$tmp/out"'
is "a part that does not exist is refused" eval 'gpu "$tmp/programs" alive dead; [ $? = 2 ] && grep -q "no part \"dead\"" "$tmp/out"'

# ---- bench_gpu ----
figures() { TUNE_DEFAULTS="$here/defaults" "$tmp/programs/tests/bench/bench_gpu" cuda 0.001 tiny figures "$@" >"$tmp/figures" 2>&1; }
# short K NAME - the K-th allocation fails. Only figures of that name do, and say why.
short() {
    ! CUDA_ON_CPU_FAIL="cudaMalloc#$1:cudaErrorMemoryAllocation" figures || return 1
    cat "$tmp/figures"
    [ "$(grep -c " us " "$tmp/figures")" = $(($(grep -c " us " "$tmp/all") - ${3:-1})) ] && [ "$(grep -c "^$2.*: failed: no memory on cuda" "$tmp/figures")" = "${3:-1}" ]
}
is "all figures" eval 'figures && cp "$tmp/figures" "$tmp/all"'
is "a product without memory fails by name, and those behind it go on" short 3 "product 32x32x32"
is "... and a glu_forward" short 21 glu_forward
is "... and the adapters, all six" short 71 rank_16 6
is "what cuBLASLt refused is said" eval 'CUDA_ON_CPU_REFUSE=algorithm=0 figures && grep -q "^# warning: device: cuBLASLt refused products [0-9]* times, first \[" "$tmp/figures"'

# ---- an archive; a test that fails; a compiler that fails ----
# alone - the other programs of the part are left out, so that it takes a moment.
alone() { rm -f "$tmp/programs/tests/gpu/test_device" "$tmp/programs/make_tales" && for f in tests/gpu/test_device make_tales; do printf '#!/bin/sh\n' >"$tmp/programs/$f" && chmod +x "$tmp/programs/$f"; done; }
alone
rm "$tmp/programs/init_model" && printf '#!/bin/sh\nexit 1\n' >"$tmp/programs/init_model" && chmod +x "$tmp/programs/init_model"
echo abcdef1+changes >"$tmp/programs/commit"
printf '#!/bin/sh\necho "not ok 1 - a wrong sum"\nexit 1\n' >"$tmp/programs/tests/gpu/test_norms"
printf '#!/bin/sh\necho "fatal error: cublasLt.h: No such file"\nexit 1\n' >"$tmp/bin/nvcc"
tar -C "$tmp/programs" -czhf "$tmp/programs.tar.gz" .
is "an archive is unpacked and run; a test that fails is reported" eval '! gpu "$tmp/programs.tar.gz" alive && has "^not ok 1 - a wrong sum" && has "^not ok - test_norms: exit code 1"'
is "... the commit is that of its programs" has "^# tests/gpu.sh alive, .*, commit abcdef1\+changes$"
is "... and runs once more under memcheck" has "^not ok - memcheck, test_norms: exit code 1"
is "... the other tests run too" has "^ok - test_updates: 1 checks"
is "... a tiny model that cannot be made is a failure" has "^not ok - a tiny model"
is "... a compiler that finds no header is said" has "^ok - kernels built anew # SKIP nvcc cannot: fatal error: cublasLt.h"

# The libraries that the archive carries are for its programs, not for PyTorch.
mkdir "$tmp/programs/lib"
printf '#!/bin/sh\ncase $1 in -c) exit ;; esac\necho "peers: $LD_LIBRARY_PATH. $*"\n' >"$tmp/bin/python" && chmod +x "$tmp/bin/python"
printf '#!/bin/sh\necho "# test: $LD_LIBRARY_PATH."\n' >"$tmp/programs/tests/gpu/test_norms"
is "our libraries are for our programs alone" eval 'peer=$tmp/bin/python LD_LIBRARY_PATH=/a gpu "$tmp/programs" alive peers; has "^peers: /a\. tests/bench/gpu_peer\.py 0\.01 tiny until=[1-9][0-9]*$" && has "^# test: /a.*:$tmp/programs/lib\.$" && has "^ok - peers$"'
if command -v python3 >/dev/null 2>&1; then
    is "a peer without memory is a result, and is tried with less" eval 'python3 tests/bench/gpu_peer.py --check >"$tmp/peer" && [ "$(grep -c ": out of memory$" "$tmp/peer")" = 7 ] && grep -qx "fits, 8 rows, checkpointed: 80 ms" "$tmp/peer" && grep -qx "broken, 4 rows: failed: no such kernel" "$tmp/peer"'
    is "without PyTorch or a GPU the peers say so" eval 'CUDA_VISIBLE_DEVICES= python3 tests/bench/gpu_peer.py 0.1 >"$tmp/peer" && grep -qE "^# (without PyTorch there is nothing|this PyTorch sees no GPU)" "$tmp/peer"'
else skip "the guard of the peers" "python3 is missing"; fi

# ---- its time, and its end ----
printf '#!/bin/sh\necho "ok 1 - begun"\necho $$ >"%s/sleeper"\nexec sleep 600\n' "$tmp" >"$tmp/programs/tests/gpu/test_norms"
is "when time is over the rest is skipped" eval 'GPU_SECONDS=14 gpu "$tmp/programs" alive numbers; has "^ok - test_norms # SKIP (not done in its [0-9]+ s|no time is left)" && has "^ok - numbers: .* # SKIP no time is left"'
is "a test that takes all of its own time has failed; under a tool it has not" eval '! GPU_LIMIT=2 gpu "$tmp/programs" alive && has "^not ok - test_norms: not done in its 2 s" && has "^ok - memcheck, test_norms # SKIP not done in its 2 s"'
printf '#!/bin/sh\nkill -KILL $$\n' >"$tmp/programs/tests/gpu/test_attention"
is "a test that is killed, as without memory, has failed" eval '! GPU_SECONDS=14 gpu "$tmp/programs" alive && has "^not ok - test_attention: killed after [0-9]+ s, exit code 137"'
printf '#!/bin/sh\necho "ok 1 - nothing"\n' >"$tmp/programs/tests/gpu/test_attention"
# killed SIGNAL SIGN - start it, wait until test_norms has begun and the line before it is written, and send the signal to it,
# or with the sign - to its group; $code.
killed() {
    rm -rf "$tmp/sleeper" "$tmp/result.txt" "$tmp/result.d"
    PATH=$tmp/bin:$PATH GPU_BENCH="0.01 tiny" GPU_RESULT="$tmp/result.txt" TUNE_PYTHON=/bin/false CUDA_HOME=/nowhere TMPDIR=$tmp \
        setsid sh tests/gpu.sh "$tmp/programs" alive >"$tmp/out" 2>&1 &
    script=$!
    await $script test -s "$tmp/sleeper" || { cat "$tmp/out"; return 1; }
    await $script grep -q "^ok - test_attention" "$tmp/result.txt" || return 1
    kill -s "$1" -- "$2$script" || return 1
    wait $script
    code=$?
}
left_over() { has "^ok - test_attention: 1 checks" && [ "$(cat "$tmp/result.d/test_norms.txt")" = "ok 1 - begun" ]; }
is "killed with all that it started, it leaves what it printed" eval 'killed KILL - && left_over'
kill "$(cat "$tmp/sleeper")" 2>/dev/null # timeout gave it a group of its own
gone() { while kill -0 "$(cat "$tmp/sleeper")" 2>/dev/null; do sleep 0.02; done; }
is "stopped, it stops what runs" eval 'killed TERM "" && [ $code = 130 ] && gone && left_over'

ln -sf "$BUILD/tests/bench/bench_gpu" "$tmp/programs/tests/bench/bench_gpu"
[ -x "$BUILD/tests/bench/bench_gpu" ] || { rm "$tmp/programs/tests/bench/bench_gpu" && cp "$BUILD/finetune_full" "$tmp/programs/tests/bench/bench_gpu"; }
rm -rf "$tmp/result.txt" "$tmp/result.d"
is "without a GPU it ends with 3, and writes nothing" eval 'gpu "$tmp/programs"; [ $? = 3 ] && [ ! -e "$tmp/result.txt" ] && [ ! -e "$tmp/result.d" ]'

# ---- on paper ----
paper() { TUNE_DEFAULTS="$here/defaults" "$BUILD/cuda_on_cpu/cuda_paper.$cxx" "$@" >"$tmp/paper" 2>&1; }
is "the figures on paper" eval 'paper tests/cuda_compiled.txt || { tail -n 5 "$tmp/paper"; false; }'
expected() { sed -n "s/^expected $1, .* a step, \([0-9]*\) tokens.*/\1/p" "$tmp/paper" | head -n 1; }
took() { sed -n "s/^expected $1, $2, logits of $3 rows.*: \([0-9.]*\) ms a step.*/\1/p" "$tmp/paper"; }
between() { [ -n "$2" ] && awk "BEGIN { exit !($2 >= $1 && $2 <= $3) }"; }
# A prediction that was made before the first run on a GPU: it must not change.
is "... llama3-8b, logits of 128 rows: 500 ms, 3 % more or less" between 485 "$(took llama3-8b-lora h200 128)" 515
# By hand: 8.0e9 weights, 4 FLOPs a frozen one and token, are 31 ms for 1000 tokens at the peak; and not much more.
is "... llama3-8b: between a quarter and all of the peak" eval 't=$(expected llama3-8b-lora) && [ "$t" -gt 7000 ] && [ "$t" -lt 31000 ]'
# 135e6 weights, 6 FLOPs each and token, are 1.2 million tokens/s at the peak.
is "... smollm2-135m: below the peak, above a tenth of it" eval 't=$(expected smollm2-135m-full) && [ "$t" -gt 50000 ] && [ "$t" -lt 1200000 ]'
# 8192 tokens; 7.5e9 frozen weights behind the embedding, 42e6 trained; 4 TFLOP in attention.
is "... the counted FLOPs are the model's" eval 'awk "/^# the step:/ { print \$4 }" "$tmp/paper" | head -n 1 | awk "{ exit !(\$1 > 245 && \$1 < 260) }"'
bounds=tests/cuda_compiled.txt
is "an H100 takes a tenth longer" eval 'paper $bounds --gpu h100 --logits 48 llama3-8b-lora && between 530 "$(took llama3-8b-lora h100 128)" 575'
is "with larger chunks of logits it takes less" eval 'paper $bounds --logits 1024 llama3-8b-lora && between 475 "$(took llama3-8b-lora h200 2112)" 495'
is "an A100 takes thrice as long" eval 'paper $bounds --gpu a100 --logits 48 llama3-8b-lora && between 1200 "$(took llama3-8b-lora a100 128)" 1700'
is "an RTX 4090 is too small for the first case, not for the second" eval 'paper $bounds --gpu rtx4090 && grep -q "^# llama3-8b-lora cannot run on this GPU: .*memory" "$tmp/paper" && [ "$(expected smollm2-135m-full)" -gt 30000 ]'
is "a GPU that it does not know is refused" eval 'paper $bounds --gpu b17; [ $? = 2 ] && grep -q "no such GPU" "$tmp/paper"'
grep -v ' adamw$' tests/cuda_compiled.txt >"$tmp/bounds"
is "a kernel without registers is named" eval '! paper "$tmp/bounds" tiny-full && grep -q "^# adamw is not among the compiled kernels" "$tmp/paper"'
finish
