#!/usr/bin/env python3
"""tokenizers_peer.py - build/tokenize against the live `tokenizers` package, id for id.

Trains a small tokenizer of each shape with that package, writes it to a temporary folder, makes hostile strings and
compares encoding (with and without special tokens) and decoding of random ids. TAP lines, exit 0 or 1.
Metaspace pre-tokenizers and decoders are drawn by a seed, too: offsets and streamed texts are compared as well.
BUILD: the build folder (default build). TUNE_PEER_STRINGS: strings per shape (default 20000). TUNE_PEER_SEED: of the draws.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

BUILD = os.environ.get("BUILD", "build")
STRINGS = int(os.environ.get("TUNE_PEER_STRINGS", "20000"))
SEED = int(os.environ.get("TUNE_PEER_SEED", "20"))
DRAWN = 12
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
R3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
R1 = R3.replace("{1,3}", "")
QWEN35 = R1.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
WORDS = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*")
OTHER = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
TEKKEN = "|".join(WORDS) + r"|\p{N}" + OTHER
LLAMA4 = "|".join(w + "(?i:'s|'t|'re|'ve|'m|'ll|'d)?" for w in WORDS) + r"|\p{N}{1,3}" + OTHER
MARK = "\u2581"
VOCAB = 1500

ADDED = [
    AddedToken("<|a|>", special=True, normalized=False),
    AddedToken("<|b|>", special=True, normalized=False),
    AddedToken("<|a|><|b|>", special=True, normalized=False),
    AddedToken("<|b", special=False, normalized=False),
    AddedToken("<left>", special=True, normalized=False, lstrip=True),
    AddedToken("<right>", special=False, normalized=False, rstrip=True),
    AddedToken("<both>", special=True, normalized=True, lstrip=True, rstrip=True),
    AddedToken("single", special=False, normalized=False, single_word=True),
    AddedToken("norm", special=False, normalized=True),
    AddedToken("normal", special=True, normalized=True, single_word=True),
    AddedToken("caf\u00e9", special=False, normalized=True),
    AddedToken("a\u030angstrom", special=True, normalized=True),
    AddedToken("   ", special=False, normalized=False),
    AddedToken("\t\t", special=False, normalized=True),
]


def corpus(rng, hostile):
    """This repository's own text, some of many scripts, and strings as those that will be compared."""
    text = []
    for root in ("README.md", "LICENSE", "Makefile", "components/tokenizers", "components/core", "tests/reference"):
        files = [root] if os.path.isfile(root) else [os.path.join(root, f) for f in sorted(os.listdir(root))] if os.path.isdir(root) else []
        for f in files:
            if os.path.isfile(f) and not f.endswith("unicode_tables.h"):
                with open(f, encoding="utf-8", errors="replace") as h:
                    text += h.read().splitlines()
    alphabet = "абвгдежзиклмнопрстуфхцчшщьюя αβγδεζηθικλμν 日本語中文字漢 한국어조선말 עברית العربية हिन्दी ไทย é à ü ß ñ"
    text += ["".join(rng.choice(alphabet) for _ in range(40)) for _ in range(400)]
    text += ["it's we're I'll don't they've I'd I'm 2024 12345 3.14159 x = y + 10; " * 3] * 40
    text += ["'\u017f x'\u017fa 's'S 't're've'm'll'd 'RE'Ve 1234567 \u0663\u0664\u0665 \u2167\u00bd  \n\n \r\n!\r\n\t x"] * 40
    text += ["'\u017f x'\u017fa\nreturn \rconst\n\nif\r\nx"] * 400
    return text + [hostile.text() for _ in range(3000)]


