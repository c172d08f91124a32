#!/bin/sh
# test_samples_words.sh - build/samples: what its words mean, which build answers, which option goes with which command, and what
# is said where groups of results do not compare.
. tests/tap.sh
cd "$tmp" || exit 1
LC_ALL=C.UTF-8
export LC_ALL
samples=$BUILD/samples
says() { # TEXT COMMAND... - it succeeds and prints a line that matches, on either stream
    text=$1
    shift
    "$@" >shown 2>&1 && grep -qE -e "$text" shown || { cat shown; false; }
}
cells() { "$@" --output-format csv 2>said.err | sed 1d | paste -sd" "; }

# ---- a store of three builds: of a full grid by the first, and parts of it by the others ----
cat >work.json <<'E2'
{"identifier": "work", "actuator": "replay", "description": "", "inputs": [
  {"identifier": "batch", "required": true, "domain": {"domainRange": [1, 100], "interval": 1}},
  {"identifier": "model", "required": true, "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}},
  {"identifier": "rate", "default": 0.5, "domain": {"domainRange": [0, 1]}}],
 "targets": [{"identifier": "speed", "unit": "tokens/s"}, {"identifier": "loss", "unit": "", "optional": true}]}
E2
cat >s.yaml <<'E2'
entitySpace:
  - {identifier: batch, propertyDomain: {values: [1, 2, 4]}}
  - {identifier: model, propertyDomain: {values: [small, large]}}
experiments: [{actuatorIdentifier: replay, experimentIdentifier: work}]
E2
# rows BUILD DAY OPERATION - rows of "batch,model,speed" as the store's own table, of that build, of 2026-11-DAY
rows() {
    awk -F, -v OFS=, -v build="$1" -v start="$(date -u -d "2026-11-$2" +%s)" -v operation="$3" '
        BEGIN { print "uid,operation,space,request_index,repeat,experiment,entity,generator,started,measurement_s,status,reason,host,host_class,build_id,weights_hash,data_hash,core_share,stable,batch,model,rate,speed,loss" }
        { printf "%s%026d,%s,space-000000,%d,0,replay.work,batch.%s-model.%s,explicit_grid_sample_generator,%d,1,%s,%s,host%s,class %s,%s,,,,,%s,%s,0.5,%s,\n", substr(build "000000", 1, 6), NR, operation, NR, $1, $2, start + NR, $3 == "" ? "failed" : "valid", $3 == "" ? "no luck" : "", build, build, build, $1, $2, $3 }'
}
add() { "$samples" import csv "$1" --experiment work --experiments work.json --store st >/dev/null 2>said.err || { cat said.err; return 1; }; }
printf '%s\n' 1,small,100 2,small,150 4,small,200 1,large,10 2,large,15 4,large,20 | rows a1a1a1 10 first >first.csv
printf '%s\n' 1,small,50 2,small,75 4,small,100 1,large,5 2,large,7.5 4,large, | rows b2b2b2 12 second >second.csv
printf '%s\n' 4,small,400 4,small,404 1,small,100 1,small,101 | rows c3c3c3 14 third >third.csv
is "a store of three builds" eval 'add first.csv && add second.csv && add third.csv'
own="--experiments work.json --store st"
ask() { command=$1; shift; "$samples" "$command" s.yaml $own --include matching "$@"; }

# ---- the newest build answers ----
is "best: of the build that measured last" eval '[ "$(cells ask best --maximize speed --columns batch,model,speed,results)" = "4,small,402.0,2 1,small,100.5,2" ]'
is "... and it says which, and what it left out" eval 'grep -q "^samples: of 3 builds, build c3c3c3 is shown, with 4 results, the last of 2026-11-14; 11 results of other builds are left out: to see them, give --build all, previous or ID$" said.err'
is "--build previous: the one before" eval '[ "$(cells ask best --build previous --maximize speed --count 1 --columns batch,model,speed)" = "4,small,100.0" ]'
is "--build ID: as it begins" eval '[ "$(cells ask best --build a1 --maximize speed --count 1 --columns batch,model,speed,results)" = "4,small,200.0,1" ]'
is "--build all: all together, and that is said" eval '[ "$(cells ask best --build all --maximize speed --count 1 --columns batch,results)" = "4,4" ] && grep -q "3 builds, so a difference can come from those" said.err'
is "a --where that names the build chooses itself" eval '[ "$(cells ask best --where "build == \"b2b2b2\"" --maximize speed --count 1 --columns batch,speed)" = "4,100.0" ]'
refused "... a build that is not there" 2 "no result is from a build whose id begins with ff" ask best --build ff --maximize speed
is "show, effect and plot, too" eval '[ "$(cells ask show --columns batch,model,speed)" = "1,small,\"[100.0, 101.0]\" 4,small,\"[400.0, 404.0]\"" ] && [ "$(cells ask effect --build a1a1a1 --x batch --property speed --columns to,ratio,pairs)" = "2,1.5,2 4,2.0,2" ] && [ "$(cells ask plot --property speed --columns batch,value)" = "1,100.5 4,402.0" ]'
is "missing: whoever measured it" says '# 0 unmeasured, 1 failed, 0 invalid|nothing is missing' "$samples" missing s.yaml $own

# ---- facts in --where ----
is "host, operation, status and started in every --where" eval '[ "$(cells ask show --build all --where "host == \"hosta1a1a1\" and batch == 4" --columns model,speed)" = "small,200.0 large,20.0" ] && [ "$(cells ask show --build all --where "operation == \"second\" and batch == 4" --columns model,speed)" = "small,100.0" ] && [ "$(cells ask best --build all --where "started > \"2026-11-11\" and started < \"2026-11-13\"" --maximize speed --count 1 --columns batch,speed)" = "4,100.0" ] && [ "$(cells ask show --build all --where "status == \"failed\"" --columns batch,model)" = "4,large" ]'
is "... of rows, too" eval '[ "$(cells "$samples" show work $own --where "build == \"b2b2b2\" and started > \"2026-11-12\" and status != \"valid\"" --columns batch,model,reason)" = "4,large,no luck" ]'

# ---- words ----
is "nothing: the only one that there is" eval '[ "$(cells "$samples" best $own --maximize speed --count 1 --columns batch,model,speed)" = "4,small,402.0" ]'
is "an experiment: what varies in its rows is the space" eval '[ "$(cells "$samples" effect work $own --build a1 --property speed --columns dimension,to,ratio)" = "batch,2,1.5 batch,4,2.0 model,small,10.000000000000002" ]'
is "... with its actuator; missing of the grid of its values" eval '[ "$(cells "$samples" missing replay.work $own --columns batch,model,status,reason)" = "" ] && says "nothing is missing" "$samples" missing work $own'
is "an entity: its figures of the newest build" eval 'says "^values +402 ±2.8 \(2\)$" "$samples" show batch.4-model.small $own && grep -q "2 rows of other builds are left out" shown && says "^values +276 ±1.5e\+02 \(4\)$" "$samples" show batch.4-model.small $own --build all' 
refused "... best of one" 2 "batch.4-model.small is one entity; best takes a space, an experiment or an operation" "$samples" best batch.4-model.small $own --maximize speed
refused "a word that means nothing: the nearest, and what there is" 2 "wrk is not a file, and the store st has no space, experiment, operation or entity of that name (the nearest is work); it has: experiments work" "$samples" best wrk $own --maximize speed
for gone in "rows work:show work" "trace first:show first" "entity a.1:show a.1" stats:status; do
    refused "${gone%%:*}: the line to type now" 2 "samples ${gone#*:} --store 's t'" "$samples" ${gone%%:*} --store "s t"
done

# ---- who measured a point ----
is "show --point: each experiment and operation that measured it" eval '[ "$(cells "$samples" show $own --point batch=4,model=large --columns operation,valid,failed,entity)" = "first,1,0,batch.4-model.large second,0,1,batch.4-model.large" ]'
is "... nobody" says "no operation measured this point" "$samples" show $own --point batch=9
refused "... an input that is none" 2 "there is no input bath (the nearest is batch)" "$samples" show $own --point bath=4
refused "... no input" 2 '"batch" is not NAME=VALUE' "$samples" show $own --point batch

# ---- options and commands: each command of --help, with each option that it does not take ----
"$samples" --help all >help 2>&1
sed -n 's/^ *--\([a-z-]*\)[ =].*/\1/p' help | sort -u >options
is "--help lists the options" eval '[ $(wc -l <options) -gt 30 ]'
taken() { # COMMAND - the options that it takes, as its own error says of the others
    while read -r option; do
        case $option in help | version | store | config | show-config | ignore-keys | verbose) continue ;; esac
        value=1
        case $option in include) value=matching ;; aggregate) value=mean ;; color) value=never ;; output-format) value=csv ;; esac
        "$samples" "$1" --store none --"$option" $value 2>&1 | grep -q "takes no --$option; " || echo "$option"
    done <options | paste -sd" "
}
is "check takes --store alone" eval 'got=$(taken check); echo "$got"; [ -z "$(echo $got | tr " " "\n" | grep -x "where\|columns\|build\|svg\|maximize\|limit\|inputs")" ]'
refused "an option that would do nothing is refused, with those that take it" 2 "check takes no --where; show, best, effect, predict, compare, plot, missing, points, export" "$samples" check --store st --where 'batch == 1'
refused "... of import" 2 "import takes no --where" "$samples" import csv first.csv --experiment work --store st --where 'batch == 1'
for option in "--build a1" "--operation first" "--property speed" "--include matching" "--aggregate mean" --all-properties; do
    refused "show of rows takes no ${option% *}, which would do nothing" 2 "show of work takes no ${option% *}, which is for a space" "$samples" show work $own $option
