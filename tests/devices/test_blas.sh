#!/bin/sh
# test_blas.sh - the library inside a foreign program, under Debian's builds of OpenBLAS and told to use it: the right kernel,
# one pool of threads, as many as were asked for, nothing left behind in the process. With matrix products of our own, which
# are the default where there are wide vectors, OpenBLAS is left as it was found. TAP; exit 0, 1 or 77.
here=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${BUILD:-build}" 2>/dev/null && pwd)
cc=${CC:-cc}
[ -f "$build/libtune.a" ] || { echo "ok 1 - blas # SKIP no libtune.a; make first"; exit 77; }
if nm "$build/libtune.a" 2>/dev/null | grep -q __asan_init; then echo "ok 1 - blas # SKIP a build with sanitizers"; exit 77; fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
setting() { sed -n "s/^$1 ?= //p" "$build/config.mk" 2>/dev/null; }
cflags="$(setting OPENBLAS_CFLAGS) $(setting CJSON_CFLAGS)"
libs="$(setting OPENBLAS_LIBS) $(setting CJSON_LIBS)"
# shellcheck disable=SC2086
if ! $cc -std=c11 -D_GNU_SOURCE -O1 -fopenmp -I"$here/../components" $cflags "$here/foreign_blas.c" "$build/libtune.a" $libs -fopenmp -ldl -lpthread -lm -o "$tmp/foreign" 2>"$tmp/errors"; then
    cat "$tmp/errors"
    echo "not ok 1 - a foreign program links the library"
    exit 1
fi

n=0 failed=0
check() { # what, got, expected: a shell pattern
    n=$((n + 1))
    # shellcheck disable=SC2254
    case $2 in
    $3) echo "ok $n - $1: $2" ;;
    *) failed=1; echo "not ok $n - $1: $2, expected $3" ;;
    esac
}
check_list() { # what, got, then every value that is right
    what=$1 got=$2 found=wrong
    shift 2
    for v in "$@"; do [ "$got" = "$v" ] && found=right; done
    n=$((n + 1))
    if [ $found = right ]; then echo "ok $n - $what: $got"; else failed=1; echo "not ok $n - $what: $got, expected one of: $*"; fi
}
skip() {
    n=$((n + 1))
    echo "ok $n - $1 # SKIP $2"
}
value() { sed -n "s/^$1=//p" "$tmp/out"; }

# What this processor deserves; empty: nothing to check here.
has() { for f in "$@"; do grep -m1 '^flags' /proc/cpuinfo | grep -qw "$f" || return 1; done; }
kernels=
if has avx512f avx512bw avx512dq avx512vl avx512cd; then
    kernels="SkylakeX Cooperlake SapphireRapids"
elif has avx2 fma; then
    kernels="Haswell Zen"
fi
cpus=$(nproc)

unset OPENBLAS_CORETYPE OPENBLAS_NUM_THREADS GOTO_NUM_THREADS TUNE_MATMUL
if TUNE_MATMUL=own OMP_NUM_THREADS=1 "$tmp/foreign" 1 >"$tmp/out" 2>&1; then
    check "own products: product" "$(value product)" right
    check "own products: description" "$(value description)" "*1 thread*own matmul*"
    check "own products: OpenBLAS's kernel is the one it chose" "$(value core)" "$(value core_at_start)"
else
    cat "$tmp/out"
    check "own products" "ended with an error" "a product"
fi
TUNE_MATMUL=faster "$tmp/foreign" 1 >"$tmp/out" 2>&1
check "an unknown TUNE_MATMUL" "$(grep -c 'expected own or openblas' "$tmp/out")" 1
export TUNE_MATMUL=openblas
triplet=$($cc -print-multiarch 2>/dev/null || dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null)
for kind in pthread openmp serial; do
    folder=/usr/lib/$triplet/openblas-$kind
    if [ ! -e "$folder/libopenblas.so.0" ]; then
        skip "$kind build" "no $folder; apt-get install libopenblas0-$kind"
        continue
    fi
    for threads in 1 2; do
        name="$kind, $threads of $cpus"
        # 3 of its own: shows when our number, or OpenBLAS's, replaces the program's
        if ! LD_LIBRARY_PATH=$folder OMP_NUM_THREADS=3 "$tmp/foreign" $threads >"$tmp/out" 2>&1; then
            cat "$tmp/out"
            check "$name" "ended with an error" "a product"
            continue
        fi
        sed 's/^/# /' "$tmp/out"
        check "$name: this build is loaded" "$(value library)" "$folder/*"
        check "$name: product" "$(value product)" right
        # shellcheck disable=SC2086
        [ -z "$kernels" ] || check_list "$name: kernel" "$(value core)" $kernels
        check "$name: description names the kernel" "$(value description)" "*$threads thread*$(value core)*$kind*"
        working=$threads warning=
        [ $kind != serial ] || working=1 # it is not made for more than one caller at once
        [ "$working" = "$threads" ] || warning="this OpenBLAS is its serial build, *"
        check "$name: warning" "$(value warning)" "$warning"
        check "$name: OPENBLAS_CORETYPE afterwards" "$(value coretype)" unset
        # The pthread build starts its own pool when it is loaded, before main. It must sleep: only our threads may work.
        if [ "$threads" -le "$cpus" ]; then
            check "$name: threads that worked" "$(value busy)" "$working"
        else
            skip "$name: threads that worked" "one processor"
        fi
        if [ $kind = pthread ]; then
            check "$name: OpenBLAS's own pool" "$(value pool)" 1
            check "$name: threads beside those at start" $(($(value threads) - $(value threads_at_start))) $((threads - 1))
        else
            check "$name: threads of the process" "$(value threads)" "$threads"
        fi
        check "$name: processor time within $threads" "$(awk -v r="$(value cpu_per_wall)" -v t=$threads 'BEGIN { print r <= t * 1.1 ? "yes" : r }')" yes
        check "$name: the program's own OpenMP threads" "$(value omp)" same
    done
    if [ -n "$kernels" ]; then # the user's word counts, also where it is not the fastest
        LD_LIBRARY_PATH=$folder OPENBLAS_CORETYPE=Haswell "$tmp/foreign" 1 >"$tmp/out" 2>&1
        check "$kind: kernel the user set" "$(value core)" Haswell
        check "$kind: OPENBLAS_CORETYPE the user set" "$(value coretype)" Haswell
        check "$kind: product with it" "$(value product)" right
    fi
done
echo "1..$n"
exit $failed
