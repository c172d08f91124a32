"""Folders as they are found in the wild against transformers and PEFT: variants of config.json, adapter_config.json and tensors' names.

A seed draws variants of a tiny model of llama, mistral, qwen2 or qwen3, most with an adapter: keys of both generations of configs side
by side, tied weights under either name, prefixes, dtypes, shards, other tensors; expressions, patterns, layers, lm_head and the embedding
in the adapter. transformers and PEFT load it and compute a loss; our programs evaluate it, merge it, and go on from it. Each variant is
  loaded equal     loss, merged weights and the loss of the adapter on its base are theirs
  refused          our program ends with a message
  read otherwise   anything else: a fault
or theirs do not load it, which asks nothing of us. TUNE_VARIANTS: how many (60), TUNE_VARIANTS_SEED: which (1). With numbers as
arguments, only those variants, with what was drawn.
"""
import collections
import contextlib
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

import tap
import torch
import torch.nn.functional as F
import transformers
from model_peer import tokenizer
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

BUILD = os.environ.get("BUILD", "build")
FULL, LORA, MERGE, GENERATE = (os.path.join(BUILD, p) for p in ("finetune_full", "finetune_lora", "merge_adapter", "generate"))
COUNT, SEED = int(os.environ.get("TUNE_VARIANTS", 60)), os.environ.get("TUNE_VARIANTS_SEED", "1")
LIMIT, WEIGHTS = 2e-5, 1e-5  # relative; observed: 2e-6 and 3e-7
HIDDEN, FFN, LAYERS, HEADS, LENGTH = 16, 24, 3, 4, 24
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
CLASSES = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}
TEXTS = ["Once upon a time there was a boat.", "The dog ran.", "It rained all day and all night", "Who is there? 1984", "A bird sang: la, la."]


# ---- the base: config and tensors ----


def rope(r):
    """Rotary keys, of transformers 4, of 5, or of both."""
    linear = {r.choice(["type", "rope_type"]): "linear", "factor": r.choice([2, 2.5])}
    llama3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    if r.random() < 0.6:
        llama3["original_max_position_embeddings"] = r.choice([8, 16])
    yarn = {"type": "yarn", "factor": r.choice([4.0, 2.0])}
    for key, values in {"original_max_position_embeddings": [16, 32], "beta_fast": [4, 8.0], "beta_slow": [0.5, 2], "truncate": [False, True],
                        "attention_factor": [1.3, 0.8], "mscale": [0.7, 1.0], "mscale_all_dim": [1.0, 0.4]}.items():
        if r.random() < 0.4:
            yarn[key] = r.choice(values)
    forms = [{"rope_scaling": yarn}, {"rope_parameters": dict(yarn, rope_theta=300.0)}, {}, {"rope_theta": 500.0}, {"rope_theta": 500}, {"rope_scaling": None, "rope_theta": 300.0},
             {"rope_parameters": {"rope_type": "default", "rope_theta": 700.0}}, {"rope_parameters": {"rope_theta": 700}},
             {"rope_parameters": {"rope_type": "default"}, "rope_theta": 90.0}, {"rope_parameters": None},
             {"rope_theta": 500.0, "rope_parameters": {"rope_theta": 700.0, "rope_type": "default"}},
             {"rope_scaling": linear}, {"rope_scaling": linear, "rope_theta": 70.0}, {"rope_scaling": dict(linear, rope_theta=50.0)},
             {"rope_parameters": dict(linear, rope_theta=50.0)}, {"rope_parameters": linear, "rope_scaling": {}},
             {"rope_parameters": {"rope_theta": 40.0, "rope_type": "default"}, "rope_scaling": linear},
             {"rope_parameters": {"rope_theta": 40.0, "rope_type": "default"}, "rope_scaling": None, "rope_theta": 90.0},
             {"rope_scaling": llama3, "rope_theta": 500.0}, {"rope_parameters": dict(llama3, rope_theta=500.0)},
             {"rope_scaling": llama3, "original_max_position_embeddings": 16}, {"rope_scaling": dict(linear, rope_type="default")},
             {"rope_scaling": {"type": "dynamic", "factor": 2.0}}, {"rope_parameters": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 200.0}},
             {"partial_rotary_factor": 1.0}]
    rare = [{"rope_scaling": {"type": "longrope", "short_factor": [1.0, 2.0], "long_factor": [1.0, 4.0]}},
            {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "partial_rotary_factor": 0.5}}, {"rope_scaling": {"type": "su"}}]
    return r.choice(rare) if r.random() < 0.05 else r.choice(forms)


