"""Gossip: the weighted mean, not robust."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm.decentralized.rules.base import NeighborhoodRule, Reals, register, weighted_mean

__all__ = ["Gossip"]


@register("gossip")
@dataclass(frozen=True)
class Gossip(NeighborhoodRule):
    """``w_i x_i + sum_j w_ij x_j``, by default with Metropolis weights: not robust, the baseline of every comparison.

    Examples
    --------
    >>> from byzadmm.decentralized import Gossip
    >>> Gossip()([0.0], [[1.0], [5.0]], weights=[0.25, 0.5], own_weight=0.25).tolist()
    [2.75]
    """

    def combined(self, own: Array, rows: list[Array], weights: Reals, own_weight: float, f: int) -> Array:
        return weighted_mean([own, *rows], np.concatenate([[own_weight], weights]))
