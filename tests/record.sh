# record.sh - which test programs need not run again, because they passed with the same objects. Sourced by run.sh.
#   TUNE_TEST_RECORD   the record: a file of lines STAGE PROGRAM HASH (.ci/programs.txt)
#   TUNE_TEST_STAGE    whose lines count here
#   TUNE_TEST_WHOLE=1  all run, and the record is written
# The hash of a program in C is that of its code and data, without debugging information, so a changed comment changes nothing;
# and of the files that it reads or starts. That of a script is its text, all programs in $BUILD, and what scripts read.
# A program that skipped something is not recorded: another machine may have what was missing here. With uncommitted changes,
# or without git, there is no record.
key="$TUNE_TEST_STAGE${TUNE_TEST_ONLY:+/$TUNE_TEST_ONLY}"
files() { git ls-files -s -- "$@"; }
# code PROGRAM - its hash.
code() {
    if [ ! -s "$folder/code/$1" ]; then
        mkdir -p "$(dirname "$folder/code/$1")" &&
            "${OBJCOPY:-objcopy}" -S -R .note.gnu.build-id "$1" "$folder/stripped" &&
            sha1sum <"$folder/stripped" >"$folder/code/$1" && rm "$folder/stripped" || return 1
    fi
    cat "$folder/code/$1"
}
codes() { while read -r program; do code "$program" || return 1; done <"$1"; }
# begin_record - what all programs have in common, once. 1: no record can be kept.
begin_record() {
    built=${BUILD:-build}
    git rev-parse --git-dir >/dev/null 2>&1 && changed=$(git status --porcelain -- components recipes tools datasets defaults tests docs README.md Makefile) &&
        [ -z "$changed" ] || return 1
    {
        files defaults datasets tests/reference tests/fake_nvml.c tests/run.sh
        echo "$TUNE_CPU $TUNE_TEST_WRAPPER"
        "$built/tests/helpers/device" cpu 2>/dev/null # the kernels that this processor takes
    } >"$folder/common"
    find "$built" "$built/tests/helpers" -maxdepth 1 -type f -perm -100 2>/dev/null | sort >"$folder/programs"
    find "$built/tests" -mindepth 2 -type f -perm -100 2>/dev/null | sort >"$folder/tests"
}
# pieces PROGRAM - all that its hash is made of.
pieces() {
    cat "$folder/common" || return 1
    case $1 in
    *.sh)
        cat "$1" && codes "$folder/programs" || return 1
        files tests ':!tests/*/test_*' ':!tests/bench' ':!tests/peers' ':!tests/cuda_on_cpu' ':!tests/slurm' ':!tests/mutants' tools/*.sh tools/*.mk || return 1
        ! grep -qE 'docs|README' "$1" || files docs README.md || return 1
        ! grep -qE 'make |[$][{]?(CC|cc)\b' "$1" || files components recipes tools tests docs Makefile || return 1
        ! grep -q 'BUILD/tests/' "$1" || codes "$folder/tests" || return 1
        ;;
    *)
        code "$1" || return 1
        source=tests/${1##*tests/}.c
        [ ! -e "$source" ] || ! grep -qE 'popen|system\(|exec[lv]' "$source" || codes "$folder/programs"
        ;;
    esac
}
# passed_before PROGRAM - true if it passed with these objects. Its hash is kept for record_passed.
passed_before() {
    name=${1##*tests/}
    pieces "$1" >"$folder/pieces" 2>/dev/null && hash=$(sha1sum <"$folder/pieces" | cut -c1-16) && [ ${#hash} = 16 ] || return 1
    echo "$key $name $hash" >>"$folder/hashes"
    [ "${TUNE_TEST_WHOLE:-}" != 1 ] && grep -qxF "$key $name $hash" "$TUNE_TEST_RECORD" 2>/dev/null
}
# record_passed - writes the lines of the programs in $folder/passed, and keeps all others. Two runs may do so at once.
record_passed() {
    exec 8<"$(dirname "$TUNE_TEST_RECORD")" && flock 8 || return 1
    touch "$TUNE_TEST_RECORD" "$folder/hashes" "$folder/passed"
    awk 'FILENAME == ARGV[1] { passed[$0]; next } $2 in passed' "$folder/passed" "$folder/hashes" >"$folder/new"
    { awk 'FILENAME == ARGV[1] { new[$1, $2]; next } !(($1, $2) in new)' "$folder/new" "$TUNE_TEST_RECORD"; cat "$folder/new"; } |
        sort >"$TUNE_TEST_RECORD.new" && mv "$TUNE_TEST_RECORD.new" "$TUNE_TEST_RECORD"
    exec 8<&-
}
