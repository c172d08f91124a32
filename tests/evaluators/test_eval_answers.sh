#!/bin/sh
# test_eval_answers.sh - --eval-metrics, --best-by, --general-dataset and --eval-first: what an evaluation in training says of answers, by
# which number the best goes, and that training computes the same. (The metrics themselves: tests/metrics.)
. tests/tap.sh
cd "$tmp" || exit 1
tiny model 1 --dtype float32 >/dev/null
for i in 0 1 2 3 4 5 6 7 8 9 10 11; do
    case $((i % 2)) in 0) word=even ;; *) word=odd ;; esac
    printf '{"prompt": "Number %s is", "completion": " %s"}\n' $i $word
done >rows.jsonl
for i in 0 1 2 3 4; do printf '{"prompt": "Turn %s to", "completion": " %s"}\n' $i left; done >turns.jsonl
for i in 1 2 3 4 5; do printf '{"text": "A general text of words, number %s."}\n' $i; done >wiki.jsonl
run() { # RECIPE NAME OPTION...
    recipe=$1 out=$2
    shift 2
    "$BUILD/$recipe" --model model --threads 1 --dataset rows.jsonl --max-length 64 --batch-size 12 --lr 5e-3 --log-every 100 --output "$out" "$@" >"$out.out" 2>&1 || { cat "$out.out"; false; }
}
value() { sed -n "s/^[[:space:]]*\"$2\":[[:space:]]*\([-0-9.e]*\),*$/\1/p" "$1/report.json"; }
of_step() { sed -n "s/^{\"step\":$2,\"eval_loss\".*\"eval_$3\":\([-0-9.e]*\)[,}].*/\1/p" "$1/metrics.jsonl"; }
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; if (d < 0) d = -d; print a, b; exit !(a != "" && b != "" && d <= 1e-6 * (b < 0 ? -b : b) + 1e-12) }'; }
judged() { "$BUILD/evaluate" --keep-trained-rows --model "$1" --dataset rows.jsonl --metrics "$2" --max-new-tokens 128 --output "$3" >"$3.out" 2>&1 || { cat "$3.out"; false; }; }

# ---- metrics are those of evaluate, on the checkpoint of that step ----
metrics=exact_match,rouge_l,bleu,chrf,token_f1,accuracy,macro_f1,ended,answer_tokens,answer_characters
is "answers are judged at each evaluation" run finetune_full a --eval-dataset rows.jsonl --max-steps 16 --eval-every 8 --save-every 8 --eval-metrics $metrics
for step in 8 16; do is "... step $step: evaluate answers the checkpoint's rows" judged a/checkpoint-$step $metrics judged-$step; done
same() { for m in exact_match_raw exact_match_squad rouge_l bleu chrf token_f1 accuracy macro_f1 ended answer_tokens answer_characters; do near "$(of_step a "$1" $m)" "$(value judged-$1 $m)" || { echo $m; return 1; }; done; }
for step in 8 16; do is "... and each number is the same" same $step; done
is "... which are not all the same ones" eval '[ "$(of_step a 8 answer_tokens)" != "$(of_step a 16 answer_tokens)" ]'
is "the header says how many rows, and how long" grep -qx "# answers  *exact_match_raw, .* of 12 of 12 rows, at most 128 tokens each (--eval-tokens)" a.out
is "the evaluation's line shows them" grep -q "^eval 16 | loss .*| exact_match_raw [0-9.]* | exact_match_squad [0-9.]* | rouge_l [0-9.]* |" a.out
is "the report has the last ones" eval 'near "$(value a eval_rouge_l)" "$(of_step a 16 rouge_l)"'
is "runs plot draws one" eval '"$BUILD/runs" plot a --metric eval_rouge_l --svg a.svg && grep -q "eval_rouge_l" a.svg'
is "usual: losses are there anyway, bits_per_byte is said to be left out" eval 'run finetune_full usual --eval-dataset rows.jsonl --max-steps 1 --eval-metrics usual && grep -q "^# answers .*token_f1.*; bits_per_byte is left out" usual.out && grep -q eval_token_f1 usual/metrics.jsonl'

