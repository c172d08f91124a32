#!/bin/sh
# test_package.sh - `make package`: what the tarball and the .deb hold, the same bytes twice, any folder, a root with nothing
# but the .deb and what it depends on, the oldest processor that is promised.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
if sanitized; then
    skip "packages" "nobody packs a sanitizer build"
    finish
fi
unset TUNE_DEFAULTS SOURCE_DATE_EPOCH TUNE_CPU
export PACKAGE_LEVEL=1 # a fast compression
quietly() { "$@" >"$tmp/log" 2>&1 || { cat "$tmp/log"; false; }; }
pack() { make --no-print-directory BUILD="$BUILD" CC="$CC" PACKAGES="$tmp/$1" package >"$tmp/$1.said" 2>&1 || { cat "$tmp/$1.said"; false; }; }
machine=$($CC -dumpmachine | cut -d- -f1) version=$(sed -n 's/.*TUNE_VERSION "\(.*\)"/\1/p' components/core/version.h)
top=tune.c-$version-$machine

# ---- what is in it ----
is "make package" pack one
tarball=$tmp/one/$top.tar.gz deb=$(ls "$tmp"/one/*.deb 2>/dev/null)
is "a tarball, and a .deb or the reason why there is none" eval 'test -s "$tarball" && { test -s "$deb" || grep "^# the .deb is left out: ." "$tmp/one.said"; }'
is "nothing else is left in the folder" eval '[ "$(ls "$tmp/one" | grep -vE "^tune\.c[-_]$version[-_][a-z0-9_]*\.(tar\.gz|deb)$")" = "" ]'
tar -tvzf "$tarball" >"$tmp/list" 2>&1
lacks() {
    for p in "$BUILD"/*; do [ ! -f "$p" ] || [ ! -x "$p" ] || case $p in *.*) ;; *) [ -e "recipes/${p##*/}.c" ] || [ -e "tools/${p##*/}.c" ] || [ -e "datasets/${p##*/}.c" ] && echo "bin/${p##*/}" ;; esac; done |
        cat - "$tmp/more" | while read -r f; do grep -q " $top/$f$" "$tmp/list" || echo "$f"; done
}
printf '%s\n' lib/libtune.a lib/pkgconfig/tune.pc include/tune/tune.h share/doc/tune.c/copyright share/tune.c/recipe.mk \
    share/tune.c/recipes/finetune_full.c share/tune.c/defaults/spaces/laptop.yaml share/tune.c/datasets/stories.jsonl >"$tmp/more"
none "programs, library, headers, defaults, licence" "$(lacks)"
none "owner 0, one date, fixed modes, one folder" "$(awk -v n="$top/" '{ date = date ? date : $4 $5 } $2 != "0/0" || $4 $5 != date || $1 !~ /^(drwxr-xr-x|-rw[-x]r-[-x]r-[-x])$/ || index($6, n) != 1' "$tmp/list")"
mkdir "$tmp/elsewhere" && tar -xzf "$tarball" -C "$tmp/elsewhere"
mv "$tmp/elsewhere/$top" "$tmp/elsewhere/moved"
tree=$tmp/elsewhere/moved
none "no file names the folder where it was built" "$(grep -rlF -e "$here" -e "$tmp" "$tree")"
was=$(date +%s) && await 0 eval '[ "$(date +%s)" != "$was" ]' # another second, another umask: the same bytes
is "the same bytes again" eval '(umask 077; pack two) && cmp "$tarball" "$tmp/two/$top.tar.gz" && { [ -z "$deb" ] || cmp "$deb" "$tmp/two/${deb##*/}"; }'

# ---- what cannot be made is said ----
mkdir "$tmp/path" # every program of this machine but Debian's two
for d in $(echo "$PATH" | tr : ' '); do for f in "$d"/*; do [ -e "$tmp/path/${f##*/}" ] || ln -s "$f" "$tmp/path" 2>/dev/null; done; done
rm -f "$tmp/path/dpkg-shlibdeps"
is "SOURCE_DATE_EPOCH is the date" eval 'SOURCE_DATE_EPOCH=86400 PATH=$tmp/path pack two && tar --utc -tvzf "$tmp/two/$top.tar.gz" | awk "\$4 != \"1970-01-02\" { bad = 1 } END { exit bad || !NR }"'
if [ -n "$deb" ]; then
    is "without dpkg-shlibdeps" eval 'grep -q "^# no dpkg-shlibdeps here: " "$tmp/two.said"'
    depends() { dpkg-deb -f "$1" Depends | tr ',' '\n' | sed 's/(.*//' | grep -oE '(libc6|libcjson|libgomp)' | sort; }
    is "... the .deb depends on the same libraries" eval 'depends "$deb" >"$tmp/a.txt" && depends "$tmp/two/${deb##*/}" | diff "$tmp/a.txt" - && [ "$(wc -l <"$tmp/a.txt")" = 3 ]'
