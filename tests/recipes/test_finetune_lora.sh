#!/bin/sh
# test_finetune_lora.sh - the recipe with adapters: what makes it another than finetune_full; the same bits run twice, resumed and
# recomputed, dropout among it; what it refuses. (The adapters' numbers: test_lora.c.)
. tests/tap.sh
lora=$BUILD/finetune_lora
sanitized=
if nm "$lora" 2>/dev/null | grep -q __asan_init; then sanitized=1; fi
head -60 datasets/stories.jsonl >"$tmp/rows.jsonl"
is "at most 120 lines" test "$(wc -l <recipes/finetune_lora.c)" -le 120
is "it differs from finetune_full in a few lines" test "$(diff recipes/finetune_full.c recipes/finetune_lora.c | grep -c '^[<>]')" -le 20
cd "$tmp" || exit 1
tiny model 1 >/dev/null
tiny qwen 1 --like qwen3-0.6b >/dev/null
run() { # NAME OPTION...; 54 rows, 9 steps an epoch, 18 in all
    who=$1
    shift
    case " $* " in *" --adapter "*) ;; *) set -- --lora-r 4 --lora-alpha 8 "$@" ;; esac
    "$lora" --model model --dataset rows.jsonl --max-length 48 --batch-size 3 --accumulate 2 --lr 3e-3 --threads 2 --train-split 0.9 \
        --epochs 2 --eval-every 4 --save-every 5 --seed 3 --lora-dropout 0.1 --output "$who" "$@" >"$who.out" 2>&1
    code=$?
    [ $code = 0 ] || tail -n 5 "$who.out"
    return $code
}
more() { "$lora" --resume "$@" >>"$1.out" 2>&1 || { tail -n 5 "$1.out"; false; }; }

for o in "" "--lora-dora --base-dtype bfloat16" "--model qwen --lora-rslora --lora-targets q_proj,v_proj,down_proj --lora-layers 1" \
    "--base-dtype nf4" "--model qwen --base-dtype nf4 --dtype bfloat16 --lora-dora" "--modules-to-save embed_tokens --base-dtype bfloat16" \
    "--modules-to-save lm_head,embed_tokens --optimizer muon --neftune-alpha 2"; do
    n=$((n + 1))
    is "a run $o" run a$n $o
    is "the loss falls" awk "BEGIN { exit !($(figure a$n loss_last) < $(figure a$n loss_first)) }"
    is "run twice" run b$n $o
    is "the same bits" same_run a$n b$n
    is "recomputed" run c$n $o --activation-checkpointing full
    is "the same bits" same_run a$n c$n
    is "stopped between saves, and gone on" eval 'run d$n $o --stop-at-step 7 && more d$n'
    is "the same bits" same_run a$n d$n
done
is "a checkpoint is an adapter folder: it can be merged" "$BUILD/merge_adapter" --model model --adapter a1/checkpoint-final --output merged
is "what is saved is what is trained, once" eval '[ ! -e a1/checkpoint-final/state/weights.safetensors ] && grep -q "lora_A.weight" a1/checkpoint-final/adapter_model.safetensors && ! grep -q "q_proj.weight" a1/checkpoint-final/adapter_model.safetensors'
is "narrower numbers are saved too" run h --save-dtype bfloat16
is "... and those that are trained beside them" eval 'grep -q lora_A.weight h/checkpoint-final/state/weights.safetensors && run hh --save-dtype bfloat16 --stop-at-step 7 && more hh && same_run h hh'
weights() { # FOLDER: its adapter's numbers
    tail -c +"$((9 + $(od -An -t u8 -N 8 "$1/adapter_model.safetensors")))" "$1/adapter_model.safetensors" | cksum
}
is "an adapter goes on elsewhere, no step lost" eval 'run begun --adapter a1/checkpoint-final --lr 0 && [ "$(weights begun/checkpoint-final)" = "$(weights a1/checkpoint-final)" ] && grep -q "begins from a1/checkpoint-final" begun.out'
cp -r a1/checkpoint-5 theirs
is "... and is gone on with when it is not there any more" eval 'run e --adapter theirs --stop-at-step 7 && run f --adapter theirs && rm -r theirs && more e && same_run f e'
is "the header has the share that is trained" grep -qE '^# model .* trained \([0-9.]+ %\)' a1.out
for n in 1 2 4 6 7; do
    if [ "$sanitized" ]; then skip "memory is as planned" "a sanitizer's memory is counted too"; continue; fi
    is "memory is as planned" awk "BEGIN { exit !($(figure a$n peak_anonymous_bytes) <= $(figure a$n estimated_memory_bytes)) }"
