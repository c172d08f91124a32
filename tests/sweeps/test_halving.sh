#!/bin/sh
# test_halving.sh - build/sweep --order halving: its rungs, what drops out, killed and resumed, shared, planned, and wrong options.
. tests/tap.sh
cd "$tmp" || exit 1
sweep=$BUILD/sweep samples=$BUILD/samples
says() { # TEXT COMMAND... - the command succeeds and prints a line that matches
    text=$1
    shift
    "$@" >shown 2>&1 && grep -qE -e "$text" shown || { cat shown; false; }
}
# The best point is a 3, b 4. With few steps others look better: the error shrinks with the steps. a 8 is invalid, a 9 fails.
mkdir own && cat >own/work.sh <<'E2'
#!/bin/sh
echo "$TUNE_INPUT_A $TUNE_INPUT_B $TUNE_INPUT_STEPS" >>"$TUNE_INPUT_LOG"
if grep -qx "$(wc -l <"$TUNE_INPUT_LOG")" kill 2>/dev/null; then
    until [ -s pid ]; do sleep 0.01; done
    kill -9 "$(cat pid)" && sleep 86400
fi
[ "$TUNE_INPUT_A" = 9 ] && exit 1
[ "$TUNE_INPUT_A" = 8 ] && exit 3
cost=$(((TUNE_INPUT_A - 3) * (TUNE_INPUT_A - 3) * 10 + (TUNE_INPUT_B - 4) * (TUNE_INPUT_B - 4) * 10))
cost=$((cost + (TUNE_INPUT_A * 37 + TUNE_INPUT_B * 53) % 100 / TUNE_INPUT_STEPS))
case $TUNE_INPUT_STEPS in 2 | 8) flip=-$cost ;; *) flip=$cost ;; esac
echo "{\"cost\": $cost, \"gain\": -$cost, \"flip\": $flip, \"nonce\": \"$TUNE_NONCE\"}" >"$TUNE_OUTPUT/report.json"
E2
chmod +x own/work.sh
cat >own/work.json <<E2
{"identifier": "work", "description": "", "program": "./work.sh", "output": null,
 "inputs": [
  {"identifier": "a", "required": true, "domain": {"domainRange": [0, 100], "interval": 1}},
  {"identifier": "b", "required": true, "domain": {"domainRange": [0, 100], "interval": 1}},
  {"identifier": "steps", "default": 4, "domain": {"domainRange": [1, 1000], "interval": 1}},
  {"identifier": "idle", "default": 4, "domain": {"domainRange": [1, 1000], "interval": 1}, "inert": "it changes nothing"},
  {"identifier": "log", "default": "$tmp/log", "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}}],
 "targets": [{"identifier": "cost", "unit": "s"}, {"identifier": "gain", "unit": "1/s"}, {"identifier": "flip", "unit": "s"}]}
E2
space() { # PARAMETERS
    echo 'entitySpace:
  - {identifier: a, propertyDomain: {domainRange: [0, 10], interval: 1}}
  - {identifier: b, propertyDomain: {values: [2, 4, 6, 7]}}
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work'"$1"'}]'
}
space >s.yaml
own="--experiments own/work.json"
halve() { # STORE FLAG... - a halving sweep
    into=$1
    shift
    "$sweep" s.yaml $own --store "$into" --order halving --budget steps=1..16 "$@"
}
rows() { "$samples" show custom_experiments.work $own --store "$1" --columns steps,a,b,status,cost --output-format csv | sed 1d | sort; }

