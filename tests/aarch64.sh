#!/bin/sh
# aarch64.sh - the unit tests in C, built for aarch64, under qemu-user. `make test-aarch64` builds them. TAP by tests/run.sh.
#   BUILD          where they are (default build/aarch64)
#   AARCH64_ROOT   the libraries for arm64 (tools/aarch64.sh)
# Shell tests start programs by their names, which only a system that knows the foreign format can do; they are left to the
# real processors. Tests that ask what the emulator does not emulate skip themselves: emulated() in tests/test.h.
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build/aarch64}
export BUILD TUNE_TEST_EMULATED=1 QEMU_LD_PREFIX="$AARCH64_ROOT" TUNE_TEST_TIMEOUT="${TUNE_TEST_TIMEOUT:-1800}"
export QEMU_SET_ENV=LD_LIBRARY_PATH=/usr/lib/aarch64-linux-gnu/openblas-pthread
if ! command -v qemu-aarch64 >/dev/null 2>&1 || ! qemu-aarch64 "$BUILD/finetune_full" --help >/dev/null 2>&1; then
    why="no qemu-aarch64, no cross compiler or no libraries for arm64"
    echo "ok 1 - aarch64 # SKIP $why"
    if [ -n "${TUNE_TEST_TOTALS:-}" ]; then echo "0 0 1" >>"$TUNE_TEST_TOTALS"; else echo "0 passed, 0 failed, 1 skipped"; fi
    exit 0
fi
export TUNE_TEST_WRAPPER=qemu-aarch64
# The emulator finds a program again by its whole path alone. With bfloat16 instructions two products differ, gemm_rounded
# and gemm_add. They have a core of their own beside the others.
TUNE_CPU=neon-bf16 TUNE_TEST_ONLY='gemm_*d*' sh tests/run.sh "$PWD/$BUILD"/tests/devices/test_kernels &
TUNE_CPU=neon sh tests/run.sh "$PWD/$BUILD"/tests/*/test_*
others=$?
wait $! && exit $others
