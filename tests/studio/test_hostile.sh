#!/bin/sh
# test_hostile.sh - files of strangers and requests that want too much: the studio refuses, says so, and stays small.
. tests/tap.sh
. tests/studio/server.sh
export HF_TOKEN=hf_secret_of_this_test
root=$tmp/root
mkdir -p "$root/runs/a" "$tmp/outside"
# run FOLDER - a run that has ended.
run() {
    mkdir -p "$1"
    echo '{"program":"finetune_full","status":"finished","started":"2026-11-20T10:00:00Z","options":{"lr":0.1,"note":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}' >"$1/run.json"
    printf '{"step":1,"loss":3}\n{"step":2,"loss":2}\n' >"$1/metrics.jsonl"
}
run "$root/runs/a"
ask() { get "$1" >"$tmp/answer" && python3 -c 'import json,sys; d = json.load(open(sys.argv[1])); v = eval(sys.argv[2]); v or print(str(d)[:900]); sys.exit(not v)' "$tmp/answer" "$2"; }
command -v python3 >/dev/null || { skip "hostile files" "no python3"; finish; }
# peak - the most memory that the server had, in KiB.
peak() { sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$server/status"; }
# stays KIB COMMAND... - whether the server's peak is below that afterwards, except where sanitized.
stays() { most=$1; shift; "$@" || return 1; sanitized || [ "$(peak)" -lt "$most" ] || { echo "peak $(peak) KiB"; return 1; }; }
is "a server" serve "$root"
indexed() { get '/api/runs?limit=0' | grep -q '"indexed":true'; }
is "its index" await $server indexed

# ---- expressions ----
search() { python3 -c 'import sys, urllib.parse; print("/api/runs?regex=true&search=" + urllib.parse.quote(sys.argv[1]))' "$1"; }
costly() { for e in '((((a{1,50}){1,50}){1,50}){1,50}' 'a{1,20000}' '(a*)*\1' "$(printf '%4000s' | tr ' ' '(')"; do gives 400 "$(search "$e")" || return 1; done; }
is "expressions that take gigabytes or years are refused" stays 100000 costly
is "... others are not" ask "$(search 'a{30,32}$')" 'len(d["runs"]) == 1'

# ---- files without an end of line ----
head -c 300000000 /dev/zero | tr '\0' x >"$root/runs/a/log.txt"
{ echo; echo "error: last"; } >>"$root/runs/a/log.txt"
is "a log that is one long line" stays 100000 ask '/api/runs/runs%2Fa/log?search=xxx&limit=10' 'd["text"] == "x" * 10 and d["size"] > d["searched"] > 10**8 and len(d["matches"]) == 1000 and len(d["matches"][0]["line"]) == 500'
is "... and its end" ask '/api/runs/runs%2Fa/log?offset=299990000&limit=100000' 'd["next"] == d["size"] == d["searched"] and len(d["errors"]) == 1'
{ echo '{"step":1}'; head -c 100000000 /dev/zero | tr '\0' x; echo; echo '{"step":2}'; } >"$root/runs/a/samples.jsonl"
is "previews with such a line, which is counted" stays 100000 ask /api/runs/runs%2Fa/previews '[r["step"] for r in d["rows"]] == [1, 2] and d["unreadable"] == 1 and d["total"] == d["next"] == 3'
python3 -c '
for i in range(40): print("{\"step\":%d,\"text\":\"%s\"}" % (i, "y" * 1000000))' >"$root/runs/a/samples.jsonl"
is "large rows come in parts" stays 100000 ask /api/runs/runs%2Fa/previews '16 <= len(d["rows"]) < 20 and d["next"] == len(d["rows"]) and d["total"] == 40'
is "... the rest after next" ask '/api/runs/runs%2Fa/previews?offset=38' '[r["step"] for r in d["rows"]] == [38, 39] and d["next"] == 40'
rm "$root/runs/a/log.txt" "$root/runs/a/samples.jsonl"

# ---- links out of the root ----
run "$tmp/outside/theirs"
echo '{"loss_last":42,"secret":"outside"}' >"$tmp/outside/theirs/report.json"
echo "a line of outside" >"$tmp/outside/log.txt"
for f in run.json metrics.jsonl report.json; do
    run "$root/runs/linked-${f%%.*}"
    ln -sf "$tmp/outside/theirs/$f" "$root/runs/linked-${f%%.*}/$f"
done
run "$root/shared"
run "$root/runs/inside"
ln -sf ../../shared/run.json "$root/runs/inside/run.json"
ln -s "$tmp/outside" "$root/runs/folder"
mkdir "$root/runs/$(printf 'no-\377-utf8')"
ln -s "$tmp/outside/log.txt" "$root/runs/a/log.txt"
linked() { ask /api/runs 'd["leading_out"] == 3'; }
is "run.json, metrics.jsonl and report.json that lead out are counted" await $server linked
is "... their runs are broken, and say where they lead" ask '/api/runs?search=linked' 'len(d["runs"]) == 3 and all(r["state"] == "broken" and "outside" in r["reason"] and r["id"] for r in d["runs"])'
is "... and nothing of them is shown" eval '! get /api/runs | grep -q loss_last && for f in run metrics report; do get /api/runs/runs%2Flinked-$f >>"$tmp/shown" && get "/api/runs/curves?ids=runs%2Flinked-$f&metric=loss" >>"$tmp/shown" && get "/api/runs/metrics.csv?ids=runs%2Flinked-$f" >>"$tmp/shown"; done; ! grep -q "\"secret\"" "$tmp/shown" && ask /api/runs/runs%2Flinked-run "d[\"run\"] is None" && ask "/api/runs/curves?ids=runs%2Flinked-metrics&metric=loss" "d[\"curves\"] == []"'
is "a link that stays in the root is read" ask /api/runs/runs%2Finside 'd["state"] == "finished" and d["run"]["options"]["lr"] == .1'
is "links to folders, and names that are no UTF-8, are counted" ask /api/runs 'd["folders_linked"] == 1 and d["folders_not_utf8"] == 1'
is "a log that leads out is refused, not empty" eval 'gives 403 /api/runs/runs%2Fa/log && ! grep -q "a line" "$tmp/body"'

# ---- downloads ----
head -c 400000000 /dev/zero | tr '\0' z >"$root/runs/a/large.bin"
several() { # of them at once, and each whole
    for i in 1 2 3 4; do get /api/runs/runs%2Fa/files/large.bin | wc -c >"$tmp/down$i" & pids="$pids $!"; done
    wait $pids
    for i in 1 2 3 4; do [ "$(cat "$tmp/down$i")" = 400000000 ] || return 1; done
}
pids=
is "large files are sent without holding them" stays 100000 several
rm "$root/runs/a/large.bin"
: >"$root/runs/a/empty.txt"
is "an empty one is sent, too" eval 'gives 200 /api/runs/runs%2Fa/files/empty.txt && [ ! -s "$tmp/body" ]'
python3 -c '
import sys
sys.stdout.write("".join("x" * (4096 - 7) + "hf_secret_of_this_test" for i in range(100)))' >"$root/runs/a/telling.txt"
is "a secret is hidden wherever it stands in a file" eval 'get /api/runs/runs%2Fa/files/telling.txt >"$tmp/body" && [ "$(wc -c <"$tmp/body")" = "$(wc -c <"$root/runs/a/telling.txt")" ] && ! grep -q hf_secret "$tmp/body" && [ "$(tr -dc "*" <"$tmp/body" | wc -c)" = 2200 ]'

# ---- runs that vanish ----
vanishes() { # while the index still has it
    run "$root/runs/gone"
    await $server ask /api/runs/runs%2Fgone 'd["step"] == 2' && rm -r "$root/runs/gone" && gives 404 /api/runs/runs%2Fgone && gives 404 '/api/runs/curves?ids=runs%2Fgone&metric=loss' && gives 404 '/api/runs/plot.svg?ids=runs%2Fgone'
}
is "a run that was removed just now is not found" vanishes

# ---- the answers and their description ----
cat >"$tmp/openapi.py" <<'END'
import json, re, sys, urllib.error, urllib.parse, urllib.request
url = sys.argv[1]
def ask(method, path, body=None):
    q = urllib.request.Request(url + path, method=method, data=None if body is None else json.dumps(body).encode(), headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(q, timeout=60) as f:
            return f.status, f.headers, f.read()
    except urllib.error.HTTPError as e:
        return e.code, e.headers, e.read()
d = json.loads(ask("GET", "/openapi.json")[2])
assert d["openapi"] == "3.1.0" and d["info"]["title"] and d["info"]["version"]
seen, routes = set(), 0
sample = {"string": "x", "integer": 1, "number": 1, "boolean": True}
def value(schema):
    return schema["enum"][0] if "enum" in schema else schema["minimum"] if "minimum" in schema and schema["minimum"] > 0 else sample.get(schema.get("type"), {})
for path, item in d["paths"].items():
    for method, o in item.items():
        routes += 1
        assert method in ("get", "post", "put", "patch", "delete") and o["operationId"] not in seen and o["summary"] and o["tags"], (path, method)
        seen.add(o["operationId"])
        names = {p["name"] for p in o.get("parameters", []) if p["in"] == "path"}
        assert names == set(re.findall(r"{([^}]*)}", path)), path
        assert len({(p["in"], p["name"]) for p in o.get("parameters", [])}) == len(o.get("parameters", []))
        for p in o.get("parameters", []):
            assert p["in"] in ("path", "query") and isinstance(p["required"], bool) and (p["required"] or p["in"] == "query") and p["schema"] and p["description"], (path, p)
        body = o.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        if body:
            assert body["type"] == "object" and set(body["required"]) <= set(body["properties"]) and body["additionalProperties"] is False, path
        # Each route answers with a documented status and type, to a request of the described form and to bad ones.
        real = re.sub(r"{[^}]*}", "none", path)
        need = [p for p in o.get("parameters", []) if p["in"] == "query" and p["required"]]
        query = urllib.parse.urlencode({p["name"]: value(p["schema"]) for p in need})
        given = {k: value(body["properties"][k]) for k in body["required"]} if body else {}
        tries = [(real + ("?" + query if query else ""), given), (real + "?" + (query + "&" if query else "") + "no_such_parameter=1", given)]
        for p in o.get("parameters", []):
            if p["in"] == "query" and p["schema"].get("type") in ("integer", "number", "boolean"):
                tries.append((real + "?" + urllib.parse.urlencode({**{n["name"]: value(n["schema"]) for n in need}, p["name"]: "x"}), given))
        if body:
            tries += [(real, {**given, "no_such_member": 1}), (real, {k: [] for k in body["properties"]})]
        for i, (target, send) in enumerate(tries):
            code, head, text = ask(method.upper(), target, None if method == "get" else send)
            kind = head.get("Content-Type", "").split(";")[0]
            said = "200" if code == 200 else "default"
            assert said in o["responses"], (path, code)
            assert any(kind == k.split(";")[0] for k in o["responses"][said]["content"]), (method, target, code, kind)
            assert code < 500, (method, target, code, text[:300])
            assert i == 0 or code in (400, 404), (method, target, code, text[:200])
            if kind.endswith("json") and kind != "application/x-ndjson":
                j = json.loads(text)
                if code != 200:
                    assert j["status"] == code and j["title"] and j["detail"] and j["type"] == "about:blank", (target, j)
print(routes)
END
is "every route answers as /openapi.json says" python3 "$tmp/openapi.py" "$url"

is "it ends" stopped
finish