# ---- rungs ----
is "rungs of 1, 2, 4, 8, 16 steps; what failed and what is invalid drops out" eval 'halve st --minimize cost --name h --seed 3 >out && cat out && [ "$(cut -d" " -f3 log | uniq -c | awk "{ print \$2 \":\" \$1 }" | tr "\n" " ")" = "1:40 2:16 4:8 8:4 16:2 " ]'
is "... each says who goes on" eval 'grep -qE "^# rung 1 of 5 +steps 1: 40 points, 16 go on; best cost [0-9]+ at a [0-9], b [0-9]$" out && grep -qE "^# rung 5 of 5 +steps 16: 2 points; best cost 1 at a 3, b 4$" out && grep -qE "^# finished +62 valid, 4 invalid, 4 failed, 0 known" out'
better() { # STEPS - the better half of the valid points with so many steps, by "a b", without ties at the border
    rows st | awk -F, -v s="$1" '$1 == s && $4 == "valid" { print $5, $2, $3 }' | sort -n | awk '{ all[NR] = $2 " " $3; } END { for (i = 1; i <= int((NR + 1) / 2); i++) print all[i] }' | sort
}
is "... and those are the better half" eval 'for s in 1 2 4 8; do better $s >half; awk -v s=$((2 * s)) "\$3 == s { print \$1, \$2 }" log | sort >next; diff half next || return 1; done'
is "the points come in random order, by the seed" eval '[ "$(head -n 5 log)" != "$(sort log | head -n 5)" ] && mv log log.h && halve seed --minimize cost --seed 3 >out2 && cmp log log.h && rm log && halve seed4 --minimize cost --seed 4 >out2 && ! cmp -s log log.h'
is "--maximize takes the other end: here the same points" eval 'rm -f log; halve max --maximize gain --seed 3 >out2 && cmp log log.h'
is "--entities, --where and --entity choose the points" eval 'rm -f log; halve some --minimize cost --entities 6 >out2 && [ "$(grep -c " 1$" log)" = 6 ] && rm log && halve some2 --minimize cost --where "b == 2 and a < 4" >out2 && [ "$(cut -d" " -f3 log | uniq -c | awk "{ print \$1 }" | tr "\n" " ")" = "4 2 1 " ] && [ "$(tail -n 1 log)" = "3 2 16" ] && rm log && halve some3 --minimize cost --entity a.1-b.4,a.3-b.4 >out2 && [ "$(sort -u log | tr "\n" ,)" = "1 4 1,3 4 1,3 4 16," ]'
is "--repeat 2: the mean of both decides, each rung has both" eval 'rm -f log; halve twice --minimize cost --repeat 2 >out2 && [ "$(sort log | uniq -c | awk "{ print \$1 }" | sort -u)" = 2 ] && grep -qE "^# rung 2 of 5 +steps 2: 16 points, 8 go on" out2'
is "nothing valid: nothing goes on" eval 'rm -f log; halve none --minimize cost --where "a >= 8" >out2; code=$?; cat out2; [ $code = 1 ] && [ $(wc -l <log) = 8 ] && grep -qE "^# rung 1 of 5 +steps 1: 8 points, none of them valid$" out2'
is "two at a time take the same points" eval 'rm -f log; halve flight --minimize cost --seed 3 --in-flight 2 --share-cores >out2 && [ "$(sort log)" = "$(sort log.h)" ]'

# ---- when a model would serve better ----
space >wide.yaml && sed -i 's/\[0, 10\]/[0, 100]/' wide.yaml
is "rungs that cost more than a model's search: that is said, also in a dry run" eval 'for dry in "" --dry-run; do "$sweep" wide.yaml $own --store wide --order halving --budget steps=1..16 --minimize cost --max-failures 1 $dry >out2 2>&1; grep -qE "^# advice +the rungs cost as much as 125 measurements with steps 16; --order model came within 1 % of the best" out2 || { cat out2; return 1; }; done'
is "... fewer of them: it is not" eval '! grep -q "^# advice" out'
is "an order that a longer measurement turns around: that is said" eval 'halve turned --minimize flip --seed 3 >out2; grep -E "^# (rung|advice)" out2; [ "$(grep -cE "^# advice +13 % of the pairs kept their order since the rung before; 50 % is chance" out2)" = 1 ]'

# ---- the store ----
is "rows are like any others: another sweep knows them" eval 'rm -f log; says "2 valid, 0 invalid, 0 failed, 2 known" "$sweep" s.yaml $own --store st --set steps=16 --where "b == 4 and a in [2, 3, 4, 5]" || says "3 valid, 0 invalid, 0 failed, 1 known" true'
is "... and halving knows theirs" eval 'rm -f log; "$sweep" s.yaml $own --store other --set steps=2 >out2; rm log; halve other --minimize cost >out2 && ! grep -q " 2$" log && grep -qE "^# rung 2 of 5 +steps 2: 16 points, 8 go on" out2'
is "samples best --operation shows the last rung" eval 'says "^ +1 +1 +[0-9.]+ +3$" "$samples" best s.yaml $own --store st --operation h --minimize cost && grep -q "of all 2: lowest 1," shown'
is "... and without it says so" eval '"$sweep" s.yaml $own --store three --order halving --budget steps=1..3 --minimize cost --entities 4 --name t >out2; says "measured with steps=1..3 in rungs of halving; to see the last rung, give --operation t$" "$samples" show s.yaml $own --store three'
space ", parameterization: [{property: {identifier: steps}, value: 16}]" >sixteen.yaml
is "a space with the most of the budget has the rows of the last rung" eval 'rm -f log; "$sweep" sixteen.yaml $own --store sixteen --order halving --minimize cost --budget steps=1..16 >out2 && [ "$("$samples" show sixteen.yaml $own --store sixteen --output-format csv | wc -l)" = 3 ]'
is "the default as a rung is no parameter" eval '"$samples" show h $own --store st | grep -qE " custom_experiments.work +a" && "$samples" show h $own --store st | grep -q "work-steps.8 "'

