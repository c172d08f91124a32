#!/bin/sh
# gpu.sh [FOLDER | ARCHIVE] [PART...] - everything that only a machine with a GPU can say. What it prints goes line by line to a
# file, tests/bench/results/<date>-<gpu>.txt, and the whole output of each test to the folder <date>-<gpu>.d beside it. A call that
# is killed leaves all that was printed so far. Send us both.
#   FOLDER      the programs, or the archive that `gpu.sh --pack` made elsewhere. Without it: those beside this script, as in an
#               unpacked archive; else `make gpu` builds them here.
#   PART        alive, ranks, numbers, why, peers, sanitizers: all, in this order, unless some are named
#   --pack      build for any x86-64 processor with AVX2 and the GPUs of CUDA_ARCH (90a), and collect all that such a machine needs
#               in build/gpu-pack.tar.gz, this script too. Its CUDA Toolkit, or PyPI's packages, must have libcublasLt.so.13, which
#               is too large to carry. `--pack sanitizer` carries compute-sanitizer too.
# GPU_SECONDS: for all of it, from the first line on (520). Every command has a limit of its own below it; `make gpu` has
# none. A command that takes all of its own limit has failed, unless a tool slows it down. One that is cut off because no time is
# left is skipped.
# GPU_RESULT: another file for the output.
# To try the script out: GPU_STEPS, of a curve (50); GPU_CURVE, its size; GPU_BENCH, seconds of a figure (1), then "tiny" for
# small sizes; GPU_LOGITS, MiB of logits at a time (48 256 1024); GPU_LIMIT, each command's own limit in seconds;
# NVCC, the compiler of the part alive.
# Exit code: 1 if a test failed, 3 if there is no GPU.
begin=$(date +%s)
cd "$(dirname "$0")/.." || exit 1
here=$(pwd) BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$here/$BUILD ;; esac
programs="finetune_full finetune_lora init_model make_tales tests/bench/bench_gpu"
tests="operations products attention norms updates device"

