"""Algorithms as settings: checked when built, described in results."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from byzadmm import ADMM, RSA, SGD, aggregate, aggregators, losses, steps
from byzadmm.training.experiment import Experiment

STEP = steps.constant(0.1)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ADMM(lam=0.0), ValueError, "lam: expected a finite number > 0.0, got 0.0"),
        (lambda: ADMM(lam=-1), ValueError, "lam: expected a finite number > 0.0, got -1.0"),
        (lambda: ADMM(lam=math.nan), ValueError, "lam: expected a finite number > 0.0, got nan"),
        (lambda: ADMM(lam=math.inf), ValueError, "lam: expected a finite number > 0.0, got inf"),
        (lambda: ADMM(lam="1"), TypeError, "lam: expected a real number, got str"),  # type: ignore[arg-type]
        (lambda: ADMM(beta=0), ValueError, "beta: expected a finite number > 0.0, got 0.0"),
        (lambda: ADMM(master_step=0.1), TypeError, "master_step: expected a step size of byzadmm.steps"),  # type: ignore[arg-type]
        (lambda: ADMM(worker_step=None), TypeError, "worker_step: expected a step size of byzadmm.steps"),  # type: ignore[arg-type]
        (lambda: RSA(lam=0, step=STEP), ValueError, "lam: expected a finite number > 0.0, got 0.0"),
        (lambda: RSA(), ValueError, r"RSA: expected either step, .*; RSA.for_dataset\(data\) has settings"),
        (lambda: RSA(master_step=STEP), ValueError, "RSA: expected either step, or master_step and worker_step"),
        (lambda: RSA(worker_step=STEP), ValueError, "RSA: expected either step, or master_step and worker_step"),
        (lambda: RSA(step=STEP, worker_step=STEP), ValueError, "RSA: expected either step, or master_step and"),
        (lambda: RSA(step=STEP, master_step=STEP, worker_step=STEP), ValueError, "RSA: expected either step, or"),
        (lambda: RSA(step=0.1), TypeError, "master_step: expected a step size of byzadmm.steps"),  # type: ignore[arg-type]
        (lambda: RSA(master_step=STEP, worker_step=1), TypeError, "worker_step: expected a step size"),  # type: ignore[arg-type]
        (lambda: SGD(rule="krumm"), ValueError, "rule: expected one of mean, median, trimmed_mean, sign_majority"),
        (lambda: SGD(rule=3), TypeError, "rule: expected a name or a callable, got int"),  # type: ignore[arg-type]
        (lambda: SGD(step=0.1), TypeError, "step: expected a step size of byzadmm.steps"),  # type: ignore[arg-type]
        (lambda: SGD(ideal="no"), TypeError, "ideal: expected True or False, got str"),  # type: ignore[arg-type]
        (lambda: SGD(f=-1), ValueError, "f: expected an integer >= 0, got -1"),
        (lambda: SGD(f=1.5), TypeError, "f: expected an integer, got float"),  # type: ignore[arg-type]
    ],
)
def test_what_is_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_rsa_takes_one_step_or_two() -> None:
    other = steps.power(1.0)
    assert RSA(step=STEP).master_step is RSA(step=STEP).worker_step is STEP
    both = RSA(master_step=STEP, worker_step=other)
    assert (both.master_step, both.worker_step, both.step) == (STEP, other, None)


def test_messages() -> None:
    assert (ADMM().message, RSA(step=STEP).message, SGD().message) == ("dual", "primal", "gradient")


def test_descriptions_are_plain_values() -> None:
    for algorithm in (ADMM(), RSA(step=STEP), SGD(rule="trimmed_mean", f=2, ideal=True), SGD(rule=aggregate.median)):
        described = algorithm.describe()
        assert json.loads(json.dumps(described)) == described
        assert described["name"] == type(algorithm).__name__
    assert SGD(f=2, ideal=True).describe() == {
        "name": "SGD",
        "rule": "mean",
        "step": "Power(c=0.0001, p=0.5)",
        "f": 2,
        "ideal": True,
        "momentum": 0.0,
        "variance_reduction": None,
    }
    assert SGD(rule=aggregate.median).describe()["rule"] == "median"


def test_a_description_is_the_same_in_every_process() -> None:
    chain = aggregators.Chain([aggregators.NNM(f=1), aggregate.median])
    for rule in (lambda X: X[0], chain, [aggregators.NNM(f=1), chain], ["nnm", aggregate.median]):
        assert "0x" not in str(SGD(rule=rule, step=lambda k: 0.1).describe())
    assert SGD(rule=chain).describe()["rule"] == ["NNM(nonfinite='exclude', f=1)", "median"]


def test_native_rules() -> None:
    """Rules of the package run in the native loop, by name, where the gradients are plain ones; functions do not."""
    loss = losses.Quadratic(np.ones(5), np.ones((5, 2)))

    def is_native(algorithm: SGD) -> bool:
        return algorithm.fused(Experiment(None, None, algorithm=algorithm, loss=loss)) is not None

    for name in ("mean", "Geometric-Median", "trimmed_mean"):
        assert is_native(SGD(rule=name, f=2, momentum=0.5)), name
    assert is_native(SGD(rule="krum", f=1))
    assert not is_native(SGD(rule=aggregate.mean))
    assert not is_native(SGD(variance_reduction="lsvrg"))
    SGD(rule="trimmed_mean", f=2).check(5)
    with pytest.raises(ValueError, match="trimmed_mean: f=2 is too large for n=4 workers; at most 1"):
        SGD(rule="trimmed_mean", f=2).check(4)


def test_settings_do_not_change() -> None:
    with pytest.raises(AttributeError):
        ADMM().lam = 2.0  # type: ignore[misc]
    assert ADMM() == ADMM()
    assert hash(ADMM()) == hash(ADMM())
