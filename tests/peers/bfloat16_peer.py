"""build/finetune_full --dtype bfloat16 against PyTorch's autocast: 50 steps' losses, five seeds.

A seed gives a small Llama its first weights, and the rows their order. From the same folder and the
same batches train:
  ours      build/finetune_full --dtype bfloat16
  autocast  transformers' Llama under torch.autocast(bfloat16), float32 weights, eager attention
  fused     the same with PyTorch's fused attention ("sdpa")
  float32   autocast's without autocast
The spread is the standard deviation of autocast's loss over the seeds, at each step. For the same
seed ours may differ from autocast by less than that at every step: another arithmetic must matter
less than another seed. That is wide. The narrow bounds compare root mean squares over all steps and
seeds. Each within a factor, ours is as near to autocast as autocast is to float32; as near to
float32 as autocast is; as near to autocast as fused is.

The learning rate is one at which roundings stay small. At 2e-3 a few steps blow them up, and chance
decides who lands nearer: fused is then 2.4e-2 from autocast, ours 3.0e-2 from autocast and 1.5e-2
from fused.
"""
import json
import os
import random
import statistics
import subprocess
import tempfile

import tap
import torch
import transformers
from model_peer import PROGRAM, loss_sum, tokenizer
from transformers import AutoModelForCausalLM

SEEDS, STEPS, BATCH, LENGTH = 5, 50, 4, 64
LR, WARMUP, CLIP = 5e-4, 5, 1.0
NEAR_AUTOCAST, NEAR_FLOAT32, NEAR_FUSED = 1.5, 1.5, 2.0
OURS, AUTOCAST, FUSED, FLOAT32 = range(4)


def make_model(folder, vocabulary, seed):
    config = transformers.LlamaConfig(vocab_size=vocabulary, hidden_size=128, intermediate_size=352,
                                      num_hidden_layers=4, num_attention_heads=4,
                                      num_key_value_heads=2, max_position_embeddings=128,
                                      tie_word_embeddings=True, bos_token_id=0, eos_token_id=0)
    torch.manual_seed(seed)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)


def ours(folder, data, output):
    """Losses and learning rates of the steps."""
    options = {"--model": folder, "--dataset": data, "--text-field": "text", "--output": output,
               "--batch-size": BATCH, "--max-steps": STEPS, "--max-length": LENGTH,
               "--train-split": 1, "--lr": LR, "--schedule": "constant",
               "--warmup-steps": WARMUP, "--weight-decay": 0,
               "--clip-norm": CLIP, "--threads": 2, "--dtype": "bfloat16"}
    command = [PROGRAM, "--no-shuffle"] + [str(x) for pair in options.items() for x in pair]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, f"exit {run.returncode}: {' '.join(command)}: {run.stderr[-1500:]}"
    with open(os.path.join(output, "metrics.jsonl")) as f:
        steps = [m for m in map(json.loads, f) if "loss" in m]
    assert len(steps) == STEPS, steps
    return [m["loss"] for m in steps], [m["lr"] for m in steps]


def theirs(folder, ids, lrs, autocast, attention="eager"):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32,
                                                 attn_implementation=attention).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.999), eps=1e-8,
                                  weight_decay=0.0)
    losses = []
    for step in range(STEPS):
        rows = ids[step * BATCH : (step + 1) * BATCH]
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            loss = loss_sum(model, rows) / sum(len(x) - 1 for x in rows)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        for group in optimizer.param_groups:
            group["lr"] = lrs[step]
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def one_seed(seed, texts, root):
    """The losses of the four."""
    folder, output, data = (os.path.join(root, f"{seed}{e}") for e in ("", "-run", ".jsonl"))
    rows = random.Random(seed).sample(texts, STEPS * BATCH)
    tok = tokenizer(texts, folder)
    make_model(folder, len(tok), seed)
    with open(data, "w") as f:
        f.writelines(json.dumps({"text": x}) + "\n" for x in rows)
    ids = [tok(x)["input_ids"][:LENGTH] for x in rows]
    losses, lrs = ours(folder, data, output)
    return (losses, theirs(folder, ids, lrs, True), theirs(folder, ids, lrs, True, "sdpa"),
            theirs(folder, ids, lrs, False))


def compare(root):
    with open("datasets/stories.jsonl") as f:
        texts = [json.loads(line)["text"] for line in f]
    runs = [one_seed(seed, texts, root) for seed in range(1, SEEDS + 1)]
    steps = range(STEPS)
    spread = [statistics.stdev(run[AUTOCAST][t] for run in runs) for t in steps]
    apart = [max(abs(run[OURS][t] - run[AUTOCAST][t]) for run in runs) for t in steps]
    worst = max(a / s for a, s in zip(apart, spread))

    def rms(i, j):
        return statistics.fmean((run[i][t] - run[j][t]) ** 2 for run in runs for t in steps) ** 0.5

    first, last = (statistics.fmean(run[AUTOCAST][t] for run in runs) for t in (0, -1))
    print(f"# {SEEDS} seeds, {STEPS} steps, loss {first:.3f} to {last:.3f}; spread over seeds "
          f"{min(spread):.4f} to {max(spread):.4f}, median {statistics.median(spread):.4f}")
    print(f"# root mean squares: ours - autocast {rms(OURS, AUTOCAST):.1e} (largest "
          f"{max(apart):.1e}), ours - float32 {rms(OURS, FLOAT32):.1e}, "
          f"autocast - float32 {rms(AUTOCAST, FLOAT32):.1e}, "
          f"fused - autocast {rms(FUSED, AUTOCAST):.1e}, fused - float32 {rms(FUSED, FLOAT32):.1e}")
    tap.ok(worst < 1, f"every loss is autocast's within the spread ({worst:.3f} of it at most)",
           f"{apart} {spread}")
    for what, ratio, limit in (
        ("ours is as near to autocast as autocast is to float32",
         rms(OURS, AUTOCAST) / rms(AUTOCAST, FLOAT32), NEAR_AUTOCAST),
        ("ours is as near to float32 as autocast is",
         rms(OURS, FLOAT32) / rms(AUTOCAST, FLOAT32), NEAR_FLOAT32),
        ("ours is as near to autocast as fused is",
         rms(OURS, AUTOCAST) / rms(FUSED, AUTOCAST), NEAR_FUSED),
    ):
        tap.ok(ratio < limit, f"{what} ({ratio:.2f}, limit {limit})")
    tap.ok(rms(OURS, FLOAT32) > 1e-5, "it is bfloat16: float32 would be 1e-6 from PyTorch's")


if not os.path.exists(PROGRAM):
    tap.skip("bfloat16 against PyTorch's autocast", f"{PROGRAM} is not built")
    tap.done()
transformers.utils.logging.disable_progress_bar()
torch.set_num_threads(2)
with tempfile.TemporaryDirectory() as folder:
    try:
        compare(folder)
    except Exception as problem:
        tap.ok(False, "bfloat16 against PyTorch's autocast", repr(problem)[:3000])
tap.done()
