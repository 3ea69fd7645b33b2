"""Partition stage: the targets of a training set in, one index array per worker out.

Every function returns a list of ``n_workers`` int64 arrays that together hold each of ``0..len(y)-1`` exactly once.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import numpy.typing as npt

from byzadmm._internal.permutation import permutation
from byzadmm._internal.validation import check_int, check_real

__all__ = ["by_label", "dirichlet", "iid"]

_MAX_SEED = 2**64 - 1

Indices = npt.NDArray[np.int64]


def iid(y: npt.ArrayLike, n_workers: int, seed: int = 0) -> list[Indices]:
    """Deal the samples out evenly and at random.

    ``part[i] = order[lo_i : lo_{i+1}]`` with a seeded ``order`` of all samples; the sizes differ by at most one.

    Parameters
    ----------
    y : (N,)
        Labels or real targets; only their number matters here.
    n_workers : int
        Number of workers, at most ``N``.
    seed : int
        Seed of the order.

    Returns
    -------
    list of n_workers int64 arrays
        Indices into ``y``.

    Examples
    --------
    >>> from byzadmm import partition
    >>> [len(part) for part in partition.iid([0, 1, 0, 1, 0], 2)]
    [3, 2]

    References
    ----------
    Section "Numerical Experiments" of the paper: the i.i.d. setting.
    """
    n = len(_check_targets(y))
    n_workers = _check_workers(n_workers, n)
    seed = check_int(seed, "seed", low=0, high=_MAX_SEED)
    return np.array_split(permutation(n, seed), n_workers)


def by_label(y: npt.ArrayLike, n_workers: int, per_label: int = 2, seed: int = 0) -> list[Indices]:
    """Give every worker one label only, each label to ``per_label`` workers.

    ``part[per_label * c + j]`` is share ``j`` of the samples with label ``c``; the shares of a label differ by at most
    one sample.

    Parameters
    ----------
    y : (N,) integers
        Labels ``0..K-1``, each present at least ``per_label`` times.
    n_workers : int
        Must equal ``per_label * K``.
    per_label : int
        Workers that share a label.
    seed : int
        Seed of the order inside a label.

    Returns
    -------
    list of n_workers int64 arrays
        Indices into ``y``.

    Examples
    --------
    >>> from byzadmm import partition
    >>> y = [1, 0, 1, 0, 1]
    >>> [sorted({y[i] for i in part}) for part in partition.by_label(y, 4)]
    [[0], [0], [1], [1]]

    References
    ----------
    Section "Numerical Experiments" of the paper: the non-i.i.d. setting, every two workers share one digit.
    """
    labels = _check_labels(y)
    per_label = check_int(per_label, "per_label", low=1)
    n_classes = int(labels.max()) + 1
    n_workers = check_int(n_workers, "n_workers", low=1)
    if n_workers != per_label * n_classes:
        raise ValueError(
            f"n_workers: expected {per_label * n_classes} (per_label={per_label} times {n_classes} classes), "
            f"got {n_workers}"
        )
    seed = check_int(seed, "seed", low=0, high=_MAX_SEED)
    parts = []
    for label, members in enumerate(_members(labels, n_classes, seed)):
        if len(members) < per_label:
            raise ValueError(f"y: expected at least {per_label} samples of label {label}, got {len(members)}")
        parts += np.array_split(members, per_label)
    return parts


def dirichlet(y: npt.ArrayLike, n_workers: int, alpha: float, seed: int = 0) -> list[Indices]:
    """Split each label among the workers in random proportions.

    ``p_c ~ Dirichlet(alpha, ..., alpha)``; worker ``i`` gets about the share ``p_c[i]`` of label ``c``. Small ``alpha``
    is far from i.i.d., large ``alpha`` close to it. A worker left with nothing takes one sample from the largest.

    Parameters
    ----------
    y : (N,) integers
        Labels ``0..K-1``.
    n_workers : int
        Number of workers, at most ``N``.
    alpha : float
        Concentration, positive.
    seed : int
        Seed of the proportions and of the order inside a label.

    Returns
    -------
    list of n_workers int64 arrays
        Indices into ``y``, none of them empty.

    Examples
    --------
    >>> from byzadmm import partition
    >>> sum(len(part) for part in partition.dirichlet([0, 1] * 50, 4, alpha=0.5))
    100

    References
    ----------
    T.-M. H. Hsu, H. Qi, M. Brown, "Measuring the effects of non-identical data distribution for federated visual
    classification", arXiv:1909.06335, 2019.
    """
    labels = _check_labels(y)
    n_workers = _check_workers(n_workers, len(labels))
    alpha = check_real(alpha, "alpha", low=0.0, strict=True)
    seed = check_int(seed, "seed", low=0, high=_MAX_SEED)
    rng = np.random.default_rng(seed)
    shares: list[list[Indices]] = [[] for _ in range(n_workers)]
    # Only the labels that occur: a stray label of a billion must not cost a billion draws.
    present, labels = np.unique(labels, return_inverse=True)
    for members in _members(labels, len(present), seed):
        proportions = rng.dirichlet(np.full(n_workers, alpha))
        cuts = np.rint(np.cumsum(proportions)[:-1] * len(members)).astype(np.int64)
        for share, piece in zip(shares, np.split(members, cuts), strict=True):
            share.append(piece)
    parts = [np.concatenate(share) for share in shares]
    largest = [(-len(part), i) for i, part in enumerate(parts) if len(part)]  # a heap: the largest, then the first
    heapq.heapify(largest)
    for i in range(n_workers):
        if not len(parts[i]):
            size, giver = largest[0]
            parts[i] = parts[giver][-size - 1 : -size].copy()
            heapq.heapreplace(largest, (size + 1, giver))
    for size, giver in largest:
        parts[giver] = parts[giver][:-size]
    return parts


def _members(labels: Indices, n_classes: int, seed: int) -> list[Indices]:
    """Return, per label, the indices that carry it, in seeded order."""
    order = permutation(len(labels), seed)
    # A stable sort keeps the seeded order inside each label; it is one pass, where a mask per label would be K.
    grouped = order[np.argsort(labels[order], kind="stable")]
    return np.split(grouped, np.cumsum(np.bincount(labels, minlength=n_classes))[:-1])


def _check_targets(y: Any) -> npt.NDArray[Any]:
    targets = np.asarray(y)
    if targets.ndim != 1 or not targets.size:
        raise ValueError(f"y: expected a non-empty 1-D array, got shape {targets.shape}")
    return targets


def _check_labels(y: Any) -> Indices:
    labels = _check_targets(y)
    if labels.dtype.kind not in "iub":
        raise TypeError(f"y: expected integers, the labels of a Dataset, got {labels.dtype}; iid takes any targets")
    if labels.min() < 0:
        raise ValueError(f"y: expected labels >= 0, got {labels.min()}")
    return labels.astype(np.int64, copy=False)


def _check_workers(n_workers: Any, n_samples: int) -> int:
    number = check_int(n_workers, "n_workers", low=1)
    if number > n_samples:
        raise ValueError(f"n_workers: expected at most {n_samples} (one sample each), got {number}")
    return number