done
refused "... of one entity" 2 "show of batch.4-model.small takes no --property, which is for a space" "$samples" show batch.4-model.small $own --property loss
refused "... of a point" 2 "show of a point takes no --build, which is for a space" "$samples" show $own --point batch=4 --build a1
refused "... a point in a space" 2 "so do not name s.yaml" "$samples" show s.yaml $own --point batch=4
refused "export: of the whole store" 2 "export takes no --build" "$samples" export --store st --build a1
refused "... no word" 2 'unexpected argument "work"' "$samples" export work --store st
refused "... no --aggregate without groups" 2 "export takes --aggregate with --group-by only" "$samples" export --store st --aggregate mean
is "export --derive: a column more" eval '[ "$(cells "$samples" export $own --derive "twice = speed * 2" --where "twice > 300" --columns batch,model,twice)" = "4,small,400.0 4,small,800.0 4,small,808.0" ]'
refused "... of show" 2 "show takes no --maximize; best, effect, compare, plot do" "$samples" show s.yaml $own --maximize speed

# ---- two configurations ----
is "compare two configurations: pairs that differ in nothing else, of the newest build" eval '[ "$(cells "$samples" compare batch=1 batch=4 $own --property speed --columns entity,a,b,b/a,differs)" = "model.small,100.5,402.0,4.0,yes" ] && grep -q "7 rows of other builds are left out" said.err || { cat said.err; false; }'
is "... with the interval of the ratio" eval '"$samples" compare batch=1 batch=4 $own --property speed --output-format csv 2>/dev/null | awk -F, "NR == 2 { exit !(\$7 > 3.7 && \$7 < 4 && \$8 > 4 && \$8 < 4.3) }"'
is "... of another build, over all entities" eval 'says "^# b/a of speed: 2 \(geometric mean; entities: 2, lowest 2, highest 2\), 95 % interval 2 to 2" "$samples" compare batch=1 batch=4 --build a1a1a1 $own --property speed'
is "builds by their age" eval '[ "$(cells "$samples" compare build=previous build=last $own --property speed --columns entity,a,b)" = "batch.1-model.small,50.0,100.5 batch.4-model.small,100.0,402.0" ]'
refused "... that name different inputs" 2 'batch is only in "batch=1"' "$samples" compare batch=1 model=small $own
refused "... of an input that is none" 1 "bach=1 has no valid rows" "$samples" compare bach=1 bach=2 $own

