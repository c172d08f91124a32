"""build/finetune_full against PyTorch, both ways, for one tiny model of every family.

transformers makes a model folder; build/finetune_full trains it for ten steps on some sixty rows; beside it a plain PyTorch
loop in float64 does the same from the same folder: same row order (--no-shuffle), accumulation with one division by the
step's label count, clipping at 1, AdamW with decay on matrices only, warm-up and cosine. Then:
  - each step's loss, gradient norm and learning rate as reported equal the loop's;
  - transformers loads checkpoint-final, model and tokenizer, and computes on the held-out rows the loss we reported;
  - the saved weights are the loop's.
Tolerances: a float32 loop of PyTorch's stays within 6e-8, 3e-7 and 7e-7 of its float64 loop (loss, gradient norm, weights); ours may
be some ten times further. What is observed is printed.
"""
import json
import math
import os
import random
import subprocess
import sys
import tempfile

import tap
import torch
import torch.nn.functional as F
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

PROGRAM = os.path.join(os.environ.get("BUILD", "build"), "finetune_full")
INIT = os.path.join(os.environ.get("BUILD", "build"), "init_model")
STEPS, BATCH, ACCUMULATE, LENGTH, SPLIT, SEED = 10, 2, 2, 24, 0.4, 4
LR, WARMUP, DECAY, CLIP = 1e-3, 3, 0.1, 1.0
LOSS_LIMIT, NORM_LIMIT, WEIGHT_LIMIT = 1e-6, 5e-6, 1e-5

LAYERS = 2
BASE = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=LAYERS, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=64, rms_norm_eps=1e-5, tie_word_embeddings=True, bos_token_id=0, eos_token_id=0)
FAMILIES = {
    "Llama": dict(),
    "Llama with biases": dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=False),
    "Qwen2": dict(rms_norm_eps=1e-6),
    "Qwen3": dict(head_dim=12, rms_norm_eps=1e-6),
    "Mistral": dict(sliding_window=9, tie_word_embeddings=False),
    "Granite": dict(embedding_multiplier=3.0, attention_multiplier=0.35, residual_multiplier=0.7, logits_scaling=2.0),
    "SmolLM3": dict(no_rope_layers=[0, 1], pad_token_id=0),
    "Olmo2": dict(pad_token_id=0),
    "Gemma3Text": dict(head_dim=12, pad_token_id=0, query_pre_attn_scalar=9, sliding_window=9,
                       layer_types=["sliding_attention", "full_attention", "sliding_attention"][:LAYERS]),
    "Phi3": dict(pad_token_id=0, sliding_window=9, original_max_position_embeddings=LENGTH,
                 rope_parameters={"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0, 1.25], "long_factor": [1.5, 3.0],
                                  "original_max_position_embeddings": LENGTH, "partial_rotary_factor": 0.5}),
}


def texts(r):
    words = [("".join(r.choice("abcdefghiklmnoprstuw") for _ in range(r.randint(2, 6)))) for _ in range(60)]
    rows = [" ".join(r.choice(words) for _ in range(r.randint(2, 16))).capitalize() + r.choice([".", "! 1984", "?\n", " é€", ""])
            for _ in range(60)]
    return rows


