#!/bin/sh
# test_fuzz.sh - every input that fuzzing found worth keeping, crashes among them, through its target: without libFuzzer.
. tests/tap.sh
replay() { # TARGET; all of its inputs, to the last
    mkdir -p "$tmp/corpus/$1" && tar -C "$tmp/corpus/$1" -xzf "tests/fuzz/corpus/$1.tar.gz" || return
    inputs=$(ls "$tmp/corpus/$1" | wc -l)
    [ "$inputs" != 0 ] && "$BUILD/tests/fuzz/$1" "$tmp/corpus/$1"/* >"$tmp/replayed" && grep -qx "$inputs inputs" "$tmp/replayed"
}
for source in tests/fuzz/*.c; do
    target=$(basename "$source" .c)
    [ "$target" = replay ] || is "the inputs for $target" replay "$target"
done
none "the corpus is small" "$(find "$tmp/corpus" -type f -size +8k; [ "$(cat "$tmp"/corpus/*/* | wc -c)" -lt 175000 ] || echo too large)"
none "nothing but an archive for each target" "$(for a in tests/fuzz/corpus/*; do case $a in *.tar.gz) [ -e "tests/fuzz/$(basename "$a" .tar.gz).c" ] || echo "$a" ;; *) echo "$a" ;; esac; done)"
mkdir -p "$tmp/kept" && cp -r tests/fuzz tests/fuzz.sh "$tmp/kept" && echo '{"a": [new' >"$tmp/input" # into a copy of the corpus
kept() {
    tar -tzf "tests/fuzz/corpus/config.tar.gz" | sort >"$tmp/before" && (cd "$tmp" && FUZZ_CORPUS="$tmp/kept/fuzz/corpus" sh "$here/tests/fuzz.sh" --keep config input) &&
        tar -tzf "$tmp/kept/fuzz/corpus/config.tar.gz" | sort >"$tmp/after" && [ "$(comm -13 "$tmp/before" "$tmp/after" | wc -l)" = 1 ] &&
        [ -z "$(comm -23 "$tmp/before" "$tmp/after")" ]
}
is "an input is added to an archive" kept
packed=$(cksum <"$tmp/kept/fuzz/corpus/config.tar.gz")
is "a second time changes no byte" eval 'kept && [ "$(cksum <"$tmp/kept/fuzz/corpus/config.tar.gz")" = "$packed" ]'

finish
