#!/bin/sh
# test_sweep.sh - build/sweep: what it measures, replays, refuses and retries; stopped, killed, resumed, shared; what users write wrongly.
. tests/tap.sh
cd "$tmp" || exit 1
sweep=$BUILD/sweep samples=$BUILD/samples
count() { rows "$@" | awk 'END { print NR - 1 }'; }
ends() { # CODE TEXT COMMAND... - the command ends with that exit code and prints a line that matches
    code=$1 text=$2
    shift 2
    "$@" >"$tmp/shown" 2>&1
    [ $? = "$code" ] && grep -qE -e "$text" "$tmp/shown" || { cat "$tmp/shown"; false; }
}
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
    third) [ "$(wc -l <"$TUNE_INPUT_LOG")" != 3 ] || until [ -e "$TUNE_INPUT_LOG.go" ]; do sleep 0.02; done ;;
    wait) until [ -e "$TUNE_INPUT_LOG.go" ]; do sleep 0.02; done ;;
    slow_first) ! mkdir "$TUNE_INPUT_LOG.slow" 2>/dev/null || { until grep -q " measured " "${TUNE_INPUT_LOG%log}"twin.?; do sleep 0.02; done; } ;;
    stale) echo '{"speed": 1, "nonce": "of another run"}' >"$TUNE_OUTPUT/report.json"; exit 0 ;;
    lacking) echo '{"other": 1}' >"$TUNE_OUTPUT/report.json"; exit 0 ;;
    invalid) echo '{"is_valid": 0}' >"$TUNE_OUTPUT/report.json"; exit 0 ;;
    second) [ -e "$TUNE_INPUT_LOG.tried" ] || { touch "$TUNE_INPUT_LOG.tried"; exit 1; } ;;
    cores) sed -n "s/^Cpus_allowed_list:.//p" /proc/self/status >>"$TUNE_INPUT_LOG.cores" ;;
    count) TUNE_INPUT_A=$(wc -l <"$TUNE_INPUT_LOG") TUNE_INPUT_B= ;;
    environment) tr '\0' '\n' </proc/$$/environ >"$TUNE_INPUT_LOG.environment" ;;
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
rows() { "$samples" show "$1" $own --store "$2" --include "${3:-matching}" --output-format csv; }

# ---- measuring ----
space s.yaml "1, 2, 3" "4, 5"
is "six entities are measured" says "finished +6 valid, 0 invalid, 0 failed, 0 known" "$sweep" s.yaml $own --store st
is "in the grid's order, last dimension fastest" eval '[ "$(tr "\n" , <log)" = "1 4,1 5,2 4,2 5,3 4,3 5," ]'
is "their rows" eval 'rows s.yaml st measured >csv && [ "$(sed -n 2p csv)" = "0,a.1-b.4,explicit_grid_sample_generator,custom_experiments.work,1,4,14.5,3,1" ] && [ $(wc -l <csv) = 7 ]'
is "again: all are known, none is run" eval 'says "0 valid, 0 invalid, 0 failed, 6 known" "$sweep" s.yaml $own --store st && [ $(wc -l <log) = 6 ]'
space wider.yaml "3, 2, 9" "5, 8"
is "another space sees what it shares with the first" says "4 valid, 0 invalid, 0 failed, 2 known" "$sweep" wider.yaml $own --store st
is "measured and matching of the first" eval '[ $(count s.yaml st measured) = 6 ] && [ $(count wider.yaml st matching) = 6 ] && says "nothing is missing" "$samples" missing s.yaml $own --store st'
is "--remeasure measures again" says "6 valid" "$sweep" s.yaml $own --store st --remeasure
is "several results of one entity are a list" eval 'rows s.yaml st measured | grep -qF "\"[14.5, 14.5]\""'
is "--repeat 3: one more than the two there are" says "6 valid, 0 invalid, 0 failed, 12 known" "$sweep" s.yaml $own --store st --repeat 3
rm -f log
space counted.yaml 1 1 count
is "--repeat 4: four results of one entity, numbered" eval 'says "4 valid" "$sweep" counted.yaml $own --store many --repeat 4 && [ "$("$samples" show custom_experiments.work $own --store many --columns repeat,speed --output-format csv | tail -n 4 | tr "\n" " ")" = "0,1.5 1,2.5 2,3.5 3,4.5 " ]'
aggregate() { # HOW VALUE
    is "show --aggregate $1" eval '[ "$("$samples" show counted.yaml $own --store many --output-format csv --property speed --aggregate '"$1"' | tail -n 1 | cut -d, -f7)" = '"$2"' ]'
}
aggregate mean 3.0
aggregate median 3.0
aggregate min 1.5
aggregate max 4.5
aggregate variance 1.6666666666666667
aggregate std 1.2909944487358056
is "--entities 2 --order random --seed 5 twice the same" eval '"$sweep" s.yaml $own --store r1 --entities 2 --order random --seed 5 | grep measured | cut -c30- >o1; "$sweep" s.yaml $own --store r2 --entities 2 --order random --seed 5 | grep measured | cut -c30- >o2; [ $(wc -l <o1) = 2 ] && cmp o1 o2'
# order STORE FLAG... - the entities of a sweep over a fresh store, as they came
order() {
    rm -rf "$1"
    into=$1
    shift
    "$sweep" orders.yaml $own --store "$into" "$@" | sed -n 's/.* a \([0-9]*\), b \([0-9]*\).*/\1\2/p' | tr '\n' ' '
}
cat >orders.yaml <<E2
entitySpace:
  - {identifier: a, propertyDomain: {domainRange: [1, 9], interval: 1, probabilityFunction: {identifier: normal, parameters: {mean: 3, std: 1}}}}
  - {identifier: b, propertyDomain: {values: [2, 4, 5, 7]}}
constraints: [a != 6]
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work}]
E2
for how in sobol random; do
    is "--order $how: 8 entities, none twice, by the seed" eval 'x=$(order o1 --order $how --entities 8 --seed 3) && [ "$(echo $x | tr " " "\n" | sort -u | wc -l)" = 8 ] && [ "$x" = "$(order o2 --order $how --entities 8 --seed 3)" ] && [ "$x" != "$(order o3 --order $how --entities 8 --seed 4)" ]'
done
is "the probabilities of a grid change nothing: told once" eval 'order o1 --entities 1 2>notes; [ "$(grep -c "^sweep: a: probabilityFunction changes nothing here" notes)" = 1 ]'
refused "orders that are gone: the others are named" 2 'no order "lhs"; expected sequential, random, sequential-grouped, random-grouped, sobol' "$sweep" orders.yaml $own --store o1 --order lhs
is "the results of an operation with such an order are shown" eval '"$sweep" orders.yaml $own --store old --name old --entities 2 && sed "s/\"sequential\"/\"weighted\"/" old/operations/old.json >x && mv x old/operations/old.json && "$samples" show old --store old | grep -q "^# in all 2 rows" && "$samples" status --store old | grep -q "^operation *old *STATUS *finished"'
refused "... and it cannot be resumed" 2 "operation old has an --order that this version does not know" "$sweep" --resume old --store old
is "sequential-grouped" eval '[ "$(order o1 --order sequential-grouped --grouping b --entities 9)" = "12 22 32 42 52 72 82 14 24 " ]'
is "random-grouped, by ado's operation file" eval 'printf "operation:\n  module: {operatorName: random_walk}\n  parameters: {numberEntities: all, samplerConfig: {mode: randomgrouped, samplerType: generator, grouping: [a]}}\n" >group.yaml; x=$(order o1 --operation group.yaml --seed 2) && [ "$(echo $x | tr " " "\n" | cut -c1 | uniq | wc -l)" = 7 ] && [ "$x" != "$(order o2 --operation group.yaml --seed 3)" ]'
is "selectors in groups: the store's, first seen first" eval '[ "$(order o1 --order random --seed 4 --entities 12 | wc -w)" = 12 ] && sed s/generator/selector/\;s/randomgrouped/sequentialgrouped/ group.yaml >chosen.yaml && "$sweep" orders.yaml $own --store o1 --operation chosen.yaml | sed -n "s/.* known .* a \([0-9]*\), b.*/\1/p" >seen && [ "$(wc -l <seen)" = 12 ] && [ "$(uniq seen)" = "$("$samples" show orders.yaml $own --store o1 --include matching --output-format csv | tail -n +2 | cut -d, -f5 | awk "!x[\$1]++")" ]'
# choosing SAMPLER FILTER - an operation file of that name
choosing() { printf "operation:\n  module: {operatorName: random_walk}\n  parameters: {numberEntities: all, samplerConfig: {mode: sequential, samplerType: %s}, filter: {filterMode: %s}}\n" "$1" "$2" >"$2.yaml"; }
choosing selector noFilter
is "a selector takes what the store has" says "0 valid, 0 invalid, 0 failed, 6 known" "$sweep" wider.yaml $own --store st --operation noFilter.yaml
for filter in measured unmeasured partial; do choosing generator $filter; done
is "the filter unmeasured leaves out what is known" eval 'space more.yaml "1, 40" "4" && says "1 valid, 0 invalid, 0 failed, 0 known" "$sweep" more.yaml $own --store st --operation unmeasured.yaml'
is "a dry run does nothing and says all" eval 'lines=$(wc -l <log); space dry.yaml "1, 6, 50" 4; says "# 1 of 3 would be measured, 1 are known, 1 cannot be measured" "$sweep" dry.yaml $own --store st --dry-run && grep -q "^# estimated time" shown && [ $(wc -l <log) = $lines ]'

