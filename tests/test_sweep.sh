#!/bin/sh
# test_sweep.sh - build/sweep: what it measures, replays, refuses and retries; stopped, killed, resumed, shared; what users write wrongly.
. tests/tap.sh
cd "$tmp" || exit 1
sweep=$BUILD/sweep samples=$BUILD/samples
rows() { "$samples" show "$1" --store "$2" --include "${3:-matching}" --property-format target --output-format csv; }
count() { rows "$@" | awk 'END { print NR - 1 }'; }
says() { # TEXT COMMAND... - the command succeeds and prints a line that matches
    text=$1
    shift
    "$@" >"$tmp/shown" 2>&1 && grep -qE -e "$text" "$tmp/shown" || { cat "$tmp/shown"; false; }
}
# An experiment of our own: a script that logs each run, and does what its inputs say.
mkdir own && cat >own/work.sh <<'E2'
#!/bin/sh
echo "$TUNE_INPUT_A $TUNE_INPUT_B" >>"$TUNE_INPUT_LOG"
case $TUNE_INPUT_HOW in
    fine) ;;
    code*) echo "something went wrong in the middle" >&2; exit "${TUNE_INPUT_HOW#code}" ;;
    signal*) kill "-${TUNE_INPUT_HOW#signal}" $$ ;;
    none) exit 0 ;;
    nonsense) echo "{ no JSON" >"$TUNE_OUTPUT/report.json"; exit 0 ;;
    text) echo '{"speed": "fast"}' >"$TUNE_OUTPUT/report.json"; exit 0 ;;
    infinite) echo '{"speed": 1e999}' >"$TUNE_OUTPUT/report.json"; exit 0 ;;
    stale) echo '{"speed": 1, "nonce": "of another run"}' >"$TUNE_OUTPUT/report.json"; exit 0 ;;
    lacking) echo '{"other": 1}' >"$TUNE_OUTPUT/report.json"; exit 0 ;;
    invalid) echo '{"is_valid": 0}' >"$TUNE_OUTPUT/report.json"; exit 0 ;;
    second) [ -e "$TUNE_INPUT_LOG.tried" ] || { touch "$TUNE_INPUT_LOG.tried"; exit 1; } ;;
    cores) taskset -p $$ >>"$TUNE_INPUT_LOG.cores" ;;
    environment) env | sort >"$TUNE_INPUT_LOG.environment" ;;