def tokenizer(rows, folder):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(rows, trainers.BpeTrainer(vocab_size=400, special_tokens=["<|endoftext|>"], show_progress=False,
                                                    initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    fast = PreTrainedTokenizerFast(tokenizer_object=t, bos_token="<|endoftext|>", eos_token="<|endoftext|>")
    fast.save_pretrained(folder)
    return fast


def make_model(name, folder, vocabulary):
    prefix = name.split()[0]
    config = getattr(transformers, prefix + "Config")(vocab_size=vocabulary + 5, **(BASE | FAMILIES[name]))
    torch.manual_seed(len(name))
    model = getattr(transformers, prefix.removesuffix("Text") + "ForCausalLM")(config)
    with torch.no_grad():
        for n, p in model.named_parameters():
            p.copy_(torch.randn(p.shape) * (0.15 if p.dim() == 2 else 0.2) + (1.0 if "norm" in n else 0.0))
    model.save_pretrained(folder)


def hash64(data, seed):
    """tune_hash64, written again."""
    mask, at, state = 2**64 - 1, 0, seed ^ 0x9E3779B97F4A7C15
    while True:
        word = data[at : at + 16].ljust(16, b"\0")
        left, right = (int.from_bytes(word[i : i + 8], "little") for i in (0, 8))
        product = (left ^ state ^ 0xA0761D6478BD642F) * (right ^ 0xE7037ED1A0B428DB)
        state = ((product ^ product >> 64) + 0x8EBC6AF09C88C6E3) & mask
        at += 16
        if at >= len(data):
            product = (state ^ len(data)) * 0x589965CC75374CC3
            return (product ^ product >> 64) & mask


def held_out(line):
    """tune_dataset_held_out, written again: Philox 2x64-10 (Salmon et al. 2011), key = seed, counter = (hash of the row, stream)."""
    key, left, right, mask = SEED, hash64(line.encode(), 0), 0x68656C64, 2**64 - 1
    for _ in range(10):
        product = 0xD2B74407B1CE6E93 * left
        left, right = (product >> 64) ^ key ^ right, product & mask
        key = (key + 0x9E3779B97F4A7C15) & mask
    return (left >> 11) * 2.0**-53 >= SPLIT


def batch(rows):
    """ids [B,T] padded with 0 and labels [B,T], shifted; -100 where there is none."""
    n = max(len(x) for x in rows)
    ids, labels = torch.zeros(len(rows), n, dtype=torch.long), torch.full((len(rows), n), -100)
    for b, x in enumerate(rows):
        ids[b, : len(x)] = torch.tensor(x)
        labels[b, : len(x) - 1] = torch.tensor(x[1:])
    return ids, labels


def loss_sum(model, rows):
    ids, labels = batch(rows)
    logits = model(input_ids=ids, use_cache=False).logits
    return F.cross_entropy(logits.flatten(0, 1).double(), labels.flatten(), ignore_index=-100, reduction="sum")


def steps(rows):
    """Micro-batches of each step: steps do not cross epochs, so an epoch's last one may be short."""
    size = BATCH * ACCUMULATE
    while True:
        for at in range(0, len(rows), size):
            step = rows[at : at + size]
            yield [step[i : i + BATCH] for i in range(0, len(step), BATCH)]


def learning_rate(step):
    """Step 1 is trained with 1/WARMUP of the peak, step WARMUP with all of it; then half a cosine down to 0."""
    if step < WARMUP:
        return LR * (step + 1) / WARMUP
    return LR * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP)))


def torch_loop(folder, rows, lrs):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").train()
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}],
                                  lr=LR, betas=(0.9, 0.999), eps=1e-8)
    losses, norms, source = [], [], steps(rows)
    for step in range(STEPS):
        micros = next(source)
        labels = sum(len(x) - 1 for micro in micros for x in micro)
        optimizer.zero_grad()
        total = 0.0
        for micro in micros:
            s = loss_sum(model, micro) / labels
            s.backward()
            total += float(s.detach())
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)))
        losses.append(total)
        for group in optimizer.param_groups:
            group["lr"] = lrs[step]
        optimizer.step()
    return model, losses, norms


