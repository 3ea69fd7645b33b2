"""ByzantineSGD: gradients, and sums of them since the start, are compared with those of a majority."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm._internal.lengths import lengths
from byzadmm._internal.validation import check_choice, check_int, check_real
from byzadmm.filters import _majority
from byzadmm.filters.base import register

__all__ = ["ByzantineSGD"]

_FIRST_ROUNDS = 20  # in which V="median" measures


@register
@dataclass(frozen=True)
class ByzantineSGD(_majority.Memory):
    """Eliminates workers whose gradients, or sums of them since the start, lie far from those of a majority.

    ``A_i = sum_t <g_i^t, x0^t - x0^1>``, ``B_i = sum_t g_i^t``; worker i stays while ``|A_i - A_med| <= T_A``,
    ``||B_i - B_med|| <= T_B`` and ``||g_i - g_med|| <= 4 V``

    with the median ``A_med``, and a ``B_i`` (``g_i``) with more than m/2 of the others within ``T_B`` (``2 V``) as
    ``B_med`` (``g_med``). A test without such a point eliminates nobody in that round. For convex losses, workers with
    samples of one distribution and fewer than m/2 Byzantine ones; messages ``g_i`` differ by noise of length ``V`` at
    most. By default ``T_A = 4 D V sqrt(T C)``, ``T_B = 4 V sqrt(T C)``, ``C = log(16 m T / delta)``.

    Parameters
    ----------
    V : float > 0, or "median"
        Bound of the noise. "median": twice the median distance to ``g_med`` over the first 20 rounds, in which the
        tests that need ``V`` eliminate nobody.
    D : float > 0 or None
        The model stays within ``D`` of the first one. None: it is not bounded, and without ``T_A`` there is no test of
        ``A``.
    T : int
        Rounds of the run that the thresholds are for.
    T_A, T_B : float > 0 or None
        In place of the formulas.
    delta : float in (0, 1)
        Probability that the formulas leave for the elimination of a regular worker.
    scale : "all" or "good"
        The sum over those that remain is divided by m, as published, or by their number.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import filters
    >>> guard = filters.ByzantineSGD(V=10.0, T_B=3.0)
    >>> state = guard.begin(3, 1, np.dtype(float))
    >>> given = dict(x0=np.zeros(1), step=0.1, workers=np.arange(3), state=state, validation=None, rng=None)
    >>> [guard.weigh(np.array([[1.0], [1.0], [-1.0]]), k=k, **given).tolist() for k in (1, 2)]
    [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]]

    References
    ----------
    Alistarh, Allen-Zhu, Li, "Byzantine stochastic gradient descent", NeurIPS 2018.
    """

    V: float | str = "median"
    D: float | None = None
    T: int = 1000
    T_A: float | None = None
    T_B: float | None = None
    delta: float = 0.01
    scale: str = "all"

    def __post_init__(self) -> None:
        if isinstance(self.V, str):
            check_choice(self.V, "V", ("median",))
        else:
            _majority.check_limit(self.V, "V")
        for name in ("D", "T_A", "T_B"):
            if getattr(self, name) is not None:
                _majority.check_limit(getattr(self, name), name)
        check_int(self.T, "T", low=1)
        if not 0 < check_real(self.delta, "delta") < 1:
            raise ValueError(f"delta: expected a number in (0, 1), got {self.delta!r}")
        check_choice(self.scale, "scale", ("all", "good"))

    def begin(self, m: int, d: int, dtype: np.dtype[Any]) -> dict[str, Array]:
        return super().begin(m, d, dtype) | {
            "A": np.zeros(m),
            "B": np.zeros((m, d)),
            "center": np.zeros(2, np.int64),
            "first": np.full(d, np.nan),
            "noise": np.full(_FIRST_ROUNDS, np.nan),
        }

    def weigh(self, messages: Array, *, x0: Array, k: int, workers: Array, state: dict[str, Array], **_: Any) -> Array:
        eliminated = state["eliminated"]
        good = eliminated < 0
        t = int(state["rounds"][0])
        state["rounds"][0] += 1
        if t == 0:
            state["first"][:] = x0
        rows, senders, _weights = self.counted(messages, workers, good)
        if not len(rows):
            return np.zeros(len(messages))
        V = self._noise(rows, senders, good, t, state)
        T_A, T_B = self.limits(V, len(good))

        with np.errstate(over="ignore", invalid="ignore"):
            A = state["A"]
            added = np.einsum("ij,j->i", rows.astype(np.float64), x0.astype(np.float64) - state["first"])
            A[np.setdiff1d(np.flatnonzero(good), senders)] += np.median(added)  # messages that are missing
            A[senders] += added
            A[np.isnan(A)] = np.inf
            middle = np.median(A[good])
            out = good & ~(np.abs(A - middle) <= T_A) if math.isfinite(T_A) and math.isfinite(middle) else good & False

        center = state["center"]
        sums = state["B"]
        start = int(center[0]) if good[center[0]] else int(np.flatnonzero(good)[0])
        apart = _majority.advance(sums, rows, senders, good, 1.0, start)
        if math.isfinite(T_B):
            found, apart = _majority.find(lambda i: lengths(sums, sums[i]), good, T_B, start, apart)
            if found >= 0:
                center[0] = found
                out |= good & (apart > T_B)
        if math.isfinite(V):
            found, apart = _majority.find(_majority.between(rows, senders, len(good)), good, 2 * V, int(center[1]))
            if found >= 0:
                center[1] = found
                out[senders] |= apart[senders] > 4 * V
        _majority.expel(eliminated, out, k, "ByzantineSGD")
        return np.where(eliminated[workers] < 0, 1.0, 0.0)

    def limits(self, V: float, m: int) -> tuple[float, float]:
        """``T_A`` and ``T_B`` for noise of length ``V`` and ``m`` workers; infinity where there is no test."""
        scale = 4 * math.sqrt(self.T * math.log(16 * m * self.T / self.delta)) * V
        T_B = scale if self.T_B is None else self.T_B
        return self.T_A if self.T_A is not None else math.inf if self.D is None else self.D * scale, T_B

    def _noise(self, rows: Array, senders: Array, good: Array, t: int, state: dict[str, Array]) -> float:
        """``V``; infinity as long as it is being measured."""
        if not isinstance(self.V, str):
            return float(self.V)
        noise = state["noise"]
        if t < _FIRST_ROUNDS:
            distances = _majority.between(rows, senders, len(good))
            center, _ = _majority.radius(distances, good)
            noise[t] = np.median(distances(center)[good])
            return math.inf
        return 2 * float(np.median(noise))

    def adjusted(
        self, rows: Array, weights: Array, *, state: dict[str, Array], rng: np.random.Generator
    ) -> tuple[Array, Array]:
        m = len(state["eliminated"])
        if self.scale == "good" or len(rows) == m:
            return rows, weights
        return rows * rows.dtype.type(len(rows) / m), weights

    def projected(self, x0: Array, *, state: dict[str, Array]) -> None:
        if self.D is None or not np.all(np.isfinite(x0)):
            return
        moved = x0.astype(np.float64)
        (length,) = lengths(moved[None], state["first"])
        if self.D < length < math.inf:
            x0[:] = state["first"] + (moved - state["first"]) * (self.D / length)
