#!/bin/sh
# test_spaces.sh - stores, spaces and questions over HTTP: the same as samples prints; hostile and damaged stores; a running sweep.
. tests/tap.sh
studio=$BUILD/studio samples=$BUILD/samples sweep=$BUILD/sweep
for p in "$studio" "$samples" "$sweep"; do
    [ -x "$p" ] || { skip "spaces over HTTP" "$(basename "$p") was not built"; finish; }
done
for p in curl python3; do
    command -v $p >/dev/null || { skip "spaces over HTTP" "there is no $p"; finish; }
done
root=$tmp/root
mkdir "$root" "$tmp/outside" && cd "$root" || exit 1
LC_ALL=C.UTF-8
export LC_ALL

# ---- a store: measured, failed, invalid and missing points, with hostile names ----
cat >work.sh <<'E2S'
#!/bin/sh
[ "$TUNE_INPUT_A" != 9 ] || { echo "nine is <b>too</b> much" >&2; exit 1; }
while [ "$TUNE_INPUT_A" = 50 ] && [ ! -e ../go ]; do sleep 0.02; done
echo "{\"speed\": $TUNE_INPUT_A$TUNE_INPUT_B.5, \"steps\": $((TUNE_INPUT_A * 10 - TUNE_INPUT_B))}" >"$TUNE_OUTPUT/report.json"
E2S
chmod +x work.sh
cat >work.json <<'E2S'
{"identifier": "work", "actuator": "custom_experiments", "description": "", "program": "./work.sh", "output": null,
 "inputs": [
  {"identifier": "a", "required": true, "domain": {"domainRange": [0, 100], "interval": 1}},
  {"identifier": "b", "default": 0, "domain": {"domainRange": [0, 100], "interval": 1}},
  {"identifier": "kind", "default": "plain", "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}}],
 "rules": [{"require": "a != 8", "reason": "a is 8"}],
 "targets": [{"identifier": "speed", "unit": "1/s"}, {"identifier": "steps", "unit": "", "whole": true},
  {"identifier": "is_valid", "unit": "", "whole": true, "optional": true}]}
E2S
experiments='experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work}]'
cat >s.yaml <<E2S
entitySpace:
  - {identifier: a, propertyDomain: {values: [1, 2, 3, 8, 9]}}
  - {identifier: b, propertyDomain: {values: [4, 5]}}
metadata: {name: "<script>alert(1)</script>"}
$experiments
E2S
cat >wide.yaml <<E2S
entitySpace:
  - {identifier: a, propertyDomain: {values: [1, 2]}}
  - {identifier: b, propertyDomain: {values: [4, 5]}}
  - {identifier: kind, propertyDomain: {values: [plain, "<i>\"&'"]}}
$experiments
E2S
echo '{"store": "st", "experiments": ["work.json"]}' >tune.json
measured() { "$sweep" s.yaml --name first --entities 9 >/dev/null && "$sweep" wide.yaml --name second --repeat 2 >/dev/null; }
is "a store of two operations" measured

"$studio" --root "$root" --port 0 >"$tmp/url" 2>"$tmp/server.log" &
server=$!
trap 'kill $server 2>/dev/null; rm -rf "$tmp"' EXIT
await $server test -s "$tmp/url"
url=$(cat "$tmp/url")
get() { path=$1; shift; curl -sS -G "$url$path" "$@"; }
status_of() { path=$1; shift; curl -sS -o "$tmp/body" -w '%{http_code}' -G "$url$path" "$@"; }
# ask CODE PYTHON PATH [CURL OPTION...] - the status, and what is true of the answer j.
ask() {
    code=$1 check=$2
    shift 2
    got=$(status_of "$@")
    [ "$got" = "$code" ] || { echo "$got"; cat "$tmp/body"; return 1; }
    python3 -c "import json,sys; j = json.load(open('$tmp/body')); assert (${check}), j"
}

# ---- each question is what samples prints ----
# same QUESTION [NAME=VALUE...] - as CSV and JSON lines; about= is a word, the others are flags.
same() {
    question=$1
    shift
    words='' left='' right=''
    n=$#
    for pair in "$@"; do # the parameters follow their own curl options
        case $pair in
        about=*) words=${pair#*=} ;;
        left=*) left=${pair#*=} ;;
        right=*) right=${pair#*=} ;;
        esac
        set -- "$@" --data-urlencode "$pair"
    done
    flags="$tmp/flags"
    : >"$flags"
    i=0
    for pair in "$@"; do
        i=$((i + 1))
        [ $i -le $n ] || break
        case $pair in
        about=* | left=* | right=*) ;;
        *=true) printf -- '--%s\n' "$(echo "${pair%%=*}" | tr _ -)" >>"$flags" ;;
        *) printf -- '--%s\n%s\n' "$(echo "${pair%%=*}" | tr _ -)" "${pair#*=}" >>"$flags" ;;
        esac
    done
    shift $n
    for format in csv json jsonl; do
        got=$(curl -sS -o "$tmp/theirs" -w '%{http_code}' -G "${url}api/answers/$question" "$@" -d format=$format)
        [ "$got" = 200 ] || { cat "$tmp/theirs"; return 1; }
        tr '\n' '\0' <"$flags" | xargs -0 "$samples" "$question" ${words:+"$words"} ${left:+"$left"} ${right:+"$right"} --output-format $format >"$tmp/ours" 2>"$tmp/e"
        cmp "$tmp/ours" "$tmp/theirs" || { cat "$tmp/e"; diff "$tmp/ours" "$tmp/theirs"; return 1; }
    done
}
is "show" same show about=s.yaml
is "show of an operation, of an entity, of an experiment" eval 'same show about=first && same show about=a.1-b.4 && same show about=work'
is "show chooses rows and columns" same show about=wide.yaml 'where=a == 2' sort=-speed columns=identifier,speed limit=3 'derive=twice = 2 * speed' property=speed,twice include=matching build=all
is "best" same best about=s.yaml maximize=speed count=3 'where=steps < 30'
is "best: a Pareto front, and per dimension" eval 'same best about=s.yaml maximize=speed minimize=steps && same best about=s.yaml maximize=speed per=b'
is "effect" same effect about=s.yaml property=speed x=a
is "compare" same compare left=a=1 right=a=2 property=speed
is "compare: a verdict" same compare left=a=1 right=a=2 maximize=speed regression=5%
is "plot" same plot about=s.yaml property=speed,steps
is "missing, points, status, export" eval 'same missing about=s.yaml && same points about=s.yaml && same status && same status about=first && same export'
is "results of an entity" same results about=s.yaml entity=a.1-b.4
is "the command of the best" ask 200 "j['rows'][0][0] == '''$("$samples" best s.yaml --maximize speed --print-command)'''" api/answers/command -d about=s.yaml -d maximize=speed
is "a file to download has its name" eval 'curl -sS -D - -o /dev/null "${url}api/answers/show?about=s.yaml&format=csv" | grep -qi "content-disposition: attachment; filename=\"show.csv\""'
is "parquet is the file of samples" eval 'get api/answers/show -d about=s.yaml -d format=parquet >p1 && "$samples" show s.yaml --output-file p2.parquet && cmp p1 p2.parquet && rm p1 p2.parquet'
columns="[c['name'] for c in j['columns']]"
is "an answer has types, units and its command" ask 200 "
  [c for c in j['columns'] if c['name'] == 'speed'][0]['unit'] == '1/s' and [c['dimension'] for c in j['columns'] if c['name'] == 'a'] == [True]
  and j['command'] == 'samples best s.yaml --maximize speed --count 2' and len(j['rows']) == 2 and j['verdict'] == 0" \
    api/answers/best -d about=s.yaml -d maximize=speed -d count=2
