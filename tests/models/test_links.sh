#!/bin/sh
# test_links.sh - links in model, adapter and checkpoint folders lead inside the folder or into the Hub cache's blobs. No
# private file gets into a checkpoint or a merged folder, and copies of the small files keep their permissions.
. tests/tap.sh
data=$here/datasets/stories.jsonl
cd "$tmp" || exit 1
umask 022
HF_HUB_CACHE=$tmp/hub
export HF_HUB_CACHE
tiny model 1 --dtype float32 >/dev/null && head -5 "$data" >rows.jsonl
mkdir private && echo hf_PRIVATE >private/token && chmod 600 private/token && echo '{"key": "hf_PRIVATE"}' >private/secret.json
cp model/model.safetensors private/weights

fit() { m=$1 o=$2; shift 2; timeout 300 "$BUILD/finetune_full" --threads 1 --model "$m" --dataset rows.jsonl --max-length 32 --max-steps 1 --output "$o" "$@"; }
lora() { m=$1 o=$2; shift 2; timeout 300 "$BUILD/finetune_lora" --threads 1 --model "$m" --dataset rows.jsonl --max-length 32 --max-steps 1 --output "$o" "$@"; }
fresh() { rm -rf odd out && cp -r model odd; }
no_private() { ! grep -rqs hf_PRIVATE out odd/nothing; }
mode() { stat -c %a "$1"; }
has_mode() { [ "$(mode "$1")" = "$2" ] || { echo "$1: $(mode "$1"), expected $2"; return 1; }; }

# ---- links that lead out of the folder ----
for f in special_tokens_map.json added_tokens.json vocab.json merges.txt tokenizer.model chat_template.jinja generation_config.json \
    tokenizer_config.json config.json tokenizer.json; do
    for target in "$tmp/private/secret.json" ../private/secret.json; do
        fresh && ln -sfn "$target" odd/$f
        refused "$f -> ${target%%private*}private/secret.json" 1 "odd/$f leads to $(realpath private/secret.json)" fit odd out
        is "$f: nothing of it is in the run" no_private
    done
done
fresh && ln -s ../private/token odd/added_tokens.json
refused "finetune_lora refuses one too" 1 "odd/added_tokens.json leads to" lora odd out
rm -rf out && lora model adapted >/dev/null 2>&1
refused "merge_adapter refuses one too" 1 "odd/added_tokens.json leads to" "$BUILD/merge_adapter" --model odd --adapter adapted/checkpoint-final --output out
is "and leaves no folder" test ! -e out
fresh && mv odd/model.safetensors private/moved && ln -s ../private/moved odd/model.safetensors
refused "model.safetensors: the message says what may be" 1 "links may lead only inside the folder or into the Hub cache's blobs" fit odd out
refused "and what to do" 1 "cp --remove-destination $(realpath private/moved) odd/model.safetensors" fit odd out
rm odd/model.safetensors && cp private/moved odd/model.safetensors
is "after that the run goes" fit odd out
fresh && ln -s ../private odd/sub && ln -sf sub/secret.json odd/added_tokens.json
refused "through a folder's link" 1 "odd/added_tokens.json leads to" fit odd out
fresh && ln -sf inner odd/added_tokens.json && ln -s ../private/secret.json odd/inner
refused "a chain that ends outside" 1 "odd/added_tokens.json leads to" fit odd out
fresh && mkdir odd/.git && echo 'url = https://me:hf_PRIVATE@huggingface.co' >odd/.git/config && ln -s .git/config odd/merges.txt
refused "the clone's .git/config, which may hold a token" 1 "$(realpath odd)/.git/config, which is git's own" fit odd out
is "... it is not in the run" sh -c '! grep -rqs hf_PRIVATE out'
fresh && mkdir -p odd/.git/annex/objects && echo '#version: 0.2' >odd/.git/annex/objects/key && ln -s .git/annex/objects/key odd/merges.txt
is "what git-annex keeps there is the model's" fit odd out
fresh && ln -s /nowhere odd/added_tokens.json
refused "a link to nothing is named with its target" 1 "odd/added_tokens.json, a link to /nowhere" fit odd out
fresh && ln -s "$tmp/odd-secret" odd/added_tokens.json && echo '{}' >odd-secret
refused "a neighbour whose name begins as the folder's" 1 "odd/added_tokens.json leads to" fit odd out
mkdir templates && echo 'hf_PRIVATE' >templates/tool_use.jinja
fresh && ln -s ../templates odd/additional_chat_templates
echo '{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}' >chat.jsonl
refused "a folder of templates" 1 "odd/additional_chat_templates/tool_use.jinja leads to" \
    "$BUILD/finetune_full" --model odd --dataset chat.jsonl --chat-template chatml --max-length 32 --max-steps 1 --output out
