"""``byzadmm.byzfl``: ByzFL's classes by their published definitions, and what happens where ByzFL goes wrong."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from itertools import combinations
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import byzadmm
from byzadmm import aggregate, aggregators, byzfl

Array = npt.NDArray[Any]

#: Class -> names and defaults of its arguments in ByzFL 0.0.11.
SIGNATURES: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("Average", "Median", "SignFlipping", "Inf", "LabelFlipping")},
    **{name: {"f": 0} for name in ("TrMean", "Krum", "MultiKrum", "MDA", "Meamed", "CAF", "SMEA", "NNM", "ARC")},
    "GeometricMedian": {"nu": 0.1, "T": 3},
    "CenteredClipping": {"m": None, "L": 1, "tau": 100.0},
    "MoNNA": {"f": 0, "idx": 0},
    "Bucketing": {"s": 1},
    "Clipping": {"c": 2.0},
    "InnerProductManipulation": {"tau": 2.0},
    "ALittleIsEnough": {"tau": 1.5},
    "Mimic": {"epsilon": 0},
    "Gaussian": {"mu": 0.0, "sigma": 1.0},
}
SEARCH = {"f": 1, "evals": 20, "start": 0.0, "delta": 10.0, "ratio": 0.8}


def test_names_arguments_and_defaults_are_those_of_byzfl() -> None:
    searched = {f"Optimal_{name}": SEARCH for name in ("InnerProductManipulation", "ALittleIsEnough")}
    assert set(byzfl.__all__) == set(SIGNATURES | searched)
    for name, expected in (SIGNATURES | searched).items():
        made = inspect.signature(getattr(byzfl, name)).parameters
        order = [*(("agg", "pre_agg_list") if name in searched else ()), *expected]
        assert [own for own in made if own != "rng"] == order, name
        assert {own: made[own].default for own in expected} == expected, name
        given = getattr(byzfl, name)(*expected.values()) if name not in searched else getattr(byzfl, name)()
        assert {own: getattr(given, own) for own in expected} == expected, name
        pickle.loads(pickle.dumps(given))
    optimal = byzfl.Optimal_ALittleIsEnough()
    assert [type(link) for link in (optimal.agg, *optimal.pre_agg_list)] == [byzfl.Average, byzfl.Clipping]


def distances(X: Array) -> Array:
    return np.linalg.norm(X[:, None] - X[None], axis=2)


def by_score(X: Array, f: int) -> Array:
    """Rows by their mean squared distances to the n-f-1 nearest others."""
    squared = np.sort(distances(X) ** 2, axis=1)[:, 1 : len(X) - f]
    return np.argsort(squared.mean(axis=1), kind="stable")


def nearest(X: Array, i: int, k: int) -> Array:
    return np.argsort(distances(X)[i], kind="stable")[:k]


def best_subset(X: Array, f: int, spread: Callable[[Array], float]) -> Array:
    best = min(combinations(range(len(X)), len(X) - f), key=lambda chosen: spread(X[list(chosen)]))
    mean: Array = X[list(best)].mean(axis=0)
    return mean


def around(X: Array, f: int) -> Array:
    order = np.argsort(np.abs(X - np.median(X, axis=0)), axis=0, kind="stable")[: len(X) - f]
    mean: Array = np.take_along_axis(X, order, axis=0).mean(axis=0)
    return mean


def shortened(X: Array, limit: float) -> Array:
    made: Array = X * np.minimum(1, limit / np.linalg.norm(X, axis=1))[:, None]
    return made


def centered(X: Array, tau: float, steps: int) -> Array:
    v = np.zeros(X.shape[1])
    for _ in range(steps):
        v = v + shortened(X - v, tau).mean(axis=0)
    return v


def filtered(X: Array, f: int) -> Array:
    """CAF with exact eigenvectors."""
    n, c = len(X), np.ones(len(X))
    found = []
    while c.sum() > n - 2 * f:
        mu = c @ X / c.sum()
        value, vector = np.linalg.eigh(((X - mu).T * c) @ (X - mu) / c.sum())
        found.append((value[-1], mu))
        tau = ((X - mu) @ vector[:, -1]) ** 2
        c = c * (1 - tau / tau.max())
    return min(found, key=lambda pair: pair[0])[1]


def top_eigenvalue(S: Array) -> float:
    return float(np.linalg.eigvalsh((S - S.mean(axis=0)).T @ (S - S.mean(axis=0))).max())


N, F = 7, 2
X = np.random.default_rng(0).standard_normal((N, 4)) * 3
LONGEST = np.sort(np.linalg.norm(X, axis=1))

#: A class, its settings, and the definition on X.
CASES: list[tuple[str, dict[str, Any], Any]] = [
    ("Average", {}, X.mean(axis=0)),
    ("Median", {}, np.median(X, axis=0)),
    ("TrMean", {"f": F}, np.sort(X, axis=0)[F:-F].mean(axis=0)),
    ("Krum", {"f": F}, X[by_score(X, F)[0]]),
    ("Krum", {"f": 3}, X[by_score(X, 3)[0]]),  # n < 2f + 3, which aggregate.krum refuses
    ("MultiKrum", {"f": F}, X[by_score(X, F)[: N - F]].mean(axis=0)),
    ("MultiKrum", {"f": 3}, X[by_score(X, 3)[: N - 3]].mean(axis=0)),
    ("CenteredClipping", {}, X.mean(axis=0)),
    ("CenteredClipping", {"L": 3, "tau": 1.5}, centered(X, 1.5, 3)),
    ("MDA", {"f": F}, best_subset(X, F, lambda S: float(distances(S).max()))),
    ("SMEA", {"f": F}, best_subset(X, F, top_eigenvalue)),
    ("CAF", {"f": F}, filtered(X, F)),
    ("MoNNA", {"f": F, "idx": 4}, X[nearest(X, 4, N - F)].mean(axis=0)),
    ("Meamed", {"f": F}, around(X, F)),
    ("NNM", {"f": F}, np.stack([X[nearest(X, i, N - F)].mean(axis=0) for i in range(N)])),
    ("Clipping", {}, shortened(X, 2.0)),
    ("ARC", {"f": F}, shortened(X, LONGEST[N - 1 - 2])),  # floor(2 * 2 * 5 / 7) = 2 are clipped
    ("SignFlipping", {}, -X.mean(axis=0)),
    ("InnerProductManipulation", {"tau": 3}, -3 * X.mean(axis=0)),
    ("ALittleIsEnough", {}, X.mean(axis=0) + 1.5 * X.std(axis=0, ddof=1)),
    ("Mimic", {"epsilon": 5}, X[5]),
    ("Inf", {}, np.full(4, np.inf)),
    ("LabelFlipping", {}, X.mean(axis=0)),
    # The mean of 7 rows and f more moves by f/(7+f) (1 + tau) |mean|: every doubling of 10 adds harm.
    ("Optimal_InnerProductManipulation", {"pre_agg_list": [], "evals": 4, "f": 2}, -70 * X.mean(axis=0)),
    ("Optimal_ALittleIsEnough", {"pre_agg_list": [], "evals": 3}, X.mean(axis=0) + 30 * X.std(axis=0, ddof=1)),
]


def test_every_class_by_its_published_definition() -> None:
    before = X.copy()
    for name, settings, expected in CASES:
        configured = getattr(byzfl, name)(**settings)
        for kind, rows in (("array", X), ("list", list(X)), ("lists", X.tolist())):
            for _ in range(2):  # nothing is kept from one call to the next
                made = configured(rows)
                assert type(made) is np.ndarray, (name, kind)
                np.testing.assert_allclose(made, expected, rtol=1e-12, atol=1e-12, err_msg=f"{configured} of {kind}")
        single = configured(X.astype(np.float32))
        assert single.dtype == np.float32, name
        np.testing.assert_allclose(single, expected, rtol=1e-4, atol=1e-4, err_msg=f"{configured} in float32")
        assert np.array_equal(X, before), f"{name} modified its input"
    assert {name for name, _, _ in CASES} | {"Bucketing", "Gaussian", "GeometricMedian"} == set(byzfl.__all__)


def test_the_geometric_median_is_exact_and_has_no_scale() -> None:
    line = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    for settings in ({}, {"nu": 0.5, "T": 1}):
        assert byzfl.GeometricMedian(**settings)(line).tolist() == [4.0, 5.0, 6.0]
    close = 1e-3 * np.array([[1.0], [2.0], [3.0], [1e3]])  # nearer than nu: smoothed, it would be near the mean, 0.25
    assert byzfl.GeometricMedian()(close)[0] <= 3e-3


def test_a_search_shrinks_its_step_once_harm_no_longer_grows() -> None:
    """Harm ``20 - |tau - 14|``, where every trial can be followed by hand."""
    tried = []

    def agg(rows: Array) -> Array:
        tried.append(-rows[-1, 0])
        return np.array([1 + 20 - abs(tried[-1] - 14)])

    attack = byzfl.Optimal_InnerProductManipulation(agg=agg, pre_agg_list=[], evals=8)
    assert attack([[1.0], [1.0]]).tolist() == pytest.approx([-(10 + 20 * 0.8**5)])
    np.testing.assert_allclose(tried, [0, 10, 30, *(10 + 20 * 0.8 ** np.arange(1, 6))])


def test_the_quick_start_of_byzfl() -> None:
    honest = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    forged = byzfl.SignFlipping()(honest)
    assert forged.tolist() == [-4.0, -5.0, -6.0]
    rows = np.concatenate((honest, np.tile(forged, (1, 1))), axis=0)
    assert byzfl.TrMean(f=1)(rows).tolist() == [2.5, 3.5, 4.5]


def test_draws_are_those_of_byzfl_or_of_a_generator_of_ones_own() -> None:
    state = np.random.get_state()  # noqa: NPY002 - what programs for ByzFL seed
    try:
        np.random.seed(3)  # noqa: NPY002
        buckets, forged = byzfl.Bucketing(s=3)(X), byzfl.Gaussian(mu=1.0, sigma=2.0)(X)
        legacy = np.random.RandomState(3)
        order = legacy.permutation(N)
        np.testing.assert_allclose(buckets, [X[order[at : at + 3]].mean(axis=0) for at in (0, 3, 6)], rtol=1e-14)
        np.testing.assert_allclose(forged, legacy.normal(1.0, 2.0, 4), rtol=1e-14)
        before = np.random.get_state()[1].tolist()  # noqa: NPY002
        own = [(byzfl.Bucketing(3, rng=0)(X), byzfl.Gaussian(rng=np.random.default_rng(0))(X)) for _ in range(2)]
        assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
    finally:
        np.random.set_state(state)  # noqa: NPY002
    np.testing.assert_array_equal(own[0][0], aggregate.bucketing(X, s=3, rng=0))
    np.testing.assert_array_equal(own[0][0], own[1][0])
    np.testing.assert_array_equal(own[0][1], own[1][1])
    seeded = byzfl.Gaussian(rng=0)
    assert not np.array_equal(seeded(X), seeded(X))  # new numbers in every call


def test_rows_that_are_not_finite_poison_nothing() -> None:
    """Where ByzFL's Krum returns the row of NaN itself."""
    for poison in (np.nan, np.inf):
        bad = X.copy()
        bad[3, 1] = poison
        rest = np.delete(X, 3, axis=0)
        for name, settings, _ in CASES:
            if name in byzfl.attacks.__all__ or settings.get("f", F) != F:
                continue
            fewer = {key: value - 1 if key in ("f", "idx") else value for key, value in settings.items()}
            made = getattr(byzfl, name)(**settings)(bad)
            np.testing.assert_array_equal(made, getattr(byzfl, name)(**fewer)(rest), err_msg=name)
        assert byzfl.Krum(f=3)(bad).tolist() in rest.tolist()


