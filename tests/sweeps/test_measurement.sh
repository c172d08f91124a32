#!/bin/sh
# test_measurement.sh - one measurement of build/sweep under programs that behave badly, and what is recorded of it: reports, builds,
# data, surroundings, names.
. tests/tap.sh
cd "$tmp" || exit 1
sweep=$BUILD/sweep samples=$BUILD/samples
# An experiment whose program does what its input says, and whose data is made.
mkdir own && cat >own/work.sh <<'E2'
#!/bin/sh
report() { echo "{\"speed\": ${1:-1.5}, \"nonce\": \"$TUNE_NONCE\"}" >"$TUNE_OUTPUT/report.json"; }
write() { printf "$1" >"$TUNE_OUTPUT/report.json"; }
echo "$TUNE_INPUT_A" >>ran
eval "$TUNE_INPUT_DOES"
E2
printf '#!/bin/sh\n[ ! -e "$1" ] || exit 7\nsleep %s\necho begin >"$1"\necho made >>made\nsleep %s\n' 0.2 0.3 >own/maker.sh
chmod +x own/work.sh own/maker.sh
cat >own/work.json <<'E2'
{"identifier": "work", "actuator": "custom_experiments", "description": "", "program": "./work.sh", "output": null,
 "inputs": [
  {"identifier": "a", "required": true, "domain": {"domainRange": [0, 100000], "interval": 1}},
  {"identifier": "does", "default": "false", "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}},
  {"identifier": "data", "default": null, "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}, "role": "data",
   "make": ["./maker.sh", "{}"]}],
 "targets": [{"identifier": "speed", "unit": "1/s"}, {"identifier": "is_valid", "unit": "", "whole": true, "optional": true}]}
E2
own="--experiments own/work.json"
space() { # NAME VALUES DOES [DATA]
    {
        printf 'entitySpace: [{identifier: a, propertyDomain: {values: [%s]}}]\nexperiments:\n' "$2"
        printf '  - actuatorIdentifier: custom_experiments\n    experimentIdentifier: work\n    parameterization:\n'
        printf '      - {property: {identifier: does}, value: "%s"}\n' "$(printf '%s' "$3" | sed 's/[\\"]/\\&/g')"
        [ -z "$4" ] || printf '      - {property: {identifier: data}, value: %s}\n' "$4"
    } >"$1.yaml"
}
store() { "$samples" show "$1.yaml" $own --store "$1" --include matching --output-format csv; }
count() { store "$1" | awk 'END { print NR - 1 }'; }
# ends NAME STATUS TEXT DOES [FLAG...] - one that does this is told so.
ends() {
    title=$1 status=$2 text=$3 does=$4
    shift 4
    flags=$* file=m$((number + 1))
    space "$file" 1 "$does"
    is "$title: $status" eval '"$sweep" $file.yaml $own --store $file --grace 0.3 $flags >out 2>&1; cat out; grep -qE "^ +1/1 +$status .*$text" out'
}
sleeping() { grep -lsaE "^sleep.$long" /proc/[0-9]*/cmdline; }
long=86395.$$
gone() { await 0 eval '[ -z "$(sleeping)" ]'; }

# ---- programs ----
ends "it leaves a daemon that heeds no SIGTERM" measured "speed 1.5" "setsid sh -c 'trap \"\" TERM; setsid sleep $long & echo 1 >there; sleep $long; sleep $long' & until [ -e there ]; do :; done; report"
is "... which ends with it" gone
ends "it closes what it writes to" measured "speed 1.5" 'exec >&- 2>&-; report'
ends "it stops itself" failed "time limit" 'kill -STOP $$; report' --timeout 0.3
ends "it reports, then hangs" failed "time limit" "report; sleep $long" --timeout 0.3
ends "it starts 200 others in sessions of their own" measured "speed 1.5" "for i in \$(seq 200); do setsid sleep $long & done; report"
is "... which end with it" gone
ends "it goes to another folder: TUNE_OUTPUT is absolute" measured "speed 1.5" 'cd / && report'
ends "it writes 300 MB" measured "speed 1.5" 'head -c 300000000 /dev/zero; report' --keep-runs
is "... of which one is kept" eval 'find . -name "log-0.txt" -size +1000k | grep -q . && [ -z "$(find . -name "log-0.txt" -size +1100k)" ]'
ends "it removes the folder of its measurement" failed "exit code 4" 'rm -r "${TUNE_OUTPUT%/*}"; exit 4'