# Each parameter that a route has is an option that samples takes for that question, and the other way round.
parameters() {
    get openapi.json >"$tmp/openapi"
    for question in show best effect compare plot missing points results status export; do
        python3 - "$tmp/openapi" $question >"$tmp/names" <<'E2S'
import json, sys
own = {"store", "about", "left", "right", "format", "brief"}
names = [p["name"] for p in json.load(open(sys.argv[1]))["paths"]["/api/answers/" + sys.argv[2]]["get"]["parameters"]]
print("\n".join(n.replace("_", "-") for n in names if n not in own))
E2S
        for option in $(sed -n 's/^    {"\([a-z-]*\)", TUNE_[A-Z0-9_]*[,(].*/\1/p' "$here/tools/samples.c"); do
            case $option in store | output-* | width | svg | log | color | print-command) continue ;; esac
            value=1
            case $option in all-properties | predicted | with-programs | yes) value=true ;; include) value=matching ;; aggregate) value=mean ;; esac
            "$samples" $question --$option=$value --output-format csv >/dev/null 2>"$tmp/e"
            takes=yes
            ! grep -q "$question takes no --$option" "$tmp/e" || takes=no
            has=no
            ! grep -qx -- "$option" "$tmp/names" || has=yes
            [ $takes = $has ] || { echo "$question --$option: samples $takes, route $has"; return 1; }
        done
    done
}
is "the routes take the options of samples" parameters
is "a parameter of another question is refused" ask 400 "'no such parameter' in j['detail']" api/answers/best -d about=s.yaml -d series=a

