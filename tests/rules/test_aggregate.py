"""The robust rules against their NumPy twin, then their properties, then what hostile and wrong input meets."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

import byzadmm
from byzadmm import aggregate, reference
from support.arrays import POISONS, awkward, conversions, layouts, poisoned, same_bits
from support.exact import geometric_median_excess, geometric_median_residual

Array = npt.NDArray[Any]

DTYPES = ("float32", "float64")
INPUTS = [pytest.param(X, id=f"{dtype}-{label}") for dtype in DTYPES for label, X in awkward(dtype)]
# Around the unrolled networks (8 or 20 rows), the table of exchanges (64) and selection by counting beyond.
COUNTS = (1, 2, 3, 7, 8, 9, 10, 19, 20, 21, 22, 63, 64, 65, 66, 257, 2000)
RULES: dict[str, Callable[..., Any]] = {
    "mean": aggregate.mean,
    "median": aggregate.median,
    "trimmed_mean": lambda X, **options: aggregate.trimmed_mean(X, f=options.pop("f", 2), **options),
    "geometric_median": aggregate.geometric_median,
}
ROBUST = [name for name in RULES if name != "mean"]

every_rule = pytest.mark.parametrize("name", list(RULES))
every_robust_rule = pytest.mark.parametrize("name", ROBUST)
quick = settings(max_examples=60, deadline=None, derandomize=True)


def middle(X: Array, even: str) -> Array:
    """The median by sorting alone; halves are added, so that nothing overflows."""
    ordered = np.sort(X, axis=0)
    low, high = ordered[(len(X) - 1) // 2], ordered[len(X) // 2]
    if even == "mid" and len(X) % 2 == 0:
        with np.errstate(over="ignore"):
            whole = (low + high) / 2
        return np.where(np.isfinite(whole), whole, low / 2 + high / 2).astype(X.dtype)
    return high if even == "high" else low


def assert_near(got: Array, expected: Array, X: Array, ulps: float = 4) -> None:
    """Within a few roundings of the largest value of each column."""
    assert got.dtype == expected.dtype
    bound = ulps * np.finfo(got.dtype).eps * np.abs(X).max(axis=0).astype(np.float64)
    bound += 4 * float(np.finfo(got.dtype).smallest_subnormal)
    with np.errstate(over="ignore"):
        off = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    assert (off <= bound).all(), f"off by {off.max()} where {bound[off.argmax()]} is allowed"


# Against the twin


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


def objective(X: Array, z: Array) -> float:
    P, q = X.astype(np.float64), z.astype(np.float64)
    unit = max(float(np.abs(P).max()), np.finfo(np.float64).tiny)
    return float(np.linalg.norm(P / unit - q / unit, axis=1).sum())


@pytest.mark.parametrize("X", INPUTS)
def test_geometric_median_is_a_minimizer(X: Array) -> None:
    assert_minimizer(X)
    expected = reference.geometric_median(X)
    assert expected.dtype == X.dtype
    assert geometric_median_excess(X, expected) <= 1e-6


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
def test_columns_do_not_see_their_neighbours(name: str, d: int, dtype: str) -> None:
    """The same column gives the same bits wherever it stands (tile - 1, tile, tile + 1 of every kernel)."""
    X = np.random.default_rng(d).standard_normal((21, d)).astype(dtype)
    whole = RULES[name](X)
    for j in sorted({0, d // 2, d - 1}):
        assert same_bits(whole[j : j + 1], RULES[name](np.ascontiguousarray(X[:, j : j + 1])))
    shifted = RULES[name](np.concatenate([X[:, :1], X], axis=1))
    assert same_bits(shifted[1:], whole)


@every_rule
def test_results_do_not_depend_on_alignment(name: str, dtype: str) -> None:
    X = np.random.default_rng(3).standard_normal((9, 131)).astype(dtype)
    expected = RULES[name](X)
    for offset in range(1, 9):
        memory = np.empty(X.size + offset, dtype)
        view = memory[offset:].reshape(X.shape)
        view[...] = X
        assert same_bits(RULES[name](view), expected)


# Kinds of input


@every_rule
def test_rules_do_not_see_the_layout(name: str, dtype: str) -> None:
    X = np.random.default_rng(2).standard_normal((9, 17)).astype(dtype)
    expected = RULES[name](X)
    for label, view in layouts(X):
        got = RULES[name](view)
        if label == "list of lists":  # Python floats are float64
            assert same_bits(got, RULES[name](X.astype(np.float64))), label
        else:
            assert same_bits(got, expected), label


@every_rule
@pytest.mark.parametrize("X", [pytest.param(X, id=label) for label, X in conversions()])
def test_other_real_types_are_computed_in_a_native_one(name: str, X: Array) -> None:
    half = X.dtype == np.float16
    settings = {"f": 1} if name == "trimmed_mean" else {}
    computed = RULES[name](X.astype(np.float32 if half else np.float64), **settings)
    assert same_bits(RULES[name](X, **settings), computed.astype(np.float16) if half else computed)


@every_rule
def test_lists_of_mixed_dtypes_are_computed_in_the_wider_one(name: str) -> None:
    X = np.random.default_rng(5).standard_normal((7, 5)).astype(np.float32)
    mixed = [row.astype(np.float64) if i % 2 else row for i, row in enumerate(X)]
    assert same_bits(RULES[name](mixed), RULES[name](X.astype(np.float64)))
    assert same_bits(RULES[name](tuple(X)), RULES[name](X))


@every_rule
def test_torch_tensors_in_torch_tensors_out(name: str, dtype: str, torch: Any) -> None:
    X = np.random.default_rng(6).standard_normal((7, 5)).astype(dtype)
    got = RULES[name](torch.from_numpy(X))
    assert isinstance(got, torch.Tensor)
    assert same_bits(got.numpy(), RULES[name](X))
    assert isinstance(RULES[name]([torch.from_numpy(row) for row in X]), torch.Tensor)
    out = torch.empty(5, dtype=got.dtype)
    assert RULES[name](torch.from_numpy(X), out=out) is out
    assert same_bits(out.numpy(), got.numpy())
    with pytest.raises(ValueError, match=r"X: the tensor requires grad; pass X.detach\(\)"):
        RULES[name](torch.from_numpy(X).requires_grad_())


# Properties


matrices = st.tuples(st.integers(1, 40), st.integers(1, 9), st.integers(0, 2**32 - 1), st.sampled_from(DTYPES))


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
    liars=st.integers(0, 20),
    lie=st.sampled_from([1e30, -1e30, 0.0, float("nan"), float("inf"), float("-inf"), 3e38]),
)
def test_few_corrupted_rows_stay_inside_the_hull_of_the_rest(
    name: str, shape: tuple[int, int, int, str], liars: int, lie: float
) -> None:
    X = draw_matrix(shape)
    f = min(liars, (len(X) - 1) // 2)
    rows = np.random.default_rng(shape[2]).permutation(len(X))
    X[rows[:f]] = lie
    honest = X[rows[f:]]
    got = RULES[name](X, **({"f": f} if name == "trimmed_mean" else {}))
    slack = 4 * np.finfo(X.dtype).eps * np.abs(honest).max(axis=0)  # a mean of equal values may round
    assert (got >= honest.min(axis=0) - slack).all()
    assert (got <= honest.max(axis=0) + slack).all()


# Geometric median


def test_geometric_median_against_a_general_minimiser() -> None:
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


def test_mean_weights_may_have_any_unit() -> None:
    X = np.random.default_rng(15).standard_normal((9, 7))
    weights = np.random.default_rng(16).integers(1, 100, 9).astype(np.float64)
    expected = aggregate.mean(X, weights=weights)
    for unit in (2.0**-1074, 2.0**-500, 2.0**500, 2.0**1010):
        np.testing.assert_allclose(aggregate.mean(X, weights=weights * unit), expected, rtol=1e-12)


# Hostile numbers


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


@every_rule
def test_subnormals_are_neither_flushed_nor_rounded_away(name: str, dtype: str) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    X = np.arange(-3, 4)[:, None].astype(dtype) * np.array([[8, 16, 24]], dtype) * tiny + 2 * tiny
    got = RULES[name](X)
    assert got.tolist() == [float(2 * tiny)] * 3


def test_median_of_two_subnormals_keeps_the_last_bit(dtype: str) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    assert aggregate.median(np.array([[tiny], [3 * tiny]], dtype)).tolist() == [float(2 * tiny)]


@every_rule
@pytest.mark.parametrize("kind", POISONS)
@pytest.mark.parametrize("n", [5, 11, 30, 100])
def test_nonfinite_rows_are_left_out(name: str, kind: str, n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    rows = sorted(rng.permutation(n)[: (n - 1) // 3].tolist())
    X = poisoned(rng, n, 33, rows, kind, dtype)
    before = X.copy()
    f = {"f": (n - 1) // 2} if name == "trimmed_mean" else {}
    got, info = RULES[name](X, return_info=True, **f)
    rest = np.delete(X, rows, axis=0)
    clean = {"f": (n - 1) // 2 - len(rows)} if name == "trimmed_mean" else {}
    assert same_bits(got, RULES[name](rest, **clean))
    assert info.excluded.tolist() == rows
    assert info.kept.tolist() == [i for i in range(n) if i not in rows]
    assert info.kept.dtype == info.excluded.dtype == np.int64
    assert same_bits(X, before)


@every_rule
def test_nonfinite_raise_names_the_rows(name: str, dtype: str) -> None:
    X = np.zeros((20, 3), dtype)
    X[[2, 7], 1] = np.nan, np.inf
    with pytest.raises(ValueError, match=rf"^{name}: rows \[2, 7\] hold NaN or infinite values$"):
        RULES[name](X, nonfinite="raise")
    X[[3, 4, 5, 6, 8]] = -np.inf
    with pytest.raises(ValueError, match=rf"^{name}: rows \[2, 3, 4, 5, 6\] and 2 more hold NaN or infinite values$"):
        RULES[name](X, nonfinite="raise")
    clean = np.ones((4, 3), dtype)
    assert RULES[name](clean, nonfinite="raise", **({"f": 1} if name == "trimmed_mean" else {})).tolist() == [1.0] * 3


@pytest.mark.parametrize(
    ("name", "bearable"), [("mean", 10), ("median", 5), ("trimmed_mean", 2), ("geometric_median", 5)]
)
def test_more_nonfinite_rows_than_the_rule_bears(name: str, bearable: int) -> None:
    X = np.ones((11, 3))
    X[:bearable] = np.nan
    assert RULES[name](X).tolist() == [1.0] * 3
    X[: bearable + 1] = np.inf
    message = f"^{name}: {bearable + 1} of 11 rows hold NaN or infinite values; at most {bearable} can be excluded$"
    with pytest.raises(ValueError, match=message):
        RULES[name](X)


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


def test_propagate_spoils_a_geometric_median() -> None:
    X = np.ones((5, 3))
    X[2, 1] = np.inf
    z, info = aggregate.geometric_median(X, nonfinite="propagate", return_info=True)
    assert np.isnan(z).all()
    assert not info.converged
    assert info.iterations == 0
    assert aggregate.geometric_median(np.ones((5, 3)), nonfinite="propagate").tolist() == [1.0] * 3


def test_tensors_with_a_sign_of_their_own_are_refused(torch: Any) -> None:
    X = torch.ones(3, 2)
    turned = torch.complex(X, X).conj().imag
    with pytest.raises(ValueError, match=r"^X: the tensor has its negative bit set; pass X.resolve_neg\(\)$"):
        aggregate.mean(turned)
    with pytest.raises(ValueError, match=r"^X\[1\]: the tensor has its negative bit set"):
        aggregate.mean([X[0], turned[0]])
    with pytest.raises(ValueError, match=r"^out: the tensor has its negative bit set"):
        aggregate.mean(X, out=turned[0])
    assert aggregate.mean(turned.resolve_neg()).tolist() == [-1.0, -1.0]


def test_a_tensor_without_memory_is_refused(torch: Any) -> None:
    with pytest.raises(ValueError, match=r"^X: expected an array in host memory, got none \(.*meta"):
        aggregate.mean(torch.empty(3, 2, device="meta"))


def test_a_mask_is_never_passed_over() -> None:
    masked = np.ma.masked_array(np.ones((3, 2)), mask=np.eye(3, 2))
    message = "expected an array without a mask, got a masked one"
    with pytest.raises(TypeError, match=f"^X: {message}"):
        aggregate.mean(masked)
    with pytest.raises(TypeError, match=rf"^X\[0\]: {message}"):
        aggregate.median(list(masked))
    with pytest.raises(TypeError, match=f"^weights: {message}"):
        aggregate.mean(np.ones((3, 2)), weights=masked[:, 0])


def test_info_of_the_mean_has_its_shares() -> None:
    X = np.ones((4, 2))
    X[3] = np.nan
    _, info = aggregate.mean(X, weights=[1, 2, 1, 9], return_info=True)
    assert info.weights.tolist() == [0.25, 0.5, 0.25]
    _, info = aggregate.mean(X, return_info=True)
    np.testing.assert_allclose(info.weights, 1 / 3)
    assert info.iterations is info.converged is info.residual is None


# What other implementations of these rules got wrong. A number tells one such trap from another in all files of tests.


def test_trap_07_trimmed_mean_is_a_mean_of_the_kept(dtype: str) -> None:
    X = np.array([[1.0], [2.0], [3.0], [1e9], [-1e9]], dtype)
    assert aggregate.trimmed_mean(X, f=1).tolist() == [2.0]
    X[3:] = [[np.inf], [-np.inf]]
    assert aggregate.trimmed_mean(X, f=2).tolist() == [2.0]
    assert aggregate.trimmed_mean(X, f=1, nonfinite="propagate").tolist() == [2.0]
    # 29 of 100 by number, not by a fraction that rounds to 28.
    X = np.arange(100.0)[:, None] ** 2
    assert aggregate.trimmed_mean(X, f=29).tolist() == [(np.arange(29.0, 71.0) ** 2).mean()]


def test_trap_08_even_median_says_which() -> None:
    X = np.array([[4.0], [1.0], [3.0], [9.0]])
    assert [aggregate.median(X, even=even)[0] for even in ("mid", "low", "high")] == [3.5, 3.0, 4.0]
    assert aggregate.median(X)[0] == np.median(X)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e6])
def test_trap_09_geometric_median_is_not_smoothed(scale: float) -> None:
    rng = np.random.default_rng(19)
    X = rng.standard_normal((10, 20)) * scale
    X[0] = 1e4 * scale
    z = aggregate.geometric_median(X)
    assert np.linalg.norm(z) < 10 * scale
    assert np.linalg.norm(X.mean(axis=0)) > 1e3 * scale
    line = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    assert aggregate.geometric_median(line).tolist() == [4.0, 5.0, 6.0]
    # Equal weights do not collapse into one.
    assert aggregate.geometric_median(line, weights=[1.0, 1.0, 1.0]).tolist() == [4.0, 5.0, 6.0]


@every_rule
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_trap_10_one_bad_row_spoils_nothing(name: str, value: float, dtype: str) -> None:
    X = np.random.default_rng(20).standard_normal((11, 9)).astype(dtype)
    expected = RULES[name](np.delete(X, 4, axis=0), **({"f": 1} if name == "trimmed_mean" else {}))
    X[4] = value
    assert same_bits(RULES[name](X), expected)


@every_robust_rule
def test_trap_11_ties_of_colluders(name: str, dtype: str) -> None:
    X = np.random.default_rng(21).standard_normal((20, 9)).astype(dtype)
    X[12:] = 7.0
    f = {"f": 8} if name == "trimmed_mean" else {}
    got = RULES[name](X, **f)
    assert (np.abs(got) < 4.0).all()
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(20)
        np.testing.assert_allclose(RULES[name](X[order], **f), got, atol=1e-5)


@every_rule
def test_trap_13_inputs_are_not_modified(name: str, dtype: str) -> None:
    X = np.random.default_rng(22).standard_normal((11, 30)).astype(dtype)
    X[3, 5] = np.nan
    rows, before = list(X), X.copy()
    RULES[name](X)
    RULES[name](rows)
    assert same_bits(X, before)
    assert len(rows) == 11
    X.flags.writeable = False
    RULES[name](X)


@every_rule
def test_trap_14_float64_stays_float64(name: str) -> None:
    X = 1.0 + 1e-12 * np.arange(1.0, 8.0)[:, None] * np.ones((7, 3))
    got = RULES[name](X)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got - 1.0, 4e-12, rtol=1e-3)


def test_trap_19_numpy_integers_and_whole_numbers_are_numbers() -> None:
    X = np.random.default_rng(23).standard_normal((7, 3))
    expected = aggregate.trimmed_mean(X, f=2)
    for f in (np.int64(2), np.int32(2), np.uint8(2), np.array(2)):
        assert same_bits(aggregate.trimmed_mean(X, f=f), expected)
    assert same_bits(aggregate.geometric_median(X, tol=1), aggregate.geometric_median(X, tol=1.0))
    assert aggregate.max_f("median", np.int64(7)) == 3


# Errors


@pytest.mark.parametrize(("rule", "most"), [("mean", 0), ("median", 5), ("trimmed_mean", 5), ("geometric_median", 5)])
def test_max_f(rule: str, most: int) -> None:
    assert aggregate.max_f(rule, 11) == most
    assert aggregate.max_f(rule, 1) == 0
    assert aggregate.max_f(rule, 12) == most


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: aggregate.max_f("krump", 4), ValueError, "rule: expected one of mean, .*; got 'krump'"),
        (lambda: aggregate.max_f(3, 4), TypeError, "rule: expected a string, got int"),
        (lambda: aggregate.max_f("mean", 0), ValueError, "n: expected an integer >= 1, got 0"),
    ],
)
def test_max_f_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        call()


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (9, ValueError, "trimmed_mean: f=9 is too large for n=11 workers; at most 5"),
        (6, ValueError, "trimmed_mean: f=6 is too large for n=11 workers; at most 5"),
        (10**30, ValueError, f"trimmed_mean: f={10**30} is too large for n=11 workers; at most 5"),
        (-1, ValueError, "f: expected an integer >= 0, got -1"),
        (1.0, TypeError, "f: expected an integer, got float"),
        (True, TypeError, "f: expected an integer, got bool"),
        (None, TypeError, "f: expected an integer, got NoneType"),
        (np.array([1, 2]), TypeError, "f: expected an integer, got ndarray"),
    ],
)
def test_illegal_f(f: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        aggregate.trimmed_mean(np.zeros((11, 2)), f=f)


@every_rule
@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.zeros(3), ValueError, r"X: expected shape \(n, d\), one row per worker, got \(3,\)"),
        (np.zeros((2, 3, 4)), ValueError, r"X: expected shape \(n, d\), one row per worker, got \(2, 3, 4\)"),
        (np.float64(3.0), ValueError, r"X: expected shape \(n, d\), one row per worker, got \(\)"),
        (np.zeros((0, 3)), ValueError, r"X: expected at least one row and one column, got shape \(0, 3\)"),
        (np.zeros((3, 0)), ValueError, r"X: expected at least one row and one column, got shape \(3, 0\)"),
        ([], ValueError, r"X: expected shape \(n, d\), one row per worker, got \(0,\)"),
        ([np.zeros(0), np.zeros(0)], ValueError, r"X: expected at least one row and one column, got shape \(2, 0\)"),
        ([np.zeros(3), np.zeros(4)], ValueError, r"X\[1\]: expected shape \(3,\), got \(4,\)"),
        ([np.zeros((2, 3))], ValueError, r"X\[0\]: expected shape \(d,\), got \(2, 3\)"),
        ([np.float64(1.0), np.float64(2.0)], ValueError, r"X\[0\]: expected shape \(d,\), got \(\)"),
        ([[1.0, 2.0], [3.0]], TypeError, r"X: expected an array of real numbers, got list \(.*\)"),
        (np.zeros((2, 2), complex), TypeError, r"X: expected real numbers \(float32 or .*\), got dtype complex128"),
        ([["a"]], TypeError, r"X: expected real numbers \(float32 or float64\), got dtype <U1"),
        (np.array([[None]]), TypeError, r"X: expected real numbers \(float32 or float64\), got dtype object"),
        ([np.zeros(2, complex)], TypeError, r"X: expected real numbers \(float32 or float64\), got dtype complex128"),
        (np.zeros((2, 2), "longdouble"), TypeError, r"X: expected real numbers .*, got dtype .*"),
        (None, TypeError, r"X: expected real numbers \(float32 or float64\), got dtype object"),
    ],
    ids=lambda value: "",
)
def test_rules_refuse_what_is_not_rows_of_reals(name: str, X: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        RULES[name](X)


@every_rule
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"nonfinite": "ignore"}, ValueError, "nonfinite: expected one of exclude, raise, propagate; got 'ignore'"),
        ({"nonfinite": None}, TypeError, "nonfinite: expected a string, got NoneType"),
        ({"threads": -1}, ValueError, r"threads: expected an integer in \[0, 4096\], got -1"),
        ({"threads": 5000}, ValueError, r"threads: expected an integer in \[0, 4096\], got 5000"),
        ({"threads": 1.5}, TypeError, "threads: expected an integer, got float"),
        ({"threads": True}, TypeError, "threads: expected an integer, got bool"),
    ],
)
def test_common_options_are_checked(name: str, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        RULES[name](np.zeros((5, 2)), **options)


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
        RULES[name](np.zeros((3, 2)), weights=weights)


@pytest.mark.parametrize("name", ["mean", "geometric_median"])
def test_weights_of_the_finite_rows_must_not_all_be_zero(name: str) -> None:
    X = np.ones((3, 2))
    X[1] = np.nan
    with pytest.raises(ValueError, match=f"^{name}: every finite row has weight 0$"):
        RULES[name](X, weights=[0.0, 1.0, 0.0])
    assert RULES[name](X, weights=[0, 1, 2]).tolist() == [1.0, 1.0]


def test_median_even_errors() -> None:
    with pytest.raises(ValueError, match=r"^even: expected one of mid, low, high; got 'upper'$"):
        aggregate.median(np.zeros((2, 2)), even="upper")
    with pytest.raises(TypeError, match=r"^even: expected a string, got int$"):
        aggregate.median(np.zeros((2, 2)), even=1)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"tol": 0.0}, ValueError, r"tol: expected a finite number > 0.0, got 0.0"),
        ({"tol": -1e-6}, ValueError, r"tol: expected a finite number > 0.0, got -1e-06"),
        ({"tol": np.nan}, ValueError, r"tol: expected a finite number > 0.0, got nan"),
        ({"tol": np.inf}, ValueError, r"tol: expected a finite number > 0.0, got inf"),
        ({"tol": "1e-6"}, TypeError, "tol: expected a real number, got str"),
        ({"tol": True}, TypeError, "tol: expected a real number, got bool"),
        ({"max_iter": 0}, ValueError, r"max_iter: expected an integer in \[1, 2147483647\], got 0"),
        ({"max_iter": 10.0}, TypeError, "max_iter: expected an integer, got float"),
    ],
)
def test_geometric_median_option_errors(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        aggregate.geometric_median(np.zeros((3, 2)), **options)


@every_rule
def test_options_are_keyword_only(name: str) -> None:
    rule = getattr(byzadmm, name)
    with pytest.raises(TypeError, match="positional argument"):
        rule(np.zeros((3, 2)), 1)
