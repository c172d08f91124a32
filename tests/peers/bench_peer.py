#!/usr/bin/env python3
"""bench_peer.py - the ways in which the benches run PyTorch (tests/bench/peers.py): which there are on whose CPU, and that
MKL's brake is really released where a way says so."""
import sys
import tempfile

sys.path.insert(0, "tests/bench")
import peers  # noqa: E402
import tap  # noqa: E402


def worker(job):
    import torch

    if job["multiply"]:
        torch.ones(64, 64) @ torch.ones(64, 64)
    peers.check_brake()
    print("{}")


def found(name):
    peers.vendor = lambda: name
    return list(peers.ways(tmp, "auto"))


def error(way, multiply):
    try:
        peers.worker(dict(multiply=multiply), way)
    except SystemExit as e:
        return str(e)
    return ""


if "--worker" in sys.argv:
    worker(peers.json.load(sys.stdin))
    sys.exit()
plain, released = ["", "memory kept"], ["", "MKL released", "MKL released, memory kept"]
with tempfile.TemporaryDirectory() as tmp:
    if peers.vendor():
        ways = peers.ways(tmp, "both")
        for name in ways:
            tap.case(f"PyTorch, {name or 'as it comes'}", error, ways[name], True)
        tap.ok("MKL never asked" in error(ways["MKL released"], False), "a release that MKL never asks for is an error")
    else:
        tap.skip("MKL's brake", "no x86 CPU")
    tap.ok(found("AuthenticAMD") == released, "AMD's CPUs: with the brake, and released")
    tap.ok(found("HygonGenuine") == released, "and others'")
    tap.ok(found("GenuineIntel") == plain, "Intel's have none")
    tap.ok(found("") == plain, "nor has another processor")
tap.done()
