#!/bin/sh
# test_programs.sh - programs by their --describe: lists, checks, command lines byte for byte; a preview before the start.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
. tests/studio/server.sh
. tests/studio/jobs.sh
mkdir "$tmp/root"
option() { printf '{"name": "%s", "flag": "--%s", "type": "%s", "default": null, "range": "%s", "choices": [%s], "unit": "", "help": "h", "group": "", "positional": %s}' \
    "$1" "$(echo "$1" | tr _ -)" "$2" "$3" "$4" "${5:-false}"; }
program words "$(option text string '' ''), $(option deep_bool bool '' ''), $(option size int '[1,8]' ''), $(option share double '(0,1]' ''),
    $(option kind choice '' '"a", "b"'), $(option kinds choices '' '"a", "b"'), $(option each interval '' ''), $(option hub_token string '' ''),
    $(option first string '' '' true), $(option 'rest...' string '' '' true | sed 's/"default": null/"default": ""/')" \
    'printf "%s\0" "$@" >words.bin'
printf '#!/bin/sh\nexit 1\n' >"$tmp/programs/silent"
printf '#!/bin/sh\nsleep 600\n' >"$tmp/programs/slow.txt" # cannot be executed
echo '{}' >"$tmp/programs/data.json"
chmod +x "$tmp/programs/silent"
is "a server" serve "$tmp/root" --programs "$tmp/programs,$BUILD"

is "the list" eval 'get /api/programs >"$tmp/list"'
names='[p["name"] for p in j]'
is "has our script, and what it says of itself" holds 'any(p["name"] == "words" and p["what"] == "a test" for p in j)' "$tmp/list"
is "has the recipes, as recipes" holds 'any(p["name"] == "finetune_full" and p["kind"] == "recipe" and p["what"] for p in j)' "$tmp/list"
is "has the sweeps" holds '"sweep" in '"$names" "$tmp/list"
is "has not the studio, nor what does not describe itself" holds 'not {"studio", "silent", "slow.txt", "data.json", "obj"} & set('"$names)" "$tmp/list"
is "says nothing long" holds 'all("options" not in p for p in j)' "$tmp/list"
is "unless asked" eval 'get "/api/programs?full=true" >"$tmp/full" && holds "all(p[\"options\"] or p[\"name\"] for p in j) and len(j[0][\"options\"]) > 3" "$tmp/full"'
is "one program" eval 'get /api/programs/finetune_full >"$tmp/one" && holds "any(o[\"name\"] == \"lr\" for o in j[\"options\"])" "$tmp/one"'
is "an unknown one" gives 404 /api/programs/nothing
is "no path" gives 404 /api/programs/..%2Fwords

# bad OPTION VALUES [TEXT] - refused, and the problem names the option.
bad() { gives 400 /api/command -H "$json" -d "{\"program\": \"words\", \"values\": $2}" && holds "j['option'] == '$1' and '${3-}' in j['detail']" "$tmp/body"; }
is "a whole number" bad size '{"first": "x", "size": "1.5"}' whole
is "a range" bad size '{"first": "x", "size": 9}' '[1,8]'
is "an open range" bad share '{"first": "x", "share": 0}' '(0,1]'
is "a choice" bad kind '{"first": "x", "kind": "c"}' none
is "several choices" bad kinds '{"first": "x", "kinds": "a,c"}' none
is "an interval" bad each '{"first": "x", "each": 1.5}' interval
is "truth" bad deep_bool '{"first": "x", "deep_bool": "perhaps"}' true
is "an option that there is not" bad nonsense '{"first": "x", "nonsense": 1}' 'no such'
is "a list for one value" bad text '{"first": "x", "text": [1]}'
is "a missing word" bad first '{"size": 2}' missing
is "a secret has no place on a command line" bad hub_token '{"first": "x", "hub_token": "hf_123456789"}' environment
is "no values" gives 400 /api/command -H "$json" -d '{"program": "words", "values": [1]}'

# Words of any bytes reach the program as they are: as a job, and by the line for a shell.
cat >"$tmp/values.py" <<'E2'
import json, sys
values = {"text": "a b'c\"d;$(touch bad)\n`e`\\ \u00e9\u4e2d*?~#!&|<>", "deep_bool": False, "size": 3, "share": 0.1, "kind": "b",
          "kinds": "a,b", "each": "epoch", "first": "-x", "rest...": ["", "two words", "'", "--size"]}