# ---- pictures ----
picture() { # NAME=VALUE... - plot.svg is the file of samples plot --svg
    rm -f "$tmp/p.svg" # the flags are in the same order
    about=$1
    shift
    flags=''
    n=$#
    for pair in "$@"; do
        set -- "$@" --data-urlencode "$pair"
        case $pair in *=true) flags="$flags --${pair%%=*}" ;; *) flags="$flags --${pair%%=*} ${pair#*=}" ;; esac
    done
    shift $n
    "$samples" plot "$about" $flags --svg "$tmp/p.svg" >/dev/null 2>&1 || return 1
    get api/answers/plot.svg -d about="$about" "$@" >"$tmp/q.svg" && cmp "$tmp/p.svg" "$tmp/q.svg"
}
is "a heat map" picture s.yaml property=speed
is "curves" picture s.yaml property=speed x=a series=b log=true
is "parallel coordinates" picture wide.yaml property=speed maximize=speed
is "facets" picture wide.yaml property=speed facet=kind
is "a Pareto picture" picture s.yaml property=speed x=steps maximize=speed minimize=steps
rows_of() { # each mark names its row, once: as many as the plot's table has
    get api/answers/plot.svg -d about="$1" -d property=speed | grep -o 'data-row="[0-9]*"' | sort | uniq -c | awk '$1 != 1 { exit 1 }' || return 1
    marks=$(get api/answers/plot.svg -d about="$1" -d property=speed | grep -o 'data-row=' | wc -l)
    [ "$marks" -gt 0 ] && [ "$marks" = "$(get api/answers/plot -d about="$1" -d property=speed -d format=jsonl | wc -l)" ]
}
is "marks name their rows of the table" eval 'rows_of s.yaml && rows_of wide.yaml'
hostile() {
    get api/answers/plot.svg -d about=wide.yaml -d property=speed >"$tmp/q.svg"
    ! grep -q "<i>" "$tmp/q.svg" && grep -q "&#60;i&#62;" "$tmp/q.svg" && python3 -c "import sys, xml.dom.minidom as x; x.parse(sys.argv[1])" "$tmp/q.svg"
}
is "hostile values are text in a picture" hostile
is "a bad picture is a clear error" ask 400 "'dimension' in j['detail'] and 'nosuch' in j['detail']" api/answers/plot.svg -d about=s.yaml -d property=speed -d series=nosuch

# ---- stores and spaces ----
is "the store is found, with its spaces" ask 200 "[s['path'] for s in j['stores']] == ['st'] and j['stores'][0]['problem'] is None
  and j['stores'][0]['operations'] == ['first', 'second'] and j['stores'][0]['experiments'] == ['custom_experiments.work']
  and '<script>alert(1)</script>' in [p['name'] for p in j['stores'][0]['spaces']] and j['left_out'] == 0" api/stores
is "space files are found, others are not" ask 200 "[p['size'] for p in j['spaces'] if p['path'] == 's.yaml'] == [10]
  and [p['dimensions'] for p in j['spaces'] if p['path'] == 'wide.yaml'] == [['a', 'b', 'kind']] and not [p for p in j['spaces'] if 'work.json' in p['path']]
  and any('defaults/spaces/' in p['path'] for p in j['spaces'])" api/spaces
is "points have their states, and dimensions all their values" ask 200 "(lambda c, s: (s.count('measured'), s.count('invalid'), s.count('failed'), s.count('missing')) == (6, 2, 1, 1)
  and j['columns'][c.index('a')]['levels'] == [1, 2, 3, 8, 9])($columns, [r[$columns.index('state')] for r in j['rows']])" api/answers/points -d about=s.yaml
