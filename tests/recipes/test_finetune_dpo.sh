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

# ---- kto: answers with a label ----
awk -F '", "' 'NR % 4 { print $1 "\", \"completion" substr($2, 7) "\", \"label\": true}" }
    NR % 2 { sub(/^rejected/, "completion", $3); sub(/}$/, ", \"label\": false}", $3); print $1 "\", \"" $3 }' rows.jsonl >answers.jsonl
kto() { who=$1; shift; run "$who" --loss kto --batch-size 4 --accumulate 1 --split-by number "$@"; }
rewards() { grep "\"loss\":" "$1/metrics.jsonl" | awk '{ c = /rewards.chosen/; r = /rewards.rejected/; both += c && r; one += c != r; bad += (c && r) != /rewards.margins/ } END { exit bad || !both || !one }'; }
n=0
for o in "--lora-r 4" "--lora-r 0 --lr 5e-4" "--lora-r 4 --lora-dropout 0.1 --dataset answers.jsonl"; do
    n=$((n + 1))
    is "kto $o" kto k$n $o
    is "the loss begins at 1/2, and falls" eval 'near "$(first k$n loss)" 0.5 && less "$(figure k$n loss_last)" 0.47'
    is "the same bits, recomputed" eval 'kto kc$n $o --activation-checkpointing full && same_run k$n kc$n'
    is "the same bits, stopped between saves and gone on" eval 'kto kd$n $o --stop-at-step 7 && more kd$n && same_run k$n kd$n'
done
is "it logs kl and no accuracies; evaluations do, too" eval '[ "$(first k1 kl)" = 0 ] && grep -q "\"kl\":[0-9.]*[1-9]" k1/metrics.jsonl && grep -q "\"eval_kl\":" k1/metrics.jsonl && ! grep -q accuracies k1/metrics.jsonl'
is "a step with one label alone has no reward of the other, and no margin" rewards k1
kto km --train-split 0.4 --max-steps 1 --eval-every 1 --lr 1e-2
evaluated() { sed -n "s|.*\"eval_$2\":\([-0-9.e+]*\).*|\1|p" "$1/metrics.jsonl" | tail -n 1; }
kto kn --train-split 0.4 --max-steps 1 --eval-every 1 --lr 1e-2 --dataset rows.jsonl,answers.jsonl
evaluates() { awk "BEGIN { m = \"$(evaluated $1 rewards/margins)\"; d = $(evaluated $1 rewards/chosen) - $(evaluated $1 rewards/rejected) - m; exit !(m != \"\" && d * d < 1e-16) }"; }
is "an evaluation of parted pairs, whose micro-batches have one label each, has a margin" evaluates km
is "... of two files, too" evaluates kn
is "pairs are parted, which is said once" eval '[ "$(grep -c "24 pairs are parted into 48 rows, chosen answers with the label true and rejected ones with false (--loss kto)" k1.out)" = 1 ]'
is "rows with a label are not" eval '! grep -q parted k3.out && grep -q "unpaired (recognised), columns completion, label, prompt" k3.out'
answers() { sed -n 's/^# reference  *\([0-9]*\) answers.*/\1/p' "$1.out"; }
is "wrong answers differ from epoch to epoch: the reference has those of all" eval 'kto kh --lora-r 0 --lr 5e-4 --epochs 2 --reference kl.safetensors && kto ki --lora-r 0 --lr 5e-4 --epochs 3 --reference kl.safetensors && echo "# $(answers kh), then $(answers ki)" && [ "$(answers kh)" -gt 60 ] && [ "$(answers ki)" -gt 5 ]'
kto kr --lora-r 0 --lr 5e-4 --stop-at-step 7
refused "so it goes on with the rows of a micro-batch that it began with" 2 "micro-batches of 4), and this run's reference is weights" "$dpo" --resume kr --batch-size 3 --allow-changed
is "... also after that" eval 'more kr --batch-size 4 --allow-changed && same_run k2 kr'
is "the weights are those of the labels" eval 'kto kw --dataset answers.jsonl --desirable-weight 3 --undesirable-weight 0 --max-steps 1 --batch-size 30 --train-split 1 --eval-every 0 && near "$(first kw loss)" 0.9'
is "unless the labels balance, they are asked for" eval 'grep -qE "^# warning: balance  *60 % of the answers are desirable; with the weights they count 1.5 times what the others do, and 1 to 1.33 times is advised: --desirable-weight 0.667 to 0.889, or --undesirable-weight 1.12 to 1.5" k3.out && ! grep -q "warning: balance" k1.out'
is "... and are enough" eval 'kto kb --dataset answers.jsonl --undesirable-weight 1.2 --max-steps 1 && ! grep -q "warning: balance" kb.out'
is "--show-tokens names the label" eval '"$dpo" --model model --dataset answers.jsonl --loss kto --batch-size 2 --max-length 96 --append-token none --show-tokens 2 >shown && grep -q "sequence 1 of 1, with the label 1:" shown && grep -q "sequence 1 of 1, with the label 0:" shown'

# ---- the guess of the time knows what is computed besides ----
guess() { sed -n 's/^# estimate .* a guess: .* in [0-9]* steps\(, and [0-9.]* forward passes more of each token for the reference[a-z ]*\)*;.*/\1/p' "$1.out"; }
more_passes=" forward passes more of each token for the reference"
is "the guess: a pass of the reference in each step" [ "$(guess a1)" = ", and 1$more_passes" ]
is "... or once, for two epochs" [ "$(guess a2)" = ", and 0.5$more_passes" ]
is "... none" [ "$(guess a4)" = "" ]
is "... kto's wrong answers, too, by the model and the reference" [ "$(guess k1),$(guess k2)" = ", and 3$more_passes and wrong answers,, and 2.5$more_passes and wrong answers" ]

