#!/bin/sh
# test_own_losses.sh - losses of a recipe's own (tests/recipes): they build without a warning, are short, and do on a tiny model
# what their formulas say. Gradients are held against PyTorch's in tests/peers/loss_peer.py. Then the worked example of
# docs/your-own-loss.md by the edits that are printed there.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
PYTHON=${TUNE_PYTHON:-python3}
$PYTHON tests/recipes/apply.py docs/your-own-loss.md recipes/finetune_full.c 5 >"$tmp/mine.c" 2>"$tmp/why"
is "the edits of docs/your-own-loss.md fit the recipe" eval 'cat "$tmp/why"; [ ! -s "$tmp/why" ]'
code() { sed -n '/^#include "flags/,$p' "$1"; }
is "they give tests/recipes/label_smoothing.c" eval 'code "$tmp/mine.c" >"$tmp/text" && code tests/recipes/label_smoothing.c | diff "$tmp/text" -'
is "four recipes and the page's, by make RECIPE=, without a warning" sh tests/recipes/build.sh "$tmp/tree" tests/recipes/label_smoothing.c \
    tests/recipes/z_loss.c tests/recipes/distillation.c tests/recipes/dpo.c "$tmp/mine.c"

full=$(wc -l <recipes/finetune_full.c)
for r in label_smoothing z_loss distillation dpo; do
    most=15
    [ $r != dpo ] || most=40
    more=$(($(wc -l <tests/recipes/$r.c) - full))
    is "$r.c has $more lines more than finetune_full.c, at most $most" test $more -le $most
done
none "their lines are at most 100 columns" "$(awk 'length > 100 { print FILENAME ":" FNR }' tests/recipes/label_smoothing.c \
    tests/recipes/z_loss.c tests/recipes/distillation.c tests/recipes/dpo.c)"
none "they include what a recipe includes" "$(grep -n '^ *# *include' tests/recipes/label_smoothing.c tests/recipes/z_loss.c \
    tests/recipes/distillation.c tests/recipes/dpo.c | grep -vE '"(tune|flags/program)\.h"')"

programs=$tmp/tree/build
tiny "$tmp/tiny" 1 >/dev/null && tiny "$tmp/other" 2 >/dev/null && tiny "$tmp/wide" 3 --vocab-size 301 >/dev/null || exit 1
train() { # output, program, options...
    output=$tmp/$1 program=$programs/$2
    [ -x "$program" ] || program=$BUILD/$2
    shift 2
    "$program" --model "$tmp/tiny" --dataset datasets/stories.jsonl --max-length 64 --max-steps 20 --batch-size 2 --accumulate 2 \
        --lr 3e-3 --threads 2 --output "$output" --no-save "$@"
}
quietly() { "$@" >"$tmp/log" 2>&1 || { cat "$tmp/log"; false; }; }
losses() { sed -n 's/.*"loss":\([-0-9.e]*\).*/\1/p' "$tmp/$1/metrics.jsonl"; }
same_losses() { # two runs: every step's within 1e-5 of each other
    losses "$1" >"$tmp/text" && losses "$2" | paste "$tmp/text" - | awk '{ d = $1 / $2 - 1; if (d * d > 1e-10) { print; bad = 1 } } END { exit bad || NR != 20 }'
}
falls() { losses "$1" | awk -v to="$2" 'NR == 1 { first = $1 } { last = $1 } END { print first, last; exit !(NR == 20 && last < to * first) }'; }
first() { losses "$1" | head -n 1; }
less() { awk "BEGIN { exit !($1 < $2) }"; }

is "cross entropy" quietly train plain finetune_full
is "label smoothing 0 is cross entropy" eval 'quietly train a label_smoothing --label-smoothing 0 && same_losses a plain'
is "label smoothing falls" eval 'quietly train b label_smoothing --label-smoothing 0.1 && falls b 0.95'
is "it is another loss" eval '! same_losses b plain'
is "the page's recipe is that one" eval 'quietly train mine mine --label-smoothing 0.1 && losses b >"$tmp/text" && losses mine | diff "$tmp/text" -'
is "z-loss 0 is cross entropy" eval 'quietly train c z_loss --z-loss 0 && same_losses c plain'
is "z-loss falls, from more than cross entropy" eval 'quietly train d z_loss --z-loss 0.01 && falls d 0.95 && less $(first plain) $(first d)'

