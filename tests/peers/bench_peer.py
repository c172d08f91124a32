#!/usr/bin/env python3
"""bench_peer.py - the ways in which the benches run PyTorch (tests/bench/peers.py): which there are on whose CPU, and that
MKL's brake is really released where a way says so. And the table of tests/bench/peer_table.py, from made-up figures."""
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stderr

sys.path.insert(0, "tests/bench")
import peer_table  # noqa: E402
import peers  # noqa: E402
import tap  # noqa: E402


def worker(job):
    import torch

    if job["multiply"]:
        torch.ones(64, 64) @ torch.ones(64, 64)
    peers.check_brake()
    print("{}")


def found(name):
    peers.vendor = lambda: name
    return list(peers.ways(tmp, "auto"))


def error(way, multiply):
    try:
        peers.worker(dict(multiply=multiply), way)
    except RuntimeError as e:
        return str(e)
    return ""


def same(got, expected):
    return "" if got == expected else f"{got!r}, expected {expected!r}"


EAGER, COMPILE = ("eager", "MKL released"), ("compile", "MKL released")
FIGURES = {("full", "tune.c"): [200.0, 180.0, 220.0], ("full", EAGER): [100.0, 90.0], ("full", COMPILE): [110.0, 100.0, 105.0],
           ("qlora", "tune.c"): [300.0]}


def bench():
    """A bench whose runs take no time: the figures above; bitsandbytes fails."""
    made = peer_table.Bench("model", "tmp", {"MKL released": {}}, 3)

    def run(name, who):
        if (name, who) not in FIGURES:
            raise RuntimeError("python ended with -9:\nsome text\nValueError: no code for this CPU\n")
        return FIGURES[name, who], 1000 if who == "tune.c" else 2000

    made.run = run
    return made


def measured(made, turns):
    with redirect_stderr(io.StringIO()) as told:
        made.measure(turns)
    return told.getvalue()


TITLE = "| | tune.c, tokens/s: best, median | peer's | ratio: best, median | memory | peer |"
FULL = ["| float32, length 512 | 220, 200 | 110, 105 | 2.00, 1.90 | 0.50 | PyTorch, compile |",
        "| float32, length 512 | 220, 200 | 100, 95 | 2.20, 2.11 | 0.50 | PyTorch, eager |"]


def whole():
    made = bench()
    turns = peer_table.turns_of(["full", "qlora"], 2, [EAGER, COMPILE])
    made.plan(turns)
    told = measured(made, turns)
    lines = peer_table.table(["full", "qlora"], made.results)
    failed = [f"QLoRA, float32: PEFT, {m} has no figure: ended with -9: ValueError: no code for this CPU" for m in ("eager", "compile")]
    return same(lines, [TITLE, "|---|---|---|---|---|---|"] + FULL
                + [f"| QLoRA, float32 | 300, 300 | - | - | - | PEFT, {m} |" for m in ("eager", "compile")]
                + ["# " + line for line in failed]) or same([line[:9] for line in told.splitlines()], [f"# {i} of 12"[:9] for i in range(1, 13)]) \
        or ("" if told.rstrip().endswith("about 0 min left") else told)


def interrupted():
    """What was measured before Ctrl-C stays; a case without a figure of ours has no line."""
    made = bench()
    run, made.run = made.run, lambda name, who: (_ for _ in ()).throw(KeyboardInterrupt()) if name == "qlora" else run(name, who)
    try:
        measured(made, peer_table.turns_of(["full", "qlora"], 1, [EAGER, COMPILE]))
        return "not interrupted"
    except KeyboardInterrupt:
        return same(peer_table.table(["full", "qlora"], made.results)[2:], FULL)


def float32_instead():
    """Where PyTorch's bfloat16 is slow it runs in float32, and the table says so; ours keeps the dtype of the case."""
    made = bench()
    made.slow_bf16 = True
    made.run = lambda name, who: ([1.0], 1) if made.case(name, who)["dtype"] == "float32" else ([3.0], 1)
    measured(made, peer_table.turns_of(["lora-bf16", "lora"], 1, [EAGER]))
    return same(peer_table.table(["lora-bf16", "lora"], made.results)[2:], [
        "| LoRA, bfloat16 | 3, 3 | 1, 1 | 3.00, 3.00 | 1.00 | PEFT, eager, float32 |",
        "| LoRA, float32 | 1, 1 | 1, 1 | 1.00, 1.00 | 1.00 | PEFT, eager |"]) \
        or same(made.case("lora-bf16", EAGER)["base"], "float32") or same(made.case("qlora-bf16", EAGER)["base"], "nf4")


def ours_failed():
    made = bench()
    try:
        measured(made, [("lora", "tune.c")])
    except RuntimeError:
        return ""
    return "a failure of ours is no '-'"


