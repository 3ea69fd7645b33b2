"""Filters that compare every message with a gradient on the master's own samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm._internal.lengths import lengths
from byzadmm._internal.validation import check_int, check_real
from byzadmm.filters.base import Filter, register

__all__ = ["Comparison", "FLTrust"]


class _Clean(Filter):
    """Base: the master's gradient of a round, which ``adjusted`` finds as ``state["gradient"]``."""

    samples: int | None

    @property
    def validates(self) -> bool:
        return True

    @property
    def needs(self) -> tuple[str, ...]:
        return ("batch_gradient",)

    def _gradient(self, x0: Array, k: int, state: dict[str, Array], validation: Any) -> Array:
        rows = validation.rows if self.samples is None else validation.batch(self.samples, k)
        with np.errstate(over="ignore"):
            own: Array = validation.gradient(x0, rows).astype(x0.dtype)
        state["gradient"] = own
        return own


@register
@dataclass(frozen=True)
class FLTrust(_Clean):
    """Weights by the angle to the master's own gradient, of messages that are scaled to its length.

    ``w_i = max(0, cos(g_i, v))``, and the rule gets ``g_i ||v|| / ||g_i||``

    with the gradient ``v`` of the master on a batch of its samples, drawn anew for every round. Legal for any number of
    Byzantine workers. If no message has a positive weight, the model moves by the regulariser alone.

    Parameters
    ----------
    samples : int or None
        Size of a batch; None: all of the master's samples in every round.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import filters
    >>> class East:  # the master's gradient is (2, 0)
    ...     rows = None
    ...     def gradient(self, x, rows): return np.array([2.0, 0.0])
    >>> given = dict(x0=np.zeros(2), k=1, step=0.1, workers=np.arange(3), validation=East(), rng=None)
    >>> trust, state = filters.FLTrust(samples=None), {}
    >>> X = np.array([[9.0, 0.0], [3.0, 4.0], [-1.0, 0.0]])
    >>> trust.weigh(X, state=state, **given).round(12).tolist()
    [1.0, 0.6, 0.0]
    >>> trust.adjusted(X[:2], np.ones(2), state=state, rng=None)[0].round(12).tolist()
    [[2.0, 0.0], [1.2, 1.6]]

    References
    ----------
    Cao, Fang, Liu, Gong, "FLTrust: Byzantine-robust federated learning via trust bootstrapping", NDSS 2021.
    """

    samples: int | None = 100

    def __post_init__(self) -> None:
        if self.samples is not None:
            check_int(self.samples, "samples", low=1)

    def weigh(self, messages: Array, *, x0: Array, k: int, state: dict[str, Array], validation: Any, **_: Any) -> Array:
        own = self._gradient(x0, k, state, validation).astype(np.float64)
        (length,) = lengths(own[None])
        weights = np.zeros(len(messages))
        if not (0 < length < np.inf):
            return weights
        scaled = _scaled(messages, 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            cosine = np.einsum("ij,j->i", scaled, own / length)
        good = np.isfinite(cosine) & (cosine > 0)
        weights[good] = np.minimum(cosine[good], 1.0)
        return weights

    def adjusted(
        self, rows: Array, weights: Array, *, state: dict[str, Array], rng: np.random.Generator
    ) -> tuple[Array, Array]:
        (length,) = lengths(state["gradient"][None])
        return _scaled(rows, length).astype(rows.dtype), weights


def _scaled(rows: Array, length: float) -> Array:
    """Rows of that length in float64; zeros for those whose own length is zero or beyond float64."""
    found = lengths(rows)
    usable = (found > 0) & (found < np.inf)
    factor, rest = np.zeros(len(rows)), np.zeros(len(rows), np.int32)
    factor[usable], rest[usable] = np.frexp(found[usable])
    factor[usable] = length / factor[usable]
    # A power of two first: it is exact, and brings rows of any size near 1.
    halves = (-rest // 2)[:, None]
    scaled: Array = np.ldexp(np.ldexp(rows.astype(np.float64), halves), -rest[:, None] - halves) * factor[:, None]
    return scaled


@register
@dataclass(frozen=True)
class Comparison(_Clean):
    """Messages near the master's own gradient, which counts as one more message.

    keeps ``||g_i - v|| <= c ||v||``

    with the gradient ``v`` of the master on its samples. Legal for any number of Byzantine workers. It is the gradient
    half of Cao and Lai's comparison-based Newton method, meant for messages with little noise: near a minimum ``v`` is
    short, and with small batches the master is left with its own gradient.

    Parameters
    ----------
    c : float > 0
    samples : int or None
        Size of a batch; None: all of the master's samples in every round.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import filters
    >>> class East:  # the master's gradient is (2, 0)
    ...     rows = None
    ...     def gradient(self, x, rows): return np.array([2.0, 0.0])
    >>> given = dict(x0=np.zeros(2), k=1, step=0.1, workers=np.arange(3), validation=East(), rng=None)
    >>> filters.Comparison(0.75).weigh(np.array([[3.5, 0.0], [2.0, 1.6], [-2.0, 0.0]]), state={}, **given).tolist()
    [1.0, 0.0, 0.0]

    References
    ----------
    Cao, Lai, "Distributed gradient descent algorithm robust to an arbitrary number of Byzantine attackers", IEEE Trans.
    Signal Processing 67, 2019; "Distributed approximate Newton's method robust to Byzantine attackers", IEEE Trans.
    Signal Processing 68, 2020.
    """

    c: float = 0.75
    samples: int | None = None

    def __post_init__(self) -> None:
        check_real(self.c, "c", low=0.0, strict=True)
        if self.samples is not None:
            check_int(self.samples, "samples", low=1)

    def weigh(self, messages: Array, *, x0: Array, k: int, state: dict[str, Array], validation: Any, **_: Any) -> Array:
        own = self._gradient(x0, k, state, validation)
        (length,) = lengths(own[None])
        apart = lengths(messages, own)
        return np.where(np.isfinite(apart) & (apart <= self.c * length), 1.0, 0.0)

    def adjusted(
        self, rows: Array, weights: Array, *, state: dict[str, Array], rng: np.random.Generator
    ) -> tuple[Array, Array]:
        own = state["gradient"]
        if not np.all(np.isfinite(own)):
            return rows, weights
        return np.concatenate([rows, own[None]]), np.append(weights, 1.0)
