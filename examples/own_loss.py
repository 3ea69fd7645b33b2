"""A loss of your own: Huber regression, which outliers among the targets hardly move, under attack.

    python examples/own_loss.py
"""

import argparse

import numpy as np

import byzadmm
from byzadmm import ADMM, RSA, SGD, steps


class Huber:
    """``mean h(a.x - y)`` with ``h(r) = r^2/2`` for ``|r| <= delta`` and ``delta (|r| - delta/2)`` beyond."""

    def __init__(self, a, y, a_test, y_test, n_workers, delta=1.0, batch_size=32, seed=0):
        self.a, self.y, self.a_test, self.y_test = a, y, a_test, y_test
        self.n_workers, self.dim = n_workers, a.shape[1]
        self.delta, self.batch_size, self.seed = delta, batch_size, seed
        self.parts = np.array_split(np.random.default_rng(seed).permutation(len(a)), n_workers)

    def gradient(self, x, *, worker, k):  # on a batch that the worker and the round alone determine
        part = self.parts[worker]
        rows = part[np.random.default_rng((self.seed, worker, k)).integers(0, len(part), self.batch_size)]
        residuals = self.a[rows] @ x - self.y[rows]
        return np.clip(residuals, -self.delta, self.delta) @ self.a[rows] / self.batch_size

    def evaluate(self, x):  # curves of the result, under these names
        r = np.abs(self.a @ x - self.y)
        h = np.where(r <= self.delta, r**2 / 2, self.delta * (r - self.delta / 2))
        return {"loss": h.mean(), "median_error": np.median(np.abs(self.a_test @ x - self.y_test))}


def make_loss():
    """A linear relation with noise 0.5, and a tenth of the training targets replaced by nonsense."""
    rng = np.random.default_rng(0)
    a = np.c_[rng.standard_normal((5000, 10)), np.ones(5000)]
    y = a @ rng.standard_normal(11) + 0.5 * rng.standard_normal(5000)
    y[:400] = 50.0
    return Huber(a[:4000], y[:4000], a[4000:], y[4000:], n_workers=20)


def main(quick=False):
    step = steps.inv_sqrt(1.0, 0.1)
    study = byzadmm.compare(
        None,
        loss=make_loss(),
        algorithms={
            "ADMM": ADMM(lam=0.05, beta=0.1, master_step=steps.inv_sqrt(2.0, 0.1), worker_step=step),
            "RSA": RSA(lam=0.05, step=steps.power(2.0)),
            "geometric median": SGD(rule="geometric_median", step=step),
            "mean": SGD(step=step),
        },
        attacks=[None, "sign-flip", "gaussian"],
        n_byzantine=8,
        seeds=1,
        iterations=200 if quick else 1000,
    )
    print(study.table(metric="median_error"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="200 iterations in place of 1000")
    main(**vars(parser.parse_args()))
