#!/bin/sh
# test_tips_sweeps.sh - what sweep, samples and space say to type is typed, from what they print, and works.
. tests/tap.sh
. tests/tips/tip.sh
cd "$tmp" || exit 1
sweep=$BUILD/sweep samples=$BUILD/samples space=$BUILD/space
PUT= ALONE= SAID_AGAIN= CODE=
mkdir exp
printf '#!/bin/sh\necho "{\\"speed\\": $TUNE_INPUT_A$TUNE_INPUT_STEPS, \\"cost\\": 3}" >"$TUNE_OUTPUT/report.json"\n' >exp/work.sh
chmod +x exp/work.sh
cat >exp/work.json <<'E2'
{"identifier": "work", "actuator": "toys", "program": "./work.sh", "output": null,
 "inputs": [
  {"identifier": "a", "required": true, "domain": {"domainRange": [0, 100], "interval": 1}},
  {"identifier": "b", "default": 0, "domain": {"domainRange": [0, 100], "interval": 1}},
  {"identifier": "steps", "default": 10, "domain": {"domainRange": [1, 100], "interval": 1}}],
 "targets": [{"identifier": "speed", "unit": "1/s"}, {"identifier": "cost", "unit": ""}]}
E2
sed 's/"work"/"rest"/' exp/work.json >exp/rest.json
echo '{"experiments": "exp"}' >tune.json
described() { # NAME EXPERIMENT [PARAMETERS] - a space
    printf "entitySpace:\n  - {identifier: a, propertyDomain: {values: [1, 2, 3]}}\n  - {identifier: b, propertyDomain: {values: [0, 1]}}\nexperiments: [{actuatorIdentifier: toys, experimentIdentifier: $2$3}]\n" >"$1"
}
described s.yaml work
described r.yaml rest
described steps.yaml work ', parameterization: [{property: {identifier: steps}, value: 20}]'
own="--experiments exp"
sed 's/\[1, 2, 3\]/[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]/' s.yaml >crowd.yaml
$sweep s.yaml $own --store st --name first >/dev/null 2>&1

