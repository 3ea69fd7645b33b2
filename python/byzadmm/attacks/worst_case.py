"""An attack that searches, in every iteration, the strength with the greatest harm."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from byzadmm import aggregators
from byzadmm._internal.arrays import Array, as_float
from byzadmm._internal.description import describe
from byzadmm._internal.validation import check_choice, check_int, check_real, check_workers
from byzadmm.attacks.base import REGISTRY, Attack, Searched, check_rng, checked, drawn, register

__all__ = ["WorstCase"]

#: What the master makes of all messages of a round: (m, d) -> (d,).
Defense = Callable[[Array], Array]

_GOLDEN = (math.sqrt(5) - 1) / 2
_DOUBLINGS = 10  # of an end of a family's range, at most


def _families() -> dict[str, tuple[type[Attack], Searched]]:
    """The built-in attacks with one number to search, by name."""
    return {name: (kind, kind.searched) for name, kind in REGISTRY.items() if kind.searched is not None}


@register
@dataclass(frozen=True)
class WorstCase(Attack):
    """The strength of an attack with the greatest harm, searched in every iteration.

    ``argmax_s harm(attack_s)`` over ``grid`` even strengths in ``[low, high]`` and ``refine`` steps of golden-section
    search around the best of them; :meth:`harm` defines harm. The most harmful strength that was tried is taken, of
    equal ones the smallest in size: its harm is never less than that of any strength of the grid.

    An end of the range that is not given is no bound: the strength doubles from there as long as every doubling adds
    harm, at most 10 times.

    Parameters
    ----------
    family : str, class of an attack, or callable
        "alie" (its ``z``), "inner-product" (``eps``), "sign-flip" (``scale``), "min-max" and "min-sum"
        (``factor``), "same-value" (``v``), "gaussian" (``std``); the class; or any function ``strength -> attack``,
        which needs ``low`` and ``high``.
    rule : str, callable, list of them, or None
        The rule to harm, whatever :func:`byzadmm.aggregators.make` takes; the ``f`` of a name is the number of
        Byzantine workers.
        None: the aggregation of the algorithm in use, with its filter and what that remembers; the mean where there is
        no algorithm. Over MPI a filter with a memory is refused: the workers do not know it.
    low, high : float
        Range of the strength. An end that is given is a bound; by default the family's range, which may grow.
    grid : int >= 2
    refine : int >= 0

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import SGD, attacks
    >>> messages = np.array([[1.0], [2.0], [3.0], [2.0], [2.0]])
    >>> given = dict(x0=np.zeros(1), k=1, byzantine=[3, 4], rng=np.random.default_rng(0), algorithm=SGD())
    >>> attacks.WorstCase("inner-product", rule="median").search(messages, **given)[0]  # anything <= 1 is as good
    0.0
    >>> attacks.WorstCase("inner-product", high=10).search(messages, **given)[0]  # the mean follows any forged message
    10.0
    >>> attacks.WorstCase("inner-product").search(messages, **given)[0]  # and ten doublings further
    10240.0
    """

    asks_defense: ClassVar[bool] = True

    family: str | Callable[[float], Any] = "alie"
    rule: str | Callable[..., Any] | Sequence[Any] | None = None
    low: float | None = field(default=None, kw_only=True)
    high: float | None = field(default=None, kw_only=True)
    grid: int = field(default=9, kw_only=True)
    refine: int = field(default=6, kw_only=True)

    def __post_init__(self) -> None:
        known = self._known()
        for name in ("low", "high"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check_real(getattr(self, name), name))
            elif known is None:
                raise ValueError(f"{name}: a family of your own needs it")
        low, high = self._range
        if not low < high:
            raise ValueError(f"high: expected more than low={low}, got {high}")
        check_int(self.grid, "grid", low=2)
        check_int(self.refine, "refine", low=0)
        if self.rule is not None:
            aggregators.make(self.rule)
        member = self._member(self._range[0])
        if not callable(member):
            raise TypeError(f"family: expected it to make attacks, got {type(member).__name__}")
        if getattr(member, "sends", "message") != "message" or getattr(member, "poisons_labels", False):
            raise ValueError(f"family: {type(member).__name__} changes more than messages, which is not searched")
        if hasattr(member, "begin"):
            raise ValueError(f"family: {type(member).__name__} keeps a state, which is not searched")

    def spec(self, algorithm: Any, m: int, q: int) -> None:
        if self.rule is not None:
            aggregators.make(self.rule, f=q).check(m)
        return None

    def _forge(self, messages: Array, **about: Any) -> Array:
        return self.search(messages, **about)[1]

    def search(
        self,
        messages: Array,
        *,
        x0: Array,
        k: int,
        byzantine: Sequence[int],
        rng: np.random.Generator,
        algorithm: Any,
        defense: Defense | None = None,
    ) -> tuple[float, Array]:
        """The most harmful strength, and the messages forged with it.

        Parameters
        ----------
        messages, x0, k, byzantine, rng, algorithm
            As for any attack. Every strength gets the same random numbers.
        defense : callable, optional
            As in :meth:`harm`.

        Returns
        -------
        float and (q, d) array
        """
        messages, x0 = checked(messages, x0)
        byzantine = check_workers(byzantine, "byzantine", len(messages))
        seed = drawn(check_rng(rng))
        about: dict[str, Any] = {"x0": x0, "byzantine": byzantine, "algorithm": algorithm}

        def forged_by(strength: float) -> Array:
            member = self._member(strength)
            shown = messages if isinstance(member, Attack) else messages.copy()  # a user's function may change it
            made = as_float(member(shown, k=k, rng=np.random.default_rng(seed), **about), "family")
            if made.shape != (len(byzantine), messages.shape[1]):
                expected = (len(byzantine), messages.shape[1])
                raise ValueError(f"family: expected messages of shape {expected}, got {made.shape}")
            with np.errstate(over="ignore"):
                return made.astype(messages.dtype)

        # The run has diverged, or there is no regular worker: no harm can be measured.
        if not np.isfinite(messages).all() or len(byzantine) == len(messages):
            return self._range[0], forged_by(self._range[0])
        harm = self._harm(messages, defense=defense, **about)
        tried: list[tuple[float, float, float]] = []  # in the order of preference
        sent: dict[float, Array] = {}

        def at(strength: float) -> float:
            forged = forged_by(strength)
            tried.append((-harm(forged), abs(strength), strength))
            if min(tried) == tried[-1]:
                sent[strength] = forged
            return -tried[-1][0]

        points = np.linspace(*self._range, self.grid).tolist()
        ends = [at(strength) for strength in points]
        for given, first, reached, side in ((self.low, points[0], ends[0], -1), (self.high, points[-1], ends[-1], 1)):
            # Outward from an end that is no bound. The first point without growth is kept: a peak lies before it.
            strength = first
            while given is None and first * side > 0 and abs(strength) < abs(first) * 2**_DOUBLINGS:
                strength *= 2
                points.append(strength)
                before, reached = reached, at(strength)
                if not reached > before:
                    break
        points.sort()
        top = points.index(min(tried)[2])
        left, right = points[max(top - 1, 0)], points[min(top + 1, len(points) - 1)]
        inner = [right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)]
        harms = [at(strength) for strength in inner] if self.refine else []
        for _ in range(self.refine):
            if harms[0] >= harms[1]:
                right, inner[1], harms[1] = inner[1], inner[0], harms[0]
                inner[0] = right - _GOLDEN * (right - left)
                harms[0] = at(inner[0])
            else:
                left, inner[0], harms[0] = inner[0], inner[1], harms[1]
                inner[1] = left + _GOLDEN * (right - left)
                harms[1] = at(inner[1])
        worst = min(tried)[2]
        return worst, sent[worst]

    def harm(
        self,
        messages: Array,
        forged: Array,
        *,
        x0: Array,
        byzantine: Sequence[int],
        algorithm: Any,
        defense: Defense | None = None,
    ) -> float:
        """Distance between what the master makes of all messages and the mean of the regular ones.

        ``|| A(phi(x_1), ..., phi(x_m)) - mean of phi(x_i) over the regular i ||``, where ``phi`` is what the master
        makes of a message and ``A`` how it combines them:

        * SGD, or a ``rule`` that was given: ``phi(x) = x``, ``A`` the rule, without memory of earlier rounds and with
          draws of its own;
        * RSA: ``phi(x) = lam sgn(x - x0)``, ``A`` the mean (the master adds them: m times as much);
        * ADMM: ``phi(x) = clip(beta/2 (x - x0), -lam, lam)``, ``A`` the mean. That is the dual of one round from zero:
          a dual that has grown over rounds is known to its worker only;
        * a ``defense`` that was given, and no ``rule``: ``phi(x) = x``, ``A`` the defense. In a run with a filter that
          is the direction in which the master would move: filter, with its memory as it is, and rule.

        Forged messages that are not finite eliminate their senders: the harm is minus infinity. If what the master
        makes of all messages is not finite, the harm is infinity.

        Parameters
        ----------
        messages : (m, d) array
            The honest messages of all workers.
        forged : (q, d) array
        x0, byzantine, algorithm
            As for any attack.
        defense : callable, optional
            ``(m, d) -> (d,)``, the direction that the master makes of messages.

        Returns
        -------
        float
        """
        messages, x0 = checked(messages, x0)
        byzantine = check_workers(byzantine, "byzantine", len(messages))
        return self._harm(messages, x0=x0, byzantine=byzantine, algorithm=algorithm, defense=defense)(forged)

    def describe(self) -> dict[str, Any]:
        parts = self.rule if isinstance(self.rule, (list, tuple)) else [self.rule]
        rule = None if self.rule is None else "+".join(str(describe(part)) for part in parts)
        return super().describe() | {"rule": rule}

    @property
    def _range(self) -> tuple[float, float]:
        """The ends given; the family's for those that are not."""
        known = self._known()
        low, high = (math.nan, math.nan) if known is None else known[1][1:]
        return (low if self.low is None else self.low), (high if self.high is None else self.high)

    def _known(self) -> tuple[type[Attack], Searched] | None:
        """The class of a built-in family and what is searched in it; None for a family of the user's own."""
        families = _families()
        if isinstance(self.family, str):
            return families[check_choice(self.family.replace("_", "-"), "family", families)]
        if not callable(self.family):
            raise TypeError(f"family: expected a name, a class or a callable, got {type(self.family).__name__}")
        return next((known for known in families.values() if known[0] is self.family), None)

    def _member(self, strength: float) -> Any:
        known = self._known()
        if known is not None:
            attack, searched = known
            return attack(**{searched.setting: strength})
        assert callable(self.family)
        return self.family(strength)

    def _harm(
        self, messages: Array, *, x0: Array, byzantine: Sequence[int], algorithm: Any, defense: Defense | None
    ) -> Callable[[Array], float]:
        if len(byzantine) == len(messages):
            raise ValueError("byzantine: expected at least one regular worker, got none")
        plainly = self.rule is not None or algorithm is None  # messages as they come
        chain = aggregators.make(self.rule or "mean", f=len(byzantine)) if plainly else algorithm.combination()
        workers = np.arange(len(messages))
        # A user's function, or a rule that draws, is called as a copy, so that the master's own does not change.
        plain = all(
            isinstance(link, aggregators.Aggregator) and not isinstance(getattr(link, "rng", 0), np.random.Generator)
            for link in chain.links
        )

        asked = defense if self.rule is None else None

        def received(sent: Array) -> Array:
            return sent if plainly or asked is not None else algorithm.influence(sent, x0)

        def combined(sent: Array) -> Any:
            if asked is not None:
                return asked(sent)
            called, given = (chain, sent) if plain else (copy.deepcopy(chain), sent.copy())
            return called.in_training(given, workers=workers, eliminated=0, rng=np.random.default_rng(0), threads=1)

        rows = received(messages)
        wanted = np.delete(rows, list(byzantine), axis=0).astype(np.float64).mean(axis=0)
        heard = rows.copy()
        attackers = list(byzantine)

        def harm(forged: Array) -> float:
            if not np.isfinite(forged).all():
                return -math.inf
            heard[attackers] = received(forged)
            distance = float(np.linalg.norm(np.asarray(combined(heard), np.float64) - wanted))
            return distance if math.isfinite(distance) else math.inf

        return harm
