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
same_rows() { for r in "$1" "$2"; do sed 's/"[a-z_]*loss[^,]*,//g' "$r/rows.jsonl" >"$r.txt"; done; cmp "$1.txt" "$2.txt"; }
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
is "bits per byte are nats over bytes" near "$(value a bits_per_byte)" "$(awk "BEGIN { print $(sum text_loss_sum a/rows.jsonl) / $(sum loss_bytes a/rows.jsonl) / log(2) }")"
is "... bytes of the answers alone" [ "$(sum loss_bytes a/rows.jsonl)" = 50 ]
is "... without those of the end token, which has none" [ "$(awk "BEGIN { print ($(sum text_loss_sum a/rows.jsonl) < $(sum loss_sum a/rows.jsonl)) }")" = 1 ]
is "... the end token counts in the loss" [ "$(sum loss_tokens a/rows.jsonl)" -ge 22 ]
is "another model: means are those of the rows" eval 'judge --model model --output b --metrics loss,token_f1,rouge_1,answer_tokens,chrf && near "$(value b answer_tokens)" "$(sum tokens b/rows.jsonl 1)" && [ "$(value b token_f1)" = "$(sum token_f1 b/rows.jsonl 1)" ]'
answers() { sed 's/.*"answer":\(.*\),"expected.*/\1/' "$1"; }
is "one row at a time: the same answers" eval 'judge --model model --output c --batch-size 1 --metrics loss && answers b/rows.jsonl >x && answers c/rows.jsonl >y && cmp x y && near "$(value b loss)" "$(value c loss)"'
is "without --output only the table" eval 'judge --model model --metrics loss && grep -q "^loss " table && ! grep -q exact table'
is "--limit" eval 'judge --model model --limit 3 --output d --metrics loss && [ $(wc -l <d/rows.jsonl) = 3 ]'
is "bleu and chrf tell their signature" eval 'judge --model model --metrics bleu,chrf && grep -q "^# bleu|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:tune.c-" table'

is "rows.csv has a record for each row" eval '[ $(wc -l <b/rows.csv) -ge 12 ] && head -n 1 b/rows.csv | grep -q "^row,prompt,answer,expected,exact_match,end,prompt_tokens,tokens,loss_sum,text_loss_sum,loss_tokens,loss_bytes,loss,token_f1,rouge_1,chrf,of" && grep -q "^3,Number 3 is," b/rows.csv'
drawn() { for m in "$@"; do grep -q ">$m<" b/metrics.svg || return 1; done; }
is "metrics.svg has their names" drawn loss token_f1 rouge_1 answer_tokens chrf

# ---- conversations ----
talk() { printf '{"messages": [{"role": "user", "content": "One?"}, {"role": "assistant", "content": "%s"}, {"role": "user", "content": "Two?"}, {"role": "assistant", "content": "Yes."}]}\n' "$1"; }
of_talk() { judge --model model --chat-template chatml --metrics loss --output "$1" --overwrite && sum loss_tokens "$1/rows.jsonl"; }
is "of a conversation the loss is that of the last answer" eval 'cp rows.jsonl kept.jsonl && talk No. >rows.jsonl && of_talk short >x && talk "A long answer, which is none." >rows.jsonl && of_talk long >y; mv kept.jsonl rows.jsonl; [ -s x ] && cmp x y && grep -q "Yes." long/rows.jsonl'

