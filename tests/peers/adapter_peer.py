"""Adapter folders and build/merge_adapter against the real PEFT, on tiny models of several families.

  - configs: of 300 random adapter_config.json in all the forms PEFT takes, ours are the same modules, ranks and scales, or the
    config is refused; what we write again means the same to PEFT;
  - merging: adapters that PEFT made and saved (LoRA, rsLoRA, DoRA, patterns, chosen layers, modules_to_save, half precision) are merged; the
    merged folder, loaded by transformers, gives the logits of PEFT's model with the adapter, and of PEFT's own merge;
  - the folder with our config in the place of PEFT's: PEFT loads it and computes the same;
  - training: an adapter that finetune_lora trained gives PEFT's model the logits of ours, as does its merge, and what transformers
    loads from the folder alone; PEFT trains it on and saves, we read that; finetune_lora goes on from there, and PEFT reads that.
"""
import copy
import json
import math
import os
import random
import re
import shutil
import subprocess
import tempfile
import warnings

import tap
import numpy as np
import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

BUILD = os.environ.get("BUILD", "build")
PEER = os.path.join(BUILD, "tests", "peers", "adapter_peer")
MERGE = os.path.join(BUILD, "merge_adapter")
CONFIGS = 300
LIMIT = 1e-4  # of the logits' norm; what is observed is printed

LAYERS = 3
BASE = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=LAYERS, num_attention_heads=4, num_key_value_heads=2, vocab_size=67,
            max_position_embeddings=64, rms_norm_eps=1e-5, tie_word_embeddings=True, bos_token_id=0, eos_token_id=0)
FAMILIES = {
    "Llama": dict(tie_word_embeddings=False, attention_bias=True, mlp_bias=True),
    "Qwen2": dict(),
    "Qwen3": dict(head_dim=12),
    "Granite": dict(embedding_multiplier=3.0, attention_multiplier=0.35, residual_multiplier=0.7, logits_scaling=2.0),
    "SmolLM3": dict(no_rope_layers=[1, 0, 1], pad_token_id=0),
    "Olmo2": dict(pad_token_id=0),
    "Gemma3Text": dict(head_dim=12, pad_token_id=0, query_pre_attn_scalar=9, sliding_window=9,
                       layer_types=["sliding_attention", "full_attention", "sliding_attention"][:LAYERS]),
    "Phi3": dict(pad_token_id=0, tie_word_embeddings=False),
}
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
ADAPTERS = {
    "all-linear": dict(r=4, lora_alpha=8, target_modules="all-linear"),
    "rsLoRA, patterns": dict(r=4, lora_alpha=6, use_rslora=True, target_modules=LINEAR,
                             rank_pattern={"v_proj": 2, "layers.1.mlp.up_proj": 7},
                             alpha_pattern={"^model.layers.0.self_attn.q_proj": 3, "(k_proj|o_proj)": 1}),
    "DoRA": dict(r=3, lora_alpha=5, use_dora=True, target_modules=LINEAR),
    "DoRA, rsLoRA": dict(r=3, lora_alpha=5, use_dora=True, use_rslora=True, target_modules=["q_proj", "down_proj"],
                         rank_pattern={"q_proj": 1}),
    "layers": dict(r=2, lora_alpha=4, target_modules=["k_proj", "down_proj"], layers_to_transform=[0, 2], layers_pattern="layers"),
    "expression": dict(r=2, lora_alpha=4, target_modules=r".*\.self_attn\.(q_proj|o_proj)"),
    "expression of layers": dict(r=2, lora_alpha=4, target_modules=r"model\.layers\.(0|2)\.(?:self_attn\.[qv]|mlp\.\w+)_proj"),
    "excluded": dict(r=2, lora_alpha=1, target_modules=LINEAR, exclude_modules=["mlp.up_proj", "lm_head"]),
    "embedding": dict(r=2, lora_alpha=4, target_modules=["v_proj"], modules_to_save=["embed_tokens"]),
    "head": dict(r=2, lora_alpha=4, target_modules="all-linear", modules_to_save=["lm_head"]),
    "both": dict(r=2, lora_alpha=4, target_modules=["up_proj"], use_dora=True, modules_to_save=["model.embed_tokens", "lm_head"]),
    "gaussian": dict(r=2, lora_alpha=4, target_modules=["v_proj"], init_lora_weights="gaussian"),
}


