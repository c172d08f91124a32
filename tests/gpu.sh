#!/bin/sh
# gpu.sh [FOLDER | ARCHIVE] - everything that only a machine with a GPU can say, in one call of at most ten minutes: the tests of
# operations, compute-sanitizer, 50 steps beside the CPU, the benches, and the same by PyTorch where it is installed. The
# output goes to tests/bench/results/<date>-<gpu>.txt. Send us that file.
#   FOLDER      the programs, or the archive that `gpu.sh --pack` made elsewhere. Without it `make gpu` builds them here.
#   --pack      build for any x86-64 processor with AVX2, and collect what such a machine needs in build/gpu-pack.tar.gz. Its
#               CUDA Toolkit, or PyPI's packages, must have libcublasLt.so.13, which is too large to carry.
# GPU_SECONDS: for all of it (580). GPU_PARTS: "operations sanitizers curves benches peers", or some of them. GPU_RESULT: where
# the output goes. CUDA_ARCH: architectures to build for (all). To try the script out: GPU_STEPS, of a curve (50); GPU_CURVE,
# its size; GPU_BENCH, seconds of a figure (2), then "tiny" for small sizes.
# Exit code: 1 if a test failed, 3 if there is no GPU.
cd "$(dirname "$0")/.." || exit 1
here=$(pwd) BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$here/$BUILD ;; esac
programs="finetune_full finetune_lora init_model make_tales tests/bench/bench_gpu"
tests="operations products attention norms updates device"

# ---- what another machine needs ----
sanitizer_package=nvidia-cuda-sanitizer-api==13.0.85 # from PyPI: compute-sanitizer
pack() {
    from=$here/build/gpu into=$here/build/gpu-pack archive=$here/build/gpu-pack.tar.gz
    make -s BUILD="$from" ${CUDA_ARCH:+CUDA_ARCH="$CUDA_ARCH"} gpu || exit 1
    rm -rf "$into" && mkdir -p "$into/tests/gpu" "$into/tests/bench" "$into/lib" || exit 1
    for p in $programs tune_cuda.so; do cp "$from/$p" "$into/$p" && strip --strip-unneeded "$into/$p" || exit 1; done
    for t in $tests; do cp "$from/tests/gpu/test_$t" "$into/tests/gpu" && strip "$into/tests/gpu/test_$t" || exit 1; done
    # All libraries but the C library's own and CUDA's.
    for p in "$into/finetune_full" "$into/tests/gpu/test_device"; do
        ldd "$p" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'
    done | grep -vE '/(libc|libm|libdl|libpthread|librt|tune_cuda|libcu[a-zA-Z]*)\.so' | sort -u >"$into/libraries"
    while read -r library; do cp -L "$library" "$into/lib" || exit 1; done <"$into/libraries"
    rm "$into/libraries"
    python3 -m pip download -q --disable-pip-version-check --no-deps -d "$into" "$sanitizer_package" ||
        echo "# compute-sanitizer is not carried: pip cannot download $sanitizer_package"
    tar -C "$into" -czf "$archive" . || exit 1
    (cd "$into" && find . -type f | sort | xargs ls -l | awk '{ printf "%9.2f MiB  %s\n", $5 / 1048576, $NF }')
    ls -l "$archive" | awk '{ printf "%9.2f MiB  the archive\n", $5 / 1048576 }'
    echo "# carry this tree and build/gpu-pack.tar.gz; there: sh tests/gpu.sh build/gpu-pack.tar.gz"
}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
case ${1:-} in
--pack) pack; exit ;;
-*) sed -n '2,/^cd /s/^# //p' "$0"; exit 0 ;;
"") make -s BUILD="$BUILD" ${CUDA_ARCH:+CUDA_ARCH="$CUDA_ARCH"} gpu || exit 1; folder=$BUILD ;;
*.tar.gz) folder=$tmp/programs && mkdir "$folder" && tar -C "$folder" -xzf "$1" || exit 1 ;;
*) folder=$(cd "$1" && pwd) || exit 1 ;;
esac