def killed():
    """Ctrl-C while a run goes on ends it too."""
    code = f"import sys; sys.path.insert(0, 'tests/bench'); import peers; peers.watched(['sh', '-c', 'sleep 1357 & echo $! >{tmp}/pid; wait'])"
    p = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    pid = 0
    while not pid and p.poll() is None:
        time.sleep(0.02)
        try:
            # the watcher, a thread, has begun, too
            pid = int(open(tmp + "/pid").read()) if len(os.listdir(f"/proc/{p.pid}/task")) > 1 else 0
        except (OSError, ValueError):
            pass
    if not pid:
        return "it never began"
    p.send_signal(signal.SIGINT)
    p.wait()
    for _ in range(15000):
        try:
            state = open(f"/proc/{pid}/stat").read().split()[2]
        except OSError:
            return ""
        if state == "Z":
            return ""
        time.sleep(0.02)
    return f"process {pid} still runs"


GEMM = """# OpenBLAS kernels tried, GFLOP/s: SkylakeX 397.0, Haswell 218.4, SkylakeX with its own threads 390.1
# AMD EPYC, 2 threads, x86-64-v4 kernels, OpenBLAS SkylakeX (pthread)
# AMD EPYC, 2 threads, x86-64-v4 kernels, own matmul
gate,up       512    576   3072  forward             410.4          420.6   1.025          801.2
gate,up       512    576   3072  to input            401.0          402.0   1.002          701.0
FLOP-weighted                                        396.6          399.7   1.008          750.0
"""
VERBOSE = """MKL_VERBOSE SGEMM(T,N,3072,512,576) 15.36ms
onednn_verbose,v1,primitive,exec,cpu,matmul,brg_matmul:avx512_core_bf16,undef,src:bf16::blocked:ab::f0 wei:bf16::blocked:ba::f0,,,512x576:576x3072,1.2
"""


def texts():
    return (same(peer_table.gemm_lines(GEMM), [
        "#   tune.c: float32 421, bfloat16 801; all products of a step, float32: 400",
        "#   OpenBLAS SkylakeX (pthread): float32 410; all products of a step: 397; kernels tried: SkylakeX 397.0, Haswell 218.4, "
        "SkylakeX with its own threads 390.1"])
        or same(peer_table.libraries(VERBOSE), {"float32": "MKL SGEMM", "bfloat16": "oneDNN brg_matmul:avx512_core_bf16"})
        or same(peer_table.libraries(""), {"float32": "PyTorch's own", "bfloat16": "PyTorch's own"})
        or same(peer_table.file_name("2026-11-25", "AMD EPYC 9654 96-Core Processor", 2), "2026-11-25-epyc-9654-2-cores-peers.txt")
        or same(peer_table.file_name("2026-11-25", "Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz", 4), "2026-11-25-xeon-gold-6248-4-cores-peers.txt"))


def steps():
    cases = peer_table.CASES
    return same([peer_table.counted(cases[c], 3) for c in ("full", "full-1024", "full-2048", "full-4096", "full-batch8")], [3, 3, 2, 1, 1]) \
        or same(peer_table.turns_of(["lora"], 2, [EAGER]), [("lora", "tune.c"), ("lora", EAGER)] * 2)


if "--worker" in sys.argv:
    worker(peers.json.load(sys.stdin))
    sys.exit()
plain, released = ["", "memory kept"], ["", "MKL released", "MKL released, memory kept"]
with tempfile.TemporaryDirectory() as tmp:
    if peers.vendor():
        ways = peers.ways(tmp, "both")
        for name in ways:
            tap.case(f"PyTorch, {name or 'as it comes'}", error, ways[name], True)
        tap.ok("MKL never asked" in error(ways["MKL released"], False), "a release that MKL never asks for is an error")
    else:
        tap.skip("MKL's brake", "no x86 CPU")
    tap.ok(found("AuthenticAMD") == released, "AMD's CPUs: with the brake, and released")
    tap.ok(found("HygonGenuine") == released, "and others'")
    tap.ok(found("GenuineIntel") == plain, "Intel's have none")
    tap.ok(found("") == plain, "nor has another processor")
    tap.case("Ctrl-C ends a run and what it started", killed)
tap.case("the table: the fastest mode first, '-' and the reason where a peer fails", whole)
tap.case("Ctrl-C: the table has what was measured", interrupted)
tap.case("bfloat16 where PyTorch has no instructions for it", float32_instead)
tap.case("a failure of ours is an error", ours_failed)
tap.case("rounds take turns; long runs have fewer steps", steps)
tap.case("products, libraries and the file's name", texts)
tap.done()