# ---- sweep ----
tip '# look at them *<samples show [^#]*--store st>' $sweep s.yaml $own --store st
tip '# look at them *<samples show [^#]*--store st>' $sweep s.yaml $own --store st --set steps=30
tip '# go on with *<sweep --resume [^ ]+ --store st2>' $sweep s.yaml $own --store st2 --time-limit 0.001
tip '<--lines 0> shows all' $sweep crowd.yaml $own --store crowd --dry-run
tip '# look at the best *<samples best [^#]*--store modelled>' $sweep s.yaml $own --store modelled --order model --maximize speed --entities 4
tip '# look at the last *<samples best [^#]*--store halved>' $sweep s.yaml $own --store halved --order halving --maximize speed --budget steps=1..4 --name h
PUT='s/SPACE.yaml/s.yaml --store st --dry-run/' tip 'a space or an operation is missing: give <sweep SPACE.yaml>' $sweep
PUT='s/OPERATION/first --store st/' tip 'or <--resume OPERATION>' $sweep
ALONE="$sweep --store st" tip 'has an operation [^ ]+ already: <--resume [^ ]+> continues it' $sweep s.yaml $own --store st --name first
ALONE="$sweep --store st" tip 'continues it, <--join [^ ]+> shares it' $sweep s.yaml $own --store st --name first
PUT='s/$/ second/' tip 'a new operation needs another <--name>' $sweep s.yaml $own --store st --name first
PUT='s/$/ st/' tip 'there is no store with operations here; give its folder with <--store>' $sweep --resume first
PUT='s/$/ speed/' tip 'of other properties: name them by <--maximize> or' $sweep s.yaml $own --store st --dry-run --remeasure
PUT='s/$/ speed/' tip 'of other properties: name them by --maximize or <--minimize>' $sweep s.yaml $own --store st --dry-run --remeasure
tip ': <--set [^ ]+> would use' $sweep steps.yaml $own --store st --dry-run
cp -r st moved && sed -i 's/3}/4}/' exp/work.sh
tip 'although stored results differ only in [^:]+: <--accept [^ ]+> uses them' $sweep s.yaml $own --store st --dry-run
tip 'a stored result differs only in [^;]+; <--accept [^ ]+> would use it' $sweep s.yaml $own --store moved
cp -r st st3
# Measured with an even number of steps, the order of the points is turned around.
sed 's/"work"/"turned"/; s/work\.sh/turned.sh/' exp/work.json >exp/turned.json
sed 's/\$TUNE_INPUT_A\$TUNE_INPUT_STEPS/$(((TUNE_INPUT_A * 2 + TUNE_INPUT_B) * (TUNE_INPUT_STEPS % 2 * 2 - 1)))/' exp/work.sh >exp/turned.sh && chmod +x exp/turned.sh
described turned.yaml turned && sed 's/\[1, 2, 3\]/[1, 2, 3, 4, 5, 6, 7, 8]/' turned.yaml >t && mv t turned.yaml
ALONE="$sweep turned.yaml $own --store whole --maximize speed --entities 3" tip 'Short measurements say little here: <--order model> measures each point whole' $sweep turned.yaml $own --store turned --order halving --maximize speed --budget steps=1..2
described wide.yaml work && sed 's/values: \[1, 2, 3\]/domainRange: [0, 100], interval: 1/' wide.yaml >t && mv t wide.yaml
ALONE="$sweep wide.yaml $own --store whole2 --maximize speed --entities 3" tip '; <--order model> came within 1 % of the best in our test spaces' $sweep wide.yaml $own --store wide --order halving --maximize speed --budget steps=1..4 --dry-run
PUT='s/PROPERTY/speed/' tip 'needs a property: <--minimize PROPERTY> or' $sweep s.yaml $own --store h2 --order halving --budget steps=1..4
PUT='s/PROPERTY/speed/' tip 'or <--maximize PROPERTY>' $sweep s.yaml $own --store h2 --order halving --budget steps=1..4 --name m
PUT='s/PROPERTY/speed/' tip 'one property or two: <--maximize PROPERTY>,' $sweep s.yaml $own --store h4 --order model --entities 3
PUT='s/PROPERTY/speed/' tip 'one property or two: --maximize PROPERTY, <--minimize PROPERTY>' $sweep s.yaml $own --store h5 --order model --entities 3
PUT='s/max_steps/steps/' tip 'needs an input that makes measurements longer: <--budget max_steps=1\.\.16>' $sweep s.yaml $own --store h3 --order halving --maximize speed
PUT='s/PROPERTY/speed/' tip 'needs a property to compare: <--maximize PROPERTY>' $sweep s.yaml $own --store st --stop-when first:5% --repeat 3
tip 'needs <--order model>, because a model tells' $sweep s.yaml $own --store h6 --maximize speed --stop-when 'chance of 1 % below 5 %'
PUT='s/PROPERTY/speed/' tip 'needs one property: <--maximize PROPERTY>' $sweep s.yaml $own --store h7 --stop-when 'no gain of 1 % in 20'
PUT='s/PROPERTY/speed/' tip 'needs one property: --maximize PROPERTY or <--minimize PROPERTY>' $sweep s.yaml $own --store h8 --stop-when 'no gain of 1 % in 20'
PUT='s/$/ 3/' tip '--stop-when needs <--repeat>, the highest number' $sweep s.yaml $own --store st --stop-when first:5% --maximize speed
ALONE="$sweep s.yaml $own --store st4 --dry-run" PUT='s/batch_size/steps/' tip 'expected input=value, such as <--set batch_size=4>' $sweep s.yaml $own --store st4 --dry-run --set nothing
tip 'leave it out, or give <--env-secrets>, too' env HF_TOKEN=x $sweep s.yaml $own --store secrets --env HF_TOKEN
tip 'or give <--share-cores>' $sweep s.yaml $own --store many --in-flight 64
PUT='s/\)//; s/$/ 1/' tip 'take fewer \(<--in-flight>\)' $sweep s.yaml $own --store many --in-flight 64

printf 'operation:\n  module: {operatorName: ray_tune}\n  parameters: {tuneConfig: {metric: cost, num_samples: 2, search_alg: {name: optuna}}}\n' >ray.yaml
tip 'what comes closest, type: <sweep .* --order model .* --entities 2>' $sweep s.yaml $own --store ray --operation ray.yaml
printf 'operation:\n  module: {operatorName: trim}\n  parameters: {targetOutput: speed, samplingBudget: {maxPoints: 6}}\n' >trim.yaml
tip 'what comes closest, type: <sweep .* --order sobol [^&]*> &&' $sweep s.yaml $own --store trim --operation=trim.yaml
tip '&& <samples predict .* --property speed>' $sweep s.yaml $own --store trim --operation trim.yaml

