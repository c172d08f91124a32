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
$sweep s.yaml $own --store st --name first >/dev/null 2>&1

# ---- sweep ----
tip '# look at them *<samples show [^#]*--store st>' $sweep s.yaml $own --store st
tip '# look at them *<samples rows [^#]*--store st>' $sweep s.yaml $own --store st --set steps=30
tip '# go on with *<sweep --resume [^ ]+ --store st2>' $sweep s.yaml $own --store st2 --time-limit 0.001
tip '# look at the last *<samples best [^#]*--store halved>' $sweep s.yaml $own --store halved --order halving --maximize speed --budget steps=1..4 --name h
PUT='s/SPACE.yaml/s.yaml --store st --dry-run/' tip 'which space\? <sweep SPACE.yaml>' $sweep
PUT='s/OPERATION/first --store st/' tip 'or <--resume OPERATION>' $sweep
ALONE="$sweep --store st" tip 'has an operation [^ ]+ already: <--resume [^ ]+> goes on with it' $sweep s.yaml $own --store st --name first
ALONE="$sweep --store st" tip 'goes on with it, <--join [^ ]+> shares it' $sweep s.yaml $own --store st --name first
PUT='s/$/ second/' tip 'a new one needs another <--name>' $sweep s.yaml $own --store st --name first
PUT='s/$/ st/' tip 'there is no store to go on in; <--store> names its folder' $sweep --resume first
tip ': <--set [^ ]+> would take' $sweep steps.yaml $own --store st --dry-run
cp -r st moved && sed -i 's/3}/4}/' exp/work.sh
tip 'though results match but for [^:]+: <--accept [^ ]+> takes them' $sweep s.yaml $own --store st --dry-run
tip 'a stored result matches but for [^;]+; <--accept [^ ]+> would take it' $sweep s.yaml $own --store moved
cp -r st st3
PUT='s/PROPERTY/speed/' tip 'needs a property: <--minimize PROPERTY> or' $sweep s.yaml $own --store h2 --order halving --budget steps=1..4
PUT='s/PROPERTY/speed/' tip 'or <--maximize PROPERTY>' $sweep s.yaml $own --store h2 --order halving --budget steps=1..4 --name m
PUT='s/max_steps/steps/' tip 'needs an input that makes measurements longer: <--budget max_steps=1\.\.16>' $sweep s.yaml $own --store h3 --order halving --maximize speed
PUT='s/PROPERTY/speed/' tip 'the property that it looks at: <--maximize PROPERTY>' $sweep s.yaml $own --store st --stop-when first:5% --repeat 3
PUT='s/$/ 3/' tip '--stop-when needs <--repeat>, the most repeats' $sweep s.yaml $own --store st --stop-when first:5% --maximize speed
ALONE="$sweep s.yaml $own --store st4 --dry-run" PUT='s/batch_size/steps/' tip 'expected input=value, such as <--set batch_size=4>' $sweep s.yaml $own --store st4 --dry-run --set nothing
tip 'leave it out, or give <--env-secrets>, too' env HF_TOKEN=x $sweep s.yaml $own --store secrets --env HF_TOKEN
tip 'or <--share-cores>' $sweep s.yaml $own --store many --in-flight 64
PUT='s/\)//; s/$/ 1/' tip 'take fewer \(<--in-flight>\)' $sweep s.yaml $own --store many --in-flight 64

# ---- stores of other people ----
stranger="env XDG_CONFIG_HOME=$tmp/theirs"
$stranger $sweep s.yaml $own --store "$tmp/theirs-st" --name op >/dev/null 2>&1
$stranger $sweep s.yaml $own --store "$tmp/theirs-st" --name far --remeasure --share-cores --launcher env >/dev/null 2>&1
mv tune.json project.json
PUT='s/$/ exp/' tip 'if you want that, give its file by <--experiments>, or' $sweep --resume op --store "$tmp/theirs-st"
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
PUT='s#$# ../exp#' tip '; <--experiments> names folders and files of more' env -C exp "$space" check ../s.yaml

PUT='s/$/ s.yaml/' tip 'this is no entity of [^ ]+; <space list> and samples show print identifiers' $sweep s.yaml $own --store st --dry-run --entity nothing

