#!/usr/bin/env python3
"""generation_config_peer.py - greedy answers of build/generate beside transformers' generate, for drawn values of the keys of
generation_config.json: n-grams, suppressed, bad and forced tokens, limits of length, the repetition penalty.

A tiny model with a byte-level tokenizer answers prompts of one to many tokens: transformers each prompt alone, generate all of them
in batches of a drawn size. The values stand in the folder's file, or are given as options while the file has others. Texts, numbers
of tokens and reasons to end are equal up to the first step at which transformers' two best scores differ by less than 1e-4.
BUILD: the build folder (default build). TUNE_PEER_SEED: of the draws. TUNE_PEER_CASES: how many (default 48).
"""
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging

BUILD = os.environ.get("BUILD", "build")
SEED = int(os.environ.get("TUNE_PEER_SEED", "1"))
CASES = int(os.environ.get("TUNE_PEER_CASES", "48"))
GAP, MOST, CONTEXT = 1e-4, 24, 96
PROMPTS = ["a", "t", "the", "the fox is", "an owl was where the wren is", "red or blue? the fox was the wren, the fox was", "x y z " * 6]


def make_base(folder):
    text = ["the fox is red or blue? an owl was where the wren is\n" * 3]
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(text, trainers.BpeTrainer(vocab_size=290, special_tokens=["<|endoftext|>"], show_progress=False,
                                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    PreTrainedTokenizerFast(tokenizer_object=tok, eos_token="<|endoftext|>").save_pretrained(folder)
    torch.manual_seed(5)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=tok.get_vocab_size(), hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=CONTEXT, bos_token_id=None, eos_token_id=0, tie_word_embeddings=False))
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() == 2:
                p.copy_(torch.randn(p.shape) * 0.2)
    model.save_pretrained(folder)


def draw(rng, said, vocab):
    """Keys and values. said: what the model says without any."""
    usual = sorted({i for ids in said for i in ids} - {0})

    def word():
        ids, n = rng.choice(said), rng.choice([1, 2, 3])
        at = rng.randrange(len(ids) - n)
        return ids[at : at + n]

    some = lambda most: [rng.choice(usual) if rng.random() < 0.7 else rng.randrange(vocab) for _ in range(rng.randint(1, most))]
    keys = {"eos_token_id": sorted({0, *rng.sample(usual, rng.randint(0, 2))})}
    draws = {
        "no_repeat_ngram_size": lambda: rng.choice([0, 1, 2, 2, 3, 4]),
        "suppress_tokens": lambda: some(8),
        "begin_suppress_tokens": lambda: some(8),
        "bad_words_ids": lambda: [word() for _ in range(rng.randint(1, 8))],
        "forced_bos_token_id": lambda: rng.choice(usual),
        "forced_eos_token_id": lambda: rng.choice([0, keys["eos_token_id"][-1], [0, rng.choice(usual)]]),
        "repetition_penalty": lambda: rng.choice([1.0, 1.2, 1.5, 0.9]),
    }
    for name in rng.sample(sorted(draws), rng.randint(1, 4)):
        keys[name] = draws[name]()
    for new, length, low in (("min_new_tokens", "min_length", 0), ("max_new_tokens", "max_length", 1)):
        kind = rng.randrange(3)
        if kind == 1:
            keys[new] = rng.randint(low, MOST)
        elif kind == 2:
            keys[length] = rng.randint(50, 60) if low else rng.randint(0, 60)
    # a token that is forced and ruled out leaves none, of which transformers takes the first
    forced = [keys.get("forced_bos_token_id")] + (lambda x: x if isinstance(x, list) else [x])(keys.get("forced_eos_token_id"))
    for name in ("suppress_tokens", "begin_suppress_tokens"):
        keys[name] = [i for i in keys.get(name, []) if i not in forced]
    return {k: v for k, v in keys.items() if v != []}


def flag_of(key, value):
    if key == "bad_words_ids":
        value = ",".join(" ".join(map(str, word)) for word in value)
    return [f"--{key.replace('_', '-')}", ",".join(map(str, value)) if isinstance(value, list) else str(value)]


