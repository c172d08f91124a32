#!/bin/sh
# test_evaluation.sh - --eval-every and what belongs to it: on which rows, when a run ends early, which checkpoint is the best.
. tests/tap.sh
cd "$tmp" || exit 1
tiny model 1 --dtype float32 >/dev/null
head -n 40 "$here/datasets/stories.jsonl" >train.jsonl
tail -n 12 "$here/datasets/stories.jsonl" >held.jsonl
program() { "$BUILD/finetune_full" --model model --dataset train.jsonl --max-length 64 --batch-size 2 --threads 1 "$@"; }
run() { # NAME OPTION...
    out=$1
    shift
    program --log-every 100 --verbose --output "$out" "$@" >"$out.out" 2>&1 || { cat "$out.out"; false; }
}
value() { sed -n 's/.*"'"$2"'":[[:space:]]*\([-0-9.e]*\).*/\1/p' "$1" | tail -n 1; }
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; if (d < 0) d = -d; print a, b; exit !(a > 0 && d <= 1e-6 * b) }'; }

# At learning rate 0 the training loss of one step over all of a file's rows is the evaluation's loss on that file.
is "evaluation on a file" run file --eval-dataset held.jsonl --lr 0 --max-steps 2 --eval-every 1
is "the same rows, trained on in one step" run step --dataset held.jsonl --lr 0 --max-steps 1 --batch-size 12
is "its loss is that step's" near "$(value file/report.json eval_loss)" "$(value step/report.json loss_first)"
perplexity() { awk -v p="$(value file/report.json eval_perplexity)" -v l="$(value file/report.json eval_loss)" 'BEGIN { d = p / exp(l) - 1; exit !(d * d < 1e-20) }'; }
is "perplexity is its exponential" perplexity
is "two evaluations, one a step" test "$(grep -c '"eval_loss"' file/metrics.jsonl)" = 2
is "run.json names the file and its rows" sh -c 'tr -d "\n\t" <file/run.json | grep -q "\"eval_data\":{\"path\":\"held.jsonl\",\"rows\":12,\"fingerprint\":\"[0-9a-f]*\"[,}]"'
is "report.json has both files' hashes" sh -c 'for k in data eval_data; do hash=$(tr -d "\n\t" <file/run.json | sed "s/.*\"$k\":{[^}]*\"fingerprint\":\"\([0-9a-f]*\)\".*/\1/") && grep -q "\"${k}_hash\":.*\"$hash\"" file/report.json || exit 1; done'
is "no training row is held out for it" grep -q '40 to train on, 0 held out' file.out
is "text files and arrays too" sh -c 'printf "one two three\n\nfour five six\n" >held.txt'
is "a .txt file to evaluate on" run text --eval-dataset held.txt --max-steps 1

is "--eval-rows" run some --eval-dataset held.jsonl --eval-rows 5 --lr 0 --max-steps 3 --eval-every 1
is "evaluates on so many" grep -q '^# evaluation  *on 5 rows' some.out
is "the same ones each time" test "$(sed -n 's/.*"eval_loss"/"eval_loss"/p' some/metrics.jsonl | sort -u | wc -l)" = 1
is "by another seed" run others --eval-dataset held.jsonl --eval-rows 5 --lr 0 --max-steps 1 --seed 7
is "other ones" test "$(value others/report.json eval_loss)" != "$(value some/report.json eval_loss)"
is "not on all" test "$(value some/report.json eval_loss)" != "$(value file/report.json eval_loss)"
is "--eval-rows above what there is: all of them" run most --eval-dataset held.jsonl --eval-rows 500 --lr 0 --max-steps 1
is "with the same loss" test "$(value most/report.json eval_loss)" = "$(value file/report.json eval_loss)"
is "--eval-rows of a part held out" run part --train-split 0.5 --eval-rows 3 --max-steps 1
is "takes them from it" grep -q '^# evaluation  *on 3 rows' part.out

# At learning rate 0 no evaluation is better than the first.
is "early stop ends a run with 0" run early --train-split 0.7 --lr 0 --epochs 50 --eval-every 2 --patience 3
is "after the first evaluation and three more" test "$(grep -c '"eval_loss"' early/metrics.jsonl)" = 4
is "at that step" test "$(value early/report.json training_steps)" = 8
is "run.json: finished, by an early stop, and where the best was" sh -c 'grep -q "\"status\":[[:space:]]*\"finished\"" early/run.json && grep -q "\"reason\":[[:space:]]*\"early stop: 3 evaluations .* at step 2\"" early/run.json'
is "the best checkpoint is kept, the last one is the final" test "$(readlink early/checkpoint-best)" = checkpoint-2 -a "$(readlink early/checkpoint-final)" = checkpoint-8
is "the report says which was the best" test "$(value early/report.json best_eval_step)" = 2 -a "$(value early/report.json is_valid)" = 1
is "and so does the screen" grep -q '^eval 8 | .* | best [0-9.]* at step 2$' early.out
resume() { "$BUILD/finetune_full" --resume "$1" >"$1.out" 2>&1 || { cat "$1.out"; false; }; }
is "a run that is interrupted on the way there" run halted --train-split 0.7 --lr 0 --epochs 50 --eval-every 2 --patience 3 --stop-at-step 5
is "counts on when it goes on" resume halted
is "and ends at the same step" test "$(value halted/report.json training_steps)" = 8 -a "$(value halted/report.json best_eval_step)" = 2
is "for the same reason" sh -c 'grep -q "\"reason\":[[:space:]]*\"early stop: 3 evaluations .* at step 2\"" halted/run.json'
more() { name=$1; shift; "$BUILD/finetune_full" --resume "$name" "$@" >"$name.out" 2>&1 || { cat "$name.out"; false; }; }
is "more patience goes on behind an early stop" more early --patience 5 --allow-changed
is "to what it would have come to" test "$(value early/report.json training_steps)" = 12
is "as no patience does" more early --patience 0 --allow-changed --stop-at-step 14
is "without end" test "$(value early/report.json training_steps)" = 14
is "less patience than evaluations were in vain" more early --patience 2 --allow-changed
is "is an early stop at once" sh -c 'grep -q "^# finished  *early stop: 6 evaluations" early.out && ! grep -q "^step" early.out'
is "--min-delta: what falls by less is no improvement" run slow --train-split 0.7 --lr 1e-4 --epochs 50 --eval-every 2 --patience 2 --min-delta 1
is "so it ends early" test "$(value slow/report.json training_steps)" = 6
is "though the last was the best" test "$(readlink slow/checkpoint-best)" = checkpoint-6
is "with neither, the run goes to its end" run whole --train-split 0.7 --lr 0 --max-steps 12 --eval-every 2
is "all twelve steps" test "$(value whole/report.json training_steps)" = 12
is "and gives no reason" sh -c '! grep -q "\"reason\"" whole/run.json'

