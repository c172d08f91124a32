#!/bin/sh
# test_generate_options.sh - each option of generate, and each file that ends or draws an answer, once off its default.
# (What generation_config.json rules: test_generation_config.sh.)
. tests/tap.sh
generate=$BUILD/generate
cd "$tmp" || exit 1
is "a model" eval 'tiny model 1 --max-positions 256 --dtype float32'
answer() { "$generate" --model model "$@" 2>notes; }
id_of() { printf '{"text": "%s"}\n' "$1" | "$BUILD/tokenize" --model model --no-special | tr -dc '0-9'; }
all_but() { seq 0 299 | grep -vxE "$1" | paste -sd, -; }
k=$(id_of k) q=$(id_of q) line=$(id_of '\n') tab=$(id_of '\t') comma=$(id_of ,) back=$(id_of '\\')

# ---- drawing ----
drawn() { answer --prompt x --max-new-tokens 30 "$@"; }
is "the header has what was given" eval 'drawn --temperature 0.7 --top-k 7 --top-p 0.6 --min-p 0.05 --repetition-penalty 1.3 --seed 5 >a && grep -q "^# sampling  *temperature 0.7, top-k 7, top-p 0.6, min-p 0.05, seed 5, repetition penalty 1.3$" notes'
is "greedy, and drawn" eval 'drawn >greedy && drawn --temperature 1 >a && ! cmp -s greedy a'
for one in "--top-k 1" "--top-p 1e-9" "--min-p 0.999999"; do
    is "only the best token is left: $one" eval "drawn --temperature 1 $one >a && cmp greedy a"
    refused "... has no meaning for greedy answers" 2 "${one% *} has no meaning for greedy answers" "$generate" --model model --prompt x $one
done
is "--repetition-penalty" eval 'drawn --repetition-penalty 50 >a && ! cmp -s greedy a && grep -q "repetition penalty 50" notes'
is "--seed" eval 'drawn --temperature 1 --seed 3 >a && drawn --temperature 1 --seed 4 >b && ! cmp -s a b'
cp -r model file
file() { "$generate" --model file --prompt x --max-new-tokens 5 "$@" 2>notes; }
echo '{"do_sample": true, "temperature": 0.5, "top_p": 0.75, "min_p": 0.125, "repetition_penalty": 1.5}' >file/generation_config.json
is "a file that draws: 50 tokens, where it says no other" eval 'file >a && grep -q "^# sampling  *temperature 0.5, top-k 50, top-p 0.75, min-p 0.125, seed 0, repetition penalty 1.5 (generation_config.json)$" notes'
is "... options over it" eval 'file --temperature 0.25 --top-k 3 --top-p 1 --min-p 0 --repetition-penalty 1 >a && grep -q "^# sampling  *temperature 0.25, top-k 3, top-p 1, min-p 0, seed 0$" notes'
echo '{"do_sample": true, "top_k": 9}' >file/generation_config.json
is "... its own number" eval 'file >a && grep -q "temperature 1, top-k 9, top-p 1, min-p 0" notes'

# ---- ends ----
no_ends() { rm -rf file && cp -r model file && rm -f file/generation_config.json && sed -i '/"eos_token/d' file/config.json file/tokenizer_config.json; }
only() { file --suppress-tokens "$(all_but "$1")" >a; }
put() { sed -i "s/^{/{\"$2\": $3,/; 1s/^{\$/{\"$2\": $3,/" "file/$1"; }
no_ends
is "a model without an end" eval 'only $q && grep -q "^# ends with  *no token of the model, or after 5 tokens" notes && [ "$(cat a)" = qqqqq ]'
is "of config.json" eval 'put config.json eos_token_id $q && only $q && grep -q "answer 1 tokens.*ended by the model" notes'
is "... a list" eval 'no_ends && put config.json eos_token_id "[$k, $q]" && only $q && grep -q "answer 1 tokens.*ended by the model" notes'
is "of tokenizer_config.json" eval 'no_ends && put tokenizer_config.json eos_token "\"q\"" && only $q && grep -q "answer 1 tokens.*ended by the model" notes'
is "... an object" eval 'no_ends && put tokenizer_config.json eos_token "{\"content\": \"q\"}" && only $q && grep -q "answer 1 tokens.*ended by the model" notes'
is "of generation_config.json" eval 'no_ends && echo "{\"eos_token_id\": [$k, $q]}" >file/generation_config.json && only $q && grep -q "answer 1 tokens.*ended by the model" notes'
for none in 300 -1; do
    is "an id that no token has: $none" eval "no_ends && echo '{\"eos_token_id\": $none}' >file/generation_config.json && only $q && grep -q 'no token of the model' notes && [ \"\$(cat a)\" = qqqqq ]"
