"""tests/reference is what its script makes: made again here, the weights are the same bits and the numbers the same to
float64's rounding (another CPU may add in another order)."""
import glob
import os
import subprocess
import sys
import tempfile

import tap
from safetensors.torch import load_file

HERE = "tests/reference"


def same(made, kept, bits):
    a, b = load_file(made), load_file(kept)
    if a.keys() != b.keys():
        return f"names differ: {a.keys() ^ b.keys()}"
    for name in a:
        if a[name].dtype != b[name].dtype or a[name].shape != b[name].shape:
            return f"{name} differs in kind"
        x, y = a[name].double(), b[name].double()
        limit = 0 if bits else 1e-6 if name.startswith(("grad.", "after.")) else 1e-11  # those two are kept in float32
        if (x - y).norm() > limit * y.norm():
            return f"{name} differs by {(x - y).norm() / y.norm():.1e}"


def text(made, kept):
    with open(made) as f, open(kept) as g:
        return "" if f.read() == g.read() else "differs"


with tempfile.TemporaryDirectory() as folder:
    for script in ("make_models.py", "make_adapters.py", "make_steps.py"):  # each needs those before it
        run = subprocess.run([sys.executable, os.path.join(HERE, script), folder], capture_output=True, text=True)
        tap.ok(run.returncode == 0, f"{script} runs", run.stderr[-2000:].replace("\n", "\n# "))
        if run.returncode != 0:
            break
    else:
        for kept in sorted(glob.glob(HERE + "/*/*.*") + glob.glob(HERE + "/adapters/*/*") + glob.glob(HERE + "/steps/*/*")):
            made = os.path.join(folder, os.path.relpath(kept, HERE))
            if kept.endswith(".safetensors"):
                tap.case(os.path.relpath(kept, HERE), same, made, kept, "model" in os.path.basename(kept))
            else:
                tap.case(os.path.relpath(kept, HERE), text, made, kept)
tap.done()