fresh && rm odd/model.safetensors && ln -s ../private/weights odd/model-00001-of-00001.safetensors
echo '{"weight_map":{"model.norm.weight":"model-00001-of-00001.safetensors"}}' >odd/model.safetensors.index.json
refused "a shard" 1 "odd/model-00001-of-00001.safetensors leads to" fit odd out
for f in adapter_config.json adapter_model.safetensors; do
    rm -rf odd && cp -rL adapted/checkpoint-final odd && mv odd/$f private/$f && ln -s ../private/$f odd/$f
    refused "an adapter's $f" 1 "odd/$f leads to" "$BUILD/merge_adapter" --model model --adapter odd --output out
done
rm -rf odd && lora model odd --max-steps 2 --stop-at-step 1 >/dev/null 2>&1
state=odd/checkpoint-1/state/optimizer.safetensors && mv $state private/optimizer && ln -s ../../../private/optimizer $state
refused "a checkpoint's state" 1 "state/optimizer.safetensors leads to" "$BUILD/finetune_lora" --resume odd

# ---- what is no file ----
for f in added_tokens.json tokenizer.model chat_template.jinja; do
    fresh && mkfifo odd/$f
    refused "$f is a pipe: nothing waits" 1 "odd/$f is not a regular file" fit odd out
    fresh && ln -s /dev/zero odd/$f
    refused "$f is a device" 1 "odd/$f is not a regular file" fit odd out
done
fresh && truncate -s 300G odd/tokenizer.model
refused "an auxiliary file of 300 GB" 1 "odd/tokenizer.model has 322122547200 bytes, more than" quick 20 within 1500000 timeout 300 \
    "$BUILD/finetune_full" --threads 1 --model odd --dataset rows.jsonl --max-length 32 --max-steps 1 --output out

# ---- what is not what its name says ----
fresh && { printf '{"a":'; head -c 1000000 /dev/zero | tr '\0' '['; } >odd/generation_config.json
refused "a million brackets in generation_config.json" 1 "odd/generation_config.json:1:" fit odd out
is "and no run folder keeps a copy" sh -c '! find out -name generation_config.json 2>/dev/null | grep -q .'
for f in special_tokens_map.json added_tokens.json vocab.json generation_config.json; do
    fresh && echo 'root:x:0:0' >odd/$f
    refused "$f is no JSON" 1 "odd/$f:1:" fit odd out
done
for f in merges.txt chat_template.jinja; do
    fresh && printf 'a\377b' >odd/$f
    refused "$f is no UTF-8" 1 "odd/$f: not UTF-8" fit odd out
    fresh && printf 'a\0b' >odd/$f
    refused "$f holds a NUL" 1 "odd/$f: not UTF-8" fit odd out
done

