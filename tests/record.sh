# record.sh - which test programs need not run again, because they passed with the same objects. Sourced by run.sh.
#   TUNE_TEST_RECORD   the record: a file of lines STAGE PROGRAM HASH (.ci/programs.txt)
#   TUNE_TEST_STAGE    whose lines count here
#   TUNE_TEST_WHOLE=1  all run, and the record is written
# The hash of a program in C is that of its code and data, without debugging information, so a changed comment changes nothing.
# That of a script is its text and the hashes of the programs in $BUILD that it names; of all sources, if it compiles something;
# of all test programs, if it starts those. Each has with it what tests read: defaults, sample sets, reference numbers.
key="$TUNE_TEST_STAGE${TUNE_TEST_ONLY:+/$TUNE_TEST_ONLY}"
sources() { git ls-files -s -- "$@" | sha1sum; }
code() { # PROGRAM
    [ -s "$folder/code/$1" ] || {
        mkdir -p "$(dirname "$folder/code/$1")"
        "${OBJCOPY:-objcopy}" -S -R .note.gnu.build-id "$1" "$folder/stripped" && sha1sum <"$folder/stripped" >"$folder/code/$1"
        rm -f "$folder/stripped"
    }
    cat "$folder/code/$1"
}
# begin_record - what all programs have in common, once.
begin_record() {
    git rev-parse --git-dir >/dev/null 2>&1 || { TUNE_TEST_RECORD= && return; }
    {
        sources defaults datasets tests/reference tests/run.sh tests/tap.sh 'tests/*.h' tests/recipes tools/quickstart.sh
        echo "$TUNE_CPU $TUNE_TEST_WRAPPER"
    } >"$folder/common"
    built=${BUILD:-build}
    find "$built" "$built/tests/helpers" -maxdepth 1 -type f -perm -100 2>/dev/null >"$folder/programs"
    find "$built/tests" -mindepth 2 -type f -perm -100 >"$folder/tests"
}
# hash PROGRAM - on stdout
hash() {
    {
        cat "$folder/common"
        case $1 in
        *.sh)
            cat "$1"
            while read -r p; do ! grep -qw "$(basename "$p")" "$1" || code "$p"; done <"$folder/programs"
            ! grep -qE 'make |\$CC|\$cc' "$1" || sources components recipes tools tests Makefile
            ! grep -q 'BUILD/tests/' "$1" || while read -r p; do code "$p"; done <"$folder/tests"
            ;;
        *) code "$1" ;;
        esac
    } | sha1sum | cut -c1-16
}
# passed_before PROGRAM - true if it passed with these objects. Its hash is kept for record_passed.
passed_before() {
    name=${1##*tests/}
    hash "$1" >"$folder/hash" || return
    echo "$key $name $(cat "$folder/hash")" >>"$folder/hashes"
    [ "${TUNE_TEST_WHOLE:-}" != 1 ] && grep -qxF "$key $name $(cat "$folder/hash")" "$TUNE_TEST_RECORD" 2>/dev/null
}
# record_passed - writes the lines of the programs in $folder/passed, and keeps all others.
record_passed() {
    touch "$TUNE_TEST_RECORD" "$folder/hashes" "$folder/passed"
    awk 'FILENAME == ARGV[1] { passed[$0]; next } $2 in passed' "$folder/passed" "$folder/hashes" >"$folder/new"
    { awk 'FILENAME == ARGV[1] { new[$1, $2]; next } !(($1, $2) in new)' "$folder/new" "$TUNE_TEST_RECORD"; cat "$folder/new"; } |
        sort >"$TUNE_TEST_RECORD.new" && mv "$TUNE_TEST_RECORD.new" "$TUNE_TEST_RECORD"
}
