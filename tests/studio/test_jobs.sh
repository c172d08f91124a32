#!/bin/sh
# test_jobs.sh - jobs live without the server: states, queue, stop, resume, delete; kill -9 of the server and of everything.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
export HF_TOKEN=hf_secret_of_this_test
. tests/studio/server.sh
. tests/studio/jobs.sh
root=$tmp/root
mkdir "$root"
file='{"name": "file", "flag": "--file", "type": "string", "default": null, "help": ""}'
program quick "$file" 'echo done; echo error: none >&2'
program fails "$file" 'for i in 1 2 3; do echo "line $i"; done; echo "the token is $HF_TOKEN"; echo "it broke" >&2; exit 7'
program crashes "$file" 'kill -SEGV $$'
# holds until its file is there; saves at SIGTERM
program waits "$file" 'trap "echo saved; exit 143" TERM; echo begun; echo $$ >"$2.pid"; until [ -e "$2" ]; do kill -0 '$$' || exit; sleep 0.05; done; echo over'
program stubborn "$file" 'trap "" TERM; echo begun; while :; do sleep 0.05; done'
program chatty "$file" 'i=0; while [ $i -lt 3000 ]; do echo "line $i"; i=$((i + 1)); done; echo ü; echo "Error: last"'
is "a server" serve "$root" --programs "$tmp/programs,$BUILD"
start() { which=$1 given=$2; shift 2; begin "{\"program\": \"$which\", \"values\": {$given}, \"slot\": \"${1-none}\"${2+, $2}}"; }

# ---- states ----
is "a quick one" start quick ''
quick=$job
is "succeeds" ends $quick succeeded
get /api/jobs/$quick >"$tmp/body"
is "its states have times in order, and its exit code" holds '[s["state"] for s in j["states"]] == ["queued", "running", "succeeded"] and j["states"][0]["time"] <= j["states"][1]["time"] <= j["states"][2]["time"] and j["exit_code"] == 0' "$tmp/body"
is "its log has both streams" eval 'get /api/jobs/$quick/log >"$tmp/body" && holds "j[\"text\"] == \"done\\nerror: none\\n\" and j[\"next\"] == j[\"size\"] == 17 and j[\"errors\"] == [5]" "$tmp/body"'
is "one that fails" eval 'start fails "" && ends $job failed'
get /api/jobs/$job >"$tmp/body"
is "its last lines are the reason, without the secret" holds 'j["exit_code"] == 7 and "line 1" in j["reason"] and "it broke" in j["reason"] and "hf_secret" not in j["reason"]' "$tmp/body"
is "its log shows no secret either" eval 'get /api/jobs/$job/log >"$tmp/body" && grep -q "the token is \*\*\*" "$tmp/body" && ! grep -q hf_secret "$tmp/body"'
is "nor does a job.json" eval '! grep -r hf_secret "$root"/.studio/jobs/*/job.json'
is "one that crashes" eval 'start crashes "" && ends $job failed && get /api/jobs/$job >"$tmp/body" && holds "j[\"signal\"] == 11 and j[\"reason\"]" "$tmp/body"'
is "a long log, by offset" eval 'start chatty "" && ends $job succeeded && get "/api/jobs/$job/log?offset=5&limit=10" >"$tmp/body" && holds "j[\"next\"] == 15 and len(j[\"text\"]) == 10 and j[\"size\"] > 20000" "$tmp/body"'
is "and searched" eval 'get "/api/jobs/$job/log?search=line%20299&limit=1" >"$tmp/body" && holds "len(j[\"matches\"]) == 11 and j[\"matches\"][0][\"line\"] == \"line 299\" and len(j[\"errors\"]) == 1" "$tmp/body"'
is "no such program" gives 404 /api/jobs -H "$json" -d '{"program": "nothing"}'
is "no such job" gives 404 /api/jobs/999
is "no number" gives 404 /api/jobs/..%2F1
is "an output out of the root is refused" gives 400 /api/jobs -H "$json" -d '{"program": "init_model", "values": {"folder": "x", "output": "../x"}}'
is "a key starts once" eval 'start quick "" none "\"key\": \"k1\"" && first=$job && start quick "" none "\"key\": \"k1\"" && [ $job = $first ] && ends $first succeeded'
is "but not for another command" eval 'gives 400 /api/jobs -H "$json" -d "{\"program\": \"chatty\", \"slot\": \"none\", \"key\": \"k1\"}" && grep -q "was given with another command, for job $first" "$tmp/body"'
is "a retry is a new job" eval 'post /api/jobs/$quick/retry >"$tmp/begun" && again=$(item "j[\"id\"]" <"$tmp/begun") && [ $again != $quick ] && ends $again succeeded'

