"""Rules that select rows by distances: by hand, and the choices of exact arithmetic whatever attackers send."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import _core, aggregate
from byzadmm import reference as ref
from support.arrays import same_bits
from support.rules import apply, normal, settings_for

Array = npt.NDArray[Any]
Settings = dict[str, Any]

DTYPES = ("float32", "float64")


def test_krum_by_hand() -> None:
    X = np.array([[0.0], [1.0], [3.0], [4.0], [50.0]])
    result, info = aggregate.krum(X, f=1, return_info=True)
    assert info.scores.tolist() == [1 + 9, 1 + 4, 1 + 4, 1 + 9, 46**2 + 47**2]
    assert result.tolist() == [1.0]
    assert info.selected.tolist() == [1]
    assert info.distances.tolist() == ((X - X.T) ** 2).tolist()
    assert aggregate.krum(X, f=1, neighbors=1).tolist() == [0.0]
    assert aggregate.multi_krum(X, f=1, m=2).tolist() == [2.0]


def test_bulyan_by_hand() -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [60.0]])
    # Scores with 4, 3, 2, 1, 1 neighbors: 2, then 3 (tie with 1: 1+4+9 against 1+4+9: the lower), ...
    result, info = aggregate.bulyan(X, f=1, return_info=True)
    left = list(range(7))
    chosen = []
    for _ in range(5):
        k = max(1, len(left) - 3)
        scores = [sum(sorted((X[i, 0] - X[j, 0]) ** 2 for j in left if j != i)[:k]) for i in left]
        chosen.append(left.pop(int(np.argmin(scores))))
    assert info.selected.tolist() == chosen
    assert info.scores is None
    values = sorted(X[chosen, 0])
    assert result[0] == pytest.approx(np.mean(sorted(values, key=lambda v: abs(v - values[2]))[:3]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rule", ["krum", "multi_krum", "medoid", "bulyan", "nearest_neighbor_mixing"])
def test_choices_do_not_depend_on_the_scale_at_all(rule: str, dtype: str) -> None:
    X = np.random.default_rng(5).integers(-20, 20, (15, 8)).astype(dtype)
    settings = settings_for(rule, 15)
    assert settings is not None
    plain = apply(rule, X, **settings, return_info=True)[1].selected
    largest = np.finfo(X.dtype).maxexp - 7
    for power in (largest, -largest, np.finfo(X.dtype).minexp - 10):
        scaled = np.ldexp(X, power)
        assert np.isfinite(scaled).all()
        np.testing.assert_array_equal(apply(rule, scaled, **settings, return_info=True)[1].selected, plain)


def attacked(n: int, f: int, dtype: str, honest: str, seed: int = 0) -> Array:
    """Rows around one point of the size ``honest``, behind ``f`` attackers of all magnitudes at the lowest indices."""
    info, rng = np.finfo(dtype), np.random.default_rng(seed)
    size = {"tiny": float(info.smallest_normal) * 1e3, "one": 1.0, "huge": float(info.max) / 2}[honest]
    X = size * (1 + 0.1 * rng.standard_normal((n, 3)))
    powers = np.linspace(info.minexp, info.maxexp - 4, f)
    X[:f] = rng.uniform(1, 2, (f, 3)) * rng.choice([-1, 1], (f, 3)) * np.exp2(powers)[:, None]
    return X.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("honest", ["tiny", "one", "huge"])
@pytest.mark.parametrize("n", [20, 80])
def test_choices_are_those_of_exact_arithmetic(n: int, honest: str, dtype: str) -> None:
    digits = 10 ** (5 if dtype == "float32" else 12)  # up to rounding of the compared sums
    f, few = (n - 3) // 2, (n - 3) // 4
    X = attacked(n, f, dtype, honest)
    rows = [[int(Fraction(value) * 2**1074) for value in row] for row in X.tolist()]
    S = [[sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) for x in rows] for y in rows]

    def scores(left: list[int], neighbors: int) -> dict[int, int]:
        return {i: sum(sorted(S[i][k] for k in left if k != i)[:neighbors]) for i in left}

    def is_least(value: int, others: Iterable[int]) -> bool:
        return value * digits <= min(others, default=value) * (digits + 1)

    exact = scores(list(range(n)), n - f - 2)
    best = aggregate.multi_krum(X, f=f, return_info=True)[1].selected.tolist()
    assert set(best) == set(range(f, n))
    for c, i in enumerate(best):
        assert is_least(exact[i], (exact[k] for k in range(n) if k not in best[:c]))
    assert same_bits(aggregate.krum(X, f=f), X[best[0]])
    assert same_bits(aggregate.krum(X, f=f, weights=np.full(n, 0.3)), X[best[0]])

    left = list(range(n))
    for chosen in aggregate.bulyan(X, f=few, return_info=True)[1].selected.tolist():
        exact = scores(left, max(1, len(left) - few - 2))
        assert is_least(exact[chosen], exact.values())
        left.remove(chosen)

    for i, line in enumerate(aggregate.nearest_neighbor_mixing(X, f=f, return_info=True)[1].selected.tolist()):
        assert line[0] == i
        for c, k in enumerate(line):
            assert is_least(S[i][k], (S[i][other] for other in range(n) if other not in line[:c]))


def test_attackers_do_not_choose_the_unit_of_distances() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(1, 0.1, (20, 10))
    X[13:] = 1e200 * rng.normal(size=(7, 10))
    X[0] = 1e20
    result, info = aggregate.krum(X, f=8, return_info=True)
    assert info.selected[0] in range(1, 13)
    assert same_bits(result, aggregate.krum(X[1:13], f=0))
    # What float64 cannot hold is infinite or 0 in the info alone.
    assert np.isinf(info.distances[1, 13])
    assert np.isfinite(info.scores[1:13]).all()
    assert info.scores[1:13].min() == info.scores[info.selected[0]]
    tiny = aggregate.krum(X[1:13] * 1e-200, f=3, return_info=True)[1]
    assert same_bits(tiny.distances, np.zeros((12, 12)))
    assert tiny.selected[0] == aggregate.krum(X[1:13], f=3, return_info=True)[1].selected[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("honest", ["tiny", "one", "huge"])
@pytest.mark.parametrize("n", [5, 20, 80])
def test_far_rows_do_not_decide_between_near_ones(n: int, honest: str, dtype: str) -> None:
    f = aggregate.max_f("medoid", n)
    X = attacked(n, f, dtype, honest)
    w = np.random.default_rng(1).uniform(1, 1.5, n)
    w[:f] = 1  # less than half of the weight
    for weights in (None, w):
        result, info = aggregate.medoid(X, weights=weights, return_info=True)
        assert info.selected[0] >= f
        assert same_bits(result, ref.medoid(X, weights=weights))
        assert same_bits(aggregate.medoid(X, weights=weights, threads=3), result)


def test_the_medoid_of_near_rows_is_theirs() -> None:
    X = np.random.default_rng(0).normal(1, 0.1, (20, 10)).astype("float32")
    X[18:] = 1e30
    X[0] = 1e10
    assert 0 < aggregate.medoid(X, return_info=True)[1].selected[0] < 18
    # Two far rows on either side cancel exactly.
    X[18] = -X[19]
    X[0] = X[1]
    assert aggregate.medoid(X).tolist() == aggregate.medoid(X[:18]).tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_sums_go_to_the_lowest_index(dtype: str) -> None:
    X = np.array([[9], [0], [1], [1], [0], [-8]], dtype)
    for scale in (1, np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max / 16):
        assert aggregate.medoid(X * scale, return_info=True)[1].selected.tolist() == [1]
        assert aggregate.medoid(np.eye(6, dtype=dtype) * scale, return_info=True)[1].selected.tolist() == [0]


def test_equal_rows_have_equal_scores() -> None:
    for n in (20, 100):
        X = normal(n, 1000, 1, "float32")
        X[3] = X[n - 2] = X[0]
        _, info = aggregate.krum(X, f=3, return_info=True)
        assert len({info.scores[i] for i in (0, 3, n - 2)}) == 1
        assert info.distances[0, 3] == 0
        assert same_bits(info.distances[0], info.distances[n - 2])


@pytest.mark.parametrize("dtype", DTYPES)
def test_distances_of_every_number_of_rows_and_tail_of_columns(dtype: str) -> None:
    """Blocks of three rows, tiles of 2 kB: what is left over in either direction."""
    for n in (1, 2, 3, 4, 5, 6, 7, 19, 71, 72, 73, 74, 76):
        for d in (1, 9, 2048 // np.dtype(dtype).itemsize + 3):
            X = normal(n, d, n, dtype)
            squared, exponent, bad = _core.squared_distances(X, 1)
            wide = X.astype(np.float64)
            exact = np.square(wide[:, None] - wide).sum(axis=2)
            np.testing.assert_allclose(squared, exact, rtol=1e-4 if dtype == "float32" else 1e-12, err_msg=f"{n}, {d}")
            assert exponent is None
            assert not bad.any()
            assert same_bits(squared, _core.squared_distances(X, 3)[0])
            X[n // 2, d // 2] = [np.nan, np.inf, -np.inf][n % 3]
            assert np.flatnonzero(_core.squared_distances(X, 1)[2]).tolist() == [n // 2]
    everywhere = np.full((4, 5), np.inf, dtype)
    assert _core.squared_distances(everywhere, 1)[2].all()


def test_native_messages() -> None:
    D, X = np.zeros((3, 3)), np.zeros((3, 2))
    with pytest.raises(ValueError, match="squared: expected 2 dimensions, got 1"):
        _core.krum_scores(np.zeros(3), None, 1, None, 1.0, 1)
    with pytest.raises(TypeError, match="exponent: expected dtype int32, got float64"):
        _core.krum_scores(D, D, 1, None, 1.0, 1)
    with pytest.raises(ValueError, match=r"squared: expected shape \(3, 3\), got \(3, 2\)"):
        _core.bulyan_choice(X, None, 0, 1)
    with pytest.raises(ValueError, match=r"count: expected an integer in \[1, n\]"):
        _core.bulyan_choice(D, None, 0, 4)
    with pytest.raises(ValueError, match=r"squared: expected shape \(3, 3\), got \(2, 2\)"):
        _core.medoid(X, np.zeros((2, 2)), None, None, None, 1)
    with pytest.raises(ValueError, match="neighbor: expected indices of rows"):
        _core.neighbor_means(X, np.empty((1, 2)), np.array([[3]]), None, 1)
    with pytest.raises(ValueError, match=r"k: expected an integer in \[1, n\]"):
        _core.closest_mean(X, np.empty(2), np.zeros(2), 4, None, 1)
    with pytest.raises(ValueError, match="weights: expected positive numbers"):
        _core.weighted_median(X, np.empty(2), np.zeros(3), "mid", None, 1)