# ---- killed, resumed ----
rm -f log
killed() { # FLAG... - a sweep that ends by kill -9, at the measurement that the file kill names
    rm -f pid
    "$sweep" $own "$@" >>out3 2>&1 &
    echo $! >pid
    wait $!
    [ $? = 137 ] || { cat out3; return 1; }
}
is "killed in three rungs and resumed: the same rows, none twice" eval 'echo 5 >kill; killed s.yaml --store killed --order halving --budget steps=1..16 --minimize cost --seed 3 --name k && echo 50 >kill && killed --resume k --store killed && echo 68 >kill && killed --resume k --store killed && rm kill && "$sweep" --resume k $own --store killed >>out3 && rows killed >r1 && rows seed >r2 && diff r1 r2 && [ "$(wc -l <log)" = 73 ]'
is "resumed when it is done: nothing is measured" eval 'rm log; says "^# rung 5 of 5 +steps 16: 2 points; best cost 1 at a 3, b 4$" "$sweep" --resume k $own --store killed && [ ! -e log ]'
is "two processes share one" eval 'halve joined --minimize cost --seed 3 --join j --share-cores >j1 & halve joined --minimize cost --seed 3 --join j --share-cores >j2; wait; rows joined >r1; diff r1 r2 && grep -q "^# rung 5 of 5 .*a 3, b 4" j1 && grep -q "^# rung 5 of 5 .*a 3, b 4" j2'

# ---- the dry run ----
is "a dry run shows the rungs and their cost" eval 'says "^# cost +208 steps, 32.5 % of the 640 that all 40 points need with steps 16$" halve nowhere --minimize cost --dry-run && [ "$(grep "^# rung" shown | sed "s/.*: //" | tr "\n" ,)" = "40 points,20 points,10 points,5 points,3 points," ] && [ ! -e nowhere ]'
is "... of a killed one: the rungs that are left" eval 'echo 45 >kill; rm -f log; killed s.yaml --store parted --order halving --budget steps=1..16 --minimize cost --seed 3 --name k && rm kill; says "^# rung 2 of 5 +steps 2: 16 points$" "$sweep" --resume k $own --store parted --dry-run && grep -q "^# 12 of 56 would be measured, 44 are known" shown && [ "$(grep -c "^# rung . of 5" shown)" = 5 ] && grep -q "^# estimated time" shown'

# ---- wrong options ----
wrong() { # NAME TEXT FLAG... - refused, and nothing is made
    title=$1 text=$2
    shift 2
    refused "$title" 2 "$text" "$sweep" s.yaml $own --store wrong "$@"
}
wrong "no property" "--minimize PROPERTY or --maximize PROPERTY" --order halving --budget steps=1..4
wrong "two properties" "--minimize PROPERTY or --maximize PROPERTY" --order halving --budget steps=1..4 --minimize cost --maximize gain
wrong "no budget" "--budget max_steps=1..16" --order halving --minimize cost
wrong "no such property" "experiment work has no property time" --order halving --budget steps=1..4 --minimize time
wrong "no such input" "work has no input step (the nearest is steps)" --order halving --budget step=1..4 --minimize cost
wrong "an input without effect" "input idle has no effect" --order halving --budget idle=1..4 --minimize cost
wrong "a dimension" "a is a dimension of s.yaml" --order halving --budget a=1..4 --minimize cost
wrong "a budget outside the domain" "steps=1000: work cannot take this value" --order halving --budget steps=10..1000 --minimize cost
wrong "a budget that is none" "--budget steps=4: expected" --order halving --budget steps=4 --minimize cost
echo 'operation: {module: {operatorName: random_walk}, parameters: {numberEntities: all, samplerConfig: {samplerType: selector}}}' >selector.yaml
wrong "a selector" "leave samplerType and filter out of selector.yaml" --order halving --budget steps=1..4 --minimize cost --operation selector.yaml
wrong "another order" "are only for --order halving" --order random --budget steps=1..4
refused "--resume with another budget" 2 "was begun with --budget steps=1..16, but the command line has --budget steps=1..8" "$sweep" --resume h $own --store st --budget steps=1..8
cp -r st older && sed 's/"factor":.*/"factor": 4,/' st/operations/h.json >older/operations/h.json
refused "--resume of an operation with another factor, of an older version" 2 "operation h keeps one of 4 points in each rung, and this version keeps the better half" "$sweep" --resume h $own --store older
is "... its rows are shown" eval 'rows older >had && [ "$(wc -l <had)" -ge 62 ]'
sed 's/^experiments: \[\(.*\)\]$/experiments: [\1, {actuatorIdentifier: custom_experiments, experimentIdentifier: work, parameterization: [{property: {identifier: steps}, value: 8}]}]/' s.yaml >two.yaml
refused "two experiments" 2 "works with one experiment, but two.yaml has 2" "$sweep" two.yaml $own --store wrong --order halving --budget steps=1..4 --minimize cost
refused "space list cannot take it" 2 "so only sweep has it" "$BUILD/space" list s.yaml --mode halving
is "nothing was made of these" [ ! -e wrong ]

finish
