"""Our NF4 against bitsandbytes' on the CPU: codes, scales and values, bit for bit, on random and hostile tensors.

make_nf4.quantise says which two things of bitsandbytes' are replaced, and why; how far the replaced mean is from its own is a case.
"""
import os
import subprocess
import sys

import numpy as np
import tap

sys.path.insert(0, "tests/reference")
import make_nf4
import torch

OURS = os.path.join(os.environ.get("BUILD", "build"), "tests/peers/nf4_peer")
NAMES = ("codes", "magnitudes' codes", "their scales", "offset", "values")


def ours(x, piece):
    done = subprocess.run([OURS, str(x.size), str(piece)], input=x.tobytes(), capture_output=True)
    if done.returncode:
        return done.stderr.decode()
    blocks = -(-x.size // 64)
    sizes = np.cumsum([(x.size + 1) // 2, blocks, -(-blocks // 256) * 4, 4, x.size * 4])
    assert len(done.stdout) == sizes[-1]
    return [done.stdout[a:b] for a, b in zip([0, *sizes[:-1]], sizes)]


def same(x, piece):
    x = np.ascontiguousarray(x, np.float32)
    got = ours(x, piece)
    if isinstance(got, str):
        return got
    for name, a, b in zip(NAMES, got, make_nf4.quantise(x)):
        if a != b.tobytes():
            a = np.frombuffer(a, b.dtype)
            at = np.nonzero(a.view(f"u{a.itemsize}") != b.view(f"u{b.itemsize}"))[0]
            return f"{name}: {at.size} differ, the first {at[0]}: {a[at[0]]} and theirs {b[at[0]]}"


def refused(x):
    message = ours(np.array(x, np.float32), 7)
    return None if isinstance(message, str) and "infinite or not a number" in message else f"not refused: {message}"


def mean(rng):
    """Theirs, a float32 sum, is within two units of the last place."""
    for n in (1, 100, 64 * 300 + 13, 64 * 5000):
        x = torch.from_numpy(rng.standard_normal(n).astype(np.float32))
        _, state = make_nf4.F.quantize_4bit(x, blocksize=64, quant_type="nf4", compress_statistics=True)
        offset = make_nf4.quantise(x.numpy())[3]
        if abs(state.offset.item() - offset[0]) > 2 * np.spacing(offset[0]):
            return f"{n}: {state.offset.item()} and {offset[0]}"


def thresholds():
    """Numbers at, just below and just above the middle between two levels, and the levels themselves."""
    levels = make_nf4.F.get_4bit_type("nf4", "cpu").numpy()
    bounds = ((levels[1:] + levels[:-1]) / np.float32(2)).astype(np.float32)
    near = [bounds, np.nextafter(bounds, np.float32(-2)), np.nextafter(bounds, np.float32(2)), levels]
    return np.concatenate([np.concatenate([near[i], np.ones(64 - near[i].size)]) for i in range(4)]).astype(np.float32)


def main():
    rng = np.random.default_rng(7)
    for n in (1, 2, 3, 63, 64, 65, 127, 128, 191, 64 * 255 + 1, 64 * 256, 64 * 256 + 1, 64 * 257, 64 * 1000 + 37, 576 * 1536):
        tap.case(f"{n} normal numbers", same, rng.standard_normal(n), int(rng.integers(1, n + 1)))
    for e in (-149, -140, -126, -60, -10, 10, 60, 120):
        x = rng.standard_normal(64 * 600 + 29) * 2.0**e
        tap.case(f"of size 2^{e}", same, x, 1000)
    wide = rng.standard_normal(64 * 900 + 5) * np.exp2(rng.uniform(-120, 120, 901).repeat(64)[: 64 * 900 + 5])
    tap.case("blocks of all sizes", same, wide, 333)
    tap.case("numbers of all sizes", same, rng.standard_normal(64 * 900 + 5) * np.exp2(rng.uniform(-140, 120, 64 * 900 + 5)), 333)
    tap.case("bfloat16 numbers", same, torch.randn(64 * 400).bfloat16().float().numpy(), 64)
    tap.case("middles between levels", same, thresholds(), 5)
    for n in (1, 64, 200, 64 * 300):
        tap.case(f"{n} zeros", same, np.zeros(n), 64)
        tap.case(f"{n} times the same", same, np.full(n, -3.7), 64)
    one = np.zeros(64 * 300)
    one[5000] = 1e30
    tap.case("one number among zeros", same, one, 777)
    tap.case("negative zeros", same, -np.zeros(100), 9)
    tap.case("the smallest denormals", same, np.full(100, 1e-45), 9)
    tap.case("the largest numbers", same, np.full(64 * 3, 3.4028235e38) * np.where(np.arange(192) % 3, 1, -1), 9)
    tap.case("the mean of magnitudes", mean, rng)
    for bad in (np.nan, np.inf, -np.inf):
        tap.case(f"{bad} is refused", refused, [1.0] * 70 + [bad] + [2.0] * 10)
    with open("components/core/nf4_levels.h") as f:
        tap.ok(f.read() == make_nf4.levels(), "components/core/nf4_levels.h is made again to the byte")
    with open("tests/reference/nf4.h") as f:
        tap.ok(f.read() == make_nf4.reference(), "tests/reference/nf4.h is made again to the byte")
    tap.done()


main()
