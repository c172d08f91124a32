#!/bin/sh
# test_ci_stages.sh - .ci/run and its rule (.ci/stages.sh), in a made-up repository whose stages only count: which run, in which
# order, which are left out, what is written down, what the last line then says. And the record of test programs (record.sh).
. tests/tap.sh
if ! command -v git >/dev/null 2>&1 || ! command -v bash >/dev/null 2>&1; then
    skip "stages of .ci/run" "no git or no bash"
    finish
fi
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE TUNE_TEST_TOTALS TUNE_TEST_TIMES TUNE_TEST_RECORD TUNE_TEST_WHOLE TUNE_TEST_STAGE
export GIT_CONFIG_NOSYSTEM=1 HOME="$tmp" GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
. .ci/stages.sh
mkdir "$tmp/tree" && cp -r .ci "$tmp/tree" && rm -f "$tmp/tree/.ci/ran.txt" "$tmp/tree/.ci/programs.txt" && cd "$tmp/tree" || exit 1
printf '%s:\n\t@echo 3 0 1 >>"$$TUNE_TEST_TOTALS"; echo "$@ $${TUNE_TEST_STAGE} $${TUNE_TEST_WHOLE:-}" >>seen; echo "7 5 $@ first" >>"$$TUNE_TEST_TIMES"\n' "$always $longer" >Makefile
printf 'seen\nplan\nran\n' >.gitignore
mkdir -p tests/fuzz components/devices/cuda docs && echo 1 >tests/fuzz/new.c && echo 1 >components/devices/cuda/new.cu && cp Makefile "$tmp/Makefile.saved" && git init -q . && git add . || exit 1
commit() { git add . && git commit -q --allow-empty -m "$1"; }
plan() { .ci/run plan >plan; }
runs() { plan && grep -qF "== make $1 runs: $2" plan || { cat plan; return 1; }; } # STAGE REASON
left_out() { plan && grep -qE "^== make $1 is left out: it passed with the same contents on $(date -u +%Y)" plan || { cat plan; return 1; }; }
run() { .ci/run "$@" >ran; } # its output is in ran
ends() { tail -n 1 ran | grep -qx "$1" || { tail -n 3 ran; return 1; }; }
order() { plan && sed -n 's/^== make \([a-z0-9-]*\) runs.*/\1/p' plan | tr '\n' ' '; }

commit first
is "nothing is known: all run" eval 'runs test-valgrind ".ci/ran.txt has no line of it" && [ "$(grep -c " runs: " plan)" = 12 ]'
is "make test always runs" runs test always
is "so does test-peers" runs test-peers always
is "so do the emulated CUDA tests" runs test-cuda always
is "all of them run" eval 'run && ends "36 passed, 0 failed, 12 skipped"'
is "the stage is told its name, and to run all of its programs" grep -qx "test-asan test-asan 1" seen
is "the slowest programs are printed" grep -qx "7 5 test-asan first" ran
is "what passed is written down" eval '[ "$(grep -vc "^#" .ci/ran.txt)" = 9 ]'
commit "what passed"
is "then the longer ones are left out" eval 'left_out test-asan && [ "$(grep -c "is left out" plan)" = 9 ]'
is "left out is skipped" eval 'run && ends "9 passed, 0 failed, 12 skipped"'
echo 2 >tests/fuzz/new.c && commit "a fuzz target"
is "what a stage covers changed" runs fuzz "what it covers changed since it ran on"
is "it is no file of another stage" left_out faults
echo 2 >components/devices/cuda/new.cu && commit "a kernel"
is "a CUDA kernel runs the compiled ones" runs test-cuda-compiled "what it covers changed"
i=0 && while [ $i -lt 60 ]; do i=$((i + 1)) && echo $i >docs/page.md && commit "page $i" || exit 1; done
is "sixty commits of pages change nothing" left_out faults
git revert -n HEAD~61 HEAD~60 >/dev/null 2>&1; git checkout -q HEAD~62 -- tests components 2>/dev/null; commit "as before"
is "contents that passed before are known again" left_out fuzz
echo 3 >tests/fuzz/new.c
is "an uncommitted change makes a stage run" runs fuzz "what it covers"
is "... but is not written down" eval 'cp .ci/ran.txt before && run fuzz && cmp before .ci/ran.txt; rm before'
git checkout -q tests

