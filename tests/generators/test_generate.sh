#!/bin/sh
# test_generate.sh - recipes/generate.c and --preview-every: prompts, rows, chats; what is refused, interrupted, continued.
# (The cache: test_cache.c. Choosing tokens: test_token_sampler.c. Text as it comes: test_detokenizer.c. Beside transformers:
# peers/generate_peer.py.)
. tests/tap.sh
generate=$BUILD/generate
cd "$tmp" || exit 1
is "a model" eval 'tiny model 1 --max-positions 256 --dtype float32'
is "... with adapters on it" eval '"$BUILD/finetune_lora" --model model --dataset "$here/datasets/stories.jsonl" --max-steps 4 --lr 3e-2 --max-length 64 --output lora >out'
answer() { "$generate" --model model "$@" 2>notes; }

# ---- one prompt ----
is "greedy: the same text twice" eval 'answer --prompt "One day" --max-new-tokens 12 >a && answer --prompt "One day" --max-new-tokens 12 >b && cmp a b && grep -q . a'
is "... from the standard input" eval 'printf "One day" | answer --prompt - --max-new-tokens 12 >b && cmp a b'
is "... by one thread" eval 'answer --prompt "One day" --max-new-tokens 12 --threads 1 >b && cmp a b'
is "notes say how tokens are chosen, and how fast" eval 'grep -q "^# sampling  *greedy$" notes && grep -qE "^# prompt [0-9]+ tokens in .*; answer [0-9]+ tokens in .*ended by" notes'
is "sampling: by the seed" eval 'answer --prompt x --temperature 1 --seed 1 >a && answer --prompt x --temperature 1 --seed 1 >b && cmp a b && answer --prompt x --temperature 1 --seed 2 >b && ! cmp -s a b'
is "--max-new-tokens" eval 'answer --prompt x --max-new-tokens 3 --temperature 1 >a && grep -q "answer 3 tokens.*ended by the number of tokens" notes'
is "--stop cuts the text before it" eval 'answer --prompt x --max-new-tokens 40 >a && stop=$(cut -c 6-8 a | head -n 1) && answer --prompt x --max-new-tokens 40 --stop "$stop" >b && [ "$(head -n 1 b)" = "$(head -n 1 a | sed "s|$(printf %s "$stop" | sed "s/[][.*^\$\\\\]/\\\\&/g").*||")" ] && grep -q "ended by a stop text" notes'
is "the context is an end" eval 'answer --prompt x --context 20 --max-new-tokens 90 >a; grep -q "ended by the end of the context" notes'
is "--dtype bfloat16, --base-dtype nf4" eval 'answer --prompt x --dtype bfloat16 --base-dtype nf4 --max-new-tokens 4 >a && grep -q . a && ! answer --prompt x --dtype bfloat16 --base-dtype nf3 2>/dev/null'

real=${TUNE_SHARED:-$here/../shared/data}/stories260K-hf
if [ -f "$real/reference_greedy.json" ]; then
    is "a pretrained model says its reference text" eval 'sed -n "s/.*\"greedy_text\": \"//p" "$real/reference_greedy.json" | sed "s/\\\\n.*//" | head -n 1 | tr -d "\n" >a && start="Once upon a time" && { printf %s "$start"; "$generate" --model "$real" --prompt "$start" --max-new-tokens 90 2>notes; } | head -n 1 | tr -d "\n" >b && [ $(wc -c <a) -gt 100 ] && cmp a b'
else
    skip "a pretrained model says its reference text" "no folder of real material (\$TUNE_SHARED, ../shared/data)"
fi

# ---- adapters ----
is "--adapter changes the answer" eval 'answer --prompt "One day" --max-new-tokens 30 >a && answer --adapter lora/checkpoint-final --prompt "One day" --max-new-tokens 30 >b && ! cmp -s a b'
is "... as merging it does" eval '"$BUILD/merge_adapter" --model model --adapter lora/checkpoint-final --output merged >out && "$generate" --model merged --prompt "One day" --max-new-tokens 30 >c 2>notes && cmp b c'
is "--compare-base: both, side by side" eval 'answer --adapter lora/checkpoint-final --prompt "One day" --max-new-tokens 30 --compare-base >c && head -n 1 c | grep -q "^base  *| tuned$" && tr -d "* \n|" <c >d && grep -qF "$(tr -d "*| \n" <a | cut -c 1-10)" d'
is "prompts as the adapter's rows were: text" grep -q "^# prompts  *text$" notes
printf '{"instruction": "Say %s.", "output": "%s"}\n' a a b b c c d d >rows.jsonl
is "... alpaca" eval '"$BUILD/finetune_lora" --model model --dataset rows.jsonl --max-length 128 --output alpaca >out && answer --adapter alpaca/checkpoint-final --prompt "Say a." --max-new-tokens 3 >a && grep -q "^# prompts  *alpaca" notes'
printf '[prompt]\nQ: {instruction}\n\n[completion]\n{output}\n' >own.txt
is "... by a template" eval '"$BUILD/finetune_full" --model model --dataset rows.jsonl --prompt-template own.txt --max-length 64 --output own >out && "$generate" --model own/checkpoint-final --prompt "Say a." --max-new-tokens 3 >a 2>notes && grep -q "^# prompts  *prompt-template" notes'
is "... a conversation" eval '"$BUILD/finetune_full" --model model --dataset rows.jsonl --format instruct --columns input=instruction --chat-template chatml --max-length 96 --output chat >out && "$generate" --model chat/checkpoint-final --prompt "Say a." --max-new-tokens 3 >a 2>notes && grep -q "^# prompts  *messages" notes'
is "... and --format takes another" eval '"$generate" --model chat/checkpoint-final --prompt "Say a." --format text --max-new-tokens 3 >a 2>notes && grep -q "^# prompts  *text" notes'

