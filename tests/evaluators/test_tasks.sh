#!/bin/sh
# test_tasks.sh - build/evaluate --tasks: task files with and without includes, groups, examples, filters, output, and what is refused.
# (Values beside lm-eval's own: peers/lm_eval_peer.py.)
. tests/tap.sh
evaluate=$BUILD/evaluate
cd "$tmp" || exit 1
mkdir -p data/arc/Easy data/sums tasks
# ---- a model that says what is right, and rows ----
for i in 1 2 3 4 5 6; do
    printf '{"text": "Question: What is %s and 2?\\nAnswer: %s and 2 is %s.\\n#### %s\\n\\n"}\n' $i $i $((i + 2)) $((i + 2))
done >facts.jsonl
is "a model that has learned some sums" eval 'tiny model 1 --dtype float32 --max-positions 256 && "$BUILD/finetune_full" --model model --dataset facts.jsonl --max-steps 300 --batch-size 6 --lr 5e-3 --max-length 96 --output run >out'
model=run/checkpoint-final
for i in 1 2 3 4 5 6; do
    printf '{"question": "What is %s and 2?", "choices": {"text": ["%s and 2 is %s.", "%s and blue"], "label": ["A", "B"]}, "answerKey": "A"}\n' $i $i $((i + 2)) $i
done >data/arc/Easy/test.jsonl
for i in 1 2 3 4; do
    printf '{"question": "What is %s and 2?", "answer": "%s and 2 is %s.\\n#### %s"}\n' $i $i $((i + 2)) $((i + 2 + (i > 3)))
done >data/sums/test.jsonl
for i in 5 6 7; do printf '{"question": "What is %s and 1?", "answer": "%s and 1 is %s.\\n#### %s"}\n' $i $i $((i + 1)) $((i + 1)); done >data/sums/train.jsonl
cat >tasks/_choices_yaml <<'YAML'
dataset_path: someone/arc
dataset_name: Easy
output_type: multiple_choice
test_split: test
doc_to_text: "Question: {{question}}\nAnswer:"
doc_to_target: "{{choices.label.index(answerKey)}}"
doc_to_choice: "{{choices.text}}"
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
  - metric: acc_norm
metadata:
  version: 1.0
YAML
printf 'include: _choices_yaml\ntask: arc\ntag: both\n' >tasks/arc.yaml
printf 'include: _choices_yaml\ntask: wrong\ntag:\n  - both\n  - other\ndoc_to_target: 1\n' >tasks/wrong.yaml
printf 'group: all\ntask:\n  - half\nmetadata:\n  version: 2\naggregate_metric_list:\n  - metric: acc\n    weight_by_size: false\n  - metric: acc_norm\n' >tasks/_all.yaml
printf 'group: half\ngroup_alias: a half\ntask:\n  - both\n' >tasks/_half.yaml
cat >tasks/sums.yaml <<'YAML'
task: sums
dataset_path: sums
output_type: generate_until
training_split: train
test_split: test
doc_to_text: "Question: {{question}}\nAnswer:"
doc_to_target: "{{answer}}"
generation_kwargs:
  until: ["Question:"]
  do_sample: false
  max_gen_toks: 60
metric_list:
  - metric: exact_match
    ignore_case: true
    regexes_to_ignore: [",", "(?s).*#### "]
filter_list:
  - name: strict
    filter:
      - function: regex
        regex_pattern: "#### (\\-?[0-9\\.\\,]+)"
      - function: take_first
  - name: first
    filter:
      - function: regex
        regex_pattern: "[0-9]+"
      - function: take_first
YAML
judge() { "$evaluate" --model $model --tasks-data data --overwrite "$@" >table 2>notes; }
value() { sed -n "s/^[[:space:]]*\"$2\":[[:space:]]*\([-0-9.e]*\),*$/\1/p" "$1/report.json"; }