# ---- labels ----
is "labels are the rows' answers" eval 'judge --model learned/checkpoint-final --output e --metrics accuracy,macro_f1 && [ "$(value e accuracy)" = 1 ] && [ "$(value e macro_f1)" = 1 ] && grep -qE "^ *even +6 +0 +0$" table && grep -qE "^ *odd +0 +5 +0$" table'
is "... or given, in another order" eval 'judge --model learned/checkpoint-final --output e --metrics accuracy --labels odd,even && grep -qE "^ *odd +5 +0 +0$" table'
is "... drawn as a figure, with both models" eval 'judge --model learned/checkpoint-final --compare-model model --output confused --metrics accuracy && grep -q "confusion matrix of model" confused/confusion.svg && grep -q "confusion matrix of compared" confused/confusion.svg && [ "$(grep -c "<rect class=\"q" confused/confusion.svg)" = 12 ] && grep -q "<title>6 even as even, 100.0 %</title>" confused/confusion.svg'
is "... and as CSV" eval 'tr -d "\r" <confused/confusion.csv >x && printf "%s\\n" "model,label,even,odd,(other)" model,even,6,0,0 model,odd,0,5,0 >y && head -n 3 x | cmp - y && [ "$(wc -l <x)" = 5 ] && [ "$(awk -F, "NR > 3 { n += \$3 + \$4 + \$5 } END { print n }" x)" = 11 ]'
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
printf '{"row":0,"answer":"x","loss_sum":1,"of":"1"}\n' >strange.jsonl && mkdir strange && mv strange.jsonl strange/rows.jsonl
refused "... nor a strange file" 2 "strange/rows.jsonl:1: " "$evaluate" --model model --dataset rows.jsonl --output strange
cp -r model nul && printf '{"suppress_tokens": [%s]}\n' "$(seq 0 299 | grep -vx 191 | paste -sd,)" >nul/generation_config.json
printf '{"prompt": "a", "completion": "\\u0000\\u0000"}\n{"prompt": "b", "completion": "c"}\n' >nul.jsonl
nul() { "$evaluate" --model nul --dataset nul.jsonl --max-new-tokens 2 --metrics exact_match_raw,chrf --output nul.out >table 2>notes && [ "$(value nul.out exact_match_raw)" = 0.5 ]; }
is "answers of NULs are read with all their bytes" eval 'nul && grep -q "\"answer\":\".u0000.u0000\",\"expected\":\".u0000.u0000\"" nul.out/rows.jsonl && cp -r nul.out nul.before && nul && grep -q "^# resumed  *behind row 2 of 2" notes && cmp_reports nul.out nul.before'
printf '{"prompt": "a", "completion": ["b", "c"]}\n{"prompt": "d", "completion": "e"}\n' >good.jsonl
good() { "$evaluate" --model model --dataset good.jsonl --max-new-tokens 2 --metrics exact_match --output good.out; }
is "rows with several references go on" eval 'good >table 2>notes && grep -q "\"references\":\[\"e\"\]" good.out/rows.jsonl && good >table 2>notes && grep -q "^# resumed  *behind row 2 of 2" notes'
for now in '["b", "x"]' '["b"]' '["b", "c", "d"]' '["x", "c"]'; do
    sed -i "1s/completion\": .*/completion\": $now}/" good.jsonl
    refused "... not with $now" 2 "good.out/rows.jsonl:1: the row's expected answer is another one now; give another" good
done
is "one reference goes on" eval 'sed -i "1s/completion\": .*/completion\": \"b\"}/" good.jsonl && rm -r good.out && good >table 2>notes && good >table 2>notes && grep -q "^# resumed  *behind row 2 of 2" notes'
sed -i '1s/completion": .*/completion": ["b", "c"]}/' good.jsonl
refused "... not with another beside it" 2 "good.out/rows.jsonl:1: the row's expected answer is another one now; give another" good
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
is "... and a confusion matrix" eval 'judge --model model --output confused2 --metrics accuracy && [ -s confused2/confusion.svg ] && judge --model model --output confused2 --metrics loss && [ ! -e confused2/confusion.svg ] && [ ! -e confused2/confusion.csv ]'

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
foreign() { file=$1 && rm -rf foreign && mkdir foreign && printf "${3:-%s\\n}" "$2" >"foreign/$1" && cp "foreign/$1" foreign.before
    for more in --overwrite --seed=0; do
        refused "$1 of another program" 2 "--output: foreign/$1 is no evaluation's file, and would be replaced; give another folder" "$evaluate" --model model --dataset two.jsonl --max-new-tokens 2 --metrics loss --output foreign $more
    done
    is "... which stays, and nothing is added" eval 'cmp "foreign/$file" foreign.before && [ "$(ls foreign)" = "$file" ]'; }
