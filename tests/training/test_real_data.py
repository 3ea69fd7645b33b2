"""The paper's numbers on the real data."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import ADMM, RSA, SGD, Result, attacks, datasets, partition, simulate_many, steps

Array = npt.NDArray[Any]


def admm(lam: float, beta: float, master: tuple[float, float], worker: tuple[float, float]) -> ADMM:
    return ADMM(lam=lam, beta=beta, master_step=steps.inv_sqrt(*master), worker_step=steps.inv_sqrt(*worker))


def accuracies(data: datasets.Dataset, parts: list[Array], wanted: dict[str, Any]) -> dict[str, str]:
    """Which of ``{label: (algorithm, attack, q, seeds, {iteration: accuracy})}``, means over seeds, are wrong."""
    settings = {"dataset": data, "parts": parts, "eval_every": 500}
    runs = [
        (label, settings | {"algorithm": a, "attack": attack, "n_byzantine": q, "iterations": max(values), "seed": s})
        for label, (a, attack, q, seeds, values) in wanted.items()
        for s in range(seeds)
    ]
    results = simulate_many([run for _, run in runs])
    wrong = {}
    for label, (*_, values) in wanted.items():
        own = [result for (name, _), result in zip(runs, results, strict=True) if name == label]
        for k, value in values.items():
            found = []
            for run in own:
                assert isinstance(run, Result), f"{label}: {run!r}"
                found.append(run.accuracy[run.iterations.tolist().index(k)])
            if abs(np.mean(found) - value) > 0.015:
                wrong[f"{label} at {k}"] = f"expected {value}, got {np.mean(found):.4f}"
    return wrong


@pytest.mark.slow
@pytest.mark.data
def test_mnist_iid(mnist: datasets.Dataset) -> None:
    data = dataclasses.replace(mnist, scale=1.0)
    parts = partition.iid(data.train_y, 20, seed=0)
    printed = admm(0.5, 0.5, (10, 10), (0.5, 10))
    small, flip = steps.power(1e-4), attacks.SignFlip()
    wanted = {
        "Gaussian, ADMM": (printed, attacks.Gaussian(), 8, 1, {1000: 0.916, 2000: 0.916}),
        "no attack, ADMM": (printed, None, 0, 1, {1000: 0.918}),
        "Ideal": (SGD(ideal=True, step=small), None, 8, 1, {1000: 0.920}),
        # Under this attack ADMM is still drifting, and seeds differ by 0.02: a mean over three.
        "sign flip, ADMM": (admm(0.05, 0.1, (2, 5), (0.1, 5)), flip, 8, 3, {1000: 0.880, 2000: 0.860}),
        "sign flip, RSA": (RSA(lam=0.07, step=steps.power(1e-3)), flip, 8, 1, {1000: 0.874}),
        # The document gives no step for these three.
        "sign flip, geometric median": (SGD(rule="geometric_median", step=small), flip, 8, 1, {1000: 0.892}),
        "sign flip, median": (SGD(rule="median", step=small), flip, 8, 1, {1000: 0.868}),
        "sign flip, SGD": (SGD(step=small), flip, 8, 1, {500: 0.10}),
    }
    assert accuracies(data, parts, wanted) == {}


@pytest.mark.slow
@pytest.mark.data
def test_mnist_by_label(mnist: datasets.Dataset) -> None:
    data = mnist
    parts = partition.by_label(data.train_y, 20)
    duplicate = attacks.Duplicate()
    # The document gives no step for Ideal, the two rules and RSA (nor its lambda); these are the ones used here.
    ideal, robust = SGD(ideal=True, step=steps.power(1.0)), steps.power(0.07)
    wanted = {
        "fig3a, ADMM": (admm(0.8, 0.2, (4, 10), (0.2, 10)), duplicate, 4, 1, {6000: 0.731}),
        "fig3a, Ideal": (ideal, duplicate, 4, 1, {6000: 0.752}),
        "fig3a, RSA": (RSA(lam=0.5, step=steps.power(0.01)), duplicate, 4, 1, {6000: 0.63}),
        "fig3a, geometric median": (SGD(rule="geometric_median", step=robust), duplicate, 4, 1, {6000: 0.41}),
        "fig3a, median": (SGD(rule="median", step=robust), duplicate, 4, 1, {6000: 0.48}),
        "fig3b as printed": (admm(0.5, 3, (60, 500), (3, 500)), duplicate, 8, 1, {6000: 0.10}),
        "fig3b, slope 5": (admm(0.5, 3, (60, 5), (3, 5)), duplicate, 8, 1, {3000: 0.558}),
        "fig3b, tuned": (admm(0.5, 0.5, (10, 1), (0.5, 1)), duplicate, 8, 1, {3000: 0.570}),
        "fig3b, Ideal": (ideal, duplicate, 8, 1, {3000: 0.566}),
        "fig3b, geometric median": (SGD(rule="geometric_median", step=robust), duplicate, 8, 1, {3000: 0.098}),
        "fig3b, median": (SGD(rule="median", step=steps.power(0.03)), duplicate, 8, 1, {3000: 0.14}),
    }
    assert accuracies(data, parts, wanted) == {}


@pytest.mark.slow
@pytest.mark.data
def test_covtype(covtype: datasets.Dataset) -> None:
    data = covtype
    parts = partition.iid(data.train_y, 20, seed=0)
    flip, step = attacks.SignFlip(), steps.power(1.0)  # no step in the document for the last three
    wanted = {
        "no attack, ADMM": (admm(0.5, 0.3, (6, 10), (0.3, 10)), None, 0, 1, {3000: 0.697}),
        "Gaussian, ADMM": (admm(0.5, 0.1, (2, 50), (0.1, 50)), attacks.Gaussian(), 8, 1, {3000: 0.658}),
        "sign flip, ADMM": (admm(0.5, 0.3, (6, 100), (0.3, 100)), flip, 8, 1, {3000: 0.485}),
        "Ideal": (SGD(ideal=True, step=step), flip, 8, 1, {3000: 0.714}),
        "sign flip, geometric median": (SGD(rule="geometric_median", step=step), flip, 8, 1, {3000: 0.703}),
        "sign flip, median": (SGD(rule="median", step=step), flip, 8, 1, {3000: 0.690}),
    }
    assert accuracies(data, parts, wanted) == {}


@pytest.mark.slow
@pytest.mark.data
def test_logistic_regression_on_covtype(covtype: datasets.Dataset) -> None:
    """Lodgepole pine or not, with the settings of for_dataset: about as good as softmax with the same."""
    y, y_test = ((labels == 1).astype(np.int64) for labels in (covtype.train_y, covtype.test_y))
    data = dataclasses.replace(covtype, train_y=y, test_y=y_test, n_classes=2)
    parts = partition.iid(y, 20, seed=0)
    algorithms = [ADMM.for_dataset(data), RSA.for_dataset(data), SGD.for_dataset(data, ideal=True)]
    for attack in (attacks.SignFlip(), attacks.Gaussian()):
        settings: dict[str, Any] = {"dataset": data, "parts": parts, "attack": attack, "n_byzantine": 8}
        for algorithm in algorithms:
            both = [settings | {"algorithm": algorithm, "loss": loss} for loss in ("logistic", "softmax")]
            runs = simulate_many(both)
            found = [run.final_accuracy() for run in runs if isinstance(run, Result)]
            assert found[0] > 0.74, f"{algorithm} {attack}: {found}"
            assert abs(found[0] - found[1]) < 0.02, f"{algorithm} {attack}: {found}"
