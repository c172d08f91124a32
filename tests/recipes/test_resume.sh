#!/bin/sh
# test_resume.sh - a run that is interrupted and goes on is the run that was not: weights, moments and lines of metrics.jsonl
# to the bit. What is refused, and that refusing changes nothing. (Hundreds of kills and full disks: tests/faults.sh.)
. tests/tap.sh
full=$BUILD/finetune_full
head -60 datasets/stories.jsonl >"$tmp/rows.jsonl"
awk '{ sub(/^\{"text": "/, ""); sub(/"\}$/, ""); gsub(/\\./, ""); print "{\"text\": \"" substr($0, 1, 8 + NR * 37 % 90) "\"}" }' datasets/stories.jsonl | head -120 >"$tmp/short.jsonl"
cd "$tmp" || exit 1
tiny model 1 >/dev/null            # bfloat16 on disk: the float32 weights go beside the moments
tiny wide 1 --dtype float32 >/dev/null
tiny other 2 >/dev/null
tiny untied 1 --like tinyllama-1.1b >/dev/null # an output projection of its own

run() { # NAME OPTION...; 54 rows, 9 steps an epoch, 18 in all
    who=$1
    shift
    "$full" --model model --dataset rows.jsonl --max-length 48 --batch-size 3 --accumulate 2 --lr 3e-3 --threads 2 --train-split 0.9 \
        --epochs 2 --eval-every 4 --save-every 5 --log-every 3 --seed 31 --output "$who" "$@" >"$who.out" 2>&1
    code=$?
    [ $code = 0 ] || tail -n 5 "$who.out"
    return $code
}
more() { who=$1; shift; "$full" --resume "$who" "$@" >>"${who%/*}.out" 2>&1; code=$?; [ $code = 0 ] || tail -n 5 "${who%/*}.out"; return $code; }
same() { # the whole of two runs: every line, the last checkpoint's every file, where the best one is
    same_run "$1" "$2" "$3" && [ "$(readlink "$1/checkpoint-best")" = "$(readlink "$2/checkpoint-best")" ]
}
says() { grep -q "$2" "$1/run.json"; }

# ---- bit for bit ----
is "a run of 18 steps" run straight
steps=$(grep -c '"loss"' straight/metrics.jsonl)
is "has 18" test "$steps" = 18
for k in 5 7 9 17; do # a save's step, the epoch's end, an evaluation's step, amidst
    is "--stop-at-step $k" run stop$k --stop-at-step $k
    is "says so, and where" says stop$k "\"reason\":.*--stop-at-step at step $k of 18"
    is "and goes on, alone by --resume" more stop$k
    is "to the same bits" same straight stop$k
done
is "stopped four times" eval 'run often --stop-at-step 2 && more often --stop-at-step 6 && more often --stop-at-step 7 && more often --stop-at-step 15 && more often'
is "to the same bits" same straight often
for o in "--dtype bfloat16 --activation-checkpointing full" "--model wide --no-shuffle --batch-size 1 --accumulate 1 --max-steps 40" \
    "--optimizer sgd --momentum 0.9 --lr 0.1 --warmup-steps 3 --schedule linear" "--save-dtype bfloat16 --model wide --epochs 1.4" \
    "--schedule wsd --decay-ratio 0.5 --min-lr-ratio 0.1 --warmup-steps 2" \
    "--model untied" "--packing --dataset short.jsonl --max-length 120 --batch-size 1" \
    "--packing --dataset short.jsonl --max-length 100 --schedule linear --warmup-steps 2 --batch-size 2 --accumulate 1" \
    "--packing --dataset short.jsonl --max-length 120 --max-steps 13"; do
    n=$((n + 1))
    is "$o" eval "run s$n $o && run t$n $o --stop-at-step 5 && more t$n"
    is "to the same bits" same s$n t$n
done