foreign rows.csv "row,name,of"
foreign rows.jsonl '{"row": 1, "mine": true}'
foreign metrics.svg '<svg xmlns="http://www.w3.org/2000/svg"></svg>'
foreign confusion.svg '<svg xmlns="http://www.w3.org/2000/svg"></svg>'
foreign confusion.csv 'label,a,b'
foreign confusion.csv "$(printf 'model,label,mine\r\nA,x,3\r')"
foreign rows.csv 'row,my notes, one line' '%s'
foreign rows.csv "$(printf 'row,loss_sum,mine\r\n1,2')" '%s'
foreign confusion.csv 'model,label,' '%s'
foreign metrics.svg '<svg ' '%s'
"$BUILD/generate" --model model --input two.jsonl --max-new-tokens 2 --output answers.jsonl >out 2>&1
foreign rows.jsonl "$(cat answers.jsonl)"
foreign rows.jsonl '{"id":1' '%s'
foreign rows.jsonl "{\"row\":1,\"x\":\"$(head -c 70000 /dev/zero | tr '\0' x)\"}"
cp rows.jsonl rows.before
refused "rows.jsonl that is the data set" 2 "--output: ./rows.jsonl is the data set itself, and would" "$evaluate" --model model --dataset rows.jsonl --metrics loss --output . --overwrite
mkdir linked && ln rows.jsonl linked/rows.csv
refused "... or rows.csv, by a link" 2 "--output: linked/rows.csv is the data set itself, and would" "$evaluate" --model model --dataset rows.jsonl --metrics loss --output linked
is "... which stays" cmp rows.jsonl rows.before

# ---- metrics by a program ----
printf '{"text": "Number one is odd"}\n{"text": "Number two is even"}\n{"text": ""}\n' >text.jsonl
cat >score.sh <<'EOF'
# Of each answer: its length, whether it is the expected one, and a number below 0.
sed 's/.*"answer":"\([^"]*\)","expected":"\([^"]*\)".*/\1|\2/' | awk -F'|' '{ sub(/^ /, "", $2); sub(/^ /, "", $1)
    printf "{\"length\": %d, \"same\": %s, \"below\": %g}\n", length($1), $1 == $2 ? "true" : "false", -1.5 * (NR - 1) }'
EOF
each() { echo "while read -r x; do echo '$1'; done"; }
by() { program=$1; shift; judge --metrics exact_match,loss --metric-program "$program" "$@"; }
refused_by() { name=$1 text=$2 program=$3; refused "$name" 1 "$text" "$evaluate" --keep-trained-rows --dataset rows.jsonl --max-new-tokens 8 --model model --metrics exact_match,loss --output own --metric-program "$program"; }
refused_by "a program that is not there" "--metric-program ./nothing: it ended with exit code 127. The last line of its errors: " ./nothing
is "... all answers are kept, and there is no report" eval '[ $(wc -l <own/rows.jsonl) = 11 ] && [ ! -e own/report.json ] && cp own/rows.jsonl own.before'
refused_by "... that fails, with the last line of its stderr" "it ended with exit code 3. The last line of its errors: KeyError: 3 (no answer is lost: the same command goes on with them)" 'echo first >&2; echo "KeyError: 3" >&2; exit 3'
refused_by "... that crashes" "it was ended by signal 11" 'kill -SEGV $$'
refused_by "... that writes too few lines" "it wrote 1 lines for 11 rows; expected one line for each" 'echo 1'
refused_by "... that writes too many" "it wrote 12 lines for 11 rows; expected one line for each" "$(each 1); echo 1"
refused_by "... that never ends to write" "it wrote more than 1093632 bytes" yes
refused_by "... that writes too much at once, and ends well" "it wrote more than 1093632 bytes, and was ended; expected a short line for each row" 'head -c 1093633 /dev/zero'
refused_by "... that never ends to write errors" "it wrote more than 67108864 bytes of errors, and was ended; expected fewer, such as with 2>/dev/null" 'trap "" TERM; while yes; do :; done >&2'
refused_by "... that fails after a lot of errors" "it ended with exit code 3. The last line of its errors: KeyError: 3 (" 'yes | head -c 3000000 >&2; echo "KeyError: 3" >&2; exit 3'
refused_by "... that writes no JSON" "line 1 of its output, for row 0: expected an object of numbers or one number, in JSON (which has no NaN), not: good" "$(each good)"
refused_by "... a blank line" "not: a blank line" "$(each '')"
refused_by "... NaN" "(which has no NaN), not: {\"a\": NaN}" "$(each '{"a": NaN}')"
refused_by "... a number beyond all" "\"score\" is beyond all numbers" "$(each 1e999)"
refused_by "... a text" "\"a\" is no number" "$(each '{"a": "1"}')"
refused_by "... nothing" "the object is empty" "$(each '{}')"
refused_by "... a name twice" "\"a\" is there twice" "$(each '{"a": 1, "a": 2}')"
refused_by "... a name of evaluate's" 'the name "loss" is that of another number of a row or of the report' "$(each '{"loss": 1}')"
for own in answer_tokens_per_second tasks; do
    refused_by "... $own, which a report has" "the name \"$own\" is that of another number of a row or of the report" "$(each "{\"$own\": 1}")"
