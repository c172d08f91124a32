#!/bin/sh
# test_samples.sh - build/samples: every command over stores that a sweep made, that were imported, merged, broken.
. tests/tap.sh
cd "$tmp" || exit 1
LC_ALL=C.UTF-8
export LC_ALL
samples=$BUILD/samples sweep=$BUILD/sweep
same() { # FILE COMMAND... - the command succeeds and prints just the file
    file=$1
    shift
    "$@" >shown 2>said.err || { cat said.err; return 1; }
    diff "$file" shown
}
says() { # TEXT COMMAND... - it succeeds and prints a line that matches, on either stream
    text=$1
    shift
    "$@" >shown 2>&1 && grep -qE -e "$text" shown || { cat shown; false; }
}
lines() { # COUNT COMMAND... - it succeeds and prints that many lines
    wanted=$1
    shift
    "$@" >shown 2>said.err && [ "$(wc -l <shown)" = "$wanted" ] || { cat shown said.err; false; }
}

# ---- a store: two experiments, of which one takes only dimension a; what is invalid, failed, repeated, of two spaces ----
cat >work.sh <<'E2'
#!/bin/sh
[ "$TUNE_INPUT_A" != 9 ] || { echo "nine is too much" >&2; exit 1; }
echo . >>"$TUNE_INPUT_LOG.$TUNE_INPUT_A.$TUNE_INPUT_B"
n=$(wc -l <"$TUNE_INPUT_LOG.$TUNE_INPUT_A.$TUNE_INPUT_B")
echo "{\"speed\": $TUNE_INPUT_A$TUNE_INPUT_B$n.5, \"steps\": $n, \"beside\": 0.25, \"nonce\": \"$TUNE_NONCE\"}" >"$TUNE_OUTPUT/report.json"
E2
cat >rest.sh <<'E2'
#!/bin/sh
echo "{\"heat\": 0.$TUNE_INPUT_A}" >"$TUNE_OUTPUT/report.json"
E2
chmod +x work.sh rest.sh
cat >work.json <<E2
{"identifier": "work", "actuator": "custom_experiments", "description": "", "program": "./work.sh", "output": null,
 "inputs": [
  {"identifier": "a", "required": true, "domain": {"domainRange": [0, 100], "interval": 1}},
  {"identifier": "b", "default": 0, "domain": {"domainRange": [0, 100], "interval": 1}},
  {"identifier": "kind", "default": "plain", "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}},
  {"identifier": "log", "default": "$tmp/log", "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}}],
 "rules": [{"require": "a != 8", "reason": "a is 8"}],
 "targets": [{"identifier": "speed", "unit": "1/s"}, {"identifier": "steps", "unit": "", "whole": true, "optional": true},
  {"identifier": "beside", "unit": "", "optional": true, "shown": "False"}, {"identifier": "is_valid", "unit": "", "whole": true, "optional": true}]}
E2
cat >rest.json <<E2
{"identifier": "rest", "actuator": "custom_experiments", "description": "", "program": "./rest.sh", "output": null,
 "inputs": [{"identifier": "a", "required": true, "domain": {"domainRange": [0, 100], "interval": 1}}],
 "targets": [{"identifier": "heat", "unit": "K"}]}
E2
work='{actuatorIdentifier: custom_experiments, experimentIdentifier: work, parameterization: [{property: {identifier: kind}, value: odd}]}'
cat >s.yaml <<E2
entitySpace:
  - {identifier: a, propertyDomain: {values: [1, 2, 8, 9]}}
  - {identifier: b, propertyDomain: {values: [4, 5]}}
experiments:
  - $work
  - {actuatorIdentifier: custom_experiments, experimentIdentifier: rest}
E2
cat >part.yaml <<E2
entitySpace:
  - {identifier: b, propertyDomain: {values: [5, 4, 6]}}
  - {identifier: a, propertyDomain: {values: [3, 2]}}
experiments:
  - $work
E2
own="--experiments work.json,rest.json --store st"
is "a store of two operations" eval '"$sweep" s.yaml $own --name first --entities 7 >/dev/null && "$sweep" part.yaml $own --name second --entities 4 --repeat 2 >/dev/null'

# ---- show: two views, three ways to write them ----
show="$samples show s.yaml $own"
cat >measured <<'E2'
,identifier,generatorid,experiment_id,a,b,speed,steps,is_valid,heat
0,a.1-b.4,explicit_grid_sample_generator,custom_experiments.work-kind.odd,1,4,141.5,1,1,
1,a.1-b.4,explicit_grid_sample_generator,custom_experiments.rest,1,4,,,,0.1
2,a.1-b.5,explicit_grid_sample_generator,custom_experiments.work-kind.odd,1,5,151.5,1,1,
3,a.1-b.5,explicit_grid_sample_generator,custom_experiments.rest,1,5,,,,0.1
4,a.2-b.4,explicit_grid_sample_generator,custom_experiments.work-kind.odd,2,4,241.5,1,1,
5,a.2-b.4,explicit_grid_sample_generator,custom_experiments.rest,2,4,,,,0.2
6,a.2-b.5,explicit_grid_sample_generator,custom_experiments.work-kind.odd,2,5,251.5,1,1,
7,a.2-b.5,explicit_grid_sample_generator,custom_experiments.rest,2,5,,,,0.2
8,a.8-b.4,explicit_grid_sample_generator,custom_experiments.work-kind.odd,8,4,,,0,
9,a.8-b.4,explicit_grid_sample_generator,custom_experiments.rest,8,4,,,,0.8
10,a.8-b.5,explicit_grid_sample_generator,custom_experiments.work-kind.odd,8,5,,,0,
11,a.8-b.5,explicit_grid_sample_generator,custom_experiments.rest,8,5,,,,0.8
12,a.9-b.4,explicit_grid_sample_generator,custom_experiments.rest,9,4,,,,0.9
E2
cat >target <<'E2'
,identifier,generatorid,experiment_id,a,b,speed,steps,is_valid,heat
0,a.1-b.4,explicit_grid_sample_generator,custom_experiments.work-kind.odd,1,4,141.5,1,1,
1,a.1-b.4,explicit_grid_sample_generator,custom_experiments.rest,1,4,,,,0.1
2,a.1-b.5,explicit_grid_sample_generator,custom_experiments.work-kind.odd,1,5,151.5,1,1,
3,a.1-b.5,explicit_grid_sample_generator,custom_experiments.rest,1,5,,,,0.1
4,a.2-b.4,explicit_grid_sample_generator,custom_experiments.work-kind.odd,2,4,"[241.5, 242.5]","[1, 2]","[1, 1]",
5,a.2-b.4,explicit_grid_sample_generator,custom_experiments.rest,2,4,,,,0.2
6,a.2-b.5,explicit_grid_sample_generator,custom_experiments.work-kind.odd,2,5,"[251.5, 252.5]","[1, 2]","[1, 1]",
7,a.2-b.5,explicit_grid_sample_generator,custom_experiments.rest,2,5,,,,0.2
8,a.8-b.4,explicit_grid_sample_generator,custom_experiments.work-kind.odd,8,4,,,0,
9,a.8-b.4,explicit_grid_sample_generator,custom_experiments.rest,8,4,,,,0.8
10,a.8-b.5,explicit_grid_sample_generator,custom_experiments.work-kind.odd,8,5,,,0,
11,a.8-b.5,explicit_grid_sample_generator,custom_experiments.rest,8,5,,,,0.8
12,a.9-b.4,explicit_grid_sample_generator,custom_experiments.rest,9,4,,,,0.9
13,a.9-b.5,explicit_grid_sample_generator,custom_experiments.rest,9,5,,,,0.9
E2
is "measured: what this space's operations asked for, a row for each experiment, columns that some row has" same measured $show --output-format csv
is "... nothing is said of builds: each experiment has one" eval '[ ! -s said.err ]'
is "matching: of whoever measured it" same target $show --include matching --output-format csv
for gone in missing unmeasured sampled unsampled; do
    refused "--include $gone: samples missing lists what has no result" 2 "expected one of measured|matching" $show --include $gone
done
cat >json <<'E2'
[
  {"identifier": "a.2-b.4", "generatorid": "explicit_grid_sample_generator", "experiment_id": "custom_experiments.work-kind.odd", "a": 2, "b": 4, "speed": [241.5, 242.5], "steps": [1, 2], "is_valid": [1, 1]},
  {"identifier": "a.8-b.4", "generatorid": "explicit_grid_sample_generator", "experiment_id": "custom_experiments.work-kind.odd", "a": 8, "b": 4, "speed": null, "steps": null, "is_valid": 0}
]
E2
is "JSON: lists, null" same json $show --include matching --where 'b == 4 and a in [2, 8] and kind == "odd"' --output-format json
cat >console <<'E2'
# in all 2 rows: generatorid explicit_grid_sample_generator; experiment_id custom_experiments.work-kind.odd; a 1
b  speed
4  141.5
5  151.5
E2
is "for people: what all rows share above the table" same console $show --where 'a == 1 and kind == "odd"' --property speed
printf ',identifier,generatorid,experiment_id,a,b,beside\n0,a.1-b.4,explicit_grid_sample_generator,custom_experiments.work-kind.odd,1,4,0.25\n' >beside
is "--property also of what is not shown by default" same beside $show --property beside --limit 1 --output-format csv
is "--all-properties" says '^0,.*,141.5,1,0.25,1,$' $show --all-properties --output-format csv
aggregate() { is "--aggregate $1: $2" says "^4,a.2-b.4,.*,2,4,$2\$" $show --include matching --property speed --aggregate "$1" --output-format csv; }
aggregate mean 242.0
aggregate median 242.0
aggregate variance 0.5
aggregate std 0.7071067811865476
aggregate min 241.5
aggregate max 242.5
is "... its name is the end of the column's, as in ado" eval 'says "^,.*,speed-std,heat-std$" $show --property speed,heat --aggregate std --output-format csv'
is "--operation: of this one only" lines 14 $show --operation first --output-format csv
is "--where on an input that is no dimension: rows of experiments that lack it do not meet it" lines 7 $show --include matching --where 'kind == "odd" and b > 0' --output-format csv
is "--output-file: the same, and whole or not at all" eval '$show --output-format csv --output-file out.csv && cmp measured out.csv && ! $show --output-format csv --where "a +" --output-file none.csv 2>/dev/null && [ ! -e none.csv ]'
is "a space as the store recorded it" eval 'id=$(ls st/spaces | sed -n "s/\.yaml//p" | head -n 1) && "$samples" show $id $own --output-format csv >/dev/null && "$samples" show $id-abcdef $own --output-format csv >/dev/null'
is "where only others measured, it says so" eval 'sed "s/\[5, 4, 6\]/[4]/" part.yaml >other.yaml && says "operations on other spaces measured 2 of its entities; to see these, give --include matching" "$samples" show other.yaml $own'

# ---- show: conditions on what was measured, new columns, groups, order ----
table() { # OPTION... - CSV in target format, whoever measured it
    "$samples" show s.yaml $own --include matching --output-format csv "$@"
}
printf 'a,b,speed\n2,5,252.5\n2,4,242.5\n' >fast
is "--where chooses single results by what was measured; --columns, --sort" same fast table --where 'speed > 200 and steps == 2' --columns a,b,speed --sort -speed
is "... results without it are not wanted, and no error" lines 1 table --where 'speed < 0'
is "... None can be asked for" eval 'table --where "speed == None" --columns a,is_valid >shown && printf "a,is_valid\n8,0\n8,0\n" >wanted && grep -v "^[1-9],$" shown | diff wanted -'
is "--derive: new columns, of others, too; what lacks a value is empty" eval 'says "^1,4,0.1415,1.0$" table --derive "kilo = speed / 1000; slow = kilo < 0.15" --where "slow" --columns a,b,kilo,slow && [ $(wc -l <shown) = 2 ] && says "^8,$" table --derive "kilo = speed / 1000" --columns a,kilo'
is "... a condition is tested before columns that would fail" lines 5 table --where 'speed > 0' --derive 'x = 1 / (a - 8)'
is "... a semicolon in a text parts nothing" says '^0,.*,1.0$' table --derive 'x = kind != "a;b"' --where 'kind == "odd"'
is "... best takes it" says '^1,0.003968' "$samples" best s.yaml $own --include matching --derive 'pace = 1 / speed' --minimize pace --where 'pace < 1 and a == 2' --output-format csv
is "... plot takes it" says 'pace' "$samples" plot s.yaml $own --include matching --derive 'pace = 1 / speed' --property pace
printf 'a,count,speed-mean,steps-mean,is_valid-mean,heat-mean\n1,4,146.5,1,1,0.1\n2,4,247.0,1.5,1,0.2\n8,4,,,0,0.8\n9,2,,,,0.9\n' >groups
is "--group-by: count of rows, mean of all results of each property" same groups table --group-by a
printf 'b,a,count,speed-max\n5,2,2,252.5\n4,2,2,242.5\n5,1,2,151.5\n4,1,2,141.5\n' >groups
is "... by two columns, with --aggregate, sorted by its name or the property's" eval 'same groups table --group-by b,a --aggregate max --columns b,a,count,speed --sort -speed --where "a < 3" && same groups table --group-by b,a --aggregate max --columns b,a,count,speed-max --sort -speed-max --where "a < 3"'
is "... the group of the first row first" eval '[ "$(table --group-by experiment_id | cut -d, -f1,2 | paste -sd" ")" = "experiment_id,count custom_experiments.work-kind.odd,6 custom_experiments.rest,8" ]'
is "... as JSON" says '\{"a": 8, "count": 4, "is_valid-mean": 0\}' table --group-by a --columns a,count,is_valid --where 'a == 8' --output-format json
is "... by lists: equal ones alone" eval 'table --group-by steps --columns steps,count | sort >shown && printf ",10\n\"[1, 2]\",2\n1,2\nsteps,count\n" | sort | diff - shown'
is "--sort: numbers as numbers, empty cells last either way, ties as they came" eval '[ "$(table --columns a,b,speed --sort speed | cut -d, -f1,2 | paste -sd" ")" = "a,b 1,4 1,5 2,4 2,5 1,4 1,5 2,4 2,5 8,4 8,4 8,5 8,5 9,4 9,5" ] && [ "$(table --columns a,b --sort -speed,-b --limit 3 | paste -sd" ")" = "a,b 2,5 2,4 1,5" ]'
is "... texts as texts" eval '[ "$(table --sort -experiment_id --columns experiment_id --limit 1 | tail -n 1)" = custom_experiments.work-kind.odd ]'
printf 'b,steps\n4,\n5,\n' >empty
is "--columns has what is hidden by default, and an empty one that is named" eval 'table --columns beside,b --limit 1 | tail -n 1 | grep -qxF 0.25,4 && same empty table --columns b,steps --where "a == 9"'
is "rows: --derive, --where, --group-by" eval 'says "^2,4,1.5$" "$samples" show work --store st --derive "half = steps / 2" --where "half > 0.4" --group-by a --columns a,count,steps --output-format csv'
wide() { # COLUMNS - what a terminal of that width shows, into wide.COLUMNS
    COLUMNS=$1 script -qec "stty cols $1; $show --include matching --all-properties" /dev/null | tr -d '\r' >"wide.$1"
    [ "$(wc -L <"wide.$1")" -le "$1" ] && grep -q "^# in all 14 rows" "wide.$1" || { cat "wide.$1"; false; }
}
is "a terminal: no line is longer than it, at any width" eval 'wide 30 && wide 50 && wide 80 && wide 200'
is "... what does not fit is named, and what is empty" eval 'grep -q "^# too wide, left out" wide.30 && ! grep -q "too wide" wide.200 && $show --property beside,steps --where "a == 8" --columns a,steps | grep -q "^8 *$" && says "^# empty, left out: speed, steps, heat" table --where "a == 8 and kind == \"odd\"" --property speed,steps,is_valid,heat --output-format console'
is "... a file is not cut" eval 'COLUMNS=30 $show --include matching >shown && grep -q "custom_experiments.work-kind.odd .*151.5" shown'
is "one row is a list of names and values" eval 'says "^speed +141.5$" $show --where "a == 1 and b == 4 and kind == \"odd\"" && [ $(wc -l <shown) = 8 ]'

printf '#!/bin/sh\necho "{\\"heat\\": 1}" >"$TUNE_OUTPUT/report.json"\n' >one.sh && chmod +x one.sh
cat >pair.json <<'E2'
{"identifier": "pair", "actuator": "custom_experiments", "program": "./one.sh", "output": null,
 "inputs": [{"identifier": "v", "required": true, "domain": {}}], "targets": [{"identifier": "heat"}]}
E2
cat >pair.yaml <<'E2'
entitySpace:
  - {identifier: v, propertyDomain: {values: [[1, 1], [1, 2], [2, 1], [2, 2]]}}
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: pair}]
E2
cat >pairs <<'E2'
,identifier,generatorid,experiment_id,v,heat
0,"v.[1, 1]",explicit_grid_sample_generator,custom_experiments.pair,"[1, 1]",1.0
1,"v.[1, 2]",explicit_grid_sample_generator,custom_experiments.pair,"[1, 2]",1.0
2,"v.[2, 1]",explicit_grid_sample_generator,custom_experiments.pair,"[2, 1]",1.0
3,"v.[2, 2]",explicit_grid_sample_generator,custom_experiments.pair,"[2, 2]",1.0
E2
is "entities that differ in a list alone have a row each" eval '"$sweep" pair.yaml --experiments pair.json --store pair.st >/dev/null && same pairs "$samples" show pair.yaml --experiments pair.json --store pair.st --output-format csv'

# ---- rows, stats, trace, entity ----
cat >rows <<'E2'
a,b,speed,status,reason
8,4,,invalid,a is 8
8,5,,invalid,a is 8
9,4,,failed,exit code 1: nine is too much
E2
is "rows of a table as they are" same rows "$samples" show work --store st --columns a,b,speed,status,reason --where 'a > 7' --output-format csv
is "... by actuator.name, all columns, at most so many" eval 'lines 3 "$samples" show custom_experiments.work --store st --limit 2 --output-format csv && head -n 1 shown | grep -q "^uid,operation,space,.*,a,b,kind,log,speed,steps,beside,is_valid$"'
is "... of requests" lines 23 "$samples" show requests --store st --output-format csv
figure() { # WORD NAME VALUE - of samples status WORD
    awk -F, -v n="$2" -v v="$3" '$3 == n { found = $4 == v; print } END { exit !found }' "stats.$1"
}
stats() { # FILE WORD NAME=VALUE...
    file=$1 word=$2
    shift 2
    "$samples" status $word $own --output-format csv >"stats.$file" || return 1
    for pair; do figure "$file" "${pair%%=*}" "${pair#*=}" || { cat "stats.$file"; return 1; }; done
}
is "stats of the store" stats store "" ENTITIES=11 EXPERIMENTS=2
first() { sed -n 's/^operation,first,\(PLANNED\|MEASURED\|REPLAYED\|INVALID\|FAILED\),//p' stats.store | paste -sd" "; }
is "... what an operation asked for" [ "$(first)" = "14 11 3 2 1" ]
is "... its operations and spaces" eval '[ "$(cut -d, -f1 stats.store | sort | uniq -c | tr -s " " | tr "\n" ,)" = " 2 experiment, 1 kind, 14 operation, 2 space, 3 store," ]'
is "stats of a space, by ado's names" stats space s.yaml EXPERIMENTS=2 OPERATIONS=1 EXPLORE_OPERATIONS=1 MEASURED_ENTITIES=7 SIZE_OF_ENTITY_SPACE=8 UNMEASURED_ENTITIES=1 \
    MATCHING_ENTITIES=8 MATCHING_WITH_MEASUREMENTS=8 ENTITIES_WITH_ALL_MEASUREMENTS=6 ENTITIES_WITH_PARTIAL_MEASUREMENTS=1 MATCHING_ENTITIES_WITH_ALL_MEASUREMENTS=6
is "stats of an operation" stats operation first STATUS=finished TOTAL_RESULTS=14 SUCCESSFUL_RESULTS=13 FAILED_RESULTS=1 MEASURED_ENTITIES=7 TOTAL_REQUESTS=14 FAILED_REQUESTS=1 SUCCESSFUL_REQUESTS=13
is "... for people: what is equal in all rows stands above them" eval '"$samples" status first --store st >shown && grep -q "^# in all [0-9]* rows: kind operation; name first$" shown && grep -q "^TOTAL_RESULTS  *14$" shown'
is "... of the store, in few columns: a long text is cut, and its column stays" eval '"$samples" status --store st --width 60 >shown && grep -q "^store .* ENTITIES  *11$" shown && grep -q "^space .* FILE .*[^l]$" shown && [ $(wc -L <shown) -le 60 ]'
is "... of one with repeats: a request is an entity under an experiment" stats repeats second TOTAL_RESULTS=8 TOTAL_REQUESTS=4 SUCCESSFUL_REQUESTS=4 MEASURED_ENTITIES=4
cat >trace <<'E2'
0,custom_experiments.work-kind.odd,a.1-b.4,measured,valid,,True
0,custom_experiments.rest,a.1-b.4,measured,valid,,True
1,custom_experiments.work-kind.odd,a.1-b.5,measured,valid,,True
1,custom_experiments.rest,a.1-b.5,replayed,valid,,True
E2
is "trace: in its order, replays as such" eval '"$samples" show first --store st --output-format csv | awk -F, -v OFS=, "NR > 1 { print \$1, \$2, \$3, \$4, \$6, \$9, \$10 }" | head -n 4 | diff trace -'
is "... times as programs read them, and with what happened" says '^4,custom_experiments.work-kind.odd,a.8-b.4,measured,[0-9a-f]{32},invalid,20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z,[0-9.e-]+,a is 8,False$' "$samples" show first --store st --output-format csv
is "... whose time --where compares as a text" eval '"$samples" show first --store st --output-format csv >all && "$samples" show first --store st --output-format csv --where "time > \"2026-01-01\" and time < \"3\"" | diff all - && lines 1 "$samples" show first --store st --output-format csv --where "time < \"2026-01-01\""'
is "... --where, --limit" eval 'lines 4 "$samples" show first --store st --output-format csv --where "type == \"replayed\"" && lines 2 "$samples" show first --store st --output-format csv --where "status == \"failed\" and index == 6" && lines 3 "$samples" show first --store st --output-format csv --limit 2'
cat >page <<'E2'
# in all 5 rows: identifier b.5-a.2; generatorid explicit_grid_sample_generator; b 5; a 2
experiment                        target-property         values
custom_experiments.rest           heat                       0.2
custom_experiments.work-kind.odd  speed            252 ±0.71 (2)
custom_experiments.work-kind.odd  steps            1.5 ±0.71 (2)
custom_experiments.work-kind.odd  beside             0.25 ±0 (2)
custom_experiments.work-kind.odd  is_valid              1 ±0 (2)
E2
is "entity: its inputs and values, measured under another spelling, too" same page "$samples" show b.5-a.2 --store st
is "... --where, --sort, --limit" eval 'says "rest.heat.*,0.2,a.2-b.5," "$samples" show a.2-b.5 --store st --output-format csv --where "values < 1" --sort values && [ $(wc -l <shown) = 3 ] && lines 2 "$samples" show a.2-b.5 --store st --output-format csv --limit 1'
printf 'experiment,target-property,values\ncustom_experiments.rest,heat,0.9\ncustom_experiments.work-kind.odd,,\n' >failed
is "... an experiment without a value is there, too" eval 'same failed "$samples" show a.9-b.4 --store st --columns experiment,target-property,values --output-format csv'
is "... as rows for programs" says '^work-kind.odd-speed,custom_experiments.work-kind.odd,speed,"\[251.5, 252.5\]",a.2-b.5,' "$samples" show a.2-b.5 --store st --output-format csv
refused "an entity that is not there: the nearest" 2 "entity of that name (the nearest is a.2-b" "$samples" show a.2-b.7 --store st

# ---- best, compare ----
cat >best <<'E2'
rank,speed,deviation,results,margin_percent,better,experiment,a,b,identifier
1,252.0,0.7071067811865476,2,4.132231404958677,yes,work-kind.odd,2,5,a.2-b.5
2,242.0,0.7071067811865476,2,59.73597359735974,,work-kind.odd,2,4,a.2-b.4
E2
is "best: of entities by the mean, how much better, how sure" same best "$samples" best s.yaml $own --include matching --maximize speed --count 2 --output-format csv
lie="# speed (1/s) of all 2: lowest 141.5, quartiles 166.5, 191.5 and 216.5, highest 241.5"
is "... lowest, --where, and how the others lie" eval 'says "^ +1 +141.5 +41.4 +1$" "$samples" best s.yaml $own --minimize speed --where "b <= 4" && grep -qxF "$lie" shown && grep -q "^# in all 2 rows: results 1;.* b 4$" shown'
is "... likewise from the highest" eval 'says "^ +1 +241.5 +70.7 +2$" "$samples" best s.yaml $own --maximize speed --where "b <= 4" && grep -qxF "$lie" shown'
cat >best <<'E2'
a,rank,speed,deviation,results,margin_percent,better,experiment,b,identifier
1,1,151.5,,1,7.067137809187279,,work-kind.odd,5,a.1-b.5
2,1,252.0,0.7071067811865476,2,4.132231404958677,yes,work-kind.odd,5,a.2-b.5
E2
is "--per: the best for each value, against the next of that value" same best "$samples" best s.yaml $own --include matching --maximize speed --per a --output-format csv
is "... several for each, in the domain's order, and values without any are named" eval '"$samples" best s.yaml $own --include matching --minimize speed --per b,a --count 1 --columns b,a,speed --output-format csv --where "a != 2" >shown && printf "b,a,speed\n4,1,141.5\n5,1,151.5\n" | diff - shown && says "^# without a valid result that fits: 8, 9$" "$samples" best s.yaml $own --include matching --maximize speed --per a'
printf '1,141.5,\n2,252.0,4.132231404958677\n' >best
is "... one alone in its part has no next one" eval '"$samples" best s.yaml $own --include matching --maximize speed --per a --where "a == 2 or b == 4" --columns a,speed,margin_percent --output-format csv | sed 1d | diff best -'
cat >best <<'E2'
speed,speed_deviation,steps,steps_deviation,results,experiment,a,b,identifier
252.0,0.7071067811865476,1.5,0.7071067811865476,2,work-kind.odd,2,5,a.2-b.5
151.5,,1,,1,work-kind.odd,1,5,a.1-b.5
E2
is "two goals: the Pareto front, without what another one beats" same best "$samples" best s.yaml $own --include matching --maximize speed --minimize steps --output-format csv
is "... of each value, said as such, --count of them" eval 'says "^# speed \(1/s\): the highest; steps: the lowest$" "$samples" best s.yaml $own --include matching --maximize speed --minimize steps && grep -q "^# these rows are the Pareto front: each of the other 2 is in no property better than one of the 2 shown$" shown && lines 2 "$samples" best s.yaml $own --include matching --maximize speed --minimize steps --count 1 --output-format csv && says "^# these rows are the Pareto front: each of the other 2 is in no property better than one of 2, of which --count shows 1$" "$samples" best s.yaml $own --include matching --maximize speed --minimize steps --count 1 && lines 3 "$samples" best s.yaml $own --include matching --maximize speed --minimize steps --per a --output-format csv'
is "... equal ones are all on it; three goals" eval 'lines 5 "$samples" best s.yaml $own --include matching --maximize beside --minimize is_valid --output-format csv && lines 2 "$samples" best s.yaml $own --include matching --maximize speed,steps --minimize beside --output-format csv'
cat >compared <<'E2'
experiment,entity,property,a,b,b/a,lowest,highest,results_a,results_b,p,differs
work,a.2-b.4,speed,241.5,242.0,1.0020703933747412,,,1,2,,
work,a.2-b.5,speed,251.5,252.0,1.0019880715705765,,,1,2,,
E2
is "compare two operations: entities that both measured, however spelled" same compared "$samples" compare first second --store st --property speed --output-format csv
is "... rows that both have are told" eval 'grep -q "2 rows belong to both sides" said.err'
is "... in short, for people" says '^# b/a of work speed: 1.002 .geometric mean; entities: 2, ' "$samples" compare first second --store st --property speed

# ---- whole rows, import, merge ----
export_of() { "$samples" show "$1" --store "$2" --output-format csv --output-file "$3"; }
is "rows and import: every cell the same" eval 'export_of work st work.csv && "$samples" import csv work.csv --experiment work --experiments work.json --store back >shown && export_of work back again.csv && cmp work.csv again.csv && grep -q "^# 13 results in 13 rows: 13 were added to back, 0 were there already" shown'
is "... again: nothing comes twice" eval 'says ": 0 were added to back, 13 were there already" "$samples" import csv work.csv --experiment work --experiments work.json --store back && export_of work back again.csv && cmp work.csv again.csv'
is "what show writes is imported in either format, lists as several results, what entities share once" eval '
    tail -n +2 target | sed "1i$(head -n 1 target)" >target.csv
    for e in work rest; do "$samples" import csv target.csv --experiment $e --inputs a$([ $e = rest ] || echo ,b) --experiments work.json,rest.json --store shown.st >shown.$e || exit 1; done
    grep -q "^# 8 results in 6 rows: 8 were added" shown.work && grep -q "^# 8 results in 8 rows: 4 were added" shown.rest && grep -q "^# 4 of them are in the file more than once" shown.rest
    "$samples" show s.yaml --experiments work.json,rest.json --store shown.st --include matching --output-format csv | grep -v "a\.9-b\.5" | cut -d, -f2,5- | sort >a; grep -v "a\.9-b\.5" target | cut -d, -f2,5- | sort >b; diff a b'
is "... observed: an experiment in its columns" eval 'printf ",identifier,generatorid,a,b,work-kind.odd-speed,work-kind.odd-steps,work-kind.odd-is_valid,rest-heat\n0,a.1-b.4,gen,1,4,141.5,1,1,0.1\n1,a.2-b.4,gen,2,4,\"[241.5, 242.5]\",\"[1, 2]\",\"[1, 1]\",0.2\n" >observed.csv && says "^# 3 results in 2 rows: 0 were added to shown.st, 3 were there already" "$samples" import csv observed.csv --experiment work --experiments work.json --store shown.st'
cat >theirs.csv <<'E2'
,identifier,generatorid,experiment_id,model,size,ok,speed,count
0,size.1-model.x-y-ok.1,gen,their_actuator.theirs-depth.3,x-y,1,True,1.5,2
1,size.2.0-ok.0-model.z,gen,their_actuator.theirs-depth.3,z,2,False,"[2.5, 3.5]","[1, 3]"
2,size.2.0-ok.0-model.z,gen,their_actuator.others,z,2,False,9,9
E2
is "an experiment that nobody knows is made of the file, identifiers in whatever order" eval '"$samples" import csv theirs.csv --experiment theirs --store new >shown && grep -q "^# 3 results in 2 rows: 3 were added to new" shown && grep -q "new/experiments/theirs.json" shown && grep -q "^# left out: 1 rows or columns of other experiments" shown'
cat >theirs.yaml <<'E2'
entitySpace:
  - {identifier: size, propertyDomain: {domainRange: [1, 4], interval: 1}}
  - {identifier: model, propertyDomain: {values: [x-y, z]}}
  - {identifier: ok, propertyDomain: {variableType: BINARY_VARIABLE_TYPE}}
experiments: [{actuatorIdentifier: their_actuator, experimentIdentifier: theirs, parameterization: [{property: {identifier: depth}, value: 3}]}]
E2
cat >theirs.shown <<'E2'
,identifier,generatorid,experiment_id,size,model,ok,speed,count
0,size.1-model.x-y-ok.1,gen,their_actuator.theirs-depth.3,1,x-y,1,1.5,2
1,size.2-model.z-ok.0,gen,their_actuator.theirs-depth.3,2,z,0,"[2.5, 3.5]","[1, 3]"
E2
is "... and is looked at in a space of its own" same theirs.shown "$samples" show theirs.yaml --store new --include matching --output-format csv
is "... which nothing measures: its rows are known" eval '"$sweep" theirs.yaml --store new >said && grep -q "0 valid, 0 invalid, 0 failed, 2 known" said && grep -q "^# unknown  *10: the store has no row of them" said && grep -q "without a program on this machine" said'
is "the actuator is the file's" eval 'grep -q "\"actuator\":.*\"their_actuator\"" new/experiments/theirs.json && "$samples" import csv theirs.csv --experiment their_actuator.theirs --store full | grep -q "3 were added to full" && [ -e full/experiments/theirs.json ]'
is "... unless a flag says another" eval '"$samples" import csv theirs.csv --experiment theirs --actuator mine --store mine | grep -q "3 were added to mine" && grep -q "\"mine\"" mine/experiments/theirs.json'
sed 's/^\([0-9]\),[^,]*,/\1,0f\1e2d,/' theirs.csv >hashed.csv
is "identifiers that say nothing: the known experiment does" eval 'says ": 0 were added to new, 3 were there already" "$samples" import csv hashed.csv --experiment theirs --store new'
refused "... of an unknown one it must be said" 1 "hashed.csv:2: unknown which columns are inputs: the experiment is unknown, and no identifier" "$samples" import csv hashed.csv --experiment theirs --store fresh

# ---- import: columns by their names ----
# columns STORE <FILE - the rows come in, and are those of theirs.csv
columns() { cat >columns.csv; rm -rf "$1"; "$samples" import csv columns.csv --experiment theirs --experiments new/experiments --store "$1" >shown 2>&1 && "$samples" show theirs.yaml --experiments new/experiments --store "$1" --include matching --output-format csv --property speed | cut -d, -f2,5- >shown; cat shown; tail -n 2 shown | cmp -s - wanted; }
printf 'size.1-model.x-y-ok.1,1,x-y,1,1.5\nsize.2-model.z-ok.0,2,z,0,"[2.5, 3.5]"\n' >wanted
is "ado 2: no index, other columns first" columns c1 <<'E2'
speed,identifier,ok,experiment_id,model,size
1.5,size.1-model.x-y-ok.1,True,their_actuator.theirs-depth.3,x-y,1
"[2.5, 3.5]",size.2-model.z-ok.0,False,their_actuator.theirs-depth.3,z,2
E2
is "... a row for each entity" columns c2 <<'E2'
identifier,model,size,ok,theirs-depth.3-speed,theirs-depth.3-count
size.1-model.x-y-ok.1,x-y,1,True,1.5,2
size.2-model.z-ok.0,z,2,False,"[2.5, 3.5]","[1, 3]"
E2
is "... of an experiment that nobody knows, named with its actuator" eval '"$samples" import csv columns.csv --experiment their_actuator.theirs --store c5 && grep -q "\"their_actuator\"" c5/experiments/theirs.json && "$samples" show theirs.yaml --store c5 --include matching --output-format csv --property speed | tail -n 2 | cut -d, -f2,5- | cmp - wanted'
is "... or by a name with a point in it" eval 'sed "1s/theirs-/v1.0-/g" columns.csv >point.csv && "$samples" import csv point.csv --experiment v1.0 --store c6 && grep -q "\"replay\"" c6/experiments/v1.0.json'
refused "... and by one that it does not have" 1 "columns.csv:2: no column belongs to experiment their_actuator.others" "$samples" import csv columns.csv --experiment their_actuator.others --store c7
is "... the series of an operation" columns c3 <<'E2'
request_index,result_index,identifier,size,model,ok,theirs-depth.3-speed,valid
0,0,size.1-model.x-y-ok.1,1,x-y,True,1.5,True
1,0,size.2-model.z-ok.0,2,z,False,2.5,True
2,0,size.2-model.z-ok.0,2,z,False,3.5,True
E2
is "any other file: the experiment names inputs and targets" columns c4 <<'E2'
when,ok,model,size,depth,speed,who
monday,True,x-y,1,3,1.5,me
tuesday,False,z,2,3,2.5,me
tuesday,False,z,2,3,3.5,you
E2
is "... what it does not know is left out, by name" eval '"$samples" import csv columns.csv --experiment theirs --experiments new/experiments --store c4 | grep -q "^# left out, because the experiment has no such targets: when, who$"'
is "... with --inputs" eval 'says "^# 3 results in 2 rows: 3 were added to fresh" "$samples" import csv hashed.csv --experiment theirs --inputs model,size,ok --store fresh && says "x-y" "$samples" show 0f0e2d --store fresh'
printf 'name,boils,melts,note\nwater,100,0,"all, ""wet"""\n"tin (Sn)",2602,231.93,\n' >plain.csv
is "any other file, with --inputs and --property" eval '"$samples" import csv plain.csv --experiment points --inputs name --property boils,melts --store fresh >shown && printf "entity,name,boils,melts\nname.water,water,100,0.0\nname.tin (Sn),tin (Sn),2602,231.93\n" >wanted && same wanted "$samples" show points --store fresh --columns entity,name,boils,melts --output-format csv'
units_of() { sed -n 's/.*"\(identifier\|unit\)":.*"\(.*\)".*/\2/p' tap.st/experiments/tap.json | tr '\n' ' '; }
is "a heading \"name [unit]\" gives a unit" eval 'rm -rf tap.st; printf "lr,score [tokens/s],n\n1,2.5,4\n" >tap.csv; "$samples" import csv tap.csv --experiment tap --inputs lr --store tap.st && units_of >got; cat got; [ "$(cat got)" = "tap lr score tokens/s n " ]'
# columns that ado writes beside the figures: none of them is a target
for fixed in identifier generatorid experiment_id request_index result_index valid; do
    is "--property beside a column $fixed" eval 'rm -rf ado.st; printf "$fixed,lr,score,rest\n$([ $fixed = experiment_id ] && echo replay.e || echo lr.1),1,1.5,2\n" >ado.csv; "$samples" import csv ado.csv --experiment e --inputs lr --property score --store ado.st >shown; cat shown; grep -q "^# 1 results in 1 rows: 1 were added" shown && [ "$("$samples" show e --store ado.st --columns lr,score --output-format csv | tail -n 1 | tr -d "\r")" = 1,1.5 ] && ! grep -q rest ado.st/experiments/e.json'
done
is "--property of an export of ours: that figure alone" eval '"$samples" show e --store ado.st --output-format csv >own.csv && sed "1s/score/score,rest/; 2s/$/,7/" own.csv | tr -d "\r" >two.csv && sed "s/\"identifier\":.\"score\"/\"identifier\": \"rest\"}, {&/" ado.st/experiments/e.json >e.json && "$samples" import csv two.csv --experiment e --experiments e.json --property score --store one.st && [ "$("$samples" show e --store one.st --columns score,rest --output-format csv | tail -n 1 | tr -d "\r")" = 1.5, ]'
# cells without a number: the column stays one of numbers
for word in "" NA NaN null None; do
    is "a column of numbers with \"$word\" in it is one, and is compared" eval 'rm -rf holes; printf "lr,score\n0.5,1\n0.25,2\n$word,3\n" >holes.csv; "$samples" import csv holes.csv --experiment e --inputs lr --property score --store holes >shown; cat shown; grep -q "^# 1 cell without a number" shown &&
        chosen() { "$samples" show e --store holes --where "$1" --columns score --output-format csv | tail -n +2 | tr "\r\n" "  "; } &&
        chosen "lr < 0.3" && [ "$(chosen "lr < 0.3" | tr -d " ")" = 2 ] && [ "$(chosen "lr == None" | tr -d " ")" = 3 ] && [ "$(chosen "not lr < 0.3" | tr -s " ")" = "1 3 " ] && [ "$(chosen "lr * 2 > 0.7 or lr in [0.25]" | tr -s " ")" = "1 2 " ]'
done
is "... sorted, those without one come last" eval '"$samples" show e --store holes --sort -lr --columns lr --output-format csv | tr -d "\r" >shown; cat shown; printf "lr\n0.5\n0.25\n\n" | cmp - shown'
is "... out and in again: every cell the same" eval '"$samples" show e --store holes --output-format csv >holes.out && "$samples" import csv holes.out --experiment e --experiments holes/experiments --store holes.back && "$samples" show e --store holes.back --output-format csv | cmp - holes.out'
is "... a space that does not name the input has the row without it" eval 'printf "entitySpace: [{identifier: k, propertyDomain: {values: [1]}}]\nexperiments: [{actuatorIdentifier: replay, experimentIdentifier: e}]\n" >holes.yaml; printf "k,lr,score\n1,0.5,1\n1,,3\n" >holes.csv; rm -rf holes; "$samples" import csv holes.csv --experiment e --inputs k,lr --property score --store holes && "$samples" show holes.yaml --store holes --include matching --output-format csv | grep -q "^0,k.1,,replay.e,1,3"'
is "merge: all rows, requests and records" eval '"$samples" merge st --store merged >shown && "$samples" merge new --store merged >>shown && grep -q "^# 17 rows of st were added to merged" shown && grep -q "^# 3 rows of new" shown && same measured "$samples" show s.yaml --experiments work.json,rest.json --store merged --output-format csv && same theirs.shown "$samples" show theirs.yaml --store merged --include matching --output-format csv && export_of work merged again.csv && cmp work.csv again.csv'
is "... a record that is there stays" eval 'record=$(ls merged/experiments/*.json | head -n 1) && echo >>"$record" && cp "$record" stays.json && "$samples" merge st --store merged >shown && cmp "$record" stays.json'
is "... again: nothing" says '^# 0 rows of st were added to merged' "$samples" merge st --store merged
is "compare two stores" says '^work,a.1-b.4,speed,141.5,141.5,1.0,,,1,1,,$' "$samples" compare st merged --output-format csv
# Every row once more, faster by 100, of other weights; the last columns are weights_hash, data_hash, core_share, stable, a, b, kind, log, speed, ...
awk -F, -v OFS=, 'NR > 1 { $1 = "0f1e2d" substr($1, 7); $(NF - 11) = "feed"; if ($(NF - 3) != "") $(NF - 3) += 100 } 1' work.csv >moved.csv
is "compare what is repeated: whether it differs by more than its spread" eval '"$samples" import csv moved.csv --experiment work --experiments work.json --store moved >/dev/null &&
    says "^work,a.2-b.4,speed,242.0,342.0,1.413[0-9]*,1.396[0-9]*,1.430[0-9]*,2,2,[0-9.e-]+,yes\$" "$samples" compare st moved --property speed --output-format csv && says "^work,a.2-b.4,steps,1.5,1.5,1.0,[0-9.]+,[0-9.]+,2,2,1.0,no\$" "$samples" compare st moved --output-format csv'
mixed() { rm -rf both && cp -r st both && "$samples" import csv "$1" --experiment work --experiments work.json --store both >/dev/null && "$samples" show s.yaml --experiments work.json,rest.json --store both --include matching >/dev/null 2>said.err; }
is "weights that are mixed are told" eval 'mixed moved.csv && [ "$(cat said.err)" = "samples: some entities have results from different weights" ]'
is "... and nothing else" eval 'sed s/,feed,/,,/ moved.csv >again.csv && mixed again.csv && [ ! -s said.err ]'
if [ -r "$here/../shared/data/ado/expected_columns.csv" ]; then
    ado=$here/../shared/data/ado
    ado_round() { # FILE - imported and shown it is ado's own again
        rm -rf ado && "$samples" import csv "$1" --experiment finetune_full_benchmark-v1.0.0 --store ado >/dev/null &&
            same "$ado/expected_columns.csv" "$samples" show "$ado/space.yaml" --store ado --include matching --output-format csv
    }
    is "ado's rows, imported, shown: the same file" ado_round "$ado/expected_columns.csv"
    awk -F, -v OFS=, 'NR > 1 { $2 = "batch_size." $8 "-model_max_length." $7 "-model_name." $5 "-number_gpus." $6 } 1' "$ado/expected_columns.csv" >sorted.csv
    is "... with sorted identifiers" ado_round sorted.csv
    awk -F, -v OFS=, 'NR > 1 { $2 = "c0ffee" NR } 1' "$ado/expected_columns.csv" | sed 's/v1.0.0-fms/v1.0.0@v1-fms/' >hashed.csv
    is "... with hashed ones, and versions" ado_round hashed.csv
else
    skip "ado's own rows" "no ../shared/data/ado"
fi

# ---- plot ----
plot() { # NAME - of space NAME.yaml and store NAME.st, into NAME.svg and NAME.txt
    of=$1
    shift
    LC_ALL=C "$samples" plot "$of.yaml" --experiments points.json --store "$of.st" --include matching --svg "$of.svg" --width 80 "$@" >"$of.txt" 2>said.err || { cat said.err; return 1; }
    [ "$(awk 'length > 79' "$of.txt" | wc -l)" = 0 ] || { cat "$of.txt"; return 1; }
    ! command -v xmllint >/dev/null 2>&1 || xmllint --noout "$of.svg"
}
holds() { # FILE TEXT... - the file has all of them
    file=$1
    shift
    for text; do grep -qF -- "$text" "$file" || { echo "$text is missing"; cat "$file"; return 1; }; done
}
cat >points.json <<'E2'
{"identifier": "points", "actuator": "replay", "description": "", "inputs": [
  {"identifier": "size", "required": true, "domain": {"domainRange": [1, 100000], "interval": 1}},
  {"identifier": "length", "default": 512, "domain": {"domainRange": [1, 100000], "interval": 1}},
  {"identifier": "model", "default": "a", "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}},
  {"identifier": "rate", "default": 0.5, "domain": {"domainRange": [0, 1]}},
  {"identifier": "flash", "default": true, "domain": {"variableType": "BINARY_VARIABLE_TYPE"}}],
 "targets": [{"identifier": "speed", "unit": "tokens/s"}, {"identifier": "bytes", "unit": "bytes", "whole": true, "optional": true}]}
E2
points() { # NAME DIMENSION... <CSV - a store and a space of these dimensions
    of=$1
    shift
    cat >"$of.csv"
    { echo "entitySpace:"
        for d; do
            case $d in
            model) echo "  - {identifier: model, propertyDomain: {values: [a, b, meta-llama/Llama-3.1-8B-Instruct-of-a-very-long-name & more]}}" ;;
            rate) echo "  - {identifier: rate, propertyDomain: {domainRange: [0, 1]}}" ;;
            flash) echo "  - {identifier: flash, propertyDomain: {variableType: BINARY_VARIABLE_TYPE}}" ;;
            *) echo "  - {identifier: $d, propertyDomain: {domainRange: [1, 20000], interval: 1}}" ;;
            esac
        done
        echo "experiments: [{actuatorIdentifier: replay, experimentIdentifier: points}]"; } >"$of.yaml"
    "$samples" import csv "$of.csv" --experiment points --experiments points.json --inputs "$(echo "$@" | tr ' ' ,)" --store "$of.st"
}
is "one dimension: curves" eval 'points one size <<E2 && plot one --property speed,bytes
size,speed,bytes
1,100,1000
2,190,2000
8,"[500, 700]","[8000, 8000]"
E2
holds one.txt "speed, tokens/s" "mean of several results; the bars go from the lowest to the highest" "size" "600 +" "bytes, bytes" && holds one.svg ">speed<" "tokens/s" "600 at 8, 500 to 700</title>" ">bytes<" ">size<" "class=\"bar c0\""'
is "one point" eval 'points point size <<E2 && plot point --property speed
size,speed
4,7.5
E2
holds point.txt "speed, tokens/s" "7.5 +" && [ $(grep -c "<circle" point.svg) = 1 ]'
is "names along the axis, long ones" eval 'points names model size <<E2 && plot names --property speed
model,size,speed
a,1,"[1, 2]"
b,1,3
meta-llama/Llama-3.1-8B-Instruct-of-a-very-long-name & more,1,"[5, 6, 7]"
E2
holds names.txt "a a   b b" "c meta-llama/Llama-3.1-8B-Instruct-of-a-very-long-name & more" "size 1; mean" && holds names.svg "meta-llama/Llama-3.1-8B-Instruct-of-a-very-long-name &#38; more</title>"'
is "two dimensions: a heat map with what is missing, spread and best" eval 'points two size length <<E2 && plot two --maximize speed
size,length,speed
1,512,"[100, 104]"
2,512,200
1,1024,90
E2
holds two.txt "speed, tokens/s" "length" "   2     200*       -" "   1   102 +-2%     90" "*: the highest   -: missing" && holds two.svg "<title>size 1, length 512: 102 tokens/s, 100 to 104 in 2 results</title>" ">±2%<" ">missing<" "not measured"'
is "... as curves over the one, a curve for each value of the other" eval 'plot two --property speed --x size && holds two.txt "* length 512   o length 1024" && holds two.svg ">length 512<" ">length 1024<"'
five() { awk 'BEGIN { print "size,length,model,rate,flash,speed"; for (s = 1; s < 5; s++) for (l = 512; l < 2048; l *= 2) for (m = 0; m < 2; m++) for (r = 1; r < 3; r++) for (f = 0; f < 2; f++)
    print s "," l "," (m ? "b" : "a") "," r / 4 "," (f ? "True" : "False") "," s * 100 + l / 512 + f }'; }