is "compare --derive: a new column is a property" eval '[ "$(cells "$samples" compare build=a1 build=b2 $own --derive "twice = speed * 2" --property twice --columns a,b)" = "200.0,100.0 300.0,150.0 400.0,200.0 20.0,10.0 30.0,15.0" ]'
is "compare --group-by: the mean of figures" eval '[ "$(cells "$samples" compare build=a1 build=b2 $own --group-by property)" = "speed,5,95.0,47.5,0.5" ]'
refused "compare --build would do nothing here" 2 "compare takes --build for configurations only; to compare a build, give build=all" "$samples" compare build=a1 build=b2 $own --build all
printf '{"identifier": "other", "actuator": "replay", "description": "", "inputs": [{"identifier": "width", "required": true, "domain": {"domainRange": [1, 9]}}], "targets": [{"identifier": "speed", "unit": ""}]}' >other.json
is "compare --where: an experiment that lacks the name is left out, and that is said" eval 'cp -r st two && printf "width,speed\n1,5\n2,6\n" >wide.csv && "$samples" import csv wide.csv --experiment other --experiments other.json --store two >/dev/null && [ "$(cells "$samples" compare build=a1 build=b2 --store two --experiments work.json,other.json --where "batch == 1" --columns a,b)" = "100.0,50.0 10.0,5.0" ] && grep -q "1 of 2 experiments have no column of a name used in --where or --derive" said.err'
refused "... if all lack it, that is an error" 2 'unknown name "bath"' "$samples" compare build=a1 build=b2 --store two --experiments work.json,other.json --where 'bath == 1'
is "compare: what has no ratio is in no mean, and is counted" eval 'printf "batch,model,speed\n1,small,0\n2,small,5\n1,large,3\n2,large,10\n" >zero.csv && "$samples" import csv zero.csv --experiment work --experiments work.json --inputs batch,model --store zero >/dev/null && says "^# left out of the mean: 1 more, because b/a of speed is not a finite number above 0" "$samples" compare model=small model=large --experiments work.json --store zero && grep -q "geometric mean; entities: 1," shown'