# ---- the order, and runs elsewhere ----
for f in components/devices/cuda/new.cu tests/fuzz/new.c; do echo 9 >$f; done
mkdir -p components/core && echo 1 >components/core/new.c && commit "all of them changed"
stamp() { sed -i "s/^$1 [^ ]*/$1 $2/" .ci/ran.txt; }
for s in $longer; do stamp $s 2026-01-05T00:00Z; done
stamp test-valgrind 2026-01-02T00:00Z && stamp fuzz 2026-01-03T00:00Z && stamp test-asan 2026-01-09T00:00Z && commit "dates"
is "those that wait begin, then comes the one that ran longest ago" eval \
    'case "$(order)" in "test test-cuda test-peers faults test-valgrind fuzz "*" test-asan ") ;; *) cat plan; false ;; esac'
sed -i '/^fuzz/d; /^test-asan/d; /^test-valgrind/d' .ci/ran.txt && commit "fewer lines"
first() { order | cut -d' ' -f6; }
orders() { for i in 1 2 3 4 5 6 7 8 9 10; do commit again && first; done | sort -u | wc -l; }
is "those without a line take turns" test "$(orders)" -ge 2
git checkout -q .ci/ran.txt
is "after an hour no longer stage begins" eval 'SECONDS=3600 .ci/run >ran; [ "$(grep -c "is left out: an hour has gone by" ran)" -ge 6 ] && ends "9 passed, 0 failed, 12 skipped"'

# ---- every fifth time all programs ----
whole_turns() { # whether each of five runs of a stage with parts was told to run all
    : >seen
    for i in 1 2 3 4 5 6; do
        echo $i >components/core/new.c && commit "change $i" && : >.ci/programs.txt && run test-asan && commit "what passed" || return 1
    done
    [ "$(sed 's/test-asan test-asan *//' seen | tr '\n' ',')" = "$1" ] || { cat seen; return 1; }
}
sed -i '/^test-asan/d' .ci/ran.txt && commit "no line"
is "every fifth time a stage runs all of its programs" whole_turns "1,,,,,1,"
is "all: asked for, and all programs" eval ': >seen; run all && [ "$(grep -c "runs: asked for" ran)" = 12 ] && grep -qx "test-aarch64 test-aarch64 1" seen && ends "36 passed, 0 failed, 12 skipped"'
is "one stage by name" eval 'run faults && [ "$(grep -c "^== make" ran)" = 3 ] && ends "3 passed, 0 failed, 1 skipped"'
refused "a stage that is none" 2 'no stage "fault"' .ci/run fault
cp Makefile saved && printf '%s:\n\t@false\n' "$always $longer" >Makefile && commit "broken"
is "a stage that counted nothing is a failure, and is not written down" eval 'cp .ci/ran.txt before; ! run faults && ends "0 passed, 1 failed, 0 skipped" && cmp before .ci/ran.txt'
printf '%s:\n\t@printf "3 1 0\\n2 0 0\\n" >>"$$TUNE_TEST_TOTALS"; false\n' "$always $longer" >Makefile && commit "first part broken"
is "a failure in the first part of a stage counts once" eval '! run faults && ends "5 passed, 1 failed, 0 skipped"'
printf '%s:\n\t@echo 0 0 1 >>"$$TUNE_TEST_TOTALS"\n' "$always $longer" >Makefile && commit "only skips"
is "a stage that only skipped is not written down" eval 'run faults && ends "0 passed, 0 failed, 1 skipped" && cmp before .ci/ran.txt'
cp saved Makefile && rm saved before && commit "mended"
is "contents that changed meanwhile are not written down" eval 'echo 7 >components/core/new.c && commit seven && sed -i "s/echo 3 0 1/git commit -q --allow-empty -m x; echo 8 >components\/core\/new.c; git commit -qam eight; echo 3 0 1/" Makefile && commit "a pull meanwhile" && cp .ci/ran.txt before && run test-valgrind && cmp before .ci/ran.txt'
cp "$tmp/Makefile.saved" Makefile; rm -f before; commit "as it was"
is "a tree without git runs all, and says why" eval 'mkdir "$tmp/bare" && cp -r .ci "$tmp/bare" && "$tmp/bare/.ci/run" plan >plan && [ "$(grep -c "runs: no git here" plan)" = 9 ]'

