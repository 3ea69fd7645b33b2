"""Costs that grow in proportion: excluded rows, Byzantine workers, workers without a sample.

The sizes are such that a cost that grows with the square takes many minutes: a process that does not end is stopped.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

RULE = "X = np.ones(({}, 2)); X[1::2] = np.nan; {}"
RUN = """
m = 200_000
half = steps.constant(0.5)
loss = losses.Quadratic(np.ones((m, 1)), np.ones((m, 2)))
{}(None, None, loss=loss, algorithm={}, attack={}, n_byzantine=80_000, iterations=1)
"""
CALLS = {
    "median": RULE.format(400_001, "aggregate.median(X)"),
    "bucketing": RULE.format(1_200_001, "aggregate.bucketing(X, s=2, rng=0)"),
    "dirichlet": "partition.dirichlet(np.arange(1_000_000) % 2, 200_000, alpha=0.001)",
    "SGD": RUN.format("simulate", "SGD(step=half, ideal=True)", "attacks.SignFlip()"),
    "ADMM": RUN.format("simulate", "ADMM(lam=1, beta=1, master_step=half, worker_step=half)", "attacks.NonFinite()"),
    "own attack": RUN.format("simulate", "SGD(step=half)", "lambda honest, *, byzantine, **rest: honest[byzantine]"),
    "engine": RUN.format("engines.simulate", "SGD(step=half)", "attacks.NonFinite()"),
}


@pytest.mark.parametrize("name", CALLS)
def test_costs_are_linear(name: str) -> None:
    head = """
import numpy as np
from byzadmm import ADMM, SGD, aggregate, attacks, engines, losses, partition, simulate, steps
"""
    subprocess.run([sys.executable, "-c", head + CALLS[name]], check=True, timeout=300)
