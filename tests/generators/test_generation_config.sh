#!/bin/sh
# test_generation_config.sh - what a model's generation_config.json says, and the options over it: obeyed, named in the header,
# left out with a line, refused. (Each rule: test_token_rules.c. Beside transformers: peers/generation_config_peer.py.)
. tests/tap.sh
generate=$BUILD/generate
cd "$tmp" || exit 1
is "a model" eval 'tiny model 1 --max-positions 256 --dtype float32'
answer() { "$generate" --model model "$@" 2>notes; }
sets() { printf '{"eos_token_id": %s%s}\n' "$eos" "${1:+, $1}" >model/generation_config.json; }
id_of() { printf '{"text": "%s"}\n' "$1" | "$BUILD/tokenize" --model model --no-special | tr -dc '0-9'; }
eos=0
k=$(id_of k) q=$(id_of q)
all_but() { seq 0 299 | grep -vxE "$1" | paste -sd, -; } # ids, as a list
says() { [ "$(cat a)" = "$1" ]; }

# ---- obeyed ----
sets '"max_new_tokens": 3'
is "max_new_tokens" eval 'answer --prompt x >a && grep -q "answer 3 tokens.*ended by the number of tokens" notes && grep -q "^# ends with.*, or after 3 tokens$" notes'
is "... the header names it" grep -q "^# generation_config.json sets max_new_tokens 3$" notes
is "... an option wins, and then the header does not" eval 'answer --prompt x --max-new-tokens 5 >a && grep -q "answer 5 tokens" notes && ! grep -q "generation_config.json" notes'
is "... --max-length wins, too" eval 'answer --prompt x --max-length 9 >a && grep -q "at 9 tokens with the prompt$" notes && ! grep -q "generation_config.json" notes'
sets '"max_length": 12'
printf '{"prompt": "a"}\n{"prompt": "a b c d"}\n{"prompt": "a b"}\n' >rows.jsonl
lengths() { sed 's/.*"prompt_tokens":\([0-9]*\),"tokens":\([0-9]*\),.*/\1 \2/' a | awk '{ n++; bad += $1 + $2 != 12 } END { exit !(n == 3 && !bad) }'; }
is "max_length: each row of a batch by itself" eval 'answer --input rows.jsonl --suppress-tokens 0 >a && lengths && grep -q "at 12 tokens with the prompt$" notes'
is "... the rows alone" eval 'answer --input rows.jsonl --suppress-tokens 0 --batch-size 1 >b && cmp a b'
refused "... a prompt as long as that" 2 "the longest prompt has 14 tokens; with an answer it must be at most max_length, which is 12" "$generate" --model model --prompt "qqqqqqqqqqqqqq"
sets "\"suppress_tokens\": [$(all_but $k)], \"max_new_tokens\": 4"
is "suppress_tokens: one token is left" eval 'answer --prompt x >a && says kkkk && grep -q "^# generation_config.json sets max_new_tokens 4, suppress_tokens (299 ids)$" notes'
is "... --suppress-tokens wins" eval 'answer --prompt x --suppress-tokens "$(all_but $q)" >a && says qqqq'
is "... and none" eval 'answer --prompt x --suppress-tokens none >a && ! says kkkk && grep -q "sets max_new_tokens 4$" notes'
is "... in a file of options" eval 'printf "{\"suppress-tokens\": \"%s\"}" "$(all_but $q)" >o.json && answer --prompt x --config o.json >a && says qqqq'
sets "\"begin_suppress_tokens\": [$(all_but $k)], \"max_new_tokens\": 4"
is "begin_suppress_tokens: of the first token only" eval 'answer --prompt x --suppress-tokens "$(all_but "$k|$q")" --bad-words-ids "$k $k" >a && says kqqq'
sets "\"suppress_tokens\": [$(all_but "$k|$q")], \"bad_words_ids\": [[$k]], \"max_new_tokens\": 3"
is "bad_words_ids" eval 'answer --prompt x >a && says qqq && grep -q "bad_words_ids (1)$" notes'
sets "\"suppress_tokens\": [$(all_but "$k|$q")], \"no_repeat_ngram_size\": 2, \"max_new_tokens\": 4"
is "no_repeat_ngram_size: each pair once" eval 'answer --prompt x >a; says kkqq || says qqkk || says kkqk || says qqkq'
is "... the prompt counts" eval 'answer --prompt kkq --max-new-tokens 2 >a && says qk'
refused "... and then no token is left" 1 "row 0: no token is left to choose after" "$generate" --model model --prompt x --max-new-tokens 9
is "... --no-repeat-ngram-size 0" eval 'answer --prompt x --no-repeat-ngram-size 0 --max-new-tokens 9 >a && grep -q "answer 9 tokens" notes'
sets "\"forced_eos_token_id\": $q, \"max_new_tokens\": 4, \"suppress_tokens\": [$(all_but "$k|$q")], \"bad_words_ids\": [[$q]]"
is "forced_eos_token_id: the last token" eval 'answer --prompt x >a && says kkkq'
sets "\"forced_bos_token_id\": $q, \"max_new_tokens\": 2, \"suppress_tokens\": [$(all_but "$k|$q")], \"bad_words_ids\": [[$q]]"
is "forced_bos_token_id: behind a prompt of one token" eval 'answer --prompt k --format text >a && says qk && answer --prompt kk --format text >a && says kk'
sets "\"bad_words_ids\": [[99999]], \"max_new_tokens\": 2"
refused "an id that the model lacks: the file is named" 1 "model/generation_config.json: \"bad_words_ids\" has the id 99999" "$generate" --model model --prompt x
is "... --bad-words-ids none takes it out" eval 'answer --prompt x --bad-words-ids none >a'
sets "\"forced_bos_token_id\": $q, \"max_new_tokens\": 2, \"suppress_tokens\": [$(all_but "$k|$q")], \"bad_words_ids\": [[$q]]"
is "the ends are forbidden at first" eval 'answer --prompt x --forced-bos-token-id none --bad-words-ids none --max-new-tokens 1 >a'
first=$(id_of "$(cat a)")
eos="[0, $first]"
sets "\"suppress_tokens\": [$(all_but "$k|$q")], \"max_new_tokens\": 6"
is "... an end at once" eval 'answer --prompt x >a && grep -q "answer 1 tokens.*ended by the model" notes'
sets "\"suppress_tokens\": [$(all_but "$k|$q")], \"max_new_tokens\": 6, \"min_new_tokens\": 4"
is "... min_new_tokens" eval 'answer --prompt x >a && [ "$(head -c 4 a | tr -d kq)" = "" ] && ! grep -q "answer [123] tokens" notes && grep -q "min_new_tokens 4" notes'
is "... --min-length wins" eval 'answer --prompt xyz --min-length 1 >a && grep -q "answer 1 tokens" notes'
eos=0
sets "\"suppress_tokens\": [$(all_but "$k")], \"stop_strings\": \"kkk\", \"max_new_tokens\": 9"
is "stop_strings" eval 'answer --prompt x >a && grep -q "ended by a stop text" notes && grep -q "stop_strings (1)$" notes && says ""'
is "... --stop wins" eval 'answer --prompt x --stop kkkkkk >a && grep -q "answer 6 tokens" notes'
is "drawn answers obey, too" eval 'answer --prompt x --temperature 2 --stop z --top-k 3 >a && says kkkkkkkkk'

