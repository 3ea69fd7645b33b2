"""Attacks that need all regular messages: their mean, their deviation, their distances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_choice, check_real
from byzadmm.attacks.base import Attack, Searched, Spec, register

__all__ = ["ALIE", "InnerProduct", "MinMax", "MinSum"]


@register
@dataclass(frozen=True)
class ALIE(Attack):
    """``mean - z std`` of the regular messages, the same from all attackers ("a little is enough").

    ``z=None`` takes the largest deviation that a majority of the regular workers still supports,
    ``Phi^-1((m - q - s) / (m - q))`` with ``s = floor(m/2 + 1) - q``. The standard deviation is that of the population.

    References
    ----------
    Baruch, Baruch, Goldberg, "A little is enough", NeurIPS 2019.
    """

    searched: ClassVar[Searched | None] = Searched("z", 0.0, 10.0)

    z: float | None = None

    def __post_init__(self) -> None:
        if self.z is not None:
            check_real(self.z, "z")

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return Spec("alie", self.strength(m, q) if self.z is None else self.z)

    @staticmethod
    def strength(m: int, q: int) -> float:
        """The ``z`` that ``z=None`` stands for."""
        supporters = math.floor(m / 2 + 1) - q
        share = (m - q - supporters) / max(m - q, 1)
        return NormalDist().inv_cdf(min(max(share, 1e-9), 1 - 1e-9))


@register
@dataclass(frozen=True)
class InnerProduct(Attack):
    """``-eps`` times the mean of the regular messages, the same from all attackers.

    References
    ----------
    Xie, Koyejo, Gupta, "Fall of empires", UAI 2019.
    """

    searched: ClassVar[Searched | None] = Searched("eps", 0.0, 10.0)

    eps: float = 1.0

    def __post_init__(self) -> None:
        check_real(self.eps, "eps")

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return Spec("inner_product", self.eps)


@dataclass(frozen=True)
class _Farthest(Attack):
    """``mean + factor gamma p`` from all attackers, with the largest ``gamma`` that a subclass permits."""

    searched: ClassVar[Searched | None] = Searched("factor", 0.0, 2.0)

    direction: str = "std"
    factor: float = 1.0

    def __post_init__(self) -> None:
        check_choice(self.direction, "direction", ("std", "unit", "sign"))
        check_real(self.factor, "factor")

    def spec(self, algorithm: Any, m: int, q: int) -> None:
        return None

    def _forge(self, messages: Array, *, byzantine: list[int], **_: Any) -> Array:
        regular = np.delete(messages, byzantine, axis=0).astype(np.float64)
        if not len(regular):  # no message to imitate
            return np.full((len(byzantine), messages.shape[1]), np.nan, messages.dtype)
        with np.errstate(all="ignore"):  # the messages of a run that diverges
            forged = self._forged(regular).astype(messages.dtype)
        return np.repeat(forged[None], len(byzantine), axis=0)

    def _forged(self, regular: Array) -> Array:
        mean: Array = regular.mean(axis=0)
        spread = regular - mean
        size = np.abs(spread).max()
        if not size > 0:
            return mean
        spread /= size  # so that no square overflows
        if self.direction == "std":
            p = -np.sqrt(np.mean(spread * spread, axis=0))
        else:
            p = -np.sign(mean) if self.direction == "sign" else -mean / max(np.abs(mean).max(), np.finfo(float).tiny)
        length = np.linalg.norm(p)
        if not length > 0:
            return mean
        p /= length
        forged: Array = mean + self.factor * self._gamma(spread, p) * size * p
        return forged

    @staticmethod
    def _gamma(spread: Array, p: Array) -> Any:
        """How far along the unit vector ``p``, given the regular messages less their mean."""
        raise NotImplementedError("a base class")


@register
@dataclass(frozen=True)
class MinMax(_Farthest):
    """The message farthest from the mean that is no farther from any regular message than two of those are apart.

    ``mean + factor gamma p`` from all attackers, with the largest ``gamma`` for which
    ``max_i ||mean + gamma p - x_i|| <= max_ij ||x_i - x_j||`` over the regular messages. The direction ``p`` is minus
    their deviation ("std"), minus their mean ("unit"), or minus its signs ("sign"). ``gamma`` is the smallest positive
    root of one quadratic equation per regular message, in float64.

    Parameters
    ----------
    direction : "std", "unit" or "sign"
    factor : float
        1 is the published attack; :class:`WorstCase` searches others.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import SGD, attacks
    >>> messages = np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 0.0]])
    >>> rng = np.random.default_rng(0)
    >>> attacks.MinMax()(messages, x0=np.zeros(2), k=1, byzantine=[2], rng=rng, algorithm=SGD()).tolist()
    [[1.0, 0.0]]

    References
    ----------
    Shejwalkar, Houmansadr, "Manipulating the Byzantine", NDSS 2021, section IV.
    """

    @staticmethod
    def _gamma(spread: Array, p: Array) -> Any:
        gram = spread @ spread.T
        norms = np.diagonal(gram)
        # The widest pair is at least as wide as the longest row is long, so nothing cancels where it matters.
        widest = np.max(norms[:, None] + norms - 2 * gram)
        along = spread @ p
        return np.min(along + np.sqrt(along * along + np.maximum(widest - norms, 0)))


@register
@dataclass(frozen=True)
class MinSum(_Farthest):
    """The message farthest from the mean whose squared distances to the regular ones add up to no more than theirs do.

    ``mean + factor gamma p`` from all attackers, with the largest ``gamma`` for which
    ``sum_i ||mean + gamma p - x_i||^2 <= max_j sum_i ||x_j - x_i||^2`` over the regular messages. As the ``x_i - mean``
    add up to zero, that is ``gamma ||p|| = max_j ||x_j - mean||``. Directions as in :class:`MinMax`.

    Parameters
    ----------
    direction : "std", "unit" or "sign"
    factor : float
        1 is the published attack; :class:`WorstCase` searches others.

    Examples
    --------
    >>> from byzadmm import attacks
    >>> attacks.MinSum("unit")([[1.0, 0.0], [3.0, 0.0], [5.0, 0.0]]).tolist()
    [[1.0, 0.0]]

    References
    ----------
    Shejwalkar, Houmansadr, "Manipulating the Byzantine", NDSS 2021, section IV.
    """

    @staticmethod
    def _gamma(spread: Array, p: Array) -> Any:
        return np.linalg.norm(spread, axis=1).max()
