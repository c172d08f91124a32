#!/bin/sh
# test_dry_run.sh - what sweep --dry-run expects of the points that it lists: properties and times by a model of the stored
# results, and where nothing is known.
. tests/tap.sh
cd "$tmp" || exit 1
sweep=$BUILD/sweep
mkdir exp
cat >exp/work.sh <<'E2'
#!/bin/sh
awk -v a="$TUNE_INPUT_A" -v b="$TUNE_INPUT_B" -v k="$TUNE_INPUT_KIND" 'BEGIN {
    f = k == "odd" ? 3 : 1
    printf "{\"label\": \"x\", \"speed\": %.6f, \"bytes\": %.6f, \"same\": 1%s}\n", f * (a + b / 100), 10 * a * f, b == 3 ? ", \"some\": 2" : "" >(ENVIRON["TUNE_OUTPUT"] "/report.json") }'
E2
chmod +x exp/work.sh
echo '{"identifier": "work", "program": "./work.sh", "output": null, "inputs": [
 {"identifier": "a", "required": true, "domain": {"domainRange": [0, 1000]}},
 {"identifier": "b", "required": true, "domain": {"domainRange": [0, 1000]}},
 {"identifier": "steps", "default": 1, "domain": {"domainRange": [1, 100], "interval": 1}},
 {"identifier": "kind", "default": "plain", "domain": {"values": ["plain", "odd", "rare"]}}],
 "targets": [{"identifier": "label", "type": "text"}, {"identifier": "speed", "unit": "1/s"}, {"identifier": "bytes", "unit": "bytes"},
  {"identifier": "same", "unit": ""}, {"identifier": "some", "unit": "", "optional": true}, {"identifier": "fifth", "unit": "", "optional": true}]}' >exp/work.json
echo '{"store": "st", "experiments": "exp"}' >tune.json
space() { # NAME VALUES_OF_A [MORE]
    printf 'entitySpace:\n  - {identifier: a, propertyDomain: {values: [%s]}}\n  - {identifier: b, propertyDomain: {values: [1, 3, 5]}}\n  - {identifier: kind, propertyDomain: {values: [plain, odd, rare]}}\nexperiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work}%s]\n' "$2" "$3" >"$1"
}
space s.yaml "1, 2, 4, 8"
dry() { "$sweep" "$@" --dry-run >shown 2>&1 || { cat shown; return 1; }; }

is "without a result it says that nothing is known" eval 'dry s.yaml && [ "$(grep -c "^# expected values  *unknown: the store has no result of these entities$" shown)" = 1 ] && ! grep -q "^run.*speed" shown'
is "... of a property asked for, too" eval 'dry s.yaml --maximize speed && grep -q "^# expected values  *unknown: the store has no result" shown'
is "some results" eval '"$sweep" s.yaml --entities 10 --order sobol --where "kind != \"rare\"" >out && grep -q "10 valid" out || { cat out; false; }'
is "an expected value and a time for each point that would be measured, and not for a known one" eval 'dry s.yaml --where "kind != \"rare\"" && [ "$(grep -cE "^run +[0-9]+ s  a.* speed [0-9.]+ \([0-9.]+ to [0-9.]+\)  bytes [0-9.]+ \([0-9.]+ to [0-9.]+\)  custom_experiments.work$" shown)" = 14 ] && ! grep -q "^known.*speed" shown || { cat shown; false; }'
is "... nearly all intervals hold the true value" eval 'sed -n "s/^run.* a\.\([0-9]*\)-b\.\([0-9]*\)-kind\.\([a-z]*\)  speed [0-9.]* (\([0-9.]*\) to \([0-9.]*\)).*/\1 \2 \3 \4 \5/p" shown | awk "{ v = (\$3 == \"odd\" ? 3 : 1) * (\$1 + \$2 / 100); n++; held += v >= \$4 && v <= \$5 } END { print n, held; exit !(n == 14 && held >= 12) }"'
is "... it says of how many results, and of which unit" eval '[ "$(grep -c "^# expected values  *speed, 1/s: by a model of 10 results of 10 entities, with the 95 % interval of a measurement$" shown)" = 1 ]'
is "... the whole time is from a model, too" eval 'grep -qE "^# estimated time +[0-9]+:[0-9]+ with 1 at a time \(by a model of the results for entities that were never measured\)$" shown'
is "a category never measured: said once for both properties" eval 'dry s.yaml --entity a.1-b.1-kind.rare && grep -q "^run .*  speed, bytes unknown: kind rare was never measured  custom_experiments.work$" shown || { cat shown; false; }'
is "outside of the measured range" eval 'space far.yaml "1, 2, 4, 8, 64" && dry far.yaml --entity a.64-b.1-kind.odd && grep -q "speed, bytes unknown: a 64 is outside the measured 1 to 8" shown || { cat shown; false; }'
is "properties by name, each once" eval 'dry s.yaml --maximize bytes --minimize bytes,speed --where "kind == \"odd\"" && grep -qE "^run .*  bytes [0-9.]+ \(.*\)  speed [0-9.]+ \(" shown && ! grep -q "other properties" shown || { cat shown; false; }'
is "equal values everywhere: nothing to model" eval 'dry s.yaml --maximize same && grep -q "^# expected values  *same: unknown: all 10 values of same are 1, so there is nothing to model$" shown && ! grep -q "^run.* same" shown'
is "a property without a value" eval 'dry s.yaml --maximize fifth && grep -q "^# expected values  *fifth: unknown: nothing is known of fifth: no entity of this space has a value$" shown || { cat shown; false; }'
is "with --order model" eval 'dry s.yaml --order model --entities 20 --maximize speed --where "kind != \"rare\"" && grep -qE "^run .*  speed [0-9.]+ \(" shown || { cat shown; false; }'
search="s.yaml --order model --maximize speed --seed 1 --where kind!=\"rare\""
is "... later entities are a guess, and it says so once" eval 'dry s.yaml --order model --entities 20 --maximize speed --where "kind != \"rare\"" && [ "$(grep -c "^# model  *each result changes which entities come next, so the later ones of this list are a guess$" shown)" = 1 ]'
is "... a search" eval '"$sweep" $search --store st2 --entities 16 >found && grep -q "16 valid" found || { cat found; false; }'
is "... a dry run of the same: the same entities in the same order, all of them known" eval 'dry $search --store st2 --entities 16 && grep -q "^# 0 of 16 would be measured, 16 are known" shown && ! grep -q "waits:\|guess" shown &&
    sed -n "s/^ *[0-9]*\/.*measured.*  a \([0-9]*\), b \([0-9]*\), kind \([a-z]*\)$/a.\1-b.\2-kind.\3/p" found >real && sed -n "s/^known *\([^ ]*\) .*/\1/p" shown >dry && [ "$(wc -l <real)" = 16 ] && cmp real dry || { cat shown; false; }'