# ---- what another machine needs ----
sanitizer_package=nvidia-cuda-sanitizer-api==13.0.85 # from PyPI: compute-sanitizer
# less_blas PROGRAM... - OpenBLAS with no more than these programs call, half its size; false if its archive is not here.
less_blas() {
    whole=$(ldd "$1" | awk '/libopenblas/ { print $3 }')
    [ -e "$(dirname "$(readlink -f "$whole")")/libopenblas.a" ] || return 1
    wanted=$(for p in "$@"; do nm -D --undefined-only "$p"; done | grep -oE '(cblas|openblas)_[a-z0-9_]*' | sort -u | sed 's/^/-Wl,-u,/')
    # shellcheck disable=SC2086 # one word each
    ${CC:-cc} -shared -s -Wl,-z,defs -Wl,-soname,libopenblas.so.0 $wanted "$(dirname "$(readlink -f "$whole")")/libopenblas.a" -lm -lpthread \
        -o "$into/lib/libopenblas.so.0"
}
# commit_here - of this tree, and whether it was changed since.
commit_here() {
    at=$(git log -1 --format=%h 2>/dev/null) || at=unknown
    [ -z "$(git status --porcelain -- . ':!tests/bench/results' 2>/dev/null)" ] || at=$at+changes
    echo "$at"
}
pack() {
    from=$BUILD/gpu into=$BUILD/gpu-pack archive=$BUILD/gpu-pack.tar.gz
    make -s BUILD="$BUILD" NVCC_BUILD="$from" CUDA_ARCH="${CUDA_ARCH:-90a}" gpu || exit 1
    rm -rf "$into" && mkdir -p "$into/tests/gpu" "$into/tests/bench" "$into/lib" || exit 1
    for p in $programs; do cp "$BUILD/$p" "$into/$p" && strip --strip-unneeded "$into/$p" || exit 1; done
    cp "$from/tune_cuda.so" "$into" && strip --strip-unneeded "$into/tune_cuda.so" || exit 1
    for t in $tests; do cp "$from/tests/gpu/test_$t" "$into/tests/gpu" && strip "$into/tests/gpu/test_$t" || exit 1; done
    cp "$BUILD/tests/helpers/gpu_ranks" "$into/tests/gpu" && strip "$into/tests/gpu/gpu_ranks" || exit 1
    for l in tune_nccl.so tune_mpi.so; do [ ! -e "$BUILD/$l" ] || { cp "$BUILD/$l" "$into" && strip --strip-unneeded "$into/$l"; } || exit 1; done
    # All libraries but the C library's own, CUDA's, NCCL and MPI.
    less_blas "$into"/finetune_* "$into/init_model" "$into/make_tales" "$into/tests/bench/bench_gpu" "$into"/tests/gpu/test_* && less=openblas\|gfortran\|quadmath
    for p in "$into/finetune_full" "$into/tests/gpu/test_device"; do
        ldd "$p" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'
    done | grep -vE '/(libc|libm|libdl|libpthread|librt|tune_cuda|libcu[a-zA-Z]*|lib('"${less:-none}"'))\.so' | sort -u >"$into/libraries"
    while read -r library; do cp -L "$library" "$into/lib" || exit 1; done <"$into/libraries"
    rm "$into/libraries"
    # This script, the peers, defaults, and the sources that it compiles there.
    cp tests/gpu.sh "$into/tests" && cp tests/bench/gpu_peer.py "$into/tests/bench" && cp -r defaults "$into" || exit 1
    find components -name '*.h' -o -path '*/cuda/*.cu' | tar -cf - -T - | tar -C "$into" -xf - || exit 1
    commit_here >"$into/commit"
    if [ "$1" = sanitizer ]; then
        python3 -m pip download -q --disable-pip-version-check --no-deps -d "$into" "$sanitizer_package" || exit 1
    fi
    tar -C "$into" --owner=0 --group=0 -cf - . | gzip -9 >"$archive" || exit 1
    (cd "$into" && find . -type f -size +200k | sort | xargs ls -l | awk '{ printf "%9.2f MiB  %s\n", $5 / 1048576, $NF }')
    ls -l "$archive" | awk '{ printf "%9.2f MiB  the archive\n", $5 / 1048576 }'
    echo "# carry $archive alone, and unpack it there: sh tests/gpu.sh"
}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
folder=
case ${1:-} in
--pack) pack "${2:-}"; exit ;;
-*) sed -n '2,/^begin=/s/^# //p' "$0"; exit 0 ;;
*.tar.gz) folder=$tmp/programs && mkdir "$folder" && tar -C "$folder" -xzf "$1" || exit 1 ;;
"" | alive | ranks | numbers | why | peers | sanitizers) ;;
*)
    [ -d "$1" ] || { echo "gpu.sh: neither a part nor a folder: \"$1\"; --help says which" >&2; exit 2; }
    folder=$(cd "$1" && pwd) || exit 1
    ;;
esac
[ -z "$folder" ] || shift
commit=
if [ -z "$folder" ] && [ -x tests/bench/bench_gpu ]; then
    folder=$here
elif [ -z "$folder" ]; then
    commit=$(commit_here)
    make -s BUILD="$BUILD" ${CUDA_ARCH:+CUDA_ARCH="$CUDA_ARCH"} gpu || exit 1
    folder=$BUILD
fi
[ -n "$commit" ] || commit=$(cat "$folder/commit" 2>/dev/null) || commit=unknown
parts=${*:-alive ranks numbers why peers sanitizers}
for p in $parts; do
    case $p in alive | ranks | numbers | why | peers | sanitizers) ;; *) echo "gpu.sh: no part \"$p\"; --help says which" >&2; exit 2 ;; esac
done

