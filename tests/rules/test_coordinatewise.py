"""Mean, median and trimmed mean: against sorting, exact sums and SciPy, over the whole range of both dtypes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from byzadmm import aggregate, reference
from support.arrays import awkward, same_bits
from support.rules import apply, assert_near, middle

Array = npt.NDArray[Any]
Settings = dict[str, Any]

DTYPES = ("float32", "float64")
INPUTS = [pytest.param(X, id=f"{dtype}-{label}") for dtype in DTYPES for label, X in awkward(dtype)]
# Around the unrolled networks (8 or 20 rows), the table of exchanges (64) and selection by counting beyond.
COUNTS = (1, 2, 3, 7, 8, 9, 10, 19, 20, 21, 22, 63, 64, 65, 66, 257, 2000)


@pytest.mark.parametrize("X", INPUTS)
def test_mean_matches_the_twin(X: Array) -> None:
    assert_near(aggregate.mean(X), reference.mean(X), X)
    weights = np.arange(1.0, len(X) + 1)
    assert_near(aggregate.mean(X, weights=weights), reference.mean(X, weights=weights), X)


@pytest.mark.parametrize("even", ["mid", "low", "high"])
@pytest.mark.parametrize("X", INPUTS)
def test_median_is_the_sorted_middle(X: Array, even: str) -> None:
    got = aggregate.median(X, even=even)
    assert got.dtype == X.dtype
    np.testing.assert_array_equal(got, middle(X, even))
    np.testing.assert_array_equal(got, reference.median(X, even=even))


@pytest.mark.parametrize("X", INPUTS)
def test_trimmed_mean_matches_the_twin(X: Array) -> None:
    for f in sorted({0, 1, len(X) // 3, (len(X) - 1) // 2}):
        if 2 * f < len(X):
            kept = np.sort(X, axis=0)[f : len(X) - f]
            assert_near(aggregate.trimmed_mean(X, f=f), reference.trimmed_mean(X, f=f), kept)


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("kind", ["normal", "ties", "sorted", "two values", "outliers"])
def test_every_number_of_workers(n: int, kind: str, dtype: str) -> None:
    rng = np.random.default_rng(n)
    d = 37 if n < 300 else 19
    X = rng.standard_normal((n, d)).astype(dtype)
    if kind == "ties":
        X = rng.integers(-2, 3, (n, d)).astype(dtype)
    elif kind == "sorted":
        X = np.sort(X, axis=0)
    elif kind == "two values":
        X = np.where(X > 0, X[0], X[-1])
    elif kind == "outliers":
        X[: (n - 1) // 2] *= np.asarray(1e30, dtype)
    for even in ("mid", "low", "high"):
        np.testing.assert_array_equal(aggregate.median(X, even=even), middle(X, even), err_msg=even)
    for f in sorted({0, n // 4, (n - 1) // 2}):
        kept = np.sort(X, axis=0)[f : n - f]
        exact = np.array([math.fsum(column) / len(kept) for column in kept.T.astype(np.float64)]).astype(dtype)
        assert_near(aggregate.trimmed_mean(X, f=f), exact, kept, ulps=4 + n**0.5)


def test_trimmed_mean_agrees_with_scipy() -> None:
    X = np.random.default_rng(1).standard_normal((20, 33))
    for f in range(10):
        np.testing.assert_allclose(aggregate.trimmed_mean(X, f=f), stats.trim_mean(X, (f + 0.5) / 20), rtol=1e-12)


@pytest.mark.parametrize("name", ["mean", "median", "trimmed_mean"])
@pytest.mark.parametrize("d", [1, 2, 3, 7, 8, 9, 127, 128, 129, 511, 512, 513, 2047, 2048, 2049, 4099])
def test_columns_do_not_depend_on_their_neighbors(name: str, d: int, dtype: str) -> None:
    """The same column gives the same bits wherever it stands (tile - 1, tile, tile + 1 of every kernel)."""
    X = np.random.default_rng(d).standard_normal((21, d)).astype(dtype)
    settings = {"f": 2} if name == "trimmed_mean" else {}
    whole = apply(name, X, **settings)
    for j in sorted({0, d // 2, d - 1}):
        assert same_bits(whole[j : j + 1], apply(name, np.ascontiguousarray(X[:, j : j + 1]), **settings))
    shifted = apply(name, np.concatenate([X[:, :1], X], axis=1), **settings)
    assert same_bits(shifted[1:], whole)


@pytest.mark.parametrize("n", [3, 4, 11, 30, 64, 65, 200])
@pytest.mark.parametrize("name", ["mean", "median", "trimmed_mean"])
def test_propagate_is_what_sorting_and_adding_give(name: str, n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 40)).astype(dtype)
    X[0, :8], X[n - 1, 4:12], X[1, 10:20] = np.nan, np.inf, -np.inf
    X[: n // 2 + 1, 20:24] = np.inf
    X[: n // 2 + 1, 24:28] = -np.inf
    f = (n - 1) // 2
    has_nan = np.isnan(X).any(axis=0)
    with np.errstate(invalid="ignore"):
        if name == "mean":
            expected, got = X.mean(axis=0), aggregate.mean(X, nonfinite="propagate")
        elif name == "median":
            expected, got = middle(X, "mid"), aggregate.median(X, nonfinite="propagate")
        else:
            kept = np.sort(X, axis=0)[f : n - f]
            expected, got = kept.mean(axis=0), aggregate.trimmed_mean(X, f=f, nonfinite="propagate")
    expected[has_nan] = np.nan
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)
    assert np.isnan(got[:8]).all()


def test_mean_of_huge_values_is_that_of_small_ones_scaled() -> None:
    X = np.random.default_rng(17).uniform(0.5, 1.0, (50, 9))
    weights = np.random.default_rng(18).uniform(0.0, 1.0, 50)
    for w in (None, weights):
        np.testing.assert_allclose(
            aggregate.mean(X * 1e308, weights=w), aggregate.mean(X, weights=w) * 1e308, rtol=1e-13
        )


def test_mean_with_propagate_keeps_the_columns_that_only_overflowed() -> None:
    X = np.full((4, 3), 1.5e308)
    X[1, 0], X[2, 1] = np.nan, np.inf
    got = aggregate.mean(X, nonfinite="propagate")
    assert np.isnan(got[0])
    assert got[1] == np.inf
    assert got[2] == pytest.approx(1.5e308)


def test_median_of_two_subnormals_keeps_the_last_bit(dtype: str) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    assert aggregate.median(np.array([[tiny], [3 * tiny]], dtype)).tolist() == [float(2 * tiny)]


def test_info_of_the_mean_has_its_shares() -> None:
    X = np.ones((4, 2))
    X[3] = np.nan
    _, info = aggregate.mean(X, weights=[1, 2, 1, 9], return_info=True)
    assert info.weights.tolist() == [0.25, 0.5, 0.25]
    _, info = aggregate.mean(X, return_info=True)
    np.testing.assert_allclose(info.weights, 1 / 3)
    assert info.iterations is info.converged is info.residual is None