is "... many jobs with one verdict: twenty lines, and the rest in one" eval 'space crowd.yaml "1, 2, 3, 4, 5, 6, 7, 8, 9" "1, 2, 3, 4, 5"; "$sweep" crowd.yaml $own --store nowhere --dry-run >shown; [ "$(grep -c "^run .* a\." shown)" = 20 ] && grep -qE "^run +and [0-9]+ more  custom_experiments.work.* \(--lines 0 shows all\)$" shown || { cat shown; false; }'
is "... and all of them with --lines 0" eval '"$sweep" crowd.yaml $own --store nowhere --dry-run --lines 0 >shown; n=$(sed -n "s/^# \([0-9]*\) of .* would be measured.*/\1/p" shown) && [ "$n" -gt 20 ] && [ "$(grep -c "^run .* a\." shown)" = "$n" ] && ! grep -q " more  " shown || { cat shown; false; }'
is "... the estimate is made of the rows in the store" eval 'space slow.yaml "1, 2" "1, 2" fine 0.4; "$sweep" slow.yaml $own --store st --entities 2 >/dev/null; wanted=$("$samples" show custom_experiments.work $own --store st --columns seconds,entity,experiment --output-format csv | awk -F, "/seconds.0.4/ { s += \$1 } END { s = sprintf(\"%.0f\", s); printf \"%d:%02d\", s / 60, s % 60 }"); says "^# estimated time +$wanted with 1 at a time" "$sweep" slow.yaml $own --store st --dry-run --remeasure --entities 2'
is "... unknown without any" eval 'space new.yaml 1 1; says "estimated time +unknown" "$sweep" new.yaml $own --store nowhere --dry-run && [ ! -e nowhere ]'

sed "s/mollm2-135m/mollm2-135m, smollm2-360m/; s/512, 1024/512/" "$here/defaults/spaces/laptop.yaml" >away.yaml
is "... known models need not be here: said for their entities" eval 'says "^# models +4 of these need a model that is not on this machine" env HF_HUB_CACHE=$tmp/nothing "$sweep" away.yaml --store nowhere --dry-run && [ "$(grep -c "^run .*smollm2-360m.*its model is not on this machine  " shown)" = 2 ] && grep -q "^# 4 of 4 would be measured" shown && grep -q "^#   build/init_model --like smollm2-135m --seed 1 models/SmolLM2-135M$" shown && grep -q "^#   tools/download.sh HuggingFaceTB/SmolLM2-135M models/SmolLM2-135M$" shown'
refused "... others must, and so must all that are measured" 2 "neither in models/SmolLM2-135M" env HF_HUB_CACHE=$tmp/nothing "$sweep" away.yaml --store nowhere2
refused "... unknown ones" 2 "smollm2-999m" eval 'sed s/360m/999m/ away.yaml >unknown.yaml; HF_HUB_CACHE=$tmp/nothing "$sweep" unknown.yaml --store nowhere --dry-run'

# ---- filters ----
space all.yaml "1, 2, 3" "1, 2" fine 0.01
sed 's/experimentIdentifier: work/&\n    parameterization: [{property: {identifier: seconds}, value: 0.01}]\n  - actuatorIdentifier: custom_experiments\n    experimentIdentifier: work/; /^    parameterization:$/,$d' all.yaml >filter.yaml
sed '/^  - actuator/,$d' filter.yaml >some.yaml
printf '  - {actuatorIdentifier: custom_experiments, experimentIdentifier: work}\n' >>some.yaml
sed -i 's/values: \[1, 2, 3\]/values: [1]/' some.yaml
is "of one experiment of two one value is measured" says "2 valid" "$sweep" some.yaml $own --store fil
is "the filter partial: those" says "2 valid, 0 invalid, 0 failed, 2 known" "$sweep" filter.yaml $own --store fil --operation partial.yaml
is "the filter measured: they are whole now" says "0 valid, 0 invalid, 0 failed, 4 known" "$sweep" filter.yaml $own --store fil --operation measured.yaml
is "the filter unmeasured, ended after a while" eval '! "$sweep" filter.yaml $own --store fil --operation unmeasured.yaml --name rest --entities 3 --time-limit 0.001 | grep -q finished'
refused "... and joined with another filter" 2 "operation rest was begun with another filter than that of partial.yaml" "$sweep" filter.yaml $own --store fil --join rest --operation partial.yaml --entities 3
is "... and gone on with: three in all" eval '"$sweep" --resume rest $own --store fil --time-limit 0.05 >/dev/null; "$sweep" --resume rest $own --store fil >/dev/null && [ "$("$samples" show filter.yaml $own --store fil --operation rest --output-format csv | tail -n +2 | cut -d, -f2 | sort -u | tr "\n" " ")" = "a.2-b.1 a.2-b.2 a.3-b.1 " ]'

