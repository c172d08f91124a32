#!/bin/sh
# test_tiles.sh - the kernels of other instruction sets (components/devices/cpu), put through the same tests. Those that this
# processor runs are there already. Of the others, tiles and packing are built for it, with the bodies in plain C of the bfloat16
# instructions. Then OpenBLAS in the place of our matrix products.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
case $(uname -m) in x86_64) common="-march=x86-64-v3 -Wno-psabi" ;; *) common= ;; esac
neon="-DLANES=4 -DTILE_ROWS=8" avx512="-DLANES=16 -DTILE_ROWS=8"
twins="$BUILD/twins"
fewer=TUNE_TEST_EMULATED=1 # of the large products as many as an emulator gets; tests/devices/test_kernels runs all
# What this program has, and this processor runs; and what it takes, with which all other tests run.
opened() { TUNE_CPU=$1 "$BUILD/tests/helpers/device" cpu 2>&1; }
known=$(opened none | sed -n 's/^TUNE_CPU=none: expected one of: //p' | tr -d ,)
taken=$("$BUILD/tests/helpers/device" cpu | sed -n 's/.*, \([a-z0-9-]*\) kernels.*/\1/p')
is "a wrong name is told the right ones" [ -n "$known" ]
is "one of them is taken" eval 'case " $known " in *" $taken "*) ;; *) false ;; esac'
# All but the kernels is the build's own. The kernels stay, so that the next time only what changed is compiled.
built() {
    mkdir -p "$twins/obj" && cp -p "$BUILD"/config.mk* "$twins" && tar -C "$BUILD/obj" --exclude=components/devices/cpu -cf "$tmp/obj.tar" components tests &&
        tar -C "$twins/obj" -xf "$tmp/obj.tar" && rm "$tmp/obj.tar" || return 1
    make -C "$here" --no-print-directory -j"$(nproc)" BUILD="$twins" OPT=-O2 SAN= \
        CPU_SETS="neon_tiles neon_bf16_in_c avx512_bf16_in_c amx_in_c" CPU_neon_tiles="$common $neon" \
        CPU_neon_bf16_in_c="$common $neon -DNEON_BF16_IN_C" CPU_avx512_bf16_in_c="$common $avx512 -DAVX512_BF16_IN_C" \
        CPU_amx_in_c="$common $avx512 -DAMX_IN_C" "$@" >"$tmp/log" 2>&1 && ! grep -i warning "$tmp/log"
}
others() { # the kernels of other processors; if this one has an instruction, its form in C is left out
    is "other processors' tiles are built, without a warning" built "$twins/tests/devices/test_kernels" "$twins/tests/devices/test_decode" "$twins/tests/models/test_model"
    is "every operation, neon-tiles" env $fewer TUNE_CPU=neon-tiles "$twins/tests/devices/test_kernels"
    for set in neon-bf16-in-c amx-in-c avx512-bf16-in-c; do # only products and attention differ
        case " $known " in *" ${set%-in-c} "*) continue ;; esac
        is "products, $set" env $fewer TUNE_CPU=$set TUNE_TEST_ONLY='gemm*' "$twins/tests/devices/test_kernels"
        is "attention, $set" env $fewer TUNE_CPU=$set TUNE_TEST_ONLY='attention*' "$twins/tests/devices/test_kernels"
    done
    is "gemv, decode attention, NEON's tiles" env TUNE_CPU=neon-tiles "$twins/tests/devices/test_decode"
    is "gemv, decode attention, AVX-512's tiles" env TUNE_CPU=avx512-bf16-in-c "$twins/tests/devices/test_decode"
    is "whole models, AMX in C" env TUNE_CPU=amx-in-c "$twins/tests/models/test_model"
}
if sanitized; then
    skip "the kernels of other processors" "they are built without sanitizers, as by make test"
else
    others
fi
for set in $known; do
    is "the header names $set" eval "opened $set | grep -q ' $set kernels'"
    [ $set = "$taken" ] || is "every operation, $set" env $fewer TUNE_CPU="$set" "$BUILD/tests/devices/test_kernels"
done
lacks() { # SET: the processor cannot run it: exit code 3, and what it lacks
    case " $known " in *" $1 "*) return 0 ;; esac
    TUNE_CPU=$1 "$BUILD/tests/helpers/device" cpu 2>"$tmp/said"
    [ $? = 3 ] && grep -q "^TUNE_CPU=$1: this processor has no .*; it can run: $(echo "$known" | sed 's/ /, /g')$" "$tmp/said"
}
# gcc 12 once removed the stores of the tiles' shape. Only a processor with AMX can run that code; the row counts are in it.
tiles=$BUILD/obj/sets/amx/components/devices/cpu/tiles_bf16.o
if [ -e "$tiles" ] && ! sanitized && command -v objdump >/dev/null && ${CC:-cc} --version | grep -qi "gcc\|Free Software"; then
    is "AMX: the shape of the tiles is stored before it is loaded" eval 'objdump -d "$tiles" | grep -B 12 ldtilecfg >"$tmp/shape"; grep -q 10101010 "$tmp/shape" || { cat "$tmp/shape"; false; }'
fi
case $(uname -m) in
x86_64) is "kernels that this processor cannot run are refused" lacks amx ;;
aarch64) is "kernels that this processor cannot run are refused" lacks neon-bf16 ;;
esac
is "whole models, ${known%% *}" env TUNE_CPU="${known%% *}" "$BUILD/tests/models/test_model"
is "whole models, by OpenBLAS" env TUNE_MATMUL=openblas "$BUILD/tests/models/test_model"
finish