# ---- reports ----
ends "no object" failed "not a JSON object" "write '[1]'"
ends "not a number, as Python writes it: the row stays, without the figure" measured "not stored, because the report has NaN or an infinity there: speed$" "write '{\"speed\": NaN, \"other\": [-Infinity, \"NaN\"]}'"
is "... its figure is absent" eval 'store $file >out; cat out; tr -d "\r" <out | grep -qxE ",identifier,generatorid,experiment_id,a,is_valid" && tr -d "\r" <out | grep -qE "^0,a.1,.*,1,1$"'
ends "an infinity" measured "not stored, .*: speed$" "write '{\"speed\": -Infinity}'"
ends "what only begins like one" failed "the report is not valid JSON: found NaN, which Python writes and JSON has not; expected ',' or '}', 1:12 of " "write '{\"speed\": 1NaN}'"
ends "... or ends otherwise" failed "the report is not valid JSON" "write '{\"speed\": NaN1}'"
ends "half of it" failed "the report is not valid JSON" "write '{\"speed\": 1'"
ends "more behind it" failed "the report is not valid JSON" "write '{\"speed\": 1}\\000{}'"
ends "a device" failed "not a regular file" 'ln -s /dev/zero "$TUNE_OUTPUT/report.json"'
ends "a pipe" failed "not a regular file" 'mkfifo "$TUNE_OUTPUT/report.json"'
ends "a folder" failed "is a folder" 'mkdir "$TUNE_OUTPUT/report.json"'
ends "a link to a file" measured "speed 7" 'report 7; mv "$TUNE_OUTPUT/report.json" kept.json; ln -s "$PWD/kept.json" "$TUNE_OUTPUT"/report.json'
ends "of the run before" failed "of another run" 'cp kept.json "$TUNE_OUTPUT/report.json"'
ends "a nonce that is a number" failed "of another run" "write '{\"speed\": 1, \"nonce\": 7}'"
ends "16 MiB and more" failed "more than the" 'head -c 17000000 /dev/zero | tr "\000" " " >"$TUNE_OUTPUT/report.json"'
ends "is_valid false" invalid "is_valid 0" "write '{\"is_valid\": false}'"
ends "half valid" failed "is_valid must be 0 or 1" "write '{\"speed\": 1, \"is_valid\": 0.5}'"
ends "valid by word" failed "is_valid must be 0 or 1" "write '{\"speed\": 1, \"is_valid\": \"no\"}'"

# ---- out of memory ----
for group in /sys/fs/cgroup/memory/tune-test-$$ /sys/fs/cgroup/tune-test-$$; do mkdir $group 2>/dev/null && break; done
limited() { echo 0 >$group/memory.swap.max; echo 33554432 >$group/memory.limit_in_bytes || echo 33554432 >$group/memory.max; }
if [ -d $group ] && limited 2>/dev/null; then
    ends "killed by the kernel for want of memory" invalid "out of memory" "echo \$\$ >$group/cgroup.procs; exec $BUILD/tests/machine/test_child play eat 256"
    ends "what a script waits for is" invalid "out of memory" "echo \$\$ >$group/cgroup.procs; $BUILD/tests/machine/test_child play eat 256; exit \$?"
    rmdir $group
else
    rmdir $group 2>/dev/null
    skip "out of memory" "no control group with a limit can be made here"
fi
ends "SIGKILL by somebody else" failed "signal 9" 'kill -9 $$'

# ---- several runs ----
sed 's/"identifier": "work"/"identifier": "counted"/; s/"output": null,/"output": null, "runs": 3,/; s/"targets": \[/"targets": [{"identifier": "well", "unit": "runs", "reduce": "count ok", "whole": true}, /' own/work.json >own/counted.json
space counted 1 'n=$(wc -l <ran); [ $n != 2 ] || { echo "the second one broke" >&2; exit 1; }; report $n'
sed -i 's/: work$/: counted/' counted.yaml
rm -f ran
is "of three runs that are counted two end well" eval '"$sweep" counted.yaml --experiments own/counted.json --store counted && "$samples" show counted.yaml --experiments own/counted.json --store counted --output-format csv >csv; cat csv; tail -n 1 csv | grep -q ",2,2.0,1$"'
is "... and why one did not is told" eval '"$samples" show "$(ls counted/operations | sed s/.json//)" --store counted >out; cat out; grep -q "run 2 of 3: exit code 1: the second one broke" out'