# ---- rows ----
for i in 1 2 3 4 5 6 7 8 9 10 11; do printf '{"prompt": "Story %s: %s"}\n' $i "$(seq -s ' ' 1 $i)"; done >prompts.jsonl
rows() { answer --input prompts.jsonl --max-new-tokens 20 "$@"; }
texts() { sed 's/,"of":.*//' "$1"; }
is "--input: a line of JSON for each row" eval 'rows --output one.jsonl --batch-size 1 && [ $(wc -l <one.jsonl) = 11 ] && sed -n 11p one.jsonl | grep -qE "^\{\"row\":10,\"prompt\":\"Story 11: 1 2 3 4 5 6 7 8 9 10 11\",\"answer\":\".*\",\"end\":\"(length|token)\",\"prompt_tokens\":[0-9]+,\"tokens\":[0-9]+,\"of\":\"[0-9a-f]{16}\"\}$"'
is "... the same alone and eight at a time" eval 'rows --output eight.jsonl --batch-size 8 && cmp one.jsonl eight.jsonl'
is "... and to the standard output" eval 'rows >out.jsonl && cmp out.jsonl one.jsonl'
is "... also where rows are sampled" eval 'rows --temperature 1 --top-k 9 --batch-size 1 >a && rows --temperature 1 --top-k 9 --batch-size 4 >b && cmp a b && ! cmp -s a one.jsonl'
is "a file that was cut is continued" eval 'head -n 5 one.jsonl >cut.jsonl && sed -n 6p one.jsonl | cut -c 1-20 | tr -d "\n" >>cut.jsonl && rows --output cut.jsonl && cmp cut.jsonl one.jsonl && grep -q "^# resumed  *behind row 5 of 11" notes'
is "... and a whole one left" eval 'rows --output cut.jsonl && cmp cut.jsonl one.jsonl && grep -q "behind row 11 of 11" notes'
refused "... not with other options" 2 "cut.jsonl:1: the answer belongs to another prompt, to other weights or to other options" "$generate" --model model --input prompts.jsonl --output cut.jsonl --max-new-tokens 21
refused "... nor of another model" 2 "belongs to another prompt" "$generate" --model merged --input prompts.jsonl --output cut.jsonl --max-new-tokens 20
sed 's/Story 3/Story three/' prompts.jsonl >others.jsonl
refused "... nor of other prompts" 2 "cut.jsonl:3: the answer belongs to another prompt" "$generate" --model model --input others.jsonl --output cut.jsonl --max-new-tokens 20
is "... which stays as it was" cmp cut.jsonl one.jsonl
echo "hello" >strange.txt
refused "... nor a file of other lines" 2 "strange.txt:1: expected the answer to row 0" "$generate" --model model --input prompts.jsonl --output strange.txt
printf 'my notes' >precious.txt
refused "... nor one without a line's end" 2 "precious.txt:1: expected the answer to row 0" "$generate" --model model --input prompts.jsonl --output precious.txt
is "... which stays" grep -q "my notes" precious.txt
refused "--output is not --input" 2 "--output is the file of --input" "$generate" --model model --input prompts.jsonl --output ./prompts.jsonl --overwrite
is "... which stays" test "$(wc -l <prompts.jsonl)" = 11
refused "--output is a file" 2 "is no regular file" "$generate" --model model --input prompts.jsonl --output /dev/null
is "rows near the context are answered as alone" eval '{ printf "{\"prompt\": \"%s\"}\n" "$(yes a | head -n 90 | tr "\n" " ")"; echo "{\"prompt\": \"b\"}"; } >near.jsonl && answer --input near.jsonl --max-new-tokens 120 --batch-size 1 >a && answer --input near.jsonl --max-new-tokens 120 --batch-size 2 >b && cmp a b && [ $(grep -c "" a) = 2 ]'
cp -rL lora/checkpoint-final changed && answer --adapter changed --input prompts.jsonl --output changed.jsonl --max-new-tokens 5
sed -i 's/"lora_alpha": *[0-9]*/"lora_alpha": 3/' changed/adapter_config.json
refused "a changed adapter's answers are not continued" 2 "belongs to another prompt" "$generate" --model model --adapter changed --input prompts.jsonl --output changed.jsonl --max-new-tokens 5
is "--overwrite begins anew" eval 'rows --output strange.txt --overwrite && cmp strange.txt one.jsonl'
kill9() { # killed behind its first lines, wherever it is then
    rm -f killed.jsonl
    seq 1 400 | sed 's/.*/{"prompt": "Number &"}/' >many.jsonl
    rm -f notes # whoever waits for a line must not find an earlier one
    "$generate" --model model --input many.jsonl --output killed.jsonl --max-new-tokens 40 2>notes &
    await $! [ -s killed.jsonl ] || return 1
    kill -9 $!
    wait $! 2>/dev/null
    [ "$(wc -l <killed.jsonl)" -lt 400 ] && "$generate" --model model --input many.jsonl --output killed.jsonl --max-new-tokens 40 2>notes &&
        "$generate" --model model --input many.jsonl --max-new-tokens 40 2>notes >whole.jsonl && cmp killed.jsonl whole.jsonl
}
is "kill -9, and the same command again" kill9
held() {
    (flock 9; "$generate" --model model --input prompts.jsonl --output held.jsonl --max-new-tokens 2) 9>>held.jsonl 2>notes
    [ $? = 1 ] && grep -q "held.jsonl: another process writes answers there" notes
}
is "two processes do not share a file" held
is "--compare-base in lines" eval 'answer --adapter lora/checkpoint-final --input prompts.jsonl --compare-base --output both.jsonl --max-new-tokens 20 && sed "s/.*\"base_answer\":/\"answer\":/; s/base_end/end/; s/,\"base_tokens.*//" both.jsonl >a && sed "s/.*\"answer\":/\"answer\":/; s/,\"prompt_tokens.*//" one.jsonl >b && cmp a b'
is "rows with answers are prompts, too" eval 'answer --input rows.jsonl --max-new-tokens 2 >a && [ $(wc -l <a) = 4 ] && grep -q "^# prompts  *alpaca (recognised), columns instruction, output$" notes'