is "a failed point: reason, operation, log, commands" ask 200 "j['points']['rows'][0][2] == 'failed' and 'nine is <b>too</b> much' in j['points']['rows'][0][4]
  and 'first' in j['results']['rows'][0] and j['runs'][0]['log_end'] == 'nine is <b>too</b> much\n' and j['runs'][0]['run'] is None
  and j['commands'][0].startswith('TUNE_INPUT_A=9 ') and j['measure']['argv'] == ['sweep', 's.yaml', '--store', 'st', '--experiments', 'work.json', '--entity', 'a.9-b.4']" \
    api/spaces/point -d about=s.yaml -d entity=a.9-b.4
is "a missing point has no result, and a command" ask 200 "j['results']['rows'] == [] and j['points']['rows'][0][2] == 'missing' and len(j['commands']) == 1" \
    api/spaces/point -d about=first -d entity=a.9-b.5
is "the command of what is missing" ask 200 "j['missing'] == 2 and j['argv'][-4:] == ['--entity', 'a.9-b.4', '--entity', 'a.9-b.5'] and '--trust-store' not in j['argv']" \
    api/spaces/measure -d about=s.yaml -d entities=2
is "no such entity" ask 400 "'a.7-b.7' in j['detail']" api/spaces/point -d about=s.yaml -d entity=a.7-b.7

# ---- the browser's copies ----
tag() { curl -sS -o /dev/null -D - -G "${url}api/answers/show" -d about=s.yaml | tr -d '\r' | sed -n 's/^[Ee][Tt]ag: //p'; }
first_tag=$(tag)
again() { curl -sS -o /dev/null -w '%{http_code}' -H "If-None-Match: $first_tag" -G "${url}api/answers/show" -d about=s.yaml; }
is "what did not change is not sent again" eval '[ -n "$first_tag" ] && [ "$(again)" = 304 ] && [ "$(tag)" = "$first_tag" ]'

# ---- a sweep that runs ----
cat >late.yaml <<E2S
entitySpace: [{identifier: a, propertyDomain: {values: [40, 50, 60]}}]
$experiments
E2S
"$sweep" late.yaml --name late >/dev/null 2>&1 &
late=$!
count_late() { get api/answers/points -d about=late.yaml -d format=jsonl | grep -c '"measured"'; }
is "a result of a running sweep appears" await $late eval '[ "$(count_late)" = 1 ]'
is "what changed is sent again" eval '[ "$(again)" = 200 ]'
: >"$tmp/go"
wait $late
is "and the others, once it ended" eval '[ "$(count_late)" = 3 ]'

# ---- what is missing is measured ----
cat >new.yaml <<E2S
entitySpace: [{identifier: a, propertyDomain: {values: [70, 71, 8]}}]
$experiments
E2S
post() { curl -sS -o "$tmp/body" -w '%{http_code}' -H 'Content-Type: application/json' -d "$1" "${url}api/spaces/measure"; }
count_new() { get api/answers/points -d about=new.yaml -d format=jsonl | grep -c "\"$1\""; }
is "a sweep of what is missing starts" eval '[ "$(post "{\"about\": \"new.yaml\", \"entities\": 2}")" = 200 ] &&
    python3 -c "import json; j = json.load(open(\"$tmp/body\")); assert j[\"program\"] == \"sweep\" and \"a.71\" in j[\"argv\"] and \"a.8\" not in j[\"argv\"], j"'
is "and its results appear" await $server eval '[ "$(count_new measured)" = 2 ]'
is "the rest, too" eval '[ "$(post "{\"about\": \"new.yaml\"}")" = 200 ] && await $server eval "[ \$(count_new invalid) = 1 ]"'
is "nothing is missing any more" eval '[ "$(post "{\"about\": \"new.yaml\"}")" = 400 ] && grep -q "nothing is missing" "$tmp/body"'
over() { curl -sS "${url}api/jobs" | python3 -c "import json, sys; assert [j['state'] for j in json.load(sys.stdin)['jobs']] == ['succeeded'] * 2"; }
is "both jobs ended" await $server over
is "a store that does not exist yet" ask 200 "j['missing'] == 3 and j['argv'] == ['sweep', 'new.yaml', '--store', 'fresh', '--experiments', 'work.json', '--entities', '1']" \
    api/spaces/measure -d about=new.yaml -d store=fresh -d entities=1
