"""Krum and its family, rules around a center, clipping, mixing and weights: against their twins, then properties."""

from __future__ import annotations

import doctest
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import byzadmm
from byzadmm import _core, aggregate, aggregators, layers
from byzadmm import reference as ref
from support.arrays import POISONS, awkward, layouts, poisoned, same_bits

Array = npt.NDArray[Any]
Settings = dict[str, Any]

DTYPES = ("float32", "float64")
INPUTS = [pytest.param(X, id=f"{dtype}-{label}") for dtype in DTYPES for label, X in awkward(dtype)]

#: Rule -> its settings for n rows; None where n rows are too few.
VECTOR_RULES: dict[str, Callable[[int], Settings | None]] = {
    "krum": lambda n: {"f": (n - 3) // 2} if n >= 3 else None,
    "multi_krum": lambda n: {"f": (n - 3) // 2} if n >= 3 else None,
    "medoid": lambda n: {},
    "bulyan": lambda n: {"f": (n - 3) // 4} if n >= 3 else None,
    "meamed": lambda n: {"f": (n - 1) // 3},
    "phocas": lambda n: {"f": (n - 1) // 3},
    "centered_clip": lambda n: {"tau": 1.5, "n_iter": 3},
}
ROW_RULES: dict[str, Callable[[int], Settings | None]] = {
    "nearest_neighbor_mixing": lambda n: {"f": (n - 1) // 3},
    "bucketing": lambda n: {"s": 3, "rng": 5},
    "clip": lambda n: {"max_norm": 2.0},
}
ALL_RULES = {**VECTOR_RULES, **ROW_RULES}


def tolerance(X: Array) -> Settings:
    """A few units in the last place of the largest number that takes part."""
    eps = float(np.finfo(X.dtype).eps)
    return {"rtol": 16 * eps, "atol": 16 * eps * float(np.abs(X).max(initial=0.0))}


def call(rule: str, X: Any, **settings: Any) -> Any:
    return getattr(aggregate, rule)(X, **settings)


def normal(n: int, d: int, seed: int = 0, dtype: str = "float64") -> Array:
    return np.random.default_rng(seed).standard_normal((n, d)).astype(dtype)


# Against the twins


@pytest.mark.parametrize("rule", ALL_RULES)
@pytest.mark.parametrize("X", INPUTS)
def test_rule_equals_its_twin(rule: str, X: Array) -> None:
    settings = ALL_RULES[rule](len(X))
    if settings is None:
        with pytest.raises(ValueError, match=f"{rule}: expected at least 3 workers, got n={len(X)}"):
            call(rule, X, f=0)
        return
    result = call(rule, X, **settings, threads=1)
    assert result.dtype == X.dtype
    expected = getattr(ref, rule)(X, **settings)
    if rule in ("krum", "medoid"):
        # Two rows may be equally good up to rounding (mirror images): then either is right.
        assert any(np.array_equal(result, row) for row in X)
        assert score(rule, X, result) <= score(rule, X, expected) * (1 + 1e-5)
    else:
        np.testing.assert_allclose(result, expected, **tolerance(X))
    for threads in (2, 3, 7):
        assert same_bits(call(rule, X, **settings, threads=threads), result)


def score(rule: str, X: Array, row: Array) -> Any:
    i = next(i for i in range(len(X)) if np.array_equal(X[i], row))
    if rule == "medoid":
        return ref.pairwise_distances(X)[i].sum()
    return ref.krum_scores(X, neighbors=len(X) - (len(X) - 3) // 2 - 2)[i]


@pytest.mark.parametrize("rule", ALL_RULES)
@pytest.mark.parametrize("n", [73, 150])
@pytest.mark.parametrize("dtype", DTYPES)
def test_many_rows(rule: str, n: int, dtype: str) -> None:
    X = normal(n, 700, n, dtype)
    X[n // 2 + 5 :] = X[n // 2 + 5]  # colluders: every other way to their distances must give the same
    settings = ALL_RULES[rule](n)
    assert settings is not None
    result = call(rule, X, **settings, threads=1)
    np.testing.assert_allclose(result, getattr(ref, rule)(X, **settings), **tolerance(X))
    assert same_bits(call(rule, X, **settings, threads=3), result)


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
    equal = call(rule, X, **settings, weights=np.full(12, 0.3))
    np.testing.assert_allclose(equal, call(rule, X, **settings), rtol=1e-14, atol=1e-15)


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


def test_weights_never_choose_a_row_without_weight() -> None:
    X = np.array([[0.0], [0.0], [0.0], [5.0], [6.0], [7.5]])
    w = [0, 0, 0, 1, 1, 1]
    assert aggregate.krum(X, f=1, weights=w)[0] >= 5
    assert aggregate.medoid(X, weights=w).tolist() == [6.0]
    result, info = aggregate.multi_krum(X, f=1, weights=w, return_info=True)
    assert set(info.selected.tolist()) == {3, 4, 5}
    assert result[0] == pytest.approx(18.5 / 3)
    assert np.isinf(info.scores[:3]).all()


# By hand


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
    # Scores with 4, 3, 2, 1, 1 neighbours: 2, then 3 (tie with 1: 1+4+9 against 1+4+9: the lower), ...
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


def test_meamed_and_phocas_by_hand() -> None:
    X = [[0.0], [1.0], [2.0], [10.0], [11.0]]
    assert aggregate.meamed(X, f=2).tolist() == [1.0]  # around 2: 2, 1, 0
    assert aggregate.phocas(X, f=1).tolist() == [(1 + 2 + 10 + 0) / 4]  # around 13/3: 2, 1, 0 and 10, then 11


def test_centered_clip_by_hand() -> None:
    X = np.array([[3.0, 4.0], [0.0, 0.0]])
    result, info = aggregate.centered_clip(X, tau=1, center=[0, 0], return_info=True)
    np.testing.assert_allclose(result, [0.3, 0.4], rtol=1e-15)
    assert info.weights.tolist() == [0.2, 1.0]
    assert info.iterations == 1


def test_centered_clip_may_write_over_its_center() -> None:
    X, v = normal(9, 40), np.zeros(40)
    expected = aggregate.centered_clip(X, tau=1, center=v, n_iter=4)
    assert aggregate.centered_clip(X, tau=1, center=v, n_iter=4, out=v) is v
    assert same_bits(v, expected)
    far = aggregate.centered_clip(X * 1e35, tau=1e33, n_iter=2)
    np.testing.assert_allclose(far, ref.centered_clip(X * 1e35, tau=1e33, n_iter=2), rtol=1e-12)


def test_bucketing_uses_every_row_once() -> None:
    X = normal(10, 4)
    result, info = aggregate.bucketing(X, s=4, rng=np.random.default_rng(2), return_info=True)
    assert result.shape == (3, 4)
    assert sorted(info.selected.tolist()) == list(range(10))
    np.testing.assert_allclose(result[2], X[info.selected[8:]].mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(aggregate.bucketing(X, s=99, rng=0)[0], X.mean(axis=0), rtol=1e-13)


def test_clip_keeps_short_rows_and_says_their_lengths() -> None:
    X = np.array([[3.0, 4.0], [0.1, 0.0]])
    result, info = aggregate.clip(X, max_norm=2.5, return_info=True)
    np.testing.assert_allclose(result, [[1.5, 2.0], [0.1, 0.0]], rtol=1e-15)
    assert info.distances.tolist() == [5.0, 0.1]


# Properties


@pytest.mark.parametrize("rule", [r for r in ALL_RULES if r != "bucketing"])
def test_order_of_the_rows_does_not_matter(rule: str) -> None:
    X = normal(15, 33, 1)
    order = np.random.default_rng(2).permutation(15)
    settings = ALL_RULES[rule](15)
    assert settings is not None
    plain, moved = call(rule, X, **settings), call(rule, X[order], **settings)
    np.testing.assert_allclose(moved, plain[order] if rule in ROW_RULES else plain, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("rule", [r for r in ALL_RULES if r != "clip"])
def test_a_shift_shifts_and_a_scale_scales(rule: str) -> None:
    X = normal(15, 33, 3)
    settings = ALL_RULES[rule](15)
    assert settings is not None
    plain = call(rule, X, **settings)
    np.testing.assert_allclose(call(rule, X + 7.0, **settings), plain + 7.0, rtol=1e-12)
    if rule == "centered_clip":
        settings["tau"] *= 2.0**40
    for power in (40, -40) if rule != "centered_clip" else (40,):
        np.testing.assert_allclose(call(rule, X * 2.0**power, **settings), plain * 2.0**power, rtol=1e-12)
    np.testing.assert_allclose(
        call(rule, -X, **(ALL_RULES[rule](15) or {})), -plain, rtol=1e-12, err_msg="a mirror image"
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rule", ["krum", "multi_krum", "medoid", "bulyan", "nearest_neighbor_mixing"])
def test_choices_do_not_depend_on_the_scale_at_all(rule: str, dtype: str) -> None:
    X = np.random.default_rng(5).integers(-20, 20, (15, 8)).astype(dtype)
    settings = ALL_RULES[rule](15)
    assert settings is not None
    plain = call(rule, X, **settings, return_info=True)[1].selected
    largest = np.finfo(X.dtype).maxexp - 7
    for power in (largest, -largest, np.finfo(X.dtype).minexp - 10):
        scaled = np.ldexp(X, power)
        assert np.isfinite(scaled).all()
        np.testing.assert_array_equal(call(rule, scaled, **settings, return_info=True)[1].selected, plain)


@pytest.mark.parametrize("rule", VECTOR_RULES)
@pytest.mark.parametrize("evil", [1e3, 1e9, 1e300])
@pytest.mark.parametrize("n", [11, 20])
def test_the_largest_legal_minority_moves_it_little(rule: str, evil: float, n: int) -> None:
    f = aggregate.max_f(rule, n)
    X = normal(n, 12, 7) + 3.0
    X[n - f :] = evil
    settings: Settings = {"tau": 1.0, "n_iter": 20} if rule == "centered_clip" else {} if rule == "medoid" else {"f": f}
    honest = X[: n - f]
    result = call(rule, X, **settings)
    center = honest.mean(axis=0)
    assert np.linalg.norm(result - center) <= 2.5 * np.linalg.norm(honest - center, axis=1).max()


# Attackers of any finite magnitude


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


def test_weights_that_just_fill_the_neighbors_take_no_share_of_the_next() -> None:
    # Next to a row of twice the mean weight the honest ones fill the neighbors exactly. A rest of rounding size, times
    # the square of a far distance, must not decide.
    for seed in range(10):
        X = np.concatenate([normal(12, 5, seed), np.full((8, 5), -1e60)])
        w = np.array([3, 3, *[1.0] * 6, *[1.5] * 4, *[1.5] * 8])
        scores = aggregate.krum(X, f=8, weights=w, return_info=True)[1].scores
        np.testing.assert_allclose(scores[:12], ref.krum_scores(X, neighbors=10, weights=w)[:12], rtol=1e-12)
        assert scores[:12].max() < 1e3


@pytest.mark.parametrize("dtype", DTYPES)
def test_means_of_the_largest_numbers_stay_between_them(dtype: str) -> None:
    top = np.finfo(dtype).max
    for size in range(2, 12):
        X = np.full((size, 5), top, dtype)
        X[:, 1] *= -1
        X[::2, 2] *= -1
        X[:, 3] = 3 * np.finfo(dtype).smallest_subnormal
        X[1:, 4] = 1
        mixed = [aggregate.nearest_neighbor_mixing(X, f=0)[0], ref.nearest_neighbor_mixing(X, f=0)[0]]
        mixed += [aggregate.multi_krum(X, f=0)] if size > 2 else []
        for result in mixed:
            np.testing.assert_allclose(result[:2], [top, -top], rtol=4 * np.finfo(dtype).eps)
            assert abs(result[2]) <= top / size * (1 + 1e-6)
            assert same_bits(result[3], X[0, 3])
            assert result[4] == pytest.approx(top / size, rel=1e-6)


def test_mixing_brings_rows_together() -> None:
    X = normal(20, 10)
    X[15:] = 1e6
    mixed = aggregate.nearest_neighbor_mixing(X, f=5)
    assert mixed[:15].var(axis=0).sum() < 0.2 * X[:15].var(axis=0).sum()


def test_equal_rows_have_equal_scores() -> None:
    for n in (20, 100):
        X = normal(n, 1000, 1, "float32")
        X[3] = X[n - 2] = X[0]
        _, info = aggregate.krum(X, f=3, return_info=True)
        assert len({info.scores[i] for i in (0, 3, n - 2)}) == 1
        assert info.distances[0, 3] == 0
        assert same_bits(info.distances[0], info.distances[n - 2])


# Manners


@pytest.mark.parametrize("rule", ALL_RULES)
def test_any_layout_gives_the_same_bits(rule: str) -> None:
    X = normal(12, 31)
    settings = ALL_RULES[rule](12)
    assert settings is not None
    expected = call(rule, X, **settings)
    for _, view in layouts(X):
        assert same_bits(call(rule, view, **settings), expected)


@pytest.mark.parametrize("rule", ALL_RULES)
def test_out_is_filled_and_returned(rule: str) -> None:
    X = normal(12, 31)
    settings = ALL_RULES[rule](12)
    assert settings is not None
    expected = call(rule, X, **settings)
    out = np.full(expected.shape, np.nan)
    assert call(rule, X, **settings, out=out) is out
    assert same_bits(out, expected)
    with pytest.raises(ValueError, match="out: expected shape"):
        call(rule, X, **settings, out=np.empty(3))
    with pytest.raises(TypeError, match="out: expected dtype float64, got float32"):
        call(rule, X, **settings, out=np.empty(expected.shape, np.float32))
    with pytest.raises(ValueError, match="out: overlaps an input"):
        call(rule, X, **settings, out=X[: len(expected)] if expected.ndim == 2 else X[0])


@pytest.mark.parametrize("rule", ALL_RULES)
@pytest.mark.parametrize("kind", POISONS)
def test_poisoned_rows_are_left_out(rule: str, kind: str) -> None:
    X = poisoned(np.random.default_rng(3), 15, 9, [2, 14], kind)
    settings = ALL_RULES[rule](15)
    assert settings is not None
    result, info = call(rule, X, **settings, return_info=True)
    assert info.excluded.tolist() == [2, 14]
    assert info.kept.tolist() == [i for i in range(15) if i not in (2, 14)]
    fewer = {**settings, "f": settings["f"] - 2} if "f" in settings else settings
    clean, clean_info = call(rule, X[info.kept], **fewer, return_info=True)
    assert same_bits(result, clean)
    if info.selected is not None:
        np.testing.assert_array_equal(info.selected, info.kept[clean_info.selected])
    with pytest.raises(ValueError, match=rf"{rule}: rows \[2, 14\] hold NaN or infinite values"):
        call(rule, X, **settings, nonfinite="raise")


@pytest.mark.parametrize("rule", ALL_RULES)
def test_too_many_poisoned_rows(rule: str) -> None:
    X = normal(15, 4)
    X[:14] = np.nan
    settings = ALL_RULES[rule](15)
    assert settings is not None
    if rule in ("bucketing", "clip"):
        assert len(call(rule, X, **settings)) == 1
        X[14] = np.nan
    with pytest.raises(ValueError, match=rf"{rule}: 1\d of 15 rows hold NaN or infinite values; at most \d+ can"):
        call(rule, X, **settings)


def test_propagate() -> None:
    X = normal(9, 3)
    X[0, 1] = np.nan
    take = {"nonfinite": "propagate"}
    for rule in ("krum", "multi_krum", "bulyan"):
        result, info = call(rule, X, f=1, **take, return_info=True)
        assert np.isfinite(result).all()
        assert 0 not in info.selected
        assert info.excluded.size == 0
    assert aggregate.medoid(X, **take, return_info=True)[1].selected[0] == 1 + np.argmin(
        ref.pairwise_distances(X[1:]).sum(axis=1)
    )
    assert aggregate.medoid(np.full((3, 2), np.inf), **take).tolist() == [np.inf, np.inf]
    for rule in ("meamed", "phocas"):
        assert np.isnan(call(rule, X, f=2, **take)).tolist() == [False, True, False]
    assert np.isnan(aggregate.centered_clip(X, tau=1, **take)).all()
    for settings in ({"even": "mid"}, {"f": 1}):
        rule = "median" if "even" in settings else "trimmed_mean"
        assert np.isnan(call(rule, X, **settings, weights=np.ones(9), **take)).all()
    mixed = aggregate.nearest_neighbor_mixing(X, f=2, **take)
    assert np.isnan(mixed).sum() == 1
    assert np.isnan(mixed[0, 1])
    assert np.isnan(aggregate.clip(X, max_norm=1, **take)[0]).any()
    assert np.isnan(aggregate.bucketing(X, s=9, rng=0, **take)[0, 1])


def test_sums_beyond_the_largest_number() -> None:
    X = np.full((5, 40), 1.5e308)
    X[4] = -1.5e308
    for rule in ("multi_krum", "meamed", "phocas", "krum", "medoid"):
        settings: Settings = {} if rule == "medoid" else {"f": 1}
        np.testing.assert_allclose(call(rule, X, **settings), 1.5e308, rtol=1e-12)
    np.testing.assert_allclose(aggregate.nearest_neighbor_mixing(X, f=1)[0], 1.5e308, rtol=1e-12)
    np.testing.assert_allclose(aggregate.bucketing(X[:4], s=2, rng=0), 1.5e308, rtol=1e-12)
    np.testing.assert_allclose(aggregate.centered_clip(X[:4], tau=1), 1.5e308, rtol=1e-12)
    np.testing.assert_allclose(aggregate.median(X, weights=np.ones(5)), 1.5e308)
    np.testing.assert_allclose(aggregate.trimmed_mean(X, f=1, weights=np.ones(5)), 1.5e308)


@pytest.mark.parametrize(
    ("rule", "settings", "error", "message"),
    [
        ("krum", {"f": -1}, ValueError, "f: expected an integer >= 0, got -1"),
        ("krum", {"f": 1.0}, TypeError, "f: expected an integer, got float"),
        ("krum", {"f": 4}, ValueError, "krum: f=4 is too large for n=9 workers; at most 3"),
        ("multi_krum", {"f": 4}, ValueError, "multi_krum: f=4 is too large for n=9 workers; at most 3"),
        ("bulyan", {"f": 2}, ValueError, "bulyan: f=2 is too large for n=9 workers; at most 1"),
        ("meamed", {"f": 5}, ValueError, "meamed: f=5 is too large for n=9 workers; at most 4"),
        ("phocas", {"f": 5}, ValueError, "phocas: f=5 is too large for n=9 workers; at most 4"),
        ("nearest_neighbor_mixing", {"f": 5}, ValueError, "nearest_neighbor_mixing: f=5 is too large for n=9 workers"),
        ("krum", {"f": 2, "neighbors": 7}, ValueError, r"neighbors: expected an integer in \[1, 6\], got 7"),
        ("multi_krum", {"f": 2, "m": 8}, ValueError, r"m: expected an integer in \[1, 7\], got 8"),
        ("krum", {"f": 2, "weights": [1.0]}, ValueError, r"weights: expected shape \(9,\), got \(1,\)"),
        ("medoid", {"weights": [-1.0] * 9}, ValueError, "weights: expected finite numbers >= 0, not all zero"),
        ("centered_clip", {"tau": 0}, ValueError, "tau: expected a finite number > 0.0, got 0.0"),
        ("centered_clip", {"tau": "1"}, TypeError, "tau: expected a real number, got str"),
        ("centered_clip", {"tau": 1, "n_iter": 0}, ValueError, "n_iter: expected an integer in"),
        ("centered_clip", {"tau": 1, "center": [1.0]}, ValueError, r"center: expected shape \(4,\), got \(1,\)"),
        ("centered_clip", {"tau": 1, "center": [np.nan] * 4}, ValueError, "center: expected finite numbers"),
        ("bucketing", {"s": 0, "rng": 1}, ValueError, "s: expected an integer >= 1, got 0"),
        ("bucketing", {"s": 2, "rng": None}, TypeError, "rng: expected a seed or a numpy.random.Generator .* got None"),
        ("clip", {"max_norm": -1}, ValueError, "max_norm: expected a finite number > 0.0, got -1.0"),
        ("medoid", {"nonfinite": "drop"}, ValueError, "nonfinite: expected one of exclude, raise, propagate; got"),
        ("medoid", {"threads": -1}, ValueError, "threads: expected an integer in"),
    ],
)
def test_messages(rule: str, settings: Settings, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(rule, normal(9, 4), **settings)


def test_weights_left_without_a_finite_row() -> None:
    X = normal(5, 2)
    X[0, 0] = np.nan
    w = [1.0, 0, 0, 0, 0]
    for rule, settings in (("median", {}), ("trimmed_mean", {"f": 1}), ("krum", {"f": 1}), ("medoid", {})):
        with pytest.raises(ValueError, match=f"{rule}: every finite row has weight 0"):
            call(rule, X, **settings, weights=w)


def test_weighted_rules_leave_poisoned_rows_out() -> None:
    X, w = normal(9, 4), np.arange(1.0, 10.0)
    X[4, 1] = np.inf
    kept = [0, 1, 2, 3, 5, 6, 7, 8]
    for rule, f in (("median", None), ("trimmed_mean", 2), ("krum", 2), ("multi_krum", 2), ("medoid", None)):
        settings = {} if f is None else {"f": f}
        fewer = {} if f is None else {"f": f - 1}
        result = call(rule, X, **settings, weights=w)
        np.testing.assert_allclose(result, call(rule, X[kept], **fewer, weights=w[kept]), rtol=1e-14)


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


def test_max_f_knows_every_rule() -> None:
    expected = {"krum": 4, "multi_krum": 4, "bulyan": 2, "medoid": 5, "meamed": 5, "phocas": 5, "centered_clip": 5}
    assert {rule: aggregate.max_f(rule, 11) for rule in expected} == expected
    for rule in {**aggregators.RULES, **aggregators.PRE_AGGREGATORS}:
        assert aggregate.max_f(rule, 11) >= 0
    with pytest.raises(ValueError, match="bulyan: expected at least 3 workers, got n=2"):
        aggregate.max_f("bulyan", 2)


# Objects and layers


@pytest.mark.parametrize("module", [aggregate, aggregators, layers])
def test_examples_run(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


def test_every_rule_has_a_class_and_a_name_in_the_package() -> None:
    known = {**aggregators.RULES, **aggregators.PRE_AGGREGATORS}
    functions = set(aggregate.__all__) - {"Info", "cap_weights", "max_f"}
    assert set(known) == functions
    assert functions <= set(byzadmm.__all__)
    assert {kind.__name__ for kind in known.values()} <= set(aggregators.__all__)


@pytest.mark.parametrize("rule", ALL_RULES)
def test_objects_call_the_functions(rule: str) -> None:
    X = normal(12, 5)
    settings = ALL_RULES[rule](12)
    assert settings is not None
    configured = {**aggregators.RULES, **aggregators.PRE_AGGREGATORS}[rule](**settings)
    result, info = configured(X, return_info=True, threads=1)
    assert same_bits(result, call(rule, X, **settings))
    assert isinstance(info, aggregate.Info)
    X[0] = np.nan
    with pytest.raises(ValueError, match="hold NaN"):
        type(configured)(**settings, nonfinite="raise")(X)
    with pytest.raises(AttributeError):
        configured.f = 9


def test_objects_chain() -> None:
    X = normal(12, 5)
    chained = aggregators.Krum(f=2)(aggregators.NNM(f=2)(X))
    assert same_bits(chained, aggregate.krum(aggregate.nearest_neighbor_mixing(X, f=2), f=2))


def test_flatten_and_unflatten() -> None:
    rng = np.random.default_rng(0)
    models = [[rng.standard_normal((3, 2)), rng.standard_normal(4), np.float64(i).reshape(())] for i in range(5)]
    X, shapes = byzadmm.flatten(models)
    assert X.shape == (5, 11)
    assert shapes == ((3, 2), (4,), ())
    rows = byzadmm.unflatten(X, shapes)
    for mine, model in zip(rows, models, strict=True):
        assert all(same_bits(a, b) for a, b in zip(mine, model, strict=True))
    assert np.shares_memory(rows[1][0], X)
    layer = byzadmm.unflatten(aggregate.median(X), models[0])[0]
    np.testing.assert_array_equal(layer, np.median([m[0] for m in models], axis=0))
    small, _ = byzadmm.flatten([[np.ones(2, np.float32)], [np.ones(2, np.float32)]])
    assert small.dtype == np.float32


@pytest.mark.parametrize("place", [0, 1])
def test_an_integer_counter_does_not_widen_the_layers(place: int) -> None:
    model: list[Any] = [np.full((2, 2), 0.5, np.float32)]
    model.insert(place, np.int64(7))
    X, shapes = byzadmm.flatten([model, model])
    assert X.dtype == np.float32
    assert float(byzadmm.unflatten(X[0], shapes)[place]) == 7.0
    assert byzadmm.flatten([[*model, np.ones(1)]])[0].dtype == np.float64
    assert byzadmm.flatten([[np.int64(7)]])[0].dtype == np.float64


@pytest.mark.parametrize(
    ("models", "error", "message"),
    [
        (3, TypeError, "models: expected a list of lists of arrays, got int"),
        ("ab", TypeError, "models: expected a list of lists of arrays, got str"),
        ([None], TypeError, r"models\[0\]: expected a list of arrays, got NoneType"),
        ([[np.ones(2)], 3], TypeError, r"models\[1\]: expected a list of arrays, got int"),
        ([], ValueError, "models: expected at least one worker and one layer"),
        ([[]], ValueError, "models: expected at least one worker and one layer"),
        ([[np.ones(2)], []], ValueError, r"models\[1\]: expected 1 layers, got 0"),
        ([[np.ones(2)], [np.ones(3)]], ValueError, r"models\[1\]\[0\]: expected shape \(2,\), got \(3,\)"),
        ([[np.ones(2)], [np.ones(2, complex)]], TypeError, r"models\[1\]\[0\]: expected real numbers"),
    ],
)
def test_flatten_messages(models: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        byzadmm.flatten(models)


def test_layers_may_come_one_by_one(torch: Any) -> None:
    model = torch.nn.Linear(2, 3)
    X, shapes = byzadmm.flatten([(layer.detach() for layer in model.parameters()) for _ in range(2)])
    assert isinstance(X, torch.Tensor)
    assert X.shape == (2, 9)
    assert shapes == ((3, 2), (3,))
    with pytest.raises(ValueError, match=r"^models\[0\]\[0\]: the tensor requires grad"):
        byzadmm.flatten([model.parameters()])


@pytest.mark.parametrize(
    ("shapes", "error", "message"),
    [
        ([2], TypeError, r"shapes\[0\]: expected a shape, or an array that has one, got int"),
        (2, TypeError, "shapes: expected a list of shapes, got int"),
        ([(1,), (1.5,)], TypeError, r"shapes\[1\]: expected an integer, got float"),
        ([(-1, -2)], ValueError, r"shapes\[0\]: expected an integer >= 0, got -1"),
    ],
)
def test_shapes_are_checked(shapes: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        byzadmm.unflatten(np.ones(2), shapes)


def test_unflatten_messages() -> None:
    with pytest.raises(ValueError, match=r"x: expected shape \(3,\) or \(n, 3\), got \(4,\)"):
        byzadmm.unflatten(np.ones(4), [(1, 2), (1,)])


def test_torch_tensors_stay_tensors() -> None:
    torch = pytest.importorskip("torch")
    X = torch.randn(9, 4, dtype=torch.float64)
    result = aggregate.krum(X, f=2)
    assert isinstance(result, torch.Tensor)
    assert result.dtype == torch.float64
    assert aggregate.nearest_neighbor_mixing(X, f=2).shape == (9, 4)
    flat, shapes = byzadmm.flatten([[torch.ones(2, 2), torch.zeros(1)]] * 3)
    assert isinstance(flat, torch.Tensor)
    assert byzadmm.unflatten(flat[0], shapes)[0].shape == (2, 2)


# The native side checks memory


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
