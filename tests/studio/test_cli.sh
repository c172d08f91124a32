#!/bin/sh
# test_cli.sh - the commands of the studio, which are made from its table of routes.
. tests/tap.sh
. tests/studio/server.sh
mkdir "$tmp/root"
is "health" eval '"$studio" health --root "$tmp/root" >"$tmp/a" && grep -qx "status: ok" "$tmp/a" && grep -qx "root: $(cd "$tmp/root" && pwd -P)" "$tmp/a"'
is "... as JSON, what the server answers" eval 'serve "$tmp/root" && get /healthz >"$tmp/a" && "$studio" health --json --root "$tmp/root" | tr -d "\n" | cmp - "$tmp/a" && stopped'
"$studio" --help >"$tmp/help"
# The verbs of the table, from the sources: the word after the route's name.
verbs() { sed -n 's/^ *{"[A-Z]*", "[^"]*", "[A-Za-z]*", "\([a-z ]*\)",.*/\1/p' tools/studio/*.c; }
is "verbs are found" eval 'verbs | grep -qx health'
is "studio --help lists each" eval 'tr -s " \n" " " <"$tmp/help" >"$tmp/line"; verbs | while read -r v; do grep -q "[ :]$v[, ]" "$tmp/line" || { echo "$v"; exit 1; }; done'
each() { # COMMAND - of every verb
    verbs | while read -r v; do
        "$@" $v || { echo "$v"; exit 1; }
    done
}
helped() { "$studio" "$@" --help >"$tmp/a" && grep -q "^usage: studio $*" "$tmp/a" && grep -q -- '--\[no-\]json' "$tmp/a"; }
is "each has its help" each helped
unknown() { "$studio" "$@" --no-such-option 2>"$tmp/a"; [ $? = 2 ] && grep -q "^studio $*: .*no-such-option" "$tmp/a"; }
is "each refuses unknown options" each unknown
grouped() {
    verbs | sed -n 's/ .*//p' | sort -u | while read -r g; do
        "$studio" "$g" --help >"$tmp/a" || exit 1
        verbs | grep "^$g " | while read -r v; do grep -q "studio $v " "$tmp/a" || { echo "$v"; exit 1; }; done || exit 1
    done
}
is "a first word lists its commands" grouped
refused "an unknown command names the nearest" 2 "studio: there is no command helth (the nearest is health)" "$studio" helth
refused "... and ends" 2 "there is no command no such" "$studio" no such thing
refused "a command after options" 2 "a command stands before the options" "$studio" --root "$tmp/root" health
refused "a word too many" 2 "studio health: " "$studio" health more
refused "no such root" 2 "no such folder" "$studio" health --root "$tmp/none"
# ---- runs, if the programs are there ----
if verbs | grep -qx "run start" && [ -x "$BUILD/finetune_full" ] && [ -x "$BUILD/init_model" ]; then
    work=$tmp/work
    mkdir "$work" && tiny "$work/model" 1 >/dev/null
    awk 'BEGIN { for (i = 0; i < 40; i++) print "{\"text\": \"row " i " of a file\"}" }' >"$work/rows.jsonl"
    began() { "$studio" run start finetune_full model=model dataset=rows.jsonl max_steps=3 max_length=16 lr=2e-4 "output=out/a b; 'c'" --root "$work" --json >"$tmp/job"; }
    is "run start: words NAME=VALUE" began
    is "... byte for byte" grep -qF "\"--output\",\"out/a b; 'c'\"" "$tmp/job"
    finished() { "$studio" run list --root "$work" --where 'lr < 1e-3' --json | grep -q '"state":"finished"'; }
    is "run list: it finishes" await 0 finished
    is "... as a table" eval '"$studio" run list --root "$work" >"$tmp/a" && grep -q "^id .*state" "$tmp/a" && grep -q "^out/a b; .c. .*finished" "$tmp/a"'
    is "... and --where leaves it out" eval '"$studio" run list --root "$work" --where "lr > 1" --json | grep -q "\"runs\":\[\]"'
    shows() { "$studio" run show "$1" --root "$work" >"$tmp/a" && grep -qx "state: finished" "$tmp/a"; }
    is "run show: the id is a word" shows "out/a b; 'c'"
    refused "an option that the program has not" 2 "lrr" "$studio" run start finetune_full lrr=1 --root "$work"
    refused "no VALUE" 2 "lr: expected NAME=VALUE" "$studio" run start finetune_full lr --root "$work"
    refused "a job that is not there" 1 "job 3" "$studio" run stop 3 --root "$work"
    refused "no such run" 1 "studio run show: " "$studio" run show nothing --root "$work"
    refused "a bad --where is shown" 2 "lr<" "$studio" run list --where 'lr<' --root "$work"
else
    skip "runs" "no route or no program to start one"
fi
is "a secret of the environment does not show" eval 'mkdir "$tmp/hf_secret_value" && HF_TOKEN=hf_secret_value "$studio" health --root "$tmp/hf_secret_value" --json | grep -q "/\*\*\*\*\*\*\*\*\*\*\*\*\*\*\*\""'
finish
