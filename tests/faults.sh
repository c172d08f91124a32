#!/bin/sh
# faults.sh - what a run leaves behind when the world fails it: a full disk, a file size limit, a read-only file system or an
# I/O error at each single call that changes a file; SIGKILL and SIGTERM at each of them; and 200 times kill -9 at random
# moments. Always: what stands under a checkpoint's name is whole, and the run goes on from it to the bits of the run that
# was left alone. Called by `make faults`; a few minutes on two cores.
# FAULT_KILLS: how often to kill at random (200). FAULT_STRIDE: take every that many calls only (1).
# Thousands of fsyncs: in memory, where there is such a folder.
[ -n "$TMPDIR" ] || [ ! -w /dev/shm ] || export TMPDIR=/dev/shm
. tests/tap.sh
full=$BUILD/finetune_full kills=${FAULT_KILLS:-200} stride=${FAULT_STRIDE:-1} seed=$$
head -24 datasets/stories.jsonl >"$tmp/rows.jsonl"
mkdir -p "$BUILD/tests" && $CC -std=c11 -D_GNU_SOURCE -O1 -o "$BUILD/tests/fault" tests/faults/fault.c || exit 1
cd "$tmp" || exit 1
tiny model 1 --layers 1 --hidden-size 16 --intermediate-size 32 --vocab-size 262 >/dev/null || exit 1
set -- --model model --dataset rows.jsonl --max-length 24 --batch-size 2 --threads 1 --lr 3e-3 --train-split 0.8 --eval-every 2 \
    --save-every 1 --keep-last 2 --max-steps 4
arguments=$*

