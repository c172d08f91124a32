#!/usr/bin/env python3
"""gpu_peer.py - the figures of bench_gpu by PyTorch, transformers and PEFT on the same GPU. What is not installed is said.

    python tests/bench/gpu_peer.py [SECONDS of each figure (2) [WORD...]]
        tiny     narrow models, to try this script out
        cpu      on the CPU; only with tiny
        until=S  seconds for all of it; what comes too late is named
    python tests/bench/gpu_peer.py --check      the guard against a lack of memory, tried out without PyTorch

The shapes are those of gpu_step.h: llama3-8b with adapters of rank 16 on all linear layers of a bfloat16 base, 8,192 tokens;
smollm2-135m, all weights, float32 under autocast, 16,384 tokens. Each in rows of 512, the length of the texts that bench_gpu
packs, and of 2048. Tokens are counted as there: all positions of the rows. Weights are random, made on the GPU. Eager, and by
torch.compile of the whole model; attention is PyTorch's scaled_dot_product_attention, by FlashAttention and by cuDNN.
A line is printed as soon as it is known, those of the short rows first.

A step for which memory is short is a result too. It is tried again with checkpointed activations, then with half the rows.
tests/peers/gpu_bench_peer.py runs all of it on the CPU.
"""
import contextlib, gc, importlib.metadata, json, os, signal, sys, time

BEGIN = time.monotonic()
WORDS = sys.argv[2:] if sys.argv[1:2] != ["--check"] else []
SECONDS = float(sys.argv[1]) if sys.argv[1:2] not in ([], ["--check"]) else 2
TINY = "tiny" in WORDS
DEVICE = "cpu" if "cpu" in WORDS else "cuda"
UNTIL = next((float(w[6:]) for w in WORDS if w.startswith("until=")), float("inf"))
MOST = 180  # seconds of one try: torch.compile takes a minute or two of them
COMPILER = "inductor"
LENGTHS = (16, 32) if TINY else (512, 2048)
DEFAULTS = os.environ.get("TUNE_DEFAULTS") or os.path.join(os.path.dirname(__file__), "..", "..", "defaults")
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is loaded


def show(line):
    print(line, flush=True)


def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def is_out_of_memory(error):
    return type(error).__name__ == "OutOfMemoryError" or "out of memory" in str(error).lower() or "ALLOC_FAILED" in str(error)


def is_not_there(error):
    """PyTorch has no such attention for this device or these shapes."""
    return "No available kernel" in str(error) or "No viable backend" in str(error)


def free():
    gc.collect()
    torch = sys.modules.get("torch")
    if torch and DEVICE == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


class Late(BaseException):
    """Not an Exception: torch.compile makes other errors of those."""


@contextlib.contextmanager
def limited(seconds):
    """Late after so many seconds, and again, for the first one may come where Python ignores it."""

    def late(number, frame):
        raise Late

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds, 5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


LACKING = "out of memory"


def tried(what, call):
    """Print what call() says, or why it says nothing. None, or that reason."""
    seconds = min(MOST, UNTIL - (time.monotonic() - BEGIN))
    try:
        if seconds < 1:
            reason = "no time is left"
        else:
            with limited(seconds):
                said = call()
            return show(f"{what}: {said}")
    except Late:
        reason = f"not done in its {seconds:.0f} s"
    except Exception as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        reason = LACKING if is_out_of_memory(error) else f"{'not available' if is_not_there(error) else 'failed'}: {first}"
    free()  # the error held the tensors of the step
    show(f"{what}: {reason}")
    return reason


def guarded(name, rows, attempt):
    """Try attempt(rows, checkpointed) with the most rows for which memory suffices. Each try is a line. Any other error ends this
    figure. False: there is no result."""
    while rows >= 1:
        for checkpointed in (False, True):
            reason = tried(f"{name}, {rows} rows{', checkpointed' if checkpointed else ''}", lambda: attempt(rows, checkpointed))
            if reason != LACKING:
                return reason is None
        rows //= 2
    return False


