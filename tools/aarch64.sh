#!/bin/sh
# aarch64.sh FOLDER - Debian's arm64 libraries, unpacked below FOLDER, for building and emulating on another processor.
# apt works on lists and a cache of its own in FOLDER.new: it needs no root, and the system's packages stay as they are.
# (A foreign architecture of dpkg would not do: libhdf5-dev can be installed for one architecture only.)
folder=$1 packages="libcjson-dev libyaml-dev libopenblas-pthread-dev libhdf5-dev libcmocka-dev libgomp1"
[ -n "$folder" ] || { echo "usage: aarch64.sh FOLDER" >&2; exit 2; }
[ "$(cat "$folder/packages" 2>/dev/null)" = "$packages" ] && exit 0
command -v apt-get >/dev/null 2>&1 || { echo "aarch64.sh: only Debian's apt can fetch libraries for arm64" >&2; exit 1; }
case $folder in /*) ;; *) folder=$PWD/$folder ;; esac
new=$folder.new
rm -rf "$new" "$folder"
mkdir -p "$new/tree" "$new/lists/partial" "$new/cache/archives/partial" && : >"$new/status" || exit 1
apt() {
    apt-get -q -o Dir::State="$new" -o Dir::State::Lists="$new/lists" -o Dir::State::status="$new/status" -o Dir::Cache="$new/cache" \
        -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Acquire::Languages=none -o APT::Sandbox::User="$(id -un)" \
        -o Debug::NoLocking=1 "$@" >>"$new/log" 2>&1
}
# shellcheck disable=SC2086 # one word each
apt update && apt install -y --download-only --no-install-recommends $packages || { tail -n 5 "$new/log" >&2; exit 1; }
for package in "$new"/cache/archives/*.deb; do dpkg -x "$package" "$new/tree" || exit 1; done
echo "$packages" >"$new/tree/packages"
mv "$new/tree" "$folder" && rm -rf "$new" || exit 1
# Links with a whole path lead out of the folder.
find "$folder" -type l -lname '/*' | while read -r link; do ln -sfn "$folder$(readlink "$link")" "$link"; done