is "--compare-model: another model, side by side" eval '"$generate" --model merged --compare-model model --prompt "One day" --max-new-tokens 30 >c 2>notes && head -n 1 c | grep -q "^model  *| merged$" && answer --prompt "One day" --max-new-tokens 30 >a && tr -d "* \n|" <c >d && grep -qF "$(tr -d "*| \n" <a | cut -c 1-10)" d'

# ---- expected answers ----
# Four rows: the first two expect what the model answers, one of them with white space around it; the last has no answer.
said=$(sed -n 's/^{"row":0,.*"answer":"\(.*\)","end".*/\1/p' one.jsonl)
row='{"prompt": "Story 1: 1", "completion": "'
printf '%s\n' "$row$said\"}" "$row \\n$said\\t\"}" "$row$said.\"}" "$row\"}" >score.jsonl
score() { answer --input score.jsonl --max-new-tokens 20 "$@"; }
is "exact matches, but for white space at the ends" eval 'score --output scored.jsonl && [ "$(sed -n "s/.*\"exact_match\":\([a-z]*\),.*/\1/p" scored.jsonl | tr "\n" " ")" = "true true false " ] && [ "$(grep -c "\"expected\":\"" scored.jsonl)" = 3 ] && ! sed -n 4p scored.jsonl | grep -q "expected\|exact_match"'
is "... and their share" eval '[ "$(tail -n 1 notes)" = "# exact match  2 of 3 rows (66.7 %), without white space at the ends of both answers" ]'
is "... also of a file that is continued" eval 'head -n 2 scored.jsonl >part.jsonl && score --output part.jsonl && cmp part.jsonl scored.jsonl && grep -q "^# exact match  2 of 3 rows" notes'
is "... whose lines an earlier version wrote" eval 'sed "s/\"prompt\":\"[^\"]*\",//; s/,\"expected\":.*\"exact_match\":[a-z]*//" scored.jsonl | head -n 3 >old.jsonl && ! grep -q "expected\|\"prompt\"" old.jsonl && score --output old.jsonl && [ $(wc -l <old.jsonl) = 4 ] && grep -q "^# exact match  2 of 3 rows" notes'
sed '3s/\."}$/!"}/' score.jsonl >expects.jsonl
refused "... not where another answer is expected now" 2 "scored.jsonl:3: the row's expected answer is another one now" "$generate" --model model --input expects.jsonl --output scored.jsonl --max-new-tokens 20
is "no share without expected answers" eval 'rows >a && ! grep -q "exact match" notes'
expects() { # FILE TEXT [OPTION...] - the expected answer of FILE's one row
    file=$1 text=$2
    shift 2
    answer --input "$file" --max-new-tokens 2 "$@" >a && grep -qF "\"expected\":\"$text\"," a
}
echo '{"instruction": "Say a.", "input": "", "output": "a"}' >alpaca.jsonl
echo '{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "One"}, {"role": "user", "content": "Go on"}, {"role": "assistant", "content": [{"type": "text", "text": "Tw"}, {"type": "text", "text": "o"}]}]}' >two.jsonl
echo '{"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Yes"}]}' >gpt.jsonl
echo '{"prompt": [{"role": "user", "content": "Hi"}], "completion": [{"role": "assistant", "content": "No"}]}' >lists.jsonl
printf 'prompt,completion\nHi,"Well, ""so"""\n' >quoted.csv
is "the expected answer of alpaca, instruct and a template" eval 'expects alpaca.jsonl a && expects alpaca.jsonl a --prompt-template own.txt && expects alpaca.jsonl a --format instruct --columns input=instruction --chat-template chatml'
is "... of conversations: the assistant's last message" eval 'expects two.jsonl Two --chat-template chatml && expects gpt.jsonl Yes --chat-template chatml && expects lists.jsonl No --chat-template chatml'
is "... whose prompt is the template's" eval 'expects gpt.jsonl Yes --chat-template chatml && grep -qF "\"prompt\":\"<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n\"" a'
is "... of CSV" expects quoted.csv 'Well, \"so\"'
is "... of both models" eval 'answer --adapter lora/checkpoint-final --input score.jsonl --compare-base --max-new-tokens 20 --output base.jsonl && grep -q "\"base_exact_match\":true" base.jsonl && grep -qE "^# exact match  [0-9] of 3 rows .*; base 2 \(66.7 %\)" notes'

