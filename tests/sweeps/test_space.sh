#!/bin/sh
# test_space.sh - build/space over the shipped spaces, hostile ones, and one of 10^12 entities.
. tests/tap.sh
spaces=$here/defaults/spaces
space=$BUILD/space
cd "$tmp" || exit 1
same() { # COMMAND... - it prints what stands on this function's standard input
    cat >wanted
    "$@" >got 2>&1 && diff wanted got
}
field() { sed -n "s/.*$1\\.\\([^-]*\\).*/\\1/p"; }

# ---- the shipped ones ----
is "laptop: described" same sh -c '"$1" describe "$2" | head -n 14' sh "$space" "$spaces/laptop.yaml" <<'END'
Identifier: space-b1ce6a-default

Entity Space:

  Number entities: 4
  name              type         values
  model_name        categorical  [smollm2-135m]
  number_gpus       discrete     [0]
  model_max_length  discrete     [512, 1024]
  batch_size        discrete     [1, 2]

Measurement Space:

  experiment                                                                                                supported
END
is "its experiment: what is required, given, a default; what it measures" eval '"$space" describe "$spaces/laptop.yaml" >page && grep -qE "^ +model_name +required +a dimension$" page && grep -qE "^ +stop_after_seconds +optional +30 +yes$" page && grep -qE "^ +max_steps +optional +-1 +no$" page && grep -qE "^ +dataset_tokens_per_second$" page && ! grep -q "^ *train_tokens_per_second$" page && tail -n 1 page | grep -qx "Sample Store identifier: .default."'
is "the experiments there are" eval '"$space" experiments | grep -qE "^SFTTrainer +finetune_full_benchmark-v1.0.0 +finetune_full$"'
is "one of them" eval '"$space" experiments SFTTrainer.finetune_full_benchmark-v1.0.0 >page && grep -qx "Identifier: SFTTrainer.finetune_full_benchmark-v1.0.0" page && grep -q "^    Default value: bfloat16" page && grep -qx "      type: discrete" page && grep -qx "      range: .1, 131073." page && grep -q "^    Inert: recorded only" page'
is "an experiment file without an actuator: ado's custom_experiments" eval 'echo "{\"identifier\": \"mine\", \"program\": \"true\", \"inputs\": [], \"targets\": [{\"identifier\": \"t\"}]}" >mine.json && "$space" experiments mine --experiments mine.json | grep -qx "Identifier: custom_experiments.mine"'
refused "one that is not there" 2 "(the nearest is compression)" "$space" experiments compresion
is "laptop: its four, the last dimension fastest" same "$space" list "$spaces/laptop.yaml" <<'END'
model_name.smollm2-135m-number_gpus.0-model_max_length.512-batch_size.1
model_name.smollm2-135m-number_gpus.0-model_max_length.512-batch_size.2
model_name.smollm2-135m-number_gpus.0-model_max_length.1024-batch_size.1
model_name.smollm2-135m-number_gpus.0-model_max_length.1024-batch_size.2
END
is "a100: the dimensions of the example of 80" same sh -c '"$1" describe "$2" | tail -n +5 | head -n 9' sh "$space" "$spaces/a100.yaml" <<'END'
  Number entities: 80
  name              type         range        values
  dataset_id        categorical               [news-tokens-16384plus-entries-4096]
  model_name        categorical               [granite-8b-code-base]
  number_gpus       discrete     [2, 5]       [2, 4]
  model_max_length  discrete     [512, 8193]  [512, 1024, 2048, 4096, 8192]
  torch_dtype       categorical               [bfloat16]
  batch_size        discrete     [1, 129]     [1, 2, 4, 8, 16, 32, 64, 128]
  gpu_model         categorical               [NVIDIA-A100-80GB-PCIe]