esac
sleep "$TUNE_INPUT_SECONDS"
echo "{\"speed\": $TUNE_INPUT_A$TUNE_INPUT_B.5, \"steps\": 3, \"nonce\": \"$TUNE_NONCE\"}" >"$TUNE_OUTPUT/report.json"
E2
chmod +x own/work.sh
cat >own/work.json <<E2
{"identifier": "work", "actuator": "custom_experiments", "description": "", "program": "./work.sh", "output": null,
 "inputs": [
  {"identifier": "a", "required": true, "domain": {"domainRange": [0, 100], "interval": 1}},
  {"identifier": "b", "default": 0, "domain": {"domainRange": [0, 100], "interval": 1}},
  {"identifier": "how", "default": "fine", "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}},
  {"identifier": "seconds", "default": 0.0, "domain": {"domainRange": [0, 100]}},
  {"identifier": "log", "default": "$tmp/log", "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}}],
 "rules": [{"require": "a % 7 != 6", "reason": "a leaves 6 when divided by 7"}],
 "targets": [{"identifier": "speed", "unit": "1/s"}, {"identifier": "steps", "unit": "", "whole": true, "optional": true}, {"identifier": "is_valid", "unit": "", "whole": true, "optional": true}]}
E2
space() { # FILE A B [HOW [SECONDS]]
    cat >"$1" <<E2
entitySpace:
  - identifier: a
    propertyDomain: {values: [$2]}
  - identifier: b
    propertyDomain: {values: [$3]}
experiments:
  - actuatorIdentifier: custom_experiments
    experimentIdentifier: work
$([ -z "$4" ] || echo "    parameterization:")
$([ -z "$4" ] || [ "$4" = fine ] || printf '      - property: {identifier: how}\n        value: %s' "$4")
$([ -z "$5" ] || printf '      - property: {identifier: seconds}\n        value: %s' "$5")
E2
}
own="--experiments own/work.json"
rows() { "$samples" show "$1" $own --store "$2" --include "${3:-matching}" --property-format target --output-format csv; }

# ---- measuring ----
space s.yaml "1, 2, 3" "4, 5"
is "six entities are measured" says "finished +6 measured \(0 failed\), 0 known" "$sweep" s.yaml $own --store st
is "in the grid's order, last dimension fastest" eval '[ "$(tr "\n" , <log)" = "1 4,1 5,2 4,2 5,3 4,3 5," ]'
is "their rows" eval 'rows s.yaml st measured >csv && [ "$(sed -n 2p csv)" = "0,a.1-b.4,explicit_grid_sample_generator,custom_experiments.work,1,4,14.5,3,1" ] && [ $(wc -l <csv) = 7 ]'
is "again: all are known, none is run" eval 'says "0 measured \(0 failed\), 6 known" "$sweep" s.yaml $own --store st && [ $(wc -l <log) = 6 ]'
space wider.yaml "3, 2, 9" "5, 8"
is "another space sees what it shares with the first" says "4 measured \(0 failed\), 2 known" "$sweep" wider.yaml $own --store st
is "measured, matching, missing of the first" eval '[ $(count s.yaml st measured) = 6 ] && [ $(count wider.yaml st matching) = 6 ] && [ $(count s.yaml st missing) = 0 ]'
is "--remeasure measures again" says "6 measured" "$sweep" s.yaml $own --store st --remeasure
is "several results of one entity are a list" eval 'rows s.yaml st measured | grep -qF "\"[14.5, 14.5]\""'
is "--repeat 3: one more than the two there are" says "6 measured \(0 failed\), 12 known" "$sweep" s.yaml $own --store st --repeat 3
is "--entities 2 --order random --seed 5 twice the same" eval '"$sweep" s.yaml $own --store r1 --entities 2 --order random --seed 5 | grep measured | cut -c30- >o1; "$sweep" s.yaml $own --store r2 --entities 2 --order random --seed 5 | grep measured | cut -c30- >o2; [ $(wc -l <o1) = 3 ] && [ "$(head -n 2 o1)" = "$(head -n 2 o2)" ]'
is "a selector takes what the store has" says "0 measured \(0 failed\), 6 known" "$sweep" wider.yaml $own --store st --sampler selector --filter noFilter
is "--filter unmeasured leaves out what is known" eval 'space more.yaml "1, 40" "4" && says "1 measured \(0 failed\), 0 known" "$sweep" more.yaml $own --store st --filter unmeasured'
is "a dry run does nothing and says all" eval 'lines=$(wc -l <log); space dry.yaml "1, 6, 50" 4; says "# 1 of 3 would be measured, 1 are known, 1 cannot be measured" "$sweep" dry.yaml $own --store st --dry-run && grep -q "^# estimated time" shown && [ $(wc -l <log) = $lines ]'

# ---- outcomes ----
is "a rule that is not met: a row, no run" eval 'space ruled.yaml 6 1; says "1 invalid" "$sweep" ruled.yaml $own --store st && ! grep -q "^6 1$" log && rows ruled.yaml st | grep -q ",6,1,0$"'
outcome() { # HOW STATUS REASON
    how=$1 status=$2 reason=$3
    space "$how.yaml" 1 1 "$how"
    is "$how: $status, $reason" eval 'says "^ +1/1 +$status .*$reason" "$sweep" $how.yaml $own --store out'
}
outcome code1 failed "exit code 1: something went wrong in the middle"
outcome code3 invalid "exit code 3: something went wrong"
outcome code137 failed "exit code 137"
outcome signal9 failed "ended by signal 9"
outcome signal11 failed "ended by signal 11"
outcome none failed "left no report"
outcome nonsense failed "the report makes no sense"
outcome text failed "speed is no number"
outcome infinite failed "speed|makes no sense"
outcome stale failed "another run's"
outcome lacking failed "has no speed"
outcome invalid invalid "is_valid 0"
is "what failed is tried again by the next operation, what is invalid is not" eval 'says "1 measured" "$sweep" code1.yaml $own --store out && says "0 measured \(0 failed\), 1 known" "$sweep" code3.yaml $own --store out'
is "--retries: the second try is fine" eval 'space second.yaml 2 2 second; says "2 measured \(1 failed\)" "$sweep" second.yaml $own --store out --retries 1'
is "--timeout ends a run" eval 'space slow.yaml 1 1 fine 60; says "failed .*time limit of 0.3 s" "$sweep" slow.yaml $own --store out --timeout 0.3'
is "--time-limit ends the operation and records nothing of it" eval 'says "^# stopped " "$sweep" slow.yaml $own --store limit --time-limit 0.3 && [ $(count slow.yaml limit) = 0 ]'
is "what is measured sees the environment it is told, with --env more" eval 'space env.yaml 1 1 environment; SECRET=1 MORE=2 "$sweep" env.yaml $own --store out --env MORE >/dev/null && ! grep -q SECRET log.environment && grep -q "^MORE=2$" log.environment && grep -q "^TUNE_NONCE=................................$" log.environment && grep -q "^TUNE_INPUT_A=1$" log.environment'
is "... and other surroundings are not replayed" says "1 measured" "$sweep" env.yaml $own --store out

# ---- where figures come from ----
space s.yaml "1, 2, 3" "4, 5"
cp own/work.sh kept.sh && echo "# another build" >>own/work.sh
is "another build of the program: measured anew" says "6 measured" "$sweep" s.yaml $own --store st
is "... unless any build is accepted" says "0 measured" "$sweep" wider.yaml $own --store st --accept any-build
refused "a word --accept does not know" 2 "any-host, any-build" "$sweep" s.yaml $own --store st --accept any-body
cp kept.sh own/work.sh

# ---- cores are slots ----
space cores.yaml "1, 2, 3, 4" 1 cores
if command -v taskset >/dev/null 2>&1 && [ "$(nproc)" -ge 2 ]; then
    is "two at a time have cores of their own" eval '"$sweep" cores.yaml $own --store cores --in-flight 2 >/dev/null && [ $(sed "s/.*: //" log.cores | sort -u | wc -l) = 2 ]'
    rm -f log.cores
    is "... and share them where asked" eval '"$sweep" cores.yaml $own --store cores2 --in-flight 2 --share-cores >/dev/null && [ $(sed "s/.*: //" log.cores | sort -u | wc -l) = 1 ]'
else
    skip "cores of their own" "one core, or no taskset"
fi
refused "more at a time than cores" 2 "would disturb each other" "$sweep" s.yaml $own --store cores --in-flight 1000

# ---- stopped, killed, resumed, shared ----
space long.yaml "1, 2, 3, 4" "1, 2" fine 0.2
rm -f log
"$sweep" long.yaml $own --store stop --name first >said.txt 2>&1 &
pid=$!
i=0
while [ "$(grep -c . log 2>/dev/null)" != 3 ] && [ $i -lt 200 ]; do sleep 0.05; i=$((i + 1)); done
kill -INT $pid
wait $pid
code=$?
is "SIGINT: exit 130, what ran is not recorded" eval '[ $code = 130 ] && grep -q "^# stopped" said.txt && grep -q "sweep --resume first --store stop" said.txt && [ $(count long.yaml stop) -ge 1 ] && [ $(count long.yaml stop) -le 3 ]'
is "--resume goes on, and measures the others once" eval 'says "finished" "$sweep" --resume first $own --store stop && [ $(count long.yaml stop measured) = 8 ] && [ $(sort log | uniq -c | awk "\$1 > 2" | wc -l) = 0 ]'
is "... and again: nothing is left" eval 'lines=$(wc -l <log); "$sweep" --resume first $own --store stop >/dev/null && [ $(wc -l <log) = $lines ]'
refused "an operation that is not there" 2 "there is no operation nobody" "$sweep" --resume nobody $own --store stop
refused "an operation of another space" 2 "is of space-" "$sweep" s.yaml --resume first $own --store stop
rm -f log
"$sweep" long.yaml $own --store killed --name first >/dev/null 2>&1 &
pid=$!
i=0
while [ "$(grep -c . log 2>/dev/null)" != 3 ] && [ $i -lt 200 ]; do sleep 0.05; i=$((i + 1)); done
kill -9 $pid
wait $pid 2>/dev/null
is "killed: what was acknowledged is there" eval '[ $(count long.yaml killed) -ge 2 ]'
is "what it ran ends with it" eval 'sleep 0.5; i=0; while pgrep -f "$tmp/own/work.sh" >/dev/null && [ $i -lt 40 ]; do sleep 0.1; i=$((i + 1)); done; ! pgrep -f "$tmp/own/work.sh"'
is "--resume goes on" eval '"$sweep" --resume first $own --store killed >said.txt && [ $(count long.yaml killed measured) = 8 ] && [ "$(rows long.yaml killed | grep -c "\[")" = 0 ]'
rm -f log
for i in 1 2 3; do "$sweep" long.yaml $own --store joined --join all --share-cores >joined.$i 2>&1 & done
wait
is "three that share an operation measure each entity once" eval '[ $(wc -l <log) = 8 ] && [ $(sort -u log | wc -l) = 8 ] && [ $(count long.yaml joined measured) = 8 ] && ! grep -v "^[# ]" joined.1 joined.2 joined.3'

# ---- two ways to write an experiment file ----
is "--describe-experiment writes one for a recipe" eval '"$sweep" --describe-experiment "$BUILD/finetune_full" >recipe.json && grep -q "\"identifier\": \"batch_size\"" recipe.json && grep -q "\"identifier\": \"dataset_tokens_per_second\", \"unit\": \"tokens/s\"" recipe.json'
cat >recipe.yaml <<E2
entitySpace:
  - {identifier: model, propertyDomain: {values: [$tmp/model]}}
  - {identifier: dataset, propertyDomain: {values: [$here/datasets/stories.jsonl]}}
  - {identifier: batch_size, propertyDomain: {values: [1, 2]}}
experiments:
  - actuatorIdentifier: custom_experiments
    experimentIdentifier: finetune_full
    parameterization:
      - {property: {identifier: max_steps}, value: 2}
      - {property: {identifier: max_length}, value: 32}
E2
tiny model 1 >/dev/null
is "... that measures it" eval 'says "2 measured \(0 failed\)" "$sweep" recipe.yaml --experiments recipe.json --store recipes && "$samples" show recipe.yaml --experiments recipe.json --store recipes --property-format target --output-format csv --property training_steps,dataset_tokens_per_second | grep -q ",2$\|,2,"'
printf '#!/bin/sh\necho "{\\"options\\": [3], \\"properties\\": []}"\n' >odd.sh && chmod +x odd.sh
refused "a description of nothing that has a name" 2 'options or "properties" without a "name"' "$sweep" --describe-experiment ./odd.sh
refused "a program without --describe" 2 "must be written by hand" "$sweep" --describe-experiment own/work.sh

# ---- what users write wrongly ----
bad() { # NAME CODE TEXT, the space file from stdin
    cat >bad.yaml
    refused "$1" "$2" "$3" "$sweep" bad.yaml $own --store bad
}
grid='entitySpace: [{identifier: a, propertyDomain: {values: [1]}}]'
refused "no space" 2 "which space?" "$sweep" --store bad
refused "no such file" 1 "nowhere.yaml" "$sweep" nowhere.yaml --store bad
bad "no experiments" 2 "nothing says how to measure it" <<E2
$grid
E2
bad "an experiment that is not there: the nearest" 2 "bad.yaml:3:5: there is no experiment custom_experiments.worc (the nearest is work)" <<E2
$grid
experiments:
  - {actuatorIdentifier: custom_experiments, experimentIdentifier: worc}
E2
bad "a required input that is no dimension" 2 "work needs a, which is no dimension" <<E2
entitySpace: [{identifier: b, propertyDomain: {values: [1]}}]
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work}]
E2
bad "a dimension that nobody uses: the nearest" 2 "dimension aa is no input of any experiment of this space (the nearest is a)" <<E2
entitySpace: [{identifier: a, propertyDomain: {values: [1]}}, {identifier: aa, propertyDomain: {values: [1]}}]
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work}]
E2
bad "a value outside the experiment's domain" 2 "dimension a does not fit what work takes" <<E2
entitySpace: [{identifier: a, propertyDomain: {values: [1, 100]}}]
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work}]
E2
parameter() { # NAME TEXT INPUT VALUE
    parameterized "$3" "$4" >parameter.yaml
    bad "$1" 2 "$2" <parameter.yaml
}
parameterized() { printf '%s\nexperiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work, parameterization: [{property: {identifier: %s}, value: %s}]}]\n' "$grid" "$1" "$2"; }
parameter "a parameter equal to the default" "b is 0 by default; leave it out" b 0
parameter "a parameter that is a required input" "a is a required input of work: make it a dimension" a 2
parameter "a parameter outside its domain" "b of work cannot be 1000" b 1000
parameter "a parameter that is none" "work has no input c" c 1
is "a program that does not exist: said before anything runs" eval 'sed "s|./work.sh|./gone.sh|; s|\"work\"|\"gone\"|" own/work.json >own/gone.json; sed "s/experimentIdentifier: work/experimentIdentifier: gone/" s.yaml >gone.yaml; "$sweep" gone.yaml --experiments own/gone.json --store bad 2>err; [ $? = 1 ] && grep -q "gone.sh is not there" err'
bad "all of a space that cannot be counted" 2 "the order sequential is for spaces whose entities can be counted" <<E2
entitySpace: [{identifier: x, propertyDomain: {interval: 1}}]
experiments: [{actuatorIdentifier: mock, experimentIdentifier: test-experiment}]
E2
if [ "$(id -u)" = 0 ]; then
    skip "a store in a folder without permission" "root may do anything"
else
    mkdir locked && chmod 500 locked
    refused "a store in a folder without permission" 1 "locked" "$sweep" s.yaml $own --store locked/st
fi
finish