# ---- runs of versions that had no --split-by: they held rows out by their numbers, and kept another hash of rows ----
older() { sed -i '/"split_by"/d' "$1/run.json" && sed -i 's/"content_hash":.*/"rows_hash": "93c908c6f4809dcf"/' "$1"/checkpoint-[0-9]*/state/progress.json; }
is "a run by number" run numbered --split-by number
is "holds out as many rows as earlier versions did" grep -q '^# rows  *field "text", 55 to train on, 5 held out$' numbered.out
is "a run of then" eval 'run then --split-by number --stop-at-step 7 && older then && ! grep -q "\"split_by\"" then/run.json && cp -r then then2 && cp -r then then3'
is "goes on" more then
is "to the same bits" same numbered then
is "and says and records by what" eval 'grep -q "^# run  .*--split-by number" then.out && says then "\"split_by\":[^,]*\"number\""'
is "so it does by --requeue" eval 'run then2 --requeue && same numbered then2'
refused "not by the content of rows" 2 "--split-by (was number, now content)" "$full" --resume then3 --split-by content
is "--allow-changed does" more then3 --split-by content --allow-changed

is "other intervals of logs, saves and evaluations are no other run" eval 'run free --stop-at-step 6 && more free --log-every 1 --save-every 2 --keep-last 1 --eval-every 4 --activation-checkpointing full'
is "to the same bits" same straight free
is "--keep-last 1 leaves the final one and the best" test "$(ls -d free/checkpoint-[0-9]* | wc -l)" -le 2
is "rows met are those of a process" grep -q '^# rows met  *[0-9]* read by this process, ' stop7.out
is "training_steps of both processes" test "$(figure stop7 training_steps)" = 18
is "train_runtime is the last line's elapsed_s" eval '[ "$(figure stop7 train_runtime)" = "$(sed -n "s/.*\"elapsed_s\":\([0-9.e-]*\).*/\1/p" stop7/metrics.jsonl | tail -n 1)" ]'
is "loss_first is the first process's" test "$(figure stop7 loss_first)" = "$(figure straight loss_first)"
is "sessions of both in run.json" test "$(grep -c '"from_step"' often/run.json)" = 5
is "--stop-at-step behind which the run is already" eval 'run idle --stop-at-step 7 && cp -r idle idle.was && more idle --stop-at-step 3 && more idle --stop-at-step 7'
is "does nothing, and says so" eval '[ "$(grep -c "idle is at step 7, .* there is nothing to do" idle.out)" = 2 ] && diff -r idle idle.was'
cp -rp straight ended && sed -i '/"status"/s/finished/running/' ended/run.json # killed when all was done but saying so
is "a process that does no step" more ended
is "says nothing of a first one" eval '! grep -q "first step" ended.out && [ -z "$(figure ended time_to_first_step_s)$(figure ended setup_s)$(figure ended cpu_compute_utilization)" ]'
is "and the same of all steps" eval '[ "$(figure ended training_steps)" = 18 ] && [ "$(figure ended train_runtime)" = "$(figure straight train_runtime)" ]'
is "a moved folder" eval 'run moved --stop-at-step 7 && mkdir far && mv moved far/m && cd far && "$full" --resume m && cd .. && mv far/m moved'
is "to the same bits, from another working folder too" same straight moved
is "a model's path as the last process was given it" eval 'mkdir -p apart && cp -r model apart/near && run paths --stop-at-step 5 &&
    (cd apart && "$full" --resume ../paths --model near --stop-at-step 7) && more paths'
is "is meant from where that ran" same straight paths README.md

# ---- kill -9 ----
run killed --eval-every 0 --save-every 4 --epochs 400 >killed.out 2>&1 &
await $! [ -e killed/checkpoint-8 ]
pid=$(sed -n 's/.*"pid":[^0-9]*\([0-9]*\).*/\1/p' killed/run.json | head -n 1)
refused "a run that lives is not resumed" 1 "still writing" "$full" --resume killed
kill -9 "$pid"
wait
mkdir -p killed/checkpoint-9999.tmp-1/state killed/checkpoint-8/state && : >killed/checkpoint-8/state/progress.json.tmp-1
newest=$(ls -d killed/checkpoint-[0-9]* | grep -v tmp | sed 's/.*-//' | sort -n | tail -n 1)
printf '{"step":' >>killed/metrics.jsonl
stop=$((newest + 7))
is "after kill -9 it goes on from checkpoint-$newest" more killed --stop-at-step $stop
is "the same run, not killed" run unkilled --eval-every 0 --save-every 4 --epochs 400 --stop-at-step $stop
ln -sfn checkpoint-$stop killed/checkpoint-final && ln -sfn checkpoint-$stop unkilled/checkpoint-final
is "to the same bits" same unkilled killed
is "what was half-written is gone" sh -c '! ls killed | grep tmp'
is "run.json says that it was killed" says killed '"killed"'

