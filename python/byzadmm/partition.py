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

__all__ = ["by_label", "dirichlet", "gamma_similarity", "iid"]

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


def gamma_similarity(y: npt.ArrayLike, n_workers: int, gamma: float, seed: int = 0) -> list[Indices]:
    """Deal a share of the samples evenly and at random, and the rest by label.

    Of a seeded order of all samples, the first ``gamma N`` (rounded) are dealt as by :func:`iid`. Of the rest, as far
    as counts allow,

    * every worker has one label, if there are at least as many workers as labels: the workers of a label have equal
      shares of it, and each label has so many workers that the largest share is as small as possible;
    * every worker has several whole labels, neighbors in order and together about as many samples as the others, if
      there are fewer workers.

    ``gamma = 1`` is i.i.d., ``gamma = 0`` the farthest from it. ByzFL takes the same two shares, but cuts the rest into
    equal pieces wherever labels end, so that a worker may have two, and takes the first samples as they come.

    Parameters
    ----------
    y : (N,) integers
        Labels ``0..K-1``.
    n_workers : int
        Number of workers, at most ``N``.
    gamma : float in [0, 1]
        Share of the samples that is dealt at random.
    seed : int
        Seed of the order.

    Returns
    -------
    list of n_workers int64 arrays
        Indices into ``y``, none of them empty.

    Examples
    --------
    >>> from byzadmm import partition
    >>> y = [0, 1, 2] * 20
    >>> [sorted({y[i] for i in part}) for part in partition.gamma_similarity(y, 5, gamma=0.0)]
    [[0], [0], [1], [1], [2]]
    >>> [sorted({y[i] for i in part}) for part in partition.gamma_similarity(y, 2, gamma=0.0)]
    [[0], [1, 2]]

    References
    ----------
    Gonzalez, Guerraoui, Pinot, Rizk, Stephan, Taiani, "ByzFL: research framework for robust federated learning",
    arXiv:2505.24802, 2025: its "gamma_similarity_niid".
    """
    labels = _check_labels(y)
    n_workers = _check_workers(n_workers, len(labels))
    gamma = check_real(gamma, "gamma", low=0.0, high=1.0)
    seed = check_int(seed, "seed", low=0, high=_MAX_SEED)
    order = permutation(len(labels), seed)
    even, rest = np.split(order, [round(gamma * len(order))])
    # What is left over of the even share goes to the last workers: where the rest is too short for all, the first have
    # it, and nobody is empty.
    shares = np.array_split(even, n_workers)[::-1]
    if not len(rest):
        return shares
    kinds, counts = np.unique(labels[rest], return_counts=True)
    runs = np.split(rest[np.argsort(labels[rest], kind="stable")], np.cumsum(counts)[:-1])
    if n_workers < len(kinds):
        pieces = [np.concatenate(run) for run in _in_runs(runs, n_workers)]
    else:
        shared = zip(runs, _shared(counts, n_workers), strict=True)
        pieces = [piece for run, n in shared for piece in np.array_split(run, n)]
    pieces += [rest[:0]] * (n_workers - len(pieces))
    return [np.concatenate(pair) for pair in zip(shares, pieces, strict=True)]


def _shared(counts: npt.NDArray[np.int64], n_workers: int) -> list[int]:
    """How many of the workers share each label: at least one, at most one per sample, the largest share smallest."""
    workers = [1] * len(counts)
    largest = [(-float(count), label) for label, count in enumerate(counts)]  # a heap by share
    heapq.heapify(largest)
    for _ in range(min(n_workers, int(counts.sum())) - len(counts)):
        label = largest[0][1]
        workers[label] += 1
        heapq.heapreplace(largest, (-int(counts[label]) / workers[label], label))
    return workers


def _in_runs(runs: list[Indices], n_workers: int) -> list[list[Indices]]:
    """At least ``n_workers`` labels' samples in so many groups of neighbors, cut where the samples are divided best."""
    ends = np.cumsum([len(run) for run in runs])
    cuts = [0]
    for worker in range(1, n_workers):
        best = int(np.argmin(np.abs(ends - worker * ends[-1] / n_workers))) + 1
        cuts.append(min(max(best, cuts[-1] + 1), len(runs) - n_workers + worker))
    return [runs[low:high] for low, high in zip(cuts, [*cuts[1:], len(runs)], strict=True)]


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
