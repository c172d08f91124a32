"""make_adapters.py [FOLDER] - adapters that PEFT made on the tiny models of make_models.py, and what they compute, in float64.

Creating, saving and merging are PEFT's own. FOLDER (default: this one) holds the models and receives adapters/<name>;
README.md there says what is in it. Of those whose name begins with qlora, the base's linear layers went through NF4 first, by
numpy, and its other matrices through bfloat16.
"""
import json
import os
import shutil
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import numpy as np
import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file

from make_models import forward, in_float64, load

ALL = "all-linear"
STEPS = 20

# name: the base (a folder of make_models.py), what LoraConfig gets
ADAPTERS = {
    "lora": ("llama-rows", dict(r=4, lora_alpha=8, target_modules=ALL)),
    "lora-biases": ("qwen2", dict(r=3, lora_alpha=6, target_modules=["q_proj", "v_proj"])),
    "lora-untied": ("llama-untied", dict(r=4, lora_alpha=2, target_modules=["o_proj", "up_proj"])),
    "lora-granite": ("granite", dict(r=2, lora_alpha=4, target_modules=ALL)),
    "lora-layer": ("llama-tied", dict(r=2, lora_alpha=4, target_modules=["k_proj", "down_proj"], layers_to_transform=[1])),
    "rslora-patterns": ("qwen3", dict(r=4, lora_alpha=6, use_rslora=True, target_modules=["q_proj", "k_proj", "v_proj", "gate_proj", "down_proj"],
                                      rank_pattern={"v_proj": 2, "layers.1.self_attn.q_proj": 5}, alpha_pattern={"down_proj": 3})),
    "dora": ("llama-head-dim", dict(r=4, lora_alpha=8, use_dora=True, target_modules=ALL)),
    "dora-biases": ("llama-biases", dict(r=2, lora_alpha=3, use_dora=True, target_modules=["q_proj", "o_proj", "gate_proj", "down_proj"])),
    "qlora": ("qwen3", dict(r=4, lora_alpha=8, target_modules=ALL)),
    "qlora-dora": ("llama-untied", dict(r=3, lora_alpha=6, use_dora=True, target_modules=["q_proj", "v_proj", "o_proj", "down_proj"])),
    "lora-embedding": ("granite", dict(r=2, lora_alpha=4, target_modules=["k_proj", "up_proj"], modules_to_save=["embed_tokens"])),
    "lora-head": ("llama-tied", dict(r=2, lora_alpha=4, target_modules=["q_proj", "down_proj"], layers_to_transform=[1], modules_to_save=["lm_head"])),
    "dora-whole": ("llama-untied", dict(r=2, lora_alpha=4, use_dora=True, target_modules=["v_proj", "gate_proj"],
                                        modules_to_save=["embed_tokens", "lm_head"])),
}

# QLoRA (Dettmers et al. 2023), appendix E
NF4 = np.array([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
                -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
                0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0], np.float32)


def dynamic_map():
    """The levels of the magnitudes: a sign, a power of ten, and the middles of 2^i equal parts of 0.1 to 1; and zero and one."""
    levels = [0.0, 1.0]
    for i in range(7):
        bounds = torch.linspace(0.1, 1, 2**i + 1).numpy()  # the published levels are of its rounding
        middles = np.float32(10.0 ** (i - 6)) * ((bounds[:-1] + bounds[1:]) / np.float32(2))
        levels += [*middles, *-middles]
    return np.sort(np.array(levels, np.float32))


def nearest(levels, x):
    """Of two equally near the lower."""
    bounds = (levels[:-1] + levels[1:]) / np.float32(2)
    return np.searchsorted(bounds, x, side="left")


def scaled(x, block):
    """x by the largest magnitude of its block, and these: a last block that is not full is divided, others multiplied."""
    parts = [x[i : i + block] for i in range(0, len(x), block)]
    most = np.array([max(np.abs(p).max(), 1e-38) for p in parts], np.float32)
    by = [p / m if len(p) < block else p * (np.float32(1) / m) for p, m in zip(parts, most)]
    return np.clip(np.concatenate(by), -1, 1).astype(np.float32), most


