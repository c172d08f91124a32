#!/bin/sh
# test_tips_training.sh - what recipes, generate and the small tools say to type is typed, from what they print, and works.
. tests/tap.sh
. tests/tips/tip.sh
cd "$tmp" || exit 1
PUT= ALONE= SAID_AGAIN= CODE=
tiny model 1 >/dev/null
fit="$BUILD/finetune_full --model model --max-length 64 --threads 1 --no-save --max-steps 1 --output r --overwrite"
write() { printf "$@" >"$file"; }
rows() { file=$1; shift; for i in $(seq "$1"); do printf "$2\n" "$i" "$i"; done >"$file"; } # FILE N ROW
rows my.jsonl 40 '{"text": "row %s of many"}'
rows pc.jsonl 40 '{"prompt": "ask %s", "completion": "say %s"}'
rows long.jsonl 20 '{"text": "a row that is far too long for the cut, number %s"}'
rows m.jsonl 4 '{"text": "t", "messages": [{"role": "user", "content": "a%s"}, {"role": "assistant", "content": "b"}]}'
rows only.jsonl 4 '{"messages": [{"role": "user", "content": "a%s"}, {"role": "assistant", "content": "b"}]}'
rows same.jsonl 40 '{"text": "the same"}'

# ---- rows ----
tip 'no --dataset; give a file of rows to train on: <--dataset my.jsonl>' $fit
PUT='s/NAME/chatml/' tip '; give <--chat-template NAME> \(there are' $fit --dataset only.jsonl
rows odd.jsonl 9 '{"question": "q%s", "answer": "a"}'
tip 'give <--format prompt-completion --columns [^ ]+>' $fit --dataset odd.jsonl
rows odd.jsonl 9 '{"title": "q%s", "body": "a"}'
tip 'give <--text-field title>, or' $fit --dataset odd.jsonl
tip 'or <--format prompt-completion --columns [^ ]+>' $fit --dataset odd.jsonl
PUT='s/$/ body/' tip '\(choose with <--text-field>\)' $fit --dataset odd.jsonl --text-field nope
rows odd.jsonl 9 '{"instruction": "do %s", "reply": "a"}'
tip 'the column [^ ]+ of the format [^ ]+ is missing; give <--format alpaca --columns [^ ]+>' $fit --max-length 128 --dataset odd.jsonl
rows odd.jsonl 9 '{"id": "s%s", "instruction": "do it", "instances": [{"input": "i", "output": "o"}]}'
tip 'give <--format alpaca --columns output=instances.0.output>' $fit --max-length 128 --dataset odd.jsonl
rows odd.jsonl 9 '{"id": 1, "talk": {"messages": [{"role": "user", "content": "a%s"}, {"role": "assistant", "content": "b"}]}}'
PUT='s/$/ --chat-template chatml/' tip 'the messages of a conversation are in [^ ]+; give <--format messages --columns [^ ]+>' $fit --dataset odd.jsonl
rows odd.jsonl 9 '{"id": 1, "talk": [{"from": "human", "value": "a%s"}, {"from": "gpt", "value": "b"}]}'
PUT='s/$/ --chat-template chatml/' tip 'give <--format sharegpt --columns [^ ]+>' $fit --dataset odd.jsonl
rows odd.jsonl 9 '{"id": 1, "meta": {"x": {"turns": [{"talk": [{"role": "user", "content": "a%s"}, {"role": "assistant", "content": "b"}]}]}}}'
PUT='s/$/ --chat-template chatml/' tip 'give <--format messages --columns messages=meta\.x\.turns\.0\.talk>' $fit --dataset odd.jsonl
rows odd.jsonl 9 '{"q": "ask %s", "completion": "say %s"}'
PUT='s/COLUMN/q/' tip '\(<--columns [^ ]+=COLUMN> says which one is meant\)' $fit --dataset odd.jsonl --format prompt-completion
rows odd.jsonl 9 '{"prompt": "q%s", "question": "b"}'
PUT='s/NAME/question/' tip 'give <--format prompt-completion --columns completion=NAME>, or' $fit --dataset odd.jsonl
PUT='s/NAME/question/' tip 'or <--text-field NAME> to train on one column alone' $fit --dataset odd.jsonl
PUT='s/TEXT/of/' tip 'rows of plain text do not say where theirs begins; give <--response-template TEXT>' $fit --dataset my.jsonl --train-on completion
tip 'is for rows of plain text, and these are [^;]+; leave it out, or give <--format text>' $fit --dataset pc.jsonl --text-field prompt --format prompt-completion
PUT='s/$/ messages/' tip 'and these rows of the format [^ ]+ are none; leave it out, or give another <--format>' $fit --dataset m.jsonl --format text --chat-template chatml
tip '; <--max-length [0-9]+> would take' $fit --dataset long.jsonl --max-length 20
tip '; <--chunk> parts texts instead' $fit --dataset long.jsonl --max-length 20
tip 'has no end; leave it out, or give <--schedule cosine>, linear or wsd' $fit --dataset my.jsonl --schedule constant --min-lr-ratio 0.1
rows beyond.jsonl 20 "{\"text\": \"%s $(printf '%0150d' 0)\"}"
tip '<--max-length [0-9]+>, the model.s context, would take' $fit --dataset beyond.jsonl --max-length 20
tip 'give <--max-length [0-9]+> or less' $fit --dataset my.jsonl --max-length 512
rows odd.jsonl 9 '{"prompt": "q%s", "completion": ""}'
rows other.jsonl 9 '{"prompt": "q%s", "completion": "x"}' && cat other.jsonl >>odd.jsonl
tip 'or give <--append-token none>, which leaves them out' $fit --dataset odd.jsonl
rows odd.jsonl 3 '{"text": ""}' && head -n 5 my.jsonl >>odd.jsonl
SAID_AGAIN=1 tip 'are left out; <--show-tokens 3> shows why' $fit --dataset odd.jsonl
{ cat my.jsonl; echo '{"text": 5}'; } >odd.jsonl
tip 'the run will stop at them; <--skip-bad-rows> leaves them out' $fit --dataset odd.jsonl --max-steps 41
tip 'copies of a row stay on one side \(<--split-by number> parts them\)' $fit --dataset same.jsonl --train-split 0.5