# ---- the record of test programs ----
mkdir "$tmp/programs" && cd "$tmp/programs" && mkdir -p build/tests/core tests/core && cp "$here/tests/run.sh" "$here/tests/record.sh" tests || exit 1
program() { echo "#include <stdio.h>
int main(void) { puts(\"ok 1 - $1\"); return 0; } /* $2 */" >source.c && ${CC:-cc} -g -o build/tests/core/test_one source.c; }
script() { printf '#!/bin/sh\n# starts build/tool\n%s\n' "${1:-echo ok 1 - script}" >tests/core/test_two.sh; }
tool() { echo "int main(void) { return $1; }" >source.c && ${CC:-cc} -o build/tool source.c; }
printf 'build\nrecord\nran\nsource.c\n' >.gitignore
save() { git add . && git commit -q --allow-empty -m "$1"; }
git init -q . && program a && script && tool 0 && save first || exit 1
programs() { BUILD=build TUNE_TEST_STAGE=stage TUNE_TEST_RECORD=$PWD/record sh tests/run.sh build/tests/core/test_one tests/core/test_two.sh >ran; }
is "programs that nobody ran run" eval 'programs && ends "2 passed, 0 failed, 0 skipped" && [ "$(wc -l <record)" = 2 ]'
is "with the same objects they are left out, again and again" eval 'programs && programs && ends "0 passed, 0 failed, 2 skipped" && [ "$(grep -c "left out: it passed with the same objects" ran)" = 2 ]'
is "TUNE_TEST_WHOLE=1: all" eval 'TUNE_TEST_WHOLE=1 programs && ends "2 passed, 0 failed, 0 skipped" && [ "$(wc -l <record)" = 2 ]'
is "another comment is the same object" eval 'program a comment && programs && ends "0 passed, 0 failed, 2 skipped"'
is "other code runs again" eval 'program b && programs && ends "1 passed, 0 failed, 1 skipped"'
is "a script runs again if a program changed" eval 'tool 1 && programs && ends "1 passed, 0 failed, 1 skipped" && ! grep -q "test_two.*left out" ran'
is "with uncommitted changes all run, and nothing is written down" eval 'cp record before && echo "# more" >>tests/core/test_two.sh && programs && ends "2 passed, 0 failed, 0 skipped" && cmp record before && rm before && git checkout -q tests'
is "what cannot be hashed runs" eval 'OBJCOPY=false programs && ends "2 passed, 0 failed, 0 skipped"'
is "what fails is not written down" eval 'script "echo not ok 1; exit 1" && save fails; ! programs; ! programs && ends "0 passed, 1 failed, 1 skipped"'
is "nor is what skipped something" eval 'script "echo ok 1; echo ok 2 \# SKIP no root" && save skips; programs && programs && ends "1 passed, 0 failed, 2 skipped"'
is "lines of other stages stay" eval 'script && save again && echo "other core/test_one 0" >>record && programs && grep -qx "other core/test_one 0" record && [ "$(wc -l <record)" = 3 ]'
is "what all tests read is part of each" eval 'mkdir -p defaults && echo 1 >defaults/a && save defaults && programs && ends "2 passed, 0 failed, 0 skipped"'
is "what scripts read is part of theirs" eval 'echo 1 >tests/helper.py && save helper && programs && ends "1 passed, 0 failed, 1 skipped"'

# ---- results that are not printed ----
lost() { printf '%s\n' "$1" >"$tmp/lost.sh" && ! sh tests/run.sh "$tmp/lost.sh" >ran && ends "1 passed, 1 failed, 0 skipped"; }
is "a plan of two results and one of them: the other failed" lost 'echo ok 1; echo 1..2'
cp "$here/tests/tap.sh" tests
is "a return that eval reads ends no test without a result" lost '. tests/tap.sh; is a true; is b eval "for i in 1; do false || return 1; done"; finish'

cd "$here" || exit 1
stale() { # what a list names and no file has
    for stage in $longer; do
        (set -f && covers "$stage") | tr ' ' '\n' | sed 's/^:!//; /^:/d' | while read -r path; do [ -n "$(git ls-files -- "$path" 2>/dev/null || ls -d "$path")" ] || echo "$stage: $path"; done
    done
}
none "every path of the lists is there" "$(stale)"
none "every stage knows how to build what it runs" "$(for stage in $always $longer; do make -n "$stage" 2>&1 | grep "\*\*\*" | sed "s/^/$stage: /"; done)"
none "every stage is a target" "$(for stage in $always $longer; do grep -q "^$stage:" Makefile || echo "$stage"; done)"
finish
