"""SVRG at the master: which gradients it keeps, its steps, and runs under attack."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import SGD, SVRG, attacks, datasets, losses, partition, simulate, steps
from byzadmm.catalogue import LOSSES
from support.arrays import same_bits
from support.runs import data_for, small_parts

Array = npt.NDArray[Any]

STEP = steps.constant(0.2)


class Middle:
    """``F = 1/2 ||x - b||^2`` with a ``b`` for every worker, and for every row of the master: gradients are exact."""

    def __init__(self, b: Array, rows: Array) -> None:
        self.b, self.rows = b, rows
        self.n_workers, self.dim = b.shape

    def gradient(self, x: Array, *, worker: int, k: int) -> Array:
        return np.asarray(x - self.b[worker])

    def batch_gradient(self, x: Array, rows: Array) -> Array:
        return np.asarray(x - self.rows[rows].mean(axis=0))


def test_the_kept_are_the_regular_ones_whatever_the_others_send(dtype: str) -> None:
    """Forged rows at the lowest indices, of any size in both directions; regular ones of any size too."""
    rng = np.random.default_rng(0)
    largest, tiny = np.finfo(dtype).max, float(np.finfo(dtype).tiny)
    noise = rng.standard_normal((7, 30))
    for size in (1.0, 1e-30, 1e30) + ((1e-200, 1e200) if dtype == "float64" else ()):
        regular = (size * (5 + noise)).astype(dtype)
        forged = np.zeros((6, 30), dtype)
        forged[0], forged[1, ::2], forged[2] = largest, -largest, -5 * size
        forged[3], forged[4, 0], forged[5] = tiny, largest, -regular[0]
        messages = np.concatenate([forged, regular])
        radius = 2 * math.sqrt(30) * size
        for svrg in (SVRG(STEP), SVRG(STEP, threshold=radius / 2)):
            assert svrg.kept(messages).tolist() == [False] * 6 + [True] * 7, f"{svrg} {size}"


def test_distances_of_the_definition() -> None:
    row = np.array([[0.0], [0.0], [0.0], [4.0], [-4.0], [4.0 + 1e-9]])
    assert SVRG(STEP, threshold=1.0).kept(row).tolist() == [True, True, True, True, True, True]  # no majority within 2
    row = np.array([[0.0], [0.0], [1.0], [0.0], [4.0], [4.0 + 1e-9]])  # around 0: four within 2
    assert SVRG(STEP, threshold=1.0).kept(row).tolist() == [True, True, True, True, True, False]
    # V sqrt(2 log(2n / delta) / B) = T
    V = 1.0 / math.sqrt(2 * math.log(12 / 0.05) / 50)
    assert SVRG(STEP, V=V * (1 + 1e-12), delta=0.05).kept(row, 50).tolist() == [True, True, True, True, True, False]
    # "auto": radii with four of six are 1, 1, 1, 1, 4, 4; 2T is their lower median, 4T = 2
    assert SVRG(STEP).kept(row).tolist() == [True, True, True, True, False, False]
    assert SVRG(STEP).kept(np.ones((1, 3))).tolist() == [True]


def test_steps_of_a_quadratic_under_attack() -> None:
    """Every row of the master has the same curvature: its steps are descent to the mean of the regular ``b``."""
    rng = np.random.default_rng(1)
    loss = Middle(rng.normal(3.0, 0.1, (7, 4)), rng.normal(-50.0, 9.0, (5, 4)))
    rho, start = 0.5, np.full(4, 7.0)
    given: dict[str, Any] = {"loss": loss, "rho": rho, "x0_init": start, "dtype": "float64", "byzantine": [0, 1, 2]}
    for value in (1e308, -1e308, 1e30, 0.0):
        attack, svrg = attacks.SameValue(value), SVRG(STEP, inner=6)
        run = simulate(None, None, algorithm=svrg, attack=attack, iterations=2, validation=range(5), **given)
        target = loss.b[3:].mean(axis=0) / (1 + rho)
        np.testing.assert_allclose(run.x0, target + (1 - 0.2 * (1 + rho)) ** 12 * (start - target), rtol=1e-13)


def test_the_first_step_is_that_of_sgd(dtype: str) -> None:
    """At the snapshot the correction vanishes for every draw."""
    data, parts = data_for("softmax"), small_parts()
    given: dict[str, Any] = {"iterations": 4, "dtype": dtype, "batch_size": 5}
    svrg = simulate(data, parts[1:], algorithm=SVRG(STEP, inner=1, threshold=1e9), validation=parts[0], **given)
    assert same_bits(svrg.x0, simulate(data, parts[1:], algorithm=SGD("mean", STEP), **given).x0)


def test_the_mean_over_all_draws_is_the_full_correction() -> None:
    for name in ("softmax", "logistic", "least-squares"):
        data, parts = data_for(name), small_parts()
        given: dict[str, Any] = {"loss": name, "iterations": 1, "dtype": "float64", "rho": 0.0, "batch_size": 5}
        given |= {"x0_init": np.random.default_rng(2).standard_normal(18 if name == "softmax" else 6)}

        def after(inner: int, rows: Any, data: Any = data, parts: Any = parts, given: Any = given) -> Array:
            svrg = SVRG(STEP, inner=inner, threshold=1e9)
            return simulate(data, parts[1:], algorithm=svrg, validation=rows, **given).x0

        loss = LOSSES[name](data, parts[1:], 5, 0)
        w, one = given["x0_init"], after(1, parts[0])
        mu = (w - one) / 0.2
        exact = one - 0.2 * (loss.batch_gradient(one, parts[0]) - loss.batch_gradient(w, parts[0]) + mu)
        mean = np.mean([after(2, [row]) for row in parts[0]], axis=0)
        np.testing.assert_allclose(mean, exact, atol=1e-13, err_msg=name)


def test_the_number_of_steps_is_geometric() -> None:
    svrg = SVRG(STEP, batch=4)
    drawn = np.array([svrg._inner(32, 5, k) for k in range(20_000)])
    spread = math.sqrt(8 * 9)  # of the geometric law on 0, 1, ... with mean 8
    assert abs(drawn.mean() - 8) < 4 * spread / math.sqrt(len(drawn))
    for n in (1, 5, 20):
        share = (8 / 9) ** n
        assert abs(np.mean(drawn >= n) - share) < 4 * math.sqrt(share * (1 - share) / len(drawn)), n


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"inner": 0}, "inner: expected an integer"),
        ({"inner": "poisson"}, "inner: expected 'geometric' or an integer, got 'poisson'"),
        ({"threshold": 0.0}, "threshold: expected"),
        ({"threshold": "none"}, "threshold: expected 'auto' or a number, got 'none'"),
        ({"threshold": 1.0, "V": 1.0}, "SVRG: expected either threshold or V, got both"),
        ({"delta": 1.0}, r"delta: expected a number in \(0, 1\), got 1.0"),
    ],
)
def test_wrong_settings(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SVRG(STEP, **wrong)


def test_it_needs_clean_samples() -> None:
    data, parts = data_for("softmax"), small_parts()
    with pytest.raises(ValueError, match="validation: SVRG with these settings needs rows of the training set"):
        simulate(data, parts, algorithm=SVRG(STEP), iterations=1)
    with pytest.raises(ValueError, match="loss: SVRG with these settings needs one with batch_gradient"):
        simulate(None, None, loss=losses.Quadratic([1.0], [[2.0]]), algorithm=SVRG(STEP), validation=[0])


def shared_out(data: datasets.Dataset, m: int, held: int) -> tuple[Array, list[Array]]:
    """Rows of the master, drawn at random, and the parts of the workers."""
    rows = np.random.default_rng(0).permutation(len(data.train_y))
    own, rest = rows[:held], rows[held:]
    return own, [rest[part] for part in partition.iid(data.train_y[rest], m, seed=0)]


def test_digits_under_attack() -> None:
    data = datasets.load("digits")
    own, parts = shared_out(data, 10, 200)
    given: dict[str, Any] = {"n_byzantine": 3, "iterations": 60, "eval_every": 20, "batch_size": 128}
    for attack in (attacks.SignFlip(), attacks.Gaussian(), attacks.SameValue(1e30)):
        svrg = SVRG(steps.constant(0.3), batch=8)
        run = simulate(data, parts, algorithm=svrg, attack=attack, validation=own, **given)
        assert run.accuracy[-1] > 0.93, f"{attack}: {run.accuracy}"  # Ideal SGD has 0.956


@pytest.mark.slow
@pytest.mark.data
def test_mnist_under_attack(mnist: datasets.Dataset) -> None:
    own, parts = shared_out(mnist, 20, 1000)
    given: dict[str, Any] = {"attack": attacks.SignFlip(), "n_byzantine": 8, "validation": own}
    ideal = simulate(mnist, parts, algorithm=SGD.for_dataset(mnist, ideal=True), iterations=300, **given)
    svrg = SVRG(steps.constant(0.2), batch=16)
    run = simulate(mnist, parts, algorithm=svrg, iterations=30, eval_every=10, batch_size=500, **given)
    assert run.accuracy[-1] > ideal.accuracy[-1] - 0.02