# ---- stores of other people ----
stranger="env XDG_CONFIG_HOME=$tmp/theirs"
$stranger $sweep s.yaml $own --store "$tmp/theirs-st" --name op >/dev/null 2>&1
$stranger $sweep s.yaml $own --store "$tmp/theirs-st" --name far --remeasure --share-cores --launcher env >/dev/null 2>&1
mv tune.json project.json
PUT='s/$/ exp/' tip 'to allow this, give its file by <--experiments>, or' $sweep --resume op --store "$tmp/theirs-st"
cp -r theirs-st theirs-2 && rm -f theirs-2/experiments/*.marks
tip 'by --experiments, or <--trust-store>' $sweep --resume op --store "$tmp/theirs-2"
tip 'give these options again, or <--trust-store>' $sweep --resume far $own --store "$tmp/theirs-2"
ALONE="$samples merge theirs-st --store together-2" tip 'or merge into a new store with <--with-programs>' $samples merge theirs-st --store together
PUT='s/$/ exp/' ALONE="$sweep s.yaml --store together --share-cores" tip 'give sweep their files \(<--experiments>\)' $samples merge theirs-st --store together-3
mv project.json tune.json

printf '#!/bin/sh\necho >>"%s/fails"\n[ "$(wc -l <"%s/fails")" -gt 5 ] || exit 1\nexec "${0%%/*}/work.sh"\n' "$tmp" "$tmp" >exp/fail.sh && chmod +x exp/fail.sh
sed 's/"work"/"fail"/; s/work.sh/fail.sh/' exp/work.json >exp/fail.json
described fail.yaml fail
ALONE="$sweep --store broken" PUT='s/--resume/& broken/' tip 'remove the cause, and go on with <--resume> \(<--max-failures 0>' $sweep fail.yaml $own --store broken --name broken --retries 0

# ---- spaces ----
PUT='s/$/ --experiments exp/' tip '\(<space experiments [^ ]+> shows its domain\)' $sweep s.yaml $own --store st --dry-run --set steps=900
PUT='s/$/ --experiments exp/' tip '\(<space experiments [^ ]+> lists them\)' $sweep s.yaml $own --store st5 --order halving --maximize nothing --budget steps=1..4
PUT='s#$# ../exp#' tip 'to add folders or files of experiments, give <--experiments>' env -C exp "$space" check ../s.yaml

printf 'a,b\n4,1\n' >points.csv
PUT='s/$/ --experiments exp/' tip '\(<space describe [^ ]+> shows its values\)' $sweep s.yaml $own --store st --dry-run --points points.csv
PUT='s/$/ s.yaml/' tip 'this is not an entity of [^ ]+; <space list> and samples show print identifiers' $sweep s.yaml $own --store st --dry-run --entity nothing

# ---- samples ----
PUT='s/--accept/s.yaml --experiments exp --store st3 --dry-run &/' tip '; <sweep --accept [^ ]+> uses the results' $samples missing s.yaml $own --store st3
printf 'entitySpace: [{identifier: a, propertyDomain: {values: [1, 2]}}, {identifier: b, propertyDomain: {values: [0, 1]}}, {identifier: steps, propertyDomain: {values: [10, 20]}}]\nexperiments: [{actuatorIdentifier: toys, experimentIdentifier: work}]\n' >three.yaml
$sweep three.yaml $own --store three >/dev/null 2>&1
PUT='s/\.\.\./10/' tip 'also varies: choose one value with <--where [^,]*>, or' $samples plot three.yaml $own --store three --property speed --x a --series b
tip 'needs the name of one of these, .*; for details: <samples status --store [^ ]+>' eval '$sweep r.yaml $own --store st >/dev/null; $samples show --store st'
tip 'to see what it has: <samples status --store [^ ]+>' $samples show steps.yaml $own --store st
tip '; <samples show [^ ]+ --store [^ ]+> shows them; sweep --set' $samples show steps.yaml $own --store st
PUT='s/--set/steps.yaml --experiments exp --store st --dry-run &/' tip '; <sweep --set [^ ]+> uses' $samples show steps.yaml $own --store st
sed 's/1, 2, 3/1, 2/' s.yaml >half.yaml
tip 'measured [0-9]+ of its entities; to see these, give <--include matching>' $samples show half.yaml $own --store st
PUT='s/PROPERTY/speed/' tip 'best needs a property: give <--maximize PROPERTY>' $samples best s.yaml $own --store st
PUT='s/PROPERTY/speed/' tip 'or <--minimize PROPERTY>; with two' $samples best s.yaml $own --store st
PUT='s/PROPERTY/speed/' tip '[^ ]+ needs a property: give <--property PROPERTY>' $samples plot s.yaml $own --store st
PUT='s/PROPERTY/speed/' tip 'or <--maximize> or --minimize <PROPERTY>, to mark the best value' $samples plot s.yaml $own --store st
tip 'measured with [^ ]+ in rungs of halving; to see the last rung, give <--operation [^ ]+>' $samples show s.yaml $own --store halved
CODE=4 tip 'high or low values of [^ ]+ are better; give <--maximize [^ ]+>' $samples compare first first --store st --property cost --regression 5%
CODE=4 tip 'give --maximize [^ ]+ or <--minimize [^ ]+>' $samples compare first first --store st --property cost --regression 5%
CODE=4 PUT='s/PROPERTY/speed/' tip '--regression needs a property: give <--maximize PROPERTY>' $samples compare first first --store st --regression 5%
CODE=4 PUT='s/PROPERTY/speed/' tip 'or <--property PROPERTY> if its unit' $samples compare first first --store st --regression 5%
# ---- samples: builds, points, what is forgotten ----
$sweep s.yaml $own --store two >/dev/null 2>&1
sed -i 's/echo/: a newer build; echo/' exp/work.sh
$sweep s.yaml $own --store two --where 'a < 3' >/dev/null 2>&1
tip 'results of other builds are left out: to see them, give <--build all>, previous' $samples best s.yaml $own --store two --maximize speed
tip 'rows of other builds are left out: to see them, give <--build all>, previous' $samples compare a=1 a=2 $own --store two --property speed
tip 'rows of other builds are left out: to see them, give <--build all> or ID' $samples show a.1-b.0 $own --store two
PUT='s/.*/--point a=1/' tip 'point is empty; expected <NAME=VALUE>' $samples show --store two --point ,
printf 'entitySpace:\n  - {identifier: a, propertyDomain: {values: [1, 2, 3, 4]}}\n  - {identifier: b, propertyDomain: {values: [0, 1]}}\nexperiments: [{actuatorIdentifier: toys, experimentIdentifier: work}]\n' >four.yaml
PUT='s/$/ a,status/' tip 'to list them one by one, give <--columns>, --sort or another output format' $samples missing four.yaml $own --store two
PUT='s/EXPRESSION/a==9/' tip 'forget needs a choice of rows: give <--where EXPRESSION>' $samples forget --store two
tip '# with <--yes>, [a-z]+ rows* would be left out' $samples forget --store two --where 'a == 1'
tip 'left out of all answers; <samples check --store [^ ]+> lists' $samples show s.yaml $own --store two
PUT='s/$/ speed,a/' tip '<--columns> chooses' $samples show work --store st --width 20
printf 'lr,score,note\n0.5,1,x\n' >in.csv
PUT='s/FILE/in.csv/; s/NAME/e/; s/STORE/in --inputs lr --property score/' tip 'expected: <samples import csv FILE --experiment NAME --store STORE>' $samples import csv --store in
PUT='s/$/ lr --property score/' tip 'name these columns \(<--inputs>\)' $samples import csv in.csv --experiment e2 --store in
PUT='s/$/ score/' tip 'to import only some columns, give <--property>' $samples import csv in.csv --experiment e3 --inputs lr --store in3
printf 'name.lr,lr,a,speed,cost\nx,1,1,2,3\n' >work.csv
PUT='s#$# ../exp#' tip 'or give the experiment.s file \(<--experiments>\)' env -C exp "$samples" import csv ../work.csv --experiment work --store ../in4
$samples show work --store st --output-format csv --output-file own.csv >/dev/null
PUT='s#$# ../exp#' tip 'unknown which columns are inputs; give the experiment.s file with <--experiments>' env -C exp "$samples" import csv ../own.csv --experiment work --store ../in6
PUT='s/$/ fresh/' tip 'to make a new experiment from this file, give <--experiment> another name' $samples import csv in.csv --experiment work --inputs lr --property score --store in7 --experiments exp
PUT='s/FROM/st/; s/INTO/in5/' tip 'expected: <samples merge FROM --store INTO>' $samples merge --store in5
finish
