#!/bin/sh
# test_merge_adapter.sh - merge_adapter: dtypes, shards, what it says, what it refuses. (The numbers: test_adapter.)
. tests/tap.sh
reference=$here/tests/reference
cd "$tmp" || exit 1
merge() { # BASE ADAPTER OUTPUT OPTION...
    base=$1 adapter=$2 output=$3
    shift 3
    "$BUILD/merge_adapter" --model "$reference/$base" --adapter "$reference/adapters/$adapter" --output "$output" "$@" >said.txt
}
dtype() { head -c 4096 "$1/model.safetensors" | grep -ao '"dtype":"[A-Z0-9]*"' | sort -u | tr -d '\n'; }

is "an adapter is merged" merge llama-untied lora-untied merged
is "it says what, of which rank, on how many modules" grep -qF "merged: LoRA of rank 4 on 4 modules ($reference/adapters/lora-untied)" said.txt
is "it says what it merged onto" grep -qF "onto the weights of $reference/llama-untied as they are there" said.txt
is "weights keep the base's dtype" [ "$(dtype merged)" = '"dtype":"BF16"' ]
is "config.json is the base's" cmp merged/config.json "$reference/llama-untied/config.json"
cp -r "$reference/llama-untied" own && sed -i 's/"tie_word_embeddings": false/"tie_word_embeddings": true/' own/config.json
is "a config.json that ties two matrices that differ" eval 'grep -q "embeddings\": true" own/config.json && "$BUILD/merge_adapter" --model ./own --adapter "$reference/adapters/lora-untied" --output merged-own >said-own.txt'
is "... is merged to one that does not" grep -q '"tie_word_embeddings":.false' merged-own/config.json
is "... with the same weights" cmp merged-own/model.safetensors merged/model.safetensors
is "float32" merge llama-untied lora-untied wide --dtype float32
is "is what the weights are then" [ "$(dtype wide)" = '"dtype":"F32"' ]
is "and what config.json says" grep -q '"dtype":.*"float32"' wide/config.json
is "float16" merge llama-untied lora-untied half --dtype float16
is "is what the weights are then" [ "$(dtype half)" = '"dtype":"F16"' ]
header_size() { head -c 8 "$1" | od -An -tu8 | tr -d ' '; }
tensor() { # FOLDER NAME - its bytes
    f=$1/model.safetensors header=$(header_size "$1/model.safetensors")
    at=$(head -c $((8 + header)) "$f" | grep -ao "\"$2\":{[^}]*}" | sed 's/.*"data_offsets":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/')
    [ -n "$at" ] && tail -c +$((9 + header + ${at% *})) "$f" | head -c $((${at#* } - ${at% *}))
}
changes() { tensor merged "$1" >now.bin && tensor "$reference/llama-untied" "$1" >was.bin && [ -s was.bin ] && ! cmp -s now.bin was.bin; }
stays() { changes "$1"; [ $? = 1 ] && [ -s was.bin ] && cmp now.bin was.bin; }
adapted=$(grep -ao 'model\.layers\.[a-z0-9_.]*_proj' "$reference/adapters/lora-untied/adapter_model.safetensors" | head -n 1)
is "adapted weights change ($adapted)" changes "$adapted.weight"
is "the embedding stays" stays model.embed_tokens.weight
is "the final norm stays" stays model.norm.weight
is "twice the same bits" eval 'merge llama-untied lora-untied again && cmp merged/model.safetensors again/model.safetensors'
is "the folder's name may end in /" merge llama-untied lora-untied slash/

mkdir half2.tmp-4194303 && touch half2.tmp-4194303/model.safetensors
is "what a killed one left there is removed" eval 'merge llama-untied lora-untied half2 && [ ! -e half2.tmp-4194303 ] && [ -z "$(ls -d *.tmp-* 2>/dev/null)" ]'
is "shards" merge llama-untied lora-untied sharded --shard-size 0.000004
is "have an index" test -s sharded/model.safetensors.index.json
is "and no file of the whole" [ ! -e sharded/model.safetensors ]
larger() { # none is larger than asked, unless it is one tensor; some have two
    several=0
    for f in sharded/model-0*.safetensors; do
        header=$(header_size "$f")
        tensors=$(head -c $((8 + header)) "$f" | grep -ao data_offsets | wc -l)
        [ $(($(wc -c <"$f") - 8 - header)) -le 4000 ] || [ "$tensors" = 1 ] || { echo "$f: $tensors tensors"; return 1; }
        [ "$tensors" -lt 2 ] || several=$((several + 1))
    done
    [ $several -gt 0 ]
}
is "no file is larger, unless it is one tensor" larger
on() { "$BUILD/merge_adapter" --model "$1" --adapter "$reference/adapters/lora-untied" --output "$2" >/dev/null; }
is "a merged folder is a model: merged once more" on merged twice
is "from shards too" on sharded twice-sharded
is "to the same bits" cmp twice/model.safetensors twice-sharded/model.safetensors

is "onto NF4" merge llama-untied lora-untied nf4 --base-dtype nf4 --dtype float32
is "which is said" grep -q "onto the dequantised NF4 values of the weights of $reference/llama-untied, saved as float32" said.txt
is "gives other weights" eval '! cmp -s nf4/model.safetensors wide/model.safetensors'
same() { tensor "$1" "$3" >now.bin && tensor "$2" "$3" >was.bin && [ -s was.bin ] && cmp now.bin was.bin; } # FOLDER FOLDER NAME
is "... of linear layers: embedding and output projection stay in bfloat16" eval 'same nf4 wide model.embed_tokens.weight && same nf4 wide lm_head.weight && ! same nf4 wide "$adapted.weight"'
is "onto bfloat16" merge llama-untied lora-untied b --base-dtype bfloat16 --dtype float32
is "what is kept so already stays" cmp b/model.safetensors wide/model.safetensors
merge llama-rows lora exact
is "float32 is rounded" eval 'merge llama-rows lora r --base-dtype bfloat16 && ! cmp -s r/model.safetensors exact/model.safetensors'

is "DoRA is called so" eval 'merge llama-head-dim dora d && grep -q "DoRA of rank 4 on 14 modules" said.txt'
is "an embedding of the base's size adds no tokens" eval 'merge llama-untied dora-whole w && grep -q "^model.embed_tokens is the adapter.s, whole$" said.txt && ! grep -q "tokens were added" said.txt'
mkdir newer && cp "$reference/adapters/lora-untied/adapter_model.safetensors" newer &&
    sed 's/"task_type"/"shiny": 3,\n  "task_type"/' "$reference/adapters/lora-untied/adapter_config.json" >newer/adapter_config.json
is "keys that nobody knows are told" eval '"$BUILD/merge_adapter" --model "$reference/llama-untied" --adapter newer --output n | grep -q "not looked at: shiny"'
is "the base has no chat template" [ ! -e n/chat_template.jinja ]
echo '{{ messages[0].content }}' >newer/chat_template.jinja
is "the adapter's goes into the merged folder" eval '"$BUILD/merge_adapter" --model "$reference/llama-untied" --adapter newer --output chat >/dev/null && cmp chat/chat_template.jinja newer/chat_template.jinja'
rm newer/chat_template.jinja
sed 's/"task_type"/"\\u001b[2Jshiny": 3,\n  "task_type"/' "$reference/adapters/lora-untied/adapter_config.json" >newer/adapter_config.json
is "without what would move a cursor" eval '"$BUILD/merge_adapter" --model "$reference/llama-untied" --adapter newer --output c | grep -qF "not looked at: \\x1b[2Jshiny"'

# ---- --check: each weight computed again ----
checked() { # ADAPTER - merged in each dtype onto each base, and checked
    base=$(sed -n 's/.*"base_model_name_or_path": "\(.*\)".*/\1/p' "$reference/adapters/$1/adapter_config.json")
    for o in "" "--dtype float32" "--dtype float16" "--dtype bfloat16" "--base-dtype nf4" "--base-dtype bfloat16 --dtype float32"; do
        rm -rf checked
        merge "${base##*/}" "$1" checked --check $o && grep -q "^checked: .* weights, .* modules with an adapter; largest difference .* in .*, limit .*: ok$" said.txt &&
            [ "$("$BUILD/merge_adapter" --model "$reference/${base##*/}" --adapter "$reference/adapters/$1" --output checked --check $o)" = "$(head -n 1 said.txt)" ] || return 1
    done
}
for a in "$reference"/adapters/*; do is "--check: right, once made and once there: ${a##*/}" checked "${a##*/}"; done
false_one() { "$BUILD/merge_adapter" --model "$reference/llama-untied" --adapter "$reference/adapters/lora-untied" --output "$1" --check; }
cp -r merged unmerged && cp "$reference/llama-untied/model.safetensors" unmerged/model.safetensors
refused "--check: the base alone" 1 "unmerged: weight 0 of row 0 of model.layers.0.self_attn.o_proj.weight is -0.7421875, and base and adapter give -0.764764457: a difference of 0.0291, where rounding gives at most 0.00391" false_one unmerged
cp -r merged cut && truncate -s -100 cut/model.safetensors
refused "... a file that was cut" 1 "cut/model.safetensors" false_one cut
cp -r merged another && cp wide/config.json another/config.json && sed -i 's/"num_hidden_layers":[^,]*/"num_hidden_layers": 1/' another/config.json
refused "... another config.json" 1 "another: its config.json gives another model than base and adapter do" false_one another
refused "... merged onto another base" 1 "nf4: weight 0 of row 0 of model.layers.0.self_attn.q_proj.weight is 0, and base and adapter give -0.0249" false_one nf4
bit() { # FOLDER - a merged folder with one bit of its last weight turned
    cp -r merged "$1" && size=$(wc -c <"$1/model.safetensors") &&
        byte=$(tail -c 1 "$1/model.safetensors" | od -An -tu1) &&
        printf "$(printf '\\%03o' $((byte ^ 1)))" | dd of="$1/model.safetensors" bs=1 seek=$((size - 1)) conv=notrunc 2>/dev/null
}
is "one bit of one weight is turned" eval 'bit bit && ! cmp -s bit/model.safetensors merged/model.safetensors'
refused "... which is found" 1 "bit: weight 15 of row 0 of model.norm.weight is 0.298828125, and base and adapter give 1.1953125" false_one bit
is "... and no folder is changed" eval 'false_one merged >said.txt && [ -e unmerged/config.json ]'

# The weights take 40 MB, one matrix 16; a merge takes a piece of a matrix, and of a quantised base one matrix in NF4.
tiny wide.model 1 --dtype float32 --vocab-size 8000 --hidden-size 512 --intermediate-size 1536 --heads 8 >/dev/null
printf '{"text": "%0200d"}\n' 1 2 3 >rows.jsonl
is "an adapter of a model of 40 MB" eval '"$BUILD/finetune_lora" --model wide.model --dataset rows.jsonl --max-length 32 --max-steps 1 \
    --lora-r 4 --threads 1 --output adapter >adapter.out 2>&1'
small() { # DATA OPTION... - with so many KiB of data
    if sanitized; then data=unlimited; else data=$1; fi
    shift
    rm -rf small && sh -c "ulimit -d $data; exec \"\$@\"" sh "$BUILD/merge_adapter" --model wide.model \
        --adapter adapter/checkpoint-final --output small "$@" >/dev/null
}
is "is merged in 16 MB of data" small 16000
is "and made to shards of bfloat16" small 16000 --dtype bfloat16 --shard-size 0.01
is "and merged onto NF4" small 16000 --base-dtype nf4
is "and checked" small 16000 --check
cp -rL adapter/checkpoint-final later && sed -i 's/"tune.base_dtype":"float32"/"tune.base_dtype":"int4bit"/' later/adapter_model.safetensors
later() { "$BUILD/merge_adapter" --model wide.model --adapter later --output later.out "$@"; }
refused "a base in what is not known here" 2 'its base was kept in "int4bit"' later
is "unless it is said what to merge onto" later --base-dtype as-read

refused "nothing is replaced" 1 "merged is there already" "$BUILD/merge_adapter" --model "$reference/llama-untied" \
    --adapter "$reference/adapters/lora-untied" --output merged
refused "an adapter for another base: names and shapes" 2 "made on llama-head-dim); other shapes: model.layers.0.self_attn.q_proj" \
    "$BUILD/merge_adapter" --model "$reference/llama-tied" --adapter "$reference/adapters/dora" --output x
refused "an adapter that is not there" 2 "--adapter gone: no such folder" "$BUILD/merge_adapter" --model "$reference/llama-tied" --adapter gone --output x
refused "a folder that is no adapter" 1 "adapter_config.json" "$BUILD/merge_adapter" --model "$reference/llama-tied" \
    --adapter "$reference/llama-tied" --output x
refused "--adapter is needed" 2 "--adapter is missing" "$BUILD/merge_adapter" --model "$reference/llama-tied" --output x
set_key() { sed "s/\"$1\": .*/\"$1\": $2,/" "$reference/adapters/lora-untied/adapter_config.json" >newer/adapter_config.json; }
into_x() { "$BUILD/merge_adapter" --model "$reference/llama-untied" --adapter newer --output x; }
set_key r 0
refused "rank 0" 1 '"r" is 0: expected a number from 1 to 16384' into_x
set_key r 3
refused "another rank than the tensors have" 2 "other shapes: model.layers.0.self_attn.o_proj.lora_A.weight is [4, 16], not [3, 16]" into_x
sed '/"o_proj"/d; s/"up_proj"/"c_attn"/' "$reference/adapters/lora-untied/adapter_config.json" >newer/adapter_config.json
refused "targets that match nothing: what there is" 2 '"target_modules" (c_attn) fits no module of the base model; in each layer there are self_attn.q_proj, self_attn.k_proj' into_x
sed '/"o_proj"/d' "$reference/adapters/lora-untied/adapter_config.json" >newer/adapter_config.json
refused "tensors that nothing asks for" 2 "nothing asks for: base_model.model.model.layers.0.self_attn.o_proj.lora_A.weight" into_x
sed 's/"o_proj"/"o_proj", "k_proj"/' "$reference/adapters/lora-untied/adapter_config.json" >newer/adapter_config.json
refused "tensors that are missing" 2 "missing: model.layers.0.self_attn.k_proj.lora_A.weight" into_x
set_key use_dora true
refused "DoRA's magnitudes that are missing" 2 "missing: model.layers.0.self_attn.o_proj.lora_magnitude_vector" into_x
set_key bias '"all"'
refused "what is not supported: by key and value" 1 '"bias" is "all"' "$BUILD/merge_adapter" --model "$reference/llama-untied" \
    --adapter newer --output x
zeros() { # FOLDER FILE TO - the folder with zeros as its tensors' numbers
    cp -r "$1" "$3" && header=$((8 + $(header_size "$1/$2"))) &&
        { head -c $header "$1/$2" && head -c $(($(wc -c <"$1/$2") - header)) /dev/zero; } >"$3/$2"
}
zeros "$reference/llama-untied" model.safetensors zero.model && zeros "$reference/adapters/dora-whole" adapter_model.safetensors zero
refused "a row of zeros, which DoRA cannot scale" 1 "row 0 of model.layers.0.mlp.gate_proj.weight is zero with the adapter; DoRA divides by its norm" \
    "$BUILD/merge_adapter" --model zero.model --adapter zero --output x
# ---- killed, or out of disk, at each call that changes a file: what stands under the name is whole, or there is nothing ----
fails() { # WHAT
    set -- "$1" "$BUILD/merge_adapter" --model "$reference/llama-untied" --adapter "$reference/adapters/lora-untied" --output faulty --shard-size 0.000004
    what=$1
    shift
    "$@" >/dev/null && mv faulty sound || return 1
    for n in $(seq "$(cat calls)"); do
        ./fault "$what" "$n" "$@" >fault.out 2>&1
        code=$?
        [ ! -e faulty ] || diff -r faulty sound || return 1
        [ $code = 137 ] || [ -e faulty ] || [ -s fault.out ] || return 1
        [ $code != 0 ] || [ -e faulty ] || return 1
        [ $what = KILL ] || ! ls -d faulty.tmp* 2>/dev/null || return 1
        [ -e faulty ] || "$@" >fault.out 2>&1 || return 1
        diff -r faulty sound || return 1
        rm -rf faulty faulty.tmp*
    done
    rm -rf sound
}
# A bit that the disk writes otherwise, at each write of a merge with --check.
flips() {
    false_one sound >/dev/null || return 1
    noticed=0
    for n in $(seq "$(cat calls)"); do
        rm -rf flipped
        ./fault FLIP "$n" "$BUILD/merge_adapter" --model "$reference/llama-untied" --adapter "$reference/adapters/lora-untied" \
            --output flipped --check >fault.out 2>&1
        case $? in
        0) cmp sound/model.safetensors flipped/model.safetensors || return 1 ;;
        1) [ ! -e flipped ] && grep -q flipped fault.out && noticed=$((noticed + 1)) || return 1 ;;
        *) return 1 ;;
        esac
    done
    [ $noticed -ge 1 ]
}
if $CC -std=c11 -D_GNU_SOURCE -O1 -o fault "$here/tests/faults/fault.c"; then
    ./fault COUNT 0 "$BUILD/merge_adapter" --model "$reference/llama-untied" --adapter "$reference/adapters/lora-untied" \
        --output counted --shard-size 0.000004 9>calls >/dev/null
    case $? in
    0)
        is "there are some calls" test "$(cat calls)" -gt 10
        for what in KILL ENOSPC ENOSPC+ EIO; do is "$what at each of $(cat calls) calls" fails $what; done
        is "a merge that is written otherwise is refused with --check" flips
        ;;
    77) skip "a fault at each call" "this system does not let programs be traced" ;;
    *) is "a merge that is traced" false ;;
    esac
else
    is "fault.c is compiled" false
fi

is "nothing is left of what was refused" eval '! ls -d x* 2>/dev/null'
finish
