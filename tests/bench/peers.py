"""peers.py - what the benches beside PyTorch share: a program watched from outside, rows, their ids, the command line's ends."""
import json, os, shutil, subprocess, sys, tempfile, threading, time

BUILD = os.environ.get("BUILD", "build")
THREADS = len(os.sched_getaffinity(0))


def watched(command, env=None, stdin=None):
    """Run it; its stdout, and the highest RssAnon (sampled every 20 ms) and VmHWM in bytes."""
    p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env=dict(os.environ, **(env or {})))
    peak = {"RssAnon": 0, "VmHWM": 0}

    def watch():
        while p.poll() is None:
            try:
                for line in open(f"/proc/{p.pid}/status"):
                    name = line.split(":")[0]
                    if name in peak:
                        peak[name] = max(peak[name], int(line.split()[1]) * 1024)
            except OSError:
                pass
            time.sleep(0.02)

    t = threading.Thread(target=watch)
    t.start()
    out, err = p.communicate(stdin)
    t.join()
    if p.returncode:
        sys.exit(f"{command[0]} ended with {p.returncode}:\n{out[-2000:]}{err[-3000:]}")
    return out, peak


def worker(job):
    """The calling program again as --worker, in a process of its own, which reads the job and prints an object."""
    out, peak = watched([sys.executable, sys.argv[0], "--worker"], {"OMP_NUM_THREADS": str(THREADS)}, json.dumps(job))
    return json.loads(out.splitlines()[-1]), peak


def steps(run, tokens):
    """Seconds of each step of one of our runs, all of so many tokens."""
    lines = [json.loads(line) for line in open(os.path.join(run, "metrics.jsonl"))]
    assert all(line["tokens"] == tokens for line in lines), "rows are too short"
    return [line["step_s"] for line in lines]


def long_rows(path, model, length):
    """Rows of the sample set put together until they are longer than that, to the path; the ids of the first 32."""
    text = [json.loads(line)["text"] for line in open("datasets/stories.jsonl")]
    each = 3 + length // 60
    with open(path, "w") as f:
        for i in range(0, len(text) - each, each):
            f.write(json.dumps({"text": " ".join(text[i:i + each])}) + "\n")
    out = subprocess.run([f"{BUILD}/tokenize", "--model", model], stdin=open(path), capture_output=True, text=True, check=True)
    return [json.loads(line)["ids"][:length] for line in out.stdout.splitlines()][:32]


def with_model(measure):
    """measure(model, tmp) with smollm2-135m's shape in a folder of its own."""
    tmp = tempfile.mkdtemp()
    try:
        model = os.path.join(tmp, "model")
        subprocess.run([f"{BUILD}/init_model", "--like", "smollm2-135m", "--seed", "1", "--dtype", "float32", model], check=True,
                       stdout=subprocess.DEVNULL)
        measure(model, tmp)
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