PUT='s/NAMES/ended/' tip 'is for --eval-metrics; give <--eval-metrics NAMES>, or leave it out' $fit --dataset pc.jsonl --train-split 0.5 --eval-answers 4
PUT='s/$/ 64/' tip 'or lie beyond --max-length [0-9]+; give a larger <--max-length>' $fit --dataset pc.jsonl --max-length 4
tip 'give a larger --max-length, or <--train-on all>' $fit --dataset pc.jsonl --max-length 4
rows odd.jsonl 9 '{"prompt": "q%s", "completion": "x", "label": true}'
tip 'with its loss kto. <--format prompt-completion> trains on every completion' $fit --dataset odd.jsonl
pairs="$BUILD/finetune_dpo --model model --max-length 96 --threads 1 --no-save --max-steps 1 --output r --overwrite"
PUT='s/$/ --batch-size 2/' tip 'label\): <--loss kto> trains on them' $pairs --dataset odd.jsonl
PUT='s/$/ 2/' tip 'so <--batch-size> is at least 2' $pairs --loss kto --dataset odd.jsonl
rows odd.jsonl 9 '{"prompt": "q%s", "completion": "x", "good": true}'
PUT='s/COLUMN/prompt/; s/COLUMN/completion/; s/COLUMN/good/' tip '\(<--columns prompt=COLUMN,completion=COLUMN,label=COLUMN> says which' $pairs --loss kto --batch-size 2 --dataset odd.jsonl
rows odd.jsonl 9 '{"prompt": "q%s", "completion": "x", "label": true}'
echo '{"prompt": "q", "completion": "y", "label": false}' >>odd.jsonl
tip 'is advised: <--desirable-weight [0-9.]+> to' $pairs --loss kto --batch-size 2 --dataset odd.jsonl
tip 'or <--undesirable-weight [0-9.]+> to' $pairs --loss kto --batch-size 2 --dataset odd.jsonl
rows odd.jsonl 9 '{"prompt": "q%s", "chosen": "x", "rejected": "y"}'
tip 'To train on the chosen answers alone: <--format prompt-completion --columns completion=chosen>' $fit --dataset odd.jsonl
rows odd.jsonl 9 '{"chosen": [{"role": "user", "content": "a%s"}, {"role": "assistant", "content": "b"}], "rejected": [{"role": "user", "content": "a%s"}, {"role": "assistant", "content": "c"}]}'
PUT='s/$/ --chat-template chatml/' tip 'To train on the chosen conversations alone: <--format messages --columns messages=chosen>' $fit --dataset odd.jsonl
rows odd.jsonl 9 '{"prompt": "q%s", "one": "x", "two": "y"}'
PUT='s/=COLUMN,/=one,/; s/COLUMN/two/' tip '\(<--columns chosen=COLUMN,rejected=COLUMN> says which' "$BUILD/finetune_dpo" --model model --max-length 64 --max-steps 1 --no-save --output r --overwrite --dataset odd.jsonl
ALONE="$fit --dataset m.jsonl" tip 'the column text is not read \(<--format text> trains on it\)' $fit --dataset m.jsonl --chat-template chatml
PUT='s/$/ my.jsonl,pc.jsonl --mix 1,1/' tip 'there is one data set; name several in <--dataset>, with commas' $fit --dataset my.jsonl --mix 1