# ---- the folder taken away ----
taken() { # NAME COMMAND...: once it trains, the command; then the run is an error, and the folder is not made again
    run "$1" --eval-every 0 --save-every 4 --epochs 4000 >/dev/null 2>&1 &
    job=$! name=$1
    shift
    await $job [ -e "$name/checkpoint-4" ] || return 1
    "$@"
    wait $job
    code=$?
    tail -n 2 "$name.out"
    [ $code = 1 ] && grep -q "run folder $name was moved or removed while" "$name.out" && [ "$(grep -c "was moved" "$name.out")" = 1 ]
}
is "a run folder that is moved away ends the run" taken lv mv lv lvmoved
is "it is not made again" test ! -e lv
is "and the run goes on where it lies now" more lvmoved --stop-at-step 100000 --stop-after-seconds 0
is "one that is removed does too" taken gone sh -c 'mv gone gone.away && rm -r gone.away'
is "it is not made again" test ! -e gone
is "another one under its name" taken swapped sh -c 'mkdir other.run && : >other.run/metrics.jsonl && mv swapped swapped.away && mv other.run swapped'
is "is left alone" test "$(ls swapped)" = metrics.jsonl

# ---- refused, by name ----
run base --stop-at-step 7
before() { cp base/run.json run.was && cp base/metrics.jsonl metrics.was && ls base >ls.was; }
unchanged() { cmp base/run.json run.was && cmp base/metrics.jsonl metrics.was && ls base | cmp - ls.was; }
before
no() { what=$1 with=$2 text=$3; shift 3; refused "$what" "$with" "$text" "$full" --resume base "$@"; is "and nothing changed" unchanged; }
no "another --lr" 2 "--lr (was 0.003, now 0.1)" --lr 0.1
no "another --epochs" 2 "--epochs (was 2, now 3)" --epochs 3
no "--max-steps" 2 "--max-steps (was -1, now 30)" --max-steps 30
no "another --batch-size and --seed" 2 "--seed (was 31, now 4), --batch-size (was 3, now 2)" --batch-size 2 --seed 4
no "another number of threads" 2 "--threads" --threads 1
no "another model" 2 "the weights of --model (their hash)" --model other
head -59 rows.jsonl >fewer.jsonl
no "another file of rows" 2 "--dataset: its number of rows: was 60 in that run, is 59 now" --dataset fewer.jsonl
sed 's/e/E/' rows.jsonl >edited.jsonl
no "edited rows" 2 "--dataset, in rows that the run has read: its fingerprint: was" --dataset edited.jsonl
no "another output" 2 "--output" --output elsewhere
cp -r model tampered && sed -i 's/"rope_theta":[^,]*/"rope_theta": 7/; s/"rms_norm_eps":[^,]*/"rms_norm_eps": 0.5/' tampered/config.json
no "the same weights with another config.json" 2 "config.json of --model" --model tampered
rm -r tampered && cp -r model tampered && printf '\n' >>tampered/tokenizer.json
no "or another tokenizer.json" 2 "tokenizer.json of --model" --model tampered
no "an older checkpoint, while there is a newer one" 2 "--overwrite" --resume base/checkpoint-5
cp -rp base broken && : >broken/checkpoint-7/state/optimizer.safetensors
refused "a broken checkpoint" 1 "checkpoint-7/state/optimizer.safetensors" "$full" --resume broken
rm -r broken && cp -rp base broken && sed -i '2s/"tokens":[0-9]*/"tokens":1e300/' broken/metrics.jsonl
refused "a number of tokens that is none" 1 'broken/metrics.jsonl:2:' "$full" --resume broken
for from in broken/checkpoint-5 stop9/checkpoint-5; do for file in state/optimizer state/weights; do
    rm -r broken && cp -rp base broken && cp $from/$file.safetensors broken/checkpoint-7/$file.safetensors
    refused "$from's $file in another checkpoint" 1 "broken/checkpoint-7/$file.safetensors is not the file that was saved with" "$full" --resume broken
