#!/bin/sh
# test_evaluate.sh - recipes/evaluate.c: losses and metrics of answers, intervals, two models on the same rows, a file that is continued,
# what is refused. (Metrics and intervals themselves: tests/metrics, peers/metrics_peer.py.)
. tests/tap.sh
evaluate=$BUILD/evaluate
cd "$tmp" || exit 1
for i in 0 1 2 3 4 5 6 7 8 9 10; do
    case $((i % 2)) in 0) word=even ;; *) word=odd ;; esac
    printf '{"prompt": "Number %s is", "completion": " %s"}\n' $i $word
done >rows.jsonl
is "a model that has learned the rows" eval 'tiny model 1 --dtype float32 && "$BUILD/finetune_full" --model model --dataset rows.jsonl --max-steps 150 --batch-size 11 --lr 5e-3 --max-length 64 --output learned >out'
is "an adapter that is in between" eval '"$BUILD/finetune_lora" --model model --dataset rows.jsonl --max-steps 40 --batch-size 11 --lr 2e-2 --max-length 64 --output lora >out'
value() { sed -n "s/^[[:space:]]*\"$2\":[[:space:]]*\([-0-9.e]*\),*$/\1/p" "$1/report.json"; }
# A batch of other rows may change the last bits of a loss.
same_rows() { for r in "$1" "$2"; do sed 's/"loss[^,]*,//g' "$r/rows.jsonl" >"$r.txt"; done; cmp "$1.txt" "$2.txt"; }
cmp_reports() { for r in "$1" "$2"; do grep -v tokens_per_second "$r/report.json" >"$r.txt"; done; cmp "$1.txt" "$2.txt"; }
judge() { "$evaluate" --keep-trained-rows --dataset rows.jsonl --max-new-tokens 8 "$@" >table 2>notes; }

# ---- one model ----
is "it prints a table, and writes rows and a report" eval 'judge --model learned/checkpoint-final --output a && grep -qE "^exact_match_raw +[0-9.]+ +[0-9.e-]+ to [0-9.]+ +0-1$" table && [ $(wc -l <a/rows.jsonl) = 11 ] && [ -s a/report.json ]'
is "a model that has learned the rows is right on all" eval '[ "$(value a exact_match_raw)" = 1 ] && [ "$(value a token_f1)" = 1 ] && [ "$(value a ended)" = 1 ] && [ "$(value a rows)" = 11 ]'
is "... and surely only above 1 / (1 + z^2 / n)" near "$(value a exact_match_raw_low)" "$(awk 'BEGIN { print 1 / (1 + 1.959964 ^ 2 / 11) }')"
"$BUILD/finetune_full" --model learned/checkpoint-final --dataset rows.jsonl --eval-dataset rows.jsonl --max-steps 0 --max-length 64 --output loss >out 2>&1
is "the loss is that of an evaluation in training" near "$(value a loss)" "$(sed -n 's/.*"eval_loss":\([^,}]*\).*/\1/p' loss/metrics.jsonl | head -n 1)"
is "perplexity is exp of it" near "$(value a perplexity)" "$(awk "BEGIN { print exp($(value a loss)) }")"
sum() { sed -n "s/.*\"$1\":\([-0-9.e]*\),.*/\1/p" "$2" | awk '{ s += $1; n++ } END { printf "%.12g\n", s / (M ? n : 1) }' M="$3"; }
is "bits per byte are nats over bytes" near "$(value a bits_per_byte)" "$(awk "BEGIN { print $(sum loss_sum a/rows.jsonl) / $(sum loss_bytes a/rows.jsonl) / log(2) }")"
is "... bytes of the answers alone" [ "$(sum loss_bytes a/rows.jsonl)" = 50 ]
is "... the end token counts in the loss" [ "$(sum loss_tokens a/rows.jsonl)" -ge 22 ]
is "another model: means are those of the rows" eval 'judge --model model --output b --metrics loss,token_f1,rouge_1,answer_tokens,chrf && near "$(value b answer_tokens)" "$(sum tokens b/rows.jsonl 1)" && [ "$(value b token_f1)" = "$(sum token_f1 b/rows.jsonl 1)" ]'
answers() { sed 's/.*"answer":\(.*\),"expected.*/\1/' "$1"; }
is "one row at a time: the same answers" eval 'judge --model model --output c --batch-size 1 --metrics loss && answers b/rows.jsonl >x && answers c/rows.jsonl >y && cmp x y && near "$(value b loss)" "$(value c loss)"'
is "without --output only the table" eval 'judge --model model --metrics loss && grep -q "^loss " table && ! grep -q exact table'
is "--limit" eval 'judge --model model --limit 3 --output d --metrics loss && [ $(wc -l <d/rows.jsonl) = 3 ]'
is "bleu and chrf tell their signature" eval 'judge --model model --metrics bleu,chrf && grep -q "^# bleu|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:tune.c-" table'