is "is made by the first sweep" eval '[ "$(post "{\"about\": \"new.yaml\", \"store\": \"fresh\", \"entities\": 1}")" = 200 ] &&
    await $server eval "[ \$(get api/answers/points -d about=new.yaml -d store=fresh -d format=jsonl | grep -c measured) = 1 ]"'
is "but not out of the root, nor without a space" eval 'ask 403 "\"outside\" in j[\"detail\"]" api/spaces/measure -d about=new.yaml -d store=../outside/fresh &&
    ask 404 "\"no store other\" in j[\"detail\"]" api/spaces/measure -d store=other'

# ---- what leads out of the root ----
cp -r st "$tmp/outside/st"
cp s.yaml "$tmp/outside/s.yaml"
forbidden() { ask 403 "'outside the root' in j['detail']" "$@"; }
is "paths out of the root are refused" eval 'forbidden api/answers/show -d about=/etc/passwd && forbidden api/answers/show -d about=../outside/s.yaml &&
    forbidden api/answers/show -d store=../outside/st && forbidden api/answers/show -d about=s.yaml -d table=/etc/passwd &&
    forbidden api/answers/show -d about=s.yaml -d experiments=/etc && forbidden api/answers/compare -d left=st -d right=../outside/st -d property=speed'
ln -s ../outside/st linked
ln -s ../outside/s.yaml linked.yaml
is "links out of the root are refused and not listed" eval 'forbidden api/answers/status -d store=linked && forbidden api/answers/show -d about=linked.yaml &&
    ask 200 "[s[\"path\"] for s in j[\"stores\"]] == [\"fresh\", \"st\"]" api/stores'
is "names of operations are no paths" ask 400 "'no name' in j['detail']" api/answers/show -d about=s.yaml -d operation=../../x
printf 'secret,a,b\n1,2,3\n' >"$tmp/outside/points.csv"
{ cat s.yaml; echo 'points: ../outside/points.csv'; } >points.yaml
is "a space file's list of points stays in the root" eval 'forbidden api/answers/points -d about=points.yaml && ! grep -q secret "$tmp/body" &&
    ask 200 "[p[\"problem\"] for p in j[\"spaces\"] if p[\"path\"] == \"points.yaml\"][0].count(\"outside the root\") == 1" api/spaces'
cp -r st stranger
ln -s "$tmp/outside/s.yaml" stranger/spaces/space-123456.yaml
is "a link in a store leads nowhere" eval 'forbidden api/answers/status -d store=stranger && ask 200 "[\"outside the root\" in s[\"problem\"] for s in j[\"stores\"] if s[\"path\"] == \"stranger\"] == [True]" api/stores'
rm -r stranger linked linked.yaml points.yaml

# ---- damage ----
cp -r st damaged
for f in damaged/*.h5; do printf 'no HDF5 at all' >"$f"; done
is "a damaged store is a clear problem" ask 500 "'.h5' in j['detail']" api/answers/show -d about=s.yaml -d store=damaged
printf 'entitySpace: [' >bad.yaml
is "a bad space file is a clear problem" eval 'ask 400 "\"bad.yaml:\" in j[\"detail\"]" api/answers/show -d about=bad.yaml &&
    ask 200 "[p[\"problem\"].startswith(\"bad.yaml:\") for p in j[\"spaces\"] if p[\"path\"] == \"bad.yaml\"] == [True]" api/spaces'
is "no store is a clear problem" ask 404 "'nosuch' in j['detail']" api/answers/show -d store=nosuch
rm -r damaged bad.yaml

# ---- at once ----
crowd() {
    i=0 pids=
    while [ $i -lt 8 ]; do
        case $((i % 4)) in
        0) get api/answers/show -d about=s.yaml -d format=csv >"$tmp/c$i" & ;;
        1) get api/answers/plot.svg -d about=s.yaml -d property=speed >"$tmp/c$i" & ;;
        2) get api/stores >"$tmp/c$i" & ;;
        *) get api/spaces >"$tmp/c$i" & ;;
        esac
        pids="$pids $!" i=$((i + 1))
    done
    for pid in $pids; do wait $pid || return 1; done
    for i in 0 1 2 3; do cmp "$tmp/c$i" "$tmp/c$((i + 4))" || return 1; done
    "$samples" show s.yaml --output-format csv | cmp - "$tmp/c0"
}
is "eight requests at once" crowd
is "the server still runs, and printed nothing" eval 'kill -0 $server && [ ! -s "$tmp/server.log" ]'
finish