done; done
rm -r broken && cp -rp base broken && rm broken/checkpoint-7/config.json
refused "a checkpoint without config.json: try an older one" 1 "an older checkpoint may do, give it to --resume" "$full" --resume broken
mkdir broken/checkpoint-70
refused "one with nothing in it too" 1 "checkpoint-70 (an older checkpoint may do, give it to --resume)" "$full" --resume broken
rm -r broken && cp -rp base broken && sed -i '/eval_loss/p' broken/metrics.jsonl
refused "an evaluation that is there twice" 1 "metrics.jsonl:6: the evaluation of step 4 follows the evaluation of step 4; lines are missing or there twice" "$full" --resume broken
rm -r broken && cp -rp base broken && sed -i '/eval_loss/d' broken/metrics.jsonl
refused "an evaluation that was lost" 2 "metrics.jsonl, which the checkpoint is ahead of: was at the evaluation of step 4" "$full" --resume broken
run full --model wide --stop-at-step 7 && cp full/checkpoint-5/model.safetensors full/checkpoint-7
refused "model.safetensors where it is the float32 one" 1 "full/checkpoint-7/model.safetensors is not" "$full" --resume full
mv full/checkpoint-5 full/checkpoint-8
refused "a checkpoint under another's name" 1 'checkpoint-8 (an older checkpoint may do, give it to --resume): "step" in its state/progress.json is 5' "$full" --resume full
rows() { sed -n 's/.*"rows":[^0-9]*\([0-9]*\).*/\1/p' base/checkpoint-7/state/progress.json; }
for n in 0 $(($(rows) + 1)) $(($(rows) + 54)); do
    rm -r broken && cp -rp base broken && sed -i "s/\"rows\":.*/\"rows\": $n,/" broken/checkpoint-7/state/progress.json
    refused "a count of rows that is not this step's: $n" 1 '"rows" is missing or makes no sense' "$full" --resume broken
done
sed -i "s/\"rows\":.*/\"rows\": 36,/; s/\"epoch\":.*/\"epoch\": 0.6666666666666666,/" broken/checkpoint-7/state/progress.json
refused "not even with its epoch" 2 "the number of steps planned: was 18 in that run, is 19 now" "$full" --resume broken
refused "no run" 1 "no run.json" "$full" --resume model
refused "nothing there" 2 "no such folder" "$full" --resume nowhere
is "--allow-changed goes on with another --lr" more base --lr 0.1 --allow-changed --stop-at-step 9
is "and run.json says so" sh -c 'grep -A3 "\"--lr\"" base/run.json | grep -q 0.003'
is "an older one with --overwrite" more base/checkpoint-5 --overwrite --stop-at-step 6 --lr 0.003 --allow-changed
is "takes what came after it" eval '[ "$(ls -d base/checkpoint-[0-9]* | sed "s|.*-||" | sort -n | tr "\n" " ")" = "4 5 6 " ] || { ls -l base; cat base.out | tail; false; }'
is "a run of another build, on another processor" eval 'run gone --stop-at-step 7 && sed -i "s/\"id\":[^\"]*\"/&ff/; / threads, /s/\"device\":[^\"]*\"/&Z80 /" gone/run.json && more gone --stop-at-step 8'
is "is warned about" eval 'grep -q "^# warning: the build of the program *was \"ff" gone.out && grep -q "^# warning: the processor.*was \"Z80" gone.out'
# Kernels of another instruction set: the sums have other last digits.
if [ "$(uname -m)" = x86_64 ]; then
    is "a run with the kernels for x86-64-v2" env TUNE_CPU=x86-64-v2 "$full" --model model --dataset rows.jsonl --max-length 48 \
        --max-steps 4 --stop-at-step 2 --output kernels
    is "says which they are" says kernels '"device":.*x86-64-v2 kernels'
    is "goes on with them without a word" eval 'TUNE_CPU=x86-64-v2 "$full" --resume kernels --stop-at-step 3 >v2.out && ! grep -q "warning: the processor" v2.out'
    if "$BUILD/tests/helpers/device" cpu 2>/dev/null | grep -q x86-64-v2; then
        skip "others are warned about" "this processor runs no others"
    else
        is "others are warned about" eval '"$full" --resume kernels >v3.out && grep -q "^# warning: the processor.*was \".*x86-64-v2 kernels.*\", is \"" v3.out'
    fi