# ---- choices ----
is "choices: a table, rows, a report" eval 'judge --tasks tasks/arc.yaml --output a && grep -qE "^arc +1.0 +none +0 +acc +1.0000 +± +0.0000$" table && [ $(wc -l <a/rows.jsonl) = 6 ] && [ "$(value a arc_acc)" = 1 ] && [ "$(value a arc_acc_error)" = 0 ] && [ "$(value a arc_rows)" = 6 ]'
is "... a row has what the model thinks of each choice" grep -q '^{"task":"arc","row":0,"prompt":"Question: What is 1 and 2?\\nAnswer:","choices":\["1 and 2 is 3.","1 and blue"\],"log_probs":\[-[0-9.e-]*,-[0-9.e-]*\],"greedy":\[true,false\],"gold":\[0\],"acc":1,"acc_norm":1,"of":"[0-9a-f]*"}$' a/rows.jsonl
is "... it is said what was read" grep -q '^# task  *arc: 6 of 6 rows of data/arc/Easy/test.jsonl$' notes
probs() { sed 's/.*"log_probs":\[\([^]]*\)\].*/\1/' "$1/rows.jsonl" | tr , '\n'; }
same_probs() { probs "$1" >x; probs "$2" >y; [ -s x ] && paste x y | awk '{ d = $1 - $2; if (d * d > 1e-8) exit 1 }'; }
is "one question at a time: the same log-likelihoods" eval 'judge --tasks tasks/arc.yaml --output b --batch-size 1 && same_probs a b'
printf 'task: mixed\ndataset_path: mixed\noutput_type: multiple_choice\ntest_split: test\ndoc_to_text: "{{q}}:"\ndoc_to_target: 0\ndoc_to_choice: "{{o}}"\ntarget_delimiter: ""\n' >tasks/mixed.yaml
mkdir -p data/mixed && printf '{"q": "%s", "o": ["%s", "%s"]}\n' "a long one, and so the first" A B "colour" "one two" "red" "another, whose prompt is long" C D x y "blue and red" >data/mixed/test.jsonl
is "choices of one token beside longer ones" eval 'judge --tasks tasks/mixed.yaml --output a1 && judge --tasks tasks/mixed.yaml --output a2 --batch-size 1 && same_probs a1 a2'
printf 'include: mixed.yaml\ntask: shots\ntraining_split: train\nfewshot_split: train\nfewshot_config:\n  sampler: first_n\nnum_fewshot: 2\n' >tasks/shots.yaml
head -n 2 data/mixed/test.jsonl >data/mixed/train.jsonl
is "examples that all prompts begin with: the same log-likelihoods" eval 'judge --tasks tasks/shots.yaml --output a3 && judge --tasks tasks/shots.yaml --output a4 --batch-size 1 && judge --tasks tasks/shots.yaml --output a5 --batch-size 4 && same_probs a3 a4 && same_probs a3 a5 && [ $(grep -c "the first:A" a3/rows.jsonl) = 4 ]'
is "--limit" eval 'judge --tasks tasks/arc.yaml --output c --limit 2 && [ $(wc -l <c/rows.jsonl) = 2 ] && grep -q "^# arc: the first 2 of 6 rows$" table'
is "another target: the other choice" eval 'judge --tasks tasks/wrong.yaml --output d && [ "$(value d wrong_acc)" = 0 ]'
is "data in the Hub's layout, in Parquet's place JSON" eval 'mkdir -p hub/someone/arc/Easy && cp data/arc/Easy/test.jsonl hub/someone/arc/Easy/ && judge --tasks tasks/arc.yaml --tasks-data hub --output e && [ "$(value e arc_acc)" = 1 ]'

# ---- groups ----
is "a group: its tasks by tag, means" eval 'judge --tasks tasks/_all.yaml --output g && [ "$(value g all_acc)" = 0.5 ] && [ "$(value g all_acc_norm)" = 0.5 ] && [ "$(value g all_rows)" = 12 ] && [ "$(value g wrong_acc)" = 0 ]'
is "... the table shows who is in whom" eval 'grep -q "^all  *2  *none  *0  *acc  *0.5000" table && grep -q "^ - a half  *N/A" table && grep -q "^  - arc  *1.0" table && grep -q "^  - wrong " table'