class Hostile:
    def __init__(self, rng):
        self.rng = rng
        every = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
        self.every = every
        by = {}
        for c in every:
            by.setdefault(unicodedata.category(chr(c)), []).append(c)
        self.marks = by["Mn"] + by["Mc"]
        self.digits = by["Nd"] + by["Nl"] + by["No"]
        self.letters = by["Lu"] + by["Ll"] + by["Lo"]
        self.cased = by["Lu"][:300] + by["Ll"][:300] + by["Lt"] + by["Lm"] + by["Lo"][:99] + [*b"aAbB"] * 50
        self.assigned = [c for k, v in by.items() if k not in ("Cn", "Co") for c in v]
        self.unstable = [c for c in every if unicodedata.normalize("NFC", chr(c)) != chr(c) or unicodedata.normalize("NFD", chr(c)) != chr(c)]
        self.spaces = [*range(9, 14), 0x1C, 0x1D, 0x1E, 0x1F, 0x20, 0x85, 0xA0, 0x1680, 0x180E, *range(0x2000, 0x200C), 0x2028, 0x2029, 0x202F, 0x205F, 0x2060, 0x3000, 0xFEFF]
        self.words = "the and of tokenizer return const static while If HELLO World naïve единица 東京 데이터 we don't".split()
        self.contractions = ["s", "t", "re", "ve", "m", "ll", "d", "S", "T", "RE", "Ve", "M", "lL", "D", "\u017f", "r", "\u017ft", "\u212a", "v", "l", "sx"]
        self.added = [t.content for t in ADDED]

    def pick(self, pool, most):
        return "".join(chr(self.rng.choice(pool)) for _ in range(self.rng.randint(1, most)))

    def part(self):
        r = self.rng
        k = r.randrange(23)
        if k == 0:
            return self.pick(self.every, 4)
        if k == 1:
            return self.pick(self.assigned, 6)
        if k == 2:
            return self.pick(self.letters, 2) + self.pick(self.marks, 4)
        if k == 3:
            return r.choice(["'", "\u2019", "x'", " '", "''"]) + r.choice(self.contractions) + r.choice(["", "x", " ", "1"])
        if k == 4:
            return self.pick(self.spaces, 6)
        if k == 5:
            return "".join(r.choice([" ", "\n", "\r", "\r\n", "\t", "  "]) for _ in range(r.randint(1, 7)))
        if k == 6:
            return self.pick(self.digits, 7)
        if k == 7:
            return "".join(r.choice("0123456789") for _ in range(r.randint(1, 9)))
        if k == 8:
            return self.pick(self.unstable, 4) + self.pick(self.marks, 2)
        if k == 9:
            jamo = [*range(0x1100, 0x1113), *range(0x1161, 0x1176), *range(0x11A7, 0x11C3), 0xAC00, 0xAC01, 0xD788, 0xD7A3]
            return self.pick(jamo, 6)
        if k in (10, 11):
            return "".join(r.choice(self.added) for _ in range(r.randint(1, 3)))
        if k == 12:
            t = r.choice(self.added)
            return t[: r.randint(0, len(t))] + r.choice(self.added)[r.randint(0, 3) :]
        if k == 13:
            return "\0" * r.randint(1, 2)
        if k == 14:
            return "\U0001f468\u200d\U0001f469\u200d\U0001f467" + r.choice(["\ufe0f", "\U0001f3fd", "\U0001f1e9\U0001f1ea", ""])
        if k == 15:
            return r.choice([" ", "  ", MARK, " " + MARK, MARK + " ", MARK * 3]) * r.randint(1, 3)
        if k == 16:
            return r.choice(["<0x41>", "<s>", "</s>", "<unk>", "<|endoftext|>", "<", "|>", "\u0120", "\u010a", "\u0143"])
        if k == 17:
            return "".join(r.choice("!?.,;:-_=+*/\\'\"`~@#$%^&()[]{}<>|") for _ in range(r.randint(1, 6)))
        if k == 19:
            return self.pick(self.cased, 5) + self.pick(self.marks, 1) * r.randrange(2) + r.choice(["", "'s", "'LL", "/", "!/\n", "\r"])
        if k == 18:
            return r.choice("abc \u00e9\u4e2d") * r.randint(1, 150)
        return " ".join(r.choice(self.words) for _ in range(r.randint(1, 5)))

    def text(self):
        if self.rng.random() < 0.002:
            return ""
        return "".join(self.part() for _ in range(self.rng.randint(1, 6)))


