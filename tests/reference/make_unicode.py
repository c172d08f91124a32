#!/usr/bin/env python3
"""make_unicode.py - write components/tokenizers/unicode_tables.h by probing the `tokenizers` package.

Which characters a pattern like \\p{L} takes is decided by the Unicode tables inside that library, of three different
ages (its regex engine, Rust's char, its NFC). Asking it about every code point is the one way to have the same.

    python3 tests/reference/make_unicode.py > components/tokenizers/unicode_tables.h
"""
import sys
import unicodedata

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
CHUNKS = [POINTS[i : i + 16384] for i in range(0, len(POINTS), 16384)]


def ranges(points):
    out = []
    for c in sorted(points):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def by_regex(pattern):
    remove = normalizers.Replace(Regex(pattern), "")
    found = set()
    for chunk in CHUNKS:
        found |= set(chunk) - set(map(ord, remove.normalize_str("".join(map(chr, chunk)))))
    return found


def by_digits():
    """Rust's char::is_numeric: what Digits takes apart from the letters beside it."""
    split = pre_tokenizers.Digits(individual_digits=True)
    found = set()
    for chunk in CHUNKS:
        for text, _ in split.pre_tokenize_str("".join("a" + chr(c) for c in chunk)):
            if text[0] != "a":
                found.add(ord(text))
    return found


def by_single_word():
    """Rust regex's \\w: what before a single_word token makes it no match."""
    t = Tokenizer(models.BPE({"x": 0}, []))
    t.add_tokens([AddedToken("\u2603", single_word=True, normalized=False)])
    snow, found = t.token_to_id("\u2603"), set()
    for chunk in CHUNKS:
        chunk = [c for c in chunk if c != 0x2603]
        e = t.encode("".join("\n" + chr(c) + "\u2603" for c in chunk), add_special_tokens=False)
        matched = {begin // 3 for i, (begin, _) in zip(e.ids, e.offsets) if i == snow}
        found |= {c for i, c in enumerate(chunk) if i not in matched}
    return found


NFC, NFD = normalizers.NFC(), normalizers.NFD()


def pieces(form, strings):
    """The normal form of many short strings at once, kept apart by a character nothing composes with."""
    out = form.normalize_str("\n".join(strings) + "\n").split("\n")
    assert len(out) == len(strings) + 1
    return out[:-1]


def all_points(form):
    for chunk in CHUNKS:
        chunk = [c for c in chunk if c != 10]
        yield from zip(chunk, pieces(form, [chr(c) for c in chunk]))


def classes(decomposed):
    """Canonical combining classes: only their order shows in a normal form, so each character is sorted among
    characters of known, old classes."""
    known = {}
    for c in range(0x300, 0x20000):
        k = unicodedata.combining(chr(c))
        if k and k not in known and c not in decomposed and pieces(NFD, [chr(c) + "\u0334" + "\u0345"]) != [chr(c) + "\u0334" + "\u0345"]:
            known[k] = chr(c)
    known.setdefault(1, "\u0334")
    known.setdefault(240, "\u0345")
    order = sorted(known)
    low, high = known[order[0]], known[order[-1]]
    found = []
    for chunk in CHUNKS:
        chunk = [c for c in chunk if c != 10 and c not in decomposed]
        after = pieces(NFD, ["a" + chr(c) + low for c in chunk])
        before = pieces(NFD, ["a" + high + chr(c) for c in chunk])
        for c, x, y in zip(chunk, after, before):
            if x != "a" + chr(c) + low or y != "a" + high + chr(c):
                found.append(c)
    out = {}
    for c in found:
        moved = pieces(NFD, ["a" + known[k] + chr(c) for k in order])
        above = sum(m != "a" + known[k] + chr(c) for k, m in zip(order, moved))
        out[c] = order[len(order) - above - 1]
    return out


def emit(kind, name, rows, per_line):
    print(f"\nstatic const {kind} {name} = {{")
    for i in range(0, len(rows), per_line):
        print("    " + " ".join(r + "," for r in rows[i : i + per_line]))
    print("};")


def main():
    print(
        "/* unicode_tables.h - made by tests/reference/make_unicode.py from tokenizers "
        + tokenizers.__version__
        + "; do not edit.\n * Ranges are {first, last}, both included. */"
    )
    print("#ifndef TUNE_UNICODE_TABLES_H\n#define TUNE_UNICODE_TABLES_H\n\n#include <stdint.h>")
    for name, points in (
        ("letters", by_regex(r"\p{L}")),
        ("numbers", by_regex(r"\p{N}")),
        ("spaces", by_regex(r"\s")),
        ("numerics", by_digits()),
        ("words", by_single_word()),
        ("heads", by_regex(r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]")),
        ("tails", by_regex(r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]")),
    ):
        emit("uint32_t", name + "[][2]", [f"{{0x{a:X}, 0x{b:X}}}" for a, b in ranges(points)], 6)
    hangul = range(0xAC00, 0xD7A4)
    full = {c: d for c, d in all_points(NFD) if d != chr(c) and c not in hangul}
    rows = []
    for c, k in sorted(classes(set(full) | set(hangul)).items()):
        if rows and rows[-1][1] == c - 1 and rows[-1][2] == k:
            rows[-1][1] = c
        else:
            rows.append([c, c, k])
    emit("uint32_t", "marks[][3]", [f"{{0x{a:X}, 0x{b:X}, {k}}}" for a, b, k in rows], 5)
    emit(
        "uint32_t",
        "decompositions[][5]",
        ["{" + ", ".join(f"0x{ord(x):X}" for x in chr(c) + d) + "}" for c, d in sorted(full.items())],
        4,
    )
    composed = dict(all_points(NFC))
    pairs = []
    for c, d in full.items():
        if composed[c] != chr(c) or len(d) < 2:
            continue
        first = NFC.normalize_str(d[:-1])
        assert len(first) == 1 and NFC.normalize_str(first + d[-1]) == chr(c), hex(c)
        pairs.append((ord(first), ord(d[-1]), c))
    emit("uint32_t", "compositions[][3]", [f"{{0x{a:X}, 0x{b:X}, 0x{c:X}}}" for a, b, c in sorted(pairs)], 5)
    print("\n#endif")


if __name__ == "__main__":
    sys.exit(main())