def check():
    """Tries of a model that fits with at most 4 rows, or 8 if checkpointed; of one that never fits; of one that is broken."""

    class OutOfMemoryError(RuntimeError):
        pass

    def fits(rows, checkpointed):
        if rows > (8 if checkpointed else 4):
            raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return f"{rows * 10} ms"

    def never(rows, checkpointed):
        raise RuntimeError("backend failed: CUDA error: out of memory")

    def broken(rows, checkpointed):
        raise ValueError("no such kernel\nmore of it")

    results = [guarded("fits", 16, fits), guarded("never", 2, never), guarded("broken", 4, broken), guarded("small", 3, fits)]
    sys.exit(0 if results == [True, False, False, True] else 1)


def synchronize():
    import torch

    if DEVICE == "cuda":
        torch.cuda.synchronize()


def timed(call, warm=1):
    for _ in range(warm):
        call()
    synchronize()
    best, begin, n = 1e30, time.perf_counter(), 1
    while time.perf_counter() - begin < SECONDS:
        at = time.perf_counter()
        for _ in range(n):
            call()
        synchronize()
        took = time.perf_counter() - at
        best = min(best, took / n)
        n = n * 2 if took < 0.05 else n
    return best


def backends():
    """Those of attention: a name, and what chooses it."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    wanted = {"flash": "FLASH_ATTENTION", "cuDNN": "CUDNN_ATTENTION"}
    return {name: lambda b=getattr(SDPBackend, b): sdpa_kernel(b) for name, b in wanted.items() if hasattr(SDPBackend, b)}


def rates():
    import torch
    import torch.nn.functional as F

    n = 64 if TINY else 8192

    def product():
        a, b = (torch.randn(n, n, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
        s = timed(lambda: a @ b.t())
        return f"{s * 1e6:.1f} us, {2 * n**3 / s / 1e12:.2f} TFLOP/s"

    def copy():
        count = 1 << (12 if TINY else 28)
        x, y = (torch.randn(count, device=DEVICE) for _ in range(2))
        s = timed(lambda: y.copy_(x))
        return f"{s * 1e6:.1f} us, {8 * count / s / 1e9:.1f} GB/s"

    tried(f"product {n}x{n}x{n}", product)
    tried("copy, float32", copy)
    tokens, H, K, D = (64, 2, 1, 32) if TINY else (8192, 32, 8, 128)
    for T in LENGTHS:
        for name, chosen in backends().items():

            def attempt(rows, checkpointed):
                q, k, v = (torch.randn(rows, h, T, D, device=DEVICE, dtype=torch.bfloat16, requires_grad=True) for h in (H, K, K))
                pairs = rows * H * T * (T + 1) / 2
                with chosen():
                    with torch.no_grad():
                        forward = timed(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True))
                    out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
                    d = torch.randn_like(out)
                    backward = timed(lambda: torch.autograd.grad(out, (q, k, v), d, retain_graph=True))
                return (f"forward {forward * 1e6:.1f} us, {4 * pairs * D / forward / 1e12:.2f} TFLOP/s; "
                        f"backward {backward * 1e6:.1f} us, {10 * pairs * D / backward / 1e12:.2f} TFLOP/s")

            guarded(f"attention by {name}, causal, rows of {T}", tokens // T, attempt)
    free()


def make_model(name, lora):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    wanted = json.load(open(os.path.join(DEFAULTS, "models", name + ".json")))["config"]
    if TINY:
        wanted.update(num_hidden_layers=1, hidden_size=64, intermediate_size=96, num_attention_heads=2, num_key_value_heads=1,
                      head_dim=32, vocab_size=128, bos_token_id=None, eos_token_id=None, pad_token_id=None)
    config = AutoConfig.for_model(**wanted)
    config.use_cache = False
    with torch.device(DEVICE):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16 if lora else torch.float32, attn_implementation="sdpa")
    if lora:
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"))
    model.train()
    return model


def checkpoint(model, wanted):
    """Of each layer. PEFT and transformers then also make the embedding's output require gradients, by a hook at which
    torch.compile gives up the whole model; without reentrant checkpoints nothing needs it."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    if wanted:
        base.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if getattr(base, "_require_grads_hook", None):
            base.disable_input_require_grads()
    else:
        base.gradient_checkpointing_disable()


