"""The event files of --logger tensorboard, read by TensorBoard itself: every number of metrics.jsonl is there, and no other; also
of a run that was killed between two checkpoints and goes on from the first of them."""
import csv
import json
import math
import os
import subprocess
import sys
import tempfile
import time

import numpy
import tap
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

BUILD = os.environ.get("BUILD", "build")
TAGS = {"step_s": "train/step_seconds", "tokens_per_s": "train/tokens_per_second", "eval_loss": "eval/loss",
        "eval_perplexity": "eval/perplexity"}
TAGS |= {name: "train/" + name for name in ("loss", "grad_norm", "lr", "epoch", "elapsed_s", "rows", "tokens", "padded_tokens", "labels")}


def run(*arguments):
    subprocess.run([os.path.join(BUILD, arguments[0]), *arguments[1:]], check=True, stdout=subprocess.DEVNULL)


def metrics(folder):
    with open(os.path.join(folder, "metrics.jsonl")) as f:
        return [json.loads(line) for line in f]


def scalars(folder):
    events = EventAccumulator(folder, size_guidance={"scalars": 0})
    events.Reload()
    return {tag: events.Scalars(tag) for tag in events.Tags()["scalars"]}


def equal(folder, begin):
    """Why what TensorBoard reads from the folder is not what metrics.jsonl holds; None if it is."""
    lines, read = metrics(folder), scalars(folder)
    expected = {}
    for line in lines:
        for name, value in line.items():
            if name != "step":
                expected.setdefault(TAGS[name], []).append((line["step"], value))
    if set(expected) != set(read):
        return f"tags {sorted(read)}, expected {sorted(expected)}"
    for tag, points in expected.items():
        got = [(e.step, e.value) for e in read[tag]]
        want = [(step, float(numpy.float32(value))) for step, value in points]
        if got != want:
            return f"{tag}: {got[:5]}, expected {want[:5]}"
        times = [e.wall_time for e in read[tag]]
        if times != sorted(times) or times[0] < begin - 1 or times[-1] > time.time() + 1:
            return f"{tag}: wall times from {times[0]} to {times[-1]}, the test began at {begin}"


def table(folder):
    with open(os.path.join(folder, "metrics.csv"), newline="") as f:
        rows = [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(f)]
    return None if rows == metrics(folder) else f"{rows[:2]}, expected {metrics(folder)[:2]}"


def killed(folder):
    """Starts a run, and kills it some steps behind its second checkpoint; the last step it wrote."""
    process = subprocess.Popen([os.path.join(BUILD, "finetune_full"), "--model", "model", "--dataset", DATA, "--max-length", "48",
                                "--max-steps", "4000", "--lr", "1e-4", "--train-split", "0.95", "--eval-every", "70", "--save-every",
                                "100", "--logger", "csv,tensorboard", "--threads", "1", "--output", folder], stdout=subprocess.DEVNULL)
    path = os.path.join(folder, "metrics.jsonl")
    while process.poll() is None and not (os.path.exists(path) and b'"step":150' in open(path, "rb").read()):
        time.sleep(0.01)
    process.kill()
    process.wait()
    return max(json.loads(line)["step"] for line in open(path, "rb").read().splitlines(True) if line.endswith(b"\n"))


def main(root):
    os.chdir(root)
    begin = time.time()
    run("init_model", "--layers", "1", "--hidden-size", "32", "--intermediate-size", "64", "--heads", "2", "--kv-heads", "1",
        "--vocab-size", "300", "--max-positions", "64", "--seed", "1", "model")
    run("finetune_full", "--model", "model", "--dataset", DATA, "--max-length", "48", "--max-steps", "30", "--lr", "1e-3",
        "--train-split", "0.95", "--eval-every", "7", "--log-every", "4", "--logger", "jsonl,csv,tensorboard", "--output", "run")
    tap.case("every number of a run, under its tag, at its step", equal, "run", begin)
    tap.case("metrics.csv holds the same", table, "run")
    tap.ok(math.isfinite(scalars("run")["eval/perplexity"][-1].value), "perplexity is a number")
    begin = time.time()
    last = killed("again")
    tap.ok(150 <= last < 4000, "a run is killed between two checkpoints", last)
    run("finetune_full", "--resume", "again", "--stop-at-step", str(last + 30))
    tap.ok(metrics("again")[-1]["step"] == last + 30, "it goes on from the last of them")
    tap.case("TensorBoard has each step once, those made again in the place of those that were lost", equal, "again", begin)
    tap.case("and so has metrics.csv", table, "again")


DATA = os.path.abspath("datasets/stories.jsonl")
BUILD = os.path.abspath(BUILD)
with tempfile.TemporaryDirectory() as root:
    main(root)
    os.chdir("/")
tap.done()