fi
rm -f "$tmp/path/dpkg-deb"
is "without dpkg-deb: the tarball alone" eval 'PATH=$tmp/path pack two && grep -qx "# the .deb is left out: no dpkg-deb here" "$tmp/two.said" && [ "$(ls "$tmp/two")" = "$top.tar.gz" ]'
# refuses TEXT - package.sh on $tmp/stage
stage() { rm -rf "$tmp/stage" && mkdir -p "$tmp/stage/usr/share/tune.c/program" && cp -r "$tree/lib" "$tree/bin" "$tmp/stage/usr" && cp "$tree/share/tune.c/program/program.o" "$tmp/stage/usr/share/tune.c/program"; }
packs() { env VERSION="$version" CC="$CC" AR=ar OBJCOPY=objcopy OBJDUMP=objdump sh tools/package.sh "$tmp/stage" "$tmp/three"; }
stage && touch "$tmp/native.o" && ar q "$tmp/stage/usr/lib/libtune.a" "$tmp/native.o" 2>/dev/null
refused "kernels of this processor alone" 1 "make package: this build has CPU_SETS=native" packs
if [ "$machine" = x86_64 ]; then
    stage && ar d "$tmp/stage/usr/lib/libtune.a" x86_64_v2.o
    refused "no kernels for the oldest" 1 "make package: this build has no kernels for x86-64-v2" packs
    stage && echo 'void f(double *a, long n) { while (n--) a[n] *= 2; }' | $CC -O3 -mavx2 -x c -c - -o "$tmp/stage/usr/share/tune.c/program/program.o"
    refused "compiled with ARCH for newer ones" 1 "make package: this build was compiled for newer processors" packs
    # Everything but the kernels of newer sets, instruction by instruction: nothing that x86-64-v2 lacks. The loops of
    # devices/cpu/peak_rates.c ask the processor first.
    newer='\t(v[a-z0-9]+ .*%[xyz]mm|k[a-z]+ .*%k[0-7]|v?[a-z0-9]+ .*%(ymm|zmm|tmm)|(andn|bextr|blsi|blsr|mulx|pdep|pext|rorx|sarx|shlx|shrx|movbe) )'
    instructions() { objdump -d --no-show-raw-insn "$@" | awk '/file format/ { skip = $1 ~ /^(x86_64_v[34]|avx512_bf16|amx)\.o:$/ } /^[0-9a-f]+ </ { asks = $2 ~ /^<multiply_add_(32|64)>:$/ } !skip && !asks' | grep -P "$newer"; }
    none "no newer instruction in libraries and programs, kernels apart" "$(instructions "$tree"/lib/libtune*.a $(find "$BUILD/obj/recipes" "$BUILD/obj/tools" "$BUILD/obj/datasets" "$BUILD/obj/components/flags" -name '*.o') | head -n 5)"
    is "... the search finds those of the kernels" eval '(cd "$tmp" && ar x "$tree/lib/libtune.a" x86_64_v3.o && mv x86_64_v3.o found.o) && instructions "$tmp/found.o" | grep -q ymm'
fi

# ---- unpacked in any folder ----
mkdir "$tmp/elsewhere/defaults" "$tmp/defaults"
is "programs find their own defaults, beside other folders of that name" eval '"$tree/bin/finetune_full" --list-models | grep -q HuggingFaceTB/SmolLM2-135M'
if command -v pkg-config >/dev/null 2>&1; then
    by_pkg_config() { $CC -std=c11 tests/foreign/loop.c $(PKG_CONFIG_PATH=$tree/lib/pkgconfig pkg-config --cflags --libs tune) -o "$tmp/loop"; }
    is "a program of one's own by its tune.pc" by_pkg_config
    is "... takes the unpacked headers" eval 'PKG_CONFIG_PATH=$tree/lib/pkgconfig pkg-config --cflags tune | grep -qF -- "-I$tree/lib/pkgconfig/../../include/tune"'
    is "... and runs" eval 'quietly tiny "$tmp/a" 1 && quietly tiny "$tmp/b" 2 && "$tmp/loop" "$tmp/a" "$tmp/b" | grep -qx "2 devices: same same"'
