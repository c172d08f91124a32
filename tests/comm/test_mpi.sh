#!/bin/sh
# test_mpi.sh - ranks that mpirun starts: the same sums to the bit as plain loops, and what becomes of a rank that ends, stops or differs.
. tests/tap.sh
TUNE_MPI=$here/$BUILD/tune_mpi.so ranks=$here/$BUILD/tests/helpers/ranks
case $BUILD in /*) TUNE_MPI=$BUILD/tune_mpi.so ranks=$BUILD/tests/helpers/ranks ;; esac
export TUNE_MPI
[ -e "$TUNE_MPI" ] || { skip "ranks by MPI" "no $TUNE_MPI: MPI was not found (Debian: libopenmpi-dev openmpi-bin)"; finish; }
command -v mpirun >/dev/null || { skip "ranks by MPI" "no mpirun"; finish; }
# Containers forbid what Open MPI would use; it may run as root only if it is asked to.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
# What MPI itself leaves behind is no leak of ours.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
run() { size=$1; shift; timeout 300 mpirun --bind-to none -n "$size" "$ranks" "$@" >"$tmp/out" 2>"$tmp/err"; }
if ! run 2 && ! grep -q '^ranks: ' "$tmp/err"; then
    skip "ranks by MPI" "mpirun does not work here: $(grep -v '^ *$\|^--*$' "$tmp/err" | head -n 1)"
    finish
fi
says() { grep -q "$1" "$tmp/err" || { cat "$tmp/err"; return 1; }; }
for n in 1 2 3 5; do
    is "$n ranks: sums as of plain loops, to the bit" eval "run $n && grep -q '^$n ranks, ' \"\$tmp/out\" || { cat \"\$tmp/err\"; false; }"
done
is "without mpirun: one rank" eval '"$ranks" >"$tmp/out" && grep -q "^1 ranks, 0 bytes" "$tmp/out"'
is "one is killed: the others end, and the launcher fails" eval '! run 3 killed 1 && says "rank 1 of 3 (process [0-9]* on .*) has ended; rank [02] waited for it in barrier of \"many\", step 100"'
is "one stops: the others give up" eval '! run 2 stopped 1 5 && says "rank 1 of 2 (process [0-9]* on .*) did not come within 5 s; rank 0 waited for it in barrier of \"many\", step 100"'
is "one leaves as if all were well: the launcher fails" eval '! run 2 leaves 1 && says "rank 1 of 2 .* has ended; rank 0 waited for it"'
is "one does something else: both are named" eval '! run 3 differs 2 && says "rank 0 on .* is at barrier of \"many\", step 100; rank 2 on .* is at all_gather of \"many\", step 100"'
is "no library: a clear error" eval '! TUNE_MPI="$tmp/none.so" "$ranks" 2>"$tmp/err" && says "cannot load $tmp/none.so"'
finish
