#!/bin/sh
# test_sources.sh - rules for the .cu files, and which compilers the emulated tests are built with.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
cuda=components/devices/cuda
found() { grep -rnE "$1" $cuda tests/cuda_on_cpu/*.cu | grep -v "^$cuda/$2:"; } # PATTERN FILE
is "there are CUDA sources" test -e $cuda/ptx.h
none "inline assembly stands in ptx.h alone" "$(found '(^|[^_a-zA-Z])(asm|__asm__)\>' ptx.h)"
none "<<< stands in language.h alone" "$(found '<<<' language.h)"
none "shared memory has the macros of language.h" "$(found '__shared__' language.h)"
long() {
    awk 'length > 100 { print FILENAME ": line " FNR }
        FNR == 501 { print FILENAME ": over 500 lines" }' "$@"
}
none "files have at most 500 lines, of 100 columns" "$(long $cuda/* tests/cuda_on_cpu/*.cu tests/cuda_on_cpu/*.cc tests/cuda_on_cpu/*.h)"
# Functions of the library that the CUDA device calls, and those of a program that does nothing but open a device.
printf '#include "devices/device.h"\nint main(void) { return !tune_device_open("cuda", 1); }\n' >"$tmp/opens.c"
libs=$(sed -n 's/^\(OPENBLAS\|CJSON\)_LIBS *?*= *//p' "$BUILD/config.mk" | tr '\n' ' ')
is "a program that opens a device is built" $CC -Icomponents "$tmp/opens.c" -rdynamic "$BUILD/libtune.a" $libs -fopenmp -ldl -lpthread -lm -o "$tmp/opens"
nm -D --defined-only "$tmp/opens" | awk '{ print $NF }' | sort -u >"$tmp/has"
for c in g++ clang++; do
    ! ls "$BUILD/obj/$c/$cuda/"*.o >/dev/null 2>&1 || none "it has what the CUDA device calls ($c)" "$(nm -u "$BUILD/obj/$c/$cuda/"*.o |
        awk '$2 ~ /^tune_/ && $2 !~ /^tune_cuda_/ { print $2 }' | sort -u | comm -23 - "$tmp/has")"
done
for c in g++ clang++; do
    if command -v $c >/dev/null 2>&1; then
        none "each test is built by $c" "$(for f in tests/cuda_on_cpu/test_*.cu; do
            [ -x "$BUILD/cuda_on_cpu/$(basename "$f" .cu).$c" ] || echo "$f"; done)"
    else
        skip "each test is built by $c" "no $c"
    fi
done
finish