END
is "cpu: the grid, and beside it what is allowed" eval '"$space" describe "$spaces/cpu.yaml" | grep -qx "  Number entities: 80 (allowed by the constraints: 64)"'
is "as many are listed, each once" eval '"$space" list "$spaces/cpu.yaml" --mode random | sort -u | wc -l | grep -qx 64'
is "template: a space file for each experiment, which check accepts" eval '"$space" experiments | awk "NR > 1 { print \$1 \".\" \$2 }" >names && [ "$(wc -l <names)" -ge 5 ] && while read -r e; do
    "$space" template "$e" >made.yaml && "$space" check made.yaml | grep -q "fine: .* 1 experiment$" || return 1; done <names'
is "... required inputs with their domains, the others with their defaults" same "$space" template compression <<'END'
# Choose the values to measure; each is a dimension of the grid.
entitySpace:
  # gzip's
  - identifier: "level"
    propertyDomain: {domainRange: [1, 10], interval: 1}
experiments:
  - actuatorIdentifier: "custom_experiments"
    experimentIdentifier: "compression"
    # Optional inputs and their defaults. Keep those that get another value here.
    # parameterization:
    #   # how much to pack
    #   - {property: {identifier: "megabytes"}, value: 4}
    #   # repeated to that size
    #   - {property: {identifier: "text"}, value: "the quick brown fox"}
END
is "... a comment made a parameter is one" eval '"$space" template compression | sed "/repeated/,\$d; /parameterization/,\$s/^    # /    /; s/value: 4/value: 5/" >made.yaml && "$space" describe made.yaml | grep -q "compression-megabytes.5 "'
cat >odd.json <<'END'
{"identifier": "odd", "program": "true", "inputs": [{"identifier": "a: b", "default": "x # y", "domain": {"values": ["x # y", "1", null, 1e16, "a\"b"]}}, {"identifier": "c", "default": 2}], "targets": [{"identifier": "t"}]}
END
is "... without a required input the first one is the dimension; hostile texts are quoted" eval '"$space" template odd --experiments odd.json >made.yaml && "$space" check made.yaml --experiments odd.json | grep -q "1 dimension, 5 entities"'
refused "... of no experiment" 2 "needs one experiment: give its name" "$space" template
for s in laptop a100 cpu cpu-ranks; do
    is "$s: checked" eval '"$space" check "$spaces/$s.yaml" >line && [ "$(wc -l <line)" = 1 ] && grep -q "$s.yaml: fine: " line'
done
if [ -r "$here/../shared/data/ado/space.yaml" ]; then
    is "ado's own file means what laptop.yaml means" eval '"$space" describe "$spaces/laptop.yaml" >a && "$space" describe "$here/../shared/data/ado/space.yaml" >b && cmp a b'
else
    skip "ado's own file means what laptop.yaml means" "no ../shared/data/ado"
fi

{ printf '%s\n' 'metadata: {name: night, description: "all of\nit", labels: {team: a, level: 2}}'; cat "$spaces/laptop.yaml"; } >labelled.yaml
is "metadata is shown" eval '"$space" describe labelled.yaml >page && grep -qx "  Name: night" page && grep -qxF "  Description: all of\nit" page && grep -qx "  Labels: team=a, level=2" page && [ "$("$space" describe "$spaces/laptop.yaml" | grep -c Metadata)" = 0 ]'
bad_labels() { printf 'metadata: {labels: [a]}\nentitySpace: [{identifier: a, propertyDomain: {values: [1]}}]\n' >labels.yaml; "$space" check labels.yaml; }
refused "labels that are no map" 2 "labels.yaml:1:20: labels must be a map" bad_labels

# ---- orders ----
is "random: all of them, in an order of the seed's" eval '
    "$space" list "$spaces/a100.yaml" >all; "$space" list "$spaces/a100.yaml" --mode random --seed 7 >one
    "$space" list "$spaces/a100.yaml" --mode random --seed 7 --limit 1000 >two; "$space" list "$spaces/a100.yaml" --mode random --seed 8 >three
    cmp one two && ! cmp -s one three && ! cmp -s all one && sort all >a && sort one | cmp - a && sort three | cmp - a'