# ---- rows, chats, adapters, previews ----
sets "\"suppress_tokens\": [$(all_but "$k|$q")], \"no_repeat_ngram_size\": 3, \"max_new_tokens\": 6"
is "rows in a batch, as alone" eval 'answer --input rows.jsonl --batch-size 3 >a && answer --input rows.jsonl --batch-size 1 >b && cmp a b && [ $(grep -c "" a) = 3 ]'
is "a file of answers" eval 'answer --input rows.jsonl --output of.jsonl && cmp a of.jsonl && answer --input rows.jsonl --output of.jsonl'
refused "... is not continued with other rules" 2 "to other options" "$generate" --model model --input rows.jsonl --output of.jsonl --no-repeat-ngram-size 4
talk() { printf "hi\nhi\n" | answer --chat --chat-template chatml "$@" >a && [ $(grep -c "ended by the number of tokens" notes) = 2 ]; }
again() { paste -sd' ' a | grep -qE '([kq]{4}).* .*\1'; } # a later answer says what an earlier one said
is "a chat: what was said counts" eval 'talk --no-repeat-ngram-size 0 && again && talk --no-repeat-ngram-size 4 && ! again && grep -q "^# generation_config.json sets" notes'
is "an adapter: the model's rules hold" eval '"$BUILD/finetune_lora" --model model --dataset "$here/datasets/stories.jsonl" --max-steps 1 --max-length 64 --output lora >out && answer --adapter lora/checkpoint-final --prompt x >a && [ "$(tr -d "kq\n" <a)" = "" ] && grep -q "^# generation_config.json sets" notes'
printf 'One day\n' >p.txt
is "previews while it trains are what generate says" eval '"$BUILD/finetune_full" --model model --dataset "$here/datasets/stories.jsonl" --max-length 48 --max-steps 2 --preview-every 2 --preview-prompts p.txt --preview-tokens 8 --output run >out && text=$(sed -n "s/.*\"answer\":\"\(.*\)\",\"end.*/\1/p" run/samples.jsonl) && "$generate" --model run/checkpoint-final --prompt "One day" --max-new-tokens 8 >a 2>notes && says "$text" && [ "$(tr -d "kq\n" <a)" = "" ]'

