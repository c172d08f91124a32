#!/bin/sh
# test_requeue.sh - --requeue: one command, given again and again, begins its run, goes on with it and finishes it. In a job of
# Slurm it puts the job back into the queue. Slurm's scontrol is a script here; tests/slurm/slurm_requeue.sh asks a real Slurm.
. tests/tap.sh
if sanitized; then
    skip "runs put back into the queue" "test_resume.sh stops and resumes runs with sanitizers"
    finish
fi
full=$BUILD/finetune_full
head -60 datasets/stories.jsonl >"$tmp/rows.jsonl"
cd "$tmp" || exit 1
tiny model 1 >/dev/null
mkdir bin
cat >bin/scontrol <<'E2'
#!/bin/sh
# Stands in for Slurm: notes what it is asked, answers from files.
echo "$*" >>asked
case $1 in
show) cat job.txt ;;
requeue) [ ! -e refuse ] || { cat refuse >&2; exit 1; }; touch queued ;;
esac
E2
chmod +x bin/scontrol
running="JobId=7 JobName=x
   JobState=RUNNING Reason=None Dependency=(null)
   RunTime=00:00:03 TimeLimit=00:30:00 TimeMin=N/A
   PreemptEligibleTime=2026-01-01T00:00:00 PreemptTime=None"
echo "$running" >job.txt
unset SLURM_JOB_ID
begin() { # NAME OPTION... - the command of a job script: always the same for one NAME
    who=$1
    shift
    PATH="$tmp/bin:$PATH" exec "$full" --model model --dataset rows.jsonl --max-length 48 --batch-size 3 --accumulate 2 --lr 3e-3 --threads 2 \
        --train-split 0.9 --eval-every 40 --seed 3 --requeue --output "$who" "$@"
}
start() { (begin "$@") >>"$1.out" 2>&1; code=$?; }
# limited NAME STEPS OPTION... - the command is sent SIGTERM once it has done so many steps; counted in $stops if it stops it
limited() {
    who=$1 after=$2
    shift 2
    was=$(cat "$who/metrics.jsonl" 2>/dev/null | wc -l)
    (begin "$who" "$@") >>"$who.out" 2>&1 &
    job=$!
    await $job has $((was + after)) "$who/metrics.jsonl"
    kill -TERM $job 2>/dev/null
    wait $job
    code=$?
    stops=$((stops + (code != 0)))
}
says() { grep -q -e "$2" "$1.out" || { tail -n 5 "$1.out"; false; }; }
held() { ls "$1"; cat "$1/run.json" "$1/metrics.jsonl"; }

# ---- in a shell's loop ----
is "a run to compare with" eval 'start straight --epochs 60 && [ $code = 0 ]'
starts=0 stops=0 code=1
until [ $code = 0 ] || [ $starts = 30 ]; do
    starts=$((starts + 1))
    [ $starts -le 3 ] && limited loop 20 --epochs 60 || start loop --epochs 60
done
# On a busy machine a run may come to its end before it is stopped for the third time.
is "one command in a loop, stopped $stops times: $starts starts" test $stops -ge 1 -a "$starts $code" = "$((stops + 1)) 0"
is "it went on, each time" test "$(grep -c '"from_step"' loop/run.json)" = $starts
is "to the same bits" same_run straight loop
is "outside Slurm nobody asks scontrol" test ! -e asked
held loop >was
is "once more: nothing is left to do, exit code 0" eval 'start loop --epochs 60; [ $code = 0 ] && says loop "the run in loop came to its end; there is nothing left to do"'
is "and nothing changed" eval 'held loop | cmp - was'

# ---- in a job of Slurm ----
export SLURM_JOB_ID=7
starts=0 stops=0
queued() { [ -e queued ] && rm queued; }
touch queued
while queued && [ $starts -lt 30 ]; do
    starts=$((starts + 1))
    [ $starts -le 3 ] && limited job 20 --epochs 60 || start job --epochs 60
done
is "a job with $stops limits ends with a finished run" test $stops -ge 1 -a "$starts $code" = "$((stops + 1)) 0"
is "to the same bits" same_run straight job
is "Slurm was asked after each limit, and then no more" eval '[ "$(sort asked | uniq -c | tr -s " ")" = " $stops requeue 7
 $stops show job 7" ]'
