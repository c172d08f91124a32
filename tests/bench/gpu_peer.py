#!/usr/bin/env python3
"""gpu_peer.py - the figures of bench_gpu by PyTorch, transformers and PEFT on the same GPU. What is not installed is said.

    python tests/bench/gpu_peer.py [SECONDS of each figure (2)] [tiny]
    python tests/bench/gpu_peer.py --check          the guard against a lack of memory, tried out without PyTorch

The shapes are those of gpu_step.h: llama3-8b with adapters of rank 16 on all linear layers of a bfloat16 base, 8,192 tokens;
smollm2-135m, all weights, float32 under autocast, 16,384 tokens. Each in rows of 512, the length of the texts that bench_gpu
packs, and of 2048. Weights are random, made on the GPU. Eager, and by torch.compile; attention is PyTorch's
scaled_dot_product_attention, by FlashAttention and by cuDNN. A line is printed as soon as it is known.

A step for which memory is short is a result too. It is tried again with checkpointed activations, then with half the rows.
tiny: narrow models, on the CPU where there is no GPU.
"""
import contextlib, gc, importlib.metadata, json, os, sys, time

WORDS = [w for w in sys.argv[1:] if not w.replace(".", "", 1).isdigit()]
SECONDS = next((float(w) for w in sys.argv[1:] if w not in WORDS), 2)
TINY = "tiny" in WORDS
DEFAULTS = os.environ.get("TUNE_DEFAULTS") or os.path.join(os.path.dirname(__file__), "..", "..", "defaults")
DEVICE = "cuda"


def show(line):
    print(line, flush=True)


def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def is_out_of_memory(error):
    return type(error).__name__ == "OutOfMemoryError" or "out of memory" in str(error).lower()


def free():
    gc.collect()
    torch = sys.modules.get("torch")
    if torch and DEVICE == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def guarded(name, rows, attempt):
    """Print what attempt(rows, checkpointed) says of the most rows for which memory suffices, and each try before it. Any other
    error is a line too, and ends this figure. False: there is no result."""
    while rows >= 1:
        for checkpointed in (False, True):
            what = f"{name}, {rows} rows{', checkpointed' if checkpointed else ''}"
            try:
                show(f"{what}: {attempt(rows, checkpointed)}")
                return True
            except Exception as error:
                lacking, said = is_out_of_memory(error), (str(error).strip() or type(error).__name__).splitlines()[0][:200]
            free()  # the error held the tensors of the step
            if not lacking:
                show(f"{what}: failed: {said}")
                return False
            show(f"{what}: out of memory")
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
    if DEVICE != "cuda":
        return {"PyTorch's choice": contextlib.nullcontext}
    from torch.nn.attention import SDPBackend, sdpa_kernel

    wanted = {"flash": "FLASH_ATTENTION", "cuDNN": "CUDNN_ATTENTION"}
    return {name: lambda b=getattr(SDPBackend, b): sdpa_kernel(b) for name, b in wanted.items() if hasattr(SDPBackend, b)}


def rates():
    import torch
    import torch.nn.functional as F

    n = 64 if TINY else 8192
    a, b = (torch.randn(n, n, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    s = timed(lambda: a @ b.t())
    show(f"product {n}x{n}x{n}: {s * 1e6:.1f} us, {2 * n**3 / s / 1e12:.2f} TFLOP/s")
    count = 1 << (12 if TINY else 28)
    x, y = (torch.randn(count, device=DEVICE) for _ in range(2))
    s = timed(lambda: y.copy_(x))
    show(f"copy, float32: {s * 1e6:.1f} us, {8 * count / s / 1e9:.1f} GB/s")
    del a, b, x, y
    tokens, H, D = (64, 2, 32) if TINY else (8192, 32, 128)
    for T in (16, 64) if TINY else (512, 2048):
        for name, chosen in backends().items():

            def attempt(rows, checkpointed):
                q, k, v = (torch.randn(rows, H, T, D, device=DEVICE, dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
                pairs = rows * H * T * (T + 1) / 2
                with chosen():
                    with torch.no_grad():
                        forward = timed(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))
                    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
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
        wanted.update(num_hidden_layers=2, hidden_size=64, intermediate_size=96, num_attention_heads=2, num_key_value_heads=1,
                      head_dim=32, vocab_size=128)
    config = AutoConfig.for_model(**wanted)
    config.use_cache = False
    with torch.device(DEVICE):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16 if lora else torch.float32, attn_implementation="sdpa")
    if lora:
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"))
    model.train()
    return model


def step_of(model, run, rows, T, checkpointed):
    """Seconds of a step of `run`, the model or what torch.compile made of it."""
    import torch

    if checkpointed:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    else:
        model.gradient_checkpointing_disable()
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


def steps(name, tokens, lora):
    """In rows of 512 and of 2048: eager with each kind of attention, compiled with the faster one; with adapters in bfloat16
    instead of PEFT's float32 last of all."""
    import torch

    model = make_model(name, lora)
    title = f"{name}, {'LoRA of rank 16' if lora else 'all weights'}"

    def measured(T, how, chosen, compiled):
        took = []

        def attempt(rows, checkpointed):
            free()
            torch.compiler.reset()
            run = torch.compile(model) if compiled else model
            with chosen():
                s = step_of(model, run, rows, T, checkpointed)
            took.append(s / rows)
            gib = torch.cuda.max_memory_allocated() / 2**30 if DEVICE == "cuda" else 0
            return f"{s * 1e3:.1f} ms a step, {rows * T / s:.0f} tokens/s, {gib:.1f} GiB"

        guarded(f"{title}, {how}, rows of {T}", tokens // T, attempt)
        return took[0] if took else 1e30

    lengths = (16, 32) if TINY else (512, 2048)
    for T in lengths:
        took = {by: measured(T, f"eager, {by}", chosen, False) for by, chosen in backends().items()}
        best = min(took, key=took.get)
        measured(T, f"compiled, {best}", backends()[best], True)
    if lora:
        for p in model.parameters():
            if p.requires_grad:
                p.data = p.data.to(torch.bfloat16)
        measured(lengths[0], f"compiled, {best}, adapters in bfloat16", backends()[best], True)


def main():
    global DEVICE
    if "--check" in WORDS:
        check()
    versions = {name: version(name) for name in ("torch", "transformers", "peft", "triton", "nvidia-cudnn-cu13")}
    show("# " + ", ".join(f"{name} {v or 'is not installed'}" for name, v in versions.items()))
    if not versions["torch"]:
        return show("# without PyTorch there is nothing to compare with here")
    import torch

    if torch.cuda.is_available():
        show(f"# CUDA {torch.version.cuda}, {torch.cuda.get_device_name()}")
    elif TINY:
        DEVICE = "cpu"
    else:
        return show("# this PyTorch sees no GPU")
    rates()
    if not versions["transformers"]:
        return show("# without transformers no training step is compared")
    if versions["peft"]:
        steps("llama3-8b", 64 if TINY else 8192, True)
    else:
        show("# without PEFT no adapters are compared")
    free()
    steps("smollm2-135m", 64 if TINY else 16384, False)


if __name__ == "__main__":
    main()