# ---- the bits of training are the same ----
for recipe in finetune_full finetune_lora; do
    is "$recipe without answers" run $recipe $recipe-plain --train-split 0.7 --max-steps 6 --eval-every 2
    is "... with answers" run $recipe $recipe-asked --train-split 0.7 --max-steps 6 --eval-every 2 --eval-metrics rouge_l,ended --eval-first --general-dataset turns.jsonl
    is "... and packed" run $recipe $recipe-packed --train-split 0.7 --max-steps 6 --eval-every 2 --eval-metrics rouge_l --packing
    case $recipe in finetune_full) file=model ;; *) file=adapter_model ;; esac
    is "... train the same bits" cmp $recipe-plain/checkpoint-6/$file.safetensors $recipe-asked/checkpoint-6/$file.safetensors
    steps() { grep -v eval_loss "$1/metrics.jsonl" | sed 's/"step_s.*"rows/"rows/; s/"tokens_per_s[^}]*//'; }
    is "... and have the same lines of steps" eval 'steps $recipe-plain >x; steps $recipe-asked >y; [ $(wc -l <x) = 6 ] && cmp x y'
    is "... and the same losses of evaluations" eval '[ "$(of_step $recipe-plain 4 perplexity)" = "$(of_step $recipe-asked 4 perplexity)" ]'
done
is "rows held out are answered, packed or not" eval 'grep -o "of [0-9]* of [0-9]* rows" finetune_full-asked.out | head -n 1 >x && grep -o "of [0-9]* of [0-9]* rows" finetune_full-packed.out >y && cmp x y'

# ---- a bounded number of rows ----
is "--eval-answers, --eval-tokens" run finetune_full few --eval-dataset rows.jsonl --max-steps 4 --eval-every 2 --eval-metrics answer_tokens,exact_match --eval-answers 3 --eval-tokens 5
is "... the header says both, and the option" grep -q "^# answers .* of 3 of 12 rows, drawn by the seed (--eval-answers), at most 5 tokens each" few.out
is "... no answer is longer" eval 'awk "BEGIN { exit !($(value few eval_answer_tokens) <= 5) }"'
is "the memory plan has room for answers, and holds" eval 'grep -q "answers. keys and values" few/run.json && awk "BEGIN { exit !($(value few estimated_memory_bytes) >= $(value few peak_anonymous_bytes)) }"'
is "... 0 answers all" eval 'run finetune_full every --eval-dataset rows.jsonl --max-steps 1 --eval-metrics ended --eval-answers 0 && grep -q "of 12 of 12 rows" every.out'
for i in $(seq 40); do case $i in 7|31) word=" ok" ;; *) word= ;; esac; printf '{"prompt": "Say %s", "completion": "%s"}\n' $i "$word"; done >sparse.jsonl
is "few rows with an answer are all found" eval 'run finetune_full sparse --eval-dataset sparse.jsonl --max-steps 1 --eval-metrics ended --eval-answers 2 --eval-tokens 5 && [ "$(wc -l <sparse.jsonl)" = 40 ] && grep -q "^# answers *ended of 2 of 40 rows" sparse.out'
is "... and told, if they are fewer than asked for" eval 'run finetune_full sparse3 --eval-dataset sparse.jsonl --max-steps 1 --eval-metrics ended --eval-answers 3 --eval-tokens 5 && grep -q "^# answers *ended of 2 of 40 rows, at most 5 tokens each (--eval-tokens); 38 of the 40 rows looked at have no answer to compare with$" sparse3.out'

