#!/bin/sh
# test_stop_search.sh - build/sweep --stop-when that ends a search: no gain, chance, every order, resumed, shared, and wrong rules.
. tests/tap.sh
cd "$tmp" || exit 1
sweep=$BUILD/sweep
export OPENBLAS_NUM_THREADS=1
# speed is highest, 1000, at a 64, b 5, y, and loss lowest there. flat is 0. a 1 is invalid
mkdir own && cat >own/work.sh <<'E2'
#!/bin/sh
echo "$TUNE_INPUT_A $TUNE_INPUT_B $TUNE_INPUT_KIND" >>"$TUNE_INPUT_LOG"
if grep -qx "$(wc -l <"$TUNE_INPUT_LOG")" kill 2>/dev/null; then
    until [ -s pid ]; do sleep 0.01; done
    kill -9 "$(cat pid)" && sleep 86400
fi
[ "$TUNE_INPUT_A" = 1 ] && exit 3
awk -v a="$TUNE_INPUT_A" -v b="$TUNE_INPUT_B" -v k="$TUNE_INPUT_KIND" -v nonce="$TUNE_NONCE" 'BEGIN {
    l = log(a) / log(2) - 6
    v = 1000 * exp(-l * l / 8 - (b - 5) * (b - 5) / 12) * (k == "y" ? 1 : 0.7)
    printf "{\"speed\": %.6f, \"loss\": %.6f, \"flat\": 0, \"kernel\": \"k\", \"nonce\": \"%s\"}\n", v, 2000 - v, nonce }' >"$TUNE_OUTPUT/report.json"
E2
chmod +x own/work.sh
cat >own/work.json <<E2
{"identifier": "work", "description": "", "program": "./work.sh", "output": null,
 "inputs": [
  {"identifier": "a", "required": true, "domain": {"domainRange": [1, 1000], "interval": 1}},
  {"identifier": "b", "required": true, "domain": {"domainRange": [0, 100], "interval": 1}},
  {"identifier": "kind", "required": true, "domain": {"values": ["x", "y"]}},
  {"identifier": "log", "default": "$tmp/log", "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}}],
 "targets": [{"identifier": "speed", "unit": "tokens/s"}, {"identifier": "loss", "unit": ""}, {"identifier": "flat", "unit": ""},
             {"identifier": "kernel", "type": "text"}]}
E2
echo 'entitySpace:
  - {identifier: a, propertyDomain: {values: [1, 2, 4, 8, 16, 32, 64, 128, 256]}}
  - {identifier: b, propertyDomain: {domainRange: [0, 12], interval: 1}}
  - {identifier: kind, propertyDomain: {values: [x, y]}}
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work}]' >s.yaml
own="--experiments own/work.json --max-failures 0 --share-cores"
search() { # STORE FLAG... - a search that writes out and log
    into=$1
    shift
    rm -f log
    "$sweep" s.yaml $own --store "$into" --seed 1 "$@" >out 2>&1 || { cat out; false; }
}
# held LINE - the rule's line, said once, matches; the operation is finished, and the rows planned are those measured
held() { [ "$(grep -c '^# stop rule' out)" = 1 ] && grep -qE "^# stop rule +$1" out && grep -q '^# to measure more ' out && grep -q '^# finished' out || { cat out; false; }; }
measured() { wc -l <log; }
# since N - N measurements after the one of the best speed
since() { [ $(($(measured) - $(grep -nx "64 5 y" log | cut -d: -f1))) = "$1" ] || { cat log; false; }; }