def of_family(options, family):
    """The same adapter with the names that this family's modules have."""
    if family != "Phi3":
        return options
    fused = lambda x: re.sub(r"\b(q|k|v)_proj", "qkv_proj", re.sub(r"\b(gate|up)_proj", "gate_up_proj", x))
    change = lambda v: fused(v) if isinstance(v, str) else list(dict.fromkeys(map(fused, v))) if isinstance(v, list) and isinstance(v[0], str) \
        else {fused(k): x for k, x in v.items()} if isinstance(v, dict) else v
    return {k: change(v) for k, v in options.items()}


def make_model(family, folder):
    torch.manual_seed(len(family))
    config = getattr(transformers, family + "Config")(**(BASE | FAMILIES[family]))
    model = getattr(transformers, family.removesuffix("Text") + "ForCausalLM")(config)
    with torch.no_grad():
        for n, p in model.named_parameters():
            p.copy_(torch.randn(p.shape) * (0.15 if p.dim() == 2 else 0.2) + (1.0 if "norm" in n else 0.0))
    model.save_pretrained(folder)


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def logits(model):
    ids = torch.randint(0, 67, (2, 20), generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        return model.eval()(ids).logits.double()


def distance(a, b):
    return float((a - b).norm() / b.norm())


def limit(model):
    """How far two implementations may be apart: LIMIT, or four times what float32 itself loses on this model. A norm of a
    vector that training brought near zero loses that much."""
    return max(LIMIT, 4 * distance(theirs(model), theirs(copy.deepcopy(model).double())))


# ---- configs ----


class Peer:
    def __init__(self, model):
        self.child = subprocess.Popen([PEER, model], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, folder, output):
        self.child.stdin.write(f"{folder}\t{output}\n")
        self.child.stdin.flush()
        lines = []
        while (line := self.child.stdout.readline()) not in (".\n", ""):
            lines.append(line.rstrip("\n"))
        if lines and lines[-1].startswith("refused"):
            return lines[-1]
        return {m: (int(r), float(s)) for m, r, s in (line.split() for line in lines)}


def name(r, whole=False):
    part = r.choice(LINEAR)
    block = "mlp." if part in LINEAR[4:] else "self_attn."
    end = f"layers.{r.randrange(3)}." + block + part
    return "model." + end if whole else r.choice([part, part, block + part, end, "model." + end])


def names(r):
    form = r.randrange(6)
    if form == 0:
        return "all-linear"
    if form == 1:
        ends = r.choice(["", "?:"]) + "|".join(r.sample(LINEAR, r.randint(1, 3)))
        return r".*\." + r.choice(["", r"self_attn\.", r"mlp\."]) + "(" + ends + ")"
    if form == 2:
        plain = name(r, True).replace(".", r"\.")
        return r.choice([plain, "q_proj", ".*q_proj", ".*(q|k)_proj", r".*\.layers\.[01]\.mlp\.up_proj",
                         r".*\d\.self_attn\.\w+_proj", r"model\.layers\.(?:0|1)\..*?_proj", r".*\.[^1]\.mlp\.(up|down)_proj"])
    return [name(r) for _ in range(r.randint(1, 4))]


def random_config(r):
    o = dict(r=r.randint(1, 9), lora_alpha=r.choice([1, 4, 16, 0.5]), target_modules=names(r), use_rslora=r.random() < 0.3,
             use_dora=r.random() < 0.2)
    if r.random() < 0.3:
        o["rank_pattern"] = {name(r): r.randint(1, 6) for _ in range(r.randint(1, 3))}
    if r.random() < 0.3:
        o["alpha_pattern"] = {r.choice([name(r), "(q_proj|up_proj)", "^" + name(r, True)]): r.randint(1, 6)
                              for _ in range(r.randint(1, 3))}
    if r.random() < 0.2 and isinstance(o["target_modules"], list):
        o["layers_to_transform"] = r.choice([1, [0], [0, 2]])
    if r.random() < 0.2:
        o["exclude_modules"] = r.choice([[name(r)], ["lm_head"], ["up_proj", "k_proj"], r".*\.(v_proj|o_proj)"])
    return o


def modules(model):
    return {n.removeprefix("base_model.model."): (m.r["default"], m.scaling["default"]) for n, m in model.named_modules()
            if hasattr(m, "lora_A") and "default" in getattr(m, "lora_A", {})}


def adapted(folder, config):
    try:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(folder))
        return modules(get_peft_model(model, config))
    except ValueError:  # nothing is targeted
        return {}