is "it says so" says job "job 7 is back in the queue; it goes on from step [0-9]"
is "started once more, it has nothing to do" eval 'start job --epochs 60; [ $code = 0 ] && [ ! -e queued ]'
limited other 3 --epochs 4000
is "the exit code is the signal's" test $code = 143
rm -f queued
kept() { ls -d "$1"/checkpoint-[0-9]* >/dev/null; }
echo "Requested operation is presently disabled for job 7" >refuse
limited other 3 --epochs 4000
is "Slurm refuses: exit code 1" test $code = 1
is "with its words, and what to do" says other "job 7 was not put back: scontrol requeue 7: exit code 1: Requested operation is presently disabled for job 7; the same command goes on from step [0-9]"
is "the checkpoint is kept" kept other
rm refuse
mv bin/scontrol bin/away
limited other 3 --epochs 4000
mv bin/away bin/scontrol
if command -v scontrol >/dev/null 2>&1; then
    skip "no scontrol" "this machine has one"
else
    is "no scontrol: exit code 1" eval '[ $code = 1 ] && says other "scontrol show 7: No such file or directory; the same command goes on from step"'
fi
# A job that is being ended: at its limit, for another job, or because somebody cancelled it.
ending() { echo "$running" | sed "s/RUNNING/${3:-COMPLETING}/; s/RunTime=00:00:03/RunTime=$1/; s/PreemptTime=None/PreemptTime=$2/" >job.txt; rm -f queued; limited other 3 --epochs 4000; }
ending 00:30:01 None
is "at its limit it is put back" test -e queued
ending 1-00:00:01 None
is "so is one that ran for a day" test -e queued
ending 00:00:09 2026-01-01T00:10:00
is "one that makes room for another job is put back" test -e queued
ending 00:00:09 None
is "a cancelled one is not" eval '[ ! -e queued ] && [ $code = 143 ] && says other "job 7 was left alone: it was cancelled, or Slurm itself puts it back"'
ending 00:00:09 None CANCELLED
is "not after its end either" test ! -e queued
echo "$running" >job.txt
rm -f queued asked
for i in 1 2 3; do cat "$here/datasets/stories.jsonl"; done >many.jsonl
(PATH="$tmp/bin:$PATH" exec "$full" --model model --dataset many.jsonl --max-length 128 --accumulate 300 --max-steps 3 --threads 1 --requeue \
    --output long >long.out 2>&1) &
job=$!
await $job [ -s long/metrics.jsonl ]
kill -TERM $job && sleep 0.1 && kill -TERM $job
wait $job
code=$?
is "a second SIGTERM does not cut off the step and the save" eval '[ $code = 143 ] && kept long && [ -e queued ] && says long "goes on from step 2"'
rm -f queued asked
# The signal comes while rows are looked at, so before the first step: for another job, or at the time limit.
words=$(yes ab | head -n 300 | tr '\n' ' ')
for i in $(seq 200); do echo "{\"messages\":[{\"role\":\"user\",\"content\":\"$i\"},{\"role\":\"assistant\",\"content\":\"$words\"}]}"; done >chat.jsonl
echo "{% for m in messages %}{% for i in range(3000) %}{% set x = m['content'] | replace('a', 'b') %}{% endfor %}{{ m['content'] }}{% endfor %}" >slow.jinja
early() { # RUNTIME
    echo "$running" | sed "s/RunTime=00:00:03/RunTime=$1/" >job.txt
    (PATH="$tmp/bin:$PATH" exec "$full" --model model --dataset chat.jsonl --chat-template ./slow.jinja --train-on all --max-length 48 --epochs 4000 --requeue \
        --output soon >soon.out 2>&1) &
    job=$!
    await $job grep chat.jsonl /proc/$job/maps
    kill -TERM $job
    wait $job
    code=$?
}
early 00:14:59
is "a start without a step is put back" eval '[ $code = 143 ] && [ -e queued ] && says soon "goes on from step 0"'
rm -f queued
early 00:15:00
is "not after half of its time limit" eval '[ $code = 1 ] && [ ! -e queued ] && says soon "job 7 was not put back: it finished no step in most of its time limit"'
echo "$running" >job.txt
unset SLURM_JOB_ID

