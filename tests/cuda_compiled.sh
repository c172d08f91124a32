#!/bin/sh
# cuda_compiled.sh [--renew] - compile the CUDA device for every GPU architecture and hold each kernel against the bounds in
# tests/cuda_compiled.txt: registers, stack (spills are there), static shared memory, tensor-core instructions. Needs no GPU.
# tests/gpu_pack.sh, which runs behind it, builds what runs on a GPU.
#   --renew   write the bounds anew, from what the compiler makes now
# The bounds belong to one release of nvcc, that of tests/requirements-cuda.txt. NVCC is taken if it is of that release. Else
# the compiler comes from PyPI, into an environment outside this tree, TUNE_VENV_CUDA (default ~/.cache/tune.c/venv-cuda).
# cuobjdump always comes from there. Where something cannot be installed, the test is skipped with the reason.
cd "$(dirname "$0")/.." || exit 1
. tests/tap.sh
. tests/venv.sh
requirements=$here/tests/requirements-cuda.txt
bounds=$here/tests/cuda_compiled.txt
venv=${TUNE_VENV_CUDA:-${HOME:-/tmp}/.cache/tune.c/venv-cuda}
release=$(sed -n 's/^nvidia-cuda-nvcc==\([0-9]*\.[0-9]*\).*/\1/p' "$requirements")
unset PYTHONPATH PYTHONHOME PIP_TARGET PIP_PREFIX

# skipped WHY - nothing can be checked here.
skipped() {
    skip "kernels as nvcc $release compiles them" "$1"
    finish
}
# wanted - the lines of the requirements that this machine needs.
wanted() {
    sed '/^#/d' "$requirements" | if [ -n "$own" ]; then grep -E '^nvidia-cuda-(cuobjdump|nvdisasm)=='; else cat; fi
}
have_all() {
    [ -x "$venv/bin/python" ] && wanted | "$venv/bin/python" -c '
import importlib.metadata, sys
for line in sys.stdin:
    name, version = line.strip().split("==")
    assert importlib.metadata.version(name) == version' 2>/dev/null
}
install_all() {
    make_venv "$venv" "$tmp/log" || return 1
    echo "# installing $(wanted | tr '\n' ' ')into $venv (once; a gigabyte with the compiler)"
    wanted >"$tmp/wanted"
    timeout 1500 "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps -r "$tmp/wanted" >"$tmp/log" 2>&1 ||
        { why="pip cannot install $requirements: $(grep -i error "$tmp/log" | tail -n 1 | cut -c1-200)"; return 1; }
    have_all || { why="$venv lacks what pip installed into it"; return 1; }
}

[ "${CUDA:-1}" != 0 ] || skipped "make CUDA=0 leaves CUDA out"
[ "$(uname -m)" = x86_64 ] || skipped "the bounds are those of an x86-64 machine's compiler"
own=$NVCC
[ -n "$own" ] && "$own" --version 2>/dev/null | grep -q "release $release," || own=
have_all || install_all || skipped "$why"
root=$(echo "$venv"/lib/python3*/site-packages/nvidia/cu13)
[ -x "$root/bin/cuobjdump" ] || skipped "$root has no bin/cuobjdump"

# ---- compile ----
into=$BUILD compiler=$own
if [ -z "$own" ]; then
    into=$BUILD/nvcc-$release compiler=$root/bin/nvcc
    # what the linker and nvcc look for, and the wheels name otherwise
    ln -sfn libcublasLt.so.13 "$root/lib/libcublasLt.so"
    ln -sfn lib "$root/lib64"
fi
library=$into/tune_cuda.so
begin=$(date +%s)
is "nvcc $release compiles the device" make --no-print-directory -j"$(nproc)" BUILD="$into" NVCC="$compiler" "$library"
[ $failures = 0 ] || finish
echo "# by $compiler, $(($(date +%s) - begin)) s"

