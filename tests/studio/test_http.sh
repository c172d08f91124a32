#!/bin/sh
# test_http.sh - the studio's server: what it answers to good requests, and that hostile ones leave it serving.
. tests/tap.sh
. tests/studio/server.sh
hostile=$BUILD/tests/helpers/hostile
mkdir "$tmp/root"
# On a server that nobody else asks: a request that never ends. It is looked at below.
if [ -x "$hostile" ] && serve "$tmp/root"; then
    printf 'GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ' | "$hostile" raw "$port" >"$tmp/never" &
    never=$!
fi
is "it serves, and says where" serve "$tmp/root"
is "the address is this machine's own" eval 'case $url in http://127.0.0.1:*) ;; *) echo "$url"; false ;; esac'

# ---- good requests ----
is "the page" eval 'get / | grep -q "<!doctype html>"'
is "health" eval 'get /healthz | grep -q "\"status\":\"ok\""'
is "HEAD: the headers of GET" eval 'head_of / | grep -iv ^date >"$tmp/a" && head_of / -I | grep -iv ^date >"$tmp/b" && diff "$tmp/a" "$tmp/b" && grep -qi "^content-length: [1-9]" "$tmp/b"'
etag=$(head_of / | sed -n 's/^ETag: //p')
is "an ETag" test -n "$etag"
is "304 for it" gives 304 / -H "If-None-Match: $etag"
is "... in a list, weak" gives 304 / -H "If-None-Match: \"x\", W/$etag"
is "... for *" gives 304 / -H 'If-None-Match: *'
is "200 for another" gives 200 / -H 'If-None-Match: "x", W/"y"'
is "... and for half of one" gives 200 / -H "If-None-Match: ${etag%\"}"
is "after 304 the connection goes on" eval '[ "$(curl -sS -H "If-None-Match: $etag" "$url/" "$url/healthz" -w "%{num_connects}" | tr -d "\n" | sed "s/{.*}//")" = 10 ]'
is "405 with Allow" eval 'head_of /healthz -X POST -H "$json" -d "{}" >"$tmp/a" && grep -q "^HTTP/1.1 405" "$tmp/a" && grep -qx "Allow: GET, HEAD" "$tmp/a"'
is "... for OPTIONS and TRACE" eval 'gives 405 / -X OPTIONS && gives 405 / -X TRACE'
is "404 is a problem" eval 'gives 404 /nowhere && grep -q "\"status\":	404" "$tmp/body" && head_of /nowhere | grep -qix "content-type: application/problem+json"'
is "415: a write that is no JSON" eval 'gives 415 /healthz -d a=b && gives 415 /healthz -X POST && gives 415 /healthz -H "Content-Type: text/plain" -d "{}"'
is "... with a charset is fine" gives 405 /healthz -H "$json; charset=utf-8" -d '{}'
is "each answer forbids scripts of others, frames, guesses of the type" eval 'for p in / /healthz /nowhere; do head_of $p >"$tmp/a" && grep -qi "^content-security-policy: default-src .self.;.*frame-ancestors .none." "$tmp/a" && grep -qix "x-content-type-options: nosniff" "$tmp/a" || exit 1; done'
is "without an ETag nothing is kept" eval 'head_of /healthz | grep -qix "cache-control: no-store"'

