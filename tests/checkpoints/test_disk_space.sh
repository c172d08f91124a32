#!/bin/sh
# test_disk_space.sh - evaluations keep one checkpoint, the best; the header says what disk the checkpoints take; too little is told.
. tests/tap.sh
head -60 datasets/stories.jsonl >"$tmp/rows.jsonl"
cd "$tmp" || exit 1
tiny model 1 >/dev/null                       # bfloat16 on disk
tiny wide 1 --dtype float32 >/dev/null
run() { # NAME OPTION...: 34 steps, an evaluation at every second
    who=$1
    shift
    "$BUILD/finetune_full" --model model --dataset rows.jsonl --max-length 48 --batch-size 3 --lr 3e-3 --threads 1 --train-split 0.9 \
        --epochs 2 --eval-every 2 --seed 2 --verbose --output "$who" "$@" >"$who.out" 2>"$who.err"
    code=$?
    [ $code = 0 ] || tail -n 5 "$who.err"
    return $code
}
left() { (cd "$1" && ls -d checkpoint-[0-9]* | grep -v tmp | sed 's/.*-//' | sort -n | tr '\n' ' '); }
best() { readlink "$1/checkpoint-best" | sed 's/.*-//'; }
final() { readlink "$1/checkpoint-final" | sed 's/.*-//'; }
# the header's count of checkpoints, and the size of one in bytes
count() { sed -n 's/^# disk  *at most \([0-9]*\) checkpoints* of .*/\1/p' "$1.out"; }
size() { sed -n 's/^# disk  *at most .* of \([0-9.]*\) \([kMG]\)B, .*/\1 \2/p' "$1.out" | awk '{ print $1 * ($2 == "k" ? 1e3 : $2 == "M" ? 1e6 : 1e9) }'; }
close() { # NAME: one checkpoint takes what was said, to 3 %
    is=$(du -sb --apparent-size "$(ls -d "$1"/checkpoint-[0-9]* | head -n 1)" | cut -f1)
    echo "said $(size "$1"), is $is"
    awk "BEGIN { exit !($(size "$1") > 0.97 * $is && $(size "$1") < 1.03 * $is) }"
}

is "17 evaluations" run plain
evaluations=$(grep -c eval_loss plain/metrics.jsonl)
is "keep the best and the final one" eval '[ "$evaluations" = 17 ] && set -- $(left plain) && [ $# -le 2 ] && [ -d plain/checkpoint-best/state ] && [ "$(final plain)" = 34 ]'
is "the best is the best" test "$(best plain)" = "$(figure plain best_eval_step)"
is "the header said so" test "$(count plain)" = 2
is "and the size of one" close plain
is "nothing is half-removed" eval '! ls plain | grep tmp'
run worse --lr 0.3 --schedule constant --warmup-ratio 0 --patience 4 --min-delta 0.001
is "a best that is not the last stays" eval '[ "$(left worse)" = "$(best worse) $(final worse) " ]'
asked() {
    run more --save-every 10 || return 1
    for k in 10 20 30; do [ -d more/checkpoint-$k ] || return 1; done
    for k in $(left more); do case $k in 10 | 20 | 30 | 34 | "$(best more)") ;; *) return 1 ;; esac; done
}
is "--save-every asks for more" asked
is "as the header says" test "$(count more)" = 5
is "--keep-last keeps so many, those that were the best among them" eval 'run last --keep-last 3 && set -- $(left last) && [ $# -ge 3 ] && [ $# -le 5 ]'
is "and the header counts those of evaluations" eval 'run evaluated --eval-every 1 --keep-last 5 && set -- $(left evaluated) && [ $# -ge 5 ] && [ $# -le "$(count evaluated)" ] && [ "$(count evaluated)" = 7 ]'
refused "more steps than progress.json can say" 2 '--max-steps: "9007199254740992" is outside its range' "$BUILD/finetune_full" --model model --dataset rows.jsonl --max-steps 9007199254740992 --output none
is "the most steps there can be" eval 'run endless --max-steps 1000000000000000 --save-every 1 --eval-every 1 --stop-at-step 2 && grep -q "^# disk  *at most [1-9][0-9]* checkpoints of [0-9.]* MB, [1-9][0-9.]* TB in all" endless.out'
is "can be gone on with" eval '"$BUILD/finetune_full" --resume endless --stop-at-step 3 >endless.out && [ -d endless/checkpoint-3 ]'
is "without evaluations, one" eval 'run none --eval-every 0 && [ "$(count none)" = 1 ] && [ "$(left none)" = "34 " ] && close none'
is "with --no-save and evaluations, the best" eval 'run unsaved --no-save && [ "$(left unsaved)" = "$(best unsaved) " ] && [ "$(count unsaved)" = 2 ]'
is "with --no-save and none, nothing" eval 'run nothing --no-save --eval-every 0 && ! grep -q "^# disk" nothing.out'
is "float32, by SGD" eval 'run sgd --model wide --optimizer sgd --eval-every 0 && close sgd'
is "float32 saved narrower" eval 'run narrow --model wide --save-dtype bfloat16 --eval-every 0 && close narrow'
is "adapters" eval '"$BUILD/finetune_lora" --model model --dataset rows.jsonl --max-length 48 --max-steps 4 --lora-r 8 --verbose --output lora >lora.out && close lora'