def theirs(model, tok, text, keys):
    """Ids, whether a token ended them, and the number of steps to compare."""
    ids = tok(text, return_tensors="pt")
    limit = {} if "max_new_tokens" in keys or "max_length" in keys else {"max_new_tokens": MOST}
    out = model.generate(**ids, **limit, output_scores=True, return_dict_in_generate=True, pad_token_id=0)
    new = out.sequences[0, ids.input_ids.shape[1]:].tolist()
    sure = 0
    for step in out.scores:
        best = step[0].topk(2).values
        if torch.isfinite(best).all() and best[0] - best[1] < GAP and best[0] != 0:
            break
        sure += 1
    return new, new[-1] in keys["eos_token_id"], sure


def compare(model, tok, folder, keys, as_options, rng):
    with open(os.path.join(folder, "generation_config.json"), "w") as f:
        json.dump(keys, f)
    model.generation_config = GenerationConfig.from_pretrained(folder)
    want = [theirs(model, tok, p, keys) for p in PROMPTS]
    options = []
    if as_options:
        others = {"eos_token_id": keys["eos_token_id"]}
        for key in set(keys) - {"eos_token_id"}:
            options += flag_of(key, keys[key])
            others[key] = {"bad_words_ids": [[3]], "forced_bos_token_id": 7, "forced_eos_token_id": 7}.get(key, [5, 6] if isinstance(keys[key], list) else 2)
        with open(os.path.join(folder, "generation_config.json"), "w") as f:
            json.dump(others, f)
    if not ({"max_new_tokens", "max_length"} & set(keys)):
        options += ["--max-new-tokens", str(MOST)]
    rows = os.path.join(folder, "rows.jsonl")
    with open(rows, "w") as f:
        f.writelines(json.dumps({"prompt": p}) + "\n" for p in PROMPTS)
    done = subprocess.run([os.path.join(BUILD, "generate"), "--model", folder, "--input", rows, "--batch-size", str(rng.randint(1, 7)), *options],
                          capture_output=True, text=True)
    if done.returncode:
        return done.stderr[-600:]
    if not as_options and len(keys) > 1 and "generation_config.json sets" not in done.stderr and any(
            v not in (0, 1.0) for k, v in keys.items() if k not in ("eos_token_id", "repetition_penalty")):
        return "the header names no key"
    steps = 0
    for text, (new, ended, sure), line in zip(PROMPTS, want, done.stdout.splitlines(), strict=True):
        ours, whole = json.loads(line), sure >= len(new)
        shown = tok.decode(new[:-1] if ended else new[:sure], skip_special_tokens=True) if whole else tok.decode(new[:sure], skip_special_tokens=True).rstrip("\ufffd")
        same = ours["answer"] == shown and ours["tokens"] == len(new) and ours["end"] == ("token" if ended else "length") if whole else ours["answer"].startswith(shown)
        if not same:
            return f"{keys} {options}\n# {text!r}: {ours}\n# expected {shown!r}, {len(new)} tokens, ended by a token: {ended}, sure of {sure}"
        steps += sure
    return "" if steps >= len(PROMPTS) else f"{steps} steps compared"


def answers(model, tok):
    found = []
    for p in PROMPTS:
        ids = tok(p, return_tensors="pt")
        found.append(model.generate(**ids, max_new_tokens=MOST, min_new_tokens=8, do_sample=False, pad_token_id=0)[0, ids.input_ids.shape[1]:].tolist())
    return found


def main():
    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    rng = random.Random(SEED)
    with tempfile.TemporaryDirectory() as root:
        folder = os.path.join(root, "model")
        make_base(folder)
        model, tok = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
        said = answers(model, tok)
        for i in range(CASES):
            keys = draw(rng, said, len(tok))
            name = f"seed {SEED}, case {i}{', as options' if i % 3 == 2 else ''}: {', '.join(k for k in keys if k != 'eos_token_id')}"
            tap.case(name, compare, model, tok, folder, keys, i % 3 == 2, rng)
    tap.done()


if __name__ == "__main__":
    main()