is "more dimensions: parallel coordinates; in a terminal what each value does, all else equal" eval 'five | points five size length model rate flash && plot five --maximize speed && holds five.txt "dimension  from  to " "size       1     2      1.98   1.971     1.99     16  6.6e-36  yes" "# ratio: the geometric mean over the pairs" && holds five.svg ">model<" ">rate<" ">flash<" ">tokens/s<" ">thick: the best 5<" && [ $(grep -c "<path class=.row" five.svg) = 64 ]'
is "... fewer where --where holds them" eval 'plot five --property speed --where "model == \"a\" and rate == 0.25 and flash" && holds five.txt "model a, rate 0.25, flash 1" "   4   402   403"'
is "10,000 points: a curve, smoothed" eval 'awk "BEGIN { print \"size,speed\"; for (i = 1; i <= 10000; i++) print i \",\" 1000 + i / 10 + i * 7919 % 613 }" | points many size && plot many --property speed && holds many.txt "10000 points, smoothed where they are scattered" && [ $(grep -c "<circle" many.svg) = 0 ] && [ $(wc -c <many.svg) -lt 200000 ]'
is "colours, truly where the terminal says so" eval 'COLORTERM=truecolor "$samples" plot two.yaml --experiments points.json --store two.st --include matching --property speed --color always | grep -q "48;2;" && COLORTERM= "$samples" plot two.yaml --experiments points.json --store two.st --include matching --property speed --color always | grep -q "48;5;"'
in_terminal() { script -qec "$*" /dev/null; }
is "... in a terminal by themselves, not with NO_COLOR, nor in a file" eval 'two="$samples plot two.yaml --experiments points.json --store two.st --include matching --property speed" && unset NO_COLOR &&
    in_terminal $two | grep -q "48;5;" && ! in_terminal env NO_COLOR=1 $two | grep -q "48;5;" && in_terminal $two --output-file two.out && ! grep -q "48;5;" two.out'
