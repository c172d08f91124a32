#!/bin/sh
# test_init_tokenizer.sh - init_model --tokenizer: the files of another folder, its vocabulary and the tokens that end a text.
# (Weights: test_init.c. A learnt vocabulary: test_tokenizer.c.)
. tests/tap.sh
cd "$tmp" || exit 1
tiny other 1 >/dev/null
echo '{{ messages[0].content }}{{ eos_token }}' >other/chat_template.jinja
echo '{"eos_token": "<|im_end|>"}' >other/special_tokens_map.json
sed -i 's/"eos_token": "[^"]*"/"eos_token": {"content": "<|im_end|>", "lstrip": false}/' other/tokenizer_config.json
printf '{"eos_token_id": [2, 0], "temperature": 0.7}' >other/generation_config.json
make_model() { "$BUILD/init_model" --layers 1 --hidden-size 32 --intermediate-size 64 --heads 2 --kv-heads 1 --max-positions 64 "$@"; }
value() { tr -d '\n\t ' <"$1" | sed "s/.*\"$2\":\([^,}]*\).*/\1/"; }

is "the files of the folder" eval 'make_model --tokenizer other new && for f in tokenizer.json tokenizer_config.json special_tokens_map.json chat_template.jinja; do cmp other/$f new/$f || exit 1; done'
is "... and none that it lacks" test ! -e new/added_tokens.json
is "the vocabulary has its size" test "$(value new/config.json vocab_size)" = 300
is "the token that ends a text, and the one that begins it" test "$(value new/config.json eos_token_id) $(value new/config.json bos_token_id)" = "2 0"
is "more that end an answer, and no other setting" eval '[ "$(tr -d "\n\t " <new/generation_config.json)" = "{\"bos_token_id\":0,\"eos_token_id\":[2,0]}" ]'
is "it trains and answers" eval '"$BUILD/finetune_full" --model new --dataset "$here/datasets/stories.jsonl" --limit 4 --max-length 32 --max-steps 2 --output run && "$BUILD/generate" --model run/checkpoint-final --prompt x --max-new-tokens 3'
is "ids of the same texts" eval 'echo "{\"text\": \"One day, Tim\"}" >text && "$BUILD/tokenize" --model other <text >a && "$BUILD/tokenize" --model new <text >b && grep -q . a && cmp a b'
is "--vocab-size: more rows than tokens" eval 'make_model --tokenizer other --vocab-size 320 wide && [ "$(value wide/config.json vocab_size)" = 320 ]'
refused "... not fewer" 2 "--vocab-size 299: the tokenizer of other has 300 tokens; leave it out, or give at least that many" make_model --tokenizer other --vocab-size 299 narrow
is "... and nothing is left of it" test ! -e narrow
mkdir empty && refused "a folder without a tokenizer" 1 "--tokenizer: cannot open empty/tokenizer.json" make_model --tokenizer empty none
refused "two vocabularies" 2 "--tokenizer takes a vocabulary, and --tokenizer-text learns one" make_model --tokenizer other --tokenizer-text text none
real=${TUNE_SHARED:-$here/../shared/data}/stories260K-hf
if [ -f "$real/tokenizer.json" ]; then
    is "one of another kind" eval 'make_model --tokenizer "$real" real && cmp "$real/tokenizer.json" real/tokenizer.json && "$BUILD/generate" --model real --prompt "Once" --max-new-tokens 3'
else
    skip "one of another kind" "no folder of real material (\$TUNE_SHARED, ../shared/data)"
fi
finish
