#!/usr/bin/env python3
"""peer_llama.py - generation beside llama.cpp: the same model, prompts, number of tokens, type of weights and threads.

    python tests/bench/peer_llama.py [--rounds 3] [--tokens 32] [--context 64] [--layers 30]

smollm2-135m's shape, in float32 and in bfloat16, one row. Two figures: tokens/s of a prompt of 512 tokens, and of TOKENS tokens
behind a prompt of CONTEXT tokens, greedily. llama.cpp runs as its server does by default, as PyPI's xllamacpp has it, on the file
that export_gguf wrote; its cache is F16 then, and ours F32. Its time of a prompt is its own figure; a token's time is the
difference between 1 + TOKENS tokens and 1. Each program runs in a process of its own, taking turns; the best of each counts.
"""
import argparse, importlib.metadata, json, os, re, subprocess, sys, time, urllib.request

import peers
from peers import BUILD, THREADS

PROMPT = 512  # as generate_rates has it
KINDS = {"float32": "f32", "bfloat16": "bf16"}


def worker(job):
    import xllamacpp

    p = xllamacpp.CommonParams()
    p.model.path = job["file"]
    p.n_ctx, p.n_parallel, p.verbosity, p.port, p.fit_params = PROMPT + job["tokens"] + 8, 1, 0, 0, False
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = THREADS
    server = xllamacpp.Server(p)

    def ask(length, tokens):
        """Seconds, and what the server says of them."""
        body = dict(prompt=[i * 31 % 1000 for i in range(length)], n_predict=tokens, ignore_eos=True, cache_prompt=False, temperature=0,
                    samplers=["top_k"], top_k=1)
        request = urllib.request.Request(server.listening_address + "/completion", json.dumps(body).encode(), {"Content-Type": "application/json"})
        begin = time.perf_counter()
        with urllib.request.urlopen(request, timeout=600) as answer:
            got = json.load(answer)
        took = time.perf_counter() - begin
        if got["tokens_predicted"] != tokens or got["timings"]["prompt_n"] != length:
            sys.exit(f"{got['tokens_predicted']} tokens behind {got['timings']['prompt_n']}, expected {tokens} behind {length}")
        return took, got["timings"]

    ask(job["context"], 4)
    one, all = (min(ask(job["context"], n)[0] for _ in range(3)) for n in (1, 1 + job["tokens"])) # the least of a difference would be noise
    token = (all - one) / job["tokens"]
    prompt = max(ask(PROMPT, 1)[1]["prompt_per_second"] for _ in range(2))
    print(json.dumps({"1 row": 1 / token, "prompt": prompt}))


def ours(job):
    out = subprocess.run([f"{BUILD}/tests/helpers/generate_rates", job["model"], "2", str(job["tokens"]), str(job["context"])],
                         capture_output=True, text=True, check=True).stdout
    print("# " + out.splitlines()[0].lstrip("# "), file=sys.stderr)
    return {(kind, what): float(rate) for kind, what, rate in re.findall(r"^(\w+) +(1 row|prompt) +([\d.]+) tokens/s", out, re.M)}


def measure(args, model, tmp):
    files, best = {}, {}
    for kind, type in KINDS.items():
        files[kind] = os.path.join(tmp, type + ".gguf")
        subprocess.run([f"{BUILD}/export_gguf", "--model", model, files[kind], "--type", type, "--pre", "smollm"], check=True, stdout=subprocess.DEVNULL)
    for r in range(args.rounds):
        rates = {("tune.c", *key): rate for key, rate in ours(dict(model=model, tokens=args.tokens, context=args.context)).items()}
        for kind in KINDS:
            said, _ = peers.worker(dict(file=files[kind], tokens=args.tokens, context=args.context), {})
            rates |= {("llama.cpp", kind, what): said[what] for what in ("1 row", "prompt")}
        best = {key: max(rate, best.get(key, 0)) for key, rate in rates.items()}
        print(f"# round {r + 1} of {args.rounds}", file=sys.stderr)
    print(f"# llama.cpp of xllamacpp {importlib.metadata.version('xllamacpp')}, {THREADS} threads; {args.tokens} tokens behind {args.context}, "
          f"greedily; a prompt of {PROMPT}")
    for kind in KINDS:
        for what in ("1 row", "prompt"):
            a, b = best["tune.c", kind, what], best["llama.cpp", kind, what]
            print(f"{kind:9} {what:6} tune.c {a:8.1f} tokens/s; llama.cpp {b:8.1f}; tune.c / llama.cpp {a / b:.2f}")


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--tokens", type=int, default=32)
    a.add_argument("--context", type=int, default=64)
    a.add_argument("--layers", type=int, default=30, help="of 30: for a short try, not for figures")
    a.add_argument("--worker", action="store_true")
    args = a.parse_args()
    if args.worker:
        return worker(json.load(sys.stdin))
    peers.with_model(lambda model, tmp: measure(args, model, tmp), args.layers)


main()
