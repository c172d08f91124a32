"""make_steps.py [FOLDER] - what PyTorch's optimizers make of the recipes' options, in float64.

FOLDER (default: this one) receives steps/: a model of 3,000 weights with its tokenizer, a DoRA adapter,
rows of text, the command lines in runs.txt, and one file of numbers for each of them. README.md there
says what is in them. tests/optimizers/test_optimizer_flags.sh runs the recipes with these lines and compares.
"""
import json
import math
import os
import shutil
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import make_adapters
from make_models import B1, ROPE, forward, load, randomise

TEXTS = ["A fox sat by the river.", "Two owls watched the moon rise.", "Rain fell on the old mill.",
         "The miller sang a low song.", "Nobody came to the bridge today.", "Snow!",
         "Seven boats left before dawn.", "The lamp went out, and then the stars."]
BATCH, ACCUMULATE = 2, 2  # 8 rows: two steps an epoch

# Each option of the group "optimizer" is off its default somewhere. eps is large enough to change every
# update. Clipping at 0.4 acts; 0 keeps the default of 1 from acting. The two limits of time are far away:
# they must change nothing.
OPTIONS = {
    "adamw-linear": {
        "optimizer": "adamw", "lr": 0.02, "schedule": "linear", "warmup-ratio": 0.35, "beta1": 0.75,
        "beta2": 0.96, "eps": 0.004, "weight-decay": 0.7, "decay": "all", "clip-norm": 0.4, "max-steps": 8,
        "stop-at-step": 5},
    "adamw-cosine": {
        "optimizer": "adamw", "lr": 0.015, "schedule": "cosine", "warmup-steps": 2, "beta1": 0.6,
        "beta2": 0.9, "eps": 0.03, "weight-decay": 0.4, "decay": "matrices", "clip-norm": 0, "epochs": 3},
    "sgd-constant": {
        "optimizer": "sgd", "lr": 0.3, "schedule": "constant", "warmup-ratio": 0.4, "momentum": 0.65,
        "weight-decay": 0.25, "decay": "all", "clip-norm": 0.8, "max-steps": 4,
        "stop-after-seconds": 1000000, "until-stable": 0.5},
    "muon-linear": {
        "optimizer": "muon", "lr": 0.02, "schedule": "linear", "warmup-ratio": 0.2, "muon-momentum": 0.8,
        "beta1": 0.75, "beta2": 0.96, "eps": 0.004, "weight-decay": 0.7, "decay": "all", "clip-norm": 0.4,
        "max-steps": 20},
    "adamw-ema": {
        "optimizer": "adamw", "lr": 0.02, "schedule": "linear", "warmup-ratio": 0.2, "beta1": 0.75,
        "beta2": 0.96, "eps": 0.05, "weight-decay": 0.7, "decay": "all", "clip-norm": 0.4, "max-steps": 20,
        "ema": 0.6, "eval-dataset": "rows.jsonl"},
    "sgd-plain": {
        "optimizer": "sgd", "lr": 0.2, "schedule": "linear", "warmup-steps": 1, "weight-decay": 0.6,
        "decay": "matrices", "clip-norm": 0, "max-steps": 2, "label-smoothing": 0.15, "logits-chunk": 1},
}


def make_model(folder):
    changes = dict(vocab_size=258, hidden_size=8, intermediate_size=12, num_attention_heads=2,
                   num_key_value_heads=1, rope_parameters=ROPE)
    config = transformers.LlamaConfig(**(B1 | changes))
    model = transformers.LlamaForCausalLM(config)
    randomise(model, torch.Generator().manual_seed(201))
    model.save_pretrained(folder)
    os.chmod(os.path.join(folder, "model.safetensors"), 0o644)
    os.remove(os.path.join(folder, "generation_config.json"))
    tokens = ["<|endoftext|>", "<|pad|>"] + sorted(pre_tokenizers.ByteLevel.alphabet())
    tok = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=[]))
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    tok.save(os.path.join(folder, "tokenizer.json"))
    return tok