# ---- no gain ----
is "no gain in 12: it ends 12 after the best one" eval 'search st --order model --maximize speed --stop-when "no gain of 1 % in 12" --name g && held "no gain of 1 % in 12: the best speed, 1000, is entity [0-9]+ of $(measured): a 64, b 5, kind y" && since 12'
cp log log.12
is "... resumed, it decides the same from the rows, and measures nothing" eval 'rm log; "$sweep" --resume g $own --store st >out 2>&1 && held "no gain" && [ ! -e log ]'
is "... with another rule it goes on: 20 after the best one" eval '"$sweep" --resume g $own --store st --stop-when "no gain of 1% in 20" >out 2>&1 && held "no gain of 1% in 20" && [ $(measured) = 8 ]'
is "... which is recorded" eval 'rm log; "$sweep" --resume g $own --store st >out 2>&1 && held "no gain of 1% in 20" && [ ! -e log ]'
is "... never: all the rest" eval '"$sweep" --resume g $own --store st --stop-when never --dry-run >out 2>&1 && grep -qE "^# 1[0-9][0-9] of 216 would be measured" out && ! grep -q "stop rule" out || { cat out; false; }'
is "killed in the middle and resumed, it ends at the same point" eval 'rm -f log; echo 15 >kill; (exec "$sweep" s.yaml $own --store st1 --seed 1 --order model --maximize speed --stop-when "no gain of 1 % in 12" --name k >out 2>&1) & echo $! >pid; wait $!; rm kill pid; [ $(measured) = 15 ] && "$sweep" --resume k $own --store st1 >out 2>&1 && held "no gain" && sed 15d log | cmp - log.12 || { cat out log; false; }'
is "a gain of 0 % is any gain" eval 'search st2 --order model --minimize loss --stop-when "no gain of 0 % in 12" && held "no gain of 0 % in 12: the best loss, 1000," && since 12'
is "a constant of zeros has none: invalid entities count, too" eval 'search st2a --maximize flat --stop-when "no gain of 1 % in 30" && held "no gain of 1 % in 30: the best flat, 0, is entity 25 of 55: " && [ $(measured) = 55 ]'
is "in order" eval 'search st3 --maximize speed --stop-when "no gain of 5 % in 9" && held "no gain of 5 % in 9: the best speed, 43.937, is entity 36 of 45: a 2, b 5, kind y" && [ $(measured) = 45 ]'
is "sobol, three at a time: at most two more" eval 'search st4 --order sobol --maximize speed --stop-when "no gain of 5 % in 9" --in-flight 3 && held "no gain of 5 % in 9" && [ $(($(measured) - $(sed -n "s/.* of \([0-9]*\): .*/\1/p" out))) -le 2 ]'
is "repeats are not cut short" eval 'search st5 --order random --maximize speed --stop-when "no gain of 5 % in 6" --repeat 3 && held "no gain" && [ "$(uniq -c log | awk "{ print \$1 }" | sort -u)" = 3 ]'
is "it ends the first of two rules" eval 'search st6 --order model --maximize speed --stop-when "no gain of 1 % in 90, no gain of 1 % in 10" --stop-when "no gain of 1 % in 50" && held "no gain of 1 % in 10:" && since 10'
is "--entities ends it before" eval 'search st6 --order model --maximize speed --stop-when "no gain of 1 % in 90" --entities 14 && ! grep -q "stop rule" out && [ $(grep -c -e known -e measured out) -ge 14 ]'
is "two processes share it, and both end" eval 'rm -f log; set -- --order model --maximize speed --stop-when "no gain of 1 % in 12" --join j; "$sweep" s.yaml $own --store st7 --seed 1 "$@" >out2 2>&1 & "$sweep" s.yaml $own --store st7 --seed 1 "$@" >out 2>&1; wait $!; held "no gain" && grep -q "^# stop rule" out2 && [ $(measured) -lt 60 ] || { cat out out2; false; }'