# ---- answers ----
is "answers: filters, each with its value" eval 'judge --tasks tasks/sums.yaml --output h && [ "$(value h sums_exact_match_strict)" = 0.75 ] && [ "$(value h sums_exact_match_first)" = 0 ] && grep -q "^sums  *Yaml  *strict  *0  *exact_match  *0.7500  *±  *0.2500$" table'
is "... the texts of until end them" eval '! grep -q "\"answer\":\"[^\"]*Question:" h/rows.jsonl && grep -q "\"answer\":\" 1 and 2 is 3" h/rows.jsonl && grep -q "\"filtered\":{\"strict\":\"3\",\"first\":\"1\"}" h/rows.jsonl'
is "examples: drawn from the training rows" eval 'judge --tasks tasks/sums.yaml --output i --num-fewshot 2 && [ $(grep -o "Question:" i/rows.jsonl | wc -l) = 12 ] && grep -q "; 2 examples, drawn of data/sums/train.jsonl" notes && grep -q "\"num_fewshot\":[[:space:]]*2" i/report.json'
printf 'include: sums.yaml\ntask: first\nfewshot_config:\n  sampler: first_n\nnum_fewshot: 1\n' >tasks/first.yaml
is "... or the first ones" eval 'judge --tasks tasks/first.yaml --output j && [ $(grep -c "\"prompt\":\"Question: What is 5 and 1?.nAnswer: 5 and 1 is 6..n#### 6.n.nQuestion: " j/rows.jsonl) = 4 ]'
printf 'include: sums.yaml\ntask: zero\nnum_fewshot: 0\n' >tasks/zero.yaml
is "a file that says 0 examples keeps them" eval 'judge --tasks tasks/zero.yaml --output j --num-fewshot 2 && grep -q "num_fewshot is 0 in the file" notes && [ $(grep -o "Question:" j/rows.jsonl | wc -l) = 4 ]'
sed '$d' $model/tokenizer_config.json | sed '$s/[^,]$/&,/' >x && printf '"chat_template": "{%% for m in messages %%}<{{ m.role }}>{{ m.content }}{%% endfor %%}<assistant>"}\n' >>x
cp -rL $model chat && cp x chat/tokenizer_config.json && rm -f chat/chat_template.jinja
is "a chat template" eval 'judge --model chat --tasks tasks/first.yaml --output k --apply-chat-template && grep -q "\"prompt\":\"<user>Question: What is 5 and 1?.nAnswer:<assistant>5 and 1 is 6..n#### 6<user>Question: What is 1 and 2?.nAnswer:<assistant>\"" k/rows.jsonl && grep -q "prompts by the model.s chat template" table'
cat >tasks/word.yaml <<'YAML'
task: word
dataset_path: sums
output_type: loglikelihood
test_split: test
doc_to_text: "{{('Question: ' + question + '\nAnswer: 1 and').split(' ')[:-1]|join(' ')}}"
doc_to_target: " and"
YAML
is "log-likelihood of a word: perplexity, and acc if it is what the model would say" eval 'judge --tasks tasks/word.yaml --output l && awk "BEGIN { p = $(value l word_perplexity); exit !(p > 1 && p < 2) }" && [ "$(value l word_acc)" = 1 ] && [ -n "$(value l word_perplexity_error)" ]'
is "several files" eval 'judge --tasks tasks/arc.yaml,tasks/word.yaml --output m && [ "$(value m arc_acc)" = 1 ] && [ "$(value m word_acc)" = 1 ]'
cat >tasks/texts.yaml <<'YAML'
task: texts
dataset_path: texts
output_type: loglikelihood_rolling
test_split: test
doc_to_target: "{{page}}"
YAML
mkdir -p data/texts
for i in 1 40; do printf '{"page": "%s"}\n' "$(for k in $(seq $i); do printf 'Question: What is %s and 2? ' $((k % 6 + 1)); done)"; done >data/texts/test.jsonl
is "texts: perplexities" eval 'judge --tasks tasks/texts.yaml --output o && grep -qE "^ +none +0 +bits_per_byte +[0-9.]+ +± +N/A$" table && [ -z "$(value o texts_word_perplexity_error)" ] && awk "BEGIN { b = $(value o texts_byte_perplexity); w = $(value o texts_bits_per_byte); exit !(b > 1 && (log(b) / log(2) - w) ^ 2 < 1e-12) }"'
is "... a long one in windows, each token once, so the last one is short" eval 'sed -n 2p o/rows.jsonl | sed "s/.*\"words\":241,\"bytes\":1080,\"log_probs\":.//;s/\].*//" | awk -F, "{ exit !(NF >= 2 && \$NF > \$1 / 2) }"'
is "... the mean over words is that of the rows" eval 'awk -F "\"log_probs\":\\\\[" "{ split(\$2, rest, \"]\"); n = split(rest[1], x, \",\"); for (i = 1; i <= n; i++) s += x[i]; w += NR == 1 ? 7 : 241 } END { exit !((exp(-s / w) / $(value o texts_word_perplexity) - 1) ^ 2 < 1e-18) }" o/rows.jsonl'
printf 'include: sums.yaml\ntask: letters\ndataset_path: arc\ndataset_name: null\ndoc_to_target: "(A)"\nrepeats: 5\nfilter_list:\n  - name: x\n    filter:\n      - function: multi_choice_regex\n        regex_pattern: "(.[A-B].)"\n        ignore_punctuation: true\n      - function: take_first_k\n        k: 3\n      - function: majority_vote\n      - function: take_first\n' >tasks/letters.yaml
for i in 1 2 3; do printf '{"question": "What is %s and 2?", "choices": ["%s and 2", "%s and 2 is %s"]}\n' $i $i $i $((i + 2)); done >data/arc/test.jsonl
is "an answer is the choice whose text it has" eval 'judge --tasks tasks/letters.yaml --output p && [ "$(value p letters_exact_match_x)" = 0 ] && [ $(grep -c "\"filtered\":{\"x\":\"(B)\"}" p/rows.jsonl) = 3 ] && grep -q "repeats is 5, and answers are greedy, so each question is asked once" notes'