# ---- libraries ----
export TUNE_DEFAULTS="$here/defaults"
[ ! -e "$folder/tune_cuda.so" ] || export TUNE_CUDA="$folder/tune_cuda.so"
export TUNE_CUDA_ALGORITHMS="$tmp/algorithms" # each call chooses anew
python=${TUNE_PYTHON:-$(command -v python3)}
nvcc=${NVCC-$(command -v nvcc || ls "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" 2>/dev/null)}
# The folders in which libcublasLt may be.
cuda_folders() {
    for d in "${CUDA_HOME:-/usr/local/cuda}/lib64" /usr/local/cuda-13*/lib64; do echo "$d"; done
    [ -z "$python" ] || timeout -k 5 20 "$python" -c 'import sys; [print(p + "/nvidia/cu13/lib") for p in sys.path if p]' 2>/dev/null
}
# ours PROGRAM... as a command: with the libraries above, for our programs alone. PyTorch has its own.
GPU_LIBRARIES=$LD_LIBRARY_PATH
for d in $(cuda_folders); do
    [ ! -e "$d/libcublasLt.so.13" ] || GPU_LIBRARIES=${GPU_LIBRARIES:+$GPU_LIBRARIES:}$d
    [ ! -e "$d/../../nccl/lib/libnccl.so.2" ] || GPU_LIBRARIES=${GPU_LIBRARIES:+$GPU_LIBRARIES:}$d/../../nccl/lib
done
[ ! -d "$folder/lib" ] || GPU_LIBRARIES=${GPU_LIBRARIES:+$GPU_LIBRARIES:}$folder/lib
export GPU_LIBRARIES
echo 'export LD_LIBRARY_PATH="$GPU_LIBRARIES"; exec "$@"' >"$tmp/ours"
ours="sh $tmp/ours"
bench=$folder/tests/bench/bench_gpu

if ! timeout -k 5 60 $ours "$bench" cuda 0 none >"$tmp/opened" 2>&1; then
    echo "gpu.sh: no GPU can be opened here:" >&2
    cat "$tmp/opened" >&2
    exit 3
fi
smi() { timeout -k 5 20 nvidia-smi "$@" 2>/dev/null; }
name=$(smi --query-gpu=name --format=csv,noheader | head -n 1)
gpu=$(echo "${name:-unknown}" | tr 'A-Z' 'a-z' | sed 's/nvidia //; s/[^a-z0-9]\{1,\}/-/g; s/-$//')
result=${GPU_RESULT:-$here/tests/bench/results/$(date +%Y-%m-%d)-$gpu.txt}
kept=${result%.txt}.d
mkdir -p "$kept" || exit 1

# ---- time ----
passed=0 failed=0 skipped=0
left() { echo $((${GPU_SECONDS:-520} - $(date +%s) + begin)); }
# part SECONDS TEXT - begin a part; false if there is no time for it. It may take that long, or what is left.
part() {
    most=$(left)
    [ "$most" -lt "$1" ] || most=$1
    [ "$most" -gt 0 ] || most=0
    echo
    echo "== $2 (at most $most s)"
    [ "$most" -gt 7 ] || { skip "$2" "no time is left"; return 1; }
    part_end=$(($(date +%s) + most))
}
# share SECONDS [slow] - into $limit: so many seconds of the part, or what is left of it without the five that -k may add. $cut:
# not to be done in it is no failure, as the part's time is short, or a tool slows the command down (slow).
share() {
    limit=$((part_end - $(date +%s) - 5)) cut=1 own=${GPU_LIMIT:-$1}
    [ "$limit" -lt "$own" ] || limit=$own cut=${2:-}
    [ "$limit" -gt 1 ]
}
# bounded COMMAND... - for $limit seconds at most; $took so many. A shell that waits can be stopped.
running=
bounded() {
    took=$(date +%s)
    timeout -k 5 "$limit" "$@" &
    running=$!
    wait "$running"
    set -- $?
    took=$(($(date +%s) - took))
    return "$1"
}
ok() { passed=$((passed + 1)) && echo "ok - $1"; }
not_ok() { failed=$((failed + 1)) && echo "not ok - $1"; }
skip() { skipped=$((skipped + 1)) && echo "ok - $1 # SKIP $2"; }
# judge NAME CODE - of a command that `bounded` ran, whose output is in $said.
judge() {
    why="exit code $2"
    case $2 in
    0) ok "$1"; return ;;
    124 | 137)
        if [ "$took" -lt "$limit" ]; then why="killed after $took s, exit code $2"
        elif [ -n "$cut" ]; then skip "$1" "not done in its $limit s"; return
        else why="not done in its $limit s"; fi ;;
    esac
    not_ok "$1: $why"
    tail -n 12 "$said" | cut -c1-300
    return 1
}
# into NAME - $said: the file that keeps its output.
into() { said=$kept/$(echo "$1" | tr ' ,/' '---').txt; }
# program NAME "SECONDS [slow]" COMMAND... - one that prints TAP, or nothing. All of it is kept. False if it failed.
program() {
    what=$1 most=$2
    shift 2
    into "$what"
    # shellcheck disable=SC2086 # one word or two
    share $most || { skip "$what" "no time is left"; return 0; }
    bounded "$@" >"$said" 2>&1
    code=$?
    grep -E '^# |^not ok' "$said" | cut -c1-200 | head -n 40
    [ $code != 0 ] || what="$what: $(grep -c '^ok' "$said") checks"
    judge "$what" $code
}

