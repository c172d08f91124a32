#!/bin/sh
# test_proof.sh - the small form of `make proof`: a tiny model learns tasks, its answers are complete and counted right; the proof
# goes on where it stopped, and fails where it must.
. tests/tap.sh
if sanitized; then
    skip "proof" "its trainings take minutes with sanitizers, and the other tests run what it runs"
    finish
fi
small() { sh tests/proof.sh --small "$tmp/place"; }
is "the small proof" small
cp "$tmp/said" "$tmp/shown"
grep '^|' "$tmp/shown" | sed 's/^/# /'
is "has a row for each model" test "$(grep -cE '^\| (base|full|lora|qlora|dpo) ' "$tmp/shown")" = 5
is "every question has an answer" eval 'for m in base full lora qlora dpo; do [ "$(wc -l <"$tmp/place/$m.jsonl")" = 200 ] || exit 1; done'
is "run again, it makes nothing again, and says the same" eval 'small >"$tmp/again" && grep "^|" "$tmp/shown" >"$tmp/a" && grep "^|" "$tmp/again" | diff "$tmp/a" - && ! grep -q "^# " "$tmp/again"'
is "the same seed gives the same tales" eval '"$BUILD/make_tales" --rows 1000 --seed 1 --output "$tmp/tales" && cmp "$tmp/tales" "$tmp/place/tales.jsonl"'
is "and another seed gives others" eval '"$BUILD/make_tales" --rows 1000 --seed 2 --output "$tmp/tales" && ! cmp -s "$tmp/tales" "$tmp/place/tales.jsonl"'
refused "make_tasks knows its parts" 2 "expected train or test" "$BUILD/make_tasks" --part dev
refused "a margin that is missed ends it with 1" 1 "above the base" env MARGIN=0.99 sh tests/proof.sh --small "$tmp/place"
# All answers right but one: the count, and Wilson's interval for 199 of 200.
sed 's/.*"assistant", "content": "//; s/"}\]}$//' "$tmp/place/test.jsonl" |
    awk '{ printf "{\"row\":%d,\"answer\":\" %s\",\"end\":\"token\"}\n", NR - 1, NR == 1 ? "wrong" : $0 }' >"$tmp/place/full.jsonl"
is "right answers are counted, whole" eval 'small >"$tmp/right"; grep -qE "^\| full .* 0\.995 \| 0\.972 to 0\.999 \|" "$tmp/right"'
tail -n 199 "$tmp/place/full.jsonl" >"$tmp/short" && cp "$tmp/short" "$tmp/place/full.jsonl"
refused "a missing answer ends it with 1" 1 "answered 199 of 200" sh tests/proof.sh --small "$tmp/place"
rm -r "$tmp/place/lora" "$tmp/place/lora.done" && echo "no row" >"$tmp/place/train.jsonl"
refused "a part that fails ends it, too" 1 "proof: lora ended with" sh tests/proof.sh --small "$tmp/place"
finish
