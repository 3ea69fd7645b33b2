"""Newton's method in two exchanges: known answers, what attacks see, comparisons, conjugate gradients, real data."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import SGD, Newton, aggregators, attacks, datasets, losses, partition, simulate, steps
from byzadmm.algorithms.newton import conjugate_gradients
from support.runs import data_for, small_parts

Array = npt.NDArray[Any]

CURVATURE = np.array([0.3, 1.0, 2.0, 7.0])


class Equal(losses.Quadratic):
    """Quadratics with the same Hessian, also on the rows of the master, whose ``b`` is that of the last worker."""

    def __init__(self, b: Array) -> None:
        super().__init__(np.broadcast_to(CURVATURE, b.shape), b)

    def batch_gradient(self, x: Array, rows: Array) -> Array:
        return self.full_gradient(x, worker=len(self.b) - 1)

    def batch_hessian_product(self, x: Array, v: Array, rows: Array) -> Array:
        return self.hessian_product(x, v, worker=0)


def minimum(b: Array, rho: float) -> Array:
    """Of ``rho/2 ||x||^2 + mean_i F_i``."""
    return np.asarray(CURVATURE * b.mean(axis=0) / (CURVATURE + rho))


def test_one_step_on_a_quadratic_lands_on_the_minimum(dtype: str) -> None:
    b = np.random.default_rng(0).normal(0.0, 3.0, (5, 4))
    for rho in (0.0, 0.7):
        for start in (np.zeros(4), np.array([1e3, -2.0, 0.0, 5.0])):
            given: dict[str, Any] = {"loss": Equal(b), "rho": rho, "x0_init": start, "dtype": dtype, "iterations": 1}
            run = simulate(None, None, algorithm=Newton("mean"), **given)
            scale = np.finfo(dtype).eps * max(1.0, float(np.abs(start).max()))
            np.testing.assert_allclose(run.x0, minimum(b, rho), atol=100 * scale, rtol=0)
            half = simulate(None, None, algorithm=Newton("mean", step=steps.constant(0.5)), **given)
            np.testing.assert_allclose(half.x0, (start + minimum(b, rho)) / 2, atol=100 * scale, rtol=0)


def test_ridge_regression_in_one_step() -> None:
    """Two workers with the same samples: the solution of the normal equations."""
    data = data_for("least-squares")
    A = np.c_[data.scale * data.train_x, np.ones(120)]
    every = np.arange(120)
    run = simulate(data, [every, every], loss="least-squares", algorithm=Newton(), rho=0.2, dtype="float64",
                   iterations=1)  # fmt: skip
    np.testing.assert_allclose(run.x0, np.linalg.solve(A.T @ A / 120 + 0.2 * np.eye(6), A.T @ data.train_y / 120))


def test_hessians_of_the_losses_are_differences_of_gradients() -> None:
    kinds = {"softmax": losses.Softmax, "logistic": losses.Logistic, "least-squares": losses.LeastSquares}
    for name, kind in kinds.items():
        loss = kind(data_for(name), small_parts())
        x, v = np.random.default_rng(1).standard_normal((2, loss.dim))
        for product, gradient in (
            (loss.hessian_product(x, v, worker=3), lambda at, loss=loss: loss.full_gradient(at, worker=3)),
            (loss.batch_hessian_product(x, v, [4, 4, 9]), lambda at, loss=loss: loss.batch_gradient(at, [4, 4, 9])),
        ):
            slope = (gradient(x + 1e-6 * v) - gradient(x - 1e-6 * v)) / 2e-6
            np.testing.assert_allclose(product, slope, atol=1e-7, err_msg=name)


class Recorded:
    """An attack on one of the two messages, which remembers what it saw."""

    def __init__(self, message: str, value: float) -> None:
        self.message, self.value = message, value
        self.seen: list[tuple[int, str, Array]] = []

    def __call__(
        self, messages: Array, *, x0: Array, k: int, byzantine: Sequence[int], rng: Any, algorithm: Any
    ) -> Array:
        self.seen.append((k, algorithm.message, messages))
        forged = messages[list(byzantine)]
        return np.full_like(forged, self.value) if algorithm.message == self.message else forged


def test_either_message_can_be_forged_and_a_minority_has_no_effect(dtype: str) -> None:
    """Of seven workers with the same loss the first three send any number: the median of the others is exact."""
    b = np.tile(np.random.default_rng(2).normal(0.0, 2.0, 4), (7, 1))
    largest, tiny = float(np.finfo(dtype).max), float(np.finfo(dtype).tiny)
    for message in ("gradient", "direction"):
        for value in (largest, -largest, tiny, 0.0, -1e30):
            attack = Recorded(message, value)
            run = simulate(None, None, loss=Equal(b), algorithm=Newton(), attack=attack, byzantine=[0, 1, 2], rho=0.1,
                           dtype=dtype, iterations=2)  # fmt: skip
            case = f"{message} {value}"
            np.testing.assert_allclose(run.x0, minimum(b, 0.1), rtol=100 * np.finfo(dtype).eps, err_msg=case)
            assert [seen[0] for seen in attack.seen] == [1, 1, 2, 2], case
            assert [seen[1] for seen in attack.seen] == ["gradient", "direction"] * 2, case
    attack = Recorded("neither", 0.0)
    simulate(None, None, loss=Equal(b), algorithm=Newton(), attack=attack, byzantine=[0], rho=0.1, iterations=1,
             dtype="float64")  # fmt: skip
    (_, _, gradients), (_, _, directions) = attack.seen
    np.testing.assert_allclose(gradients, -CURVATURE * b)
    np.testing.assert_allclose(directions, -CURVATURE * b / (CURVATURE + 0.1))


def test_a_worker_that_is_eliminated_in_an_exchange_is_not_heard_in_the_next() -> None:
    b = np.tile(np.arange(4.0), (3, 1))
    for message in ("gradient", "direction"):
        attack = Recorded(message, np.nan)
        run = simulate(None, None, loss=Equal(b), algorithm=Newton("mean"), attack=attack, byzantine=[1], rho=0.0,
                       iterations=1, dtype="float64")  # fmt: skip
        assert run.eliminated == {1: 1}, message
        np.testing.assert_allclose(run.x0, b[0], rtol=1e-14)


def test_comparison_tolerates_a_majority(dtype: str) -> None:
    """Six of seven forge either message; what is kept is the mean of those near the master's own, and its own."""
    rng = np.random.default_rng(3)
    b = np.tile(rng.normal(0.0, 2.0, 4), (8, 1))
    largest, tiny = float(np.finfo(dtype).max), float(np.finfo(dtype).tiny)
    for join in ("comparison", SimpleNamespace(c=0.75)):
        for message in ("gradient", "direction"):
            for value in (largest, -largest, tiny, 1e20):
                given: dict[str, Any] = {"loss": Equal(b), "rho": 0.1, "dtype": dtype, "iterations": 1}
                run = simulate(None, None, algorithm=Newton(join), attack=Recorded(message, value),
                               byzantine=range(7), validation=[0], **given)  # fmt: skip
                case = f"{join} {message} {value}"
                np.testing.assert_allclose(run.x0, minimum(b, 0.1), rtol=100 * np.finfo(dtype).eps, err_msg=case)


