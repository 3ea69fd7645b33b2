"""Meamed, Phocas, centered clipping, bucketing and clipping by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from byzadmm import aggregate
from byzadmm import reference as ref
from support.arrays import same_bits
from support.rules import normal

Array = npt.NDArray[Any]
Settings = dict[str, Any]

DTYPES = ("float32", "float64")


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


def test_buckets_longer_than_the_list_are_one_mean() -> None:
    for s in (4, 2**63 - 1, 10**30):
        assert aggregate.bucketing([[1.0], [2.0], [3.0], [6.0]], s=s, rng=0).tolist() == [[3.0]], s


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


def test_mixing_of_rows_with_the_same_neighbors() -> None:
    """Groups of rows that lie among each other: few sets of neighbors, each in many orders; also sums that overflow."""
    for dtype in DTYPES:
        X = np.random.default_rng(0).standard_normal((30, 33)).astype(dtype)
        X[::3] += 30
        X[1::7] -= 1e4
        X[:, 5] = np.finfo(dtype).max * np.linspace(0.9, 1, 30)
        X[:, 6] = X[:, 5] * np.where(np.arange(30) % 3 == 0, 1, -1)
        for f in (1, 8, 14):
            mixed, info = aggregate.nearest_neighbor_mixing(X, f=f, return_info=True)
            sets = [tuple(sorted(nearest)) for nearest in info.selected.tolist()]
            assert 1 < len(set(sets)) < 30
            scale = np.abs(X).max(axis=0)
            expected = np.stack([(X[list(one)] / scale).astype(np.float64).mean(axis=0) for one in sets])
            np.testing.assert_allclose(mixed / scale, expected, rtol=0, atol=4 * float(np.finfo(dtype).eps))
            for one, row in zip(sets, mixed, strict=True):
                assert same_bits(row, mixed[sets.index(one)])
