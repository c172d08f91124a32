"""build/finetune_full --dtype bfloat16 against PyTorch's autocast: the losses of 50 steps, for five seeds.

A seed gives a small Llama its first weights, and the rows their order. From the same folder and the same batches train:
  ours      build/finetune_full --dtype bfloat16
  autocast  transformers' Llama under torch.autocast(bfloat16), float32 weights, attention as it is written down ("eager")
  fused     the same with PyTorch's fused attention ("sdpa")
  float32   autocast's without autocast
The spread is the standard deviation of autocast's loss over the seeds, at each step. Ours may differ from autocast, for the
same seed, by less than that at every step: another arithmetic must matter less than another seed. That is wide. The narrow
bounds compare root mean squares over all steps and seeds: ours is as near to autocast as autocast is to float32, as near to
float32 as autocast is, and as near to autocast as PyTorch's own two ways are to each other, each within a factor.

The learning rate is one at which roundings stay small. At 2e-3 a few steps blow them up, and chance decides who lands
nearer: there PyTorch's two ways are 2.4e-2 apart, ours is 3.0e-2 from the one and 1.5e-2 from the other.
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

SEEDS, STEPS, BATCH, LENGTH = 5, 50, 6, 64
LR, WARMUP, CLIP = 5e-4, 5, 1.0
NEAR_AUTOCAST, NEAR_FLOAT32, NEAR_FUSED = 1.5, 1.5, 2.0


def make_model(folder, vocabulary, seed):
    config = transformers.LlamaConfig(vocab_size=vocabulary, hidden_size=128, intermediate_size=352, num_hidden_layers=4,
                                      num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
                                      tie_word_embeddings=True, bos_token_id=0, eos_token_id=0)
    torch.manual_seed(seed)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)


def ours(folder, data, output):
    command = [PROGRAM, "--model", folder, "--dataset", data, "--text-field", "text", "--output", output, "--batch-size", str(BATCH),
               "--max-steps", str(STEPS), "--max-length", str(LENGTH), "--train-split", "1", "--no-shuffle", "--lr", str(LR), "--schedule",
               "constant", "--warmup-steps", str(WARMUP), "--weight-decay", "0", "--clip-norm", str(CLIP), "--threads", "2", "--dtype",
               "bfloat16"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, f"exit {run.returncode}: {' '.join(command)}: {run.stderr[-1500:]} {run.stdout[-500:]}"
    with open(os.path.join(output, "metrics.jsonl")) as f:
        metrics = [m for m in map(json.loads, f) if "loss" in m]
    return [m["loss"] for m in metrics], [m["lr"] for m in metrics]


def theirs(folder, ids, lrs, autocast, attention="eager"):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation=attention).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
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
    assert len(losses) == STEPS, losses
    return losses, theirs(folder, ids, lrs, True), theirs(folder, ids, lrs, False), theirs(folder, ids, lrs, True, "sdpa")


def compare(root):
    with open("datasets/stories.jsonl") as f:
        texts = [json.loads(line)["text"] for line in f]
    runs = [one_seed(seed, texts, root) for seed in range(1, SEEDS + 1)]
    spread = [statistics.stdev(run[1][t] for run in runs) for t in range(STEPS)]
    apart = [max(abs(run[0][t] - run[1][t]) for run in runs) for t in range(STEPS)]
    worst = max(a / s for a, s in zip(apart, spread))

    def rms(i, j):
        return statistics.fmean((run[i][t] - run[j][t]) ** 2 for run in runs for t in range(STEPS)) ** 0.5

    print(f"# {SEEDS} seeds, {STEPS} steps, loss {statistics.fmean(r[1][0] for r in runs):.3f} to "
          f"{statistics.fmean(r[1][-1] for r in runs):.3f}; spread over seeds {min(spread):.4f} to {max(spread):.4f}, median "
          f"{statistics.median(spread):.4f}")
    print(f"# root mean square of differences: ours - autocast {rms(0, 1):.1e}, autocast - float32 {rms(1, 2):.1e}, ours - float32 "
          f"{rms(0, 2):.1e}, fused - autocast {rms(3, 1):.1e}, fused - float32 {rms(3, 2):.1e}; the largest of ours - autocast {max(apart):.1e}")
    tap.ok(worst < 1, f"every step's loss as autocast's, within the spread over seeds (at most {worst:.3f} of it)", f"{apart} {spread}")
    ratio = rms(0, 1) / rms(1, 2)
    tap.ok(ratio < NEAR_AUTOCAST, f"ours is as near to autocast as autocast is to float32 ({ratio:.2f}, limit {NEAR_AUTOCAST})")
    ratio = rms(0, 2) / rms(1, 2)
    tap.ok(ratio < NEAR_FLOAT32, f"ours is as near to float32 as autocast is ({ratio:.2f}, limit {NEAR_FLOAT32})")
    ratio = rms(0, 1) / rms(3, 1)
    tap.ok(ratio < NEAR_FUSED, f"ours is as near to autocast as PyTorch's fused attention is ({ratio:.2f}, limit {NEAR_FUSED})")
    tap.ok(rms(0, 2) > 1e-5, f"and it is not float32 itself, which is 1e-6 apart ({rms(0, 2):.1e})")


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
