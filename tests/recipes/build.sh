#!/bin/sh
# build.sh FOLDER RECIPE.c... - builds recipes in FOLDER, a copy of the tree made here, as a user does: make RECIPE=.
# The programs are FOLDER/build/<name>. Fails where the compiler says a word. BUILD: what is built already (default build).
cd "$(dirname "$0")/../.." || exit 1
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL
from=${BUILD:-build} folder=$1 flags=
shift
if nm "$from/libtune.a" 2>/dev/null | grep -q __asan_init; then flags=OPT=-O1; fi
mkdir -p "$folder/build" && cp -a Makefile tools components recipes datasets defaults "$folder" &&
    cp -a "$from"/obj "$from"/libtune.a "$from"/config.mk* "$folder/build" || exit 1
for recipe in "$@"; do
    case $recipe in /*) ;; *) recipe=$PWD/$recipe ;; esac
    name=$(basename "$recipe" .c)
    (cd "$folder" && make V=1 BUILD=build RECIPE="$recipe" $flags \
        ${flags:+SAN="-fsanitize=address,undefined -fno-omit-frame-pointer"} "build/$name") \
        >"$folder/log" 2>"$folder/warnings" && [ ! -s "$folder/warnings" ] ||
        { cat "$folder/log" "$folder/warnings"; exit 1; }
done
