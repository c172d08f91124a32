#!/bin/sh
# test_finetune_dpo.sh - the recipe for preferences: it learns to tell answers apart; the same bits run twice, resumed and
# recomputed; the reference, with and without a file; what it refuses. (Formats of pairs: test_pairs.c. Losses:
# test_preference.c. Beside TRL: peers/dpo_peer.py.)
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
dpo=$BUILD/finetune_dpo
sed 's/^{"text": "//; s/[."\\].*//' datasets/stories.jsonl | awk 'length > 40 {
    half = int(length($0) / 2)
    printf "{\"prompt\": \"%s\", \"chosen\": \"%s\", \"rejected\": \" No, no, no\"}\n", substr($0, 1, half), substr($0, half + 1)
}' >"$tmp/pairs.jsonl"
is "there are pairs" test "$(wc -l <"$tmp/pairs.jsonl")" -ge 20
head -24 "$tmp/pairs.jsonl" >"$tmp/rows.jsonl"
cd "$tmp" || exit 1
tiny model 1 >/dev/null
run() { # NAME OPTION...; about 22 pairs, 6 steps an epoch
    who=$1
    shift
    "$dpo" --model model --dataset rows.jsonl --max-length 96 --batch-size 2 --accumulate 2 --lr 2e-3 --threads 2 --train-split 0.9 \
        --epochs 2 --eval-every 4 --save-every 5 --seed 3 --append-token none --output "$who" "$@" >"$who.out" 2>&1
    code=$?
    [ $code = 0 ] || tail -n 5 "$who.out"
    return $code
}
more() { "$dpo" --resume "$@" >>"$1.out" 2>&1 || { tail -n 5 "$1.out"; false; }; }
first() { sed -n "s|^{\"step\":1,.*\"$2\":\([-0-9.e+]*\).*|\1|p" "$1/metrics.jsonl"; }
last() { sed -n "s|.*\"$2\":\([-0-9.e+]*\).*|\1|p" "$1/metrics.jsonl" | tail -n 1; }
less() { awk "BEGIN { exit !($1 < $2) }"; }

for o in "--lora-r 4" "--lora-r 0 --lr 5e-4" "--lora-r 4 --lora-dropout 0.1 --base-dtype nf4 --loss ipo" "--lora-r 4 --loss orpo --lora-dora"; do
    n=$((n + 1))
    is "a run $o" run a$n $o
    is "the loss falls" less "$(figure a$n loss_last)" "$(figure a$n loss_first)"
    is "run twice" run b$n $o
    is "the same bits" same_run a$n b$n
    is "recomputed" run c$n $o --activation-checkpointing full
    is "the same bits" same_run a$n c$n
    is "stopped between saves, and gone on" eval 'run d$n $o --stop-at-step 7 && more d$n'
    is "the same bits" same_run a$n d$n
done
for n in 1 2; do
    is "the model is its own reference: the first loss is ln 2" near "$(first a$n loss)" 0.69314718056
    is "so no pair is told apart at first" test "$(first a$n rewards/accuracies),$(first a$n rewards/margins)" = 0,0
    is "then they are" less 0.9 "$(last a$n rewards/accuracies)"
    is "an evaluation has rewards, and no perplexity" eval 'grep -q "\"eval_rewards/margins\":" a$n/metrics.jsonl && ! grep -q perplexity a$n/metrics.jsonl a$n/report.json'
done
is "means of the pairs of a step, not sums" eval 'grep -oE "\"rewards/accuracies\":[0-9.e-]+" a1/metrics.jsonl | cut -d: -f2 | awk "{ n++; bad += \$1 > 1 } END { exit !(n > 4 && !bad) }"'
is "the log has the six numbers" eval 'for k in rewards/chosen rewards/rejected rewards/margins rewards/accuracies logps/chosen logps/rejected; do [ -n "$(last a1 $k)" ] || exit 1; done'
is "margins are differences" awk "BEGIN { d = $(last a1 rewards/chosen) - $(last a1 rewards/rejected) - $(last a1 rewards/margins); exit !(d * d < 1e-16) }"