# ---- results that are not a grid ----
# batch 4 lacks the small model, which is ten times as fast: the means say the opposite of the pairs.
printf 'batch,model,rate,speed\n1,small,0.5,100\n2,small,0.5,150\n1,large,0.5,10\n2,large,0.5,15\n4,large,0.5,20\n1,small,0.25,90\n2,large,0.25,13\n' >part.csv
sed 's/^experiments/  - {identifier: rate, propertyDomain: {values: [0.25, 0.5]}}\n&/' s.yaml >part.yaml
is "part of a grid" eval '"$samples" import csv part.csv --experiment work --experiments work.json --inputs batch,model,rate --store part >/dev/null'
part="part.yaml --experiments work.json --store part --include matching"
is "--group-by warns that the groups do not compare" eval '"$samples" show $part --group-by batch --columns batch,speed >shown 2>&1; cat shown; grep -q "^samples: the groups also differ in other dimensions, " shown'
is "... and not where they do" eval '"$samples" show s.yaml $own --include matching --build a1 --group-by batch >shown 2>&1; ! grep -q "the groups also differ" shown'
is "many dimensions in a terminal: ratios of pairs, never means" eval 'says "^batch +1 +4 +2 +2 +2 +1" "$samples" plot $part --property speed && ! grep -q "lowest, mean and highest" shown'
printf 'batch,model,speed\n1,small,100\n2,large,15\n4,large,20\n' >sampled.csv
is "a dimension that no pair shows is said to be untold" eval '"$samples" import csv sampled.csv --experiment work --experiments work.json --inputs batch,model --store sampled >/dev/null && "$samples" effect s.yaml --experiments work.json --store sampled --include matching --property speed >shown 2>&1; grep -q "the effect of model is unknown: no two entities with a result differ in this dimension alone" shown && grep -q "^ratio *1.333$" shown || { cat shown; false; }'

awk 'BEGIN { print "batch,model,speed,loss"; for (i = 0; i < 36; i++) print i % 6 "," int(i / 6) "," i "," 36 - i }' >grid.csv
is "a full grid of two properties is drawn as two heat maps" eval '"$samples" import csv grid.csv --experiment grid --inputs batch,model --store grid >/dev/null && says "^batch +0 +1 +2 +3 +4 +5" "$samples" plot grid --store grid --property speed,loss && [ "$(grep -c "^batch " shown)" = 2 ]'

# ---- a table of prices ----
printf 'model,usd\nsmall,2\n' >prices.csv && printf 'x,y\n1,2\n' >other.csv
is "--table gives --derive and --where more names" eval '[ "$(cells ask best --build a1 --table prices.csv --derive "cost = usd / speed" --minimize cost --columns batch,model,cost)" = "4,small,0.01 2,small,0.013333333333333334 1,small,0.02" ] && grep -q "prices.csv has no row for 1 key (.large.), so usd is None for them" said.err && [ "$(cells ask show --build a1 --table prices.csv --where "usd == 2 and batch == 1" --columns model,speed)" = "small,100.0" ]'
is "... of rows, too" eval '[ "$(cells "$samples" show work $own --table prices.csv --derive "cost = usd * 3" --where "build == \"a1a1a1\" and batch == 1" --columns model,cost)" = "small,6.0 large," ] && grep -q "prices.csv has no row for 1 key (.large.), so usd is None for them" said.err'
refused "... that has no column of an input" 2 "no column" ask best --table other.csv --derive 'c = x' --minimize c
is "... and of a comparison" eval 'says "prices.csv has no row for 1 key .*, so usd is None for them" "$samples" compare batch=1 batch=2 $own --build a1a1a1 --table prices.csv --derive "cost = usd / speed" --property cost && [ "$(grep -c "has no row" shown)" = 1 ]'
awk 'BEGIN { print "batch,model,speed"; for (i = 1; i <= 70000; i++) print (i * 7919) % 70000 + 1 ",small," i }' >many.csv
is "an input of 70,000 values: best reads all of them" eval '"$samples" import csv many.csv --experiment many --inputs batch,model --store many >/dev/null && [ "$(cells "$samples" best many --store many --maximize speed --count 1 --columns batch,speed)" = "1,70000" ] && says "^# speed.*of all 70000: lowest 1," "$samples" best many --store many --maximize speed'
is "--units: of what is imported" eval '"$samples" import csv sampled.csv --experiment measured --inputs batch,model --units speed=tokens/s --store units >/dev/null && says "speed \(tokens/s\) of all 3" "$samples" best measured --store units --maximize speed'