words = ["--text", values["text"], "--no-deep-bool", "--size", "3", "--share", "0.1", "--kind", "b", "--kinds", "a,b", "--each", "epoch", "--", "-x"] + values["rest..."]
json.dump({"program": "words", "values": values, "name": "it's \"a\"; name\n\u00fc", "slot": "none"}, open(sys.argv[1] + "/job", "w"))
json.dump({"program": "words", "values": values}, open(sys.argv[1] + "/command", "w"))
open(sys.argv[1] + "/words", "wb").write(b"".join(w.encode() + b"\0" for w in words))
E2
python3 "$tmp/values.py" "$tmp"
is "the command" eval 'post /api/command "@$tmp/command" >"$tmp/line"'
is "its words" eval 'python3 -c "
import json, sys
j = json.load(open(sys.argv[1])); w = open(sys.argv[2], \"rb\").read().decode().split(chr(0))[:-1]
assert j[\"argv\"][1:] == w, (j[\"argv\"], w)" "$tmp/line" "$tmp/words"'
is "the line gives them to the program" eval 'item "j[\"text\"]" <"$tmp/line" >"$tmp/line.sh" && (cd "$tmp/root" && sh "$tmp/line.sh") && cmp "$tmp/words" "$root/words.bin"'
rm -f "$root/words.bin"
is "and a job gives them" eval 'begin "@$tmp/job" && ends $job succeeded && cmp "$tmp/words" "$root/words.bin"'
is "nothing else was run" test ! -e "$root/bad"
is "the job has its name" eval 'get /api/jobs/$job >"$tmp/body" && holds "j[\"name\"] == \"it'"'"'s \\\"a\\\"; name\\n\u00fc\"" "$tmp/body"'
is "the same by the command line" eval '(cd "$tmp/root" && "$studio" program command words size=2 first=x --programs "$tmp/programs" --json) | grep -q -- "--size.*2"'

# The preview: the program's own rows, memory plan and forecast; no run folder.
if [ -x "$BUILD/finetune_full" ] && [ -x "$BUILD/init_model" ]; then
    tiny "$root/model" 1 >/dev/null
    head -n 40 datasets/stories.jsonl >"$root/rows.jsonl"
    values='"values": {"model": "model", "dataset": "rows.jsonl", "max_length": 64, "threads": 1, "output": "runs/never"'
    is "a preview" eval 'post /api/preview "{\"program\": \"finetune_full\", $values}, \"rows\": 2}" >"$tmp/body"'
    is "rows with tokens, and what is trained" holds 'len(j["rows"]) == 2 and j["rows"][0]["length"] == len(j["rows"][0]["tokens"]) == 64 and j["rows"][0]["labels"] == sum(t["label"] for t in j["rows"][0]["tokens"]) and all(isinstance(t["id"], int) and isinstance(t["text"], str) for t in j["rows"][0]["tokens"])' "$tmp/body"
    is "survey and time" holds '"40 rows" in j["survey"]["survey"] and "s for" in j["time"]["estimate"]' "$tmp/body"
    is "memory and disk" holds 'j["memory"]["total_bytes"] > j["memory"]["weights_bytes"] > 0 and j["disk"]["free_bytes"] > 0' "$tmp/body"
    is "no run folder" test ! -e "$root/runs"
    is "what the program refuses names the option" eval 'gives 400 /api/preview -H "$json" -d "{\"program\": \"finetune_full\", $values, \"max_length\": 4096}}" &&
        holds "j[\"option\"] == \"max_length\"" "$tmp/body"'
    tiny "$root/wide" 1 --max-positions 1000000 >/dev/null
    much='"program": "finetune_full", "values": {"model": "wide", "dataset": "rows.jsonl", "max_length": 1000000, "batch_size": 4096, "max_steps": 1, "threads": 1}'
    is "a preview of what does not fit says so, and shows the rows" eval 'post /api/preview "{$much, \"rows\": 1}" >"$tmp/body" &&
        holds "j[\"memory\"][\"fits\"] is False and j[\"memory\"][\"total_bytes\"] > j[\"memory\"][\"free_bytes\"] > 0 and \"not enough memory\" in j[\"memory\"][\"warning\"] and len(j[\"rows\"]) == 1" "$tmp/body"'
    is "it is not started" eval 'gives 409 /api/jobs -H "$json" -d "{$much, \"slot\": \"none\"}" && holds "\"not enough memory\" in j[\"memory\"] and \"force\" in j[\"detail\"]" "$tmp/body"'
else
    skip "a preview" "no recipe is built"
fi

# A program whose plan is beyond any machine: it starts by force alone. What fits starts without a word.
program greedy "$(option size int '' ''), $(option plan_memory bool '' '')" \
    'case "$*" in *--plan-memory*) [ "$3" = 1 ] && echo "memory: 0.5 MiB: weights 0.5" || echo "memory: 900000000.0 GiB: weights 900000000.0"; exit ;; esac; echo started >>started'
is "what needs too much is not started" eval 'gives 409 /api/jobs -H "$json" -d "{\"program\": \"greedy\", \"values\": {\"size\": 2}, \"slot\": \"none\"}" && holds "\"not enough memory\" in j[\"memory\"]" "$tmp/body" && [ ! -e "$root/started" ]'
is "by force it is, with a warning" eval 'begin "{\"program\": \"greedy\", \"values\": {\"size\": 2}, \"force\": true, \"slot\": \"none\"}" && holds "\"not enough memory\" in j[\"warning\"]" "$tmp/begun" && ends $job succeeded && has 1 "$root/started"'
is "nor is it started again" eval 'gives 409 /api/jobs/$job/retry -H "$json" -d "{}" && post /api/jobs/$job/retry "{\"force\": true}" >"$tmp/begun" && holds "j[\"warning\"]" "$tmp/begun" && ends "$(item "j[\"id\"]" <"$tmp/begun")" succeeded && has 2 "$root/started"'
program holds "$(option cpus_ int '' '')" 'until [ -e go ]; do kill -0 '$$' || exit; sleep 0.05; done'
is "behind another job it is queued, with the warning" eval 'all=$(get /api/jobs | item "j[\"slots\"][\"cpu\"][\"total\"]") && begin "{\"program\": \"holds\", \"cpus\": $all}" && await 0 is_in $job running && before=$job &&
    begin "{\"program\": \"greedy\", \"values\": {\"size\": 2}}" && holds "\"not enough memory\" in j[\"warning\"] and j[\"state\"] == \"queued\"" "$tmp/begun" && post /api/jobs/$job/cancel >/dev/null && ends $job cancelled && touch "$root/go" && ends $before succeeded'
is "what fits starts without one" eval 'begin "{\"program\": \"greedy\", \"values\": {\"size\": 1}, \"slot\": \"none\"}" && holds "\"warning\" not in j" "$tmp/begun" && ends $job succeeded && has 3 "$root/started"'

# A recipe with one more option: it is in form, command and command line, with no other edit.
if [ -x "$BUILD/finetune_full" ] && ! sanitized; then # make alone would build another kind of program
    mkdir "$tmp/elsewhere"
    mine=studio_test_$$ # make remembers where a recipe from elsewhere lay
    awk '/^static const struct tune_option/ { print "static double grad_noise;" }
        /^    \{0\}/ && !n++ { print "    {\"grad-noise\", TUNE_DOUBLE, &grad_noise, \"0\", \"[0,1]\", \"\", \"noise on the gradient\"}," } { print }' \
        recipes/finetune_full.c >"$tmp/elsewhere/$mine.c"
    is "a recipe with one more option" eval 'make -s BUILD="$BUILD" RECIPE="$tmp/elsewhere/$mine.c" "$BUILD/$mine"'
    mv "$BUILD/$mine" "$tmp/programs/"
    rm -f "$BUILD/obj/outside/$mine".*
    is "is there while the server runs" eval 'get /api/programs/$mine >"$tmp/body" && holds "j[\"kind\"] == \"recipe\" and [o for o in j[\"options\"] if o[\"name\"] == \"grad_noise\" and o[\"range\"] == \"[0,1]\"]" "$tmp/body"'
    is "its command" eval 'post /api/command "{\"program\": \"$mine\", \"values\": {\"grad_noise\": 0.5}}" | grep -q -- "--grad-noise 0.5"'
    is "its range" eval 'gives 400 /api/command -H "$json" -d "{\"program\": \"$mine\", \"values\": {\"grad_noise\": 2}}" && holds "j[\"option\"] == \"grad_noise\"" "$tmp/body"'
    is "and the command line" eval '(cd "$tmp/root" && "$studio" program command $mine grad_noise=0.25 --programs "$tmp/programs") | grep -q -- "--grad-noise 0.25"'
else
    skip "a recipe with one more option" "no recipe is built, or one with sanitizers"
fi
is "the server ends" stopped
finish
