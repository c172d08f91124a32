#!/bin/sh
# test_store_forget.sh - who forgets rows in a bad world: killed between any two calls, on a full disk, several at once beside
# writers. Always: a row whose forgetting was acknowledged is left out, every other row is there, and no tombstone is torn.
[ -n "$TMPDIR" ] || [ ! -w /dev/shm ] || export TMPDIR=/dev/shm
. tests/tap.sh
store=$BUILD/tests/helpers/store
cd "$tmp" || exit 1

# lists FOLDER FILE - the store's rows are those in FILE
lists() { "$store" list "$1" >listed 2>complaints || { cat complaints; return 1; }; sort listed | diff - "$2"; }
# sound FOLDER - nothing is wrong with it
sound() { "$store" check "$1" >wrong && [ ! -s wrong ] || { cat wrong; false; }; }

"$store" fill base 1 0 5 && seq -f '1 %g' 0 4 >rows
is "nothing is forgotten at first" eval '"$store" forgotten base >said && [ "$(cat said)" = 0 ]'
is "two rows are forgotten" eval 'cp -r base two && "$store" forget-all two 1 1 3 >id && printf "1 0\n1 3\n1 4\n" >wanted && lists two wanted'
is "the tombstone is a readable file that names them" eval 'grep -c "0000000100000000000000000000000[12]\"" two/forgotten/"$(cat id)".json | grep -qx 2 && grep -q "\"note\": \"at once\"" two/forgotten/*.json'
is "it is listed" eval '"$store" forgotten two >said && [ "$(sed -n 1p said)" = 2 ] && [ "$(sed -n 2p said)" = "$(cat id) 2 at once" ]'
is "sample files are as they were" eval 'cmp base/*.h5 two/*.h5'
is "a merge into a new store writes three rows" eval '"$store" merge new two >came && [ "$(cat came)" = "3 0 2 1" ] && lists new wanted && ! grep -l 00000001000000000000000000000001 new/*.h5'
is "a merge into one that has them forgets them" eval 'cp -r base had && "$store" merge had two >came && [ "$(cat came)" = "0 3 2 1" ] && lists had wanted'
is "they come back" eval '"$store" remember two "$(cat id)" >said && [ "$(cat said)" = 2 ] && lists two rows && sound two'
refused "twice is an error" 2 "no tombstone $(cat id) that can be undone; there are: none" "$store" remember two "$(cat id)"

# ---- a fault at each call that changes a file ----
# walk WHAT - that fault at every call of a process that forgets three rows one by one.
walk() {
    n=1
    while [ $n -le "$calls" ]; do
        rm -rf walk && cp -r base walk
        "$tmp/fault" "$1" $n "$store" forget walk 1 0 3 >walk.said 2>walk.err
        code=$?
        case $1 in
        KILL) [ $code = 137 ] || [ $code = 0 ] ;;
        *) [ $code = 0 ] || { [ $code = 1 ] && grep -qE 'No space left|Input/output error|Read-only file system' walk.err; } ;;
        esac || { echo "$1 at call $n ended with $code:"; cat walk.err; return 1; }
        "$store" list walk >listed 2>walk.err || { echo "after $1 at call $n:"; cat walk.err; return 1; }
        # the row that it was at may be forgotten or not
        sed 's/^/1 /' walk.said >out && ! grep -xFf out listed && [ "$(wc -l <listed)" -ge $((4 - $(wc -l <out))) ] && sound walk &&
            "$store" forget walk 1 4 5 >/dev/null && "$store" list walk >listed && ! grep -x '1 4' listed ||
            { echo "after $1 at call $n:"; cat listed; return 1; }
        # with code 0 it was the removal of a temporary file that failed
        case $code$1 in 1ENOSPC | 1EIO) ! ls walk/forgotten | grep -F .tmp- || { echo "$1 at call $n left that"; return 1; } ;; esac
        "$store" remember walk all >/dev/null && lists walk rows && sound walk || { echo "$1 at call $n: not all rows are back"; return 1; }
        n=$((n + 1))
    done
}
# back WHAT - the same of one that brings three rows back
back() {
    n=1
    while [ $n -le "$calls" ]; do
        rm -rf walk && cp -r three walk
        "$tmp/fault" "$1" $n "$store" remember walk all >walk.said 2>walk.err
        code=$?
        [ $code != 0 ] || lists walk rows || return 1
        "$store" list walk >listed && sound walk || { echo "after $1 at call $n"; return 1; }
        [ $code = 0 ] || "$store" remember walk all >/dev/null 2>&1 # the kill may have come after the last
        lists walk rows || { echo "after $1 at call $n, and again"; return 1; }
        n=$((n + 1))
    done
}
if $CC -std=c11 -D_GNU_SOURCE -O1 -o fault "$here/tests/faults/fault.c"; then
    cp -r base counted && ./fault COUNT 0 "$store" forget counted 1 0 3 9>count >/dev/null
    case $? in
    0)
        calls=$(cat count)
        is "there are some calls" test "$calls" -gt 12
        for what in ENOSPC ENOSPC+ EIO EROFS+ KILL; do is "forgetting: $what at each of $calls calls" walk $what; done
        cp -r base three && "$store" forget three 1 0 3 >/dev/null && cp -r three counted.back &&
            ./fault COUNT 0 "$store" remember counted.back all 9>count >/dev/null && calls=$(cat count)
        is "bringing back has some calls" test "$calls" -gt 8
        for what in ENOSPC+ EIO KILL; do is "bringing back: $what at each of $calls calls" back $what; done
        ;;
    77) skip "a fault at each call" "this system does not let programs be traced" ;;
    *) is "one who forgets is traced" false ;;
    esac
