# mpi_faults.sh - ranks that mpirun starts, and what becomes of them when one ends or stops. Sourced behind tap.sh.
RANKS_LOG=$tmp/log ranks=$tmp/ranks # processes that stay behind have this name
# Containers forbid what Open MPI would use; it may run as root only if it is asked to.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export RANKS_LOG
cp "$BUILD/tests/helpers/ranks" "$ranks"
run() { size=$1; shift; timeout 300 mpirun --bind-to none -n "$size" "$ranks" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null; }
# mpi_works WHAT - skips WHAT, and ends, where there is no MPI.
mpi_works() {
    if ! mpi_here; then
        skip "$1" "no mpirun, or no tune_mpi.so (Debian: libopenmpi-dev openmpi-bin)"
    elif ! run 2 && ! grep -q '^ranks: ' "$tmp/err"; then
        skip "$1" "mpirun does not work here: $(grep -v '^ *$\|^--*$' "$tmp/err" | head -n 1)"
    else
        return 0
    fi
    finish
}
says() { grep -q "$1" "$tmp/err" || { cat "$tmp/err"; return 1; }; }
messages() { grep -c '^ranks: ' "$tmp/err"; }
left() { ps -eo pid,args | grep -F "$tmp/ranks" | grep -v grep; }
# survive SIZE WHAT RANK [ARGUMENT...] - the launcher fails, one message names that rank, the others end by themselves, and nothing stays behind.
# The launcher kills after 2 s what is left. Where a rank had no processor for so long, it is tried again.
survive() {
    for try in 1 2 3 4 5; do
        rm -f "$RANKS_LOG"
        ! run "$@" || { echo "the launcher ended with 0"; return 1; }
        [ "$(grep -c ': ends$' "$RANKS_LOG")" -lt $(($1 - 1)) ] || break
    done
    [ "$(messages)" = 1 ] && says "^ranks: rank $3 of $1 (process [0-9]* on .*) \(has ended\|did not come\)" || { cat "$tmp/err" "$RANKS_LOG"; return 1; }
    tries=0
    while left && [ $tries -lt 600 ]; do sleep 0.1; tries=$((tries + 1)); done
    ! left
}
# seconds - says how long after the event the last rank ended.
seconds() { awk '{ s = $2 + 0 } $3 == "ends" { if (s > last) last = s } $3 != "ends" { began = s } END { printf "# %.3f s later the last rank ended\n", last - began }' "$RANKS_LOG"; }