# ---- what came out ----
# A line for each kernel and architecture: architecture, registers, stack, shared memory, mma or -, kernel.
plain_names() { c++filt | sed -e 's/(.*//' -e 's/\tvoid /\t/' -e 's/__nv_bfloat16/bf16/g' -e 's/> >/>>/g' -e 's/> >/>>/g'; }
measure() {
    {
        PATH="$root/bin:$PATH" "$root/bin/cuobjdump" -sass "$library" | awk '
            /^arch = / { arch = $3 }
            $1 == "Function" { kernel = $3 }
            / HMMA\.| HGMMA\.| UTCHMMA/ { seen[arch " " kernel] = 1 }
            $1 == "EXIT" || / EXIT ?;/ { code[arch " " kernel] = 1 }
            END { for (k in seen) print "mma", k; for (k in code) print "code", k }'
        "$root/bin/cuobjdump" -res-usage "$library" 2>&1
    } | awk '
        $1 == "mma" { mma[$2 " " $3] = 1; next }
        $1 == "code" { code[$2 " " $3] = 1; next }
        /^arch = / { arch = $3 }
        $1 == "Function" { kernel = $2; sub(/:$/, "", kernel) }
        /REG:/ {
            for (i = 1; i <= NF; i++) { split($i, half, ":"); value[half[1]] = half[2] }
            key = arch " " kernel
            if (!(key in code)) { print "no code of " key " was disassembled" >"/dev/stderr"; exit 1 }
            print arch "\t" value["REG"] "\t" value["STACK"] + value["LOCAL"] "\t" value["SHARED"] "\t" (key in mma ? "mma" : "-") "\t" kernel
        }' | plain_names | sort
}
is "cuobjdump reads it" eval 'measure >"$tmp/table" && [ -s "$tmp/table" ]'
[ -s "$tmp/table" ] || finish

# ---- the bounds ----
# architectures - those of the bounds, in the order of their columns.
architectures() { sed -n 's/^# columns: \(.*\) kernel$/\1/p' "$1"; }
# Registers are counted in eights, as GPUs give them out. So small changes of a compiler or a kernel do not matter.
renewed() {
    cat <<'HEAD'
# Bounds of the compiled kernels, checked by `make test-cuda-compiled`. For each architecture:
# registers of a thread, in eights / bytes of stack, where spills are / bytes of static shared
# memory / mma if the kernel must have tensor-core instructions, - if it must have none.
# Written by `sh tests/cuda_compiled.sh --renew`. Look at the differences before you commit them.
HEAD
    echo "# columns: $1 kernel"
    awk -F '\t' -v architectures="$1" '
        BEGIN { n = split(architectures, arch, " ") }
        { at[$6 "\t" $1] = int(($2 + 7) / 8) * 8 "/" $3 "/" $4 "/" $5; kernels[$6] = 1 }
        END {
            for (k in kernels) {
                line = ""
                for (i = 1; i <= n; i++) line = line sprintf("%-16s ", at[k "\t" arch[i]] == "" ? "?" : at[k "\t" arch[i]])
                print line k
            }
        }' "$tmp/table" | sort -k 5
}
if [ "${1:-}" = --renew ]; then
    all=$(sed -n 's/^CUDA_ARCH ?= //p' Makefile | sed 's/[^ ]*/sm_&/g')
    renewed "$all" >"$tmp/renewed" && cp "$tmp/renewed" "$bounds"
    is "tests/cuda_compiled.txt is written" [ -s "$bounds" ]
    finish
