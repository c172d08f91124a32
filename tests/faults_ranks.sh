#!/bin/sh
# faults_ranks.sh - ranks under mpirun of which one is killed or stopped at a random collective, at a random moment: the launcher fails, one message
# names that rank, the others end by themselves, no process stays behind. And 2000 drawn programs on threads (tests/comm/test_drawn.c).
# Called by `make faults`. FAULT_RANKS: how often (100).
. tests/tap.sh
is "2000 drawn programs on threads" env TUNE_COMM_SEEDS=2000 "$BUILD/tests/comm/test_drawn"
. tests/comm/mpi_faults.sh
mpi_works "ranks that end"
awk -v seed=$$ -v n="${FAULT_RANKS:-100}" 'BEGIN {
    srand(seed)
    for (i = 0; i < n; i++) {
        size = 2 + int(rand() * 3); rank = int(rand() * size); at = 4 + int(rand() * 4); r = rand()
        place = r < 0.15 ? "before" : r < 0.3 ? "after" : int(rand() * rand() * 30000)
        stopped = rand() < 0.1
        print size, stopped ? "stopped" : "killed", rank, stopped ? 10 : 120, at, place
    }
}' >"$tmp/list"
# worker NUMBER - every second line of the list, in a folder of its own.
worker() (
    tmp=$tmp/worker$1
    mkdir "$tmp"
    . tests/comm/mpi_faults.sh
    awk -v odd="$1" 'NR % 2 == odd' "$tmp/../list" | while read -r line; do
        survive $line >"$tmp/told" 2>&1 || { echo "$line:"; cat "$tmp/told"; }
        seconds >>"$tmp/seconds"
    done
)
worker 0 >"$tmp/out0" &
worker 1 >"$tmp/out1" &
wait
none "ranks of which one is killed or stopped, ${FAULT_RANKS:-100} times" "$(cat "$tmp/out0" "$tmp/out1")"
sort -k 2n "$tmp"/worker*/seconds | awk '{ s[NR] = $2 } END { print "# until the last rank ended: median " s[int((NR + 1) / 2)] " s, longest " s[NR] " s (a stopped one is given 10 s first)" }'
finish