else
    is "fault.c is compiled" false
fi
if command -v unshare >/dev/null 2>&1 && unshare -rm true 2>/dev/null; then
    mkdir small
    unshare -rm sh -c "mount -t tmpfs -o size=200k tmpfs small && cp -r base small/store && '$store' id small/store >/dev/null && dd if=/dev/zero of=small/rest 2>/dev/null
        '$store' forget-all small/store 1 0 3 >full.said 2>full.err; echo \$? >full.code; cp -r small/store full; rm small/rest
        '$store' forget-all small/store 1 0 3 >full.said 2>>full.err; cp -r small/store freed"
    is "a full disk is an error that names the file" eval '[ "$(cat full.code)" = 1 ] && grep -q "small/store/forgotten.*No space left on device" full.err'
    is "every row is there, nothing half-written" eval 'lists full rows && sound full && ! ls full/forgotten 2>/dev/null | grep .'
    is "with space, it forgets" eval 'printf "1 3\n1 4\n" >wanted && lists freed wanted'
else
    skip "a full disk" "mounting is not allowed here"
fi

# ---- several at once ----
crowd() {
    "$store" fill crowd 7 0 160
    for w in 0 1 2 3; do "$store" forget crowd 7 $((w * 30)) $((w * 30 + 30)) >crowd.$w 2>crowd.err.$w & done
    for w in 8 9; do "$store" write crowd $w 0 40 >/dev/null 2>crowd.err.$w & done
    "$store" forget crowd 7 0 30 >crowd.again 2>crowd.err.again &
    wait
    cat crowd.err.*
    [ "$(cat crowd.[0-3] | wc -l)" = 120 ] && [ "$(wc -l <crowd.again)" = 30 ] || return 1
    { seq -f '7 %g' 120 159; seq -f '8 %g' 0 39; seq -f '9 %g' 0 39; } | sort >wanted
    lists crowd wanted && [ "$("$store" forgotten crowd | wc -l)" = 151 ] && sound crowd
}
is "four forget, a fifth the same rows as the first, beside two writers" crowd
undoers() {
    for w in 0 1 2; do "$store" remember crowd all >undo.$w 2>undo.err.$w & done
    "$store" forget-all crowd 9 0 1 >/dev/null 2>forget.err &
    wait
    cat forget.err
    "$store" remember crowd all >/dev/null 2>&1
    [ "$("$store" list crowd | wc -l)" = 240 ] && sound crowd
}
is "three bring all back at once, while another forgets" undoers

