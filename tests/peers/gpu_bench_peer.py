"""gpu_bench_peer.py - tests/bench/gpu_peer.py, PyTorch's figures on a GPU, tried out on the CPU with narrow models: each kind of
figure comes, in its order; what the CPU lacks, a lack of memory and too little time are lines, and the others go on. No figure is
one of a GPU. torch.compile ends before its code generator, whose code for CPUs says nothing of that for GPUs."""
import os
import re
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"  # threads cost more than such small shapes
sys.path.insert(0, "tests/bench")
sys.argv = ["gpu_peer.py", "0.001", "tiny", "cpu"]
import gpu_peer  # noqa: E402
import tap  # noqa: E402
import torch  # noqa: E402

lines = []
gpu_peer.show = lines.append
gpu_peer.COMPILER = "aot_eager"
now = {}


def small_memory():
    """In rows of 16 memory is for 4 rows if checkpointed, else for 2; for 2 at most with adapters in bfloat16."""
    step_of, clip = gpu_peer.step_of, torch.nn.utils.clip_grad_norm_

    def noted(model, run, rows, T, checkpointed):
        now.update(rows=rows, T=T, checkpointed=checkpointed)
        return step_of(model, run, rows, T, checkpointed)

    def lacking(trained, most):
        narrow = trained[0].dtype == torch.bfloat16
        if now["T"] == 16 and now["rows"] > 2 and (narrow or not now["checkpointed"]):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return clip(trained, most)

    gpu_peer.step_of, torch.nn.utils.clip_grad_norm_ = noted, lacking


FIGURE = r"[0-9.]+ ms a step, [0-9]+ tokens/s, 0\.0 GiB$"
RATE = r"forward [0-9.]+ us, [0-9.]+ TFLOP/s; backward [0-9.]+ us, [0-9.]+ TFLOP/s$"
ABSENT, LACKING = "not available: No ", "out of memory$"


def expected():
    """A name and a pattern for each line."""
    yield from (("product 64x64x64", r".*TFLOP/s$"), ("copy, float32", r".*GB/s$"))
    for T in (16, 32):
        for by, what in (("flash", RATE), ("cuDNN", ABSENT)):
            yield f"attention by {by}, causal, rows of {T}, {64 // T} rows", what
    full, lora = "smollm2-135m, all weights", "llama3-8b, LoRA of rank 16"
    for title, T in ((full, 16), (lora, 16), (lora, 32), (full, 32)):
        if (title, T) != (lora, 32):
            yield f"# {title}", "the model is made$"
        for how in ("eager, flash", "eager, cuDNN", "compiled, flash"):
            name = f"{title}, {how}, rows of {T}, {64 // T} rows"
            if how == "eager, cuDNN":
                yield name, ABSENT
                continue
            if T == 16:
                yield name, LACKING
                name += ", checkpointed"
            yield name, FIGURE
        if (title, T) == (lora, 16):
            name = f"{title}, compiled, flash, adapters in bfloat16, rows of 16"
            yield from ((name + ", 4 rows", LACKING), (name + ", 4 rows, checkpointed", LACKING), (name + ", 2 rows", FIGURE))


def whole():
    small_memory()
    gpu_peer.main()
    wanted = list(expected())
    got = lines[1:]
    for line, (name, pattern) in zip(got, wanted):
        if not line.startswith(name + ": ") or not re.match(pattern, line[len(name) + 2:]):
            return f"{line!r}, expected {name}: {pattern}"
    return "" if len(got) == len(wanted) else f"{len(got)} lines, expected {len(wanted)}: {got}"


def rate():
    """Tokens/s count the positions of the rows, as bench_gpu does."""
    found = [re.search(r"rows of (\d+), (\d+) rows.*: ([0-9.]+) ms a step, (\d+) tokens/s", line) for line in lines]
    for T, rows, ms, rate in ((float(g) for g in m.groups()) for m in found if m):
        if not 0.9 < rate / (T * rows / ms * 1e3) < 1.1:
            return f"{rows} rows of {T} in {ms} ms are not {rate} tokens/s"
    return "" if any(found) else "there is no figure"


def hangs():
    while True:
        try:
            time.sleep(60)
        except Exception:  # as torch.compile does
            pass


def late():
    lines.clear()
    gpu_peer.MOST = 1
    gpu_peer.tried("hangs", hangs)
    gpu_peer.tried("the next", lambda: "fine")
    gpu_peer.UNTIL = 0
    gpu_peer.tried("too late", hangs)
    return "" if lines == ["hangs: not done in its 1 s", "the next: fine", "too late: no time is left"] else str(lines)


def broken():
    """Another error ends its figure alone; memory may lack in cuBLAS, too."""

    def error(text):
        raise RuntimeError(text)

    lines.clear()
    gpu_peer.MOST, gpu_peer.UNTIL = 900, float("inf")
    gpu_peer.guarded("broken", 4, lambda rows, checkpointed: error("no C compiler\nmore"))
    gpu_peer.guarded("cuBLAS", 1, lambda rows, checkpointed: error("CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"))
    told = ["broken, 4 rows: failed: no C compiler", "cuBLAS, 1 rows: out of memory", "cuBLAS, 1 rows, checkpointed: out of memory"]
    return "" if lines == told else str(lines)


tap.case("every figure, on the CPU", whole)
tap.case("tokens/s", rate)
tap.case("what takes too long is stopped, what comes too late is named", late)
tap.case("what fails is named", broken)
tap.done()
