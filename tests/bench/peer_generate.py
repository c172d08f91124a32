#!/usr/bin/env python3
"""peer_generate.py - generation beside transformers: the same model, prompt length, number of tokens, dtype and batch.

    python tests/bench/peer_generate.py [--rounds 3] [--tokens 32] [--context 64] [--brake both]

smollm2-135m's shape. Weights in float32 and in bfloat16 (ours keep activations in float32 then; transformers' are bfloat16). A
token's time is the difference between generating 1 + TOKENS tokens and 1 token, greedily, behind a prompt of CONTEXT tokens. Each
program runs in a process of its own, taking turns within a round; the best of each counts. Transformers runs in several ways
(peers.ways): as it comes, and with MKL's brake released and memory kept; its fastest counts. Its cache is the default one.
"""
import argparse, json, re, subprocess, sys, time

import peers
from peers import BUILD, THREADS

SIZES = (1, 8)


def worker(job):
    import torch
    import transformers
    from transformers import AutoModelForCausalLM

    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(THREADS)
    model = AutoModelForCausalLM.from_pretrained(job["model"], dtype=getattr(torch, job["dtype"]), attn_implementation="sdpa").eval()
    rates = {}
    for rows in SIZES:
        ids = (torch.arange(job["context"] * rows) * 31 % 1000).reshape(rows, -1)

        def seconds(tokens):
            begin = time.perf_counter()
            model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, min_new_tokens=tokens,
                           do_sample=False, pad_token_id=0)
            return time.perf_counter() - begin

        seconds(4)
        rates[rows] = rows * job["tokens"] / min(seconds(1 + job["tokens"]) - seconds(1) for _ in range(2))
    peers.check_brake()
    print(json.dumps(dict(rates=rates, versions=f"PyTorch {torch.__version__}, transformers {transformers.__version__}")))


def ours(job):
    out = subprocess.run([f"{BUILD}/tests/helpers/generate_rates", job["model"], "2", str(job["tokens"]), str(job["context"])],
                         capture_output=True, text=True, check=True).stdout
    print("# " + out.splitlines()[0].lstrip("# "), file=sys.stderr)
    return {(kind, int(rows)): float(rate) for kind, rows, rate in re.findall(r"^(\w+) +(\d) rows? +([\d.]+) tokens/s", out, re.M)}


def measure(args, model, tmp):
    job = dict(model=model, tokens=args.tokens, context=args.context)
    ways = peers.ways(tmp, args.brake)
    best, versions = {}, ""
    for r in range(args.rounds):
        for (kind, rows), rate in ours(job).items():
            best["tune.c", kind, rows] = max(rate, best.get(("tune.c", kind, rows), 0))
        for kind in ("float32", "bfloat16"):
            for way, env in ways.items():
                said, _ = peers.worker(dict(job, dtype=kind), env)
                versions = said["versions"]
                for rows, rate in said["rates"].items():
                    key = (f"transformers{', ' if way else ''}{way}", kind, int(rows))
                    best[key] = max(rate, best.get(key, 0))
        print(f"# round {r + 1} of {args.rounds}", file=sys.stderr)
    print(f"# {versions}, {THREADS} threads; prompt {args.context}, {args.tokens} tokens, greedy")
    for kind in ("float32", "bfloat16"):
        for rows in SIZES:
            own = best["tune.c", kind, rows]
            theirs = {w: rate for (w, k, n), rate in best.items() if (k, n) == (kind, rows) and w != "tune.c"}
            print(f"{kind:9} {rows} row{'s' if rows > 1 else ' '} tune.c {own:7.1f} tokens/s; "
                  + "; ".join(f"{w} {rate:.1f}" for w, rate in theirs.items())
                  + f"; tune.c / the fastest {own / max(theirs.values()):.2f} (asked 1.5), as it comes {own / theirs['transformers']:.2f}")


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--tokens", type=int, default=32)
    a.add_argument("--context", type=int, default=64)
    a.add_argument("--layers", type=int, default=30, help="of 30: for a short try, not for figures")
    a.add_argument("--brake", choices=["auto", "both"], default="auto", help="both: MKL's brake is released on Intel CPUs too")
    a.add_argument("--worker", action="store_true")
    args = a.parse_args()
    if args.worker:
        return worker(json.load(sys.stdin))
    peers.with_model(lambda model, tmp: measure(args, model, tmp), args.layers)


main()