is "rows.csv has a record for each row" eval '[ $(wc -l <b/rows.csv) -ge 12 ] && head -n 1 b/rows.csv | grep -q "^row,prompt,answer,expected,exact_match,end,prompt_tokens,tokens,loss_sum,loss_tokens,loss_bytes,loss,token_f1,rouge_1,chrf,of" && grep -q "^3,Number 3 is," b/rows.csv'
drawn() { for m in "$@"; do grep -q ">$m<" b/metrics.svg || return 1; done; }
is "metrics.svg has their names" drawn loss token_f1 rouge_1 answer_tokens chrf

# ---- conversations ----
talk() { printf '{"messages": [{"role": "user", "content": "One?"}, {"role": "assistant", "content": "%s"}, {"role": "user", "content": "Two?"}, {"role": "assistant", "content": "Yes."}]}\n' "$1"; }
of_talk() { judge --model model --chat-template chatml --metrics loss --output "$1" --overwrite && sum loss_tokens "$1/rows.jsonl"; }
is "of a conversation the loss is that of the last answer" eval 'cp rows.jsonl kept.jsonl && talk No. >rows.jsonl && of_talk short >x && talk "A long answer, which is none." >rows.jsonl && of_talk long >y; mv kept.jsonl rows.jsonl; [ -s x ] && cmp x y && grep -q "Yes." long/rows.jsonl'

# ---- labels ----
is "labels are the rows' answers" eval 'judge --model learned/checkpoint-final --output e --metrics accuracy,macro_f1 && [ "$(value e accuracy)" = 1 ] && [ "$(value e macro_f1)" = 1 ] && grep -qE "^ *even +6 +0 +0$" table && grep -qE "^ *odd +0 +5 +0$" table'
is "... or given, in another order" eval 'judge --model learned/checkpoint-final --output e --metrics accuracy --labels odd,even && grep -qE "^ *odd +5 +0 +0$" table'
is "an answer that is no label" eval 'judge --model model --metrics accuracy && grep -qE "^ *even +[0-9]+ +[0-9]+ +[1-6]$" table'
refused "a reference that is no label" 2 '--labels: row 1: the reference "odd" is none of the labels' "$evaluate" --keep-trained-rows --model learned/checkpoint-final --dataset rows.jsonl --metrics accuracy --labels even,uneven --output unlabelled
is "... before a row is answered" [ ! -e unlabelled ]

refused "a label that is there twice" 2 '--labels: "Even." is there twice' "$evaluate" --keep-trained-rows --model model --dataset rows.jsonl --metrics accuracy --labels even,odd,Even.

