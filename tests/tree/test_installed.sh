#!/bin/sh
# test_installed.sh - user 3: `make install`, tune.pc, and foreign programs (tests/foreign) that own their loop and main.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
CXX=${CXX:-c++}
if ! command -v pkg-config >/dev/null 2>&1; then
    skip "foreign programs" "no pkg-config"
    finish
fi
san=
if sanitized; then san=-fsanitize=address,undefined; fi
case $BUILD in /*) build=$BUILD ;; *) build=$PWD/$BUILD ;; esac

quietly() { "$@" >"$tmp/log" 2>&1 || { cat "$tmp/log"; false; }; }
is "make install" quietly make BUILD="$BUILD" SAN="$san" install PREFIX="$tmp/inst"
is "make install with DESTDIR" quietly make BUILD="$BUILD" SAN="$san" install PREFIX=/opt/t DESTDIR="$tmp/stage"
is "tune.pc names its folders from its own place" grep -qxF 'prefix=${pcfiledir}/../..' "$tmp/stage/opt/t/lib/pkgconfig/tune.pc"
is "the installed programs find their defaults" eval '(cd / && "$tmp/inst/bin/finetune_full" --list-models) | grep -q HuggingFaceTB/SmolLM2-135M'
is "... and run the experiments that are scripts" eval '(cd "$tmp" && printf "%s\n" "entitySpace: [{identifier: level, propertyDomain: {values: [1]}}]" "experiments:" "  - actuatorIdentifier: custom_experiments" "    experimentIdentifier: compression" "    parameterization: [{property: {identifier: megabytes}, value: 1}]" >gzip.yaml && quietly inst/bin/sweep gzip.yaml --store gzip && grep -q "1 valid, 0 invalid, 0 failed" log)'
is "program.h, which prints and exits, is not installed" test ! -e "$tmp/inst/include/tune/flags/program.h"
is "--version says the same in all of them" eval '[ "$(for p in "$tmp"/inst/bin/*; do "$p" --version | cut -d" " -f2-; done | sort -u | wc -l)" = 1 ]'
if git rev-parse --git-dir >/dev/null 2>&1; then
    is "make dist" quietly make BUILD="$tmp/dist" dist
    is "... unpacks to the tree that is committed" eval 'tar -xzf "$tmp"/dist/tune.c-*.tar.gz -C "$tmp/dist" && [ "$(cd "$tmp"/dist/tune.c-*/ && find . -type f | wc -l)" = "$(git ls-tree -r HEAD | wc -l)" ]'
else skip "make dist" "this tree is no git clone"; fi

# Each header alone: C11 without GNU names, C++11.
headers_alone() {
    (cd "$tmp/inst/include/tune" && find . -name '*.h') | while read -r h; do
        echo "#include <${h#./}>" >"$tmp/h.c"
        echo "int main(void) { return 0; }" >>"$tmp/h.c"
        $CC -std=c11 -pedantic -Wall -Wextra -Werror -I"$tmp/inst/include/tune" -fsyntax-only "$tmp/h.c" || exit 1
        [ -z "$1" ] || $1 -std=c++11 -pedantic -Wall -Wextra -Werror -I"$tmp/inst/include/tune" -fsyntax-only -x c++ "$tmp/h.c" || exit 1
    done
}
cxx=$CXX
command -v "$CXX" >/dev/null 2>&1 || cxx=
is "every installed header compiles alone${cxx:+, also as C++}" headers_alone "$cxx"

is "tiny models" quietly eval 'tiny "$tmp/a" 1 && tiny "$tmp/b" 2'
warn="-pedantic -Wall -Wextra -Werror"
built() { # where, pkg-config path, compiler, standard, source
    flags=$(PKG_CONFIG_PATH=$2 pkg-config --cflags --libs tune) || return 1
    $3 $warn $san -std=$4 "$5" $flags -o "$tmp/loop-$1"
}
same() { printf '%b' "$1" | diff - "$2"; }
run() { # where, expected standard output
    "$tmp/loop-$1" "$tmp/a" "$tmp/b" >"$tmp/out" 2>"$tmp/err" </dev/null || { echo "exit code $?"; cat "$tmp/out" "$tmp/err"; return 1; }
    same "$2" "$tmp/out" && same "" "$tmp/err"
}
c='1 device: same same\n2 devices: same same\nmy own names: 2\n'
cc='same\nsame\nabsent folder said\nits thread'\''s own error: yes\nmy own names: 2\n'
for place in "build $build" "installed $tmp/inst/lib/pkgconfig"; do
    set -- $place
    is "a C program by the $1 tune.pc" built "$1-c" "$2" "$CC" c11 tests/foreign/loop.c
    is "$1: two models alone and interleaved, same bits; no line but its own" run "$1-c" "$c"
    if [ -n "$cxx" ]; then
        is "a C++ program by the $1 tune.pc" built "$1-cc" "$2" "$cxx" c++11 tests/foreign/loop.cc
        is "$1: two models in two threads, same bits; no line but its own" run "$1-cc" "$cc"
    else
        skip "a C++ program by the $1 tune.pc" "no $CXX"
    fi
done
# ---- an adapter trained, saved as PEFT does and read again, by the installed headers ----
is "a program that trains an adapter" built adapter "$tmp/inst/lib/pkgconfig" "$CC" c11 tests/foreign/adapter.c
adapter() { "$tmp/loop-adapter" "$tmp/a" "$tmp/adapter" >"$tmp/out" 2>&1; cat "$tmp/out"; same 'it learns\nsaved, the same\nread, the same\n' "$tmp/out"; }
is "it learns, is saved, and read; no line but its own" adapter
is "as PEFT's folder" grep -q '"peft_type": "LORA"' "$tmp/adapter/adapter_config.json"
# ---- a sample store, asked by the library that measures ----
if [ -e "$tmp/inst/lib/pkgconfig/tune_sweeps.pc" ]; then
    printf 'a,speed\n1,10\n2,"[30, 32]"\n3,20\n' >"$tmp/rows.csv"
    cat >"$tmp/space.yaml" <<'END'