done
is "a base in NF4 takes less" awk "BEGIN { exit !($(figure a4 estimated_memory_bytes) < $(figure a1 estimated_memory_bytes)) }"
is "an adapter is merged onto what it was trained on" eval '"$BUILD/merge_adapter" --model model --adapter a4/checkpoint-final --base-dtype nf4 --output quantised >nf4.out && grep -qi nf4 nf4.out'
is "another dropout is another run" eval 'run other --lora-dropout 0.2 && numbers a1 >a.txt && numbers other >b.txt && test -s a.txt && ! cmp -s a.txt b.txt'
refuse() { "$lora" --model model --dataset rows.jsonl --max-length 48 "$@"; }
refused "rank 0" 2 "lora-r" refuse --lora-r 0
refused "targets that match nothing" 2 "in each layer there are self_attn.q_proj" refuse --lora-targets c_attn
refused "a layer there is not" 2 "the model has layers 0 to 1" refuse --lora-layers 0-7
refused "what the adapter has already" 2 "lora-r beside --adapter" refuse --adapter a1/checkpoint-final --lora-r 4
mkdir bare && cp qwen/*.json bare
refused "an adapter of another base: names and shapes, before weights are looked for" 2 "other shapes: model.layers.0.self_attn.q_proj.lora_B.weight is [64, 4], not [256, 4]" refuse --adapter a1/checkpoint-final --model bare --output other-base
is "... nor is a folder made" [ ! -e other-base ]
changed() { rm -rf asked && cp -r a1/checkpoint-final/ asked && sed -i "$1" asked/adapter_config.json; }
changed 's/"bias": "none"/"bias": "all"/'
refused "an adapter that asks for what is not there: key, value, what to do" 1 '"bias" is "all": trained biases of the base are not supported' refuse --adapter asked
changed 's/"r": 4/"r": 0/'
refused "... for rank 0" 1 '"r" is 0: expected a number from 1 to 16384' refuse --adapter asked
changed 's/"[a-z]*_proj"/"c_attn"/; s/"use_dora": false/&/'
refused "... for modules that are not there" 2 "(c_attn,c_attn,c_attn,c_attn,c_attn,c_attn,c_attn) fits no module of the base model; in each layer there are self_attn.q_proj" refuse --adapter asked
changed 's/"q_proj"/"q_proj", "c_attn"/'
is "names beside those that fit are passed over, as PEFT does" run passed --adapter asked --max-steps 2
is "config.json stands in state/: with it transformers would take the folder for a model" eval '[ ! -e a1/checkpoint-final/config.json ] && cmp a1/checkpoint-final/state/config.json model/config.json'
is "what was asked is what was trained, and saved" eval 'grep -q "\"use_dora\": true" a2/checkpoint-final/adapter_config.json &&
    grep -q "\"use_rslora\": true" a3/checkpoint-final/adapter_config.json && run alphas --lora-alpha-pattern q_proj=3 --max-steps 1 &&
    grep -q "\"q_proj\": 3" alphas/checkpoint-final/adapter_config.json'
is "an adapter's folder as the model trains that adapter on" eval '"$BUILD/finetune_lora" --model a1/checkpoint-final --dataset "$here/datasets/stories.jsonl" --max-length 32 --max-steps 1 --no-save --output on >on.out 2>&1 && grep -q "taken as --adapter" on.out && grep -q "\"adapter\":.*\"a1/checkpoint-final\"" on/run.json'
. "$here/tests/faults/flips.sh"
head -6 rows.jsonl >six.jsonl
small() { "$@" "$lora" --model model --dataset six.jsonl --max-length 16 --batch-size 2 --threads 1 --lora-r 1 --lora-targets q_proj --max-steps 1 --overwrite --output flipped >flipped.out 2>&1; }
wrong_bits adapter_model.safetensors
# ---- merged: what base and adapter compute, the merged model computes ----
loss_of() { sed -n '1s/.*"loss":\([-0-9.e]*\).*/\1/p' "$1/metrics.jsonl"; }
merges() { # NAME BASE-DTYPE OPTION... - the first loss of the model with the adapter of run NAME, and of what they are merged to
    of=$1 kept=$2
    shift 2
    rm -rf m$of
    "$BUILD/merge_adapter" --model model --adapter $of/checkpoint-final --output m$of --dtype float32 "$@" >m$of.out &&
        run apart$of --adapter $of/checkpoint-final --base-dtype $kept --lora-dropout 0 --lr 0 --max-steps 1 --no-save --overwrite &&
        "$BUILD/finetune_full" --model m$of --dataset rows.jsonl --max-length 48 --batch-size 3 --accumulate 2 --lr 0 --threads 2 \
            --train-split 0.9 --seed 3 --max-steps 1 --no-save --output whole$of --overwrite >whole$of.out 2>&1 || return 2
    echo "$(loss_of apart$of) $(loss_of whole$of)"
    near "$(loss_of apart$of)" "$(loss_of whole$of)"
}
is "merged, the same loss" merges a1 float32
is "DoRA on bfloat16, which its file says" merges a2 bfloat16
is "and merge_adapter too" grep -q "onto the weights, rounded to bfloat16, of" ma2.out
is "on NF4, which its file says" merges a4 nf4
is "and merge_adapter too" grep -q "onto the dequantised NF4 values of the weights of" ma4.out
is "on other weights another one" eval 'merges a4 nf4 --base-dtype as-read; [ $? = 1 ]'
is "it says what the file says" grep -q "its file says that this was kept in nf4" ma4.out