refused "both a file and a part" 2 "leave one of them out" program --eval-dataset held.jsonl --train-split 0.5 --output x
refused "--eval-every without rows" 2 "no rows are held out" program --eval-every 2 --output x
refused "--eval-rows without rows" 2 "no rows are held out" program --eval-rows 2 --output x
refused "--patience without --eval-every" 2 "give --eval-every N" program --train-split 0.5 --patience 2 --output x
refused "--min-delta without --patience" 2 "give --patience N" program --train-split 0.5 --eval-every 1 --min-delta 2 --output x
refused "a file that is not there" 2 "--eval-dataset: gone.jsonl: no such file" program --eval-dataset gone.jsonl --output x
sed '7s/.*/{"text": 5}/' held.jsonl >broken.jsonl
refused "a bad row among those to evaluate on, before the first step" 1 "--eval-dataset: broken.jsonl:7" program --eval-dataset broken.jsonl --output x
{ cat train.jsonl; for i in $(seq 10); do echo '{"text": 5}'; done; } >mixed.jsonl
refused "among those held out too" 1 "--train-split holds out: mixed.jsonl:" program --dataset mixed.jsonl --train-split 0.5 --output x
is "which --skip-bad-rows leaves out" run skipping --dataset mixed.jsonl --train-split 0.5 --skip-bad-rows --max-steps 1
for i in 1 2 3; do echo '{"text": "a"}'; done >short.jsonl
refused "no label among them" 1 "--eval-dataset: not one of" program --eval-dataset short.jsonl --append-token none --output x
is "those that --eval-rows leaves out are not read" run few --eval-dataset broken.jsonl --eval-rows 2 --max-steps 1

# ---- copies of rows that are trained on ----
{ cat held.jsonl; head -n 3 train.jsonl; sed -n 2p train.jsonl; } >copies.jsonl
copies="warning: copies  *4 of 16 rows to evaluate on are copies of rows to train on, the first is copies.jsonl:13; take them out of one of the files, or hold rows out by --train-split"
is "rows to evaluate on that are also trained on" eval 'run doubly --eval-dataset copies.jsonl --max-steps 2 --stop-at-step 1 && grep -q "^# $copies" doubly.out'
is "run.json has it" grep -q '"warning: copies":.*"4 of 16 rows' doubly/run.json
is "a resumed run says it no more" eval '"$BUILD/finetune_full" --resume doubly >doubly.more && ! grep -q copies: doubly.more'
is "nothing is said where there are none, or nothing is trained" eval '! grep -q copies file.out && run untrained --eval-dataset copies.jsonl --max-steps 0 && ! grep -q "copies:* " untrained.out'
is "of --eval-rows, only those that are evaluated on" eval 'run fewer --eval-dataset copies.jsonl --eval-rows 15 --max-steps 1 && grep -q "^# warning: copies  *[34] of 15 rows" fewer.out'
is "files of another kind cannot be compared, and that is said" eval 'run unlike --eval-dataset held.jsonl,held.txt --max-steps 1 && grep -q "^# copies  *2 of 14 rows to evaluate on are of another kind of file than the rows to train on" unlike.out'
{ cat train.jsonl train.jsonl; } >twice.jsonl
is "--train-split keeps copies together" eval 'run apart --dataset twice.jsonl --train-split 0.7 --max-steps 1 && ! grep -q "copies:* " apart.out && [ $(($(sed -n "s/^# evaluation  *on \([0-9]*\) rows.*/\1/p" apart.out) % 2)) = 0 ]'
is "--split-by number does not, and they are counted" eval 'run torn --dataset twice.jsonl --train-split 0.7 --split-by number --max-steps 1 && grep -q "^# warning: copies .* with --split-by content$" torn.out'
for i in 1 2 3 4; do head -n 1 train.jsonl; done >one.jsonl
refused "a file of nothing but copies" 2 "of 4; only 1 of them differ, and copies of a row stay on one side (--split-by number parts them)" program --dataset one.jsonl --train-split 0.5 --output x
is "no run folder was made" test ! -e x
mkdir y && echo '{}' >y/run.json && cp held.jsonl y
refused "--overwrite would remove it" 2 "would remove" program --eval-dataset y/held.jsonl --output y --overwrite
finish