# ---- samples ----
PUT='s/--accept/s.yaml --experiments exp --store st3 --dry-run &/' tip '; <sweep --accept [^ ]+> takes the results' $samples missing s.yaml $own --store st3
printf 'entitySpace: [{identifier: a, propertyDomain: {values: [1, 2]}}, {identifier: b, propertyDomain: {values: [0, 1]}}, {identifier: steps, propertyDomain: {values: [10, 20]}}]\nexperiments: [{actuatorIdentifier: toys, experimentIdentifier: work}]\n' >three.yaml
$sweep three.yaml $own --store three >/dev/null 2>&1
PUT='s/\.\.\./10/' tip 'varies, too: hold it with <--where [^,]*>, or' $samples plot three.yaml $own --store three --property speed --x a --series b
tip 'which experiment\? .*: <samples stats --store [^ ]+> lists them' eval '$sweep r.yaml $own --store st >/dev/null; $samples rows --store st'
tip 'which operation\? <samples stats --store [^ ]+> lists them' $samples trace --store st
tip 'what it has: <samples stats --store [^ ]+>' $samples show steps.yaml $own --store st
tip '; <samples rows [^ ]+ --store [^ ]+> shows them, sweep --set' $samples show steps.yaml $own --store st
PUT='s/--set/steps.yaml --experiments exp --store st --dry-run &/' tip ', <sweep --set [^ ]+> takes' $samples show steps.yaml $own --store st
sed 's/1, 2, 3/1, 2/' s.yaml >half.yaml
tip 'others measured [0-9]+ of its entities: <--include matching>' $samples show half.yaml $own --store st
PUT='s/PROPERTY/speed/' tip 'best of what\? <--maximize PROPERTY>' $samples best s.yaml $own --store st
PUT='s/PROPERTY/speed/' tip 'or <--minimize PROPERTY>; two' $samples best s.yaml $own --store st
PUT='s/PROPERTY/speed/' tip '[^ ]+ what\? <--property PROPERTY>' $samples plot s.yaml $own --store st
PUT='s/PROPERTY/speed/' tip 'or <--maximize> or --minimize <PROPERTY>, which marks the best' $samples plot s.yaml $own --store st
tip 'operation [^ ]+ measured with [^ ]+ by halving: <--operation [^ ]+> shows the last rung' $samples show s.yaml $own --store halved
CODE=4 tip 'is more of [^ ]+ better, or less\? Say <--maximize [^ ]+>' $samples compare first first --store st --property cost --regression 5%
CODE=4 tip 'Say --maximize [^ ]+ or <--minimize [^ ]+>' $samples compare first first --store st --property cost --regression 5%
CODE=4 PUT='s/PROPERTY/speed/' tip '--regression of what\? <--maximize PROPERTY>' $samples compare first first --store st --regression 5%
CODE=4 PUT='s/PROPERTY/speed/' tip 'or <--property PROPERTY> if its unit' $samples compare first first --store st --regression 5%
PUT='s/$/ speed,a/' tip '<--columns> chooses' $samples rows work --store st --width 20
printf 'lr,score,note\n0.5,1,x\n' >in.csv
PUT='s/FILE/in.csv/; s/NAME/e/; s/STORE/in --inputs lr --property score/' tip 'expected: <samples import csv FILE --experiment NAME --store STORE>' $samples import csv --store in
PUT='s/$/ lr --property score/' tip 'say which are \(<--inputs>\)' $samples import csv in.csv --experiment e2 --store in
PUT='s/$/ score/' tip '; <--property> names the columns to take' $samples import csv in.csv --experiment e3 --inputs lr --store in3
printf 'name.lr,lr,a,speed,cost\nx,1,1,2,3\n' >work.csv
PUT='s#$# ../exp#' tip 'or give the experiment.s file \(<--experiments>\)' env -C exp "$samples" import csv ../work.csv --experiment work --store ../in4
$samples rows work --store st --output-format csv --output-file own.csv >/dev/null
PUT='s#$# ../exp#' tip 'without the experiment.s file; name it with <--experiments>' env -C exp "$samples" import csv ../own.csv --experiment work --store ../in6
PUT='s/$/ fresh/' tip 'under another name of <--experiment> one is made of what is in the file' $samples import csv in.csv --experiment work --inputs lr --property score --store in7 --experiments exp
PUT='s/FROM/st/; s/INTO/in5/' tip 'expected: <samples merge FROM --store INTO>' $samples merge --store in5
finish