# ---- several answers to a prompt ----
several() { rows --temperature 1 --seed 7 "$@"; }
is "--answers: in the order of the rows, with an index" eval 'several --answers 3 --output three.jsonl && [ $(wc -l <three.jsonl) = 33 ] && sed -n "s/^{\"row\":\([0-9]*\),\"answer_index\":\([0-9]\),.*/\1 \2/p" three.jsonl >got && for i in $(seq 0 32); do echo $((i / 3)) $((i % 3)); done >want && cmp got want'
answers_of() { sed 's/.*"answer":"\(.*\)","end".*/\1/' "$1"; }
is "... which differ" eval '[ "$(head -n 3 three.jsonl | answers_of - | sort -u | wc -l)" = 3 ] && [ "$(answers_of three.jsonl | sort -u | wc -l)" -gt 30 ]'
is "... repeat, in any batch" eval 'several --answers 3 --batch-size 1 >a && cmp a three.jsonl && several --answers 3 --batch-size 5 >a && cmp a three.jsonl'
is "... and by another seed are others" eval 'several --seed 8 --answers 3 >a && ! cmp -s a three.jsonl'
is "... the first is that of one answer alone, and fewer are the first ones" eval 'several >a && grep "\"answer_index\":0" three.jsonl | answers_of - >got && answers_of a >want && cmp got want && ! grep -q answer_index a && several --answers 2 >a && answers_of a >got && grep "\"answer_index\":[01]" three.jsonl | answers_of - >want && cmp got want'
is "... a file is continued within a row" eval '{ head -n 4 three.jsonl; sed -n 5p three.jsonl | cut -c 1-25 | tr -d "\n"; } >mid.jsonl && several --answers 3 --output mid.jsonl && cmp mid.jsonl three.jsonl && grep -q "^# resumed  *behind answer 4 of 33" notes'
refused "... not by another number" 2 "three.jsonl:3: expected the answer to row 1, with its answer_index; the file was not made by this program, was changed, or has another number of answers" "$generate" --model model --input prompts.jsonl --max-new-tokens 20 --temperature 1 --seed 7 --answers 2 --output three.jsonl
refused "... nor by one" 2 "three.jsonl:1: expected the answer to row 0;" "$generate" --model model --input prompts.jsonl --max-new-tokens 20 --temperature 1 --seed 7 --output three.jsonl
is "... the score counts answers" eval 'answer --input score.jsonl --temperature 1 --answers 2 --max-new-tokens 3 >a && grep -q "^# exact match  0 of 6 answers" notes'
is "... to one prompt" eval 'answer --prompt x --temperature 1 --answers 3 --max-new-tokens 4 >a && [ "$(grep "^---" a | tr "\n" " ")" = "--- 1 of 3 --- --- 2 of 3 --- --- 3 of 3 --- " ] && answer --prompt x --temperature 1 --max-new-tokens 4 >b && sed -n "1d; /^---/q; p" a | sed "/^---/d" >got && cmp got b'
is "... of two models" eval 'answer --adapter lora/checkpoint-final --prompt x --temperature 1 --answers 2 --max-new-tokens 4 --compare-base >a && grep -q "^row 0, answer 1$" a'
refused "... greedy ones are all the same" 2 "--answers 3: without sampling they are all the same; give --temperature above 0" "$generate" --model model --prompt x --answers 3
refused "... not in a chat" 2 "--answers 2 is for --prompt and --input" "$generate" --model model --chat --temperature 1 --answers 2

