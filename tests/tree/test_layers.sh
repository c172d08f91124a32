#!/bin/sh
# test_layers.sh - who may know whom: includes, calls, symbols and libraries, read from the sources and from what was built.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh

# ---- includes ----
# only HEADER FOLDER... - the header is included below these folders and nowhere else.
only() {
    header=$1
    shift
    found=$(grep -rnE "^ *# *include *[<\"]$header" components recipes tools datasets tests --include='*.[ch]' --include='*.cu' --include='*.cc')
    for folder in "$@"; do
        found=$(printf '%s\n' "$found" | grep -v "^$folder")
    done
    none "$(echo "$header" | tr -d "\\\\") is included only in $(echo "$*" | tr -d "\\\\")" "$found"
}
only 'cblas\.h' components/devices/cpu/ components/sweeps/surrogate/
only '(cuda|cublas|cudnn|nvml|nccl)[A-Za-z_]*\.h' components/devices/cuda/ components/comm/nccl tests/cuda_on_cpu/
only 'nccl\.h' components/comm/nccl/ tests/cuda_on_cpu/
only 'comm/gpu\.h' components/comm/
only 'mpi\.h' components/comm/mpi
only 'hdf5\.h' components/sweeps/stores/
only 'yaml\.h' components/files/
only '(immintrin|x86intrin|arm_neon|arm_sve)\.h' components/devices/cpu/ components/core/
only 'microhttpd\.h' tools/studio/http\.c
only 'sweeps/' components/sweeps/ tools/ tests/
only 'flags/flags\.h' components/flags/ components/tune.h 'components/[a-z]*/get_[a-z]*\.c:' recipes/ tools/ datasets/ tests/
only 'flags/program\.h' components/flags/program.c components/flags/program.h recipes/ tools/ datasets/ tests/
only 'flags/state\.h' components/flags/
only 'tokenizers/parts\.h' components/tokenizers/ tests/
only 'tests/' nowhere

# A component includes components named earlier in this list. An options.h has structs alone. It
# includes only core, so that the table of options in flags.h writes straight into them. Parts of sweeps have an order of their own.
order="core files machine runs flags views devices comm tokenizers metrics templates datasets models adapters losses
    optimizers generators profilers loggers evaluators checkpoints sweeps"
sweeps="spaces actuators stores discovery surrogate answers charts"
earlier() {
    grep -rnE '^ *# *include *"' components --include='*.[ch]' --include='*.cu' | sed 's|^components/||' |
        awk -v order="$order" -v sweeps="$sweeps" '
        BEGIN {
            n = split(order, name, " ")
            for (i = 1; i <= n; i++) at[name[i]] = i
            n = split(sweeps, name, " ")
            for (i = 1; i <= n; i++) part[name[i]] = i
        }
        {
            split($0, half, "\""); split(half[1], where, "[/:]"); split(half[2], what, "/")
            from = where[1]; to = what[1]
            if (from == "tune.h") next
            if (half[1] ~ /\/options\.h:/) from = "files"
            if (half[1] ~ /^flags\/flags\.h:/ && what[2] == "options.h") next
            if (!(from in at) || !(to in at)) { print "no place in the order: " $0; next }
            if (at[to] < at[from]) next
            if (from == to && (from != "sweeps" || part[what[2]] <= part[where[2]])) next
            print
        }'
}
none "a component includes only components named earlier in the order" "$(earlier)"
folders() { ls -d components/*/ components/sweeps/*/ | sed 's|components/||; s|/$||'; }
named() { printf '%s\n' $order; printf 'sweeps/%s\n' $sweeps; }
none "every folder has its place in it" "$(for f in $(folders); do named | grep -qx "$f" || echo "$f"; done)"

# ---- the run folder ----
# Comments count too: runs/run_folder.h documents the files, and the others speak of what they hold.
spelled() { grep -rnE 'run\.json|metrics\.jsonl|report\.json' components tools --include='*.[ch]' | grep -v ^components/runs/; }
none "only runs/ spells the names of a run folder's files" "$(spelled)"