# ---- files ----
is "rows as CSV: columns of all tasks" eval 'judge --tasks tasks/arc.yaml,tasks/sums.yaml --output q && [ $(tr -d "\r" <q/rows.csv | grep -c "^\(arc\|sums\),") = 10 ] && head -n 1 q/rows.csv | tr -d "\r" | grep -qx "task,row,prompt,choices,log_probs,greedy,gold,acc,acc_norm,of,expected,answer,filtered,exact_match_strict,exact_match_first" && grep -q ",\"\[\"\"1 and 2 is 3" q/rows.csv'
is "a figure of values with intervals" eval 'grep -q ">arc_acc_norm<" q/metrics.svg && grep -q ">sums_exact_match_strict<" q/metrics.svg && grep -q "bars: intervals of 95 %" q/metrics.svg'
is "... the report has them, Wilson's where a row is right or wrong" eval '[ "$(value q arc_acc_high)" = 1 ] && awk "BEGIN { d = $(value q arc_acc_low) - 1 / (1 + 1.959963984540054 ^ 2 / 6); exit !(d * d < 1e-18) }"'

# ---- a run that is stopped ----
for i in $(seq 1 300); do cat data/sums/test.jsonl; done >many.jsonl && mkdir -p many/sums && cp many.jsonl many/sums/test.jsonl
many() { "$evaluate" --model $model --tasks tasks/sums.yaml --tasks-data many --batch-size 4 --limit 400 "$@" >table 2>notes; }
many --output whole
"$evaluate" --model $model --tasks tasks/sums.yaml --tasks-data many --batch-size 4 --limit 400 --output n >table 2>notes & pid=$!
is "a run that is killed" eval 'await $pid has 4 n/rows.jsonl; kill -9 $pid; wait $pid; [ $? = 137 ] && [ ! -e n/report.json ] && [ $(($(wc -l <n/rows.jsonl) % 4)) = 0 ]'
printf '{"task":"su' >>n/rows.jsonl
is "... the same command goes on, and the result is the same" eval 'many --output n && grep -q "^# resumed  *[0-9]* of 400 questions are in n/rows.jsonl$" notes && cmp n/rows.jsonl whole/rows.jsonl && cmp n/report.json whole/report.json && cmp n/rows.csv whole/rows.csv'
"$evaluate" --model $model --tasks tasks/sums.yaml --tasks-data many --batch-size 2 --output r >table 2>notes & pid=$!
is "a signal ends it after a batch" eval 'await $pid has 2 r/rows.jsonl; kill -TERM $pid; wait $pid; [ $? = 143 ] && grep -q "^# stopped in sums, after [0-9]* of 1200 questions.*; the same command goes on$" table && [ ! -e r/report.json ]'
is "a finished one is read again" eval 'many --output n && grep -q "^# resumed  *400 of 400" notes && cmp n/report.json whole/report.json'
is "another filter may be asked of the same answers" eval 'sed "s/regex_pattern: \"\[0-9\]+\"/regex_pattern: \"is [0-9]+\"/" tasks/sums.yaml >tasks/sums2.yaml && "$evaluate" --model $model --tasks tasks/sums2.yaml --tasks-data many --batch-size 4 --limit 400 --output n >table 2>notes && grep -q "400 of 400" notes && grep -q "\"first\":\"is 3\"" n/rows.jsonl'
cp -rL model nul && printf '{"suppress_tokens": [%s]}\n' "$(seq 0 299 | grep -vx 191 | paste -sd,)" >nul/generation_config.json
printf 'include: sums.yaml\ntask: nul\nfilter_list: null\nmetric_list:\n  - metric: chrf\n' >tasks/nul.yaml
nul() { "$evaluate" --model nul --tasks tasks/nul.yaml --tasks-data data --limit 2 --output nul.out "$@" >table 2>notes; }
is "an answer of NULs is read with all its bytes" eval 'nul --overwrite && grep -q "\"answer\":\".u0000.u0000" nul.out/rows.jsonl && cp -r nul.out nul.before && nul && grep -q "^# resumed  *2 of 2" notes && diff -r nul.out nul.before'
cp -rL model nan && size=$(od -An -tu8 -N8 nan/model.safetensors | tr -d ' ') && at=$(head -c $((8 + size)) nan/model.safetensors | sed -n 's/.*"model.norm.weight":{[^}]*"data_offsets":\[\([0-9]*\),.*/\1/p')
printf '\000\000\300\177' | dd of=nan/model.safetensors bs=1 seek=$((8 + size + at)) conv=notrunc 2>/dev/null
for task in arc word texts; do
    refused "weights that are not numbers: no score of $task" 1 ": the log-likelihood of text 0 is nan; expected a finite number" "$evaluate" --model nan --tasks tasks/$task.yaml --tasks-data data --output nan.$task
