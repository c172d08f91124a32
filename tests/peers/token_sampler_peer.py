"""Our sampling against transformers' processors, chained as its generate chains them: which tokens are kept, and their
probabilities, on random logits.

Their top_p sums in float32 and sorts ties in no order of ids. So a border that lies within rounding of top_p may fall on either
side, and among equal logits only the number that is kept is compared.
"""
import os
import subprocess

import numpy as np
import tap
import torch
from transformers import (LogitsProcessorList, MinPLogitsWarper, RepetitionPenaltyLogitsProcessor, TemperatureLogitsWarper, TopKLogitsWarper,
                          TopPLogitsWarper)

OURS = os.path.join(os.environ.get("BUILD", "build"), "tests/peers/token_sampler_peer")
ROWS = 40
NEAR = 3e-5  # their cumulative sums of float32


def ours(options, ids, x):
    rows = b"".join(i.tobytes() + r.tobytes() for i, r in zip(ids, x))
    done = subprocess.run([OURS, *map(str, options), str(x.shape[1]), str(ids.shape[1])], input=rows, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return np.frombuffer(done.stdout, np.float32).reshape(x.shape)


def theirs(options, ids, x):
    t, k, p, min_p, penalty = options
    chain = LogitsProcessorList()
    if penalty != 1:
        chain.append(RepetitionPenaltyLogitsProcessor(float(penalty)))
    if t != 1:
        chain.append(TemperatureLogitsWarper(float(t)))
    if k:
        chain.append(TopKLogitsWarper(k))
    if p < 1:
        chain.append(TopPLogitsWarper(p))
    if min_p > 0:
        chain.append(MinPLogitsWarper(min_p))
    return chain(torch.from_numpy(ids.astype(np.int64)), torch.from_numpy(x.copy()))


def logits(rng, v):
    x = rng.standard_normal((ROWS, v)) * rng.choice([0.5, 2, 5])
    grid = rng.choice([0, 0, 2, 8])
    return np.ascontiguousarray(np.round(x * grid) / grid if grid else x, np.float32)


def border(options, ids, x):
    """How far, in mass, the sums that decide in top_p are from it."""
    t, k, p, min_p, penalty = options
    scores = theirs((t, k, 1, 0, penalty), ids, x).double()
    sums = torch.sort(scores, descending=True).values.softmax(-1).cumsum(-1)
    return (sums - p).abs().min(-1).values.numpy() if p < 1 else np.ones(ROWS)


def compare(seed, v, turns):
    rng = np.random.default_rng(seed)
    compared = tokens = 0
    for turn in range(turns):
        options = (rng.choice([1, 1, 0.7, 0.2, 1.5]), int(rng.choice([0, 0, 1, 20, 50, 1000])), rng.choice([1, 1, 0.9, 0.5, 0.99]),
                   rng.choice([0, 0, 0.05, 0.2]), rng.choice([1, 1.1, 1.5, 0.8]))
        x, ids = logits(rng, v), rng.integers(0, v, (ROWS, int(rng.choice([1, 10, 200])))).astype(np.int32)
        got, scores = ours(options, ids, x), theirs(options, ids, x)
        want = scores.double().softmax(-1).numpy()
        near = border(options, ids, x) < NEAR
        flat = theirs((options[0], 0, 1, 0, options[4]), ids, x).numpy()  # for ties
        for row in np.nonzero(~near)[0]:
            # probabilities in order of the logits: the same, whichever of equal logits are kept
            order = np.lexsort((-got[row], -flat[row]))
            other = np.lexsort((-want[row], -flat[row]))
            a, b = got[row][order].astype(np.float64), want[row][other]
            kept = ((a > 0) == (b > 0)) | (np.maximum(a, b) < 1e-35)  # float32 has no weights below exp(-87)
            if not kept.all() or np.abs(a - b).max() > 1e-5 * b.max() or np.any(np.abs(a - b) > 5e-5 * b + 1e-30):
                return f"turn {turn}, row {row}, options {options}: we keep {(a > 0).sum()}, they {(b > 0).sum()}; largest difference {np.abs(a - b).max()}"
            compared += 1
            tokens += (a > 0).sum()
    print(f"# V {v}: {compared} of {turns * ROWS} rows compared, {tokens} tokens kept")
    if compared < 0.8 * turns * ROWS:
        return f"only {compared} rows compared"


def greedy():
    rng = np.random.default_rng(9)
    for v in (10, 1000, 49152):
        x, ids = logits(rng, v), rng.integers(0, v, (ROWS, 5)).astype(np.int32)
        got = ours((0, 0, 1, 0, 1.3), ids, x).argmax(-1)
        want = RepetitionPenaltyLogitsProcessor(1.3)(torch.from_numpy(ids.astype(np.int64)), torch.from_numpy(x.copy())).argmax(-1).numpy()
        if (got != want).any():
            return f"V {v}: {got} and {want}"


if not os.path.exists(OURS):
    tap.skip("sampling", f"{OURS} is not built")
    tap.done()
tap.case("kept tokens and probabilities, 300 logits", compare, 1, 300, 150)
tap.case("... 5003 logits", compare, 2, 5003, 60)
tap.case("... 49152 logits", compare, 3, 49152, 8)
tap.case("greedy with a penalty is torch.argmax's choice", greedy)
tap.done()
