"""Gossip: the weighted mean, not robust."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array
from byzadmm.decentralized.rules.base import NeighborhoodRule, Reals, register, weighted_mean

if TYPE_CHECKING:
    from byzadmm.decentralized.network import Mail

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

    def everywhere(self, own: Array, mail: Mail, f: Array, out: Array, threads: int) -> None:
        none = np.minimum(f, 0)
        _core.scissor_neighbors(own, *mail.heard, mail.link_weights, mail.own_weights, none, out, threads)