# ---- a chat ----
talk() { "$generate" --model model --chat --chat-template chatml --max-new-tokens 12 "$@" 2>notes; }
is "a chat remembers, and takes back" eval 'printf "Hello\nWho?\n/undo\nWhere?\n/save said.jsonl\n" | talk >a && [ $(grep -o "\"role\":\"user\"" said.jsonl | wc -l) = 2 ] && ! grep -q "Who?" said.jsonl && grep -q "Where?" said.jsonl'
is "... a row that a recipe trains on" eval '"$BUILD/finetune_full" --model model --dataset said.jsonl --chat-template chatml --max-length 128 --max-steps 1 --output said2 >out'
is "... its second answer is that of the whole conversation" eval 'sed "s/,{\"role\":\"assistant\",\"content\":\"[^\"]*\"}\]/]/" said.jsonl >open.jsonl && answer --input open.jsonl --chat-template chatml --max-new-tokens 12 >b && text=$(sed "s/.*\"answer\":\"//; s/\",\"end.*//" b) && grep -qF "$text" said.jsonl'
is "/system, /clear, /help, an unknown command, a slash, a joined line" eval 'printf "/system Be kind.\nHi\n/clear\n/help\n/nothing\n//slash\none \\\\\ntwo\n/save s2.jsonl\n/quit\nNot read\n" | talk >a && grep -q "\"role\":\"system\",\"content\":\"Be kind.\"" s2.jsonl && grep -q "\"/slash\"" s2.jsonl && grep -q "one .ntwo" s2.jsonl && ! grep -q "\"Hi\"" s2.jsonl && ! grep -q "Not read" s2.jsonl && grep -q "there is no command /nothing" notes'
is "--system" eval 'printf "Hi\n/save y1.jsonl\n" | talk --system "Be brief." >a && one=$(sed -n "s/^# prompt \([0-9]*\) .*/\1/p" notes) && echo Hi | talk >b && [ "$one" -gt "$(sed -n "s/^# prompt \([0-9]*\) .*/\1/p" notes)" ] && grep -q "Be brief." y1.jsonl'
is "nothing to take back, an empty line, a file that cannot be written" eval 'printf "/undo\n\n/save s0.jsonl\nHi\n/save no/such/file\n/save\n" | talk >a && [ ! -e s0.jsonl ] && grep -q "nothing to save" notes && grep -q "nothing to take back" notes && grep -q "cannot write no/such/file" notes && grep -q "name of a file is missing" notes'
is "a conversation beyond the context is taken back" eval '{ printf "Hi\n"; yes word | head -n 300 | tr "\n" " "; printf "\nBye\n/save s3.jsonl\n"; } | talk >a && grep -q "the context is 256; take something back with /undo" notes && ! grep -q "word word" s3.jsonl && grep -q Bye s3.jsonl'

awk 'BEGIN { printf "{\"prompt\": \"ab\"}\n{\"prompt\": \""; for (i = 0; i < 230; i++) printf "q"; print "\"}" }' >crowd.jsonl
is "a long row takes no room from a short one" eval 'answer --input crowd.jsonl --suppress-tokens 0 --max-new-tokens 40 --batch-size 2 >a && answer --input crowd.jsonl --suppress-tokens 0 --max-new-tokens 40 --batch-size 1 >b && cmp a b && grep -q "\"prompt_tokens\":230" a && head -n 1 a | grep -q "\"tokens\":40"'
refused "a line of more than 1 MiB" 1 "a line of the chat is longer than 1048576 bytes" eval 'head -c 1050000 /dev/zero | tr "\0" q | "$generate" --model model --chat --chat-template chatml >/dev/null'

# ---- on a terminal ----
printf '{"prompt": "x", "completion": "a\\u001b[2J\\u009b1m\\u202eb\\u007fc"}\n' >steers.jsonl
is "a model that writes controls" eval '"$BUILD/finetune_full" --model model --dataset steers.jsonl --max-length 96 --max-steps 60 --lr 1e-2 --output steers >out && answer --model steers/checkpoint-final --prompt x --max-new-tokens 40 >a && grep -qF "$(printf "a\033[2J\302\2331m\342\200\256b\177c")" a'
is "... steers no terminal" eval 'script -qec "$generate --model steers/checkpoint-final --prompt x --max-new-tokens 40" /dev/null >b && grep -qF "a^[[2J\u009b1m\u202eb^?c" b'
is "... nor do lines of JSON" eval 'answer --model steers/checkpoint-final --input steers.jsonl --max-new-tokens 40 >b && grep -qF "\u001b[2J\u009b1m\u202eb\u007fc" b && ! grep -q "$(printf "\302\233")" b'

