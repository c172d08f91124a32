#!/bin/sh
# test_export_gguf.sh - export_gguf: what each family's file has, what is refused, and that a file is whole or absent. (That
# llama.cpp answers the same: tests/peers/gguf_llama_peer.py.)
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
reference=$here/tests/reference
mkdir -p "$BUILD/tests" && $CC -std=c11 -D_GNU_SOURCE -O1 -o "$BUILD/tests/fault" tests/faults/fault.c || exit 1
cd "$tmp" || exit 1

export_gguf() { "$BUILD/export_gguf" "$@" >said.txt; }
show() { "$BUILD/export_gguf" --show "$1"; }
# has FILE LINE - one line of --show is exactly that, but for the place of a tensor.
has() { show "$1" | sed 's/ at [0-9]*$//' | grep -qxF -- "$2" || { show "$1" | head -n 60; return 1; }; }
lacks() { ! show "$1" | grep -q -- "$2"; }
# bytes FILE NAME - a tensor's data; of a .gguf with float32.
bytes() {
    place=$(show "$1" | sed -n "s/^$2 F32 \[\([0-9,]*\)\] at \([0-9]*\)$/\1 \2/p")
    [ -n "$place" ] && tail -c +$((${place#* } + 1)) "$1" | head -c $((4 * $(echo "${place% *}" | sed 's/,/ * /')))
}
# held FOLDER NAME - the same of model.safetensors.
held() {
    f=$1/model.safetensors header=$(head -c 8 "$1/model.safetensors" | od -An -tu8 | tr -d ' ')
    at=$(head -c $((8 + header)) "$f" | grep -ao "\"$2\":{[^}]*}" | sed 's/.*"data_offsets":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/')
    [ -n "$at" ] && tail -c +$((9 + header + ${at% *})) "$f" | head -c $((${at#* } - ${at% *}))
}
# rows FILE BYTES NUMBER... - these rows of so many bytes, in this order.
rows() {
    from=$1 size=$2
    shift 2
    for r in "$@"; do tail -c +$((r * size + 1)) "$from" | head -c "$size"; done
}
numbers() { od -An -v -tf4 -w4; }

# ---- names and order ----
is "llama" export_gguf --model "$reference/llama-tied" tied.gguf --type f32
is "says what it has" grep -qx "tensors: [0-9]* F32" said.txt
is "and that there is no tokenizer" grep -q "has no tokenizer.json" said.txt
is "its architecture" has tied.gguf "general.architecture = llama"
is "its embedding" has tied.gguf "token_embd.weight F32 [67,16]"
is "a tied head is left out" lacks tied.gguf "^output.weight"
is "which an untied one is not" eval 'export_gguf --model "$reference/llama-untied" untied.gguf --type f32 && has untied.gguf "output.weight F32 [67,16]"'
# Heads of 4 rows: 0 1 2 3 become 0 2 1 3.
permuted() { # FILE FOLDER NAME IN_GGUF HEADS ROW_BYTES
    held "$2" "$3" >was.bin && bytes "$1" "$4" >now.bin || return 1
    order=
    for h in $(seq 0 $(($5 - 1))); do order="$order $((4 * h)) $((4 * h + 2)) $((4 * h + 1)) $((4 * h + 3))"; done
    rows was.bin "$6" $order >want.bin && [ -s want.bin ] && cmp want.bin now.bin && ! cmp -s was.bin now.bin
}
layer=model.layers.1.self_attn
is "rows of q are permuted" permuted tied.gguf "$reference/llama-tied" $layer.q_proj.weight blk.1.attn_q.weight 4 64
is "rows of k are permuted, by its own heads" permuted tied.gguf "$reference/llama-tied" $layer.k_proj.weight blk.1.attn_k.weight 2 64
same() { held "$2" "$3" >was.bin && bytes "$1" "$4" >now.bin && [ -s was.bin ] && cmp was.bin now.bin; }
is "those of v are not" same tied.gguf "$reference/llama-tied" $layer.v_proj.weight blk.1.attn_v.weight
is "biases" export_gguf --model "$reference/llama-biases" biases.gguf --type f32
is "of q are permuted, too" permuted biases.gguf "$reference/llama-biases" $layer.q_proj.bias blk.1.attn_q.bias 4 4
is "of the MLP have names" has biases.gguf "blk.0.ffn_gate.bias F32 [24]"
refused "smollm3 with other layers than each fourth without rotary embedding" 1 "llama.cpp leaves out the rotary embedding of each fourth layer" "$BUILD/export_gguf" --model "$reference/smollm3" x.gguf
for family in mistral granite smollm3; do
    cp -r "$reference/$family" $family && chmod -R u+w $family && tr -d '\n' <"$reference/$family/config.json" | sed 's/"no_rope_layers": *\[[^]]*\]/"no_rope_layers": [1, 1, 1]/' >$family/config.json
    is "$family" export_gguf --model $family $family.gguf --type f32
    is "$family: rows of q are permuted" permuted $family.gguf $family $layer.q_proj.weight blk.1.attn_q.weight 4 64
done
is "granite's multipliers are keys" eval 'show granite.gguf | grep -q "^granite.logit_scale = " && show granite.gguf | grep -q "^granite.residual_scale = "'
is "a window that llama.cpp lacks is said" eval 'export_gguf --model "$reference/mistral" again.gguf && grep -q "llama.cpp has no windows for \"llama\": in 2 layers" said.txt'
cp -r "$reference/qwen2-window" qwen2 && chmod -R u+w qwen2
is "qwen2" export_gguf --model qwen2 qwen2.gguf --type f32
is "qwen2: rows of q stay" same qwen2.gguf qwen2 $layer.q_proj.weight blk.1.attn_q.weight
is "qwen2: its biases are there" has qwen2.gguf "blk.1.attn_v.bias F32 [8]"
is "qwen3 has norms of q and k" eval 'export_gguf --model "$reference/qwen3" qwen3.gguf && has qwen3.gguf "blk.0.attn_q_norm.weight F32 [6]"'
is "phi3 has q, k and v in one" eval 'export_gguf --model "$reference/phi3-long" phi3.gguf --type f32 && has phi3.gguf "blk.0.attn_qkv.weight F32 [64,32]"'
is "phi3 has gate and up in one" has phi3.gguf "blk.0.ffn_up.weight F32 [48,32]"
is "longrope is two tensors" eval 'bytes phi3.gguf rope_factors_long.weight | numbers | tr -d " \n" | grep -qx 1.534.5 && has phi3.gguf "rope_factors_short.weight F32 [3]"'

# ---- rotary embeddings ----
is "llama3's scaling" export_gguf --model "$reference/llama-rope-llama3" rope.gguf --type f32
is "is a tensor of divisors" eval 'bytes rope.gguf rope_freqs.weight | numbers | awk "{ low += \$1 == 1; more += \$1 > 1 } END { exit !(low && more && low + more == 4) }"'
is "linear scaling is a key" eval 'export_gguf --model "$reference/llama-rope-linear" linear.gguf && has linear.gguf "llama.rope.scaling.type = linear"'
cp -r "$reference/llama-tied" roped && chmod -R u+w roped && sed 's/"rope_parameters": {/"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 16, "rope_theta": 10000}, "was": {/' \
    "$reference/llama-tied/config.json" >roped/config.json
is "an adapter for such a base" export_gguf --model roped --adapter "$reference/adapters/lora-layer" layer.gguf
is "has no rope_freqs" eval 'show layer.gguf | grep -q lora_a && lacks layer.gguf rope_freqs'
is "which the model has" eval 'export_gguf --model roped roped.gguf && show roped.gguf | grep -q ^rope_freqs'

# ---- gemma ----
refused "gemma3 with a scale that llama.cpp does not read" 1 "llama.cpp has no key for the attention's scale, and takes" "$BUILD/export_gguf" --model "$reference/gemma3" x.gguf
cp -r "$reference/gemma3" gemma && chmod -R u+w gemma && sed 's/"query_pre_attn_scalar": 9/"query_pre_attn_scalar": 6/' "$reference/gemma3/config.json" >gemma/config.json
is "gemma3" export_gguf --model gemma gemma.gguf --type f32
plus_one() { held gemma model.norm.weight | numbers >was.txt && bytes gemma.gguf output_norm.weight | numbers >now.txt && paste was.txt now.txt | awk '{ d = $2 - $1 - 1; bad += d > 1e-6 || d < -1e-6 } END { exit bad || NR != 16 }'; }
is "norms count from 0 in the file" plus_one
is "norms behind attention and MLP have names" eval 'has gemma.gguf "blk.0.post_attention_norm.weight F32 [16]" && has gemma.gguf "blk.0.post_ffw_norm.weight F32 [16]"'
is "the window and its angles are keys" eval 'has gemma.gguf "gemma3.attention.sliding_window = 7" && has gemma.gguf "gemma3.rope.freq_base_swa = 10000"'

# ---- what llama.cpp cannot do ----
refused "olmo2 with biases" 1 'llama.cpp has no bias of attn_output ("attention_bias") for "olmo2"' "$BUILD/export_gguf" --model "$reference/olmo2" x.gguf
sed 's/"model_type": "llama"/"model_type": "gpt_neox"/' roped/config.json >roped/config.new && mv roped/config.new roped/config.json
refused "another family: what there is" 1 'model_type "gpt_neox" is not supported; supported: llama' "$BUILD/export_gguf" --model roped x.gguf

# ---- types ----
tiny wide 1 --layers 8 --hidden-size 256 --intermediate-size 512 >/dev/null || exit 1
tiny narrow 2 --hidden-size 96 --intermediate-size 256 >/dev/null || exit 1
refused "a tokenizer of one's own is not guessed" 2 "if its vocabulary alone is another, give --pre smollm" "$BUILD/export_gguf" --model wide x.gguf
is "its hash is named" grep -qE 'have the SHA-256 [0-9a-f]{64}\.' complained
is "q4_k_m" export_gguf --model wide mixed.gguf --type q4_k_m --pre smollm
is "has more bits in layers 0, 3, 6 and 7, and the head" eval 'show mixed.gguf | grep Q6_K | sed "s/ Q6_K.*//" | sort | tr "\n" " " >got && echo "blk.0.attn_v.weight blk.0.ffn_down.weight blk.3.attn_v.weight blk.3.ffn_down.weight blk.6.attn_v.weight blk.6.ffn_down.weight blk.7.attn_v.weight blk.7.ffn_down.weight token_embd.weight " | tr -d "\n" | cmp - got'
is "which is said with counts" grep -qE '^tensors: 17 F32, 9 Q6_K, 48 Q4_K; more bits' said.txt
is "vectors stay float32" eval '! show mixed.gguf | grep norm.weight | grep -v " F32 "'
is "the file says its type" eval 'has mixed.gguf "general.file_type = 15" && has mixed.gguf "general.quantization_version = 2"'
is "rows that 256 does not divide" export_gguf --model narrow narrow.gguf --type q4_k_m --pre smollm
is "take other types, which is said" grep -qx "blocks do not divide the rows of [0-9]* tensors: Q8_0 in place of Q6_K ([0-9]*), Q5_0 in place of Q4_K ([0-9]*), as in llama.cpp" said.txt
is "and those that it does take theirs" eval 'show narrow.gguf | grep ffn_down | grep -q _K'
is "rows that 32 does not divide become F16" eval 'export_gguf --model "$reference/llama-tied" x.gguf --type q8_0 && has x.gguf "blk.0.attn_q.weight F16 [16,16]" && rm x.gguf'
is "q5_k_m: the same choice" eval 'export_gguf --model wide five.gguf --type q5_k_m --pre smollm && grep -qE "^tensors: 17 F32, 9 Q6_K, 48 Q5_K; more bits" said.txt && has five.gguf "general.file_type = 17" && show five.gguf | grep Q6_K | sed "s/ Q6_K.*//" | sort | tr "\n" " " | cmp - got'
tiny 80 3 --layers 80 >/dev/null || exit 1
is "80 layers with shared heads: attn_v has more bits" eval 'export_gguf --model 80 x.gguf --type q4_k_m --pre smollm && grep -q "Q5_1 in place of Q5_K (40)" said.txt && has x.gguf "blk.11.attn_v.weight Q5_1 [32,64]" && has x.gguf "blk.11.attn_k.weight Q5_0 [32,64]" && rm -r x.gguf 80'
for type in f32 f16 bf16 q8_0 q4_0 q5_0 q5_1 q6_k q4_k; do
    is "$type" export_gguf --model wide $type.gguf --type $type --pre smollm
    is "$type: matrices" eval 'show $type.gguf | grep -q "^blk.1.attn_q.weight $(echo $type | tr a-z A-Z) "'
done
is "as read" eval 'export_gguf --model wide read.gguf --pre smollm && cmp read.gguf bf16.gguf'
is "threads change no bit" eval 'OMP_NUM_THREADS=3 export_gguf --model wide three.gguf --type q4_k_m --pre smollm && cmp mixed.gguf three.gguf'

# ---- tokenizer ----
cp -r "$reference/adapters/lora-untied" named && chmod -R u+w named && sed "s|\"base_model_name_or_path\": \"[^\"]*\"|\"base_model_name_or_path\": \"$reference/llama-untied\"|" "$reference/adapters/lora-untied/adapter_config.json" >named/adapter_config.json
is "the tokenizer" has f32.gguf "tokenizer.ggml.pre = smollm"
is "no BOS that the tokenizer does not add" has f32.gguf "tokenizer.ggml.add_bos_token = 0"
is "its merges" eval 'show f32.gguf | grep -q "^tokenizer.ggml.merges = "'
cp -r narrow begin && sed 's/"post_processor": [^\n]*$/"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {"<|im_start|>": {"id": "<|im_start|>", "ids": [1], "tokens": ["<|im_start|>"]}}},/' narrow/tokenizer.json >begin/tokenizer.json
sed 's/"bos_token": "<|endoftext|>"/"bos_token": "<|im_start|>"/' narrow/tokenizer_config.json >begin/tokenizer_config.json
is "a BOS that it adds" export_gguf --model begin begin.gguf --pre smollm
is "is added once" eval 'has begin.gguf "tokenizer.ggml.add_bos_token = 1" && has begin.gguf "tokenizer.ggml.bos_token_id = 1"'
cp narrow/tokenizer_config.json begin
is "one that is not the begin token is said" eval 'export_gguf --model begin other.gguf --pre smollm && grep -q "another than the begin token, before a text: llama.cpp does not" said.txt && has other.gguf "tokenizer.ggml.add_bos_token = 0"'
cp -r narrow padded && awk '{ line[NR] = $0 } / 299,?$/ { last = NR } END { for (i = 1; i <= NR; i++) { if (i == last || i == NR - 3) continue
    if (i == last - 1 || i == NR - 4) sub(/,$/, "", line[i]); print line[i] } }' narrow/tokenizer.json >padded/tokenizer.json
is "a vocabulary with more rows than the tokenizer has ids" export_gguf --model padded padded.gguf --pre smollm
is "is padded, which is said" eval 'grep -qx "the vocabulary has 300 rows and the tokenizer 299 ids: the others are called \[PAD...\], and unused" said.txt && grep -aq "\[PAD299\]" padded.gguf'
cp -r narrow small && sed 's/"id": 2, "content": "<|im_end|>"/"id": 2, "content": "<|im_end|>", "lstrip": false, "rstrip": false, "single_word": false, "normalized": false, "special": true}, {"id": 300, "content": "<|more|>"/' narrow/tokenizer.json >small/tokenizer.json
refused "a tokenizer with more ids than the model has rows" 1 "the tokenizer has 301 ids and the model 300 rows" "$BUILD/export_gguf" --model small x.gguf --pre smollm
cp -r narrow chat && printf '{{ messages[0].content }}' >chat/chat_template.jinja && echo '{"eos_token_id": [0, 2, 1]}' >chat/generation_config.json
is "a chat template and end tokens" export_gguf --model chat chat.gguf --pre smollm --modelfile Modelfile
is "are keys" eval 'has chat.gguf "tokenizer.chat_template = {{ messages[0].content }}" && has chat.gguf "tokenizer.ggml.eos_token_id = 0" && has chat.gguf "tokenizer.ggml.eot_token_id = 2" && has chat.gguf "tokenizer.ggml.eom_token_id = 1"'
is "Modelfile" eval 'printf "FROM ./chat.gguf\nPARAMETER stop \"%s\"\nPARAMETER stop \"%s\"\nPARAMETER stop \"%s\"\n" "<|endoftext|>" "<|im_end|>" "<|im_start|>" | cmp - Modelfile'
refused "a Modelfile elsewhere" 2 "give it a name in the same folder" "$BUILD/export_gguf" --model chat x.gguf --pre smollm --modelfile wide/Modelfile
refused "a Modelfile that is there" 1 "Modelfile is there already" "$BUILD/export_gguf" --model chat x.gguf --pre smollm --modelfile Modelfile
is "an adapter's folder as the model" eval 'export_gguf --model named named.gguf && has named.gguf "general.type = adapter"'
is "a name of phi-3 without its tokens is left out, or llama.cpp does not load the file" eval 'export_gguf --model narrow name.gguf --pre smollm --name my-Phi-3 && has name.gguf "general.name = model" && grep -q "by the name phi-3" said.txt'
shared=${TUNE_SHARED:-$here/../shared}/data
if [ -e "$shared/tokenizers/smollm/tokenizer.json" ]; then
    for t in smollm gpt2; do
        "$BUILD/init_model" --like smollm2-135m --layers 1 --hidden-size 32 --intermediate-size 32 --heads 2 --kv-heads 1 --tokenizer "$shared/tokenizers/$t" real-$t >/dev/null
        is "the tokenizer of $t is known by its ids" eval 'export_gguf --model real-$t real-$t.gguf && has real-$t.gguf "tokenizer.ggml.pre = $(echo $t | sed s/gpt2/gpt-2/)"'
    done
else
    skip "tokenizers known by their ids" "no $shared/tokenizers"
fi
if [ -e "$shared/stories260K-hf/config.json" ]; then
    is "a vocabulary of SentencePiece" export_gguf --model "$shared/stories260K-hf" stories.gguf
    is "has scores" eval 'has stories.gguf "tokenizer.ggml.model = llama" && show stories.gguf | grep -q ^tokenizer.ggml.scores'
else
    skip "a vocabulary of SentencePiece" "no $shared/stories260K-hf"
fi

# ---- adapters ----
adapters=$reference/adapters
is "an adapter alone" export_gguf --model "$reference/llama-untied" --adapter "$adapters/lora-untied" alone.gguf
is "is an adapter" eval 'has alone.gguf "general.type = adapter" && has alone.gguf "adapter.type = lora" && has alone.gguf "general.architecture = llama" && lacks alone.gguf tokenizer'
is "with halves and nothing else" eval '! show alone.gguf | grep " at " | grep -vE "weight\.lora_[ab] "'
is "rsLoRA" export_gguf --model "$reference/qwen3" --adapter "$adapters/rslora-patterns" rslora.gguf
is "is folded into alpha" eval 'show rslora.gguf | awk "/^adapter.lora.alpha/ { print \$3 }" >alpha && r=$(sed -n "s/.*\"r\": \([0-9]*\).*/\1/p" "$adapters/rslora-patterns/adapter_config.json") && a=$(sed -n "s/.*\"lora_alpha\": \([0-9]*\).*/\1/p" "$adapters/rslora-patterns/adapter_config.json") && awk -v r=$r -v a=$a "{ d = \$1 - a * sqrt(r); exit d * d > 1e-8 }" alpha'
is "modules with a scale of their own are said" grep -q "modules have a scale of their own" said.txt
refused "DoRA" 2 "llama.cpp applies no DoRA; merge the adapter into the file: add --merge" "$BUILD/export_gguf" --model "$reference/llama-head-dim" --adapter "$adapters/dora" x.gguf
refused "modules_to_save" 2 "llama.cpp applies no modules_to_save" "$BUILD/export_gguf" --model "$reference/llama-tied" --adapter "$adapters/lora-head" x.gguf
refused "a type of blocks" 2 "an adapter alone is written as f32, f16, bf16 or q8_0" "$BUILD/export_gguf" --model "$reference/llama-untied" --adapter "$adapters/lora-untied" x.gguf --type q4_k
refused "an adapter of another base" 2 "--adapter: " "$BUILD/export_gguf" --model "$reference/llama-tied" --adapter "$adapters/dora" x.gguf
refused "an adapter that is not there" 2 "--adapter gone: no such folder" "$BUILD/export_gguf" --model "$reference/llama-tied" --adapter gone x.gguf
merged() { # BASE ADAPTER - merged on the way is what merge_adapter and then export_gguf write
    rm -rf folder one.gguf two.gguf
    "$BUILD/merge_adapter" --model "$reference/$1" --adapter "$adapters/$2" --output folder --dtype float32 >/dev/null &&
        export_gguf --model folder one.gguf --type f32 --name same &&
        export_gguf --model "$reference/$1" --adapter "$adapters/$2" --merge two.gguf --type f32 --name same && cmp one.gguf two.gguf
}
is "LoRA merged" merged llama-untied lora-untied
is "DoRA merged" merged llama-head-dim dora
is "a head of its own merged" eval 'merged llama-tied lora-head && has two.gguf "output.weight F32 [67,16]"'

# ---- whole or absent ----
refused "a file that is there" 1 "f32.gguf is there already; nothing is replaced" "$BUILD/export_gguf" --model wide f32.gguf
refused "no model" 2 "--model is missing" "$BUILD/export_gguf" x.gguf
refused "no file" 2 "<file>" "$BUILD/export_gguf" --model wide
refused "a folder that is not there" 1 "gone/x.gguf" "$BUILD/export_gguf" --model wide gone/x.gguf --pre smollm
refused "--merge without an adapter" 2 "--merge needs --adapter" "$BUILD/export_gguf" --model wide x.gguf --merge
refused "--show of something else" 1 "no GGUF file" "$BUILD/export_gguf" --show wide/config.json
head -c 5000 f32.gguf >cut.gguf
refused "--show of a file that is cut short" 1 "cut.gguf" "$BUILD/export_gguf" --show cut.gguf
cp -r "$reference/llama-tied" huge && chmod -R u+w huge && printf '\377\377\177\177' | dd of=huge/model.safetensors bs=1 seek=$(($(wc -c <huge/model.safetensors) - 4 * 16 * 16)) conv=notrunc 2>/dev/null
refused "a number that is too large for F16" 1 "that no F16 holds: it is infinite, not a number, or too large; export as bf16 or f32" "$BUILD/export_gguf" --model huge x.gguf --type f16
refused "a full disk" 1 "cannot write" sh -c 'ulimit -f 100 && exec "$0" --model wide x.gguf --type f32 --pre smollm' "$BUILD/export_gguf"
is "nothing is left of what was refused" eval '! ls -d x.gguf* gone 2>/dev/null'

"$BUILD/tests/fault" COUNT 0 "$BUILD/export_gguf" --model narrow good.gguf --pre smollm --type q8_0 9>count >/dev/null 2>count.err
if [ $? = 77 ]; then
    skip "faults at each call" "this system does not let a program be traced"
    finish
fi
calls=$(cat count)
# fails WHAT - at each call: no file, or the good one, and no other. With KILL a part may be left, which the next export removes.
fails() {
    for n in $(seq 1 "$calls"); do
        rm -rf f && mkdir f
        "$BUILD/tests/fault" "$1" "$n" "$BUILD/export_gguf" --model narrow f/x.gguf --pre smollm --type q8_0 >fault.out 2>fault.err
        code=$?
        [ ! -e f/x.gguf ] || cmp good.gguf f/x.gguf || { echo "call $n"; return 1; }
        [ $code != 0 ] || [ -e f/x.gguf ] || { echo "call $n: no file, and no error"; return 1; }
        [ "$1" = KILL ] || ! ls f | grep -q tmp || { echo "call $n: $(ls f)"; return 1; }
        [ -e f/x.gguf ] || export_gguf --model narrow f/x.gguf --pre smollm --type q8_0 || return 1
        [ "$(ls f)" = x.gguf ] && cmp good.gguf f/x.gguf || { ls f; return 1; }
    done
}
refused "a signal" 1 "stopped by a signal; no file was written" "$BUILD/tests/fault" TERM 1 "$BUILD/export_gguf" --model narrow x.gguf --pre smollm
is "there are some calls" test "$calls" -gt 3
for what in ENOSPC EIO KILL INT TERM; do
    is "$what at each of $calls calls: whole or absent" fails $what
done
finish
