#!/usr/bin/env python3
"""peer_peft.py - training adapters beside PEFT + transformers: the same model, tokens, length, rank, batch and precision.

    python tests/bench/peer_peft.py [--rounds 2] [--steps 4] [--accumulate 4] [--dropout 0] [--peers eager,compile] [--brake both]

smollm2-135m's shape, adapters of rank 16 on all linear layers, a frozen base in float32, length 512, batch 1. Each program runs in
a process of its own, taking turns within a round: ours, PEFT eager, PEFT compiled (torch.compile, default mode). The first steps
of each (memory, compilation) do not count; the fastest step does, and the mean is printed beside it. PyTorch's settings are its
best here: sdpa attention, fused AdamW, as many threads as there are cores. Each mode runs in several ways, all printed
(peers.ways): as it comes, on CPUs that are not Intel's with MKL's brake released, and so with memory kept besides.

Memory, sampled every 20 ms from outside: the highest RssAnon, less the bytes of the base's weights that are anonymous memory
(PyTorch may leave them in the mapped file: it says itself how many are not; ours never does), and the highest resident memory
(VmHWM), less the bytes of the base's weights. The second counts the libraries' own pages as well.
"""
import argparse, json, os, sys, time

import peers
from peers import BUILD, THREADS

LENGTH, RANK, ALPHA = 512, 16, 32


def anonymous_bytes(tensors):
    """Of the tensors' memory, what lies in no mapped file."""
    maps = []
    for line in open("/proc/self/maps"):
        where, _, _, _, inode = line.split()[:5]
        begin, end = (int(x, 16) for x in where.split("-"))
        if inode != "0":
            maps.append((begin, end))
    inside = lambda at: any(begin <= at < end for begin, end in maps)
    return sum(t.numel() * t.element_size() for t in tensors if not inside(t.data_ptr()))


def worker(job):
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    base = AutoModelForCausalLM.from_pretrained(job["model"], dtype=torch.float32, attn_implementation="sdpa")
    base.config.use_cache = False
    weights = {p.data_ptr(): p for p in base.parameters()}.values()
    weights_bytes, weights_anonymous = sum(p.numel() * 4 for p in weights), anonymous_bytes(weights)
    model = get_peft_model(base, LoraConfig(r=RANK, lora_alpha=ALPHA, lora_dropout=job["dropout"], target_modules="all-linear",
                                            task_type="CAUSAL_LM"))
    model.train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=2e-4, weight_decay=0.01, fused=True)
    run = torch.compile(model) if job["mode"] == "compile" else model
    ids = torch.tensor(job["ids"])
    A, at, times = job["accumulate"], 0, []
    for _ in range(job["steps"]):
        begin = time.perf_counter()
        optimizer.zero_grad()
        for _ in range(A):
            x = ids[[at % len(ids)]]
            at += 1
            loss = run(input_ids=x, labels=x).loss / A
            loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        times.append(time.perf_counter() - begin)
    peers.check_brake()
    import peft, transformers
    print(json.dumps(dict(times=times, weights=weights_bytes, anonymous=weights_anonymous, trained=sum(p.numel() for p in trained),
                          versions=f"PyTorch {torch.__version__}, transformers {transformers.__version__}, PEFT {peft.__version__}")))


def ours(job, tmp):
    run = os.path.join(tmp, "run")
    _, peak = peers.watched([
        f"{BUILD}/finetune_lora", "--model", job["model"], "--dataset", job["rows"], "--max-length", str(LENGTH), "--batch-size", "1",
        "--accumulate", str(job["accumulate"]), "--max-steps", str(job["steps"]), "--lora-r", str(RANK), "--lora-alpha", str(ALPHA),
        "--lora-dropout", str(job["dropout"]), "--lora-targets", "all-linear", "--base-dtype", "float32", "--no-save", "--output", run,
        "--overwrite"])
    return dict(times=peers.steps(run, LENGTH * job["accumulate"])), peak


def label(w):
    return "tune.c" if w == "ours" else ", ".join(filter(None, [f"PEFT {w[0]}", w[1]]))


def measure(args, model, tmp):
    rows = os.path.join(tmp, "rows.jsonl")
    ids = peers.long_rows(rows, model, LENGTH)
    job = dict(model=model, rows=rows, ids=ids, accumulate=args.accumulate, steps=args.steps, dropout=args.dropout)
    tokens = LENGTH * args.accumulate
    ways = peers.ways(tmp, args.brake)
    modes = [(p, way) for p in args.peers.split(",") if p for way in ways]
    who, times, peaks, about = ["ours"] + modes, {}, {}, {}
    for r in range(args.rounds):
        for w in who:
            about[w], peak = ours(job, tmp) if w == "ours" else peers.worker(dict(job, mode=w[0]), ways[w[1]])
            times.setdefault(w, []).extend(about[w]["times"][2 if w[0] == "compile" else 1:])
            print(f"# round {r + 1} of {args.rounds}, {label(w)}: {tokens / min(about[w]['times'][1:]):.1f} tokens/s, RssAnon "
                  f"{peak['RssAnon'] / 2**20:.0f} MiB, VmHWM {peak['VmHWM'] / 2**20:.0f} MiB", file=sys.stderr)
            peaks[w] = {k: max(v, peaks.get(w, {}).get(k, 0)) for k, v in peak.items()}
    weights = about[modes[0]]["weights"]
    about["ours"]["anonymous"] = weights
    print(f"# {about[modes[0]]['versions']}, {THREADS} threads; {about[modes[0]]['trained']} numbers trained; base weights "
          f"{weights / 2**20:.0f} MiB")
    print(f"length {LENGTH}, batch 1, accumulation {args.accumulate}, r {RANK} on all linear layers, dropout {args.dropout:g}, float32")
    anonymous = {w: peaks[w]["RssAnon"] - about[w]["anonymous"] for w in who}
    resident = {w: peaks[w]["VmHWM"] - weights for w in who}
    for w in who:
        print(f"  {label(w):40} {tokens / min(times[w]):8.1f} tokens/s  (mean {tokens * len(times[w]) / sum(times[w]):7.1f})  peak without "
              f"weights: anonymous {anonymous[w] / 2**20:6.0f} MiB (weights in it {about[w]['anonymous'] / 2**20:.0f}), resident "
              f"{resident[w] / 2**20:6.0f} MiB")
    fastest, least = min(modes, key=lambda w: min(times[w])), min(modes, key=lambda w: anonymous[w])
    print(f"  tune.c / the fastest ({label(fastest)}): {min(times[fastest]) / min(times['ours']):.2f} x tokens/s (asked 1.5), memory without weights "
          f"{anonymous['ours'] / anonymous[fastest]:.2f} x (asked 0.5), resident {resident['ours'] / resident[fastest]:.2f} x; "
          f"to the one with least memory ({label(least)}): {anonymous['ours'] / anonymous[least]:.2f} x", flush=True)


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--rounds", type=int, default=2)
    a.add_argument("--steps", type=int, default=4)
    a.add_argument("--accumulate", type=int, default=4)
    a.add_argument("--dropout", type=float, default=0)
    a.add_argument("--peers", default="eager,compile")
    a.add_argument("--layers", type=int, default=30, help="of 30: for a short try, not for figures")
    a.add_argument("--brake", choices=["auto", "both"], default="auto", help="both: MKL's brake is released on Intel CPUs too")
    a.add_argument("--worker", action="store_true")
    args = a.parse_args()
    if args.worker:
        return worker(json.load(sys.stdin))
    peers.with_model(lambda model, tmp: measure(args, model, tmp), args.layers)


main()