# ---- interrupted ----
slow_model() { # no token ends its answer, so 8000 tokens take half a minute or more
    [ -d slow ] && return
    tiny slow 1 --max-positions 8192 --hidden-size 512 --intermediate-size 1024 --heads 8 --kv-heads 8 --layers 6 || return
    sed -i '/"eos_token/d; s/\("bos_token_id":[^,]*\),$/\1/' slow/generation_config.json
    sed -i '/"eos_token/d' slow/config.json slow/tokenizer_config.json
}
slow() {
    rm -f part
    rm -f notes
    "$generate" --model slow --prompt x --temperature 1 --max-new-tokens 8000 >part 2>notes &
    await $! [ -s part ] || return 1
    kill -"$1" $!
    wait $!
    [ $? = "$2" ] && [ -s part ] && [ "$(tail -c 1 part)" = "" ] && grep -q "ended by a signal" notes
}
is "a model that answers for long" slow_model
is "Ctrl-C: the answer so far is kept" slow INT 130
is "SIGTERM: the same" slow TERM 143
compared() { # Ctrl-C while two models answer: what there is is shown
    rm -f notes
    "$generate" --model slow --compare-model slow --prompt x --temperature 1 --max-new-tokens 8000 >part 2>notes &
    await $! grep "^# ends with" notes || return 1
    ticks() { awk '{ print $3 == "Z" ? 1e9 : $14 + $15 }' /proc/$1/stat; }
    enough=$(($(ticks $!) + 100)) # a second of processor time later it answers
    await $! eval '[ "$(ticks $!)" -ge $enough ]'
    kill -INT $!
    wait $!
    [ $? = 130 ] && grep -q "^slow  *| slow" part && [ "$(wc -l <part)" -gt 1 ]
}
is "... while two models answer" compared
printf '{"prompt": "x"}\n{"prompt": "y"}\n' >two.jsonl
batch() { # rows that were cut off are not written as answered
    rm -f cut.jsonl
    rm -f notes
    "$generate" --model slow --input two.jsonl --output cut.jsonl --temperature 1 --max-new-tokens 8000 2>notes &
    await $! grep "^# ends with" notes || return 1
    enough=$(($(ticks $!) + 100))
    await $! eval '[ "$(ticks $!)" -ge $enough ]'
    kill -INT $!
    wait $!
    [ $? = 130 ] && [ ! -s cut.jsonl ] && grep -q "the same command goes on" notes
}
is "... while rows are answered" batch
reading() { # a prompt that takes half a minute or more: no token is drawn, and the prompt is not marked as answered
    tiny long 1 --max-positions 300000 && awk 'BEGIN { printf "{\"prompt\": \""; for (i = 0; i < 80000; i++) printf "ab "; print "\"}" }' >long.jsonl || return
    rm -f long.out
    rm -f notes
    "$generate" --model long --input long.jsonl --output long.out --max-new-tokens 4 2>notes &
    await $! grep "^# ends with" notes || return 1
    kill -TERM $!
    wait $!
    [ $? = 143 ] && [ ! -s long.out ] && ! grep -q "^# answered" notes && grep -q "the same command goes on" notes
}
is "... while a long prompt is read" reading
chatting() { # a chat that reads the pipe `lines`; its process is $!
    rm -f lines part
    mkfifo lines
    rm -f notes
    "$generate" --model slow --chat --chat-template chatml --temperature 1 --max-new-tokens 8000 <lines >part 2>notes &
    exec 9>lines
}
left() { # Ctrl-C while it waits for a line
    chatting
    await $! grep "^# commands" notes && await $! grep "^State:.S" /proc/$!/status
    kill -INT $!
    wait $!
    code=$?
    exec 9>&-
    [ $code = 130 ]
}
is "Ctrl-C leaves a chat that waits for a line" left
stopped() { # Ctrl-C while it answers: the chat goes on
    chatting
    echo Hello >&9
    await $! [ -s part ] && kill -INT $! && await $! grep "ended by a signal" notes && echo /quit >&9
    good=$?
    [ $good = 0 ] || kill -9 $!
    wait $!
    code=$?
    exec 9>&-
    [ $good = 0 ] && [ $code = 0 ]
}
is "... and ends an answer, but not the chat" stopped
closed() { "$generate" --model slow --prompt x --temperature 1 --max-new-tokens 4000 2>notes | head -c 5 >part; grep -q "^generate: cannot write the answer: Broken pipe" notes; }
is "a closed pipe" closed
is "a full disk" eval '! rows >/dev/full && grep -q "cannot write an answer: No space left" notes'

