#!/bin/sh
# test_without_cuda.sh - make CUDA=0: nothing of CUDA is built, installed or looked for, and --device cuda says so.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
printf '#!/bin/sh\ntouch "%s/called"\n' "$tmp" >"$tmp/nvcc"
chmod +x "$tmp/nvcc"
without() { env PATH="$tmp:$PATH" make --no-print-directory BUILD="$tmp/build" CC="$CC" "$@"; }
object=$tmp/build/obj/components/devices/device.o
is "make CUDA=0 cuda says what is left out" eval 'without CUDA=0 cuda | grep -qx "# CUDA=0: tune_cuda.so is left out, and --device cuda with it"'
is "... and calls no nvcc" [ ! -e "$tmp/called" ]
is "with CUDA it would" eval '{ without cuda || true; } && [ -e "$tmp/called" ]'
rm -f "$tmp/called"
is "make CUDA=0 install: no tune_cuda.so" eval 'without -n CUDA=0 install >"$tmp/plan" && grep -q libtune.a "$tmp/plan" && ! grep -q tune_cuda.so "$tmp/plan"'
is "... with CUDA it is installed where it was built" eval 'without -n install | grep -q "install .*tune_cuda.so"'

cat >"$tmp/open.c" <<'C'
#include <stdio.h>
#include "core/error.h"
#include "devices/device.h"
int main(int argc, char **argv)
{
    struct tune_device *dev = tune_device_open(argv[argc - 1], 1);
    puts(dev ? dev->name : tune_error_message());
    int code = dev ? 0 : 3;
    tune_device_close(dev);
    return code;
}
C
setting() { sed -n "s/^$1 ?= //p" "$BUILD/config.mk" 2>/dev/null; }
# opens MODE DEVICE - what a program of that mode says.
opens() {
    without CUDA="$1" "$object" >"$tmp/made" 2>&1 || { cat "$tmp/made"; return 1; }
    # shellcheck disable=SC2046
    $CC $sanitize -std=c11 -Icomponents "$tmp/open.c" "$object" "$BUILD/libtune.a" $(setting OPENBLAS_LIBS) $(setting CJSON_LIBS) \
        -fopenmp -ldl -lpthread -lm -o "$tmp/open" && { "$tmp/open" "$2" || true; }
}
sanitize=
! sanitized || sanitize=-fsanitize=address,undefined
unset TUNE_CUDA
is "--device cuda: this build is without it" eval 'opens 0 cuda | grep "device cuda: this build is without it (make CUDA=0)"'
is "... also where TUNE_CUDA names a library" eval 'TUNE_CUDA=/nowhere.so opens 0 cuda:1 | grep "this build is without it"'
is "... and the CPU is there" eval 'opens 0 cpu | grep -x cpu'
is "the same folder built with CUDA looks for it again" eval 'TUNE_CUDA=/nowhere.so opens 1 cuda | grep "cannot load /nowhere.so"'
is "... and the object is as it was left" eval 'without -q "$object"'
finish
