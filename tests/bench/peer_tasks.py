#!/usr/bin/env python3
"""peer_tasks.py - task files beside lm-evaluation-harness: the same model, rows, prompts, dtype and batch.

    python tests/bench/peer_tasks.py [--rounds 3] [--rows 32] [--batch 8] [--layers 30] [--dtype float32] [--brake both] [--only choices]

smollm2-135m's shape. Cases: multiple choice with four options of some words; with four letters behind five examples that all rows
share, as MMLU has them; and generation of 48 tokens. Rows per second are those between a few rows and all of them, so that reading
the model does not count. Each program runs in a process of its own, taking turns within a round; the best of each counts. lm-eval
runs with transformers in several ways (peers.ways): as it comes, and with MKL's brake released and memory kept; its fastest counts.
"""
import argparse, json, os, random, subprocess, sys, time

import peers
from peers import BUILD, THREADS

FEW = 8
SPLITS = "dataset_path: json\ndataset_kwargs:\n  data_files:\n    test: {folder}/{name}.jsonl\n    train: {folder}/{name}_train.jsonl\ntest_split: test\n"
TASKS = {
    "choices": ("output_type: multiple_choice\ndoc_to_text: \"{{question}}\\nAnswer:\"\ndoc_to_target: gold\ndoc_to_choice: options\n"
                "metric_list:\n  - metric: acc\n"),
    "letters": ("output_type: multiple_choice\ndoc_to_text: \"{{question}}\\nA. {{options[0]}}\\nB. {{options[1]}}\\nC. {{options[2]}}\\nD. {{options[3]}}\\nAnswer:\"\n"
                "doc_to_target: gold\ndoc_to_choice: [\"A\", \"B\", \"C\", \"D\"]\nfewshot_split: train\nfewshot_config:\n  sampler: first_n\nnum_fewshot: 5\n"
                "metric_list:\n  - metric: acc\n"),
    "generation": ("output_type: generate_until\ndoc_to_text: \"{{question}}\\nAnswer:\"\ndoc_to_target: gold\ngeneration_kwargs:\n  until: [\"@@@@\"]\n"
                   "  do_sample: false\n  max_gen_toks: 48\nmetric_list:\n  - metric: exact_match\n"),
}


def make_tasks(folder, count):
    rng = random.Random(3)
    words = " ".join(json.loads(line)["text"] for line in open("datasets/stories.jsonl")).split()

    def some(least, most):
        at = rng.randrange(len(words) - most)
        return " ".join(words[at:at + rng.randint(least, most)])
    for name, body in TASKS.items():
        for kind, rows in (("", count), ("_train", 8)):
            with open(f"{folder}/{name}{kind}.jsonl", "w") as f:
                for _ in range(rows):
                    f.write(json.dumps({"question": some(15, 60), "options": [some(2, 9) for _ in range(4)], "gold": rng.randint(0, 3)}) + "\n")
        with open(f"{folder}/{name}.yaml", "w") as f:
            f.write(f"task: {name}\n" + SPLITS.format(folder=folder, name=name) + body)


def worker(job):
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", DISABLE_MULTIPROC="1", LMEVAL_LOG_LEVEL="ERROR", HF_HOME=job["folder"] + "/hub")
    import torch
    import transformers
    from lm_eval import simple_evaluate
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(THREADS)
    lm = HFLM(pretrained=job["model"], dtype=job["dtype"], device="cpu", batch_size=job["batch"])
    manager = TaskManager(include_path=job["folder"], include_defaults=False)

    def seconds(rows):
        begin = time.perf_counter()
        simple_evaluate(model=lm, tasks=[job["task"]], task_manager=manager, limit=rows, log_samples=False)
        return time.perf_counter() - begin
    seconds(2)
    few = seconds(FEW)
    rate = (job["rows"] - FEW) / (seconds(job["rows"]) - few)
    peers.check_brake()
    print(json.dumps(dict(rate=rate, versions=f"PyTorch {torch.__version__}, transformers {transformers.__version__}, lm-eval 0.4.13")))


def ours(job):
    def seconds(rows):
        begin = time.perf_counter()
        subprocess.run([f"{BUILD}/evaluate", "--model", job["model"], "--tasks", f"{job['folder']}/{job['task']}.yaml", "--tasks-data", "/", "--limit", str(rows),
                        "--batch-size", str(job["batch"]), "--dtype", job["dtype"]], check=True, capture_output=True)
        return time.perf_counter() - begin
    few = seconds(FEW)
    return (job["rows"] - FEW) / (seconds(job["rows"]) - few)


def measure(args, model, tmp):
    make_tasks(tmp, args.rows)
    ways = peers.ways(tmp, args.brake)
    best, ratios, versions = {}, {}, ""
    for r in range(args.rounds):
        for task in args.only.split(","):
            job = dict(model=model, folder=tmp, task=task, rows=args.rows, batch=args.batch, dtype=args.dtype)
            mine, theirs = ours(job), {}
            for way, env in ways.items():
                said, _ = peers.worker(job, env)
                versions, theirs[way] = said["versions"], said["rate"]
                best[task, way] = max(said["rate"], best.get((task, way), 0))
            best[task, "tune.c"] = max(mine, best.get((task, "tune.c"), 0))
            ratios.setdefault(task, []).append(mine / max(theirs.values()))
            print(f"# round {r + 1} {task}: {mine:.3f} rows/s; lm-eval " + ", ".join(f"{way or 'as it comes'} {rate:.3f}" for way, rate in theirs.items()) +
                  f"; ratio {ratios[task][-1]:.2f}", flush=True)
    print(f"# {versions}; {args.dtype}, {THREADS} threads, batches of {args.batch}, {args.rows} rows, {args.layers} layers, {args.rounds} rounds")
    for task, list_ in ratios.items():
        theirs = {way: rate for (t, way), rate in best.items() if t == task and way != "tune.c"}
        way = max(theirs, key=theirs.get)
        print(f"{task:11} tune.c {best[task, 'tune.c']:.3f} rows/s, lm-eval {theirs[way]:.3f} ({way or 'as it comes'}): best to best "
              f"{best[task, 'tune.c'] / theirs[way]:.2f}; in a round {min(list_):.2f} to {max(list_):.2f}")


def main():
    if sys.argv[1:] == ["--worker"]:
        return worker(json.load(sys.stdin))
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--brake", default="auto", choices=["auto", "both"])
    parser.add_argument("--only", default=",".join(TASKS))
    args = parser.parse_args()
    peers.with_model(lambda model, tmp: measure(args, model, tmp), args.layers)


if __name__ == "__main__":
    main()