# ---- two models ----
is "--compare-base: with and without the adapter" eval 'judge --model model --adapter lora/checkpoint-final --compare-base --output f --metrics loss,exact_match && grep -qE "^exact_match_raw .*[0-9]+/0/[0-9]+" table'
is "... the difference is that of the values" near "$(value f difference_loss)" "$(awk "BEGIN { print $(value f loss) - $(value f base_loss) }")"
is "... the base is the model alone" near "$(value f base_loss)" "$(value b loss)"
said() { tr -d "\t\n" <f/report.json | grep -qE "$1"; }
is "the report says what was judged" eval 'said "\"adapter\": *\"lora/checkpoint-final\"" && said "\"data_hash\": *\"[0-9a-f]{16}\"" && said "\"options\": *\{[^{]*\"seed\": *0," && said "\"options\": *\{[^{]*\"limit\": *0," && said "\"generation\": *\{[^{]*\"temperature\": *0,[^{]*\"max_new_tokens\": *8,"'
texts() { sed "s/.*\"$1\":\"//; s/\",\".*//" "$2/rows.jsonl"; }
is "... and gives its answers" eval 'texts base_answer f >x && texts answer b >y && cmp x y && texts answer f >y && ! cmp -s x y'
is "... wins, losses and ties are all rows" [ $(($(value f wins_loss) + $(value f losses_loss) + $(value f ties_loss))) = 11 ]
is "--compare-model" eval 'judge --model learned/checkpoint-final --compare-model model --output g --metrics loss,exact_match && [ "$(value g wins_exact_match_raw)" = 11 ] && near "$(value g p_exact_match_raw)" 0.0009765625 && grep -q "only with model: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... (11); only with compared: none" table && grep -q ">compared<" g/metrics.svg'
is "... near to what each has alone" eval 'near "$(value g loss)" "$(value a loss)" && near "$(value g base_loss)" "$(value b loss)"'

is "progress is told of two models, too" eval 'judge --model learned/checkpoint-final --compare-model model --batch-size 4 --metrics loss && grep -qE "^rows 4/11 \| [0-9]+ tok/s \| ETA [0-9:]+$" notes'

# ---- going on ----
is "rows that are there are not answered again" eval 'cp -r b h && judge --model model --output h --metrics loss,token_f1,rouge_1,answer_tokens,chrf && grep -q "^# resumed  *behind row 11 of 11" notes && [ "$(value h chrf)" = "$(value b chrf)" ] && [ "$(value h loss)" = "$(value b loss)" ]'
is "... and no speed is told" eval '[ -n "$(value b answer_tokens_per_second)" ] && [ -z "$(value h answer_tokens_per_second)" ]'
is "... nor for other metrics" eval 'judge --model model --output h --metrics rouge_2,json_valid && grep -q "^# resumed  *behind row 11 of 11" notes && [ -n "$(value h rouge_2)" ]'
is "... nor for another seed, as greedy answers draw nothing" eval 'judge --model model --output h --metrics loss --seed 5 && grep -q "^# resumed  *behind row 11 of 11" notes'
is "... but sampled ones are others" eval 'judge --model model --limit 1 --no-greedy --temperature 1 --output drawn --metrics ended && ! judge --model model --limit 1 --no-greedy --temperature 1 --output drawn --metrics ended --seed 5 && grep -q "other options" notes'
is "a file that was cut is continued" eval 'rm -rf h/* && head -c 2000 b/rows.jsonl >h/rows.jsonl && judge --model model --output h --metrics loss,token_f1,rouge_1,answer_tokens,chrf --batch-size 8 && same_rows h b && near "$(value h loss)" "$(value b loss)"'
is "a loss that is not finite is null, and goes on" eval 'cp -r b nan && sed "s/\"loss_sum\":[^,]*,/\"loss_sum\":null,/" b/rows.jsonl >nan/rows.jsonl && judge --model model --output nan --metrics token_f1 && grep -q "^# resumed  *behind row 11 of 11" notes && [ "$(value nan token_f1)" = "$(value b token_f1)" ]'
refused "... but is no loss" 1 "row 0: a reference's loss is nan" "$evaluate" --keep-trained-rows --dataset rows.jsonl --max-new-tokens 8 --model model --output nan --metrics loss
refused "... not with other options" 2 "the answer belongs to another prompt, to other weights or to other options" "$evaluate" --model model --dataset rows.jsonl --max-new-tokens 9 --output h
printf '{"row":0,"answer":"x","of":"1"}\n' >strange.jsonl && mkdir strange && mv strange.jsonl strange/rows.jsonl
refused "... nor a strange file" 2 "strange/rows.jsonl:1: " "$evaluate" --model model --dataset rows.jsonl --output strange
for i in $(seq 1 400); do printf '{"prompt": "Number %s is", "completion": " x"}\n' $i; done >many.jsonl
many() { "$evaluate" --model model --dataset many.jsonl --max-new-tokens 40 --batch-size 4 --metrics exact_match,loss "$@"; }
many --output whole >table 2>notes
start() { "$evaluate" --model model --dataset many.jsonl --max-new-tokens 40 --batch-size 4 --metrics exact_match,loss "$@" >x 2>notes & pid=$!; }
start --output killed
is "a run that is killed" eval 'await $pid has 8 killed/rows.jsonl; kill -9 $pid; wait $pid; [ $? = 137 ] && [ ! -e killed/report.json ]'
is "... goes on where it was" eval 'many --output killed >table 2>notes && grep -q "^# resumed  *behind row" notes && same_rows killed whole && near "$(value killed loss)" "$(value whole loss)"'
start --output stopped
is "a signal ends it after a batch" eval 'await $pid has 8 stopped/rows.jsonl; kill -TERM $pid; wait $pid; [ $? = 143 ] && grep -q "^# stopped after [0-9]* of 400 rows" x && [ ! -e stopped/report.json ]'
is "... and the same command goes on" eval 'many --output stopped >table 2>notes && cmp stopped/rows.jsonl whole/rows.jsonl && cmp_reports stopped whole'

