#!/bin/sh
# test_model.sh - build/sweep --order model: what it finds, killed and resumed, in batches, shared, bounds, two targets, wrong options.
. tests/tap.sh
cd "$tmp" || exit 1
sweep=$BUILD/sweep samples=$BUILD/samples
says() { # TEXT COMMAND... - the command succeeds and prints a line that matches
    text=$1
    shift
    "$@" >shown 2>&1 && grep -qE -e "$text" shown || { cat shown; false; }
}
# speed is highest, 1000, at a 64, b 5, y. memory grows with a and b. With a * b above 700 it is invalid; a 1 fails.
mkdir own && cat >own/work.sh <<'E2'
#!/bin/sh
echo "$TUNE_INPUT_A $TUNE_INPUT_B $TUNE_INPUT_KIND" >>"$TUNE_INPUT_LOG"
if grep -qx "$(wc -l <"$TUNE_INPUT_LOG")" kill 2>/dev/null; then
    until [ -s pid ]; do sleep 0.01; done
    kill -9 "$(cat pid)" && sleep 86400
fi
while [ -e "$TUNE_INPUT_LOG.hold" ] && [ "$(wc -l <"$TUNE_INPUT_LOG")" -ge 12 ]; do sleep 0.02; done
[ "$TUNE_INPUT_A" = 1 ] && exit 1
[ $((TUNE_INPUT_A * TUNE_INPUT_B)) -gt 700 ] && exit 3
awk -v a="$TUNE_INPUT_A" -v b="$TUNE_INPUT_B" -v k="$TUNE_INPUT_KIND" -v nonce="$TUNE_NONCE" 'BEGIN {
    l = log(a) / log(2) - 6
    printf "{\"speed\": %.6f, \"memory\": %d, \"kernel\": \"k\", \"nonce\": \"%s\"}\n", 1000 * exp(-l * l / 8 - (b - 5) * (b - 5) / 12) * (k == "y" ? 1 : 0.7), 10 + a * 3 + b, nonce }' >"$TUNE_OUTPUT/report.json"
E2
chmod +x own/work.sh
cat >own/work.json <<E2
{"identifier": "work", "description": "", "program": "./work.sh", "output": null,
 "inputs": [
  {"identifier": "a", "required": true, "domain": {"domainRange": [1, 1000], "interval": 1}},
  {"identifier": "b", "required": true, "domain": {"domainRange": [0, 100], "interval": 1}},
  {"identifier": "kind", "required": true, "domain": {"values": ["x", "y"]}},
  {"identifier": "log", "default": "$tmp/log", "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}}],
 "targets": [{"identifier": "speed", "unit": "tokens/s"}, {"identifier": "memory", "unit": "bytes"},
             {"identifier": "kernel", "type": "text"}]}
E2
echo 'entitySpace:
  - {identifier: a, propertyDomain: {values: [1, 2, 4, 8, 16, 32, 64, 128, 256]}}
  - {identifier: b, propertyDomain: {domainRange: [0, 12], interval: 1}}
  - {identifier: kind, propertyDomain: {values: [x, y]}}
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work}]' >s.yaml
own="--experiments own/work.json"
search() { # STORE FLAG... - a search by the model
    into=$1
    shift
    "$sweep" s.yaml $own --store "$into" --order model --max-failures 0 "$@"
}

# ---- what it finds ----
is "the best of 216 points within 30" eval 'search st --maximize speed --entities 30 --name one --seed 1 >out && grep -qx "64 5 y" log && [ $(wc -l <log) = 30 ] && [ $(sort -u log | wc -l) = 30 ]'
is "... says what it searches for" grep -qE "^# model +maximize speed$" out
mv log log.one
is "the same seed gives the same points" eval 'search st2 --maximize speed --entities 30 --seed 1 >out && cmp log log.one'
is "another seed gives others" eval 'rm log; search st3 --maximize speed --entities 12 --seed 2 >out && ! head -n 12 log.one | cmp -s log -'
is "what the store knows is used; only what failed is measured again" eval 'rm log; search st --maximize speed --entities 30 --seed 1 >out; ! grep -v "^1 " log && [ "$(sort log)" = "$(grep "^1 " log.one | sort)" ] && grep -qE "[0-9] failed, 2[0-9] known" out || { cat out; false; }'
is "--where keeps to a part" eval 'rm -f log; search st4 --maximize speed --entities 14 --where "b % 2 == 0 and a > 1" >out && [ $(wc -l <log) = 14 ] && ! awk "{ exit !(\$2 % 2 || \$1 == 1) }" log || { cat log; false; }'
is "--repeat measures each again: the points stay apart" eval 'rm -f log; search st5 --maximize speed --entities 12 --repeat 2 --seed 1 >out && [ "$(uniq -c log | awk "{ print \$1 }" | sort -u)" = 2 ] && [ $(sort -u log | wc -l) = 12 ]'

