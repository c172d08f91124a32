#!/usr/bin/env python3
"""make_nf4.py - NF4 as bitsandbytes does it: its levels, and what becomes of some tensors.

    python3 tests/reference/make_nf4.py levels > components/core/nf4_levels.h
    python3 tests/reference/make_nf4.py > tests/reference/nf4.h

The magnitudes' mean is taken in float64 (theirs is a float32 sum whose order depends on the machine), and the 8-bit step by the
package's own plain definition: its library for CPUs looks codes up in a table of 65536 places, too coarse near zero.
"""
import os
import sys

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # compiling takes longer than the work

import numpy as np
import torch

import bitsandbytes.functional as F

# name, count, exponent of two, kind: 0 all blocks alike; 1 of different magnitude; 2 only the middle number is not zero
CASES = (("even", 64 * 5, 0, 0), ("tail", 64 * 300 + 13, -5, 0), ("uneven", 64 * 600 + 63, 3, 1), ("one", 1, 0, 0),
         ("block", 64, 0, 0), ("sparse", 64 * 20 + 1, -3, 2), ("denormal", 64 * 9 + 2, -140, 1), ("huge", 64 * 257, 116, 1))


def tensor(count, exponent, kind):
    """The same as in tests/core/test_nf4.c."""
    s, out = 1, np.zeros(count, np.float32)
    for i in range(count):
        s = (s * 6364136223846793005 + 1442695040888963407) % 2**64
        e = exponent + (i // 64 * 7 % 23 - 11 if kind == 1 else 0)
        if kind != 2 or i == count // 2:
            out[i] = np.float32((((s >> 40) - 2**23) * 2.0**-23) * 2.0**e)
    return out


def quantise(x):
    """codes, magnitudes' codes, their scales, offset, values"""
    x = torch.from_numpy(x)
    levels8 = F.create_dynamic_map()
    codes, state = F.quantize_4bit(x, blocksize=64, quant_type="nf4")
    absmax = state.absmax
    offset = torch.tensor(np.float32(absmax.numpy().astype(np.float64).mean()))
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CompositeExplicitAutograd)
    absmax8, absmax2 = torch.ops.bitsandbytes.quantize_blockwise.default.redispatch(keys, absmax - offset, levels8, 256)
    inner = F.QuantState(absmax=absmax2, code=levels8, blocksize=256, dtype=torch.float32)
    state = F.QuantState(absmax=absmax8, shape=x.shape, dtype=x.dtype, blocksize=64, code=state.code, quant_type="nf4",
                         offset=offset, state2=inner)
    values = F.dequantize_4bit(codes, state)
    return codes.numpy().reshape(-1), absmax8.numpy(), absmax2.numpy(), offset.numpy().reshape(1), values.numpy().reshape(-1)


def fnv(array):
    h = 0xCBF29CE484222325
    for b in array.tobytes():
        h = (h ^ b) * 0x100000001B3 % 2**64
    return h


def rows(numbers):
    lines, line = [], "   "
    for n in numbers:
        text = f"{n:.9g}"
        text = f" {text}{'' if '.' in text or 'e' in text else '.'}f,"
        if len(line) + len(text) > 96:
            lines.append(line)
            line = "   "
        line += text
    return "\n".join(lines + [line])


def levels():
    return f"""/* nf4_levels.h - the levels of NF4 for weights and for absmax, ascending.
 * tests/reference/make_nf4.py prints them. */
#ifndef TUNE_CORE_NF4_LEVELS_H
#define TUNE_CORE_NF4_LEVELS_H

#ifdef __CUDACC__
#define TUNE_NF4_ON static __device__
#else
#define TUNE_NF4_ON static
#endif

/* Quantiles of a normal distribution: 7 below zero, zero, 8 above. The outermost are scaled to -1
 * and 1. */
TUNE_NF4_ON const float levels4[16] = {{
{rows(F.get_4bit_type("nf4", "cpu").tolist())}
}};

/* Levels of absmax that are not negative: a power of ten from 1e-6 to 1, times the middles of 1, 2,
 * 4, .. 64 equal parts of 0.1 to 1. Zero and one are added. */
TUNE_NF4_ON const float levels8[129] = {{
{rows(F.create_dynamic_map().tolist()[127:])}
}};

/* Level i of 256: those but the last are symmetric. */
TUNE_NF4_ON inline float level8(int i)
{{
    return i < 127 ? -levels8[127 - i] : levels8[i - 127];
}}

#endif
"""


def reference():
    text = """/* nf4.h - what bitsandbytes makes of the tensors of tests/core/test_nf4.c; tests/reference/make_nf4.py prints it. */
static const struct {
    const char *name;
    int count, exponent, kind;
    uint64_t codes, absmax, absmax2, values; /* FNV-1a of the bytes, 64 bits */
    float offset, first, last;               /* the first and last value */
} expected[] = {
"""
    for name, *shape in CASES:
        codes, absmax, absmax2, offset, values = quantise(tensor(*shape))
        hashes = ", ".join(f"0x{fnv(a):016x}" for a in (codes, absmax, absmax2, values))
        floats = ", ".join(f"{float(v).hex()}f" for v in (offset[0], values[0], values[-1]))
        text += f'    {{"{name}", {shape[0]}, {shape[1]}, {shape[2]}, {hashes},\n     {floats}}},\n'
    return text + "};\n"


if __name__ == "__main__":
    print(levels() if sys.argv[1:] == ["levels"] else reference(), end="")