def test_what_comparison_keeps_is_exact() -> None:
    """Gradients at 0 are ``-a b_i``: the master's is that of the last worker, and those within c of it count."""
    own = np.array([1.0, 2.0, -1.0, 0.5])
    factors = np.array([1.0 + 0.5 + 1e-9, 1.0 + 0.5, 0.5, 0.5 - 1e-9, 1.0])
    b = factors[:, None] * own
    run = simulate(None, None, loss=Equal(b), algorithm=Newton("comparison", c=(0.5, 9.0)), validation=[0], rho=0.0,
                   dtype="float64", iterations=1)  # fmt: skip
    np.testing.assert_allclose(run.x0, own * (1.5 + 0.5 + 1.0 + 1.0) / 4, rtol=1e-13)


def test_conjugate_gradients() -> None:
    rng = np.random.default_rng(4)
    root = rng.standard_normal((8, 8))
    A, b = root @ root.T + np.eye(8), rng.standard_normal(8)
    calls: list[int] = []

    def product(v: Array) -> Array:
        calls.append(1)
        return np.asarray(A @ v)

    for size in (1.0, 1e300, 1e-290):
        np.testing.assert_allclose(conjugate_gradients(product, size * b, 50, 1e-14), size * np.linalg.solve(A, b))
    calls.clear()
    rough = conjugate_gradients(product, b, 3, 0.0)
    assert len(calls) == 3
    assert np.linalg.norm(b - A @ rough) < np.linalg.norm(b)
    single = conjugate_gradients(product, b.astype(np.float32), 50, 1e-12)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, np.linalg.solve(A, b), rtol=1e-5)