# ---- --where, --entity, --set ----
# taken STORE FLAG... - the entities of a sweep over a fresh store, as "a b"
taken() {
    rm -rf "$1"
    into=$1
    shift
    "$sweep" which.yaml $own --store "$into" "$@" >which.out || return
    sed -n 's/.* measured .* a \([0-9]*\), b \([0-9]*\).*/\1\2/p' which.out | tr '\n' ' '
}
space which.yaml "1, 2, 3" "4, 5"
is "--where measures where it is true" eval '[ "$(taken w1 --where "a > 1 and b == 4")" = "24 34 " ]'
is "... it may name inputs that are no dimensions" eval '[ "$(taken w1 --where "how == \"fine\" and a + b == 7")" = "25 34 " ]'
is "... the limit counts what it leaves, the dry run shows it" eval '[ "$(taken w1 --where "b == 5" --entities 2 --name kept)" = "15 25 " ] && says "^# 1 of 3 would be measured, 2 are known" "$sweep" which.yaml $own --store w1 --where "b == 5" --dry-run'
refused "... an unknown name" 2 '--where: unknown name "c"' "$sweep" which.yaml $own --store w1 --where "c == 5"
is "--resume keeps it" eval 'says "^# finished +2 valid, 0 invalid, 0 failed, 0 known" "$sweep" --resume kept $own --store w1 && ! grep -q " measured " shown'
refused "... another one is an error that names both" 2 'was begun with --where b == 5, but the command line has --where b == 4' "$sweep" --resume kept $own --store w1 --where "b == 4"
refused "... so is one where there was none" 2 'was begun without --entity, but the command line has --entity a.1-b.5' "$sweep" --resume kept $own --store w1 --entity a.1-b.5
is "--entity takes these, in the grid's order" eval '[ "$(taken w2 --entity a.3-b.4,a.1-b.5 --name named)" = "15 34 " ] && [ "$(taken w2 --entity a.3-b.4 --entity=a.1-b.5 --entity a.3-b.4)" = "15 34 " ]'
is "... with --where, those that meet it" eval '[ "$(taken w2 --entity a.3-b.4,a.1-b.5 --where "a == 1")" = "15 " ]'
refused "... one that is none" 2 '--entity a.4-b.4: this is not an entity of which.yaml' "$sweep" which.yaml $own --store w2 --entity a.1-b.4,a.4-b.4
refused "... one that the constraints exclude" 2 'the constraints of orders.yaml exclude it' "$sweep" orders.yaml $own --store w2 --entity a.6-b.4
unmade() {
    for wrong in "--where c" "--entity x" "--stop-when x:5%" "--stop-when x:5% --repeat 20 --maximize total" "--grouping b" "--order random-grouped" "--gpus 0" "--in-flight 999" "--env ="; do
        "$sweep" which.yaml $own --store unmade $wrong >unmade.out 2>&1
        [ $? = 2 ] && [ ! -e unmade ] || { echo "$wrong"; cat unmade.out; return 1; }
    done
}
is "a wrong option makes no store" unmade
refused "... where entities are drawn" 2 '--order cannot be sobol' "$sweep" orders.yaml $own --store w2 --entity a.5-b.4 --order sobol --entities 4
# --points FILE
list() { printf '%s\n' "$@" >list.csv; } # LINE...
list b,a 5,3 4,1 '"5","1.0"' 4,3
is "--points takes these, in the order of the file" [ "$(taken w5 --points list.csv --name list)" = "35 14 15 34 " ]
is "... the dry run shows it, the header says so" eval 'says "^run .* a.3-b.5" "$sweep" which.yaml $own --store w6 --points list.csv --dry-run && [ "$(sed -n "s/^run  *a/a/p" shown | cut -d" " -f1 | paste -sd" ")" = "a.3-b.5 a.1-b.4 a.1-b.5 a.3-b.4" ] && says "^# order +of the list, seed 0" "$sweep" which.yaml $own --store w5 --points list.csv'
is "... with --where, those that meet it" [ "$(taken w6 --points list.csv --where "b == 4")" = "14 34 " ]
space stops.yaml "1, 2, 3" "4, 5" third
rm -f log log.go
"$sweep" stops.yaml $own --store w7 --points list.csv --name stopped >/dev/null &
pid=$!
await $pid has 3 log
kill $pid
wait $pid
touch log.go
is "--resume goes on with the rest, in that order" eval 'says "^# finished +4 valid" "$sweep" --resume stopped $own --store w7 && [ "$(paste -sd, log)" = "3 5,1 4,1 5,1 5,3 4" ]'
is "--join shares the list" eval 'rm log && says "^# finished +4 valid" "$sweep" which.yaml $own --store w8 --join ours --points list.csv && says "^# finished +4 valid" "$sweep" --join ours $own --store w8 && [ "$(paste -sd, log)" = "3 5,1 4,1 5,3 4" ]'
is "... that is given again, too" says "^# finished +4 valid" "$sweep" --join ours $own --store w8 --points list.csv
list a,b 1,4
refused "... another one is an error" 2 'operation ours was begun with other points than those of list.csv; leave out --points' "$sweep" --join ours $own --store w8 --points list.csv
refused "... so is a list where there was none" 2 'operation kept was begun without --points, so with other points than those of list.csv' "$sweep" --resume kept $own --store w1 --points list.csv
refused "... and --entity" 2 'operation ours was begun with --points; leave out --entity' "$sweep" --join ours $own --store w8 --entity a.1-b.4
wrong_list() { # NAME TEXT LINE...: the list is an error that says TEXT
    wrong_name=$1 text=$2
    shift 2
    list "$@"
    refused "... $wrong_name" 2 "$text" "$sweep" which.yaml $own --store w9 --points list.csv
}
wrong_list "a value that the space does not have" 'list.csv:3: a has no value "4" in which.yaml (space describe which.yaml shows its values)' a,b 1,4 4,4
wrong_list "a dimension that is not there" 'list.csv:1: there is no column b; each dimension of which.yaml needs one' a 1
wrong_list "a column that is none" 'list.csv:1: learning_rate is not a dimension of which.yaml; remove the column' a,b,learning_rate 1,4,1
wrong_list "a column twice" 'list.csv:1: two columns have the name a' a,b,a 1,4,1
wrong_list "a row that is too short" 'list.csv:3: this row has 1 value, but the heading has 2' a,b 1,4 1
wrong_list "a point twice" 'list.csv:4: line 2 has the same point; remove one' a,b 1,4 1,5 1.0,4
wrong_list "no point" 'list.csv: there are no points below the heading' a,b
list a,b 6,4
refused "... a point that the constraints exclude" 2 'list.csv:2: the constraints of orders.yaml exclude this point' "$sweep" orders.yaml $own --store w9 --points list.csv
refused "... with --entities" 2 '--points gives the points and their order: leave out --entities' "$sweep" which.yaml $own --store w9 --points list.csv --entities 1
refused "... with an order" 2 '--points gives the order: leave out --order sobol' "$sweep" which.yaml $own --store w9 --points list.csv --order sobol
printf 'entitySpace:\n  - {identifier: a, propertyDomain: {domainRange: [0, 100], interval: 1}}\n  - {identifier: seconds, propertyDomain: {domainRange: [0.0, 1.0], interval: 0.000001}}\nexperiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work}]\n' >fine.yaml
is "... of 10^8, read from its numbers" eval 'says "^run .* a.0-seconds.0.25  " "$sweep" fine.yaml $own --store w2 --entity a.0-seconds.0.25 --dry-run'
is "--set replaces a dimension, or a parameter; the rows have it" eval '"$sweep" which.yaml $own --store w3 --set a=9 --set seconds=0.25 --name fixed >which.out && grep -q "^# finished  *2 valid" which.out && grep -q "work-seconds.0.25, build" which.out && [ "$("$samples" show custom_experiments.work $own --store w3 --columns a,b,seconds --output-format csv | tail -n +2 | tr "\n" " ")" = "9,4,0.25 9,5,0.25 " ]'
is "... kept by --resume" eval '"$sweep" --resume fixed $own --store w3 >which.out && grep -q "work-seconds.0.25, build" which.out && grep -q "^# finished  *2 valid" which.out'
refused "... another is an error that names both" 2 'was begun with --set a=9,seconds=0.25, but the command line has --set a=8' "$sweep" --resume fixed $own --store w3 --set a=8
is "... a parameter set to its default is none" eval '"$sweep" counted.yaml $own --store w3 --set how=fine --dry-run >which.out && grep -q "  custom_experiments.work$" which.out'
refused "... a value outside the experiment's domain" 2 '--set a=100: work cannot take this value' "$sweep" which.yaml $own --store w4 --set a=100
refused "... an input that is none: the nearest" 2 '--set second: no experiment of this space has this input (the nearest is seconds)' "$sweep" which.yaml $own --store w4 --set second=1
refused "... no value" 2 '--set a: expected input=value' "$sweep" which.yaml $own --store w4 --set a
refused "... a list" 2 '--set a=[1]: the value must be' "$sweep" which.yaml $own --store w4 --set 'a=[1]'

{ echo 'metadata: {name: night, labels: {team: a, level: 2}}'; sed 's/4, 5/4/' which.yaml; } >labelled.yaml
"$sweep" labelled.yaml $own --store w3 --dry-run >/dev/null; "$sweep" labelled.yaml $own --store w3 >/dev/null
is "samples status shows metadata, and finds spaces by label" eval '"$samples" status --store w3 --output-format csv >all && grep -q "NAME,night" all && [ "$(grep -c "FILE," all)" = 2 ] && "$samples" status --store w3 --label team=a,level=2 --output-format csv >few && [ "$(cut -d, -f3- few | tr -d "\r" | sed 1d | sed "s|w3/.*||" | tr "\n" " ")" = "FILE, NAME,night LABEL,team=a LABEL,level=2 " ] && [ "$("$samples" status --store w3 --label team=b --output-format csv | wc -l)" = 1 ]'
refused "... not those of one word" 2 "--label chooses spaces of the store" "$samples" status which.yaml $own --store w3 --label team=a

# ---- outcomes ----
is "a rule that is not met: a row, no run" eval 'space ruled.yaml 6 1; ends 1 "0 valid, 1 invalid" "$sweep" ruled.yaml $own --store st && ! grep -q "^6 1$" log && rows ruled.yaml st | grep -q ",6,1,0$"'
outcome() { # HOW STATUS REASON
    how=$1 status=$2 reason=$3
    space "$how.yaml" 1 1 "$how"
    is "$how: $status, $reason" eval 'ends 1 "^ +1/1 +$status .*$reason" "$sweep" $how.yaml $own --store out'
}
outcome code1 failed "exit code 1: something went wrong in the middle"
outcome code3 invalid "exit code 3: something went wrong"
outcome code137 failed "exit code 137"
outcome signal9 failed "ended by signal 9"
outcome signal11 failed "ended by signal 11"
outcome none failed "wrote no report"
outcome nonsense failed "the report is not valid JSON"
outcome text failed "target speed is a text"
space infinite.yaml 1 1 infinite
is "infinite: measured, without that figure" says "^ +1/1 +measured .* not stored, because the report has NaN or an infinity there: speed$" "$sweep" infinite.yaml $own --store out
outcome stale failed "of another run"
outcome lacking failed "has no target speed"
outcome invalid invalid "is_valid 0"
is "what is found invalid is counted as such" ends 1 "0 valid, 1 invalid, 0 failed, 0 known" "$sweep" code3.yaml $own --store counted
is "... and by samples status" eval '"$samples" status --store counted >stats; cat stats; grep -qE "INVALID +1$" stats'
is "what failed is tried again by the next operation, what is invalid is not" eval 'ends 1 "0 valid, 0 invalid, 1 failed" "$sweep" code1.yaml $own --store out && ends 1 "0 valid, 0 invalid, 0 failed, 1 known" "$sweep" code3.yaml $own --store out'
is "--retries: the second try is fine" eval 'space second.yaml 2 2 second; says "1 valid, 0 invalid, 0 failed, 0 known" "$sweep" second.yaml $own --store out --retries 1'
is "--timeout ends a run" eval 'space slow.yaml 1 1 fine 60; ends 1 "failed .*time limit of 0.3 s" "$sweep" slow.yaml $own --store out --timeout 0.3'
is "--time-limit ends the operation and records nothing of it" eval 'says "^# stopped " "$sweep" slow.yaml $own --store limit --time-limit 0.3 && [ $(count slow.yaml limit) = 0 ]'
is "what is measured sees the environment it is told, with --env more" eval 'space env.yaml 1 1 environment; SECRET=1 MORE=2 LANG=C "$sweep" env.yaml $own --store out --env MORE,LANG=xx >/dev/null && ! grep -q SECRET log.environment && grep -q "^MORE=2$" log.environment && [ "$(grep "^LANG=" log.environment)" = LANG=xx ] && grep -q "^TUNE_NONCE=................................$" log.environment && grep -q "^TUNE_INPUT_A=1$" log.environment'
is "... and other surroundings are not replayed" says "1 valid" "$sweep" env.yaml $own --store out

