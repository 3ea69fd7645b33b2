"""Who takes part in a round: all workers, or some that are drawn for it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from byzadmm import _core
from byzadmm._internal.arrays import Array

__all__ = ["Mask", "Sampling"]

Mask = NDArray[np.bool_]

_PARTICIPATION = _core.PURPOSES.index("participation")


class Sampling:
    """The workers that take part in each round: all of them, or ``ceil(share m)``, drawn anew for every round.

    They are those with the smallest of m words of the stream (seed; participation, 0, k), so that every process draws
    the same ones without being told.

    Parameters
    ----------
    m : int
        Number of workers.
    share : float in (0, 1]
    seed : int

    Attributes
    ----------
    count : int
        Workers per round.
    complete : bool
        Whether all workers take part in every round.

    Examples
    --------
    >>> from byzadmm.training.sampling import Sampling
    >>> sampling = Sampling(10, 0.3, seed=0)
    >>> sampling.count, [sampling.workers(k).tolist() for k in (1, 2)]
    (3, [[4, 7, 9], [0, 4, 7]])
    """

    def __init__(self, m: int, share: float, seed: int) -> None:
        self.m, self.seed = m, seed
        self.count = max(1, math.ceil(round(share * m, 9)))  # 0.07 * 100 is 7.000000000000001
        self.complete = self.count == m
        self._drawn: tuple[int | None, NDArray[np.int64]] = None, np.arange(m)  # the round drawn last

    def workers(self, k: int) -> NDArray[np.int64]:
        """The numbers of those that take part in round ``k``, ascending."""
        drawn, workers = self._drawn
        if self.complete or drawn == k:
            return workers
        words = np.empty(self.m, np.int64)
        _core.philox_integers(words, 2**63, self.seed, (_PARTICIPATION, 0, k))
        workers = np.sort(np.argsort(words, kind="stable")[: self.count])
        self._drawn = k, workers
        return workers

    def places(self, k: int, workers: range) -> range:
        """Where consecutive ``workers``, as far as they take part in round ``k``, are among all that do."""
        if self.complete:
            return workers
        first, end = np.searchsorted(self.workers(k), (workers.start, workers.stop)).tolist()
        return range(first, end)

    def spread(self, k: int, rows: Array) -> tuple[Array, Mask | None]:
        """The rows (count, ...) of those that take part in round ``k`` in an array of m, and who they are.

        The other rows are zero; None: all workers take part.
        """
        if self.complete:
            return rows, None
        workers = self.workers(k)
        messages = np.zeros((self.m, *rows.shape[1:]), rows.dtype)
        messages[workers] = rows
        present = np.zeros(self.m, np.bool_)
        present[workers] = True
        return messages, present