else
    skip "a program of one's own by its tune.pc" "no pkg-config"
fi

# ---- a bare root: the .deb and the packages it depends on, no other file ----
root=$tmp/root
# closure PACKAGE... - they and all that they depend on, as installed here.
closure() {
    todo=$* seen=' '
    while [ -n "$todo" ]; do
        set -- $todo
        p=$1
        shift
        todo=$*
        case $seen in *" $p "*) continue ;; esac
        # a name that several packages provide: the one that is installed
        dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q ' installed$' || continue
        seen="$seen$p "
        todo="$todo $(dpkg-query -W -f '${Pre-Depends} ${Depends}\n' "$p" | head -n 1 | tr ',|' '  ' | sed 's/([^)]*)//g; s/:any//g')"
    done
    echo "$seen"
}
# add_packages PACKAGE... - the libraries of their closure, into the root.
add_packages() {
    packages=$(closure "$@")
    echo "# $packages"
    for p in $packages; do dpkg -L "$p"; done | grep -E '\.so(\.|$)' | sort -u | while read -r f; do [ -d "$f" ] || echo "$f"; done >"$tmp/files"
    tar -C / --no-recursion -cf - -T "$tmp/files" 2>/dev/null | tar -C "$root" -xf -
}
fill_root() {
    mkdir -p "$root/usr/lib" "$root/proc" "$root/tmp" && dpkg-deb -x "$deb" "$root" || return 1
    for l in lib lib64 usr/lib64; do [ ! -L "/$l" ] || ln -s "$(readlink "/$l")" "$root/$l" || return 1; done
    mkdir -p "$(readlink -m "$root/lib64")" 2>/dev/null
    add_packages $(dpkg-deb -f "$deb" Depends | tr ',|' '  ' | sed 's/([^)]*)//g') || return 1
    # OpenBLAS has its link in the libraries' folder from its installation script, not from its files.
    blas=$(cd "$root" && find usr/lib -name libopenblas.so.0 | head -n 1)
    [ -z "$blas" ] || [ -e "$root/$(dirname "$(dirname "$blas")")/libopenblas.so.0" ] ||
        ln -s "/$blas" "$root/$(dirname "$(dirname "$blas")")/libopenblas.so.0"
}
bare() { unshare -rm sh -c 'mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"' "$root" "$@"; }
small="--layers 2 --hidden-size 64 --intermediate-size 128 --heads 2 --kv-heads 1 --vocab-size 300 --max-positions 128 --seed 1"
train="--model /tmp/model --dataset /usr/share/tune.c/datasets/stories.jsonl --max-length 32 --max-steps 4 --threads 2"
loss() { sed -n 's/.*"loss":\([0-9.]*\).*/\1/p' "$1/metrics.jsonl" | tail -n 1; }
close() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && b > 0 && a / b < 1.001 && b / a < 1.001) }'; }
mkdir -p "$root/proc"
if [ -z "$deb" ]; then
    skip "a bare root" "there is no .deb"
elif ! unshare -rm sh -c 'mount --rbind /proc "$0/proc" && chroot / true' "$root" 2>/dev/null; then
    skip "a bare root" "this system lets us make no root folder of our own (unshare)"
