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
is "a secret of the environment does not show" eval 'mkdir "$tmp/hf_secret_value" && HF_TOKEN=hf_secret_value "$studio" health --root "$tmp/hf_secret_value" --json | grep -q "/\*\*\*\*\*\*\*\*\*\*\*\*\*\*\*\""'
finish
