#!/bin/sh
# test_studio_runs.sh - the studio's list of runs, their curves, pictures and files, over HTTP.
. tests/tap.sh
. tests/studio/server.sh
root=$tmp/root
mkdir -p "$root/runs" "$root/deep/er" "$tmp/outside"
# run FOLDER LR STEPS [LINE...] - a run that has ended, with these steps and more lines of metrics.
run() {
    folder=$1 lr=$2 steps=$3
    shift 3
    mkdir -p "$folder"
    cat >"$folder/run.json" <<END
{"program":"finetune_full","device":"cpu","status":"finished","planned_steps":$steps,"started":"2026-11-2$((steps % 7))T10:00:00Z",
 "ended":"2026-11-27T10:00:00Z","argv":["finetune_full"],"command":"finetune_full --lr $lr",
 "options":{"lr":$lr,"batch_size":4,"output":"x","hub_token":"hf_never_shown"},"sources":{"lr":"flag"},"units":{"loss_last":"nats/token"}}
END
    {
        awk -v n="$steps" 'BEGIN { for (i = 1; i <= n; i++) printf "{\"step\":%d,\"loss\":%.6f,\"tokens\":64,\"elapsed_s\":%.3f}\n", i, 4 / i + i % 7 / 10, i / 100 }'
        for line; do echo "$line"; done
    } >"$folder/metrics.jsonl"
}
run "$root/runs/a" 0.001 10
run "$root/runs/b" 0.0001 20 '{"step":21,"eval_loss":0.5}'
run "$root/deep/er/c" 0.01 5000
hostile='<img src=x onerror=alert(1)> "q" & é,x'
run "$root/runs/$hostile" 0.1 3
run "$tmp/outside/d" 1 3
mkdir -p "$tmp/zig/runs/z" && echo '{"program":"finetune_full","status":"finished"}' >"$tmp/zig/runs/z/run.json"
awk 'BEGIN { for (i = 1; i <= 5000; i++) printf "{\"step\":%d,\"loss\":%d,\"tokens\":1,\"elapsed_s\":%d}\n", i, i % 97, i * 7919 % 1000 }' >"$tmp/zig/runs/z/metrics.jsonl"
ln -s "$tmp/outside" "$root/runs/link"
ln -s "$tmp/outside/d/run.json" "$root/runs/a/stolen.json"
mkdir "$root/runs/broken" && echo '{"status":' >"$root/runs/broken/run.json" && : >"$root/runs/broken/metrics.jsonl"
# ask PATH EXPRESSION - true if this Python expression of the answer d is.
ask() { get "$1" >"$tmp/answer" && python3 -c 'import json,math,sys; d = json.load(open(sys.argv[1])); v = eval(sys.argv[2]); v or print(str(d)[:600]); sys.exit(not v)' "$tmp/answer" "$2"; }
serve "$root"
indexed() { get '/api/runs?limit=0' | grep -q '"indexed":true'; }
is "the index fills" await $server indexed

# ---- the list ----
is "each run below the root, and none by a link" ask /api/runs 'd["total"] == 5 and sorted(r["id"] for r in d["runs"])[0] == "deep/er/c" and not any("link" in r["id"] for r in d["runs"])'
is "the same figures as runs list" eval '(cd "$root" && "$BUILD/runs" list --sort name --output-format json runs/a runs/b) >"$tmp/list" && get "/api/runs?sort=name&search=runs/" >"$tmp/answer" && python3 - "$tmp/list" "$tmp/answer" <<END
import json,sys
a = {r["folder"]: r for r in json.load(open(sys.argv[1]))}; b = {r["folder"]: r for r in json.load(open(sys.argv[2]))["runs"]}
for f in ("runs/a", "runs/b"):
    for k in ("state", "step", "planned_steps", "loss", "eval_loss", "best_eval_loss", "best_eval_step", "tokens_per_s", "seconds"):
        assert a[f][k] == b[f][k], (f, k, a[f][k], b[f][k])
