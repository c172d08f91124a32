#!/bin/sh
# test_model_input.sh - bad input of build/sweep --order model: each ends well or with a clear error, and no result is lost.
. tests/tap.sh
cd "$tmp" || exit 1
sweep=$BUILD/sweep samples=$BUILD/samples
# speed is highest at a 64, b 5, y. flat is constant, and so is zero. holes is NaN for each third b, nan for all, huge an infinity
mkdir own && cat >own/work.sh <<'E2'
#!/bin/sh
echo "$TUNE_INPUT_A $TUNE_INPUT_B $TUNE_INPUT_KIND" >>"$TUNE_INPUT_LOG"
[ -e invalid ] && exit 3
[ -e fail ] && exit 1
awk -v a="$TUNE_INPUT_A" -v b="$TUNE_INPUT_B" -v k="$TUNE_INPUT_KIND" -v nonce="$TUNE_NONCE" 'BEGIN {
    l = log(a) / log(2) - 6
    v = sprintf("%.6f", 1000 * exp(-l * l / 8 - (b - 5) * (b - 5) / 12) * (k == "y" ? 1 : 0.7))
    printf "{\"speed\": %s, \"flat\": 5, \"zero\": 0, \"holes\": %s, \"nan\": NaN, \"huge\": Infinity, \"kernel\": \"k\", \"nonce\": \"%s\"}\n", v, (b % 3 ? v : "NaN"), nonce }' >"$TUNE_OUTPUT/report.json"
