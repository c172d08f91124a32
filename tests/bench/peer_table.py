#!/usr/bin/env python3
"""peer_table.py - one table: training by tune.c beside PyTorch, transformers, PEFT and bitsandbytes, on smollm2-135m's shape.

    make bench-peers [PEERS="table --quick"]      or: python tests/bench/peer_table.py [OPTION...]

Each run is a process of its own. In a round each side has its turn: ours, the peer eager, the peer compiled; then the next
case. A failure of the peer is a '-' in the table, with the reason below it. Ctrl-C prints what there is.

The first step of each run does not count. Best and median are those of all other steps of all rounds. Both sides have the same
tokens, length, batch, dtype, rank (16, all linear layers), AdamW and clipping. A run of the peer ends early when its counted
steps have taken SPENT_S seconds, so that a slow one does not take hours; it has one step in each round at least.

PyTorch's settings are tried first, on the case `full`: as it comes, with MKL's brake released where there is one, with memory
kept from step to step (peers.py), and the modes of torch.compile. The table says which were the fastest; those are compared
with. It always has sdpa attention, fused AdamW and a thread for each core. Where its bfloat16 product is slower than its
float32 one (a CPU without bfloat16 instructions), its best setting is float32: its rows say "float32" then.

Memory is the highest RssAnon, sampled every 20 ms from outside, and besides the frozen weights that PyTorch leaves in the
mapped file.
"""
import argparse, datetime, json, os, re, signal, statistics, subprocess, sys, time

import peers
from peers import BUILD, THREADS

RANK, ALPHA, SPENT_S, PRODUCT = 16, 32, 25, (512, 576, 3072)
COMPILE_S, START_S, RATE = 40, 8, 150  # a first guess of how long a run takes; the runs themselves correct it
COMPILES = {"compile": "default", "max-autotune": "max-autotune-no-cudagraphs"}


def a_case(title, length=512, batch=1, dtype="float32", base=None, checkpointing=False):
    return dict(title=title, length=length, batch=batch, dtype=dtype, base=base, checkpointing=checkpointing)


CASES = {
    "full": a_case("float32, length 512"),
    "full-1024": a_case("float32, length 1024", length=1024),
    "full-2048": a_case("float32, length 2048", length=2048),
    "full-4096": a_case("float32, length 4096", length=4096),
    "full-batch8": a_case("float32, batch 8", batch=8),
    "full-checkpointing": a_case("float32, checkpointing", checkpointing=True),
    "full-bf16": a_case("bfloat16", dtype="bfloat16"),
    "lora": a_case("LoRA, float32", base="float32"),
    "lora-bf16": a_case("LoRA, bfloat16", dtype="bfloat16", base="bfloat16"),
    "lora-checkpointing": a_case("LoRA, bfloat16, checkpointing", dtype="bfloat16", base="bfloat16", checkpointing=True),
    "qlora": a_case("QLoRA, float32", base="nf4"),
    "qlora-bf16": a_case("QLoRA, bfloat16", dtype="bfloat16", base="nf4"),
}
QUICK = ["full", "lora"]


def in_float32(case):
    """The case as PyTorch runs it where bfloat16 is slower; a base in bfloat16 would compute in it."""
    return dict(case, dtype="float32", base="float32" if case["base"] == "bfloat16" else case["base"])


def library(case):
    return "PEFT" if case["base"] else "PyTorch"


# ---- the workers: PyTorch, in processes of their own ----

def mapped_bytes(tensors):
    """Of the tensors' memory, what lies in mapped files."""
    maps = []
    for line in open("/proc/self/maps"):
        where, _, _, _, inode = line.split()[:5]
        if inode != "0":
            maps.append([int(x, 16) for x in where.split("-")])
    inside = lambda at: any(begin <= at < end for begin, end in maps)
    return sum(t.numel() * t.element_size() for t in tensors if inside(t.data_ptr()))


def product_rates(times):
    """GFLOP/s of one product of each dtype: the best of so many."""
    import torch

    rows, inner, out = PRODUCT
    rates = {}
    for dtype in (torch.float32, torch.bfloat16):
        x, w = torch.randn(rows, inner).to(dtype), torch.randn(out, inner).to(dtype)
        best = 1e9
        for _ in range(times):
            begin = time.perf_counter()
            torch.nn.functional.linear(x, w)
            best = min(best, time.perf_counter() - begin)
        rates[str(dtype).split(".")[1]] = 2 * rows * inner * out / best / 1e9
    return rates


