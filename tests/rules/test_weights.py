"""Weights of rows: against the twins, as repetitions, with excluded rows, capped, and wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import aggregate
from byzadmm import reference as ref
from support.arrays import awkward
from support.rules import apply, normal, tolerance

Array = npt.NDArray[Any]
Settings = dict[str, Any]

DTYPES = ("float32", "float64")
INPUTS = [pytest.param(X, id=f"{dtype}-{label}") for dtype in DTYPES for label, X in awkward(dtype)]


@pytest.mark.parametrize("X", INPUTS)
def test_weighted_rules_equal_their_twins(X: Array) -> None:
    n = len(X)
    w = np.random.default_rng(n).integers(0, 4, n).astype(float)
    w[0] = 1.0
    f = (n - 1) // 3
    for even in ("mid", "low", "high"):
        expected = ref.weighted_median(X, weights=w, even=even)
        np.testing.assert_allclose(aggregate.median(X, weights=w, even=even), expected, **tolerance(X))
    trimmed, close = aggregate.trimmed_mean(X, f=f, weights=w), tolerance(X)
    close["atol"] = max(close["atol"], n * float(np.finfo(X.dtype).smallest_subnormal))
    np.testing.assert_allclose(trimmed, ref.weighted_trimmed_mean(X, f=f, weights=w), **close)
    if n >= 3:
        settings = {"f": (n - 3) // 2, "weights": w}
        best = aggregate.krum(X, **settings, return_info=True)[1].selected[0]
        scores = ref.krum_scores(X, neighbors=n - (n - 3) // 2 - 2, weights=w)
        assert scores[best] <= scores.min() * (1 + 1e-5)
        assert w[best] > 0


@pytest.mark.parametrize("rule", ["median", "trimmed_mean", "krum", "multi_krum", "medoid"])
def test_equal_weights_change_nothing(rule: str) -> None:
    X = normal(12, 9)
    settings: Settings = {} if rule in ("median", "medoid") else {"f": 3}
    equal = apply(rule, X, **settings, weights=np.full(12, 0.3))
    np.testing.assert_allclose(equal, apply(rule, X, **settings), rtol=1e-14, atol=1e-15)


def test_whole_weights_are_repeated_rows() -> None:
    X, w = normal(7, 5), np.array([1, 2, 3, 1, 1, 2, 4])
    repeated = np.repeat(X, w, axis=0)
    for even in ("mid", "low", "high"):
        np.testing.assert_array_equal(
            aggregate.median(X, weights=w, even=even), aggregate.median(repeated, even=even)
        )
    # 14 rows, f = 2 of 7 shares: 4 of 14.
    np.testing.assert_allclose(
        aggregate.trimmed_mean(X, f=2, weights=w), aggregate.trimmed_mean(repeated, f=4), rtol=1e-13
    )


def test_a_row_of_weight_zero_is_never_selected() -> None:
    X = np.array([[0.0], [0.0], [0.0], [5.0], [6.0], [7.5]])
    w = [0, 0, 0, 1, 1, 1]
    assert aggregate.krum(X, f=1, weights=w)[0] >= 5
    assert aggregate.medoid(X, weights=w).tolist() == [6.0]
    result, info = aggregate.multi_krum(X, f=1, weights=w, return_info=True)
    assert set(info.selected.tolist()) == {3, 4, 5}
    assert result[0] == pytest.approx(18.5 / 3)
    assert np.isinf(info.scores[:3]).all()


def test_weights_that_just_fill_the_neighbors_take_no_share_of_the_next() -> None:
    # Next to a row of twice the mean weight the honest ones fill the neighbors exactly. A rest of rounding size, times
    # the square of a far distance, must not decide.
    for seed in range(10):
        X = np.concatenate([normal(12, 5, seed), np.full((8, 5), -1e60)])
        w = np.array([3, 3, *[1.0] * 6, *[1.5] * 4, *[1.5] * 8])
        scores = aggregate.krum(X, f=8, weights=w, return_info=True)[1].scores
        np.testing.assert_allclose(scores[:12], ref.krum_scores(X, neighbors=10, weights=w)[:12], rtol=1e-12)
        assert scores[:12].max() < 1e3


def test_weighted_rules_exclude_poisoned_rows() -> None:
    X, w = normal(9, 4), np.arange(1.0, 10.0)
    X[4, 1] = np.inf
    kept = [0, 1, 2, 3, 5, 6, 7, 8]
    for rule, f in (("median", None), ("trimmed_mean", 2), ("krum", 2), ("multi_krum", 2), ("medoid", None)):
        settings = {} if f is None else {"f": f}
        fewer = {} if f is None else {"f": f - 1}
        result = apply(rule, X, **settings, weights=w)
        np.testing.assert_allclose(result, apply(rule, X[kept], **fewer, weights=w[kept]), rtol=1e-14)


def test_cap_weights() -> None:
    w = np.array([1, 5, 2])
    assert aggregate.cap_weights(w, 2).tolist() == [1.0, 2.0, 2.0]
    assert w.tolist() == [1, 5, 2]
    with pytest.raises(ValueError, match=r"weights: expected shape \(n,\), got \(1, 3\)"):
        aggregate.cap_weights([[1, 2, 3]], 2)
    with pytest.raises(ValueError, match="weights: expected finite numbers >= 0"):
        aggregate.cap_weights([1, np.nan], 2)
    with pytest.raises(ValueError, match="cap: expected a finite number > 0"):
        aggregate.cap_weights([1, 2], 0)


def test_mean_weights_may_have_any_unit() -> None:
    X = np.random.default_rng(15).standard_normal((9, 7))
    weights = np.random.default_rng(16).integers(1, 100, 9).astype(np.float64)
    expected = aggregate.mean(X, weights=weights)
    for unit in (2.0**-1074, 2.0**-500, 2.0**500, 2.0**1010):
        np.testing.assert_allclose(aggregate.mean(X, weights=weights * unit), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["mean", "geometric_median"])
@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ([1.0, 2.0], ValueError, r"weights: expected shape \(3,\), got \(2,\)"),
        ([[1.0, 1.0, 1.0]], ValueError, r"weights: expected shape \(3,\), got \(1, 3\)"),
        ([1.0, -1.0, 1.0], ValueError, "weights: expected finite numbers >= 0, not all zero"),
        ([0.0, 0.0, 0.0], ValueError, "weights: expected finite numbers >= 0, not all zero"),
        ([1.0, np.nan, 1.0], ValueError, "weights: expected finite numbers >= 0, not all zero"),
        ([1.0, np.inf, 1.0], ValueError, "weights: expected finite numbers >= 0, not all zero"),
        (["a", "b", "c"], TypeError, "weights: expected real numbers .*, got dtype <U1"),
        ([1j, 1.0, 1.0], TypeError, "weights: expected real numbers .*, got dtype complex128"),
    ],
)
def test_weights_errors(name: str, weights: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        apply(name, np.zeros((3, 2)), weights=weights)


def test_a_finite_row_must_have_a_positive_weight() -> None:
    X = normal(5, 2)
    X[0, 0] = np.nan
    w = [1.0, 0, 0, 0, 0]
    one: Settings = {"f": 1}
    rules = {"mean": {}, "median": {}, "geometric_median": {}, "medoid": {}, "trimmed_mean": one, "krum": one}
    for rule, settings in rules.items():
        with pytest.raises(ValueError, match=f"{rule}: every finite row has weight 0"):
            apply(rule, X, **settings, weights=w)
        assert np.isfinite(apply(rule, X, **settings, weights=[1.0, 0, 0, 0, 2.0])).all()