# ---- files ----
is "two files: each has its numbers, beside those of all" run finetune_full two --eval-dataset rows.jsonl,turns.jsonl --max-steps 20 --eval-metrics exact_match,bleu
is "... by the files' names" eval '[ "$(value two eval_rows_exact_match_raw)" = "$(awk "BEGIN { print ($(value two eval_exact_match_raw) * 17 - $(value two eval_turns_exact_match_raw) * 5) / 12 }")" ] && [ -n "$(value two eval_turns_bleu)" ]'
is "general rows without answers: a loss" run finetune_full general --eval-dataset rows.jsonl --max-steps 4 --eval-every 2 --eval-metrics rouge_l --general-dataset wiki.jsonl --eval-first
is "... the header says they are not answered" grep -q "^# general answers *general: not answered, since rows have no answer to compare with" general.out
is "... and the run's folder names the file" eval 'tr -d "\n\t" <general/run.json | grep -q "\"general_data\":{\"path\":\"wiki.jsonl\",\"rows\":5,\"fingerprint\":\"[0-9a-f]\{16\}\"" && grep -q "general_data_hash" general/report.json'
run finetune_full wiki --eval-dataset wiki.jsonl --format auto --max-steps 0
is "... the first is that of the model alone" near "$(value general before_eval_general_loss)" "$(value wiki eval_loss)"
run finetune_full alone --eval-dataset rows.jsonl --max-steps 4 --eval-every 2
is "... and does not count in the loss" eval '[ "$(value general eval_loss)" = "$(value alone eval_loss)" ] && [ "$(value general eval_general_loss)" != "$(value general before_eval_general_loss)" ]'
is "--eval-first is step 0 of the metrics, and no best" eval 'grep -q "^{\"step\":0,\"eval_loss\"" general/metrics.jsonl && [ "$(value general best_eval_step)" = 4 ] && grep -q "^eval 0 | loss [0-9. ]*| general_loss [0-9.]* | perplexity [0-9.]* | rouge_l [0-9.e-]*$" general.out'
is "... also where no step is better" eval 'run finetune_full still --eval-dataset rows.jsonl --max-steps 4 --eval-every 2 --lr 0 --eval-first && [ "$(value still best_eval_step)" = 2 ] && [ "$(readlink still/checkpoint-best)" = checkpoint-2 ]'
is "general rows with answers are answered, each file" eval 'run finetune_full several --eval-dataset rows.jsonl --max-steps 1 --eval-metrics ended --general-dataset turns.jsonl,wiki.jsonl && [ -n "$(value several eval_general_turns_ended)" ] && [ -n "$(value several eval_general_wiki_loss)" ] && [ -z "$(value several eval_general_wiki_ended)" ]'
is "... their losses together weigh tokens" eval 'head -n 2 wiki.jsonl >first.jsonl && tail -n 3 wiki.jsonl >rest.jsonl && run finetune_full both --eval-dataset rows.jsonl --max-steps 4 --eval-every 2 --general-dataset first.jsonl,rest.jsonl && near "$(value both eval_general_loss)" "$(value general eval_general_loss)" && [ -n "$(value both eval_general_rest_loss)" ]'
is "a general text in pieces has a loss, too" eval 'yes "many words in a long text" | head -n 60 >long.txt && run finetune_full pieces --eval-dataset rows.jsonl --max-steps 1 --eval-metrics ended --general-dataset long.txt && [ -n "$(value pieces eval_general_loss)" ] && grep -q "^# general answers *general: not answered" pieces.out'
is "a prompt template of the rows is not that of general ones" eval 'printf "[prompt]\n{prompt}:\n[completion]\n{completion}\n" >layout && run finetune_full template --eval-dataset rows.jsonl --max-steps 1 --eval-metrics ended --general-dataset wiki.jsonl --prompt-template layout && [ -n "$(value template eval_general_loss)" ]'

for i in 1 2 3 4; do printf '{"messages": [{"role": "user", "content": "Is %s even?"}, {"role": "assistant", "content": "I say %s."}]}\n' $i $i; done >talks.jsonl
is "a chat template of the rows is not for general texts, but for general talks" eval 'run finetune_full talks --dataset talks.jsonl --eval-dataset talks.jsonl --chat-template chatml --max-steps 1 --eval-metrics ended --general-dataset wiki.jsonl && run finetune_full talks2 --dataset talks.jsonl --eval-dataset talks.jsonl --chat-template chatml --max-steps 1 --eval-metrics ended --general-dataset talks.jsonl && [ "$(value talks2 eval_general_loss)" = "$(value talks2 eval_loss)" ] && [ "$(value talks2 eval_general_ended)" = "$(value talks2 eval_ended)" ] && [ -n "$(value talks eval_general_loss)" ]'