# ---- the brake ----
space broken.yaml "1, 2, 3, 4" "1, 2" code1
is "five that fail in the same way in a row: no more are started, which line it was, how to go on" eval 'rm -f log; ends 1 "^# 5 failed in a row +exit code 1: something went wrong in the middle$" "$sweep" broken.yaml $own --store brake --name broken && [ $(wc -l <log) = 5 ] && grep -q "^# stopped  *0 valid, 0 invalid, 5 failed, 0 known" shown && grep -q "^# no more measurements are started; .*--max-failures 0" shown && grep -q "sweep --resume broken --store brake" shown && "$samples" status broken --store brake | grep -qw stopped'
is "... --resume goes on with the rest, where the count begins anew" eval 'rm -f log; ends 1 "^# finished +0 valid, 0 invalid, 8 failed" "$sweep" --resume broken $own --store brake && [ $(wc -l <log) = 3 ]'
is "--max-failures 0 is none, --max-failures 2 is two" eval 'rm -f log; ends 1 "^# finished +0 valid, 0 invalid, 8 failed" "$sweep" broken.yaml $own --store brake2 --max-failures 0 && [ $(wc -l <log) = 8 ] && ends 1 "^# 2 failed in a row" "$sweep" broken.yaml $own --store brake3 --max-failures 2 && [ $(wc -l <log) = 10 ]'
cat >own/mixed.sh <<'E2'
#!/bin/sh
echo "$TUNE_INPUT_A" >>"$TUNE_INPUT_LOG"
[ "$TUNE_INPUT_HOW" = fine ] && [ $((TUNE_INPUT_A % 3)) = 0 ] && { echo '{"speed": 1}' >"$TUNE_OUTPUT/report.json"; exit 0; }
echo "step $TUNE_INPUT_A"
case $TUNE_INPUT_HOW in
    path) echo "cannot write $TUNE_OUTPUT/x" >&2 ;;
    line) echo "failed at $TUNE_INPUT_A" >&2; echo "the end" >&2 ;;
    first) echo "the reason" >&2; echo "at $TUNE_INPUT_A" >&2; echo "goodbye $TUNE_INPUT_A" ;;
    silent) ;;
    *) echo "failed" >&2 ;;
esac
[ "$TUNE_INPUT_HOW" = code ] && exit $((TUNE_INPUT_A % 2 + 1))
exit 1
E2
chmod +x own/mixed.sh
sed 's/"work"/"mixed"/; s/work\.sh/mixed.sh/; /"rules"/d' own/work.json >own/mixed.json
mixed() { # HOW [FLAG...] - twelve measurements in that way into a fresh store; mixed.out
    rm -rf mixed.st log
    space mixed.yaml "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12" 1 "$1"
    sed -i 's/: work$/: mixed/' mixed.yaml
    shift
    "$sweep" mixed.yaml --experiments own/mixed.json --store mixed.st --max-failures 3 "$@" >mixed.out 2>&1
}
is "a valid measurement resets the count; some are valid: exit code 0" eval 'mixed fine; code=$?; cat mixed.out; [ $code = 0 ] && grep -q "^# finished  *4 valid, 0 invalid, 8 failed, 0 known" mixed.out'
is "another exit code, another first line of stderr: not the same failure" eval 'for how in code line; do mixed $how; [ $? = 1 ] && grep -q "^# finished  *0 valid, 0 invalid, 12 failed" mixed.out || { cat mixed.out; return 1; }; done'
is "the first line of stderr counts, whatever follows, there or on stdout" eval 'mixed first; cat mixed.out; [ $(wc -l <log) = 3 ] && grep -q "^# 3 failed in a row  *exit code 1: the reason$" mixed.out'
is "... none is a first line, too" eval 'mixed silent; cat mixed.out; [ $(wc -l <log) = 3 ] && grep -q "^# 3 failed in a row  *exit code 1$" mixed.out'
is "the folder of the run in the line is no difference" eval 'mixed path; cat mixed.out; [ $(wc -l <log) = 3 ] && grep -q "^# 3 failed in a row  *exit code 1: cannot write " mixed.out'
is "tries of one measurement count once" eval 'mixed other --retries 2; cat mixed.out; [ $(wc -l <log) = 9 ] && grep -q "^# stopped  *0 valid, 0 invalid, 3 failed" mixed.out'
is "what was valid before the brake is no success: exit code 1" eval 'mixed fine --where "a > 2" --max-failures 2; code=$?; cat mixed.out; [ $code = 1 ] && grep -q "^# stopped  *1 valid, 0 invalid, 2 failed" mixed.out'
is "known ones without a figure are not valid, either" eval 'ends 1 "0 valid, 0 invalid, 0 failed, 1 known" "$sweep" ruled.yaml $own --store st'

# ---- where figures come from ----
space s.yaml "1, 2, 3" "4, 5"
cp own/work.sh kept.sh && echo "# another build" >>own/work.sh
is "another build of the program: measured anew" says "6 valid" "$sweep" s.yaml $own --store st
is "... unless any build is accepted" says "0 valid" "$sweep" wider.yaml $own --store st --accept any-build
refused "a word --accept does not know" 2 "any-host, any-build" "$sweep" s.yaml $own --store st --accept any-body
cp kept.sh own/work.sh

# ---- cores are slots ----
space cores.yaml "1, 2, 3, 4" 1 cores
printf "operation:\n  module: {operatorName: random_walk}\n  parameters: {numberEntities: all, batchSize: 2, samplerConfig: {mode: sequential, samplerType: generator}}\n" >batch.yaml
if "$sweep" cores.yaml $own --store cores --in-flight 2 --dry-run >shown 2>&1; then
    is "two at a time have cores of their own" eval '"$sweep" cores.yaml $own --store cores --in-flight 2 >/dev/null && [ $(wc -l <log.cores) = 4 ] && [ $(sort -u log.cores | wc -l) = 2 ] && [ -z "$(sort -u log.cores | tr ",-" "\n\n" | sort | uniq -d)" ]'
    rm -f log.cores
    is "... and share them where asked" eval '"$sweep" cores.yaml $own --store cores2 --in-flight 2 --share-cores >/dev/null && [ $(sort -u log.cores | wc -l) = 1 ]'
    is "... which is no figure of the same kind" says "4 valid" "$sweep" cores.yaml $own --store cores --in-flight 2 --share-cores
    rm -f log.cores
    is "ado's batchSize is that number" eval '"$sweep" cores.yaml $own --store cores3 --operation batch.yaml >/dev/null && [ $(sort -u log.cores | wc -l) = 2 ]'
else
    refused "two at a time on one core" 2 "on 1 core would disturb each other" "$sweep" cores.yaml $own --store cores --in-flight 2
fi
refused "more at a time than cores" 2 "would disturb each other" "$sweep" s.yaml $own --store cores --in-flight 1000
is "... by ado's file, which is named" eval 'sed "s/batchSize: 2/batchSize: 1000/; s/numberEntities: all/numberEntities: 1000/" batch.yaml >large.yaml; "$sweep" cores.yaml $own --store cores --operation large.yaml 2>err; [ $? = 2 ] && grep -q "(the batchSize of large.yaml)" err'

