#!/bin/sh
# test_several_sets.sh - recipes on several data sets: formats and shares of each, evaluation by set, resume, sweeps, what is refused.
# (The plan of a mix: test_mix.c.)
. tests/tap.sh
cd "$tmp" || exit 1
is "a model" tiny model 1 --max-positions 512
i=0
while [ $i -lt 60 ]; do
    echo "{\"instruction\": \"Say $i.\", \"input\": \"\", \"output\": \"The answer is $i.\"}" >>a.jsonl
    i=$((i + 1))
done
awk 'BEGIN { print "question,answer"; for (i = 0; i < 90; i++) print "what is " i "?,it is " i * i " of course" }' >b.csv
awk 'BEGIN { for (i = 0; i < 20; i++) print "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi " i "\"}, {\"role\": \"assistant\", \"content\": \"Ho\"}]}" }' >c.jsonl
both="--model model --dataset a.jsonl,b.csv --columns ;prompt=question,completion=answer --max-length 300 --batch-size 4 --lr 1e-3 --threads 2"
fit() { # NAME OPTION...
    who=$1
    shift
    "$BUILD/finetune_full" --verbose --output "$who" "$@" >"$who.out" 2>&1
    code=$?
    [ $code = 0 ] || tail -n 4 "$who.out"
    return $code
}
said() { grep -qE -e "^# $2 +$3" "$1.out" || { cat "$1.out"; false; }; }
last() { sed -n "s|.*\"$2\":\([-0-9.e+]*\).*|\1|p" "$1/metrics.jsonl" | tail -n 1; }

# shellcheck disable=SC2086 # one word each
{
is "two sets, each of its format" fit a $both --max-steps 3
is "without --mix an epoch has every row" eval 'said a rows "of 2 sets, 150 to train on, 0 held out$" && said a "set 1" "a.jsonl: 60 of 60 rows in an epoch \(40 %\); alpaca" && said a "set 2" "b.csv: 90 of 90 rows in an epoch \(60 %\); prompt-completion"'
is "the survey reads both" said a survey "all 150 rows were read"
is "run.json has each set" eval 'tr -d " \t\n" <a/run.json | grep -qE "\"sets\":\[\{\"path\":\"a.jsonl\",\"rows\":60,.*\"path\":\"b.csv\",\"rows\":90,"'
is "shares" fit b $both --mix 0.75,0.25 --epochs 2 --train-split 0.9 --eval-every 7
is "... an epoch keeps them" eval 'said b rows "of 2 sets, 1[23][0-9] to train on, [12][0-9] held out; [67][0-9] in an epoch" && said b "set 2" "b.csv: 1[0-9] of [78][0-9] rows in an epoch \(2[45][.0-9]* %\)"'
is "the same bits twice" eval 'fit b2 $both --mix 0.75,0.25 --epochs 2 --train-split 0.9 --eval-every 7 && same_run b b2'
is "stopped and gone on: the same bits" eval 'fit b3 $both --mix 0.75,0.25 --epochs 2 --train-split 0.9 --eval-every 7 --stop-at-step 9 && "$BUILD/finetune_full" --resume b3 >b3.more 2>&1 && same_run b b3'
is "... also from another folder" eval 'fit b4 $both --mix 0.75,0.25 --epochs 2 --train-split 0.9 --eval-every 7 --stop-at-step 20 && mkdir -p away && (cd away && "$BUILD/finetune_full" --resume ../b4 --model ../model >../b4.more 2>&1) && same_run b b4'
is "other shares are another run" eval 'fit b5 $both --mix 0.5,0.5 --max-steps 3 && ! same_run b b5'
is "a resumed run keeps its shares" eval '! "$BUILD/finetune_full" --resume b5 --mix 1,1 >err 2>&1 && grep -q -e "--mix (was 0.5,0.5, now 1,1)" err'
is "a row that was read has changed: refused by name" eval 'fit b6 $both --mix 0.75,0.25 --epochs 2 --stop-at-step 9 && sed "s/answer is/ANSWER is/" a.jsonl >x && cp a.jsonl keep && cp x a.jsonl; ! "$BUILD/finetune_full" --resume b6 >err 2>&1 && grep -q "in rows that the run has read" err; s=$?; cp keep a.jsonl; [ $s = 0 ]'
is "packed, shares and resume" eval 'fit p $both --mix 1,1 --packing --epochs 2 && fit p2 $both --mix 1,1 --packing --epochs 2 --stop-at-step 3 && "$BUILD/finetune_full" --resume p2 >p2.more 2>&1 && same_run p p2'

# ---- evaluation ----
is "the loss of each set held out, and of all" eval 'for k in eval_loss eval_a_loss eval_b_loss; do [ -n "$(last b $k)" ] || exit 1; done'
is "... the total lies between" awk "BEGIN { t = $(last b eval_loss); a = $(last b eval_a_loss); b = $(last b eval_b_loss); exit !((a < t && t < b) || (b < t && t < a)) }"
}
printf '{"prompt": "what is 3?", "completion": "nine"}\n{"prompt": "b", "completion": "twenty"}\n' >q.jsonl
is "files to evaluate on" fit e --model model --dataset a.jsonl --eval-dataset a.jsonl,q.jsonl --max-steps 2 --lr 1e-3
is "... each as it is alone" eval 'fit e1 --model model --dataset a.jsonl --eval-dataset a.jsonl --max-steps 2 --lr 1e-3 && fit e2 --model model --dataset a.jsonl --eval-dataset q.jsonl --max-steps 2 --lr 1e-3 && [ "$(last e eval_a_loss) $(last e eval_q_loss)" = "$(last e1 eval_loss) $(last e2 eval_loss)" ]'
mkdir -p other && cp q.jsonl other/a.jsonl
is "two files of one name" eval 'fit e3 --model model --dataset a.jsonl --eval-dataset a.jsonl,other/a.jsonl --max-steps 2 --lr 1e-3 && [ "$(last e3 eval_a_loss) $(last e3 eval_a_2_loss)" = "$(last e eval_a_loss) $(last e eval_q_loss)" ]'
is "one set has no name of its own" eval '! grep -q eval_a_loss e1/metrics.jsonl'
is "a few rows of each" eval 'fit e4 --model model --dataset a.jsonl --eval-dataset a.jsonl,q.jsonl --eval-rows 31 --max-steps 1 --verbose && said e4 evaluation "on 31 rows"'

