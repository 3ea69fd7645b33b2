"""The geometric median: a minimizer for any finite rows, exact at rows, and what its info says."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import optimize

from byzadmm import aggregate, reference
from support.arrays import awkward, same_bits
from support.exact import geometric_median_excess, geometric_median_residual

Array = npt.NDArray[Any]
Settings = dict[str, Any]

DTYPES = ("float32", "float64")
INPUTS = [pytest.param(X, id=f"{dtype}-{label}") for dtype in DTYPES for label, X in awkward(dtype)]


def assert_minimizer(X: Array, weights: Array | None = None) -> None:
    z, info = aggregate.geometric_median(X, weights=weights, return_info=True)
    assert z.dtype == X.dtype
    assert info.converged
    assert geometric_median_excess(X, z, weights) <= 1e-6
    # The residual is that of the result, however far rounding to the dtype moved it.
    residual = geometric_median_residual(X, z, weights)
    assert residual - 1e-8 <= info.residual <= 1e-6 + 3 * residual
    assert info.weights.min() >= 0.0
    assert info.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("X", INPUTS)
def test_geometric_median_is_a_minimizer(X: Array) -> None:
    assert_minimizer(X)
    expected = reference.geometric_median(X)
    assert expected.dtype == X.dtype
    assert geometric_median_excess(X, expected) <= 1e-6


def test_geometric_median_against_a_general_minimizer() -> None:
    rng = np.random.default_rng(8)
    for n, d in ((5, 2), (8, 3), (20, 6)):
        X = rng.standard_normal((n, d))
        weights = rng.uniform(0.5, 2.0, n)
        best = optimize.minimize(
            lambda z, X=X, w=weights: w @ np.linalg.norm(X - z, axis=1),
            X.mean(axis=0),
            method="BFGS",
            options={"gtol": 1e-9},
        )
        np.testing.assert_allclose(aggregate.geometric_median(X, weights=weights, tol=1e-9), best.x, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_geometric_median_at_every_scale(scale: float, dtype: str) -> None:
    X = (np.random.default_rng(9).standard_normal((20, 50)) * scale).astype(dtype)
    z, info = aggregate.geometric_median(X, return_info=True)
    assert info.converged
    assert reference.geometric_median_residual(X, z) <= 2e-6


@pytest.mark.parametrize("share", [0.1, 0.4])
@pytest.mark.parametrize("size", [1e6, 1e12])
def test_geometric_median_beside_large_rows(share: float, size: float, dtype: str) -> None:
    rng = np.random.default_rng(10)
    X = rng.standard_normal((20, 64))
    X[: int(20 * share)] *= size
    X = X.astype(dtype)
    z, info = aggregate.geometric_median(X, return_info=True)
    assert info.converged
    assert reference.geometric_median_residual(X, z) <= 2e-6
    assert np.linalg.norm(z) < 50.0


def test_geometric_median_of_large_vectors_close_together(dtype: str) -> None:
    """Norm 45 and spread 1e-3: a Gram matrix of the raw rows would have lost every digit."""
    X = (2.0 + 1e-3 * np.random.default_rng(11).standard_normal((30, 500))).astype(dtype)
    z, info = aggregate.geometric_median(X, return_info=True)
    exact = reference.geometric_median(X.astype(np.float64), tol=1e-10)
    assert info.converged
    # float32 itself is 2.4e-7 wide at 2; anything beyond a few of those is lost digits.
    np.testing.assert_allclose(z, exact, atol=3e-7 if dtype == "float32" else 1e-8)


def any_size(rng: np.random.Generator, dtype: str, count: int) -> Array:
    """Sizes over the whole range of a dtype, (count, 1)."""
    info = np.finfo(dtype)
    return np.exp2(rng.uniform(info.minexp - info.nmant, info.maxexp - 4, (count, 1)))


def hostile(kind: str, dtype: str, rng: np.random.Generator) -> Array:
    """Rows (n, d) in which the sizes of rows, or of their differences, are anything that is finite."""
    n, d = int(rng.integers(2, 13)), int(rng.integers(1, 15))
    X, f = rng.standard_normal((n, d)), (n - 1) // 2
    attackers = rng.choice(n, f, replace=False)
    if kind == "every row":
        X *= any_size(rng, dtype, n)
    elif kind == "attackers":
        X = any_size(rng, dtype, 1) * X + any_size(rng, dtype, 1)
    elif kind == "attackers of one size":
        X = any_size(rng, dtype, 1) * (1.0 + 0.1 * X)
        X[attackers] = any_size(rng, dtype, 1) * rng.standard_normal((f, d))
    elif kind == "nested":
        for i in range(1, n):
            X[i] = X[rng.integers(i)] + any_size(rng, dtype, 1) * X[i]
    elif kind == "line":
        X = np.outer(any_size(rng, dtype, n) * rng.choice([-1.0, 1.0], (n, 1)), rng.integers(-2, 3, d))
    elif kind == "last places":
        center = (any_size(rng, dtype, 1) * X[:1]).astype(dtype)
        X = center + rng.integers(-3, 4, (n, d)) * np.spacing(np.abs(center)).astype(np.float64)
    elif kind == "top":
        X = np.where(rng.random((n, d)) < 0.5, 1.0, -0.9) * float(np.finfo(dtype).max)
    if kind in ("attackers", "last places", "top"):
        X[attackers] = any_size(rng, dtype, f) * rng.standard_normal((f, d))
    most = float(np.finfo(dtype).max)
    return np.clip(X, -most, most).astype(dtype)


KINDS = ("every row", "attackers", "attackers of one size", "nested", "line", "last places", "top")


@pytest.mark.parametrize("kind", KINDS)
def test_geometric_median_of_any_finite_rows(kind: str, dtype: str) -> None:
    rng = np.random.default_rng(17)
    for _ in range(60):
        X = hostile(kind, dtype, rng)
        weights = rng.choice([0.5, 1.0, 2.0, 1e-9], len(X)) if rng.random() < 0.3 else None
        assert_minimizer(X, weights)
        z = reference.geometric_median(X, weights=weights)
        assert geometric_median_excess(X, z, weights) <= 1e-6


def long_rows() -> dict[str, Array]:
    """Float32 rows long enough for products in float32, of kinds that these serve and of kinds that they do not."""
    rng = np.random.default_rng(21)
    n, d, f = 11, 300, 4
    X = rng.standard_normal((n, d)) + rng.standard_normal(d)
    rows = {"ordinary": X, "close together": 2.0 + 1e-3 * rng.standard_normal((n, d)), "equal": X * 0 + X[:1]}
    for name, forged in {
        "flipped": -3 * X[f : 2 * f],
        "identical": np.repeat(100 * X[:1], f, axis=0),
        "far": 1e6 * X[:f],
        "squares overflow": 1e25 * X[:f],
        "squares vanish": 1e-25 * X[:f],
        "next to an honest row": X[f] + 1e-6 * rng.standard_normal((f, d)),
        "biased rounding": np.full((f, d), 1 / 3),
    }.items():
        rows[name] = np.concatenate([forged, X[f:]])
    rows["majority"] = np.concatenate([X[:5], np.repeat(X[5:6], 6, axis=0)])
    rows["a row in the middle"] = np.concatenate([X[:1] * 0, X[1:6], -X[1:6]])
    rows["on a line"] = np.outer(np.arange(n), X[0])
    rows["two groups"] = np.concatenate([X[:5] * 1e-3, X[5:] * 1e-3 + 50])
    return {name: values.astype(np.float32) for name, values in rows.items()}


def test_geometric_median_of_long_float32_rows() -> None:
    for name, X in long_rows().items():
        for weights in (None, np.random.default_rng(22).uniform(0.9, 1.1, len(X))):
            assert_minimizer(X, weights)
            z, info = aggregate.geometric_median(X, weights=weights, threads=1, return_info=True)
            exact = aggregate.geometric_median(X.astype(np.float64), weights=weights, tol=1e-12)
            typical = np.median(np.linalg.norm(X - exact, axis=1))
            assert np.linalg.norm(z - exact) <= 1e-5 * typical + 1e-6 * np.linalg.norm(exact), name
            combined = info.weights @ X.astype(np.float64)
            np.testing.assert_allclose(combined, z, atol=2e-5 * np.abs(X).max(), err_msg=name)
            for threads in (2, 3):
                assert same_bits(z, aggregate.geometric_median(X, weights=weights, threads=threads)), name
    X = long_rows()["majority"]
    assert same_bits(aggregate.geometric_median(X), X[5])
    X = long_rows()["a row in the middle"]
    assert same_bits(aggregate.geometric_median(X), X[0])
    sharp = aggregate.geometric_median(long_rows()["flipped"], tol=1e-10, return_info=True)[1]
    assert sharp.converged


def test_geometric_median_with_two_attackers_of_five() -> None:
    """Squares of 1e160 overflow, and sums with it absorb what the other rows differ by."""
    rng = np.random.default_rng(18)
    for _ in range(50):
        X = rng.normal(1.0, 0.1, (5, 10))
        X[rng.choice(5, 2, replace=False)] = 1e160 * rng.standard_normal((2, 10))
        assert_minimizer(X)


def test_geometric_median_measures_the_residual_after_rounding() -> None:
    """Between rows a unit in the last place apart there is no better point, and the info says how far off it is."""
    X = np.nextafter(np.float32(1.0), np.float32(2.0)) * np.ones((3, 3), np.float32)
    X[[0, 1, 2], [0, 1, 2]] = 1.0
    z, info = aggregate.geometric_median(X, return_info=True)
    assert info.converged
    assert info.residual == pytest.approx(geometric_median_residual(X, z), abs=1e-12)
    assert info.residual > 0.01
    _, info = aggregate.geometric_median([[0.0], [1.0], [1.0], [4.0]], weights=[1.0, 1.0, 1.0, 3.0], return_info=True)
    assert info.residual == 0.0


@pytest.mark.parametrize("n", [1, 3, 5, 9])
def test_geometric_median_on_a_line_is_the_middle_row_exactly(n: int, dtype: str) -> None:
    X = np.outer(np.arange(n, dtype=float) ** 2, [1.0, 2.0, -0.5]).astype(dtype) + np.asarray(1 / 3, dtype)
    assert same_bits(aggregate.geometric_median(X), X[n // 2])


def test_geometric_median_at_a_majority_is_that_row_exactly(dtype: str) -> None:
    X = np.random.default_rng(12).standard_normal((9, 11)).astype(dtype)
    X[[1, 3, 5, 7, 8]] = X[1]
    z, info = aggregate.geometric_median(X, return_info=True)
    assert same_bits(z, X[1])
    assert info.residual == 0.0
    assert info.weights[[1, 3, 5, 7, 8]].sum() == pytest.approx(1.0)


def test_geometric_median_info_is_the_combination(dtype: str) -> None:
    X = np.random.default_rng(13).standard_normal((12, 30)).astype(dtype)
    X[4] = np.nan
    weights = np.ones(12)
    weights[[0, 7]] = 0.0, 3.0
    z, info = aggregate.geometric_median(X, weights=weights, return_info=True)
    assert info.kept.tolist() == [i for i in range(12) if i != 4]
    assert info.excluded.tolist() == [4]
    assert info.weights.shape == (11,)
    assert info.weights[0] == 0.0
    assert info.weights.sum() == pytest.approx(1.0)
    assert info.iterations >= 1
    np.testing.assert_allclose(info.weights @ X[info.kept].astype(np.float64), z, atol=1e-5)
    rest = info.kept
    assert reference.geometric_median_residual(X[rest], z, weights[rest]) <= 2e-6


@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_geometric_median_sees_a_poisoned_row_of_weight_zero(dtype: str, poison: float) -> None:
    X = np.random.default_rng(13).standard_normal((7, 4)).astype(dtype)
    weights = np.array([1.0, 2.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    clean = aggregate.geometric_median(X, weights=weights, nonfinite="raise")
    X[2, 1] = poison
    with pytest.raises(ValueError, match=r"^geometric_median: rows \[2\] hold NaN or infinite values$"):
        aggregate.geometric_median(X, weights=weights, nonfinite="raise")
    z, info = aggregate.geometric_median(X, weights=weights, return_info=True)
    assert same_bits(z, clean)
    assert info.excluded.tolist() == [2]
    assert np.isnan(aggregate.geometric_median(X, weights=weights, nonfinite="propagate")).all()


def test_geometric_median_tells_when_it_has_not_converged() -> None:
    X = np.random.default_rng(14).standard_normal((20, 30))
    X[:8] += 50.0
    _, info = aggregate.geometric_median(X, tol=1e-14, max_iter=1, return_info=True)
    assert not info.converged
    assert info.iterations == 1
    assert info.residual > 1e-14
    _, info = aggregate.geometric_median(X, tol=1e-9, return_info=True)
    assert info.converged
    assert info.residual <= 1e-9


def test_geometric_median_weights_may_have_any_unit() -> None:
    X = np.random.default_rng(15).standard_normal((9, 7))
    weights = np.random.default_rng(16).uniform(0.1, 1.0, 9)
    expected = aggregate.geometric_median(X, weights=weights)
    for unit in (2.0**-1040, 2.0**-500, 2.0**500, 2.0**1020):
        np.testing.assert_allclose(aggregate.geometric_median(X, weights=weights * unit), expected, atol=1e-5)


def test_propagate_spoils_a_geometric_median() -> None:
    X = np.ones((5, 3))
    X[2, 1] = np.inf
    z, info = aggregate.geometric_median(X, nonfinite="propagate", return_info=True)
    assert np.isnan(z).all()
    assert not info.converged
    assert info.iterations == 0
    assert aggregate.geometric_median(np.ones((5, 3)), nonfinite="propagate").tolist() == [1.0] * 3