is "--svg /dev/stdout: the picture alone" eval '"$samples" plot two.yaml --experiments points.json --store two.st --include matching --property speed --svg /dev/stdout | head -c 4 | grep -q "<svg"'
two="$samples plot two.yaml --experiments points.json --store two.st --include matching"
refused "plot of nothing" 2 "plot needs a property: give --property PROPERTY" $two
refused "... of a property that is none" 2 "there is no property sped (the nearest is speed)" $two --property sped
refused "... over a dimension that is none" 2 "there is no dimension sise (the nearest is size)" $two --property speed --x sise
refused "... twice over the same" 2 "the same dimension" $two --property speed --x size --series size
refused "... with curves for each value of the only one that varies" 2 "needs a dimension for the x axis" "$samples" plot one.yaml --experiments points.json --store one.st --include matching --property speed --series size
refused "... of what nobody has" 1 "no valid result has bytes" $two --property bytes
refused "... in place of another file" 2 "is no SVG picture" $two --property speed --svg two.csv

# ---- check ----
is "check: nothing is wrong" says 'no problems found' "$samples" check --store merged
cp -r merged broken && file=$(ls broken/*.h5 | head -n 1) && printf 'no HDF5' >"$file"
is "check of a broken file: named, exit 1, the others are read" eval '"$samples" check --store broken >shown; [ $? = 1 ] && grep -qF "$(basename "$file")" shown && ! grep -q "no problems found" shown'
refused "show of it: an error, not fewer rows" 1 "$(basename "$file")" "$samples" show s.yaml --experiments work.json,rest.json --store broken
cp -r st twice && cp "$(ls twice/*.h5 | head -n 1)" twice/29991231T235959.000000Z-host-1.h5
# overwrite FILE OFFSET SIZE BYTE - with that byte, as tr knows it
overwrite() { head -c "$3" /dev/zero | tr '\0' "$4" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null; }
# damaged COUNT - that many damaged copies of a store: show prints what it prints of the whole one, or refuses the file by name
damaged() {
    all="s.yaml --experiments work.json,rest.json --include matching --all-properties --output-format csv"
    "$samples" show $all --store st >whole.csv 2>said.err || return 1
    file=$(ls st/*.h5 | head -n 1) n=0 refusals=0
    cp -r st hurt
    size=$(wc -c <"$file")
    while [ $n -lt "$1" ]; do
        n=$((n + 1)) length=$((1 << n % 10)) fill=x
        [ $((n % 3)) != 0 ] || fill='\0'
        [ $((n % 3)) != 1 ] || fill='\377'
        cp "$file" hurt/
        overwrite "hurt/${file##*/}" $((n * 7919 % (size - length))) $length "$fill"
        if "$samples" show $all --store hurt >hurt.csv 2>said.err; then
            cmp whole.csv hurt.csv || { echo "damage $n is read"; return 1; }
        else
            grep -q "${file##*/}: " said.err || { cat said.err; return 1; }
            refusals=$((refusals + 1))
        fi
    done
    [ $refusals -gt $(($1 / 2)) ]
}
is "60 damaged files: refused by name, or the same rows" damaged 60
is "check: each file with its rows, and that they have checksums" says '\.h5: [0-9]+ rows?, checksummed$' "$samples" check --store st
is "check: rows that are there twice" eval '"$samples" check --store twice >shown; [ $? = 1 ] && grep -q "29991231T235959" shown'

