#!/bin/sh
# test_failed_run.sh - a run that ends by an error behind its first step: what it did is saved, and it goes on from there when the
# cause is gone, to the bits of the run that had no error. And a run whose loss rose, which is none that finished.
. tests/tap.sh
head -60 datasets/stories.jsonl >"$tmp/rows.jsonl"
cd "$tmp" || exit 1
tiny model 1 >/dev/null
sed '50s/.*/{"text": 7}/' rows.jsonl >bad.jsonl
run() { # NAME DATA OPTION...: 20 steps an epoch
    who=$1 rows=$2
    shift 2
    "$BUILD/finetune_full" --model model --dataset "$rows" --max-length 48 --batch-size 3 --lr 3e-3 --threads 1 --seed 3 --epochs 2 \
        --log-every 100 --no-shuffle --output "$who" "$@" >"$who.out" 2>"$who.err"
    code=$?
    [ $code = 0 ] || tail -n 5 "$who.err"
    return $code
}
more() { who=$1; shift; "$BUILD/finetune_full" --resume "$who" "$@" >>"$who.out" 2>"$who.err"; code=$?; [ $code = 0 ] || tail -n 5 "$who.err"; return $code; }
says() { grep -q "$2" "$1/run.json"; }
same() { numbers "$1" >a.txt && numbers "$2" | diff a.txt - && cmp "$1/checkpoint-final/model.safetensors" "$2/checkpoint-final/model.safetensors" && cmp "$1/checkpoint-final/state/optimizer.safetensors" "$2/checkpoint-final/state/optimizer.safetensors"; }
steps() { grep -c '"loss"' "$1/metrics.jsonl"; }
stands() { # NAME STEP: failed there, with all steps before it in the log and saved
    says "$1" '"failed"' && [ "$(steps "$1")" = "$2" ] && [ "$(ls -d "$1"/checkpoint-*)" = "$1/checkpoint-$2" ] &&
        grep -q "finetune_full: saved $1/checkpoint-$2; to go on: --resume $1 with --skip-bad-rows, or after mending the row in its place$" "$1.err"
}

# ---- a bad row late in the file ----
is "the run without an error" run straight rows.jsonl
is "a bad row in line 50 is an error" eval '! run bad bad.jsonl && [ $code = 1 ] && grep -q "bad.jsonl:50" bad.err'
is "16 steps are saved, and in metrics.jsonl" stands bad 16
is "run.json says why, and runs list too" eval 'says bad "\"reason\":.*bad.jsonl:50" && "$BUILD/runs" list --state failed . | grep -q "bad "'
is "packed, it is the same" eval '! run packed bad.jsonl --packing --batch-size 1 && stands packed "$(steps packed)" && [ "$(steps packed)" -gt 9 ]'
is "resumed as it is: the same error, nothing lost" eval 'cp -r bad twice && ! more twice && stands twice 16'
is "--skip-bad-rows goes on" eval 'cp -r bad skip && more skip --skip-bad-rows && says skip "finished"'
is "to the bits of the run that had it from the start" eval 'run skipped bad.jsonl --skip-bad-rows && same skipped skip'
is "packed too" eval 'more packed --skip-bad-rows && run pskipped bad.jsonl --packing --batch-size 1 --skip-bad-rows && same pskipped packed'
is "the row mended in its place" eval 'cp -r bad mended && cp -p bad.jsonl was.jsonl && cp rows.jsonl bad.jsonl && more mended'
is "is noted" grep -q '^# data file  *the file was changed, but not in the 48 rows that the run has read' mended.out
is "to the bits of the run without an error" same straight mended
sed '3s/e/E/; 50s/.*/{"text": 7}/' rows.jsonl >bad.jsonl
refused "a changed row before the stop" 2 "the file of --dataset, in rows that the run has read: its fingerprint: was" "$BUILD/finetune_full" --resume bad
touch -r was.jsonl bad.jsonl # nothing but the content tells now
refused "... also where size and time are as they were" 2 "the file of --dataset, in rows that the run has read: its fingerprint: was" "$BUILD/finetune_full" --resume bad
sed '3s/e/E/' rows.jsonl >bad.jsonl
is "--allow-changed takes it" eval 'cp -r bad allowed && more allowed --allow-changed --stop-at-step 17'
head -59 rows.jsonl >bad.jsonl
refused "a row less" 2 "its number of rows: was 60 in that run, is 59 now" "$BUILD/finetune_full" --resume bad
cp rows.jsonl bad.jsonl
is "checkpoints of earlier versions have no hash of rows" eval 'cp -r bad older && sed -i "s/content_hash/rows_hash/" older/checkpoint-16/state/progress.json'
refused "with them only the very file goes" 2 "the file of --dataset: its" "$BUILD/finetune_full" --resume older
cp was.jsonl bad.jsonl
touch -r rows.jsonl bad.jsonl
is "shuffled, in the second epoch, in a part of the file" eval 'run sh rows.jsonl --shuffle --train-split 0.8 --stop-at-step 20 && cp rows.jsonl kept.jsonl && touch rows.jsonl && more sh --stop-at-step 22 && grep -q "not in the [0-9]* rows that the run" sh.out'
for n in 1 2 3 4 5 6 7 8; do # every row that is trained on was read: whatever is changed is found, but in the held-out part
    sed "${n}s/the/THE/" kept.jsonl >rows.jsonl
    cp -r sh sh$n
    more sh$n --stop-at-step 24 >/dev/null 2>&1 || grep -q 'in rows that the run has read\|rows to train on, since a changed row fell to the other side' sh$n.err && found=$((found + 1))