done
for own in s_low s_high s_error s_signature; do
    refused_by "... $own beside s" "\"$own\" cannot name a metric: names that end in _${own#s_} are the report's own; expected another one" "$(each "{\"s\": 1, \"$own\": 2}")"
done
refused_by "... base_s beside s" "names that begin with base_ are the report's own" "$(each '{"s": 1, "base_s": 2}')"
refused_by "... a name that is none" '"a b" cannot name a metric' "$(each '{"a b": 1}')"
refused_by "... another name in line 3" 'line 3 of its output, for row 2: "b" is not in line 1' "awk '{ print NR == 3 ? \"{\\\"b\\\": 1}\" : \"{\\\"a\\\": 1}\" }'"
refused_by "... a name less in line 3" 'line 3 of its output, for row 2: "a" is missing, which line 1 has' "awk '{ print NR == 3 ? \"{}\" : \"{\\\"a\\\": 1}\" }'"
refused "... that takes too long" 1 "it took longer than 0.1 s and was ended; --metric-limit gives it more" "$evaluate" --keep-trained-rows --dataset rows.jsonl --max-new-tokens 8 --model model --metrics exact_match,loss --output own --metric-program 'sleep 1000' --metric-limit 0.1
is "... none of them changed an answer" cmp own/rows.jsonl own.before
is "a program's numbers are metrics, and the answers are those that are there" eval 'by "sh score.sh" --model model --output own && grep -q "^# resumed  *behind row 11 of 11" notes && grep -qE "^below +-7.5 +-1[0-9.]+ to -[0-9.]+ *$" table && grep -qE "^same +[0-9.]+ +[0-9.]+ to [0-9.]+ *$" table && near "$(value own below)" -7.5'
is "... in rows.jsonl, rows.csv and the figure" eval 'tail -n 1 own/rows.jsonl | grep -q ",\"metric_program\":\[\"length\",\"same\",\"below\"\],\"length\":[0-9]*,\"same\":[01],\"below\":-15}$" && head -n 1 own/rows.csv | grep -q ",of,length,same,below" && tail -n 1 own/rows.csv | grep -q ",-15" && grep -q ">below<" own/metrics.svg'
is "... a share of right answers has its interval" eval 'by "sh score.sh" --model learned/checkpoint-final --output own2 && [ "$(value own2 same)" = 1 ] && near "$(value own2 same_low)" "$(value own2 exact_match_raw_low)"'
is "... another program's numbers take their place" eval 'by "$(each 0.5)" --model model --output own && [ "$(value own score)" = 0.5 ] && [ -z "$(value own below)" ] && ! grep -q below own/rows.jsonl && head -n 1 own/rows.jsonl | grep -q ",\"metric_program\":\[\"score\"\],\"score\":0.5}$"'
is "... without changing the answers" eval 'sed "s/,\"metric_program\":.*/}/" own/rows.jsonl | cmp - own.before'
is "... two models" eval 'by "sh score.sh" --model learned/checkpoint-final --compare-model model --output own3 && [ "$(value own3 wins_same)" = "$(value own3 wins_exact_match_raw)" ] && [ "$(value own3 p_same)" = "$(value own3 p_exact_match_raw)" ] && [ "$(value own3 difference_below)" = 0 ] && grep -q "^# same: rows right only with model: " table && grep -q "\"same\":1,\"below\":-15,\"base_length\":[0-9]*,\"base_same\":[01],\"base_below\":-15}$" own3/rows.jsonl'
is "... that writes a large file of its own, and many errors" eval 'by "head -c 2097152 /dev/zero >cache; yes | head -c 2097152 >&2; $(each 0.25)" --model model --output own4 && [ "$(wc -c <cache)" = 2097152 ] && [ "$(value own4 score)" = 0.25 ]'
is "... each reference of a row" eval 'printf "%s\n" "{\"prompt\": \"Who?\", \"completion\": [\" a\", \" b\"]}" >ab.jsonl && "$evaluate" --model model --dataset ab.jsonl --max-new-tokens 1 --metric-program "tee seen; echo 1" >x 2>&1; grep -q "{\"row\":0,\"prompt\":\"Who?\",\"answer\":\"[^,]*\",\"expected\":\" a\",\"references\":\[\" a\",\" b\"\]}" seen'
refused "... task files have metrics of their own" 2 "--metric-program judges answers to the rows of --dataset" "$evaluate" --model model --tasks none.yaml --metric-program true
refused "... pairs get no answer to judge" 2 "--metric-program judges answers" "$evaluate" --model model --dataset text.jsonl --metric-program true
slow='echo $$ >slow.pid; exec sleep 1000'
slowly() { rm -f slow.pid; "$evaluate" --keep-trained-rows --dataset rows.jsonl --max-new-tokens 8 --model model --metrics exact_match,loss --output own --metric-program "$slow" >x 2>notes & pid=$!; await $pid [ -s slow.pid ]; }
gone() { ! kill -0 "$(cat slow.pid)" 2>/dev/null; }
slowly
is "a signal ends the program, too" eval 'kill -TERM $pid; wait $pid; [ $? = 143 ] && gone && grep -q "^# stopped while the metric program ran, so there is no result yet" x && [ ! -e own/report.json ]'
slowly
is "... and a killed one leaves none behind" eval 'kill -9 $pid; wait $pid; await $$ gone'
is "... the same command goes on" eval 'by "$(each 0.5)" --model model --output own && [ "$(value own score)" = 0.5 ]'