# ---- what components call ----
# Comments and strings may speak of anything.
code() { sed -e 's|"\([^"\\]\|\\.\)*"||g' -e 's|//.*||' -e 's|/\*.*\*/||' "$1"; }
forbidden='(^|[^_a-zA-Z0-9.>])(printf|vprintf|puts|putchar|perror|exit|_exit|_Exit|quick_exit|abort|raise|signal|sigaction|atexit|system|popen|fork|setlocale|chdir|umask|rand|srand|strtok|localtime|gmtime|strerror_l) *\('
calls() {
    find components -name '*.[ch]' | grep -v -e ^components/flags/program -e ^components/loggers/ | while read -r f; do
        code "$f" | grep -nE "$forbidden" | grep -vE '^[0-9]+: \* ' | sed "s|^|$f:|"
    done
}
none "components do not print, exit, catch signals or keep the C library's hidden state" "$(calls)"
standard() {
    find components -name '*.[ch]' | grep -v -e ^components/flags/program -e ^components/loggers/ | while read -r f; do
        code "$f" | grep -nwE 'stdout|stderr' | grep -vE '^[0-9]+: \* ' | sed "s|^|$f:|"
    done
}
none "only loggers know stdout; nobody knows stderr" "$(standard; grep -nw stderr components/loggers/*.c)"

# ---- sweep ----
# What a function may touch stands in its arguments. The options' table of sweep.c has addresses of one struct.
sweep_objects() { for f in tools/sweep/*.c; do objdump -t "$BUILD/obj/${f%.c}.o"; done; }
kept_in_files() { sweep_objects | awk '/ O (\.data|\.bss|\*COM\*)/ && !/ \.data\.rel\.ro/'; }
if sanitized; then
    skip "variables of sweep's files" "a sanitizer build has some of its own"
else
    is "the objects of sweep are found" eval 'sweep_objects | grep -q operate'
    none "no file of sweep keeps a variable of its own" "$(kept_in_files)"
fi
none "launch.c knows no launcher by name" "$(grep -niE 'slurm|ssh|docker|hosts' tools/sweep/launch.[ch] tools/sweep/launch_script.c)"

# ---- flags ----
# The library names an option as `max_length`; tune_flags_name_options writes the flag. Below: flags of other
# programs (the one that a sweep starts, cp) and the argument that turns a child into its guard.
named_flags() {
    find components -name '*.[ch]' | grep -vE '^components/flags/|/get_[a-z]*\.c$' | while read -r f; do
        sed -e 's|/\*.*\*/||' -e 's|/\*.*||' "$f" | grep -vE '^ \* ' | grep -oE '"([^"\\]|\\.)*"' |
            grep -e '--[a-z]' | sed "s|^|$f: |"
    done | grep -vE '^components/(machine/guard\.h|sweeps/actuators/from_program\.c|sweeps/answers/(unused|effect)\.c):' |
        grep -vE 'cp --remove-destination|"--no-"'
}
none "messages of the library name no flags" "$(named_flags)"

# ---- device memory ----
# Operations are called by the functions of ops.h, which check their arguments. The table behind them is
# for devices, and for the profiler, which stands before it.
around() {
    find components recipes tools datasets -name '*.[ch]' | while read -r f; do
        case $f in components/devices/* | components/profilers/timed.c) continue ;; esac
        words='(ops *\)?->|(^|[^a-z_])tune_cpu_)' # a call through the table, a kernel
        case $f in components/profilers/*) ;; *) words="$words|struct tune_ops( |$)" ;; esac
        code "$f" | grep -nE "$words" | grep -vE '^[0-9]+:( \* |struct tune_ops;)' | sed "s|^|$f:|"
    done
}
none "no call goes round the checks" "$(around)"
only 'devices/cpu/' components/devices/ tests/
# Members and results of a header, one a line: without comments and parameters.
members() {
    tr '\n' ' ' <"$1" | sed -e 's|/\*|\n/*|g' -e 's|\*/|*/\n|g' | grep -v '^/\*' |
        tr '\n;{}' ' \n\n\n' |
        sed -e 's/([^()]*)//g' -e 's/([^()]*)//g' -e 's/([^()]*)//g'
}
# The public headers of some components.
public() { grep -E '^(models|losses|optimizers|checkpoints|adapters)/' components/headers.txt; }
# Numbers that a header hands out by a pointer. host, host_rows, tune_chunk_host: copies on the host, and
# they say so. context: the caller's own.
pointers() {
    numbers='(void|float|double|u?int[0-9]*_t)'
    for f in $(public | grep -v '^losses/row\.h$'); do # its rows are host memory, as it says
        members "components/$f" | grep -E "(^|[ (])$numbers *\*" |
            grep -vE '\*(host|[a-z_]*_host|host_[a-z]*|context) *(,|$)' | sed "s|^|$f: |"
        grep -HnE "[(,] *(const )?$numbers *(const )?\*\*" "components/$f" | grep -v "\*\*host_"
    done
}
is "public headers are found" eval 'public | grep -q models/model.h'
none "they hand out addresses of device memory, no pointers" "$(pointers)"
returns() { # whether a function of a tensor t may return that
    printf '#include "core/tensor.h"\nfloat f(const struct tune_tensor *t) { return %s; }\n' "$1" |
        $CC -std=c11 -Icomponents -fsyntax-only -x c -
}
is "an address is a number" returns '(float)t->data.at'
for read in '*(const float *)t->data' '*t->data' 't->data[0]'; do
    is "a host's read of it does not compile: $read" eval '! returns "$read"'
