"""tools/download.sh and the hub's own Python client understand each other's folders.

Both fetch from tests/hub_server.py. The client, given a folder that download.sh made, must find every file right by its
.metadata and fetch none; what the client fetched, download.sh must keep.
"""
import os
import subprocess
import sys
import tempfile

import tap

os.environ["HF_HUB_OFFLINE"] = "0"
os.environ["HF_HUB_DISABLE_XET"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "*"
for name in ("HF_TOKEN", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
    os.environ.pop(name, None)


def fetched(root):
    with open(os.path.join(root, "log")) as f:
        lines = [line.split() for line in f]
    open(os.path.join(root, "log"), "w").close()
    return [x[2] for x in lines if x[1] == "GET" and not x[2].startswith("/api/")]


def main(root):
    repo = os.path.join(root, "repo")
    os.mkdir(repo)
    for name, data in {"config.json": b'{"model_type": "llama"}', "tokenizer.json": b"{}", "model.safetensors": os.urandom(200000)}.items():
        with open(os.path.join(repo, name), "wb") as f:
            f.write(data)
    server = subprocess.Popen([sys.executable, "tests/hub_server.py", repo], stdout=subprocess.PIPE, text=True)
    try:
        os.environ["HF_ENDPOINT"] = "http://127.0.0.1:" + server.stdout.readline().split()[0]
        os.environ["HF_HOME"] = os.path.join(root, "home")
        from huggingface_hub import snapshot_download

        ours, theirs = os.path.join(root, "ours"), os.path.join(root, "theirs")
        run = subprocess.run(["sh", "tools/download.sh", "owner/tiny", ours], capture_output=True, text=True)
        tap.ok(run.returncode == 0 and len(fetched(root)) == 3, "download.sh fetches three files", run.stderr)
        snapshot_download("owner/tiny", local_dir=ours)
        tap.ok(not fetched(root), "the hub's client fetches none of them again")
        snapshot_download("owner/tiny", local_dir=theirs)
        tap.ok(len(fetched(root)) == 3, "the hub's client fetches three files into a new folder")
        run = subprocess.run(["sh", "tools/download.sh", "owner/tiny", theirs], capture_output=True, text=True)
        tap.ok(run.returncode == 0 and not fetched(root), "download.sh fetches none of them again", run.stderr)
        for name in os.listdir(repo):
            a, b = (open(os.path.join(d, ".cache/huggingface/download", name + ".metadata")).read().split() for d in (ours, theirs))
            tap.ok(a[:2] == b[:2], f"{name}.metadata: the same commit and hash", f"{a} {b}")
        sets = {"data/train-00000-of-00001.parquet": os.urandom(90000), "rows.csv": b"a,b\n"}
        os.mkdir(os.path.join(repo, "data"))
        for name, data in sets.items():
            with open(os.path.join(repo, name), "wb") as f:
                f.write(data)
        ours, cache = os.path.join(root, "set"), os.path.join(root, "home/hub")
        run = subprocess.run(["sh", "tools/download.sh", "--dataset", "owner/tiny", ours], capture_output=True, text=True)
        tap.ok(run.returncode == 0 and len(fetched(root)) == 1, "download.sh fetches a data set's Parquet file", run.stderr)
        snapshot_download("owner/tiny", repo_type="dataset", local_dir=ours, allow_patterns=["data/*"])
        tap.ok(not fetched(root), "the hub's client does not fetch it again")
        snapshot_download("owner/tiny", repo_type="dataset")
        tap.ok(os.listdir(os.path.join(cache, "datasets--owner--tiny/snapshots")), "in the client's cache it lies where it is looked for")
    finally:
        server.kill()
        server.wait()


with tempfile.TemporaryDirectory() as root:
    main(root)
tap.done()
