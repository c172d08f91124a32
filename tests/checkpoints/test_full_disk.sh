#!/bin/sh
# test_full_disk.sh - a disk that becomes full: the weights of the last step are kept where the state does not fit; where they do
# not fit either, the run waits if it was asked to, and what was saved before stays.
. tests/tap.sh
head -60 datasets/stories.jsonl >"$tmp/rows.jsonl"
cd "$tmp" || exit 1
tiny model 1 >/dev/null
# While the file $FULL is there, the disk is full for files whose path has $FULL_AT in it.
cat >full.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
static int failed; /* a write did: from there on little is free */
static int is_full(void) { return access(getenv("FULL"), F_OK) == 0; }
size_t fwrite(const void *p, size_t size, size_t n, FILE *f)
{
    static size_t (*real)(const void *, size_t, size_t, FILE *);
    char link[64], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fileno(f));
    if (readlink(link, path, sizeof path - 1) > 0 && strstr(path, getenv("FULL_AT")) && is_full())
        return failed = 1, errno = ENOSPC, 0;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fwrite");
    return real(p, size, n, f);
}
int statvfs(const char *p, struct statvfs *s)
{
    (void)p;
    memset(s, 0, sizeof *s);
    s->f_frsize = 1, s->f_blocks = 1 << 30, s->f_bavail = failed && is_full() ? 1000 : 1 << 30;
    return 0;
}
C
if sanitized || ! $CC -shared -fPIC -o full.so full.c -ldl; then
    skip "a disk that becomes full" "no library can be put before this build"
    finish
fi
run() { # NAME OPTION...: 34 steps
    who=$1 program=${program:-finetune_full}
    shift
    "$BUILD/$program" --model model --dataset rows.jsonl --max-length 48 --batch-size 2 --lr 3e-3 --threads 1 --max-steps 30 \
        --save-every 20 --seed 2 --output "$who" "$@" >"$who.out" 2>"$who.err" </dev/null
    code=$?
    [ $code = 0 ] || tail -n 5 "$who.err"
    return $code
}
# The disk is full from step 20 on, whose checkpoint is whole: the run stops there, and goes on with a full disk.
full() { # NAME WHERE OPTION...
    who=$1 where=$2
    shift 2
    [ -d "$who" ] || run "$who" --stop-at-step 20 || return 1
    touch full
    (export FULL="$tmp/full" FULL_AT="$where" LD_PRELOAD="$tmp/full.so"; exec "$BUILD/${program:-finetune_full}" --resume "$who" "$@") >>"$who.out" 2>"$who.err" </dev/null
    code=$?
    return $code
}
is "a run that has room" run straight
for program in finetune_full finetune_lora; do
    weights=model
    [ $program = finetune_full ] || { weights=adapter_model; run base$program; }
    [ $program = finetune_lora ] || cp -r straight base$program
    r=state$program
    is "$program: the state does not fit: exit code 1" eval '! full $r optimizer.safetensors && [ $code = 1 ]'
    is "... the weights are kept, and named" eval 'grep -q "No space left.*the weights of step 30 are whole and kept in $r/weights-30, without the state" $r.err && cmp $r/weights-30/$weights.safetensors base$program/checkpoint-30/$weights.safetensors && [ ! -e $r/weights-30/state ]'
    is "... run.json names them, too" grep -q '"reason":.*weights-30' $r/run.json
    is "... the older checkpoint stays, and is what one goes on from" eval '[ "$(ls -d $r/checkpoint-*)" = $r/checkpoint-20 ] && grep -q "the newest checkpoint is $r/checkpoint-20; to go on: --resume $r" $r.err && ! ls $r | grep tmp'
    is "... the model answers" eval 'if [ $weights = model ]; then set -- --model $r/weights-30; else set -- --model model --adapter $r/weights-30; fi; "$BUILD/generate" "$@" --format text --prompt "One day" --max-new-tokens 3'
    is "with room again: the same bits, and the weights apart are gone" eval 'rm full && "$BUILD/$program" --resume $r >more.out && same_run base$program $r && [ ! -e $r/weights-30 ]'
    r=weights$program
    is "$program: the weights do not fit: exit code 1, at once where nobody looks" eval '! full $r /$weights.safetensors && [ $code = 1 ] && grep -q "No space left" $r.err && ! grep -q "trying again" $r.out'
    is "... the older checkpoint stays" eval '[ "$(ls -d $r/checkpoint-*)" = $r/checkpoint-20 ] && [ ! -e $r/weights-30 ] && grep -q "the newest checkpoint is $r/checkpoint-20" $r.err && ! ls $r | grep tmp'
    is "... and it goes on from there" eval 'rm full && "$BUILD/$program" --resume $r >more.out && same_run base$program $r'
done
program=finetune_full
full waits /model.safetensors --wait-for-disk 600 &
job=$!
is "--wait-for-disk: it says what it waits for" await $job grep -q "^# warning: disk  *it is full: a checkpoint takes about [0-9.]* [kM]B, and 1.0 kB are free; trying again for 600 s (--wait-for-disk)" waits.out
rm full
wait $job
is "... and when there is room, it goes on: the same bits" eval 'grep -q "^# finished" waits.out && same_run straight waits && [ ! -s waits.err ]'
full signal /model.safetensors --wait-for-disk 600 &
job=$!
await $job grep -q "trying again" signal.out
kill -TERM "$(sed -n 's/.*"pid":[^0-9]*\([0-9]*\).*/\1/p' signal/run.json | tail -n 1)"
wait $job
code=$?
is "a signal ends the wait: exit code 1, the older checkpoint stays" eval '[ $code = 1 ] && grep -q "No space left" signal.err && [ "$(ls -d signal/checkpoint-*)" = signal/checkpoint-20 ]'
is "a time that is up ends it too" eval '! full up /model.safetensors --wait-for-disk 0.1 && [ $code = 1 ] && grep -q "trying again for 0 s" up.out && [ -d up/checkpoint-20 ]'
finish
