#!/bin/sh
# test_fuzz.sh - every input that fuzzing found worth keeping, crashes among them, through its target: without libFuzzer.
. tests/tap.sh
for folder in tests/fuzz/corpus/*; do
    target=$(basename "$folder")
    is "the inputs for $target" "$BUILD/tests/fuzz/$target" "$folder"/*
    is "all of them" grep -qx "$(ls "$folder" | wc -l) inputs" "$tmp/said"
done
none "every target has a corpus" "$(for f in tests/fuzz/*.c; do t=$(basename "$f" .c); [ $t = replay ] || [ -d tests/fuzz/corpus/$t ] || echo $t; done)"
none "the corpus is small" "$(find tests/fuzz/corpus -type f -size +8k; [ "$(cat tests/fuzz/corpus/*/* | wc -c)" -lt 150000 ] || echo too large)"
finish
