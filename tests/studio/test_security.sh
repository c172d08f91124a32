#!/bin/sh
# test_security.sh - who may ask the studio, what it never shows, and that it stays in its root.
. tests/tap.sh
. tests/studio/server.sh
mkdir -p "$tmp/root"
HF_TOKEN=hf_do_not_show_this_value
export HF_TOKEN
QUOTED_SECRET='"quo\ted" & <angled>'
export QUOTED_SECRET
i=0
while [ $i -lt 60 ]; do i=$((i + 1)); export "S${i}_PASSWORD=number-$i-of-many"; done
is "it serves" serve "$tmp/root"

# ---- other pages ----
is "a rebound name: 421" eval 'gives 421 /healthz -H "Host: evil.example:$port" && gives 421 / -H "Host: evil.example"'
is "names of this machine" eval 'gives 200 /healthz -H "Host: localhost:$port" && gives 200 /healthz -H "Host: [::1]:$port"'
is "a page of another origin reads nothing" eval 'for o in http://evil.example null "http://127.0.0.1:1" "http://127.0.0.1:$port.evil.example"; do gives 403 /healthz -H "Origin: $o" || exit 1; done'
is "... and writes nothing" eval 'for o in http://evil.example null; do gives 403 /healthz -X POST -H "$json" -d "{}" -H "Origin: $o" || exit 1; done'
is "... by Sec-Fetch-Site, too" eval 'gives 403 /healthz -H "Sec-Fetch-Site: cross-site" && gives 403 /openapi.json -H "Sec-Fetch-Site: same-site" -H "Sec-Fetch-Mode: no-cors" -H "Sec-Fetch-Dest: script"'
is "no CORS header, for anyone" eval '! head_of /healthz -H "Origin: http://evil.example" | grep -i access-control && ! head_of /healthz -X OPTIONS -H "Origin: http://evil.example" -H "Access-Control-Request-Method: POST" | grep -i access-control'
is "a link from elsewhere opens the page" gives 200 / -H 'Sec-Fetch-Site: cross-site' -H 'Sec-Fetch-Mode: navigate' -H 'Sec-Fetch-Dest: document'
is "the page itself may" eval 'gives 200 /healthz -H "Sec-Fetch-Site: same-origin" -H "Origin: $url"'
is "a form of another site cannot write" eval 'for t in text/plain application/x-www-form-urlencoded multipart/form-data; do gives 415 /healthz -X POST -H "Content-Type: $t" -d "{}" || exit 1; done'

# ---- paths ----
paths() { # no path of a file, in any spelling, gives one outside
    echo 'root:x:0:0' >"$tmp/outside"
    for p in /../outside /..%2foutside /%2e%2e/outside /%2e%2e%2foutside /....//outside /..%5coutside //outside /./../outside /etc/passwd //etc/passwd \
        /%2fetc%2fpasswd /api/runs/..%2foutside /api/runs/%2e%2e/files/outside /api/runs/..%2f/files/..%2foutside /api/jobs/..%2f..%2fetc%2fpasswd/log \
        /studio.css/../../outside /studio.js%00 /api/runs/%252e%252e%252foutside; do
        c=$(code "$p")
        case $c in 4??) ;; *) echo "$p: $c"; return 1 ;; esac
        ! grep -q root:x "$tmp/body" || { echo "$p: shown"; return 1; }
    done
}
is "no path leads out of the root" paths

# ---- secrets ----
shown() { # what any route answers that needs nothing
    get /openapi.json | tr ',' '\n' | grep -o '"/[^"{]*":{' | tr -d '":{' | sort -u >"$tmp/paths"
    grep -qx /healthz "$tmp/paths" || return 1
    while read -r p; do get "$p"; get "$p?q=$HF_TOKEN"; get "$p/$HF_TOKEN"; done <"$tmp/paths" >"$tmp/all" 2>&1
    ! grep -q "$HF_TOKEN" "$tmp/all"
}
is "a token of its environment shows in no answer" shown
is "... where a problem repeats the request" eval 'gives 404 "/$HF_TOKEN" && grep -qF "/*************************" "$tmp/body"'
mkdir -p "$root/runs/telling"
python3 -c '
import json, os, sys
json.dump({"program": "p", "status": "finished", "options": {"note": os.environ["QUOTED_SECRET"], "other": os.environ["S60_PASSWORD"]}}, open(sys.argv[1] + "/run.json", "w"))
json.dump({os.environ["QUOTED_SECRET"]: 1}, open(sys.argv[1] + "/report.json", "w"))
open(sys.argv[1] + "/metrics.jsonl", "w").write(json.dumps({"step": 1, os.environ["QUOTED_SECRET"]: 2}) + "\n")' "$root/runs/telling"
told() { get /api/runs/runs%2Ftelling >"$tmp/all" && grep -q '"note"' "$tmp/all"; }
hidden() {
    get "/api/runs/plot.svg?ids=runs%2Ftelling&metrics=%22quo%5Cted%22%20%26%20%3Cangled%3E" >>"$tmp/all"
    grep -q '<svg' "$tmp/all" && ! grep -e 'quo.*ted' -e angled -e number-60 "$tmp/all"
}
is "a run that tells secrets" await $server told
is "each of many is hidden, as JSON and XML spell them, too" hidden
is "nothing was said" test ! -s "$tmp/served"
is "it ends" stopped

# ---- an address that others reach ----
is "any other address" serve "$tmp/root" --host 0.0.0.0
token=$(sed -n 's/.*?token=//p' "$tmp/url") port=$(sed 's|/?.*||; s|.*:||' "$tmp/url")
url=http://127.0.0.1:$port
is "... has a token of 64 digits" eval 'printf %s "$token" | grep -qxE "[0-9a-f]{64}"'
is "... said once" test "$(grep -c . "$tmp/url")" = 1
is "without it: 401" eval 'gives 401 / && gives 401 /healthz -X POST -H "$json" -d "{}" && head_of / | grep -qi "^www-authenticate: Bearer"'
is "a wrong one: 401" eval 'gives 401 "/?token=$(echo "$token" | tr 0-9a-f 1-9a-f0)" && gives 401 "/?token=" && gives 401 / -H "Authorization: Bearer ${token}0" && gives 401 / -b "studio-$port=x"'
is "... and the answer does not tell it" eval '! grep -q "$token" "$tmp/body"'
is "Bearer" gives 200 /healthz -H "Authorization: Bearer $token"
is "the address sets a cookie and leaves the token out" eval 'gives 303 "/?token=$token" -c "$tmp/jar" && head_of "/?token=$token" | grep -qx "Location: /" && head_of "/?token=$token" | grep -qi "^set-cookie: .*; HttpOnly; SameSite=Strict; Path=/$"'
is "... by which the page is there" gives 200 / -b "$tmp/jar"
is "a page of others writes nothing, with the cookie" gives 403 /healthz -b "$tmp/jar" -X POST -H "$json" -d '{}' -H 'Origin: http://evil.example'
is "the token is in no argument and no message" eval '! tr "\0" "\n" </proc/$server/cmdline | grep -q "$token" && test ! -s "$tmp/served"'
is "it ends" stopped
is "the next start has another" eval 'serve "$tmp/root" --host 0.0.0.0 && ! grep -q "$token" "$tmp/url"'
finish