done

# ---- the libraries' symbols ----
library() { nm -A "$@" "$BUILD/libtune.a" "$BUILD/libtune_sweeps.a"; }
if sanitized; then
    skip "symbols of the libraries" "a sanitizer build has names of its own"
else
    is "the libraries are there" test -s "$BUILD/libtune.a" -a -s "$BUILD/libtune_sweeps.a"
    none "every global name begins with tune_" "$(library -g --defined-only 2>/dev/null | awk 'NF > 2 && $NF !~ /^tune_/')"
    none "no undefined exit, abort, signal, printf, puts, stderr" "$(library -u 2>/dev/null | grep -wE 'U (_?exit|_Exit|quick_exit|abort|raise|signal|__sysv_signal|sigaction|atexit|printf|vprintf|__printf_chk|puts|putchar|perror|stderr|fork|system|setlocale|strtok|rand|srand)')"
    none "stdout in loggers only" "$(library -u 2>/dev/null | grep -wE 'U stdout' | grep -vE ':(get_logger|logger|progress_line)\.o:')"
    variables() { objdump -t "$BUILD/libtune.a" "$BUILD/libtune_sweeps.a" 2>/dev/null; }
    # .data.rel.ro is constant once loaded; .tbss is each thread's own
    none "no variable but each thread's error text" "$(variables | awk '/ O (\.data|\.bss|\*COM\*)/ && !/ \.data\.rel\.ro/')"
    none "the only thread's own variable is the error" "$(variables | awk '/:     file format/ { file = $1 } / \.t(bss|data)/ && !/ d  / && file != "error.o:" { print file, $0 }')"
    # An undefined name of libtune.a that libtune_sweeps.a defines.
    nm -g --defined-only "$BUILD/libtune_sweeps.a" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u >"$tmp/measuring"
    none "libtune.a stands without libtune_sweeps.a" "$(nm -u "$BUILD/libtune.a" 2>/dev/null | awk '$1 == "U" { print $2 }' | sort -u | comm -12 - "$tmp/measuring")"
fi

# ---- public headers ----
public_headers() { sed '/^#/d' components/headers.txt; }
reached() { $CC -Icomponents -MM -x c $(public_headers | sed 's|^|components/|') | tr ' \\' '\n\n' | grep '\.h$' | sed 's|^components/||' | sort -u; }
public_headers | sort >"$tmp/public"
reached >"$tmp/reached"
is "headers.txt names every header that a public header includes" diff "$tmp/public" "$tmp/reached"

# ---- one name, one thing ----
# C has one set of names for structs, enums and unions.
tags() { grep -rhoE "^(struct|enum|union) tune_[a-z0-9_]+ *\{" components recipes tools datasets --include='*.[ch]' --include='*.cu*' | sed 's/ *{.*//; s/.* //' | sort | uniq -d; }
none "no tag stands for two things" "$(tags)"
# Two headers that disagree cannot be in one program, so all of them together show each pair.
together() { sed 's|.*|#include "&"|' >"$tmp/together.c" && $CC -std=c11 -Wall -Wextra -Werror -Icomponents -fsyntax-only "$tmp/together.c"; }
is "all public headers compile in one program" eval 'public_headers | together'
is "... in the other order, too" eval 'public_headers | tac | together'