is "--limit takes the first of them" eval '"$space" list "$spaces/a100.yaml" --mode random --seed 7 --limit 9 >few && head -n 9 one | cmp - few && "$space" list "$spaces/a100.yaml" --limit 0 >none && [ ! -s none ]'
for mode in sequential-grouped random-grouped randomgrouped; do
    is "$mode: groups stand together" eval '"$space" list "$spaces/a100.yaml" --mode $mode --grouping batch_size,number_gpus >g && sort all >a && sort g | cmp - a &&
        [ "$(sed "s/.*number_gpus\.\([0-9]*\)-.*batch_size\.\([0-9]*\)-.*/\1 \2/" g | uniq | wc -l)" = 16 ]'
done
is "sobol: as many as are wanted, none twice" eval '"$space" list "$spaces/a100.yaml" --mode sobol --limit 40 | sort -u | wc -l | grep -qx 40'
is "... of eight each has another batch size" eval '"$space" list "$spaces/a100.yaml" --mode sobol --limit 8 --format csv | tail -n +2 | cut -d, -f7 | sort -u | wc -l | grep -qx 8'
refused "an order that is none" 2 'no order "rnd"; expected sequential, random' "$space" list "$spaces/a100.yaml" --mode rnd
refused "groups by what is no dimension" 2 'no dimension "batch"' "$space" list "$spaces/a100.yaml" --mode random-grouped --grouping batch
refused "groups by nothing" 2 "needs the names" "$space" list "$spaces/a100.yaml" --mode random-grouped

# ---- formats ----
cat >odd.json <<'END'
{"entitySpace": [
  {"identifier": "a,b", "propertyDomain": {"values": ["x \"y\"", null, [1, "z"], true, 1e16, 0.1]}},
  {"identifier": "n", "propertyDomain": {"domainRange": [0, 1], "interval": 0.5}}]}
END
is "csv is quoted" same sh -c '"$1" list odd.json --format csv | tr -d "\r" | head -n 6' sh "$space" <<'END'
identifier,"a,b",n
"a,b.x ""y""-n.0.0","x ""y""",0.0
"a,b.x ""y""-n.0.5","x ""y""",0.5
"a,b.None-n.0.0",None,0.0
"a,b.None-n.0.5",None,0.5
"a,b.[1, 'z']-n.0.0","[1, 'z']",0.0
END
if command -v python3 >/dev/null 2>&1; then
    is "json has the values with their types" python3 - "$space" <<'END'
import json, subprocess, sys
rows = json.loads(subprocess.run([sys.argv[1], "list", "odd.json", "--format", "json"], check=True, capture_output=True, text=True).stdout)
assert len(rows) == 12 and rows[-1] == {"identifier": "a,b.0.1-n.0.5", "a,b": 0.1, "n": 0.5}, rows[-1]
assert [r["a,b"] for r in rows[::2]] == ['x "y"', None, [1, "z"], True, 1e16, 0.1], rows
assert rows[6]["identifier"] == "a,b.1-n.0.0" and rows[8]["identifier"] == "a,b.1e+16-n.0.0", rows
END
else
    skip "json has the values with their types" "no python3"
fi
cat >empty_text.json <<'END'
{"identifier": "e", "program": "true", "inputs": [{"identifier": "kind", "required": true, "domain": {"values": ["", null, "x"]}},
  {"identifier": "o", "default": "", "domain": {"values": ["", null]}}], "targets": [{"identifier": "t"}]}
END
echo '{"entitySpace": [{"identifier": "kind", "propertyDomain": {"values": ["", null]}}], "experiments": [{"experimentIdentifier": "e"}]}' >empty_text.space.json
is "\"\" is not null: identifiers, CSV, JSON, pages" eval '
    "$space" list empty_text.space.json | tr "\n" " " | grep -qx "kind\. kind\.None " && "$space" list empty_text.space.json --format csv | tr "\r\n" "  " | grep -q "kind\.,  kind\.None,None  " &&
    "$space" list empty_text.space.json --format json | tr -d "\n\t" | grep -q "\"kind\": \"\"}.*\"kind\": null}" && "$space" describe empty_text.space.json --experiments empty_text.json >page &&
    grep -qx "  kind  categorical  \[.., None\]" page && grep -qE "^ +o +optional +.. +no$" page && "$space" experiments e --experiments empty_text.json | grep -qx "    Default value: .."'