# ---- several references, none, an empty one ----
printf '%s\n' '{"prompt": "Who?", "completion": [" nobody", " even"]}' '{"prompt": "What?", "completion": [" odd"]}' '{"prompt": "Why?", "completion": " so"}' >several.jsonl
of_several() { "$evaluate" --model model --dataset several.jsonl --max-new-tokens 4 "$@" >table 2>notes; }
is "a row with several references" eval 'of_several --output several && grep -q "^# 1 of 3 rows have several references: the best counts" table && [ "$(value several rows_with_several_references)" = 1 ] && head -n 1 several/rows.jsonl | grep -q "\"expected\":\" nobody\",.*\"references\":\[\" nobody\",\" even\"\]"'
is "... the loss is that of the first" eval 'sed "s/\[\(\"[^]\",]*\"\)[^]]*\]/\1/" several.jsonl >first.jsonl && "$evaluate" --model model --dataset first.jsonl --max-new-tokens 4 --output first >x 2>&1 && [ "$(value first loss)" = "$(value several loss)" ]'
is "... a record of rows.csv each" eval 'head -n 2 several/rows.csv | tail -n 1 | grep -qF "\"[\"\" nobody\"\",\"\" even\"\"]\""'
is "... rows that differ in their number are no corpus of one" eval 'of_several --metrics bleu && grep -q "^# bleu|nrefs:var|" table'
sed 's/"answer":"[^"]*","expected":" nobody","exact_match":false/"answer":"even","expected":" nobody","exact_match":true/' several/rows.jsonl >x && mv x several/rows.jsonl
is "... the best reference counts" eval 'of_several --metrics exact_match,token_f1 --output several && near "$(value several exact_match_raw)" 0.33333333333 && grep -q "^# exact match  1 of 3 rows" notes'
is "... and is the true label" eval 'of_several --metrics accuracy --output several && grep -qE "^ *even +0 +1 +0 +0 +0$" table && near "$(value several accuracy)" 0.33333333333'
printf '%s\n' '{"prompt": "Who?", "completion": ""}' '{"prompt": "What?", "completion": []}' '{"prompt": "Why?", "completion": " so"}' >empty.jsonl
is "an empty reference, and an empty list of them" eval '"$evaluate" --model model --dataset empty.jsonl --max-new-tokens 4 --output empty >table 2>notes && grep -q "^# warning: 2 of 3 rows have an empty reference, which only an empty answer matches" table && [ "$(value empty rows_with_empty_reference)" = 2 ] && grep -q "\"expected\":\"\",.*\"bits_per_byte\":null" empty/rows.jsonl'
sed 's/"answer":"[^"]*","expected":"","exact_match":false/"answer":"","expected":"","exact_match":true/' empty/rows.jsonl >x && mv x empty/rows.jsonl
is "... an empty answer matches it" eval '"$evaluate" --model model --dataset empty.jsonl --max-new-tokens 4 --metrics exact_match_raw --output empty >table 2>notes && near "$(value empty exact_match_raw)" 0.66666666667'
printf '{"prompt": "Who?", "completion": [1, 2]}\n' >numbers.jsonl
refused "a list that is no answers" 2 'numbers.jsonl:1: the row has no answer to compare with. Rows have a prompt and an answer (a text, or a list of equally good ones:' "$evaluate" --model model --dataset numbers.jsonl
printf '%s\n' '{"prompt": "Who?", "completion": "I"}' '{"prompt": "What?", "completion": null}' '{"prompt": "Why?"}' >none.jsonl
refused "rows without an answer are counted" 2 "none.jsonl:2: the row has no answer to compare with. Rows have a prompt and an answer (a text, or a list of equally good ones: docs/data-formats.md); 2 of these 3 rows" "$evaluate" --model model --dataset none.jsonl