def test_the_center_of_clipping_is_an_argument() -> None:
    clipping = byzfl.CenteredClipping(m=np.ones(4), tau=0.5)
    first = clipping(X)
    np.testing.assert_allclose(first, 1 + shortened(X - 1, 0.5).mean(axis=0), rtol=1e-12)
    clipping.m = first
    np.testing.assert_allclose(clipping(X), first + shortened(X - first, 0.5).mean(axis=0), rtol=1e-12)


def test_errors_name_the_argument() -> None:
    cases: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: byzfl.Krum(f=-1), ValueError, "^f: expected an integer >= 0, got -1$"),
        (lambda: byzfl.TrMean(0.5), TypeError, "^f: expected an integer, got float$"),
        (lambda: byzfl.TrMean(2)(X[:4]), ValueError, "f=2 is too large for n=4 workers; at most 1$"),
        (lambda: byzfl.Krum(2)(X[:4]), ValueError, "f=2 is too large for n=4 workers; at most 1$"),
        (lambda: byzfl.GeometricMedian(nu="a"), TypeError, "^nu: "),
        (lambda: byzfl.CenteredClipping(L=0), ValueError, "^L: "),
        (lambda: byzfl.Bucketing(rng="seed"), TypeError, "^rng: "),
        (lambda: byzfl.Mimic(7)(X), ValueError, r"^epsilon: expected an integer in \[0, 6\], got 7$"),
        (lambda: byzfl.Optimal_ALittleIsEnough(agg="krum"), TypeError, "^agg: expected a callable, got str$"),
        (lambda: byzfl.Optimal_ALittleIsEnough(delta=0), ValueError, "^delta: "),
        (lambda: byzfl.Optimal_ALittleIsEnough(ratio=0.5), ValueError, r"^ratio: expected a number in \(0.5, 1\)"),
        (lambda: byzfl.Krum(1)([1.0, 2.0]), ValueError, "^X: expected shape"),
    ]
    for call, kind, message in cases:
        with pytest.raises(kind, match=message):
            call()