# ---- what users write wrongly ----
refused "a store that is not there" 2 "nowhere" "$samples" status --store nowhere
mkdir bare
refused "a folder that is none" 2 "bare is not a sample store" "$samples" status --store bare
cp -r st newer && sed -i 's/"schema_version": *1/"schema_version": 2/' newer/store.json
refused "a store of a newer schema" 1 "schema" "$samples" status --store newer
refused "no space" 2 "show needs the name of one of these" "$samples" show --store st
refused "a space that is not there" 2 "gone.yaml" "$samples" show gone.yaml --store st
id=$("$samples" status s.yaml $own --output-format csv | sed -n "2s/^[a-z]*,\(space-[0-9a-f]*\),.*/\1/p")
is "a recorded space by its whole id; another store's is told" eval '"$samples" show $id-$(sed -n "s/.*\"id\":[^\"]*\"\([0-9a-z]*\)\".*/\1/p" st/store.json) $own >/dev/null 2>said.err && [ ! -s said.err ] && "$samples" show $id-0a0a0a $own >/dev/null 2>said.err && grep -q "^samples: $id-0a0a0a is the id of this space in another store" said.err'
refused "an id with more behind it" 2 "there is no space ${id}x" "$samples" show ${id}x $own
is "people read times, programs numbers" eval '"$samples" show work --store st --columns started | sed -n 2p | grep -qE "^2[0-9]{3}-[0-9]{2}-[0-9]{2} [0-9:]{8}" && "$samples" show work --store st --columns started --output-format csv | sed -n 2p | grep -qE "^[0-9]+\.[0-9]+$"'
is "some rows" eval '"$samples" show work --store st --where "a > 7" --output-format csv >some.csv && [ $(wc -l <some.csv) = 4 ]'
refused "a space that was never recorded" 2 "there is no space ${id%?}_ (the nearest is space-" "$samples" show "${id%?}_" --store st
refused "a command that is none: the nearest" 2 "show" "$samples" shwo --store st
refused "a property that is none: the nearest" 2 "there is no property sped (the nearest is speed); there are: speed, steps, beside, is_valid, heat" $show --property sped
refused "an expression that is none" 2 "--where" $show --where 'a +'
refused "an expression over what is neither input nor property" 2 'unknown name "sped"; the nearest is "speed"' $show --where 'sped > 2'
refused "a new column over what is none: the nearest" 2 '--derive y: unknown name "sped"; the nearest is "speed"' $show --derive 'x = speed; y = sped + x'
refused "a new column with the name of another" 2 "a column speed exists already" $show --derive 'speed = 2'
refused "... twice" 2 "defines x twice" $show --derive 'x = 2; x = a'
refused "... without a name" 2 "expected NAME = EXPRESSION" $show --derive 'a == 2'
refused "... that cannot be computed" 2 "--derive x: speed / 0: division by zero" $show --derive 'x = speed / 0'
refused "... where there are none" 2 "show takes --derive only for a space or an experiment, not for first" "$samples" show first --store st --derive 'x = 1'
refused "a new column of a table over what is none" 2 '--derive y: unknown name "sped"' "$samples" show work --store st --derive 'y = sped'
refused "to sort by what is none: the nearest" 2 "there is no column sped (the nearest is speed)" $show --sort -sped
refused "groups by what is none" 2 "there is no column c (the nearest is a); there are: identifier" $show --group-by c,a
refused "an operation of another space" 2 "operation second did not measure this space" $show --operation second
refused "an operation that is none" 2 "there is no operation third" $show --operation third
printf 'entitySpace: [{identifier: x, propertyDomain: {domainRange: [0, 1]}}]\nexperiments: [{actuatorIdentifier: mock, experimentIdentifier: test-experiment}]\n' >open.yaml
refused "rows of no experiment" 2 "entity of that name (the nearest is work)" "$samples" show wrk --store st
refused "rows without saying of which" 2 "show needs the name of one of these" "$samples" show --store st
refused "a column that is none" 2 "there is no column sped" "$samples" show work --store st --columns a,sped
refused "trace of nothing" 2 "show needs the name of one of these" "$samples" show --store st
refused "a condition over what trace has not" 2 'unknown name "kind"' "$samples" show first --store st --where 'kind == 1'
refused "a word too many" 2 'unexpected argument "part.yaml": show takes 1 word' $show part.yaml
refused "an entity without a name" 2 "show needs the name of one of these" "$samples" show --store st
refused "best of what" 2 "--maximize PROPERTY or --minimize PROPERTY" "$samples" best s.yaml $own
refused "... for each value of what is no dimension" 2 "there is no dimension kind" "$samples" best s.yaml $own --maximize speed --per kind
refused "... of one property twice" 2 "property speed is given twice" "$samples" best s.yaml $own --maximize speed --minimize speed
refused "... of too many" 2 "more than 3 properties" "$samples" best s.yaml $own --maximize speed,steps --minimize beside,is_valid
refused "best by what is no middle" 2 "must be one of these, not max" "$samples" best s.yaml $own --maximize speed --aggregate max
refused "compare one" 2 "compare needs two sides" "$samples" compare first --store st
refused "compare entities" 2 "there is no folder x/y; expected a configuration (NAME=VALUE,...), the folder of a store" "$samples" compare x/y first --store st
refused "compare with what has no rows" 1 "host=nobody has no valid rows" "$samples" compare first host=nobody --store st
refused "import of what" 2 "samples import csv FILE" "$samples" import csv work.csv --store back
refused "merge of what" 2 "samples merge FROM" "$samples" merge --store back
bad() { # NAME CODE TEXT [OPTION...] <FILE - an import that is refused, and leaves nothing
    name=$1 code=$2 text=$3
    shift 3
    cat >bad.csv
    refused "import: $name" "$code" "$text" "$samples" import csv bad.csv --experiment "${bad_of:-theirs}" --store bad "$@"
    is "... nothing came" eval '[ -z "$(find bad -name "*.h5" -o -name theirs.json)" ]'
}
bad "a file that is empty" 1 "bad.csv: the file is empty" </dev/null
bad "a heading alone" 1 "bad.csv: the file has a heading but no rows" <<'E2'
,identifier,generatorid,experiment_id,a,speed
E2
bad "another kind of file" 1 "bad.csv:2: unknown which columns are inputs" <<'E2'
day,temperature
1,20
E2
bad "a column twice" 1 "bad.csv:1: two columns have the name a" <<'E2'
,identifier,generatorid,experiment_id,a,a,speed
0,a.1,g,x.theirs,1,1,2
E2
bad "a row that is too short, by its line" 1 "bad.csv:3: the row has 6 fields, but the heading has 7" <<'E2'
,identifier,generatorid,experiment_id,a,speed,steps
0,a.1,g,x.theirs,1,2,3
1,a.2,g,x.theirs,2,2
E2
bad "a figure that is none" 1 'bad.csv:3: speed: "fast" is neither a number' <<'E2'
,identifier,generatorid,experiment_id,a,speed
0,a.1,g,x.theirs,1,2
1,a.2,g,x.theirs,2,fast
E2
bad "lists of different lengths" 1 "have 3 results, but speed has 2, so they cannot be matched" <<'E2'
,identifier,generatorid,experiment_id,a,speed,steps
0,a.1,g,x.theirs,1,"[1, 2]","[1, 2, 3]"
E2
bad "rows of other experiments only" 1 "none of its rows is of experiment theirs; the first is of x.others" <<'E2'
,identifier,generatorid,experiment_id,a,speed
0,a.1,g,x.others,1,2
E2
bad "an input that is none" 2 "bad.csv:2: there is no column aa, but the command names it as an input (the nearest is a)" --inputs aa <<'E2'
,identifier,generatorid,experiment_id,a,speed
0,a.1,g,x.theirs,1,2
E2
bad "a target that is none" 2 "there is no column sped, but the command names it as a target (the nearest is speed)" --property sped <<'E2'
,identifier,generatorid,experiment_id,a,speed
0,a.1,g,x.theirs,1,2
E2
printf ',identifier,generatorid,experiment_id,a,speed\n0,a.1,g,x.theirs,1,\0022\000\n' >nul.csv
bad "a NUL byte" 1 "bad.csv:2: a NUL byte" <nul.csv
bad "a quote that is not closed" 1 "bad.csv:2: a quote that is not closed" <<'E2'
,identifier,generatorid,experiment_id,a,speed
0,"a.1,g,x.theirs,1,2
E2
bad_of=work
bad "a value outside the experiment's domain" 1 'bad.csv:2: input a of experiment work cannot be "100"' --experiments work.json <<'E2'
,identifier,generatorid,experiment_id,a,speed
0,a.100,g,custom_experiments.work,100,2
E2
bad "a parameter outside its domain" 1 'bad.csv:2: input b of experiment work cannot be "1000"' --experiments work.json <<'E2'
,identifier,generatorid,experiment_id,a,speed
0,a.1,g,custom_experiments.work-b.1000,1,2
E2
bad "a required input that has no column" 1 "experiment work needs the input a" --experiments work.json <<'E2'
,identifier,generatorid,experiment_id,b,speed
0,b.1,g,custom_experiments.work,1,2
E2
bad "a dimension that the experiment does not have" 1 "work has no input c" --experiments work.json <<'E2'
,identifier,generatorid,experiment_id,a,c,speed
0,a.1-c.1,g,custom_experiments.work,1,1,2
E2
bad "a unit that is not the experiment's" 1 'bad.csv: the unit of speed is "m/s" in this file, but in the experiment work it is "1/s"' --experiments work.json <<'E2'
a,speed [m/s]
1,2
E2
bad "an export with a uid that is none" 1 'bad.csv:2: uid: "12" is not a uid' --experiments work.json <<'E2'
uid,experiment,entity,status,a,speed
12,custom_experiments.work,a.1,valid,1,2
E2
finish