# ---- bounds and two targets ----
is "--where-target: the best of those within it" eval 'rm -f log; search st6 --maximize speed --where-target "memory < 70" --entities 30 >out && grep -qx "16 5 y" log && grep -qE "^# model +maximize speed, where memory < 70$" out'
is "... it names the best one of them, and the command that shows it" eval 'grep -qE "^# found +the best speed within --where-target, [0-9.]+, is entity [0-9]+ of 30: a 16, b 5, kind y$" out && eval "$(sed -n "s|^# look at the best *samples|$samples|p" out) --experiments own/work.json --columns a,b,kind --output-format csv" | sed -n 2p | tr -d "\r" | grep -qx "16,5,y" || { cat out; false; }'
is "two targets: the front has more than one point" eval 'rm -f log; search st7 --maximize speed --minimize memory --entities 30 >out && "$samples" best s.yaml $own --store st7 --maximize speed --minimize memory --output-format csv >front && [ $(wc -l <front) -gt 4 ] || { cat out front; false; }'

# ---- killed, resumed, shared ----
is "killed in the middle and resumed, it measures the same points" eval 'rm -f log; echo 17 >kill; (exec "$sweep" s.yaml $own --store st8 --order model --max-failures 0 --maximize speed --entities 30 --seed 1 --name k >out 2>&1) & echo $! >pid; wait $!; rm kill pid; [ $(wc -l <log) = 17 ] && "$sweep" --resume k $own --store st8 >out && sed 17d log | cmp - log.one || { cat out log; false; }'
is "... and all are known then" eval 'says "0 of [0-9?]+ would be measured|^# 0 of" "$sweep" --resume k $own --store st8 --dry-run'
is "four at a time: no point twice, and the best is found" eval 'rm -f log; search st9 --maximize speed --entities 36 --in-flight 4 --share-cores >out && [ $(sort -u log | wc -l) = 36 ] && grep -qx "64 5 y" log || { cat log; false; }'
is "two processes share one search" eval 'rm -f log; search sta --maximize speed --entities 24 --join j --seed 1 >out & search sta --maximize speed --entities 24 --join j --seed 1 >out2; wait $!; [ $(sort -u log | wc -l) = $(wc -l <log) ] && [ $(wc -l <log) -ge 24 ] && [ $(wc -l <log) -le 26 ] || { cat out out2; wc -l log; false; }'
# The processes of a launcher measure what this one chose: two hosts, three at a time on each.
hosts="--launcher env_HOST=1 --launcher env_HOST=2 --in-flight 3 --share-cores"
mkdir bin && printf '#!/bin/sh\nexec "$@"\n' >bin/env_HOST=1 && chmod +x bin/env_HOST=1 && cp bin/env_HOST=1 bin/env_HOST=2
led() { PATH=$tmp/bin:$PATH search "$@" --maximize speed --seed 1 $hosts; }
is "with a launcher: batches, no point twice, a high speed" eval 'rm -f log; led stl --entities 30 >out 2>&1 && grep -q "^# in batches of  *6 measurements" out && [ $(wc -l <log) = 30 ] && [ $(sort -u log | wc -l) = 30 ] &&
    grep -qE "speed (1000|9[0-9][0-9][0-9.]*) " out && head -n 6 log | sort >log.led || { cat out log; false; }'