# ---- a machine without HDF5 or libyaml ----
# This compiler finds neither header. `make -n` prints what make would do.
mkdir "$tmp/none" && for h in hdf5 yaml; do echo "#error no $h.h on this machine" >"$tmp/none/$h.h"; done
printf '#!/bin/sh\nexec %s -I"%s" "$@"\n' "$CC" "$tmp/none" >"$tmp/bare_cc"
chmod +x "$tmp/bare_cc"
bare() { env MAKEFLAGS= PKG_CONFIG_LIBDIR="$tmp" make --no-print-directory BUILD="$tmp/bare" CC="$tmp/bare_cc" "$@"; }
is "without HDF5 and libyaml make knows what to build" eval 'bare -n >"$tmp/bare_all" 2>&1'
is "... the recipes and the tools that do not measure" eval 'for p in finetune_full finetune_lora fit tokenize init_model merge_adapter export_gguf runs make_stories; do grep -qE -- "-o [^ ]*/bare/$p( |$)" "$tmp/bare_all" || { echo $p; exit 1; }; done'
none "... none of the others, and no such library" "$(grep -v '^sed ' "$tmp/bare_all" | grep -E -- '-o [^ ]*/bare/(space|sweep|samples)( |$)|-lhdf5|-lyaml|libtune_sweeps|tune_sweeps.pc')"
is "... and it says what is left out, in one line" eval 'bare found >"$tmp/found" && grep -c "left out: space, sweep, samples and studio, which need HDF5" "$tmp/found" | grep -qx 1'
is "... and that no YAML is read, in one line" eval 'grep -c "without the header of libyaml no YAML is read" "$tmp/found" | grep -qx 1'
is "... whose library is given by hand is not left out" eval 'bare -n HDF5_LIBS=-lmine | grep -qE -- "-o [^ ]*/bare/sweep( |$)"'
# ---- a machine without libmicrohttpd ----
mkdir "$tmp/unserved" && echo "#error no microhttpd.h on this machine" >"$tmp/unserved/microhttpd.h"
printf '#!/bin/sh\nexec %s -I"%s" "$@"\n' "$CC" "$tmp/unserved" >"$tmp/unserved_cc"
chmod +x "$tmp/unserved_cc"
unserved() { env MAKEFLAGS= make --no-print-directory BUILD="$tmp/unserved_build" CC="$tmp/unserved_cc" "$@"; }
is "without libmicrohttpd make knows what to build" eval 'unserved -n all tests >"$tmp/unserved_all" 2>&1'
if [ -n "$(sed -n 's/^SWEEPS_FOUND *=//p' "$BUILD/config.mk")" ]; then
    is "... and says what is left out, in one line" eval 'unserved found >"$tmp/found" && grep -c "left out: studio. It needs libmicrohttpd" "$tmp/found" | grep -qx 1'
    is "... all the rest, and the tests of the studio's routes" eval 'for p in finetune_full runs sweep samples tests/studio/test_routes tests/fuzz/routes; do grep -qE -- "-o [^ ]*/unserved_build/$p( |$)" "$tmp/unserved_all" || { echo $p; exit 1; }; done'
    none "... but no studio, and no such library" "$(grep -E -- '-o [^ ]*/unserved_build/studio( |$)|-lmicrohttpd|http\.o( |$)' "$tmp/unserved_all")"
else
    skip "what is left out" "the studio needs HDF5 besides, which is missing here"
fi

# A recipe of that machine: its reader of YAML stands before the one in the library.
if sanitized; then
    skip "a recipe without the header of libyaml" "the build without sanitizers has shown it"
else
    yaml_less() {
        bare "$tmp/bare/obj/components/files/yaml.o" && $CC -rdynamic "$BUILD/obj/recipes/finetune_full.o" \
            "$BUILD/obj/recipes/finetune_full.source.o" "$BUILD/obj/components/flags/program.o" \
            "$tmp/bare/obj/components/files/yaml.o" "$BUILD/libtune.a" $(setting OPENBLAS_LIBS) $(setting CJSON_LIBS) \
            -fopenmp -ldl -lpthread -lm -o "$tmp/yaml_less"
    }
    setting() { sed -n "s/^$1 *?= *//p" "$BUILD/config.mk"; }
    is "a recipe builds without the header of libyaml" yaml_less
    echo 'lr: 1e-3' >"$tmp/c.yaml"
    refused "... and says so when it is to read YAML" 3 "c.yaml: this is YAML, and this build is without the header of libyaml, yaml.h" \
        "$tmp/yaml_less" --config "$tmp/c.yaml"
