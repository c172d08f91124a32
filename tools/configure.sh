#!/bin/sh
# configure.sh FILE - find the libraries and write what make needs to FILE and, for people, to FILE.found.
# By pkg-config first, then by compiling and linking four lines. Never fails: what is missing is said, and the
# compiler's own message follows when something really needs it.
out=$1
CC=${CC:-cc}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$(dirname "$out")"
: >"$tmp/new"
: >"$tmp/found.new"
found=

# look NAME pkg "default cflags" "default libs" "header" "expression" package
# Without default libs only the header is looked for: the library is opened when it is needed.
look() {
    name=$1 pkg=$2 cflags=$3 libs=$4 header=$5 expression=$6 package=$7 how=
    printf '#include <stdio.h>\n#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <%s>\nint main(void) { return (%s) == 12345; }\n' "$header" "$expression" >"$tmp/t.c"
    if command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "$pkg" 2>/dev/null; then
        c=$(pkg-config --cflags "$pkg") l=
        [ -z "$libs" ] || l=$(pkg-config --libs "$pkg")
        $CC $c "$tmp/t.c" $l -o "$tmp/t" 2>/dev/null && how="pkg-config $pkg $(pkg-config --modversion "$pkg")" cflags=$c libs=$l
    fi
    if [ -z "$how" ] && $CC $cflags "$tmp/t.c" $libs -o "$tmp/t" 2>/dev/null; then
        how="compiles with ${libs:-$header}"
    fi
    printf '%s_CFLAGS ?= %s\n' "$name" "$cflags" >>"$tmp/new"
    [ -z "$libs" ] || printf '%s_LIBS ?= %s\n' "$name" "$libs" >>"$tmp/new"
    if [ -n "$how" ]; then
        printf '# %-8s found: %s\n' "$name" "$how" >>"$tmp/found.new"
        found="$found $name"
    else
        [ "$name" != MPI ] || { printf '# MPI      not found; only several ranks on CPUs need it (Debian: apt-get install libopenmpi-dev openmpi-bin)\n' >>"$tmp/found.new"; return; }
        [ "$name" != NCCL ] || { printf '# NCCL     not found; only several GPUs need it (python3 -m pip install nvidia-nccl-cu13 nvidia-cuda-runtime)\n' >>"$tmp/found.new"; return; }
        [ "$name" != CMOCKA ] || { printf '# CMOCKA   not found; only the tests need it: make setup-test\n' >>"$tmp/found.new"; return; }
        printf '# %-8s NOT FOUND: make setup (Debian: apt-get install %s), or set %s_CFLAGS%s\n' \
            "$name" "$package" "$name" "${libs:+ and ${name}_LIBS}" >>"$tmp/found.new"
    fi
}
look CJSON libcjson "" "-lcjson" cjson/cJSON.h 'cJSON_Parse("1") != NULL' libcjson-dev
look YAML yaml-0.1 "" "" yaml.h 'sizeof(yaml_parser_t) > 0' libyaml-dev
look OPENBLAS openblas "" "-lopenblas" cblas.h 'openblas_get_num_threads()' libopenblas-dev
look CMOCKA cmocka "" "-lcmocka" cmocka.h 'cmocka_set_message_output(CM_OUTPUT_TAP), 0' libcmocka-dev
# The serial build, which Debian keeps beside others, under names of its own. The function came with 1.10.5.
hdf5=hdf5 cflags= libs=-lhdf5
pkg-config --exists hdf5-serial 2>/dev/null && hdf5=hdf5-serial
[ ! -d /usr/include/hdf5/serial ] || { cflags=-I/usr/include/hdf5/serial; libs=-lhdf5_serial; }
look HDF5 $hdf5 "$cflags" "$libs" hdf5.h 'H5Dget_chunk_info_by_coord(0, NULL, NULL, NULL, NULL)' libhdf5-dev
look MICROHTTPD libmicrohttpd "" "-lmicrohttpd" microhttpd.h 'MHD_is_feature_supported(MHD_FEATURE_THREAD_NAMES)' libmicrohttpd-dev
look MPI ompi-c "" "-lmpi" mpi.h 'MPI_VERSION' libopenmpi-dev
# NCCL: the system's, CUDA's, or that of the packages of PyTorch, which have no libnccl.so.
cflags= libs=-lnccl
for d in /usr/local/cuda ${CUDA_HOME:-}; do
    [ ! -e "$d/include/nccl.h" ] || { cflags=-I$d/include; libs="-L$d/lib64 -lnccl -Wl,-rpath,$d/lib64"; }
