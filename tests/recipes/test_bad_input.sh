#!/bin/sh
# test_bad_input.sh - what users write wrong and what the world does wrong: the message, the exit code, nothing written over.
. tests/tap.sh
data=$here/datasets/stories.jsonl
cd "$tmp" || exit 1
tiny model 1 --dtype float32 --hidden-size 48 --intermediate-size 96 --heads 3 --vocab-size 400 >/dev/null
full=$BUILD/finetune_full
fit() { "$full" --model model --dataset good.jsonl --max-length 64 --max-steps 1 --output run "$@"; }
head -20 "$data" >good.jsonl
# a changed copy of the model: broken NAME SED-EXPRESSION
broken() { rm -rf "$1" && cp -r model "$1" && sed -i "$2" "$1/config.json"; }

# flags
refused "unknown flag names the nearest" 2 "--batch-size" fit --batchsize 2
for v in 0 -1 x 1.5 99999999999999999999 ""; do refused "--batch-size '$v'" 2 "batch-size" fit --batch-size "$v"; done
for v in 0 -3 nan; do refused "--max-length '$v'" 2 "max-length" fit --max-length "$v"; done
for v in nan inf -1 1e; do refused "--lr '$v'" 2 "lr" fit --lr "$v"; done
refused "--max-length above the context" 2 "128" fit --max-length 129
refused "--dtype int8" 2 "float32" fit --dtype int8
refused "--device gpu" 2 "expected cpu, cuda or cuda:N" fit --device gpu
refused "--device cuda, its library missing" 3 "cannot load missing.so" env TUNE_CUDA=missing.so "$full" --model model --dataset good.jsonl --max-length 64 --max-steps 1 --output run --device cuda
refused "no --dataset" 2 "--dataset" "$full" --model model --output run
refused "--eval-every with nothing held out" 2 "--train-split" fit --eval-every 5
refused "no --model" 2 "--model" "$full" --dataset good.jsonl --output run
refused "--config without file" 2 "absent.json" fit --config absent.json
echo '{"learning_rate": 1}' >c.json
refused "--config with an unknown key" 2 "learning_rate" fit --config c.json

# model folders
refused "known name, absent: the two commands" 2 "build/init_model --like smollm2-135m --seed 1 models/SmolLM2-135M" fit --model smollm2-135m
refused "Hub id, absent: the download" 2 "tools/download.sh HuggingFaceTB/SmolLM2-135M" env HF_HOME="$tmp/none" "$full" --model HuggingFaceTB/SmolLM2-135M --dataset good.jsonl
refused "absent folder" 2 "no-such-folder" fit --model ./no-such-folder
mkdir empty && refused "folder without config.json" 1 "config.json" fit --model empty
cp -r model cut && truncate -s 1000 cut/model.safetensors
refused "weights cut short" 1 "cut/model.safetensors" fit --model cut
cp -r model gone && rm gone/model.safetensors
refused "no weights" 1 "model.safetensors" fit --model gone
cp -r model toothless && rm toothless/tokenizer.json
refused "no tokenizer" 1 "tokenizer.json" fit --model toothless
cp -r model lying && sed -i 's/"id": 2, "content": "<|im_end|>"/"id": 77, "content": "<|im_end|>"/' lying/tokenizer.json
is "an added token whose id lies is warned about" eval 'fit --model lying --output lying.run >lying.out && grep -q "warning: tokenizer.*im_end.* the id 77, but its id is 2" lying.out'
cp -r model junk && echo junk >junk/config.json
refused "config.json is no JSON" 1 "junk/config.json" fit --model junk
for key in vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads model_type; do
    broken part "/\"$key\"/d"
    refused "config without $key" 1 "$key" fit --model part