last() { ls -d "$1"/checkpoint-* 2>/dev/null | sed -n 's/.*checkpoint-\([0-9]*\)$/\1/p' | sort -n | tail -n 1; }
# whole RUN - each checkpoint has all its files in their sizes, the links lead somewhere; sizes.txt: of a good one. (The step in
# the header of a file of state/ may take a digit more, which is 8 bytes.) A card tells other losses at each step: its last line is there.
sizes() { (cd "$1" && find . -type f ! -name progress.json ! -name README.md ! -name '*.tmp-*' -printf '%P %s\n' | sort); }
whole() {
    for c in "$1"/checkpoint-*; do
        [ -d "$c" ] || [ ! -L "$c" ] || { echo "$c leads nowhere"; return 1; }
        case $c in *[!0-9]) continue ;; *.tmp-*) continue ;; esac
        [ -d "$c" ] || continue
        sizes "$c" | awk 'NR == FNR { want[$1] = $2; n++; next }
                { d = $2 - want[$1]; bad += !($1 in want) || d < 0 || d > ($1 ~ /^state/ ? 8 : 0); m++ }
                END { exit bad || m != n }' sizes.txt - && tail -n 1 "$c/state/progress.json" | grep -q '^}$' && tail -n 1 "$c/README.md" | grep -q '^<!-- tune.c: .* -->$' || { echo "$c is not whole"; return 1; }
    done
}
same() { # RUN LIKE
    numbers "$1" >"$1.numbers" && cmp "$1.numbers" "$2.numbers" && diff -r "$1/checkpoint-final" "$2/checkpoint-final" &&
        [ "$(readlink "$1/checkpoint-best")" = "$(readlink "$2/checkpoint-best")" ] && ! ls "$1" | grep -q tmp
}
# after RUN - it is whole, and can be brought to the end it would have had; or says that it has to begin again, and can.
after() {
    whole "$1" || return 1
    if [ -n "$(last "$1")" ]; then
        "$full" --resume "$1" >"$1.out" 2>"$1.err" || { cat "$1.err"; return 1; }
        grep -q 'nothing left to do' "$1.out" || whole "$1" || return 1
        same "$1" straight && ! find "$1" -name '*.tmp-*' | grep .
    elif [ -e "$1" ]; then
        "$full" --resume "$1" >"$1.out" 2>"$1.err" && { echo "went on without a checkpoint"; return 1; }
        grep -q -e '--overwrite' -e 'no run.json' "$1.err" || { cat "$1.err"; return 1; }
        "$full" $arguments --output "$1" --overwrite --max-steps 1 >"$1.out" 2>"$1.err" || { cat "$1.err"; return 1; }
    fi
}
# one WHAT N RUN COMMAND... - the command with a fault at its N-th call; RUN: where it writes.
one() {
    what=$1 n=$2 run=$3
    shift 3
    "$BUILD/tests/fault" "$what" "$n" "$full" "$@" >"$run.out" 2>"$run.err"
    code=$?
    cat "$run.err" >>"$run.errors"
    case $what in
    KILL) [ $code = 137 ] || [ $code = 0 ] ;;
    TERM) [ $code = 143 ] || [ $code = 0 ] ;;
    *) # an error that says what and why, or a call that does not matter
        [ $code = 0 ] || { [ $code = 1 ] && grep -qE 'No space left|Input/output error|Read-only file system|File too large|quota' "$run.err"; } ;;
    esac || { echo "ended with $code:"; cat "$run.err"; return 1; }
    [ $code != 0 ] || [ "$what" = TERM ] || same "$run" straight || return 1
    case $what in KILL | TERM | *+) ;; *) # and run.json says so, unless it was itself what could not be written, or the run had not gone on yet
        [ $code = 0 ] || [ ! -e "$run/run.json" ] || grep -qE 'run\.json|sync folder' "$run.err" || grep -q '^	"status":	"failed"' "$run/run.json" ||
            { [ "$1" = --resume ] && grep -q '^	"status":	"stopped"' "$run/run.json"; } || { echo "run.json does not say that it failed:"; cat "$run.err"; return 1; } ;;
    esac
    after "$run"
}
# walk WHAT FROM STEP CALLS FRESH - one at each STEP-th call, two at a time; FRESH: the run folder to begin from, or nothing.
walk() {
    for worker in 0 1; do
        (
            n=$(($2 + worker * $3))
            while [ "$n" -le "$4" ]; do
                r=w$worker
                rm -rf "$r" "$r".tmp-*
                if [ -n "$5" ]; then
                    cp -rp "$5" "$r" && said=$(one "$1" "$n" "$r" --resume "$r" 2>&1)
                else
                    said=$(one "$1" "$n" "$r" $arguments --output "$r" 2>&1)
                fi || { echo "$1 at call $n: $said"; cp -r "$r" "kept-$1-$n" 2>/dev/null; }
                n=$((n + 2 * $3))
            done
        ) >"walk$worker" &
    done
    wait
    cat walk0 walk1
}
walks() { # NAME WHAT STEP CALLS FRESH
    step=$(($3 * stride))
    none "$1 ($(($4 / step)) of $4 calls)" "$(walk "$2" 1 $step "$4" "$5")"
}

"$full" $arguments --output straight >straight.out 2>&1 || { cat straight.out; exit 1; }
numbers straight >straight.numbers
sizes straight/checkpoint-final >sizes.txt
"$full" $arguments --output stopped --stop-at-step 2 >/dev/null || exit 1
mkdir stopped/checkpoint-9.tmp-1 && : >stopped/run.json.tmp-1 && printf '{"step":3,"loss"' >>stopped/metrics.jsonl
is "the run that is left alone is whole" whole straight
"$BUILD/tests/fault" COUNT 0 "$full" $arguments --output w0 9>count >/dev/null 2>w0.err
case $? in
0)
    calls=$(cat count)
    rm -rf w0 && cp -rp stopped w0 && "$BUILD/tests/fault" COUNT 0 "$full" --resume w0 9>count >/dev/null
    resumed=$(cat count)
    walks "disk full at one call" ENOSPC 1 "$calls"
    walks "disk full from a call on" ENOSPC+ 5 "$calls"
    for f in run.json recipe.c metrics.jsonl checkpoint- report.json; do
        is "the message names $f and the reason" grep -q "w[01]/$f.*: No space left on device" w0.errors w1.errors
    done
    walks "I/O error at one call" EIO 5 "$calls"
    walks "read-only from a call on" EROFS+ 9 "$calls"
    walks "quota, file size limit" EFBIG 9 "$calls"
    walks "SIGKILL before a call" KILL 2 "$calls"
    walks "SIGTERM before a call: while loading, evaluating, saving" TERM 3 "$calls"
    walks "disk full at one call of a resumed run" ENOSPC 3 "$resumed" stopped
    walks "SIGKILL before a call of a resumed run" KILL 2 "$resumed" stopped
    ;;