def make_adapter(base, folder):
    """PEFT's own, of a kind that has vectors too, so that --decay changes something."""
    config = LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, r=2, lora_alpha=3, use_dora=True,
                        target_modules=["q_proj", "o_proj", "up_proj"])
    model = get_peft_model(load(base), config)
    make_adapters.randomise(model, torch.Generator().manual_seed(202))
    for p in model.parameters():
        p.data = p.data.float()
    model.base_model.model.config._name_or_path = "model"
    model.peft_config["default"].base_model_name_or_path = "model"
    model.save_pretrained(folder)
    os.remove(os.path.join(folder, "README.md"))
    path = os.path.join(folder, "adapter_config.json")
    with open(path) as f:
        written = json.load(f)
    written["target_modules"].sort()  # a set in memory
    with open(path, "w") as f:
        f.write(json.dumps(written, indent=2, sort_keys=True) + "\n")
    os.chmod(os.path.join(folder, "adapter_model.safetensors"), 0o644)


def learning_rate(o, step, planned):
    """The rate of the step after `step` finished ones (components/optimizers/schedule.h)."""
    warmup = o["warmup-steps"] if "warmup-steps" in o else math.ceil(o["warmup-ratio"] * planned)
    if step < warmup:
        return o["lr"] * (step + 1) / warmup
    q = (step - warmup) / (planned - warmup)
    curves = {"constant": 1, "linear": 1 - q, "cosine": 0.5 * (1 + math.cos(math.pi * q))}
    return o["lr"] * curves[o["schedule"]]


def micro_batch(rows):
    n = max(len(x) for x in rows)
    ids, labels = torch.zeros(len(rows), n, dtype=torch.long), torch.full((len(rows), n), -100)
    for b, x in enumerate(rows):
        ids[b, : len(x)] = torch.tensor(x)
        labels[b, : len(x) - 1] = torch.tensor(x[1:])
    return ids, labels


def newton_schulz(grad, coefficients, steps, eps):
    """torch.optim.Muon's own, without its rounding to bfloat16."""
    a, b, c = coefficients
    x = grad.T if grad.size(0) > grad.size(1) else grad
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if grad.size(0) > grad.size(1) else x


class MuonAndAdamW:
    """torch.optim.Muon for the matrices of the layers, AdamW for the rest, at one learning rate."""

    def __init__(self, o, named):
        torch.optim._muon._zeropower_via_newtonschulz = newton_schulz
        hidden = [p for n, p in named if ".layers." in n and p.dim() == 2]
        rest = [p for n, p in named if not (".layers." in n and p.dim() == 2)]
        muon = torch.optim.Muon(hidden, lr=1.0, weight_decay=o["weight-decay"], momentum=o["muon-momentum"],
                                adjust_lr_fn="match_rms_adamw")
        self.optimizers = [muon] + ([optimizer_of(o | {"optimizer": "adamw"}, rest)] if rest else [])
        self.param_groups = [g for x in self.optimizers for g in x.param_groups]

    def zero_grad(self):
        for x in self.optimizers:
            x.zero_grad()

    def step(self):
        for x in self.optimizers:
            x.step()


def optimizer_of(o, params):
    """PyTorch's. Its SGD adds the decay to the gradient; ours is decoupled, so train() does it."""
    decays = [p for p in params if p.dim() == 2 or o["decay"] == "all"]
    others = [p for p in params if p.dim() != 2 and o["decay"] != "all"]
    groups = [{"params": g, "decay": d} for g, d in ((decays, o["weight-decay"]), (others, 0)) if g]
    if o["optimizer"] == "sgd":
        return torch.optim.SGD(groups, lr=1.0, momentum=o.get("momentum", 0.0))
    for g in groups:
        g["weight_decay"] = g["decay"]
    return torch.optim.AdamW(groups, lr=1.0, betas=(o["beta1"], o["beta2"]), eps=o["eps"])


def averages(model, decay):
    """torch's own, of the weights as they are now, with the warm-up of --ema."""
    def average(old, new, updates):
        d = min(decay, (1 + updates) / (10 + updates))
        return d * old + (1 - d) * new

    ema = torch.optim.swa_utils.AveragedModel(model, avg_fn=average)
    ema.update_parameters(model)  # the first call copies
    return ema