# ---- the reference ----
is "adapters need no file" test ! -e a1/reference.safetensors
is "all weights have one" test -s a2/reference.safetensors
is "the header says what it took" grep -qE '^# reference  *[0-9]+ answers in [0-9.]+ s, kept in a2/reference.safetensors' a2.out
is "a file of one's own is made" eval 'run e --lora-r 0 --lr 5e-4 --reference ref.safetensors && test -s ref.safetensors && test ! -e e/reference.safetensors'
is "it is the same run" same_run a2 e
is "it is read the next time, for another beta" eval 'run f --lora-r 0 --beta 0.3 --reference ref.safetensors && ! grep -q "^# reference  *[0-9]* answers" f.out'
head -6 rows.jsonl >few.jsonl
is "with --mix each epoch has other rows: the file has them, too" eval 'run mixed --lora-r 0 --dataset few.jsonl,pairs.jsonl --mix 1,1 --epochs 3 && test "$(sed -n "s/^# reference  *\([0-9]*\) answers.*/\1/p" mixed.out)" -gt 24'
is "simpo needs none" eval 'run g --lora-r 0 --loss simpo --beta 2 && test ! -e g/reference.safetensors'
tiny other 2 >/dev/null
is "an adapter that was trained is its own reference" eval 'run k --adapter a1/checkpoint-final --lr 1e-4 && near "$(first k loss)" 0.69314718056'
cp -rL a1/checkpoint-final theirs
is "... and is gone on with when it is not there any more" eval 'run l --adapter theirs --stop-at-step 7 && rm -r theirs && more l'
sft() { "$BUILD/finetune_lora" --model model --dataset sft.jsonl --max-length 96 --append-token none --lr 3e-2 --output ad --overwrite "$@" >sft.out 2>&1 || { cat sft.out; false; }; }
for i in 1 2 3 4 5 6 7 8; do echo "{\"text\": \"row $i is here\"}"; done >sft.jsonl
is "a file for the numbers of an adapter" eval 'sft --max-steps 5 && run n --adapter ad/checkpoint-final --lr 0 --reference by_adapter.safetensors && near "$(first n loss)" 0.69314718056'
again() { "$dpo" --model model --dataset rows.jsonl --max-length 96 --append-token none --adapter ad/checkpoint-final --reference by_adapter.safetensors "$@"; }
cp -r ad same
is "... also of the same adapter elsewhere" eval 'run o --adapter same/checkpoint-final --lr 0 --reference by_adapter.safetensors && ! grep -q "^# reference  *[0-9]* answers" o.out'
refused "... not of the base stored otherwise" 2 "its log-probabilities are by weights" again --base-dtype nf4 --output p
sft --max-steps 20 --seed 5
refused "... not of another adapter in that folder" 2 "its log-probabilities are by weights" again --output q
is "by a kill while the reference is computed nothing is lost" eval 'run m --lora-r 0 --lr 5e-4 --stop-at-step 5 && rm m/reference.safetensors && more m && same_run a2 m'

# ---- refused ----
refuse() { "$dpo" --model model --dataset rows.jsonl --max-length 96 --append-token none "$@"; }
refused "a reference of another model" 2 "its log-probabilities are by weights" refuse --lora-r 0 --model other --reference ref.safetensors --output h
refused "packing" 2 "packing" refuse --packing
refused "a loss that does not exist" 2 "sigmoid" refuse --loss sigmoyd
refused "smoothing of a loss that has none" 2 "label-smoothing" refuse --loss hinge --label-smoothing 0.1
echo '{"text": "plain"}' >plain.jsonl
refused "rows that are no pairs" 2 "expected preferences" refuse --dataset plain.jsonl
for recipe in finetune_full finetune_lora; do
    refused "$recipe refuses pairs, by name" 2 "finetune_dpo trains on them" "$BUILD/$recipe" --model model --dataset rows.jsonl
done
refused "unpaired preferences" 2 "unpaired" eval 'echo "{\"prompt\": \"a\", \"completion\": \"b\", \"label\": true}" >kto.jsonl; "$BUILD/finetune_lora" --model model --dataset kto.jsonl'
if sanitized; then skip "memory is as planned" "a sanitizer's memory is counted too"
else is "memory is as planned" awk "BEGIN { exit !($(figure a1 peak_anonymous_bytes) <= $(figure a1 estimated_memory_bytes)) }"
fi
finish