def base_config(r, family, vocabulary):
    c = {"model_type": family, "vocab_size": vocabulary, "hidden_size": HIDDEN, "intermediate_size": FFN, "num_hidden_layers": LAYERS,
         "num_attention_heads": HEADS, "num_key_value_heads": r.choice([1, 2, 4]), "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
         "hidden_act": "silu", "bos_token_id": 0, "eos_token_id": 0, "architectures": [CLASSES[family] + "ForCausalLM"]}
    if family == "qwen3":
        c["head_dim"] = r.choice([4, 6])
    elif r.random() < 0.2:
        c["head_dim"] = 6
    return c


def change_config(r, c, family):
    """Keys as other versions and people write them. Returns what c is then."""
    c = dict(c, **rope(r))
    name = CLASSES[family]
    if r.random() < 0.4:
        c.update(r.choice([{"dtype": "bfloat16"}, {"torch_dtype": "float16"}, {"dtype": "float32", "torch_dtype": "bfloat16"},
                           {"torch_dtype": "float32", "dtype": None}, {"torch_dtype": None}, {"dtype": "float64"}]))
    if r.random() < 0.15:
        c["attention_dropout"] = r.choice([0.1, 0.0, 0, 0.5])
    if r.random() < 0.2:
        c["architectures"] = r.choice([[name + "Model"], [name + "ForSequenceClassification"], None, [name.upper() + "ForCausalLM"], [],
                                       ["OtherForCausalLM"] if r.random() < 0.2 else [name + "ForCausalLM"]])
    if r.random() < 0.1:
        del c["architectures"]
    if r.random() < 0.25:
        c.update(r.choice([{"pretraining_tp": 1}, {"use_cache": False}, {"_name_or_path": "x/y"}, {"transformers_version": "4.31.0"},
                           {"initializer_range": 0.1}, {"num_labels": 3}, {"pad_token_id": None}, {"pad_token_id": 2}, {"bos_token_id": None},
                           {"mlp_only_layers": []}, {"torchscript": False}, {"_attn_implementation_autoset": True}, {"use_mrope": False},
                           {"is_llama_config": True}, {"rope_interleaved": False}, {"cache_implementation": None}, {"unsloth_fixed": True}]))
    if r.random() < 0.1:
        c["hidden_act"] = r.choice(["swish", "silu", "gelu" if r.random() < 0.2 else "swish"])
    if c["num_key_value_heads"] == HEADS and family == "llama" and r.random() < 0.7:
        c.pop("num_key_value_heads") if r.random() < 0.5 else c.update(num_key_value_heads=None)
    if "head_dim" not in c and family in ("llama", "mistral") and r.random() < 0.2:
        c["head_dim"] = r.choice([None, HIDDEN // HEADS])
    if family == "llama" and r.random() < 0.3:
        c.update(r.choice([{"attention_bias": True}, {"mlp_bias": True}, {"attention_bias": True, "mlp_bias": True}, {"attention_bias": False},
                           {"sliding_window": 3}]))
    if family in ("mistral", "qwen2") and r.random() < 0.1:
        c.update(r.choice([{"attention_bias": True}, {"mlp_bias": True}]))
    if family == "qwen3" and r.random() < 0.3:
        c["attention_bias"] = r.random() < 0.7
    if family == "mistral" and r.random() < 0.7:
        c["sliding_window"] = r.choice([None, 5, 9, 4096])
    if family.startswith("qwen") and r.random() < 0.6:
        c.update(r.choice([{"sliding_window": 5}, {"use_sliding_window": False, "sliding_window": 5}, {"use_sliding_window": True, "sliding_window": None},
                           {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": r.randrange(4)},
                           {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 0,
                            "layer_types": [r.choice(["full_attention", "sliding_attention"]) for _ in range(LAYERS)]}]))
    if r.random() < 0.02:
        c.update(r.choice([{"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}},
                           {"per_layer_config": {"1": {"intermediate_size": FFN}}}]))
    for key in ("rms_norm_eps", "max_position_embeddings", "hidden_act"):
        if r.random() < 0.05:
            del c[key]
    return c


def tensors_of(r, c, family):
    """The base's tensors by transformers' names, with both embedding and output projection."""
    g = torch.Generator().manual_seed(r.randrange(1 << 30))
    D = c.get("head_dim") or HIDDEN // HEADS
    K = (c.get("num_key_value_heads") or HEADS) * D
    sizes = {"self_attn.q_proj": (HEADS * D, HIDDEN), "self_attn.k_proj": (K, HIDDEN), "self_attn.v_proj": (K, HIDDEN),
             "self_attn.o_proj": (HIDDEN, HEADS * D), "mlp.gate_proj": (FFN, HIDDEN), "mlp.up_proj": (FFN, HIDDEN), "mlp.down_proj": (HIDDEN, FFN)}
    qkv = family == "qwen2" or (family in ("llama", "qwen3") and c.get("attention_bias"))
    biased = {m: (qkv and (m[10] != "o" or family != "qwen2") if m[0] == "s" else family == "llama" and c.get("mlp_bias")) for m in sizes}
    t = {}
    for i in range(LAYERS):
        p = f"model.layers.{i}."
        for m, size in sizes.items():
            t[p + m + ".weight"] = torch.randn(size, generator=g) * 0.3
            if biased[m]:
                t[p + m + ".bias"] = torch.randn(size[0], generator=g) * 0.3
        norms = {"input_layernorm": HIDDEN, "post_attention_layernorm": HIDDEN}
        norms.update({"self_attn.q_norm": D, "self_attn.k_norm": D} if family == "qwen3" else {})
        for n, size in norms.items():
            t[p + n + ".weight"] = 1 + torch.randn(size, generator=g) * 0.2
    t["model.norm.weight"] = 1 + torch.randn(HIDDEN, generator=g) * 0.2
    for n in ("model.embed_tokens.weight", "lm_head.weight"):
        t[n] = torch.randn(c["vocab_size"], HIDDEN, generator=g) * 0.3
    return t


def tie(r, c, t):
    """Tied or not, and what is stored."""
    embedding, head = "model.embed_tokens.weight", "lm_head.weight"
    form = r.choice(["no", "no", "absent", "embedding", "embedding", "head", "equal", "differ", "equal, no"] + ["neither"] * (r.random() < 0.1))
    if form in ("no", "absent"):
        c.update({"tie_word_embeddings": False} if form == "no" else {})
        return form
    c["tie_word_embeddings"] = form != "equal, no"
    if form in ("equal", "equal, no"):
        t[head] = t[embedding].clone()
    if form in ("embedding", "neither"):
        del t[head]
    if form in ("head", "neither"):
        del t[embedding]
    return form


def rename(r, t):
    """Prefixes, other tensors, dtypes."""
    form = r.choice(["as is"] * 8 + ["none", "none", "some", "head, too"] + ["wrapped"] * (r.random() < 0.2))
    if form in ("none", "some"):
        t = {n.removeprefix("model.") if form == "none" or r.random() < 0.5 else n: x for n, x in t.items()}
    if form == "head, too" and "lm_head.weight" in t:
        t["model.lm_head.weight"] = t.pop("lm_head.weight")
    if form == "wrapped":
        prefix = r.choice(["language_model.", "base_model.model.", "module."])
        t = {prefix + n: x for n, x in t.items()}
    other = r.random()
    if other < 0.05:
        t["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(2)
    elif other < 0.12:
        t[r.choice(["score.weight", "v_head.summary.weight", "classifier.bias", "vision_tower.x.weight"])] = torch.ones(3, HIDDEN)
    elif other < 0.13:
        t[r.choice([f"model.layers.{LAYERS}.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.scale", "lm_head.bias"])] = torch.ones(FFN, HIDDEN)
    kinds = r.choice([[torch.float32]] * 5 + [[torch.bfloat16], [torch.float16], [torch.float64], [torch.float32, torch.bfloat16, torch.float16, torch.float64]])
    return {n: x.to(r.choice(kinds)) for n, x in t.items()}, form


def store(r, folder, t):
    """One file, or shards with an index, which may be wrong."""
    if r.random() < 0.75:
        save_file(t, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
        return "one file"
    form = r.choice(["shards", "shards", "ghost", "wrong shard", "twice"]) if r.random() < 0.98 else "twice, other"
    files = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    shard = {n: i for i, n in enumerate(t)}
    shard = {n: int(i >= len(t) // 2) for n, i in shard.items()}
    held = [{n: x for n, x in t.items() if shard[n] == i} for i in (0, 1)]
    index = {n: files[shard[n]] for n in t}
    one = r.choice(sorted(held[0]))
    if form == "ghost":
        index["model.layers.9.mlp.up_proj.weight"] = files[0]
    if form == "wrong shard":
        index[one] = files[1]
    if form.startswith("twice"):
        held[1][one] = held[0][one].clone() + (0.5 if form == "twice, other" else 0)
    for name, part in zip(files, held, strict=True):
        save_file(part, os.path.join(folder, name), metadata={"format": "pt"})
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {"total_size": sum(x.nbytes for x in t.values())}, "weight_map": index}, f)
    return form


# ---- the adapter ----


def a_name(r, whole=False):
    part = r.choice(LINEAR)
    block = "mlp." if part in LINEAR[4:] else "self_attn."
    end = f"layers.{r.randrange(LAYERS)}.{block}{part}"
    return "model." + end if whole else r.choice([part, part, part, block + part, end, "model." + end])


def an_expression(r):
    """For whole names, as people and tools write them."""
    a, b, c = r.sample(LINEAR, 3)
    i = r.randrange(LAYERS)
    return r.choice([
        rf".*\.({a}|{b})", rf".*\.(?:{a}|{b}|{c})$", f".*{a}", r".*\.[qv]_proj", r".*_proj", rf"model\.layers\.{i}\..*_proj", rf".*\.{i}\..*(?<!up)_proj",
        rf"(?:\bmodel\.layers\.[\d]{{1,}}\.(?:self_attn|mlp)\.(?:(?:{a}|{b})))",
        rf"(?:.*?(?:language|text).*?(?:self_attn|mlp).*?(?:{a}|{b}).*?)|(?:\bmodel\.layers\.[\d]{{1,}}\.(?:self_attn|mlp)\.(?:(?:{a}|{b})))",
        rf"(?:\bmodel\.layers\.(?!.*\.experts\.\d)[\d]{{1,}}\.(?:self_attn|mlp)\.(?:(?:{a}|{b})))",
        rf"^(?!.*visual).*({a}|{b}|{c}).*", rf"(?!.*(?:{a})$).*_proj", r"model\.layers\.\d+\.(self_attn\.(q|k|v|o)|mlp\.(gate|up|down))_proj",
        rf".*layers\.(?:[0-1]|9\d)\..*\.{a}", rf"(?i).*{a.upper()}", r".*\.\w+\.(?=q|v)\w_proj", rf"(?:model\.)?layers\.\d\.\S+|model\.layers\.{i}\.mlp\..+",
        rf"model.layers.{i}.self_attn.q_proj", r"[^0]*\.0\.[^.]+\.[^.]+_proj", r"(?P<all>.*)\.down_proj", r".*\.\d{1,2}\.mlp\.(up|down)_proj?",
        r"(model)\.layers\.\d\.mlp\.(?(1)up|down)_proj", r".*\.(?:q_pro|v_pro)j++", a])


def adapter_options(r):
    o = {"r": r.randint(1, 5), "lora_alpha": r.choice([1, 4, 16, 0.5, 7]), "task_type": "CAUSAL_LM"}
    form = r.random()
    o["target_modules"] = (an_expression(r) if form < 0.4 else r.choice(["all-linear", "All-Linear"]) if form < 0.5
                           else [a_name(r) for _ in range(r.randint(1, 4))])
    listed = isinstance(o["target_modules"], list)
    if r.random() < 0.15:
        extra = r.choice([["lm_head"], ["embed_tokens"], ["lm_head", "embed_tokens"], ["model.embed_tokens"]])
        if listed:
            o["target_modules"] += extra
        elif o["target_modules"].lower() != "all-linear":
            o["target_modules"] = f"(?:{o['target_modules']})|.*({'|'.join(x.split('.')[-1] for x in extra)})" if "(?i)" not in o["target_modules"] else o["target_modules"]
    if listed and r.random() < 0.15:
        o["target_modules"] += r.choice([["c_attn"], ["q_.*"], ["wo", "w1"], ["proj"], [""], ["experts.0.up_proj"]])
    if r.random() < 0.25:
        o["rank_pattern"] = {r.choice([a_name(r), a_name(r).replace(".", r"\."), "^" + a_name(r, True), "(q_proj|up_proj)", r"layers\.[01]\..*", r".*\.\d{1,2}\.mlp\.\w+",
                                       "_proj", r"(?!q).*_proj", "lm_head", r"mlp\.(?:up|gate)_proj"]): r.randint(1, 6) for _ in range(r.randint(1, 3))}
    if r.random() < 0.25:
        o["alpha_pattern"] = {r.choice([a_name(r), a_name(r, True), "(q_proj|up_proj|down_proj)", "^" + a_name(r, True), r".*[02]\.self_attn.*", "v_proj$",
                                        r"self_attn\.[qk]_proj"]): r.choice([1, 3, 0.25, 9]) for _ in range(r.randint(1, 3))}
    if listed and r.random() < 0.25:
        o["layers_to_transform"] = r.choice([1, 0, [0], [0, 2], [2, 1], [], [7, 1]])
        if r.random() < 0.6:
            o["layers_pattern"] = r.choice(["layers", ["layers"], None, [], ["h", "layers"], r"model\.layers", "lay.rs", "h"])
    if r.random() < 0.25:
        o["exclude_modules"] = r.choice([[a_name(r)], ["lm_head"], ["up_proj", "k_proj"], r".*\.(v_proj|o_proj)", r".*\.1\..*", "k_proj", [], [a_name(r, True), a_name(r, True)],
                                         r"(?!.*up).*mlp.*", "(a)|.*v_proj"])
    if r.random() < 0.15:
        o["modules_to_save"] = r.choice([["lm_head"], ["embed_tokens"], ["embed_tokens", "lm_head"], ["model.embed_tokens"], []] + [["norm"], ["head"]] * (r.random() < 0.1))
    o.update({k: True for k, p in (("use_rslora", 0.25), ("use_dora", 0.15)) if r.random() < p})
    if r.random() < 0.3:
        o.update(r.choice([{"fan_in_fan_out": True}, {"lora_dropout": 0.1}, {"init_lora_weights": False}, {"init_lora_weights": "gaussian"}, {"bias": "none"}]))
    if r.random() < 0.02:
        o.update(r.choice([{"bias": "all"}, {"lora_bias": True}, {"trainable_token_indices": [3, 5]}, {"ensure_weight_tying": True, "modules_to_save": ["embed_tokens"]}]))
    return o


def change_adapter(r, folder, options):
    """The config as it was given, keys of other versions; other names and dtypes of tensors."""
    path, tensors = os.path.join(folder, "adapter_config.json"), os.path.join(folder, "adapter_model.safetensors")
    c = json.load(open(path))
    for key in ("target_modules", "rank_pattern", "alpha_pattern", "exclude_modules", "layers_to_transform", "layers_pattern", "fan_in_fan_out"):
        if key in options:
            c[key] = options[key]
    if r.random() < 0.3:  # an older PEFT wrote fewer keys
        for key in ("exclude_modules", "use_dora", "use_rslora", "lora_bias", "eva_config", "corda_config", "rank_pattern", "alpha_pattern", "qalora_group_size",
                    "trainable_token_indices", "target_parameters", "megatron_core", "megatron_config", "loftq_config", "layer_replication", "peft_version"):
            if not c.get(key) or key in ("megatron_core", "qalora_group_size", "peft_version"):
                c.pop(key, None)
    if r.random() < 0.2:
        c.update(r.choice([{"base_model_name_or_path": None}, {"task_type": None}, {"auto_mapping": {"base_model_class": "X", "parent_library": "y"}},
                           {"inference_mode": False}, {"layers_pattern": c.get("layers_pattern") or None}, {"revision": "main"}, {"megatron_core": None}]))
    json.dump(c, open(path, "w"), indent=2)
    t = load_file(tensors)
    kind, form = r.choice([torch.float32] * 3 + [torch.float16, torch.bfloat16]), r.random()
    t = {n: x.to(kind) for n, x in t.items()}
    if form < 0.005:
        t.pop(r.choice(sorted(t)))
    elif form < 0.01:
        t["base_model.model.model.layers.0.self_attn.c_attn.lora_A.weight"] = torch.ones(2, 2)
    save_file(t, tensors, metadata={"format": "pt"})
    return c


def make_adapter(r, base, folder, options):
    torch.manual_seed(r.randrange(1 << 30))
    model = get_peft_model(load(base)[0], LoraConfig(**options))
    with torch.no_grad():
        for n, p in model.named_parameters():
            if "magnitude" in n:
                p.mul_(1 + 0.1 * torch.randn(p.shape))
            elif "lora_" in n:
                p.copy_(0.6 * torch.randn(p.shape) / (p.shape[1] if p.shape[1] < 100 else 1) ** 0.5)
            elif "modules_to_save" in n:
                p.add_(0.1 * torch.randn(p.shape))
    model.save_pretrained(folder, save_embedding_layers=True if r.random() < 0.03 else "auto")


# ---- theirs and ours ----


class NotLoaded(Exception):
    pass


def load(folder):
    model, info = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    if info["missing_keys"] or info["mismatched_keys"]:
        raise NotLoaded("weights are drawn at random: " + ", ".join(sorted(map(str, info["missing_keys"] or info["mismatched_keys"])))[:100])
    return model.eval(), info


def loss_of(model, rows):
    total = count = 0
    with torch.no_grad():
        for x in rows:
            logits = model(input_ids=torch.tensor([x]), use_cache=False).logits[0, :-1]
            total += float(F.cross_entropy(logits.double(), torch.tensor(x[1:]), reduction="sum"))
            count += len(x) - 1
    return total / count


def theirs(base, adapter, rows):
    """(loss, merged weights) of transformers and PEFT."""
    model, _ = load(base)
    tied = model.get_input_embeddings().weight is model.get_output_embeddings().weight
    if not adapter:
        return loss_of(model, rows), None
    model = PeftModel.from_pretrained(model, adapter).eval()
    loss = loss_of(model, rows)
    merged = {n: x.clone() for n, x in model.merge_and_unload().state_dict().items()}
    if tied:  # their merge adds to the one matrix what belongs to one of the two: the loss says what is right
        merged = {n: x for n, x in merged.items() if "embed_tokens" not in n and "lm_head" not in n}
    return loss, merged


class Refused(Exception):
    pass


def call(*command):
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    if run.returncode in (1, 2) and run.stderr.strip():
        raise Refused(run.stderr.strip().splitlines()[0])
    if run.returncode:
        raise RuntimeError(f"exit {run.returncode}: {' '.join(command)}: {run.stderr[-800:]}")
    return run.stdout


def evaluate(program, model, data, output, *more):
    call(program, "--model", model, "--dataset", data, "--eval-dataset", data, "--text-field", "text", "--max-steps", "0", "--max-length", str(LENGTH),
         "--threads", "1", "--output", output, *more)
    with open(os.path.join(output, "report.json")) as f:
        return json.load(f)["eval_loss"]


def ours(base, adapter, data, root):
    """Losses, and merged weights, of our programs."""
    if not adapter:
        return [evaluate(FULL, base, data, os.path.join(root, "run"))], None
    merged = os.path.join(root, "merged")
    call(MERGE, "--model", base, "--adapter", adapter, "--output", merged, "--dtype", "float32")
    losses = [evaluate(FULL, merged, data, os.path.join(root, "run"))]
    try:
        losses.append(evaluate(LORA, base, data, os.path.join(root, "live"), "--adapter", adapter))
    except Refused as why:
        if "read and merged, but not trained" not in str(why):
            raise
        answer = ("--prompt", TEXTS[0], "--max-new-tokens", "8", "--temperature", "0", "--threads", "1")
        a, b = call(GENERATE, "--model", base, "--adapter", adapter, *answer), call(GENERATE, "--model", merged, *answer)
        assert a == b, f"generate with the adapter says {a!r}, merged {b!r}"
    return losses, load_file(os.path.join(merged, "model.safetensors"))


def apart(a, b):
    return abs(a - b) / abs(b)


def differs(mine, want):
    """What is other than theirs, or ''."""
    (losses, weights), (loss, merged) = mine, want
    for x in losses:
        if not apart(x, loss) < LIMIT:
            return f"losses {losses}, theirs {loss}"
    for n, x in (merged or {}).items():
        if n not in weights:
            return f"merged weights lack {n}"
        off = float((weights[n].double() - x.double()).norm() / x.double().norm())
        if not off < WEIGHTS:
            return f"merged {n} is off by {off:.1e}"
    return ""


def reason(text):
    """A message without its path and its numbers, to count."""
    text = re.sub(r"/\S*/", "", text)
    return re.sub(r"\d+|\n", "N", re.sub(r"\"[^\"]{25,}\"|\[[^\]]*\]|\(.*?\)", "...", text))[:110]


def variant(number, root, tok):
    """(outcome, what is to be told, what was drawn)."""
    r = random.Random(f"{SEED}-{number}")
    family = r.choice(list(CLASSES))
    base, adapter, data = (os.path.join(root, x) for x in ("base", "adapter", "rows.jsonl"))
    rows = r.sample(TEXTS, 4)
    ids = [(tok(x)["input_ids"] + [tok.eos_token_id])[:LENGTH] for x in rows]
    with open(data, "w") as f:
        f.writelines(json.dumps({"text": x}) + "\n" for x in rows)
    shutil.copytree(os.path.join(os.path.dirname(root), "tokenizer"), base)
    if r.random() < 0.1:  # a token without a row, which no row of data has
        path = os.path.join(base, "tokenizer.json")
        t = json.load(open(path))
        t["added_tokens"].append({"id": len(tok) + 5, "content": "<unused>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True})
        json.dump(t, open(path, "w"))
    drawn = {}
    c = change_config(r, base_config(r, family, len(tok) + r.choice([0, 0, 3])), family)
    t = tensors_of(r, c, family)
    drawn["tied"] = tie(r, c, t)
    t, drawn["names"] = rename(r, t)
    drawn["file"] = store(r, base, t)
    drawn["config"] = c
    with open(os.path.join(base, "config.json"), "w") as f:
        json.dump(c, f, indent=1)
    options = adapter_options(r) if r.random() < 0.7 else None
    try:
        if options:
            drawn["options"] = options
            make_adapter(r, base, adapter, options)
            drawn["adapter"] = {k: v for k, v in change_adapter(r, adapter, options).items() if v}
        want = theirs(base, adapter if options else None, ids)
    except Exception as why:
        return "theirs do not load it", f"{type(why).__name__}: {str(why)[:150]}", drawn
    try:
        said = differs(ours(base, adapter if options else None, data, root), want)
    except Refused as why:
        return "refused", str(why), drawn
    except Exception as why:
        said = str(why)
    return ("read otherwise" if said else "loaded equal"), said, drawn


def main(root):
    asked = [int(x) for x in sys.argv[1:]]
    with contextlib.redirect_stdout(io.StringIO()):
        tok = tokenizer(TEXTS * 3, os.path.join(root, "tokenizer"))
    outcomes, why = collections.Counter(), {"refused": collections.defaultdict(list), "theirs do not load it": collections.defaultdict(list)}
    for i in asked or range(COUNT):
        folder = os.path.join(root, f"v{i}")
        os.mkdir(folder)
        outcome, said, drawn = variant(i, folder, tok)
        outcomes[outcome] += 1
        if outcome in why:
            why[outcome][reason(said)].append(i)
        if outcome == "read otherwise" or asked:
            print(f"# variant {i} of seed {SEED}: {outcome}: {said}\n# {json.dumps(drawn)}", flush=True)
        if not asked:
            shutil.rmtree(folder)
    loads = outcomes["loaded equal"] + outcomes["refused"] + outcomes["read otherwise"]
    print(f"# seed {SEED}: {len(asked) or COUNT} variants, {loads} that theirs load: {outcomes['loaded equal']} equal, {outcomes['refused']} refused, "
          f"{outcomes['read otherwise']} read otherwise")
    for what, reasons in why.items():
        for text, numbers in sorted(reasons.items(), key=lambda x: -len(x[1])):
            print(f"# {what}: {len(numbers)} ({', '.join(map(str, numbers[:4]))}{', ...' if len(numbers) > 4 else ''}): {text}")
    tap.ok(outcomes["read otherwise"] == 0, "nothing is read otherwise")
    tap.ok(outcomes["loaded equal"] >= 0.9 * loads, f"at least 90 % of what theirs load ({outcomes['loaded equal']} of {loads})")
    tap.ok(loads > 0.5 * (len(asked) or COUNT), "theirs load most of it")


if __name__ == "__main__":
    if not os.path.exists(MERGE):
        tap.skip("variants of folders", f"{MERGE} is not built")
        tap.done()
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as root:
        main(root)
    tap.done()
