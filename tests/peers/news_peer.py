"""news_peer.py - make_news against the rule written down once more with Python's own split and json.dumps: of the same words the
same bytes, words of any characters among them."""
import json
import os
import random
import subprocess
import tempfile

import tap

PROGRAM = os.path.join(os.environ.get("BUILD", "build"), "make_news")


def rule(text, entries, answer, characters=None):
    """The lines of a set; characters: where its texts are cut."""
    words, at, lines = text.split(), 0, []
    for _ in range(entries):
        parts = ["### Input:\n"] + [words[(at + i) % len(words)] for i in range(8)] + ["\n\n### Response:"]
        if characters is None:
            parts += [words[(at + 8 + i) % len(words)] for i in range(answer)]
            at += 8 + answer
            lines.append(json.dumps({"output": " ".join(parts)}))
            continue
        used = 8
        while len(" ".join(parts)) < characters:
            parts.append(words[(at + used) % len(words)])
            used += 1
        shown = " ".join(parts)[:characters]
        at += used - (len(" ".join(parts[:-1])) + 1 >= characters)  # of the last one there may be only its space
        lines.append(json.dumps({"output": shown}))
    return "".join(line + "\n" for line in lines)


def compare(text, name, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "words.txt")
        with open(path, "w", encoding="utf-8", newline="") as f:
            f.write(text)
        ours = subprocess.run([PROGRAM, name, "--words", path, "--output", "/dev/stdout"], capture_output=True, check=True).stdout
    return None if ours.decode("ascii") == rule(text, *arguments) else f"{name}: other bytes"


def anything(rng):
    """Text of characters from everywhere, white space among them."""
    spaces = [chr(c) for c in range(0x3001) if chr(c).isspace()]
    ranges = [(0, 0x80), (0x80, 0x800), (0x800, 0xD800), (0xE000, 0x10000), (0x10000, 0x110000)]
    parts = []
    for _ in range(rng.randrange(20, 400)):
        parts.append("".join(chr(rng.randrange(*rng.choice(ranges))) for _ in range(rng.randrange(1, 12))))
        parts.append("".join(rng.choice(spaces) for _ in range(rng.randrange(1, 4))))
    return "".join(parts)


with open("datasets/words.txt", encoding="utf-8") as source:
    own = source.read()
tap.case("our words, 16384plus", compare, own, "news-tokens-16384plus-entries-40", 40, 13680)
tap.case("our words, 128kplus", compare, own, "news-tokens-128kplus-entries-3", 3, 109440)
for size in (512, 1024, 2048):
    tap.case(f"our words, {size} characters", compare, own, f"news-chars-{size}-entries-1024", 1024, None, size)
spaced = "".join(f"{i}{chr(c)}" for i, c in enumerate(c for c in range(0x110000) if chr(c).isspace())) + "end"
tap.case("every white space there is", compare, spaced, "news-tokens-16384plus-entries-2", 2, 13680)
tap.case("every character there is", compare, "".join(chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000),
         "news-chars-1048576-entries-3", 3, None, 1048576)
for seed in range(20):
    text = anything(random.Random(seed))
    tap.case(f"words from everywhere, {seed}", compare, text, "news-tokens-16384plus-entries-3", 3, 13680)
    tap.case(f"cut, {seed}", compare, text, f"news-chars-{300 + seed}-entries-300", 300, None, 300 + seed)
tap.done()
