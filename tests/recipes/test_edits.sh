#!/bin/sh
# test_edits.sh - five edits of a recipe that people make (tests/recipes/edits): they build without a warning, do what they say,
# also with options that the copy inherits, or say why not.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
PYTHON=${TUNE_PYTHON:-python3}
sources=
for e in focal:3 unfreeze:3 curriculum:3 match:7 weights:4; do
    edit=${e%:*}
    is "the edits of $edit fit the recipe" eval '$PYTHON tests/recipes/apply.py tests/recipes/edits/$edit.md recipes/finetune_full.c ${e#*:} >"$tmp/$edit.c"'
    sources="$sources $tmp/$edit.c"
done
is "they build by make RECIPE=, without a warning" sh tests/recipes/build.sh "$tmp/tree" $sources
programs=$tmp/tree/build
for i in $(seq 24); do
    word=$(echo "one two three four five six" | cut -d ' ' -f $((i % 6 + 1)))
    echo "{\"prompt\": \"say $word$([ $((i % 2)) = 0 ] || echo " again and again")\", \"completion\": \" $word\", \"weight\": 1, \"twice\": {\"weight\": 2}}"
done >"$tmp/rows.jsonl"
sed 's/"weight": 1, "twice": {"weight": 2}/"weight": 2/' "$tmp/rows.jsonl" >"$tmp/two.jsonl"
sed 's/, "weight".*/}/' "$tmp/rows.jsonl" >"$tmp/none.jsonl"
cd "$tmp" || exit 1
tiny model 1 >/dev/null || exit 1
train() { # NAME PROGRAM OPTION...
    who=$1 program=$programs/$2
    [ -x "$program" ] || program=$BUILD/$2
    shift 2
    "$program" --model model --dataset rows.jsonl --append-token none --max-length 48 --batch-size 2 --lr 3e-3 --threads 1 --seed 3 --output "$who" \
        "$@" >"$who.out" 2>&1
    code=$?
    [ $code = 0 ] || tail -n 5 "$who.out"
    return $code
}
each() { sed -n "s|^{\"step\":.*\"$2\":\([-0-9.e+]*\).*|\1|p" "$1/metrics.jsonl"; } # RUN NUMBER: of each step

# ---- options that every copy inherits: they train with each, and never read where nothing is ----
for o in "--packing --accumulate 2" "--max-steps 0 --train-split 0.8" "--train-split 0.8 --eval-every 3 --max-steps 6" "--activation-checkpointing full --max-steps 3" \
    "--optimizer muon --ema 0.9 --neftune-alpha 5 --max-steps 3"; do
    for r in focal unfreeze curriculum match weights; do
        n=$((n + 1))
        is "$r $o" train inherits$n $r $o
    done
done

# ---- what each does ----
is "focal loss is below cross entropy, and falls" eval 'train plain finetune_full --epochs 2 && train focal focal --epochs 2 &&
    [ "$(each focal loss | head -n 1)" != "$(each plain loss | head -n 1)" ] && awk "BEGIN { exit !($(figure focal loss_first) < $(figure plain loss_first) && $(figure focal loss_last) < $(figure focal loss_first)) }"'
moved() { # RUN STEPS: the lowest unit of four whose weights are no longer those of the model
    $PYTHON - "model/model.safetensors" "$1/checkpoint-$2/model.safetensors" <<'PY'
import json, re, struct, sys
def tensors(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    return {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]] for k, v in json.loads(data[8:8 + n]).items() if k != "__metadata__"}
a, b = tensors(sys.argv[1]), tensors(sys.argv[2])
unit = lambda k: 0 if "embed" in k else int(re.search(r"layers\.(\d+)", k)[1]) + 1 if "layers" in k else 3
states = {u: [a[k] != b[k] for k in a if unit(k) == u] for u in range(4)}
assert all(len(set(s)) == 1 for s in states.values()), states
print(min(u for u, s in states.items() if s[0]))
PY
}
is "unfreezing in the loop: the layers below keep their bits until it is their turn" eval 'train thaw unfreeze --unfreeze-every 3 --save-every 3 --weight-decay 0.1 && [ "$(moved thaw 3)" = 3 ] && [ "$(moved thaw 6)" = 2 ] && [ "$(moved thaw 9)" = 1 ] && [ "$(moved thaw 12)" = 0 ]'
is "... stopped in between and gone on: the same bits" eval 'train cut unfreeze --unfreeze-every 3 --save-every 3 --weight-decay 0.1 --stop-at-step 5 && "$programs/unfreeze" --resume cut >more.out && same_run thaw cut'
is "... also with Muon" eval 'train muon unfreeze --unfreeze-every 3 --save-every 3 --optimizer muon && [ "$(moved muon 3)" = 3 ] && [ "$(moved muon 12)" = 0 ]'
is "a curriculum: the header says so, and rows become longer" eval 'train short curriculum && grep -q "^# rows .* 24 in an epoch, in the program.s own order$" short.out && each short tokens >tokens.txt && sort -n tokens.txt | diff tokens.txt - && [ "$(sort -u tokens.txt | wc -l)" -gt 1 ]'
is "... what is known of the rows stays" eval 'grep -q "^# survey " short.out && grep -q "^# format " short.out && grep -q "^# rows met  *24 read" short.out'
is "... gone on: the same bits" eval 'train part curriculum --stop-at-step 5 && "$programs/curriculum" --resume part >more.out && same_run short part'
is "... gone on in another order: refused" eval 'train other curriculum --stop-at-step 5 && ! LONG_FIRST=1 "$programs/curriculum" --resume other >more.out 2>&1 && grep -q "the program.s order of rows (tune_loader_order): the rows that were trained on" more.out'
is "... with a mix: refused" eval '! train mixed curriculum --dataset rows.jsonl,two.jsonl --mix 0.5,0.5 && [ $code = 2 ] && grep -q -e "--mix is an order of rows already" mixed.out'
is "exact match while it trains" eval 'train match match --epochs 12 --lr 1e-2 --match-every 36 && each match exact_match >matches.txt && [ "$(wc -l <matches.txt)" = 4 ] && awk "NR == 1 { first = \$1 } { last = \$1 } END { exit !(last > first || last == 1) }" matches.txt'
for o in "" --packing; do
    n=$((n + 1))
    is "weights of 1 change nothing $o" eval 'train w$n weights $o && train p$n finetune_full $o && each w$n loss >a.txt && each p$n loss | diff a.txt -'
    is "weights of 2 double the loss $o" eval 'train t$n weights $o --dataset two.jsonl && near "$(figure t$n loss_first)" "$(awk "BEGIN { printf \"%.17g\", 2 * $(figure p$n loss_first) }")"'
done
is "a column that no row has is an error that names the others" eval '! train no weights --dataset none.jsonl && [ $code = 2 ] && grep -q "none.jsonl: its first rows have no column \"weight\"; they have: prompt, completion" no.out'
finish