# ---- alive: is everything there, is everything right ----
version_of() { timeout -k 5 20 "$1" --version 2>&1 | grep -m 1 -E '[0-9]+\.[0-9]+' | cut -c1-120; }
facts() {
    echo "# tests/gpu.sh $parts, $(date -u +%Y-%m-%dT%H:%MZ), commit $commit"
    cat "$tmp/opened"
    smi --query-gpu=name,driver_version,compute_cap,memory.total,memory.used,clocks.max.sm,clocks.max.mem,power.limit --format=csv ||
        echo "# no nvidia-smi"
    grep -m 1 'model name' /proc/cpuinfo
    echo "# $(nproc) cores, $(grep MemAvailable /proc/meminfo)"
    for d in $(cuda_folders); do [ ! -e "$d/libcublasLt.so.13" ] || readlink -f "$d/libcublasLt.so.13"; done | sed "s|^$HOME|~|" | sort -u
}
# What could be built or measured here.
surroundings() {
    for tool in gcc g++ make "$nvcc" ncu nsys compute-sanitizer "$python"; do
        [ -z "$tool" ] || echo "# $tool: $(command -v "$tool" >/dev/null 2>&1 && version_of "$tool" || echo "not in PATH")"
    done
    ldconfig -p 2>/dev/null | grep -oE '(libcuda|libcublasLt|libcudnn|libnccl|libstdc\+\+|libgomp|libcjson|libopenblas)\.so\.[0-9]+ .*' | sort -u | sed 's/^/# /'
    for header in "${CUDA_HOME:-/usr/local/cuda}/include/cublasLt.h" /usr/include/cjson/cJSON.h /usr/include/*/cblas.h; do
        [ ! -e "$header" ] || echo "# $header"
    done
}

# Can kernels be built here? In the background, beside the tests.
rebuild() {
    compiling= not_built="no nvcc here"
    [ -n "$nvcc" ] || return
    arch=$(smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
    case ${arch:-90} in 90) arch=90a ;; esac
    mkdir "$tmp/rebuilt"
    share 240 || { not_built="no time is left"; return; }
    timeout -k 5 "$limit" sh -c '
        begin=$(date +%s)
        for f in components/devices/cuda/*.cu; do echo "$f"; done | xargs -P "$(nproc)" -I FILE sh -c "
            \"\$0\" -std=c++17 -O3 -arch=sm_\$1 -Xcompiler -fPIC -Icomponents -c FILE -o \"\$2/\$(basename FILE .cu).o\"" "$0" "$1" "$2" &&
            "$0" -shared -cudart static -arch="sm_$1" "$2"/*.o -lcublasLt -o "$2/tune_cuda.so" && echo "built in $(($(date +%s) - begin)) s"
        ' "$nvcc" "$arch" "$tmp/rebuilt" >"$kept/nvcc.txt" 2>&1 &
    compiling=$!
}
rebuilt() {
    [ -n "$compiling" ] || { skip "kernels built anew" "$not_built"; return; }
    running=$compiling
    wait "$compiling"
    code=$? said=$kept/nvcc.txt
    case $code in
    0) ok "kernels built anew for sm_$arch: $(tail -n 1 "$said")" ;;
    124 | 137) skip "kernels built anew" "not done in their time" ;;
    *) skip "kernels built anew" "nvcc cannot: $(grep -iE 'error|cannot' "$said" | head -n 1 | cut -c1-200)" ;;
    esac
}
alive() {
    part 400 "alive: each operation beside the CPU's, ${GPU_STEPS:-50} steps beside the CPU's" || return
    surroundings
    rebuild
    for t in $tests; do
        program "test_$t" 25 $ours "$folder/tests/gpu/test_$t" || under memcheck 60 "test_$t" "$folder/tests/gpu/test_$t"
    done
    curves
    rebuilt
}

# curve NAME LIMIT PROGRAM OPTION... - the losses of a run on either device differ by at most LIMIT, relative.
curve() {
    what=$1 far_at_most=$2 recipe=$3
    shift 3
    for device in cpu cuda; do
        into "$what, $device"
        share 15 || { skip "$what" "no time is left"; return; }
        bounded $ours "$folder/$recipe" --device $device --model "$tmp/tiny" --dataset "$tmp/text.jsonl" \
            ${GPU_CURVE:---max-length 64 --batch-size 4} --max-steps "${GPU_STEPS:-50}" --lr 1e-3 --log-every 1 --no-save --overwrite --output "$tmp/$device" "$@" >"$said" 2>&1 ||
            { judge "$what, on $device" $?; return; }
        sed -n 's/.*"loss":\([^,}]*\).*/\1/p' "$tmp/$device/metrics.jsonl" >"$tmp/$device.losses"
    done
    near "$what" "$far_at_most" cpu cuda "the CPU's"
}
# near NAME LIMIT A B WHOSE - the losses of run B differ from those of run A by at most LIMIT, relative.
near() {
    far=$(paste -d ' ' "$tmp/$3.losses" "$tmp/$4.losses" | awk -v steps="${GPU_STEPS:-50}" '
        { d = ($1 > $2 ? $1 - $2 : $2 - $1) / $1; if (!(d <= worst)) worst = d; n += NF == 2 }
        END { if (n == steps) printf "%.2g", worst; else print "missing" }')
    first=$(head -n 1 "$tmp/$4.losses") last=$(tail -n 1 "$tmp/$4.losses")
    if awk -v far="$far" -v limit="$2" 'BEGIN { exit !(far != "missing" && far <= limit) }'; then
        ok "$1: loss $first to $last, at most $far from $5 (limit $2)"
    else
        not_ok "$1: $far from $5, limit $2"
    fi
}
# tiny_model - a model and texts to train it on; false if they cannot be made.
tiny_model() {
    [ ! -e "$tmp/tiny" ] || return 0
    into "a tiny model"
    share 30 || { skip "a tiny model" "no time is left"; return 1; }
    bounded $ours "$folder/make_tales" --rows 300 --seed 1 --output "$tmp/text.jsonl" >"$said" 2>&1 &&
        bounded $ours "$folder/init_model" --like tinyllama-1.1b --seed 1 --dtype float32 --max-positions 96 --layers 2 --hidden-size 64 \
            --intermediate-size 96 --heads 4 --kv-heads 2 --vocab-size 280 --tokenizer-text "$tmp/text.jsonl" "$tmp/tiny" >>"$said" 2>&1 ||
        { not_ok "a tiny model"; tail -n 3 "$said"; return 1; }
}
curves() {
    tiny_model || return
    curve "full, float32" 1e-4 finetune_full
    curve "full, bfloat16" 2e-2 finetune_full --dtype bfloat16
    curve "LoRA, float32" 1e-4 finetune_lora --lora-r 4
    curve "LoRA, bfloat16" 2e-2 finetune_lora --lora-r 4 --dtype bfloat16
    curve "QLoRA, float32" 1e-4 finetune_lora --lora-r 4 --base-dtype nf4
}

# ---- ranks: NCCL on one GPU, and on two where there are two ----
ranks() {
    part 200 "ranks: sums by NCCL, and in the order of the ranks" || return
    gpu_ranks=$folder/tests/gpu/gpu_ranks
    [ -e "$gpu_ranks" ] || gpu_ranks=$folder/tests/helpers/gpu_ranks
    export TUNE_MPI="$folder/tune_mpi.so"
    [ ! -e "$folder/tune_nccl.so" ] || export TUNE_NCCL="$folder/tune_nccl.so"
    into "one rank"
    share 60 || { skip "one rank" "no time is left"; return; }
    bounded $ours "$gpu_ranks" >"$said" 2>&1
    code=$?
    cat "$said"
    if [ $code = 1 ] && grep -qE 'no tune_nccl.so|cannot load' "$said"; then skip "ranks" "NCCL is not installed"; return; fi
    judge "one rank through NCCL" $code || return
    program "one rank, exactly" 60 $ours "$gpu_ranks" exact
    many=$(smi --query-gpu=index --format=csv,noheader | grep -c .)
    [ "$many" -ge 2 ] || { skip "two ranks" "this machine has one GPU"; return; }
    command -v mpirun >/dev/null && [ -e "$TUNE_MPI" ] || { skip "two ranks" "there is no mpirun, or no tune_mpi.so"; return; }
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    for how in "" exact; do
        for time in first second; do
            into "two ranks $how $time"
            share 60 || { skip "two ranks $how" "no time is left"; return; }
            # shellcheck disable=SC2086 # one word or none
            bounded mpirun -q --bind-to none -n 2 $ours "$gpu_ranks" $how >"$said" 2>&1
            judge "two ranks through NCCL${how:+, exactly}" $? || return
        done
        if cmp -s "$kept/$(echo "two ranks $how first" | tr ' ' -).txt" "$said"; then ok "... the same bits twice"; else not_ok "... the same bits twice"; fi
    done
    shards
}
# A training on two GPUs, whatever they share out, has the losses of one GPU.
shards() {
    tiny_model || return
    for run in one ddp optimizer fsdp; do
        case $run in one) more="--accumulate 2" ;; *) more="--ranks 2 --shard $run" ;; esac
        into "a training, $run"
        share 30 || { skip "a training on two GPUs" "no time is left"; return; }
        # shellcheck disable=SC2086 # options without spaces
        bounded $ours "$folder/finetune_full" --device cuda --model "$tmp/tiny" --dataset "$tmp/text.jsonl" ${GPU_CURVE:---max-length 64 --batch-size 4} \
            --max-steps "${GPU_STEPS:-50}" --lr 1e-3 --log-every 1 --no-save --overwrite --output "$tmp/$run" $more >"$said" 2>&1 ||
            { judge "a training on two GPUs, $run" $?; return; }
        sed -n 's/.*"loss":\([^,}]*\).*/\1/p' "$tmp/$run/metrics.jsonl" >"$tmp/$run.losses"
        [ $run = one ] || near "a training on two GPUs, --shard $run" 1e-4 one $run "one GPU's"
    done
}

