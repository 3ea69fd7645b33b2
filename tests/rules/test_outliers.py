"""Rules that average what does not stand out, majority of signs, ARC, resampling: by hand, at the ends of the range."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import _core, aggregate
from byzadmm import reference as ref
from support.arrays import same_bits

Array = npt.NDArray[Any]

both = pytest.mark.parametrize("module", [aggregate, ref])
TINY = 5e-324


# --- cge --------------------------------------------------------------------------------------------------------------


@both
def test_cge_takes_the_shortest_rows_and_the_lowest_of_equals(module: Any) -> None:
    X = np.array([[0.0, 5.0], [3.0, 4.0], [1.0, 0.0], [-4.0, 3.0], [0.0, -2.0]])
    assert module.cge(X, f=0).tolist() == [0.0, 2.0]
    assert module.cge(X, f=1).tolist() == [1.0, 7 / 4]  # rows 0, 1 and 3 have length 5: the last of them goes
    assert module.cge(X, f=2).tolist() == [1 / 3, 1.0]


def test_cge_tells_its_choice() -> None:
    X = np.array([[0.0, 5.0], [3.0, 4.0], [np.nan, 0.0], [-4.0, 3.0], [0.0, -2.0]])
    _, info = aggregate.cge(X, f=2, return_info=True)
    assert info.selected.tolist() == [4, 0, 1]
    assert info.scores.tolist() == [5.0, 5.0, 5.0, 2.0]
    assert info.excluded.tolist() == [2]


@both
def test_lengths_of_any_size_are_compared_truly(module: Any) -> None:
    # Squares of 1e-300 vanish and those of 1e200 overflow; two rows are longer than the largest number.
    X = np.array([[1.7e308, 1.6e308], [2e-300, 0.0], [1e-300, 1e-300], [1.7e308, 1.7e308], [1e200, 0.0], [TINY, 0.0]])
    order = [5, 2, 1, 4, 0, 3]
    for f in range(3):
        kept = np.sort(order[: 6 - f])
        np.testing.assert_allclose(module.cge(X, f=f), ref.mean(X[kept]), rtol=1e-15)
    if module is aggregate:
        _, info = aggregate.cge(X, f=2, return_info=True)
        assert info.selected.tolist() == order[:4]
        assert info.scores[[0, 3]].tolist() == [np.inf, np.inf]
        assert info.scores[1] == 2e-300


# --- nearest neighbor average -----------------------------------------------------------------------------------------


@both
def test_nearest_neighbor_average_by_hand(module: Any) -> None:
    X = np.array([[0.0], [1.0], [3.0], [3.0], [9.0]])
    for pivot, f, expected in [(0, 2, 4 / 3), (1, 1, 7 / 4), (4, 2, 5.0), (2, 2, 7 / 3), (1, 2, 4 / 3)]:
        assert module.nearest_neighbor_average(X, f=f, pivot=pivot) == pytest.approx(expected), (pivot, f)


def test_the_pivot_is_its_own_nearest_row() -> None:
    X = np.array([[7.0], [7.0], [7.0], [1e9], [1e9]])
    _, info = aggregate.nearest_neighbor_average(X, f=2, pivot=2, return_info=True)
    assert info.selected.tolist() == [2, 0, 1]
    X[1] = np.inf
    _, info = aggregate.nearest_neighbor_average(X, f=2, pivot=2, return_info=True)
    assert info.selected.tolist() == [2, 0, 3]
    assert info.scores.tolist() == [0.0, 0.0, 1e9 - 7, 1e9 - 7]


@both
def test_distances_from_the_pivot_beyond_the_largest_number(module: Any) -> None:
    X = np.array([[1.5e308], [-1.5e308], [-1.7e308], [1.7e308], [1e-300]])
    # From row 0: 0, 3.0e308, 3.2e308, 0.2e308, 1.5e308.
    assert module.nearest_neighbor_average(X, f=1, pivot=0) == pytest.approx(1.7e308 / 4)
    assert module.nearest_neighbor_average(X, f=2, pivot=0) == pytest.approx(3.2 / 3 * 1e308)


@pytest.mark.parametrize("nonfinite", ["exclude", "raise", "propagate"])
def test_a_pivot_that_is_not_finite_is_an_error(nonfinite: str) -> None:
    X = np.ones((5, 2))
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"^pivot: expected a finite row to trust, got row 3, which holds NaN or inf"):
        aggregate.nearest_neighbor_average(X, f=1, pivot=3, nonfinite=nonfinite)
    for pivot in (-1, 5):
        with pytest.raises(ValueError, match=rf"^pivot: expected an integer in \[0, 4\], got {pivot}$"):
            aggregate.nearest_neighbor_average(X, f=1, pivot=pivot)


# --- majority of signs ------------------------------------------------------------------------------------------------


@both
def test_signs_of_zeros_and_tiny_numbers(module: Any, dtype: str) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    top = np.finfo(dtype).max
    X = np.array([[-0.0, tiny, -tiny, top, 0.0], [0.0, 0.0, 0.0, -tiny, -0.0], [-0.0, -0.0, 0.0, -1.0, 5.0]], dtype)
    assert module.sign_majority(X).tolist() == [0.0, 1.0, -1.0, -1.0, 1.0]
    assert not np.signbit(module.sign_majority(X)[0])
    assert module.sign_majority(X[[0, 1]]).tolist() == [0.0, 1.0, -1.0, 0.0, 0.0]


def test_signs_of_what_is_not_finite() -> None:
    X = np.array([[np.inf, np.nan], [np.inf, 1.0], [-1.0, 1.0], [-1.0, 1.0], [-2.0, 1.0]])
    _, info = aggregate.sign_majority(X, return_info=True)
    assert info.excluded.tolist() == [0, 1]
    passed = aggregate.sign_majority(X, nonfinite="propagate")
    assert passed[0] == -1.0
    assert np.isnan(passed[1])


# --- divide and conquer -----------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_dnc_excludes_one_far_row_of_any_size(module: Any, size: float) -> None:
    X = np.random.default_rng(0).normal(size=(9, 20)) * size
    for far in (1e308, 40 * size):
        forged = X.copy()
        forged[[0, 1]] = far
        result = module.dnc(forged, f=2, rng=0)
        np.testing.assert_allclose(result, X[2:].mean(axis=0), rtol=1e-12, atol=1e-14 * size, err_msg=f"{far}")


@both
def test_dnc_projects_on_the_direction_of_most_variance(module: Any) -> None:
    # Along the first column, whose mean is 3: differences -3, -2, -1, 0, 6. The second one is ten times as quiet.
    X = np.array([[0.0, 0.1], [1.0, -0.1], [2.0, 0.1], [3.0, -0.1], [9.0, 0.0]])
    assert module.dnc(X, f=1, rng=0)[0] == pytest.approx(6 / 4)
    assert module.dnc(X, f=2, rng=0)[0] == pytest.approx(6 / 3)
    assert module.dnc(X, f=2, rng=0, factor=0.5)[0] == pytest.approx(6 / 4)
    assert module.dnc(X, f=2, rng=0, factor=0.4)[0] == pytest.approx(15 / 5)
    assert module.dnc(X, f=1, rng=0, factor=3.9)[0] == pytest.approx(5 / 2)


def test_dnc_scores_and_their_rounds() -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0], [9.0]])
    _, info = aggregate.dnc(X, f=2, rng=0, iterations=7, return_info=True)  # one round, as there is one column
    np.testing.assert_allclose(info.scores, [9.0, 4.0, 1.0, 0.0, 36.0], atol=1e-14)
    assert info.selected.tolist() == [3, 2, 1]
    wide = np.random.default_rng(1).normal(size=(9, 50))
    _, info = aggregate.dnc(wide, f=3, rng=2, iterations=4, coordinates=11, return_info=True)
    draws = np.random.default_rng(2)
    good = set(range(9))
    for line in info.scores:
        part = wide[:, np.sort(draws.choice(50, 11, replace=False))]
        part = part - part.mean(axis=0)
        np.testing.assert_allclose(line, (part @ np.linalg.svd(part)[2][0]) ** 2, rtol=1e-9)
        good &= set(np.argsort(line)[:6].tolist())
    assert set(info.selected.tolist()) == good


@both
def test_dnc_without_a_row_that_is_good_in_every_round(module: Any) -> None:
    # One column per round. In each, one row stands out, and it is another one.
    X = 100.0 * np.eye(3)
    seed = next(s for s in range(99) if _columns_drawn(s) == [0, 0, 1, 2])
    # Row 0 is good in two rounds, rows 1 and 2 in three.
    assert module.dnc(X, f=1, rng=seed, iterations=4, coordinates=1).tolist() == [0.0, 50.0, 50.0]


def _columns_drawn(seed: int) -> list[int]:
    draws = np.random.default_rng(seed)
    return sorted(int(draws.choice(3, 1, replace=False)[0]) for _ in range(4))


@both
def test_dnc_misses_a_row_that_hides_behind_a_farther_one(module: Any) -> None:
    """The limit that the documents name."""
    X = np.random.default_rng(3).normal(size=(10, 4))
    X[:2] = [[9e6] * 4, [1e6] * 4]
    assert np.linalg.norm(module.dnc(X, f=2, rng=0)) > 1e5


def test_dnc_refuses() -> None:
    X = np.ones((5, 2))
    with pytest.raises(TypeError, match=r"^rng: expected a seed .* columns with, as in DnC\(f=2, rng=0\), got None;"):
        aggregate.dnc(X, f=1, rng=None)
    with pytest.raises(ValueError, match=r"^factor: expected floor\(factor f\) < n=5, got factor=2.5 and f=2$"):
        aggregate.dnc(X, f=2, rng=0, factor=2.5)
    for name in ("iterations", "coordinates"):
        with pytest.raises(ValueError, match=f"^{name}: expected an integer >= 1, got 0$"):
            aggregate.dnc(X, f=2, rng=0, **{name: 0})


def test_projections_are_those_of_the_top_singular_vector() -> None:
    """From rows of any size, which are compared by their distances alone; equal rows, and all rows equal."""
    rng = np.random.default_rng(6)
    for n, d, size in [(2, 1, 1.0), (5, 3, 1e-200), (9, 40, 1e150), (40, 7, 1e-12), (6, 2, 0.0)]:
        X = size * rng.normal(size=(n, d))
        squared, exponent, _ = _core.squared_distances(X, 1)
        score, unit = _core.projections(squared, exponent)
        Y = X / (size or 1.0)
        u, sigma, _ = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)
        found = np.sqrt(score) * 2.0 ** (unit / 2) / (size or 1.0)  # unit is even or the root of 2 is exact enough
        np.testing.assert_allclose(found, np.abs(sigma[0] * u[:, 0]), rtol=1e-9, atol=1e-12, err_msg=f"{n} {d} {size}")


def test_equal_rows_have_equal_scores() -> None:
    rng = np.random.default_rng(5)
    for n in (12, 80):
        X = rng.normal(size=(n, 30))
        twins = rng.permutation(n)[: n // 3]
        X[twins] = X[twins[0]]
        _, info = aggregate.dnc(X, f=n // 4, rng=0, return_info=True)
        assert len(set(info.scores[twins].tolist())) == 1


# --- adaptive robust clipping -----------------------------------------------------------------------------------------


@both
def test_arc_shortens_the_longest_rows(module: Any) -> None:
    X = np.arange(1.0, 10.0).reshape(3, 3)
    expected = X.copy()
    expected[2] *= np.sqrt(77 / 194)
    np.testing.assert_allclose(module.arc(X, f=1), expected, rtol=1e-15)
    assert same_bits(module.arc(X, f=0), X)


@both
def test_arc_counts_the_rows_that_it_shortens(module: Any) -> None:
    X = np.arange(10.0, 0.0, -1.0)[:, None]
    for f, count in [(0, 0), (1, 1), (2, 3), (3, 4), (4, 4)]:  # floor(2 f (10 - f) / 10)
        assert module.arc(X, f=f)[:, 0].tolist() == np.minimum(X[:, 0], 10 - count).tolist(), f


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arc_keeps_the_row_whose_length_is_the_limit(dtype: str) -> None:
    """To the bit, on every instruction set: the limit and the rows are measured by one kernel."""
    for seed in range(30):
        X = np.random.default_rng(seed).normal(size=(10, 1000)).astype(dtype)
        result, info = aggregate.arc(X, f=2, return_info=True)
        kept = np.argsort(info.distances)[:7]  # floor(2 f (n - f) / n) = 3 are shortened
        assert same_bits(result[kept], X[kept]), seed


@both
def test_arc_of_rows_longer_than_the_largest_number(module: Any) -> None:
    top = np.finfo(np.float64).max
    X = np.array([[top, top], [0.9 * top, 0.9 * top], [1.0, 0.0]])
    shortened = module.arc(X, f=1)
    np.testing.assert_allclose(shortened[0], X[1], rtol=1e-15)
    assert same_bits(shortened[1:], X[1:])
    X = np.array([[top, -top], [-TINY, TINY], [0.0, TINY]])
    np.testing.assert_array_equal(module.arc(X, f=1)[0], [TINY, -TINY])
    X[1:] = 0.0
    assert module.arc(X, f=1)[0].tolist() == [0.0, 0.0]


def test_arc_lowers_f_by_the_rows_that_it_excludes() -> None:
    X = np.array([[np.nan], [5.0], [4.0], [3.0], [2.0]])
    result, info = aggregate.arc(X, f=2, return_info=True)
    assert result[:, 0].tolist() == [4.0, 4.0, 3.0, 2.0]  # as of four rows with f=1
    assert info.distances.tolist() == [5.0, 4.0, 3.0, 2.0]
    kept = aggregate.arc(X, f=1, nonfinite="propagate")
    assert np.isnan(kept[0, 0])
    assert kept[1:, 0].tolist() == [5.0, 4.0, 3.0, 2.0]


# --- resampling and buckets -------------------------------------------------------------------------------------------


@both
def test_resampling_uses_every_row_as_often(module: Any) -> None:
    X = 4.0 ** np.arange(12)[:, None]  # sums of up to three rows tell which
    for s in (1, 2, 3):
        means = module.resampling(X, s=s, rng=7)
        assert means.shape == X.shape
        assert means.sum() == pytest.approx(X.sum(), rel=1e-14)
        digits = [np.base_repr(round(value), 4).zfill(12)[::-1] for value in (s * means[:, 0]).tolist()]
        assert [sum(int(line[i]) for line in digits) for i in range(12)] == [s] * 12
    assert sorted(module.resampling(X, s=1, rng=7)[:, 0].tolist()) == X[:, 0].tolist()
    assert not same_bits(module.resampling(X, s=1, rng=7), X)


@both
def test_buckets_in_a_given_order(module: Any) -> None:
    X = np.array([[1.0], [2.0], [4.0], [8.0], [16.0]])
    assert module.bucketing(X, s=2, permutation=[4, 0, 3, 1, 2])[:, 0].tolist() == [8.5, 5.0, 4.0]
    assert module.bucketing(X, s=5, permutation=range(5), rng=3).tolist() == [[31 / 5]]


def test_buckets_pass_over_excluded_rows() -> None:
    X = np.array([[1.0], [2.0], [np.nan], [8.0], [16.0]])
    result, info = aggregate.bucketing(X, s=2, permutation=np.array([2, 4, 0, 3, 1]), return_info=True)
    assert result[:, 0].tolist() == [8.5, 5.0]
    assert info.selected.tolist() == [4, 0, 3, 1]


@pytest.mark.parametrize(
    ("permutation", "error", "message"),
    [
        ([0, 1, 1], ValueError, r"permutation: expected each of 0, ..., 2 once, got \[0, 1, 1\]"),
        ([0, 1], ValueError, r"permutation: expected each of 0, ..., 2 once, got \[0, 1\]"),
        (np.eye(3, dtype=int), ValueError, r"permutation: expected each of 0, ..., 2 once, got shape \(3, 3\)"),
        ([0.0, 1.0, 2.0], TypeError, "permutation: expected integers, got dtype float64"),
    ],
)
def test_permutations_are_checked(permutation: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        aggregate.bucketing(np.ones((3, 2)), s=2, permutation=permutation)


# --- meamed -----------------------------------------------------------------------------------------------------------


@both
def test_meamed_measures_from_the_median_that_is_asked_for(module: Any) -> None:
    X = np.array([[0.0], [1.0], [4.0], [6.0]])  # medians 1, 2.5 and 4
    expected = {"low": 5 / 3, "mid": 5 / 3, "high": 11 / 3}
    for even, mean in expected.items():
        assert module.meamed(X, f=1, even=even) == pytest.approx(mean), even
    with pytest.raises(ValueError, match="even: expected one of mid, low, high; got 'middle'"):
        module.meamed(X, f=1, even="middle")
