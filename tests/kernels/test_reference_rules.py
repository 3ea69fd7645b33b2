"""Twins of the rules against exact arithmetic, NumPy, SciPy and the optimality condition."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import optimize, stats

import byzadmm.reference as ref
from byzadmm.reference import geometric
from support.arrays import awkward, same_bits

Array = npt.NDArray[Any]

DTYPES = ("float32", "float64")
INPUTS = [pytest.param(X, id=f"{dtype}-{label}") for dtype in DTYPES for label, X in awkward(dtype)]


# Mean, median, trimmed mean


def exact_mean(X: Array, weights: Array | None = None) -> Array:
    w = [Fraction(1)] * len(X) if weights is None else [Fraction(float(v)) for v in weights]
    columns = [sum(a * Fraction(float(v)) for a, v in zip(w, column, strict=True)) / sum(w) for column in X.T]
    return np.array([float(c) for c in columns])


def headroom(X: Array) -> int:
    """Bits to take off so that the sums of NumPy and SciPy stay finite; none where they could vanish."""
    return 10 if np.abs(X).max() > 1 else 0


@pytest.mark.parametrize("X", INPUTS)
def test_mean_matches_exact_arithmetic(X: Array) -> None:
    columns = slice(0, 9)
    weights = np.random.default_rng(6).integers(1, 5, len(X)).astype(np.float64)
    for w in (None, weights):
        got = ref.mean(X, weights=w)
        assert got.dtype == X.dtype
        assert got.shape == X.shape[1:]
        scale = np.abs(X[:, columns].astype(np.float64)).max(axis=0)
        info = np.finfo(X.dtype)
        # float64 may be a rounding per row away, float32 is rounded once.
        slack = (2 * len(X) * np.finfo(np.float64).eps + info.eps) * scale + float(info.smallest_subnormal)
        assert (np.abs(got[columns].astype(np.float64) - exact_mean(X[:, columns], w)) <= slack).all()


@pytest.mark.parametrize("X", INPUTS)
def test_median_is_that_of_numpy(X: Array) -> None:
    ordered = np.sort(X, axis=0)
    low, high = ordered[(len(X) - 1) // 2], ordered[len(X) // 2]
    got = ref.median(X)
    bits = headroom(X)
    expected = np.ldexp(np.median(np.ldexp(X.astype(np.float64), -bits), axis=0), bits)
    np.testing.assert_allclose(got, expected.astype(X.dtype), rtol=2 * np.finfo(X.dtype).eps, atol=0)
    assert ((low <= got) & (got <= high)).all()
    np.testing.assert_array_equal(ref.median(X, even="low"), low)
    np.testing.assert_array_equal(ref.median(X, even="high"), high)
    assert got.dtype == X.dtype


@pytest.mark.parametrize("X", INPUTS)
def test_trimmed_mean_is_that_of_scipy(X: Array) -> None:
    n, bits = len(X), headroom(X)
    for f in sorted({0, min(1, (n - 1) // 2), (n - 1) // 2}):
        got = ref.trimmed_mean(X, f=f)
        # The excess keeps int(f/n * n) from falling to f - 1.
        expected = stats.trim_mean(np.ldexp(X.astype(np.float64), -bits), (f + 0.25) / n, axis=0)
        kept = np.sort(np.abs(X.astype(np.float64)), axis=0)[n - 1 - f]
        slack = (2 * n * np.finfo(np.float64).eps + np.finfo(X.dtype).eps) * kept + float(
            np.finfo(X.dtype).smallest_subnormal
        )
        assert (np.abs(got.astype(np.float64) - np.ldexp(expected, bits)) <= slack).all()
        assert got.dtype == X.dtype


def test_rules_near_the_largest_float() -> None:
    X = np.array([[1.7e308, -1.7e308], [1.6e308, 1.7e308]])
    for rule in (ref.mean, ref.median, lambda a: ref.trimmed_mean(a, f=0), ref.geometric_median):
        np.testing.assert_allclose(rule(X), [1.65e308, 0.0], rtol=1e-15)
    single = np.full((3, 2), 3.4e38, np.float32)
    assert same_bits(ref.mean(single), single[0])
    assert same_bits(ref.geometric_median(single), single[0])


def test_median_of_two_subnormals_is_not_halved_to_nothing() -> None:
    tiny = np.finfo(np.float64).smallest_subnormal
    assert ref.median([[tiny], [tiny]]).tolist() == [tiny]
    assert ref.median([[tiny], [3 * tiny]]).tolist() == [2 * tiny]


def test_trimmed_mean_is_not_a_sum_less_its_extremes() -> None:
    assert ref.trimmed_mean([[1e30], [1.0], [2.0], [3.0], [-1e20]], f=1).tolist() == [2.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: ref.median(X, even="both"), "even: expected one of mid, low, high; got 'both'"),
        (lambda X: ref.trimmed_mean(X, f=2), r"f: expected an integer in \[0, 1\], got 2"),
        (lambda X: ref.trimmed_mean(X, f=-1), r"f: expected an integer in \[0, 1\], got -1"),
        (lambda X: ref.mean(X, weights=[1.0]), r"weights: expected shape \(4,\), got \(1,\)"),
        (lambda X: ref.mean(X, weights=[0.0] * 4), "weights: expected finite numbers >= 0 with a positive sum, got"),
        (lambda X: ref.mean(X, weights=[1.0, 1.0, 1.0, -1.0]), "weights: expected finite numbers >= 0"),
        (lambda X: ref.geometric_median(X, weights=[1.0, 1.0, 1.0, np.inf]), "weights: expected finite numbers >= 0"),
    ],
)
def test_rules_refuse_wrong_values(call: Callable[[Array], Array], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(np.zeros((4, 2)))


# Geometric median


def objective(X: Array, z: Array, w: Array | None = None) -> float:
    distance = np.linalg.norm(X - z, axis=1)
    return float(distance.sum() if w is None else w @ distance)


@pytest.mark.parametrize("X", INPUTS)
def test_geometric_median_meets_its_optimality_condition(X: Array) -> None:
    z = ref.geometric_median(X)
    assert z.dtype == X.dtype
    # Rounding z itself moves every unit vector by about eps |z| / distance, which no algorithm can undo.
    wide, point = X.astype(np.float64), z.astype(np.float64)
    exponent = -int(np.frexp(np.abs(wide).max())[1])
    rows, center = np.ldexp(wide, exponent), np.ldexp(point, exponent)
    distance = np.linalg.norm(rows - center, axis=1)
    nearest = distance[distance > 0].min(initial=np.inf)
    smallest = np.ldexp(float(np.finfo(X.dtype).smallest_subnormal), exponent) * np.sqrt(X.shape[1])
    rounding = np.finfo(X.dtype).eps * np.linalg.norm(center) + smallest
    assert ref.geometric_median_residual(X, z) <= 1.01e-6 + 2 * rounding / nearest


@pytest.mark.parametrize("seed", range(12))
def test_geometric_median_is_the_minimizer_scipy_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((int(rng.integers(3, 12)), int(rng.integers(2, 5))))
    w = rng.uniform(0.5, 2.0, len(X)) if seed % 2 else None
    z = ref.geometric_median(X, weights=w, tol=1e-12)
    found = optimize.minimize(
        lambda p: objective(X, p, w),
        X.mean(axis=0),
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 20_000, "maxfev": 20_000},
    )
    assert objective(X, z, w) <= found.fun * (1 + 1e-14)
    np.testing.assert_allclose(z, found.x, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_geometric_median_has_no_scale_and_follows_shifts(scale: float) -> None:
    X = np.random.default_rng(8).standard_normal((9, 4))
    z = ref.geometric_median(X, tol=1e-13)
    np.testing.assert_allclose(ref.geometric_median(X * scale, tol=1e-13), z * scale, rtol=1e-11)
    np.testing.assert_allclose(ref.geometric_median(X + 5.0, tol=1e-13), z + 5.0, rtol=1e-11)
    # Trap 9: an outlier moves the mean by scale * 1e5 and the geometric median by little.
    spoiled = np.concatenate([X, np.full((1, 4), 1e6)]) * scale
    assert np.linalg.norm(ref.geometric_median(spoiled) - z * scale) < 1.0 * scale


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1.0, 1e12, 1e300])
def test_geometric_median_is_exact_at_rows(scale: float) -> None:
    line = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]) * scale
    assert same_bits(ref.geometric_median(line), line[1])
    cross = np.array([[1.0, 0.0], [-1.0, 0.0], [0.1, 0.2], [0.1, 3.0], [0.1, -2.0]]) * scale
    X = np.concatenate([cross, cross[2:3]])
    assert same_bits(ref.geometric_median(X), cross[2])
    assert ref.geometric_median_residual(X, cross[2]) == 0.0
    majority = np.random.default_rng(9).standard_normal((7, 5)) * scale
    majority[3:] = majority[3]
    assert same_bits(ref.geometric_median(majority), majority[3])


def test_geometric_median_where_it_is_not_unique_is_the_midpoint() -> None:
    np.testing.assert_array_equal(ref.geometric_median([[0.0, 2.0], [1.0, 4.0]]), [0.5, 3.0])
    np.testing.assert_array_equal(ref.geometric_median([[0.0, 2.0], [1.0, 4.0]], weights=[2.0, 1.0]), [0.0, 2.0])
    np.testing.assert_array_equal(
        ref.geometric_median([[0.0, 2.0], [9.0, 9.0], [1.0, 4.0]], weights=[1, 0, 1]), [0.5, 3.0]
    )
    np.testing.assert_array_equal(ref.geometric_median([[0.0], [3.0], [10.0], [4.0]]), [3.5])
    np.testing.assert_array_equal(ref.geometric_median([[0.0], [0.0], [3.0], [3.0]]), [1.5])


def test_geometric_median_weights_are_repetitions() -> None:
    rng = np.random.default_rng(10)
    X, w = rng.standard_normal((6, 3)), np.array([1, 2, 0, 1, 1, 2])
    got = ref.geometric_median(X, weights=w, tol=1e-13)
    np.testing.assert_allclose(got, ref.geometric_median(np.repeat(X, w, axis=0), tol=1e-13), atol=1e-11)
    np.testing.assert_allclose(got, ref.geometric_median(X, weights=w * 1e307, tol=1e-13), atol=1e-11)


@pytest.mark.parametrize("gap", [1e-2, 1e-4])
def test_geometric_median_close_to_a_row_is_reached(gap: float) -> None:
    # Weiszfeld's map alone contracts by about 1 - gap here.
    angle = np.deg2rad([0.0, 120.0, 240.0])
    X = np.concatenate([np.stack([np.cos(angle), np.sin(angle)], axis=1) * [1.0, 1.0], [[2.0, 0.0]], [[0.0, 0.0]]])
    w = np.array([1.0, 1.0, 1.0, 1.0 + gap, 1.0])
    z = ref.geometric_median(X, weights=w, tol=1e-13)
    assert 0.1 * gap < np.linalg.norm(z) < 10 * gap
    assert ref.geometric_median_residual(X, z, w) < 1e-12


def test_geometric_median_of_nearly_collinear_rows_and_of_a_far_tight_group() -> None:
    rng = np.random.default_rng(11)
    X = rng.standard_normal((8, 6)) * 10.0 ** np.array([8, 3, 0, -2, -5, -8])
    assert ref.geometric_median_residual(X, ref.geometric_median(X)) <= 1e-6
    far = 1.0 + np.ldexp(rng.integers(-99, 100, (7, 3)).astype(np.float64), -40)
    z = ref.geometric_median(far, tol=1e-10)
    near = ref.geometric_median(far - 1.0, tol=1e-10)
    np.testing.assert_allclose(z - 1.0, near, rtol=0, atol=1.2e-16)


def test_geometric_median_stops_at_max_iter_and_at_rounding() -> None:
    X = np.random.default_rng(12).standard_normal((9, 4))
    start = ref.geometric_median(X, max_iter=0)
    assert any(same_bits(start, row) for row in X)
    residuals = [ref.geometric_median_residual(X, ref.geometric_median(X, max_iter=k, tol=0.0)) for k in (0, 1, 40)]
    assert residuals[0] > residuals[1] > residuals[2]
    assert residuals[2] < 1e-14


@pytest.mark.parametrize("line", [[-1.0, 1.0], [-1.0, 1.0, 2.0], [-3.0, -1.0, 1.0, 5.0, 9.0], [1e-9, 1.0, -7.0]])
def test_newton_step_without_curvature_is_none_or_goes_down(line: list[float]) -> None:
    X, w, z = np.array(line)[:, None], np.ones(len(line)), np.zeros(1)
    step = geometric._newton_step(X, z, w, geometric._Pull(X, z, w))
    assert step is None or objective(X, z + step) <= objective(X, z)


def test_newton_step_is_none_where_it_is_not_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    X, w, z = np.array([[1.0, 0.0], [0.0, 1.0], [-2.0, 1.0]]), np.ones(3), np.zeros(2)
    here = geometric._Pull(X, z, w)
    assert geometric._newton_step(X, z, w, here) is not None
    monkeypatch.setattr(np.linalg, "solve", lambda a, b: np.full_like(b, np.inf))
    with np.errstate(invalid="ignore"):
        assert geometric._newton_step(X, z, w, here) is None


def test_geometric_median_residual_by_hand() -> None:
    X = [[0.0, 0.0], [3.0, 4.0], [-3.0, 4.0]]
    # Unit vectors (0.6, 0.8) and (-0.6, 0.8) add up to 1.6, the row itself counts 1.
    assert ref.geometric_median_residual(X, [0.0, 0.0]) == pytest.approx(0.6 / 3, rel=1e-15)
    assert ref.geometric_median_residual(X, [0.0, 0.0], [2.0, 1.0, 1.0]) == 0.0
    assert ref.geometric_median_residual(X, [0.0, 4.0]) == pytest.approx(1 / 3, rel=1e-15)