# ---- the tools ----
samples=$BUILD/samples sweep=$BUILD/sweep
cat >work.sh <<'E2'
#!/bin/sh
echo "$TUNE_INPUT_A" >>"$TUNE_INPUT_LOG"
echo "{\"speed\": $TUNE_INPUT_A.5, \"nonce\": \"$TUNE_NONCE\"}" >"$TUNE_OUTPUT/report.json"
E2
chmod +x work.sh
for e in work rest; do
    cat >$e.json <<E2
{"identifier": "$e", "actuator": "toys", "program": "./work.sh", "output": null,
 "inputs": [{"identifier": "a", "required": true, "domain": {"domainRange": [0, 100], "interval": 1}},
  {"identifier": "log", "default": "$tmp/log", "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}}],
 "targets": [{"identifier": "speed"}]}
E2
done
sed -i 's/"inputs": \[/&{"identifier": "extra", "default": 1, "domain": {"values": [1, 2]}},/; s/"speed"/"heat"/' rest.json && sed 's/speed/heat/' work.sh >rest.sh && chmod +x rest.sh && sed -i s/work.sh/rest.sh/ rest.json
space() { printf 'entitySpace: [{identifier: a, propertyDomain: {values: [1, 2, 3, 4]}}]\nexperiments: [{actuatorIdentifier: toys, experimentIdentifier: %s}]\n' "$1"; }
space work >w.yaml && space rest >r.yaml
measure() { "$sweep" "$1.yaml" --experiments work.json,rest.json --store st --name "$2" >swept 2>&1 || { cat swept; false; }; }
rows() { "$samples" show "$1.yaml" --experiments work.json,rest.json --store "${2:-st}" --include matching --output-format csv | sed 1d | wc -l; }
says() { text=$1; shift; "$@" >shown 2>&1 && grep -qE -e "$text" shown || { cat shown; false; }; }
is "two operations" eval 'measure w good && measure r bad && [ "$(rows w)$(rows r)" = 44 ] && [ "$(wc -l <log)" = 8 ]'
refused "forget what" 2 "forget needs a choice of rows: give --where" "$samples" forget --store st
refused "a name that no table has" 2 "nosuch" "$samples" forget --store st --where 'nosuch == 1'
refused "an operation that there is not" 2 "no operation ugly" "$samples" forget --store st --operation ugly
refused "a uid that there is not" 2 "no row with the uid 00000000000000000000000000000000" "$samples" forget --store st 00000000000000000000000000000000
refused "what is no uid" 2 '"x" is not the uid of a row' "$samples" forget --store st x
refused "a store that there is not" 2 "is not a sample store" "$samples" forget --store sp --operation bad
is "the typing error made none" test ! -e sp
is "without --yes nothing is written" eval '"$samples" forget --store st --where "a >= 3" >shown && grep -qx "# 2 rows of rest by bad" shown && grep -qx "# 2 rows of work by good" shown && grep -q -- "--yes" shown && [ "$(rows w)" = 4 ] && [ ! -e st/forgotten ]'
is "--yes forgets" eval '"$samples" forget --store st --where "a >= 3 and operation == \"good\"" --note "a bad evening" --yes >shown && grep -q "^# 2 rows are forgotten: 20" shown && [ "$(rows w)$(rows r)" = 24 ]'
is "a name that one table has: the other is said" eval 'says "no column of a name in --where.*: work$" "$samples" forget --store st --where "extra == 1" && grep -qx "# 4 rows of rest by bad" shown && ! grep "rows of work" shown'
is "check lists it" eval 'says "^# forgotten: 20.*, 2 rows, .* on .*: a bad evening$" "$samples" check --store st && grep -q "^# 2 rows of this store are left out" shown'
is "sweep measures such a point again, and only such" eval '>log; measure w again && [ "$(sort log | tr "\n" " ")" = "3 4 " ] && [ "$(rows w)" = 4 ]'
is "... and once" eval '>log; measure w third && [ ! -s log ]'
is "an undo brings the old rows back beside the new ones" eval 'says "^# 2 rows are used again$" "$samples" forget --store st --undo last && "$samples" show work --store st --output-format csv >shown && [ "$(wc -l <shown)" = 7 ]'
refused "undo of nothing" 2 "no tombstone last that can be undone; there are: none" "$samples" forget --store st --undo last
refused "undo with a selection" 2 "forget --undo takes only the id" "$samples" forget --store st --undo last --where 'a == 1'
is "by uid" eval 'uid=$("$samples" show work --store st --output-format csv --columns uid | tail -n 1) && says "^# 1 row is forgotten" "$samples" forget --store st "$uid" --yes && "$samples" show work --store st --output-format csv >shown && [ "$(wc -l <shown)" = 6 ] && ! grep "$uid" shown'
refused "twice" 2 "or this row is forgotten already" eval '"$samples" forget --store st "$uid"'
is "by operation" eval '"$samples" forget --store st --undo all && says "^# 4 rows of rest by bad$" "$samples" forget --store st --operation bad --yes && [ "$(rows w)$(rows r)" = 40 ]'
is "a merge says how many rows it left out" eval 'says "^# 6 rows of st were added to new2, 0 were there already; left out: 4 that are forgotten$" "$samples" merge st --store new2 && grep -q "^# 1 tombstone copied, too" shown'

# ---- a merge of some rows ----
is "undo before the next" "$samples" forget --store st --undo all
is "merge --where" eval 'says "^# 3 rows of st were added to some, 0 were there already; left out: 7 that were not chosen$" "$samples" merge st --store some --where "a <= 2 and (a < 2 or experiment == \"toys.work\")" && [ "$("$samples" show work --store some --output-format csv | wc -l)" = 3 ]'
is "... over keys: host, status, started, build_id" eval 'says "^# 6 rows of st were added" "$samples" merge st --store some2 --where "host == \"$(hostname)\" and status == \"valid\" and started > 1 and build_id != \"x\" and experiment == \"toys.work\""'
is "... with their records and no others" eval '[ "$(ls some2/experiments)" = toys.work.json ] && [ "$(ls some2/operations | tr "\n" " ")" = "again.json good.json third.json " ] && [ "$(ls some2/spaces | wc -l)" = 1 ] && says "no problems found" "$samples" check --store some2'
is "... what one table lacks is said" eval 'says "no column of a name in --where.*: work$" "$samples" merge st --store some3 --where "extra == 1" && grep -q "^# 4 rows of st were added" shown'
is "merge --operation: what it measured, and what it was answered with" eval 'says "^# 2 rows of st were added to op, 0 were there already; left out: 8" "$samples" merge st --store op --operation bad --where "a > 2" && says "^# 4 rows" "$samples" merge st --store op2 --operation third && [ "$(ls op2/operations | tr "\n" " ")" = "again.json good.json third.json " ]'
refused "merge --where of what no table has" 2 "nosuch" "$samples" merge st --store some --where 'nosuch == 1'
refused "merge of an operation that there is not" 2 "no operation ugly" "$samples" merge st --store some --operation ugly
finish
