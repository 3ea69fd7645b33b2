"""Partition stage: each sample to exactly one worker, in the promised proportions, for any order of the labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzadmm import partition
from byzadmm._internal.permutation import permutation

Parts = list[np.ndarray[Any, np.dtype[np.int64]]]

labels = st.lists(st.integers(0, 5), min_size=1, max_size=80)
seeds = st.integers(0, 2**64 - 1)

SPLITTERS: dict[str, Callable[..., Parts]] = {
    "iid": partition.iid,
    "by_label": partition.by_label,
    "dirichlet": lambda y, n_workers, **kw: partition.dirichlet(y, n_workers, alpha=0.5, **kw),
    "gamma_similarity": lambda y, n_workers, **kw: partition.gamma_similarity(y, n_workers, gamma=0.5, **kw),
}


def assert_partition(parts: Parts, n_samples: int, n_workers: int) -> None:
    assert len(parts) == n_workers
    assert all(part.dtype == np.int64 and part.ndim == 1 and part.size for part in parts)
    assert sorted(np.concatenate(parts).tolist()) == list(range(n_samples))


@given(n=st.integers(0, 300), seed=seeds)
def test_permutation_holds_each_index_once(n: int, seed: int) -> None:
    order = permutation(n, seed)
    assert order.dtype == np.int64
    assert sorted(order.tolist()) == list(range(n))


def test_permutation_never_moves() -> None:
    # Published splits hang on these numbers: they may not change with NumPy or with us.
    assert permutation(10, 0).tolist() == [0, 2, 9, 1, 8, 5, 4, 3, 6, 7]


@given(y=labels, data=st.data(), seed=seeds)
def test_iid_is_even(y: list[int], data: st.DataObject, seed: int) -> None:
    n_workers = data.draw(st.integers(1, len(y)))
    parts = partition.iid(y, n_workers, seed)
    assert_partition(parts, len(y), n_workers)
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_iid_mixes_sorted_labels() -> None:
    y = np.repeat(np.arange(10), 600)
    for part in partition.iid(y, 20, seed=3):
        counts = np.bincount(y[part], minlength=10)
        assert counts.min() > 10
        assert counts.max() < 55


@given(n_classes=st.integers(1, 6), per_label=st.integers(1, 4), extra=labels, seed=seeds)
def test_by_label_gives_worker_its_share(n_classes: int, per_label: int, extra: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.concatenate([np.repeat(np.arange(n_classes), per_label), np.array(extra) % n_classes]))
    parts = partition.by_label(y, per_label * n_classes, per_label, seed)
    assert_partition(parts, len(y), per_label * n_classes)
    for label in range(n_classes):
        shares = parts[per_label * label : per_label * (label + 1)]
        assert all((y[share] == label).all() for share in shares)
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


@given(y=labels, data=st.data(), gamma=st.sampled_from([0.0, 0.1, 0.5, 0.97, 1.0]), seed=seeds)
def test_gamma_similarity_deals_one_share_evenly_and_the_rest_by_label(
    y: list[int], data: st.DataObject, gamma: float, seed: int
) -> None:
    n_workers = data.draw(st.integers(1, len(y)))
    parts = partition.gamma_similarity(y, n_workers, gamma, seed)
    assert_partition(parts, len(y), n_workers)
    even = round(gamma * len(y))
    shares = [even // n_workers + (worker >= n_workers - even % n_workers) for worker in range(n_workers)]
    first = set(permutation(len(y), seed)[:even].tolist())
    assert [len(first & set(part.tolist())) for part in parts] == shares
    rest = [{y[i] for i in set(part.tolist()) - first} for part in parts]
    kinds = len(set().union(*rest))
    if n_workers >= kinds:
        assert max(map(len, rest)) <= 1
    else:
        assert sum(map(len, rest)) == kinds  # whole labels
        assert min(map(len, rest)) >= 1
    assert [label for some in rest for label in sorted(some)] == sorted(label for some in rest for label in some)


def test_gamma_similarity_by_hand() -> None:
    y = np.repeat([0, 1, 2], [60, 30, 10])
    for n_workers, expected in (
        (1, [[60, 30, 10]]),
        (2, [[60, 0, 0], [0, 30, 10]]),
        (3, [[60, 0, 0], [0, 30, 0], [0, 0, 10]]),
        (5, [[20, 0, 0]] * 3 + [[0, 30, 0], [0, 0, 10]]),  # the largest share is cut
        (6, [[20, 0, 0]] * 3 + [[0, 15, 0]] * 2 + [[0, 0, 10]]),
    ):
        parts = partition.gamma_similarity(y, n_workers, gamma=0.0, seed=4)
        assert [np.bincount(y[part], minlength=3).tolist() for part in parts] == expected, n_workers
    with pytest.raises(ValueError, match=r"gamma: expected a finite number in \[0.0, 1.0\], got 1.5"):
        partition.gamma_similarity(y, 2, gamma=1.5)


def test_by_label_default_is_two_workers_per_label() -> None:
    y = np.tile(np.arange(10), 7)
    parts = partition.by_label(y, 20)
    assert [int(y[part][0]) for part in parts] == [worker // 2 for worker in range(20)]


def test_by_label_shuffles_inside_a_label() -> None:
    y = np.zeros(100, dtype=int)
    assert partition.by_label(y, 2)[0].tolist() != list(range(50))


@settings(deadline=None)
@given(y=labels, data=st.data(), alpha=st.floats(1e-300, 1e300), seed=seeds)
def test_dirichlet_leaves_nobody_empty(y: list[int], data: st.DataObject, alpha: float, seed: int) -> None:
    n_workers = data.draw(st.integers(1, len(y)))
    assert_partition(partition.dirichlet(y, n_workers, alpha, seed), len(y), n_workers)


def test_dirichlet_alpha_goes_from_one_label_to_iid() -> None:
    y = np.tile(np.arange(10), 1000)

    def largest_share(alpha: float) -> float:
        shares = [np.bincount(y[part], minlength=10) / len(part) for part in partition.dirichlet(y, 10, alpha)]
        return float(np.mean([share.max() for share in shares]))

    assert largest_share(1e4) < 0.12
    assert largest_share(1e-2) > 0.6


def test_dirichlet_ignores_labels_that_do_not_occur() -> None:
    assert_partition(partition.dirichlet([0, 2**40, 0, 2**40], 2, 1.0), 4, 2)


@pytest.mark.parametrize("name", SPLITTERS)
def test_seed_decides(name: str) -> None:
    y = np.tile(np.arange(4), 50)
    split = SPLITTERS[name]
    first, again, other = split(y, 8), split(y, 8, seed=0), split(y, 8, seed=1)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("name", SPLITTERS)
def test_label_dtype_does_not_matter_and_input_is_kept(name: str) -> None:
    y = np.tile(np.arange(4, dtype=np.uint8), 10)
    before = y.copy()
    parts = SPLITTERS[name](y, 8)
    assert all(np.array_equal(a, b) for a, b in zip(parts, SPLITTERS[name](y.tolist(), 8), strict=True))
    assert np.array_equal(y, before)
    parts[0][:] = -1
    assert sum((part < 0).sum() for part in parts[1:]) == 0


@pytest.mark.parametrize("name", SPLITTERS)
@pytest.mark.parametrize(
    ("y", "kwargs", "error", "message"),
    [
        ([], {}, ValueError, r"y: expected a non-empty 1-D array, got shape \(0,\)"),
        ([[0], [1]], {}, ValueError, r"y: expected a non-empty 1-D array, got shape \(2, 1\)"),
        ([0, 0, 1, 1], {"n_workers": 0}, ValueError, "n_workers: expected an integer >= 1, got 0"),
        ([0, 0, 1, 1], {"n_workers": 2.0}, TypeError, "n_workers: expected an integer, got float"),
        ([0, 0, 1, 1], {"seed": -1}, ValueError, "seed: expected an integer in .*, got -1"),
        ([0, 0, 1, 1], {"seed": None}, TypeError, "seed: expected an integer, got NoneType"),
    ],
)
def test_common_errors(name: str, y: Any, kwargs: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        SPLITTERS[name](y, **{"n_workers": 4, **kwargs})


def test_real_targets_are_dealt_out_by_iid_alone() -> None:
    rng = np.random.default_rng(0)
    for y in (rng.normal(size=40), -np.arange(40), np.array(["a", "b"] * 20), [0.5, np.nan] * 20):
        parts = partition.iid(y, 4, seed=3)
        assert_partition(parts, 40, 4)
        same = partition.iid(np.arange(40), 4, seed=3)
        assert all(np.array_equal(a, b) for a, b in zip(parts, same, strict=True)), y
    for name in ("by_label", "dirichlet"):
        message = "y: expected integers, the labels of a Dataset, got float64; iid takes any targets"
        with pytest.raises(TypeError, match=message):
            SPLITTERS[name]([0.0, 1.0], 4)
        with pytest.raises(ValueError, match="y: expected labels >= 0, got -1"):
            SPLITTERS[name]([0, -1], 4)


@pytest.mark.parametrize("name", ["iid", "dirichlet"])
def test_more_workers_than_samples(name: str) -> None:
    with pytest.raises(ValueError, match=r"n_workers: expected at most 3 \(one sample each\), got 4"):
        SPLITTERS[name]([0, 1, 2], 4)


def test_by_label_errors() -> None:
    with pytest.raises(ValueError, match=r"n_workers: expected 4 \(per_label=2 times 2 classes\), got 5"):
        partition.by_label([0, 1, 0, 1], 5)
    with pytest.raises(ValueError, match="per_label: expected an integer >= 1, got 0"):
        partition.by_label([0, 1, 0, 1], 4, per_label=0)
    with pytest.raises(ValueError, match="y: expected at least 2 samples of label 1, got 0"):
        partition.by_label([0, 2, 0, 2], 6)


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan"), float("inf")])
def test_dirichlet_alpha_errors(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha: expected a finite number > 0"):
        partition.dirichlet([0, 1], 2, alpha)