def test_conjugate_gradients_always_end_with_finite_numbers() -> None:
    b = np.array([1.0, -2.0])
    for matrix, expected in (
        (np.diag([-1.0, -1.0]), b),  # no minimum: the gradient itself
        (np.zeros((2, 2)), b),
        (np.full((2, 2), np.nan), np.zeros(2)),
        (np.full((2, 2), np.inf), np.zeros(2)),
        (np.diag([1.0, 0.0]), None),
        (np.diag([3.0, -1.0]), None),
        (1e-320 * np.eye(2), None),
        (1e308 * np.eye(2), None),
    ):
        with np.errstate(all="ignore"):
            found = conjugate_gradients(lambda v, matrix=matrix: matrix @ v, b, 20, 1e-12)
        assert np.isfinite(found).all(), matrix
        if expected is not None:
            np.testing.assert_array_equal(found, expected, err_msg=str(matrix))
    for wrong in ([np.nan, 1.0], [np.inf, 1.0], [0.0, 0.0]):
        assert not conjugate_gradients(lambda v: v, np.array(wrong), 5, 1e-8).any()
    assert not conjugate_gradients(lambda v: 1e-10 * v, np.full(2, 1e305), 5, 1e-8).any()  # the solution is too large


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"join": "mediam"}, "rule: expected one of"),
        ({"join": aggregators.Bucketing(s=2, rng=np.random.default_rng())}, "rule: "),
        ({"step": 0.0}, "step: expected"),
        ({"join": "comparison", "c": 0.0}, "c: expected"),
        ({"join": "comparison", "c": (1.0, 1.0, 1.0)}, "c: expected a number, or one for each exchange, got 3"),
        ({"cg_iterations": 0}, "cg_iterations: expected"),
        ({"cg_tol": -1.0}, "cg_tol: expected"),
    ],
)
def test_wrong_settings(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Newton(**wrong)


def test_what_a_run_must_have() -> None:
    data, parts = data_for("softmax"), small_parts()
    with pytest.raises(ValueError, match="rho: expected > 0 for Newton with Softmax, whose Hessian is singular; got 0"):
        simulate(data, parts, algorithm=Newton(), rho=0.0, iterations=1)
    with pytest.raises(ValueError, match="validation: Newton with these settings needs rows"):
        simulate(data, parts, algorithm=Newton("comparison"), iterations=1)
    loss = SimpleNamespace(dim=1, n_workers=1, gradient=lambda x, *, worker, k: x)
    with pytest.raises(ValueError, match="loss: Newton with these settings needs one with full_gradient"):
        simulate(None, None, loss=loss, algorithm=Newton(), iterations=1)
    assert Newton("trimmed_mean").declaring(2).f == 2
    assert Newton(aggregators.Krum(f=0)).declaring(2).join == aggregators.Krum(f=2)


def test_digits_in_five_rounds_under_attack() -> None:
    """Five rounds end within 0.02 of a thousand rounds of Ideal SGD."""
    data = datasets.load("digits")
    parts = partition.iid(data.train_y, 10, seed=0)
    ideal = simulate(data, parts, algorithm=SGD.for_dataset(data, ideal=True), n_byzantine=3).final_accuracy()
    for attack in (attacks.SignFlip(), attacks.SameValue(1e30)):
        run = simulate(data, parts, algorithm=Newton(), attack=attack, n_byzantine=3, iterations=5)
        assert run.accuracy[-1] >= ideal - 0.02, f"{attack}: {run.accuracy}, Ideal {ideal}"