fi

# ---- programs that do not train load no device ----
# sweep, samples and studio need a BLAS for models of the measurements.
for p in tokenize make_stories make_news init_model merge_adapter export_gguf space sweep samples runs studio; do
    [ -e "$BUILD/$p" ] || continue
    blas='blas|lapack|'
    case $p in sweep | samples | studio) blas= ;; esac
    none "$p loads no ${blas:+BLAS, }CUDA or MPI library" "$(readelf -d "$BUILD/$p" | grep NEEDED | grep -iE "${blas}cuda|cublas|cudnn|nccl|nvidia|mpi|tune_")"
done
for p in finetune_full tokenize make_stories init_model merge_adapter export_gguf runs space; do
    none "$p loads no HDF5 library" "$(readelf -d "$BUILD/$p" | grep NEEDED | grep -i hdf5)"
done
for p in finetune_full tokenize space sweep samples studio; do
    [ -e "$BUILD/$p" ] || continue
    none "$p loads libyaml only to read YAML" "$(readelf -d "$BUILD/$p" | grep NEEDED | grep -i yaml)"
done
none "a recipe loads no CUDA or MPI library until asked to" "$(readelf -d "$BUILD/finetune_full" | grep NEEDED | grep -iE 'cuda|cublas|cudnn|nccl|nvidia|mpi')"

# ---- libraries that programs open ----
# opens LIBRARY - the program has each function of ours that the library calls.
opens() {
    nm -D --defined-only "$BUILD/finetune_full" | awk '{ print $NF }' | sort >"$tmp/given"
    nm -D --undefined-only "$BUILD/$1" | awk '$NF ~ /^tune_/ { print $NF }' | sort | comm -23 - "$tmp/given"
}
for l in tune_mpi.so tune_nccl.so; do
    if [ -e "$BUILD/$l" ]; then
        is "$l calls functions of ours" eval 'nm -D --undefined-only "$BUILD/$l" | grep -q " tune_error_set"'
        none "... which a recipe has" "$(opens $l)"
        none "... and finds its own libraries" "$(ldd "$BUILD/$l" | grep 'not found')"
    else
        skip "$l" "it was not built here"
    fi
done

# ---- what `make bench` builds stands without cmocka ----
# It is looked for in vain here: the tests ask for it, nothing else does. `make -n` prints the links and makes none.
links() { make -n BUILD="$tmp/without" CC="$CC" CMOCKA_LIBS=-lno_cmocka "$@" 2>&1; }
links bench >"$tmp/bench_links"
is "make bench links its benches" grep -q -- '-o [^ ]*/without/tests/bench/bench_gemm' "$tmp/bench_links"
none "none of them asks for cmocka" "$(grep -e -lno_cmocka "$tmp/bench_links")"
is "a test does" eval 'links "$tmp/without/tests/core/test_core" | grep -q -e -lno_cmocka'
none "nor do their sources" "$(grep -rnE '^ *# *include *["<](\.\./)?(cmocka|test|arrays)\.h' tests/bench tests/helpers)"

# ---- a family is a file ----
none "each family is one file of at most 150 lines" "$(for f in components/models/families/*.c; do [ "$(wc -l <"$f")" -le 150 ] || wc -l "$f"; done)"
none "... and in the list of config.c" "$(for f in components/models/families/*.c; do grep -q "&tune_family_$(basename "$f" .c)\b" components/models/config.c || echo "$f"; done)"
none "forward and backward ask for fields of a layer, never for a family" "$(grep -nE 'family|phi|gemma|qwen|olmo' components/models/transformer.c components/models/linear.c)"

