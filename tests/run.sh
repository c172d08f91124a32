#!/bin/sh
# run.sh PROGRAM... - run each test program (TAP on stdout, exit 0 pass, 1 fail, 77 skip), one line and its time for
# each, the full output of those that fail, and one closing line. Exit 1 if anything failed.
# A program is an executable, a .sh or a .py (run by $TUNE_PYTHON). One more run at once than there are cores, because
# many wait. Their lines come as they end.
# TUNE_TEST_JOBS: how many at once. TUNE_TEST_WRAPPER: a command that runs the executables, such as an emulator.
# TUNE_TEST_TIMEOUT: seconds for one program (default 900). TUNE_TEST_TOTALS: file the three counts are added to.
# TUNE_TEST_TIMES: file that gets a line for each program: seconds, seconds of processor time, TUNE_TEST_STAGE, program.
# TUNE_TEST_RECORD: programs that passed with the same objects are left out and counted as skipped (tests/record.sh).
if [ "$1" = --one ]; then # what run.sh calls for each program: --one FOLDER PROGRAM
    folder=$2 t=$3 log=$2/log.$$
    begin=$(date +%s)
    case $t in *.sh) set -- sh "$t" ;; *.py) set -- "${TUNE_PYTHON:-python3}" "$t" ;; *) set -- $TUNE_TEST_WRAPPER "$t" ;; esac
    CMOCKA_MESSAGE_OUTPUT=TAP timeout "${TUNE_TEST_TIMEOUT:-900}" "$@" >"$log" 2>&1 </dev/null
    code=$?
    times >"$log.times" # of this shell, then of its children: user and system
    p=$(grep -c '^ok ' "$log")
    s=$(grep -cE '^(ok|not ok) .*# SKIP' "$log")
    f=$(grep '^not ok ' "$log" | grep -vc '# SKIP')
    p=$((p - $(grep '^ok ' "$log" | grep -c '# SKIP')))
    if [ $code = 77 ]; then s=$((s + (s == 0))); elif [ $code != 0 ] && [ "$f" = 0 ]; then f=1; fi
    [ $((p + f + s)) = 0 ] && f=1 # ran nothing: that is no pass
    # Results that the plan (1..N) counts and that were not printed are failures.
    plan=$(sed -n 's/^1\.\.\([0-9][0-9]*\)$/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
    printed=$(grep -cE '^(ok|not ok) ' "$log")
    [ "$plan" -le "$printed" ] || { f=$((f + plan - printed)) && echo "# $printed of the $plan results that were planned" >>"$log"; }
    {
        spent=$(($(date +%s) - begin)) busy=$(awk 'NR == 2 { gsub(/[ms]/, " "); printf "%.0f", 60 * $1 + $2 + 60 * $3 + $4 }' "$log.times")
        printf '%-36s %3d passed %3d failed %3d skipped  %4d s, busy %4d s\n' "${t##*tests/}" "$p" "$f" "$s" $spent "$busy"
        [ -z "${TUNE_TEST_TIMES:-}" ] || echo "$spent $busy ${TUNE_TEST_STAGE:-} ${t##*tests/}" >>"$TUNE_TEST_TIMES"
        if [ "$f" != 0 ]; then sed 's/^/    /' "$log"; echo "    exit code $code"; else grep -E '# SKIP' "$log" | sed 's/^/    /'; fi
    } >"$log.said"
    (
        flock 9
        cat "$log.said"
        echo "$p $f $s" >&9
        [ "$f" != 0 ] || [ "$p" = 0 ] || [ "$s" != 0 ] || echo "${t##*tests/}" >>"$folder/passed"
    ) 9>>"$folder/counts"
    rm -f "$log" "$log.said" "$log.times"
    exit 0
fi
# Threads that wait asleep: tests keep their pace beside others.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
# Programs find defaults/ beside their own folder; those built outside the tree are told.
case ${BUILD:-build} in /*) export TUNE_DEFAULTS="${TUNE_DEFAULTS:-$PWD/defaults}" ;; esac
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
: >"$folder/counts"
: >"$folder/list"
# The longest ones begin first, so that none runs alone at the end.
if [ -n "${TUNE_TEST_RECORD:-}" ]; then
    . tests/record.sh
    begin_record || { echo "# no record of test programs: no git here, or uncommitted changes" && TUNE_TEST_RECORD=; }
fi
for t in "$@"; do
    case $t in *.d) continue ;; *.sh | *.py) ;; *) [ -x "$t" ] || continue ;; esac
    if [ -n "${TUNE_TEST_RECORD:-}" ] && passed_before "$t"; then
        printf '%-36s left out: it passed with the same objects\n' "${t##*tests/}"
        unchanged=$((${unchanged:-0} + 1))
        continue
    fi
    case $t in
    */test_tiles.sh | */test_layers.sh | */test_docs.sh | */test_far.sh | */test_resume.sh | */test_halving.sh | */test_sweep.sh | \
        */test_package.sh | */test_new_operation.sh | */test_kernels | */test_quickstart.sh | */test_requeue.sh | */test_finetune_lora.sh | \
        */test_cpu_share.sh | */test_hostile_folders.sh | */test_proof.sh | */test_download.sh) printf '%s\0' "$t" >>"$folder/list" ;;
    *) printf '%s\0' "$t" >>"$folder/others" ;;
    esac
done
[ ! -e "$folder/others" ] || cat "$folder/others" >>"$folder/list"
xargs -0 -r -n 1 -P "${TUNE_TEST_JOBS:-$(($(nproc) + 1))}" sh "$0" --one "$folder" <"$folder/list" || broken=1
counts=$(awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }' "$folder/counts")
# A program that left no count is a failure.
missing=$(($(tr -cd '\0' <"$folder/list" | wc -c) - $(wc -l <"$folder/counts")))
set -- $counts
failed=$(($2 + missing + ${broken:-0}))
set -- "$1" "$2" $(($3 + ${unchanged:-0}))
[ -z "${TUNE_TEST_RECORD:-}" ] || record_passed
if [ -n "$TUNE_TEST_TOTALS" ]; then echo "$1 $failed $3" >>"$TUNE_TEST_TOTALS"; else echo "$1 passed, $failed failed, $3 skipped"; fi
[ "$failed" = 0 ]
