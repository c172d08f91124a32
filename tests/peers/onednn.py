"""onednn.py - whether PyTorch's bfloat16 products run on this machine.

Some machines promise AMX and then refuse its instructions. There PyTorch dies of an illegal instruction, and
ONEDNN_MAX_CPU_ISA has to keep it off AMX. As a program: prints the value that is needed, or nothing.
"""
import os, signal, subprocess, sys

PRODUCT = "import torch; x = torch.ones(64, 64).bfloat16(); torch.nn.functional.linear(x, x)"
WITHOUT_AMX = "AVX512_CORE_FP16"


def runs(isa):
    """Whether the product runs; isa "": as it comes."""
    environment = dict(os.environ, ONEDNN_MAX_CPU_ISA=isa) if isa else None
    code = subprocess.run([sys.executable, "-c", PRODUCT], env=environment, stderr=subprocess.DEVNULL).returncode
    return code != -signal.SIGILL


def needed():
    """What ONEDNN_MAX_CPU_ISA must be, or "" where PyTorch runs as it comes."""
    if runs(""):
        return ""
    return WITHOUT_AMX if runs(WITHOUT_AMX) else ""


if __name__ == "__main__":
    print(needed())