# ---- recipes are for reading ----
long() {
    for f in recipes/*.c; do
        most=92
        case $f in */generate.c) most=60 ;; */evaluate.c) most=100 ;; */finetune_dpo.c) most=113 ;; esac
        [ "$(wc -l <"$f")" -le $most ] || wc -l "$f"
    done
}
none "recipes are at most 92 lines (preferences 113; generate 60, evaluate 100)" "$(long)"
none "recipes have no #if" "$(grep -nE '^ *# *if' recipes/*.c)"
none "recipes take all they use from tune.h and program.h" "$(grep -nE '^ *# *include *"' recipes/*.c | grep -vE '"(tune|flags/program)\.h"')"
is "the example for a data set of one's own is as short" test "$(wc -l <tests/recipes/own_dataset.c)" -le 125

# ---- other compilers; that of the build shows its warnings there, and .ci/run has it take them for errors ----
if sanitized; then
    skip "compilers' warnings" "make test asks for them"
    finish
fi
mkdir "$tmp/include" && for d in /usr/include/cjson /usr/local/include/cjson; do [ -d "$d" ] && ln -sfn "$d" "$tmp/include/cjson"; done
blas=$(grep '^OPENBLAS_CFLAGS' "$BUILD/config.mk" | cut -d= -f2-)
hdf5=$(grep '^HDF5_CFLAGS' "$BUILD/config.mk" | cut -d= -f2-) yaml=$(grep '^YAML_CFLAGS' "$BUILD/config.mk" | cut -d= -f2-)
nccl=$(grep '^NCCL_FOUND' "$BUILD/config.mk" >/dev/null && grep '^NCCL_CFLAGS' "$BUILD/config.mk" | cut -d= -f2- | sed 's/-I/-isystem /g')
mpi=$(grep '^MPI_FOUND' "$BUILD/config.mk" >/dev/null && grep '^MPI_CFLAGS' "$BUILD/config.mk" | cut -d= -f2-)
cmocka=$(grep "^CMOCKA_CFLAGS" "$BUILD/config.mk" | cut -d= -f2-)
for h in $(find /usr/include /usr/local/include -name cblas.h -o -name microhttpd.h -o -name 'openblas_config*.h' -o -name yaml.h 2>/dev/null); do
    [ -e "$tmp/include/$(basename "$h")" ] || ln -s "$h" "$tmp/include"
done
# what make sets for one set of the CPU's kernels
set='-DTUNE_CPU_ISA=tune_cpu_isa_x -DTUNE_CPU_NAME="x" -DTUNE_CPU_ISAS(F)=F(x)'
warnings() { # compiler
    find components recipes tools datasets tests -name '*.c' | grep -v -e "^components/comm/${mpi:+no}mpi/" -e "^components/comm/${nccl:+no}nccl/" | while read -r f; do
        "$@" $set -std=c11 -Wall -Wextra -Werror -D_GNU_SOURCE -Icomponents -Itests $blas $hdf5 $yaml $mpi $nccl $cmocka -fopenmp -fsyntax-only "$f" 2>&1 | head -n 5
    done
}
kernels() { # compiler: the CPU's kernels, for every instruction set
    sed -n 's/^CPU_[a-z].* ?= *//p' "$BUILD/config.mk" | grep -v native | while read -r flags; do
        for f in components/devices/cpu/*.c; do
            "$1" $set $flags -std=c11 -Wall -Wextra -Werror -D_GNU_SOURCE -Icomponents $blas -fopenmp -fsyntax-only "$f" 2>&1 | head -n 5
        done
    done
}
if command -v clang >/dev/null 2>&1; then none "clang: no warnings" "$(warnings clang && kernels clang)"; else skip "clang: no warnings" "no clang"; fi
# another C library, and standard C to the letter; HDF5's headers and OpenBLAS's are of this machine's library
foreign() {
    find components recipes tools datasets -name '*.c' | grep -v -e ^components/sweeps/stores/ -e ^components/comm/mpi/ -e ^components/comm/nccl/ -e /blas.c | while read -r f; do
        musl-gcc $set -std=c11 -pedantic -Wall -Wextra -Werror -D_GNU_SOURCE -Icomponents "-I$tmp/include" -fopenmp -fsyntax-only "$f" 2>&1 | head -n 5
    done
}
if command -v musl-gcc >/dev/null 2>&1; then
    none "musl, -pedantic: no warnings" "$(foreign)"
else
    skip "musl, -pedantic: no warnings" "no musl-gcc"
fi
finish
