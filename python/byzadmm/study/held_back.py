"""Training samples that a study holds back for the master: clean ones, in no worker's part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byzadmm._internal.arrays import Array, as_index
from byzadmm._internal.validation import check_int
from byzadmm.datasets import Dataset

__all__ = ["SAMPLES", "held_back", "remaining"]

#: How many, where an algorithm needs some and no number is given.
SAMPLES = 200

_STREAM = 11  # apart from the draws of partitions by the same seed


def held_back(given: Any, dataset: Dataset, parts: Sequence[Any] | None, seed: int) -> Array:
    """The rows of the training set that the master holds in the runs of one seed, ascending.

    Parameters
    ----------
    given : int, or rows
        So many rows, drawn by ``seed``, or these.
    dataset : Dataset
    parts : list of index arrays or None
        The workers' parts if those are given: rows are drawn among the others.
    seed : int

    Examples
    --------
    >>> from byzadmm import datasets
    >>> from byzadmm.study.held_back import held_back
    >>> held_back(3, datasets.load("digits"), None, seed=0).tolist()
    [203, 299, 746]
    """
    if not isinstance(given, (int, np.integer)):
        return np.unique(as_index(given, "validation"))
    free = np.arange(len(dataset.train_x))
    if parts is not None:
        free = np.setdiff1d(free, np.concatenate([np.asarray(part) for part in parts]))
    count = check_int(given, "validation", low=1)
    if count > len(free) - (parts is None):
        raise ValueError(f"validation: expected at most {max(len(free) - (parts is None), 0)} free rows, got {count}")
    drawn: Array = np.sort(np.random.default_rng([seed, _STREAM]).choice(free, count, replace=False))
    return drawn


def remaining(dataset: Dataset, rows: Array | None) -> Array | None:
    """The rows that are left for the workers; None: all."""
    return None if rows is None else np.setdiff1d(np.arange(len(dataset.train_x)), rows)
