"""hub_server.py FOLDER - a hub and its CDN on two loopback ports, for test_download.sh; badly behaved on request.

FOLDER holds the files of the one repository, owner/tiny, which is a model and a data set; names ending in .safetensors and
.parquet are LFS: their resolve address redirects to the CDN's port. What was asked is written to FOLDER/../log, one line each: server, method, path, Range,
Authorization. Behaviour is read from the file FOLDER/../mode at each request, any of these words:
  auth         resolve and tree answer 401 without the right token     gated   403 even with it
  break        the CDN closes the connection in the middle, once per file
  norange      the CDN ignores Range                                   garble  the CDN changes a byte
  wrongetag    resolve sends another ETag than the tree lists          notree  the tree answers no JSON
  pages        the tree comes in pages of two files                    silent  the CDN never sends more than half
and, as an enemy:
  endless      the CDN sends chunks without end, and no length         drip    the CDN sends a byte of a connection
  globs        resolve redirects to 100,000 addresses for curl         nested  the tree lists a file that is a folder, too
  longsha      the commit has 3 MB                                     lines   the commit stands behind 3 million line ends
  many         the tree lists 300,000 files more                       names   ... names with escape sequences
  huge         ... a size of 23 digits                                 climbs  ... names that lead out of the folder, or hide
  shorthash    ... a hash of 39 digits                                 pathhash  ... a hash that is a path
  pathcommit   the commit is a path                                    forever the tree has 150 pages
  circles      the hub redirects to itself again and again             around  the CDN does
  plain        resolve redirects to https, the CDN from there to http  longer  the CDN sends a byte more, and says so
Prints its two ports on one line, then serves until the process that started it ends.
"""
import hashlib
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit

ROOT = sys.argv[1]
PARENT = os.getppid()
COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_secretForTests"
EVIL = b"evil\n"
broken = set()


def beside(name):
    return os.path.join(ROOT, "..", name)


def mode():
    try:
        with open(beside("mode")) as f:
            return f.read().split()
    except OSError:
        return []


def read(name):
    path = os.path.join(ROOT, name)
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as f:
        return f.read()


def blob(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def lfs(name):
    return name.endswith((".safetensors", ".parquet"))


def enemy(m, entries):
    """What a hostile hub adds to its listing."""
    if "nested" in m:
        more = ["x.parquet", "x.parquet/y.parquet"]
    elif "many" in m:
        more = ["data/f%06d.txt" % i for i in range(300000)] + ['data/a\\"b.txt', 'data/{"]}.txt']
    elif "names" in m:
        more = ["data/\x1b]0;pwned\x07.parquet", "data/\x9b31m.jsonl"]
    elif "climbs" in m:
        names = ("../out", "data/../../out", "a//b", "/out", ".hidden", "-rf", "data/.hidden", "data/-rf")
        more = [name + end for name in names for end in (".parquet", ".safetensors")]
        more += ["tokenizer/../../../out.json", "tokenizer/sub.json"]
    else:
        more = []
    config = next((e for e in entries if e["path"] == "config.json"), {})
    if "huge" in m:
        config["size"] = 99999999999999999999999
    if "shorthash" in m:
        config["oid"] = "1" * 39
    if "pathhash" in m:
        config["oid"] = "../" * 13 + "x"
    return [{"type": "file", "oid": blob(EVIL), "size": len(EVIL), "path": p} for p in more] + entries


def listing():
    entries = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": "onnx"}]
    for folder, _, names in sorted(os.walk(ROOT)):
        for name in sorted(names):
            data = read(os.path.relpath(os.path.join(folder, name), ROOT))
            e = {"type": "file", "oid": blob(data), "size": len(data)}
            if lfs(name):
                e["oid"] = blob(b"pointer")
                e["lfs"] = {"oid": sha256(data), "size": len(data), "pointerSize": 134}
                e["xetHash"] = "f" * 64
            e["path"] = os.path.relpath(os.path.join(folder, name), ROOT)
            entries.append(e)
    return entries


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, code, body=b"", **headers):
        self.send_response(code)
        for k, v in headers.items():
            self.send_header(k.replace("_", "-"), v)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        with open(beside("log"), "a") as f:
            f.write(" ".join([type(self).__name__, self.command, self.path, self.headers.get("Range", "-"),
                              self.headers.get("Authorization", "-").replace(" ", "_")]) + "\n")
        self.serve(urlsplit(self.path), mode())