def load(job):
    """The model of a case."""
    import torch
    from transformers import AutoModelForCausalLM

    case = job["case"]
    dtype = torch.bfloat16 if case["base"] == "bfloat16" else torch.float32
    more = {}
    if case["base"] == "nf4":
        from transformers import BitsAndBytesConfig
        more = dict(device_map="cpu", quantization_config=BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=getattr(torch, case["dtype"])))
    model = AutoModelForCausalLM.from_pretrained(job["model"], dtype=dtype, attn_implementation="sdpa", **more)
    model.config.use_cache = False
    if case["base"]:
        from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
        if case["base"] == "nf4":
            model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
        model = get_peft_model(model, LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules="all-linear", task_type="CAUSAL_LM"))
    model.train()
    if case["checkpointing"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model


def train(job):
    import torch

    case, mode, model = job["case"], job["mode"], load(job)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=2e-5, weight_decay=0.01, fused=True)
    run = torch.compile(model, mode=COMPILES[mode]) if mode in COMPILES else model
    ids, at, seconds = torch.tensor(job["ids"]), 0, []
    while len(seconds) < job["steps"] and (len(seconds) < 2 or sum(seconds[1:]) < SPENT_S):
        begin = time.perf_counter()
        optimizer.zero_grad()
        x = ids[[(at + i) % len(ids) for i in range(case["batch"])]]
        at += case["batch"]
        with torch.autocast("cpu", torch.bfloat16, enabled=case["dtype"] == "bfloat16"):
            loss = run(input_ids=x, labels=x).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    return dict(seconds=seconds, mapped=mapped_bytes(p for p in model.parameters() if not p.requires_grad))


def worker(job):
    import torch

    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    if "times" in job:
        from importlib.metadata import version
        names = ("transformers", "peft", "bitsandbytes")
        told = dict(rates=product_rates(job["times"]),
                    versions=", ".join([f"PyTorch {torch.__version__}"] + [f"{n} {version(n)}" for n in names]))
    else:
        told = train(job)
    peers.check_brake()
    print("\n" + json.dumps(told))


# ---- ours, and the rounds ----

def ours(job, tmp, clock):
    case, run = job["case"], os.path.join(tmp, "run")
    command = [f"{BUILD}/finetune_{'lora' if case['base'] else 'full'}", "--model", job["model"], "--dataset", job["rows"],
               "--max-length", str(case["length"]), "--batch-size", str(case["batch"]), "--accumulate", "1", "--max-steps",
               str(job["steps"]), "--dtype", case["dtype"], "--no-save", "--output", run, "--overwrite"]
    if case["base"]:
        command += ["--lora-r", str(RANK), "--lora-alpha", str(ALPHA), "--lora-targets", "all-linear", "--base-dtype", case["base"]]
    if case["checkpointing"]:
        command += ["--activation-checkpointing", "full"]
    out, peak = peers.watched(command, clock=clock)
    device = re.search(r"^# device +(.*)", out, re.M).group(1)
    return dict(seconds=peers.steps(run, case["length"] * case["batch"]), mapped=0, device=device), peak


