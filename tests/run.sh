#!/bin/sh
# run.sh PROGRAM... - run each test program (TAP on stdout, exit 0 pass, 1 fail, 77 skip), one line and its time for
# each, the full output of those that fail, and one closing line. Exit 1 if anything failed.
# A program is an executable, a .sh or a .py (run by $TUNE_PYTHON).
# TUNE_TEST_WRAPPER: a command that runs the executables, such as an emulator.
# TUNE_TEST_TIMEOUT: seconds for one program (default 900). TUNE_TEST_TOTALS: file the three counts are added to.
passed=0 failed=0 skipped=0
# Threads that wait asleep: tests keep their pace on a machine that is busy with something else.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
# Programs find defaults/ beside their own folder; those built outside the tree are told.
case ${BUILD:-build} in /*) export TUNE_DEFAULTS="${TUNE_DEFAULTS:-$PWD/defaults}" ;; esac
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for t in "$@"; do
    [ -x "$t" ] || case $t in *.sh | *.py) ;; *) continue ;; esac
    case $t in *.d) continue ;; esac
    begin=$(date +%s)
    case $t in *.sh) set -- sh "$t" ;; *.py) set -- "${TUNE_PYTHON:-python3}" "$t" ;; *) set -- $TUNE_TEST_WRAPPER "$t" ;; esac
    CMOCKA_MESSAGE_OUTPUT=TAP timeout "${TUNE_TEST_TIMEOUT:-900}" "$@" >"$log" 2>&1 </dev/null
    code=$?
    p=$(grep -c '^ok ' "$log")
    s=$(grep -cE '^(ok|not ok) .*# SKIP' "$log")
    f=$(grep '^not ok ' "$log" | grep -vc '# SKIP')
    p=$((p - $(grep '^ok ' "$log" | grep -c '# SKIP')))
    if [ $code = 77 ]; then s=$((s + (s == 0))); elif [ $code != 0 ] && [ "$f" = 0 ]; then f=1; fi
    [ $((p + f + s)) = 0 ] && f=1 # ran nothing: that is no pass
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    printf '%-34s %3d passed %3d failed %3d skipped  %4d s\n' "$(basename "$t")" "$p" "$f" "$s" $(($(date +%s) - begin))
    if [ "$f" != 0 ]; then sed 's/^/    /' "$log"; echo "    exit code $code"; else grep -E '# SKIP' "$log" | sed 's/^/    /'; fi
done
if [ -n "$TUNE_TEST_TOTALS" ]; then echo "$passed $failed $skipped" >>"$TUNE_TEST_TOTALS"; else echo "$passed passed, $failed failed, $skipped skipped"; fi
[ "$failed" = 0 ]