# ---- templates, shown rows, adapters, pairs ----
is "a chat template for the set that needs one" eval 'fit t --model model --dataset a.jsonl,c.jsonl --chat-template ,plain --max-steps 2 && said t "set 2" "c.jsonl: .*; messages \(recognised\), .*chat template .*plain.jinja"'
is "... is saved with the model" test -s t/checkpoint-final/chat_template.jinja
is "... and a run that goes on has it for that set alone" eval 'fit t1 --model model --dataset a.jsonl,c.jsonl --chat-template ,plain --max-steps 2 --stop-at-step 1 && "$BUILD/finetune_full" --resume t1 >t1.more 2>&1 && same_run t t1 || { cat t1.more; false; }'
is "formats by name" eval 'fit f --model model --dataset a.jsonl,q.jsonl --format text,prompt-completion --text-field output, --max-steps 2 && said f "set 1" "a.jsonl: .*; text; ended"'
is "an empty value is the default" eval 'fit g --model model --dataset a.jsonl,q.jsonl --format ,prompt-completion --max-steps 2 && said g "set 1" "a.jsonl: .*; alpaca \(recognised\)"'
is "rows of each set are shown" eval '"$BUILD/finetune_full" --model model --dataset a.jsonl,q.jsonl --show-tokens 1 >out 2>&1 && grep -q "^set 1 of 2: a.jsonl" out && grep -q "^row 0, q.jsonl:1:" out && ! grep -q "^row 1," out'
is "adapters" eval '"$BUILD/finetune_lora" --model model --dataset a.jsonl,q.jsonl --mix 2,1 --max-steps 3 --output l >l.out 2>&1 || { cat l.out; false; }'
printf '{"prompt": "a", "chosen": "yes", "rejected": "no"}\n{"prompt": "b", "chosen": "yes", "rejected": "never"}\n' >p1.jsonl
printf '{"prompt": "c", "chosen": "ja", "rejected": "nein"}\n' >p2.jsonl
is "pairs" eval '"$BUILD/finetune_dpo" --model model --dataset p1.jsonl,p2.jsonl --append-token none --lora-r 0 --max-steps 3 --eval-dataset p1.jsonl,p2.jsonl --output d >d.out 2>&1 && [ -n "$(last d eval_p2_loss)" ] || { cat d.out; false; }'