# ---- what goes on working ----
fresh && mkdir odd/below && printf '\001\000\377 bytes' >odd/below/deep && ln -s below/deep odd/tokenizer.model
ln -s link odd/added_tokens.json && ln -s below/../below/more odd/link && echo '{"\ud800": 1}' >odd/below/more
is "links inside the folder, also in chains" fit odd out
is "tokenizer.model is copied byte for byte" cmp odd/below/deep out/checkpoint-final/tokenizer.model
is "and as a file" test ! -L out/checkpoint-final/tokenizer.model
ln -s odd named && rm -rf out
is "the folder itself is named by a link" fit named out
rm -rf out && ln -s "$tmp" up
is "and by a path through one" fit up/odd/ out
rm -rf out
is "and from within, as ." sh -c 'cd model && exec "$0" --model . --dataset ../rows.jsonl --max-length 32 --max-steps 1 --output ../out' "$BUILD/finetune_full"
repository=hub/models--Org--Tiny/ commit=0123456789abcdef0123456789abcdef01234567
mkdir -p $repository/blobs $repository/refs $repository/snapshots/$commit/deep && printf $commit >$repository/refs/main
for f in model/*; do
    cp "$f" "$repository/blobs/b-${f##*/}" && ln -s "../../blobs/b-${f##*/}" "$repository/snapshots/$commit/${f##*/}"
    ln -s "../../../blobs/b-${f##*/}" "$repository/snapshots/$commit/deep/${f##*/}"
done
mkdir -p Org/another; rm -rf out; is "a snapshot by its id, beside a folder of the same owner" fit Org/Tiny out
rm -rf out; is "a snapshot in the Hub cache, by its path" fit $repository/snapshots/$commit out
rm -rf out; is "a folder below a snapshot" fit $repository/snapshots/$commit/deep out
rm -rf out; is "the snapshot by its id" fit Org/Tiny out
mkdir local && for f in model/*; do ln -s "$tmp/$repository/blobs/b-${f##*/}" "local/${f##*/}"; done
rm -rf out; is "a local folder of links into the cache, as older Hub clients make" fit local out
rm -rf out; refused "which is no cache where HF_HUB_CACHE says another" 1 "leads to" env HF_HUB_CACHE="$tmp/nothing" "$BUILD/finetune_full" --model local \
    --dataset rows.jsonl --max-length 32 --max-steps 1 --output out
rm $repository/blobs/b-config.json && ln -s ../../../private/secret.json $repository/blobs/b-config.json
refused "a blob that is a link out of the cache" 1 "leads to" fit local out
rm -rf trap && mkdir -p trap/snapshots && cp -r model trap/snapshots/0a && ln -s ../private trap/blobs
ln -s ../../blobs/secret.json trap/snapshots/0a/added_tokens.json
refused "blobs that are a link out of the repository" 1 "leads to" fit trap/snapshots/0a out

# ---- permissions ----
fresh && chmod 600 odd/config.json odd/generation_config.json && chmod 640 odd/tokenizer.json && chmod 400 odd/tokenizer_config.json
fit odd out --max-steps 2 --stop-at-step 1 >/dev/null 2>&1
for f in config.json:600 generation_config.json:600 tokenizer.json:640 tokenizer_config.json:400; do
    is "a checkpoint's ${f%:*} keeps ${f#*:}" has_mode "out/checkpoint-1/${f%:*}" "${f#*:}"
done
is "also where the run goes on" "$BUILD/finetune_full" --resume out
is "in the later checkpoint" has_mode out/checkpoint-2/config.json 600
rm -rf out; fit odd out --save-dtype bfloat16 >/dev/null 2>&1
is "config.json in another dtype" eval 'grep -q bfloat16 out/checkpoint-1/config.json && has_mode out/checkpoint-1/config.json 600'
rm -rf out; lora odd out >/dev/null 2>&1
is "beside an adapter" eval 'has_mode out/checkpoint-1/tokenizer.json 640 && has_mode out/checkpoint-1/state/config.json 600'
is "in a merged folder" eval '"$BUILD/merge_adapter" --model odd --adapter out/checkpoint-1 --output merged && has_mode merged/config.json 600 && has_mode merged/tokenizer.json 640'
rm -rf out; (umask 077 && fit model out >/dev/null 2>&1)
is "never wider than the umask lets" has_mode out/checkpoint-1/tokenizer.json 600
finish
