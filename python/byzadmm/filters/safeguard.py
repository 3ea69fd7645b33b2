"""SafeguardSGD: sums of gradients over windows of rounds are compared with those of a majority."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_choice, check_int, check_real
from byzadmm.filters import _majority
from byzadmm.filters.base import register

__all__ = ["Safeguard"]


@register
@dataclass(frozen=True)
class Safeguard(_majority.Memory):
    """Eliminates workers whose sums of gradients over a window of rounds lie far from those of a majority.

    ``A_i = sum over the window of g_i^t / |good_t|``; worker i stays while ``||A_i - A_med|| <= 2 threshold``

    with an ``A_i`` that has more than m/2 of the others within the threshold as ``A_med``; without one nobody is
    eliminated in that round. Windows of T rounds follow each other, and sums start again with each. Two windows of
    different length are two tests; the sums are divided by the number of workers that remain, so the thresholds are
    for sums of that size. A message counts in the round in which its sender is eliminated, as published: with
    ``rule="mean"`` a single one of any size moves the model, with a robust rule none does. For workers with samples of
    one distribution and fewer than m/2 Byzantine ones; the loss need not be convex.

    Parameters
    ----------
    windows : int, or two of them
        Rounds of a window; the published experiments have one and six passes over the data.
    thresholds : "auto", float > 0 or one per window
        "auto": nobody is eliminated in the first window of each length, at whose end the radius of the smallest ball
        around an ``A_i`` that holds more than m/2 of them becomes the threshold. May be infinity.
    noise : float >= 0
        Standard deviation of normal noise in every element of the direction.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import filters
    >>> guard = filters.Safeguard(windows=50, thresholds=1.05)
    >>> state = guard.begin(10, 1, np.dtype(float))
    >>> given = dict(x0=np.zeros(1), step=0.1, workers=np.arange(10), state=state, validation=None, rng=None)
    >>> for k in range(1, 13):  # after t gradients the sums are 2 t / 10 apart
    ...     weights = guard.weigh(np.array([[1.0]] * 6 + [[-1.0]] * 4), k=k, **given)
    >>> state["eliminated"].tolist(), int(weights.sum())
    ([-1, -1, -1, -1, -1, -1, 11, 11, 11, 11], 6)

    References
    ----------
    Allen-Zhu, Ebrahimian, Li, Alistarh, "Byzantine-resilient non-convex stochastic gradient descent", ICLR 2021.
    """

    windows: int | tuple[int, ...] = (50, 300)
    thresholds: str | float | tuple[float, ...] = "auto"
    noise: float = 0.0

    def __post_init__(self) -> None:
        given = self.windows if isinstance(self.windows, (list, tuple)) else (self.windows,)
        object.__setattr__(self, "windows", tuple(check_int(T, "windows", low=1) for T in given))
        if not 1 <= len(given) <= 2:
            raise ValueError(f"windows: expected one or two lengths, got {len(given)}")
        if isinstance(self.thresholds, str):
            check_choice(self.thresholds, "thresholds", ("auto",))
        else:
            limits = self.thresholds if isinstance(self.thresholds, (list, tuple)) else (self.thresholds,)
            if len(limits) != len(given):
                raise ValueError(f"thresholds: expected one per window, {len(given)}; got {len(limits)}")
            object.__setattr__(self, "thresholds", tuple(_majority.check_limit(one, "thresholds") for one in limits))
        check_real(self.noise, "noise", low=0.0)

    @property
    def _windows(self) -> tuple[int, ...]:
        assert isinstance(self.windows, tuple)
        return self.windows

    def begin(self, m: int, d: int, dtype: np.dtype[Any]) -> dict[str, Array]:
        count = len(self._windows)
        sums = {f"sums_{w}": np.zeros((m, d)) for w in range(count)}
        limits = np.full(count, np.nan) if isinstance(self.thresholds, str) else np.array(self.thresholds, np.float64)
        return super().begin(m, d, dtype) | sums | {"thresholds": limits, "center": np.zeros(count, np.int64)}

    def weigh(self, messages: Array, *, k: int, workers: Array, state: dict[str, Array], **_: Any) -> Array:
        eliminated = state["eliminated"]
        good = eliminated < 0
        t = int(state["rounds"][0])
        state["rounds"][0] += 1
        rows, senders, weights = self.counted(messages, workers, good)
        if not len(rows):
            return weights
        out = np.zeros(len(good), np.bool_)
        for w, T in enumerate(self._windows):
            sums, center, limit = state[f"sums_{w}"], state["center"], state["thresholds"]
            if t % T == 0:
                sums[:] = 0.0
            start = int(center[w]) if good[center[w]] else int(np.flatnonzero(good)[0])
            apart = _majority.advance(sums, rows, senders, good, 1 / np.count_nonzero(good), start)
            if np.isnan(limit[w]):
                if t == T - 1:
                    center[w], limit[w] = _majority.radius(_majority.between(sums), good)
                continue
            found, apart = _majority.find(_majority.between(sums), good, limit[w], start, apart)
            if found >= 0:
                center[w] = found
                out |= good & (apart > 2 * limit[w])
        _majority.expel(eliminated, out, k, "Safeguard")
        return weights

    def adjusted(
        self, rows: Array, weights: Array, *, state: dict[str, Array], rng: np.random.Generator
    ) -> tuple[Array, Array]:
        if not self.noise:
            return rows, weights
        noise: Array = np.multiply(self.noise, rng.standard_normal(rows.shape[1]))
        return rows + noise.astype(rows.dtype), weights