# ---- stop ----
is "one that runs" eval 'start waits "\"file\": \"never\"" && slow=$job && await 0 test -s "$root/never.pid"'
is "is not deleted" gives 409 /api/jobs/$slow/delete -H "$json" -d '{"confirm": true}'
is "nor cancelled" gives 409 /api/jobs/$slow/cancel -H "$json" -d '{}'
is "a stale edit of it is refused" gives 409 /api/jobs/$slow/stop -H "$json" -H 'If-Match: "old"' -d '{}'
is "stops, and saves" eval 'post /api/jobs/$slow/stop >/dev/null && ends $slow cancelled && grep -q saved "$root/.studio/jobs/$slow/log.txt"'
is "by way of stopping" eval 'get /api/jobs/$slow >"$tmp/body" && holds "[s[\"state\"] for s in j[\"states\"]] == [\"queued\", \"running\", \"stopping\", \"cancelled\"]" "$tmp/body"'
is "there is nothing more to stop" gives 409 /api/jobs/$slow/stop -H "$json" -d '{}'
is "one that ignores SIGTERM" eval 'start stubborn "" && hard=$job && await 0 grep -q begun "$root/.studio/jobs/$hard/log.txt" && post /api/jobs/$hard/stop >/dev/null && await 0 is_in $hard stopping'
is "is killed" eval 'post /api/jobs/$hard/stop "{\"now\": true}" >/dev/null && ends $hard cancelled && get /api/jobs/$hard >"$tmp/body" && holds "j[\"signal\"] == 9" "$tmp/body"'

# ---- the queue: all cores are one slot ----
all="\"cpus\": 4096"
is "three of all cores" eval 'start waits "\"file\": \"one\"" auto "$all" && one=$job && start waits "\"file\": \"two\"" auto "$all" && two=$job &&
    start waits "\"file\": \"three\"" auto "$all" && three=$job'
is "the first runs" await 0 is_in $one running
is "the others wait" eval 'is_in $two queued && is_in $three queued'
is "the second says for what, and who has it" await 0 eval 'get /api/jobs/$two >"$tmp/body"; holds "__import__(\"re\").fullmatch(r\"waits for a free slot: (\d+) of \\1 cores? used by job $one waits; it needs \\1\", j[\"reason\"]) and j[\"states\"][-1][\"reason\"] == j[\"reason\"] and len(j[\"states\"]) == 1" "$tmp/body" 2>/dev/null'
is "the third, behind whom" await 0 eval 'get /api/jobs/$three >"$tmp/body"; holds "j[\"reason\"] == \"waits behind job $two, which came before it\"" "$tmp/body" 2>/dev/null'
is "one of one core waits behind them" eval 'start quick "" auto "\"cpus\": 1" && small=$job && is_in $small queued'
is "the last is cancelled" eval 'post /api/jobs/$small/cancel >/dev/null && ends $small cancelled && get /api/jobs/$small >"$tmp/body" && holds "len(j[\"states\"]) == 2" "$tmp/body"'
is "the second follows the first" eval 'touch "$root/one" && ends $one succeeded && await 0 is_in $two running && is_in $three queued'
is "a slot is busy" eval 'get /api/jobs >"$tmp/body" && holds "j[\"slots\"][\"cpu\"][\"busy\"] == j[\"slots\"][\"cpu\"][\"total\"] > 0" "$tmp/body"'

