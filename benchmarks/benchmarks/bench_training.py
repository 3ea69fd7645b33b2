"""Training: each algorithm on the digits under attack, and single iterations at the sizes of MNIST and COVERTYPE.

The error is that of float32 against float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzadmm import ADMM, RSA, SGD, attacks, datasets, partition, simulate, steps
from byzadmm.algorithms import Algorithm
from byzadmm.training.experiment import Experiment
from byzadmm.training.run import local

from .common import Benchmark

STEP = steps.power(1.0)
ALGORITHMS: dict[str, Algorithm] = {
    "admm": ADMM(lam=0.01, beta=0.5, master_step=steps.inv_sqrt(10, 0.3), worker_step=steps.inv_sqrt(0.5, 0.3)),
    "rsa": RSA(lam=0.01, step=STEP),
    "sgd": SGD(step=STEP),
    "median": SGD(rule="median", step=STEP),
    "geometric_median": SGD(rule="geometric_median", step=STEP),
    "krum": SGD(rule="krum", f=8, step=STEP),
    "bulyan": SGD(rule="bulyan", f=4, step=STEP),
    "nnm+trimmed_mean": SGD(rule="nnm+trimmed_mean", f=8, step=STEP),
    "bucketing+median": SGD(rule="bucketing+median", step=STEP),
    "median, momentum": SGD(rule="median", step=STEP, momentum=0.9),
    "median, saga": SGD(rule="median", step=STEP, variance_reduction="saga"),
}
ATTACKS: dict[str, Any] = {
    "sign_flip": attacks.SignFlip(),
    "alie": attacks.ALIE(),
    "min_max": attacks.MinMax(),
    "worst_case": attacks.WorstCase(attacks.InnerProduct),
}


class Training(Benchmark):
    """``simulate`` from the first iteration to the evaluation at the end."""

    param_names = ("algorithm", "attack")
    params = (list(ALGORITHMS), list(ATTACKS))

    def setup(self, algorithm: str, attack: str) -> None:
        data = datasets.load("digits")
        settings: dict[str, Any] = {
            "dataset": data,
            "parts": partition.iid(data.train_y, 20, seed=0),
            "algorithm": ALGORITHMS[algorithm],
            "attack": ATTACKS[attack],
            "n_byzantine": 8,
            "iterations": 50,
            "threads": 1,
        }
        self.call = lambda: simulate(**settings).x0
        self.exact = lambda: simulate(**settings, dtype="float64").x0


class Iterations:
    """Ten iterations of ADMM in the native loop, and the evaluation that follows."""

    timeout = 120.0
    param_names = ("data", "attack", "threads")
    params = (["mnist", "covtype"], ["sign_flip", "zero", "gaussian"], [1, 2])

    def setup(self, data: str, attack: str, threads: int) -> None:
        rng = np.random.default_rng(0)
        if data == "mnist":
            x, classes = rng.integers(0, 256, (60_000, 784), np.uint8), 10
        else:
            x, classes = rng.standard_normal((465_264, 54), np.float32), 7
        y = rng.integers(0, classes, len(x))
        run = Experiment(
            datasets.from_arrays(x, y, x[:10_000], y[:10_000], n_classes=classes, name=data),
            partition.iid(y, 20, seed=0),
            algorithm=ALGORITHMS["admm"],
            attack={"sign_flip": attacks.SignFlip(), "zero": attacks.Zero(), "gaussian": attacks.Gaussian()}[attack],
            n_byzantine=8,
            threads=threads,
        )
        self.state, self.advance = local(run)
        self.run = run
        self.k = 1

    def time_call(self, *_: Any) -> None:
        self.advance(self.state, self.k, 10)
        self.k += 10

    def time_evaluation(self, *_: Any) -> None:
        self.run.history().evaluate(self.k, self.state)
