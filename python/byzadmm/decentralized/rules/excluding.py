"""Rules that drop whole models by their distance: IOS, FABA, NNA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array
from byzadmm.decentralized.rules.base import Counting, Reals, register, weighted_mean

if TYPE_CHECKING:
    from byzadmm.decentralized.network import Mail

__all__ = ["FABA", "IOS", "NNA"]


@register("ios")
@dataclass(frozen=True)
class IOS(Counting):
    """Iterative outlier scissor: b times, the neighbor farthest from the weighted mean of all that remain is dropped.

    The result is the weighted mean of the node's own model and the neighbors left, its weights divided by their sum.
    The own model is never dropped; of equally far neighbors the first is. With ``b = 0`` it is :class:`Gossip`. It
    needs attackers with less than a third of the weight.

    Parameters
    ----------
    b : int, optional
        Byzantine neighbors; by default the ``f`` of the run.

    Examples
    --------
    >>> from byzadmm.decentralized import IOS
    >>> IOS(b=1)([0.0], [[1.0], [2.0], [100.0]]).tolist()
    [1.0]

    References
    ----------
    Wu, Chen, Ling, "Byzantine-resilient decentralized stochastic optimization with robust aggregation rules", IEEE
    Transactions on Signal Processing 71, 2023; FABA is a baseline there.
    """

    b: int | None = None

    def combined(self, own: Array, rows: list[Array], weights: Reals, own_weight: float, f: int) -> Array:
        rows, shares = list(rows), [own_weight, *weights.tolist()]
        for _ in range(f):
            center = weighted_mean([own, *rows], np.array(shares))
            farthest = int(order_of(rows, center)[-1])
            del rows[farthest], shares[1 + farthest]
        return weighted_mean([own, *rows], np.array(shares))

    def everywhere(self, own: Array, mail: Mail, f: Array, out: Array, threads: int) -> None:
        _core.scissor_neighbors(own, *mail.heard, mail.link_weights, mail.own_weights, f, out, threads)


@register("faba")
@dataclass(frozen=True)
class FABA(Counting):
    """b times, the neighbor farthest from the mean of all remaining neighbors is dropped; then the mean with own.

    :class:`IOS` with equal weights, and the node's own model outside of the means that neighbors are compared with.

    Parameters
    ----------
    b : int, optional
        Byzantine neighbors; by default the ``f`` of the run.

    Examples
    --------
    >>> from byzadmm.decentralized import FABA
    >>> FABA(b=1)([0.0], [[1.0], [2.0], [100.0]]).tolist()
    [1.0]

    References
    ----------
    Xia, Tao, Hao, Li, "FABA: an algorithm for fast aggregation against Byzantine attacks in distributed neural
    networks", IJCAI 2019, as a rule of a node in Wu, Chen, Ling (:class:`IOS`).
    """

    b: int | None = None

    def combined(self, own: Array, rows: list[Array], weights: Reals, own_weight: float, f: int) -> Array:
        rows = list(rows)
        for _ in range(f):
            center = weighted_mean(rows, np.ones(len(rows)))
            del rows[int(order_of(rows, center)[-1])]
        return weighted_mean([own, *rows], np.ones(1 + len(rows)))


@register("nna")
@dataclass(frozen=True)
class NNA(Counting):
    """Nearest-neighbor averaging: the mean of the ``n + 1 - b`` models nearest to the node's own, itself included.

    ``n`` is the number of neighbors; of equally far ones the first are taken (MoNNA).

    Parameters
    ----------
    b : int, optional
        Byzantine neighbors, less than half of all ``n + 1``; by default the ``f`` of the run.

    Examples
    --------
    >>> from byzadmm.decentralized import NNA
    >>> NNA(b=1)([0.0], [[1.0], [2.0], [100.0]]).tolist()
    [1.0]

    References
    ----------
    Farhadkhani, Guerraoui, Gupta, Hoang, Pinot, Stephan, "Robust collaborative learning with linear gradient overhead",
    ICML 2023.
    """

    b: int | None = None

    def max_f(self, n: int) -> int:
        return n // 2

    def combined(self, own: Array, rows: list[Array], weights: Reals, own_weight: float, f: int) -> Array:
        nearest = np.sort(order_of(rows, own)[: len(rows) - f])
        return weighted_mean([own, *(rows[j] for j in nearest)], np.ones(1 + len(nearest)))


def order_of(rows: list[Array], center: Array) -> Array:
    """The rows by their distance to ``center``, nearest first; of equally far ones the first is the farthest."""
    mantissa, exponent = _core.lengths(rows, center, 0)
    back = np.lexsort((mantissa[::-1], np.where(mantissa[::-1] > 0, exponent[::-1], np.iinfo(np.int32).min)))
    return np.asarray(len(rows) - 1 - back)
