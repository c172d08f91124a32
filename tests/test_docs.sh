#!/bin/sh
# test_docs.sh - every command that README.md and docs/ print is run: here, with a tiny model and a small file in the places of
# those it names, or by the test that stands beside it below. A command that nothing runs is a failure.
cd "$(dirname "$0")/.." || exit 1
. tests/tap.sh
# Indented lines of a page that begin with a command; a line that ends in \ goes on in the next; comments are cut.
commands() { sed -n 's/^    //p' "$@" | sed -e ':a' -e '/\\$/{' -e N -e 's/\\\n *//' -e ba -e '}' | grep -E '^(build/|make|cp |cc |\./|tools/[a-z]|[A-Z_]+=)' | sed 's/  *#.*//'; }
commands README.md docs/*.md >"$tmp/commands"
is "the pages have commands" test "$(wc -l <"$tmp/commands")" -ge 15

mkdir "$tmp/place" && cd "$tmp/place" || exit 1
mkdir build && ln -s "$BUILD"/* build && ln -s "$here/recipes" "$here/tools" "$here/datasets" "$here/defaults" . || exit 1
tiny models/SmolLM2-135M 1 --max-positions 512 >/dev/null && cp "$here/datasets/stories.jsonl" my.jsonl || exit 1
printf '[{"instruction": "Say a.", "input": "", "output": "a"},
{"instruction": "Say b.", "input": "b", "output": "b"}]' >alpaca.json
printf 'question,answer\n"Say a, or b.",a\n"Say c.",c\n' >questions.csv
printf '{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]}\n' >chat.jsonl
while IFS= read -r command; do
    case $command in
    "make quickstart") grep -q quickstart.sh "$here/tests/test_quickstart.sh" && by=test_quickstart.sh ;;
    "make test" | "make test-"* | "make bench" | "make fuzz" | "make faults") by=.ci/run ;;
    "cp recipes/finetune_full.c recipes/mine.c" | "make build/mine") by=test_recipe.sh ;;
    "build/mine "*--output\ runs/frozen) by=test_recipe.sh && cp -r runs/first runs/frozen ;; # for the command behind it
    "cc enough.c "* | "./enough "*) by=test_foreign.sh ;;
    "build/sweep "* | "build/samples "*) by=test_sweep.sh ;; # on spaces of their own: these take minutes
    build/*)
        # "..." stands for a model and rows
        is "$command" sh -c "$(printf '%s' "$command" | sed 's| \.\.\. | --model models/SmolLM2-135M --dataset my.jsonl --max-steps 4 |')"
        continue
        ;;
    *)
        is "$command: no test runs it" false
        continue
        ;;
    esac
    is "$command: run by $by" grep -q . "$here/$(case $by in .*) echo "$by" ;; *) echo "tests/$by" ;; esac)"
done <"$tmp/commands"
links() { grep -ohE '\]\([a-z/.-]+\)' "$here/README.md" "$here"/docs/*.md | tr -d '()]' | while read -r l; do [ -e "$here/$l" ] || [ -e "$here/docs/$l" ] || echo "$l"; done; }
none "the files they link to are there" "$(links)"
flags() { grep -ohE '`--[a-z][a-z-]*' "$here/README.md" "$here"/docs/*.md | tr -d '`' | sed 's|^--no-|--|' | sort -u | while read -r f; do
    { build/finetune_full --help && build/runs --help && build/sweep --help && build/space --help && build/samples --help && build/finetune_lora --help && build/merge_adapter --help; } | grep -qE -e "(^| )--(\[no-\])?${f#--}( |$)" || case $f in --freeze-layers) ;; *) echo "$f" ;; esac
done; }
none "the options they name exist" "$(flags)"
finish
