#!/usr/bin/env python3
"""generate_peer.py - greedy continuations beside transformers' generate.

Each family's tiny model of tests/reference continues eight prompts of different lengths, each alone and all in one batch, which
transformers and generate_peer.c pad on the left. The ids are equal up to the first step at which transformers' two best logits
differ by less than 1e-4. The same for PEFT adapters, and for a real pretrained model if there is one ($TUNE_SHARED or
../shared/data), whose reference text build/generate prints too.
BUILD: the build folder (default build).
"""
import glob
import json
import os
import random
import subprocess
import sys
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap
import torch
from peft import PeftModel
from transformers import AutoConfig, AutoModelForCausalLM

BUILD = os.environ.get("BUILD", "build")
CLOSE = 1e-4


def ours(folder, prompts, tokens, adapter=None):
    command = [os.path.join(BUILD, "tests/peers/generate_peer"), folder, str(tokens)] + ([adapter] if adapter else [])
    done = subprocess.run(command, input="".join(" ".join(map(str, p)) + "\n" for p in prompts), capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(done.stderr)
    lines = [[int(x) for x in line.split()] for line in done.stdout.splitlines()]
    return lines[:len(prompts)], lines[len(prompts):]


def theirs(model, prompts, tokens):
    """Ids of each prompt, and how far its two best logits are apart at each step."""
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(p)) + p for p in prompts])
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts])
    with torch.no_grad():
        out = model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False,
                             eos_token_id=None, pad_token_id=0, return_dict_in_generate=True, output_logits=True)
    best = torch.stack(out.logits).topk(2, dim=-1).values  # [steps, rows, 2]
    return out.sequences[:, longest:].tolist(), (best[..., 0] - best[..., 1]).T.tolist()


def same(name, mine, want, gaps):
    """"" and the number of steps that were compared, or what differs."""
    steps = 0
    for row, (a, b, gap) in enumerate(zip(mine, want, gaps)):
        for t, (x, y, g) in enumerate(zip(a, b, gap)):
            if g < CLOSE:
                break
            if x != y:
                return f"{name}, prompt {row}, step {t}: {x}, transformers {y}, with {g:.2e} between the two best", 0
            steps += 1
    return "", steps


def check(model, folder, prompts, tokens, least, adapter=None):
    model = model.eval().float()
    alone, batch = ours(folder, prompts, tokens, adapter)
    single = [theirs(model, [p], tokens) for p in prompts]
    why, one = same("alone", alone, [s[0][0] for s in single], [s[1][0] for s in single])
    if why:
        return why
    why, all_rows = same("in a batch", batch, *theirs(model, prompts, tokens))
    if why:
        return why
    print(f"# {os.path.basename(folder)}: {one} and {all_rows} of {tokens * len(prompts)} steps compared")
    return "" if min(one, all_rows) >= least else f"only {one} and {all_rows} steps could be compared"


def prompts_of(vocabulary, seed):
    draw = random.Random(seed)
    return [[draw.randrange(vocabulary) for _ in range(n)] for n in (1, 2, 3, 5, 8, 9, 12, 14)]


def family(folder):
    config = AutoConfig.from_pretrained(folder)
    tokens = min(64, config.max_position_embeddings - 14)
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    return check(model, folder, prompts_of(config.vocab_size, 1), tokens, 4 * tokens)


def with_adapter(folder):
    base = os.path.join("tests/reference", json.load(open(os.path.join(folder, "adapter_config.json")))["base_model_name_or_path"].split("/")[-1])
    config = AutoConfig.from_pretrained(base)
    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base, attn_implementation="eager"), folder)
    tokens = min(48, config.max_position_embeddings - 14)
    return check(model, base, prompts_of(config.vocab_size, 2), tokens, 4 * tokens, folder)


def real(folder):
    want = json.load(open(os.path.join(folder, "reference_greedy.json")))
    start = want["greedy_text"][:16]
    done = subprocess.run([os.path.join(BUILD, "generate"), "--model", folder, "--prompt", start, "--max-new-tokens", "180"],
                          capture_output=True, text=True)
    said = start + done.stdout.rstrip("\n")
    n = min(len(said), len(want["greedy_text"]))
    if n < 400 or said[:n] != want["greedy_text"][:n]:
        return f"{said[:n]!r}, expected {want['greedy_text'][:n]!r}"
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    ids = want["greedy_ids"]
    return check(model, folder, [ids[:n] for n in (1, 4, 9, 17, 30, 44, 60, 90)], 100, 8 * 64)


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    if not os.path.exists(os.path.join(BUILD, "tests/peers/generate_peer")):
        tap.skip("greedy continuations", f"{BUILD} has no tests/peers/generate_peer")
        tap.done()
    for path in sorted(glob.glob("tests/reference/*/expected.safetensors")):
        folder = os.path.dirname(path)
        tap.case(f"{os.path.basename(folder)}: as transformers' generate, alone and in a batch of eight", family, folder)
    for name in ("lora", "dora", "rslora-patterns"):
        tap.case(f"the adapter {name}: as PEFT's", with_adapter, f"tests/reference/adapters/{name}")
    shared = os.environ.get("TUNE_SHARED") or "../shared/data"
    folder = os.path.join(shared, "stories260K-hf")
    if os.path.exists(folder):
        tap.case("a pretrained model: its reference text, and at least 64 steps of each prompt", real, folder)
    else:
        tap.skip("a pretrained model", "no folder of real material ($TUNE_SHARED, ../shared/data)")
    tap.done()


main()