# ---- stopped, killed, resumed, shared ----
space long.yaml "1, 2, 3, 4" "1, 2" third 0.1
interrupted() { # COMMAND... - SIGINT while it measures the third entity; its exit code
    rm -f log log.go
    "$@" >said.txt 2>&1 &
    pid=$!
    await $pid has 3 log
    kill -INT $pid
    wait $pid
    interrupted=$?
    touch log.go
    return $interrupted
}
interrupted "$sweep" long.yaml $own --store stop --name first
code=$?
is "SIGINT: exit 130, what ran is not recorded" eval '[ $code = 130 ] && grep -q "^# stopped" said.txt && grep -q "sweep --resume first --store stop" said.txt && [ $(count long.yaml stop) = 2 ]'
is "--resume goes on, and measures the others once" eval 'says "finished" "$sweep" --resume first $own --store stop && [ $(count long.yaml stop measured) = 8 ] && [ $(sort log | uniq -c | awk "\$1 > 2" | wc -l) = 0 ]'
is "... and again: nothing is left" eval 'lines=$(wc -l <log); "$sweep" --resume first $own --store stop >/dev/null && [ $(wc -l <log) = $lines ]'
is "the same command again, without a name: what is known is replayed, the rest measured" eval 'rm -rf stop; interrupted "$sweep" long.yaml $own --store stop; says "finished +6 valid, 0 invalid, 0 failed, 2 known" "$sweep" long.yaml $own --store stop'
space s.yaml "1, 2, 3" "4, 5"
"$sweep" long.yaml $own --store stop --name first >/dev/null
refused "--name of an operation that is there" 2 "--resume first continues it, --join first shares it" "$sweep" long.yaml $own --store stop --name first
refused "two names" 2 "give only one of them" "$sweep" long.yaml $own --store stop --name second --join first
refused "--resume with another order" 2 "operation first was begun with another --order than that of the command line" "$sweep" --resume first $own --store stop --order random
refused "--resume with another number of repeats" 2 "another --repeat" "$sweep" --resume first $own --store stop --repeat 2
refused "--join with another operation file" 2 "another --entities than that of one.yaml" eval 'printf "operation:\n  module: {operatorName: random_walk}\n  parameters: {numberEntities: 2, samplerConfig: {mode: sequential, samplerType: generator}}\n" >one.yaml; "$sweep" long.yaml --join first $own --store stop --operation one.yaml'
is "... with the same as before it is fine" says "finished" "$sweep" --resume first $own --store stop --order sequential --repeat 1 --seed 0
ids() { printf 'spaces: ["%s"]\nactuatorConfigurationIdentifiers: ["%s"]\n' "$1" "$2" | cat - one.yaml >ids.yaml; "$sweep" long.yaml $own --store stop --operation ids.yaml --dry-run 2>&1 >/dev/null; }
is "ids of an operation file that are not looked up are told" eval 'ids space-0a0a0a-default actuatorconfiguration-1 >err; cat err; grep -q "^sweep: ids.yaml names the space space-0a0a0a-default, but the space that is measured is space-[0-9a-f]*, long.yaml$" err && grep -q "^sweep: ids.yaml names actuatorconfiguration-1, which is ignored" err'
is "... those that are it, or that ado would set, are not" eval 'unset="<will be set by ado>" id=$(sed -n "s/.*names.*measured is \(space-[0-9a-f]*\),.*/\1/p" err) && [ -n "$id" ] && [ -z "$(ids $id "$unset")$(ids $id-default "$unset")$(ids "$unset" "$unset")" ]'
is "an operation file's name may be used again" eval 'sed "1i metadata: {name: mine}" one.yaml >mine.yaml; "$sweep" long.yaml $own --store stop --operation mine.yaml >mine.1 && "$sweep" long.yaml $own --store stop --operation mine.yaml >mine.2 && grep -q "^# operation  *mine$" mine.1 && grep -qE "^# operation  *mine-[0-9a-f]{6}$" mine.2 && grep -q "2 known" mine.2'
refused "an operation that is not there" 2 "there is no operation nobody" "$sweep" --resume nobody $own --store stop
is "... nor is a store made for one" eval '! "$sweep" --resume nobody $own --store notthere 2>err && [ ! -e notthere ]'
refused "an operation of another space" 2 "first measures space-" "$sweep" s.yaml --resume first $own --store stop
rm -f log log.go
"$sweep" long.yaml $own --store killed --name first >/dev/null 2>&1 &
pid=$!
await $pid has 3 log
ran=$(pgrep -f "$tmp/own/work.sh")
kill -9 $pid
wait $pid 2>/dev/null
is "killed: what was acknowledged is there" eval '[ $(count long.yaml killed) = 2 ]'
is "what it ran ends with it" eval '[ -n "$ran" ] && await 0 eval "! pgrep -f \"\$tmp/own/work.sh\""'
touch log.go
is "--resume goes on" eval '"$sweep" --resume first $own --store killed >said.txt && [ $(count long.yaml killed measured) = 8 ] && [ "$(rows long.yaml killed | grep -c "\[")" = 0 ]'
# Two that know nothing of each other, of a script that says when it began and ended. Its first run ends when both are there.
cat >own/turns.sh <<'E2'
#!/bin/sh
echo begin >>"$TUNE_INPUT_LOG.turns"
echo "$TUNE_OUTPUT" | grep -o 'turns\.[0-9]' >>"$TUNE_INPUT_LOG.who"
until [ -e "$TUNE_INPUT_LOG.both" ]; do sleep 0.02; done
sleep 0.3
echo end >>"$TUNE_INPUT_LOG.turns"
echo "{\"speed\": 1, \"nonce\": \"$TUNE_NONCE\"}" >"$TUNE_OUTPUT/report.json"
E2
chmod +x own/turns.sh
sed 's/"work"/"turns"/; s/work\.sh/turns.sh/' own/work.json >own/turns.json
sed 's/: work$/: turns/' cores.yaml | sed '/parameterization/,$d' >turns.yaml
for i in 1 2; do "$sweep" turns.yaml --experiments own/turns.json --store turns.$i >turns.out.$i 2>&1 & done
await 0 has 1 log.turns && await 0 grep "take turns" turns.out.1 turns.out.2 # within a second or two
touch log.both
wait
# More than eight where other processes disturbed one, which is then measured again.
is "two sweeps on the same cores take turns" eval '[ $(grep -c begin log.turns) -ge 8 ] && [ "$(uniq log.turns | wc -l)" = "$(wc -l <log.turns)" ] || { cat log.turns; false; }'
is "... one after the other" [ "$(sed -n 2,5p log.who | sort -u | wc -l)" = 2 ]
is "... and say so" eval 'grep -q "take turns" turns.out.1 turns.out.2 && grep -q "4 valid" turns.out.1 && grep -q "4 valid" turns.out.2 || { cat turns.out.1 turns.out.2; false; }'
rm -f log.turns
for i in 3 4; do "$sweep" turns.yaml --experiments own/turns.json --store turns.$i --share-cores >turns.out.$i 2>&1 & done
wait
is "... or not, where asked" eval '[ $(grep -c begin log.turns) -ge 8 ] && ! grep -q "take turns" turns.out.3 turns.out.4'

# Any program can have a core's socket: who has it, and what to do, is said.
core=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)
held() { # NAME WHAT TEXT [COMMAND...]: the sweep says TEXT of the holder $pid that COMMAND starts, waits, and goes on when it ends
    held_name=$1 what=$2 text=$3
    shift 3
    rm -rf st.held held.* && { exec "$@" "$BUILD/tests/helpers/hold_cpu" "$what" >held.said & }
    pid=$!
    await $pid [ -s held.said ]
    LD_PRELOAD=$preload "$sweep" turns.yaml --experiments own/turns.json --store st.held >held.out 2>&1 &
    sweeping=$!
    await $sweeping grep "reserves core" held.out
    told=$?
    kill $pid
    wait $sweeping
    is "$held_name" eval 'cat held.out; [ $told = 0 ] && grep -q "^# $(eval echo "$text")" held.out && grep -q "4 valid" held.out'
}
preload=
held "a core held by no sweep: the process is named, and what to do" "$core" 'process $pid (hold_cpu) of user $(id -un), which is not a sweep, reserves core $core .*--share-cores'
held "... also the place of who is next" "$core/next" 'process $pid (hold_cpu) of user $(id -un), which is not a sweep, reserves core $core .*--share-cores'
# Cores look free to the sweep that begins, and are taken before its measurement can have them.
cat >free.c <<'E2'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
int bind(int fd, const struct sockaddr *name, socklen_t size)
{
    static int looks;
    char who[16];
    cpu_set_t ours;
    int (*next)(int, const struct sockaddr *, socklen_t) = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "bind");
    sched_getaffinity(0, sizeof ours, &ours);
    prctl(PR_GET_NAME, who);
    if (!strcmp(who, "sweep") && name->sa_family == AF_UNIX && !strncmp(name->sa_data + 1, "tune.c/cpu/", 11) && looks < 2 * CPU_COUNT(&ours))
        return looks++, 0;
    return next(fd, name, size);
}
E2
if sanitized; then
    skip "... one that is taken when the sweep has looked" "a sanitizer must be loaded first"
