#!/bin/sh
# gpu_pack.sh - the archive of `gpu.sh --pack` in a root folder that has what a small Ubuntu image has, libcublasLt.so.13 and no
# GPU: everything is found, and it ends at "no GPU". Runs behind tests/cuda_compiled.sh (make test-cuda-compiled), whose nvcc it
# takes where there is no CUDA Toolkit.
cd "$(dirname "$0")/.." || exit 1
. tests/tap.sh
left_out() {
    skip "the archive for a machine with a GPU" "$1"
    finish
}
[ "${CUDA:-1}" != 0 ] || left_out "make CUDA=0 leaves CUDA out"
[ -n "$NVCC" ] || NVCC=$(ls "${TUNE_VENV_CUDA:-${HOME:-/tmp}/.cache/tune.c/venv-cuda}"/lib/python3*/site-packages/nvidia/cu13/bin/nvcc 2>/dev/null)
[ -n "$NVCC" ] || left_out "there is no nvcc"
export NVCC
cublas=
for d in lib64 lib; do f=$(dirname "$(dirname "$(readlink -f "$NVCC")")")/$d/libcublasLt.so.13 && [ -e "$f" ] && cublas=$(readlink -f "$f"); done
[ -n "$cublas" ] || left_out "no libcublasLt.so.13 beside $NVCC"

archive=$BUILD/gpu-pack.tar.gz
is "gpu.sh --pack" eval 'unset CUDA_ARCH; sh tests/gpu.sh --pack >"$tmp/log" 2>&1 || { tail -n 20 "$tmp/log"; false; }'
[ -e "$archive" ] || finish
is "it has at most 24 MiB" eval '[ "$(wc -c <"$archive")" -le $((24 << 20)) ] || { ls -l "$archive"; false; }'

# ---- a bare root ----
root=$tmp/root
mkdir -p "$root/proc" "$root/tmp" "$root/dev" "$root/bin" "$root/usr/local/cuda/lib64" "$root/pack"
unshare -rm sh -c 'mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev" && chroot / true' "$root" 2>/dev/null || left_out "this system lets us make no root folder of our own (unshare)"
# dash, coreutils, grep, sed, mawk, tar, gzip, findutils and their libraries, and those of the C library: nothing else.
for p in sh awk basename cat cp cut date dirname env find grep gzip head ls mkdir mkfifo mktemp nproc paste readlink rm sed sleep sort tail tar tee timeout tr wc xargs; do
    cp -L "$(command -v $p)" "$root/bin/$p" && ldd "$root/bin/$p" | grep -oE '/[^ ]+' | grep -v "^$root"
done >"$tmp/libraries"
ldd "$cublas" | grep -oE '/[^ ]+/lib(c|m|dl|rt|pthread)\.so\.[0-9]+' >>"$tmp/libraries"
while read -r f; do mkdir -p "$root/$(dirname "$f")" && cp -L "$f" "$root/$f"; done <<EOF
$(sort -u "$tmp/libraries")
EOF
: >"$root/usr/local/cuda/lib64/libcublasLt.so.13"
# bare COMMAND... - there, with cuBLASLt; $without set: without it.
bare() {
    unshare -rm sh -c 'root=$0 cublas=$1 && shift && mount --rbind /proc "$root/proc" && mount --rbind /dev "$root/dev" &&
        { [ -z "$cublas" ] || mount --bind "$cublas" "$root/usr/local/cuda/lib64/libcublasLt.so.13"; } && exec chroot "$root" "$@"' \
        "$root" "${without+}${without-$cublas}" "$@"
}
on() { bare /bin/env -i PATH=/bin HOME=/ "$@"; }
is "it unpacks there" on tar -C /pack -xzf - <"$archive"
gpu() { on sh /pack/tests/gpu.sh "$@" >"$tmp/out" 2>&1; }
is "everything is found, and there is no GPU: exit code 3" eval 'gpu alive; code=$?; cat "$tmp/out"; [ $code = 3 ] && grep -q "no GPU can be opened here" "$tmp/out" && grep -qi "driver" "$tmp/out" && ! grep -qE "cannot load|not found|No such file" "$tmp/out"'
# not_started LIBRARIES - the programs that do not start with them.
not_started() { for p in finetune_full finetune_lora init_model make_tales; do on env LD_LIBRARY_PATH="$1" "/pack/$p" --version >/dev/null 2>&1 || echo "$p"; done; }
none "the other programs start" "$(not_started /pack/lib)"
is "... none without the libraries that the archive carries" eval '[ "$(not_started /nothing | wc -l)" = 4 ]'
loads() {
    for t in operations products attention norms updates device; do
        on env LD_LIBRARY_PATH=/pack/lib:/usr/local/cuda/lib64 "/pack/tests/gpu/test_$t" >"$tmp/said" 2>&1
        grep -qE '^(not )?ok|driver' "$tmp/said" || { echo "$t:"; cat "$tmp/said"; }
    done
}
none "the tests load, and miss nothing but a GPU" "$(loads)"
is "without libcublasLt.so.13 that is said" eval 'without=; gpu; code=$?; unset without; cat "$tmp/out"; [ $code = 3 ] && grep -q "libcublasLt.so.13: " "$tmp/out"'
sources() { for f in components/devices/cuda/*.cu; do (cd "$root/pack" && "$NVCC" -std=c++17 -arch=sm_90a -Icomponents -M "$f" >/dev/null) || echo "$f"; done; }
none "the sources of the kernels are there, with all that they include" "$(sources 2>&1)"
finish
