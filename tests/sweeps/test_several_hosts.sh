#!/bin/sh
# test_several_hosts.sh - stores that several hosts write: hosts with clocks that differ by minutes, hosts that die; and file systems
# that no store can lie on. The other hosts and file systems are made by libraries that are preloaded (tests/faults/odd_host.c,
# odd_files.c).
. tests/tap.sh
cd "$tmp" || exit 1
sweep=$BUILD/sweep samples=$BUILD/samples
if sanitized; then
    skip "other hosts and file systems" "a sanitizer must be loaded first"
    finish
fi
for library in odd_host odd_files; do
    $CC -std=gnu11 -D_GNU_SOURCE -O1 -shared -fPIC -o $library.so "$here/tests/faults/$library.c" -ldl || exit 1
done
mkdir exp
cat >exp/work.sh <<E2
#!/bin/sh
echo "\$TUNE_INPUT_A" >>"$tmp/log"
until [ "\$(wc -l <"$tmp/log")" -ge "\$(cat "$tmp/together")" ]; do sleep 0.02; done
echo "{\\"speed\\": \$TUNE_INPUT_A}" >"\$TUNE_OUTPUT/report.json"
E2
chmod +x exp/work.sh
cat >exp/work.json <<'E2'
{"identifier": "work", "actuator": "toys", "program": "./work.sh", "output": null,
 "inputs": [{"identifier": "a", "required": true, "domain": {"domainRange": [0, 1000], "interval": 1}}],
 "targets": [{"identifier": "speed", "unit": "1/s"}]}
E2
echo '{"experiments": "exp"}' >tune.json
space() { printf "entitySpace:\n  - {identifier: a, propertyDomain: {values: [$1]}}\nexperiments: [{actuatorIdentifier: toys, experimentIdentifier: work}]\n"; }
space "$(seq -s ', ' 1 40)" >many.yaml
space 7 >one.yaml
# on HOST CLOCK COMMAND... - as on that host, whose clock is so many seconds ahead
on() { host=$1 clock=$2; shift 2; env LD_PRELOAD="$tmp/odd_host.so" HOST_NAME=$host HOST_CLOCK=$clock "$@"; }
once() { sort log | uniq -d | grep . && return 1; [ "$(wc -l <log)" = "$1" ] || { wc -l log; false; }; }
rows() { "$samples" show toys.work --store "$1" --columns a,host --output-format csv | tail -n +2; }

# ---- clocks that differ by minutes ----
together() { # STORE: three hosts at one operation
    : >log
    echo 3 >together # each host measures, whenever it begins
    on north -420 "$sweep" many.yaml --store "$1" --join all --share-cores >$1.1 2>&1 & one=$!
    on south 540 "$sweep" many.yaml --store "$1" --join all --share-cores >$1.2 2>&1 & two=$!
    on east 0 "$sweep" many.yaml --store "$1" --join all --share-cores >$1.3 2>&1 & three=$!
    wait $one && wait $two && wait $three
}
is "three hosts share an operation, their clocks are 16 minutes apart" together st
is "each point is measured once" once 40
is "each has one row" test "$(rows st | cut -d, -f1 | sort -n | uniq | wc -l) $(rows st | wc -l)" = "40 40"
is "each host wrote rows of its own" test "$(rows st | cut -d, -f2 | sort -u | tr '\n' ' ')" = "east north south "
is "in files of its own" eval 'for h in north south east; do ls st/*-$h-*.h5 >/dev/null || exit 1; done'
is "the store is whole" "$samples" check --store st
export HOST_DATES=1 ODD=lustre ODD_FOLDER=own
on() { host=$1 clock=$2; shift 2; env LD_PRELOAD="$tmp/odd_host.so:$tmp/odd_files.so" HOST_NAME=$host HOST_CLOCK=$clock "$@"; }
is "the same where each host's clock dates the files" together own
is "each point is measured once" once 40
is "the clocks do date the files" test "$(stat -c %Y own/hosts/south)" -gt "$(($(stat -c %Y own/hosts/north) + 900))"

