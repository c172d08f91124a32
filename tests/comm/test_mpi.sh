#!/bin/sh
# test_mpi.sh - ranks that mpirun starts: the same sums to the bit as plain loops, and what becomes of a rank that ends, stops or differs.
. tests/tap.sh
. tests/comm/mpi_faults.sh
mpi_works "ranks by MPI"
for n in 1 2 3 5; do
    is "$n ranks: sums as of plain loops, to the bit" eval "run $n && grep -q '^$n ranks, ' \"\$tmp/out\" || { cat \"\$tmp/err\"; false; }"
done
is "without mpirun: one rank" eval '"$ranks" >"$tmp/out" && grep -q "^1 ranks, 0 bytes" "$tmp/out"'

# ---- a rank that ends, stops or differs ----
at=4
for kind in barrier broadcast all_gather reduce_scatter; do
    case $kind in barrier) place=before ;; broadcast) place=after ;; *) place=1000 ;; esac
    is "one is killed $place $kind: one of the others says so, and all end" survive 3 killed 1 120 $at $place
    seconds
    at=$((at + 1))
done
is "the first one is killed" survive 3 killed 0 120 7 0
is "the killed one is named, with what the others did" says 'rank 0 of 3 (process [0-9]* on .*) has ended; rank [12] waited for it in \(reduce_scatter of "some", 4194304 elements of 4 bytes, step 7\|barrier of "some", step 8\)'
is "one stops: the others give up" survive 2 stopped 1 10 4 before
is "and say what became of it" says 'rank 1 of 2 (process [0-9]* on .*) did not come within 10 s, because it has been stopped; rank 0 waited for it in barrier of "some", step 4'
is "one stops while bytes move" survive 2 stopped 1 10 6 1000
is "one works alone for longer than ranks wait: the others know that it is alive" eval 'run 3 works 1 4 5 before && grep -q "^3 ranks" "$tmp/out" || { cat "$tmp/err"; false; }'
is "one is stopped while it works alone: the others give up" survive 3 rests 0 4 5 before
is "and say so" says 'rank 0 of 3 (process [0-9]* on .*) did not come within 4 s, because it has been stopped; rank [12] waited for it in broadcast of "some"'
is "one leaves as if all were well: the launcher fails" survive 3 leaves 1
is "one ends after an error of its own: the others do not wait for it" eval '! run 3 closes 1 && says "^ranks: rank 1 has no space left" && says "rank 1 of 3 .* has ended; rank [02] waited for it in barrier" && [ "$(messages)" = 2 ]'
is "one does something else: both are named, once" eval '! run 3 differs 2 && says "rank 0 on .* is at barrier of \"some\", step 4; rank 2 on .* is at all_gather of \"some\", step 4" && [ "$(messages)" = 1 ]'

# ---- before the start ----
is "ranks can start" "$ranks" can-start
refused "no mpirun" 1 "there is no mpirun in PATH" env PATH=/nowhere "$ranks" can-start
refused "no library at all" 1 "there is no tune_mpi.so beside the program; \`make mpi\` builds it" env -u TUNE_MPI "$tmp/ranks" can-start
refused "no library at all, in a rank" 1 "there is no tune_mpi.so beside the program" env -u TUNE_MPI "$tmp/ranks"
if [ "$(id -u)" = 0 ]; then
    refused "root" 1 "set OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1" env -u OMPI_ALLOW_RUN_AS_ROOT_CONFIRM "$ranks" can-start
else
    skip "root" "not root"
fi
refused "processes of another MPI's launcher" 1 "this is one of 4 processes (PMI_SIZE), but they do not find each other" env PMI_SIZE=4 "$ranks"
is "no library: a clear error" eval '! TUNE_MPI="$tmp/none.so" "$ranks" 2>"$tmp/err" && says "cannot load $tmp/none.so"'
finish
