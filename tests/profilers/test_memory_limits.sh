#!/bin/sh
# test_memory_limits.sh - memory: what a run is told to need it needs; what does not fit here is refused before it begins.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
data=$here/datasets/stories.jsonl
cd "$tmp" || exit 1
tiny model 1 --hidden-size 128 --intermediate-size 512 --layers 4 --heads 4 --max-positions 4096 >/dev/null
train() { # OUTPUT OPTION...
    output=$1
    shift
    "$BUILD/finetune_full" --model model --dataset "$data" --max-steps 2 --threads 2 --output "$output" "$@"
}
number() { sed -n "s/.*\"$2\":[^0-9]*\([0-9.e+]*\).*/\1/p" "$1"; }
sanitized=
if nm "$BUILD/finetune_full" 2>/dev/null | grep -q __asan_init; then sanitized=1; fi

is "a run" eval 'train first --verbose --batch-size 4 --max-length 512 --train-split 0.99 >first.out'
is "its header has the parts" grep -q '^# memory .* MiB: weights .*, gradients .*, moments .*, activations ' first.out
planned=$(number first/report.json estimated_memory_bytes) seen=$(number first/report.json peak_anonymous_bytes)
if [ "$sanitized" ]; then skip "the estimate is within its bound" "a sanitizer's memory is counted too"; else
    is "the estimate ($planned) is within 5 % or 32 MiB of what was seen ($seen)" awk -v a="$planned" -v b="$seen" \
        'BEGIN { d = a > b ? a - b : b - a; exit !(b > 0 && (d < b / 20 || d < 33554432)) }'
fi
if [ "$sanitized" ]; then skip "so it is with large files beside the weights" "a sanitizer's memory is counted too"; else
    cp -r model large && head -c 60000000 /dev/zero >large/tokenizer.model
    is "a run that keeps a large file" "$BUILD/finetune_full" --model large --dataset "$data" --max-steps 2 --output kept
    is "so it is with large files beside the weights" awk -v a="$(number kept/report.json estimated_memory_bytes)" \
        -v b="$(number kept/report.json peak_anonymous_bytes)" 'BEGIN { d = a > b ? a - b : b - a; exit !(b > 60e6 && d < 33554432) }'
fi
is "the parts in run.json add up to it" awk -v planned="$planned" \
    '/"memory":/ { on = 1; next } on && /}/ { on = 0 } on { split($0, a, ":"); sum += a[2] } END { exit !(sum == planned && sum > 0) }' first/run.json
refused "more than the machine has" 3 "MemAvailable" train huge --batch-size 4096 --max-length 4096
is "says what would be enough" grep -q -- '--batch-size 1 saves [0-9.]* MiB (enough)' "$tmp/complained"
is "and made no run folder" test ! -e huge
limited() { # OPTION KIB COMMAND...
    (ulimit "$1" "$2" && shift 2 && "$@")
}
if [ "$sanitized" ]; then skip "ulimit" "a sanitizer takes terabytes of addresses"; else
    is "a run within ulimit -v" limited -v 2000000 train within --max-length 64
    refused "more than ulimit -v allows" 3 "ulimit -v" limited -v 2000000 train addresses --batch-size 64 --max-length 2048
    refused "hardly any addresses, told at once" 3 "ulimit -v" limited -v 100000 timeout 300 "$BUILD/finetune_full" \
        --model model --dataset "$data" --threads 2 --output few
    refused "stacks that ulimit -d does not allow" 3 "start 16 threads" limited -d 80000 "$BUILD/finetune_full" --model model \
        --dataset "$data" --threads 16 --output few
    refused "more than ulimit -d allows" 3 "ulimit -d" limited -d 1000000 train data --batch-size 64 --max-length 2048
fi

# Threads: what is said is what computes.
threads() { # EXPECTED SETTING
    is "$2 makes $1 thread(s), and says so" eval "env $2 \"\$BUILD/finetune_full\" --model model --dataset \"\$data\" --max-steps 1 \
        --max-length 64 --output threads --overwrite >threads.out && grep -q ' $1 thread' threads.out"
}
unset OMP_NUM_THREADS
all=$("$BUILD/finetune_full" --model model --dataset "$data" --max-steps 1 --max-length 64 --output threads | sed -n 's/^# device .* \([0-9]*\) thread.*/\1/p')
threads 1 OMP_NUM_THREADS=1
threads 3 OMP_NUM_THREADS=3
threads 2 OMP_NUM_THREADS=2,100
threads 2 "OMP_NUM_THREADS=\\ 2\\ ,\\ 1"
for n in 4097 12000 100000 99999999999999999999 -3 0 x 2, ,2 '2 3'; do
    for p in finetune_full init_model; do
        refused "OMP_NUM_THREADS=$n is refused by $p" 2 "OMP_NUM_THREADS=$n: expected a number of threads in [1,4096]" env OMP_NUM_THREADS="$n" \
            timeout 300 "$BUILD/$p" $(if [ $p = init_model ]; then echo --vocab-size 300 --layers 1 like; else echo --model model --dataset "$data" --max-steps 1 --output many; fi)
    done
done
threads "$all" OMP_PROC_BIND=true
threads "$all" OMP_PLACES=cores
threads "$all" OMP_DYNAMIC=true
threads 1 OMP_THREAD_LIMIT=1
is "fewer than there could be is warned about" test "$all" = 1 -o "$(grep -c 'OMP_THREAD_LIMIT' threads.out)" = 1

# A control group of our own, where the system lets us make one.
group=
for parent in /sys/fs/cgroup/memory /sys/fs/cgroup; do
    [ -z "$group" ] && mkdir "$parent/tune-test-$$" 2>/dev/null && group=$parent/tune-test-$$
done
limit=
for f in memory.limit_in_bytes memory.max; do [ -n "$group" ] && [ -w "$group/$f" ] && limit=$group/$f; done
grouped() { sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group/inner" "$@"; }
if [ -n "$limit" ] && mkdir "$group/inner" 2>/dev/null && echo 314572800 >"$limit" 2>/dev/null && grouped true 2>/dev/null; then
    in_group() { grouped "$BUILD/finetune_full" --model model --dataset "$data" --max-steps 2 --threads 2 --output "$@"; }
    is "a run in a control group within one of 300 MiB" in_group within-group --max-length 64
    refused "more than the control group allows" 3 "free in the control group $group" in_group group --batch-size 16 --max-length 2048
    is "with 1 row it fits, as the message said" eval 'grep -q -- "--batch-size 1 saves [0-9.]* MiB (enough)" "$tmp/complained" &&
        in_group fits --batch-size 1 --max-length 2048'
else
    skip "control group" "none can be made here"
fi
[ -z "$group" ] || { rmdir "$group/inner" "$group" 2>/dev/null; true; }
finish