cp -r whole again && start --output again --overwrite
is "--overwrite removes the old report when it begins" eval 'await $pid [ ! -e again/report.json ]; kill -TERM $pid; wait $pid; [ $? = 143 ] && [ $(wc -l <again/rows.jsonl) -lt 400 ] && [ "$(ls again)" = rows.jsonl ]'

# ---- rows that were trained on ----
sed -n 1,4p rows.jsonl >half.jsonl
is "a model that was trained on four of the rows" eval '"$BUILD/finetune_full" --model model --dataset half.jsonl --max-steps 1 --max-length 64 --output half >out'
is "they are left out, and counted" eval '"$evaluate" --model half/checkpoint-final --dataset rows.jsonl --max-new-tokens 8 --metrics loss,exact_match --output i >table 2>notes && grep -q "^# left out  *4 of 11 rows, which half trained on; --keep" notes && [ "$(value i rows)" = 7 ] && [ "$(value i rows_trained_on)" = 4 ] && head -n 1 i/rows.jsonl | grep -q "^{\"row\":4,"'
is "... and the file is continued" eval 'head -n 3 i/rows.jsonl >x && cp -r i j && cp x j/rows.jsonl && "$evaluate" --model half/checkpoint-final --dataset rows.jsonl --max-new-tokens 8 --metrics loss,exact_match --output j >table 2>notes && same_rows i j && near "$(value j loss)" "$(value i loss)"'
is "... by their place in a file with other rows" eval 'tac rows.jsonl >turned.jsonl && "$evaluate" --model half/checkpoint-final --dataset turned.jsonl --max-new-tokens 8 --metrics loss --output k >table 2>notes && [ "$(value k rows_trained_on)" = 4 ] && near "$(value k loss)" "$(value i loss)"'
sed -n 8,9p rows.jsonl >two.jsonl
is "an adapter on that model, trained on two others" eval '"$BUILD/finetune_lora" --model half/checkpoint-final --dataset two.jsonl --max-steps 1 --max-length 64 --output two >out'
is "... rows of both are left out" eval '"$evaluate" --model half/checkpoint-final --adapter two/checkpoint-final --dataset rows.jsonl --max-new-tokens 2 --metrics loss --output n >table 2>notes && grep -q "^# left out  *4 of 9 rows, which half trained on" notes && [ "$(value n rows)" = 5 ] && [ "$(value n rows_trained_on)" = 6 ]'
is "a run that began with a run's model: it is said that the latter is not looked at" eval 'echo "{\"text\": \"other words\"}" >words.jsonl && "$BUILD/finetune_full" --model half/checkpoint-final --dataset words.jsonl --max-steps 1 --max-length 32 --output later >out && "$evaluate" --model later/checkpoint-final --dataset rows.jsonl --max-new-tokens 2 --metrics loss >table 2>notes && grep -q "later began with a model of .*half; what that run was trained on is not looked for$" notes'
is "... and of the model to compare with" eval '"$evaluate" --model model --compare-model half/checkpoint-final --dataset rows.jsonl --max-new-tokens 2 --metrics loss --output o >table 2>notes && [ "$(value o rows_trained_on)" = 4 ]'
is "rows that are cut are counted among those that are left" eval '"$evaluate" --model half/checkpoint-final --dataset rows.jsonl --context 13 --max-new-tokens 2 --metrics loss --output p >table 2>notes && [ "$(value p rows_cut)" = 7 ] && grep -q "^# warning: 7 of 7 rows are longer" table'
is "--keep-trained-rows" eval 'judge --model half/checkpoint-final --metrics loss --output l && [ "$(value l rows)" = 11 ]'
is "a run's held-out rows are judged" eval '"$BUILD/finetune_full" --model model --dataset rows.jsonl --train-split 0.5 --max-steps 1 --max-length 64 --output split >out && "$evaluate" --model split/checkpoint-final --dataset rows.jsonl --max-new-tokens 8 --metrics loss --output m >table 2>notes && near "$(value m loss)" "$(sed -n "s/.*\"eval_loss\":\([^,}]*\).*/\1/p" split/metrics.jsonl | tail -n 1)"'
refused "no row is left" 2 "no row is left; the model was trained on all of them" "$evaluate" --model half/checkpoint-final --dataset half.jsonl
is "a base's rows are not known" eval '"$evaluate" --model model --dataset half.jsonl --max-new-tokens 2 --metrics loss >table 2>notes && grep -q "^# trained on  *not known: no run made model" notes'
mv half.jsonl gone.jsonl
is "... nor those of a run whose file is gone" eval '"$evaluate" --model half/checkpoint-final --dataset rows.jsonl --max-new-tokens 2 --metrics loss >table 2>notes && grep -q "^# warning: which rows .*half trained on is not known: .*half.jsonl" notes'