# ---- what lies in --output ----
(begin killed --epochs 4000 --lr 1e-3) >/dev/null 2>&1 &
await $! [ -s killed/metrics.jsonl ]
refused "a run that another process works on" 1 "killed: another process is working on that run" eval '(begin killed --epochs 4000 --lr 1e-3)'
kill -9 $!
wait $! 2>/dev/null
held killed >was
refused "no checkpoint, and another command" 2 "--output killed holds a run that was begun with other options: --lr (was 0.001, now 3e-3)" eval '(begin killed --epochs 4000)'
is "nothing changed" eval 'held killed | cmp - was'
is "killed before its first checkpoint: it begins again" eval 'start killed --epochs 4000 --lr 1e-3 --stop-at-step 9; [ $code = 0 ] && [ "$(grep -c "\"from_step\"" killed/run.json)" = 1 ]'
held killed >was
refused "a checkpoint, and another command" 2 "--lr (was 0.001, now 3e-3), --epochs (was 4000, now 5); give another --output, or --allow-changed" eval '(begin killed --epochs 5)'
refused "an option that is missing now" 2 "--lr (was 0.001, now 3e-3), --epochs (was 4000, now 1)" eval '(begin killed)'
is "nothing changed" eval 'held killed | cmp - was'
is "options that may change are the command's" eval 'start killed --epochs 4000 --lr 1e-3 --stop-at-step 12 --save-every 3 --log-every 2; [ $code = 0 ] && [ -d killed/checkpoint-12 ]'
is "--allow-changed goes on with others" eval 'start killed --epochs 4000 --stop-at-step 14 --allow-changed; [ $code = 0 ] && grep -A3 "\"--lr\"" killed/run.json | grep -q 1e-3'
mkdir hardly && : >hardly/metrics.jsonl && mkdir empty
is "a run that hardly began begins again" eval 'start hardly --max-steps 2; [ $code = 0 ]'
is "an empty folder is used" eval 'start empty --max-steps 2; [ $code = 0 ]'
mkdir mine && echo 1 >mine/thesis.txt
refused "a folder with other things" 2 "mine has no run.json, so it is no run folder and is left alone" eval '(begin mine)'
is "is left alone" test "$(ls mine)" = thesis.txt
cp -r killed foreign && sed -i 's/"finetune_full"/"finetune_lora"/' foreign/run.json
refused "a run of another program" 2 "--output foreign holds a run of finetune_lora, not of finetune_full" eval '(begin foreign --epochs 4000)'
cp -r killed failed && rm -r failed/checkpoint-* && sed -i 's/"status":\([^"]*\)"stopped"/"status":\1"failed"/' failed/run.json
refused "a failed run without a checkpoint is kept" 2 "holds a run without a checkpoint whose status is failed" eval '(begin failed --epochs 4000 --allow-changed)'
refused "--requeue without --output" 2 "--requeue needs --output" "$full" --model model --dataset rows.jsonl --requeue
refused "--requeue with --overwrite" 2 "leave one of them out" eval '(begin a --overwrite)'
refused "--requeue with --no-save" 2 "leave one of them out" eval '(begin a --no-save)'
is "--resume with --requeue goes on from the newest checkpoint" eval '"$full" --resume killed --requeue --stop-at-step 16 >more.out && [ -d killed/checkpoint-16 ]'
echo '{"output": "configured", "requeue": true, "max_steps": 4}' >c.json
is "a --config may have it" eval 'for i in 2 4; do "$full" --config c.json --model model --dataset rows.jsonl --max-length 48 --stop-at-step $i || exit 1; done >c.out; [ -d configured/checkpoint-final ]'

# ---- the other recipes ----
echo '{"prompt": "Name a colour.", "chosen": " Red.", "rejected": " Seven."}' >pairs.jsonl
for recipe in finetune_lora:rows finetune_dpo:pairs; do
    is "${recipe%:*} goes on too" eval 'for i in 2 4; do "$BUILD/${recipe%:*}" --model model --dataset ${recipe#*:}.jsonl --max-length 48 --max-steps 4 \
        --requeue --output r.${recipe%:*} --stop-at-step $i || exit 1; done >r.out; [ -d r.${recipe%:*}/checkpoint-final ]'
done
finish