done
cp -r a null && sed -i 's/"log_probs":\[[^,]*,/"log_probs":[null,/' null/rows.jsonl
refused "a line without a log-likelihood" 2 "null/rows.jsonl:1: the line was changed; give another" "$evaluate" --model $model --tasks tasks/arc.yaml --tasks-data data --output null

# ---- two models ----
is "--compare-model: the same questions" eval 'judge --tasks tasks/_all.yaml,tasks/sums.yaml --compare-model model --output s && grep -qE "^task .* model +compared +difference +its 95 % interval +better/worse/same +p$" table && [ "$(value s base_sums_exact_match_strict)" = 0 ] && [ "$(value s wins_sums_exact_match_strict)" = 3 ] && [ "$(value s losses_sums_exact_match_strict)" = 0 ] && [ "$(value s ties_sums_exact_match_strict)" = 1 ] && [ "$(value s difference_sums_exact_match_strict)" = 0.75 ] && [ "$(value s p_sums_exact_match_strict)" = 0.25 ]'
is "... each side is what it is alone" eval 'judge --tasks tasks/arc.yaml --output t && judge --model model --tasks tasks/arc.yaml --output u && [ "$(value s base_arc_acc)" = "$(value u arc_acc)" ] && [ "$(value s arc_acc)" = "$(value t arc_acc)" ] && probs t >x && grep "\"arc\"" s/rows.jsonl | sed "s/.*\"log_probs\":\[\([^]]*\)\].*base_log.*/\1/" | tr , "\n" >y && paste x y | awk "{ d = \$1 - \$2; if (d * d > 1e-8) exit 1 }" && probs u >x && grep "\"arc\"" s/rows.jsonl | sed "s/.*\"base_log_probs\":\[\([^]]*\)\].*/\1/" | tr , "\n" >y && paste x y | awk "{ d = \$1 - \$2; if (d * d > 1e-8) exit 1 }"'
is "... a group: rows of its tasks" eval '[ "$(value s wins_all_acc)" = $(($(value s wins_arc_acc) + $(value s wins_wrong_acc))) ] && [ "$(value s difference_all_acc)" = "$(awk "BEGIN { printf \"%.17g\", $(value s all_acc) - $(value s base_all_acc) }" | sed "s/^0\.0*$/0/")" ]'
is "... both are drawn" grep -q ">compared<" s/metrics.svg
is "--compare-base: with and without the adapter" eval '"$BUILD/finetune_lora" --model model --dataset facts.jsonl --max-steps 60 --batch-size 6 --lr 2e-2 --max-length 96 --output lora >out && judge --model model --adapter lora/checkpoint-final --tasks tasks/word.yaml,tasks/texts.yaml,tasks/sums.yaml --compare-base --output v && grep -q "the model without its adapter" table && judge --model model --tasks tasks/word.yaml,tasks/texts.yaml,tasks/sums.yaml --output w && awk "BEGIN { a = $(value v base_texts_bits_per_byte) - $(value w texts_bits_per_byte); b = $(value v base_word_perplexity) / $(value w word_perplexity) - 1; exit !(a * a < 1e-8 && b * b < 1e-8 && $(value v texts_bits_per_byte) < $(value w texts_bits_per_byte)) }"'
is "... each side answers" eval 'sed -n "s/.*\"base_answer\":\(\"[^\"]*\"\).*/\1/p" v/rows.jsonl >x && sed -n "s/.*\"answer\":\(\"[^\"]*\"\).*/\1/p" w/rows.jsonl >y && [ $(wc -l <x) = 4 ] && cmp x y'

