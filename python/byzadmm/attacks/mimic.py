"""An attack with a memory: it learns whom to copy."""

from __future__ import annotations

import bisect
import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_int
from byzadmm.attacks.base import Attack, Spec, register
from byzadmm.attacks.simple import Duplicate

__all__ = ["Mimic"]


@register
@dataclass(frozen=True)
class Mimic(Attack):
    """The message of the regular worker that stands out most along the direction in which the messages vary most.

    In round ``t = 0, ..., warmup - 1`` of the attack, with the regular messages ``g_i`` of that round, the running mean
    ``mu`` of all regular messages so far and a step of Oja's rule for the direction ``z``:

        mu <- t/(1+t) mu + 1/(1+t) mean_i g_i
        u   = sum_i <g_i - mu, z> (g_i - mu)
        z  <- t/(1+t) z + 1/(1+t) u/||u||,    z <- z/||z||

    and all attackers copy the ``g_i`` with the largest ``<g_i, z>``; from then on, the worker that they copied last.
    The first ``z`` is normal, drawn by the run's seed: which of the two ends of the direction is taken depends on it.
    Copies of one worker are no outliers, but they count that worker several times: the attack is for data that differ
    from worker to worker.

    A round in which regular messages do not differ leaves ``z`` as it is. A worker whose message is not finite, or that
    takes no part in a round (``participation``), is replaced by the next one. Called without ``state``, the attack
    takes the first step of the warm-up.

    Parameters
    ----------
    warmup : int >= 1
        Rounds of learning. 100 is chosen here; the authors' program takes any number, by default 1.
    worker : int, optional
        Copy this one from the start and learn nothing: what :class:`Duplicate` does, and ByzFL's ``Mimic(epsilon)``.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import attacks
    >>> messages = [[1.0, 0.0], [2.0, 0.0], [9.0, 0.0], [1.0, 0.0]]
    >>> attacks.Mimic()(messages, rng=np.random.default_rng(0)).tolist()
    [[9.0, 0.0]]

    References
    ----------
    Karimireddy, He, Jaggi, "Byzantine-robust learning on heterogeneous datasets via bucketing", ICLR 2022; the order of
    the steps is that of their program, which draws the first ``z`` by a fixed seed.
    """

    #: Numbers of the workers whose rows an attack is given; None: all of them.
    _workers: ClassVar[Sequence[int] | None] = None

    warmup: int = 100
    worker: int | None = None

    def __post_init__(self) -> None:
        check_int(self.warmup, "warmup", low=1)
        if self.worker is not None:
            check_int(self.worker, "worker", low=0)

    def spec(self, algorithm: Any, m: int, q: int) -> Spec | None:
        return None if self.worker is None else Duplicate(self.worker).spec(algorithm, m, q)

    def among(self, workers: Sequence[int]) -> Attack:
        if self.worker is not None:
            return Duplicate(self.worker).among(workers)
        made = copy.copy(self)
        object.__setattr__(made, "_workers", workers)
        return made

    def begin(self, m: int, d: int, dtype: Any) -> dict[str, Array]:
        """What is kept from round to round: ``mu``, ``z``, the rounds so far, and the worker copied last."""
        whole = {name: np.zeros(1, np.int64) for name in ("rounds", "target")}
        return whole | {name: np.zeros(d) for name in ("mu", "z")}

    def _forge(
        self,
        messages: Array,
        *,
        byzantine: list[int],
        rng: np.random.Generator,
        state: dict[str, Array] | None = None,
        **about: Any,
    ) -> Array:
        if self.worker is not None:
            return super()._forge(messages, byzantine=byzantine, rng=rng, **about)
        m, d = messages.shape
        state = self.begin(m, d, messages.dtype) if state is None else state
        workers = range(m) if self._workers is None else self._workers
        others = np.delete(np.arange(m), byzantine)
        regular = others[np.isfinite(messages[others]).all(axis=1)]
        if not len(regular):  # no message to copy
            return np.full((len(byzantine), d), np.nan, messages.dtype)
        if state["rounds"][0] < self.warmup:
            place = regular[self._learn(messages[regular].astype(np.float64), state, rng)]
            state["target"][0] = workers[place]
        else:
            place = bisect.bisect_left(workers, int(state["target"][0])) % m
            place = regular[np.searchsorted(regular, place) % len(regular)]
        state["rounds"][0] += 1
        return np.repeat(messages[place][None], len(byzantine), axis=0)

    @staticmethod
    def _learn(regular: Array, state: dict[str, Array], rng: np.random.Generator) -> int:
        """One round of the warm-up; the regular row to copy."""
        t = int(state["rounds"][0])
        mu, z = state["mu"], state["z"]
        with np.errstate(all="ignore"):  # messages of any size, or all equal
            mu += (np.sum(regular / len(regular), axis=0) - mu) / (1 + t)
            if not t:
                z[:] = _unit(rng.standard_normal(len(z)))
            spread = regular - mu
            spread /= np.abs(spread).max()  # so that no square overflows
            u = _unit((spread @ z) @ spread)
            if np.isfinite(u).all():
                z[:] = u if not t else _unit((t * z + u) / (1 + t))
            along = (regular / np.abs(regular).max()) @ z
        return int(np.argmax(along))


def _unit(vector: Array) -> Array:
    """``vector`` divided by its length; NaN for zeros."""
    unit: Array = vector / np.linalg.norm(vector)
    return unit