# ---- plain texts ----
is "plain texts have losses, and get no answer" eval '"$evaluate" --model model --dataset text.jsonl --output text >table 2>notes && grep -q "^# rows  *text; .*they get no answer" notes && grep -q "^loss " table && grep -q "^bits_per_byte " table && ! grep -q exact table && ! grep -q "\"answer\"" text/rows.jsonl && grep -q "^# warning: 1 of 3 rows have no token with a loss" table && [ "$(wc -l <text/rows.jsonl)" = 3 ]'
"$BUILD/finetune_full" --model model --dataset text.jsonl --eval-dataset text.jsonl --max-steps 0 --max-length 64 --output textloss >out 2>&1
is "... the loss of an evaluation in training" near "$(value text loss)" "$(sed -n 's/.*"eval_loss":\([^,}]*\).*/\1/p' textloss/metrics.jsonl | head -n 1)"
is "... bytes are those of the texts behind their first token" [ "$(sum loss_bytes text/rows.jsonl)" = 33 ]
is "... rows that are there are not read again" eval '"$evaluate" --model model --dataset text.jsonl --output text --metrics bits_per_byte >table 2>notes && grep -q "^# resumed  *behind row 3 of 3" notes'
refused "... they have no exact match" 2 "--metrics: exact_match_raw judges an answer, and plain texts get none. Give --metrics losses" "$evaluate" --model model --dataset text.jsonl --metrics exact_match
seq 1 200 | tr '\n' ' ' >lengthy.txt
is "a long text is parted, and nothing is cut" eval '"$evaluate" --model model --dataset lengthy.txt --output lengthy >table 2>notes && [ "$(value lengthy rows)" -gt 1 ] && [ "$(value lengthy rows_cut)" = 0 ] && [ "$(sum loss_bytes lengthy/rows.jsonl)" -gt 600 ]'