# ---- evaluation ----
PUT='s/FILE/my.jsonl/' tip 'no rows are held out to evaluate on; give <--eval-dataset FILE>' $fit --dataset my.jsonl --eval-every 1
tip 'or <--train-split> below 1, say <0\.95>' $fit --dataset my.jsonl --eval-every 1
PUT='s/ N/ 1/' tip 'there is one, at the end; give <--eval-every N>' $fit --dataset my.jsonl --eval-dataset my.jsonl --patience 1
PUT='s/ N/ 1/' tip '--min-delta is what --patience goes by; give <--patience N>' $fit --dataset my.jsonl --eval-dataset my.jsonl --eval-every 1 --min-delta 0.1
PUT='s/FILE/my.jsonl/' tip 'which prompts to answer\? give <--preview-prompts FILE>' $fit --dataset my.jsonl --preview-every 1
PUT='s/--lr/--lr 1e-4/' tip 'lower <--lr> \(it was' $fit --dataset my.jsonl --lr 1000 --warmup-ratio 0 --clip-norm 0 --max-steps 30

# ---- runs ----
run="$BUILD/finetune_full --model model --max-length 64 --threads 1 --dataset my.jsonl --max-steps 2 --save-every 1"
$run --output one >/dev/null 2>&1
PUT='s/$/ two/' tip 'and nothing is written over; give another <--output>' $run --output one
tip 'or <--overwrite> to remove it first' $run --output one
tip 'leave out what is changed, or give <--allow-changed> to go on with it' "$BUILD/finetune_full" --resume one --max-steps 3 --lr 1e-3
$run --output one --overwrite >/dev/null 2>&1
tip 'removes what came after it: give <--overwrite> to do that' "$BUILD/finetune_full" --resume one/checkpoint-1
PUT='s/$/ three/' tip 'holds a run that was begun with other options: .*; give another <--output>, or --allow-changed' $run --output one --requeue --lr 1e-3
tip '--output, or <--allow-changed> to go on with it' $run --output one --requeue --lr 1e-3
PUT='s/$/ four/' tip 'holds a run of [^ ]+, not of [^ ]+; give another <--output>' "$BUILD/finetune_lora" --model model --max-length 64 --dataset my.jsonl --max-steps 1 --requeue --output one
PUT='s/$/ five/' tip '--requeue needs <--output>' "$BUILD/finetune_full" --model model --max-length 64 --dataset my.jsonl --max-steps 1 --requeue
{ head -n 2 my.jsonl; echo '{"text": 5}'; tail -n 2 my.jsonl; } >odd.jsonl
ALONE=$BUILD/finetune_full tip 'to go on: <--resume [^ ]+> with <--skip-bad-rows>' "$BUILD/finetune_full" --model model --max-length 64 --dataset odd.jsonl --no-shuffle --save-every 1 --output bad