sgd="--optimizer sgd --lr 1e-3"
tiny_losses() { losses "$1" | awk '$1 > 1e-6 || $1 < -1e-6 { print; bad = 1 } END { exit bad || NR != 20 }'; }
for k in 0 16; do
    is "distillation from itself: nothing to learn (top-k $k)" eval 'quietly train e$k distillation --teacher "$tmp/tiny" --top-k $k $sgd && tiny_losses e$k'
    is "distillation from another model falls (top-k $k)" eval 'quietly train f$k distillation --teacher "$tmp/other" --top-k $k && falls f$k 0.8'
done
is "the rest as one token is less apart" eval 'less $(first f16) $(first f0)'
is "all tokens by themselves is the same as no top-k" eval 'quietly train g distillation --teacher "$tmp/other" --top-k 300 && same_losses g f0'
is "at another temperature it is another loss" eval 'quietly train h distillation --teacher "$tmp/other" --temperature 3 && ! same_losses h f0'
refused "no teacher: it says what is missing" 2 "second model is missing" train i distillation
refused "a teacher of another vocabulary" 1 "vocabulary of 301, this one of 300" train j distillation --teacher "$tmp/wide"

# ---- pairs: the rejected answer is the same words in capitals ----
for i in $(seq 24); do
    echo "{\"prompt\": \"q$i: \", \"completion\": \"yes, it is $i\"}"
    echo "{\"prompt\": \"q$i: \", \"completion\": \"NO, IT IS NOT $i\"}"
done >"$tmp/pairs.jsonl"
pairs="--dataset $tmp/pairs.jsonl --append-token none --beta 0.3 --batch-size 4 --max-steps 6 --lr 3e-4"
sed '3s/completion/answer/' "$tmp/pairs.jsonl" >"$tmp/gap.jsonl"
last() { sed -n "s|.*\"$2\":\([-0-9.e]*\).*|\1|p" "$tmp/$1/metrics.jsonl" | tail -n 1; }
begin() { sed -n "s|.*\"$2\":\([-0-9.e]*\).*|\1|p" "$tmp/$1/metrics.jsonl" | head -n 1; }
is "DPO" quietly train dpo dpo $pairs
is "its first loss is ln 2: the model is its own reference" near "$(first dpo)" 0.69314718056
is "so no pair is told apart" test "$(begin dpo rewards/accuracies),$(begin dpo rewards/margins)" = 0,0
is "then all of them are" eval 'test "$(last dpo rewards/accuracies)" = 1 && less 0.1 $(last dpo rewards/margins)'
is "its loss falls" eval 'less $(last dpo loss) 0.6'
is "two micro-batches are one batch: the same loss and gradient" eval 'quietly train dpo1 dpo $pairs --batch-size 8 --accumulate 1 &&
    near "$(first dpo1)" "$(first dpo)" && near "$(begin dpo1 grad_norm)" "$(begin dpo grad_norm)" && near "$(last dpo1 loss)" "$(last dpo loss)"'
is "stopped and resumed, the reference is still the first model" eval 'quietly train whole dpo $pairs --save &&
    quietly train half dpo $pairs --save --stop-at-step 2 && quietly "$programs/dpo" --resume "$tmp/half" && (cd "$tmp" && same_run whole half)'
refused "an odd batch parts a pair" 1 "stands without its pair" train k dpo $pairs --batch-size 3
refused "so does another order" 1 "stands without its pair" train l dpo $pairs --shuffle
refused "so does packing" 1 "stands without its pair" train m dpo $pairs --packing
refused "and a row that is left out" 1 "stands without its pair" train n dpo --dataset "$tmp/gap.jsonl" --append-token none --skip-bad-rows
finish