# ---- Parquet files, folders and names of the Hub ----
mkdir -p data/asked/data
awk 'BEGIN { print "instruction\toutput"; for (i = 0; i < 40; i++) print "Say " i ".\tThe answer is \"" i "\"." }' >rows.tsv
head -n 26 rows.tsv | "$BUILD/tests/helpers/parquet" data/asked/data/train-00000-of-00002.parquet
(head -n 1 rows.tsv; tail -n +27 rows.tsv) | "$BUILD/tests/helpers/parquet" data/asked/data/train-00001-of-00002.parquet
printf 'instruction\toutput\nSay it.\tIt.\n' | "$BUILD/tests/helpers/parquet" data/asked/data/test.parquet
tail -n +2 rows.tsv | sed 's/"/\\"/g; s/^\(.*\)\t\(.*\)$/{"instruction": "\1", "output": "\2"}/' >rows.jsonl
pq="--model model --max-steps 6 --batch-size 4 --lr 1e-3"
# shellcheck disable=SC2086 # one word each
{
is "a folder of Parquet files is one set" eval 'fit q $pq --dataset data/asked && said q rows "of columns, 40 to train on" && said q format "alpaca \(recognised\)"'
is "... and its files are named" said q files "data/asked/data/train-00000-of-00002.parquet and 1 more"
is "the same numbers as from JSON" eval 'fit q1 $pq --dataset rows.jsonl && numbers q >a.txt && numbers q1 >b.txt && cmp a.txt b.txt'
is "by its name on the Hub" eval 'fit q2 $pq --dataset me/asked --eval-dataset me/asked/test && [ -n "$(last q2 eval_loss)" ]'
is "stopped and gone on" eval 'fit q3 $pq --dataset me/asked --eval-dataset me/asked/test --stop-at-step 3 && "$BUILD/finetune_full" --resume q3 >q3.more 2>&1 && same_run q2 q3'
is "a file of it, and its rows" eval '"$BUILD/finetune_full" --model model --dataset data/asked/data/train-00001-of-00002.parquet --show-tokens 1 >out 2>&1 && grep -q "^row 0, data/asked/data/train-00001-of-00002.parquet:1:" out'
is "in a mix it is one set" eval 'fit q4 $pq --dataset data/asked,a.jsonl --mix 1,1 && said q4 "set 1" "data/asked: 40 of 40 rows" && said q4 "files 1" "data/asked/data/train-00000"'
}
# shellcheck disable=SC2086
fit q5 $pq --dataset data/asked --stop-at-step 3 >/dev/null
printf 'instruction\toutput\nSay 1.\tNo.\n' | "$BUILD/tests/helpers/parquet" data/asked/data/train-00000-of-00002.parquet
refused "a changed file" 2 "its number of rows: was 40 in that run, is 16 now" "$BUILD/finetune_full" --resume q5
refused "a split that is not there" 2 "data/asked/dev: no such file, and no split of that folder, which has data/asked/test, data/asked/train" "$BUILD/finetune_full" --model model --dataset me/asked/dev
refused "a set that is not there: how to get it" 2 "tools/download.sh --dataset me/other data/other" "$BUILD/finetune_full" --model model --dataset me/other
head -c 300 data/asked/data/train-00001-of-00002.parquet >cut.parquet
refused "a file cut short" 1 "cut.parquet: does not end as a Parquet file does" "$BUILD/finetune_full" --model model --dataset cut.parquet

# ---- refused ----
refused "a set that is not there" 2 "finetune_full: nope.csv: no such file" "$BUILD/finetune_full" --model model --dataset a.jsonl,nope.csv
refused "too many shares" 2 "expected 2 numbers above 0 with commas between them, a share for each data set" "$BUILD/finetune_full" --model model --dataset a.jsonl,q.jsonl --mix 1,2,3
refused "shares of one set" 2 "there is one data set; name several in --dataset" "$BUILD/finetune_full" --model model --dataset a.jsonl --mix 1
refused "too many formats" 2 "has 3 values for 2 data sets; give one for all, or one for each" "$BUILD/finetune_full" --model model --dataset a.jsonl,q.jsonl --format auto,auto,text
refused "a format that is none" 2 '"auto,txt" is no choice' "$BUILD/finetune_full" --model model --dataset a.jsonl,q.jsonl --format auto,txt
refused "a run folder that would go" 2 "would remove a with --dataset a/x.jsonl in it" eval 'cp q.jsonl a/x.jsonl && "$BUILD/finetune_full" --model model --dataset q.jsonl,a/x.jsonl --output a --overwrite'
finish
