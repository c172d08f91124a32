#!/bin/sh
# test_child.sh - shells and what they start under guard (components/actuators), by `test_child drive`: LIMIT GRACE LOG PROGRAM...
# runs one, and prints how it ended.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
drive=$BUILD/tests/machine/test_child
cd "$tmp" || exit 1
TUNE_DRIVE=$drive
export TUNE_DRIVE
long=86399.$$ # seconds that nobody else sleeps

# ran EXPECTED LIMIT GRACE PROGRAM... - drives it; what it prints is that.
ran() {
    expected=$1
    shift
    got=$("$drive" drive "$1" "$2" log sh -c "$3" sh "$4") || return 1
    [ "$got" = "$expected" ] || { echo "got \"$got\", expected \"$expected\""; cat log; return 1; }
}
# sleeping - whether any of ours does; none_sleep - waits until none does. If one stays, it says what it does and ends it, so that
# it does not fail the tests that follow.
sleeping() { grep -lsazE "^(sleep|guard)" /proc/[0-9]*/cmdline | while read -r f; do tr '\0' ' ' <"$f" 2>/dev/null | grep -F -- "$long"; done; }
none_sleep() {
    await 0 eval '[ -z "$(sleeping)" ]' && return
    for p in /proc/[0-9]*; do
        tr '\0' ' ' <"$p/cmdline" | grep -F -- "$long" || continue
        grep -E "^(Pid|PPid|NSsid|State|SigPnd|ShdPnd|SigBlk|SigIgn):" "$p/status"
        cat "$p/wchan" "$p/stack"
        kill -KILL "${p#/proc/}"
    done 2>/dev/null
    return 1
}
# late EXPECTED GRACE PROGRAM - as ran, with a time limit that the program meets after it made the file `there`.
late() {
    for limit in 0.2 2 20 200; do
        rm -f there
        ran "$1" $limit "$2" "$3" && [ -s there ] && return 0
        [ ! -s there ] || return 1
    done
    return 1
}
# leaves_nothing - as ran; and nothing sleeps.
leaves_nothing() { ran "$@" && none_sleep; }

is "an exit code" ran "exited 3" 0 1 'exit 3'
is "a signal" ran "signalled 15" 0 1 'kill -TERM $$'
is "the time-out" ran "timed out 143" 0.2 10 'exec sleep 60'
is "the time-out of one that heeds no SIGTERM" late "timed out 137" 0.2 'trap "" TERM; echo 1 >there; while :; do sleep 0.05; done'
is "output of both streams, as it comes" sh -c '"$1" drive 0 1 log sh -c "come() { until grep -q \$1 log; do sleep 0.01; done; }; echo one; come one; echo two >&2; come two; echo three" && printf "one\ntwo\nthree\n" | cmp - log' sh "$drive"
is "... and what is there at once, stdout first" sh -c '"$1" drive 0 1 log sh -c "kill -STOP \$PPID; until grep -q \"^State:.T\" /proc/\$PPID/status; do :; done; echo two >&2; echo one; kill -CONT \$PPID" && printf "one\ntwo\n" | cmp - log' sh "$drive"
is "a reader of its output that leaves" ran "exited 0" 0 1 'yes | head -n 1'
is "output without end" late "timed out 143" 300 'yes | head -n 10000; echo 1 >there; exec yes'
is "its log is as long as it may be" sh -c 'n=$(wc -c <log) && [ "$n" -gt 10000 ] && [ "$n" -lt 10100 ] && [ "$(grep -ac "bytes left out" log)" = 1 ]'
is "standard input is empty" ran "exited 0" 0 1 '[ -z "$(cat)" ]'
is "no terminal to ask" ran "exited 0" 0 1 '! (exec </dev/tty) 2>/dev/null'
is "started without standard streams" sh -c '"$1" drive 0 1 log sh -c "echo still" <&- >&- 2>&-; [ "$(cat log)" = still ]' sh "$drive"