PUT='s/$/ elsewhere/' tip '--overwrite would remove .* in it; give another <--output>' "$BUILD/finetune_full" --model one/checkpoint-final --max-length 64 --max-steps 1 --dataset my.jsonl --output one --overwrite
echo '{"resume": "one", "max-steps": 3, "allow-changed": true}' >config.json
ALONE="$BUILD/finetune_full --max-steps 3 --allow-changed" tip 'it is given on the command line: <--resume [^ ]+>' "$BUILD/finetune_full" --config config.json
cp my.jsonl changed.jsonl && $run --dataset changed.jsonl --output changed >/dev/null 2>&1 && sed -i 's/row/now/' changed.jsonl
tip 'resume with what it had, or give <--allow-changed> to go on with what there is' "$BUILD/finetune_full" --resume changed/checkpoint-1 --overwrite
tip 'which an adapter does not train; add <--modules-to-save embed_tokens,lm_head>|of the new tokens; add <--modules-to-save embed_tokens>, or' "$BUILD/finetune_lora" --model model --max-length 64 --dataset my.jsonl --max-steps 1 --no-save --output r --overwrite --add-tokens '<new>'

# ---- models ----
ask="$BUILD/generate --prompt hi --max-new-tokens 2 --max-length 64"
ask="$BUILD/generate --prompt hi --max-new-tokens 2"
mkdir -p models runs && cp -r model models/quick && $run --output runs/first >/dev/null 2>&1 && cp -rL runs/first runs/cut && rm -r runs/cut/checkpoint-final
for name in quik frist runs/firts models/quik runs/cut/checkpoint-final; do
    tip 'give <--model [^ ]+>' $ask --model $name
done
export="$BUILD/runs export runs/first"
PUT='s/$/ tables/' tip 'export: where to\? Give a folder with <--output>' $export
tip 'is there already; give another --output, or <--overwrite>' $export --output tables
mkdir -p boards/first && echo mine >boards/first/notes.txt
PUT='s/$/ other/' tip 'so --overwrite does not replace it; give another <--output>' $export --format tensorboard --output boards --overwrite
$BUILD/finetune_lora --model model --max-length 64 --dataset my.jsonl --max-steps 1 --output runs/lora >/dev/null 2>&1
PUT='s/--model/--model model/' tip 'give <--adapter [^ ]+>, and its base with <--model>' $ask --model runs/lroa
cp -rL runs/lora/checkpoint-final lonely && sed -i 's/"base_model_name_or_path": [^,]*/"base_model_name_or_path": null/' lonely/adapter_config.json
PUT='s/--(adapter|model)/& \1/g; s/ adapter/ lonely/; s/ model/ model/' tip 'this is a LoRA adapter; give it with <--adapter>, and its base with <--model>' $ask --model lonely
PUT='s/--model/--model model/' tip 'names no base \(base_model_name_or_path\); give <--model>' $ask --adapter lonely
tip 'or merge it into its base \(<build/merge_adapter --help>\)' $ask --model lonely

# ---- the file for llama.cpp ----
gguf="$BUILD/export_gguf --model model"
tip 'if its vocabulary alone is another, give <--pre [^ ]+>' $gguf x1.gguf
$BUILD/finetune_lora --model model --max-length 64 --dataset my.jsonl --max-steps 1 --lora-dora --output runs/dora >/dev/null 2>&1
tip 'merge the adapter into the file: add <--merge> to the command' $gguf x2.gguf --pre smollm --adapter runs/dora/checkpoint-final
PUT='s|$| runs/lora/checkpoint-final|' tip '--merge needs <--adapter>' $gguf x3.gguf --pre smollm --merge
tip 'with --adapter give <--merge>' $gguf x4.gguf --pre smollm --adapter runs/lora/checkpoint-final --modelfile Modelfile4
tip '; <--list-models> shows the known ones' $ask --model nothing-near
tip 'expected a model folder, a known name \(see <--list-models>\)' $ask --model runs/none/at-all
tip 'no known model; <--list-models> names them' "$BUILD/init_model" --like nothing x
tip 'see <[^ ]+ --help>' "$BUILD/generate" --nothing
ALONE=$BUILD/generate tip 'options begin with --, see <--help>' "$BUILD/generate" nothing