def through_nf4(x):
    flat, levels = x.reshape(-1), dynamic_map()
    numbers, absmax = scaled(flat, 64)
    mean = np.float32(absmax.astype(np.float64).mean())
    magnitudes, largest = scaled(absmax - mean, 256)
    absmax = levels[nearest(levels, magnitudes)] * np.repeat(largest, 256)[: len(absmax)] + mean
    return (NF4[nearest(NF4, numbers)] * np.repeat(absmax, 64)[: len(flat)]).astype(np.float32).reshape(x.shape)


def load_base(folder, name):
    model = load(folder)
    if not name.startswith("qlora"):
        return model
    with torch.no_grad():
        for n, p in model.named_parameters():
            if n.endswith("_proj.weight"):
                p.copy_(torch.from_numpy(through_nf4(p.float().numpy())))
            elif p.dim() == 2:
                p.copy_(p.bfloat16())
    return model


def is_trained(name):
    return "lora_" in name or "modules_to_save" in name


def randomise(model, generator):
    """B is not zero and magnitudes are not the norms they start as, so that every gradient shows."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if not is_trained(name):
                continue
            r = torch.randn(p.shape, generator=generator).double()
            if "modules_to_save" in name:
                p.copy_((p + 0.05 * r).float())
            elif "magnitude" in name:
                p.mul_(1 + 0.1 * r)
            else:
                p.copy_((0.5 * r / p.shape[1] ** 0.5).float())  # what a file in float32 holds exactly


def as_saved(name):
    """PEFT's name in memory to the one in its file."""
    name = name.replace(".modules_to_save.default", "").replace(".default", "")
    return name.removesuffix(".weight") if name.endswith("magnitude_vector.weight") else name


def with_adapter(base, folder):
    model = PeftModel.from_pretrained(load_base(base, os.path.basename(folder)), folder, is_trainable=True)
    for name, p in model.named_parameters():
        if is_trained(name):
            p.data = p.data.double()
    return model


def make(root, name, seed):
    base, options = ADAPTERS[name]
    base_folder, folder = os.path.join(root, base), os.path.join(root, "adapters", name)
    shutil.rmtree(folder, ignore_errors=True)
    config = LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, **options)
    model = get_peft_model(load_base(base_folder, name), config)
    randomise(model, torch.Generator().manual_seed(seed))
    for p in model.parameters():
        p.data = p.data.float()  # as PEFT's files hold them
    model.base_model.model.config._name_or_path = base
    model.peft_config["default"].base_model_name_or_path = base
    model.save_pretrained(folder)
    os.remove(os.path.join(folder, "README.md"))

    with open(os.path.join(folder, "adapter_config.json")) as f:
        written = json.load(f)
    if isinstance(written.get("target_modules"), list):
        written["target_modules"].sort()  # a set in memory: its order is chance
    with open(os.path.join(folder, "adapter_config.json"), "w") as f:
        f.write(json.dumps(written, indent=2, sort_keys=True) + "\n")

    kept = load_file(os.path.join(base_folder, "expected.safetensors"))
    ids, labels = kept["input_ids"], kept["labels_shifted"]
    count = int((labels != -100).sum())
    model = with_adapter(base_folder, folder)
    logits, loss = forward(model, ids, labels)
    (loss / count).backward()
    out = {"logits": logits.detach(), "loss": (loss / count).detach()}
    for n, p in model.named_parameters():
        if p.requires_grad:
            out["grad." + as_saved(n)] = p.grad.float()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-2, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    losses = []
    for step in range(STEPS + 1):
        optimizer.zero_grad()
        mean = forward(model, ids, labels)[1] / count
        losses.append(mean.detach())
        if step < STEPS:
            mean.backward()
            optimizer.step()
    out["adamw_losses"] = torch.stack(losses)

    merged = with_adapter(base_folder, folder).merge_and_unload()
    in_float64(merged)
    difference = float((forward(merged, ids, labels)[0].detach() - out["logits"]).norm() / out["logits"].norm())
    assert difference < 1e-7, difference
    save_file(out, os.path.join(folder, "expected.safetensors"), metadata={"format": "pt"})
    for file in ("adapter_model.safetensors", "expected.safetensors"):
        os.chmod(os.path.join(folder, file), 0o644)
    print(f"# {name:16} on {base:14} loss {float(losses[0]):.6f} -> {float(losses[-1]):.6f}, merged differs by {difference:.1e}")


def main(root):
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for i, name in enumerate(ADAPTERS):
        make(root, name, 101 + i)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__)))