else
    $CC -shared -fPIC -o free.so free.c -ldl || exit 1
    preload=$tmp/free.so
    held "... one that is taken when the sweep has looked" "$core" 'process $pid (hold_cpu) of user $(id -un), which is not a sweep, reserves core $core .*--share-cores'
fi
rm -f log
for i in 1 2 3; do "$sweep" long.yaml $own --store joined --join all --share-cores >joined.$i 2>&1 & done
wait
is "three that share an operation measure each entity once" eval '[ $(wc -l <log) = 8 ] && [ $(sort -u log | wc -l) = 8 ] && [ $(count long.yaml joined measured) = 8 ] && ! grep -v "^[# ]" joined.1 joined.2 joined.3'

rm -f log
for i in 1 2 3; do "$sweep" long.yaml $own --store killed2 --join all --share-cores --repeat 2 >joined.$i 2>&1 & eval p$i=$!; done
await 0 has 6 log
kill -9 $p2
wait $p1 $p3
wait $p2 2>/dev/null
is "one of three killed: the others take over what it had, and measure nothing twice" eval '[ $(wc -l <log) -le 17 ] && "$samples" show custom_experiments.work $own --store killed2 --columns entity,repeat --output-format csv | tail -n +2 | sort >pairs && [ $(wc -l <pairs) = 16 ] && [ $(sort -u pairs | wc -l) = 16 ] && grep -q "^# finished" joined.1 && grep -q "^# finished" joined.3'
rm -f log
space overtaken.yaml "1, 2, 3, 4" 1 fine 0.3
rm -f log
space parts.yaml "1, 2, 3, 4, 5" 1
"$sweep" parts.yaml $own --store parts --name few --entities 1 >/dev/null && sed -i 's/"entities":.*/"entities": -1,/' parts/operations/few.json
is "--at-most 2: two measurements, and the end" eval 'says "^# finished +3 valid" "$sweep" --join few $own --store parts --at-most 2 && [ $(wc -l <log) = 3 ]'
is "... another one goes on with what is left, and does not wait" eval 'says "^# finished +3 valid" "$sweep" --join few $own --store parts --at-most 3 && says "^# finished +1 valid" "$sweep" --join few $own --store parts --at-most 3 && [ $(sort -u log | wc -l) = 5 ]'
rm -f log.go
is "a job that is ended keeps its lease" eval 'space ended.yaml "60" "1" wait; "$sweep" ended.yaml $own --store parts --name held >/dev/null & pid=$!; await $pid eval "ls parts/claims/held/*-0"; kill $pid; wait $pid; "$sweep" --join held $own --store parts --at-most 1 --job 7_1/0 >/dev/null & pid=$!; await $pid eval "grep \"\\\"job\\\":\\\"7_1\\\"\" parts/claims/held/*"; kill $pid; wait $pid; grep -q "\"held\".*\"job\":\"7_1\"" parts/claims/held/* && says "^# finished +0 valid" timeout 300 "$sweep" --join held $own --store parts --at-most 1 --job 7_2/0'
rm -f log
"$sweep" overtaken.yaml $own --store overtaken --name ahead --share-cores >joined.1 2>&1 & first=$!
await $first [ -s log ]
"$sweep" --resume ahead $own --store overtaken --share-cores >joined.2 2>&1 & second=$!
is "--resume of an operation that goes on: both come to their end, whichever is first" eval 'wait $first && wait $second; code=$?; cat joined.?; [ $code = 0 ] && [ $(wc -l <log) = 4 ] && "$samples" status ahead --store overtaken | grep -qw finished'
is "... and the last one leaves no leases" test ! -e overtaken/claims/ahead
# ---- plain sweeps at once, each an operation of its own ----
rm -f log
space twin.yaml "1, 2, 3, 4" 1 fine 0.3
for i in 1 2 3; do "$sweep" twin.yaml $own --store twin --name twin$i >twin.$i 2>&1 & done
wait
is "three sweeps of one space at once measure each entity once" eval 'cat twin.?; [ $(wc -l <log) = 4 ] && [ $(sort -u log | wc -l) = 4 ] && [ "$(cat twin.? | grep -c "^# finished")" = 3 ]'
is "... each has all of them, measured or known" eval 'for i in 1 2 3; do [ "$("$samples" show twin.yaml $own --store twin --operation twin$i --output-format csv | wc -l)" = 5 ] || return 1; done'
rm -f log
for i in 1 2; do "$sweep" twin.yaml $own --store twin2 --share-cores --in-flight 2 >twin.$i 2>&1 & done
wait
is "... also on shared cores, two at a time" eval 'cat twin.?; [ $(wc -l <log) = 4 ] && [ $(sort -u log | wc -l) = 4 ]'
rm -f log
for i in 1 2 3; do "$sweep" twin.yaml $own --store twin3 --share-cores --repeat 2 >twin.$i 2>&1 & done
wait
is "... with --repeat 2, twice" eval 'cat twin.?; [ $(wc -l <log) = 8 ] && [ $(sort -u log | wc -l) = 4 ]'
rm -f log
space slow.yaml 1 1 slow_first
for i in 1 2 3; do "$sweep" slow.yaml $own --store twin4 --share-cores --repeat 2 >twin.$i 2>&1 & done
wait
is "... the second repeat's result is there before the first one's" eval 'cat twin.?; [ $(wc -l <log) = 2 ] && [ "$(cat twin.? | grep -c "^# finished")" = 3 ]'
rm -f log
for i in 1 2; do "$sweep" twin.yaml $own --store twin --remeasure >twin.$i 2>&1 & done
wait
is "... not with --remeasure" eval '[ $(wc -l <log) = 8 ]'
is "claims and locks leave nothing behind" eval '[ -d twin/claims ] && [ -z "$(find twin/claims -type f)" ] && [ -e twin/points.lock ] && [ ! -s twin/points.lock ]'
rm -f log
space alone.yaml 1 1 wait
"$sweep" alone.yaml $own --store alone --share-cores >twin.1 2>&1 & first=$!
await $first [ -s log ]
"$sweep" alone.yaml $own --store alone --share-cores >twin.2 2>&1 & second=$!
is "who waits for another's result says so" await $second grep "^# other sweeps measure the remaining entities (1): waiting" twin.2
touch log.go
is "... and has it" eval 'wait $first && wait $second; cat twin.2; grep -q "^# finished  *0 valid, 0 invalid, 0 failed, 1 known" twin.2'
rm log.go
space mine.yaml "1, 2" 1
(umask 022 && "$sweep" mine.yaml $own --store ours --entities 1 >/dev/null 2>&1; chmod 775 ours; rm ours/points.lock; "$sweep" mine.yaml $own --store ours >/dev/null 2>&1)
is "who may write in the store may lock, whatever the umask of who was first" eval 'stat -c %a ours/points.lock && [ $(stat -c %a ours/points.lock) = 664 ]'

# ---- what was killed ----
state() { "$samples" status --store twin | grep -w -- "$1" | grep -cw -- "$2"; }
rm -f log
space last.yaml 5 1 wait
"$sweep" last.yaml $own --store twin --name last >last.out 2>&1 &
pid=$!
await $pid [ -s log ]
is "an operation that goes on is running" eval '"$samples" status --store twin; [ "$(state last running)" = 1 ]'
kill -9 $pid
wait $pid 2>/dev/null
is "... killed by -9 it is dead" eval '"$samples" status --store twin; [ "$(state last dead)" = 1 ] && [ "$(state last running)" = 0 ]'
is "... others are what they were" eval '[ "$(state twin1 finished)" = 1 ]'
is "... by its own name, too" eval '"$samples" status last --store twin | grep -w STATUS | grep -qw dead'
is "... resumed it can be finished" eval '"$sweep" --resume last $own --store twin --timeout 0.2 >last.out 2>&1; cat last.out; [ "$(state last finished)" = 1 ]'

space refused.yaml "6, 13, 20, 27, 34, 41, 48, 55" "1, 2, 3"
for i in 1 2; do "$sweep" refused.yaml $own --store refusing --join all --share-cores >joined.$i 2>&1 & done
wait
is "what cannot be measured is recorded once, too" eval '[ "$("$samples" show custom_experiments.work $own --store refusing --columns entity --output-format csv | tail -n +2 | sort | uniq -c | awk "{ print \$1 }" | sort -u)" = 1 ] && [ $(count refused.yaml refusing) = 24 ]'