entitySpace: [{identifier: a, propertyDomain: {values: [1, 2, 3, 4]}}]
experiments: [{actuatorIdentifier: replay, experimentIdentifier: made}]
END
    is "a store of three points" quietly "$tmp/inst/bin/samples" import csv "$tmp/rows.csv" --experiment made --inputs a --property speed --store "$tmp/store"
    asks() {
        for place in "$build" "$tmp/inst/lib/pkgconfig"; do
            flags=$(PKG_CONFIG_PATH=$place pkg-config --cflags --libs tune_sweeps) &&
                $CC $warn $san -std=c11 tests/foreign/questions.c $flags -o "$tmp/questions" || return 1
            "$tmp/questions" "$tmp/store" "$tmp/space.yaml" speed >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/out" "$tmp/err"; return 1; }
            same '1. a 2: 31\n2. a 3: 20\na.4 is unmeasured\nidentifier,a,status,tries,reason\na.4,4,unmeasured,0,\n' "$tmp/out" && same "" "$tmp/err" || return 1
        done
    }
    is "a C program by both tune_sweeps.pc: what is best and what is missing; no line but its own" asks
    is "... says what is wrong" eval '! "$tmp/questions" "$tmp/store" "$tmp/gone.yaml" speed >"$tmp/out" && grep -q "^best: .*gone.yaml" "$tmp/out"'
else
    skip "a program that asks a sample store" "no HDF5"
fi
# ---- the program of docs/use-the-components.md, as it is printed there ----
page=docs/use-the-components.md
# block NUMBER - that block of C on the page.
block() { awk -v n="$1" '/^```c$/ { at++; inside = 1; next } /^```/ { inside = 0 } inside && at == n' $page; }
block 1 >"$tmp/enough.c"
block 2 >"$tmp/say.c"
enough() { # limit, folder
    "$tmp/loop-enough" "$tmp/a" datasets/stories.jsonl "$1" "$tmp/$2" >"$tmp/out" 2>"$tmp/err"
}
is "its line to build it is the one used here" grep -q 'cc enough.c $(PKG_CONFIG_PATH=build pkg-config --cflags --libs tune)' $page
is "it builds" built enough "$build" "$CC" c11 "$tmp/enough.c"
is "it trains until the loss is low enough" eval 'enough 4.5 trained && test ! -s "$tmp/err" && awk "{ last = \$2; if (NR > 1 && before <= 4.5) bad = 1; before = \$2 } END { exit bad || last > 4.5 || NR < 5 }" "$tmp/out"'
is "and leaves a model folder" eval 'cmp -s "$tmp/a/config.json" "$tmp/trained/config.json" && test -s "$tmp/trained/model.safetensors"'
is "an error is said, not survived" eval '! "$tmp/loop-enough" "$tmp/gone" datasets/stories.jsonl 4 "$tmp/x" 2>"$tmp/err" && grep -q "^enough: .*gone" "$tmp/err"'
is "its second program builds" built say "$build" "$CC" c11 "$tmp/say.c"
is "it continues a text, the same each time" eval '"$tmp/loop-say" "$tmp/a" "One day" >"$tmp/out" && "$tmp/loop-say" "$tmp/a" "One day" >"$tmp/err" && cmp "$tmp/out" "$tmp/err" && [ "$(wc -c <"$tmp/out")" -gt 20 ]'
headers() { grep -oE '^\| `[^|]*\.h`.* \|' $page | grep -oE '([a-z]+/)+[a-z_]+\.h' | while read -r h; do [ -e "$tmp/inst/include/tune/$h" ] || echo "$h"; done; }
none "every header it names is installed" "$(headers)"
# ---- a recipe, in a folder of its own, by what is installed ----
mkdir "$tmp/own folder" && cp "$tmp/inst/share/tune.c/recipes/finetune_lora.c" "$tmp/own folder/mine.c"
recipe() { (cd "$tmp/own folder" && MAKEFLAGS= make -f "$tmp/inst/share/tune.c/recipe.mk" CC="$CC" CFLAGS="-O1 -Werror $san" "$@"); }
is "a recipe builds from the installed prefix, in another folder" quietly recipe mine
is "it leaves the program beside its source, nothing else" test "$(cd "$tmp/own folder" && ls | tr '\n' ' ')" = "mine mine.c "
is "it finds the installed defaults" eval '"$tmp/own folder/mine" --list-models | grep -q HuggingFaceTB/SmolLM2-135M'
is "it trains, and its run keeps its source" eval 'quietly "$tmp/own folder/mine" --model "$tmp/a" --dataset datasets/stories.jsonl --max-length 32 --max-steps 2 --output "$tmp/own" &&
    cmp "$tmp/own folder/mine.c" "$tmp/own/recipe.c" && test -e "$tmp/own/checkpoint-final/adapter_model.safetensors"'
is "recipe.mk without a target says how" eval 'recipe | grep -q "make -f PREFIX/share/tune.c/recipe.mk mine"'
is "make uninstall" quietly make BUILD="$BUILD" SAN="$san" uninstall PREFIX="$tmp/inst"
none "uninstall leaves no file" "$(find "$tmp/inst" -type f)"
finish
