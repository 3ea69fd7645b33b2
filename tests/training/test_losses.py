"""Losses: the quadratic against differences and by hand, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzadmm import losses


def test_gradient_is_that_of_the_value() -> None:
    rng = np.random.default_rng(0)
    loss = losses.Quadratic(rng.uniform(0.5, 2, (4, 3)), rng.standard_normal((4, 3)))
    x, h = rng.standard_normal(3), 1e-6
    numeric = [(loss.value(x + h * e) - loss.value(x - h * e)) / (2 * h) for e in np.eye(3)]
    exact = np.mean([loss.gradient(x, worker=i, k=1) for i in range(4)], axis=0)
    np.testing.assert_allclose(exact, numeric, rtol=1e-8)


def test_by_hand() -> None:
    loss = losses.Quadratic([2.0, 4.0], [1.0, 3.0], noise=0.5)
    assert (loss.n_workers, loss.dim, loss.noise) == (2, 1, 0.5)
    assert loss.gradient([2.0], worker=1, k=9).tolist() == [-4.0]
    assert loss.value([2.0]) == 0.5 * (2 * 1 + 4 * 1) / 2
    assert repr(loss) == "Quadratic(n_workers=2, dim=1, noise=0.5)"


def test_one_curvature_per_worker_serves_every_element() -> None:
    a = losses.Quadratic([1.0, 2.0], np.ones((2, 3)))
    b = losses.Quadratic([[1.0] * 3, [2.0] * 3], np.ones((2, 3)))
    assert np.array_equal(a.a, b.a)
    assert a.a.flags.c_contiguous


def test_the_protocol() -> None:
    assert isinstance(losses.Quadratic([1.0], [1.0]), losses.Loss)
    assert not isinstance("softmax", losses.Loss)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"b": np.zeros((2, 2, 2))}, ValueError, r"b: expected shape \(m, d\), got \(2, 2, 2\)"),
        ({"b": np.zeros((0, 2))}, ValueError, r"b: expected shape \(m, d\), got \(0, 2\)"),
        ({"a": [1.0, 1.0, 1.0]}, ValueError, r"a: expected shape \(2,\) or \(2, 3\), got \(3,\)"),
        ({"a": [0.0, 1.0]}, ValueError, "a: expected finite numbers > 0"),
        ({"a": [np.nan, 1.0]}, ValueError, "a: expected finite numbers > 0"),
        ({"a": [np.inf, 1.0]}, ValueError, "a: expected finite numbers > 0"),
        ({"b": np.full((2, 3), np.nan)}, ValueError, "b: expected finite numbers"),
        ({"noise": -1.0}, ValueError, "noise: expected a finite number >= 0.0, got -1.0"),
        ({"noise": "loud"}, TypeError, "noise: expected a real number, got str"),
    ],
)
def test_what_is_refused(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        losses.Quadratic(**({"a": [1.0, 1.0], "b": np.zeros((2, 3))} | settings))