# ---- chance ----
is "chance: it ends when the model is sure, and says how sure" eval 'search st8 --order model --maximize speed --stop-when "chance of 1 % below 5 %" --name c && held "chance of 1 % below 5 %: [0-4]\.[0-9] % that an entity without a result is better by more than 1 %; the best speed, 1000, is entity [0-9]+ of $(measured): a 64, b 5, kind y" && [ $(measured) -lt 60 ]'
cp log log.c
is "... resumed, it decides the same" eval 'rm log; "$sweep" --resume c $own --store st8 >out 2>&1 && held "chance of 1 % below 5 %: [0-4]" && [ ! -e log ]'
is "... killed and resumed, it measures the same points" eval 'rm -f log; echo 11 >kill; (exec "$sweep" s.yaml $own --store st9 --seed 1 --order model --maximize speed --stop-when "chance of 1 % below 5 %" --name k >out 2>&1) & echo $! >pid; wait $!; rm kill pid; "$sweep" --resume k $own --store st9 >out 2>&1 && held "chance" && sed 11d log | cmp - log.c || { cat out log; false; }'
is "a higher chance is reached sooner" eval 'search st10 --order model --maximize speed --stop-when "chance of 20 % below 50 %" && held "chance of 20 % below 50 %: " && [ $(measured) -le $(wc -l <log.c) ]'
is "four at a time, of a space too large for all" eval 'sed "s/\[0, 12\]/[0, 100]/; s/\[1, 2, 4.*256\]/[2, 4, 8, 16, 32, 64, 128]/" s.yaml >l.yaml; rm -f log; "$sweep" l.yaml $own --store st11 --seed 1 --order model --maximize speed --stop-when "chance of 2 % below 10 %" --in-flight 4 >out 2>&1 && held "chance of 2 %" && [ $(measured) -lt 200 ]'

# ---- wrong ----
wrong() { # TEXT FLAG... - ends with 2 and this text
    text=$1
    shift
    refused "$text" 2 "$text" "$sweep" s.yaml $own --store none "$@"
}
wrong '"chance of 5 % below 9 %" needs --order model' --maximize speed --stop-when "chance of 5 % below 9 %"
wrong '--stop-when "": expected "no gain of 1 % in 20" or' --order model --maximize speed --stop-when ""
wrong '--stop-when "no gains": expected "no gain of 1 % in 20" or' --order model --maximize speed --stop-when "no gains"
wrong 'needs one property: --maximize PROPERTY or --minimize PROPERTY' --stop-when "no gain of 5 % in 9"
wrong '--entities ends a search of two' --order model --maximize speed --minimize loss --stop-when "no gain of 5 % in 9"
wrong '--stop-when no gain of 5 in 9: expected "no gain of 1 % in 20" or "chance of 1 % below 5 %"' --maximize speed --stop-when "no gain of 5 in 9"
wrong '--stop-when chance of 1 % below 5: expected' --order model --maximize speed --stop-when "chance of 1 % below 5"
wrong '--stop-when no gain of 1 % in 9 days: expected' --maximize speed --stop-when "no gain of 1 % in 9 days"
wrong 'the gain must be at least 0 % and less than 100 %' --maximize speed --stop-when "no gain of 100 % in 9"
wrong 'the number of entities must be from 1 to 1000000' --maximize speed --stop-when "no gain of 1 % in 0"
wrong 'the chance must be more than 0 % and less than 100 %' --order model --maximize speed --stop-when "chance of 1 % below 0 %"
wrong 'experiment work has no property sped' --maximize sped --stop-when "no gain of 1 % in 9"
wrong '--stop-when is not for --order halving' --order halving --budget b=1..2 --maximize speed --stop-when "no gain of 1 % in 9"
wrong '--stop-when with --launcher needs --order model' --maximize speed --stop-when "no gain of 1 % in 9" --launcher "ssh host"
wrong 'ends the repeats of an entity, which is not for --order model; "no gain of 1 % in 20"' --order model --maximize speed --stop-when speed:5% --repeat 3
is "nothing was written" test ! -e none
wrong 'to end a search' --maximize speed --stop-when "gain" --repeat 3
refused "a resumed operation cannot change to a rule for repeats" 2 "was begun with --stop-when chance of 1 % below 5 %" "$sweep" --resume c $own --store st8 --stop-when speed:5%
finish
