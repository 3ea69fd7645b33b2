"""Attacks made from the regular messages in the neighborhood of each receiver."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_real
from byzadmm.attacks.base import Attack, Searched, register

__all__ = ["LocalALIE", "LocalDuplicate", "LocalGaussian", "LocalSignFlip"]


@dataclass(frozen=True)
class _Local(Attack):
    """Base of those that are made from the regular neighbors of a receiver; its own message, where there are none.

    In training with a master all regular workers are its neighbors.
    """

    per_receiver: ClassVar[bool] = True
    asks_weights: ClassVar[bool] = True

    def spec(self, algorithm: Any, m: int, q: int) -> None:
        return None

    def _forge(
        self,
        messages: Array,
        *,
        byzantine: list[int],
        rng: np.random.Generator,
        receiver: int | None = None,
        weights: Array | None = None,
        **_: Any,
    ) -> Array:
        linked = np.ones(len(messages), np.bool_) if weights is None else weights != 0
        own = [] if receiver is None else [receiver]
        linked[own] = False
        attackers = int(linked[byzantine].sum())
        linked[byzantine] = False
        heard = np.flatnonzero(linked) if linked.any() else np.array(own, np.int64)
        if not len(heard):  # no message to imitate
            return np.full((len(byzantine), messages.shape[1]), np.nan, messages.dtype)
        with np.errstate(all="ignore"):  # the messages of a run that diverges
            made = self._made(messages, heard, own, len(byzantine), attackers, rng)
            return made.astype(messages.dtype)

    def _made(self, messages: Array, heard: Array, own: list[int], q: int, attackers: int, rng: Any) -> Array:
        """What ``q`` attackers send, (q, d), given the rows ``heard`` of the receiver's regular neighbors."""
        raise NotImplementedError("a base class")


def _mean(rows: Array) -> Array:
    """The mean of rows in double, in half of the time that ``rows.mean(dtype=)`` takes."""
    mean: Array = rows.astype(np.float64).mean(axis=0)
    return mean


@register
@dataclass(frozen=True)
class LocalGaussian(_Local):
    """Mean of the receiver's regular neighbors, plus ``N(0, std^2)`` in every element, fresh for every attacker.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import attacks
    >>> forged = attacks.LocalGaussian(std=1.0)(np.ones((3, 1000)), rng=np.random.default_rng(0))
    >>> round(float(forged.mean()), 1), round(float(forged.std()), 1)
    (1.0, 1.0)

    References
    ----------
    Wu, Chen, Ling, "Byzantine-resilient decentralized stochastic optimization with robust aggregation rules", IEEE
    Transactions on Signal Processing 71, 2023, for the four attacks of this file.
    """

    searched: ClassVar[Searched | None] = Searched("std", 0.0, 200.0)

    std: float = 30.0

    def __post_init__(self) -> None:
        check_real(self.std, "std", low=0.0)

    def _made(self, messages: Array, heard: Array, own: list[int], q: int, attackers: int, rng: Any) -> Array:
        mean = _mean(messages[heard])
        noise: Array = rng.normal(0.0, self.std, (q, messages.shape[1]))
        return mean + noise


@register
@dataclass(frozen=True)
class LocalSignFlip(_Local):
    """``scale`` times the mean of the receiver's message and those of its regular neighbors.

    Examples
    --------
    A path 0 - 1 - 2, and the attacker 3 at node 1:

    >>> from byzadmm import attacks
    >>> attacks.LocalSignFlip()([[1.0], [2.0], [6.0], [0.0]], byzantine=[3], receiver=1, weights=[0.2, 0.4, 0.2, 0.2])
    array([[-3.]])
    """

    searched: ClassVar[Searched | None] = Searched("scale", -10.0, 0.0)

    scale: float = -1.0

    def __post_init__(self) -> None:
        check_real(self.scale, "scale")

    def _made(self, messages: Array, heard: Array, own: list[int], q: int, attackers: int, rng: Any) -> Array:
        mean = _mean(messages[np.union1d(heard, own).astype(np.int64)])
        return np.repeat(self.scale * mean[None], q, axis=0)


@register
@dataclass(frozen=True)
class LocalDuplicate(_Local):
    """The message of one of the receiver's regular neighbors, drawn anew for every round and receiver."""

    def _made(self, messages: Array, heard: Array, own: list[int], q: int, attackers: int, rng: Any) -> Array:
        copied: Array = messages[heard[rng.integers(len(heard))]]
        return np.repeat(copied[None], q, axis=0)


@register
@dataclass(frozen=True)
class LocalALIE(_Local):
    """``mean + z std`` of the receiver's regular neighbors, ``std`` that of a sample.

    ``z=None`` is ``Phi^-1((n - s) / n)`` for a receiver with n neighbors, b of them Byzantine, and
    ``s = floor((n + 1) / 2) - b``.

    Examples
    --------
    >>> from byzadmm import attacks
    >>> attacks.LocalALIE(z=1.0)([[1.0], [3.0], [5.0]]).tolist()
    [[5.0]]
    """

    searched: ClassVar[Searched | None] = Searched("z", 0.0, 10.0)

    z: float | None = None

    def __post_init__(self) -> None:
        if self.z is not None:
            check_real(self.z, "z")

    @staticmethod
    def strength(neighbors: int, byzantine: int) -> float:
        """The ``z`` that ``z=None`` stands for."""
        supporters = math.floor((neighbors + 1) / 2) - byzantine
        share = (neighbors - supporters) / max(neighbors, 1)
        return NormalDist().inv_cdf(min(max(share, 1e-9), 1 - 1e-9))

    def _made(self, messages: Array, heard: Array, own: list[int], q: int, attackers: int, rng: Any) -> Array:
        rows = messages[heard].astype(np.float64)
        z = self.strength(len(heard) + attackers, attackers) if self.z is None else self.z
        deviation = rows.std(axis=0, ddof=1) if len(rows) > 1 else np.zeros(rows.shape[1])
        return np.repeat((rows.mean(axis=0) + z * deviation)[None], q, axis=0)