END'
is "where" ask '/api/runs?where=lr%3C1e-3' '[r["id"] for r in d["runs"]] == ["runs/b"] and d["selected"] == 1 and d["total"] == 5'
is "a bad expression: 400, and the place" eval 'gives 400 "/api/runs?where=lr%3C" && grep -q where "$tmp/body"'
is "an unknown name: 400, with the nearest" eval 'gives 400 "/api/runs?where=los%3C1" && grep -q "loss" "$tmp/body"'
is "state" ask '/api/runs?state=broken' '[r["id"] for r in d["runs"]] == ["runs/broken"] and d["runs"][0]["reason"] != ""'
is "sorted by an option, lowest first" ask '/api/runs?sort=lr&state=finished' '[r["values"]["lr"] for r in d["runs"]] == [.0001, .001, .01, .1]'
is "... and highest first" ask '/api/runs?sort=lr&reverse=true&state=finished' '[r["values"]["lr"] for r in d["runs"]] == [.1, .01, .001, .0001]'
is "only differing options are values, and columns on request" ask '/api/runs?state=finished&columns=batch_size' 'd["differing"] == ["lr"] and all(r["values"] == {"lr": r["values"]["lr"], "batch_size": 4} for r in d["runs"])'
many=$(awk 'BEGIN { for (i = 0; i < 600; i++) printf "c%d,", i }')
is "columns that are too many are counted" ask "/api/runs?columns=$many" 'd["columns_left_out"] == 600 + len(d["differing"]) - 512'
is "... and refused for a CSV" gives 413 "/api/runs/table.csv?columns=$many"
is "search by text" ask '/api/runs?search=DEEP' '[r["id"] for r in d["runs"]] == ["deep/er/c"]'
is "... by a regular expression" ask '/api/runs?search=%5Eruns/%5Bab%5D%24&regex=true' 'sorted(r["id"] for r in d["runs"]) == ["runs/a", "runs/b"]'
is "... a bad one: 400" gives 400 '/api/runs?search=%5B&regex=true'
is "offset and limit" ask '/api/runs?sort=name&offset=1&limit=2' 'len(d["runs"]) == 2 and d["selected"] == 5'
is "units" ask /api/runs 'd["units"]["loss"] == "nats/token" and d["units"]["seconds"] == "s"'
is "no secret" eval '! get /api/runs?columns=hub_token | grep -q hf_never_shown && ! get /api/runs/runs%2Fa | grep -q hf_never_shown'

# ---- one run ----
is "one run, by its id" ask /api/runs/runs%2Fa 'd["step"] == 10 and d["run"]["command"] == "finetune_full --lr 0.001" and d["metrics"][0]["name"] == "loss" and d["checkpoints"] == []'
is "no such run: 404" gives 404 /api/runs/runs%2Fnone
is "... nor by .. or a link" eval 'gives 404 /api/runs/..%2Foutside%2Fd && gives 404 /api/runs/runs%2Flink%2Fd'
encoded=$(python3 -c 'import sys,urllib.parse; print(urllib.parse.quote("runs/" + sys.argv[1], safe=""))' "$hostile")
listed=$(python3 -c 'import sys,urllib.parse; print(urllib.parse.quote("runs/" + sys.argv[1].replace(",", "%2C"), safe=""))' "$hostile")
is "a hostile name is text" ask "/api/runs/$encoded" 'd["name"].startswith("<img") and d["name"].endswith("é,x")'
is "... in pictures, too" eval 'get "/api/runs/plot.svg?ids=$listed" >"$tmp/a.svg" && ! grep -q "<img" "$tmp/a.svg" && python3 -c "import sys,xml.dom.minidom as m; m.parse(sys.argv[1])" "$tmp/a.svg"'
is "files, but not those of others" ask /api/runs/runs%2Fa/files '[f["name"] for f in sorted(d["files"], key=lambda f: f["name"])] == ["metrics.jsonl", "run.json"]'
is "a file as it is" eval 'get /api/runs/runs%2Fa/files/metrics.jsonl | cmp - "$root/runs/a/metrics.jsonl"'
is "a link out of the root: refused" eval 'case $(code /api/runs/runs%2Fa/files/stolen.json) in 400 | 403 | 404) ;; *) false ;; esac && ! grep -q finetune "$tmp/body"'
is "nor a path" gives 400 '/api/runs/runs%2Fa/files/..%2Fb%2Frun.json'
is "no previews: an empty list" ask /api/runs/runs%2Fa/previews 'd["rows"] == [] and d["total"] == 0'
printf '{"step":1,"prompt":"p","answer":"<b>"}\nnot json\n{"step":2,"answer":"x"}\n{"half' >"$root/runs/a/samples.jsonl"
is "previews, bad lines counted, half a line left" ask /api/runs/runs%2Fa/previews '[r["step"] for r in d["rows"]] == [1, 2] and d["unreadable"] == 1 and d["total"] == 3'

