#!/usr/bin/env python3
"""make_lower.py - write components/tokenizers/lower_table.h: what Python's str.lower() makes of single characters.

    python3 tests/reference/make_lower.py > components/tokenizers/lower_table.h
"""
import unicodedata


def main():
    rows = []
    for c in range(0x80, 0x110000):
        low = chr(c).lower()
        if 0xD800 <= c < 0xE000 or low == chr(c) or len(low) != 1:
            continue
        by = ord(low) - c
        if rows and by == rows[-1][3] and (c - rows[-1][1] == rows[-1][2] or rows[-1][0] == rows[-1][1] and c - rows[-1][1] == 2):
            rows[-1] = [rows[-1][0], c, c - rows[-1][1], by]
        else:
            rows.append([c, c, 1, by])
    print("/* lower_table.h - capital letters outside ASCII: {first, last, step, what to add}.")
    print(f" * Made by tests/reference/make_lower.py from Unicode {unicodedata.unidata_version}; do not edit.")
    print(" * U+0130 is not here: it becomes two characters. */")
    print("#ifndef TUNE_LOWER_TABLE_H\n#define TUNE_LOWER_TABLE_H\n\n#include <stdint.h>\n")
    print("static const int32_t lower[][4] = {")
    cells = [f"{{0x{a:X}, 0x{b:X}, {step}, {by}}}," for a, b, step, by in rows]
    for i in range(0, len(cells), 3):
        print("    " + " ".join(cells[i : i + 3]))
    print("};\n\n#endif")


main()