def test_what_is_not_rebuilt_names_what_takes_its_place() -> None:
    for name, place in {
        "Client": "byzadmm.simulate",
        "Server": "byzadmm.simulate",
        "DataDistributor": "byzadmm.partition",
        "RobustAggregator": "byzadmm.aggregators.Chain",
        "run_benchmark": "byzadmm.compare",
        "cnn_mnist": "byzadmm.torch.ModuleLoss",
        "utils": "seed=",
    }.items():
        with pytest.raises(AttributeError, match=f"has no attribute '{name}': .*{place}"):
            getattr(byzfl, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'Krumm'$"):
        _ = byzfl.Krumm


def test_its_classes_are_links_of_a_chain_and_rules_of_a_run() -> None:
    chain = aggregators.make([byzfl.Clipping(c=2.0), byzfl.NNM(f=F), byzfl.TrMean(f=F)])
    by_hand = aggregate.nearest_neighbor_mixing(aggregate.clip(X, max_norm=2.0), f=F)
    np.testing.assert_array_equal(chain(X), aggregate.trimmed_mean(by_hand, f=F))
    data = byzadmm.datasets.load("digits")
    parts = byzadmm.partition.iid(data.train_y, 5, seed=0)
    runs = [
        byzadmm.simulate(data, parts, algorithm=byzadmm.SGD(rule=rule, f=f), iterations=2, n_byzantine=1)
        for rule, f in ((byzfl.TrMean(f=1), 0), ("trimmed-mean", 1))
    ]
    np.testing.assert_array_equal(runs[0].x0, runs[1].x0)


def test_tensors_keep_their_kind_and_dtype(torch: ModuleType) -> None:
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        rows = torch.from_numpy(X).to(dtype)
        for name, settings, _ in CASES:
            configured = getattr(byzfl, name)(**settings)
            made, listed = configured(rows), configured(list(rows))
            assert isinstance(made, torch.Tensor), name
            assert made.dtype == listed.dtype == dtype, name
            assert torch.equal(made, listed), name
            if dtype == torch.float64:
                np.testing.assert_array_equal(made.numpy(), configured(X), err_msg=name)
    torch.manual_seed(3)
    order = torch.randperm(N)
    normal = torch.randn(4)
    torch.manual_seed(3)
    rows = torch.from_numpy(X).float()
    made = byzfl.Bucketing(s=7)(rows), byzfl.Gaussian(mu=1.0, sigma=2.0)(rows)
    torch.testing.assert_close(made[0][0], rows[order].mean(dim=0))
    torch.testing.assert_close(made[1], 1 + 2 * normal)
