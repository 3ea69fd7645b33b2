"""Properties of the rules: order, shift, scale, repeated rows, a corrupted minority, the ends of the range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byzadmm import aggregate, aggregators, reference
from support.arrays import same_bits
from support.rules import ALL_RULES, apply, assert_near, middle, normal, settings_for

Array = npt.NDArray[Any]
Settings = dict[str, Any]

DTYPES = ("float32", "float64")
quick = hypothesis.settings(max_examples=60, deadline=None, derandomize=True)
matrices = st.tuples(st.integers(1, 40), st.integers(1, 9), st.integers(0, 2**32 - 1), st.sampled_from(DTYPES))
RULES: dict[str, Callable[..., Any]] = {
    "mean": aggregate.mean,
    "median": aggregate.median,
    "trimmed_mean": lambda X, **options: aggregate.trimmed_mean(X, f=options.pop("f", 2), **options),
    "geometric_median": aggregate.geometric_median,
}
every_rule = pytest.mark.parametrize("name", list(RULES))


def objective(X: Array, z: Array) -> float:
    P, q = X.astype(np.float64), z.astype(np.float64)
    unit = max(float(np.abs(P).max()), np.finfo(np.float64).tiny)
    return float(np.linalg.norm(P / unit - q / unit, axis=1).sum())


def draw_matrix(shape: tuple[int, int, int, str]) -> Array:
    n, d, seed, dtype = shape
    rng = np.random.default_rng(seed)
    values = rng.integers(-8, 9, (n, d)) if seed % 2 else rng.standard_normal((n, d))
    return values.astype(dtype)


@every_rule
@quick
@given(shape=matrices)
def test_worker_order_is_irrelevant(name: str, shape: tuple[int, int, int, str]) -> None:
    X = draw_matrix(shape)
    f = {"f": (len(X) - 1) // 2} if name == "trimmed_mean" else {}
    a = RULES[name](X, **f)
    b = RULES[name](X[np.random.default_rng(shape[2]).permutation(len(X))], **f)
    if name == "median":
        assert same_bits(a + 0.0, b + 0.0)
    else:
        # Any point of a segment may be the geometric median of an even number of rows on a line.
        if name == "geometric_median" and (len(X) % 2 == 0 and X.shape[1] == 1):
            assert objective(X, a) == pytest.approx(objective(X, b), rel=1e-5)
            return
        np.testing.assert_allclose(a, b, atol=2e-4 if name == "geometric_median" else 1e-5)


@every_rule
@quick
@given(shape=matrices, shift=st.integers(-64, 64))
def test_a_common_shift_shifts_the_result(name: str, shape: tuple[int, int, int, str], shift: int) -> None:
    X = draw_matrix(shape)
    f = {"f": (len(X) - 1) // 3} if name == "trimmed_mean" else {}
    a, b = RULES[name](X, **f), RULES[name](X + np.asarray(shift, X.dtype), **f)
    tolerance = 2e-3 if name == "geometric_median" else 1e-4
    np.testing.assert_allclose(b - np.asarray(shift, X.dtype), a, atol=tolerance)


@every_rule
@quick
@given(shape=matrices, power=st.integers(-60, 60), negative=st.booleans())
def test_a_common_factor_scales_the_result(
    name: str, shape: tuple[int, int, int, str], power: int, negative: bool
) -> None:
    """By a power of two the arithmetic is exact, so only the sign may move a bit, and only through an even middle."""
    X = draw_matrix(shape)
    f = {"f": (len(X) - 1) // 3} if name == "trimmed_mean" else {}
    factor = np.asarray((-1.0 if negative else 1.0) * 2.0**power, X.dtype)
    a, b = RULES[name](X, **f), RULES[name](X * factor, **f)
    np.testing.assert_allclose(b / factor, a, rtol=1e-5, atol=2e-4 if name == "geometric_median" else 1e-6)
    if not negative and name != "geometric_median":
        assert same_bits(b, a * factor)


@every_rule
@quick
@given(shape=matrices, copies=st.integers(2, 5))
def test_equal_rows_give_that_row(name: str, shape: tuple[int, int, int, str], copies: int) -> None:
    row = draw_matrix(shape)[:1]
    X = np.repeat(row, copies, axis=0)
    got = RULES[name](X, **({"f": (copies - 1) // 2} if name == "trimmed_mean" else {}))
    np.testing.assert_allclose(got, row[0], rtol=2 * float(np.finfo(row.dtype).eps))
    if name != "mean":
        assert same_bits(got + 0.0, row[0] + 0.0)


@every_rule
@quick
@given(shape=matrices, which=st.integers(0, 39))
def test_a_repeated_row_counts_twice(name: str, shape: tuple[int, int, int, str], which: int) -> None:
    X = draw_matrix(shape)
    row = which % len(X)
    doubled = np.concatenate([X, X[row : row + 1]])
    if name in ("mean", "geometric_median"):
        weights = np.ones(len(X))
        weights[row] = 2.0
        a, b = RULES[name](X, weights=weights), RULES[name](doubled)
        assert objective(doubled, a) == pytest.approx(objective(doubled, b), rel=1e-4, abs=1e-5)
        if name == "mean":
            np.testing.assert_allclose(a, b, atol=1e-5)
    elif name == "median":
        np.testing.assert_array_equal(RULES[name](doubled), middle(doubled, "mid"))
    else:
        f = (len(doubled) - 1) // 2
        assert_near(aggregate.trimmed_mean(doubled, f=f), reference.trimmed_mean(doubled, f=f), doubled)


@pytest.mark.parametrize("name", ["median", "trimmed_mean"])
@quick
@given(
    shape=matrices,
    attackers=st.integers(0, 20),
    forged=st.sampled_from([1e30, -1e30, 0.0, float("nan"), float("inf"), float("-inf"), 3e38]),
)
def test_few_corrupted_rows_stay_inside_the_hull_of_the_rest(
    name: str, shape: tuple[int, int, int, str], attackers: int, forged: float
) -> None:
    X = draw_matrix(shape)
    f = min(attackers, (len(X) - 1) // 2)
    rows = np.random.default_rng(shape[2]).permutation(len(X))
    X[rows[:f]] = forged
    honest = X[rows[f:]]
    got = RULES[name](X, **({"f": f} if name == "trimmed_mean" else {}))
    slack = 4 * np.finfo(X.dtype).eps * np.abs(honest).max(axis=0)  # a mean of equal values may round
    assert (got >= honest.min(axis=0) - slack).all()
    assert (got <= honest.max(axis=0) + slack).all()


@every_rule
def test_the_largest_floats_do_not_overflow(name: str, dtype: str) -> None:
    top = np.finfo(dtype).max
    for n in (*range(5, 70), 100, 257):
        X = np.full((n, 3), top, dtype)
        X[0, 1], X[1, 2] = -top, top / 2
        for policy in ("exclude", "raise", "propagate"):
            got = RULES[name](X, nonfinite=policy)
            assert np.isfinite(got).all(), f"n={n} {policy}"
            assert got[0] == top or (name == "mean" and got[0] >= top * (1 - 8 * float(np.finfo(dtype).eps)))
        assert RULES[name](-X)[0] == -RULES[name](X)[0]


@every_rule
def test_subnormals_are_neither_flushed_nor_rounded_away(name: str, dtype: str) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    X = np.arange(-3, 4)[:, None].astype(dtype) * np.array([[8, 16, 24]], dtype) * tiny + 2 * tiny
    got = RULES[name](X)
    assert got.tolist() == [float(2 * tiny)] * 3


@pytest.mark.parametrize("rule", [r for r in ALL_RULES if r not in ("bucketing", "mda", "resampling")])
def test_order_of_the_rows_does_not_matter(rule: str) -> None:
    X = normal(15, 33, 1)
    order = np.random.default_rng(2).permutation(15)
    settings = settings_for(rule, 15)
    assert settings is not None
    plain = apply(rule, X, **settings)
    if "pivot" in settings:
        settings["pivot"] = int(np.flatnonzero(order == settings["pivot"])[0])
    moved = apply(rule, X[order], **settings)
    expected = plain[order] if rule in aggregators.PRE_AGGREGATORS else plain
    np.testing.assert_allclose(moved, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("rule", [r for r in ALL_RULES if r not in ("arc", "cge", "clip", "sign_majority")])
def test_a_shift_shifts_and_a_scale_scales(rule: str) -> None:
    X = normal(15, 33, 3)
    settings = settings_for(rule, 15)
    assert settings is not None
    plain = apply(rule, X, **settings)
    np.testing.assert_allclose(apply(rule, X + 7.0, **settings), plain + 7.0, rtol=1e-12)
    if rule == "centered_clip":
        settings["tau"] *= 2.0**40
    for power in (40, -40) if rule != "centered_clip" else (40,):
        np.testing.assert_allclose(apply(rule, X * 2.0**power, **settings), plain * 2.0**power, rtol=1e-12)
    np.testing.assert_allclose(
        apply(rule, -X, **(settings_for(rule, 15) or {})), -plain, rtol=1e-12, err_msg="a mirror image"
    )


@pytest.mark.parametrize("rule", [rule for rule in aggregators.RULES if rule != "mean"])
@pytest.mark.parametrize("forged", [1e3, 1e9, 1e300])
@pytest.mark.parametrize("n", [11, 20])
def test_the_largest_legal_minority_moves_it_little(rule: str, forged: float, n: int) -> None:
    f = aggregate.max_f(rule, n)
    X = normal(n, 12, 7) + 3.0
    X[n - f :] = forged
    settings: Settings = {"tau": 1.0, "n_iter": 20} if rule == "centered_clip" else settings_for(rule, n) or {}
    settings |= {"pivot": 0} if "pivot" in settings else {}
    settings |= {"f": f} if "f" in settings else {}
    honest = X[: n - f]
    result = apply(rule, X, **settings)
    center = honest.mean(axis=0)
    assert np.linalg.norm(result - center) <= 2.5 * np.linalg.norm(honest - center, axis=1).max()


def test_sums_beyond_the_largest_number() -> None:
    X = np.full((5, 40), 1.5e308)
    X[4] = -1.5e308
    for rule in ("multi_krum", "meamed", "phocas", "krum", "medoid"):
        settings: Settings = {} if rule == "medoid" else {"f": 1}
        np.testing.assert_allclose(apply(rule, X, **settings), 1.5e308, rtol=1e-12)
    np.testing.assert_allclose(aggregate.nearest_neighbor_mixing(X, f=1)[0], 1.5e308, rtol=1e-12)
    np.testing.assert_allclose(aggregate.bucketing(X[:4], s=2, rng=0), 1.5e308, rtol=1e-12)
    np.testing.assert_allclose(aggregate.centered_clip(X[:4], tau=1), 1.5e308, rtol=1e-12)
    np.testing.assert_allclose(aggregate.median(X, weights=np.ones(5)), 1.5e308)
    np.testing.assert_allclose(aggregate.trimmed_mean(X, f=1, weights=np.ones(5)), 1.5e308)


@pytest.mark.parametrize("dtype", DTYPES)
def test_means_of_the_largest_numbers_stay_between_them(dtype: str) -> None:
    top = np.finfo(dtype).max
    for size in range(2, 12):
        X = np.full((size, 5), top, dtype)
        X[:, 1] *= -1
        X[::2, 2] *= -1
        X[:, 3] = 3 * np.finfo(dtype).smallest_subnormal
        X[1:, 4] = 1
        mixed = [aggregate.nearest_neighbor_mixing(X, f=0)[0], reference.nearest_neighbor_mixing(X, f=0)[0]]
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