is "... --set can name both" eval 'for v in "\"\"=kind." "None=kind.None" "=kind.None"; do "$BUILD/sweep" empty_text.space.json --experiments empty_text.json --store new.st --dry-run --set "kind=${v%=*}" | grep -qE "^run +${v##*=} " || exit 1; done'
is "an empty list is one" eval '[ "$("$space" list odd.json --format json --limit 0)" = "[]" ]'
printf 'entitySpace:\n- {identifier: "a\\e[2J", propertyDomain: {values: ["x\\ny", "\\x9b"]}}\n' >wild.yaml
is "what moves a cursor is spelled out" eval '"$space" list wild.yaml >screen && "$space" describe wild.yaml >>screen && "$space" check wild.yaml >>screen &&
    [ -z "$(LC_ALL=C tr -d "\n -~\200-\377" <screen)" ] && ! LC_ALL=C grep -q "$(printf "\302\233")" screen && [ "$("$space" list wild.yaml | wc -l)" = 2 ]'

cat >wild.json <<'END'
{"identifier": "e\u001b[2J", "actuator": "a\u001b[2J", "description": "d\u001b[2J", "program": "p", "inputs": [
  {"identifier": "in\u001b[2J", "default": "\u001b[2J", "unsupported": {"\u001b[2J": "\u001b[2J"}},
  {"identifier": "v", "required": true, "domain": {"values": ["a", null]}}],
 "targets": [{"identifier": "t\u001b[2J", "unit": "\u001b[2J", "description": "\u001b[2J"}]}
END
printf 'sampleStoreIdentifier: "\\e[2J"\nentitySpace:\n- {identifier: v, propertyDomain: {values: [a]}}\nexperiments: [{actuatorIdentifier: "a\\e[2J", experimentIdentifier: "e\\e[2J"}]\n' >wild.yaml
is "of experiments and stores too" eval '"$space" experiments --experiments wild.json >screen && "$space" experiments "$(printf "e\033[2J")" --experiments wild.json >page &&
    "$space" describe wild.yaml --experiments wild.json >>screen && [ "$(LC_ALL=C cat page screen | tr -d "\n -~" | wc -c)" = 0 ] && grep -qF "e\x1b[2J" page screen'