done
is "finds changed rows ($found)" test "${found:-0}" -ge 3
is "... also where one fell to the other side of the split" grep -qh 'a changed row fell to the other side of --train-split (put the row back; --skip-bad-rows leaves a bad one out): was' sh?.err
cp kept.jsonl rows.jsonl
printf 'text,note\n' >rows.csv && awk 'BEGIN { for (i = 0; i < 30; i++) print "row " i " of it,x" }' >>rows.csv && sed '29s/,x//' rows.csv >bad.csv
is "CSV" eval '! run csv bad.csv --batch-size 2 && stands csv 13 && cp rows.csv bad.csv && more csv && grep -q "^# data file .*not in the 26 rows" csv.out'

# ---- other errors ----
is "with --no-save nothing is saved, all is logged" eval '! run unsaved was.jsonl --no-save && [ "$(steps unsaved)" = 16 ] && ! ls -d unsaved/checkpoint* && ! grep -q "to go on" unsaved.err'
is "an error before the first step: nothing to save" eval 'sed "2s/.*/{/" kept.jsonl >first.jsonl && ! run first first.jsonl && ! ls -d first/checkpoint* && [ "$(steps first)" = 0 ]'
is "a run that diverged saves no weights behind it" eval '! run wild kept.jsonl --optimizer sgd --lr 1000 --clip-norm 0 --schedule constant --warmup-ratio 0 --epochs 9 --save-every 1 --log-every 1 && grep -q "diverged at step" wild.err && [ "$(ls -d wild/checkpoint-* | wc -l)" = "$(steps wild)" ]'
is "and says which is the newest" grep -q "the newest checkpoint is wild/checkpoint-[0-9]*; to go on: --resume wild$" wild.err
cp kept.jsonl short.jsonl
run cut short.jsonl --epochs 4000 >/dev/null 2>&1 &
job=$!
await $job has 1 cut/metrics.jsonl
head -c 900 kept.jsonl >short.jsonl # in its place: the mapping is of this very file
wait $job
is "a file that is cut short while it is read: saved" eval 'last=$(steps cut) && [ "$last" -gt 0 ] && [ -d cut/checkpoint-$last ] && grep -q "saved cut/checkpoint-$last; to go on: --resume cut$" cut.err && grep -q "put the whole file back" cut.err && says cut failed'
is "it goes on when the file is back" eval 'cat kept.jsonl >short.jsonl && more cut --stop-at-step $((last + 2))'
run full kept.jsonl --epochs 4000 --save-every 1 >/dev/null 2>&1 & # no room for a file above 16 KiB from now on
job=$!
await $job [ -e full/checkpoint-3 ]
prlimit --pid $job --fsize=16384 2>/dev/null || skip "prlimit" "not here"
pid=$(sed -n 's/.*"pid":[^0-9]*\([0-9]*\).*/\1/p' full/run.json | head -n 1)
prlimit --pid "$pid" --fsize=16384 2>/dev/null
wait $job
is "where saving is what failed: the checkpoints before stand" eval 'last=$(ls -d full/checkpoint-* | sed "s/.*-//" | sort -n | tail -1) && [ "$(grep -c "File too large" full.err)" = 1 ] && grep -q "the newest checkpoint is full/checkpoint-$last; to go on: --resume full$" full.err && ! ls full | grep tmp'
is "and it goes on from the newest" more full --stop-at-step $((last + 2))

