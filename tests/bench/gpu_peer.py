#!/usr/bin/env python3
"""gpu_peer.py - the figures of bench_gpu by PyTorch, transformers and PEFT on the same GPU. What is not installed is said.

    python tests/bench/gpu_peer.py [SECONDS of each figure (2)]

The shapes are those of gpu_step.h: llama3-8b with adapters of rank 16 on all linear layers of a bfloat16 base, 4 rows of 2048;
smollm2-135m, all weights, float32 under autocast, 8 rows of 2048. Weights are random, made on the GPU. Attention is
PyTorch's scaled_dot_product_attention; rows are not packed here, so that it takes its fastest kernel.
"""
import importlib.metadata, json, os, sys, time

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 2
DEFAULTS = os.environ.get("TUNE_DEFAULTS") or os.path.join(os.path.dirname(__file__), "..", "..", "defaults")


def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def timed(call):
    import torch

    call()
    torch.cuda.synchronize()
    best, begin, n = 1e30, time.perf_counter(), 1
    while time.perf_counter() - begin < SECONDS:
        at = time.perf_counter()
        for _ in range(n):
            call()
        torch.cuda.synchronize()
        took = time.perf_counter() - at
        best = min(best, took / n)
        n = n * 2 if took < 0.05 else n
    return best


def rates():
    import torch
    import torch.nn.functional as F

    n = 8192
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    s = timed(lambda: a @ b.t())
    print(f"product {n}x{n}x{n}: {s * 1e6:.1f} us, {2 * n**3 / s / 1e12:.2f} TFLOP/s", flush=True)
    x, y = (torch.randn(1 << 28, device="cuda") for _ in range(2))
    s = timed(lambda: y.copy_(x))
    print(f"copy, float32: {s * 1e6:.1f} us, {8 * (1 << 28) / s / 1e9:.1f} GB/s", flush=True)
    del a, b, x, y
    B, T, H, K, D = 4, 2048, 32, 8, 128
    q = torch.randn(B, H, T, D, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    k, v = (torch.randn(B, H, T, D, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(2))
    pairs = B * H * T * (T + 1) / 2
    with torch.no_grad():
        s = timed(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    print(f"attention forward, causal: {s * 1e6:.1f} us, {4 * pairs * D / s / 1e12:.2f} TFLOP/s", flush=True)
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    d = torch.randn_like(out)
    s = timed(lambda: torch.autograd.grad(out, (q, k, v), d, retain_graph=True))
    print(f"attention backward, causal: {s * 1e6:.1f} us, {10 * pairs * D / s / 1e12:.2f} TFLOP/s", flush=True)


def steps(name, rows, lora):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    wanted = json.load(open(os.path.join(DEFAULTS, "models", name + ".json")))["config"]
    config = AutoConfig.for_model(**wanted)
    config.use_cache = False
    dtype = torch.bfloat16 if lora else torch.float32
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="sdpa")
    if lora:
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"))
    model.train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, fused=True)
    ids = torch.randint(0, config.vocab_size, (rows, 2048), device="cuda")

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()

    for _ in range(2):
        step()
    s = timed(step)
    print(f"{name}, {'LoRA of rank 16' if lora else 'all weights'}: {s * 1e3:.1f} ms a step, {rows * 2048 / s:.0f} tokens/s, "
          f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB", flush=True)


def main():
    versions = {name: version(name) for name in ("torch", "transformers", "peft", "flash-attn")}
    print("# " + ", ".join(f"{name} {v or 'is not installed'}" for name, v in versions.items()), flush=True)
    if not versions["torch"]:
        return print("# without PyTorch there is nothing to compare with here")
    import torch

    if not torch.cuda.is_available():
        return print("# this PyTorch sees no GPU")
    print(f"# CUDA {torch.version.cuda}, {torch.cuda.get_device_name()}", flush=True)
    rates()
    if not versions["transformers"]:
        return print("# without transformers no training step is compared")
    steps("smollm2-135m", 8, False)
    if versions["peft"]:
        steps("llama3-8b", 4, True)
    else:
        print("# without PEFT no adapters are compared")


main()
