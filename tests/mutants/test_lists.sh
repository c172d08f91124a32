#!/bin/sh
# test_lists.sh - the list of mutants is well formed and fits the sources as they are, so that `make mutants` can put each
# one in. Wrong lists are refused.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
check() { sh tests/mutants/mutants.sh --check "$@" >"$tmp/checked"; }
is "every mutant of the list can be put in, at one place" check
enough() { awk -F '\t' '$5 == "" { n++ } END { print n + 0, "that are not equivalent"; exit n < 120 }' "$tmp/checked"; }
is "there are at least 120 of them" enough
folders() {
    for f in devices devices/cpu devices/cuda losses optimizers sweeps/stores; do
        cut -f 2 "$tmp/checked" | grep -q "^components/$f/" || { echo "none of $f"; return 1; }
    done
}
is "they are of the kernels, losses, optimizers and stores" folders

# ---- lists that are wrong ----
head='file components/core/random.c
tests core/test_core'
# list NAME TEXT LINE... - a list of these lines is refused with that text.
list() {
    name=$1 text=$2
    shift 2
    printf '%s\n' "$@" >"$tmp/list.txt"
    refused "$name" 1 "$text" sh tests/mutants/mutants.sh --check "$tmp/list.txt"
}
printf '%s\n' "$head" '- round < 10; ==> round < 9;' >"$tmp/list.txt"
is "a list of one mutant" check "$tmp/list.txt"
is "says where it is" eval 'grep -q "^1	components/core/random.c	1[0-9]	core/test_core		round < 10; ==> round < 9;" "$tmp/checked"'
printf '%s\n' "$head@far core/test_core:x*@far" '- round < 10; ==> round < 9;' >"$tmp/list.txt"
is "tests on the far device" check "$tmp/list.txt"
list "tests on another" "core/test_core@near: expected core/test_x@far, core/test_x:y@far or @avx2" "$head@near" '- round < 10; ==> x'
list "a text that is not there" "does not have: no such text" "$head" '- no such text ==> x'
list "a text that is there twice" "more than once: uint64_t counter)" "$head" "- uint64_t counter) ==> int64_t counter)"
list "a mutant that changes nothing" "changes nothing" "$head" '- round < 10; ==> round < 10;'
list "a mutant that stands there twice" "stands here twice" "$head" '- round < 10; ==> x' '- round < 10; ==> x'
list "no tests" "file and tests stand above" 'file components/core/random.c' '- round < 10; ==> x'
list "a test that is not there" "tests/core/test_none.c is not there" 'file components/core/random.c' 'tests core/test_none'
list "a file that is not there" "components/none.c is not there" 'file components/none.c' 'tests core/test_core'
list "a line of another kind" "expected a line that begins" "$head" 'round < 10; ==> x'
list "no new text" "expected: - OLD ==> NEW" "$head" '- round < 10;'
list "a reason without a mutant" "stands below it" "$head" '= because'
finish