# ---- the best, and patience ----
is "--best-by a metric" run finetune_full best --eval-dataset rows.jsonl --max-steps 60 --eval-every 10 --eval-metrics exact_match --best-by exact_match
first() { for s in 10 20 30 40 50 60; do of_step best $s exact_match_raw | sed "s/^/$s /"; done | awk 'NR == 1 || $2 > most { most = $2; at = $1 } END { print at }'; }
is "... its checkpoint is the first of the highest" eval '[ "$(readlink best/checkpoint-best)" = "checkpoint-$(first)" ] && [ "$(value best best_eval_step)" = "$(first)" ] && [ "$(value best best_eval_exact_match_raw)" = "$(of_step best "$(first)" exact_match_raw)" ]'
is "... which is not that of the lowest loss" eval '[ "$(first)" != 60 ] && [ "$(value best best_eval_loss)" = "$(value best eval_loss)" ]'
is "... and the line says by what" grep -q "^eval 60 | .*| best exact_match_raw 1 at step $(first)$" best.out
is "patience goes by it, too" run finetune_full patient --eval-dataset rows.jsonl --max-steps 200 --eval-every 10 --eval-metrics exact_match --best-by eval_exact_match_raw --patience 2 --eval-first
is "... and says so" eval 'tr -d "\n\t" <patient/run.json | grep -q "early stop: 2 evaluations in a row without a better exact_match_raw; the best was 1.0000 at step $(first)"'
is "a run that is stopped goes on with the best that it had" eval 'run finetune_full halted --eval-dataset rows.jsonl --max-steps 200 --eval-every 10 --eval-metrics exact_match --best-by exact_match --patience 2 --eval-first --stop-at-step $(($(first) + 5)) && "$BUILD/finetune_full" --resume halted >out 2>&1 && cmp halted/checkpoint-final/model.safetensors patient/checkpoint-final/model.safetensors && [ "$(readlink halted/checkpoint-best)" = "$(readlink patient/checkpoint-best)" ] && [ "$(value halted best_eval_step)" = "$(first)" ] && [ "$(value halted training_steps)" = "$(value patient training_steps)" ]'
is "... and the report still has what was there before the first step" eval '[ -n "$(value patient before_eval_loss)" ] && [ "$(value halted before_eval_loss)" = "$(value patient before_eval_loss)" ] && [ "$(value halted eval_exact_match_raw)" = "$(value patient eval_exact_match_raw)" ]'
refused "... not by another number" 2 'changed since that run: --best-by (was eval_exact_match_raw, now loss)' "$BUILD/finetune_full" --resume patient --best-by loss
is "... unless allowed: then the best and the patience begin anew" eval '"$BUILD/finetune_full" --resume patient --best-by loss --allow-changed --stop-at-step $(($(first) + 40)) >out 2>&1 && grep -q "^eval $(($(first) + 30)) .* | best$" out && grep -q "^eval $(($(first) + 40)) " out'
is "by the loss of general rows" eval 'run finetune_full kept --eval-dataset rows.jsonl --max-steps 20 --eval-every 5 --general-dataset wiki.jsonl --best-by general_loss && lowest=$(for s in 5 10 15 20; do of_step kept $s general_loss | sed "s/^/$s /"; done | sort -k2g | head -n 1) && near "$(value kept best_eval_general_loss)" "${lowest#* }" && [ "$(value kept best_eval_step)" = "${lowest% *}" ]'

# ---- signals ----
is "a signal in an evaluation ends the run, and the resumed one repeats it" eval '
    run finetune_full whole --eval-dataset rows.jsonl --max-steps 4 --eval-every 2 --eval-metrics ended --eval-answers 0
    "$BUILD/finetune_full" --model model --threads 1 --dataset rows.jsonl --max-length 64 --batch-size 12 --lr 5e-3 --eval-dataset rows.jsonl --max-steps 4 --eval-every 2 --eval-metrics ended --eval-answers 0 --output killed >killed.out 2>&1 & pid=$!
    until grep -q "^step" killed.out || ! kill -0 $pid; do sleep 0.01; done
    kill -TERM $pid; wait $pid
    [ -e killed/report.json ] && { grep -q "\"status\":.*\"finished\"" killed/run.json || "$BUILD/finetune_full" --resume killed >out 2>&1; }
    grep eval_ whole/metrics.jsonl >x; grep eval_ killed/metrics.jsonl >y; cmp x y && cmp whole/checkpoint-final/model.safetensors killed/checkpoint-final/model.safetensors'