# ---- bad requests ----
is "bad escapes: 400, or no such path" eval 'gives 400 "/?%zz=1" && gives 400 "/?a=%00" && gives 400 "/?a=%ff" && gives 404 /%zz && gives 404 "/%00"'
is "an unknown parameter: 400, named" eval 'gives 400 "/healthz?lr=1" && grep -q "lr" "$tmp/body"'
is "a long address: 413 or 431" eval 'c=$(code "/?$(printf "%017000d" 0)"); [ "$c" = 413 ] || [ "$c" = 414 ] || [ "$c" = 431 ]'
is "huge headers: 431 or 413" eval 'c=$(code / -H "X-A: $(printf "%090000d" 0)"); [ "$c" = 431 ] || [ "$c" = 413 ]'
head -c 1500000 /dev/zero | tr '\0' ' ' >"$tmp/large"
is "a large body: 413" gives 413 /healthz -H "$json" --data-binary @"$tmp/large"
is "... in chunks, too" gives 413 /healthz -H "$json" -H 'Transfer-Encoding: chunked' --data-binary @"$tmp/large"
is "... without waiting for 100" gives 413 /healthz -H "$json" -H 'Expect:' --data-binary @"$tmp/large"
if [ -x "$hostile" ]; then
    # raw TEXT - what is answered to these bytes. statuses: the codes in it.
    raw() { printf "$1" | "$hostile" raw "$port"; }
    statuses() { raw "$1" | grep -ao 'HTTP/1.1 [0-9]*' | cut -d' ' -f2 | paste -sd' ' -; }
    host="Host: 127.0.0.1:$port\r\n"
    same() { [ "$1" = "$2" ] || { echo "got \"$1\", expected \"$2\""; return 1; }; }
    is "two requests on one connection" same "$(statuses "GET /healthz HTTP/1.1\r\n${host}\r\nGET / HTTP/1.1\r\n${host}Connection: close\r\n\r\n")" "200 200"
    hidden="GET /hidden HTTP/1.1\r\n${host}\r\n"
    is "two lengths: 400, and no second request" same "$(statuses "POST /healthz HTTP/1.1\r\n${host}Content-Length: 0\r\nContent-Length: 40\r\n\r\n$hidden")" 400
    is "a length and chunks: 400" same "$(statuses "POST /healthz HTTP/1.1\r\n${host}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n$hidden")" 400
    is "unknown coding: 400" same "$(statuses "POST /healthz HTTP/1.1\r\n${host}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n$hidden")" 400
    bad() { case $1 in *[!40\ ]*) echo "got $1"; return 1 ;; 400*) ;; *) echo "got $1"; return 1 ;; esac; } # libmicrohttpd 0.9 says its own 400 twice
    is "a signed length: 400" bad "$(statuses "POST /healthz HTTP/1.1\r\n${host}Content-Length: +4\r\n\r\n{}  $hidden")" 400
    is "a space before the colon: 400" same "$(statuses "POST /healthz HTTP/1.1\r\n${host}Content-Length : 4\r\n\r\n{}  $hidden")" 400
    is "no Host: 400" same "$(statuses "GET / HTTP/1.1\r\nConnection: close\r\n\r\n")" 400
    is "two of them: 400" same "$(statuses "GET / HTTP/1.1\r\n${host}Host: a\r\n\r\n")" 400
    is "another protocol: no 200" eval '! statuses "GET / HTTP/9.9\r\n${host}\r\n" | grep -q 200 && ! statuses "\026\003\001\002\r\n\r\n" | grep -q 200 && ! statuses "GET\r\n\r\n" | grep -q 200'
    is "an address of another server: 404" same "$(statuses "GET http://evil.example/ HTTP/1.1\r\n${host}Connection: close\r\n\r\n")" 404
    is "it still serves" gives 200 /healthz

    # ---- too many ----
    # answers - within five minutes; a 503 is an answer, and the client tries again.
    answers() { await $server eval '[ "$(code /healthz)" = 200 ]'; }
    is "10,000 connections that say nothing" "$hostile" flood "$port" 10000
    is "... and it serves" answers
    slowly() { # HOW COUNT [PATH]
        "$hostile" "$1" "$port" $2 $3 >"$tmp/slow" 2>&1 &
        slow=$!
        servers="$servers $slow"
        await $slow test -s "$tmp/slow"
    }
    is "64 clients whose requests never end" slowly slow 64
    is "... beside them it serves" answers
    kill $slow
    is "64 clients that read nothing" slowly deaf 64 /openapi.json
    is "... beside them it serves" answers
    kill $slow
    is "at most 32 of its threads are connections'" eval '[ "$(ls /proc/$server/task | wc -l)" -le 40 ]'
    is "and after them" answers
else
    skip "hostile clients" "no $hostile"
fi
is "nothing was said" test ! -s "$tmp/served"

# ---- where it serves ----
refused "a port that is taken" 3 "port $port of 127.0.0.1 is taken, perhaps by another studio; give another one with --port" "$studio" --port "$port"
refused "no address" 2 "--host 1.2.3.4.5: expected an address of this machine" "$studio" --host 1.2.3.4.5 --port 0
refused "no root" 2 "no such folder" "$studio" --root "$tmp/none"
is "it ends well" stopped
if [ -e /proc/net/if_inet6 ] && grep -q '^0*1 ' /proc/net/if_inet6; then
    is "IPv6" serve "$tmp/root" --host ::1
    is "... has its brackets" eval 'case $url in "http://[::1]:"*) ;; *) echo "$url"; false ;; esac'
    is "... and answers" gives 200 /healthz -g
    is "... by the name localhost" gives 200 /healthz -g -H "Host: localhost:$port"
    is "... and ends" stopped
else
    skip "IPv6" "this machine has none"
fi
if command -v ip >/dev/null && unshare -rn ip link set lo up 2>/dev/null; then
    is "without a network, the page has all that it asks for" unshare -rn sh tests/studio/alone.sh
else
    skip "without a network" "this system lets us make no network of our own (unshare, ip)"
fi
if [ -n "${never:-}" ]; then
    is "a request that is not whole after ten seconds is ended" await 0 is_gone $never
    is "... without an answer" test ! -s "$tmp/never"
fi
finish