# ---- curves ----
is "curves are the metrics" ask '/api/runs/curves?ids=runs%2Fa,runs%2Fb&metric=loss' '[c["count"] for c in d["curves"]] == [10, 20] and d["unit"] == "nats/token" and d["curves"][0]["x"] == list(range(1, 11)) and all(abs(y - (4 / i + i % 7 / 10)) < 1e-6 for i, y in enumerate(d["curves"][0]["y"], 1))'
is "a long one has two points a column, its extremes among them" ask '/api/runs/curves?ids=deep%2Fer%2Fc&metric=loss&width=100' 'd["curves"][0]["count"] == 5000 and d["curves"][0]["shown"] <= 200 and max(d["curves"][0]["y"]) == 4.1 and abs(min(d["curves"][0]["y"]) - min(4 / i + i % 7 / 10 for i in range(1, 5001))) < 1e-6 and d["curves"][0]["x"] == sorted(d["curves"][0]["x"])'
is "... all of them on request" ask '/api/runs/curves?ids=deep%2Fer%2Fc&metric=loss&width=100&full=true' 'd["curves"][0]["shown"] == 5000'
is "a part of x" ask '/api/runs/curves?ids=deep%2Fer%2Fc&metric=loss&from=10&to=12' 'd["curves"][0]["x"] == [10, 11, 12]'
is "only later steps" ask '/api/runs/curves?ids=runs%2Fa&metric=loss&since_step=8' 'd["curves"][0]["x"] == [9, 10]'
is "over time, tokens, another metric" eval 'ask "/api/runs/curves?ids=runs%2Fa&metric=loss&x=time&to=.02" "d[\"curves\"][0][\"x\"] == [.01, .02]" && ask "/api/runs/curves?ids=runs%2Fa&metric=loss&x=tokens&to=128" "d[\"curves\"][0][\"x\"] == [64, 128]" && ask "/api/runs/curves?ids=runs%2Fa&metric=loss&x=elapsed_s&to=.01" "d[\"curves\"][0][\"x\"] == [.01]"'
is "over another metric: points of the steps that have both, sorted by it" ask '/api/runs/curves?ids=deep%2Fer%2Fc&metric=elapsed_s&x=loss&full=true' 'd["curves"][0]["x"] == sorted(d["curves"][0]["x"]) and d["curves"][0]["shown"] == 5000 and abs(d["curves"][0]["y"][-1] - .01) < 1e-9 and d["curves"][0]["last_step"] == 5000'
is "... none where the steps differ" ask '/api/runs/curves?ids=runs%2Fb&metric=loss&x=eval_loss' 'd["curves"][0]["x"] == [] and d["curves"][0]["count"] == 0'
is "... as a picture" eval 'get "/api/runs/plot.svg?ids=runs%2Fa&metrics=loss&x=elapsed_s" >"$tmp/a.svg" && grep -q "data-x-title=\"elapsed_s\"" "$tmp/a.svg" && grep -q "data-x-max=\"0.1" "$tmp/a.svg"'
is "... but not over what no run has" eval 'gives 400 "/api/runs/plot.svg?ids=runs%2Fa&metrics=loss&x=nothing" && grep -q elapsed_s "$tmp/body"'
is "last, lowest and highest, and where" ask '/api/runs/extremes?ids=deep%2Fer%2Fc,runs%2Fb&metrics=loss,eval_loss' '[m["name"] for m in d["metrics"]] == ["loss", "eval_loss"] and d["metrics"][0]["unit"] == "nats/token" and [(v["max"], v["max_step"], v["last_step"], v["count"]) for v in d["metrics"][0]["values"]] == [(4.1, 1, 5000, 5000), (4.1, 1, 20, 20)] and abs(d["metrics"][0]["values"][0]["min"] - min(4 / i + i % 7 / 10 for i in range(1, 5001))) < 1e-6 and d["metrics"][1]["values"][0]["last"] is None and d["metrics"][1]["values"][1] == {"count": 1, "last": .5, "last_step": 21, "min": .5, "min_step": 21, "max": .5, "max_step": 21}'
is "a metric that no run has: no curve" ask '/api/runs/curves?ids=runs%2Fa&metric=none' 'd["curves"] == []'
is "the picture of runs plot" eval 'get "/api/runs/plot.svg?ids=runs%2Fa,runs%2Fb&colors=0,1" >"$tmp/a.svg" && (cd "$root" && "$BUILD/runs" plot runs/a runs/b --metric loss,eval_loss --svg "$tmp/b.svg" >"$tmp/shown") && cmp "$tmp/a.svg" "$tmp/b.svg"'
is "no such metric: 400, with those that are" eval 'gives 400 "/api/runs/plot.svg?ids=runs%2Fa&metrics=lss" && grep -q "loss" "$tmp/body"'
is "compare: options that differ, figures with units" ask '/api/runs/compare?ids=runs%2Fa,runs%2Fb' '[o["name"] for o in d["options"]] == ["lr"] and [f["values"] for f in d["figures"] if f["name"] == "step"] == [[10, 21]] and d["metrics"] == ["loss", "tokens", "elapsed_s", "eval_loss"]'
is "the list as CSV, chosen and sorted" eval 'get "/api/runs/table.csv?sort=lr&state=finished&columns=batch_size" >"$tmp/a.csv" && python3 -c "
import csv, sys
t = list(csv.DictReader(open(sys.argv[1], newline=\"\")))
sys.exit([r[\"lr\"] for r in t] != [\"0.0001\", \"0.001\", \"0.01\", \"0.1\"] or t[3][\"name\"] != sys.argv[2] or t[0][\"batch_size\"] != \"4\")" "$tmp/a.csv" "$hostile"'
is "a run that nobody kept the output of has no log" ask /api/runs/runs%2Fa/log 'd["none"] and d["text"] == ""'
is "a run twice is one curve" ask '/api/runs/curves?ids=runs%2Fa,runs%2Fa&metric=loss' 'len(d["curves"]) == 1'
is "metrics in long form" eval 'get "/api/runs/metrics.csv?ids=runs%2Fa" >"$tmp/a.csv" && [ "$(wc -l <"$tmp/a.csv")" = 31 ] && grep -qx "runs/a,10,loss,0.7" "$tmp/a.csv"'
is "... only some of them, and as JSON" eval 'get "/api/runs/metrics.csv?ids=runs%2Fa&metrics=loss" >"$tmp/a.csv" && [ "$(wc -l <"$tmp/a.csv")" = 11 ] && ask "/api/runs/metrics.json?ids=runs%2Fa,$listed&metrics=loss" "len(d) == 13 and d[9] == {\"run\": \"runs/a\", \"step\": 10, \"key\": \"loss\", \"value\": .7} and d[12][\"run\"].startswith(\"runs/<img\")"'

# ---- what changes ----
token=$(get /api/runs/changes | sed 's/.*"token":\([0-9]*\).*/\1/')
changed() { get "/api/runs/changes?since=$token" >"$tmp/answer" && grep -q "$1" "$tmp/answer"; }
run "$root/runs/new" 0.5 3
is "a run from the shell appears" await $server changed '"changed":\["runs/new"\]'
token=$(sed 's/.*"token":\([0-9]*\).*/\1/' "$tmp/answer")
echo '{"step":11,"loss":0.25,"tokens":64,"elapsed_s":0.11}' >>"$root/runs/a/metrics.jsonl"
is "one that changes" await $server changed '"runs/a"'
is "... with its new figures" ask /api/runs/runs%2Fa 'd["step"] == 11 and d["loss"] == .25'
is "... and its new curve" ask '/api/runs/curves?ids=runs%2Fa&metric=loss' 'd["curves"][0]["count"] == 11'
token=$(sed 's/.*"token":\([0-9]*\).*/\1/' "$tmp/answer")
run "$root/runs/a" 0.001 4
again() { ask /api/runs/runs%2Fa 'd["step"] == 4' >"$tmp/shown"; }
is "one that went back" await $server again
is "... with its shorter curve" ask '/api/runs/curves?ids=runs%2Fa&metric=loss' 'd["curves"][0]["count"] == 4'
token=$(get /api/runs/changes | sed 's/.*"token":\([0-9]*\).*/\1/')
rm -r "$root/runs/new"
is "one that is removed" await $server changed '"removed":\["runs/new"\]'
is "a token of another server: all have changed" ask '/api/runs/changes?since=99999999' 'd["all"] and len(d["changed"]) == 5'
is "it ends" stopped
serve "$tmp/zig"
is "a third server" await $server indexed
is "an x that goes to and fro: two points a column, the extremes among them" ask '/api/runs/curves?ids=runs%2Fz&metric=loss&x=time&width=50' 'd["curves"][0]["count"] == 5000 and 2 <= d["curves"][0]["shown"] <= 100 and min(d["curves"][0]["y"]) == 0 and max(d["curves"][0]["y"]) == 96'
stopped

# ---- marks ----
run "$root/runs/odd" 0.1 3
sed -i '2s/"loss":[0-9.]*/"loss":1e999/' "$root/runs/odd/metrics.jsonl"
serve "$root"
is "a second server knows the same" await $server indexed
is "a run whose metrics are damaged is there, with the reason" ask '/api/runs?search=runs/odd' 'd["runs"][0]["state"] == "broken" or d["runs"][0]["loss"] is not None'
is "an empty root: an empty list" eval 'stopped && serve "$tmp/outside" && await $server indexed && mkdir "$tmp/none" && stopped && serve "$tmp/none" && await $server indexed && ask /api/runs "d[\"runs\"] == [] and d[\"total\"] == 0"'
cp -r tools/studio/page "$tmp/ui" && echo '/* mine */' >>"$tmp/ui/studio.css"
is "an edited copy of the page" eval 'stopped && serve "$tmp/none" --ui "$tmp/ui" && get /studio.css | grep -q mine && get / | grep -q "<!doctype html>"'
finish