# ---- generation_config.json ----
cp -rL $model strict && printf '{"repetition_penalty": 1.8, "max_new_tokens": 3, "suppress_tokens": [5], "num_beams": 4}\n' >strict/generation_config.json
is "what generation_config.json says is said, and holds" eval 'judge --model strict --tasks tasks/sums.yaml --output x1 && grep -q "^# answers  *with repetition penalty 1.8 (generation_config.json)$" notes && grep -q "^# generation_config.json sets suppress_tokens" notes && grep -q "left out, as not supported here: num_beams" notes && judge --tasks tasks/sums.yaml --output x2 && [ "$(sed "s/.*\"answer\"//;s/,\"of.*//" x1/rows.jsonl)" != "$(sed "s/.*\"answer\"//;s/,\"of.*//" x2/rows.jsonl)" ] && ! grep -q "repetition" notes'
is "rows that a run was trained on are judged, which is said" grep -q "^# trained on  *not looked for: rows of tasks that run trained on are judged, too$" notes

# ---- what is refused ----
bad() { # NAME LINE TEXT - a change of arc.yaml whose line of that number is refused
    printf 'include: tasks/_choices_yaml\ntask: bad\n%b\n' "$4" >bad.yaml
    refused "$1" ${5:-2} "bad.yaml:$2$3" "$evaluate" --model $model --tasks bad.yaml --tasks-data data
}
bad "Python in process_docs" 3 ':15: process_docs: !function utils.process_docs is Python code' 'process_docs: !function utils.process_docs'
bad "Python in doc_to_text" 3 ':14: doc_to_text: !function utils.text is Python code' 'doc_to_text: !function utils.text'
bad "Python in a list" 5 ':18: aggregation: !function utils.mean is Python code' 'metric_list:\n  - metric: acc\n    aggregation: !function utils.mean'
bad "a key that is not known" 3 ':15: the key doc_to_texts is not read here (the nearest is doc_to_text)' 'doc_to_texts: "x"'
bad "a metric that is not known" 4 ':5: metric_list: acc_normed is no metric that is read here for multiple_choice (the nearest is acc_norm); there are acc, acc_norm, acc_bytes, exact_match, f1' 'metric_list:\n  - metric: acc_normed'
bad "another output" 3 ':14: output_type: loglikelihoods is not read here; known are multiple_choice, loglikelihood, generate_until and loglikelihood_rolling' 'output_type: loglikelihoods'
bad "a template with a mistake" 3 ': doc_to_text:1: ' 'doc_to_text: "{{ question"' 1
bad "filters of choices" 4 ':3: filter_list: filters are read for output_type generate_until only' 'filter_list:\n  - name: x\n    filter: []'
bad "repeats" 3 ':10: repeats: expected a whole number from 1' 'repeats: 0'
bad "another sampler" 4 ':3: fewshot_config: the sampler balanced is not known here' 'fewshot_config:\n  sampler: balanced'
more() { # NAME LINE TEXT CHANGE - the same of sums.yaml
    printf 'include: tasks/sums.yaml\ntask: bad\n%b\n' "$4" >bad.yaml
    refused "$1" 2 "bad.yaml:$2$3" "$evaluate" --model $model --tasks bad.yaml --tasks-data data
}
more "a filter that is not known" 6 ':9: filter_list: the filter "take_frist" is not known here (the nearest is take_first)' 'filter_list:\n  - name: x\n    filter:\n      - function: take_frist'
more "more answers than there are" 6 ':9: take_first_k: k is 2; expected 1 to 1, which is repeats' 'filter_list:\n  - name: x\n    filter:\n      - function: take_first_k\n        k: 2'
more "a filter without take_first" 4 ':5: filter_list: x has no take_first' 'filter_list:\n  - name: x\n    filter:\n      - function: lowercase'
more "an expression with a mistake" 6 ': regex_pattern: the regular expression "(": ' 'filter_list:\n  - name: x\n    filter:\n      - function: regex\n        regex_pattern: "("'
more "sampled answers" 4 ':14: generation_kwargs: answers are greedy here' 'generation_kwargs:\n  do_sample: true'
printf 'include: tasks/_choices_yaml\ntask: bad\ndoc_to_text: "{{ nothing }}"\n' >bad.yaml
refused "a column that is not there" 1 "bad.yaml: row 0: " "$evaluate" --model $model --tasks bad.yaml --tasks-data data
refused "no data" 2 "the split test of someone/arc/Easy is not there. Looked for nowhere/someone/arc/Easy/test.jsonl" "$evaluate" --model $model --tasks tasks/arc.yaml --tasks-data nowhere
refused "no such file" 2 "there is no task file arc_easy" "$evaluate" --model $model --tasks arc_easy
printf 'include: again.yaml\ntask: x\n' >again.yaml
refused "a file that includes itself" 2 "perhaps a file includes itself" "$evaluate" --model $model --tasks again.yaml
printf 'group: g\ntask:\n  - nobody\n' >tasks/_g.yaml
refused "a group of nobody" 2 "tasks/_g.yaml:3:5: nobody: no task, group or tag in the " "$evaluate" --model $model --tasks tasks/_g.yaml
printf 'group: g\ntask:\n  - task: arc\n    num_fewshot: 3\n' >tasks/_g.yaml
refused "a group that changes a task" 2 "tasks/_g.yaml:3:5: task: expected the names of tasks" "$evaluate" --model $model --tasks tasks/_g.yaml
refused "a task twice" 2 "the task arc is there twice" "$evaluate" --model $model --tasks tasks/arc.yaml,tasks/arc.yaml --tasks-data data
refused "rows of other tasks" 2 "a/rows.jsonl:1: expected a question of these tasks" "$evaluate" --model $model --tasks tasks/sums.yaml --tasks-data data --output a
refused "rows of other weights" 2 "a/rows.jsonl:1: the line belongs to another prompt, to other weights or to other options" "$evaluate" --model model --tasks tasks/arc.yaml --tasks-data data --output a
refused "a run's folder" 2 "run is the folder of a training run" "$evaluate" --model $model --tasks tasks/arc.yaml --tasks-data data --output run
mkdir -p same && sed 's/^{/{"task":"same","row":0,"of":"1",/' data/sums/test.jsonl >same/rows.jsonl && cp same/rows.jsonl before.jsonl
printf 'include: tasks/sums.yaml\ntask: same\ndataset_kwargs:\n  data_files:\n    test: same/rows.jsonl\n    train: data/sums/train.jsonl\n' >same.yaml
refused "rows.jsonl that is the data set" 2 "same/rows.jsonl is a file of the task's rows, and would be replaced" "$evaluate" --model $model --tasks same.yaml --overwrite --output same
is "... which stays" cmp same/rows.jsonl before.jsonl
rm same/rows.jsonl
for mine in 'row,a\n0,b\n' 'task,row,mine\r\n1,2,3\r\n' 'task,row,prompt,of'; do
    printf "$mine" >same/rows.csv
    refused "rows.csv that is another file" 2 "same/rows.csv is no evaluation's file, and would be replaced" "$evaluate" --model $model --tasks tasks/arc.yaml --tasks-data data --overwrite --output same
done
is "... which stays" eval 'printf "$mine" | cmp - same/rows.csv'
refused "an option of rows" 2 "--max-new-tokens is for the rows of --dataset" "$evaluate" --model $model --tasks tasks/arc.yaml --max-new-tokens 3
refused "--compare-base without an adapter" 2 "give --adapter" "$evaluate" --model $model --tasks tasks/arc.yaml --compare-base
refused "--dataset, too" 2 "--dataset and --tasks exclude each other" "$evaluate" --model $model --tasks tasks/arc.yaml --dataset facts.jsonl
finish
