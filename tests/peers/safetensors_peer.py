"""Our safetensors reader and writer against the real ones (the safetensors package: its Rust library).

Reader: both judge the same files, the malformed ones by name and thousands of damaged copies of good ones. What the real
one refuses we must refuse. Where we are stricter, only for the reasons in STRICTER: they stand in components/files/safetensors.h
or are the format's text. Writer: a copy made by ours is, byte for byte, what the real one writes.
"""
import glob
import json
import os
import random
import subprocess
import tempfile

import safetensors
import safetensors.torch
import tap
import torch

OURS = os.path.join(os.environ.get("BUILD", "build"), "tests/peers/safetensors_peer")
STRICTER = (
    "twice",  # duplicate names and keys: the text forbids them, the real reader keeps the last
    "NUL character",  # a C string cannot hold it
    "more than 8 dimensions",
    "is too large",  # a dimension above 2^63-1
    "overflows",  # above 2^63-1 bits on the way, where the real one counts to 2^64-1
    "expected an object",  # an entry spelt as an array: the text says object
)


def theirs(data):
    try:
        return len(safetensors.deserialize(data))
    except Exception as e:
        return f"refused {e}"


def pack(header, data=b"", length=None):
    if isinstance(header, str):
        header = header.encode("utf-8", "surrogatepass")
    return (len(header) if length is None else length).to_bytes(8, "little") + header + data


def entry(name="a", dtype="F32", shape="[2]", offsets="[0,8]", more=""):
    return f'"{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}{more}}}'


E, D = entry(), bytes(8)
CASES = {
    "empty file": b"", "seven bytes": b"1234567", "length past the end": pack("{}", length=60), "length 2^64-1": pack("{}", length=2**64 - 1),
    "length 0": pack(""), "header of 100000001": pack("{}" + " " * 99999999), "not utf-8": pack(b"\xff"), "not json": pack("{"),
    "byte order mark": pack("\ufeff{" + E + "}", D), "NUL padding": pack("{" + E + "}\0\0", D), "array at top": pack("[]"),
    "lone surrogate": pack("{" + entry("\\ud800") + "}", D), "trailing comma": pack("{" + E + ",}", D),
    "depth bomb": pack('{"a":{"x":' + "[" * 100000), "depth 100": pack("{" + entry(more=',"x":' + "[" * 100 + "]" * 100) + "}", D),
    "overlap": pack("{" + E + "," + entry("b") + "}", D), "partial overlap": pack("{" + E + "," + entry("b", offsets="[4,12]") + "}", bytes(12)),
    "hole at the start": pack("{" + entry(offsets="[4,12]") + "}", bytes(12)),
    "hole in the middle": pack("{" + E + "," + entry("b", offsets="[12,20]") + "}", bytes(20)),
    "end before begin": pack("{" + entry(offsets="[8,0]") + "}", D), "empty tensor inside": pack("{" + E + "," + entry("b", shape="[0]", offsets="[4,4]") + "}", D),
    "tail": pack("{" + E + "}", bytes(9)), "cut": pack("{" + E + "}", bytes(7)), "wrong shape": pack("{" + entry(shape="[3]") + "}", D),
    "2 x 2^64-2": pack("{" + entry(shape="[2,18446744073709551614]", offsets="[0,16]") + "}", bytes(16)),
    "2 x 2^63-1": pack("{" + entry(shape="[2,9223372036854775807]", offsets="[0,16]") + "}", bytes(16)),
    "2^63 x 4 x 0": pack("{" + entry(shape="[9223372036854775808,4,0]", offsets="[0,0]") + "}"),
    "0 x 2^63 x 4": pack("{" + entry(shape="[0,9223372036854775808,4]", offsets="[0,0]") + "}"),
    "0 x 2^62": pack("{" + entry(shape="[0,4611686018427387904]", offsets="[0,0]") + "}"),
    "dimension above u64": pack("{" + entry(shape="[18446744073709551616]") + "}", D), "negative": pack("{" + entry(shape="[-2]") + "}", D),
    "float": pack("{" + entry(shape="[2.0]") + "}", D), "exponent": pack("{" + entry(shape="[2e0]") + "}", D), "text": pack("{" + entry(shape='["2"]') + "}", D),
    "minus zero": pack("{" + entry(offsets="[-0,8]") + "}", D), "one offset": pack("{" + entry(offsets="[8]") + "}", D),
    "three offsets": pack("{" + entry(offsets="[0,8,8]") + "}", D), "unknown dtype": pack("{" + entry(dtype="F31") + "}", D),
    "lower case dtype": pack("{" + entry(dtype="f32") + "}", D), "odd F4": pack("{" + entry(dtype="F4", shape="[3]", offsets="[0,1]") + "}", bytes(1)),
    "missing field": pack('{"a":{"dtype":"F32","shape":[2]}}', D), "entry null": pack('{"a":null}'), "entry an array": pack('{"a":["F32",[2],[0,8]]}', D),
    "metadata a number": pack('{"__metadata__":{"a":1}}'), "metadata an array": pack('{"__metadata__":[]}'), "duplicate name": pack("{" + E + "," + entry(offsets="[8,16]") + "}", bytes(16)),
    "duplicate key": pack("{" + entry(more=',"dtype":"F32"') + "}", D), "duplicate metadata": pack('{"__metadata__":{},"__metadata__":{}}'),
    "nine dimensions": pack("{" + entry(shape="[2,1,1,1,1,1,1,1,1]") + "}", D), "NUL in a name": pack("{" + entry("a\\u0000") + "}", D),
    # accepted
    "spaces around": pack(" \n{" + E + "}  \t", D), "nothing": pack("{}"), "scalar": pack("{" + entry(shape="[]", offsets="[0,4]") + "}", bytes(4)),
    "empty tensors": pack("{" + entry("z", shape="[0]", offsets="[8,8]") + "," + E + "," + entry("y", shape="[3,0]", offsets="[0,0]") + "}", D),
    "unsorted": pack("{" + entry("b", offsets="[8,16]") + "," + E + "}", bytes(16)), "metadata null": pack('{"__metadata__":null,' + E + "}", D),
    "escaped name": pack("{" + entry("\\u20ac\\n\\ud83d\\ude00\\/") + "}", D), "empty name": pack("{" + entry("") + "}", D), "not aligned": pack("{" + entry("u", "U8", "[1]", "[0,1]") + "," + entry(offsets="[1,9]") + "}", bytes(9)),
    "unknown key": pack("{" + entry(more=',"x":[1.5,{"y":null}]') + "}", D), "unknown key twice": pack("{" + entry(more=',"x":1,"x":2') + "}", D),
    "F4": pack("{" + entry(dtype="F4", shape="[4]", offsets="[0,2]") + "}", bytes(2)), "F6": pack("{" + entry(dtype="F6_E2M3", shape="[4]", offsets="[0,3]") + "}", bytes(3)),
    "C64": pack("{" + entry(dtype="C64", shape="[1]") + "}", D), "F8_E8M0": pack("{" + entry(dtype="F8_E8M0", shape="[8]") + "}", D),
    "F8_E4M3FNUZ": pack("{" + entry(dtype="F8_E4M3FNUZ", shape="[8]") + "}", D),
}