# ---- an experiment that does not take all dimensions ----
sed 's/"work"/"half"/; /"identifier": "b"/d' own/work.json >own/half.json
space both.yaml "1, 2" "1, 2, 3"
echo '  - {actuatorIdentifier: custom_experiments, experimentIdentifier: half, parameterization: [{property: {identifier: seconds}, value: 0.05}]}' >>both.yaml
half="--experiments own/work.json,own/half.json"
is "it is measured once for all entities it does not tell apart" eval 'rm -f log; says "8 valid, 0 invalid, 0 failed, 4 known" "$sweep" both.yaml $half --store half'
is "... also where they come at the same time" eval 'rm -f log; says "8 valid, 0 invalid, 0 failed, 4 known" "$sweep" both.yaml $half --store half2 --in-flight 3 --share-cores'

# ---- parameters are matched by value ----
parameters() { # FILE PARAMETER...
    file=$1
    shift
    printf 'entitySpace: [{identifier: a, propertyDomain: {values: [1, 2]}}]\nexperiments:\n  - actuatorIdentifier: custom_experiments\n    experimentIdentifier: work\n    parameterization:\n' >"$file"
    for p in "$@"; do printf '      - {property: {identifier: %s}, value: %s}\n' "${p%=*}" "${p#*=}" >>"$file"; done
}
parameters one.yaml b=3 seconds=0.25
parameters two.yaml seconds=0.25 b=3
parameters three.yaml b=3.0 seconds=2.5e-1
parameters four.yaml b=4 seconds=0.25
is "measured with parameters" says "experiment +custom_experiments.work-b.3-seconds.0.25, build" "$sweep" one.yaml $own --store par
is "... in another order: known, and spelled as ado does" eval 'says "0 valid, 0 invalid, 0 failed, 2 known" "$sweep" two.yaml $own --store par && grep -q "custom_experiments.work-seconds.0.25-b.3, build" shown'
is "... spelled otherwise: known" says "0 valid, 0 invalid, 0 failed, 2 known" "$sweep" three.yaml $own --store par
is "... shown, whoever spelled it how" eval '[ $(count two.yaml par matching) = 2 ] && [ $(count three.yaml par measured) = 2 ]'
is "another value: measured" says "2 valid" "$sweep" four.yaml $own --store par
parameters five.yaml seconds=0.25 b=0
refused "a default given as a parameter: file and line" 2 "five.yaml:7:9: parameter b has its default value 0; leave it out" "$sweep" five.yaml $own --store par
parameters six.yaml b=3 b=4
refused "a parameter given twice: file and line" 2 "six.yaml:7:" "$sweep" six.yaml $own --store par

# ---- actuator configurations ----
cat >own/reader.sh <<'E2'
#!/bin/sh
echo "{\"bytes\": $(wc -c <"$2"), \"home\": ${#HF_HOME}}" >"$TUNE_OUTPUT/report.json"
E2
cat >own/maker.sh <<'E2'
#!/bin/sh
printf '%s' "$1" >"$2"
E2
chmod +x own/reader.sh own/maker.sh
cat >own/reader.json <<'E2'
{"identifier": "reader", "actuator": "SFTTrainer", "program": "./reader.sh", "output": null, "folders": {"data_directory": "data"},
 "inputs": [{"identifier": "set", "required": true, "domain": {"values": ["four", "fifteen"]}, "flag": "--dataset", "format": "{data_directory}/{}.txt",
  "role": "data", "make": ["./maker.sh", "{}", "{data_directory}/{}.txt"]}],
 "targets": [{"identifier": "bytes"}, {"identifier": "home"}]}
E2
reader="--experiments own/reader.json"
echo 'entitySpace: [{identifier: set, propertyDomain: {values: [four, fifteen]}}]
experiments: [{actuatorIdentifier: SFTTrainer, experimentIdentifier: reader}]' >sets.yaml
configure() { printf 'actuatorIdentifier: %s\nparameters: {%s}\n' "$1" "$2" >actuator.yaml; }
configured() { "$sweep" sets.yaml $reader --actuator-configuration actuator.yaml "$@"; }
is "without one: data is made in the experiment's own folder, saying so" eval 'says "data/four.txt does not exist: ./maker.sh makes it once" "$sweep" sets.yaml $reader --store act1 && [ "$(cat data/four.txt data/fifteen.txt)" = fourfifteen ]'
configure SFTTrainer "data_directory: $tmp/else/where, match_exact_dependencies: False, cache: x, num_tokens_cache_directory: y"
is "data_directory, which is not there yet, is honoured; the rest is said to be inert" eval 'configured --store act2 >shown 2>err && grep -q "else/where/fifteen.txt does not exist: " shown && [ "$(cat else/where/fifteen.txt)" = fifteen ] && grep -q "actuator.yaml: match_exact_dependencies has no effect here" err && grep -q "num_tokens_cache_directory has no effect" err && [ $(wc -l <err) = 3 ]'
is "other data of the same name is not the same" eval 'echo more >else/where/four.txt; says "1 valid, 0 invalid, 0 failed, 1 known" configured --store act2'
configure SFTTrainer "hf_home: $tmp/hub-of-mine"
is "hf_home is honoured" eval 'HF_HOME=/nowhere configured --store act3 >/dev/null 2>&1 && [ "$("$samples" show sets.yaml $reader --store act3 --output-format csv --property home | tail -n 1 | cut -d, -f6 | cut -d. -f1)" = $((${#tmp} + 12)) ]'
configure SFTTrainer "data_dir: x"
refused "an unknown key" 2 'actuator.yaml:2:14: unknown key "data_dir" in parameters' configured --store act4
configure mock "data_directory: x"
refused "a configuration of an actuator that is not in the space" 2 "actuator.yaml:1:21: no experiment of this space has the actuator mock" configured --store act4
printf 'parameters: {}\n' >actuator.yaml
refused "one of no actuator" 2 "actuatorIdentifier" configured --store act4
configure SFTTrainer "data_directory: 7"
refused "a folder that is a number" 2 "actuator.yaml:2:" configured --store act4
configure SFTTrainer "data_directory: $tmp/log"
refused "a folder that is a file" 1 "$tmp/log" configured --store act4
refused "no such file" 2 "nowhere.yaml" "$sweep" sets.yaml $reader --store act4 --actuator-configuration nowhere.yaml

# ---- several runs of one measurement ----
cat >own/five.sh <<'E2'
#!/bin/sh
echo x >>"$RUNS"
case $(wc -l <"$RUNS") in
    2) exit 1 ;;
    3) exit 3 ;;
    4) kill -SEGV $$ ;;
esac
echo '{"is_valid": 1}' >"$TUNE_OUTPUT/report.json"
E2
chmod +x own/five.sh
awk '/"inputs": \[/ { print "  \"inputs\": [{\"identifier\": \"a\", \"required\": true, \"domain\": {}}],"; inputs = 1 } /^  \],/ && inputs { inputs = 0; next }
    !inputs && !/"rules"|"arguments"|"folders"/' "$here/defaults/experiments/finetune_full_stability-v1.0.0.json" |
    sed 's/finetune_full_stability-v1.0.0/five/; s/"finetune_full"/".\/five.sh"/; s/"--output"/null/' >own/five.json
