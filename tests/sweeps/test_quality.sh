#!/bin/sh
# test_quality.sh - the experiments that measure quality: docs/quality.md's sweep is done on a small model, its commands run, and what
# they answer is compared with the rows.
. tests/tap.sh
cd "$tmp" || exit 1
LC_ALL=C.UTF-8
export LC_ALL
mkdir build && ln -s "$BUILD"/* build && ln -s "$here/defaults" "$here/datasets" . || exit 1
page=$here/docs/quality.md
# In the place of the quickstart's model: a tiny one that already knows most of the answers.
sed -n '/^```sh$/,/^```$/p' "$page" | sed '/^```/d' >measure.sh
grep -v '^build/sweep' measure.sh >make.sh
is "the page makes its rows" eval 'sh -e make.sh && [ "$(wc -l <data/moods.jsonl)" = 192 ]'
tiny model 1 --max-positions 256 --dtype float32 >/dev/null
is "a model to begin from" eval '"$BUILD/finetune_full" --model model --dataset data/moods.jsonl --max-steps 60 --batch-size 32 --lr 5e-3 --max-length 128 --output runs/quickstart >out 2>&1 || { cat out; false; }'
is "the page's sweep" sh -e measure.sh
samples() { build/samples "$@" --store samples --output-format csv 2>said.err || { cat said.err >&2; false; }; }
space=defaults/spaces/quality.yaml
columns=learning_rate,max_steps,eval_accuracy,eval_loss,before_eval_loss,eval_general_loss,before_eval_general_loss,train_runtime,dataset_tokens_per_second,peak_anonymous_bytes
is "six rows, each with quality, forgetting, speed and memory" eval 'samples show $space --columns $columns | tee rows.csv && awk -F, "NR > 1 { n++; for (i = 1; i <= 10; i++) if (\$i == \"\") exit 1 } END { exit n != 6 }" rows.csv'
is "all began from the same model" eval '[ "$(sed 1d rows.csv | cut -d, -f5,7 | sort -u | wc -l)" = 1 ]'
is "a metric that nobody asked for is empty" eval '[ -z "$(samples show $space --columns eval_bleu | sed 1d | tr -d "\n,")" ]'

# ---- the numbers are those of the run ----
again() { # RATE STEPS - the same run by hand
    "$BUILD/finetune_lora" --model runs/quickstart/checkpoint-final --dataset data/moods.jsonl --general-dataset datasets/stories.jsonl --train-split 0.75 \
        --eval-metrics accuracy --eval-rows 50 --max-length 128 --batch-size 8 --lora-r 4 --lr "$1" --max-steps "$2" --no-save --eval-first --output by-hand --overwrite >out 2>&1 || { cat out; return 1; }
    for name in eval_accuracy eval_loss before_eval_loss eval_general_loss; do sed -n "s/^[[:space:]]*\"$name\":[[:space:]]*\([-0-9.e]*\),*$/\1/p" by-hand/report.json; done >got
    awk -F, -v r="$1" -v s="$2" '$1 + 0 == r + 0 && $2 + 0 == s + 0 { for (i = 3; i <= 6; i++) print $i }' rows.csv >wanted
    paste got wanted | awk '{ d = $1 - $2; if (d < 0) d = -d; if (NF != 2 || d > 1e-4 * ($2 + 0.01)) exit 1; n++ } END { exit n != 4 }' || { paste got wanted; return 1; }
}
is "a row's numbers are those of such a run" again 0.001 40

# ---- the page ----
awk '/^    build\// { on = 1; text = "" } on && /^    / { line = $0; sub(/^ +/, "", line); more = sub(/\\$/, "", line); text = text line; if (!more) { print text; on = 0 } }' "$page" >commands
is "the page has commands" test "$(wc -l <commands)" -ge 4
while IFS= read -r command; do
    is "$command" sh -e -c "$command"
done <commands

# ---- the same answers from the rows ----
least=$(awk -F, 'NR > 1 && $3 > most { most = $3 } END { print most }' rows.csv)
cheapest() {
    samples best $space --minimize train_runtime --where "eval_accuracy >= $least" --columns learning_rate,max_steps --count 1 | sed 1d | tr -d '"' >got
    awk -F, -v least="$least" 'NR > 1 && $3 >= least && (!n++ || $8 < s) { s = $8; at = $1 "," $2 } END { print at }' rows.csv >wanted
    awk -F, '{ print $1 + 0, $2 + 0 }' got >g; awk -F, '{ print $1 + 0, $2 + 0 }' wanted >w; cmp g w || { cat got wanted rows.csv; false; }
}
is "the cheapest that is good enough" cheapest
front() {
    samples best $space --maximize eval_accuracy --minimize train_runtime --columns learning_rate,max_steps | sed 1d | awk -F, '{ print $1 + 0, $2 + 0 }' | sort >g
    awk -F, 'NR > 1 { n++; a[n] = $3; s[n] = $8; at[n] = ($1 + 0) " " ($2 + 0) } END { for (i = 1; i <= n; i++) { beaten = 0
        for (k = 1; k <= n; k++) if (a[k] >= a[i] && s[k] <= s[i] && (a[k] > a[i] || s[k] < s[i])) beaten = 1
        if (!beaten) print at[i] } }' rows.csv | sort >w
    cmp g w || { cat g w rows.csv; false; }
}
is "two objectives: the Pareto front" front
# ---- all weights ----
sed 's/finetune_lora_quality/finetune_full_quality/; s/identifier: r}/identifier: batch_size}/; s/value: accuracy/value: "ended,exact_match"/; s/\[40, 80, 160\]/[2]/; s/\[0.001, 0.003\]/[0.001]/' $space >full.yaml
is "full fine-tuning, another metric" eval 'build/sweep full.yaml --store samples >out 2>&1 || { cat out; false; }; samples show full.yaml --columns eval_ended,eval_exact_match_raw,eval_general_loss,peak_anonymous_bytes | sed 1d >row && awk -F, "{ n++; for (i = 1; i <= 4; i++) if (\$i == \"\") exit 1 } END { exit n != 1 }" row'
finish
