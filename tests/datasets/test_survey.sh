#!/bin/sh
# test_survey.sh - what a recipe says of its rows and of its time before the first step.
. tests/tap.sh
cd "$tmp" || exit 1
is "a model" tiny model 1 --max-positions 512
rows() { # N ROW... - N lines of rows, by turns
    awk 'BEGIN { for (i = 0; i < ARGV[1]; i++) for (k = 2; k < ARGC; k++) { row = ARGV[k]; gsub(/%/, i, row); print row } }' "$@"
}
fit() { "$BUILD/finetune_full" --model model --max-steps 1 --no-save --output run --overwrite "$@" >out 2>&1; code=$?; cat out; return $code; }
said() { grep -qE -e "^# $1 +$2" out || { cat out; false; }; }
rows 50 '{"text": "row % of fifty"}' >good.jsonl
is "a set without surprises" eval 'fit --dataset good.jsonl && said survey "all 50 rows were read: mean 1[0-9] tokens, longest 1[0-9]$" && ! grep -q "^# warning" out'
is "how long it will take, and the memory" said estimate "a guess: 1 s for 1[0-9] tokens in 1 steps; at most [0-9.]+ MiB of memory"
is "... of all epochs" eval 'fit --dataset good.jsonl --max-steps -1 --epochs 3 && said estimate "a guess: [0-9]+ s for 2[0-9]{3} tokens in 150 steps"'
is "run.json has the survey" grep -q '"survey":.*"all 50 rows were read' run/run.json
is "counts of a run are its own" eval 'fit --dataset good.jsonl && said "rows met" "1 read by this process, 0 cut"'
rows 9 '{"text": "short %"}' '{"text": "a longer row % that goes on and on and on and on until it is cut somewhere"}' >long.jsonl
is "rows that are cut: how many, and both options" eval 'fit --dataset long.jsonl --max-length 30 && said survey ".*; 50 % are cut to 30" && said "warning: cut" "50 % of the rows are cut to 30 tokens; --max-length [0-9]+ would take 100 % of the rows whole \(the longest has [0-9]+\); --chunk parts texts instead$"'
is "... that length is enough" eval 'fit --dataset long.jsonl --max-length "$(sed -n "s/.*--max-length \([0-9]*\) would.*/\1/p" out)" && ! grep -q "^# warning" out'
is "... so is --chunk" eval 'fit --dataset long.jsonl --max-length 30 --chunk && ! grep -q "^# warning: cut" out && said rows "pieces of field"'
rows 9 '{"prompt": "a question % that is far too long for this length", "completion": "x"}' '{"prompt": "%", "completion": "b"}' >away.jsonl
is "answers that the cut takes" eval 'fit --dataset away.jsonl --max-length 20 && said "warning: cut away" "50 % of the rows lose all they train on to the cut at 20 tokens, and are left out; --max-length [0-9]+ would take 100 % of the rows whole"'
{ rows 97 '{"text": "an average row % of its file"}'; rows 3 "{\"text\": \"$(printf '%0400d' 0) of %\"}"; } >one.jsonl
length() { sed -nE "s/.*--max-length ([0-9]+).* would take ([0-9.]+) %.*/\1 \2/p" out | head -n 1; }
is "the length that is advised takes 95 % of the rows, not the longest of all" eval 'fit --dataset one.jsonl --max-length 20 && set -- $(length) && [ "$2" = 97 ] && [ "$1" -lt 50 ] && fit --dataset one.jsonl --max-length "$1" && said survey ".*; 3 % are cut to $1$" && ! grep -q "^# warning: cut" out'
rows 20 "{\"text\": \"$(printf '%0600d' 0) of %\"}" '{"text": "a row of middle length that is cut, %"}' >beyond.jsonl
is "... and is none above the model's context" eval 'fit --dataset beyond.jsonl --max-length 20 && set -- $(length) && [ "$1" = 512 ] && [ "$2" = 50 ] && grep -q -- "--max-length 512, the model.s context, would take 50 % of the rows whole" out && fit --dataset beyond.jsonl --max-length "$1" && said survey ".*; 50 % are cut to 512$" && said "warning: cut" ".* that is the model.s context, and the longest row has [0-9]+; --chunk"'
rows 20 '{"instruction": "a fairly long question %", "output": "and what is answered there"}' >alpaca.jsonl
is "--chunk is not advised where rows are no plain text" eval 'fit --dataset alpaca.jsonl --max-length 140 && said "warning: cut" ".*would take 100 %.*" && ! grep -q -- --chunk out'
rows 9 '{"text": ""}' '{"text": "a row %"}' >empty.jsonl
is "rows with nothing to train on" eval 'fit --dataset empty.jsonl && said "warning: empty" "50 % of the rows have nothing to train on"'
rows 9 '{"prompt": "q%", "completion": ""}' '{"prompt": "q%", "completion": "a"}' >unanswered.jsonl
is "empty answers, of which the end token alone is trained" eval 'fit --dataset unanswered.jsonl && said survey ".*; 50 % have an empty answer$" && said "warning: no answer" "50 % of the rows have an empty answer, .* --append-token none"'
is "... that option leaves them out" eval 'fit --dataset unanswered.jsonl --append-token none && said survey ".*; 50 % have nothing to train on$" && ! grep -q "warning: no answer" out'
rows 9 '{"text": "rows that begin with the same words, and end with %"}' >beginning.jsonl
is "rows that only begin alike are not doubled" eval 'fit --dataset beginning.jsonl --max-length 20 && said survey ".*; 100 % are cut to 20$"'
rows 9 '{"prompt": "a question that is far too long for this length", "completion": "% x"}' '{"prompt": "a longer one", "completion": "than % fits in here"}' >partly.jsonl
is "cut rows that lose all are among the cut, in both lines" eval 'fit --dataset partly.jsonl --max-length 20 && said survey ".*; 100 % are cut to 20; 50 % lose all they train on" && said "warning: cut" "100 % of the rows are cut"'
awk 'BEGIN { for (i = 0; i < 9; i++) print "{\"prompt\": \"q" i "\", \"chosen\": \"a fairly long answer that is cut\", \"rejected\": \"b\"}" }' >pairs.jsonl
dpo() { "$BUILD/finetune_dpo" --model model --dataset pairs.jsonl --max-steps 1 --no-save --output run --overwrite "$@" >out 2>&1; code=$?; cat out; return $code; }
is "the length that takes a pair whole is that of its longest answer" eval 'dpo --max-length 20 && said survey ".*mean .* tokens for both answers, .* 100 % are cut" && dpo --max-length "$(sed -n "s/.*--max-length \([0-9]*\) would.*/\1/p" out)" && ! grep -q "^# warning" out'
is "... and no more" eval 'dpo --max-length "$(($(sed -n "s/^# survey .*longest \([0-9]*\).*/\1/p" out) - 1))" && said "warning: cut" ".*"'
printf '{"chosen": "A", "rejected": "B"}\n{"chosen": "a: c", "rejected": "a: b"}\n' >pairs.jsonl
is "pairs without a prompt" eval 'dpo && said survey ".*; 50 % have no prompt$" && said "warning: no prompt" "50 % of the rows have no prompt, .* --columns prompt=NAME"'
rows 9 '{"prompt": "Answer: ", "completion": "the %"}' '{"prompt": "Answer:", "completion": " the %"}' >space.jsonl
is "prompts that end in a space, by their cause" eval 'fit --dataset space.jsonl && said survey ".*; 50 % join prompt and answer in one token$" && said "warning: space" "50 % of the rows have a token that is both the end of the prompt and the beginning of the answer, such as \" the?\", and it is not trained: the prompt ends in a space" && ! grep -q "warning: no answer" out'
printf '{"messages": [{"role": "user", "content": "1+1?"}, {"role": "assistant", "reasoning_content": "add", "content": "2"}]}\n{"messages": [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}]}\n' >think.jsonl
is "reasoning that the template leaves out" eval 'fit --dataset think.jsonl --chat-template chatml && said survey ".*; the chat template leaves out 75 % of the assistant.s text in 50 % of the rows$" && said "warning: left out" "50 % of the rows .*; another --chat-template may write it"'
say() { printf '{"role": "%s", "content": "%s"}' "$1" "$2"; }
{ echo "{\"messages\": [$(say user a), $(say assistant b)]}"; echo "{\"messages\": [$(say user a), $(say user b), $(say assistant c)]}"
  echo "{\"messages\": [$(say assistant hi), $(say user a), $(say assistant b)]}"; echo "{\"messages\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"gpt\", \"value\": \"b\"}]}"; } >people.jsonl