echo 'entitySpace: [{identifier: a, propertyDomain: {values: [1]}}]
experiments: [{actuatorIdentifier: SFTTrainer, experimentIdentifier: five}]' >five.yaml
is "five runs are five, whatever becomes of each; how they ended is counted" eval '"$sweep" five.yaml --experiments own/five.json --store five --env RUNS=$tmp/five.runs >/dev/null && [ $(wc -l <five.runs) = 5 ] && "$samples" show five.yaml --experiments own/five.json --store five --output-format csv >csv && [ "$(cut -d, -f6- csv | tr "\n" " ")" = "f_gpu_oom,f_other_error,f_no_error,is_valid 1,2,2,1 " ]'
is "... five that end well" eval '"$sweep" five.yaml --experiments own/five.json --store five --remeasure --env RUNS=$tmp/five.runs >/dev/null && [ $(wc -l <five.runs) = 10 ] && "$samples" show five.yaml --experiments own/five.json --store five --output-format csv | grep -q "\[1, 0\]\",\"\[2, 0\]\",\"\[2, 5\]\",\"\[1, 1\]\"$"'

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
is "... that measures it" eval 'says "2 valid, 0 invalid, 0 failed" "$sweep" recipe.yaml --experiments recipe.json --store recipes && "$samples" show recipe.yaml --experiments recipe.json --store recipes --output-format csv --property training_steps,dataset_tokens_per_second | grep -q ",2$\|,2,"'
is "housekeeping is no input of it; whatever changes what is computed is" eval '! grep -qE "\"(save|save_dtype|output|log_every|profile|resume)\"," recipe.json && grep -q "\"identifier\": \"device\"" recipe.json && grep -q "\"identifier\": \"stop_at_step\"" recipe.json && "$sweep" recipe.yaml --experiments recipe.json --store recipes --remeasure --keep-runs >/dev/null && [ -n "$(ls recipes/runs/*/*/run-0/report.json)" ] && ! ls -d recipes/runs/*/*/run-0/checkpoint*'
sed 's/identifier: max_steps}, value: 2/identifier: max_steps}, value: 100000/; s/values: \[1, 2\]/values: [1]/' recipe.yaml >stable.yaml
is "--until-stable is the recipe's flag, and part of what is measured" eval 'says "experiment +custom_experiments.finetune_full-max_steps.100000-max_length.32-until_stable.90.0, build" "$sweep" stable.yaml --experiments recipe.json --store recipes --until-stable 90 --keep-runs --name stable && grep -q "samples show stable.yaml --operation stable --store recipes" shown && grep -h -A1 -- "--until-stable" recipes/runs/stable/*/run-0/run.json | grep -q "\"90.0\""'
shown() { "$samples" show stable.yaml --experiments recipe.json --store recipes --output-format csv --property training_steps,tokens_per_second_stable,tokens_per_second_stable_half_width "$@" | tail -n +2 | cut -d, -f8-; }
is "... the row says what came of it" eval 'shown --operation stable | awk -F, "\$1 >= 10 && \$1 < 100000 && \$3 <= 0.9 * \$2 { n++ } END { exit n != 1 }"'
is "... so do the rows of the experiment" eval '[ "$("$samples" show finetune_full --experiments recipe.json --store recipes --where "until_stable == 90" --columns training_steps --output-format csv | tail -n 1)" = "$(shown --operation stable | cut -d, -f1)" ]'
is "... which is another experiment than without" eval '[ -z "$(shown 2>err)" ] && grep -q "operation stable measured with until_stable 90, which is another experiment; to see its results, give --operation stable" err && says "1 known" "$sweep" stable.yaml --experiments recipe.json --store recipes --until-stable 90'
# ado's LoRA experiment, on a model that takes no time; two ranks, two sets of targets.
cat >lora.yaml <<E2
entitySpace:
  - {identifier: model_name, propertyDomain: {values: [$tmp/model]}}
  - {identifier: number_gpus, propertyDomain: {values: [0]}}
  - {identifier: model_max_length, propertyDomain: {values: [128]}}
  - {identifier: batch_size, propertyDomain: {values: [2]}}
  - {identifier: r, propertyDomain: {values: [2, 4]}}
  - {identifier: target_modules, propertyDomain: {values: [by model, all-linear]}}
experiments:
  - actuatorIdentifier: SFTTrainer
    experimentIdentifier: finetune_lora_benchmark-v1.0.0
    parameterization:
      - {property: {identifier: max_steps}, value: 2}
      - {property: {identifier: dataset_id}, value: news-chars-512-entries-256}
E2
is "ado's LoRA experiment is measured" says "finished +4 valid, 0 invalid, 0 failed, 0 known" "$sweep" lora.yaml --store adapters --keep-runs --retries 0 --name lora
is "... by the recipe, with its rank, alpha, dropout and targets" eval 'grep -l -- "--lora-targets" adapters/runs/lora/*/run-0/run.json | wc -l | grep -qx 4 && cat adapters/runs/lora/0-*/run-0/run.json | tr -d " \n\t" >argv && grep -qF "\"--lora-dropout\",\"0.05\"" argv && grep -qF "\"--lora-r\",\"2\",\"--lora-alpha\",\"16\",\"--lora-targets\",\"q_proj,v_proj\"" argv'
# 2 layers: q 64 + 64, v 64 + 32 a rank; with all linear ones k, o, gate, up and down
is "... the rows have what is trained" eval '[ "$("$samples" show lora.yaml --store adapters --output-format csv --property training_steps,trained_parameters,is_valid | tail -n +2 | rev | cut -d, -f1-3 | rev | tr "\n" " ")" = "1,2,896 1,2,4096 1,2,1792 1,2,8192 " ]'
is "... again all are known" says "0 valid, 0 invalid, 0 failed, 4 known" "$sweep" lora.yaml --store adapters
refused "--until-stable where no experiment knows it" 2 "no experiment of this space has the input until_stable" "$sweep" s.yaml $own --store st --until-stable 5
printf '#!/bin/sh\necho "{\\"options\\": [3], \\"properties\\": []}"\n' >odd.sh && chmod +x odd.sh
refused "a description of nothing that has a name" 2 'or an option or a property without a "name"' "$sweep" --describe-experiment ./odd.sh
refused "a program without --describe" 2 "must be written by hand" "$sweep" --describe-experiment own/work.sh

# ---- what users write wrongly ----
bad() { # NAME CODE TEXT, the space file from stdin
    cat >bad.yaml
    refused "$1" "$2" "$3" "$sweep" bad.yaml $own --store bad
}
grid='entitySpace: [{identifier: a, propertyDomain: {values: [1]}}]'
refused "no space" 2 "a space or an operation is missing" "$sweep" --store bad
refused "no such file" 2 "nowhere.yaml" "$sweep" nowhere.yaml --store bad
bad "no experiments" 2 "so it cannot be measured" <<E2
$grid
E2
sed 's/{identifier: seconds}/{identifier: how}/; s/value: 0.25/value: "fine\\e[2J"/' one.yaml >wild.yaml
is "what moves a cursor is spelled out" eval '"$sweep" wild.yaml $own --store wild --entities 1 >screen && "$sweep" wild.yaml $own --store wild --dry-run >>screen && grep -qF "fine\x1b[2J" screen && ! grep -q "$(printf "\033")" screen'
refused "an experiment that is not there: what tells of more" 2 "; to add folders or files of experiments, give --experiments" "$sweep" s.yaml --store bad
bad "an experiment that is not there: the nearest" 2 "bad.yaml:3:5: there is no experiment custom_experiments.worc (the nearest is work)" <<E2
$grid
experiments:
  - {actuatorIdentifier: custom_experiments, experimentIdentifier: worc}
E2
bad "a required input that is no dimension" 2 "experiment work needs the input a, which is not a dimension" <<E2
entitySpace: [{identifier: b, propertyDomain: {values: [1]}}]
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work}]
E2
bad "a dimension that nobody uses: the nearest" 2 "dimension aa is not an input of any experiment of this space (the nearest is a)" <<E2
entitySpace: [{identifier: a, propertyDomain: {values: [1]}}, {identifier: aa, propertyDomain: {values: [1]}}]
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work}]
E2
bad "a value outside the experiment's domain" 2 "the values of dimension a are not all allowed by experiment work" <<E2
entitySpace: [{identifier: a, propertyDomain: {values: [1, 100]}}]
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work}]
E2
parameter() { # NAME TEXT INPUT VALUE
    parameterized "$3" "$4" >parameter.yaml
    bad "$1" 2 "$2" <parameter.yaml
}
parameterized() { printf '%s\nexperiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work, parameterization: [{property: {identifier: %s}, value: %s}]}]\n' "$grid" "$1" "$2"; }
parameter "a parameter equal to the default" "parameter b has its default value 0; leave it out" b 0
parameter "a parameter that is a required input" "a is a required input of work: make it a dimension" a 2
parameter "a parameter outside its domain" "b of work cannot be 1000" b 1000
parameter "a parameter that is none" "work has no input c" c 1
is "a program that does not exist: said before anything runs" eval 'sed "s|./work.sh|./gone.sh|; s|\"work\"|\"gone\"|" own/work.json >own/gone.json; sed "s/experimentIdentifier: work/experimentIdentifier: gone/" s.yaml >gone.yaml; "$sweep" gone.yaml --experiments own/gone.json --store bad 2>err; [ $? = 1 ] && grep -q "gone.sh does not exist" err'
is "none of these makes a store" [ ! -e bad ]
bad "all of a space that cannot be counted" 2 "x: no value can be listed or drawn" <<E2
entitySpace: [{identifier: x, propertyDomain: {interval: 1}}]
experiments: [{actuatorIdentifier: mock, experimentIdentifier: test-experiment}]
E2
bad "all of a space that is too large" 2 "bad.yaml:1:15: the space has 10000000000 entities, too many to measure all; give the number of entities" <<E2
entitySpace: [{identifier: x, propertyDomain: {domainRange: [0, 10000000000], interval: 1}}]
experiments: [{actuatorIdentifier: mock, experimentIdentifier: test-experiment}]
E2
if [ "$(id -u)" = 0 ]; then
    skip "a store in a folder without permission" "root may do anything"
else
    mkdir locked && chmod 500 locked
    refused "a store in a folder without permission" 1 "locked" "$sweep" s.yaml $own --store locked/st
fi
finish
