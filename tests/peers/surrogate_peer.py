"""Our Gaussian process against scikit-learn's GaussianProcessRegressor, on 20 made-up data sets of numbers.

At scikit-learn's parameters: the same means and variances. With parameters of our own: a likelihood at least as high as the one that
scikit-learn reaches from its default start and four random ones, within the same bounds.
"""
import os
import subprocess
import warnings

import numpy as np
import tap

OURS = os.path.join(os.environ.get("BUILD", "build"), "tests/peers/surrogate_peer")
SETS = 20

try:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
except ImportError as why:
    tap.skip("scikit-learn's Gaussian process", why)
    tap.done()


def data(number):
    """Rows, targets, and points to predict. Some sets have repeated rows, some have steps as in a grid."""
    rng = np.random.default_rng(number)
    dimensions, rows = 1 + number % 6, [12, 25, 40, 70][number % 4]
    x = rng.random((rows, dimensions))
    if number % 3 == 1:
        x = np.round(x * 4) / 4
    if number % 5 == 2:
        x[rows // 2:] = x[: rows - rows // 2]
    pull = rng.normal(size=dimensions) * 3
    y = np.sin(x @ pull) + 0.5 * np.abs(x[:, 0] - 0.4) + [0.0, 0.02, 0.3][number % 3] * rng.normal(size=rows)
    return x, 10.0 ** rng.integers(-3, 4) * (y + 2), rng.random((50, dimensions))


def ours(x, y, points, parameters=None):
    given = [] if parameters is None else list(parameters)
    lines = [" ".join(map(str, (x.shape[1], len(x), len(points), int(bool(given))))), " ".join(f"{v:.17g}" for v in given)]
    lines += [" ".join(f"{v:.17g}" for v in (*row, target)) for row, target in zip(x, y)]
    lines += [" ".join(f"{v:.17g}" for v in row) for row in points]
    out = subprocess.run([OURS], input="\n".join(lines), capture_output=True, text=True, check=True).stdout.split("\n")
    numbers = [[float(v) for v in line.split()] for line in out if line]
    return numbers[0][0], numbers[0][1:], np.array(numbers[1:])


def compare(number):
    x, y, points = data(number)
    dimensions = x.shape[1]
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * Matern(np.full(dimensions, 0.5), (1e-2, 1e2), nu=2.5) + WhiteKernel(1e-3, (1e-8, 10))
    theirs = GaussianProcessRegressor(kernel, alpha=0, normalize_y=True, n_restarts_optimizer=4, random_state=number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(x, y)
    fitted = theirs.kernel_
    parameters = [fitted.k1.k1.constant_value, fitted.k2.noise_level, *np.atleast_1d(fitted.k1.k2.length_scale)]
    likelihood, _, predicted = ours(x, y, points, parameters)
    mean, deviation = theirs.predict(points, return_std=True)
    spread = y.std()
    prior = fitted.k1.k1.constant_value
    # their deviation has the noise, ours has not
    variance = (deviation / spread) ** 2 - fitted.k2.noise_level
    off_mean = np.max(np.abs(mean - predicted[:, 0])) / spread
    off_variance = np.max(np.abs(variance - (predicted[:, 1] / spread) ** 2)) / prior
    reached, own, _ = ours(x, y, points)
    tap.ok(off_mean <= 1e-8, f"set {number}: the same means", f"they differ by {off_mean:.2g} of the targets' deviation")
    tap.ok(off_variance <= 1e-8, f"set {number}: the same variances", f"they differ by {off_variance:.2g} of the prior's")
    known = theirs.log_marginal_likelihood_value_
    tap.ok(abs(likelihood - known) <= 1e-6 * (1 + abs(known)), f"set {number}: the same likelihood", f"{likelihood} and {known}")
    tap.ok(reached >= known - 1e-4, f"set {number}: ours reaches at least theirs", f"ours {reached:.6f}, theirs {known:.6f}\nours {own}\ntheirs {parameters}")


for n in range(SETS):
    compare(n)
tap.done()