# ---- many files ----
i=0 files=
while [ $((i += 1)) -le 64 ]; do head -n 1 rows.jsonl >s$i.jsonl; files=$files,s$i.jsonl; done
is "64 files have a loss each, which can be read" eval 'run finetune_full many --eval-dataset "${files#,}" --max-steps 1 --logger csv,tensorboard && [ "$(value many eval_s64_loss)" = "$(value many eval_s1_loss)" ] && "$BUILD/runs" plot many --metric eval_s64_loss --svg many.svg && grep -q "eval_s64_loss" many.svg'
is "... and one metric of 55, beside that of all" eval 'run finetune_full many1 --eval-dataset "$(echo ${files#,} | cut -d , -f 1-55)" --max-steps 1 --eval-metrics ended --eval-tokens 1 && [ -n "$(value many1 eval_s55_ended)" ] && "$BUILD/runs" plot many1 --metric eval_s55_ended --svg many1.svg'

# ---- what is refused ----
no() { code=$1 text=$2; shift 2; refused "refused: $*" "$code" "$text" "$BUILD/finetune_full" --model model --dataset rows.jsonl --max-length 64 --output refused "$@"; }
no 2 'but no rows are held out to evaluate on' --eval-metrics rouge_l
no 2 '--general-dataset is beside rows of your own, but no rows are held out' --general-dataset wiki.jsonl
no 2 'but no rows are held out' --eval-first
no 2 'but no rows are held out' --best-by perplexity
no 2 '--eval-metrics: no metric is called "rouge_3" (the nearest is rouge)' --train-split 0.5 --eval-metrics rouge_3
no 2 'pair_accuracy is of preference pairs' --train-split 0.5 --eval-metrics pair_accuracy
no 2 '"loss" names no metric of answers' --train-split 0.5 --eval-metrics loss
no 2 '--best-by rouge_l: an evaluation of this run has no such number; it has loss, perplexity. --eval-metrics adds others' --train-split 0.5 --best-by rouge_l
no 2 'it has loss, perplexity, ended, general_loss' --train-split 0.5 --best-by colour --eval-metrics ended,answer_tokens --general-dataset wiki.jsonl
no 2 '--best-by accuracy,ended: an evaluation of this run has no such number; it has loss, perplexity, accuracy, ended' --train-split 0.5 --best-by accuracy,ended --eval-metrics accuracy,ended
no 2 'neither a higher nor a lower value of it is better' --train-split 0.5 --eval-metrics answer_tokens --best-by answer_tokens
no 2 '--eval-answers is for --eval-metrics' --train-split 0.5 --eval-answers 4
no 2 '--eval-tokens is for --eval-metrics' --train-split 0.5 --eval-tokens 4
no 2 '--eval-metrics: the rows have no answer to compare with' --dataset wiki.jsonl --train-split 0.5 --eval-metrics rouge_l
no 2 '--general-dataset: nowhere.jsonl: no such file' --train-split 0.5 --general-dataset nowhere.jsonl
no 2 '--eval-metrics: the rows are pieces of long texts' --dataset long.txt --train-split 0.5 --eval-metrics rouge_l
no 2 'room for 56 metrics, and these files have more' --eval-dataset "$(echo ${files#,} | cut -d , -f 1-28)" --eval-metrics ended,rouge_l
cp turns.jsonl general.jsonl
no 2 'two numbers of an evaluation would be called eval_general_loss' --eval-dataset rows.jsonl,general.jsonl --general-dataset wiki.jsonl
is "... before there is a run folder" [ ! -e refused ]
printf '{"prompt": "p", "chosen": "c", "rejected": "r"}\n{"prompt": "q", "chosen": "c", "rejected": "r"}\n' >pairs.jsonl
dpo() { "$BUILD/finetune_dpo" --model model --dataset pairs.jsonl --eval-dataset pairs.jsonl --max-length 64 --max-steps 2 --eval-every 1 "$@"; }
refused "preferences have no one answer" 2 'a row of preferences has no such answer' dpo --eval-metrics rouge_l --output refused
refused "... nor general rows" 2 'these rows are preferences' dpo --general-dataset wiki.jsonl --output refused
is "... but the best may go by their accuracy" eval 'dpo --best-by rewards/accuracies --output pairs >out 2>&1 && [ "$(sed -n "s/.*\"best_by\":[[:space:]]*\"\(.*\)\".*/\1/p" pairs/checkpoint-2/state/progress.json)" = rewards/accuracies ]'
finish
