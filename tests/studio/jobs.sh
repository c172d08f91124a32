# jobs.sh - jobs for the tests, sourced after server.sh. Programs are scripts in $tmp/programs that answer --describe.
command -v python3 >/dev/null || { skip "jobs" "no python3"; finish; }
# post PATH [BODY] - the answer of a write.
post() { path=$1 body=${2-}; get "$path" -H "$json" -d "${body:-{\}}"; }
# item EXPRESSION - of the JSON j on stdin, by Python. holds EXPRESSION FILE - whether it is true there.
item() { python3 -c "import json,sys; j = json.load(sys.stdin); print(eval(sys.argv[1]))" "$1"; }
holds() { python3 -c "import json,sys; j = json.load(open(sys.argv[2])); assert eval(sys.argv[1]), j" "$1" "$2"; }
# begin BODY - start a job; $job is its number.
begin() { post /api/jobs "$1" >"$tmp/begun" && job=$(item 'j["id"]' <"$tmp/begun"); }
state() { get "/api/jobs/$1" | item 'j["state"]'; }
is_in() { [ "$(state "$1")" = "$2" ]; }
over() { case $(state "$1") in queued | running | stopping) return 1 ;; esac; }
# ends JOB STATE - waits until it has ended, so. A job that there is not has ended, too.
ends() { await 0 over "$1" && [ "$(state "$1")" = "$2" ] || { get "/api/jobs/$1"; return 1; }; }
# program NAME OPTIONS BODY - a script. OPTIONS: JSON objects with commas.
program() {
    mkdir -p "$tmp/programs"
    {
        echo '#!/bin/sh'
        echo "[ \"\$1\" != --describe ] || { echo '{\"program\": \"$1\", \"options\": [$2], \"what\": \"a test\"}'; exit; }"
        printf '%s\n' "$3"
    } >"$tmp/programs/$1"
    chmod +x "$tmp/programs/$1"
}
