# tap.sh - what the shell tests share: numbered TAP lines, a folder of their own, a tiny model. Sourced from the tree's root.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL RECIPE EXTRA_CFLAGS
here=$(pwd)
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$here/$BUILD ;; esac
# Programs find defaults/ beside their own folder; those built outside the tree are told.
case $BUILD in $here/*) ;; *) export TUNE_DEFAULTS="${TUNE_DEFAULTS:-$here/defaults}" ;; esac
CC=${CC:-cc}
export BUILD CC
OMP_WAIT_POLICY=passive # other tests and builds run beside
export OMP_WAIT_POLICY
number=0 failures=0
tmp=$(mktemp -d) || exit 1
export XDG_CONFIG_HOME="$tmp/config" # where the key of sweep --env lies
export TUNE_CUDA_ALGORITHMS="$tmp/algorithms" # not in the user's cache
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

# run_command COMMAND... - a `return` that eval reads ends this function, and not the one that prints the result.
run_command() { "$@"; }
# is NAME COMMAND... - passes if the command succeeds; what it printed follows a failure.
is() {
    name=$1
    shift
    number=$((number + 1))
    if run_command "$@" >"$tmp/said" 2>&1; then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name"
        failures=$((failures + 1))
        sed 's/^/# /' "$tmp/said" | head -n 40
    fi
}
# refused NAME CODE TEXT COMMAND... - passes if it ends with that code and its stderr holds the text.
refused() {
    name=$1 code=$2 text=$3
    shift 3
    number=$((number + 1))
    run_command "$@" >"$tmp/said" 2>"$tmp/complained" </dev/null
    got=$?
    if [ $got = "$code" ] && grep -qF -- "$text" "$tmp/complained"; then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name"
        failures=$((failures + 1))
        echo "# exit code $got, expected $code with \"$text\""
        sed 's/^/# /' "$tmp/complained" | head -n 20
    fi
}
skip() {
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}
# sanitized - whether the build is one with AddressSanitizer, which asks for terabytes of addresses.
sanitized() { nm "$BUILD/libtune.a" 2>/dev/null | grep -q __asan_init; }
# mpi_here - whether programs can run on ranks by MPI; what MPI itself leaves behind is then no leak of ours.
mpi_here() {
    [ -e "$BUILD/tune_mpi.so" ] && command -v mpirun >/dev/null || return 1
    export TUNE_MPI="$BUILD/tune_mpi.so" ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
}
# within KILOBYTES COMMAND... - the command with no more memory than that, except where sanitized.
within() { sanitized && kilobytes=unlimited || kilobytes=$1; shift; sh -c "ulimit -v $kilobytes; exec \"\$@\"" sh "$@"; }
# quick SECONDS COMMAND... - the command with no more processor time than that, however long it takes.
quick() { (ulimit -t "$1"; shift; "$@"); }
# none NAME TEXT - passes if the text, the offenders, is empty.
none() { offenders=$2; is "$1" nothing; }
nothing() { [ -z "$offenders" ] || { printf '%s\n' "$offenders"; return 1; }; }
finish() {
    echo "1..$number"
    [ $failures = 0 ]
    exit
}
# emulated WHAT - programs with the emulated CUDA device: $where has them, $cxx built them. Without a C++ compiler, WHAT is
# skipped and the test ends.
emulated() {
    cxx= where=
    for c in g++ clang++; do [ ! -x "$BUILD/cuda_on_cpu/$c/finetune_full" ] || cxx=${cxx:-$c}; done
    [ -n "$cxx" ] || { skip "$1" "no C++ compiler"; finish; }
    where=$BUILD/cuda_on_cpu/$cxx
}
# tiny FOLDER SEED [OPTION...] - a model of 0.1 M weights.
tiny() {
    folder=$1 seed=$2
    shift 2
    "$BUILD/init_model" --layers 2 --hidden-size 64 --intermediate-size 128 --heads 2 --kv-heads 1 --vocab-size 300 \
        --max-positions 128 --seed "$seed" "$@" "$folder"
}
# Of run folders: metrics.jsonl without its times; a figure of report.json; the same numbers and the same last checkpoint.
numbers() { sed 's/"step_s":[^,]*,//; s/"tokens_per_s":[^,]*,//; s/"elapsed_s":[^,]*,//' "$1/metrics.jsonl"; }
figure() { sed -n "s/.*\"$2\":[^0-9-]*\([-0-9.e]*\).*/\1/p" "$1/report.json"; }
# But for the files that a third argument names: cards tell which folder a process was given.
same_run() { numbers "$1" >a.txt && numbers "$2" >b.txt && diff a.txt b.txt && diff -r -x "$3" "$1/checkpoint-final" "$2/checkpoint-final"; }
# near A B - within 1e-5 of each other.
near() { [ -n "$1" ] && [ -n "$2" ] && awk "BEGIN { d = $1 / $2 - 1; exit !(d * d <= 1e-10) }"; }
# await PID COMMAND... - waits until the command succeeds. It fails, and says what it waited for, if process PID (0: none) ended
# before or after five minutes. Nothing in a test waits for a shorter time: cores may be busy with other work.
await() {
    awaited=$1 polls=0
    shift
    until "$@" >/dev/null 2>&1; do
        why=
        kill -0 "$awaited" 2>/dev/null || why="process $awaited ended before"
        [ -z "$why" ] || ! "$@" >/dev/null 2>&1 || return 0
        [ $((polls += 1)) -lt 15000 ] || why="not in five minutes"
        [ -z "$why" ] || { echo "# $why: $*"; return 1; }
        sleep 0.02
    done
}
# has N FILE - at least so many lines. is_gone PID - that process. Both are to wait for.
has() { [ "$(cat "$2" 2>/dev/null | wc -l)" -ge "$1" ]; }
is_gone() { ! kill -0 "$1"; }
