#!/usr/bin/env python3
"""peer_tokenizers.py - build/tests/bench/bench_tokenizer beside the tokenizers library, one thread each: MB/s and ratio.

For every pipeline one tokenizer of realistic size over the same English documents, rows of a data set and one long text.
The library's fastest call is taken (encode_batch_fast, which leaves offsets out; ours gives them); cold is the first pass
of a tokenizer just opened, warm the best later one. Vocabularies are those of $TUNE_SHARED (default ../shared/data) where
they are, else learnt from the text. BUILD: the build folder. Run it with the environment of tests/peers.sh:
    ~/.cache/tune.c/venv/bin/python tests/bench/peer_tokenizers.py
"""
import gc
import json
import os
import subprocess
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers  # noqa: E402

BUILD = os.environ.get("BUILD", "build")
SHARED = os.environ.get("TUNE_SHARED", "../shared/data")
R3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
R1 = R3.replace("{1,3}", "")
MARK = "\u2581"


def documents():
    """Rows as a training reads them, and all of Shakespeare (or of the rows) as one text."""
    rows = [json.loads(line)["text"] for line in open("datasets/stories.jsonl", encoding="utf-8")]
    if os.path.exists(f"{SHARED}/text/gsm8k_train.jsonl"):
        rows += ["{question} {answer}".format(**json.loads(line)) for line in open(f"{SHARED}/text/gsm8k_train.jsonl", encoding="utf-8")]
    if os.path.exists(f"{SHARED}/text/tinyshakespeare.txt"):
        with open(f"{SHARED}/text/tinyshakespeare.txt", encoding="utf-8") as f:
            return rows, [f.read()]
    return rows, ["\n".join(rows)]


def learn(t, lines, size, special, **more):
    t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False, **more))
    return json.loads(t.to_str())


def byte_level(name, lines):
    """A real vocabulary of that name, or one learnt from the lines; its tokenizer.json as an object."""
    if os.path.exists(f"{SHARED}/tokenizers/{name}/tokenizer.json"):
        return json.load(open(f"{SHARED}/tokenizers/{name}/tokenizer.json", encoding="utf-8"))
    t = Tokenizer(models.BPE())
    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), level]) if name == "smollm" else level
    t.decoder = decoders.ByteLevel()
    return learn(t, lines, 50000, ["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def with_pattern(spec, pattern, ignore_merges, nfc):
    """GPT-2's vocabulary in the pipeline of Llama 3 or Qwen 2."""
    t = Tokenizer.from_str(json.dumps(spec))
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    if nfc:
        t.normalizer = normalizers.NFC()
    spec = json.loads(t.to_str())
    spec["model"]["ignore_merges"] = ignore_merges
    return spec


def llama2(lines):
    """32000 entries; the merges as they are made from a SentencePiece file: every split of every token, by the token's rank."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    spec = learn(t, lines, 32000, ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)])
    vocab = spec["model"]["vocab"]
    merges = []
    for token, rank in sorted(vocab.items(), key=lambda item: item[1]):
        splits = [(token[:i], token[i:]) for i in range(1, len(token)) if token[:i] in vocab and token[i:] in vocab]
        merges += sorted(splits, key=lambda pair: (vocab[pair[0]], vocab[pair[1]]))
    spec["model"]["merges"] = merges
    spec["pre_tokenizer"] = None
    spec["added_tokens"] = spec["added_tokens"][:3]
    spec["decoder"] = {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": MARK}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    t = Tokenizer.from_str(json.dumps(spec))
    t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return json.loads(t.to_str())


def theirs(path, texts, size):
    """Cold and warm MB/s, and the tokens."""
    best = {"cold": 1e9, "warm": 1e9}
    for _ in range(3):
        t = Tokenizer.from_file(path)
        t.no_padding()
        t.no_truncation()
        gc.collect()
        for k in range(3):
            begin = time.perf_counter()
            encoded = t.encode_batch_fast(texts)
            seconds = time.perf_counter() - begin
            best["warm" if k else "cold"] = min(best["warm" if k else "cold"], seconds)
            tokens = sum(len(e) for e in encoded)
            del encoded
    return size / best["cold"] / 1e6, size / best["warm"] / 1e6, tokens


def ours(path, text):
    line = subprocess.run([f"{BUILD}/tests/bench/bench_tokenizer", path, text], capture_output=True, text=True, check=True).stdout
    word = line.split()
    return float(word[word.index("cold") + 1]), float(word[word.index("warm") + 1]), int(word[-2])


def main():
    rows, long = documents()
    gpt2 = byte_level("gpt2", rows + long)
    specs = {
        "gpt2": gpt2,
        "smollm": byte_level("smollm", rows + long),
        "llama3": with_pattern(gpt2, R3, True, False),
        "qwen2": with_pattern(gpt2, R1, False, True),
        "llama2": llama2(rows + long[0].split("\n")),
    }
    print("MB/s, one thread        ours cold   warm    theirs cold   warm    ratio cold   warm")
    with tempfile.TemporaryDirectory(prefix="tune-bench-") as folder:
        for name, spec in specs.items():
            path = f"{folder}/{name}.json"
            with open(path, "w", encoding="utf-8") as f:
                json.dump(spec, f)
            for what, texts in (("rows", rows), ("long", long)):
                data = b"\0".join(t.encode() for t in texts)
                with open(f"{folder}/text", "wb") as f:
                    f.write(data)
                a, b = ours(path, f"{folder}/text"), theirs(path, texts, len(data))
                if a[2] != b[2]:
                    raise SystemExit(f"{name}, {what}: {a[2]} tokens, the library makes {b[2]}")
                print(f"{name:8} {what:4} {len(data) / 1e6:5.1f} MB  {a[0]:9.1f} {a[1]:6.1f}   {b[0]:11.1f} {b[1]:6.1f}   {a[0] / b[0]:10.1f} {a[1] / b[1]:6.1f}", flush=True)


if __name__ == "__main__":
    main()