done
if [ -z "$cflags" ] && [ ! -e /usr/include/nccl.h ]; then
    for d in $(python3 -c 'import sys; [print(p + "/nvidia") for p in sys.path if p and " " not in p]' 2>/dev/null) \
        "${HOME:-/tmp}"/.cache/tune.c/venv*/lib/python3*/site-packages/nvidia; do
        for cuda in "$d"/cu1* "$d/cuda_runtime"; do
            [ ! -e "$d/nccl/include/nccl.h" ] || [ ! -e "$cuda/include/cuda_runtime.h" ] ||
                { cflags="-I$d/nccl/include -I$cuda/include"; libs="-L$d/nccl/lib -l:libnccl.so.2 -Wl,-rpath,$d/nccl/lib"; }
        done
    done
fi
look NCCL nccl "$cflags" "$libs" nccl.h 'ncclGetVersion(NULL) + !ncclCommInitRankConfig' libnccl-dev
case "$found" in *NCCL*) echo "NCCL_FOUND = yes" >>"$tmp/new" ;; esac
case "$found" in *MPI*) echo "MPI_FOUND = yes" >>"$tmp/new" ;; esac
case "$found" in *MICROHTTPD*) echo "STUDIO_FOUND = yes" >>"$tmp/new" ;; esac
case "$found" in *HDF5*) echo "SWEEPS_FOUND = yes" >>"$tmp/new" ;; esac
case "$found" in *YAML*) echo "YAML_FOUND = yes" >>"$tmp/new" ;; esac
# The instruction sets that devices/cpu is compiled for, from the oldest to the newest, and the flags of each.
case $($CC -dumpmachine 2>/dev/null) in
x86_64-*) sets="x86_64_v2 x86_64_v3 x86_64_v4 avx512_bf16 amx" ;;
aarch64-*) sets="neon neon_bf16" ;;
*) sets=generic ;;
esac
compiles() { echo 'int main(void) { return 0; }' | $CC "$@" -x c -c - -o "$tmp/t.o" 2>/dev/null; }
native=-march=native
compiles $native || native=-mcpu=native # clang on aarch64 long knew only this one
can=
for set in $sets; do
    case $set in
    x86_64_v2) flags="-march=x86-64-v2" ;;
    x86_64_v3) flags="-march=x86-64-v3" ;;
    x86_64_v4) flags="-march=x86-64-v4 -mprefer-vector-width=512" ;;
    avx512_bf16) flags="-march=x86-64-v4 -mprefer-vector-width=512 -mavx512bf16" ;;
    amx) flags="-march=x86-64-v4 -mprefer-vector-width=512 -mavx512bf16 -mamx-tile -mamx-bf16" ;;
    neon_bf16) flags="-march=armv8.2-a+bf16" ;;
    *) flags= ;;
    esac
    echo "CPU_$set ?= $flags" >>"$tmp/new"
    # shellcheck disable=SC2086
    if compiles $flags; then
        can="$can $set"
    else
        printf '# this compiler cannot make the kernels for %s\n' "$set" >>"$tmp/found.new"
    fi
done
printf 'CPU_generic ?=\nCPU_native ?= %s\nCPU_SETS ?=%s\n' "$native" "${can:- generic}" >>"$tmp/new"
printf '# kernels for:%s\n' "$(echo "${can:- generic}" | tr _ -)" >>"$tmp/found.new"
# Unchanged results leave the files, and so all objects, as they are. Two at once each write whole files.
put() { # NEW FILE
    cmp -s "$1" "$2" || { cp "$1" "$2.$$" && mv -f "$2.$$" "$2"; }
}
put "$tmp/found.new" "$out.found"
put "$tmp/new" "$out"
touch "$out.found"
[ "$out" -nt "$0" ] || touch "$out"