# ---- left out, and said so ----
sets '"num_beams": 4, "typical_p": 0.5, "chat_format": "chatml", "sequence_bias": [[[1], 2.0]], "max_new_tokens": 1, "max_length": 7'
is "keys that are not obeyed are named" eval 'answer --prompt x >a && grep -qF "# warning: generation_config.json: left out, as not supported here: max_length 7 (max_new_tokens holds), num_beams 4, typical_p 0.5, chat_format \"chatml\", sequence_bias [[[1],2]]" notes'
sets '"num_beams": 1, "typical_p": 1.0, "sequence_bias": null, "use_cache": true, "pad_token_id": 0, "transformers_version": "5.0", "guidance_scale": null, "watermarking_config": {}, "cache_implementation": "static", "length_penalty": 2.0'
is "... those that change nothing are not" eval 'answer --prompt x --max-new-tokens 1 >a && ! grep -q "generation_config.json" notes'
sets '"suppress_tokens": [-1, 300, 5], "cache_implementation": "quantized"'
is "ids that the model lacks" eval 'answer --prompt x --max-new-tokens 1 >a && grep -q "left out.*cache_implementation \"quantized\", 2 suppressed ids that the model lacks" notes && grep -q "sets suppress_tokens 5$" notes'

# ---- refusals ----
wrong() { # KEY VALUE MESSAGE
    sets "\"$1\": $2"
    refused "$1 $2" 1 "model/generation_config.json: \"$1\" $3" "$generate" --model model --prompt x
}
for key in no_repeat_ngram_size min_length min_new_tokens; do
    for value in '"2"' 2.5 -1 true '[2]'; do
        wrong $key "$value" "is $value; expected a whole number of at least 0"
    done
done
for key in max_length max_new_tokens; do
    wrong $key 0 "is 0; expected a whole number of at least 1"
    wrong $key '"9"' "is \"9\"; expected a whole number of at least 1"
done
wrong suppress_tokens 5 "is 5; expected a list of ids"
wrong suppress_tokens '["a"]' "is [\"a\"]; expected a list of ids"
wrong begin_suppress_tokens '[1.5]' "is [1.5]; expected a list of ids"
wrong bad_words_ids '[5]' "is [5]; expected a list of lists of ids"
wrong bad_words_ids '[[]]' "is [[]]; expected a list of lists of ids"
wrong bad_words_ids '[[300]]' "has the id 300; expected ids from 0 to 299"
wrong forced_eos_token_id '"</s>"' "is \"</s>\"; expected an id or a list of ids"
wrong forced_eos_token_id 300 "has the id 300"
wrong forced_bos_token_id -1 "is -1; expected an id or a list of ids"
wrong stop_strings 5 "is 5; expected a text or a list of texts"
wrong do_sample '"yes"' "is neither true nor false"
wrong temperature '"1"' "is no number"
sets
refused "two limits" 2 "--max-new-tokens and --max-length exclude each other" "$generate" --model model --prompt x --max-new-tokens 5 --max-length 9
refused "two lower limits" 2 "--min-new-tokens and --min-length exclude each other" "$generate" --model model --prompt x --min-new-tokens 5 --min-length 9
for text in a 5,,6 5,a "5 6" -1 ""; do
    refused "--suppress-tokens '$text'" 2 "--suppress-tokens \"$text\": expected ids with commas between" "$generate" --model model --prompt x --suppress-tokens "$text"
done
refused "--bad-words-ids" 2 "spaces within a word" "$generate" --model model --prompt x --bad-words-ids "5 , 6"
refused "--bad-words-ids of other models" 2 "--bad-words-ids has the id 300; expected ids from 0 to 299" "$generate" --model model --prompt x --bad-words-ids "5,6 300"
finish