is "... again: the same first batch" eval 'rm -f log; led stm --entities 6 >out 2>&1 && sort log | cmp - log.led || { cat out; false; }'
is "... killed: the record has the points that were chosen" eval 'rm -f log; touch log.hold; (PATH=$tmp/bin:$PATH; export PATH; exec "$sweep" s.yaml $own --store stn --order model --max-failures 0 --entities 24 --maximize speed --seed 1 --name k $hosts >out 2>&1) & job=$!; await $job eval "[ \$(cat log 2>/dev/null | wc -l) -ge 12 ]" && kill -9 $job; wait $job; code=$?; rm log.hold; [ $code = 137 ] && grep -q "\"points: a\." stn/operations/k.json'
# Those that ran then, six at most, begin again.
is "... and resumed: 24 entities, few of them twice" eval 'PATH=$tmp/bin:$PATH "$sweep" --resume k $own --store stn --max-failures 0 --in-flight 3 --share-cores >out 2>&1 && [ "$(sort -u log | wc -l)" = 24 ] && [ "$(sort log | uniq -d | wc -l)" -le 6 ] || { cat out log; false; }'
sed 's/"targets"/"rules": [{"require": "b != 3", "reason": "three is for other machines", "here": true}], &/' own/work.json >own/some.json
is "... points that no machine can measure are left out, and said" eval 'rm -f log; PATH=$tmp/bin:$PATH "$sweep" s.yaml --experiments own/some.json --store stp --order model --maximize speed --max-failures 0 --entities 24 --seed 1 $hosts >out 2>&1; grep -q "unknown .*cannot run here: three is for other machines" out && ! grep -q " 3 [xy]$" log && n=$(grep -c "unknown .*cannot run here: three" out) && [ $((n + $(sort -u log | wc -l))) = 24 ] || { cat out log; false; }'
is "... --stop-when ends it" eval 'rm -f log; led sto --stop-when "no gain of 1 % in 6" >out 2>&1 && grep -q "^# stop rule  *no gain of 1 % in 6" out && [ $(wc -l <log) -lt 100 ] || { cat out; false; }'
is "a dry run needs no store" eval 'rm -f log; says "^# 20 of 20 would be measured" "$sweep" s.yaml $own --store none --order model --maximize speed --entities 20 --dry-run && [ ! -e none ] && [ ! -e log ]'

# ---- wrong ----
wrong() { # TEXT FLAG... - ends with 2 and this text
    text=$1
    shift
    refused "$text" 2 "$text" "$sweep" s.yaml $own --store none "$@"
}
wrong "--order model needs one property or two: --maximize PROPERTY" --order model --entities 5
wrong "--order model needs one property or two" --order model --maximize speed,memory --minimize speed
wrong "experiment work has no property sped" --order model --maximize sped
wrong "property kernel of experiment work is a text, but must be a number" --order model --maximize kernel
wrong "speed is named twice" --order model --maximize speed --minimize speed
wrong "memry" --order model --maximize speed --where-target "memry < 3"
wrong "--where-target: a is an input of an entity; --where chooses entities by inputs" --order model --maximize speed --where-target "a < 3"
wrong "property kernel is a text, and only numbers can be compared here" --order model --maximize speed --where-target "kernel == \"k\""
wrong "speed is measured, and this --where is asked before a measurement; a sweep with --order model and --where-target looks" --dry-run --where "speed < 3"
wrong "--where-target is only for --order model" --where-target "memory < 3"
wrong "--budget are only for --order halving" --order model --maximize speed --budget a=1..2
wrong "ends the repeats of an entity, which is not for --order model" --order model --maximize speed --stop-when speed:5% --repeat 3
is "nothing was written" test ! -e none
wrong "--entity names the entities, so --order cannot be model" --order model --maximize speed --entity a.1-b.0-kind.x
echo 'entitySpace:
  - {identifier: a, propertyDomain: {values: [4]}}
  - {identifier: b, propertyDomain: {values: [4]}}
  - {identifier: kind, propertyDomain: {values: [x]}}
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work}]' >point.yaml
refused "a space of one point has nothing to model" 2 "no dimension of this space has more than one value" "$sweep" point.yaml $own --store none --order model --maximize speed
finish