# ---- beside others ----
printf "operation:\n  module: {operatorName: random_walk}\n  parameters: {numberEntities: all, samplerConfig: {mode: sequential, samplerType: generator}, filter: {filterMode: unmeasured}}\n" >unmeasured.yaml
space beside "0, 1, 2" 'if [ $TUNE_INPUT_A = 1 ] && [ ! -e at1 ]; then echo >at1; until [ -e go1 ]; do sleep 0.01; done; fi; report'
sed 's/0, 1, 2/1/' beside.yaml >one.yaml
"$sweep" beside.yaml $own --store beside --join all --operation unmeasured.yaml --share-cores >out1 2>&1 &
await $! [ -e at1 ]
"$sweep" one.yaml $own --store beside --share-cores --remeasure >out2 2>&1
"$sweep" beside.yaml $own --store beside --join all --operation unmeasured.yaml --share-cores >out3 2>&1 &
await $! grep "measured .* a 2" out3
touch go1
wait
is "two that share an operation and count its entities differently keep out of each other's folders" eval 'cat out?; grep -qE "measured .* a 1" out1 && grep -qE "measured .* a 2" out3 && ! grep failed out? | grep -v " 0 failed"'
rm -f at1 go1

# ---- builds and data ----
cp own/work.sh kept.sh
rebuild() { sed "s/^eval/# $1\\neval/" kept.sh >own/new.sh; chmod +x own/new.sh; mv own/new.sh own/work.sh; }
space built "1, 2, 3" 'echo >"at$TUNE_INPUT_A"; until [ -e "go$TUNE_INPUT_A" ]; do sleep 0.01; done; report'
touch go1 go3
"$sweep" built.yaml $own --store built --retries 1 >out 2>&1 &
await $! [ -e at2 ]
rebuild another
touch go2
wait
is "a program that is built anew meanwhile: that run fails, others are of the build that they are" eval 'cat out; grep -q "failed .*the program changed during the measurement" out && grep -q "was built again; further results are of build" out && grep -q "^# finished  *3 valid, 0 invalid, 0 failed" out'
is "... by their rows" eval '"$sweep" built.yaml $own --store built --dry-run | tee dry | grep -c ^known | grep -qx 2 && cp kept.sh own/work.sh && "$sweep" built.yaml $own --store built --dry-run | tee -a dry | grep ^known | grep -q " a.1 "; cat dry'
cp kept.sh own/work.sh
echo old >set.dat
space fed "1, 2" 'echo >"fed$TUNE_INPUT_A"; until [ -e "eat$TUNE_INPUT_A" ]; do sleep 0.01; done; report' set.dat
"$sweep" fed.yaml $own --store fed >out 2>&1 &
await $! [ -e fed1 ]
echo newer >set.dat
touch eat1 eat2
wait
is "data that changes meanwhile" eval 'cat out; grep -qE "failed .* a 1 .*the data changed during the measurement" out && grep -qE "measured .* a 2" out'
space made 1 'cat new.dat >shown; report' new.dat
for i in 1 2; do "$sweep" made.yaml $own --store made$i --share-cores >made.out$i 2>&1 & done
wait
is "two sweeps that lack the same data: one makes it, the other waits" eval 'cat made.out1 made.out2; [ "$(wc -l <made)" = 1 ] && [ "$(cat made.out1 made.out2 | grep -c "makes it once")" = 1 ] && grep -q "1 valid, 0 invalid, 0 failed" made.out1 && grep -q "1 valid, 0 invalid, 0 failed" made.out2'
rm -f made ran
# A model is its weights, its configuration and its tokenizer.
sed '/"identifier": "does"/s/.*/  {"identifier": "does", "default": "", "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}, "role": "weights"},/; s/"work"/"of-model"/; s/work\.sh/of-model.sh/' own/work.json >own/of-model.json
printf '#!/bin/sh\necho "$TUNE_INPUT_A" >>ran\necho "{\\"speed\\": 1, \\"nonce\\": \\"$TUNE_NONCE\\"}" >"$TUNE_OUTPUT/report.json"\n' >own/of-model.sh
chmod +x own/of-model.sh
space model 1 ./a-model
sed -i 's/: work$/: of-model/' model.yaml
mkdir a-model && echo "{}" >a-model/config.json && echo weights >a-model/model.safetensors && echo "{}" >a-model/tokenizer.json
known() { "$sweep" model.yaml --experiments own/of-model.json --store model >out 2>&1; cat out; grep -q "$1 valid, 0 invalid, 0 failed, $2 known" out; }
is "a model that was not measured" known 1 0
is "... is known then" known 0 1
echo weighty >a-model/model.safetensors
is "other weights are another model" known 1 0
echo "{ }" >a-model/config.json
is "... so are the same ones by another config.json" known 1 0
echo "{ }" >a-model/tokenizer.json
is "... and with another tokenizer.json" known 1 0
echo "{}" >a-model/config.json
echo "{}" >a-model/tokenizer.json
is "the one before is known" known 0 1
space nowhere 1 ./no-model none.dat
sed -i 's/: work$/: of-model/' nowhere.yaml
rm -f made
refused "a model that is not there" 2 "no-model" "$sweep" nowhere.yaml --experiments own/of-model.json --store nowhere
is "... no data is made for it" eval '[ ! -e made ] && [ ! -e none.dat ]'
rm -f made none.dat
rm -f ran
space stopped 1 report gone.dat
sed -i 's/0\.3$/600/' own/maker.sh
"$sweep" stopped.yaml $own --store stopped >out 2>&1 &
pid=$!
await $pid [ -e made ]
kill -INT $pid
wait $pid
code=$?
is "a signal while data is made: it ends, half of it is not left, nothing is measured" eval 'cat out; [ $code = 130 ] && grep -q "^# stopped  *0 valid, 0 invalid, 0 failed" out && [ ! -e gone.dat ] && [ ! -e ran ]'