done
broken part 's/"num_key_value_heads":[^,]*/"num_key_value_heads": 2/'
refused "heads that do not divide" 1 "does not divide" fit --model part
broken part 's/"num_attention_heads":[^,]*/"num_attention_heads": 5/'
refused "hidden size that does not divide" 1 "divide" fit --model part
broken part 's/"vocab_size":[^,]*/"vocab_size": 300/'
refused "vocabulary smaller than the tokenizer's ids" 1 "vocab_size" fit --model part
broken part 's/"vocab_size":[^,]*/"vocab_size": 500/'
refused "tensor of another shape" 1 "[400, 48]" fit --model part
broken part 's/"hidden_size":[^,]*/"hidden_size": -4/'
refused "negative size" 1 "hidden_size" fit --model part
broken part 's/"rms_norm_eps":[^,]*/"rms_norm_eps": -1/'
refused "negative rms_norm_eps" 1 "rms_norm_eps" fit --model part
broken part 's/"model_type":[^,]*/"model_type": "gemma2"/; s/"architectures":[^]]*\],//'
refused "unsupported family says what is supported" 1 "llama, qwen2, qwen3, mistral, granite, smollm3, phi3, olmo2, gemma3_text" fit --model part
broken part 's/"rope_scaling":[^,]*/"rope_scaling": {"rope_type": "ntk", "factor": 4}/'
refused "unsupported rope" 1 "rope type \"ntk\" is not supported" fit --model part
broken part 's/"hidden_act":[^,]*/"hidden_act": "gelu"/'
refused "unsupported activation" 1 "gelu" fit --model part

# data
bad() { # NAME CODE TEXT printf-FORMAT
    printf "$4" >bad.jsonl
    refused "$1" "$2" "$3" fit --dataset bad.jsonl --no-shuffle --batch-size 8 --overwrite
}
bad "broken JSON line: file and line" 1 "bad.jsonl:2:" '{"text": "a b c"}\n{"text": "a b c"\n'
bad "invalid UTF-8" 1 "bad.jsonl:1:" '{"text": "a \377 c"}\n'
bad "a lone surrogate" 1 "surrogate" '{"text": "a \\ud800 c"}\n'
bad "missing field names those there are" 1 "text" '{"text": "a b c"}\n{"prompt": "x", "answer": "y"}\n'
bad "a field that is no string" 1 "bad.jsonl:2:" '{"text": "a b c"}\n{"text": 5}\n'
bad "a control character in a string" 1 "bad.jsonl:1:" '{"text": "a\001b"}\n'
bad "not an object" 1 "bad.jsonl:1:" '[1, 2]\n'
cp good.jsonl rows-of-mine && is "JSON lines under a name that does not say so" fit --dataset rows-of-mine --output unnamed
is "are no paragraphs" grep -q 'field .*text.*20 to train on' unnamed/run.json
: >bad.jsonl && refused "an empty set" 1 "bad.jsonl" fit --dataset bad.jsonl
printf '\n\n' >bad.jsonl && refused "a set of empty lines" 1 "bad.jsonl" fit --dataset bad.jsonl
refused "no such file" 2 "absent.jsonl" fit --dataset absent.jsonl
refused "a folder as data" 2 "is a folder with a model" fit --dataset model
refused "no such --text-field" 2 'no field "nonsense"; its rows have: text' fit --text-field nonsense
refused "a column of --columns that the file has not" 2 '--columns: the file has no column "Txt" (the nearest is text); it has: text' fit --columns prompt=Txt,completion=text
printf '{"text": "one two three"}\n' >bad.jsonl
refused "no label at all names a row" 1 "bad.jsonl:1" fit --dataset bad.jsonl --max-length 1 --overwrite
refused "a response template that never comes" 1 "good.jsonl:" fit --response-template '### nothing' --overwrite
printf '\357\273\277{"text": "one two three four"}\r\n{"text": "five \\u0000 six seven"}\r\n' >odd.jsonl
is "BOM, CRLF and NUL are read" fit --dataset odd.jsonl --output odd
printf '{"text": "one two three four"}\nbroken\n{"text": "five six seven"}\n' >some.jsonl
is "--skip-bad-rows" fit --dataset some.jsonl --skip-bad-rows --batch-size 3 --output some
is "and the bad row is counted" grep -q "left out: 1 bad" some/run.json
printf '{"text": "q: yes it is so"}\n{"text": "0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9: no"}\n' >away.jsonl
is "a cut answer" fit --dataset away.jsonl --response-template ':' --max-length 12 --batch-size 2 --output away
is "is counted" grep -q "left out: 1 cut before the first token to train on" away/run.json
# formats
printf '{"question": "one two", "answer": "three"}\n{"question": "four", "answer": "five six"}\n' >asked.jsonl
printf '[prompt]\n{question}\n[completion]\n{anser}\n' >slots.txt
refused "a slot without a column: names them, and the nearest" 2 'nearest is "answer"' \
    fit --dataset asked.jsonl --prompt-template slots.txt
