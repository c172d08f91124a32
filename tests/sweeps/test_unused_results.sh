#!/bin/sh
# test_unused_results.sh - stored results that do not count for a space: how many, why, and what makes them count.
. tests/tap.sh
cd "$tmp" || exit 1
sweep=$BUILD/sweep samples=$BUILD/samples
says() { # TEXT COMMAND... - the command succeeds and prints a line that matches
    text=$1
    shift
    "$@" >"$tmp/shown" 2>&1 && grep -qE -e "$text" "$tmp/shown" || { cat "$tmp/shown"; false; }
}
silent() { ! grep -E -e "not known|measured again|other inputs" "$tmp/shown"; }
mkdir exp
cat >exp/work.sh <<'E2'
#!/bin/sh
echo "{\"speed\": $TUNE_INPUT_A}" >"$TUNE_OUTPUT/report.json"
E2
chmod +x exp/work.sh
cat >exp/work.json <<'E2'
{"identifier": "work", "actuator": "toys", "program": "./work.sh", "output": null,
 "inputs": [
  {"identifier": "a", "required": true, "domain": {"domainRange": [0, 100], "interval": 1}},
  {"identifier": "rows", "default": "one.txt", "domain": {"values": ["one.txt"]}, "flag": "--data", "role": "data"},
  {"identifier": "steps", "default": 10, "domain": {"domainRange": [1, 100], "interval": 1}},
  {"identifier": "word", "default": "", "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}},
  {"identifier": "how", "default": "plain", "domain": {"values": ["plain", "odd"]}}],
 "rules": [{"require": "a < 50", "reason": "too much"}],
 "targets": [{"identifier": "speed", "unit": "1/s"}]}
E2
echo '{"store": "st", "experiments": "exp"}' >tune.json
space() { printf "entitySpace:\n  - {identifier: a, propertyDomain: {values: [$1]}}\nexperiments: [{actuatorIdentifier: toys, experimentIdentifier: work$2}]\n"; }
space "1, 2, 3, 60" >s.yaml
echo rows >one.txt
is "rows" says "3 valid, 1 invalid" "$sweep" s.yaml
is "what is known needs no word" eval 'says "3 valid|4 are known" "$sweep" s.yaml --dry-run && silent'
is "nor does what was never measured" eval 'space "4, 5" >more.yaml && says "# 2 of 2 would be" "$sweep" more.yaml --dry-run && silent'

# ---- the build ----
echo '# another' >>exp/work.sh
is "another build: --dry-run counts" says "^# not known +3, although stored results differ only in the build: --accept any-build uses them$" "$sweep" s.yaml --dry-run
is "... so many repeats as there are results" says "^# not known +3, " "$sweep" s.yaml --dry-run --repeat 2
is "... what the option takes needs no word" eval 'says "^# 0 of 4 would" "$sweep" s.yaml --dry-run --accept any-build && silent'
is "... nor does --remeasure" eval 'says "^# 4 of 4|3 of 4 would" "$sweep" s.yaml --dry-run --remeasure && silent'
is "... samples says the same" says "^samples: stored results of 3 of these entities differ only in the build, so sweep would .*; sweep --accept any-build uses" "$samples" missing s.yaml
is "... --where chooses" says "^samples: stored results of 1 of these entities differ only in the build" "$samples" missing s.yaml --where "a == 2"
is "the sweep says it when it meets the first" eval 'says "^# measured again +a stored result differs only in the build; --accept any-build would use it$" "$sweep" s.yaml --where "a < 3" && [ $(grep -c "^# measured again" shown) = 1 ] && grep -q "^# not known *2, although stored results differ only in the build" shown'

# ---- data ----
echo more >>one.txt
is "other data" says "^# not known +2, although stored results differ only in the data: --accept any-data uses them$" "$sweep" s.yaml --dry-run
is "... and another build: what is nearest counts" grep -qE "^# not known +1, although stored results differ only in the build and the data: --accept any-build,any-data uses them$" shown
is "... also if it is the older one" eval 'cp exp/work.sh kept.sh && sed -i "\$d" exp/work.sh && says "^# not known +3, although stored results differ only in the data: --accept any-data uses them$" "$sweep" s.yaml --dry-run && cp kept.sh exp/work.sh'
is "... beside what is accepted already" says "differ only in the data: --accept any-build,any-data uses them$" "$sweep" s.yaml --dry-run --accept any-build
mv one.txt gone.txt
is "data that are gone: the store has noted their hash" says "^samples: stored results of 2 of these entities differ only in the data|^samples: stored results of . of" "$samples" missing s.yaml
mv gone.txt one.txt
mv exp away
is "a program that is gone" eval 'echo "{\"store\": \"st\"}" >tune.json && says "^samples: for 3 of these entities, it is unknown whether sweep would use the stored results: .*exp/work.sh" "$samples" missing s.yaml'
mv away exp

# ---- the host ----
is "another host class" eval 'says "^# not known +3, although stored results differ only in the host" "$sweep" s.yaml --dry-run --accept any-build,any-data --env OMP_NUM_THREADS=1 && grep -q -- "--accept any-host,any-build,any-data uses them" shown'

# ---- other inputs ----
space "1, 2, 3" ", parameterization: [{property: {identifier: steps}, value: 20}]" >steps.yaml
is "other parameters: how to take them" says "^# other inputs +[0-9]+ results of these entities: --set steps=10 would use them$" "$sweep" steps.yaml --dry-run
is "... that is so" says "^# 0 of 3 would be measured, 3 are known" "$sweep" steps.yaml --dry-run --set steps=10 --accept any-build,any-data
is "... samples has no rows, and says why" says "^samples: [0-9]+ results of these entities under experiment work have other values of inputs: steps=10;" "$samples" show steps.yaml
is "... and for what is missing" says "have other values of inputs: steps=10" "$samples" missing steps.yaml
is "two inputs" eval 'says "2 valid" "$sweep" s.yaml --where "a < 3" --set steps=30,how=odd && says "^# other inputs +2 results of these entities: --set steps=30,how=odd would use them$" "$sweep" steps.yaml --dry-run'
is "... of other entities no word" eval 'space "7, 8" ", parameterization: [{property: {identifier: steps}, value: 20}]" >far.yaml && says "^# 2 of 2" "$sweep" far.yaml --dry-run && silent'
is "... nor of what the space has under its other experiment" eval 'space "1" "}, {actuatorIdentifier: toys, experimentIdentifier: work, parameterization: [{property: {identifier: steps}, value: 30}, {property: {identifier: how}, value: odd}]" >both.yaml && says "would be measured" "$sweep" both.yaml --dry-run && ! grep -q "other inputs" shown'
# typed: the --set of what was shown, read from there
typed() { sed -nE "s/.*: (--set .*) would use.*/\1/p; s/.*sweep (--set .*) uses.*/\1/p" shown | head -n 1; }
is "many values of a text: one line, and a value to type" eval 'for t in a "b c" 10 null; do "$sweep" s.yaml --where "a == 1" --set "word=\"$t\"" >/dev/null || exit 1; done; "$sweep" s.yaml --where "a == 1" --set word=a --remeasure >/dev/null; says "^# other inputs +5 results of these entities with 4 other values of word: --set word=a would use 2 of them$" "$sweep" s.yaml --where "a == 1" --remeasure --dry-run && eval "set -- $(typed)" && says "^# 0 of 1 would be measured, 1 are known" "$sweep" s.yaml --where "a == 1" "$@" --dry-run'
for t in "b c" 10 null "it's"; do
    is "... quoted where it must be: $t" eval 'rm -rf quoted; "$sweep" s.yaml --where "a == 1" --set "word=\"$t\"" --store quoted --experiments exp >/dev/null; says "^# other inputs +1 result of" "$sweep" s.yaml --where "a == 1" --store quoted --experiments exp --dry-run && eval "set -- $(typed)" && says "^# 0 of 1 would be measured, 1 are known" "$sweep" s.yaml --where "a == 1" "$@" --store quoted --experiments exp --dry-run'
done
is "... a list is in no --set: said so" eval 'rm -rf quoted; printf "%s\n" "$(space 1 ", parameterization: [{property: {identifier: word}, value: \"b, c\"}]")" >comma.yaml && "$sweep" comma.yaml --store quoted --experiments exp >/dev/null; says "word=b, c, which --set cannot give" "$sweep" s.yaml --where "a == 1" --store quoted --experiments exp --dry-run'
is "an input that came later: rows without it have its default" eval 'sed "s/\"rules\"/\"nothing\"/; s/\"inputs\": \[/&{\"identifier\": \"z\", \"default\": 0.5, \"domain\": {\"domainRange\": [0, 1]}},/; s/\"nothing\": /\"rules\": /" exp/work.json >later.json && cp exp/work.sh . && says "of these entities with word=b, c, which --set cannot give: they are not used here" "$sweep" s.yaml --store quoted --experiments later.json --where "a == 1" --set "word=\"b\"" --dry-run&& ! grep -q -- "--set z" shown'
printf 'steps,speed\n77,2.0\n' >expected
is "what was measured with --set: the line to type shows it" eval '"$sweep" s.yaml --where "a == 2" --set steps=77 --name "seventy seven" >shown; eval "$(sed -n "s|^# look at them *samples|$samples|p" shown) --columns steps,speed --output-format csv" | tr -d "\r" | diff - expected'
finish