# ---- previews: the prompts of the rows, without their answers ----
asks() { # NAME FILE OPTION... - the first prompt, as a preview has it
    who=$1 file=$2
    shift 2
    run "$who" --max-steps 1 --save-every 0 --preview-every 1 --preview-prompts "$file" --preview-tokens 2 --batch-size 4 --overwrite "$@" &&
        sed -n 's/.*"row":0,"prompt":"\([^"]*\)".*/\1/p' "$who/samples.jsonl"
}
prompt=$(sed -n '1s/.*"prompt": "\([^"]*\)".*/\1/p' answers.jsonl)
sed 's/"prompt"/"ask"/; s/"completion"/"say"/; s/"label"/"good"/' answers.jsonl >renamed.jsonl
echo '{"prompt": "One day"}' >asked.jsonl
for format in auto unpaired; do
    is "previews with --format $format" eval '[ "$(asks p$format answers.jsonl --loss kto --dataset answers.jsonl --format $format)" = "$prompt" ]'
    is "... of prompts alone" eval '[ "$(asks p$format asked.jsonl --loss kto --dataset answers.jsonl --format $format)" = "One day" ]'
    is "... of other columns" eval '[ "$(asks p$format renamed.jsonl --loss kto --dataset renamed.jsonl --format $format --columns prompt=ask,completion=say,label=good)" = "$prompt" ]'
done
is "... with --format preference" eval '[ "$(asks pp rows.jsonl --format preference)" = "$prompt" ]'

# ---- the reference ----
is "adapters need no file" test ! -e a1/reference.safetensors
is "all weights have one" test -s a2/reference.safetensors
is "the header says what it took" grep -qE '^# reference  *[0-9]+ answers in [0-9.]+ s, kept in a2/reference.safetensors' a2.out
is "a file of one's own is made" eval 'run e --lora-r 0 --lr 5e-4 --reference ref.safetensors && test -s ref.safetensors && test ! -e e/reference.safetensors'
is "it is the same run" same_run a2 e
is "--stop-after-seconds counts for it, too: no step then" eval 'run cut --lora-r 0 --lr 5e-4 --reference cut.safetensors --stop-after-seconds 0 && grep -q "^# reference .*--stop-after-seconds is over: [1-9][0-9]* rows are computed, kept in cut.safetensors. Another run with --reference cut.safetensors goes on there" cut.out && ! grep -q . cut/metrics.jsonl && grep -q "\"status\":.*\"stopped\"" cut/run.json'
is "... and the rest is computed the next time" eval 'run cut --lora-r 0 --lr 5e-4 --reference cut.safetensors --overwrite && [ "$(sed -n "s/^# reference  *\([0-9]*\) answers.*/\1/p" cut.out)" -lt 48 ] && same_run a2 cut'
is "... where nothing is left, a step is taken" eval 'run cut --lora-r 0 --lr 5e-4 --reference cut.safetensors --overwrite --stop-after-seconds 0 && [ "$(grep -c "\"loss\":" cut/metrics.jsonl)" = 1 ]'
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
for recipe in finetune_full finetune_lora; do
    refused "$recipe refuses answers with a label, by name" 2 "finetune_dpo trains on them, with its loss kto" "$BUILD/$recipe" --model model --dataset answers.jsonl
done
refused "the losses of pairs refuse them" 2 "--loss kto trains on them; other losses compare" refuse --dataset answers.jsonl
refused "kto of rows without a label" 2 "expected answers with a label" refuse --loss kto --batch-size 2 --dataset plain.jsonl
{ head -n 3 answers.jsonl; echo '{"prompt": "a", "completion": "b"}'; } >gap.jsonl
refused "... also of one of them" 1 'gap.jsonl:4: the column "label" is not in this row' refuse --loss kto --batch-size 4 --dataset gap.jsonl --output gap
refused "kto of a single row" 2 "so --batch-size is at least 2, not 1" refuse --loss kto
refused "packed answers" 2 "cannot be packed in one row" refuse --loss kto --batch-size 2 --packing
refused "weights of labels for a loss without any" 2 "--desirable-weight and --undesirable-weight are for the loss kto" refuse --desirable-weight 2
refused "... and two of 0" 2 "are both 0, so nothing would be learnt" refuse --loss kto --batch-size 2 --desirable-weight 0 --undesirable-weight 0
planned() { "$dpo" --model model --dataset rows.jsonl --max-length 96 --append-token none --batch-size 2 --plan-memory "$@" | sed -n 's/.* reference \([0-9.]*\).*/\1/p'; }
is "the plan has the reference's numbers, kto's of all epochs" eval 'one=$(planned --lora-r 0 --loss kto) && many=$(planned --lora-r 0 --loss kto --epochs 100) && less 0.5 "$one" && less "$one * 10" "$many"'
is "... none for new adapters, or a loss without a reference" test -z "$(planned)$(planned --lora-r 0 --loss simpo --beta 2)"
if sanitized; then skip "memory is as planned" "a sanitizer's memory is counted too"
else
    for run in a1 k1 k2; do
        is "memory of $run is as planned" awk "BEGIN { exit !($(figure $run peak_anonymous_bytes) <= $(figure $run estimated_memory_bytes)) }"
    done
fi
finish