fi
# differences BOUNDS TABLE - what exceeds its bound or has none, a line each; then how much is lower.
differences() {
    awk -F '\t' -v architectures="$(architectures "$1")" '
        BEGIN { n = split(architectures, arch, " ") }
        FILENAME == ARGV[1] {
            if (/^#/) next
            split($0, field, " +")
            kernel = $0
            for (i = 1; i <= n; i++) sub(/^[^ ]+ +/, "", kernel)
            for (i = 1; i <= n; i++) { bound[kernel "\t" arch[i]] = field[i] }
            next
        }
        {
            key = $6 "\t" $1
            found[key] = 1
            if (!(key in bound)) { print $6 ", " $1 ": it has no bound"; next }
            split(bound[key], most, "/")
            if ($2 > most[1]) print $6 ", " $1 ": " $2 " registers; the bound is " most[1]
            if ($3 > most[2]) print $6 ", " $1 ": " $3 " bytes of stack, spills among them; the bound is " most[2]
            if ($4 > most[3]) print $6 ", " $1 ": " $4 " bytes of shared memory; the bound is " most[3]
            if ($5 != most[4]) print $6 ", " $1 ": " ($5 == "mma" ? "tensor-core instructions, and there should be none" : "no tensor-core instructions")
            if ($2 <= most[1] - 8 || $3 < most[2] || $4 < most[3]) lower++
        }
        END {
            for (key in bound) if (!(key in found)) { split(key, half, "\t"); print half[1] ", " half[2] ": there is no such kernel" }
            if (lower) print "# " lower " are lower than their bounds" >"/dev/stderr"
        }' "$1" "$2"
}
# within BOUNDS TABLE - true if nothing differs; else says what, and how to renew the bounds.
within_bounds() {
    differences "$1" "$2" 2>"$tmp/lower" | sort >"$tmp/differences"
    cat "$tmp/lower"
    [ -s "$tmp/differences" ] || return 0
    cat "$tmp/differences"
    echo "If this is meant, write the bounds anew: sh tests/cuda_compiled.sh --renew; then look at git diff tests/cuda_compiled.txt"
    return 1
}
for a in $(architectures "$bounds"); do
    is "$a: there are kernels" eval "[ \$(grep -c '^$a	' '$tmp/table') -gt 100 ]"
done
is "PTX for newer GPUs is there" eval '"$root/bin/cuobjdump" -lptx "$library" | grep -q "$(architectures "$bounds" | awk "{ print \$NF }")\.ptx"'
is "each kernel is within its bounds" within_bounds "$bounds" "$tmp/table"
# Kernels that got worse, and bounds that are missing or stale, are found. Each line of the table is
# architecture, registers, stack, shared memory, mma or -, kernel.
# worse WHAT FIELD VALUE - with that field of one kernel changed, that is the one difference; $text says it.
worse() {
    awk -F '\t' -v OFS='\t' -v kernel="$sample" -v field="$2" -v value="$3" '$1 == "sm_90a" && $6 == kernel { $field = value } 1' "$tmp/table" >"$tmp/worse"
    is "$1" eval '! within_bounds "$bounds" "$tmp/worse" >"$tmp/found" && [ "$(grep -c "^$sample, " "$tmp/found")" = 1 ] && grep -qF "$text" "$tmp/found" && grep -q -e --renew "$tmp/found"'
}
sample=$(awk -F '\t' '$1 == "sm_90a" && $5 == "mma" { print $6; exit }' "$tmp/table")
text='999 registers; the bound is'; worse "registers above the bound are found" 2 999
text='24 bytes of stack, spills among them; the bound is 0'; worse "so is a spill" 3 24
text='99999 bytes of shared memory; the bound is'; worse "so is more shared memory" 4 99999
text='no tensor-core instructions'; worse "so is a kernel without its tensor-core instructions" 5 -
sed '/ adamw$/d' "$bounds" >"$tmp/fewer"
is "so is a kernel without a bound" eval '! within_bounds "$tmp/fewer" "$tmp/table" >"$tmp/found" && grep -q "^adamw, sm_120: it has no bound" "$tmp/found"'
grep -v '	adamw$' "$tmp/table" >"$tmp/fewer"
is "so is a bound without a kernel" eval '! within_bounds "$bounds" "$tmp/fewer" >"$tmp/found" && grep -q "^adamw, sm_80: there is no such kernel" "$tmp/found"'
finish
