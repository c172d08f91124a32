"""Each configuration of defaults/models is one that transformers understands, of the size it says."""
import glob
import json
import os

import tap
import torch
from transformers import AutoConfig, AutoModelForCausalLM


def check(path):
    with open(path) as f:
        d = json.load(f)
    if d["name"] + ".json" != os.path.basename(path):
        return f"name {d['name']} in {path}"
    c = dict(d["config"])
    config = AutoConfig.for_model(c.pop("model_type"), **c)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    if type(model).__name__ != c["architectures"][0]:
        return f"class {type(model).__name__}, not {c['architectures'][0]}"
    n = sum(p.numel() for p in model.parameters())
    if n != d["parameters"]:
        return f"{n} parameters, not {d['parameters']}"
    rope = config.rope_parameters.get("full_attention", config.rope_parameters)
    if rope["rope_theta"] != c["rope_theta"]:
        return f"rope {config.rope_parameters}"


def options(path):
    """Only checks that a model of that name is there; the names of options are the C tests' to check."""
    with open(path) as f:
        if not isinstance(json.load(f), dict):
            return "no object"
    if not os.path.exists(os.path.join("defaults/models", os.path.basename(path))):
        return "no model of that name"


for path in sorted(glob.glob("defaults/models/*.json")):
    tap.case(path, check, path)
for path in sorted(glob.glob("defaults/finetune_*/*.json")):
    tap.case(path, options, path)
tap.done()