# ---- while it trains ----
{ cat prompts.jsonl; printf '{"prompt": "%s"}\n' "$(yes word | head -n 300 | tr '\n' ' ')"; } >long.jsonl
printf 'One day\n\nThe dog\n' >p.txt
train() { # NAME PROGRAM OPTION...
    run=$1 recipe=$2
    shift 2
    "$BUILD/$recipe" --model model --dataset "$here/datasets/stories.jsonl" --max-length 48 --max-steps 7 --lr 1e-2 --threads 2 --verbose --output "$run" "$@" >"$run.out" 2>&1 || { tail -n 3 "$run.out"; false; }
}
said="--preview-every 3 --preview-prompts p.txt --preview-tokens 9"
for program in finetune_full "finetune_lora --lora-dropout 0.2" "finetune_full --ema 0.5 --packing --dtype bfloat16"; do
    n=$((n + 1))
    # shellcheck disable=SC2086 # words
    is "$program --preview-every 3: after steps 3, 6 and the last" eval 'train s$n $program $said && [ "$(sed "s/{\"step\":\([0-9]*\),\"row\":\([0-9]*\),.*/\1:\2/" s$n/samples.jsonl | tr "\n" " ")" = "3:0 3:1 6:0 6:1 7:0 7:1 " ]'
    is "... in the run's lines, too" grep -q "^preview 6 | One day | " s$n.out
    # shellcheck disable=SC2086 # words
    is "... the same training as without" eval 'train t$n $program && numbers s$n >a.txt && numbers t$n >b.txt && cmp a.txt b.txt && diff -r s$n/checkpoint-final t$n/checkpoint-final'
    # shellcheck disable=SC2086 # words
    is "... stopped and gone on: the same previews" eval 'train u$n $program $said --save-every 2 --stop-at-step 4 && "$BUILD/${program%% *}" --resume u$n >out && cmp s$n/samples.jsonl u$n/samples.jsonl'
done
is "... gone on from an earlier step: later lines are dropped" eval 'train v finetune_full $said --save-every 2 && "$BUILD/finetune_full" --resume v/checkpoint-2 --overwrite >out && cmp s1/samples.jsonl v/samples.jsonl && [ $(wc -l <v/samples.jsonl) = 6 ]'
is "... are what generate says" eval 'text=$(sed -n "5s/.*\"answer\":\"\(.*\)\",\"end.*/\1/p" s1/samples.jsonl) && "$generate" --model s1/checkpoint-final --prompt "One day" --max-new-tokens 9 >out 2>notes && [ "$(cat out)" = "$text" ]'
is "... of the averages with --ema" eval 'text=$(sed -n "5s/.*\"answer\":\"\(.*\)\",\"end.*/\1/p" s3/samples.jsonl) && "$generate" --model s3/checkpoint-final --prompt "One day" --max-new-tokens 9 --dtype bfloat16 --base-dtype float32 >out 2>notes && [ "$(cat out)" = "$text" ]'
is "... rows of a chat" eval '"$BUILD/finetune_full" --model model --dataset said.jsonl --chat-template chatml --max-length 128 --max-steps 1 --preview-every 1 --preview-prompts open.jsonl --output w >out && grep -q "<|im_start|>assistant" w/samples.jsonl'
is "... its memory is in the plan" grep -qE "^# memory .*previews. keys and values [0-9]" s1.out
old="$(echo "$said" | sed s/preview/sample/g)"
# shellcheck disable=SC2086 # words
is "... by the options' old names: accepted, said once each" eval 'train old finetune_full $old && cmp s1/samples.jsonl old/samples.jsonl && [ "$(grep -c "is now called --preview" old.out)" = 3 ] && grep -q "^# renamed  *--sample-every is now called --preview-every$" old.out'
is "... in a --config file, too" eval 'echo "{\"sample_every\": 3, \"sample-prompts\": \"p.txt\", \"sample_tokens\": 9}" >old.json && train older finetune_full --config old.json && cmp s1/samples.jsonl older/samples.jsonl && [ "$(grep -c "is now called --preview" older.out)" = 3 ]'
is "... of a run that an earlier version began" eval 'train began finetune_full $said --save-every 2 --stop-at-step 4 && sed -i "s/\"preview_/\"sample_/" began/run.json && grep -q "\"sample_every\"" began/run.json && "$BUILD/finetune_full" --resume began >out && cmp s1/samples.jsonl began/samples.jsonl && ! grep -q "is now called" out'
refused "... without prompts" 2 "give --preview-prompts FILE" "$BUILD/finetune_full" --model model --dataset rows.jsonl --max-length 128 --preview-every 3 --output x1
refused "... prompts without steps" 2 "--preview-prompts without --preview-every" "$BUILD/finetune_full" --model model --dataset rows.jsonl --max-length 128 --preview-prompts p.txt --output x2
refused "... a prompt that is too long" 2 "--preview-prompts: long.jsonl:12: the prompt has" "$BUILD/finetune_full" --model model --dataset rows.jsonl --max-length 128 --preview-every 3 --preview-prompts long.jsonl --output x3
for i in $(seq 40); do echo "Row $i"; echo; done >many.txt
{ for i in $(seq 17); do echo '{"text": "One day"}'; done; echo '{"text": 7}'; } >odd.jsonl
is "many prompts: the first 16 are answered, and the header says so" eval 'train y finetune_full --max-steps 2 --preview-every 2 --preview-prompts many.txt --preview-tokens 2 && [ "$(wc -l <y/samples.jsonl)" = 16 ] && grep -q "^# previews  *every 2 steps: 16 prompts of many.txt, at most 2 tokens each; 24 more are left out (--preview-rows)$" y.out && [ "$(grep -c "^# previews " y.out)" = 1 ] && [ "$(grep -n "^# previews" y.out | cut -d: -f1)" -lt "$(grep -n "^step" y.out | head -n 1 | cut -d: -f1)" ]'
is "... --preview-rows 0 takes all, 3 three" eval 'train z0 finetune_full --max-steps 1 --preview-every 1 --preview-prompts many.txt --preview-tokens 2 --preview-rows 0 && [ "$(wc -l <z0/samples.jsonl)" = 40 ] && ! grep -q "left out (--preview-rows)" z0.out && train z3 finetune_full --max-steps 1 --preview-every 1 --preview-prompts many.txt --preview-tokens 2 --preview-rows 3 && [ "$(wc -l <z3/samples.jsonl)" = 3 ]'
printf '#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <time.h>\nint clock_gettime(clockid_t id, struct timespec *t)\n{ static int (*real)(clockid_t, struct timespec *); static long late;\n  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");\n  int status = real(id, t); t->tv_sec += __atomic_add_fetch(&late, 11, __ATOMIC_RELAXED); return status; }\n' >late.c
if sanitized || ! $CC -shared -fPIC -o late.so late.c -ldl; then
    skip "a slow answer says how far it is" "no library can be put before this build"