# ---- kill -9 of the server; two servers ----
kill -9 $server
wait $server 2>/dev/null
is "without the server the queue goes on" eval 'touch "$root/two" "$root/three" && await 0 grep -q succeeded "$root/.studio/jobs/$three/job.json"'
is "a server again" serve "$root" --programs "$tmp/programs,$BUILD"
is "knows them all" eval 'is_in $two succeeded && is_in $three succeeded && get /api/jobs/$three/log | grep -q over'
first_url=$url
is "a second one of the same root" serve "$root" --programs "$tmp/programs,$BUILD"
is "sees the same jobs" eval 'get /api/jobs | item "j[\"jobs\"]" >"$tmp/a"; url=$first_url get /api/jobs | item "j[\"jobs\"]" >"$tmp/b"; cmp "$tmp/a" "$tmp/b"'
at_once() {
    for i in 1 2 3 4; do
        post /api/jobs '{"program": "quick", "slot": "none"}' >"$tmp/at$i" &
        other=$!
        url=$first_url get /api/jobs -H "$json" -d '{"program": "quick", "slot": "none"}' >"$tmp/at1$i"
        wait $other
    done
    for i in "$tmp"/at*; do item 'j["id"]' <"$i"; done | sort | uniq >"$tmp/numbers"
    has 8 "$tmp/numbers"
}
is "starts at once get numbers of their own" at_once

# ---- everything is killed: lost ----
is "one whose supervisor, guard and program are killed" eval 'start waits "\"file\": \"gone\"" && gone=$job && await 0 test -s "$root/gone.pid" && await 0 is_in $gone running'
pid=$(cat "$root/gone.pid")
guard=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$pid/status")
supervisor=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$guard/status")
kill -9 "$supervisor" "$guard" "$pid"
is "is lost" ends $gone lost
is "with a reason, for good" eval 'get /api/jobs/$gone >"$tmp/body" && holds "j[\"states\"][-1][\"state\"] == \"lost\" and j[\"reason\"]" "$tmp/body" && grep -q lost "$root/.studio/jobs/$gone/job.json"'
is "there is nothing to stop" gives 409 /api/jobs/$gone/stop -H "$json" -d '{}'

# ---- what a kill between two writes, or a copy, leaves ----
mkdir "$root/.studio/jobs/800" "$root/.studio/jobs/801"
: >"$root/.studio/jobs/800/lock"
printf '{"argv": ["x"], "states": [], "state": "running", "program": "quick"}' >"$root/.studio/jobs/801/job.json"
is "a job without a lock is lost" eval 'get /api/jobs/801 >"$tmp/body" && holds "j[\"state\"] == \"lost\"" "$tmp/body"'
is "a folder without job.json goes with the next start" eval 'start quick "" && ends $job succeeded && [ ! -e "$root/.studio/jobs/800" ] && [ -e "$root/.studio/jobs/801" ]'
post /api/jobs/801/delete '{"confirm": true}' >/dev/null

# ---- job.json of strangers ----
strange() { # NUMBER JSON - such a file is no job, and the server goes on
    mkdir -p "$root/.studio/jobs/$1" && printf %s "$2" >"$root/.studio/jobs/$1/job.json" && gives 404 "/api/jobs/$1" && gives 404 "/api/jobs/$1/retry" -H "$json" -d '{}'
}
is "a job.json whose command line is no list of texts is no job" eval 'strange 900 "{\"argv\": [1, null], \"states\": []}" && strange 901 "{\"argv\": [], \"states\": []}" && strange 902 "[1]" && strange 903 "{\"argv\": [[\"x\"]], \"states\": [1]}"'
is "the list counts those that cannot be read" eval 'get /api/jobs >"$tmp/body" && holds "j[\"unreadable\"] == 4 and j[\"jobs\"]" "$tmp/body"'
rm -r "$root"/.studio/jobs/90?

# ---- delete ----
is "what would be deleted" eval 'post /api/jobs/$quick/delete >"$tmp/body" && holds "not j[\"deleted\"] and any(f[\"name\"] == \"log.txt\" and f[\"size\"] == 17 for f in j[\"files\"])" "$tmp/body" && is_in $quick succeeded'
is "is deleted" eval 'post /api/jobs/$quick/delete "{\"confirm\": true}" >"$tmp/body" && holds "j[\"deleted\"]" "$tmp/body" && gives 404 /api/jobs/$quick && [ ! -e "$root/.studio/jobs/$quick" ]'
mkdir -p "$root/plain" "$tmp/outside"
echo x >"$root/plain/file"
echo '{}' >"$tmp/outside/run.json"
ln -s "$tmp/outside" "$root/link"
is "a folder that is no run is not deleted" gives 404 /api/runs/plain/delete -H "$json" -d '{"confirm": true}'
is "nor one outside" eval 'gives 403 /api/runs/..%2Foutside/delete -H "$json" -d "{\"confirm\": true}" && gives 403 /api/runs/link/delete -H "$json" -d "{\"confirm\": true}" && [ -e "$tmp/outside/run.json" ]'

