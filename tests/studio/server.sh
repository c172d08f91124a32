# server.sh - a studio for the tests, sourced after tap.sh. It skips the test where the studio or curl is missing.
[ -x "$BUILD/studio" ] || { skip "the studio" "no $BUILD/studio: libmicrohttpd or HDF5 is missing"; finish; }
command -v curl >/dev/null || { skip "the studio" "no curl"; finish; }
studio=$BUILD/studio
servers=
trap 'for p in $servers; do kill "$p" 2>/dev/null; done; rm -rf "$tmp"' EXIT
# serve ROOT [OPTION...] - start one at a free port. $url is its address without the last /, $server its process, $port.
serve() {
    root=$1
    shift
    : >"$tmp/url"
    "$studio" --root "$root" --port 0 "$@" >"$tmp/url" 2>"$tmp/served" &
    server=$!
    servers="$servers $server"
    await $server test -s "$tmp/url" || { cat "$tmp/served"; return 1; }
    url=$(sed 's|/[^/]*$||' "$tmp/url")
    port=${url##*:}
}
# stopped - end the server of the last serve; its exit code.
stopped() { kill "$server" && wait "$server"; }
# get PATH [CURL'S OPTION...] - the body. head_of: the status line and headers, without carriage returns. code: the status alone.
get() { path=$1; shift; curl -sS --path-as-is -m 60 "$@" "$url$path"; }
head_of() { path=$1; shift; curl -sS --path-as-is -m 60 -o /dev/null -D - "$@" "$url$path" | tr -d '\r'; }
code() { path=$1; shift; curl -s --path-as-is -m 60 -o "$tmp/body" -w '%{http_code}' "$@" "$url$path"; }
# gives CODE PATH [CURL'S OPTION...] - whether that is the status.
gives() { want=$1; shift; got=$(code "$@"); [ "$got" = "$want" ] || { echo "status $got, expected $want"; cat "$tmp/body"; return 1; }; }
json='Content-Type: application/json'
