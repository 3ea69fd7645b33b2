"""Rules that keep the rows with the least spread: by hand, by enumeration, and whatever attackers send."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from byzadmm import _core, aggregate
from byzadmm import reference as ref
from support.arrays import awkward
from support.rules import apply, normal, tolerance

Array = npt.NDArray[Any]

RULES = ("mda", "smea", "caf")


def test_the_least_diameter_and_the_least_variance_by_hand() -> None:
    X = np.array([[0.0], [0.0], [10.0], [15.5], [21.0]])  # 0, 0, 10: diameter 10, scatter 66.7; the last: 11 and 60.5
    result, info = aggregate.mda(X, f=2, return_info=True)
    assert result.tolist() == [10 / 3]
    assert info.selected.tolist() == [0, 1, 2]
    assert info.distances.tolist() == ((X - X.T) ** 2).tolist()
    result, info = aggregate.smea(X, f=2, return_info=True)
    assert result.tolist() == [15.5]
    assert info.selected.tolist() == [2, 3, 4]
    for rule in ("mda", "smea"):  # ties: 0, 1, 2 and 1, 2, 3
        assert apply(rule, np.arange(4.0)[:, None], f=1, return_info=True)[1].selected.tolist() == [0, 1, 2]
        assert apply(rule, X, f=0, return_info=True)[1].selected.tolist() == [0, 1, 2, 3, 4]
        assert apply(rule, [[3.0]], f=0).tolist() == [3.0]


def test_the_least_diameter_does_not_depend_on_the_order_of_the_rows() -> None:
    """The rows may: those that are not the farthest apart can often be exchanged at the same diameter."""
    X = normal(15, 33, 1)
    diameters = set()
    for seed in range(5):
        rows = X[np.random.default_rng(seed).permutation(15)]
        info = aggregate.mda(rows, f=5, return_info=True)[1]
        diameters.add(info.distances[np.ix_(info.selected, info.selected)].max())
    assert len(diameters) == 1


def filtered(values: list[int], f: int) -> tuple[Fraction, list[Fraction], int]:
    """The filter on a line, where the direction is known, in fractions: result, weights and number of rounds."""
    c = [Fraction(1)] * len(values)
    best: tuple[Fraction, Fraction, list[Fraction]] | None = None
    rounds = 0
    while True:
        rounds += 1
        total = sum(c)
        mu = sum(a * x for a, x in zip(c, values, strict=True)) / total
        tau = [(x - mu) ** 2 for x in values]
        sigma = sum(a * t for a, t in zip(c, tau, strict=True)) / total
        if best is None or sigma < best[0]:
            best = sigma, mu, [a / total for a in c]
        if sigma == 0:
            break
        top = max(t for a, t in zip(c, tau, strict=True) if a)
        c = [a * (1 - t / top) if a else a for a, t in zip(c, tau, strict=True)]
        if not sum(c) > len(values) - 2 * f:
            break
    return best[1], best[2], rounds


def test_the_filter_on_a_line_in_fractions() -> None:
    rng = np.random.default_rng(3)
    cases = [([0, 2, 2, 4, 12], 1), ([1, 1, 1, 9], 1), ([5], 0), ([0, 1, 7], 0), ([7, 7, 7], 1)]
    for n in range(3, 12):
        cases += [(rng.integers(-50, 50, n).tolist() + [10**6] * (n % 3), (n - 1) // 2) for _ in range(5)]
    for values, f in cases:
        expected, weights, rounds = filtered(values, f)
        result, info = aggregate.caf(np.array(values, float)[:, None], f=f, return_info=True)
        assert result[0] == pytest.approx(float(expected), rel=1e-9, abs=1e-9), (values, f)
        np.testing.assert_allclose(info.weights, [float(w) for w in weights], atol=1e-9, err_msg=str((values, f)))
        assert info.iterations == rounds, (values, f)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_filter_equals_its_twin(dtype: str) -> None:
    """Rounding of the distances moves the eigenvector by its size over the gap to the next eigenvalue."""
    for label, X in awkward(dtype):
        limits = tolerance(X)
        limits["atol"] *= 50
        for f in {(len(X) - 1) // 3, (len(X) - 1) // 2} if len(X) < 32 else {5}:
            np.testing.assert_allclose(
                aggregate.caf(X, f=f, threads=1), ref.caf(X, f=f), **limits, err_msg=f"{label}, f={f}"
            )


def test_sets_are_the_first_of_the_best_in_integers() -> None:
    """Rows with many equal distances: among sets that are equally good the lexicographically smallest one."""
    rng = np.random.default_rng(8)
    for turn in range(60):
        n, d = int(rng.integers(3, 11)), int(rng.integers(1, 4))
        f = int(rng.integers(1, (n - 1) // 2 + 1))
        X = rng.integers(-2, 3, (n, d))
        D = ((X[:, None] - X) ** 2).sum(axis=2)
        first = min(combinations(range(n), n - f), key=lambda rows: D[np.ix_(rows, rows)].max())
        info = aggregate.mda(X, f=f, return_info=True)[1]
        assert tuple(info.selected) == first, f"mda, turn {turn}"
        sets = list(combinations(range(n), n - f))
        tops = np.array([np.linalg.eigvalsh(np.cov(X[list(rows)].T, ddof=0).reshape(d, d))[-1] for rows in sets])
        first = sets[int(np.argmax(tops <= tops.min() + 1e-12))]
        info = aggregate.smea(X, f=f, return_info=True)[1]
        assert tuple(info.selected) == first, f"smea, turn {turn}"


def largest_near_set(D: Array, limit: float) -> int:
    """How many rows have all distances below the limit, by integer programming."""
    n = len(D)
    far = [(i, k) for i in range(n) for k in range(i) if D[i, k] >= limit]
    if not far:
        return n
    A = np.zeros((len(far), n))
    for line, pair in zip(A, far, strict=True):
        line[list(pair)] = 1
    found = milp(-np.ones(n), constraints=LinearConstraint(A, ub=1), integrality=np.ones(n), bounds=Bounds(0, 1))
    assert found.success
    return round(-found.fun)


@pytest.mark.parametrize(("n", "f", "d"), [(50, 20, 40), (50, 20, 2), (64, 31, 3), (100, 30, 100)])
def test_no_rows_are_closer_together_by_integer_programming(n: int, f: int, d: int) -> None:
    X = normal(n, d, n)
    X[: f // 2] += 2.0
    info = aggregate.mda(X, f=f, return_info=True)[1]
    assert len(info.selected) == n - f
    assert largest_near_set(info.distances, info.distances[np.ix_(info.selected, info.selected)].max()) < n - f


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("size", "forged"), [(1e-300, 1e308), (1e308, 1e-300), (1e-320, 1.0), (1.0, 1e20)])
def test_forged_rows_of_any_size_are_removed_altogether(rule: str, size: float, forged: float) -> None:
    """Also where they differ from each other in scale, or by a rounding, or are not alone in their direction."""
    rng = np.random.default_rng(1)
    row = np.array([1.0, -1.0, 0.5])
    regular = size * (1 + np.outer([0.0, 0.01, -0.01, 0.02, -0.02, 0.0], [0.5, 1.0, 0.25])) * row
    for kinds in ([1, 1, 1], [1, 1 - 1e-16, 1 - 2e-16], [1, -1, 0.5], [1, 1e-5, 1e-10], [1, 0.75, 0.8]):
        with np.errstate(over="ignore"):
            attackers = forged * np.outer(kinds, [1.0, 1.0, 1.0])
        attackers[:, 1] *= rng.choice([-1.0, 1.0], 3)
        result, info = apply(rule, np.concatenate([attackers, regular]), f=3, return_info=True)
        if rule == "caf":
            assert not info.weights[:3].any(), kinds
            assert (abs(result - size * row) <= 0.02 * size).all(), kinds
        else:
            assert info.selected.tolist() == [3, 4, 5, 6, 7, 8], kinds
            np.testing.assert_allclose(result, aggregate.mean(regular), rtol=1e-14)


def test_limits_of_work_are_errors_that_name_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [aggregate.max_f("smea", n) for n in (22, 23, 30, 100, 1414, 1415)] == [10, 9, 6, 3, 2, 1]
    message = r"^smea: f=7 of n=30 workers means 2035800 subsets, more than 1000000; at most f=6$"
    with pytest.raises(ValueError, match=message):
        aggregate.smea(np.zeros((30, 2)), f=7)
    with pytest.raises(ValueError, match=r"^smea: f=15 is too large for n=30 workers; at most 6$"):
        aggregate.smea(np.zeros((30, 2)), f=15)
    monkeypatch.setattr(_core, "least_diameter", lambda *_: None)
    with pytest.raises(ValueError, match=r"^mda: .* n=70 workers without f=34 exceeded its limit of 262144 steps"):
        aggregate.mda(np.zeros((70, 2)), f=34)


def hard_rows(n: int, seed: int) -> Array:
    """Rows whose only long distances are the edges of a random graph in which every node has about three."""
    rng = np.random.default_rng(seed)
    edges = np.zeros((n, n))
    for _ in range(3):
        for i, k in rng.permutation(n).reshape(-1, 2):
            edges[i, k] = edges[k, i] = 1.0
    alone = n // 4
    X = 2 * np.eye(n + alone)
    X[:n, :n] = np.linalg.cholesky(4 * np.eye(n) - edges)
    return X


def test_the_search_on_rows_that_are_made_to_be_hard() -> None:
    """Most distances tie in exact arithmetic and differ by rounding: edges are far, and no bound decides alone."""
    X = hard_rows(80, 1)
    info = aggregate.mda(X, f=44, return_info=True)[1]
    diameter = info.distances[np.ix_(info.selected, info.selected)].max()
    assert len(info.selected) == 56
    assert largest_near_set(info.distances, diameter) < 56