is "... and of a longer one: first these" eval 'dry $search --store st2 --entities 20 && grep -q "^# 4 of 20 would be measured, 16 are known" shown && head -n 16 shown | sed -n "s/^known *\([^ ]*\) .*/\1/p" | cmp - real || { cat shown; false; }'
is "... the rule ends the list, and nothing is there to resume" eval 'dry $search --store st2 --stop-when "no gain of 1 % in 3" && grep -q "^# stop rule  *no gain of 1 % in 3: the best speed" shown && ! grep -q -e --resume shown && n=$(grep -c "^known" shown) && grep -q "^# 0 of $n would be measured, $n are known" shown || { cat shown; false; }'
is "with --order halving, whose rungs have a budget" eval 'dry s.yaml --order halving --maximize speed --budget steps=1..4 && grep -q "^# rung 3 of 3" shown && grep -q "^# estimated time" shown && grep -qE "^run .*  speed ([0-9.]+ \(|unknown: kind rare)" shown || { cat shown; false; }'
refused "a property that is none" 2 "experiment work has no property spee" "$sweep" s.yaml --dry-run --maximize spee
refused "a text" 2 "property label of experiment work is a text" "$sweep" s.yaml --dry-run --minimize label
refused "more than four" 2 "at most 4 properties" "$sweep" s.yaml --dry-run --minimize speed,bytes,same,some,fifth
refused "without --dry-run a property needs an order that uses it" 2 "are only for --order halving" "$sweep" s.yaml --maximize speed

# ---- two experiments: each has its own models ----
sed 's/"work"/"other"/; s/"identifier": "speed"/"identifier": "pace"/; s/work.sh/other.sh/' exp/work.json >exp/other.json
sed 's/speed/pace/; s/10 \* a/20 * a/' exp/work.sh >exp/other.sh
chmod +x exp/other.sh
space both.yaml "1, 2, 4, 8" ", {actuatorIdentifier: custom_experiments, experimentIdentifier: other}"
is "two experiments: only one has results" eval 'dry both.yaml --where "kind == \"odd\"" && grep -q "^# expected values  *speed, 1/s under custom_experiments.work: by a model of 10 results" shown && grep -qE "^run .*  speed .*  custom_experiments.work$" shown && ! grep -qE "(speed|pace|bytes) .*  custom_experiments.other$" shown || { cat shown; false; }'
is "... both" eval '"$sweep" both.yaml --entities 8 --order sobol --where "kind != \"rare\"" >out && dry both.yaml --where "kind == \"odd\"" && grep -qE "^run .*  bytes [0-9.]+ \(.*\)  pace [0-9.]+ \(.*\)  custom_experiments.other$" shown && grep -q "pace, 1/s under custom_experiments.other: by a model of" shown || { cat shown; false; }'
finish
