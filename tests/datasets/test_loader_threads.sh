#!/bin/sh
# test_loader_threads.sh - the loader's two threads share nothing without its lock: its tests run under ThreadSanitizer.
. tests/tap.sh
if sanitized; then
    skip "threads of the loader" "a build with other sanitizers"
    finish
fi
libs=$(sed -n 's/^Libs:.*-ltune //p' "$BUILD/tune.pc")
include=$(sed -n 's/^Cflags: [^ ]* *//p' "$BUILD/tune.pc")
again() { # a system with more random addresses than the sanitizer knows needs setarch
    if command -v setarch >/dev/null 2>&1; then setarch -R "$@"; else "$@"; fi
}
echo 'int main(void) { return 0; }' >"$tmp/one.c"
if ! $CC -fsanitize=thread -o "$tmp/one" "$tmp/one.c" 2>/dev/null || ! again "$tmp/one" 2>/dev/null; then
    skip "threads of the loader" "no ThreadSanitizer here"
    finish
fi
is "the test of the loader is built" $CC -std=c11 -D_GNU_SOURCE -g -O1 -fsanitize=thread -Icomponents -Itests $include -o "$tmp/loader" tests/datasets/test_loader.c \
    components/datasets/loader.c components/datasets/prefetch.c components/datasets/batches.c components/datasets/packs.c \
    "$BUILD/libtune.a" -lcmocka $libs
is "no race is found" eval 'again "$tmp/loader" >"$tmp/found" 2>&1 || { grep -A 12 "WARNING: ThreadSanitizer" "$tmp/found"; false; }'
finish
