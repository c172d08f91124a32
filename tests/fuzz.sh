#!/bin/sh
# fuzz.sh - every fuzz target for FUZZ_SECONDS (60), one to a core. TAP; the totals as tests/run.sh gives them.
# BUILD: where `make fuzz` built them. What a target finds new is kept in $BUILD/corpus for the next time. The input of
# a crash is left in $BUILD/crashes. Fix the fault, then keep the input:
#   fuzz.sh --keep TARGET FILE...   adds inputs to tests/fuzz/corpus/TARGET.tar.gz, which `make test` replays
from=$PWD
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build/fuzz}
corpus=${FUZZ_CORPUS:-tests/fuzz/corpus}
if [ "${1:-}" = --keep ]; then
    [ $# -ge 3 ] && [ -e "tests/fuzz/$2.c" ] || { echo "fuzz.sh: expected --keep TARGET FILE...; targets: tests/fuzz/*.c" >&2; exit 2; }
    archive=$corpus/$2.tar.gz inputs=$(mktemp -d) || exit 1
    trap 'rm -rf "$inputs"' EXIT
    shift 2
    mkdir "$inputs/all" && { [ ! -e "$archive" ] || tar -C "$inputs/all" -xzf "$archive"; } || exit 1
    for f in "$@"; do (cd "$from" && cat "$f") >"$inputs/new" && mv "$inputs/new" "$inputs/all/$(sha1sum <"$inputs/new" | cut -c1-16)" || exit 1; done
    tar -C "$inputs/all" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=0644 -cf "$inputs/tar" $(ls "$inputs/all") &&
        gzip -9nc "$inputs/tar" >"$inputs/gz" && cp "$inputs/gz" "$archive.new" && mv "$archive.new" "$archive"
    exit
fi
number=0 passed=0 failed=0 skipped=0
log=$(mktemp -d) || exit 1
trap 'rm -rf "$log"' EXIT
mkdir -p "$BUILD/crashes"

fuzz() { # TARGET
    mkdir -p "$BUILD/corpus/$1" "$log/corpus/$1"
    tar -C "$log/corpus/$1" -xzf "$corpus/$1.tar.gz" || { echo 1 >"$log/$1.code" && echo "SUMMARY: $corpus/$1.tar.gz cannot be unpacked" >"$log/$1" && return; }
    "$BUILD/tests/fuzz/$1" -max_total_time="${FUZZ_SECONDS:-60}" -timeout=20 -rss_limit_mb=2048 -dict="tests/fuzz/$1.dict" \
        -artifact_prefix="$BUILD/crashes/$1-" "$BUILD/corpus/$1" "$log/corpus/$1" >"$log/$1" 2>&1
    echo $? >"$log/$1.code"
}

say() { # TARGET
    number=$((number + 1))
    figures=$(sed -n 's/^#\([0-9]*\)\tDONE *cov: \([0-9]*\).*/\1 inputs, \2 edges/p' "$log/$1")
    if [ "$(cat "$log/$1.code")" = 0 ] && [ -n "$figures" ]; then
        passed=$((passed + 1))
        echo "ok $number - $1: $figures"
    else
        failed=$((failed + 1))
        echo "not ok $number - $1: $(sed -n 's/^SUMMARY: //p' "$log/$1")"
        { # the input first: whatever is cut off behind it, it can be made again (base64 -d)
            sed -n '/^Base64: /p' "$log/$1"
            sed -n '/ERROR: \|runtime error: \|does not hold/,$p' "$log/$1" | head -n 40
            grep -q '^SUMMARY: ' "$log/$1" || tail -n 40 "$log/$1"
        } | sed 's/^/# /'
    fi
}

set --
for source in tests/fuzz/*.c; do
    target=$(basename "$source" .c)
    [ "$target" = replay ] && continue
    if [ -x "$BUILD/tests/fuzz/$target" ]; then set -- "$@" "$target"; else
        number=$((number + 1)) skipped=$((skipped + 1))
        echo "ok $number - $target # SKIP no clang with libFuzzer"
    fi
done
cores=$(nproc)
while [ $# -gt 0 ]; do
    running=
    while [ $# -gt 0 ] && [ "$(echo "$running" | wc -w)" -lt "$cores" ]; do
        fuzz "$1" &
        running="$running $1"
        shift
    done
    wait
    for target in $running; do say "$target"; done
done
echo "1..$number"
if [ -n "${TUNE_TEST_TOTALS:-}" ]; then echo "$passed $failed $skipped" >>"$TUNE_TEST_TOTALS"; else echo "$passed passed, $failed failed, $skipped skipped"; fi
[ $failed = 0 ]
