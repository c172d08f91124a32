# tap.sh - what the shell tests share: numbered TAP lines, a folder of their own, a tiny model. Sourced from the tree's root.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL RECIPE
BUILD=${BUILD:-build}
CC=${CC:-cc}
export CC
OMP_WAIT_POLICY=passive # other tests and builds run beside
export OMP_WAIT_POLICY
number=0 failures=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

# is NAME COMMAND... - passes if the command succeeds; what it printed follows a failure.
is() {
    name=$1
    shift
    number=$((number + 1))
    if "$@" >"$tmp/said" 2>&1; then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name"
        failures=$((failures + 1))
        sed 's/^/# /' "$tmp/said" | head -n 40
    fi
}
skip() {
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}
# none NAME TEXT - passes if the text, the offenders, is empty.
none() { offenders=$2; is "$1" nothing; }
nothing() { [ -z "$offenders" ] || { printf '%s\n' "$offenders"; return 1; }; }
finish() {
    echo "1..$number"
    [ $failures = 0 ]
    exit
}
# tiny FOLDER SEED - a model of 0.1 M weights.
tiny() {
    "$BUILD/init_model" --layers 2 --hidden-size 64 --intermediate-size 128 --heads 2 --kv-heads 1 --vocab-size 300 \
        --max-positions 128 --seed "$2" "$1"
}