fi
mv model away
refused "a model folder that is gone" 2 "model" "$full" --resume gone
is "the checkpoint stands in for it" more gone --model gone/checkpoint-8 --allow-changed
mv away model
is "to the same bits" same straight gone README.md
run early --save-every 0 --eval-every 0 --epochs 4000 >/dev/null 2>&1 & # until its first line
await $! [ -s early/metrics.jsonl ]
pid=$(sed -n 's/.*"pid":[^0-9]*\([0-9]*\).*/\1/p' early/run.json | head -n 1)
kill -9 "$pid"
wait
refused "killed before the first checkpoint: start again" 1 "--overwrite" "$full" --resume early
is "a finished run: nothing to do" eval '"$full" --resume straight | grep -q "nothing left to do"'
is "and nothing done" same straight stop7
is "from a checkpoint of it, again" eval 'cp -rp straight again && "$full" --resume again/checkpoint-10 --overwrite >/dev/null'
is "to the same bits" same straight again
sed -i 's/60/61/' rows.jsonl && cp rows.jsonl changing.jsonl
"$full" --model model --dataset changing.jsonl --max-length 48 --epochs 4000 --output changing >/dev/null 2>changing.err &
await $! [ -s changing/metrics.jsonl ]
touch changing.jsonl
kill -TERM $!
wait $!
is "a file of rows that changes during the run is an error at its end" sh -c "grep -q 'changing.jsonl was changed while it was read' changing.err && grep -q '\"failed\"' changing/run.json"
is "with the weights saved" sh -c 'ls -d changing/checkpoint-[0-9]*'
for skip in '' --skip-bad-rows; do
    rm -rf short && cp rows.jsonl cut.jsonl
    "$full" --model model --dataset cut.jsonl --max-length 48 --epochs 100000 --output short $skip >/dev/null 2>short.err &
    pid=$!
    await $pid [ -s short/metrics.jsonl ]
    truncate -s 100 cut.jsonl
    wait $pid && code=0 || code=$?
    is "one that is cut short is an error, exit code 1 $skip" eval 'cat short.err; [ $code = 1 ] && grep -q "cut.jsonl was cut .* while it was being read" short.err && ! grep -q "bad rows" short.err'
done
refused "--max-steps 0 without rows to evaluate on" 2 "--max-steps 0 only evaluates, but no rows are held out" "$full" --model model --dataset rows.jsonl --max-length 48 --max-steps 0 --output none

# ---- signals ----
signalled() { # SIGNAL CODE: once it trains, then again to the end
    run s$1 --epochs 4000 --eval-every 50 >/dev/null 2>&1 &
    job=$!
    await $job [ -s s$1/metrics.jsonl ]
    kill -$1 "$(sed -n 's/.*"pid":[^0-9]*\([0-9]*\).*/\1/p' s$1/run.json | head -n 1)"
    wait $job
    code=$?
    last=$(sed -n 's/.*"step":\([0-9]*\),.*/\1/p' s$1/metrics.jsonl | tail -n 1)
    [ $code = "$2" ] && [ -d "s$1/checkpoint-$last" ] && says s$1 "\"reason\":.*SIG$1 at step $last of" && [ ! -e s$1/checkpoint-final ]
}
is "SIGINT: the step, saved, 130" signalled INT 130
is "SIGTERM: 143" signalled TERM 143
is "SIGHUP: 129" signalled HUP 129
is "they go on" eval 'stop=$((last + 3)) && more sHUP --stop-at-step $stop && run uHUP --epochs 4000 --eval-every 50 --stop-at-step $stop && numbers sHUP >a.txt && numbers uHUP | cmp - a.txt'
for i in 1 2 3; do cat "$here/datasets/stories.jsonl"; done >many.jsonl
# The signal comes at the eighth call that changes a file: the run folder is being made, no step has begun.
mkdir -p "$BUILD/tests" && $CC -std=c11 -D_GNU_SOURCE -O1 -o "$BUILD/tests/fault" "$here/tests/faults/fault.c" || exit 1
"$BUILD/tests/fault" TERM 8 "$full" --model model --dataset many.jsonl --max-length 48 --epochs 4000 --output none >none.out 2>&1
code=$?
[ $code = 77 ] && skip "SIGTERM before the first step" "this system does not let programs be traced" ||
    is "SIGTERM before the first step: nothing to go on from, it says" eval '[ $code = 143 ] && grep -q "^# stopped  *SIGTERM at step 0 of [0-9]*; nothing was trained, so nothing saved: start it again with --overwrite" none.out && [ ! -s none/metrics.jsonl ]'
