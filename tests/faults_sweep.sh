#!/bin/sh
# faults_sweep.sh - what sweeps leave behind when they are killed: the sweep, what it measures, or both, at random moments, time and
# again; four on one store at once; a full disk. Always: every file opens, in h5py and h5dump too where these are there; every row
# that was acknowledged is there; nothing stands in it twice; the next sweep goes on. Called by `make faults`.
# FAULT_KILLS: how often to kill (200).
[ -n "$TMPDIR" ] || [ ! -w /dev/shm ] || export TMPDIR=/dev/shm
. tests/tap.sh
kills=${FAULT_KILLS:-200} sweep=$BUILD/sweep samples=$BUILD/samples
python=${TUNE_PYTHON:-$HOME/.cache/tune.c/venv/bin/python}
"$python" -c 'import h5py' 2>/dev/null || python=
cd "$tmp" || exit 1
cat >work.sh <<'E2'
#!/bin/sh
echo "{\"t\": $TUNE_INPUT_A}" >"$TUNE_OUTPUT/report.json"
E2
chmod +x work.sh
cat >work.json <<'E2'
{"identifier": "work", "actuator": "custom_experiments", "program": "./work.sh", "output": null,
 "inputs": [{"identifier": "a", "required": true, "domain": {"domainRange": [0, 100000], "interval": 1}}], "targets": [{"identifier": "t"}]}
E2
space() { # FILE LOW HIGH
    cat >"$1" <<E2
entitySpace: [{identifier: a, propertyDomain: {domainRange: [$2, $3], interval: 1}}]
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work}]
E2
}
rows() { "$samples" show "$1" --experiments work.json --store "$2" --include matching --output-format csv; }
# acknowledged FILE... - the entities that sweeps said they had measured; stored SPACE STORE - those of rows.
acknowledged() { cat "$@" | sed -n 's/^ *[0-9]*\/[0-9]* *measured .* a \([0-9]*\)$/\1/p' | sort -n; }
stored() { rows "$@" | sed -n 's/^[0-9]*,a\.\([0-9]*\),.*/\1/p' | sort -n; }
opens() { # STORE - every sample file, by whoever is there
    for f in "$1"/*.h5; do
        [ -e "$f" ] || continue
        if [ -n "$python" ]; then
            "$python" -c 'import h5py, sys
for f in sys.argv[1:]:
    with h5py.File(f) as h:
        [h["measurements"][k][:] for k in h["measurements"]], h["requests"][:]' "$f" || return 1
        fi
        if command -v h5dump >/dev/null 2>&1; then h5dump "$f" >/dev/null || return 1; fi
    done
}

# ---- killed ----
space many.yaml 0 10000
killed=0
while [ $killed -lt "$kills" ]; do
    killed=$((killed + 1))
    "$sweep" many.yaml --experiments work.json --store st --join all >"out.$killed" 2>"err.$killed" &
    pid=$!
    sleep "0.$(awk -v n=$killed 'BEGIN { srand(n * 7919); printf "%03d", 20 + rand() * 300 }')"
    child=$(pgrep -P "$(pgrep -P $pid | head -n 1)" 2>/dev/null | head -n 1)
    case $((killed % 3)) in
    0) kill -9 $pid ;;
    1) [ -z "$child" ] || kill -9 "$child" 2>/dev/null; kill -9 $pid ;;
    2) [ -z "$child" ] || kill -9 "$child" 2>/dev/null; sleep 0.05; kill -9 $pid ;;
    esac 2>/dev/null
    wait $pid 2>/dev/null
done
is "$kills times killed: the store is sound" "$samples" check --store st
is "every file opens in h5py and h5dump${python:+ (h5py is here)}" opens st
acknowledged out.* >acknowledged
stored many.yaml st >stored
is "every acknowledged row is there ($(wc -l <acknowledged))" eval '[ -s acknowledged ] && [ -z "$(comm -23 acknowledged stored)" ]'
is "no entity was acknowledged twice" eval '[ -z "$(uniq -d acknowledged)" ]'
is "the next sweep goes on" eval '"$sweep" many.yaml --experiments work.json --store st --entities 20 --order random --seed 3 >next && grep -q "^# finished" next'

# ---- four at once ----
space four.yaml 20000 20100
for i in 1 2 3 4; do "$sweep" four.yaml --experiments work.json --store four --join all --share-cores >four.$i 2>&1 & done
wait
is "four on one store: all rows, each once" eval 'stored four.yaml four >stored; seq 20000 20099 | cmp - stored && [ "$(acknowledged four.1 four.2 four.3 four.4 | wc -l)" = 100 ]'
is "four operations of their own on one store: none is lost" eval 'for i in 1 2 3 4; do space own$i.yaml $((30000 + i * 100)) $((30020 + i * 100)); "$sweep" own$i.yaml --experiments work.json --store four --share-cores >own.$i 2>&1 & done; wait; space own.yaml 30000 30500; [ "$(stored own.yaml four | wc -l)" = 80 ] && "$samples" check --store four'

# ---- a full disk ----
mkdir full && if mount -t tmpfs -o size=400k none full 2>/dev/null; then
    space full.yaml 0 5000
    "$sweep" full.yaml --experiments work.json --store full/st >out 2>err
    code=$?
    is "a full disk: said, exit 1" eval '[ $code = 1 ] && grep -qiE "no space|disk" err'
    cp -r full/st copy
    umount full
    is "... and every acknowledged row is there" eval '"$samples" check --store copy && acknowledged out >acknowledged && stored full.yaml copy >stored && [ -s acknowledged ] && [ -z "$(comm -23 acknowledged stored)" ]'
else
    skip "a full disk" "no file system can be mounted here"
fi
finish