# ---- libraries ----
export TUNE_DEFAULTS="$here/defaults"
[ ! -e "$folder/tune_cuda.so" ] || export TUNE_CUDA="$folder/tune_cuda.so"
python=${TUNE_PYTHON:-$(command -v python3)}
# The folders in which libcublasLt may be.
cuda_folders() {
    for d in "${CUDA_HOME:-/usr/local/cuda}/lib64" /usr/local/cuda-13*/lib64; do echo "$d"; done
    [ -z "$python" ] || "$python" -c 'import sys; [print(p + "/nvidia/cu13/lib") for p in sys.path if p]' 2>/dev/null
}
for d in $(cuda_folders); do
    [ ! -e "$d/libcublasLt.so.13" ] || LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$d
done
[ ! -d "$folder/lib" ] || LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder/lib
export LD_LIBRARY_PATH

if ! "$folder/tests/bench/bench_gpu" cuda 0 none >"$tmp/opened" 2>&1; then
    echo "gpu.sh: no GPU can be opened here:" >&2
    cat "$tmp/opened" >&2
    exit 3
fi
name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)
gpu=$(echo "${name:-unknown}" | tr 'A-Z' 'a-z' | sed 's/nvidia //; s/[^a-z0-9]\{1,\}/-/g; s/-$//')
result=${GPU_RESULT:-$here/tests/bench/results/$(date +%Y-%m-%d)-$gpu.txt}

# ---- the parts ----
begin=$(date +%s) passed=0 failed=0 skipped=0
left() { echo $((${GPU_SECONDS:-580} - $(date +%s) + begin)); }
# part SECONDS TEXT - begin a part; false if there is no time for it. It may take $most seconds.
part() {
    most=$(left)
    [ "$most" -lt "$1" ] || most=$1
    echo
    echo "== $2 (at most $most s)"
    [ "$most" -gt 2 ] || { skip "$2" "no time is left"; return 1; }
    part_end=$(($(date +%s) + most))
}
part_left() { echo $((part_end - $(date +%s) > 1 ? part_end - $(date +%s) : 1)); }
ok() { passed=$((passed + 1)) && echo "ok - $1"; }
not_ok() { failed=$((failed + 1)) && echo "not ok - $1"; }
skip() { skipped=$((skipped + 1)) && echo "ok - $1 # SKIP $2"; }
# program NAME COMMAND... - one that prints TAP, or nothing.
program() {
    what=$1
    shift
    timeout "$(part_left)" "$@" >"$tmp/said" 2>&1
    code=$?
    grep -E '^# |^not ok' "$tmp/said" | cut -c1-200 | head -n 40
    case $code in
    0) ok "$what: $(grep -c '^ok' "$tmp/said") checks" ;;
    124 | 137) skip "$what" "not done in its time" ;;
    *) not_ok "$what: exit code $code"; tail -n 12 "$tmp/said" | cut -c1-300 ;;
    esac
}

facts() {
    echo "# tests/gpu.sh, $(date -u +%Y-%m-%dT%H:%MZ), commit $(git log -1 --format=%h 2>/dev/null || echo unknown)"
    cat "$tmp/opened"
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit --format=csv 2>/dev/null || echo "# no nvidia-smi"
    grep -m 1 'model name' /proc/cpuinfo
    for d in $(cuda_folders); do [ ! -e "$d/libcublasLt.so.13" ] || readlink -f "$d/libcublasLt.so.13"; done | sed "s|^$HOME|~|" | sort -u
}

operations() {
    part 100 "operations beside the CPU's" || return
    for t in $tests; do program "test_$t" "$folder/tests/gpu/test_$t"; done
}