mkdir -p "$root/runs/named" && cp "$tmp/outside/run.json" "$root/runs/named/"
is "a run has one name: not by . or //" eval 'for id in .%2Fruns%2Fnamed runs%2F%2Fnamed runs%2F.%2Fnamed runs%2Fnamed%2F runs%2Fnamed%2F.; do gives 404 /api/runs/$id/delete -H "$json" -d "{\"confirm\": true}" || exit 1; done; [ -e "$root/runs/named/run.json" ] && rm -r "$root/runs/named"'
program writes '{"name": "output", "flag": "--output", "type": "string", "default": null, "help": ""}' 'touch ran'
is "an output out of the root, by .. at the end or a link, is refused" eval 'for o in .. x/.. link link/new ../x x/../../y; do gives 400 /api/jobs -H "$json" -d "{\"program\": \"writes\", \"values\": {\"output\": \"$o\"}}" && holds "\"leads out\" in j[\"detail\"]" "$tmp/body" || exit 1; done'
is "an output in the root is not" eval 'start writes "\"output\": \"runs/new/deep\"" && ends $job succeeded'
is "nor is one that comes from a job.json" eval 'sed -i "s|runs/new/deep|/tmp/x|" "$root/.studio/jobs/$job/job.json" && gives 409 /api/jobs/$job/retry -H "$json" -d "{}"'

# ---- a recipe ----
if [ -x "$BUILD/finetune_full" ] && [ -x "$BUILD/init_model" ]; then
    tiny "$root/model" 1 >/dev/null
    cp datasets/stories.jsonl "$root/it's; my rows
é.jsonl"
    values='"model": "model", "dataset": "it'"'"'s; my rows\né.jsonl", "max_length": 64, "threads": 1'
    folder="runs/a \"b\"; \$c
