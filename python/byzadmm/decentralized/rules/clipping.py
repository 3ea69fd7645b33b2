"""Rules that shorten differences to the node's own model: self-centered clipping and CS+."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_real
from byzadmm.decentralized.rules.base import Counting, NeighborhoodRule, Reals, register, weighted_mean

__all__ = ["CSPlus", "SelfCenteredClipping"]

_LEAST = 1e-290  # a smaller factor would lose digits as a number


@register("selfcenteredclipping")
@dataclass(frozen=True)
class SelfCenteredClipping(NeighborhoodRule):
    """``x_i + sum_j w_ij short(x_j - x_i, tau)``, where ``short(v, tau) = v min(1, tau / ||v||)``.

    Parameters
    ----------
    tau : float > 0, or "adaptive"
        "adaptive": ``tau^2 = (1/beta) sum w_ij ||x_i - x_j||^2`` over the nearest neighbors, all but the f farthest,
        with ``beta`` the sum of the f largest weights, what f Byzantine neighbors have at most. With ``f = 0`` nothing
        is shortened.

    Examples
    --------
    >>> from byzadmm.decentralized import SelfCenteredClipping
    >>> SelfCenteredClipping(tau=2.0)([0.0], [[1.0], [10.0]]).round(3).tolist()
    [1.0]

    References
    ----------
    He, Karimireddy, Jaggi, "Byzantine-robust decentralized learning via ClippedGossip", 2022. They know the attackers'
    weight exactly.
    """

    tau: float | str = "adaptive"

    def __post_init__(self) -> None:
        if self.tau != "adaptive":
            check_real(self.tau, "tau", low=0.0, strict=True)

    def combined(self, own: Array, rows: list[Array], weights: Reals, own_weight: float, f: int) -> Array:
        lengths = _core.lengths(rows, own, 0)
        if self.tau != "adaptive":
            return shortened(own, rows, weights, lengths, float(self.tau), 0)
        if not f:
            return shortened(own, rows, weights, lengths, np.inf, 0)
        order = by_length(lengths)[: len(rows) - f]
        unit = int(lengths[1][order].max(initial=-4000)) if len(order) else 0
        scaled = np.ldexp(lengths[0][order], lengths[1][order] - unit)
        beta = np.sort(weights)[len(rows) - f :].sum()
        return shortened(own, rows, weights, lengths, float(np.sqrt((weights[order] * scaled**2).sum() / beta)), unit)


@register("csplus")
@dataclass(frozen=True)
class CSPlus(Counting):
    """Self-centered clipping at the largest distance ``tau`` that regular neighbors must have enough weight within.

    ``tau`` is the largest distance for which the rows within it, the own one at distance 0 among them, weigh at most
    ``1 - 2 beta``, with ``beta`` the sum of the b largest weights; 0 if there is none.

    Parameters
    ----------
    b : int, optional
        Byzantine neighbors, at most half of them; by default the ``f`` of the run.

    Examples
    --------
    >>> from byzadmm.decentralized import CSPlus
    >>> CSPlus(b=1)([0.0], [[1.0], [2.0], [100.0]]).tolist()
    [0.75]

    References
    ----------
    Gaucher, Dieuleveut, Hendrikx, "Unified breakdown analysis for Byzantine robust gossip", ICML 2025.
    """

    b: int | None = None

    def max_f(self, n: int) -> int:
        return n // 2

    def combined(self, own: Array, rows: list[Array], weights: Reals, own_weight: float, f: int) -> Array:
        lengths = _core.lengths(rows, own, 0)
        if not f:
            return shortened(own, rows, weights, lengths, np.inf, 0)
        order = by_length(lengths)
        total = own_weight + weights.sum()
        allowed = (total - 2 * np.sort(weights)[len(rows) - f :].sum()) * (1 + 1e-12)
        within = own_weight + np.cumsum(weights[order])
        mantissa, exponent = lengths[0][order], lengths[1][order]
        # Rows at the same distance are within it together.
        last = np.append((mantissa[1:] != mantissa[:-1]) | (exponent[1:] != exponent[:-1]), True)
        fits = np.flatnonzero(last & (within <= allowed))
        if not len(fits):
            return np.array(own)
        return shortened(own, rows, weights, lengths, float(mantissa[fits[-1]]), int(exponent[fits[-1]]))


def by_length(lengths: tuple[Array, Array]) -> Array:
    """Rows by their lengths ``mantissa 2^exponent``, shortest first."""
    mantissa, exponent = lengths
    shortest: Array = np.lexsort((mantissa, np.where(mantissa > 0, exponent, np.iinfo(np.int32).min)))
    return shortest


def shortened(
    own: Array, rows: list[Array], weights: Reals, lengths: tuple[Array, Array], tau: float, exponent: int
) -> Array:
    """``own + sum_j w_j short(x_j - own, tau 2^exponent)`` for differences of these lengths, summed in double.

    That is the mean of all rows with weights that are at most ``w_j``, what is left of 1 being the own one's.
    """
    mantissa, exponents = lengths
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        factors = np.where(mantissa > 0, np.ldexp(tau / mantissa, np.clip(exponent - exponents, -5000, 5000)), np.inf)
    if np.all(factors > _LEAST):
        shares = weights * np.minimum(factors, 1)
        return weighted_mean([own, *rows], np.concatenate([[max(1 - shares.sum(), 0.0)], shares]))
    return _of_differences(own, rows, weights, lengths, factors, tau, exponent)


def _of_differences(
    own: Array,
    rows: list[Array],
    weights: Reals,
    lengths: tuple[Array, Array],
    factors: Reals,
    tau: float,
    exponent: int,
) -> Array:
    """The same where a factor is tiny, in a unit in which neither differences nor their sum overflow."""
    wide = own.astype(np.float64)
    # Half the size where numbers are so large that a difference could overflow.
    half = 0.5 if max((abs(float(v)) for row in (own, *rows) for v in (row.max(), row.min())), default=0) > 1e307 else 1
    total = np.zeros_like(wide)
    for row, weight, factor, length, place in zip(rows, weights.tolist(), factors.tolist(), *lengths, strict=True):
        difference = row * half - wide * half if half != 1 else row - wide
        if factor >= 1:
            total += weight * difference
        elif factor > _LEAST:
            total += (weight * factor) * difference
        else:
            total += weight * np.ldexp(np.ldexp(difference, -place) * (tau / length), exponent)
    if half == 1:
        return (wide + total).astype(own.dtype)
    with np.errstate(over="ignore"):
        moved = (wide * half + total) / half
    most = np.finfo(own.dtype).max
    return np.clip(moved, -most, most).astype(own.dtype)
