#!/bin/sh
# test_fuzz.sh - every input that fuzzing found worth keeping, crashes among them, through its target: without libFuzzer.
. tests/tap.sh
replay() { # TARGET; all of its inputs, to the last
    "$BUILD/tests/fuzz/$1" "tests/fuzz/corpus/$1"/* >"$tmp/replayed" && grep -qx "$(ls "tests/fuzz/corpus/$1" | wc -l) inputs" "$tmp/replayed"
}
for source in tests/fuzz/*.c; do
    target=$(basename "$source" .c)
    [ "$target" = replay ] || is "the inputs for $target" replay "$target"
done
none "the corpus is small" "$(find tests/fuzz/corpus -type f -size +8k; [ "$(cat tests/fuzz/corpus/*/* | wc -c)" -lt 165000 ] || echo too large)"
finish
