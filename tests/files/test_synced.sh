#!/bin/sh
# test_synced.sh - what has a name is on the disk. A machine that loses power keeps only what was synced, so each file is
# synced before it is renamed to its name, the folder after that, and metrics.jsonl before a checkpoint has its name. The order
# of the calls is what the program asked the kernel for, seen by tests/faults/fault.c.
. tests/tap.sh
tmp=$(cd "$tmp" && pwd -P) # as the kernel names it
mkdir -p "$BUILD/tests" && $CC -std=c11 -D_GNU_SOURCE -O1 -o "$BUILD/tests/fault" tests/faults/fault.c || exit 1
head -24 datasets/stories.jsonl >"$tmp/rows.jsonl"
cd "$tmp" || exit 1
tiny model 1 --layers 1 --hidden-size 16 --intermediate-size 32 --vocab-size 262 >/dev/null || exit 1

# unsynced LOG - each rename to a name that a loss of power could leave empty, or take away again.
cat >order.awk <<'AWK'
function parent(path) { sub(/\/[^\/]*$/, "", path); return path }
function within(path, folder) { return path == folder || index(path, folder "/") == 1 }
function check_synced(folder, to,    p) {
    for (p in written) if (within(p, folder)) print p " was not synced before " to " had its name"
    for (p in entries) if (within(p, folder)) print "folder " p " was not synced before " to " had its name"
}
expected && !($1 == "sync" && $2 == expected) { print "folder " expected " was not synced at once after " renamed " had its name" }
{ expected = "" }
$1 == "write" || $1 == "truncate" { written[$2] }
$1 == "mkdir" { entries[parent($2)]; made[$2] = $2 }
$1 == "sync" {
    delete written[$2]
    delete entries[$2]
    for (p in made) if (parent(p) == $2) delete made[p]
}
$1 == "rename" {
    check_synced($2, $3)
    if ($3 ~ /\/checkpoint-[0-9]+$/ && (parent($3) "/metrics.jsonl") in written)
        print "metrics.jsonl was not synced before " $3 " had its name"
    expected = parent($3)
    renamed = $3
    entries[expected]
}
END {
    if (expected) print "folder " expected " was not synced after the last rename"
    for (p in written) if (p ~ /\/metrics\.jsonl$|\.h5/) print p " was not synced at the end"
    for (p in made) if (made[p] !~ /\.tmp-[0-9]/) print "folder " p " was made, and the folder it lies in was not synced"
}
AWK
unsynced() { awk -f order.awk "$1"; }
# logged NAME PROGRAM ARGUMENT... - runs it; NAME.log: its calls.
logged() {
    log=$1
    shift
    "$BUILD/tests/fault" LOG 0 "$@" 9>"$log.log" >"$log.out" 2>&1 || { code=$?; cat "$log.out"; return $code; }
}
count() { grep -c "^$1" "$2.log"; }

set -- --model model --dataset rows.jsonl --max-length 24 --batch-size 2 --threads 1 --train-split 0.8 --eval-every 2 \
    --save-every 1 --max-steps 4
logged full "$BUILD/finetune_full" "$@" --output full
case $? in
0) ;;
77)
    skip "files and folders are synced" "this system does not let programs be traced"
    finish
    ;;
*) is "a run that is logged" cat full.out ;;
esac
is "finetune_full: four checkpoints get their names" test "$(count 'rename .*/checkpoint-[0-9]*$' full)" = 4
files=$(find full/checkpoint-1 -type f | wc -l)
is "... each of $files files that are synced" \
    test "$(count 'sync .*/checkpoint-[0-9]*\.tmp-[0-9]*/.*\.tmp-' full)" = $((4 * files)) -a "$files" -ge 5
is "... the metrics before it ($(count 'sync .*/metrics.jsonl$' full))" test "$(count 'sync .*/metrics.jsonl$' full)" -ge 4
none "nothing has a name before it is on the disk" "$(unsynced full.log)"
rm -rf part && "$BUILD/finetune_full" "$@" --output part --stop-at-step 2 >/dev/null
is "finetune_full --resume" logged resumed "$BUILD/finetune_full" --resume part
is "... two checkpoints" test "$(count 'rename .*/checkpoint-[0-9]*$' resumed)" = 2
none "nothing has a name before it is on the disk" "$(unsynced resumed.log)"
is "finetune_lora" logged lora "$BUILD/finetune_lora" "$@" --output lora --lora-r 2
is "... four checkpoints" test "$(count 'rename .*/checkpoint-[0-9]*$' lora)" = 4
none "nothing has a name before it is on the disk" "$(unsynced lora.log)"
is "merge_adapter" logged merged "$BUILD/merge_adapter" --model model --adapter lora/checkpoint-final --output merged
is "... one folder" test "$(count "rename .*/merged$" merged)" = 1
none "nothing has a name before it is on the disk" "$(unsynced merged.log)"
is "rows of a store" logged rows "$BUILD/tests/helpers/store" write rows 1 0 5
is "... five times a sample file" test "$(count 'rename .*\.h5$' rows)" = 5
# What a power cut takes of hosts/ is tried again.
none "nothing has a name before it is on the disk" "$(unsynced rows.log | grep -v "/rows/hosts")"
finish