is "with an embedding of its own, on bfloat16" merges a6 bfloat16
is "what was tied is so no longer" eval 'grep -q "tie_word_embeddings\":.*false" ma6/config.json && grep -q lm_head.weight ma6/model.safetensors && grep -q "were tied, and are two matrices now" ma6.out'
is "with both" merges a7 float32
is "... which are trained" test $(($(figure a7 trained_parameters) - $(figure a1 trained_parameters))) = $((2 * 300 * 64))
is "they are in the file by PEFT's names" eval 'head -c 20000 a7/checkpoint-final/adapter_model.safetensors | grep -q "base_model.model.lm_head.weight" && head -c 20000 a7/checkpoint-final/adapter_model.safetensors | grep -q "base_model.model.model.embed_tokens.weight"'
is "... and in its config, sorted" eval 'tr -d " \n" <a7/checkpoint-final/adapter_config.json | grep -q "\"modules_to_save\":\[\"embed_tokens\",\"lm_head\"\]"'
refused "a module that is not trained whole" 2 "expected embed_tokens, lm_head, or both" refuse --modules-to-save norm
refused "what the adapter has already" 2 "modules-to-save beside --adapter" refuse --adapter a1/checkpoint-final --modules-to-save lm_head

run cut --stop-at-step 4
cp -r model changed && sed -i 's/"rope_theta":[^,]*/"rope_theta": 7/' changed/config.json
refused "gone on with another config.json" 2 "config.json of --model" "$lora" --resume cut --model changed
refused "an adapter that is none" 1 "adapter_config.json" refuse --adapter model
refused "a pattern that is none" 2 "k_proj=4" refuse --lora-rank-pattern 7
refused "a pattern that could not be saved" 2 "expected each name once" refuse --lora-rank-pattern q_proj=2,q_proj=4 --output none
is "nothing is made of it" [ ! -e none ]
finish