def same(a, b):
    return a.keys() == b.keys() and all(a[m][0] == b[m][0] and math.isclose(a[m][1], b[m][1], rel_tol=1e-12) for m in a)


def compare_configs(base, root):
    r, peer = random.Random(7), Peer(base)
    refused = empty = 0
    for i in range(CONFIGS):
        options = random_config(r)
        config = LoraConfig(task_type="CAUSAL_LM", inference_mode=True, **options)
        folder, again = os.path.join(root, f"config{i}"), os.path.join(root, f"config{i}-again")
        os.mkdir(again)
        config.save_pretrained(folder)
        theirs, ours = adapted(base, LoraConfig.from_pretrained(folder)), peer.ask(folder, again)  # saved, patterns are sorted
        if isinstance(ours, str):
            refused += 1
            continue
        if not same(ours, theirs):
            return f"{options}: {ours} {theirs}"
        if not theirs:
            empty += 1
            continue
        read = adapted(base, LoraConfig.from_pretrained(again))
        if not same(read, theirs):
            return f"{options} written again: {read} {theirs}"
    print(f"# {CONFIGS} configs, {refused} refused, {empty} that target nothing")
    return "" if refused < CONFIGS / 4 else "too many are refused"


# ---- merging ----


def make_adapter(base, folder, options, half):
    torch.manual_seed(3)
    model = get_peft_model(load(base), LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.1, **options))
    with torch.no_grad():
        for n, p in model.named_parameters():
            if "magnitude" in n:
                p.mul_(1 + 0.1 * torch.randn(p.shape))
            elif "lora_" in n:
                p.copy_(0.5 * torch.randn(p.shape) / p.shape[1] ** 0.5)
            elif "modules_to_save" in n:
                p.add_(0.05 * torch.randn(p.shape))
    model.save_pretrained(folder)
    if half:
        path = os.path.join(folder, "adapter_model.safetensors")
        save_file({k: v.to(half) for k, v in load_file(path).items()}, path, metadata={"format": "pt"})


def compare_merged(base, folder, options, half):
    make_adapter(base, folder, options, half)
    merged, again = folder + "-merged", folder + "-again"
    said = subprocess.run([MERGE, "--model", base, "--adapter", folder, "--output", merged], capture_output=True, text=True)
    if said.returncode:
        return said.stderr
    theirs = PeftModel.from_pretrained(load(base), folder)
    expected = logits(theirs)
    off = distance(logits(load(base)), expected)
    by_theirs = distance(logits(load(merged)), logits(theirs.merge_and_unload()))
    with_adapter = distance(logits(load(merged)), expected)
    shutil.copytree(folder, again)
    os.remove(os.path.join(again, "adapter_config.json"))
    found = subprocess.run([PEER, base, folder, again], capture_output=True, text=True).stdout
    if "refused" in found:
        return found
    rewritten = distance(logits(PeftModel.from_pretrained(load(base), again)), expected)
    print(f"# {os.path.basename(folder)}: from PEFT's model {with_adapter:.1e}, from its merge {by_theirs:.1e}, "
          f"our config {rewritten:.1e}; without the adapter {off:.1e}")
    good = with_adapter < LIMIT and by_theirs < LIMIT and rewritten == 0 and off > 100 * LIMIT
    return "" if good else "too far"


# ---- training ----

TRAINED = {
    "LoRA": ["--lora-r", "4", "--lora-alpha", "8"],
    "rsLoRA": ["--lora-r", "4", "--lora-alpha", "3", "--lora-rslora", "--lora-dropout", "0.1"],
    "DoRA": ["--lora-r", "3", "--lora-dora", "--base-dtype", "bfloat16"],
    "patterns, layers": ["--lora-r", "4", "--lora-targets", "q_proj,v_proj,mlp.down_proj,model.layers.1.self_attn.o_proj",
                         "--lora-layers", "1", "--lora-rank-pattern", "v_proj=2,layers.1.mlp.down_proj=7",
                         "--lora-alpha-pattern", "q_proj=5"],
    "embedding": ["--lora-r", "4", "--modules-to-save", "embed_tokens"],
    "head": ["--lora-r", "4", "--modules-to-save", "lm_head"],
    "both, DoRA": ["--lora-r", "4", "--lora-dora", "--modules-to-save", "embed_tokens,lm_head"],
    "saved in bfloat16": ["--lora-r", "4", "--save-dtype", "bfloat16"],
}
IDS = [(7 * i * i + 3) % 300 for i in range(24)]