def counted(case, steps):
    """How many steps of a run count: fewer where one has many tokens."""
    return max(1, min(steps, -(-steps * 1024 // (case["length"] * case["batch"]))))


class Bench:
    """What was measured so far: results[case, who], who being "tune.c" or a mode and a way of PyTorch."""

    def __init__(self, model, tmp, ways, steps):
        self.model, self.tmp, self.ways, self.steps = model, tmp, ways, steps
        self.results, self.clock, self.device, self.rows = {}, [], "", {}
        self.slow_bf16 = False  # PyTorch's bfloat16 is slower than its float32
        self.begin, self.planned, self.expected = time.monotonic(), 0.0, 0.0

    def case(self, name, who):
        return in_float32(CASES[name]) if self.slow_bf16 and who != "tune.c" else CASES[name]

    def run(self, name, who):
        """One run: its counted steps and its memory."""
        case = self.case(name, who)
        length = case["length"]
        if length not in self.rows:
            path = os.path.join(self.tmp, f"rows-{length}.jsonl")
            self.rows[length] = path, peers.long_rows(path, self.model, length)
        job = dict(case=case, model=self.model, rows=self.rows[length][0], ids=self.rows[length][1], steps=1 + counted(case, self.steps))
        if who == "tune.c":
            told, peak = ours(job, self.tmp, self.clock)
            self.device = told["device"]
        else:
            told, peak = peers.worker(dict(job, mode=who[0]), self.ways[who[1]], self.clock)
        tokens = length * case["batch"]
        return [tokens / s for s in told["seconds"][1:]], peak + told["mapped"]

    def guess(self, name, who):
        case = CASES[name]
        seconds = START_S + case["length"] * case["batch"] * (1 + counted(case, self.steps)) / RATE
        return seconds + (COMPILE_S if who[0] in COMPILES else 0)

    def plan(self, turns):
        """These turns are to come: for the estimate."""
        self.planned += sum(self.guess(*turn) for turn in turns)

    def measure(self, turns):
        """Each of the turns, (case, who). A peer that failed has no further turn."""
        for i, (name, who) in enumerate(turns):
            result = self.results.setdefault((name, who), dict(rates=[], peak=0, error="", dtype=self.case(name, who)["dtype"]))
            if not result["error"]:
                try:
                    rates, peak = self.run(name, who)
                    result["rates"] += rates
                    result["peak"] = max(result["peak"], peak)
                except RuntimeError as e:
                    if who == "tune.c":
                        raise
                    result["error"] = reason(str(e))
            self.expected += self.guess(name, who)
            spent = time.monotonic() - self.begin
            left = (self.planned - self.expected) * spent / self.expected
            print(f"# {i + 1} of {len(turns)}: {name}, {label(who)}: {result['error'] or format(max(result['rates']), '.1f') + ' tokens/s'}; "
                  f"{spent / 60:.0f} min gone, about {left / 60:.0f} min left", file=sys.stderr, flush=True)

    def best(self, name, who):
        return max(self.results.get((name, who), dict(rates=[]))["rates"], default=0)


def turns_of(cases, rounds, modes):
    """Within a round the sides take turns, case by case."""
    return [(name, who) for _ in range(rounds) for name in cases for who in ["tune.c"] + modes]


# ---- what is printed ----

def reason(message):
    """Why a worker failed: how it ended, and the last line that it wrote."""
    lines = message.strip().splitlines()
    end = re.search(r"ended with -?\d+", lines[0])
    return ": ".join(([end.group()] if end else []) + (lines[-1:] if len(lines) > 1 or not end else []))


def label(who):
    return who if who == "tune.c" else who[0] + (f" ({who[1]})" if who[1] else "")


def table(cases, results):
    """Lines of Markdown: for each case the peer's modes, the fastest first; then why a peer has no figure."""
    lines = ["| | tune.c, tokens/s: best, median | peer's | ratio: best, median | memory | peer |", "|---|---|---|---|---|---|"]
    notes = []
    for name in cases:
        own = results.get((name, "tune.c"))
        if not own or not own["rates"]:
            continue
        theirs = [(who, r) for (n, who), r in results.items() if n == name and who != "tune.c" and (r["rates"] or r["error"])]
        for who, r in sorted(theirs, key=lambda pair: -max(pair[1]["rates"], default=0)):
            a, b = own["rates"], r["rates"]
            both = lambda rates: f"{max(rates):.0f}, {statistics.median(rates):.0f}" if rates else "-"
            ratio = f"{max(a) / max(b):.2f}, {statistics.median(a) / statistics.median(b):.2f}" if b else "-"
            memory = f"{own['peak'] / r['peak']:.2f}" if b else "-"
            peer = f"{library(CASES[name])}, {who[0]}" + (f", {r['dtype']}" if r["dtype"] != CASES[name]["dtype"] else "")
            lines.append(f"| {CASES[name]['title']} | {both(a)} | {both(b)} | {ratio} | {memory} | {peer} |")
            if r["error"]:
                notes.append(f"# {CASES[name]['title']}: {peer} has no figure: {r['error']}")
    return lines + notes


def cpu_lines():
    """What /proc/cpuinfo calls the first processor."""
    known = {}
    for line in open("/proc/cpuinfo"):
        key, _, value = line.partition(":")
        known.setdefault(key.strip(), value.strip())
    name = known.get("model name") or f"{os.uname().machine}, implementer {known.get('CPU implementer', '?')}, part {known.get('CPU part', '?')}"
    return name, f", family {known['cpu family']}, model {known['model']}" if "cpu family" in known else ""


def file_name(day, processor, threads):
    """Of the saved table: day, processor, cores."""
    word = re.sub(r"\(\w+\)|@.*|\b(amd|intel|processor|cpu|\d+-core)\b", " ", processor.lower())
    return f"{day}-{'-'.join(re.findall(r'[a-z0-9]+', word)) or 'cpu'}-{threads}-cores-peers.txt"


def gemm_lines(out):
    """From bench_gemm's output: what our product reaches, and OpenBLAS's with its best kernel."""
    rows, inner, columns = PRODUCT
    blas, own, bf16 = re.search(rf"{rows} +{inner} +{columns} +forward +([\d.]+) +([\d.]+) +[\d.]+ +([\d.]+)", out).groups()
    kernel = re.search(r"^# .*, (OpenBLAS \w+ \(.*)", out, re.M).group(1)
    whole = re.search(r"FLOP-weighted +([\d.]+) +([\d.]+)", out).groups()
    tried = re.search(r"^# OpenBLAS kernels tried, GFLOP/s: (.*)", out, re.M)
    return [f"#   tune.c: float32 {float(own):.0f}, bfloat16 {float(bf16):.0f}; all products of a step, float32: {float(whole[1]):.0f}",
            f"#   {kernel}: float32 {float(blas):.0f}; all products of a step: {float(whole[0]):.0f}"
            + (f"; kernels tried: {tried.group(1)}" if tried else "")]


def libraries(said):
    """Whose products PyTorch used, from what ONEDNN_VERBOSE=1 and MKL_VERBOSE=1 make them say: dtype to name."""
    used = {"float32": "PyTorch's own", "bfloat16": "PyTorch's own"}
    if re.search(r"^MKL_VERBOSE SGEMM", said, re.M):
        used["float32"] = "MKL SGEMM"
    if re.search(r"^MKL_VERBOSE GEMM_BF16", said, re.M):
        used["bfloat16"] = "MKL GEMM_BF16"
    for line in said.splitlines():
        found = re.search(r"exec,cpu,(?:matmul|inner_product),([^,]+),.*?src[^,]*?(f32|bf16)", line)
        if found:
            used["float32" if found.group(2) == "f32" else "bfloat16"] = "oneDNN " + found.group(1)
    return used


def product_lines(ways, seconds):
    """The product of each side, measured; PyTorch's versions; and whether its bfloat16 is slower than its float32."""
    env = {key: value for key, value in os.environ.items() if key != "OPENBLAS_CORETYPE"}
    out = subprocess.run([f"{BUILD}/tests/bench/bench_gemm", str(seconds)], capture_output=True, text=True, check=True, env=env).stdout
    lines = [f"# product {PRODUCT[0]} x {PRODUCT[1]} x {PRODUCT[2]}, GFLOP/s:"] + gemm_lines(out)
    for way, settings in ways.items():
        told, _ = peers.worker(dict(times=30), settings)
        said, _ = peers.worker(dict(times=1), dict(settings, ONEDNN_VERBOSE="1", MKL_VERBOSE="1"))
        used = libraries(said["said"])
        lines.append(f"#   PyTorch, {way or 'as it comes'}: " + ", ".join(f"{d} {r:.0f} by {used[d]}" for d, r in told["rates"].items()))
    slow = told["rates"]["bfloat16"] < told["rates"]["float32"]
    if slow:
        lines.append("# PyTorch's bfloat16 product is slower than its float32 one here: in bfloat16 cases it runs in float32")
    return lines, told["versions"], slow


def choose(bench, quick):
    """PyTorch's best settings: modes of the table, and a line that says what was tried."""
    ways = list(bench.ways)
    if quick:
        return [("eager", ways[-1]), ("compile", ways[-1])], f"# PyTorch's settings: {ways[-1]}; no others tried (--quick)"
    eager = [("full", ("eager", way)) for way in ways] * 2  # in turn, twice: one disturbed run does not decide
    bench.plan(eager + [("full", (mode, ways[0])) for mode in COMPILES])
    bench.measure(eager)
    way = max(ways, key=lambda w: bench.best("full", ("eager", w)))
    bench.measure([("full", (mode, way)) for mode in COMPILES])
    mode = max(COMPILES, key=lambda m: bench.best("full", (m, way)))
    tried = ", ".join(f"{label(who)} {max(r['rates']):.0f}" if r["rates"] else f"{label(who)} failed: {r['error']}"
                      for (_, who), r in bench.results.items())
    bench.results = {}
    return [("eager", way), (mode, way)], f"# PyTorch's settings tried, tokens/s in float32, length 512: {tried}; compared with: eager and {mode}, {way or 'as it comes'}"


def report(args, bench, head, ended):
    clock = sorted(bench.clock)
    processor, more = cpu_lines()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    lines = [f"# {processor}{more}, {THREADS} threads; {datetime.date.today()}{', commit ' + commit if commit else ''}"
             + (f"; {args.layers} of 30 layers: no figures, a try" if args.layers != 30 else "")]
    if clock:
        lines.append(f"# clock during the runs, by a chain of additions: median {statistics.median(clock):.2f} GHz, "
                     f"{clock[len(clock) // 20]:.2f} to {clock[-1 - len(clock) // 20]:.2f} in nine of ten of {len(clock)} samples")
    lines += [f"# tune.c: {bench.device}"] * bool(bench.device) + head
    text = "\n".join(lines + table(args.cases, bench.results) + ([f"# {ended}"] if ended else [])) + "\n"
    print(text, end="", flush=True)
    if args.save:
        path = os.path.join("tests/bench/results", file_name(datetime.date.today(), processor, THREADS))
        with open(path, "w") as f:
            f.write(text)
        print(f"# saved: {path}", file=sys.stderr)


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--cases", help=f"some of {','.join(CASES)}, separated by commas; default all")
    a.add_argument("--rounds", type=int, help="default 2; with --quick 1")
    a.add_argument("--steps", type=int, default=3, help="that count, in a run of length 512 or 1024; longer ones have fewer (default 3)")
    a.add_argument("--quick", action="store_true", help=f"{','.join(QUICK)}, one round, settings untried: minutes")
    a.add_argument("--save", action="store_true", help="the table also to tests/bench/results/")
    a.add_argument("--layers", type=int, default=30, help="of 30: for a short try, not for figures")
    a.add_argument("--brake", choices=["auto", "both"], default="auto", help="both: MKL's brake is released on Intel CPUs too")
    a.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = a.parse_args()
    if args.worker:
        return worker(json.load(sys.stdin))
    args.cases = args.cases.split(",") if args.cases else QUICK if args.quick else list(CASES)
    args.rounds = args.rounds or (1 if args.quick else 2)
    unknown = [name for name in args.cases if name not in CASES]
    if unknown or min(args.rounds, args.steps, args.layers) < 1:
        a.error(f"no case is called {unknown[0]}; there are {', '.join(CASES)}" if unknown else "rounds, steps and layers: at least 1")
    for program in ("bench_gemm", "bench_clock"):
        if not os.path.exists(f"{BUILD}/tests/bench/{program}"):
            sys.exit(f"{BUILD}/tests/bench/{program} is missing: make bench-peers builds it")
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def all_of_it(model, tmp):
        head, ended = [], ""
        bench = Bench(model, tmp, peers.ways(tmp, args.brake, head.append), args.steps)
        try:
            bench.plan(turns_of(args.cases, args.rounds, [("eager", ""), ("compile", "")]))
            print(f"# about {bench.planned / 60:.0f} min; the first runs tell more", file=sys.stderr, flush=True)
            lines, versions, bench.slow_bf16 = product_lines(dict(list(bench.ways.items())[-1:]) if args.quick else bench.ways, 4 if args.quick else 12)
            head += [f"# {versions}"] + lines
            modes, tried = choose(bench, args.quick)
            head.append(tried)
            bench.measure(turns_of(args.cases, args.rounds, modes))
        except KeyboardInterrupt:
            ended = "interrupted: the table has what was measured until then"
        report(args, bench, head, ended)
        return 130 if ended else 0

    sys.exit(peers.with_model(all_of_it, args.layers))


if __name__ == "__main__":
    main()