# ---- numbers: what is fast, what is slow ----
case ${GPU_BENCH:-} in *tiny*) sizes=tiny lora=tiny-lora full=tiny-full ;; *) sizes= lora=llama3-8b-lora full=smollm2-135m-full ;; esac
# steps NAME SECONDS [VARIABLE=VALUE...] -- WORD... - bench_gpu's steps, and how much memory nvidia-smi saw meanwhile.
steps() {
    what=$1 most=$2 variables=
    shift 2
    while [ "$1" != -- ]; do variables="$variables $1" && shift; done
    shift
    into "$what"
    share "$most" || { skip "$what" "no time is left"; return 1; }
    nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -lms 200 >"$tmp/used" 2>/dev/null &
    watching=$!
    # shellcheck disable=SC2086 # seconds, and maybe a word; variables without spaces
    bounded env $variables $ours "$bench" cuda ${GPU_BENCH:-1} steps "$@" >"$said" 2>&1
    code=$?
    kill "$watching" 2>/dev/null
    sed -n '/ a step, /p' "$said"
    awk -v what="$what" '$1 > most { most = $1 } END { if (most) print "# " what ": nvidia-smi saw at most " most " MiB in use" }' "$tmp/used"
    judge "$what" $code
}
# bits NAME OTHER - the fourth step's loss has the same digits in both.
loss_of() { into "$1" && sed -n 's/.*the fourth step.s loss \([^ ;]*\).*/\1/p' "$said" 2>/dev/null; }
bits() {
    one=$(loss_of "$1") other=$(loss_of "$2")
    if [ -z "$one" ] || [ -z "$other" ]; then skip "$2: the bits of $1" "one has no loss"
    elif [ "$one" = "$other" ]; then ok "$2: the bits of $1"
    else not_ok "$2: loss $other; $1: $one"; fi
}
numbers() {
    part 500 "numbers: rates, and whole steps" || return
    if share 140; then
        said=/dev/null
        # shellcheck disable=SC2086
        bounded $ours "$bench" cuda ${GPU_BENCH:-1} figures
        judge figures $?
    else skip figures "no time is left"; fi
    steps "$lora" 60 -- case=$lora && {
        steps "$lora with kept algorithms" 30 -- case=$lora && bits "$lora" "$lora with kept algorithms"
        steps "$lora without graphs" 30 TUNE_CUDA_GRAPHS=0 -- case=$lora && bits "$lora" "$lora without graphs"
        steps "$lora without timed algorithms" 30 TUNE_CUDA_ALGORITHMS=off -- case=$lora
    }
    steps "$full" 40 -- case=$full && {
        steps "$full with kept algorithms" 20 -- case=$full && bits "$full" "$full with kept algorithms"
        steps "$full without graphs" 20 TUNE_CUDA_GRAPHS=0 -- case=$full && bits "$full" "$full without graphs"
    }
    for mib in ${GPU_LOGITS:-48 256 1024}; do
        for c in $lora $full; do steps "$c, logits of $mib MiB" 20 -- case=$c logits=$mib; done
    done
}