E2
chmod +x own/work.sh
cat >own/work.json <<E2
{"identifier": "work", "description": "", "program": "./work.sh", "output": null,
 "inputs": [
  {"identifier": "a", "required": true, "domain": {"domainRange": [1, 1000], "interval": 1}},
  {"identifier": "b", "required": true, "domain": {"domainRange": [0, 100], "interval": 1}},
  {"identifier": "kind", "required": true, "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}},
  {"identifier": "log", "default": "$tmp/log", "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}}],
 "targets": [{"identifier": "speed", "unit": "tokens/s"}, {"identifier": "flat", "unit": ""}, {"identifier": "zero", "unit": ""},
             {"identifier": "holes", "unit": ""}, {"identifier": "nan", "unit": ""}, {"identifier": "huge", "unit": ""},
             {"identifier": "kernel", "type": "text"}]}
E2
space() { # KINDS - a space with these values of kind
    echo "entitySpace:
  - {identifier: a, propertyDomain: {values: [1, 2, 4, 8, 16, 32, 64, 128, 256]}}
  - {identifier: b, propertyDomain: {domainRange: [0, 12], interval: 1}}
  - {identifier: kind, propertyDomain: {values: [$1]}}
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work}]"
}
space "x, y" >s.yaml
# search SPACE STORE FLAG... - a search, which leaves what it measured in the file log
search() {
    searched=$1 into=$2
    shift 2
    rm -f log
    "$sweep" "$searched" --experiments own/work.json --store "$into" --order model --max-failures 0 --share-cores "$@" >out 2>&1
}
rows() { "$samples" show s.yaml --experiments own/work.json --store "$1" --where "$2" --output-format csv | tail -n +2 | wc -l; }
waits="model +waits: fewer than 2 results are valid and have speed; until then, the points are those of sobol"

# ---- no valid rows ----
is "no valid rows: all are measured, it says so, and the exit code is 1" eval 'touch invalid; search s.yaml st --maximize speed --entities 12; [ $? = 1 ] && [ $(sort -u log | wc -l) = 12 ] && [ $(grep -cE "$waits" out) = 1 ] && grep -q "0 valid, 12 invalid" out || { cat out; false; }'
is "... the rows are there" eval '[ $(rows st "status == \"invalid\"") = 12 ]'
is "failed rows: the same" eval 'rm invalid; touch fail; search s.yaml st1 --maximize speed --entities 12; [ $? = 1 ] && grep -qE "$waits" out && grep -q "12 failed" out || { cat out; false; }'
rm fail

# ---- few rows, constant rows ----
is "one row" eval 'search s.yaml st2 --maximize speed --entities 1 && [ $(rows st2 "speed > 0") = 1 ] || { cat out; false; }'
is "a constant target: no point twice" eval 'search s.yaml st3 --maximize flat --entities 14 && [ $(sort -u log | wc -l) = 14 ] && ! grep -qE "model +waits" out || { cat out; false; }'
is "... of zeros, together with another one" eval 'search s.yaml st3a --maximize zero --minimize speed --entities 14 && [ $(sort -u log | wc -l) = 14 ] && ! grep -qE "model +waits" out || { cat out; false; }'

# ---- NaN and infinity ----
is "NaN in some rows: those count as invalid, and the best is found" eval 'search s.yaml st4 --maximize holes --entities 30 --seed 1 && grep -qx "64 5 y" log && [ $(rows st4 "holes == None") -gt 0 ] && [ $(sort -u log | wc -l) = 30 ] || { cat out log; false; }'
is "NaN in all: it says that the model has nothing, and keeps the other figures" eval 'search s.yaml st5 --maximize nan --entities 12 && grep -qE "model +waits: fewer than 2 results are valid and have nan" out && [ $(rows st5 "speed > 0") = 12 ] || { cat out; false; }'
is "infinity: the same" eval 'search s.yaml st5 --minimize huge --entities 12 && grep -qE "waits: .* have huge" out || { cat out; false; }'
is "no row within --where-target: it says so" eval 'search s.yaml st5 --maximize speed --where-target "flat > 6" --entities 12 && grep -qE "waits: .* have speed within --where-target" out || { cat out; false; }'

# ---- points ----
printf 'a,b,kind\n1,1,x\n2,2,y\n1,1,x\n4,4,x\n64,5,y\n1,1,x\n' >p.csv
{ echo "points: p.csv"; space "x, y" | sed 's/, propertyDomain: .*/}/'; } >points.yaml
is "points that are there three times are measured once" eval 'search points.yaml st6 --maximize speed && [ $(wc -l <log) = 4 ] && [ $(sort -u log | wc -l) = 4 ] || { cat out; false; }'
printf 'a,b,kind\n1,1,x\n1,1,x\n' >q.csv
sed 's/p.csv/q.csv/' points.yaml >one.yaml
refused "the same point twice is a space of one" 2 "no dimension of this space has more than one value" "$sweep" one.yaml --experiments own/work.json --store none --order model --maximize speed
space "x, y, x" >twice.yaml
refused "a value that is there twice" 2 "'x' is in values twice" "$sweep" twice.yaml --experiments own/work.json --store none --order model --maximize speed
space "x, y, p, q, r, s, t, u, v, w, z" >many.yaml
is "categories that were never seen can be chosen: the best is found before all are measured" eval 'search many.yaml st7 --maximize speed --entities 45 --seed 1 && grep -qx "64 5 y" log && [ $(cut -d" " -f3 log | sort -u | wc -l) -gt 6 ] || { cat out log; false; }'
is "... and also if the store has rows of a category that this space lacks" eval 'search s.yaml st7 --maximize speed --entities 14 && ! grep -q "[pqrstuvwz]$" log && [ $(grep -c known out) -gt 1 ] || { cat out log; false; }'

# ---- refused ----
wrong() { # TEXT SPACE FLAG... - ends with 2 and this text
    refused "$1" 2 "$1" "$sweep" "$2" --experiments own/work.json --store none --order model "$3" "$4"
}
wrong "property kernel of experiment work is a text, but must be a number" s.yaml --maximize kernel
echo 'entitySpace: []
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work}]' >none.yaml
wrong "a space needs entitySpace, a list of at least one dimension" none.yaml --maximize speed
is "nothing was written" test ! -e none
finish