def step_of(model, run, rows, T, checkpointed):
    """Seconds of a step of `run`, the model or what torch.compile made of it."""
    import torch

    checkpoint(model, checkpointed)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, fused=DEVICE == "cuda")
    ids = torch.randint(0, model.config.vocab_size, (rows, T), device=DEVICE)

    def step():
        optimizer.zero_grad()
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = run(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()

    try:
        return timed(step, 3)
    finally:
        model.zero_grad()


@contextlib.contextmanager
def adapters_in_bfloat16(model):
    import torch

    trained = [p for p in model.parameters() if p.requires_grad]
    for p in trained:
        p.data = p.data.bfloat16()
    try:
        yield
    finally:
        for p in trained:
            p.data = p.data.float()


def steps(model, title, tokens, T, lora):
    """In rows of T: eager with each kind of attention, compiled with the faster one; compiled with adapters in bfloat16 instead
    of PEFT's float32."""
    import torch

    def measured(how, chosen, compiled):
        took = []

        def attempt(rows, checkpointed):
            torch.compiler.reset()
            torch._dynamo.utils.counters.clear()
            free()
            run = torch.compile(model, backend=COMPILER) if compiled else model
            with chosen():
                s = step_of(model, run, rows, T, checkpointed)
            took.append(s / rows)
            gib = torch.cuda.max_memory_allocated() / 2**30 if DEVICE == "cuda" else 0
            graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
            return f"{s * 1e3:.1f} ms a step, {rows * T / s:.0f} tokens/s, {gib:.1f} GiB" + (f", in {graphs} graphs" if graphs > 1 else "")

        guarded(f"{title}, {how}, rows of {T}", tokens // T, attempt)
        return took[0] if took else float("inf")

    ways = backends()
    took = {by: measured(f"eager, {by}", chosen, False) for by, chosen in ways.items()}
    best = min(took, key=took.get, default=None)
    if best is None or took[best] == float("inf"):
        best, ways = "PyTorch's choice", {"PyTorch's choice": contextlib.nullcontext}
        measured(f"eager, {best}", ways[best], False)
    measured(f"compiled, {best}", ways[best], True)
    if lora and T == LENGTHS[0]:
        with adapters_in_bfloat16(model):
            measured(f"compiled, {best}, adapters in bfloat16", ways[best], True)


def all_steps(peft):
    """The short rows of both models first."""
    made = model = None
    llama, smollm = ("llama3-8b", 64 if TINY else 8192, True), ("smollm2-135m", 64 if TINY else 16384, False)
    for which, T in ((smollm, LENGTHS[0]), (llama, LENGTHS[0]), (llama, LENGTHS[1]), (smollm, LENGTHS[1])):
        name, tokens, lora = which
        if lora and not peft:
            show(f"# without PEFT {name} in rows of {T} is not compared")
            continue
        title = f"{name}, {'LoRA of rank 16' if lora else 'all weights'}"
        if made != which:
            made = model = None
            free()
            ready = []
            if tried(f"# {title}", lambda: ready.append(make_model(name, lora)) or "the model is made"):
                continue
            made, model = which, ready.pop()
        steps(model, title, tokens, T, lora)


def main():
    if sys.argv[1:2] == ["--check"]:
        check()
    versions = {name: version(name) for name in ("torch", "transformers", "peft", "triton", "nvidia-cudnn-cu13")}
    show("# " + ", ".join(f"{name} {v or 'is not installed'}" for name, v in versions.items()))
    if not versions["torch"]:
        return show("# without PyTorch there is nothing to compare with here")
    import torch

    if DEVICE == "cuda" and not torch.cuda.is_available():
        return show("# this PyTorch sees no GPU")
    if DEVICE == "cuda":
        show(f"# CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}")
    torch.set_float32_matmul_precision("high")
    rates()
    if not versions["transformers"]:
        return show("# without transformers no training step is compared")
    all_steps(versions["peft"])


if __name__ == "__main__":
    main()