# ---- a loss that rises ----
rises="$BUILD/finetune_full --model model --dataset my.jsonl --max-length 64 --threads 1 --lr 3 --warmup-ratio 1 --max-steps 120 --overwrite --output runs"
CODE=1 tip 'The run goes on; <--stop-on-divergence> would end it' $rises/rises
PUT='s/$/ 1e-4/' tip 'the run diverged: [^;]*; lower <--lr>' $rises/rises
PUT='s/$/ 2/' CODE=1 tip 'there is none from before the loss rose, and nothing was saved after; <--save-every> saves on the way' $rises/rises --stop-on-divergence
good=$($rises/rises --stop-on-divergence --save-every 2 2>/dev/null | sed -n 's/^# checkpoint *\([^ ]*\) is from before.*/\1/p')
PUT="s~--resume~& $good~; s/\$/ 1e-4/" ALONE=$BUILD/finetune_full \
    tip ' is from before the loss rose; nothing was saved after. To go on from it: <--resume> with it, <--overwrite>, <--allow-changed> and a lower <--lr>' \
    $rises/rises --stop-on-divergence --save-every 2

# ---- conversations, pairs, previews ----
rows odd.jsonl 9 '{"messages": [{"role": "user", "content": "a%s"}, {"role": "user", "content": "c"}, {"role": "assistant", "content": "b"}]}'
CODE=1 tip '; <--strict> refuses such rows' $fit --dataset odd.jsonl --chat-template chatml
rows odd.jsonl 9 '{"id": 1, "data": {"pair": {"better": "a%s", "worse": "b", "question": "c"}}}'
tip 'It has: id, data; give <--columns prompt=data\.pair\.question,chosen=data\.pair\.better,rejected=data\.pair\.worse>' $pairs --dataset odd.jsonl
rows odd.jsonl 9 '{"topic": "ask %s", "chosen": "yes %s", "rejected": "no"}'
PUT='s/NAME/topic/' tip 'the two answers begin differently [^;]*; give <--columns prompt=NAME>' $pairs --dataset odd.jsonl
tip 'or <--format preference> to train without a prompt' $pairs --dataset odd.jsonl
PUT='s/NAME/topic/' tip 'have no prompt, so the model learns answers to nothing; [^;]*; <--columns prompt=NAME> names another column' $pairs --dataset odd.jsonl --format preference
printf 'a;b\nxy\nzw\n' >odd.csv
tip 'or give <--text-field [^ ]+> if it is one column' $fit --dataset odd.csv
PUT='s/$/ 0/' tip ' more are left out \(<--preview-rows>\)' $fit --dataset my.jsonl --preview-every 1 --preview-prompts pc.jsonl --preview-tokens 1

# ---- generate ----
say="$BUILD/generate --model model --max-new-tokens 2"
PUT='s/TEXT/hi/' tip 'nothing to answer: give <--prompt TEXT>' $say
PUT='s/FILE/pc.jsonl/' tip 'give --prompt TEXT, <--input FILE> of rows' $say
PUT='s/$/ 2/' ALONE="$BUILD/generate --model model --prompt hi" tip 'with an answer it must be at most max_length[^.]*[.]json\). Give <--max-new-tokens>' "$BUILD/generate" --model model --prompt "a long prompt" --max-length 2
tip 'has no meaning for greedy answers; give <--temperature> above 0, such as <0\.8>' $say --prompt hi --top-k 3
tip 'without sampling they are all the same; give <--temperature> above 0, such as <0\.8>' $say --prompt hi --answers 2
PUT='s/$/ runs\/lora\/checkpoint-final/' tip '--compare-base compares a model with and without an adapter; give <--adapter>' $say --prompt hi --compare-base
PUT='s/$/ chatml/' tip 'and this prompt is written as [^;]+; leave it out, or give <--chat-template>' $say --prompt hi --system "be short"
$say --input pc.jsonl --output answers.jsonl >/dev/null 2>&1
head -n 2 pc.jsonl >few.jsonl
PUT='s/$/ others.jsonl/' tip 'it answers more rows than there are; give another <--output>' $say --input few.jsonl --output answers.jsonl
PUT='s/$/ another.jsonl/' tip 'to other options; give another <--output>' $say --input pc.jsonl --output answers.jsonl --seed 3 --temperature 0.5
tip 'or <--overwrite>' $say --input few.jsonl --output answers.jsonl

PUT='s/$/ hi/' ALONE="$say --compare-model model" tip 'a chat compares no models; compare them with <--prompt> or --input' $say --chat --compare-model model
printf '[prompt]\n{prompt}{completion}\n[completion]\n{x}\n' >template.txt
PUT='s/$/ pc.jsonl/' ALONE="$say --prompt-template template.txt" tip 'and --prompt is one text; give <--input> with a file of rows' $say --prompt-template template.txt --prompt hi

