#!/bin/sh
# test_added_tokens.sh - --add-tokens: what is saved, the same bits resumed, adapters and their merge, what is refused.
# (The tokenizer: test_tokenizer:more*. Against transformers and PEFT: peers/added_tokens_peer.py.)
. tests/tap.sh
cd "$tmp" || exit 1
tiny model 1 --dtype float32 >/dev/null
i=0
while [ $i -lt 24 ]; do
    i=$((i + 1))
    printf '{"text": "<|ask|>number %d<|im_end|><|say|>%d it is<|end of it|>"}\n' $i $i
done >rows.jsonl
more='<|ask|>,<|im_end|>,<|say|>,<|end of it|>' # the second is there already
run() { # PROGRAM NAME OPTION...
    program=$BUILD/$1 who=$2
    shift 2
    "$program" --model model --dataset rows.jsonl --max-length 48 --batch-size 3 --lr 3e-3 --threads 2 --train-split 0.9 --epochs 2 \
        --eval-every 4 --save-every 5 --seed 3 --add-tokens "$more" --output "$who" "$@" >"$who.out" 2>&1 || { tail -n 5 "$who.out"; return 1; }
}
goes_on() { # PROGRAM NAME
    "$BUILD/$1" --resume "$2" >>"$2.out" 2>&1 || { tail -n 5 "$2.out"; return 1; }
}
both="--modules-to-save embed_tokens,lm_head --lora-r 4"
falls() { awk "BEGIN { exit !($(figure "$1" loss_last) < $(figure "$1" loss_first)) }"; }
planned() { awk "BEGIN { exit !($(figure "$1" peak_anonymous_bytes) <= $(figure "$1" estimated_memory_bytes)) }"; }
for p in "finetune_full" "finetune_lora $both" "finetune_lora $both --base-dtype nf4 --lora-dora"; do
    n=$((n + 1))
    is "a run: $p" run ${p%% *} a$n ${p#"${p%% *}"}
    is "the loss falls" falls a$n
    is "stopped between saves" run ${p%% *} b$n ${p#"${p%% *}"} --stop-at-step 7
    is "and gone on" goes_on ${p%% *} b$n
    is "the same bits" same_run a$n b$n
    if sanitized; then skip "memory is as planned" "a sanitizer's memory is counted too"; else is "memory is as planned" planned a$n; fi
    is "it says what was added" grep -q "^# added tokens  *special: <|ask|> 300, <|im_end|> 2 (there already), <|say|> 301, <|end of it|> 302; 3 rows of the vocabulary are new, each the mean of the 300 before" a$n.out
done
is "config.json has the rows" grep -q '"vocab_size":[^0-9]*303' a1/checkpoint-final/config.json
diff model/tokenizer.json a1/checkpoint-final/tokenizer.json >diff.txt
is "the tokenizer is the file's, and three entries" eval '[ "$(grep -c "^> *\"content\": \"<|" diff.txt)" = 3 ] && [ "$(grep -c "^<" diff.txt)" -le 1 ]'
is "its ids are those that were trained on" eval 'echo "{\"text\": \"<|ask|>\"}" | "$BUILD/tokenize" --model a1/checkpoint-final | grep -qF "[300]"'
is "what is saved is a model of its own" eval '"$BUILD/finetune_full" --model a1/checkpoint-final --dataset rows.jsonl --max-length 48 --max-steps 1 --output c1 >c1.out && ! grep -q "added tokens" c1.out'
is "tokens that are there are not added again" eval '"$BUILD/finetune_full" --model a1/checkpoint-final --dataset rows.jsonl --max-length 48 --max-steps 1 --add-tokens "$more" --output d1 >d1.out && cmp a1/checkpoint-final/tokenizer.json d1/checkpoint-final/tokenizer.json && grep -q "has rows for them: 303" d1.out'
cat >tokenizer_config.json <<'END'
{"tokenizer_class": "PreTrainedTokenizerFast", "added_tokens_decoder": {"2": {"content": "<|im_end|>", "special": true}}}
END
cp -r model older && cp tokenizer_config.json older && echo '{"<|im_end|>": 2}' >older/added_tokens.json
is "older files have them too" eval 'run finetune_full e1 --model older --max-steps 1 && tr -d " \n\t" <e1/checkpoint-final/tokenizer_config.json | grep -qF "\"301\":{\"content\":\"<|say|>\"" && tr -d "\n\t" <e1/checkpoint-final/added_tokens.json | grep -q "\"<|end of it|>\": *302"'
is "an adapter is merged with its rows and its tokenizer" eval '"$BUILD/merge_adapter" --model model --adapter a2/checkpoint-final --output merged >merged.out && grep -q "the vocabulary has 303 rows now" merged.out && cmp merged/tokenizer.json a2/checkpoint-final/tokenizer.json && grep -q "\"vocab_size\":[^0-9]*303" merged/config.json'
loss_of() { sed -n '1s/.*"loss":\([-0-9.e]*\).*/\1/p' "$1/metrics.jsonl"; }
is "the merged model computes what base and adapter do" eval 'run finetune_lora f1 --adapter a2/checkpoint-final --lr 0 --max-steps 1 --no-save && run finetune_full f2 --model merged --lr 0 --max-steps 1 --no-save && near "$(loss_of f1)" "$(loss_of f2)"'
printf '%s\n' '{"prompt": "<|ask|>a", "chosen": "<|say|>b", "rejected": "c"}' '{"prompt": "<|ask|>d", "chosen": "e", "rejected": "<|say|>f"}' >pairs.jsonl
is "preferences, too" eval '"$BUILD/finetune_dpo" --model model --dataset pairs.jsonl --max-length 48 --max-steps 2 --threads 2 --add-tokens "$more" $both --output g --append-token none >g.out 2>&1 || { tail -n 3 g.out; false; }'
is "rows to spare are used" eval 'tiny spare 1 --vocab-size 400 >/dev/null && cp model/tokenizer.json spare && run finetune_lora h1 --model spare --max-steps 1 --lora-r 2 --modules-to-save embed_tokens && grep -q "has rows for them: 400" h1.out'
lora() { "$BUILD/finetune_lora" --model model --dataset rows.jsonl --max-length 48 --output x "$@"; }
refused "an adapter that does not train the new rows" 2 "get 3 new rows, which an adapter does not train; add --modules-to-save embed_tokens,lm_head" lora --add-tokens "$more"
refused "... nor the head's" 2 "add --modules-to-save embed_tokens,lm_head" lora --add-tokens "$more" --modules-to-save embed_tokens
refused "... nor the embedding of tokens with rows" 2 "add --modules-to-save embed_tokens" lora --model spare --add-tokens "$more" --modules-to-save lm_head
refused "an adapter of more tokens, without them" 2 "tokens were added to its tokenizer: give them with --add-tokens, in the same order" lora --adapter a2/checkpoint-final
refused "a token twice" 2 'the token to add "<|a|>": it is named twice' lora --add-tokens '<|a|>,<|a|>'
refused "gone on with other tokens" 2 "add-tokens" "$BUILD/finetune_full" --resume b1 --add-tokens '<|other|>'

# ---- a tokenizer with a token that the model has no row for: only a row that uses it is refused ----
cp -r model beyond && cp a1/checkpoint-final/tokenizer.json beyond/
beyond() { "$BUILD/finetune_full" --model beyond --dataset "$1" --max-length 48 --max-steps 1 --output "$2" >"$2.out" 2>&1 || { tail -n 3 "$2.out"; return 1; }; }
printf '{"text": "number 1"}\n{"text": "number 2"}\n' >without.jsonl
is "tokens beyond the vocabulary that no row uses" beyond without.jsonl beyond1
is "are named" grep -q "^# warning: tokenizer .*vocabulary has 300 rows, and none for <|ask|>, <|say|>, <|end of it|>: a row" beyond1.out
is "a row that uses one is refused" eval '! beyond rows.jsonl beyond2 && grep -q "rows.jsonl:1: the text has the token \"<|ask|>\" (id 300), and the model.s vocabulary has 300 rows" beyond2.out'
refused "a prompt, too" 1 'the text has the token "<|say|>" (id 301)' "$BUILD/generate" --model beyond --prompt 'x<|say|>'
is "tokenize shows them" eval 'echo "{\"text\": \"<|ask|>\"}" | "$BUILD/tokenize" --model beyond | grep -qF "[300]"'
sed -i 's/"vocab_size":[^0-9]*300/"vocab_size": 200/' beyond/config.json
refused "other tokens than added ones" 1 "they do not belong together" "$BUILD/finetune_full" --model beyond --dataset without.jsonl --output beyond3

is "nothing is left of what was refused" [ ! -e x ]
finish