def train(folder, data, output):
    command = [PROGRAM, "--model", folder, "--dataset", data, "--text-field", "text", "--output", output, "--batch-size", str(BATCH),
               "--accumulate", str(ACCUMULATE), "--max-steps", str(STEPS), "--max-length", str(LENGTH), "--train-split", str(SPLIT),
               "--seed", str(SEED), "--no-shuffle", "--lr", str(LR), "--schedule", "cosine", "--warmup-steps", str(WARMUP), "--weight-decay",
               str(DECAY), "--decay", "matrices", "--clip-norm", str(CLIP), "--optimizer", "adamw", "--threads", "2", "--dtype", "float32"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, f"exit {run.returncode}: {' '.join(command)}: {run.stderr[-1500:]} {run.stdout[-500:]}"
    with open(os.path.join(output, "metrics.jsonl")) as f:
        metrics = [json.loads(line) for line in f]
    with open(os.path.join(output, "report.json")) as f:
        return [m for m in metrics if "loss" in m], json.load(f)


def apart(ours, theirs):
    """Largest relative difference."""
    return max(abs(a - b) / abs(b) if b else abs(a) for a, b in zip(ours, theirs, strict=True))


def family(name, root):
    folder, output, data = (os.path.join(root, name.replace(" ", "-") + e) for e in ("", "-run", ".jsonl"))
    rows = texts(random.Random(7))
    tok = tokenizer(rows, folder)
    make_model(name, folder, len(tok))
    lines = [json.dumps({"text": x}) for x in rows]
    with open(data, "w") as f:
        f.writelines(line + "\n" for line in lines)
    ids = [(tok(x)["input_ids"] + [tok.eos_token_id])[:LENGTH] for x in rows]  # a text ends with the end token
    training = [x for x, line in zip(ids, lines, strict=True) if not held_out(line)]
    rest = [x for x, line in zip(ids, lines, strict=True) if held_out(line)]
    # Ten steps shall go past the end of the data, through a step that is not full.
    assert len(training) % (BATCH * ACCUMULATE) and len(training) < STEPS * BATCH * ACCUMULATE - 4, len(training)

    metrics, report = train(folder, data, output)
    model, losses, norms = torch_loop(folder, training, [m["lr"] for m in metrics])
    e = apart([m["loss"] for m in metrics], losses)
    tap.ok(e < LOSS_LIMIT, f"{name}: {STEPS} losses as PyTorch's (apart by {e:.1e})", f"{[m['loss'] for m in metrics]} {losses}")
    e = apart([m["grad_norm"] for m in metrics], norms)
    tap.ok(e < NORM_LIMIT, f"{name}: gradient norms (apart by {e:.1e})", f"{[m['grad_norm'] for m in metrics]} {norms}")
    e = apart([m["lr"] for m in metrics], [learning_rate(i) for i in range(STEPS)])
    tap.ok(e < 1e-6, f"{name}: learning rates", f"{[m['lr'] for m in metrics]} {[learning_rate(i) for i in range(STEPS)]}")

    checkpoint = os.path.join(output, "checkpoint-final")
    saved, problems = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    problems = {k: v for k, v in problems.items() if v}
    tap.ok(not problems, f"{name}: transformers loads checkpoint-final, every tensor and no other", str(problems))
    tap.ok(AutoTokenizer.from_pretrained(checkpoint)(rows)["input_ids"] == tok(rows)["input_ids"], f"{name}: and its tokenizer")
    with torch.no_grad():
        eval_loss = float(sum(loss_sum(saved.double(), [x]) for x in rest)) / sum(len(x) - 1 for x in rest)
    e = apart([report["eval_loss"]], [eval_loss])
    tap.ok(e < LOSS_LIMIT, f"{name}: eval_loss as transformers' on the checkpoint (apart by {e:.1e})", f"{report['eval_loss']} {eval_loss}")
    theirs = {n: p.detach() for n, p in model.named_parameters()}
    e = max(float((p.detach().double() - theirs[n]).norm() / theirs[n].norm()) for n, p in saved.named_parameters())
    tap.ok(e < WEIGHT_LIMIT, f"{name}: saved weights as PyTorch's (apart by {e:.1e})")


def random_model(like, root):
    """A folder of build/init_model's: transformers loads every tensor, in the dtype asked for, and the tokenizer."""
    folder = os.path.join(root, "random-" + like)
    subprocess.run([INIT, "--like", like, "--layers", "2", "--hidden-size", "64", "--intermediate-size", "96", "--heads", "4", "--kv-heads", "2",
                    "--head-dim", "16", "--vocab-size", "600", "--dtype", "bfloat16", folder], check=True, capture_output=True, text=True)
    model, problems = AutoModelForCausalLM.from_pretrained(folder, dtype="auto", output_loading_info=True)
    if any(problems.values()) or model.dtype != torch.bfloat16:
        return f"{problems} {model.dtype}"
    text = "Digits 1984, é€ and  spaces.\n"
    tok = AutoTokenizer.from_pretrained(folder)
    ids = tok(text)["input_ids"]
    if tok.decode(ids) != text or max(ids) >= model.config.vocab_size:
        return f"{ids} {tok.decode(ids)!r}"
    if not torch.isfinite(model(input_ids=torch.tensor([ids])).logits).all():
        return "logits are not finite"


if __name__ == "__main__":  # bfloat16_peer.py has functions of it
    if not os.path.exists(PROGRAM):
        tap.skip("finetune_full against PyTorch", f"{PROGRAM} is not built")
        tap.done()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as root:
        for like in ("smollm2-135m", "qwen2.5-0.5b", "qwen3-0.6b", "granite-3.1-2b", "mistral-7b",
                     "smollm3-3b", "phi-3-mini-4k", "olmo2-1b", "gemma-3-270m") if os.path.exists(INIT) else ():
            tap.case(f"init_model --like {like}: transformers loads it", random_model, like, root)
        for name in FAMILIES if len(sys.argv) < 2 else sys.argv[1:]:
            try:
                family(name, root)
            except Exception as problem:
                tap.ok(False, name, repr(problem)[:3000])
    tap.done()