else
    is "a root with the .deb and the libraries of the packages it names" fill_root
    is "it is bare: no shell" eval '! bare /bin/sh -c true 2>/dev/null'
    starts() { for p in "$root"/usr/bin/*; do bare "/usr/bin/${p##*/}" --version >"$tmp/version" 2>&1 && grep -q "$version" "$tmp/version" || { echo "$p"; cat "$tmp/version"; }; done; }
    none "every program starts in it" "$(starts)"
    # shellcheck disable=SC2086 # one word each
    is "a model is made" quietly bare /usr/bin/init_model $small /tmp/model
    # shellcheck disable=SC2086
    is "it trains" quietly bare /usr/bin/finetune_full $train --output /tmp/first
    if [ "$machine" = x86_64 ]; then
        # shellcheck disable=SC2086
        is "... by the kernels of x86-64-v2" eval 'TUNE_CPU=x86-64-v2 quietly bare /usr/bin/finetune_full $train --output /tmp/v2 && grep -q x86-64-v2 "$tmp/log"'
        is "... to the same loss" eval 'close "$(loss "$root/tmp/first")" "$(loss "$root/tmp/v2")"'
    fi
    if [ -e "$root/usr/bin/studio" ]; then
        is "the studio answers in it" eval 'bare /usr/bin/studio health --root /tmp | grep -qx "status: ok"'
    fi
    if [ -e "$root/usr/bin/space" ]; then
        refused "without libyaml, which it recommends, no space is read" 3 "(Debian: apt-get install libyaml-0-2)" bare /usr/bin/space describe /usr/share/tune.c/defaults/spaces/laptop.yaml
        is "with it" eval 'dpkg-deb -f "$deb" Recommends | grep -qw libyaml-0-2 && add_packages libyaml-0-2'
        is "... the space is read" eval 'bare /usr/bin/space describe /usr/share/tune.c/defaults/spaces/laptop.yaml | grep -qx "  Number entities: 4"'
    fi
    is "its defaults are found" eval 'bare /usr/bin/finetune_full --list-models | grep -q HuggingFaceTB/SmolLM2-135M'
fi

# ---- the oldest processor that is promised: Nehalem, of 2008, is x86-64-v2 and no more ----
nehalem() { qemu-x86_64 -cpu Nehalem "$@"; }
# Started again by themselves, programs would leave the emulator: with these set they do not.
export OPENBLAS_NUM_THREADS=1 OMP_WAIT_POLICY=passive
printf '#include <stdio.h>\n__attribute__((target("avx2"))) int main(int n, char **a) { float v[64]; for (int i = 0; i < 64; i++) v[i] = (float)(n * i); (void)a; __asm__ volatile("vaddps %%%%ymm0, %%%%ymm0, %%%%ymm0" ::: "xmm0"); printf("%%g", v[n]); return 0; }\n' >"$tmp/avx.c"
if [ "$machine" != x86_64 ]; then
    skip "on an emulated Nehalem" "these programs are for $machine"
elif ! command -v qemu-x86_64 >/dev/null 2>&1; then
    skip "on an emulated Nehalem" "no qemu-x86_64 (Debian: qemu-user)"
elif ! nehalem "$tree/bin/make_news" --version >/dev/null 2>&1; then
    skip "on an emulated Nehalem" "this qemu-x86_64 runs no program of this system"
else
    is "the emulated processor has no AVX" eval '$CC -O1 "$tmp/avx.c" -o "$tmp/avx" && ! nehalem "$tmp/avx" >"$tmp/log" 2>&1 && ! grep -q "^1" "$tmp/log"'
    # shellcheck disable=SC2086
    is "on an emulated Nehalem a model is made" quietly nehalem "$tree/bin/init_model" $small "$tmp/nehalem"
    oldest() { quietly nehalem "$tree/bin/finetune_full" --model "$tmp/nehalem" --dataset datasets/stories.jsonl --max-length 32 --max-steps 4 --threads 2 --output "$tmp/old"; }
    is "... it trains" oldest
    is "... by the kernels of x86-64-v2, which the program chose" grep -q x86-64-v2 "$tmp/log"
    is "... to the loss of this processor" eval 'quietly "$tree/bin/finetune_full" --model "$tmp/nehalem" --dataset datasets/stories.jsonl --max-length 32 --max-steps 4 --threads 2 --output "$tmp/new" && close "$(loss "$tmp/old")" "$(loss "$tmp/new")"'
    refused "newer kernels are refused there" 3 "TUNE_CPU=x86-64-v3: this processor has no AVX2 and FMA; it can run: x86-64-v2" env TUNE_CPU=x86-64-v3 qemu-x86_64 -cpu Nehalem "$tree/bin/finetune_full" --model "$tmp/nehalem" --dataset datasets/stories.jsonl --max-steps 1
fi
finish