def damaged(good, r):
    """One to three small changes, mostly where structure is: digits, brackets, quotes of the header."""
    data = bytearray(good)
    n = 8 + int.from_bytes(good[:8], "little")
    for _ in range(r.randint(1, 3)):
        i = r.randrange(8, n) if r.random() < 0.9 else r.randrange(len(data))
        kind = r.random()
        if kind < 0.5:
            data[i] = r.choice(b'0123456789[]{},:" \\-.eFUI8\x00\xff\xc3\xa9')
        elif kind < 0.7:
            del data[i]
            data[:8] = (int.from_bytes(data[:8], "little") - 1 if r.random() < 0.9 else n).to_bytes(8, "little", signed=True)
        elif kind < 0.9:
            data.insert(i, r.choice(b'0123456789[]{},:" \\'))
            data[:8] = ((int.from_bytes(data[:8], "little") + 1) % 2**64).to_bytes(8, "little")
        else:
            data = data[: r.randrange(8, len(data) + 1)]
        n = min(len(data), n)
        if n <= 8:
            break
    return bytes(data)


def judge(files):
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for i, data in enumerate(files):
            paths.append(os.path.join(folder, f"{i}.safetensors"))
            with open(paths[-1], "wb") as f:
                f.write(data)
        run = subprocess.run([OURS], input="\n".join(paths), capture_output=True, text=True, errors="replace", timeout=300)
    lines = run.stdout.splitlines()
    assert run.returncode == 0 and len(lines) == len(files), (run.returncode, run.stderr[-500:])
    return lines


def disagreement(data, ours):
    real = theirs(data)
    if ours.startswith("accepted"):
        return "" if ours == f"accepted {real}" else f"we say {ours}, the real one {real}: {data[:300]}"
    if isinstance(real, str) or any(s in ours for s in STRICTER):
        return ""
    return f"we say {ours}, the real one accepts {real}: {data[:300]}"


def same_verdict():
    verdicts = judge(list(CASES.values()))
    for (name, data), ours in zip(CASES.items(), verdicts):
        why = disagreement(data, ours)
        tap.ok(not why, f"{name}: {ours.split(' ')[0]}, as the real reader" if isinstance(theirs(data), str) == ours.startswith("refused")
               else f"{name}: refused, stricter than the real reader", why)


def damaged_files():
    r = random.Random(1)
    with open("tests/reference/qwen3/model.safetensors", "rb") as f:
        good = [f.read()]
    good += [data for data in CASES.values() if len(data) < 2000 and not isinstance(theirs(data), str)]
    files = [damaged(g if r.random() < 0.8 else good[0], r) for g in r.choices(good[1:], k=6000)]
    for data, ours in zip(files, judge(files)):
        why = disagreement(data, ours)
        if why:
            return why


def copies():
    """save_file writes with an order of its own; a copy in that order has the same bytes."""
    r = torch.Generator().manual_seed(1)
    tensors = {f"layer.{i}.é\"{i}": torch.randn(i % 3 + 1, i + 1, 2, generator=r).to(d) for i, d in enumerate(
        [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.uint8, torch.bool, torch.float8_e4m3fn])}
    with tempfile.TemporaryDirectory() as folder:
        a, b = os.path.join(folder, "a"), os.path.join(folder, "b")
        safetensors.torch.save_file(tensors, a, metadata={"format": "pt"})
        paths = [a] + sorted(glob.glob("tests/reference/*/*.safetensors"))
        for path in paths:
            subprocess.run([OURS, "--copy", path, b], check=True)
            with open(path, "rb") as f, open(b, "rb") as g:
                x, y = f.read(), g.read()
            if x != y:
                return f"{path}: {x[:200]} {y[:200]}"
            with safetensors.safe_open(b, "pt") as f:
                if f.metadata() != {"format": "pt"}:
                    return f"{path}: metadata {f.metadata()}"


if not os.path.exists(OURS):
    tap.skip("safetensors", f"{OURS} is not built")
    tap.done()
same_verdict()
tap.case("6000 damaged files: no verdict differs", damaged_files)
tap.case("what our writer writes is what the real one writes", copies)
tap.done()
