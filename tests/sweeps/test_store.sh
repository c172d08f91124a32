#!/bin/sh
# test_store.sh - sample stores in a bad world: writers killed at random moments, four at once, full disks, size limits, read-only
# folders, what the dead leave behind. Always: every row that was acknowledged is there, whole, and the next writer goes on.
# STORE_KILLS: how often to kill (30).
# Thousands of fsyncs: in memory, where there is such a folder.
[ -n "$TMPDIR" ] || [ ! -w /dev/shm ] || export TMPDIR=/dev/shm
. tests/tap.sh
store=$BUILD/tests/helpers/store kills=${STORE_KILLS:-30} seed=$$
cd "$tmp" || exit 1

# acknowledged FOLDER WRITER FILE - the numbers in FILE are in the store; what it has is what its writer wrote. The last line
# may lack its end: the writer was killed.
acknowledged() {
    "$store" list "$1" >listed 2>complaints || { cat complaints; return 1; }
    sed "s/^/$2 /" "$3" | sort >wanted
    sort listed | comm -13 - wanted >missing
    [ ! -s missing ] || { echo "acknowledged, and not there:"; cat missing; return 1; }
}
random() { seed=$(((seed * 1103515245 + 12345) % 2147483648)); echo $((seed / 65536 % $1)); }

# ---- kill -9 ----
# One writer after the other, each with a number of its own; the rows of 40 fit a file, so files end and begin too.
lives=0
life() {
    : >"acknowledged.$lives"
    "$store" write night $lives 0 1000000 >"acknowledged.$lives" 2>life.err &
    job=$!
    await $job [ -s "acknowledged.$lives" ] || return 1
    sleep "0.$(printf %03d "$(random 250)")"
    kill -9 $job 2>/dev/null
    wait $job 2>/dev/null
    [ $? = 137 ] || { cat life.err; return 1; }
    acknowledged night $lives "acknowledged.$lives"
}
night() {
    while [ $lives -lt "$kills" ]; do
        lives=$((lives + 1))
        life || { echo "in life $lives"; return 1; }
    done
}
is "kill -9 at random moments, $kills times: every acknowledged row is there" night
is "each wrote some" test "$(cat acknowledged.* | wc -l)" -ge "$kills"
is "nothing else is wrong with the store" eval '"$store" check night >problems; none_but_whole=$(cat problems); [ -z "$none_but_whole" ] || { cat problems; false; }'
is "no row is there twice" eval '"$store" list night >all && [ -s all ] && ! sort all | uniq -d | grep .'
if command -v h5dump >/dev/null 2>&1; then
    is "h5dump and h5ls open every file" eval '(for f in night/*.h5; do h5dump -H "$f" >dumped 2>&1 && h5ls -r "$f" >>dumped 2>&1 || { cat dumped; exit 1; }; done)'
else
    skip "h5dump and h5ls open every file" "no hdf5-tools"
fi

