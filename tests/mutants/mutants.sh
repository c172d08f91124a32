#!/bin/sh
# mutants.sh [WORD...] - puts each small fault of tests/mutants/mutants.txt into a copy of the sources, one at a time, and says
# which of them the tests do not notice. `make mutants` calls it. With words: only mutants whose file or change has one.
# Exit code 1: a mutant survived, or the list is wrong. Each copy is built with -O2 and without debug data.
#   mutants.sh --check [LIST]   only whether the list fits the sources
# MUTANT_WORKERS: how many at once (2), each in a copy of its own. MUTANT_LIST: another list.
list=${MUTANT_LIST:-tests/mutants/mutants.txt}
[ "$1" != --check ] || { awk -f tests/mutants/mutants.awk "${2:-$list}"; exit; }
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL RECIPE BUILD
export OMP_WAIT_POLICY=passive CMOCKA_MESSAGE_OUTPUT=TAP
workers=${MUTANT_WORKERS:-2}
started=$(date +%s)
tmp=$(mktemp -d) || exit 1
pids=
stop() { [ -z "$pids" ] || kill $pids 2>/dev/null; wait; rm -rf "$tmp"; }
trap stop EXIT
trap 'exit 130' INT TERM
mkdir "$tmp/files" "$tmp/taken" "$tmp/0" "$tmp/limit" || exit 1
awk -v into="$tmp/files" -f tests/mutants/mutants.awk "$list" >"$tmp/all" || exit 1
for word in "$@"; do grep -F -- "$word" "$tmp/all"; done >"$tmp/chosen"
[ $# != 0 ] || cp "$tmp/all" "$tmp/chosen"
sort -nu "$tmp/chosen" >"$tmp/list"
total=$(wc -l <"$tmp/list")
[ "$total" != 0 ] || { echo "no mutant has: $*"; exit 1; }

# ---- a copy that is built and passes ----
cxx=g++ # for the emulated CUDA device
helpers=$(ls tests/helpers/*.c | sed 's|\(.*\)\.c|build/\1|')
# build FOLDER JOBS TEST... - what these tests run
build() {
    where=$1 jobs=$2
    shift 2
    targets=$(for t in "$@"; do case $t in
        *.sh) echo all $helpers; grep -o '\$BUILD/tests/[a-z_]*/test_[a-z_0-9]*' "tests/$t" | sed 's/^\$BUILD/build/' ;;
        cuda_on_cpu/*) echo "build/$t.$cxx" ;;
        *) echo "build/tests/${t%%[:@]*}" ;;
        esac; done | tr ' ' '\n' | sort -u)
    make -C "$where" -j"$jobs" --no-print-directory OPT=-O2 EXTRA_CFLAGS=-g0 CUDA_CXX=$cxx $targets >"$where.log" 2>&1
}
# run FOLDER TEST - in a copy; what the test leaves behind goes with the folder
run() {
    limit=$(cat "$tmp/limit/$(basename "$2")" 2>/dev/null || echo 900)
    mkdir -p "$1/tmp"
    (
        cd "$1" && export TMPDIR="$1/tmp"
        what=${2%@*}
        case $2 in
        *@far) export TUNE_TEST_DEVICE=far ;;
        *@avx2) [ "$(uname -m)" != x86_64 ] || export TUNE_CPU=x86-64-v3 ;;
        esac
        case $what in
        *.sh) timeout "$limit" sh "tests/$what" ;;
        cuda_on_cpu/*) timeout "$limit" "build/$what.$cxx" ;;
        *:*) TUNE_TEST_ONLY=${what#*:} timeout "$limit" "build/tests/${what%:*}" ;;
        *) timeout "$limit" "build/tests/$what" ;;
        esac
    ) >"$1.log" 2>&1 </dev/null
    code=$?
    rm -rf "$1/tmp"
    return $code
}
cp -r Makefile components recipes tools datasets defaults docs tests "$tmp/0" || exit 1
[ ! -d ../shared ] || ln -s "$(cd ../shared && pwd)" "$tmp/shared"
tests=$(cut -f4 "$tmp/list" | tr ' ' '\n' | sort -u)
echo "# building a copy, and running $(echo "$tests" | wc -l) tests without a mutant"
build "$tmp/0" "$workers" $tests || { tail -n 20 "$tmp/0.log"; exit 1; }
for t in $tests; do
    begin=$(date +%s)
    run "$tmp/0" "$t" && grep -q '^ok .' "$tmp/0.log" || { cat "$tmp/0.log"; echo "$t fails without a mutant"; exit 1; }
    echo $((4 * ($(date +%s) - begin) + 20)) >"$tmp/limit/$(basename "$t")"
done
n=1
while [ $n -lt "$workers" ]; do
    cp -a "$tmp/0" "$tmp/$n" || exit 1
    n=$((n + 1))
done

# ---- one mutant ----
# verdict COPY - by: what became of the mutant in $number, $file, $tests of this copy
verdict() {
    case $file in *.cu) object=$1/build/obj/$cxx/${file%.cu}.o ;; *) object=$1/build/obj/${file%.c}.o ;; esac
    [ ! -e "$object" ] || cp "$object" "$1.o"
    cp -p "$1/$file" "$1.source"
    cp "$tmp/files/$number" "$1/$file"
    by=survived
    for t in $tests; do # the first builds the library, each links itself
        build "$1" 1 "$t" || { by="error: it does not compile"; break; }
        [ -z "$why" ] && [ -e "$1.o" ] && cmp -s "$object" "$1.o" && { by="error: the compiler makes the same of it"; break; }
        run "$1" "$t" 2>/dev/null # the shell's word that it crashed
        case $? in
        0) continue ;;
        124) by="caught by $t, which does not end" ;;
        *) by="caught by $t" ;;
        esac
        break
    done
    # The source as old as it was, its object new: only what is made from the object is made again.
    mv "$1.source" "$1/$file"
    case $file in *.c | *.cu) [ -e "$1.o" ] && cp "$1.o" "$object" ;; *) touch "$1/$file" ;; esac
    rm -f "$1.o"
}
clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }
say() { # one line
    done=$(ls "$tmp/taken" | wc -l)
    spent=$(($(date +%s) - begun))
    printf '[%d/%d, %s, about %s left] %s %s:%s: %s\n' "$done" "$total" "$(clock $spent)" \
        "$(clock $((spent * (total - done) / done)))" "$by" "$file" "$line" "$change"
}
tab=$(printf '\t')
field() { printf '%s\n' "$record" | cut -f"$1"; }
worker() {
    while IFS= read -r record; do
        number=${record%%"$tab"*}
        mkdir "$tmp/taken/$number" 2>/dev/null || continue
        file=$(field 2) line=$(field 3) tests=$(field 4) why=$(field 5) change=$(field 6)
        verdict "$tmp/$1"
        if [ -n "$why" ]; then
            case $by in survived) by="equivalent ($why)" ;; caught*) by="NOT equivalent, $by" ;; esac
        fi
        say | tee -a "$tmp/said"
    done <"$tmp/list"
}
begun=$(date +%s)
n=0
while [ $n -lt "$workers" ]; do
    worker $n &
    pids="$pids $!"
    n=$((n + 1))
done
wait
pids=

# ---- what became of them ----
count() { sed 's/^[^]]*\] //' "$tmp/said" | grep -c "^$1"; }
[ "$(count '')" = "$total" ] || { echo "only $(count '') of $total mutants were tried"; exit 1; }
caught=$(count caught) survived=$(count survived) equal=$(count equivalent) wrong=$(($(count 'NOT equivalent') + $(count error)))
for what in survived 'NOT equivalent' error; do
    [ "$(count "$what")" = 0 ] || echo "# $what:"
    sed 's/^[^]]*\] //' "$tmp/said" | grep "^$what" | sed 's/^/    /'
done
echo "$caught caught, $survived survived, $equal equivalent, $wrong wrong in the list; $(clock $(($(date +%s) - started)))"
[ "$survived" = 0 ] && [ "$wrong" = 0 ]
