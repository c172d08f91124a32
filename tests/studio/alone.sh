#!/bin/sh
# alone.sh - for test_http.sh: the page and all that it asks for, where there is no network but the loopback.
. tests/tap.sh >/dev/null
. tests/studio/server.sh >/dev/null
ip link set lo up || exit 1
mkdir "$tmp/root"
serve "$tmp/root" || exit 1
get / >"$tmp/page"
sed -n 's/.*\(src\|href\)="\([^"#]*\)".*/\2/p' "$tmp/page" >"$tmp/asked"
[ "$(wc -l <"$tmp/asked")" -ge 5 ] || { cat "$tmp/page"; exit 1; }
while read -r path; do
    case $path in *:*) echo "$path is elsewhere"; exit 1 ;; esac
    gives 200 "/$path" || exit 1
done <"$tmp/asked"
stopped