# ---- evaluate ----
judge="$BUILD/evaluate --model model --max-new-tokens 2 --metrics loss"
PUT='s/FILE/pc.jsonl/' tip 'give <--dataset FILE> of rows' $judge
tip 'give <--no-greedy>, too' $judge --dataset pc.jsonl --temperature 1
"$BUILD/finetune_full" --model model --max-length 64 --max-steps 1 --dataset pc.jsonl --output judged >/dev/null 2>&1
judge="$BUILD/evaluate --model judged/checkpoint-final --max-new-tokens 2 --metrics loss"
tip 'no row is left; the model was trained on all of them [^ ]* Give other rows, or <--keep-trained-rows>' $judge --dataset pc.jsonl
echo '{"prompt": "Something", "completion": " new."}' | cat pc.jsonl - >more.jsonl
tip 'trained on; <--keep-trained-rows> takes them' $judge --dataset more.jsonl

judge="$BUILD/evaluate --model model --max-new-tokens 2"
echo '{"prompt": "Something", "chosen": " new.", "rejected": " old."}' >pair.jsonl
echo '{"text": "Something new."}' >plain.jsonl
ALONE="$judge --dataset pair.jsonl" tip 'and pairs get none\. Give <--metrics pairs,losses>; or' $judge --dataset pair.jsonl --metrics exact_match
tip '; or <--format prompt-completion --columns completion=chosen>, to have' $judge --dataset pair.jsonl --metrics exact_match
ALONE="$judge --dataset plain.jsonl" tip 'plain texts get none\. Give <--metrics losses>' $judge --dataset plain.jsonl --metrics exact_match
PUT='s/$/ kept/' CODE=1 tip 'with <--output>, answers are kept' $judge --dataset pc.jsonl --metric-program false
echo '{"question": "Is 2 even?", "choices": ["yes", "no"], "answer": 0}' >quiz.jsonl
sed -n '/^    task: quiz/,/^    metric_list/s/^    //p' "$here/docs/evaluate.md" >quiz.yaml
PUT='s/FILE/quiz.yaml/; s/FOLDER/./' ALONE="$BUILD/evaluate --model model" tip 'a task file weighs: give <--tasks FILE --tasks-data FOLDER> in place of --dataset' $judge --dataset quiz.jsonl
printf '#!/bin/sh\nwhile read -r x; do sleep 0.1; echo 1; done\n' >slow.sh && chmod +x slow.sh
PUT='s/$/ 600/' ALONE="$judge --dataset pc.jsonl --metric-program ./slow.sh" tip 'was ended; <--metric-limit> gives it more' $judge --dataset pc.jsonl --metric-program ./slow.sh --metric-limit 0.01

# ---- fit ----
tip 'leave it out, or add <--plan-memory>' $fit --dataset my.jsonl --plan-gpu l4
tip 'known; <build/fit --gpu list> prints' "$BUILD/finetune_full" --model model --max-length 64 --device cuda --plan-memory --plan-gpu gtx-1
PUT='s/NAME/smollm2-135m/' tip 'or which GPU\? <--model NAME> says' "$BUILD/fit"
tip '\(<--list-models> prints the names\)' "$BUILD/fit"
PUT='s/NAME/h100-80gb/' tip '; <--gpu NAME> \(' "$BUILD/fit"
tip '\(<--gpu list>\)' "$BUILD/fit"
tip 'or <--gpu-memory 24GiB> says' "$BUILD/fit"
ALONE="$BUILD/fit --model smollm2-135m" tip 'For another: <--gpu-memory 24GiB>' "$BUILD/fit" --model smollm2-135m --gpu nothing

# ---- files of other tools ----
printf 'base_model: model\nmicro_batch_size: 1\nmystery: 1\ndatasets:\n  - {path: pc.jsonl, type: alpaca}\n' >ax.yml
like="$fit --dataset pc.jsonl --format prompt-completion"
PUT='s/NAME.*/mystery/' tip '<--ignore-keys NAME>,\.\.\. goes on without' $like --config ax.yml
sed -i '/mystery/d' ax.yml
tip '; <--show-config> lists them' $like --config ax.yml
sed -i '1i adapter: lora' ax.yml
tip 'this file is for [^:]*: [^ ]*/<finetune_lora .*ax.yml>' $like --config ax.yml
finish
