"""What `runs export` writes, read back by the packages themselves: csv by Python's csv, event files by TensorBoard, both by trackio's
imports. Every number of metrics.jsonl is there under its name, at its step and time, and no other; also of a run that went on."""
import contextlib
import csv
import datetime
import io
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy
import tap

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
DATA = os.path.abspath("datasets/stories.jsonl")
TAGS = {"step_s": "train/step_seconds", "tokens_per_s": "train/tokens_per_second"}


def run(*arguments):
    done = subprocess.run([os.path.join(BUILD, arguments[0]), *arguments[1:]], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr}")
    return done.stdout


def lines(folder):
    with open(os.path.join(folder, "metrics.jsonl")) as f:
        return [json.loads(line) for line in f]


def tag(name):
    return "eval/" + name[5:] if name.startswith("eval_") else TAGS.get(name, "train/" + name)


def times(folder):
    """When each line was written: the start of its session, and the seconds of its steps since. Sessions tell whole seconds."""
    with open(os.path.join(folder, "run.json")) as f:
        sessions = json.load(f)["sessions"]
    found, before, elapsed, last = [], 0, 0, None
    for line in lines(folder):
        session = [s for s in sessions if s["from_step"] < line["step"]][-1]
        if session is not last:
            last, before = session, elapsed
        elapsed = line.get("elapsed_s", elapsed)
        found.append(datetime.datetime.fromisoformat(session["started"]).timestamp() + elapsed - before)
    return found


def table(folder, path):
    with open(path, newline="") as f:
        rows = [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(f)]
    return "" if rows == lines(folder) else f"{rows[:2]}, expected {lines(folder)[:2]}"


def board(folder, out):
    """Event files as TensorBoard's own reader has them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    events = EventAccumulator(out, size_guidance={"scalars": 0})
    events.Reload()
    read = {t: [(e.step, e.value, e.wall_time) for e in events.Scalars(t)] for t in events.Tags()["scalars"]}
    want = {}
    for line, when in zip(lines(folder), times(folder)):
        for name, value in line.items():
            if name != "step":
                want.setdefault(tag(name), []).append((line["step"], float(numpy.float32(value)), when))
    if set(read) != set(want):
        return f"tags {sorted(read)}, expected {sorted(want)}"
    for t in want:
        if [p[:2] for p in read[t]] != [p[:2] for p in want[t]] or any(abs(a[2] - b[2]) > 1e-5 for a, b in zip(read[t], want[t])):
            return f"{t}: {read[t][:3]}, expected {want[t][:3]}"
    return ""


def trackio_names(said):
    """The names that the program says it changed."""
    found = [line for line in said.splitlines() if line.startswith("# trackio keeps")]
    return dict(re.findall(r"(\S+) is (\S+?)(?:,|$)", found[0].split(": ", 1)[1])) if found else {}


def stored(project, name):
    from trackio.sqlite_storage import SQLiteStorage
    return SQLiteStorage.get_logs(project, name)


def by_csv(folder, path, said):
    import trackio
    names = trackio_names(said)
    if names.get("grad_norm") != "gradnorm" or names.get("eval_perplexity") != "evalperple":
        return f"the changed names are not told: {said}"
    with contextlib.redirect_stdout(io.StringIO()):
        trackio.import_csv(path, project="by-csv", name="first")
    got, want = stored("by-csv", "first"), lines(folder)
    if len(got) != len(want):
        return f"{len(got)} rows, expected {len(want)}"
    for row, line, when in zip(got, want, times(folder)):
        stamp = datetime.datetime.fromisoformat(row.pop("timestamp")).timestamp()
        expected = {names.get(k, k): v for k, v in line.items()}
        if row != expected or abs(stamp - when) > 1e-5:
            return f"{row} at {stamp}, expected {expected} at {when}"
    return ""


def by_events(runs, out):
    """All runs in one project, with whole names."""
    import trackio
    from trackio.sqlite_storage import SQLiteStorage
    with contextlib.redirect_stdout(io.StringIO()):
        trackio.import_tf_events(out, project="by-events")
    if sorted(SQLiteStorage.get_runs("by-events")) != sorted(runs):
        return f"runs {SQLiteStorage.get_runs('by-events')}, expected {list(runs)}"
    for name, folder in runs.items():
        got = sorted((row["step"], k, v) for row in stored("by-events", name) for k, v in row.items() if k not in ("step", "timestamp"))
        want = sorted((line["step"], tag(k), float(numpy.float32(v))) for line in lines(folder) for k, v in line.items() if k != "step")
        if got != want:
            return f"{name}: {len(got)} numbers, expected {len(want)}; {got[:3]}, expected {want[:3]}"
    return ""


def main(root):
    os.chdir(root)
    os.environ["TRACKIO_DIR"] = os.path.join(root, "trackio")
    run("init_model", "--layers", "1", "--hidden-size", "32", "--intermediate-size", "64", "--heads", "2", "--kv-heads", "1",
        "--vocab-size", "300", "--max-positions", "64", "--seed", "1", "model")
    train = ["finetune_full", "--model", "model", "--dataset", DATA, "--max-length", "32", "--train-split", "0.95", "--eval-every", "7", "--threads", "1"]
    run(*train, "--max-steps", "30", "--lr", "1e-3", "--output", "runs/first")
    run(*train, "--max-steps", "24", "--lr", "1e-4", "--output", "runs/second", "--stop-at-step", "10")
    run("finetune_full", "--resume", "runs/second")
    run("runs", "export", "--output", "tables")
    run("runs", "export", "--format", "tensorboard", "--output", "boards")
    said = run("runs", "export", "first", "--format", "trackio", "--output", "for-trackio")
    runs = {"first": "runs/first", "second": "runs/second"}
    tap.ok(len(json.load(open("runs/second/run.json"))["sessions"]) == 2 and lines("runs/second")[-1]["step"] == 24, "a run has two sessions")
    for name, folder in runs.items():
        tap.case(f"{name}: csv", table, folder, f"tables/{name}.csv")
        tap.case(f"{name}: TensorBoard's reader has every number at its step and time", board, folder, f"boards/{name}")
    tap.case("trackio.import_csv: names as they were told, steps, times", by_csv, "runs/first", "for-trackio/first.csv", said)
    tap.case("trackio.import_tf_events: both runs in one project", by_events, runs, "boards")


with tempfile.TemporaryDirectory() as root:
    main(root)
    os.chdir("/")
tap.done()