echo "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('no') }}{% endif %}{{ m.role + m.content + eos_token }}{% endfor %}{% if add_generation_prompt %}assistant{% endif %}" >alternate.jinja
is "conversations that are changed: each kind, and the option" eval 'fit --dataset people.jsonl --chat-template ./alternate.jinja && said conversations "25 % have turns of one speaker that are joined; 25 % lose a greeting, .*; 25 % have messages with keys or roles of another format; --strict refuses such rows"'
is "... left to a template that takes them" eval 'fit --dataset people.jsonl --chat-template plain && said conversations "25 % have messages with keys .*; 50 % have an unusual order of turns, which the template takes; --strict refuses such rows$"'
is "... refused by that option" eval 'fit --dataset people.jsonl --chat-template plain --strict && grep -q "people.jsonl:2: message 2 (user): two user messages in a row" out'
is "... shown" eval '"$BUILD/finetune_full" --model model --dataset people.jsonl --chat-template ./alternate.jinja --show-tokens 4 >out && grep -q "^row 1, .* trained; turns joined$" out && grep -q "^row 0, .* trained$" out'
rows 9 '{"text": "the same row"}' '{"text": "another %"}' >doubled.jsonl
is "doubled rows: all but the first of them" eval 'fit --dataset doubled.jsonl && said survey ".*; 44.4 % are doubled" && said "warning: doubled" "44.4 % of the rows are the same as an earlier row"'
rows 9 '{"text": "I am {{name}}, % years"}' '{"text": "I am {name} and {{ 1 }}, %"}' >unfilled.jsonl
is "placeholders" eval 'fit --dataset unfilled.jsonl && said "warning: placeholders" "50 % of the rows hold placeholders such as \{\{name\}\}"'
rows 30 '{"text": "row %"}' >bad.jsonl && echo '{"text": 5}' >>bad.jsonl
is "a bad row far behind: which, and the option" eval 'fit --dataset bad.jsonl --no-shuffle && said "warning: bad rows" "1 of 31 cannot be read, and the run will stop at them; --skip-bad-rows leaves them out. The first: bad.jsonl:31:"'
is "... with it they are counted" eval 'fit --dataset bad.jsonl --skip-bad-rows && said survey ".*; 3.23 % cannot be read" && ! grep -q "^# warning" out'
rows 20001 '{"text": "row %"}' >many.jsonl
is "of more than 20,000 rows 1,000 are read" eval 'fit --dataset many.jsonl && said survey "1000 of 20001 rows were read: .*" && ! grep -q doubled out'
is "a resumed run says none of it again" eval '"$BUILD/finetune_full" --model model --dataset good.jsonl --max-steps 4 --stop-at-step 2 --output again >out 2>&1 && "$BUILD/finetune_full" --resume again >out 2>&1 && ! grep -qE "^# (survey|estimate)" out'
printf 'one text without empty lines, long enough for several pieces of it\nand a second line of it\n' >one.txt
is "a text file of one paragraph is parted" eval 'fit --dataset one.txt --max-length 20 && said rows "pieces of paragraphs, 4 to train on" && said format "text, in pieces of at most 20 tokens; ended by"'
is "... unless it is not wanted" eval 'fit --dataset one.txt --max-length 20 --no-chunk && said rows "paragraphs, 1 to train on"'
is "... said in words" eval 'fit --dataset one.txt --max-length 20 --chunk off && said rows "paragraphs, 1 to train on"'
cp -r model plain && rm plain/tokenizer_config.json
is "the end token, if only config.json names it" eval 'fit --dataset good.jsonl --model plain && said format "text; ended by <\|endoftext\|>"'
sed -i '/eos_token_id/d' plain/config.json
is "... and if nothing does" eval 'fit --dataset good.jsonl --model plain && said format "text; ended by no token"'
refused "--chunk of conversations" 2 "parts rows of plain text, and these are alpaca" "$BUILD/finetune_full" --model model --dataset away.jsonl --format alpaca --columns instruction=prompt,output=completion --chunk
finish