def byte_level(pre, normalizer=None, post=None, ignore=False):
    def make(lines):
        t = Tokenizer(models.BPE())
        if normalizer:
            t.normalizer = normalizer
        # Learnt without the pattern, merges lie across its boundaries: a word cut at another place gives other ids.
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        t.decoder = decoders.ByteLevel()
        special = ["<|endoftext|>"]
        t.train_from_iterator(
            [line[:80] for line in lines if line],
            trainers.BpeTrainer(vocab_size=VOCAB, max_token_length=8, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False),
        )
        t.pre_tokenizer = pre
        spec = json.loads(t.to_str())
        if ignore:  # words that no merge reaches
            spec["model"]["ignore_merges"] = True
            for word in ("\u0120tokenizer", "HELLO", "zzz", "'re", "123"):
                spec["model"]["vocab"].setdefault(word, len(spec["model"]["vocab"]))
        t = Tokenizer.from_str(json.dumps(spec))
        t.add_tokens(ADDED)
        if post:
            t.post_processor = post(t)
        return t

    return make


def template(t):
    e = t.token_to_id("<|endoftext|>")
    a = t.token_to_id("<|a|>")
    return processors.TemplateProcessing(
        single="<|endoftext|> $A <|a|> <|endoftext|>", special_tokens=[("<|endoftext|>", e), ("<|a|>", a)]
    )


LLAMA2_DECODER = [{"type": "Replace", "pattern": {"String": MARK}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
                  {"type": "Strip", "content": " ", "start": 1, "stop": 0}]


def llama2(words, missing=(), ignore=False):
    def make(lines):
        t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        t.normalizer = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
        if words:
            t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
        special = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256) if b not in missing]
        t.train_from_iterator(
            [line[:80] for line in lines if line],
            trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=special, limit_alphabet=120, max_token_length=8, show_progress=False),
        )
        spec = json.loads(t.to_str())
        spec["pre_tokenizer"] = None
        spec["model"]["ignore_merges"] = ignore
        spec["added_tokens"] = spec["added_tokens"][:3]
        spec["decoder"] = {"type": "Sequence", "decoders": LLAMA2_DECODER}
        t = Tokenizer.from_str(json.dumps(spec))
        t.add_tokens(ADDED)
        t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
        return t

    return make


def metaspace(fields, decoder=LLAMA2_DECODER, normalizer=None, mark=MARK, **options):
    """llama2 with spaces written by a Metaspace, as transformers 5 saves it."""
    def make(lines):
        spec, swap = json.loads(llama2(**{"words": False, **options})(lines).to_str()), {ord(MARK): mark, ord(mark): MARK}
        spec["model"]["vocab"] = {k.translate(swap): v for k, v in spec["model"]["vocab"].items()}
        spec["model"]["merges"] = [[part.translate(swap) for part in pair] for pair in spec["model"]["merges"]]
        spec["added_tokens"] = spec["added_tokens"][:3]
        spec["normalizer"] = normalizer
        spec["pre_tokenizer"] = {"type": "Metaspace", "replacement": mark, **fields}
        spec["decoder"] = {"type": "Sequence", "decoders": decoder} if isinstance(decoder, list) else decoder
        t = Tokenizer.from_str(json.dumps(spec))
        t.add_tokens(ADDED)
        return t

    return make