ü"
    output='"output": "runs/a \"b\"; $c\nü"'
    is "a recipe whose paths have all kinds of characters" eval 'start finetune_full "$values, \"lr\": 1e-3, \"max_steps\": 6, $output" && train=$job && ends $train succeeded'
    is "knows its run" eval 'get /api/jobs/$train >"$tmp/body" && holds "j[\"run_state\"] == \"finished\" and j[\"folder\"].startswith(\"runs/a\")" "$tmp/body" && [ -s "$root/$folder/report.json" ]'
    is "the list of runs knows its job" await 0 eval 'get /api/runs >"$tmp/list"; holds "[r[\"job\"] for r in j[\"runs\"] if r[\"id\"].startswith(\"runs/a\")] == [{\"id\": \"$train\", \"state\": \"succeeded\", \"reason\": \"\"}]" "$tmp/list" 2>/dev/null'
    item 'j["command"]' <"$tmp/body" >"$tmp/command"
    mv "$root/$folder" "$root/before"
    is "the copied command gives the same run" eval '(cd "$root" && sh "$tmp/command" >/dev/null) && numbers "$root/before" >"$tmp/a" && numbers "$root/$folder" >"$tmp/b" && [ -s "$tmp/a" ] && cmp "$tmp/a" "$tmp/b"'
    is "its form has what was given, but not where it wrote" eval 'get /api/runs/before/form >"$tmp/body" && holds "j[\"program\"] == \"finetune_full\" and j[\"values\"][\"max_steps\"] == 6 and \"output\" not in j[\"values\"] and \"epochs\" not in j[\"values\"]" "$tmp/body"'
    is "a finished run is not resumed" gives 409 /api/runs/before/resume -H "$json" -d '{}'
    is "one whose folder the program names" eval 'start finetune_full "$values, \"max_steps\": 2" && ends $job succeeded && get /api/jobs/$job >"$tmp/body" && holds "j[\"folder\"].startswith(\"runs/finetune_full-\")" "$tmp/body"'
    is "one that diverges" eval 'start finetune_full "$values, \"max_steps\": 30, \"lr\": 900, \"clip_norm\": 0, \"stop_on_divergence\": true, \"output\": \"runs/wild\"" && ends $job diverged'
    long="$values, \"epochs\": 10000, \"save_every\": 5, \"keep_last\": 1"
    is "a long run" eval 'start finetune_full "$long, \"output\": \"runs/long\"" && long_job=$job && await 0 has 8 "$root/runs/long/metrics.jsonl"'
    is "its folder is not deleted" gives 409 /api/runs/runs%2Flong/delete -H "$json" -d '{"confirm": true}'
    kill -9 $server
    wait $server 2>/dev/null
    lines=$(wc -l <"$root/runs/long/metrics.jsonl")
    is "goes on without the server" await 0 has $((lines + 5)) "$root/runs/long/metrics.jsonl"
    is "a server" serve "$root" --programs "$tmp/programs,$BUILD"
    is "sees it running" is_in $long_job running
    is "and stops it" eval 'post /api/jobs/$long_job/stop >/dev/null && ends $long_job cancelled && get /api/jobs/$long_job >"$tmp/body" && holds "j[\"run_state\"] == \"stopped\"" "$tmp/body"'
    job_of_long() { get /api/runs/runs%2Flong | item 'j["job"]["id"] + j["job"]["state"]'; }
    is "its run says so" eval '[ "$(job_of_long)" = "${long_job}cancelled" ]'
    jobs_before=$(get "/api/runs/changes?since=0" | item 'j["jobs"]')
    is "it is resumed" eval 'post /api/jobs/$long_job/resume >"$tmp/begun" && more=$(item "j[\"id\"]" <"$tmp/begun") && lines=$(wc -l <"$root/runs/long/metrics.jsonl") &&
        await 0 has $((lines + 8)) "$root/runs/long/metrics.jsonl" && is_in $more running'
    is "its run has the new job, and who watches runs knows" eval '[ "$(job_of_long)" = "${more}running" ] && [ "$(get "/api/runs/changes?since=0" | item "j[\"jobs\"]")" != "$jobs_before" ]'
    pid=$(sed -n 's/^[[:space:]]*"pid":[[:space:]]*\([0-9]*\),*$/\1/p' "$root/runs/long/run.json" | tail -n 1)
    guard=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$pid/status")
    kill -9 "$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$guard/status")" "$guard" "$pid"
    is "killed, it is lost" ends $more lost
    is "and resumed by its folder" eval 'post /api/runs/runs%2Flong/resume >"$tmp/begun" && more=$(item "j[\"id\"]" <"$tmp/begun") && await 0 is_in $more running && lines=$(wc -l <"$root/runs/long/metrics.jsonl") &&
        await 0 has $((lines + 6)) "$root/runs/long/metrics.jsonl" && post /api/jobs/$more/stop >/dev/null && ends $more cancelled'
    is "what a run's deletion takes" eval 'post /api/runs/runs%2Flong/delete >"$tmp/body" && holds "not j[\"deleted\"] and j[\"bytes\"] > 1000 and any(f[\"name\"] == \"run.json\" for f in j[\"files\"])" "$tmp/body" && [ -e "$root/runs/long/run.json" ]'
    is "it goes" eval 'post /api/runs/runs%2Flong/delete "{\"confirm\": true}" >/dev/null && [ ! -e "$root/runs/long" ]'
    is "by the command line" eval '(cd "$root" && "$studio" run start finetune_full model=model dataset=before/run.json max_steps=1 --json --programs "$BUILD") >"$tmp/begun" && job=$(item "j[\"id\"]" <"$tmp/begun") && ends $job failed'
else
    skip "a recipe as a job" "no recipe is built"
fi
is "the list by the command line" eval '(cd "$root" && "$studio" job list --state lost --json) >"$tmp/body" && holds "all(x[\"state\"] == \"lost\" for x in j[\"jobs\"]) and j[\"jobs\"]" "$tmp/body"'

# ---- a full disk: files of at most a block ----
kill $server
is "a server whose files may not grow" eval 'ulimit -f 8; serve "$root" --programs "$tmp/programs"'
is "a program that writes more" eval 'start chatty "" && ends $job succeeded && get /api/jobs/$job >"$tmp/body" && holds "j[\"log_size\"] <= 8192" "$tmp/body"'
finish
