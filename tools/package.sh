#!/bin/sh
# package.sh STAGE FOLDER - what `make package` does: STAGE/usr, as `make install` leaves it, becomes a tarball and a .deb in
# FOLDER. STAGE is removed. The same sources give the same bytes: files have the commit's date, or SOURCE_DATE_EPOCH, owner 0
# and a fixed mode.
# From the Makefile: VERSION, CC, AR, OBJCOPY, OBJDUMP, MAINTAINER. PACKAGE_LEVEL: of the compression; 1 is the fastest.
set -e
stage=$1 to=$2
trap 'rm -rf "$stage"' EXIT
no() { echo "make package: $1" >&2; exit 1; }
machine=$($CC -dumpmachine)
machine=${machine%%-*}

# ---- programs for every processor of this kind, not for this one ----
kernels=$($AR t "$stage/usr/lib/libtune.a")
! echo "$kernels" | grep -qx native.o || no "this build has CPU_SETS=native: its programs are for this processor alone"
if [ "$machine" = x86_64 ]; then
    echo "$kernels" | grep -qx x86_64_v2.o || no "this build has no kernels for x86-64-v2: see CPU_SETS in make help"
    ! $OBJDUMP -d "$stage/usr/share/tune.c/program/program.o" | grep -qE '[[:space:]]v[a-z0-9]+ .*%[xyz]mm' ||
        no "this build was compiled for newer processors, as by ARCH: make package BUILD=another/folder"
fi

# ---- names, modes, dates ----
epoch=$SOURCE_DATE_EPOCH
if [ -z "$epoch" ] && [ -e .git ]; then epoch=$(git log -1 --format=%ct); fi
[ -n "$epoch" ] || epoch=$(stat -c %Y components/core/version.h) # `make dist` gives its files the commit's date
export SOURCE_DATE_EPOCH="$epoch"
for f in "$stage"/usr/bin/*; do $OBJCOPY --strip-unneeded "$f"; done
for f in "$stage"/usr/lib/*.* "$stage"/usr/share/tune.c/program/*.o; do
    [ -d "$f" ] || $OBJCOPY -D --strip-debug "$f"
done
settle() { chmod -R u=rwX,go=rX "$stage" && find "$stage" -exec touch -h -d "@$epoch" {} +; }

# ---- the tarball ----
name=tune.c-$VERSION-$machine
rm -f "$to/$name.tar.gz" "$to/tune.c_${VERSION}_"*.deb
settle
tar -C "$stage" --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --transform "s|^usr|$name|" -cf "$to/$name.tar" usr
gzip -nf"${PACKAGE_LEVEL:-9}" "$to/$name.tar"
echo "$to/$name.tar.gz"

# ---- the .deb ----
needed() { for p in "$stage"/usr/bin/*; do $OBJDUMP -p "$p"; done | awk '$1 == "NEEDED" { print $2 }' | sort -u; }
# Debian's own tool knows from which version on a library has what a program calls.
by_shlibdeps() {
    mkdir "$stage/debian" && printf 'Source: tune.c\n\nPackage: tune.c\nArchitecture: any\n' >"$stage/debian/control"
    (cd "$stage" && dpkg-shlibdeps -O usr/bin/* 2>debian/said || { cat debian/said >&2; false; }) | sed -n 's/^shlibs:Depends=//p'
    rm -rf "$stage/debian"
}
# Without it: the packages that hold the libraries here, as new as here.
by_files() {
    needed | while read -r library; do
        at=$(for p in "$stage"/usr/bin/*; do ldd "$p"; done | awk -v l="$library" '$1 == l || $1 ~ "/" l "$" { print $2 == "=>" ? $3 : $1; exit }')
        at=$(readlink -f "$at")
        # packages name a library's folder with or without /usr
        package=$({ dpkg -S "$at" || dpkg -S "${at#/usr}"; } 2>/dev/null | sed -n '1s/:.*//p')
        [ -n "$package" ] || { echo "# $library ($at) belongs to no package" >&2; exit 1; }
        dpkg-query -W -f '${Package} (>= ${Version})\n' "$package" | head -n 1
    done >"$stage/depends" || return 1
    sort -u "$stage/depends" | paste -sd, | sed 's/,/, /g'
}
left_out() { echo "# the .deb is left out: $1"; exit 0; }
command -v dpkg-deb >/dev/null || left_out "no dpkg-deb here"
[ "$machine" = "$(uname -m)" ] || left_out "what these programs for $machine depend on is known on such a machine alone"
if command -v dpkg-shlibdeps >/dev/null; then
    depends=$(by_shlibdeps)
else
    echo "# no dpkg-shlibdeps here: the .deb asks for libraries as new as this machine's"
    depends=$(by_files) || depends=
fi
[ -n "$depends" ] || left_out "what it depends on was not found"
rm -f "$stage/depends"
arch=$(dpkg --print-architecture)
kilobytes=$(find "$stage/usr" -printf '%y %s\n' | awk '{ sum += $1 == "f" ? int(($2 + 1023) / 1024) : 1 } END { print sum }')
mkdir "$stage/DEBIAN"
cat >"$stage/DEBIAN/control" <<END
Package: tune.c
Version: $VERSION
Section: science
Priority: optional
Architecture: $arch
Maintainer: $MAINTAINER
Installed-Size: $kilobytes
Depends: $depends
Recommends: curl, libyaml-0-2, libsnappy1v5, libzstd1
Suggests: gcc, make, pkg-config, libcjson-dev, libopenblas-dev, libhdf5-dev, libyaml-dev
Description: fine-tuning recipes for language models in plain C
 Programs that train language models, whole or by adapters, on the CPU. They
 read and write the folders of Hugging Face. Others measure whole spaces of
 configurations. The studio shows, starts and compares runs in a browser.
 .
 A static library with its headers, and the recipes' sources, for programs of
 your own. The CPU's kernels are there for each instruction set; a program
 takes the best one at start.
END
settle
deb=$to/tune.c_${VERSION}_$arch.deb
DPKG_DEB_THREADS_MAX=1 dpkg-deb -Zxz -z"${PACKAGE_LEVEL:-6}" --root-owner-group -b "$stage" "$deb" >/dev/null
echo "$deb"