is "in the background" leaves_nothing "exited 0" 0 300 'sleep $1 & sleep $1 &' $long
is "with nohup" leaves_nothing "exited 0" 0 300 'nohup sleep $1 >/dev/null 2>&1 &' $long
is "in sessions of their own" leaves_nothing "exited 0" 0 0.2 'setsid sleep $1 & setsid -f setsid -f sleep $1; (setsid sh -c "trap \"\" TERM; sleep $1; sleep $1" &); until [ "$(grep -lsa "^sleep.$1" /proc/[0-9]*/cmdline | wc -l)" = 3 ]; do sleep 0.01; done' $long
is "at a time-out" leaves_nothing "timed out 143" 0.3 0.2 'setsid -f sleep $1; sleep $1 & sleep $1 | sleep $1' $long
is "stopped ones" leaves_nothing "timed out 143" 0.3 300 'sleep $1 & kill -STOP $!; kill -STOP $$' $long
is "a guard in a guard" leaves_nothing "timed out 143" 0.5 300 'exec "$TUNE_DRIVE" drive 0 0.1 inner sleep $1' $long

guard_of() { sed 's/^\([0-9]*\) (.*) \(.*\)/\1 \2/' /proc/[0-9]*/stat 2>/dev/null | awk -v p="$1" '$3 == p { print $1 }'; } # PARENT
# killed WHO SIGNAL - drives a program that leaves a session behind; then that.
killed() {
    rm -f there
    "$drive" drive 0 0.2 log sh -c 'trap "" TERM; sleep $1 & echo 1 >there; while :; do sleep 0.05; done' sh "$long" >outcome &
    parent=$!
    await $parent [ -s there ] || return 1
    guard=$(guard_of $parent)
    [ -n "$guard" ] || return 1
    case $(cat "/proc/$guard/comm") in tune-guard) ;; *) echo "its name: $(cat "/proc/$guard/comm")"; return 1 ;; esac
    tr '\0' ' ' <"/proc/$guard/cmdline" | grep -q ' sh ' || return 1
    [ "$1" = guard ] || kill "-$2" $parent
    [ "$1" = parent ] || kill "-$2" $guard
    wait $parent 2>/dev/null
    none_sleep
}
is "the parent is killed" killed parent KILL
is "the parent is hung up" killed parent HUP
is "the parent is ended" killed parent TERM
is "the guard is killed" killed guard KILL
is "which is told" grep -q "^signalled 9: its guard was ended by signal 9" outcome
is "the guard is ended" killed guard TERM
is "which ends the program first" grep -q "^stopped 137" outcome

# both - the parent and the guard are killed at once: the kernel ends the program; what that had started nobody can end.
both() {
    rm -f there started
    "$drive" drive 0 0.2 log sh -c 'echo $$ >program; sleep $1 & echo $! >started; echo 1 >there; while :; do sleep 0.05; done' sh "$long" >outcome &
    parent=$!
    await $parent [ -s there ] || return 1
    guard=$(guard_of $parent)
    kill -STOP $parent && kill -KILL $guard $parent
    wait $parent 2>/dev/null
    await 0 is_gone "$(cat program)"
    left=$?
    kill -KILL "$(cat started)" 2>/dev/null # as the manual says, this one may be there
    return $left
}
is "both are killed: the program ends" both

printf 'echo hello\n' >script
refused "no program" 1 "no program of that name in PATH" "$drive" drive 0 1 log no-such-program
refused "no file" 1 "No such file" "$drive" drive 0 1 log ./no-such-file
refused "not executable" 1 "chmod +x" "$drive" drive 0 1 log ./script
chmod +x script
is "a script that names no interpreter" sh -c '"$1" drive 0 1 log ./script | grep "^not started 0: .*#!/bin/sh"' sh "$drive"
printf '#!/bin/sh\necho hello "$@"\n' >script
is "a script" sh -c '[ "$("$1" drive 0 1 log ./script there)" = "exited 0" ] && [ "$(cat log)" = "hello there" ]' sh "$drive"
is "many at once" sh -c 'for i in 1 2 3 4 5 6 7 8; do "$1" drive 0 1 log-$i sh -c "sleep 0.1; exit $i" >code-$i & done; wait; for i in 1 2 3 4 5 6 7 8; do [ "$(cat code-$i)" = "exited $i" ] || exit 1; done' sh "$drive"
finish