def mean_loss(model, rows):
    total = 0.0
    with torch.no_grad():
        for i in range(0, len(rows), BATCH):
            total += float(forward(model, *micro_batch(rows[i : i + BATCH]))[1])
    return total / sum(len(x) - 1 for x in rows)


def train(model, rows, o):
    """The numbers of each step. The model then is as it is saved: with "ema", the averages."""
    size = BATCH * ACCUMULATE
    planned = o["max-steps"] if "max-steps" in o else o["epochs"] * len(rows) // size
    params = [p for p in model.parameters() if p.requires_grad]
    muon = o["optimizer"] == "muon"
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    optimizer, losses, norms, rates = MuonAndAdamW(o, named) if muon else optimizer_of(o, params), [], [], []
    ema = averages(model, o["ema"]) if "ema" in o else None
    for step in range(o.get("stop-at-step", planned)):
        at = step * size % len(rows)
        labels = sum(len(x) - 1 for x in rows[at : at + size])
        optimizer.zero_grad()
        total = 0.0
        for i in range(at, at + size, BATCH):
            smoothing = o.get("label-smoothing", 0.0)
            loss = forward(model, *micro_batch(rows[i : i + BATCH]), smoothing)[1] / labels
            loss.backward()
            total += float(loss.detach())
        losses.append(total)
        norms.append(float(torch.nn.utils.clip_grad_norm_(params, o["clip-norm"] or math.inf)))
        rates.append(learning_rate(o, step, planned))
        for group in optimizer.param_groups:
            group["lr"] = rates[-1]
            if o["optimizer"] == "sgd":
                with torch.no_grad():
                    for p in group["params"]:
                        p.mul_(1 - rates[-1] * group["decay"])
        optimizer.step()
        if ema:
            ema.update_parameters(model)
    numbers = {"loss": losses, "grad_norm": norms, "lr": rates}
    if ema:  # not evaluated in the copy: its norms in float64 are those of the model
        with torch.no_grad():
            for p, average in zip(model.parameters(), ema.module.parameters()):
                p.copy_(average)
        numbers["eval_loss"] = [mean_loss(model, rows)]
    return numbers


def command(recipe, o):
    adapter = " --adapter adapter" if recipe == "finetune_lora" else ""
    options = " ".join(f"--{k} {v}" for k, v in o.items())
    return (f"{recipe} --model model --dataset rows.jsonl --max-length 48 --batch-size {BATCH} "
            f"--accumulate {ACCUMULATE} --no-shuffle --append-token none{adapter} {options}")


def main(root):
    folder = os.path.join(root, "steps")
    base, adapter = os.path.join(folder, "model"), os.path.join(folder, "adapter")
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    tok = make_model(base)
    make_adapter(base, adapter)
    rows = [tok.encode(t).ids for t in TEXTS]
    with open(os.path.join(folder, "rows.jsonl"), "w") as f:
        f.writelines(json.dumps({"text": t}) + "\n" for t in TEXTS)
    lines = []
    for recipe in ("finetune_full", "finetune_lora"):
        for name, o in OPTIONS.items():
            full = recipe == "finetune_full"
            model = load(base) if full else make_adapters.with_adapter(base, adapter)
            numbers = train(model, rows, o)
            out = {k: torch.tensor(v, dtype=torch.float64) for k, v in numbers.items()}
            for n, p in model.named_parameters():
                if p.requires_grad:
                    out["after." + make_adapters.as_saved(n)] = p.detach().float()
            run = f"{recipe.removeprefix('finetune_')}-{name}"
            save_file(out, os.path.join(folder, run + ".safetensors"), metadata={"format": "pt"})
            os.chmod(os.path.join(folder, run + ".safetensors"), 0o644)
            lines.append(f"{run} {command(recipe, o)}\n")
            print(f"# {run:18} loss {numbers['loss'][0]:.4f} -> {numbers['loss'][-1]:.4f}")
    with open(os.path.join(folder, "runs.txt"), "w") as f:
        f.writelines(lines)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__)))
