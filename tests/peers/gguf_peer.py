#!/usr/bin/env python3
"""gguf_peer.py - what build/export_gguf writes, read by PyPI's gguf.

For each tiny model of tests/reference that llama.cpp can compute: the keys that its converter writes, from config.json; the names
and shapes of all tensors; and all numbers. They are those of the folder, permuted and shifted here by the converter's formulas, in F32
exactly, and in F16, BF16 and Q8_0 as gguf's own code converts them. A model with a tokenizer: tokens, types, merges, special ids.
BUILD: the build folder (default build).
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gguf
import numpy as np
import tap
import torch
from gguf.quants import quantize
from safetensors import safe_open

BUILD = os.environ.get("BUILD", "build")
REFERENCE = "tests/reference"
TYPES = {"f32": gguf.GGMLQuantizationType.F32, "f16": gguf.GGMLQuantizationType.F16, "bf16": gguf.GGMLQuantizationType.BF16,
         "q8_0": gguf.GGMLQuantizationType.Q8_0}
FILE_TYPES = {"f32": 0, "f16": 1, "bf16": 32, "q8_0": 7}
ARCHITECTURES = {"llama": "llama", "mistral": "llama", "granite": "granite", "smollm3": "smollm3", "qwen2": "qwen2", "qwen3": "qwen3",
                 "phi3": "phi3", "olmo2": "olmo2", "gemma3_text": "gemma3"}
# folder: what of its config llama.cpp cannot compute, and what it is here instead
MODELS = {"llama-tied": {}, "llama-untied": {}, "llama-biases": {}, "llama-rope-linear": {}, "llama-rope-llama3": {}, "llama-head-dim": {},
          "mistral": {}, "granite": {}, "smollm3": {"no_rope_layers": [1, 1, 1]}, "qwen2": {}, "qwen2-window": {}, "qwen3": {}, "phi3": {},
          "phi3-long": {}, "gemma3": {"query_pre_attn_scalar": 6}}


def export(folder, out, *options):
    done = subprocess.run([os.path.join(BUILD, "export_gguf"), "--model", folder, out, *options], capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return gguf.GGUFReader(out)


def value(reader, key):
    field = reader.get_field(key)
    return None if field is None else field.contents()


def copied(home, name, changes):
    folder = os.path.join(home, name)
    shutil.copytree(os.path.join(REFERENCE, name), folder)
    path = os.path.join(folder, "config.json")
    os.chmod(path, 0o644)
    with open(path) as f:
        config = json.load(f)
    config.update(changes)
    with open(path, "w") as f:
        json.dump(config, f)
    return folder, config


def weights(folder):
    """name: array in float32"""
    found = {}
    for file in sorted(os.listdir(folder)):
        if file.startswith("model") and file.endswith(".safetensors"):
            with safe_open(os.path.join(folder, file), framework="pt") as f:
                found.update({name: f.get_tensor(name).to(torch.float32).numpy() for name in f.keys()})
    return found


def expected(folder, config):
    """name in the file: array in float32, as the converter has it"""
    architecture = ARCHITECTURES[config["model_type"]]
    names = gguf.get_tensor_name_map(getattr(gguf.MODEL_ARCH, architecture.upper()), config["num_hidden_layers"])
    heads, kv_heads = config["num_attention_heads"], config.get("num_key_value_heads", config["num_attention_heads"])
    want = {}
    for name, x in weights(folder).items():
        if name == "lm_head.weight" and config["tie_word_embeddings"]:
            continue
        for end, n in (("q_proj", heads), ("k_proj", kv_heads)):
            if f".{end}." in name and architecture in ("llama", "granite", "smollm3"):
                x = x.reshape(n, 2, x.shape[0] // n // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)
        if architecture == "gemma3" and name.endswith("norm.weight"):
            x = x + np.float32(1)
        want[names.get_name(name, try_suffixes=(".weight", ".bias"))] = x
    return want


def keys(reader, config, kind):
    architecture = ARCHITECTURES[config["model_type"]]
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    rope = config.get("rope_parameters") or {}
    whole = rope.get("full_attention", rope)
    want = {"general.architecture": architecture, "general.type": "model", "general.file_type": FILE_TYPES[kind]}
    own = {"block_count": "num_hidden_layers", "context_length": "max_position_embeddings", "embedding_length": "hidden_size",
           "feed_forward_length": "intermediate_size", "attention.head_count": "num_attention_heads", "vocab_size": "vocab_size",
           "attention.head_count_kv": "num_key_value_heads", "attention.layer_norm_rms_epsilon": "rms_norm_eps"}
    want.update({f"{architecture}.{key}": config[name] for key, name in own.items()})
    want[f"{architecture}.rope.dimension_count"] = int(head_dim * whole.get("partial_rotary_factor", 1))
    want[f"{architecture}.rope.freq_base"] = whole["rope_theta"]
    if head_dim * config["num_attention_heads"] != config["hidden_size"]:
        want[f"{architecture}.attention.key_length"] = want[f"{architecture}.attention.value_length"] = head_dim
    if architecture == "granite":
        for key, name in (("attention.scale", "attention_multiplier"), ("embedding_scale", "embedding_multiplier"),
                          ("residual_scale", "residual_multiplier"), ("logit_scale", "logits_scaling")):
            want[f"{architecture}.{key}"] = config[name]
    if whole.get("rope_type") == "linear":
        want.update({f"{architecture}.rope.scaling.type": "linear", f"{architecture}.rope.scaling.factor": whole["factor"]})
    if architecture == "gemma3":
        want.update({"gemma3.attention.sliding_window": config["sliding_window"], "gemma3.rope.freq_base_swa": rope["sliding_attention"]["rope_theta"]})
    if architecture == "phi3":
        want["phi3.rope.scaling.original_context_length"] = whole["original_max_position_embeddings"]
    for key, x in want.items():
        got = value(reader, key)
        if got != x and not (isinstance(x, float) and got is not None and np.float32(x) == np.float32(got)):
            return f"{key} is {got!r}, expected {x!r}"
    return ""


def compare(home, name, kind):
    folder, config = copied(home, f"{name}", MODELS[name]) if not os.path.isdir(os.path.join(home, name)) else (os.path.join(home, name), None)
    if config is None:
        with open(os.path.join(folder, "config.json")) as f:
            config = json.load(f)
    reader = export(folder, os.path.join(home, f"{name}-{kind}.gguf"), "--type", kind)
    why = keys(reader, config, kind)
    if why:
        return why
    want = expected(folder, config)
    have = {t.name: t for t in reader.tensors}
    rope = {n for n in have if n.startswith("rope_")}
    if set(want) != set(have) - rope:
        return f"names: {sorted(set(want) ^ (set(have) - rope))}"
    blocks = 0
    for n, x in want.items():
        t, plain = have[n], x.ndim == 1
        if list(t.shape) != list(reversed(x.shape)):
            return f"{n} is {list(t.shape)}, expected {list(reversed(x.shape))}"
        type_ = TYPES["f32"] if plain else TYPES[kind]
        if kind == "q8_0" and not plain and x.shape[-1] % 32:
            type_ = TYPES["f16"]
        if t.tensor_type != type_:
            return f"{n} is {t.tensor_type.name}, expected {type_.name}"
        blocks += type_ == TYPES["q8_0"]
        if not np.array_equal(np.asarray(t.data).view(np.uint8).ravel(), quantize(x, type_).view(np.uint8).ravel()):
            return f"{n}: other numbers"
    return divisors(have, config)


def divisors(have, config):
    """The tensors of the rotary embedding."""
    rope = (config.get("rope_parameters") or {})
    kind = rope.get("rope_type")
    if kind == "longrope":
        for n in ("long", "short"):
            if not np.array_equal(have[f"rope_factors_{n}.weight"].data, np.array(rope[f"{n}_factor"], np.float32)):
                return f"rope_factors_{n}"
    if kind != "llama3":
        return "" if kind == "longrope" or not any(n.startswith("rope_") for n in have) else "a tensor of a rotary embedding too many"
    dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    low, high = (rope["original_max_position_embeddings"] / rope[f"{n}_freq_factor"] for n in ("low", "high"))
    want = []
    for frequency in 1.0 / (rope["rope_theta"] ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim)):
        wave = 2 * np.pi / float(frequency)
        s = (rope["original_max_position_embeddings"] / wave - rope["low_freq_factor"]) / (rope["high_freq_factor"] - rope["low_freq_factor"])
        want.append(1 if wave < high else rope["factor"] if wave > low else 1 / ((1 - s) / rope["factor"] + s))
    return "" if np.allclose(have["rope_freqs.weight"].data, np.array(want, np.float32), rtol=1e-6, atol=0) else f"rope_freqs: {have['rope_freqs.weight'].data}"


def tokenizer(home):
    """A model of init_model: 64 wide, so that Q8_0 has blocks, and with a vocabulary of its own."""
    folder = os.path.join(home, "tiny")
    subprocess.run([os.path.join(BUILD, "init_model"), *"--layers 2 --hidden-size 64 --intermediate-size 128 --heads 2 --kv-heads 1 --vocab-size 300 "
                    "--max-positions 128 --dtype float32".split(), folder], check=True, capture_output=True)
    reader = export(folder, os.path.join(home, "tiny.gguf"), "--type", "q8_0", "--pre", "smollm")
    with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as f:
        model = json.load(f)
    vocabulary = {t["content"]: t["id"] for t in model["added_tokens"]} | model["model"]["vocab"]
    tokens = value(reader, "tokenizer.ggml.tokens")
    if tokens != [t for t, _ in sorted(vocabulary.items(), key=lambda x: x[1])]:
        return "tokens"
    if value(reader, "tokenizer.ggml.merges") != model["model"]["merges"]:
        return "merges"
    special = {t["id"] for t in model["added_tokens"]}
    if value(reader, "tokenizer.ggml.token_type") != [3 if i in special else 1 for i in range(300)]:
        return "types"
    for key, x in {"model": "gpt2", "pre": "smollm", "bos_token_id": 0, "eos_token_id": 0, "add_bos_token": False}.items():
        if value(reader, f"tokenizer.ggml.{key}") != x:
            return f"tokenizer.ggml.{key}: {value(reader, f'tokenizer.ggml.{key}')!r}"
    with open(os.path.join(folder, "config.json")) as f:
        config = json.load(f)
    want = expected(folder, {**config, "model_type": "llama"})
    for t in reader.tensors:
        type_ = TYPES["q8_0"] if want[t.name].ndim == 2 else TYPES["f32"]
        if t.tensor_type != type_ or not np.array_equal(np.asarray(t.data).view(np.uint8).ravel(), quantize(want[t.name], type_).view(np.uint8).ravel()):
            return f"{t.name}: other blocks"
    return ""


def adapter(home):
    folder = os.path.join(REFERENCE, "adapters/lora-untied")
    out = os.path.join(home, "adapter.gguf")
    reader = export(os.path.join(REFERENCE, "llama-untied"), out, "--adapter", folder, "--type", "f32")
    with open(os.path.join(folder, "adapter_config.json")) as f:
        config = json.load(f)
    with open(os.path.join(REFERENCE, "llama-untied/config.json")) as f:
        base = json.load(f)
    if value(reader, "adapter.lora.alpha") != config["lora_alpha"] or value(reader, "general.type") != "adapter":
        return "keys"
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, base["num_hidden_layers"])
    heads = {"q_proj": base["num_attention_heads"], "k_proj": base["num_key_value_heads"]}
    have, count = {t.name: t for t in reader.tensors}, 0
    with safe_open(os.path.join(folder, "adapter_model.safetensors"), framework="pt") as f:
        for name in f.keys():
            x = f.get_tensor(name).to(torch.float32).numpy()
            module, half = name.removeprefix("base_model.model.").removesuffix(".weight").rsplit(".", 1)
            n = heads.get(module.rsplit(".", 1)[1])
            if n and half == "lora_B":
                x = x.reshape(n, 2, x.shape[0] // n // 2, x.shape[1]).swapaxes(1, 2).reshape(x.shape)
            t = have[names.get_name(module + ".weight", try_suffixes=(".weight",)) + "." + half.lower()]
            count += 1
            if not np.array_equal(t.data, x):
                return f"{t.name}: other numbers"
    return "" if count == len(have) else f"{len(have)} tensors, expected {count}"


def main():
    home = tempfile.mkdtemp()
    try:
        for name in MODELS:
            for kind in TYPES:
                tap.case(f"{name} as {kind}", compare, home, name, kind)
        tap.case("a model with a tokenizer, as q8_0", tokenizer, home)
        tap.case("an adapter", adapter, home)
    finally:
        shutil.rmtree(home)
    tap.done()


main()
