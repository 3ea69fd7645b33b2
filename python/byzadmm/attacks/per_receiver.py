"""Attacks that tell every receiver something else: those of networks without a master."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_real
from byzadmm.attacks.base import Attack, Searched, register

__all__ = ["Dissensus", "Isolation"]


@dataclass(frozen=True)
class _Away(Attack):
    """``x_i - eps sum_{j regular} w_ij (x_j - x_i) / sum_{j Byzantine} w_ij`` to receiver i."""

    uses_x0: ClassVar[bool] = True
    per_receiver: ClassVar[bool] = True
    asks_weights: ClassVar[bool] = True

    def spec(self, algorithm: Any, m: int, q: int) -> None:
        return None

    def _forge(
        self,
        messages: Array,
        *,
        x0: Array,
        byzantine: list[int],
        receiver: int | None = None,
        weights: Array | None = None,
        **_: Any,
    ) -> Array:
        shares = np.ones(len(messages)) if weights is None else np.array(weights, np.float64)
        attackers = shares[byzantine].sum()
        shares[byzantine] = 0
        if receiver is not None:
            shares[receiver] = 0
        heard = np.flatnonzero(shares)
        factor = getattr(self, "eps", 1.0) / attackers
        # x_i and the regular messages, each with what it counts in the result.
        counts = np.concatenate([[1 + factor * shares.sum()], -factor * shares[heard]])
        forged = np.empty(messages.shape[1], messages.dtype)
        _core.weighted_sum([x0, *(messages[j] for j in heard)], forged, counts, 1.0, 0)
        return np.repeat(forged[None], len(byzantine), axis=0)


@register
@dataclass(frozen=True)
class Dissensus(_Away):
    """``x_i - eps sum_{j regular} w_ij (x_j - x_i) / sum_{j Byzantine} w_ij``: each receiver is driven off the others.

    ``x_i`` is the receiver's own message, ``w`` the Metropolis weights of the round. In training with a master the
    master is the receiver, and all weights are equal.

    Parameters
    ----------
    eps : float
        At 1 the weighted mean of the neighborhood is ``x_i`` itself (:class:`Isolation`); above, it moves away from the
        other regular nodes. 1.5 is chosen here.

    Examples
    --------
    >>> from byzadmm import attacks
    >>> attacks.Dissensus(eps=2.0)([[1.0], [4.0], [0.0]], x0=[1.0], byzantine=[2], receiver=0, weights=[0.4, 0.3, 0.3])
    array([[-5.]])

    References
    ----------
    He, Karimireddy, Jaggi, "Byzantine-robust decentralized learning via ClippedGossip", 2022.
    """

    searched: ClassVar[Searched | None] = Searched("eps", 0.0, 10.0)

    eps: float = 1.5

    def __post_init__(self) -> None:
        check_real(self.eps, "eps")


@register
@dataclass(frozen=True)
class Isolation(_Away):
    """What makes the weighted mean of the receiver's neighborhood its own message: gossip then does nothing.

    :class:`Dissensus` with ``eps = 1``.

    References
    ----------
    Wu, Chen, Ling, "Byzantine-resilient decentralized stochastic optimization with robust aggregation rules", IEEE
    Transactions on Signal Processing 71, 2023.
    """