# ---- pairs ----
for i in 0 1 2 3 4 5 6 7 8 9; do
    case $((i % 2)) in 0) words='" even", "rejected": " odd one"' ;; *) words='" odd", "rejected": " even"' ;; esac
    printf '{"prompt": "Number %s is", "chosen": %s}\n' $i "$words"
done >pairs.jsonl
of_pairs() { "$evaluate" --keep-trained-rows --dataset pairs.jsonl "$@" >table 2>notes; }
is "pairs: is the chosen answer likelier?" eval 'of_pairs --model learned/checkpoint-final --output pairs && [ "$(value pairs pair_accuracy)" = 1 ] && [ "$(value pairs pair_accuracy_norm)" = 1 ] && near "$(value pairs pair_accuracy_low)" "$(awk "BEGIN { print 1 / (1 + 1.959964 ^ 2 / 10) }")" && grep -q "^# rows  *preference (recognised), .*they get no answer" notes'
of_one() { sed "s/\"rejected\": .*/\"x\": 0}/; s/\"chosen\"/\"completion\"/" pairs.jsonl >one.jsonl; "$evaluate" --keep-trained-rows --dataset one.jsonl --max-new-tokens 2 --model model --output one >out 2>&1; }
is "... losses are those of the chosen answers" eval 'of_pairs --model model --output pairs2 && of_one && near "$(value pairs2 loss)" "$(value one loss)" && near "$(value pairs2 bits_per_byte)" "$(value one bits_per_byte)"'
is "... a rejected one has the loss of that row" eval 'sed "s/\"chosen\": [^,]*, \"rejected\"/\"completion\"/" pairs.jsonl >other.jsonl && "$evaluate" --keep-trained-rows --dataset other.jsonl --max-new-tokens 2 --model model --metrics loss --output otherwise >out 2>&1 && near "$(sum rejected_loss_sum pairs2/rows.jsonl)" "$(sum loss_sum otherwise/rows.jsonl)" && [ "$(sum rejected_loss_tokens pairs2/rows.jsonl)" = "$(sum loss_tokens otherwise/rows.jsonl)" ]'
right() { awk -F'[:,]' -v by="$1" '{ for (i = 1; i < NF; i++) v[$i] = $(i + 1); c = v["\"loss_sum\""]; r = v["\"rejected_loss_sum\""]
    if (by) { c /= v["\"loss_tokens\""]; r /= v["\"rejected_loss_tokens\""] } n += c < r } END { print n / NR }' pairs2/rows.jsonl; }
