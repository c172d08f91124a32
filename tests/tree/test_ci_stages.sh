#!/bin/sh
# test_ci_stages.sh - .ci/run and its rule (.ci/stages.sh), in a made-up repository whose stages only count: which run, which are
# left out, what the last line then says.
. tests/tap.sh
if ! command -v git >/dev/null 2>&1 || ! command -v bash >/dev/null 2>&1; then
    skip "stages of .ci/run" "no git or no bash"
    finish
fi
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE TUNE_TEST_TOTALS
export GIT_CONFIG_NOSYSTEM=1 HOME="$tmp" GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
. .ci/stages.sh
mkdir "$tmp/tree" && cp -r .ci "$tmp/tree" && cd "$tmp/tree" || exit 1
printf '%s:\n\t@echo 3 0 1 >>"$$TUNE_TEST_TOTALS"\n' "$always $longer" >Makefile
git init -q . && git add . || exit 1
commit() { git commit -q --allow-empty -m "$1"; }
upto() { while [ "$(git rev-list --count --first-parent HEAD)" -lt "$1" ]; do commit "nothing" || return 1; done; }
plan() { .ci/run plan >plan; }
runs() { plan && grep -qF "== make $1 runs: $2" plan; } # STAGE REASON
# left_out STAGE COMMIT - which stands with its subject in the line.
left_out() { plan && grep -qF "== make $1 is left out: nothing that it covers changed in the last 20 commits; by the same rule it ran last for $(git log -1 --format='%h (%s)' "$2")" plan; }

commit first
upto 20
is "a short history: all run" runs test-valgrind "fewer than 20 commits before this one"
upto 25
is "nothing changed: left out, the fourth one is named" left_out test-asan HEAD~1
is "make test always runs" runs test always
is "so does test-peers" runs test-peers always
is "so do the emulated CUDA tests" runs test-cuda always
mkdir -p tests/fuzz docs && echo 1 >tests/fuzz/new.c && git add . && commit "a fuzz target"
is "a file it covers changed" runs fuzz "files it covers changed in the last 20 commits"
mkdir -p components/devices/cuda && echo 1 >components/devices/cuda/new.cu && git add . && commit "a kernel"
is "a CUDA kernel runs the compiled ones" runs test-cuda-compiled "files it covers changed in the last 20 commits"
git reset -q --hard HEAD~1
is "it is no file of another stage" left_out faults HEAD~2
echo 1 >docs/page.md && git add . && commit "a page"
is "a page behind it changes nothing" runs fuzz "files it covers changed in the last 20 commits"
upto 28
is "every fourth commit all run" runs faults "every fourth commit"
upto 45
is "twenty commits long" runs fuzz "files it covers changed"
upto 46
is "then no more; the last one that ran it is named, fourth or not" left_out fuzz HEAD~1
is "a stage that never changed names the fourth" left_out faults HEAD~2
is "all: asked for" eval '.ci/run all >ran && [ "$(grep -c "runs: asked for" ran)" = 10 ] && tail -n 1 ran | grep -qx "30 passed, 0 failed, 10 skipped"'
is "left out is skipped" eval '.ci/run >ran; [ "$(grep -c "is left out" ran)" = 7 ] && tail -n 1 ran | grep -qx "9 passed, 0 failed, 10 skipped"'
is "one stage by name" eval '.ci/run faults >ran && [ "$(grep -c "^== make" ran)" = 3 ] && tail -n 1 ran | grep -qx "3 passed, 0 failed, 1 skipped"'
is "after an hour no longer stage begins" eval 'SECONDS=3600 .ci/run >ran; [ "$(grep -c "is left out: an hour has gone by" ran)" = 7 ] && tail -n 1 ran | grep -qx "9 passed, 0 failed, 10 skipped"'
refused "a stage that is none" 2 'no stage "fault"' .ci/run fault
branch=$(git symbolic-ref --short HEAD)
git checkout -q -b side && commit one && commit two && commit three && git checkout -q "$branch" && git merge -q --no-ff -m merged side
is "a merge counts as one commit" eval '[ "$(git rev-list --count --first-parent HEAD)" = 47 ] && left_out faults HEAD~3'
upto 48
is "and hides no fourth one" runs faults "every fourth commit"
echo 2 >Makefile.new && printf '%s:\n\t@false\n' "$always $longer" >Makefile
is "a stage that counted nothing is a failure" eval '! .ci/run faults >ran; tail -n 1 ran | grep -qx "0 passed, 1 failed, 0 skipped"'
git checkout -q Makefile
is "a shallow clone runs all, and says why" eval 'git clone -q --depth 22 "file://$tmp/tree" "$tmp/shallow" && "$tmp/shallow/.ci/run" plan >plan && [ "$(grep -c "runs: a shallow clone" plan)" = 10 ]'
is "so does a tree without git" eval 'mkdir "$tmp/bare" && cp -r .ci "$tmp/bare" && "$tmp/bare/.ci/run" plan >plan && [ "$(grep -c "runs: no git history" plan)" = 10 ]'

cd "$here" || exit 1
stale() { # what a list names and no file has
    for stage in $longer; do
        covers "$stage" | tr ' ' '\n' | sed 's/^:!//; /^:/d' | while read -r path; do [ -e "$path" ] || echo "$stage: $path"; done
    done
}
none "every path of the lists is there" "$(stale)"
none "every stage knows how to build what it runs" "$(for stage in $always $longer; do make -n "$stage" 2>&1 | grep "\*\*\*" | sed "s/^/$stage: /"; done)"
none "every stage is a target" "$(for stage in $always $longer; do grep -q "^$stage:" Makefile || echo "$stage"; done)"
finish