77) skip "a fault at each call" "this system does not let programs be traced" ;;
*) is "a run that is traced" false ;;
esac

# ---- the real things ----
if command -v unshare >/dev/null 2>&1 && unshare -rm true 2>/dev/null; then
    mkdir small
    # 200 kB hold the run folder and some checkpoints of 45 kB; then the disk is full
    unshare -rm sh -c "mount -t tmpfs -o size=200k tmpfs small && '$full' $arguments --keep-last 0 --save-every 1 --max-steps 40 --output small/run >full.out 2>full.err; echo \$? >full.code; cp -a small/run full"
    is "a full file system ends the run with 1" test "$(cat full.code)" = 1
    is "says which file, and why" grep -q 'small/run.*No space left on device' full.err
    is "leaves no half of anything" eval 'whole full && [ "$(last full)" -ge 1 ] && ! find full -name "*.tmp-*" | grep .'
    is "and the run goes on where there is space" eval '"$full" --resume full --keep-last 2 >full.out 2>&1 && "$full" $arguments --max-steps 40 --output roomy >/dev/null && numbers roomy >roomy.numbers && same full roomy'
    unshare -rm sh -c "cp -a stopped readonly && mount --bind readonly readonly && mount -o remount,ro,bind readonly && '$full' --resume readonly >ro.out 2>ro.err; echo \$? >ro.code"
    is "a read-only run folder" eval '[ "$(cat ro.code)" = 1 ] && grep -q "readonly/.*Read-only file system" ro.err'
else
    skip "a full and a read-only file system" "mounting is not allowed here"
fi
(ulimit -f 24 && "$full" $arguments --output limit >limit.out 2>limit.err) # blocks of 512 bytes: less than the moments have
code=$?
is "a file size limit: an error, not a signal" test $code = 1
is "that names the file and the reason" grep -q 'limit/checkpoint-1.*: File too large' limit.err
is "and run.json says so" grep -q '"failed"' limit/run.json
is "another try without the limit" eval '"$full" $arguments --output limit --overwrite >/dev/null && numbers limit >limit.numbers && same limit straight'
(ulimit -f 2 && "$BUILD/init_model" --like smollm2-135m --layers 1 --hidden-size 16 --heads 2 --kv-heads 1 --vocab-size 262 limited >/dev/null 2>limit.err)
is "init_model: an error too, and nothing half-written" eval '[ $? != 153 ] && grep -q "File too large" limit.err && ! ls -d limited* 2>/dev/null'

# ---- kill -9 at random moments ----
# One life after the other; each must save something, so it is killed a random time after its first line.
life() {
    before=$(last night)
    if [ -n "$before" ]; then set -- --resume night; else set -- $arguments --max-steps 1000000 --output night --overwrite; fi
    "$full" "$@" >night.out 2>night.err &
    job=$!
    await $job eval '[ "$(last night)" != "$before" ]' || { cat night.err; return 1; }
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    sleep "0.$(printf %03d $((seed / 65536 % 100)))"
    kill -9 $job 2>/dev/null
    wait $job 2>/dev/null
    code=$?
    [ $code = 137 ] || { echo "life $lives ended with $code:"; cat night.err; return 1; }
    whole night || return 1
    [ "$(last night)" -gt "${before:-0}" ] || { echo "life $lives: checkpoint-$(last night) after checkpoint-$before"; return 1; }
}
lives=0
night() {
    while [ $lives -lt "$kills" ]; do
        lives=$((lives + 1))
        life || return 1
    done
}
is "kill -9 at random moments, $kills times: the newest checkpoint is whole and goes on" night
stop=$(($(last night) + 5))
is "the last of $((kills + 1)) processes" "$full" --resume night --stop-at-step $stop
is "the same $stop steps in one" "$full" $arguments --save-every 0 --max-steps 1000000 --output day --stop-at-step $stop
ln -sfn checkpoint-$stop night/checkpoint-final && ln -sfn checkpoint-$stop day/checkpoint-final
numbers day >day.numbers
is "are the same bits: weights, moments, lines" same night day
finish