def run(*command):
    said = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if said.returncode:
        raise RuntimeError(said.stderr)


def finetune(base, output, *options):
    run(os.path.join(BUILD, "finetune_lora"), "--model", base, "--dataset", "datasets/stories.jsonl", "--max-length", 32,
        "--batch-size", 4, "--lr", "2e-2", "--max-steps", 8, "--output", output, *options)
    return os.path.join(output, "checkpoint-final")


def ours(base, adapter):
    run(PEER, "logits", base, adapter, adapter + "-logits", *IDS)
    return torch.from_numpy(np.fromfile(adapter + "-logits", np.float32)).double().reshape(1, len(IDS), -1)


def theirs(model):
    with torch.no_grad():
        return model.eval()(torch.tensor([IDS])).logits.double()


def train_on(base, adapter, output):
    torch.manual_seed(1)
    model = PeftModel.from_pretrained(load(base), adapter, is_trainable=True).train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.tensor([IDS]), labels=torch.tensor([IDS])).loss.backward()
        optimizer.step()
    model.save_pretrained(output)
    return model


def compare_trained(base, output, options):
    adapter = finetune(base, output, *options)
    bits = ["--base-dtype", "bfloat16"] if "bfloat16" in options and "--base-dtype" in options else []
    before, expected = theirs(load(base)), ours(base, adapter)
    run(MERGE, "--model", base, "--adapter", adapter, "--output", output + "-merged", "--dtype", "float32")
    found, allowed = {}, {}

    def add(title, model, logits):
        found[title], allowed[title] = distance(theirs(model), logits), limit(model)

    add("PEFT", PeftModel.from_pretrained(load(base), adapter), expected)
    add("merged", load(output + "-merged"), expected)
    model = train_on(base, adapter, output + "-theirs")
    if "--lora-dora" not in options or distance(theirs(load(output + "-theirs")), theirs(model)) < LIMIT:
        # of DoRA transformers 5.23 misses the magnitudes, in PEFT's own folders as well
        add("the folder alone", load(adapter), expected)
    add("trained on by PEFT", model, ours(base, output + "-theirs"))
    last = finetune(base, output + "-again", "--adapter", output + "-theirs", *bits)
    again = ours(base, last)
    add("trained on again", PeftModel.from_pretrained(load(base), last), again)
    moves = [distance(before, expected), distance(theirs(model), expected), distance(theirs(model), again)]
    print(f"# {os.path.basename(output)}: " + ", ".join(f"{k} {v:.1e}" for k, v in found.items()) +
          "; each training moves the logits by " + ", ".join(f"{m:.1e}" for m in moves))
    return "" if all(found[k] < allowed[k] for k in found) and min(moves) > 100 * LIMIT else "too far"


def main():
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as root:
        for family in FAMILIES:
            base = os.path.join(root, family)
            make_model(family, base)
            for i, (title, options) in enumerate(ADAPTERS.items()):
                half = [None, torch.bfloat16, torch.float16][i % 3]
                folder = os.path.join(root, f"{family}-{i}")
                tap.case(f"{family}, {title}: merged as PEFT merges", compare_merged, base, folder, of_family(options, family), half)
        for like in ("smollm2-135m", "qwen3-0.6b"):
            base = os.path.join(root, like)
            run(os.path.join(BUILD, "init_model"), "--like", like, "--layers", 2, "--hidden-size", 64, "--intermediate-size", 128,
                "--heads", 2, "--kv-heads", 1, "--vocab-size", 300, "--max-positions", 128, "--seed", 1, base)
            for i, (title, options) in enumerate(TRAINED.items()):
                output = os.path.join(root, f"{like}-trained-{i}")
                tap.case(f"{like}, {title}: trained in turns", compare_trained, base, output, options)
        tap.case("configs mean what they mean to PEFT", compare_configs, os.path.join(root, "Qwen3"), root)
    tap.done()


if __name__ == "__main__":
    main()