# ---- 10^12 entities, and more than can be counted ----
{ echo "entitySpace:"; for i in 1 2 3 4 5 6; do echo "- {identifier: d$i, propertyDomain: {domainRange: [0, 100], interval: 1}}"; done; } >large.yaml
is "10^12 are described in 20 MB" eval 'within 20000 "$space" describe large.yaml | grep -qx "  Number entities: 1000000000000"'
is "and 1,000 random ones listed, none twice" eval 'within 20000 "$space" list large.yaml --mode random --seed 7 --limit 1000 >r && sort -u r | wc -l | grep -qx 1000 && [ "$(sed "s/-.*//" r | sort -u | wc -l)" = 100 ]'
is "and 100,000, and the last of a million in sequence" eval 'within 20000 "$space" list large.yaml --mode random --limit 100000 | sort -u | wc -l | grep -qx 100000 &&
    within 20000 "$space" list large.yaml --limit 1000001 | tail -n 1 | grep -qx "d1.0-d2.0-d3.1-d4.0-d5.0-d6.0"'
{ cat large.yaml; echo 'constraints: [d1 % 7 == 0, "d2 + d3 < d6", d4 > 3]'; } >constrained.yaml
is "constraints on it: those that share no dimension are counted apart" eval '"$space" describe constrained.yaml | grep -qx "  Number entities: 1000000000000 (allowed by the constraints: 23997600000)"'
sed "s/constraints:.*/constraints: [d1 + d2 + d3 < d4 + d5 + d6]/" constrained.yaml >wide.yaml
is "... one over all of them: estimated" eval '"$space" describe wide.yaml | grep -qE "^  Number entities: 1000000000000 .allowed by the constraints: about 4\.[0-9]*e\+11, plus or minus [0-9.]+e\+09.$"'
cat >sparse.yaml <<'END'
entitySpace:
- {identifier: a, propertyDomain: {domainRange: [0, 1000000], interval: 1}}
- {identifier: b, propertyDomain: {domainRange: [0, 1000000], interval: 1}}
constraints: ["a + b == 777777", "a % 1000 == 5"]
END
is "778 of 10^12 are counted and drawn" eval '"$space" check sparse.yaml | grep -q "2 constraints that allow 778, " && "$space" list sparse.yaml --mode random --limit 9 | sort -u | wc -l | grep -qx 9'
sed "s/^constraints.*/constraints: [\"a * b % 1000003 == 7 and b * b % 999983 == 3\"]/" sparse.yaml >unknown.yaml
sed "s/^constraints.*/constraints: [\"a ** 3 % 1000003 == b ** 3 % 999983\"]/" sparse.yaml >rare.yaml
is "what one draw meets is between wide limits" eval '"$space" check rare.yaml | grep -q "1 constraint that allows between 1.8e+06 and 5.7e+07 (95 %), "'
is "what no draw meets and no equation tells is unknown" eval '"$space" check unknown.yaml | grep -q "1 constraint that allows unknown: none of 100000 sampled entities meets them, "'
refused "... and not drawn" 2 "no entity that the constraints allow was found: 1000000 in a row were refused" "$space" list unknown.yaml --mode random --limit 2
is "met by what is listed" eval '"$space" list constrained.yaml --mode random --limit 500 >c && [ "$(wc -l <c)" = 500 ] &&
    sed "s/d[1-6]\.//g" c | awk -F- "\$1 % 7 || \$2 + \$3 >= \$6 || \$4 <= 3" >bad && [ ! -s bad ]'
{ echo "entitySpace:"; for i in 1 2 3 4 5 6 7 8; do echo "- {identifier: d$i, propertyDomain: {domainRange: [0, 1000000000000], interval: 1}}"; done; } >huge.yaml
is "10^96 too, where they need no counting" eval '"$space" check huge.yaml | grep -q "at least 340282366920938463463374607431768211455 entities" && [ "$("$space" list huge.yaml --limit 3 | wc -l)" = 3 ]'
refused "but not permuted" 2 "cannot permute more than 2^128 entities" "$space" list huge.yaml --mode random --limit 3
printf 'entitySpace:\n- {identifier: x, propertyDomain: {domainRange: [0, 1]}}\n- {identifier: smiles}\n' >open.yaml
is "not countable: said so" eval '"$space" describe open.yaml | grep -qx "  Space with non-discrete dimensions. Cannot count entities" && "$space" check open.yaml | grep -q "entities that cannot be counted"'
refused "and not listed: what names no values has a name" 2 "smiles: no value can be listed or drawn" "$space" list open.yaml
refused "nor drawn from what names no values" 2 "smiles: " "$space" list open.yaml --mode random --limit 3
cat >weigh.json <<'END'
{"identifier": "weigh", "program": "./weigh.sh", "inputs": [{"identifier": "smiles", "required": true, "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}}], "targets": [{"identifier": "w"}]}
END
printf '#!/bin/sh\necho "{\\"w\\": ${#TUNE_INPUT_SMILES}}" >"$TUNE_OUTPUT/report.json"\n' >weigh.sh && chmod +x weigh.sh
printf 'entitySpace:\n- identifier: smiles\nexperiments: [{experimentIdentifier: weigh}]\n' >molecules.yaml
is "molecules as ado writes them, without a domain: described, checked, measured, shown" eval '
    "$space" describe molecules.yaml --experiments weigh.json | grep -qx "    smiles     required  a dimension" && "$space" check molecules.yaml --experiments weigh.json | grep -q "entities that cannot be counted" &&
    for m in CCN CCNN; do "$BUILD/sweep" molecules.yaml --experiments weigh.json --store molecules --set smiles=$m >/dev/null || exit 1; done &&
    "$BUILD/samples" show molecules.yaml --store molecules --output-format csv | tr -d "\r" | cut -d, -f2,5- >shown; cat shown; printf "identifier,smiles,w\nsmiles.CCN,CCN,3.0\nsmiles.CCNN,CCNN,4.0\n" | cmp - shown'
refused "... a domain of values that an experiment wants is not left out" 2 "the values of dimension smiles are not all allowed by experiment weigh: its values are not listed" sh -c "sed 's/\"variableType.*TYPE\"/\"values\": [\"C\"]/' weigh.json >closed.json; '$space' check molecules.yaml --experiments closed.json"
head -n 2 open.yaml >line.yaml
refused "a continuous dimension is not listed, and how it can be" 2 "take random or sobol, and give the number of entities" "$space" list line.yaml
for order in $(sed -nE 's/.*take (.*), and give.*/\1/p' complained | sed 's/ or / /'); do
    is "... $order" eval '[ "$("$space" list line.yaml --mode $order --limit 4 | wc -l)" = 4 ]'
done
is "a continuous dimension is drawn from" eval '[ "$("$space" list line.yaml --mode sobol --limit 8 | sed "s/x\.//" | awk "{ n[int(\$1 * 8)]++ } END { print length(n) }")" = 8 ]'

# ---- a list of points ----
mkdir points && printf 'batch,lr,opt\n1,0.1,adam\n8,0.01,sgd\n8,0.1,\n1,0.1,adam\n2,1e-3,adam\n' >points/points.csv
printf 'entitySpace: [{identifier: lr}, {identifier: batch, propertyDomain: {domainRange: [1, 100], interval: 1}}, {identifier: opt}]\npoints: points.csv\nconstraints: [batch < 9]\n' >points/p.yaml
is "points of a file: checked, what is repeated is told" eval '"$space" check points/p.yaml | grep -qx "points/p.yaml: fine: 3 dimensions, 4 points of points/points.csv (left out: 1 repeated points, the first in line 5), 1 constraint that allows 4, 0 experiments"'
is "... described: each dimension has the values of its column" eval '"$space" describe points/p.yaml >page && grep -qx "  Number entities: 4, listed in points/points.csv" page && grep -qx "  lr     discrete     .0.1, 0.01, 0.001." page && grep -qx "  opt    categorical  .adam, sgd, None." page && ! grep -q "one of the points" page'
is "... listed in the order of the file" same "$space" list points/p.yaml <<'END'
lr.0.1-batch.1-opt.adam
lr.0.01-batch.8-opt.sgd
lr.0.1-batch.8-opt.None
lr.0.001-batch.2-opt.adam
END
for order in random "sequential-grouped --grouping batch" "random-grouped --grouping opt" sobol; do
    is "... $order: each once" eval '"$space" list points/p.yaml --mode $order | sort >got && "$space" list points/p.yaml | sort | cmp - got'
done
is "... groups stand together" eval '"$space" list points/p.yaml --mode random-grouped --grouping batch --seed 1 | sed "s/.*batch.\([0-9]*\).*/\1/" | uniq | wc -l | grep -qx 3'
is "... the id is that of the points, not of their file" eval '(head -n 4 points/points.csv; tail -n 1 points/points.csv) >points/q.csv && sed s/points.csv/q.csv/ points/p.yaml >points/q.yaml && head -n 3 points/points.csv >points/few.csv && sed s/points.csv/few.csv/ points/p.yaml >points/few.yaml &&
    id_of() { "$space" describe $1 | head -n 1; } && [ "$(id_of points/p.yaml)" = "$(id_of points/q.yaml)" ] && [ "$(id_of points/p.yaml)" != "$(id_of points/few.yaml)" ]'
is "... a copy in a store has its points beside it" eval 'mkdir -p kept/spaces kept/data && cp points/p.yaml kept/spaces/x.yaml && cp points/points.csv kept/data/x.yaml.points.csv && "$space" list kept/spaces/x.yaml | cmp - wanted'
printf 'batch,lr,opt\n1,0.1,adam\n100,0.01,sgd\n' >points/high.csv
sed s/points.csv/high.csv/ points/p.yaml >points/high.yaml
refused "... outside the domain of the space" 2 'points/high.yaml:2:9: points/high.csv:3: batch cannot be "100": this value is not in its domain in the file of the space' "$space" check points/high.yaml
sed s/points.csv/none.csv/ points/p.yaml >points/none.yaml
refused "... no such file" 2 "points/none.yaml:2:9: points/none.csv: cannot be read" "$space" check points/none.yaml
cat >points/train.json <<'END'
{"identifier": "train", "program": "../weigh.sh", "inputs": [{"identifier": "batch", "required": true}, {"identifier": "lr", "required": true}, {"identifier": "opt", "required": true, "domain": {"values": ["adam", "sgd", null]}}], "targets": [{"identifier": "w"}]}
END
echo "experiments: [{experimentIdentifier: train}]" >>points/p.yaml
is "... swept: its points and no others; --set gives them all one value" eval '"$BUILD/sweep" points/p.yaml --experiments points/train.json --store new.st --dry-run | grep -q "^# 4 of 4 would be measured" && "$BUILD/sweep" points/p.yaml --experiments points/train.json --store new.st --dry-run --set opt=sgd | grep -c "^run .*opt.sgd" | grep -qx 4 && "$BUILD/sweep" points/p.yaml --experiments points/train.json --store new.st --dry-run --set lr=0.5 | grep -q "^# 4 of 4 "'

# ---- what is wrong ----
bad() { # NAME TEXT - the space on standard input is refused with that text by check, exit code 2
    cat >bad.yaml
    refused "$1" 2 "$2" "$space" check bad.yaml
}
bad "an unknown key" 'bad.yaml:1:1' <<'END'
entityspace: []
END
bad "interval with values" 'bad.yaml:3:46: entitySpace[0] (a): interval and values exclude each other' <<'END'
entitySpace:
- identifier: a
  propertyDomain: {values: [1, 2], interval: 1}
END
bad "a range whose end is not above its start" 'bad.yaml:3:33: entitySpace[0] (a): the end of domainRange must be above its start' <<'END'
entitySpace:
- identifier: a
  propertyDomain: {domainRange: [2, 2]}
END
bad "a duplicate dimension" 'bad.yaml:3:3: entitySpace[1] (a): a dimension of this name is already in line 2' <<'END'
entitySpace:
- identifier: a
- identifier: a
END
bad "a duplicate value" 'bad.yaml:2:51: entitySpace[0] (a): True is in values twice' <<'END'
entitySpace:
- {identifier: a, propertyDomain: {values: [1, 2, true]}}
END
bad "a wrong type" 'bad.yaml:2:16: ' <<'END'
entitySpace:
- {identifier: [a]}
END
bad "a constraint over no dimension" 'bad.yaml:3:15' <<'END'
entitySpace:
- {identifier: abc, propertyDomain: {values: [1]}}
constraints: ['abd > 1']
END
bad "a constraint that cannot be evaluated" 'division by zero' <<'END'
entitySpace:
- {identifier: a, propertyDomain: {values: [0, 1]}}
constraints: ['1 % a == 0']
END
cat >empty.yaml <<'END'
entitySpace:
- {identifier: a, propertyDomain: {values: [0, 1, 2]}}
- {identifier: b, propertyDomain: {values: [1, 2]}}
constraints: ['a > 0', 'a > 5 or b == 2', 'a + b == 9']
END
refused "constraints that leave nothing: which excludes how many" 1 'empty.yaml: no entity meets the constraints: "a > 0" excludes 2 of 6, "a > 5 or b == 2" excludes 2 of 4, "a + b == 9" excludes 2 of 2' "$space" check empty.yaml
is "... one that leaves something is fine" eval 'sed "s/a + b == 9/a + b == 4/" empty.yaml >one.yaml && "$space" check one.yaml | grep -q "fine: 2 dimensions, 6 entities, 3 constraints"'
cat >sizes.json <<'END'
{"identifier": "sizes", "program": "true", "inputs": [{"identifier": "size", "required": true, "domain": {"domainRange": [1, 100000], "interval": 1}},
  {"identifier": "lr", "default": 0.1, "domain": {"domainRange": [0, 1]}}], "targets": [{"identifier": "t"}]}
END
exponent() { # DOMAIN PARAMETERIZATION TEXT - the space with these is refused with the text
    printf 'entitySpace: [{identifier: size, propertyDomain: %s}]\nexperiments: [{experimentIdentifier: sizes%s}]\n' "$1" "$2" >exponent.yaml
    refused "a number that YAML takes for a text: $3" 2 "$3" "$space" check exponent.yaml --experiments sizes.json
}
exponent '{values: [1, 1e3, 1e4]}' '' "'1e3' is not a number; YAML 1.1 reads 1e3 as a text: write 1000 or 1.0e+3"
exponent '{values: ["1e3"]}' '' "'1e3' is not a number"
exponent '{domainRange: [1, 1e4], interval: 1}' '' "and the end itself is not in the range; YAML 1.1 reads 1e4 as a text: write 10000 or 1.0e+4"
exponent '{domainRange: [1, 9], interval: 25e-2}' '' "interval must be a number above 0; YAML 1.1 reads 25e-2 as a text: write 25.0e-2"
exponent '{values: [1]}' ', parameterization: [{property: {identifier: lr}, value: 1.5e5}]' "lr of sizes cannot be '1.5e5' (space experiments sizes shows its domain); YAML 1.1 reads 1.5e5 as a text: write 150000 or 1.5e+5"
printf 'entitySpace: [{identifier: size, propertyDomain: {values: [1]}}]\nexperiments: [{experimentIdentifier: sizes}]\n' >exponent.yaml
is "... --set takes it for the number" eval '"$BUILD/sweep" exponent.yaml --experiments sizes.json --store new.st --dry-run --set lr=1e-5 | grep -q "sizes-lr.1e-05"'
bad "no YAML" 'bad.yaml:2:1: ' <<'END'
entitySpace: [
END
mkdir store folder && echo '{"id": 3}' >store/store.json
refused "a store that is none" 1 "is folder a sample store?" sh -c "echo '{}' >folder/store.json; '$space' describe large.yaml --store folder"
refused "nor one of another kind" 1 'store.json: "id" is missing or not a text' "$space" describe large.yaml --store store
refused "a folder for a file" 1 "folder is a folder, expected a file" "$space" check folder
refused "a pipe" 1 "is not a regular file" sh -c "mkfifo pipe; '$space' check pipe"
if [ "$(id -u)" = 0 ] && setpriv --reuid 65534 --clear-groups "$space" experiments >/dev/null 2>&1; then
    chmod 000 folder && chmod 755 . && cp large.yaml secret.yaml && chmod 000 secret.yaml
    refused "a file without permission" 1 "cannot open secret.yaml: Permission denied" setpriv --reuid 65534 --clear-groups "$space" check secret.yaml
    refused "a folder of experiments without permission" 1 "folder: cannot read this folder of experiments: Permission denied" \
        setpriv --reuid 65534 --clear-groups "$space" experiments --experiments folder
else
    skip "a file without permission" "not root, no setpriv, or nobody else may read the tree"
    skip "a folder of experiments without permission" "not root, no setpriv, or nobody else may read the tree"
fi
refused "no such file" 2 "gone.yaml" "$space" check gone.yaml
refused "no file named" 2 "needs one space: give its file" "$space" describe
refused "no command" 2 "expected one of describe|list|check|experiments|template" "$space" draw large.yaml
refused "a full disk behind its output" 1 "cannot write to standard output" sh -c "'$space' list large.yaml >/dev/full"
is "a closed pipe ends it" eval '[ "$("$space" list large.yaml | head -n 2 | wc -l)" = 2 ]'
printf 'entitySpace: [{identifier: a, propertyDomain: {values: [1]}}]\nexperiments: [{experimentIdentifier: own}]\n' >none.yaml
echo '{"identifier": "own", "program": "./own", "inputs": [{"identifier": "a", "required": true, "domain": {"values": [1]}}], "targets": [{"identifier": "x"}]}' >none.json
is "an experiment without an actuator is one of custom_experiments, in a space as in its file" eval '"$BUILD/space" describe none.yaml --experiments none.json | grep -q "custom_experiments"'
finish