refused "a format without its columns" 2 "question, answer" fit --dataset asked.jsonl --format alpaca
refused "--train-on without a meaning" 2 "completion, all" \
    fit --dataset asked.jsonl --columns prompt=question,completion=answer --train-on last
refused "a format that there is not" 2 "sharegpt" fit --dataset asked.jsonl --format alpacca
refused "a prompt template that there is not" 2 "instruction, sql, tone" fit --dataset asked.jsonl --prompt-template instructions
printf 'question,answer\none,two\n' >asked.csv
refused "a slot without a column of CSV" 2 'no column "query" for prompt-template' fit --dataset asked.csv --prompt-template sql \
    --columns schema=question
refused "--columns of a column that there is not" 2 'nearest is "answer"' \
    fit --dataset asked.csv --format prompt-completion --columns prompt=question,completion=answr
refused "an end token that there is not" 2 '"<|stop|>"' \
    fit --dataset asked.csv --columns prompt=question,completion=answer --append-token '<|stop|>'
printf '{"prompt": "one two", "completion": ""}\n{"prompt": "one", "completion": ""}\n' >empty.jsonl
refused "nothing to train on: empty answers, and no end" 1 "not one of the first 2 rows has a token to train on" \
    fit --dataset empty.jsonl --append-token none
is "their end token alone is something" fit --dataset empty.jsonl --output ends
refused "nothing to train on" 1 "max-length" fit --dataset asked.jsonl --columns prompt=question,completion=answer --max-length 3
printf 'prompt,completion\n"one\ntwo",three\nfour\n' >bad.csv
refused "a short record: file and line" 1 "bad.csv:4:" fit --dataset bad.csv --no-shuffle --batch-size 2 --output short
printf '[prompt]\n{question} \n[completion]\n{answer}' >slots.txt
is "a prompt template" fit --dataset asked.jsonl --prompt-template slots.txt --max-steps 4 --stop-at-step 2 --output asked
is "the header says the format" grep -q 'prompt-template, columns question, answer; trained on completion' asked/run.json
printf '[prompt]\n{question}\n[completion]\n{answer}' >slots.txt
refused "another template on resuming" 2 "content of --prompt-template" "$full" --resume asked
# conversations
chat() { fit --overwrite --output chat --batch-size 2 --dataset "$@"; }
printf '{"messages": [{"role": "user", "content": "one two"}, {"role": "assistant", "content": "three"}]}\n' >chat.jsonl
cp chat.jsonl bad.jsonl
printf '{"messages": [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]}\n' >>bad.jsonl
refused "conversations without a template: which there are" 2 "give --chat-template NAME (there are: chatml, llama3, phi3, plain)" \
    chat chat.jsonl
refused "a template that there is not" 2 "did you mean chatml" chat chat.jsonl --chat-template chatmll
refused "a conversation against the rules: file and line" 1 "bad.jsonl:2: message 2 (user): two user messages" \
    chat bad.jsonl --chat-template chatml --strict
tail -1 bad.jsonl >first.jsonl && refused "in the first row: before anything starts" 1 "first.jsonl:1: message 2 (user)" \
    fit --dataset first.jsonl --chat-template chatml --strict --output unmade
is "nothing was written" test ! -e unmade
refused "conversations in which nothing is trained" 1 "not one of the first 1 rows has a token to train on" \
    chat chat.jsonl --chat-template chatml --max-length 8
