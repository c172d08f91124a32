# shell.sh - what the shell tests share: a folder of their own, TAP lines, a tiny model. Source it from the repository's root.
BUILD=${BUILD:-build}
here=$(pwd)
case $BUILD in /*) ;; *) BUILD=$here/$BUILD ;; esac
tmp=$(mktemp -d /tmp/tune-test-XXXXXX) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
number=0 failures=0

ok() { number=$((number + 1)); echo "ok $number - $1"; }
not_ok() { number=$((number + 1)); failures=$((failures + 1)); echo "not ok $number - $1"; shift; for l in "$@"; do echo "$l" | sed 's/^/#   /'; done; }
skip() { number=$((number + 1)); echo "ok $number - $1 # SKIP $2"; }
# check NAME COMMAND...: the command succeeds.
check() {
    name=$1
    shift
    if "$@" >"$tmp/check.out" 2>&1; then ok "$name"; else not_ok "$name" "$(head -c 2000 "$tmp/check.out")"; fi
}
# refused NAME CODE TEXT COMMAND...: it ends with that code and its stderr holds the text.
refused() {
    name=$1 code=$2 text=$3
    shift 3
    "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    got=$?
    if [ $got = "$code" ] && grep -qF -- "$text" "$tmp/err"; then ok "$name"; else
        not_ok "$name" "exit code $got, expected $code with \"$text\"" "$(head -c 1500 "$tmp/err")"
    fi
}
# tiny_model FOLDER [OPTION...]: trained by one core in a blink.
tiny_model() {
    folder=$1
    shift
    "$BUILD/init_model" --like smollm2-135m --seed 1 --dtype float32 --layers 2 --hidden-size 48 --intermediate-size 96 --heads 3 \
        --kv-heads 1 --vocab-size 400 --max-positions 128 "$@" "$folder" >/dev/null
}
finish() { [ $failures = 0 ] && exit 0 || exit 1; }