def drawn(rng):
    """A Metaspace with fields, mark, normalizer, decoder and vocabulary by chance."""
    mark = rng.choice([MARK, MARK, MARK, "_", "\u0120", "\U0001f536"])

    def fields():
        scheme = rng.choice(["first", "always", "never", None])
        found = {} if scheme is None else {"prepend_scheme": scheme}
        found |= rng.choice([{}, {"add_prefix_space": scheme != "never" or rng.random() < 0.5}, {"add_prefix_space": None}])
        return found | rng.choice([{}, {"split": True}, {"split": False}, {"split": None}]) | rng.choice([{}, {"str_rep": mark}])

    joined = [{**LLAMA2_DECODER[0], "pattern": {"String": mark}}, *LLAMA2_DECODER[1:]]
    marks = {"type": "Metaspace", "replacement": mark, **fields()}
    decoder = rng.choice([joined, joined[:3], marks, [marks, *joined[1:3]], [joined[1], marks], [*joined[1:3], marks], None])
    prepend, replace = {"type": "Prepend", "prepend": MARK}, {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
    normalizer = rng.choice([None, None, None, {"type": "NFC"}, replace, {"type": "Sequence", "normalizers": [prepend, replace]}])
    return metaspace(fields(), decoder, normalizer, mark, words=rng.random() < 0.5, ignore=rng.random() < 0.3,
                     missing=rng.choice([(), (), (0xE2, 0x81, 0x20)]))


def split(pattern):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


SHAPES = {
    "gpt2": byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), post=lambda t: processors.ByteLevel(trim_offsets=False)),
    "smollm": byte_level(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])),
    "llama3": byte_level(split(R3), post=lambda t: processors.Sequence([processors.ByteLevel(), template(t)]), ignore=True),
    "qwen2": byte_level(split(R1), normalizer=normalizers.NFC(), post=lambda t: processors.ByteLevel(trim_offsets=False)),
    "qwen35": byte_level(split(QWEN35), normalizer=normalizers.NFC()),
    "tekken": byte_level(split(TEKKEN), ignore=True),
    "llama4": byte_level(split(LLAMA4)),
    "llama2": llama2(words=True),
    "llama2, merges across words": llama2(words=False),
    "llama2, ignore_merges": llama2(words=True, ignore=True),
    "llama2, some bytes missing": llama2(words=False, missing=(0xE4, 0xC3, 0x9F, 0x0A)),
    "metaspace, first": metaspace({"prepend_scheme": "first", "split": False}),
    "metaspace, always": metaspace({"prepend_scheme": "always", "split": False}, words=True),
    "metaspace, never": metaspace({"prepend_scheme": "never", "split": False}, LLAMA2_DECODER[:3]),
    "metaspace, split, its decoder": metaspace({"prepend_scheme": "first", "split": True},
                                               {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "first", "split": True}),
    "metaspace, old fields": metaspace({"add_prefix_space": True, "str_rep": MARK},
                                       {"type": "Metaspace", "replacement": MARK, "add_prefix_space": True}),
}


def answers(command, objects):
    lines = "".join(json.dumps(o, ensure_ascii=i % 2 == 0) + "\n" for i, o in enumerate(objects))
    done = subprocess.run(command, input=lines.encode(), capture_output=True)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr.decode().strip()}")
    return [json.loads(line) for line in done.stdout.decode().split("\n") if line]


def run(folder, objects, *options):
    return answers([f"{BUILD}/tokenize", "--model", folder, *options], objects)


class Report:
    def __init__(self):
        self.count = self.failed = 0

    def say(self, name, ours, theirs, inputs):
        self.count += 1
        wrong = [i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b]
        if len(ours) != len(theirs):
            wrong.append(min(len(ours), len(theirs)) - 1)
        print(f"{'not ok' if wrong else 'ok'} {self.count} - {name}: {len(theirs)} compared", flush=True)
        for i in wrong[:3]:
            print(f"# {len(wrong)} differ, as {json.dumps(inputs[i])}\n#   ours   {ours[i]!r}\n#   theirs {theirs[i]!r}")
        self.failed += bool(wrong)


def check(report, name, t, folder, rng, strings, count=STRINGS):
    texts = [strings.text() for _ in range(count)]
    rows = [{"text": s} for s in texts]
    for options, special in (((), True), (("--no-special",), False)):
        theirs = [e.ids for e in t.encode_batch(texts, add_special_tokens=special)]
        ours = [o["ids"] for o in run(folder, rows, *options)]
        report.say(f"{name}: encode{' with' if special else ' without'} special tokens", ours, theirs, texts)
    vocab = sorted(t.get_vocab(with_added_tokens=True).values())
    rare = [i for i in vocab if i < 300] + vocab[-20:]
    lists = [[rng.choice(rare if rng.random() < 0.5 else vocab) for _ in range(rng.randint(0, 12))] for _ in range(count)]
    for skip in (False, True):
        theirs = [t.decode(ids, skip_special_tokens=skip) for ids in lists]
        ours = [o["text"] for o in run(folder, [{"ids": i} for i in lists], "--decode", *(["--skip-special"] if skip else []))]
        report.say(f"{name}: decode{', special tokens skipped' if skip else ''}", ours, theirs, lists)