sanitizers() {
    part 120 "compute-sanitizer" || return
    for wheel in "$folder"/nvidia_cuda_sanitizer_api-*.whl; do
        [ ! -e "$wheel" ] || [ -z "$python" ] || "$python" -m zipfile -e "$wheel" "$tmp/sanitizer" || rm -rf "$tmp/sanitizer"
    done
    sanitizer=$(command -v compute-sanitizer || ls "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" \
        "$tmp"/sanitizer/nvidia/cu13/bin/compute-sanitizer 2>/dev/null | head -n 1)
    case $sanitizer in "$tmp"/*) chmod +x "$tmp"/sanitizer/nvidia/cu13/bin/* ;; esac
    [ -n "$sanitizer" ] || { skip "compute-sanitizer" "it is not installed"; return; }
    "$sanitizer" --version | tail -n 1
    for tool in memcheck racecheck synccheck initcheck; do
        until=$(($(part_left) / 2))
        for t in attention norms operations; do
            [ "$until" -gt 2 ] || { skip "$tool, test_$t" "no time is left"; continue; }
            program "$tool, test_$t" timeout "$until" "$sanitizer" --tool $tool --error-exitcode 9 "$folder/tests/gpu/test_$t"
        done
    done
}

# curve NAME LIMIT PROGRAM OPTION... - the losses of a run on either device differ by at most LIMIT, relative.
curve() {
    what=$1 limit=$2 recipe=$3
    shift 3
    for device in cpu cuda; do
        timeout "$(part_left)" "$folder/$recipe" --device $device --model "$tmp/tiny" --dataset "$tmp/text.jsonl" \
            ${GPU_CURVE:---max-length 64 --batch-size 4} --max-steps "${GPU_STEPS:-50}" --lr 1e-3 --log-every 1 --no-save --overwrite --output "$tmp/$device" "$@" >"$tmp/said" 2>&1 ||
            { not_ok "$what, on $device"; tail -n 3 "$tmp/said"; return; }
        sed -n 's/.*"loss":\([^,}]*\).*/\1/p' "$tmp/$device/metrics.jsonl" >"$tmp/$device.losses"
    done
    far=$(paste -d ' ' "$tmp/cpu.losses" "$tmp/cuda.losses" | awk -v steps="${GPU_STEPS:-50}" '
        { d = ($1 > $2 ? $1 - $2 : $2 - $1) / $1; if (!(d <= worst)) worst = d; n += NF == 2 }
        END { if (n == steps) printf "%.2g", worst; else print "missing" }')
    first=$(head -n 1 "$tmp/cuda.losses") last=$(tail -n 1 "$tmp/cuda.losses")
    if awk -v far="$far" -v limit="$limit" 'BEGIN { exit !(far != "missing" && far <= limit) }'; then
        ok "$what: loss $first to $last, at most $far from the CPU's (limit $limit)"
    else
        not_ok "$what: $far from the CPU's, limit $limit"
    fi
}
curves() {
    part 90 "${GPU_STEPS:-50} steps beside the CPU's" || return
    "$folder/make_tales" --rows 300 --seed 1 --output "$tmp/text.jsonl" &&
        "$folder/init_model" --like tinyllama-1.1b --seed 1 --dtype float32 --max-positions 96 --layers 2 --hidden-size 64 \
            --intermediate-size 96 --heads 4 --kv-heads 2 --vocab-size 280 --tokenizer-text "$tmp/text.jsonl" "$tmp/tiny" >"$tmp/said" 2>&1 ||
        { not_ok "a tiny model"; tail -n 3 "$tmp/said"; return; }
    curve "full, float32" 1e-4 finetune_full
    curve "full, bfloat16" 2e-2 finetune_full --dtype bfloat16
    curve "LoRA, float32" 1e-4 finetune_lora --lora-r 4
    curve "LoRA, bfloat16" 2e-2 finetune_lora --lora-r 4 --dtype bfloat16
    curve "QLoRA, float32" 1e-4 finetune_lora --lora-r 4 --base-dtype nf4
}

benches() {
    part 150 "benches" || return
    # shellcheck disable=SC2086 # seconds, and maybe a word
    timeout "$most" "$folder/tests/bench/bench_gpu" cuda ${GPU_BENCH:-2}
    case $? in 0) ok benches ;; 124) skip benches "not done in $most s" ;; *) not_ok benches ;; esac
}

peers() {
    part 120 "the same by PyTorch, transformers and PEFT" || return
    [ -n "$python" ] || { skip peers "there is no python3"; return; }
    timeout "$most" "$python" tests/bench/gpu_peer.py "${GPU_BENCH:-2}" 2>"$tmp/said"
    code=$?
    [ $code = 0 ] || { skip peers "ended with $code"; tail -n 3 "$tmp/said"; }
}

everything() {
    facts
    for one in ${GPU_PARTS:-operations sanitizers curves benches peers}; do $one; done
    echo
    echo "$passed passed, $failed failed, $skipped skipped"
}
everything 2>&1 | tee "$tmp/result"
mkdir -p "$(dirname "$result")" && cp "$tmp/result" "$result" || exit 1
echo "# written to $result"
tail -n 1 "$tmp/result" | grep -q ', 0 failed,'