# A template that takes minutes over the first rows, before there is a run folder: one signal is enough.
words=$(yes ab | head -n 300 | tr '\n' ' ')
for i in $(seq 200); do echo "{\"messages\":[{\"role\":\"user\",\"content\":\"$i\"},{\"role\":\"assistant\",\"content\":\"$words\"}]}"; done >chat.jsonl
echo "{% for m in messages %}{% for i in range(30000) %}{% set x = m['content'] | replace('a', 'b') %}{% endfor %}{{ m['content'] }}{% endfor %}" >slow.jinja
for signal in TERM:143 INT:130 HUP:129; do
    rm -rf early.* && { "$full" --model model --dataset chat.jsonl --chat-template ./slow.jinja --skip-bad-rows --max-length 48 --max-steps 1 --output early.out >early.said 2>&1 & }
    pid=$! tries=0
    await $pid grep chat.jsonl /proc/$pid/maps
    kill -${signal%:*} $pid
    await 0 is_gone $pid || kill -9 $pid
    wait $pid && code=0 || code=$?
    is "SIG${signal%:*} while rows are looked at: one ends it, nothing is made" eval '[ $code = ${signal#*:} ] && grep -q "ended by a signal before the run began" early.said && [ ! -e early.out ]'
done
slow() { # NAME OPTION...: an evaluation after each step that takes a second or more
    who=$1
    shift
    "$full" --model model --dataset many.jsonl --max-length 48 --train-split 0.01 --eval-every 1 --save-every 1 \
        --threads 1 --max-steps 9 --output "$who" "$@" >"$who.out" 2>&1
}
slow cut >/dev/null 2>&1 &
job=$!
await $job grep '^step 1/' cut.out
kill -TERM "$(sed -n 's/.*"pid":[^0-9]*\([0-9]*\).*/\1/p' cut/run.json | head -n 1)"
wait $job
code=$?
is "SIGTERM during an evaluation cuts it off" eval '[ $code = 143 ] && [ "$(wc -l <cut/metrics.jsonl)" = 1 ] && [ -d cut/checkpoint-1 ]'
is "the run that goes on makes it first" eval 'more cut --stop-at-step 2 && slow uncut --stop-at-step 2 && numbers cut >a.txt && numbers uncut | diff - a.txt && [ "$(readlink cut/checkpoint-best)" = checkpoint-2 ]'
"$full" --model model --dataset many.jsonl --max-length 128 --accumulate 1200 --max-steps 3 --threads 1 --output long >/dev/null 2>&1 &
job=$!
await $job [ -s long/run.json ]
kill -TERM $job
kill -INT $job
wait $job
code=$?
is "the second signal ends the program at once" eval '[ $code = 143 ] || [ $code = 130 ]'
is "with nothing saved" eval '! ls -d long/checkpoint* 2>/dev/null'
{ run straighter --epochs 30 --eval-every 0; echo $? >code; } 2>/dev/null
is "the run that the next one is compared with" test "$(cat code)" = 0
{ "$full" --model model --dataset rows.jsonl --max-length 48 --batch-size 3 --accumulate 2 --lr 3e-3 --threads 2 --train-split 0.9 --epochs 30 \
    --save-every 5 --log-every 1 --seed 31 --output pipe 2>pipe.err; echo $? >code; } | head -n 60 >pipe.out
is "a screen that goes away: the step, saved, 1" eval '[ "$(cat code)" = 1 ] && grep -q "cannot write to standard output: .*; the run stopped there as after a signal" pipe.err'
is "run.json says so, and where" says pipe '"reason":.*lost standard output at step [0-9]* of 270'
is "it goes on" more pipe
is "to the same bits" same straighter pipe
(trap '' HUP && exec "$full" --model model --dataset rows.jsonl --max-length 48 --epochs 9999 --output nohup >nohup.out 2>&1) &
job=$!
await $job [ -s nohup/metrics.jsonl ]
kill -HUP "$(sed -n 's/.*"pid":[^0-9]*\([0-9]*\).*/\1/p' nohup/run.json | head -n 1)"
await $job has $(($(wc -l <nohup/metrics.jsonl) + 3)) nohup/metrics.jsonl
kill -TERM $job
wait $job
is "under nohup a hangup is none" test $? = 143
finish