# ---- what the dead leave ----
touch "night/20200101T000000.000000Z-$(hostname | tr -c 'A-Za-z0-9._\n-' _)-4194305.h5.tmp-4194305" # above every pid there can be
touch "night/20200101T000000.000000Z-another-host-4194305.h5.tmp-4194305"
touch "night/20200101T000000.000000Z-$(hostname | tr -c 'A-Za-z0-9._\n-' _)-$$.h5.tmp-$$" # this shell lives
mkdir night/spaces && touch night/store.json.tmp-17 night/spaces/s.yaml.tmp-18446744073709551615 night/spaces/kept.tmp-x
touch -d '2 hours ago' night/*.tmp-* night/spaces/*.tmp-*
touch -d '2 days ago' "night/20200101T000000.000000Z-third-host-7.h5.tmp-7"
touch "night/20200101T000001.000000Z-$(hostname | tr -c 'A-Za-z0-9._\n-' _)-4194305.h5.tmp-4194305" # a minute ago it was not there
is "a later writer" "$store" write night 900 0 1
is "removes what a dead process of this host left, and nothing else" test "$(ls night | grep -c tmp-4194305)" = 2
is "nor a name without a number, but records of two hours, and what another host left two days ago" test "$(cd night && ls -d store.json.tmp-* spaces/* *third-host* 2>/dev/null | tr '\n' ' ')" = "spaces/kept.tmp-x "
rm -r night/spaces
is "nor what a live process began an hour ago" eval 'ls night/*.tmp-$$ && rm night/*.tmp-$$'
is "readers do not mind" acknowledged night 900 /dev/null

# ---- four at once ----
four() {
    for w in 1 2 3 4; do "$store" write four $w 0 150 >four.$w 2>four.$w.err & done
    wait
    for w in 1 2 3 4; do
        [ "$(wc -l <four.$w)" = 150 ] || { cat four.$w.err; return 1; }
        acknowledged four $w four.$w || return 1
    done
    [ "$(wc -l <listed)" = 600 ] && [ "$(ls four/*.h5 | wc -l)" = 4 ] && [ -z "$("$store" check four)" ]
}
is "four writers of one new store: no row lost or torn" four
is "one id" test "$("$store" id four | wc -c)" = 7
is "merged into another: the same rows" eval '"$store" merge merged four >came && [ "$(cat came)" = "600 0 0 0" ] && "$store" list four | sort >a && "$store" list merged | sort | cmp - a'
is "merged again: none" eval '"$store" merge merged four >came && [ "$(cat came)" = "0 600 0 0" ]'

# ---- a fault at each call that changes a file ----
# walk WHAT - that fault at every call of a process that makes a store and writes three rows into it. It ends well or with an error that
# says why; what it acknowledged is there, nothing is broken, and the next writer goes on.
walk() {
    n=1
    while [ $n -le "$calls" ]; do
        rm -rf walk
        "$tmp/fault" "$1" $n "$store" write walk 1 0 3 >walk.said 2>walk.err
        code=$?
        case $1 in
        KILL) [ $code = 137 ] || [ $code = 0 ] ;;
        *) [ $code = 0 ] || { [ $code = 1 ] && grep -qE 'No space left|Input/output error|Read-only file system' walk.err; } ;;
        esac || { echo "$1 at call $n ended with $code:"; cat walk.err; return 1; }
        "$store" write walk 2 0 1 >/dev/null && acknowledged walk 1 walk.said && "$store" check walk >walk.wrong && [ ! -s walk.wrong ] ||
            { echo "after $1 at call $n:"; cat walk.wrong; return 1; }
        case $1 in ENOSPC* | EIO) ! ls walk | grep -F .h5.tmp- || { echo "$1 at call $n left that"; return 1; } ;; esac
        n=$((n + 1))
    done
}
if $CC -std=c11 -D_GNU_SOURCE -O1 -o fault "$here/tests/faults/fault.c"; then
    ./fault COUNT 0 "$store" write counted 1 0 3 9>count >/dev/null
    case $? in
    0)
        calls=$(cat count)
        is "there are some calls" test "$calls" -gt 20
        for what in ENOSPC ENOSPC+ EIO EROFS+ KILL; do is "$what at each of $calls calls" walk $what; done
        ;;
    77) skip "a fault at each call" "this system does not let programs be traced" ;;
    *) is "a writer that is traced" false ;;
    esac
else
    is "fault.c is compiled" false
fi

# ---- disks ----
refused "a file size limit is an error that names the file" 1 ".h5: File too large" sh -c "ulimit -f 40; exec '$store' write limited 1 0 100"
cp said limited.said
is "the rows before it are there" eval '[ -s limited.said ] && acknowledged limited 1 limited.said && ! ls limited | grep tmp'
if command -v unshare >/dev/null 2>&1 && unshare -rm true 2>/dev/null; then
    mkdir small
    unshare -rm sh -c "mount -t tmpfs -o size=200k tmpfs small && '$store' write small/store 1 0 1000 >full.said 2>full.err; echo \$? >full.code
        '$store' write small/store 2 0 1 >>full.err 2>&1; dd if=/dev/zero of=small/rest 2>/dev/null; '$store' write small/store 3 0 1 >>full.err 2>&1; rm small/rest
        '$store' write small/store 4 0 1 >full.again 2>&1; cp -a small/store full"
    is "a full disk is an error" test "$(cat full.code)" = 1
    is "which names the file and the reason" grep -q 'small/store/.*\.h5: No space left on device' full.err
    is "every acknowledged row is there, nothing half-written" eval '[ "$(wc -l <full.said)" -gt 50 ] && acknowledged full 1 full.said && ! ls full | grep tmp && [ -z "$("$store" check full)" ]'
    is "the same writer goes on when there is space" eval 'acknowledged full 4 full.again && grep -qx "4 0" listed'
    unshare -rm sh -c "mount --bind full full && mount -o remount,ro,bind full && { '$store' list full | wc -l >ro.rows; '$store' write full 9 0 1 >/dev/null 2>ro.err; echo \$? >ro.code; }"
    is "a read-only store is read" test "$(cat ro.rows)" = "$("$store" list full | wc -l)"
    is "and not written, which is said" eval '[ "$(cat ro.code)" = 1 ] && grep -q "cannot write full/.*Read-only file system" ro.err'
else
    skip "a full and a read-only file system" "mounting is not allowed here"
fi
# root may do anything: what is not permitted is tried as nobody, where nobody reaches the program
as= nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
[ "$(id -u)" != 0 ] || { chmod 755 "$tmp" && $nobody test -x "$store" 2>/dev/null && as=$nobody; }
if [ "$(id -u)" != 0 ] || [ -n "$as" ]; then
    cp -r four locked && chmod 555 locked
    refused "a folder without permission to write" 1 "cannot write locked/" $as "$store" write locked 1 0 1
    is "can be read" eval '[ "$($as "$store" list locked | wc -l)" = 600 ]'
    chmod 000 locked/*.h5
    refused "a file without permission to read" 1 "cannot open locked/" $as "$store" list locked
    chmod 000 locked
    refused "a folder without any" 1 "locked/store.json: Permission denied" $as "$store" list locked
    chmod 755 locked
else
    skip "folders without permission" "root, and nobody cannot reach $store"
fi

# ---- leases ----
lease_all() { # LEASES - six processes that all want them, killed when nobody gets any more
    jobs=
    for w in 1 2 3 4 5 6; do
        "$store" lease leases "$1" >lease.$w 2>lease.$w.err &
        jobs="$jobs $!"
    done
    await 0 eval '[ "$(cat lease.? | wc -l)" -ge '"$2"' ]'
    sleep 0.2 # somebody might take one more
    kill -9 $jobs
    wait
    cat lease.?.err
    [ "$(cat lease.? | wc -l)" = "$2" ] && [ "$(cat lease.? | sort -u | wc -l)" = "$2" ]
}
is "six processes, 80 leases: each is taken once" lease_all 80 80
is "killed: the 40 that were not done are taken again, once" lease_all 80 40
# holds FILE - a process that takes the lease, and has said so
holds() {
    rm -f "$1"
    "$store" hold leases slow >"$1" &
    job=$!
    await $job [ -s "$1" ]
}
holds first
is "a lease that is held" eval '"$store" hold leases slow | grep -q "^pid $job on "'
kill -9 $job
wait $job 2>/dev/null
holds second
is "is free once its process was killed" grep -qx mine second
kill -9 $job
finish