# ---- why: where the time goes ----
# Of a shallow model: one pass times every kernel of a step; then three sections for one launch of each kind of kernel.
why() {
    part 500 "why: each kernel of a step by ncu" || return
    ncu=$(command -v ncu || ls "${CUDA_HOME:-/usr/local/cuda}/bin/ncu" 2>/dev/null)
    [ -n "$ncu" ] || { skip "ncu" "it is not installed"; return; }
    into "ncu, times"
    share 150 slow || { skip "ncu" "no time is left"; return; }
    # shellcheck disable=SC2086
    bounded env TUNE_CUDA_GRAPHS=0 TUNE_CUDA_ALGORITHMS=off "$ncu" --target-processes all --clock-control none --metrics gpu__time_duration.sum \
        --csv --page raw $ours "$bench" cuda ${GPU_BENCH:-1} steps case=$lora layers=4 count=1 >"$said" 2>&1
    judge "ncu, times" $? || return
    # The sum of each kernel's times, by the columns' names.
    sed -n '/^"ID"/,$p' "$said" | sed 's/^"//; s/"$//; s/","/\t/g' | awk -F '\t' '
        NR == 1 { for (i = 1; i <= NF; i++) { if ($i == "Kernel Name") name = i; if ($i == "gpu__time_duration.sum") time = i }; next }
        NR == 2 { unit = $time; next }
        NF >= time && NF >= name { gsub(",", "", $time); sub(/[(].*/, "", $name); sum[$name] += $time; n[$name]++ }
        END { for (k in sum) printf "%14.1f %s %6d x %s\n", sum[k], unit, n[k], substr(k, 1, 120) }' | sort -rn | head -n 60
    # KERNEL WORD...: what bench_gpu is to do
    while read -r kernel words; do
        into "ncu, $kernel"
        share 30 slow || { skip "ncu, $kernel" "no time is left"; continue; }
        # shellcheck disable=SC2086
        bounded env TUNE_CUDA_GRAPHS=0 TUNE_CUDA_ALGORITHMS=off "$ncu" --target-processes all --clock-control none --section SpeedOfLight \
            --section Occupancy --section MemoryWorkloadAnalysis --kernel-name "regex:^$kernel" --launch-count 1 \
            $ours "$bench" cuda 0.01 $sizes $words >"$said" 2>&1
        code=$?
        grep -E '^  *[a-z].*Context|Throughput|Duration|Occupancy|Registers|Hit Rate' "$said" | cut -c1-110
        judge "ncu, $kernel" $code
    done <<LIST
forward figures only=attention
gradients figures only=attention
query_sums figures only=attention
cross_entropy figures only=cross_entropy
glu figures only=glu_forward
glu_dx figures only=glu_backward
rotate figures only=rope
rmsnorm_dx figures only=rmsnorm_backward
move_rows figures only=rank_16
expand figures only=NF4
adamw figures only=adamw
LIST
}

# ---- peers ----
peers() {
    part 510 "peers: the same by PyTorch, transformers and PEFT" || return
    [ -n "$python" ] || { skip peers "there is no python3"; return; }
    into peers
    share 505 || { skip peers "no time is left"; return; }
    # shellcheck disable=SC2086
    bounded "$python" tests/bench/gpu_peer.py ${GPU_BENCH:-1} until=$((limit - 10)) 2>"$said"
    code=$?
    [ $code = 0 ] || { skip peers "ended with $code"; tail -n 3 "$said"; return; }
    ok peers
}

# ---- sanitizers ----
find_sanitizer() {
    [ -z "$sanitizer" ] || return 0
    for wheel in "$folder"/nvidia_cuda_sanitizer_api-*.whl; do
        [ ! -e "$wheel" ] || [ -z "$python" ] || "$python" -m zipfile -e "$wheel" "$tmp/sanitizer" || rm -rf "$tmp/sanitizer"
    done
    sanitizer=$(command -v compute-sanitizer || ls "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" \
        "$tmp"/sanitizer/nvidia/cu13/bin/compute-sanitizer 2>/dev/null | head -n 1)
    case $sanitizer in "$tmp"/*) chmod +x "$tmp"/sanitizer/nvidia/cu13/bin/* ;; esac
    [ -n "$sanitizer" ]
}
# under TOOL SECONDS NAME COMMAND...
under() {
    tool=$1 most=$2 which=$3
    shift 3
    find_sanitizer || { skip "$tool, $which" "compute-sanitizer is not installed"; return; }
    quiet=
    [ "$tool" != memcheck ] || quiet="--report-api-errors no" # a test makes an allocation fail
    # shellcheck disable=SC2086
    program "$tool, $which" "$most slow" "$sanitizer" --target-processes all --tool "$tool" $quiet --error-exitcode 9 $ours "$@"
}
sanitizers() {
    part 500 "sanitizers" || return
    find_sanitizer || { skip "sanitizers" "compute-sanitizer is not installed"; return; }
    timeout -k 5 20 "$sanitizer" --version | tail -n 1
    for tool in memcheck racecheck synccheck initcheck; do
        for t in attention norms operations products; do under $tool 26 "test_$t" "$folder/tests/gpu/test_$t"; done
    done
    tiny_model || return
    # shellcheck disable=SC2086
    under memcheck 60 "three steps of finetune_lora" "$folder/finetune_lora" --device cuda --model "$tmp/tiny" --dataset "$tmp/text.jsonl" \
        ${GPU_CURVE:---max-length 64 --batch-size 4} --max-steps 3 --lora-r 4 --dtype bfloat16 --no-save --overwrite --output "$tmp/checked"
}

everything() {
    compiling= watching=
    trap 'kill $running $compiling $watching 2>/dev/null; exit 130' TERM
    facts
    for p in $parts; do $p; done
    echo
    echo "$passed passed, $failed failed, $skipped skipped, in $(($(date +%s) - begin)) s"
}
# Straight into the file. The shell waits for both, so that a signal stops them.
mkfifo "$tmp/pipe" || exit 1
tee "$result" <"$tmp/pipe" &
everything >"$tmp/pipe" 2>&1 &
worker=$!
trap 'kill "$worker"; wait; exit 130' INT TERM
wait
echo "# written to $result, each test's whole output to $kept"
tail -n 1 "$result" | grep -q ', 0 failed,'
