"""Directed deviation: the attack that is made for a rule it knows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzadmm import aggregate
from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_choice, check_real
from byzadmm.attacks.base import Attack, register

__all__ = ["Fang"]


@register
@dataclass(frozen=True)
class Fang(Attack):
    """Messages that move a known rule against the direction in which the regular messages would move it.

    With ``s`` the signs of the mean of the regular messages, less ``x0`` where the messages are models:

    * ``defense="trimmed-mean"``, which is also the one against the median: every attacker draws, element by element,
      uniform numbers beyond the regular ones: between their minimum ``a`` and ``b a`` (``a / b`` if ``a > 0``) where
      ``s = 1``, between their maximum and ``b`` times as much (the ``b``-th part of a negative one) where ``s = -1``.
      Where ``s = 0``, the mean.
    * The same with ``knowledge="partial"``: only the attackers' own honest messages are known, whose mean and deviation
      give ``mean - s (3..4) std``.
    * ``defense="krum"``: all attackers send ``c - lam s``, ``c = x0`` for models and 0 for gradients, with the first
      ``lam`` of a bound and its halves for which Krum selects that message. Krum has ``f`` equal to the number of
      attackers, or the largest legal one if that is less. If there is none above ``least``, they send their honest
      messages.

    Published are ``b = 2``, 3 and 4 deviations, the bound on ``lam`` (for distances that are not squared; here it is
    where the search begins), halving, and 1e-5. Chosen here: all forged messages against Krum are equal, and numbers in
    an interval are uniform. Against Krum with partial knowledge the attack is not offered.

    Parameters
    ----------
    defense : "trimmed-mean" or "krum"
    knowledge : "full" or "partial"
    b : float > 1
        Against the trimmed mean with full knowledge.
    least : float > 0
        The ``lam`` at which the search against Krum ends, in the unit of a message's elements.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import attacks
    >>> messages = np.array([[5.0, 1.0], [1.0, 5.0], [-3.0, 1.0], [1.0, -3.0], [5.0, 5.0], [0.0, 0.0], [0.0, 0.0]])
    >>> attacks.Fang("krum")(messages, byzantine=[5, 6])[0].round(4).tolist()  # a quarter of the bound 9 + sqrt(2)
    [-2.6036, -2.6036]
    >>> beyond = attacks.Fang()(messages[:5])  # the least is -3 in both columns
    >>> bool(np.all((beyond >= -6) & (beyond <= -3)))
    True

    References
    ----------
    Fang, Cao, Jia, Gong, "Local model poisoning attacks to Byzantine-robust federated learning", USENIX Security 2020.
    """

    defense: str = "trimmed-mean"
    knowledge: str = "full"
    b: float = 2.0
    least: float = 1e-5

    def __post_init__(self) -> None:
        check_choice(self.defense, "defense", ("trimmed-mean", "krum"))
        check_choice(self.knowledge, "knowledge", ("full", "partial"))
        if (self.defense, self.knowledge) == ("krum", "partial"):
            raise ValueError("knowledge: expected 'full' for krum, got 'partial'")
        check_real(self.b, "b", low=1.0, strict=True)
        check_real(self.least, "least", low=0.0, strict=True)

    def spec(self, algorithm: Any, m: int, q: int) -> None:
        return None

    def _beside(self, rows: Array) -> tuple[Array, list[int]]:
        if self.knowledge == "partial" and len(rows):  # the rows are the attackers' own
            return np.vstack([rows, rows]), list(range(len(rows), 2 * len(rows)))
        return super()._beside(rows)

    def _forge(
        self, messages: Array, *, x0: Array, byzantine: list[int], rng: np.random.Generator, algorithm: Any, **_: Any
    ) -> Array:
        own = messages[byzantine]
        known = own if self.knowledge == "partial" else np.delete(messages, byzantine, axis=0)
        if not len(known):  # no message to go by
            return np.full(own.shape, np.nan, messages.dtype)
        gradients = getattr(algorithm, "message", "gradient") == "gradient"
        center = np.zeros(len(x0)) if gradients else x0.astype(np.float64)
        known = known.astype(np.float64)
        with np.errstate(all="ignore"):  # the messages of a run that diverges
            mean = known.mean(axis=0)
            s = np.sign(mean - center)
            if self.defense == "krum":
                return self._selected(messages, byzantine, known, center, s)
            share = rng.random(own.shape)
            if self.knowledge == "partial":
                forged = mean - s * (3 + share) * known.std(axis=0)
            else:
                end = np.where(s > 0, known.min(axis=0), known.max(axis=0))
                beyond = np.where(s * end > 0, end / self.b, end * self.b)
                forged = np.where(s == 0, mean, end + share * (beyond - end))
            made: Array = forged.astype(messages.dtype)
        return made

    def _selected(self, messages: Array, byzantine: list[int], regular: Array, center: Array, s: Array) -> Array:
        """The message against Krum, or the honest ones if Krum selects none."""
        (m, d), q = messages.shape, len(byzantine)
        honest: Array = messages[byzantine]
        sent = messages.copy()
        if m < 3 or not q or not np.isfinite(regular).all():
            return honest
        f = min(q, aggregate.max_f("krum", m))
        lam = min(self._bound(regular, center, m, q) / math.sqrt(d), float(np.finfo(messages.dtype).max))
        while lam > self.least:
            sent[byzantine] = center - lam * s
            _, info = aggregate.krum(sent, f=f, nonfinite="propagate", return_info=True, threads=1)
            if int(info.selected[0]) in byzantine:
                honest = sent[byzantine]
                break
            lam /= 2
        return honest

    @staticmethod
    def _bound(regular: Array, center: Array, m: int, q: int) -> float:
        """``sqrt(d)`` times the published bound on ``lam``."""
        size = max(np.abs(regular).max(), np.abs(center).max(), np.finfo(float).tiny)  # so that no square overflows
        rows = regular / size
        gaps = np.sort([np.linalg.norm(rows - row, axis=1) for row in rows], axis=1)
        nearest = gaps[:, 1 : m - q - 1].sum(axis=1).min()  # without the row itself
        farthest = np.linalg.norm(rows - center / size, axis=1).max()
        return float((nearest / max(m - 2 * q - 1, 1) + farthest) * size)