# ---- what is said is so ----
printf '%s\n' 1,small,70 2,small,75 | rows a1b1b1 16 fourth >fourth.csv
is "--build: several that begin so" eval 'cp -r st four && "$samples" import csv fourth.csv --experiment work --experiments work.json --store four >/dev/null && says "^samples: of 4 builds, the 2 whose id begins with a1 are shown, with 8 results, the last of 2026-11-16; 9 results of other builds are left out" "$samples" best s.yaml --experiments work.json --store four --include matching --build a1 --maximize speed'
sed 's/\[1, 2, 4\]/[1, 2, 4, 8, 16]/' s.yaml >big.yaml
is "missing --limit: it did not count to the end" eval 'says "^# at least 1 unmeasured" "$samples" missing big.yaml $own --limit 1 --columns batch && says "^# 4 unmeasured" "$samples" missing big.yaml $own --columns batch'
is "show --point: no start is no date" eval '[ "$(cells "$samples" show --point batch=2 --experiments work.json --store sampled --columns valid,last)" = "1," ]'
printf 'batch,model,speed\n1,small,-5\n2,small,0\n4,small,7\n1,large,100\n4,large,inf\n' >hole.csv
is "best: an infinite figure beside the quarters" eval '"$samples" import csv hole.csv --experiment work --experiments work.json --inputs batch,model --store hole >/dev/null && says "of all 5: lowest -5, quartiles 0, 7 and 100, highest inf$" "$samples" best work --experiments work.json --store hole --maximize speed'
printf 'batch,model,speed\n1,small,5\n2,small,9\n4,small,inf\n' >infinite.csv
"$samples" import csv infinite.csv --experiment work --experiments work.json --inputs batch,model --store infinite >/dev/null
for question in effect plot; do
    is "$question: infinite values are left out and counted" eval 'says "^samples: 1 infinite value is left out$" "$samples" $question work --experiments work.json --store infinite --property speed --x batch --output-format csv'
done
is "best: a front of one" eval 'says "^# these rows are the Pareto front: each of the other 1 is in no property better than the one shown$" "$samples" best work --experiments work.json --store hole --derive "cost = 0 - speed" --maximize speed --minimize cost --where "batch == 1"'
refused "effect: pairs without a ratio are no lack of pairs" 1 "but a value of 0 or below has no ratio" "$samples" effect work --experiments work.json --store hole --property speed --where 'model == "small"'
is "best of a figure that no result has" says "^# no rows: 2 were measured, but none has loss" ask best --maximize loss
refused "effect takes one property of a kind" 2 "give effect only one of --property, --maximize and --minimize" ask effect --property speed --maximize loss
refused "a drawing has all points" 2 "a drawing takes no --limit" ask plot --property speed --limit 1
refused "... and a table no drawing" 2 "a table takes no --svg" ask plot --property speed --output-format csv --svg x.svg

refused "best of an empty list" 2 "--maximize or --minimize names no property" ask best --maximize ,
refused "plot over an empty list" 2 "--x is empty; expected a dimension" ask plot --property speed --x ,
is "parquet: best has the units of the experiment" eval 'MALLOC_PERTURB_=165 ask best --maximize speed --output-format parquet --output-file best.parquet && grep -aq "tokens/s" best.parquet'
is "all rows forgotten" eval 'cp -r st gone && "$samples" forget --store gone --experiments work.json --where "batch > 0" --yes >/dev/null && says "no rows" "$samples" show work --experiments work.json --store gone'
refused "... an experiment without rows makes no space, and that is said" 1 "gone: no row of experiment work can be used: there are none, or they are forgotten; samples check --store gone lists forgotten rows" "$samples" best work --experiments work.json --store gone --maximize speed

# ---- repeats, for people ----
is "show: mean, deviation and number of several results" says '^ *4 +402 ±2.8 \(2\)$' ask show --columns batch,speed
finish