# ---- interrupted ----
is "stopped, and gone on with: the best of before goes when there is a better one" eval 'run stop --stop-at-step 7 && [ "$(left stop)" = "6 7 " ] && "$BUILD/finetune_full" --resume stop >/dev/null && [ "$(best stop)" = "$(best plain)" ] && [ ! -d stop/checkpoint-6 ]'
is "to the bits of the run that was not" eval 'same_run plain stop'
is "killed before checkpoint-best was moved on: what it pointed at goes on resuming" eval 'run between --stop-at-step 7 && [ "$(best between)" = 6 ] && cp -r between/checkpoint-6 between/checkpoint-4 && ln -sfn checkpoint-4 between/checkpoint-best && "$BUILD/finetune_full" --resume between --eval-every 100 --stop-at-step 8 && [ "$(left between)" = "6 7 8 " ] && [ "$(best between)" = 6 ]'
is "a run that ended and goes on: checkpoint-final stays whole" eval '"$BUILD/finetune_full" --resume plain --epochs 3 --allow-changed --stop-at-step 38 && [ "$(best plain)" -gt 34 ] && [ "$(final plain)" = 34 ] && [ -d plain/checkpoint-final/state ]'
run killed --epochs 4000 --eval-every 1 >/dev/null 2>&1 &
job=$!
await $job [ -e killed/checkpoint-best ]
sleep 0.2 # at any moment
kill -9 "$(sed -n 's/.*"pid":[^0-9]*\([0-9]*\).*/\1/p' killed/run.json | head -n 1)"
wait $job 2>/dev/null
is "kill -9: it goes on from the best" eval 'at=$(left killed | tr " " "\n" | grep . | tail -n 1) && "$BUILD/finetune_full" --resume killed --stop-at-step $((at + 3)) >killed.out && grep -q "^# resumed  *behind step $at" killed.out'

# ---- too little ----
printf '#include <sys/statvfs.h>\n#include <stdlib.h>\n#include <string.h>\nint statvfs(const char *p, struct statvfs *s)\n{ (void)p; memset(s, 0, sizeof *s); s->f_frsize = 1; s->f_blocks = 1 << 30; s->f_bavail = (unsigned long)atol(getenv("FREE")); return 0; }\n' >small.c
if sanitized || ! $CC -shared -fPIC -o small.so small.c; then
    skip "a disk that is too small" "no library can be put before this build"
else
    less() { (FREE=$1 LD_PRELOAD=$tmp/small.so; export FREE LD_PRELOAD; shift; run "$@"); }
    one=$(size plain | cut -d. -f1)
    is "less than one checkpoint: refused, exit code 3, before the first step" eval '! less $((one * 9 / 10)) small && [ "$(less $((one * 9 / 10)) smaller >/dev/null; tail -n1 smaller.err)" ] && grep -q "not enough disk: a checkpoint takes about .* are free" small.err && [ ! -s small/metrics.jsonl ] && grep -q failed small/run.json'
    less $((one * 9 / 10)) small --overwrite >/dev/null
    is "its exit code" test $? = 3
    is "less than all of them: a warning" eval 'less $((one * 3 / 2)) tight --save-every 10 && grep -q "^# warning: disk  *the disk has .*--keep-last" tight.out'
    is "without --save-every there is nothing to advise" eval 'less $((one * 3 / 2)) bare && grep -q "^# warning: disk  *the disk has .* before the run ends$" bare.out'
    is "resumed: --output is no advice" eval 'run full --stop-at-step 7 && ! (FREE=$((one * 9 / 10)) LD_PRELOAD=$tmp/small.so; export FREE LD_PRELOAD; "$BUILD/finetune_full" --resume full) 2>full.err && grep -q "not enough disk: .* copy that folder to a larger disk and resume the copy" full.err'
    is "enough: none" eval 'less $((one * 21 / 10)) room && ! grep -q "warning: disk" room.out'
fi
finish