refused "--train-on without a meaning for conversations" 2 "assistant, last, all" chat chat.jsonl --chat-template chatml --train-on completion
is "a template of other tokens than the model's" chat chat.jsonl --chat-template llama3 --max-length 128
is "is a warning that names them" grep -q 'warning: template.*<|start_header_id|>, <|end_header_id|>, <|eot_id|>: special tokens' chat/run.json
is "is left out where bad rows are" chat bad.jsonl --chat-template chatml --skip-bad-rows
printf '{%% for m in messages %%}{{ m.role + m.content }}{%% endfor %%}{%% if add_generation_prompt %%}assistant{%% endif %%}' >chat.jinja
is "a chat template" chat chat.jsonl --chat-template chat.jinja --max-steps 4 --stop-at-step 2
is "its hash is the run's" grep -q '"chat_template":.*"[0-9a-f]\{16\}"' chat/run.json
file=$(sed -n 's/.*"fingerprint":[^"]*"\([0-9a-f]*\)".*/\1/p' chat/run.json)
is "the report's data are another set than the file" sh -c "grep data_hash chat/report.json | grep -vq $file"
is "and go on by it" "$full" --resume chat --stop-at-step 3
printf '{%% for m in messages %%}{{ m.role + m.content + ";" }}{%% endfor %%}{%% if add_generation_prompt %%}assistant{%% endif %%}' >chat.jinja
refused "another chat template on resuming" 2 "content of the chat template" "$full" --resume chat

printf '{"text": "' >long.jsonl && head -c 1100000000 /dev/zero | tr '\0' 'x' >>long.jsonl && printf '"}\n{"text": "a b c d"}\n' >>long.jsonl
refused "a line of a gigabyte, in little memory" 1 "long.jsonl:1" within 4000000 "$full" --threads 1 --model model --dataset long.jsonl --max-length 64 --max-steps 1 --output long --no-shuffle
rm -f long.jsonl
# by seed 3 the eighth row is held out: no step reads it
for i in 1 2 3 4 5 6 7; do echo '{"text": "one two three four '$i'"}'; done >held.jsonl && echo '{"text": 5}' >>held.jsonl
refused "a held-out row that cannot be read" 1 "held.jsonl:8:" "$full" --model model --dataset held.jsonl --max-length 64 --train-split 0.5 --seed 3 --output held
is "is told before anything is trained" test ! -e held

# the run folder
mkdir kept && echo precious >kept/file
refused "an output folder that is there" 2 "kept" fit --output kept
refused "one that is no run folder, even with --overwrite" 2 "kept" fit --output kept --overwrite
is "is untouched" grep -q precious kept/file
is "a run" fit --output again
refused "a run folder that is there" 2 "--overwrite" fit --output again
is "--overwrite replaces it" fit --output again --overwrite
echo '{"seed": 3}' >again/mine.json
refused "--overwrite with --config inside" 2 "--config again/mine.json" fit --config again/mine.json --output again --overwrite
if [ "$(id -u)" != 0 ]; then mkdir ro && chmod 500 ro && refused "a folder without permission" 1 "ro" fit --output ro/run; else
    refused "a folder that cannot be made" 1 "/proc/nothing" fit --output /proc/nothing/run
fi
is "a run that failed says so, and why" grep -q "response template" run/run.json
fit --max-steps 2000 --output unread 2>unread.err | head -3 >/dev/null
is "nobody reads what it prints: run.json says so" grep -q '"failed"' unread/run.json
(ulimit -f 40 && fit --output small 2>small.err >&-)
is "a checkpoint above the limit of file sizes: so too, and nothing half-written" sh -c 'grep -q "\"failed\"" small/run.json && ! ls small | grep -q tmp'

# training
refused "a diverged step ends the run, naming it" 1 "diverged at step" fit --optimizer sgd --lr 1000 --clip-norm 0 --schedule constant --max-steps 60 --warmup-ratio 0 --output diverged
is "and run.json says why" grep -q '"diverged"' diverged/run.json
if sanitized; then skip "more memory than there is" "a sanitizer takes any amount of addresses"; else
    refused "more memory than there is" 3 "memory" within 400000 "$full" --threads 1 --model model --dataset good.jsonl --max-length 128 --batch-size 4096 --output run2
fi
refused "init_model replaces nothing" 1 "there already" "$BUILD/init_model" --like smollm2-135m model
refused "tokenize: line and column" 1 "stdin:2:9: found '5'" sh -c "printf '{\"text\":\"a\"}\n{\"text\":5}\n' | $BUILD/tokenize --model model"
refused "init_model --like nonsense" 2 "nonsense" "$BUILD/init_model" --like nonsense x
finish