# ---- a loss that rose ----
rise() { who=$1; shift; run "$who" kept.jsonl --epochs 3 --lr 3 --clip-norm 0 --schedule constant --warmup-steps 25 "$@"; }
is "a loss that rose: the run goes to its end, is saved, and exits 1" eval '! rise rose && [ $code = 1 ] && [ "$(steps rose)" = 60 ] && [ -d rose/checkpoint-final ] && [ -s rose/report.json ]'
is "it says diverged" eval 'says rose "\"status\":.*\"diverged\"" && says rose "\"reason\":.*the loss rose: its mean was" && grep -q "^# diverged  *the loss rose" rose.out && grep -q "the run diverged" rose.err'
is "runs list has that state" eval '"$BUILD/runs" list --state diverged . >list.txt && grep -q "rose" list.txt && ! grep -q straight list.txt'
is "... in the step's line too, when it happens" eval 'rise loud --log-every 1 >/dev/null; grep -q "^# warning: diverged  *at step [0-9]* the loss rose: .*The run goes on; --stop-on-divergence would end it$" loud.out && grep -q "^step 60/60 .* | diverged$" loud.out && ! grep -q "^step 10/60 .* | diverged$" loud.out && says loud "warning: diverged"'
is "of all steps of a run that was resumed" eval 'rise again --stop-at-step 45 && [ $code = 0 ] && says again stopped && ! more again && [ $code = 1 ] && says again "\"status\":.*diverged" && same_run rose again'
told() { sed -n 's/.*at step \([0-9]*\) the loss rose.*/\1/p' "$1.out" | head -n 1; }
is "resumed before and behind the rise: it is seen at the same step" eval 'at=$(told loud) && [ "$at" -gt 12 ] && rise early --log-every 1 --stop-at-step $((at - 2)) && ! more early && [ "$(told early)" = "$at" ] && same_run rose early'
end() { rise "$@" --stop-on-divergence --log-every 1; } # NAME OPTION...
is "--stop-on-divergence ends there: exit 1, diverged" eval '! end ended --save-every 2 --keep-last 1 && [ $code = 1 ] && says ended "\"status\":.*\"diverged\"" && [ "$(steps ended)" = "$at" ] && grep -q "the run diverged: its loss rose, and it was ended there" ended.err'
is "the checkpoint from before is kept beside the newest, and named once" eval 'good=$(sed -n "s|^# checkpoint  *ended/checkpoint-\([0-9]*\) is from before the loss rose; nothing was saved after.*|\1|p" ended.out) && [ "$good" -gt 0 ] && [ "$good" -lt "$at" ] && [ -d ended/checkpoint-$good ] && [ "$(ls -d ended/checkpoint-* | wc -l)" = 2 ] && [ ! -e ended/checkpoint-$at ] && [ ! -e ended/checkpoint-final ]'
is "its weights are those of a run that was stopped there" eval 'rise there --stop-at-step $good && cmp there/checkpoint-$good/model.safetensors ended/checkpoint-$good/model.safetensors'
is "and a run goes on from it with a smaller rate" eval '"$BUILD/finetune_full" --resume ended/checkpoint-$good --overwrite --allow-changed --lr 1e-4 >/dev/null && says ended "\"status\":.*\"finished\""'
is "without a checkpoint from before, it says so" eval '! end bare && grep -q "^# checkpoint  *there is none from before the loss rose.*--save-every" bare.out && ! ls -d bare/checkpoint* 2>/dev/null'
is "there is nothing left to do then" eval '"$BUILD/finetune_full" --resume rose | grep -q "nothing left to do"'
for i in $(seq 200); do cat kept.jsonl; done >many.jsonl # its evaluation takes seconds
rise cut_off --eval-dataset many.jsonl >/dev/null 2>&1 &
job=$!
await $job [ -e cut_off/checkpoint-final ]
kill -TERM "$(sed -n 's/.*"pid":[^0-9]*\([0-9]*\).*/\1/p' cut_off/run.json | head -n 1)"
wait $job
is "a signal in its last evaluation: stopped" eval 'says cut_off "\"status\":.*\"stopped\"" && ! grep -q eval_loss cut_off/metrics.jsonl'
is "resumed, it is evaluated, and diverged" eval '! more cut_off && [ $code = 1 ] && says cut_off "\"status\":.*\"diverged\"" && [ "$(grep -c eval_loss cut_off/metrics.jsonl)" = 1 ]'
is "measurements of speed are exempt" eval 'rise fast --no-save && [ $code = 0 ] && says fast finished && ! grep -q diverged fast.out'
is "... unless they ask" eval '! end search --no-save && [ $code = 1 ] && says search "\"status\":.*\"diverged\"" && grep -q "^# diverged " search.out'
is "and runs too short to say" eval 'run brief kept.jsonl --max-steps 5 --lr 3 --clip-norm 0 --schedule constant --warmup-steps 0 && says brief finished'
# A rate that is too large from the first step on: the loss falls from its second step, and still it has risen.
run taught rows.jsonl --epochs 12 >/dev/null
is "a loss that jumps at once and falls from there" eval '! "$BUILD/finetune_full" --model taught/checkpoint-final --dataset rows.jsonl --max-length 48 --lr 3 --max-steps 45 --threads 1 --output jump >jump.out 2>jump.err && says jump "\"status\":.*\"diverged\"" && [ "$(told jump)" -le 40 ]'
remark() { "$BUILD/$1" --model taught/checkpoint-final --dataset rows.jsonl --max-length 48 --max-steps 1 --no-save --threads 1 --output remark --overwrite --lr "$2" 2>&1 | grep "^# warning: learning rate"; }
is "a learning rate far beyond the usual gets a remark, by what is trained" eval 'remark finetune_full 2e-2 | grep -q "far larger.*full fine-tuning (1e-06 to 0.0001)" && remark finetune_lora 2e-2 | grep -q adapters && remark finetune_lora 1e-9 | grep -q "far smaller"'
is "the defaults, and ten times as much, get none" eval '! remark finetune_full 2e-5 && ! remark finetune_full 2e-4 && ! remark finetune_lora 2e-4 && ! remark finetune_lora 2e-3'
finish