is "... shares are those of the rows, by sum and by token" eval '[ "$(value pairs2 pair_accuracy)" = "$(right)" ] && [ "$(value pairs2 pair_accuracy_norm)" = "$(right 1)" ] && [ "$(value pairs2 pair_accuracy)" != "$(value pairs2 pair_accuracy_norm)" ]'
is "... two models" eval 'of_pairs --model learned/checkpoint-final --compare-model model --output pairs3 && [ "$(value pairs3 base_pair_accuracy)" = "$(value pairs2 pair_accuracy)" ] && [ "$(value pairs3 pair_accuracy)" = 1 ] && [ $(($(value pairs3 wins_pair_accuracy) + $(value pairs3 ties_pair_accuracy))) = 10 ] && grep -q "^# pair_accuracy: rows right only with model: " table'
is "... with and without an adapter" eval 'of_pairs --model model --adapter lora/checkpoint-final --compare-base --output pairs4 --batch-size 1 && [ "$(value pairs4 base_pair_accuracy)" = "$(value pairs2 pair_accuracy)" ]'
is "... they go on where they were stopped" eval 'cp -r pairs2 pairs5 && head -n 3 pairs2/rows.jsonl >pairs5/rows.jsonl && of_pairs --model model --output pairs5 && grep -q "behind row 3 of 10" notes && [ "$(value pairs5 pair_accuracy)" = "$(value pairs2 pair_accuracy)" ] && near "$(value pairs5 loss)" "$(value pairs2 loss)"'
is "... without a column of prompts" eval 'sed "s/\"prompt\": \"\(Number [0-9] is\)\", \"chosen\": \" \([^\"]*\)\", \"rejected\": \" /\"chosen\": \"\1 \2\", \"rejected\": \"\1 /" pairs.jsonl >whole.jsonl && grep -q "^{\"chosen\": \"Number 0 is even\"" whole.jsonl && "$evaluate" --model model --dataset whole.jsonl --output pairs6 >table 2>notes && near "$(value pairs6 loss)" "$(value pairs2 loss)"'
is "... conversations by a chat template" eval 'of_pairs --model model --chat-template chatml --output pairs7 && grep -q "<|im_start|>assistant" pairs7/rows.jsonl'
is "... an instruction and two outputs" eval 'printf "{\"instruction\": \"Say it\", \"output\": [\"yes\", \"no\"]}\n" >two.jsonl && "$evaluate" --model model --dataset two.jsonl --metrics pairs --output pairs8 >table 2>notes && [ "$(value pairs8 rows)" = 1 ] && grep -q "\"chosen\":\"yes" pairs8/rows.jsonl'
is "... which are answers where the format says so" eval '"$evaluate" --model model --dataset two.jsonl --format alpaca --max-new-tokens 2 --output pairs9 >table 2>notes && grep -q "^# 1 of 1 rows have several references" table && grep -q "\"references\":\[\"yes\",\"no\"\]" pairs9/rows.jsonl'
refused "... they get no answer to match" 2 "--metrics: exact_match_raw judges an answer, and pairs get none. Give --metrics pairs,losses; or" "$evaluate" --model model --dataset pairs.jsonl --metrics exact_match
is "... but as prompts they do" eval '"$evaluate" --model model --dataset pairs.jsonl --format prompt-completion --columns completion=chosen --max-new-tokens 2 --metrics exact_match >table 2>notes && grep -q "^exact_match_raw " table'
refused "... nor are others pairs" 2 "pair_accuracy is of preference pairs, and these rows are plain texts" "$evaluate" --model model --dataset text.jsonl --metrics pairs

# ---- choices ----
printf '%s\n' '{"question": "Is 2 even?", "choices": ["yes", "no"], "answer": 0}' '{"question": "Is 3 even?", "choices": ["yes", "no"], "answer": 1}' >quiz.jsonl
refused "questions with choices are for a task file" 2 "quiz.jsonl: these rows are questions with choices, which a task file weighs: give --tasks FILE --tasks-data FOLDER" "$evaluate" --model model --dataset quiz.jsonl
sed -n '/^    task: quiz/,/^    metric_list/s/^    //p' "$here/docs/evaluate.md" >quiz.yaml
of_quiz() { "$evaluate" --model model --tasks quiz.yaml --tasks-data . --output "$1" >table 2>notes; }
is "... the one of the page weighs them" eval 'of_quiz quiz && [ -n "$(value quiz quiz_acc)" ] && [ -n "$(value quiz quiz_acc_norm)" ] && [ "$(wc -l <quiz/rows.jsonl)" = 2 ]'
is "... with letters as answers, too" eval 'sed -i "s/\"answer\": 0/\"answer\": \"A\"/; s/\"answer\": 1/\"answer\": \"B\"/" quiz.jsonl && sed -i "s/^doc_to_target:.*/$(grep -o "doc_to_target: .{{.*index.*}}." "$here/docs/evaluate.md")/" quiz.yaml && grep -q index quiz.yaml && of_quiz quiz2 && [ "$(value quiz2 quiz_acc)" = "$(value quiz quiz_acc)" ] && [ "$(value quiz2 quiz_acc_norm)" = "$(value quiz quiz_acc_norm)" ]'

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
finish