# ---- a host that dies ----
LD="$tmp/odd_host.so:$tmp/odd_files.so"
dies() { # STORE: a host is killed while it measures
    echo 1000 >together && : >log
    LD_PRELOAD="$LD" HOST_NAME=north "$sweep" one.yaml --store "$1" --name job --share-cores >$1.1 2>&1 & one=$!
    await $one [ -s log ] || return 1
    kill -9 $one
    wait $one
    echo 1 >together
} 2>/dev/null
aged() { for f in "$1"/claims/job/*; do touch -d "-$2 seconds" "$f"; done; }
goes_on() { # STORE [SETTING...]: on another host
    store=$1
    shift
    env LD_PRELOAD="$LD" HOST_NAME=south HOST_CLOCK=240 "$@" "$sweep" --resume job --store "$store" --share-cores >$store.2 2>&1
}
waits() { # STORE [SETTING...]: it says that it waits, and does
    (exec 2>/dev/null; goes_on "$@") &
    one=$!
    await $one grep "other sweeps measure the remaining entities (1)" "$1.2" && sleep 1 && kill -0 $one && ! grep -q finished "$1.2"
    waits=$?
    pkill -P $one
    wait $one
    return $waits
}
ODD_FOLDER=own2
dies own2
aged own2 900 # and 240 more by the clock of the other host
is "on such a file system its leases hold for 20 minutes" waits own2
aged own2 1000
is "then another host takes over" goes_on own2
unset HOST_DATES ODD ODD_FOLDER
dies dead
aged dead 200
is "elsewhere they hold for 5 minutes" waits dead
aged dead 400
is "then another host takes over" goes_on dead
is "it wrote the row" test "$(rows dead)" = 7,south
dies again
is "a host of the same name that is another machine waits as long" waits again HOST_NAME=north HOST_MACHINE=2 HOST_BOOT=2
is "the same machine, started anew, goes on at once" goes_on again HOST_NAME=north HOST_BOOT=2

# ---- file systems ----
odd() { ODD=$1 ODD_FOLDER="$tmp/odd" LD_PRELOAD="$tmp/odd_files.so" "$sweep" one.yaml --store "$tmp/odd/st"; }
no() { # HOW TEXT
    rm -rf odd && mkdir -p odd/st
    refused "$1 is refused" 1 "odd/st: a store cannot be on this file system: $2" odd "$1"
    is "and leaves nothing behind" eval '[ -z "$(find odd -name ".try*" -o -name "*.tmp-*" -o -name "*.h5")" ]'
}
no excl "O_EXCL is ignored, so two processes can make the same file"
no rename-in-place "rename changes the file that it replaces"
no rename-copy "rename makes a copy"
no rename-EXDEV 'rename over a file fails with "Invalid cross-device link"'
no rename-ENOSYS 'rename over a file fails with "Function not implemented"'
for reason in EINVAL:"Invalid argument" ENOSYS:"Function not implemented"; do
    no fsync-${reason%:*} "fsync of a file fails with \"${reason#*:}\""
    no folder-${reason%:*} "fsync of a folder fails with \"${reason#*:}\""
done
no no-names "it has neither hard links nor RENAME_NOREPLACE"
no link-replaces "link does not refuse the name of an existing file"
no noreplace-replaces "RENAME_NOREPLACE does not refuse the name of an existing file"
no unseen "a file that was written and closed cannot be read"
rm -rf odd && mkdir odd
refused "a full disk is no odd file system" 1 "No space left on device" odd ENOSPC
rm -rf odd && mkdir odd
is "no hard links alone are no reason" odd no-link
is "it measured" test "$(rows odd/st | wc -l)" = 1
is "a sample file that is replaced while it is opened" eval 'ODD=stale ODD_FOLDER=$tmp/odd/st LD_PRELOAD=$tmp/odd_files.so "$samples" show toys.work --store "$tmp/odd/st" >stale.out && grep -q 7 stale.out'
# ---- a run folder over NFS ----
tiny model 1 >/dev/null && head -20 "$here/datasets/stories.jsonl" >rows.jsonl
nfs() { LD_PRELOAD="$tmp/odd_files.so" ODD=nfs-locks ODD_FOLDER=run exec "$BUILD/finetune_full" --model model --dataset rows.jsonl --max-length 32 --output run "$@"; }
(nfs --epochs 4000 >/dev/null 2>&1) &
run=$!
await $run [ -s run/metrics.jsonl ]
refused "a run that is going on is not overwritten" 2 "a run is still writing to run" eval '(nfs --overwrite)'
kill $run
wait $run 2>/dev/null
is "after its end it is" eval '(nfs --overwrite --max-steps 1)'

# ---- a host that gives its control group one core ----
mkdir groups group && echo 0::/ >groups/cgroup && echo "31 23 0:28 / $tmp/group rw - cgroup2 cgroup2 rw" >groups/mountinfo
two() { echo "$1 100000" >group/cpu.max && HOST_GROUPS=$tmp/groups on east 0 "$sweep" many.yaml --store two --in-flight 2 --dry-run; }
if two max >/dev/null 2>&1; then refused "two at a time have no cores of their own there" 2 "on 1 core would disturb each other" two 100000
else skip "a control group of one core" "this machine has one"
fi

# ---- once for each host and boot ----
made() { touch mark && sleep 0.02 && "$@" >/dev/null && find st/hosts -newer mark -type f | grep -c .; }
is "a host that is known is not tried again" test "$(made on east 0 "$sweep" many.yaml --store st --dry-run; made on east 0 "$sweep" one.yaml --store st)" = "0
0"
is "a new host is" test "$(made on west 0 "$sweep" one.yaml --store st)" = 1
finish