else
    is "a slow answer says how far it is" eval '(export LD_PRELOAD=$PWD/late.so; train late finetune_full --max-steps 1 --preview-every 1 --preview-prompts many.txt --preview-tokens 3) && grep -q "^preview 1 | 8 of 16 prompts answered, token 2 of at most 3$" late.out'
fi
is "... rows that are left out need not be right" train odd finetune_full --max-steps 1 --preview-every 1 --preview-prompts odd.jsonl --preview-tokens 2
is "... these leave no run folder" eval '! ls -d x1 x2 x3 2>/dev/null'

# ---- refusals ----
refused "no prompt" 2 "nothing to answer: give --prompt TEXT, --input FILE of rows, or --chat" "$generate" --model model
refused "two kinds" 2 "exclude each other" "$generate" --model model --prompt x --chat
refused "no model" 2 "--model is missing" "$generate" --prompt x
refused "a file that is not there" 2 "none.jsonl: no such file" "$generate" --model model --input none.jsonl
refused "--output without rows" 2 "--output is for the answers to the rows of --input" "$generate" --model model --prompt x --output a.jsonl
refused "--compare-base without an adapter" 2 "give --adapter" "$generate" --model model --prompt x --compare-base
refused "a name of other programs" 2 "here it is --max-new-tokens" "$generate" --model model --prompt x --n-predict 3
refused "... that means nothing here" 2 "there is none here: tokens are chosen one after the other" "$generate" --model model --prompt x --num-beams 4
refused "two comparisons" 2 "exclude each other" "$generate" --model model --adapter lora/checkpoint-final --prompt x --compare-base --compare-model model
is "a model of another vocabulary" eval 'tiny more 1 --max-positions 256 --dtype float32 --vocab-size 320'
refused "... is not compared" 2 "has a vocabulary of 320, and --model's is 300" "$generate" --model model --compare-model more --prompt x
refused "another model that is not there" 2 "--compare-model:" "$generate" --model model --prompt x --compare-model none
is "an adapter as a model is that adapter on its base" eval '"$generate" --adapter lora/checkpoint-final --model model --prompt x --max-new-tokens 8 >a.txt 2>notes && "$generate" --model lora/checkpoint-final --prompt x --max-new-tokens 8 >b.txt 2>notes && cmp a.txt b.txt && grep -q "taken as --adapter" notes'
refused "an adapter of another model" 2 "--adapter" "$generate" --model slow --adapter lora/checkpoint-final --prompt x
refused "a chat without a template" 2 "--chat: model has no chat template of its own" "$generate" --model model --chat
refused "a negative temperature" 2 "--temperature is -1" "$generate" --model model --prompt x --temperature -1
refused "a filter of greedy answers" 2 "--top-k has no meaning for greedy answers" "$generate" --model model --prompt x --top-k 5
refused "top-p 0" 2 "--top-p is 0" "$generate" --model model --prompt x --top-p 0
refused "top-p above 1" 2 "--top-p is 1.5" "$generate" --model model --prompt x --top-p 1.5
refused "a context above the model's" 2 "--context 999 is above the model's of 256" "$generate" --model model --prompt x --context 999
refused "a prompt beyond the context" 2 "with an answer it must fit the context of 256" "$generate" --model model --prompt "$(yes word | head -n 300 | tr '\n' ' ')"
refused "... in a row, by its line" 2 "long.jsonl:12: the prompt has" "$generate" --model model --input long.jsonl
refused "an empty prompt" 2 "the prompt is empty" "$generate" --model model --prompt ""
refused "an empty stop text" 2 "--stop: a text is empty" "$generate" --model model --prompt x --stop "a,,b"
refused "a system message for plain text" 2 "--system is for conversations" "$generate" --model model --prompt x --system s
printf '[prompt]\n{a} {b}\n[completion]\n{c}\n' >two.txt
refused "a template of two columns" 2 'has the columns "a" and "b", and --prompt is one text' "$generate" --model model --prompt x --prompt-template two.txt
finish
