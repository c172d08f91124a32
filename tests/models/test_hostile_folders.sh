#!/bin/sh
# test_hostile_folders.sh - model folders that lie, are huge, or are no folders of files at all: refused within seconds and in bounded
# memory, by a message that names the file, with exit code 1. What real folders do (links into a cache) works.
. tests/tap.sh
data=$here/datasets/stories.jsonl
cd "$tmp" || exit 1
tiny model 1 --dtype float32 >/dev/null
head -5 "$data" >rows.jsonl

# cheap NAME TEXT COMMAND... - refused with exit code 1 and that text, in at most 20 s of processor time and 1.5 GB of memory.
seconds=20 # of processor time
! sanitized || seconds=60
cheap() {
    cheap_name=$1 cheap_text=$2
    shift 2
    refused "$cheap_name" 1 "$cheap_text" quick $seconds within 1500000 timeout 300 "$@"
}
# root reads everything: what cannot be read is tried as nobody, where nobody reaches the programs
as= nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
[ "$(id -u)" != 0 ] || { chmod 755 "$tmp" && $nobody test -x "$BUILD/finetune_full" 2>/dev/null && as=$nobody; }
fit() { cheap "$1" "$2" $as "$BUILD/finetune_full" --threads 1 --model "$3" --dataset rows.jsonl --max-length 32 --max-steps 1 --output run; }
tokens() { cheap "$1" "$2" "$BUILD/tokenize" --model "$3"; }
# copied NAME - a copy of the model, to be spoilt
copied() { rm -rf "$1" && cp -r model "$1"; }
# le64 N - eight bytes, little-endian
le64() { n=$1 i=0; while [ $i -lt 8 ]; do printf "\\$(printf %o $((n % 256)))"; n=$((n / 256)) i=$((i + 1)); done; }
# header TEXT FILE - a weight file of that header
header() { { le64 ${#1}; printf %s "$1"; } >"$2"; }

# ---- what is no hostility ----
mkdir -p hub/blobs hub/snapshots/0a
for f in model/*; do cp "$f" "hub/blobs/b-$(basename "$f")" && ln -s "../../blobs/b-$(basename "$f")" "hub/snapshots/0a/$(basename "$f")"; done
is "links into a cache's blobs" "$BUILD/finetune_full" --model hub/snapshots/0a --dataset rows.jsonl --max-length 32 --max-steps 1 --output linked

# ---- what is not a file ----
for f in config.json model.safetensors tokenizer.json; do
    copied odd && rm -f odd/$f && mkfifo odd/$f
    fit "$f is a pipe" "odd/$f is not a regular file" odd
    copied odd && rm -f odd/$f && ln -s /dev/zero odd/$f
    fit "$f is a device" "odd/$f is not a regular file" odd
    copied odd && rm -f odd/$f && mkdir odd/$f
    fit "$f is a folder" "odd/$f is a folder" odd
    copied odd && rm -f odd/$f && : >odd/$f
    fit "$f is empty" "odd/$f" odd
    copied odd && rm -f odd/$f && ln -s $f odd/$f
    fit "$f is a link to itself" "odd" odd
    if [ "$(id -u)" = 0 ] && [ -z "$as" ]; then skip "$f cannot be read" "root reads everything"; else
        copied odd && rm -f odd/$f && cp model/$f odd/$f && chmod 000 odd/$f
        fit "$f cannot be read" "odd/$f" odd
    fi
done
copied odd && rm odd/model.safetensors && mkfifo odd/model.safetensors.index.json
fit "the index is a pipe" "not a regular file" odd

# ---- config.json ----
copied config && truncate -s 100M config/config.json
fit "a config.json of 100 MB" "config/config.json has 104857600 bytes, more than" config
{ printf '{"a":'; head -c 2000000 /dev/zero | tr '\0' '['; } >config/config.json
fit "two million brackets" "nested deeper" config
sed 's/"rms_norm_eps":[^,]*/"rms_norm_eps": NaN/' model/config.json >config/config.json
fit "NaN is no JSON: file, line and column" "config/config.json:" config
sed 's/"rms_norm_eps":[^,]*/"rms_norm_eps": "NaN"/' model/config.json >config/config.json
fit "nor a number in quotes" "expected a number" config
sed 's/"hidden_size":[^,]*/"hidden_size": 1e999/' model/config.json >config/config.json
fit "an infinite size" "hidden_size" config
sed 's/"hidden_size":[^,]*/"hidden_size": 131072/; s/"vocab_size":[^,]*/"vocab_size": 16777216/; s/"num_hidden_layers":[^,]*/"num_hidden_layers": 1024/' model/config.json >config/config.json
refused "a model of ten trillion weights: nothing is allocated" 3 "not enough memory" quick $seconds within 1500000 timeout 300 \
    "$BUILD/finetune_full" --model config --dataset rows.jsonl --max-length 32 --max-steps 1 --output run

# ---- model.safetensors ----
copied weights && rm weights/model.safetensors
put() { header "$1" weights/model.safetensors; }
put '{"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,0]}}'
fit "a tensor of 2^63 elements" "weights/model.safetensors:1:" weights
put '{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}'
fit "a shape whose product overflows" "overflows" weights
{ le64 520000000; printf '{'; } >weights/model.safetensors && truncate -s 600M weights/model.safetensors
fit "the header of ten million entries" "a header of 520000000 bytes, more than the format's 100000000" weights
awk 'BEGIN { printf "{"; for (i = 0; i < 1700000; i++) printf "%s\"%d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", i ? "," : "", i; printf "}" }' >names
{ le64 $(wc -c <names); cat names; } >weights/model.safetensors
fit "as many entries as a header can have" "weights: no tensor" weights
# the same file under many names
mkdir many && cp model/*.json many && mv weights/model.safetensors many/big
{
    printf '{"weight_map":{'
    i=0
    while [ $i -lt 60 ]; do
        ln -s big many/$i.safetensors
        printf '%s"%d":"%d.safetensors"' "$([ $i = 0 ] || echo ,)" $i $i
        i=$((i + 1))
    done
    printf '}}'
} >many/model.safetensors.index.json
fit "sixty links to it: memory is not multiplied" "together" many
rm -rf many names

# ---- the index ----
copied index && rm index/model.safetensors && truncate -s 40M index/model.safetensors.index.json
fit "an index of 40 MB" "model.safetensors.index.json has 41943040 bytes, more than" index
awk 'BEGIN { printf "{\"weight_map\":{"; for (i = 0; i < 2000; i++) printf "%s\"x\":\"%d.safetensors\"", i ? "," : "", i; printf "}}" }' >index/model.safetensors.index.json
header '{"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}' index/one
i=0 && while [ $i -lt 1100 ]; do ln -s one index/$i.safetensors; i=$((i + 1)); done
fit "two thousand shards" "names more than 1024 files" index
for folder in .. "$tmp"; do # it is there, and holds the tensor
    echo "{\"weight_map\":{\"model.norm.weight\":\"$folder/model/model.safetensors\"}}" >index/model.safetensors.index.json
    fit "a shard outside the folder" "model/model.safetensors\" is not the name of a file in this folder" index
done

# ---- tokenizer.json ----
copied words && truncate -s 500M words/tokenizer.json
tokens "a tokenizer.json of 500 MB" "words/tokenizer.json has 524288000 bytes, more than" words
stages='{"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},'
many() { yes "$1" | head -n "$2" | tr -d '\n'; }
{ printf '%s"model":{"vocab":{"a":0,"aa":1},"merges":[' "$stages"; many '"a a",' 10000000; printf '"a a"]}}'; } >words/tokenizer.json
tokens "ten million merges" "more than 4194304 merges" words
{ printf '%s"added_tokens":[' "$stages"; many '{"content":"a"},' 2000000; printf '{}]}'; } >words/tokenizer.json
tokens "no model" 'no "model"' words
{ printf '%s"added_tokens":[' "$stages"; many '{"content":"a"},' 2000000; printf '{}],"model":{"vocab":{},"merges":[]}}'; } >words/tokenizer.json
tokens "two million added tokens" "more than 1048576 added tokens" words
{ printf '%s"added_tokens":[{"content":"' "$stages"; head -c 100000000 /dev/zero | tr '\0' x; printf '"}],"model":{"vocab":{},"merges":[]}}'; } >words/tokenizer.json
tokens "an added token of 100 MB" "an added token of 100000000 bytes" words
{ printf '{'; many '"x":0,' 15000000; printf '"y":0}'; } >words/tokenizer.json
tokens "fifteen million keys nobody knows" 'no "model"' words
{ printf '%s"model":{"vocab":{"' "$stages"; head -c 100000000 /dev/zero | tr '\0' x; printf '":0},"merges":[]}}'; } >words/tokenizer.json
echo '{"text":"x"}' >line
is "a vocabulary of one word of 100 MB is one" quick $seconds within 1500000 timeout 300 sh -c '"$0" --model words <line' "$BUILD/tokenize"
finish