class Hub(Handler):
    def serve(self, url, m):
        allowed = self.headers.get("Authorization") == "Bearer " + TOKEN
        if "auth" in m and not allowed:
            return self.answer(401, b'{"error":"Invalid credentials"}', X_Error_Code="GatedRepo")
        path = url.path.replace("/api/datasets/", "/api/models/")
        if path in (f"/api/models/owner/tiny/revision/{r}" for r in ("main", "v1", "refs%2Fpr%2F1", COMMIT)):
            files = [{"rfilename": e["path"], "sha": "wrong"} for e in listing() if e["type"] == "file"]
            model = {"_id": "1", "id": "owner/tiny", "siblings": files, "sha": COMMIT, "tags": ["x\\\"}]{"]}
            if "longsha" in m:
                model["sha"] = "a" * 3000000
            if "pathcommit" in m:
                model["sha"] = "../../main"
            if "lines" in m:
                model["sha"] = "0" * 65
            return self.answer(200, (b"\n" * 3000000 if "lines" in m else b"") + json.dumps(model).encode())
        if path == f"/api/models/owner/tiny/tree/{COMMIT}":
            return self.tree(parse_qs(url.query), m)
        for prefix in (f"/owner/tiny/resolve/{COMMIT}/", f"/datasets/owner/tiny/resolve/{COMMIT}/"):
            if url.path.startswith(prefix):
                return self.resolve(unquote(url.path[len(prefix):]), m)
        if url.path.startswith("/cache/"):
            data = read(unquote(url.path[7:]))
            return self.answer(200, data, ETag=f'W/"{blob(data)}"', X_Repo_Commit=COMMIT)
        if "climbs" in m:
            return self.answer(200, EVIL)
        self.answer(404, b"{}")

    def tree(self, query, m):
        if "notree" in m:
            return self.answer(200, b'[{"type":"file","path":"config.json')
        entries = enemy(m, listing())
        if "pages" not in m and "forever" not in m:
            return self.answer(200, json.dumps(entries, indent=None if "many" in m else 1, ensure_ascii="names" not in m).encode())
        at = int(query.get("cursor", ["0"])[0])
        link = f'<http://127.0.0.1:{hub.server_port}/api/models/owner/tiny/tree/{COMMIT}?recursive=true&cursor={at + 2}>; rel="next"'
        more = at + 2 < max(len(entries), 300 if "forever" in m else 0)
        self.answer(200, json.dumps(entries[at : at + 2]).encode(), **({"Link": link} if more else {}))

    def resolve(self, name, m):
        hop = int(parse_qs(urlsplit(self.path).query).get("hop", ["0"])[0])
        if "circles" in m and hop < 20:
            return self.answer(302, Location=f"{urlsplit(self.path).path}?hop={hop + 1}")
        data = read(name)
        if data is None and "climbs" in m:
            data = EVIL
        if data is None:
            return self.answer(404)
        if "gated" in m:
            return self.answer(403, X_Error_Code="GatedRepo")
        etag = sha256(data) if lfs(name) else blob(data)
        if "wrongetag" in m:
            etag = "1" * len(etag)
        to = f"http://127.0.0.1:{cdn.server_port}/{quote(name)}?sign=a%2Fb&c=d" if lfs(name) else f"/cache/{quote(name)}"
        if "plain" in m and lfs(name):
            to = to.replace("http", "https", 1)
        if "globs" in m and lfs(name):
            to = f"http://127.0.0.1:{cdn.server_port}/[1-100000]"
        self.answer(302, Location=to, X_Linked_Etag=f'"{etag}"', X_Linked_Size=str(len(data)), X_Repo_Commit=COMMIT)


class Cdn(Handler):
    def serve(self, url, m):
        if self.command == "HEAD":  # as signed addresses do
            return self.answer(403)
        name = unquote(url.path[1:])
        data = read(name)
        if data is None:
            return self.answer(404)
        if "plain" in m and "again" not in url.query:
            return self.answer(302, Location=f"http://127.0.0.1:{cdn.server_port}{self.path}&again")
        if "around" in m and url.query.count("again") < 100:
            return self.answer(302, Location=f"{self.path}&again")
        if "longer" in m:
            data += b"x"
        if "endless" in m:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            sent = 0
            try:
                while sent < 3000:
                    self.wfile.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
                    sent += 1
            except OSError:
                pass
            with open(beside("log"), "a") as f:
                f.write(f"Cdn sent {sent}\n")
            self.close_connection = True
            return None
        if "garble" in m:
            data = data[:-1] + bytes([data[-1] ^ 1])
        begin = 0
        if "norange" not in m and self.headers.get("Range", "").startswith("bytes="):
            begin = int(self.headers["Range"][6:].split("-")[0])
            if begin >= len(data):
                return self.answer(416)
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        self.send_header("ETag", '"' + "9" * 64 + '"')
        self.send_header("Content-Length", str(len(data) - begin))
        self.end_headers()
        end = len(data)
        if ("break" in m and name not in broken) or "silent" in m:
            broken.add(name)
            end = max(begin, len(data) // 2)
        if "drip" in m:
            end = begin + 1
        self.wfile.write(data[begin:end])
        self.close_connection = True


hub = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
cdn = ThreadingHTTPServer(("127.0.0.1", 0), Cdn)
for s in (hub, cdn):
    threading.Thread(target=s.serve_forever, daemon=True).start()
print(hub.server_port, cdn.server_port, flush=True)
while os.getppid() == PARENT:
    time.sleep(1)
