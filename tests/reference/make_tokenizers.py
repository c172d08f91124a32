#!/usr/bin/env python3
"""make_tokenizers.py - write tests/reference/tokenizers.jsonl: one small tokenizer.json of each shape, with the ids that
the `tokenizers` package gives for a few texts, and what it makes of them again.

    python3 tests/reference/make_tokenizers.py > tests/reference/tokenizers.jsonl
    python3 tests/reference/make_tokenizers.py "metaspace, first" >> tests/reference/tokenizers.jsonl     only these shapes

A line is {"name", "tokenizer": <the file's text>, "cases": [{"text", "ids", "special_ids", "decoded"}]}.
"""
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))
import tokenizers_peer as peer  # noqa: E402

TEXTS = [
    "", " ", "Hello World, it's  two spaces", "don't DON'T we'Ve '\u017f x'll", "\r\n\r\n  x\n \n\ty  ", "12345678 x'\u017fa '\u017f  \r\n!\r\n\tx 1234567 \u0663\u0664 \u2167\u00bd 3.14",
    "caf\u00e9 cafe\u0301 \u1100\u1161\u11a8 \u212b a\u0328\u0301", "<|a|><|b|><|b|b", "x <left> y <right>  z <both> w", "single singles \u00e9single single.",
    "norm normal abnormal cafe\u0301", "a\0b", "\U0001f468\u200d\U0001f469 \u65e5\u672c\u8a9e \ud55c\uad6d\uc5b4", "\u2581 a\u2581b  c", "a" * 200,
    "</s>x <unk> <0x41>", "\u00a0\u3000 \u2028x", "a\u0310\u0301 a\u0301\u0310 e\u0323\u0302\u0302",
    "\nreturn\rconst \nif\n\n x\r\nx \u00e9\nreturn", "'\u017f x'\u017fa 'S", "\tif (x) return;\n\t\treturn const static",
]


def main():
    rng = random.Random(7)
    hostile = peer.Hostile(rng)
    lines = peer.corpus(rng, hostile)
    peer.VOCAB = 700
    words = "tokenizer return const static while the struct for of an ing uint32_t".split()
    long = ["".join(rng.choice(words) for _ in range(50)) for _ in range(4)]
    for name in sys.argv[1:] or peer.SHAPES:
        make = peer.SHAPES[name]
        t = make(lines)
        cases = []
        for text in TEXTS + long + [hostile.text() for _ in range(25)]:
            ids = t.encode(text, add_special_tokens=False).ids
            cases.append({"text": text, "ids": ids, "special_ids": t.encode(text).ids, "decoded": t.decode(ids, skip_special_tokens=False)})
        print(json.dumps({"name": name, "tokenizer": t.to_str(), "cases": cases}))


if __name__ == "__main__":
    main()