# ---- a text and a number that are spelled the same ----
sed 's/"identifier": "does", "default": "false"/"identifier": "size", "default": "none"/; s/"work"/"sized"/; s/work\.sh/of-model.sh/' own/work.json >own/sized.json
sized() { # NAME VALUE
    printf 'entitySpace: [{identifier: a, propertyDomain: {values: [1]}}, {identifier: size, propertyDomain: {values: [%s]}}]
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: sized}]\n' "$2" >"$1.yaml"
}
sized number 1 && sized text '"1"' && sized other '"2", x'
sweep_sized() { "$sweep" "$1.yaml" --experiments own/sized.json --store sized >out 2>err && cat out err; }
is "a number where any text may stand" eval 'sweep_sized number && grep -q "1 valid" out && [ ! -s err ]'
is "the same as a text: its rows count, and that is told" eval 'sweep_sized text && grep -q "0 valid, 0 invalid, 0 failed, 1 known" out && grep -qE "^sweep: the values of size are .1. here and 1 in space-[0-9a-f]{6}: " err'
is "... by samples show, too, either way" eval '"$samples" show number.yaml --experiments own/sized.json --store sized --include matching 2>err && cat err && grep -qE "^samples: the values of size are 1 here and .1. in space-" err'
is "another text: nothing is told" eval 'sweep_sized other && grep -q "2 valid" out && [ ! -s err ]'

# ---- surroundings ----
space s 1 report
wide=$(head -c 512 /dev/zero | tr '\000' X)
refused "more surroundings than a host class holds" 2 "the host class of the rows would be longer" "$sweep" s.yaml $own --store s --env "$wide=1"
space env 1 'echo $SETTING >>seen; report'
environment() { # MEASURED KNOWN VALUE [FLAG...] - that many measured and known with this value of SETTING
    want="$1 valid, 0 invalid, 0 failed, $2 known;" SETTING=$3
    shift 3
    export SETTING
    "$sweep" env.yaml $own --store env --env SETTING "$@" >out 2>&1
    unset SETTING
    cat out
    grep -qF "$want" out
}
rm -rf config
is "--env: a dry run draws no key" eval '! environment 0 0 plain-value --dry-run; grep -q "^# 1 of 1 would be measured" out && [ ! -e config ]'
is "... what is measured sees the value" eval 'environment 1 0 plain-value && grep -qx plain-value seen'
is "... the store and what is printed do not have it" eval '! grep -rlaF plain-value env out && grep -qE "^# host class .*, SETTING=#[0-9a-f]{16}$" out && grep -rlaE "SETTING=#[0-9a-f]{16}" env'
is "... the same value is known, another is not" eval 'environment 0 1 plain-value && environment 1 0 other && environment 0 1 other'
is "... by a key that only its user can read" eval '[ "$(stat -c %a config/tune.c/env.key)" = 600 ] && grep -qxE "[0-9a-f]{32}" config/tune.c/env.key'
cp -r config kept && rm -r config
is "... with another key it is another" eval 'environment 1 0 other && [ -e config/tune.c/env.key ] && rm -r config && mv kept config && environment 0 1 other'
mv env hashed && "$samples" show work --store hashed --output-format csv --output-file rows.csv
sed 's/SETTING=#[0-9a-f]*/SETTING=of-before/' rows.csv | head -n 2 >old.csv
"$samples" import csv old.csv $own --experiment work --store env >/dev/null
is "... rows of before, with the value itself, are known" eval 'environment 1 0 other && environment 0 1 of-before'
for name in HF_TOKEN aws_Secret_access WANDB_API_KEY PGPASSWORD=x keyboard; do
    refused "a name that sounds like a secret: $name" 2 "may be a secret" env HF_TOKEN=hf_x "$sweep" env.yaml $own --store env --env "SETTING=1,$name"
