#!/usr/bin/env python3
"""peer_torch.py - full fine-tuning beside PyTorch + transformers: the same model, tokens, length, batch and precision.

    python tests/bench/peer_torch.py [--rounds 2] [--steps 4] [--accumulate 4] [--brake both] [CASE...]

Cases: base (float32, length 512, batch 1), length1024, batch2, checkpointing, bf16. Without one: all of them, base with
--accumulate 4, the others with 1. Each program runs in a process of its own, taking turns within a round: ours, PyTorch eager,
PyTorch compiled (torch.compile, default mode). The first steps of each (memory, compilation) do not count; the fastest
step does, and the mean is printed beside it. Peak memory is the highest RssAnon seen, sampled every 20 ms from outside.
PyTorch's settings are its best here: sdpa attention, fused AdamW, as many threads as there are cores. Each of its modes runs
in several ways, all printed (peers.ways): as it comes; on CPUs that are not Intel's with MKL's brake released; and so with
memory kept from step to step besides. The fastest is the one compared with. bf16 is run by PyTorch under autocast with
float32 weights, and with everything in bfloat16; ours trains float32 weights.
"""
import argparse, json, os, sys, time

import peers
from peers import BUILD, THREADS

CASES = {
    "base": dict(length=512, batch=1, checkpointing=False, dtype="float32", peers=["eager", "compile"]),
    "length1024": dict(length=1024, batch=1, checkpointing=False, dtype="float32", peers=["eager", "compile"]),
    "batch2": dict(length=512, batch=2, checkpointing=False, dtype="float32", peers=["eager", "compile"]),
    "checkpointing": dict(length=512, batch=1, checkpointing=True, dtype="float32", peers=["eager", "compile"]),
    "bf16": dict(length=512, batch=1, checkpointing=False, dtype="bfloat16", peers=["eager", "compile", "pure"]),
}


def worker(job):
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    mode, case = job["mode"], job["case"]
    if job.get("matmul"):
        a, b = torch.randn(512, 576), torch.randn(3072, 576)
        best = 1e9
        for _ in range(40):
            begin = time.perf_counter()
            a @ b.t()
            best = min(best, time.perf_counter() - begin)
        peers.check_brake()
        mkl = [x.strip(" -")[:60] for x in torch.__config__.show().splitlines() if "Math Kernel" in x] or ["no MKL"]
        print(json.dumps(dict(torch=torch.__version__, matmul=2 * 512 * 576 * 3072 / best / 1e9, blas=mkl[0])))
        return
    dtype = torch.bfloat16 if mode == "pure" else torch.float32
    model = AutoModelForCausalLM.from_pretrained(job["model"], dtype=dtype, attn_implementation="sdpa")
    model.train()
    model.config.use_cache = False
    if case["checkpointing"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, weight_decay=0.01, fused=True)
    run = torch.compile(model) if mode == "compile" else model
    ids = torch.tensor(job["ids"])
    autocast = case["dtype"] == "bfloat16" and mode != "pure"
    B, A, at, times = case["batch"], job["accumulate"], 0, []
    for _ in range(job["steps"]):
        begin = time.perf_counter()
        optimizer.zero_grad()
        for _ in range(A):
            x = ids[[(at + i) % len(ids) for i in range(B)]]
            at += B
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                loss = run(input_ids=x, labels=x).loss / A
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        times.append(time.perf_counter() - begin)
    peers.check_brake()
    print(json.dumps(dict(times=times)))


def ours(job, tmp):
    case, run = job["case"], os.path.join(tmp, "run")
    command = [f"{BUILD}/finetune_full", "--model", job["model"], "--dataset", job["rows"], "--max-length", str(case["length"]),
               "--batch-size", str(case["batch"]), "--accumulate", str(job["accumulate"]), "--max-steps", str(job["steps"]),
               "--dtype", case["dtype"], "--output", run, "--overwrite"]
    if case["checkpointing"]:
        command += ["--activation-checkpointing", "full"]
    _, peak = peers.watched(command)
    return dict(times=peers.steps(run, case["length"] * case["batch"] * job["accumulate"])), peak


def label(w):
    if w == "ours":
        return "tune.c"
    mode = {"pure": "PyTorch, all bfloat16"}.get(w[0], f"PyTorch {w[0]}")
    return f"{mode}, {w[1]}" if w[1] else mode


def measure(name, args, model, tmp, ways):
    case = CASES[name]
    rows = os.path.join(tmp, f"rows-{case['length']}.jsonl")
    ids = peers.long_rows(rows, model, case["length"])
    job = dict(case=case, model=model, rows=rows, ids=ids, accumulate=args.accumulate or (4 if name == "base" else 1), steps=args.steps)
    tokens = case["length"] * case["batch"] * job["accumulate"]
    modes = [(mode, way) for mode in case["peers"] for way in ways]
    who = ["ours"] + modes
    times, peaks = {w: [] for w in who}, {w: 0 for w in who}
    for r in range(args.rounds):
        for w in who:
            told, peak = ours(job, tmp) if w == "ours" else peers.worker(dict(job, mode=w[0]), ways[w[1]])
            times[w] += told["times"][2 if w[0] == "compile" else 1:]
            print(f"# {name}: round {r + 1} of {args.rounds}, {label(w)}: {tokens / min(times[w]):.1f} tokens/s", file=sys.stderr)
            peaks[w] = max(peaks[w], peak["RssAnon"])
    print(f"{name}: length {case['length']}, batch {case['batch']}, accumulation {job['accumulate']}, {case['dtype']}"
          f"{', checkpointing' if case['checkpointing'] else ''}")
    fastest = min(modes, key=lambda w: min(times[w]))
    for w in who:
        print(f"  {label(w):48} {tokens / min(times[w]):8.1f} tokens/s  (mean {tokens * len(times[w]) / sum(times[w]):7.1f})"
              f"  peak anonymous memory {peaks[w] / 2**20:7.0f} MiB")
    print(f"  tune.c / the fastest ({label(fastest)}): {min(times[fastest]) / min(times['ours']):.2f} x tokens/s, "
          f"{peaks['ours'] / peaks[fastest]:.2f} x memory"
          f"; least memory of any of them: {peaks['ours'] / min(peaks[w] for w in modes):.2f} x", flush=True)


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--rounds", type=int, default=2)
    a.add_argument("--steps", type=int, default=4)
    a.add_argument("--accumulate", type=int, default=0)
    a.add_argument("--layers", type=int, default=30, help="of 30: for a short try, not for figures")
    a.add_argument("--brake", choices=["auto", "both"], default="auto", help="both: MKL's brake is released on Intel CPUs too")
    a.add_argument("--worker", action="store_true")
    a.add_argument("cases", nargs="*", choices=list(CASES) + [[]])
    args = a.parse_args()
    if args.worker:
        return worker(json.load(sys.stdin))

    def measure_all(model, tmp):
        ways = peers.ways(tmp, args.brake)
        for way in ways:
            info, _ = peers.worker(dict(mode="", case={}, matmul=True), ways[way])
            print(f"# PyTorch {info['torch']}{', ' + way if way else ''}, {THREADS} threads, {info['blas']}; its matmul 512x576x3072: "
                  f"{info['matmul']:.0f} GFLOP/s", flush=True)
        for name in args.cases or CASES:
            measure(name, args, model, tmp, ways)

    peers.with_model(measure_all, args.layers)


main()
