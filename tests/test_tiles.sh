#!/bin/sh
# test_tiles.sh - matrix products in the shapes that another processor has: NEON's tiles (4 lanes, 8 rows, which no panel of
# 12 columns is a multiple of), compiled for this one and put through the same tests.
cd "$(dirname "$0")/.." || exit 1
. tests/tap.sh
is "built with NEON's tiles, without a warning" eval \
    'make -C "$here" --no-print-directory -j"$(nproc)" BUILD="$tmp/build" ARCH=-DTUNE_NEON_TILES SAN= "$tmp/build/tests/test_kernels" >"$tmp/log" 2>&1 &&
     ! grep -i warning "$tmp/log"'
is "every operation, own matmul" env TUNE_MATMUL=own "$tmp/build/tests/test_kernels"
finish