def check_parts(report, name, t, folder, rng, strings, count):
    """Offsets of tokens, by which answers are trained and questions are not; and texts that are shown as they come."""
    program = f"{BUILD}/tests/peers/tokenizers_peer"
    texts = [strings.text().replace("\0", "") for _ in range(count)]
    ours, theirs = [], []
    for text, e, got in zip(texts, t.encode_batch(texts), answers([program, folder, "offsets"], [{"text": s} for s in texts])):
        of = []  # the character of each byte
        for i, c in enumerate(text):
            of += [i] * len(c.encode())
        pairs = list(zip(got[::2], got[1::2]))
        ours.append([(0, 0) if a < 0 else (of[a] if a < len(of) else len(text), of[b - 1] + 1 if b > 0 else 0) for a, b in pairs])
        theirs.append([tuple(x) for x in e.offsets])
    # here a character that NFC changed has the range of all that it was composed of, and no offset is trimmed
    if "NFC" not in str(t.normalizer) and "trim_offsets=True" not in str(t.post_processor):
        report.say(f"{name}: offsets", ours, theirs, texts)
    vocab = sorted(t.get_vocab(with_added_tokens=True).values())
    lists = [[rng.choice(vocab[:300] if rng.random() < 0.3 else vocab) for _ in range(rng.randint(0, 30))] for _ in range(count)]
    theirs = [t.decode(ids, skip_special_tokens=True).replace("\0", "\1") for ids in lists]
    ours = answers([program, folder, "stream"], [{"ids": i} for i in lists])
    report.say(f"{name}: streamed", ours, theirs, lists)


TRAIN = r"""
#include "tokenizers/tokenizer.h"
#include "core/error.h"
#include "files/file.h"
int main(int argc, char **argv)
{
    const char *special[] = {"<|endoftext|>", "<|im_start|>", "quote\"back\\slash"};
    char *text;
    size_t size;
    if (argc != 3 || tune_file_read(argv[2], 1 << 28, &text, &size) < 0 ||
        tune_tokenizer_train(argv[1], text, size, 49152, special, 3) < 0)
        return fprintf(stderr, "%s\n", tune_error_message()), 1;
    return 0;
}
"""


def trained(report, folder, lines, rng, strings):
    """A vocabulary trained by the library itself loads there, has its size, and gives the same ids."""
    name = "trained here"
    with open(f"{folder}/train.c", "w") as f:
        f.write(TRAIN)
    with open(f"{folder}/sample.txt", "w", encoding="utf-8") as f:
        f.write("\n".join(lines).replace("\0", ""))
    flags = ["-fsanitize=address,undefined"] if "asan" in BUILD else []
    cc = [os.environ.get("CC", "cc"), "-std=c11", *flags, "-Icomponents", f"{folder}/train.c", f"{BUILD}/libtune.a", "-lcjson", "-fopenmp", "-lpthread", "-lm", "-o", f"{folder}/train"]
    subprocess.run(cc, check=True)
    subprocess.run([f"{folder}/train", f"{folder}/tokenizer.json", f"{folder}/sample.txt"], check=True)
    t = Tokenizer.from_file(f"{folder}/tokenizer.json")
    report.say(f"{name}: entries", [49152], [t.get_vocab_size()], [""])
    check(report, name, t, folder, rng, strings)


def main():
    rng = random.Random(20)
    strings, report = Hostile(rng), Report()
    lines = corpus(rng, strings)
    for name, make in SHAPES.items():
        with tempfile.TemporaryDirectory(prefix="tune-peer-") as folder:
            t = make(lines)
            t.save(f"{folder}/tokenizer.json")
            check(report, name, t, folder, rng, strings)
            check_parts(report, name, t, folder, rng, strings, STRINGS // 10)
    draws = random.Random(SEED)
    for i in range(DRAWN):
        with tempfile.TemporaryDirectory(prefix="tune-peer-") as folder:
            t = drawn(draws)(lines)
            t.save(f"{folder}/tokenizer.json")
            stages = json.loads(t.to_str())
            name = f"drawn {i} (seed {SEED}): {stages['normalizer']} {stages['pre_tokenizer']} {stages['decoder']}".replace("#", "")
            check(report, name, t, folder, rng, strings, STRINGS // 10)
            check_parts(report, name, t, folder, rng, strings, STRINGS // 10)
    with tempfile.TemporaryDirectory(prefix="tune-peer-") as folder:
        trained(report, folder, lines, rng, strings)
    print(f"1..{report.count}")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