done
refused "a value without a name" 2 "a value without a name" "$sweep" env.yaml $own --store env --env SETTING=1,=hidden
is "... is passed where that is forced, and hashed" eval 'HF_TOKEN=hf_very "$sweep" env.yaml $own --store env --env HF_TOKEN --env-secrets >out && grep -q "HF_TOKEN=#" out && ! grep -rlaF hf_very env out'
echo nonsense >config/tune.c/env.key
refused "a key that is none" 1 "config/tune.c/env.key: expected one line of 32 hexadecimal digits" "$sweep" env.yaml $own --store env --env A=1
rm -r config
refused "nowhere to keep a key" 2 "no folder for the key" env -u XDG_CONFIG_HOME -u HOME "$sweep" env.yaml $own --store env --env A=1
refused "more of them than 64" 2 "at most 64 can be listed" "$sweep" s.yaml $own --store s --env "$(seq -s, 1 65)"
rm -f ran
space lines "1, 2, 3, 4, 5, 6, 7, 8" '[ "$TUNE_INPUT_A" -lt 5 ] || until [ -e left ]; do sleep 0.01; done; report'
"$sweep" lines.yaml $own --store lines 2>err | { head -n 7 >out; exec <&-; echo >left; }
is "whoever reads its output leaves: it stops, and can go on" eval 'cat err; [ "$(wc -l <ran)" -lt 6 ] && grep -q "\"stopped\"" lines/operations/*.json && grep -q "cannot write to standard output" err && [ "$(count lines)" = "$(wc -l <ran)" ]'

# ---- names ----
refused "a name that is no UTF-8" 2 "bytes of UTF-8" "$sweep" s.yaml $own --store s --name "$(printf 'a\377')"
rm -f ran
sed 's/"identifier": "a"/"identifier": "b"/; s/"domainRange": \[0, 100000\], "interval": 1/"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"/; s/"identifier": "work"/"identifier": "words"/' own/work.json >own/words.json
printf 'entitySpace: [{identifier: b, propertyDomain: {values: [%s]}}]\nexperiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: words}]\n' "$(head -c 4095 /dev/zero | tr '\000' x)" >words.yaml
refused "an entity that no row can name: said before it is measured" 2 'the text of "entity" has 4097 bytes' "$sweep" words.yaml --experiments own/words.json --store words
is "... and it is not" [ ! -e ran ]

# ---- numbers ----
sed 's/"domainRange": \[0, 100000\], "interval": 1/"values": [9007199254740992, 9007199254740993, 9007199254740994]/; s/"identifier": "work"/"identifier": "large"/' own/work.json >own/large.json
space large "9007199254740992, 9007199254740993" 'report ${TUNE_INPUT_A#900719925474099}'
sed -i 's/: work$/: large/' large.yaml
large() { "$sweep" large.yaml --experiments own/large.json --store large && "$samples" show large.yaml --experiments own/large.json --store large --output-format csv; }
is "whole numbers that are one as floats are two" eval 'large >out; cat out; grep -q "2 valid, 0 invalid, 0 failed, 0 known" out && grep -q "^0,a.9007199254740992,.*,2.0,1$" out && grep -q "^1,a.9007199254740993,.*,3.0,1$" out'
is "... sorted and grouped as two" eval 'for o in "--sort -a" "--group-by a"; do "$samples" show large --experiments own/large.json --store large --columns a --output-format csv $o | sed 1d | sort -r | paste -sd" "; done >out; cat out; [ "$(uniq out)" = "9007199254740993 9007199254740992" ]'
is "... and known as such" eval 'large >out; cat out; grep -q "0 valid, 0 invalid, 0 failed, 2 known" out'

# ---- where it stands ----
mkdir full && if mount -t tmpfs -o size=400k none full 2>/dev/null; then
    space full 1 'report; cat /dev/zero >"$TUNE_OUTPUT/rest" 2>/dev/null; :'
    is "a measurement that leaves no room on the disk: it goes before its row comes" eval '"$sweep" full.yaml $own --store full/st >out 2>&1; cat out; grep -q "1 valid, 0 invalid, 0 failed" out'
    umount full
else
    skip "a full disk" "no file system can be mounted here"
fi
odd=$(printf 'a "b\047 c\n\303\274')
is "a store of any name" eval 'mkdir "$odd" && "$sweep" s.yaml $own --store "$odd/st" && "$samples" check --store "$odd/st"'
is "from another folder" eval 'mkdir -p else && (cd else && "$sweep" ../s.yaml --experiments ../own/work.json --store there) && [ -e else/there/store.json ]'
finish
