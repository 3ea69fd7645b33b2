"""Runs on real data under attack: a filter's accuracy against that of Ideal SGD and of the plain mean."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from byzadmm import SGD, Result, attacks, datasets, filters, partition, simulate_many
from byzadmm.attacks import Attack

#: A filter for 20 workers, 8 of them Byzantine, and how far below Ideal SGD it may end. FLTrust scales messages by a
#: noisy gradient; Comparison is left with the master's own gradient once noise exceeds gradients.
FILTERS: dict[str, tuple[filters.Filter, float]] = {
    "zeno": (filters.Zeno(8), 0.02),
    "fltrust": (filters.FLTrust(), 0.04),
    "comparison": (filters.Comparison(), 0.06),
    "byzantine-sgd": (filters.ByzantineSGD(T=200), 0.02),
    "safeguard": (filters.Safeguard((20, 120)), 0.02),
    "reconstruction": (filters.Reconstruction(), 0.02),
}


def runs(data: datasets.Dataset, held: int, attack: Attack, iterations: int) -> dict[str, Result]:
    parts = [part + held for part in partition.iid(data.train_y[held:], 20, seed=0)]
    sgd = SGD.for_dataset(data)
    given: dict[str, Any] = {"dataset": data, "parts": parts, "attack": attack, "n_byzantine": 8}
    given |= {"iterations": iterations, "validation": np.arange(held)}
    algorithms = {"mean": sgd, "ideal": replace(sgd, ideal=True)}
    algorithms |= {name: replace(sgd, filter=chosen) for name, (chosen, _) in FILTERS.items()}
    made = simulate_many([given | {"algorithm": algorithm} for algorithm in algorithms.values()])
    results = {}
    for name, run in zip(algorithms, made, strict=True):
        assert isinstance(run, Result), f"{name}: {run!r}"
        results[name] = run
    return results


@pytest.mark.slow
def test_on_the_digits_under_sign_flipping() -> None:
    found = runs(datasets.load("digits"), 200, attacks.SignFlip(), 200)
    ideal = found["ideal"].final_accuracy()
    assert ideal > 0.93
    assert found["mean"].final_accuracy() < 0.3
    for name, (_, below) in FILTERS.items():
        assert found[name].final_accuracy() > ideal - below, name
        weights = found[name].weights
        assert weights is not None
        assert np.nanmean(weights["byzantine"]) < 0.5 * np.nanmean(weights["regular"]), name
    for name in ("byzantine-sgd", "safeguard"):
        assert found[name].eliminated.keys() == set(range(12, 20)), name
        assert min(found[name].eliminated.values()) == {"byzantine-sgd": 21, "safeguard": 23}[name], name


@pytest.mark.slow
@pytest.mark.data
def test_on_mnist_under_sign_flipping(mnist: datasets.Dataset) -> None:
    found = runs(mnist, 1000, attacks.SignFlip(), 300)
    ideal = found["ideal"].final_accuracy()
    assert ideal > 0.88
    assert found["mean"].final_accuracy() < 0.3
    for name, (_, below) in FILTERS.items():
        assert found[name].final_accuracy() > ideal - below, name