# ---- a folder with files of others ----
cp -r half run && cp -r half before
refused "--output that is a training run" 2 "--output: run is the folder of a training run" "$evaluate" --model model --dataset rows.jsonl --metrics loss --output run
is "... which stays as it was" diff -r run before
mkdir other && echo '{"status": "finished", "rows": 3}' >other/report.json && cp other/report.json report.before
refused "a report of another program" 2 "--output: other/report.json is no evaluation's report" "$evaluate" --model model --dataset rows.jsonl --metrics loss --output other --overwrite
is "... which stays, and nothing is added" eval 'cmp other/report.json report.before && [ "$(ls other)" = report.json ]'
cp rows.jsonl rows.before
refused "rows.jsonl that is the data set" 2 "--output: ./rows.jsonl is the data set itself, and would" "$evaluate" --model model --dataset rows.jsonl --metrics loss --output . --overwrite
mkdir linked && ln rows.jsonl linked/rows.csv
refused "... or rows.csv, by a link" 2 "--output: linked/rows.csv is the data set itself, and would" "$evaluate" --model model --dataset rows.jsonl --metrics loss --output linked
is "... which stays" cmp rows.jsonl rows.before

# ---- what is refused ----
refused "no rows" 2 "give --dataset" "$evaluate" --model model
refused "a metric that is none" 2 '--metrics: no metric is called "exakt_match" (the nearest is exact_match); there are loss, ' "$evaluate" --model model --dataset rows.jsonl --metrics loss,exakt_match
refused "a metric of pairs" 2 "pair_accuracy is of preference pairs" "$evaluate" --model model --dataset rows.jsonl --metrics pair_accuracy
refused "--labels without a metric of labels" 2 "--labels is for accuracy and macro_f1" "$evaluate" --model model --dataset rows.jsonl --labels a,b
refused "--compare-base without an adapter" 2 "give --adapter" "$evaluate" --model model --dataset rows.jsonl --compare-base
refused "both comparisons" 2 "exclude each other" "$evaluate" --model model --adapter lora/checkpoint-final --dataset rows.jsonl --compare-base --compare-model model
refused "sampling without --no-greedy" 2 "give --no-greedy" "$evaluate" --model model --dataset rows.jsonl --temperature 1
printf '{"prompt": "Number"}\n' >asked.jsonl
refused "rows without answers" 2 "asked.jsonl" "$evaluate" --model model --dataset asked.jsonl
printf '{"text": "Number one is odd"}\n' >text.jsonl
refused "rows of text" 2 "text.jsonl:1: the row has no answer to compare with" "$evaluate" --model model --dataset text.jsonl
finish