done
is "adapters" eval '"$BUILD/finetune_lora" --model model --dataset "$here/datasets/stories.jsonl" --max-steps 2 --lr 3e-2 --max-length 64 --output lora >out'
no_ends
adapted() { file --adapter lora/checkpoint-final --suppress-tokens "$(all_but $q)" >a; }
is "an end of the adapter's folder" eval 'echo "{\"eos_token_id\": $q}" >lora/checkpoint-final/generation_config.json && adapted && grep -q "answer 1 tokens.*ended by the model" notes'
is "... and how it draws" eval 'echo "{\"do_sample\": true, \"temperature\": 0.5}" >lora/checkpoint-final/generation_config.json && adapted && grep -q "temperature 0.5, top-k 50.*(generation_config.json)" notes'

# ---- stop texts ----
stops() { # OPTION TOKEN - alone this token is drawn: it ends the answer
    answer --prompt x --max-new-tokens 5 --suppress-tokens "$(all_but "$2")" --stop "$1" >a && grep -q "answer 1 tokens.*ended by a stop text" notes
}
is "a line end" stops '\n' "$line"
is "a tab" stops '\t' "$tab"
is "a comma" stops '\,' "$comma"
is "a backslash" stops '\\' "$back"
is "the second of two" stops 'xyz,q' "$q"
is "one that does not come" eval '! stops n $line'

# ---- contexts ----
refused "one token more than the model has" 2 "--context 257 is above the model's of 256" "$generate" --model model --prompt x --context 257
is "as many as it has" answer --prompt x --context 256 --max-new-tokens 1
tiny long 1 --max-positions 8192 --dtype float32
talk() { "$generate" --model long --chat --chat-template chatml --max-new-tokens 2 "$@" 2>notes; }
is "a chat takes 4096 tokens of a longer one" eval '{ head -c 5000 /dev/zero | tr "\0" q; printf "\n/quit\n"; } | talk >a; grep -q "4096" notes'
is "... or what --context says" eval '{ head -c 5000 /dev/zero | tr "\0" q; printf "\n/quit\n"; } | talk --context 8000 >a; ! grep -q "4096" notes && grep -q "answer 2 tokens" notes'
is "NUL bytes of a line are left out, and told" eval 'printf "a\0b\n/save nul.jsonl\n" | talk >a && grep -q "left out of the line: 1 NUL byte$" notes && grep -q "\"content\":\"ab\"" nul.jsonl'
is "/system without a text takes the message back" eval 'printf "/system Be brief.\nhi\n/save with.jsonl\n/system\n/save without.jsonl\n" | talk >a && grep -q "Be brief" with.jsonl && ! grep -q system without.jsonl'

# ---- two models ----
compare() { refused "$1" 2 "$2" "$generate" --model model --compare-model "$3" --prompt x --max-new-tokens 100; }
tiny short 1 --max-positions 64 --dtype float32
compare "the other model's context is too short" "short has a context of 64; prompt and answer take" short
cp -r model other && sed -i 's/"k"/"kk"/' other/tokenizer.json
compare "its tokenizer is another" "other has another tokenizer: token $k differs" other
is "one that fits" answer --compare-model long --prompt x --max-new-tokens 3

# ---- files of answers ----
printf '{"prompt": "a"}\n{"prompt": "b"}\n' >rows.jsonl
to() { "$generate" --model "$@" --input rows.jsonl --output of.jsonl --max-new-tokens 3 2>notes >/dev/null; }
differs() { # WHAT MODEL OPTIONS... - the file that the lines before made is not continued
    what=$1
    shift
    refused "answers are not continued with $what" 2 "to other options" "$generate" --input rows.jsonl --output of.jsonl --max-new-tokens 3 --model "$@"
}
"$BUILD/finetune_lora" --model model --dataset "$here/datasets/stories.jsonl" --max-steps 2 --lr 3e-2 --seed 9 --max-length 64 --output other_run >out
rm -f lora/checkpoint-final/generation_config.json
cp -rL lora again && cp other_run/checkpoint-final/adapter_model.safetensors again/checkpoint-final # the weights alone differ
is "answers to a file, and again" eval 'to model --adapter lora/checkpoint-final && cp of.jsonl first && to model --adapter lora/checkpoint-final && cmp of.jsonl first'
differs "another adapter" model --adapter again/checkpoint-final
differs "none" model
differs "another dtype" model --adapter lora/checkpoint-final --dtype bfloat16
differs "another base dtype" model --adapter lora/checkpoint-final --base-dtype nf4
differs "a stop text" model --adapter lora/checkpoint-final --stop q
is "the seed of greedy answers does not matter" to model --adapter lora/checkpoint-final --seed 4
differs "another context" model --adapter lora/checkpoint-final --context 100
cp -r model ended && echo "{\"eos_token_id\": $q}" >ended/generation_config.json
differs "other ends" ended --adapter lora/checkpoint-final
finish
