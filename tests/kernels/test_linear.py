"""Logistic and linear regression: the kernels against their twins, differences and limits, and wrong calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import kernels, reference
from support.arrays import same_bits

Array = npt.NDArray[Any]

FAMILIES = ("logistic", "least_squares")
FEATURES = ("uint8", "float32", "float64")
SHAPES = [(1, 1, 1), (2, 3, 2), (3, 7, 31), (2, 8, 32), (3, 9, 33), (2, 33, 64), (2, 37, 65), (2, 64, 5), (1, 129, 40)]
TOLERANCE = {"float32": 2e-5, "float64": 1e-13}


def problem(
    family: str, m: int, D: int, B: int, *, dtype: str = "float64", feature: str = "uint8", bias: bool = True
) -> tuple[Array, Array, Array, Array]:
    rng = np.random.default_rng(1)
    X = rng.integers(0, 256, (70, D)).astype(feature)
    W = rng.standard_normal((m, D + bias)).astype(dtype)
    y = rng.integers(0, 2, 70) if family == "logistic" else rng.normal(3.0, 2.0, 70)
    return W, X, y, rng.integers(0, 70, (m, B))


def functions(family: str, module: Any = kernels) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return getattr(module, f"{family}_gradient"), getattr(module, f"{family}_loss")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_twin(family: str, dtype: str, threads: int) -> None:
    (gradient, loss), (exact, exact_loss) = functions(family), functions(family, reference)
    tolerance = TOLERANCE[dtype]
    for feature in FEATURES:
        for m, D, B in SHAPES:
            for bias in (True, False):
                W, X, y, idx = problem(family, m, D, B, dtype=dtype, feature=feature, bias=bias)
                wide = W.astype(np.float64)
                for batch in (idx, None):
                    case = f"{family} {feature} {m}x{D}, batch {B if batch is idx else None}, bias {bias}"
                    options: dict[str, Any] = {"scale": 1 / 255, "bias": bias}
                    G = gradient(W, X, y, batch, threads=threads, **options)
                    assert (G.dtype, G.shape) == (dtype, W.shape), case
                    expected = exact(wide, X, y, batch, **options)
                    scale = max(1.0, float(np.abs(expected).max()))
                    np.testing.assert_allclose(G, expected, atol=tolerance * scale, rtol=0, err_msg=case)
                    F = loss(W, X, y, batch, threads=threads, **options)
                    assert F.dtype == np.float64, case
                    np.testing.assert_allclose(
                        F, exact_loss(wide, X, y, batch, **options), rtol=10 * tolerance, atol=tolerance, err_msg=case
                    )
                z = kernels.linear_predict(W[0], X, threads=threads, **options)
                assert z.dtype == dtype, case
                expected = reference.linear_predict(wide[0], X, **options)
                np.testing.assert_allclose(z, expected, rtol=0, atol=tolerance * D, err_msg=case)


@pytest.mark.parametrize("family", FAMILIES)
def test_central_differences(family: str) -> None:
    for bias in (True, False):
        W, X, y, idx = problem(family, 3, 6, 8, bias=bias)
        options: dict[str, Any] = {"scale": 1 / 255, "bias": bias}
        for module in (kernels, reference):
            gradient, loss = functions(family, module)
            G = gradient(W, X, y, idx, **options)
            for j in range(W.shape[1]):
                E = 1e-5 * np.eye(W.shape[1])[j]
                rise = loss(W + E, X, y, idx, **options) - loss(W - E, X, y, idx, **options)
                np.testing.assert_allclose(G[:, j], rise / 2e-5, atol=1e-8, err_msg=f"{module.__name__} {bias} {j}")


@pytest.mark.parametrize("family", FAMILIES)
def test_workers_are_independent_and_one_dimension_is_one_worker(family: str, dtype: str) -> None:
    gradient, loss = functions(family)
    W, X, y, idx = problem(family, 5, 17, 9, dtype=dtype)
    G, F = gradient(W, X, y, idx), loss(W, X, y, idx)
    for i in range(5):
        assert same_bits(gradient(W[i], X, y, idx[i]), G[i])
        assert same_bits(gradient(W[i], X, y, idx[i : i + 1]), G[i])
        one = loss(W[i], X, y, idx[i])
        assert isinstance(one, float)
        assert one == F[i]
    out = np.empty_like(W[0])
    assert gradient(W[0], X, y, idx[0], out=out) is out
    assert same_bits(out, G[0])
    z = np.empty(70, dtype)
    assert kernels.linear_predict(W[0], X, out=z) is z
    np.testing.assert_allclose(
        functions(family, reference)[1](W[0].astype(float), X, y),
        loss(W[0], X, y), rtol=1e-4,
    )  # fmt: skip
    W[1, 3] = np.nan
    G2, F2 = gradient(W, X, y, idx), loss(W, X, y, idx)
    assert np.isnan(G2[1]).all()
    assert np.isnan(F2).tolist() == [False, True, False, False, False]
    assert same_bits(G2[[0, 2, 3, 4]], G[[0, 2, 3, 4]])


def test_two_classes_of_softmax_are_logistic_regression() -> None:
    """The value of W[1] - W[0], and gradients (-g, g)."""
    rng = np.random.default_rng(0)
    X, y, W = rng.standard_normal((50, 5)), rng.integers(0, 2, 50), rng.standard_normal((4, 2, 6))
    w = W[:, 1] - W[:, 0]
    g, G = kernels.logistic_gradient(w, X, y), kernels.softmax_gradient(W, X, y)
    np.testing.assert_allclose(G[:, 1], g, atol=1e-15)
    np.testing.assert_allclose(G[:, 0], -g, atol=1e-15)
    np.testing.assert_allclose(kernels.logistic_loss(w, X, y), kernels.softmax_loss(W, X, y), rtol=1e-13)
    predicted = kernels.softmax_predict(W[0], X)
    assert np.array_equal(kernels.linear_predict(w[0], X) > 0, predicted == 1)


def test_logistic_residuals_of_any_size(dtype: str) -> None:
    """One sample with feature 1: the gradient is ``sigmoid(z) - y``, precise where it is tiny, finite for every z."""
    largest = float(np.finfo(dtype).max)
    z = np.array([0.0, 1e-6, 0.5, 3.0, 20.0, 36.0, 80.0, 1e3, 1e30, largest, np.inf])
    z = np.concatenate([-z[::-1], z])
    W = z.astype(dtype)[:, None]
    with np.errstate(over="ignore"):
        small, large = np.exp(-np.abs(W[:, 0].astype(float))), np.abs(W[:, 0].astype(float))
    for label in (0, 1):
        right = (z > 0) == bool(label)
        size = np.where(right, small, 1.0) / (1 + small)
        expected = np.where(label == 1, -size, size)
        G = kernels.logistic_gradient(W, [[1.0]], [label], bias=False)
        assert np.isfinite(G).all()
        normal = small > (1e-37 if dtype == "float32" else 1e-300)  # beyond, the exponential is 0
        np.testing.assert_allclose(G[normal, 0], expected[normal], rtol=4e-7 if dtype == "float32" else 1e-14)
        np.testing.assert_allclose(G[:, 0], expected, atol=1e-37, rtol=4e-7)
        loss = kernels.logistic_loss(W, [[1.0]], [label], bias=False)
        np.testing.assert_allclose(loss, np.where(right, 0, large) + np.log1p(small), rtol=1e-12)


def test_extreme_models(dtype: str) -> None:
    """Finite where the outputs are; infinite or NaN, never a crash, where they are not."""
    X, y = np.array([[3.0, -2.0], [1.0, 0.5]]), [0, 1]
    for value in (1e30, -1e30, float(np.finfo(dtype).max), np.inf, -np.inf, np.nan):
        w = np.array([value, 1.0, 0.0], dtype)
        g = kernels.logistic_gradient(w, X, y)
        loss = kernels.logistic_loss(w, X, y)
        assert np.isnan(g).all() == np.isnan(value), value
        assert np.isnan(loss) == np.isnan(value), value
        if not np.isnan(value):
            np.testing.assert_allclose(g, [1.5, -1.0, 0.5] if value > 0 else [-0.5, -0.25, -0.5], atol=1e-6)
        squares = kernels.least_squares_gradient(w, X, [0.5, 1.5])
        if dtype == "float64" and abs(value) < 1e31:
            np.testing.assert_allclose(squares, np.array([5.0, -2.75, 2.0]) * value, rtol=1e-12)
        elif abs(value) >= 1e31 or np.isnan(value):
            assert not np.isfinite(squares).all(), value
    assert np.isnan(kernels.logistic_gradient(np.array([np.inf, np.inf, 0.0], dtype), X, y)).all()
    far = kernels.least_squares_gradient(np.zeros(3, dtype), X, [1e300, -1e300])
    if dtype == "float64":
        np.testing.assert_allclose(far, [-1e300, 1.25e300, 0.0], rtol=1e-12)
    else:
        assert not np.isfinite(far).any()


def call(kernel: Callable[..., Any] = kernels.logistic_gradient, **changes: Any) -> Callable[[], Any]:
    given: dict[str, Any] = {"W": np.zeros((2, 5)), "X": np.zeros((6, 4)), "y": np.zeros(6, int)}
    return lambda: kernel(**(given | {"idx": np.zeros((2, 3), int)} | changes))


SQUARES = kernels.least_squares_gradient


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (call(W=np.zeros((2, 4))), ValueError, r"W: expected shape \(2, 5\), got \(2, 4\)"),
        (call(bias=False), ValueError, r"W: expected shape \(2, 4\), got \(2, 5\)"),
        (call(W=np.zeros((2, 1, 5))), ValueError, r"W: expected shape \(m, D\+1\) or \(D\+1,\), got \(2, 1, 5\)"),
        (call(W=np.zeros((0, 5)), idx=None), ValueError, "W: expected at least one worker"),
        (call(X=np.zeros(4)), ValueError, r"X: expected shape \(N, D\), got \(4,\)"),
        (call(y=np.zeros(5, int)), ValueError, r"y: expected shape \(6,\), got \(5,\)"),
        (call(y=np.full(6, 2)), ValueError, r"y: expected labels in \[0, 2\), got 2 at row 0"),
        (call(y=np.full(6, -1), idx=None), ValueError, r"y: expected labels in \[0, 2\), got -1 at row 0"),
        (call(y=np.zeros(6)), TypeError, "y: expected integers, got dtype float64"),
        (call(kernels.logistic_loss, y=np.full(6, 2)), ValueError, r"y: expected labels in \[0, 2\), got 2 at row 0"),
        (call(SQUARES, y=["a"] * 6), TypeError, "y: expected real numbers"),
        (call(SQUARES, y=np.zeros((6, 1))), ValueError, r"y: expected shape \(6,\), got \(6, 1\)"),
        (call(idx=np.full((2, 3), 6)), ValueError, r"idx: expected indices in \[0, 6\), got 6"),
        (call(bias=1), TypeError, "bias: expected True or False, got int"),
        (call(scale=np.nan), ValueError, "scale: expected a finite number, got nan"),
        (call(threads=-1), ValueError, "threads: expected an integer"),
        (call(out=np.zeros((2, 4))), ValueError, r"out: expected shape \(2, 5\), got \(2, 4\)"),
        (lambda: kernels.linear_predict(np.zeros(4), np.zeros((6, 4))), ValueError, r"w: expected shape \(5,\), got"),
    ],
)
def test_errors(wrong: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wrong()
