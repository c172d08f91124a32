#!/bin/sh
# test_tiles.sh - matrix products that other machines and other builds use, put through the same tests: NEON's tiles (4 lanes, 8
# rows, which no panel of 12 columns is a multiple of), OpenBLAS in the place of ours, and a build without -march, which a
# distribution makes.
cd "$(dirname "$0")/.." || exit 1
. tests/tap.sh
built() { # FOLDER ARCH TEST
    make -C "$here" --no-print-directory -j"$(nproc)" BUILD="$1" ARCH="$2" OPT=-O2 SAN= "$1/tests/$3" >"$tmp/log" 2>&1 &&
        ! grep -i warning "$tmp/log"
}
# These stay beside the build, so that the next time only what changed is compiled.
is "built with NEON's tiles, without a warning" built "$BUILD/neon" -DTUNE_NEON_TILES test_kernels
is "every operation, own matmul" env TUNE_MATMUL=own "$BUILD/neon/tests/test_kernels"
is "those of few rows are built, too" built "$BUILD/neon" -DTUNE_NEON_TILES test_few_rows
is "few rows, few queries" "$BUILD/neon/tests/test_few_rows"
is "whole models, by OpenBLAS" env TUNE_MATMUL=openblas "$BUILD/tests/test_model"
is "built without -march, without a warning" built "$BUILD/portable" "" test_model
is "whole models, built without -march" "$BUILD/portable/tests/test_model"
finish
