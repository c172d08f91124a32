#!/bin/sh
# slurm_requeue.sh - the job script of docs/resume.md, submitted once to a real Slurm (tests/slurm/slurm_cluster.sh): it meets its time
# limit twice or more, and ends with a finished run. A job that makes room for another one goes on after it. One that is cancelled
# does not. Minutes long: Slurm looks at limits every 30 s. (Everything else: tests/recipes/test_requeue.sh.)
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
what="--requeue in a real Slurm"
. tests/slurm/slurm_begin.sh
until_is() { await 0 "$@" || await 0 "$@"; } # COMMAND... - within ten minutes: two time limits and their queues take five

# ---- the script of the page ----
head -60 datasets/stories.jsonl >"$tmp/my.jsonl"
cd "$tmp" || exit 1
tiny models/SmolLM2-135M 1 >/dev/null && mkdir build && ln -s "$BUILD/finetune_full" build
"$BUILD/finetune_full" --model models/SmolLM2-135M --dataset my.jsonl --max-length 48 --threads 1 --stop-after-seconds 3 --epochs 1e6 \
    --output pace >/dev/null 2>&1
# Steps of 80 s at the pace of the fastest tenth: beside other work it takes longer, but never so short that one start does them.
steps=$(sed -n 's/.*"step_s":\([0-9.e-]*\).*/\1/p' pace/metrics.jsonl | sort -g | awk '{ s[NR] = $1 } END { printf "%d", 80 / s[int(NR / 10) + 1] }')
sed -n 's/^    //p' "$here/docs/resume.md" | sed -n '/^#!\/bin\/sh$/,/--output runs\/long$/p' >page.sh
sed "s/--time=60/--time=1/; s/TERM@120/TERM@55/; s/--threads 2/--threads 1 --max-length 48 --max-steps $steps/" page.sh >job.sh
is "the page has a job script" grep -q 'exec build/finetune_full .*' job.sh
field() { scontrol show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
ended() { case $(field "$1" JobState) in COMPLETED | FAILED | CANCELLED | TIMEOUT | NODE_FAIL) ;; *) false ;; esac; }
job=$(sbatch --parsable --output=job.out job.sh) || exit 1
sed 's/ --requeue//; s/runs\/long/runs\/straight/' job.sh >straight.sh
sh straight.sh >straight.out 2>&1
is "the same run in one go" test -e runs/straight/checkpoint-final
is "the job ends" until_is ended "$job"
is "by itself, and well" test "$(field "$job" JobState)" = COMPLETED
is "it met two time limits or more" test "$(field "$job" Restarts)" -ge 2
is "each start went on" test "$(grep -c '"from_step"' runs/long/run.json)" = $(($(field "$job" Restarts) + 1))
is "to the same bits" same_run runs/straight runs/long
[ $failures = 0 ] || sed 's/^/# /' job.out | grep -v '^# step' | tail -n 40

# ---- at its limit without --signal; for another job; cancelled ----
sed 's/--signal=[^ ]*/--partition=one/; s/--max-steps [0-9]*/--max-steps 100000000/; s/runs\/long/runs\/plain/' job.sh >plain.sh
job=$(sbatch --parsable --output=plain.out plain.sh)
again() { [ "$(field "$job" JobState)" = RUNNING ] && [ "$(grep -c '"from_step"' runs/plain/run.json)" = "$1" ]; }
is "a job without --signal meets its limit, and goes on" until_is again 2
is "from where it was" test "$(grep -o '"from_step":[^0-9]*[0-9]*' runs/plain/run.json | tail -n 1 | tr -cd 0-9)" -gt 0
sbatch --partition=urgent --nodelist=n1 --exclusive --output=urgent.out --wrap "sleep 3" >urgent.id
is "a job that makes room for another one goes on after it" until_is again 3
[ $failures = 0 ] || sed 's/^/# /' plain.out | grep -v '^# step' | tail -n 40
scancel "$job"
is "scancel ends it" until_is ended "$job"
is "for good" test "$(field "$job" JobState)" = CANCELLED
is "it says that it was left alone" grep -q "job $job was left alone: it was cancelled" plain.out
finish
