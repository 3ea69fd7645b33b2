"""What Byzantine workers send in place of their honest messages.

An attack acts on the message of the algorithm in use: the gradient (SGD), the model (RSA), or for ADMM the model
``u_j`` from which the outgoing dual is formed (``eq11c``). The built-in ones run natively. One of your own is a
function

    attack(messages, *, x0, k, byzantine, rng, algorithm) -> (q, d) array

with everybody's honest ``messages`` (m, d), the master's ``x0``, the message's index ``k``, the Byzantine workers'
numbers, a ``numpy.random.Generator`` of its own for every iteration, and the algorithm's settings. If it has an
attribute ``sends = "dual"``, its result is ADMM's outgoing dual itself. With an attribute ``sees = "own"`` it promises
to make the message of worker j from ``messages[j]``, ``x0`` and ``k`` alone; a process that holds j but not the others
then has no need to follow them (it sees NaN in their rows, and only its own workers in ``byzantine``).

:class:`MinMax` and :class:`WorstCase` adapt to the messages of each iteration; they run step by step.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from byzadmm import _core, aggregators
from byzadmm._internal.arrays import Array, as_float
from byzadmm._internal.description import describe, settings_of
from byzadmm._internal.validation import check_choice, check_int, check_real, check_workers

__all__ = [
    "ALIE",
    "Attack",
    "DualOscillation",
    "Duplicate",
    "Gaussian",
    "InnerProduct",
    "LabelFlip",
    "LargeValue",
    "MinMax",
    "NonFinite",
    "SameValue",
    "SignFlip",
    "SmallValue",
    "WorstCase",
    "Zero",
]

#: The native form of an attack.
Spec = _core.Attack
HONEST = Spec("honest")


@dataclass(frozen=True)
class Attack:
    """Base of the built-in attacks: settings, and how the native side is told about them."""

    sends: ClassVar[str] = "message"
    #: "own": a liar's message depends on no other worker's; "all": it may.
    sees: ClassVar[str] = "all"
    poisons_labels: ClassVar[bool] = False

    def spec(self, algorithm: Any, m: int, q: int) -> Spec | None:
        """Kind, value and worker for the native loop, None to be called; ``q`` of ``m`` workers are Byzantine."""
        raise TypeError(f"{type(self).__name__} is not an attack of its own")

    def __call__(
        self, messages: Array, *, x0: Array, k: int, byzantine: Sequence[int], rng: np.random.Generator, algorithm: Any
    ) -> Array:
        """The protocol of a user's attack, so that attacks can be built out of these."""
        messages, x0, liars = _checked(messages, x0, byzantine)
        out = np.empty((len(liars), messages.shape[1]), messages.dtype)
        spec = self.spec(algorithm, len(messages), len(liars))
        assert spec is not None  # one that is not native has a __call__ of its own
        _core.attack_messages(spec, messages, liars, x0, check_int(k, "k", low=0), _drawn(rng), out, 1)
        return out

    def describe(self) -> dict[str, Any]:
        """Name and settings, for a result's config."""
        return {"name": type(self).__name__} | {name: describe(value) for name, value in settings_of(self).items()}


@dataclass(frozen=True)
class Gaussian(Attack):
    """Independent ``N(0, std^2)`` in every element, fresh for every iteration and worker."""

    sees: ClassVar[str] = "own"

    std: float = 100.0

    def __post_init__(self) -> None:
        check_real(self.std, "std", low=0.0)

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return Spec("gaussian", self.std)


@dataclass(frozen=True)
class SignFlip(Attack):
    """``scale * own message``, with ``scale = -3`` in the paper."""

    sees: ClassVar[str] = "own"

    scale: float = -3.0

    def __post_init__(self) -> None:
        check_real(self.scale, "scale")

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return Spec("sign_flip", self.scale)


@dataclass(frozen=True)
class Duplicate(Attack):
    """The message of worker ``worker``: the sample-duplicating attack of the non-i.i.d. experiments."""

    worker: int = 0

    def __post_init__(self) -> None:
        check_int(self.worker, "worker", low=0)

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        if self.worker >= m:
            raise ValueError(f"Duplicate: worker={self.worker} is not one of {m} workers")
        return Spec("duplicate", worker=self.worker)


@dataclass(frozen=True)
class SmallValue(Attack):
    """``u^k = x0^k - eps / max(k (k+1), 1)`` (Example ``ex``)."""

    sees: ClassVar[str] = "own"

    eps: float = 0.5

    def __post_init__(self) -> None:
        check_real(self.eps, "eps")

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return Spec("small_value", self.eps)


@dataclass(frozen=True)
class LargeValue(Attack):
    """``u^k = x0^k - (4 lam / beta) (-1)^k`` (Example ``ex``); beta is the algorithm's, 1 where it has none."""

    sees: ClassVar[str] = "own"

    beta: float | None = None

    def __post_init__(self) -> None:
        if self.beta is not None:
            check_real(self.beta, "beta", low=0.0, strict=True)

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        beta = self.beta if self.beta is not None else getattr(algorithm, "beta", 1.0)
        return Spec("large_value", 4.0 * getattr(algorithm, "lam", 1.0) / beta)


@dataclass(frozen=True)
class DualOscillation(Attack):
    """The dual itself: ``lam (-1)^k`` in every element (section 4.2); lam = 1 where the algorithm has none."""

    sees: ClassVar[str] = "own"
    sends: ClassVar[str] = "dual"

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return Spec("dual_oscillation", getattr(algorithm, "lam", 1.0))


@dataclass(frozen=True)
class Zero(Attack):
    """Zeros."""

    sees: ClassVar[str] = "own"

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return Spec("constant", 0.0)


@dataclass(frozen=True)
class NonFinite(Attack):
    """NaN in every element: gives its sender away."""

    sees: ClassVar[str] = "own"

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return Spec("constant", math.nan)


@dataclass(frozen=True)
class SameValue(Attack):
    """``v`` in every element."""

    sees: ClassVar[str] = "own"

    v: float = 1.0

    def __post_init__(self) -> None:
        check_real(self.v, "v")

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return Spec("constant", self.v)


@dataclass(frozen=True)
class LabelFlip(Attack):
    """The worker follows the algorithm, but on labels ``K - 1 - y``: softmax regression only."""

    sees: ClassVar[str] = "own"
    poisons_labels: ClassVar[bool] = True

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return Spec("honest")


@dataclass(frozen=True)
class ALIE(Attack):
    """"A little is enough": ``mean - z std`` of the regular messages, the same from all.

    ``z=None`` takes the largest deviation that a majority of the regular workers still supports,
    ``Phi^-1((m - q - s) / (m - q))`` with ``s = floor(m/2 + 1) - q``. The standard deviation is that of the population.

    References
    ----------
    Baruch, Baruch, Goldberg, "A little is enough", NeurIPS 2019.
    """

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


@dataclass(frozen=True)
class InnerProduct(Attack):
    """``-eps * mean`` of the regular messages, the same from all.

    References
    ----------
    Xie, Koyejo, Gupta, "Fall of empires", UAI 2019.
    """

    eps: float = 1.0

    def __post_init__(self) -> None:
        check_real(self.eps, "eps")

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return Spec("inner_product", self.eps)


@dataclass(frozen=True)
class MinMax(Attack):
    """As far from the mean as goes unnoticed: no farther from anyone than two regular messages are apart.

    ``mean + factor gamma p`` from all, with the largest ``gamma`` for which
    ``max_i ||mean + gamma p - x_i|| <= max_ij ||x_i - x_j||`` over the regular messages. The direction ``p`` is minus
    their deviation ("std"), minus their mean ("unit"), or minus its signs ("sign"). ``gamma`` is the smallest positive
    root of one quadratic equation per regular message, in float64.

    Parameters
    ----------
    direction : "std", "unit" or "sign"
    factor : float
        1 is the attack of the paper; :class:`WorstCase` searches others.

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

    direction: str = "std"
    factor: float = 1.0

    def __post_init__(self) -> None:
        check_choice(self.direction, "direction", ("std", "unit", "sign"))
        check_real(self.factor, "factor")

    def spec(self, algorithm: Any, m: int, q: int) -> None:
        return None

    def __call__(
        self, messages: Array, *, x0: Array, k: int, byzantine: Sequence[int], rng: np.random.Generator, algorithm: Any
    ) -> Array:
        messages, x0, byzantine = _checked(messages, x0, byzantine)
        regular = np.delete(messages, byzantine, axis=0).astype(np.float64)
        if not len(regular):  # nobody to hide among
            return np.full((len(byzantine), messages.shape[1]), np.nan, messages.dtype)
        with np.errstate(all="ignore"):  # the messages of a run that diverges
            lie = self._lie(regular).astype(messages.dtype)
        return np.repeat(lie[None], len(byzantine), axis=0)

    def _lie(self, regular: Array) -> Array:
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
        gram = spread @ spread.T
        norms = np.diagonal(gram)
        # The widest pair is at least as wide as the longest row is long, so nothing cancels where it matters.
        widest = np.max(norms[:, None] + norms - 2 * gram)
        along = spread @ p
        gamma = np.min(along + np.sqrt(along * along + np.maximum(widest - norms, 0)))
        lie: Array = mean + self.factor * gamma * size * p
        return lie


def _checked(messages: Any, x0: Any, byzantine: Any) -> tuple[Array, Array, list[int]]:
    """What every attack is called with, by name; lists will do."""
    rows = as_float(messages, "messages")
    if rows.ndim != 2:
        raise ValueError(f"messages: expected shape (m, d), one row per worker, got {rows.shape}")
    master = as_float(x0, "x0", rows.dtype)
    if master.shape != rows.shape[1:]:
        raise ValueError(f"x0: expected shape {rows.shape[1:]}, got {master.shape}")
    return rows, master, check_workers(byzantine, "byzantine", len(rows))


def _drawn(rng: Any) -> int:
    """A key for draws that come from elsewhere."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng: expected a numpy.random.Generator, got {type(rng).__name__}")
    return int(rng.integers(2**63))


#: Attacks with one number to search: class, the number, and the range in which it is searched.
_FAMILIES: dict[str, tuple[type[Attack], str, float, float]] = {
    "alie": (ALIE, "z", 0.0, 10.0),
    "inner-product": (InnerProduct, "eps", 0.0, 10.0),
    "sign-flip": (SignFlip, "scale", -10.0, 0.0),
    "min-max": (MinMax, "factor", 0.0, 2.0),
    "same-value": (SameValue, "v", -100.0, 100.0),
    "gaussian": (Gaussian, "std", 0.0, 200.0),
}
_GOLDEN = (math.sqrt(5) - 1) / 2
#: How often an end of a family's range may double.
_DOUBLINGS = 10


@dataclass(frozen=True)
class WorstCase(Attack):
    """The strength of an attack that harms most, searched anew in every iteration.

    ``argmax_s harm(attack_s)`` over ``grid`` even strengths in ``[low, high]`` and ``refine`` steps of golden-section
    search around the best of them; :meth:`harm` says what harm is. The best strength that was tried is taken, of
    equally harmful ones the smallest in size: so never less harm than any strength of the grid.

    An end that was not given is where the search begins, not where it ends: the strength doubles from there as long as
    every doubling adds harm, at most 10 times.

    Parameters
    ----------
    family : str, class of an attack, or callable
        "alie" (its ``z``), "inner-product" (``eps``), "sign-flip" (``scale``), "min-max" (``factor``), "same-value"
        (``v``), "gaussian" (``std``); the class; or any function ``strength -> attack``, which needs ``low`` and
        ``high``.
    rule : str, callable, list of them, or None
        The rule to harm, whatever :func:`byzadmm.aggregators.make` takes; the ``f`` of a name is the number of liars.
        None: the defence of the algorithm in use.
    low, high : float
        Range of the strength. One that is given is a bound; by default the range is that of the family, and grows.
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

    def spec(self, algorithm: Any, m: int, q: int) -> None:
        if self.rule is not None:
            aggregators.make(self.rule, f=q).check(m)
        return None

    def __call__(
        self, messages: Array, *, x0: Array, k: int, byzantine: Sequence[int], rng: np.random.Generator, algorithm: Any
    ) -> Array:
        return self.search(messages, x0=x0, k=k, byzantine=byzantine, rng=rng, algorithm=algorithm)[1]

    def search(
        self, messages: Array, *, x0: Array, k: int, byzantine: Sequence[int], rng: np.random.Generator, algorithm: Any
    ) -> tuple[float, Array]:
        """The most harmful strength, and what the liars send then.

        Parameters
        ----------
        messages, x0, k, byzantine, rng, algorithm
            As for any attack. Every strength gets the same random numbers.

        Returns
        -------
        float and (q, d) array
        """
        messages, x0, byzantine = _checked(messages, x0, byzantine)
        seed = _drawn(rng)
        about: dict[str, Any] = {"x0": x0, "byzantine": byzantine, "algorithm": algorithm}

        def lies_of(strength: float) -> Array:
            member = self._member(strength)
            shown = messages if isinstance(member, Attack) else messages.copy()  # a function of a user's may change it
            made = as_float(member(shown, k=k, rng=np.random.default_rng(seed), **about), "family")
            if made.shape != (len(byzantine), messages.shape[1]):
                expected = (len(byzantine), messages.shape[1])
                raise ValueError(f"family: expected messages of shape {expected}, got {made.shape}")
            with np.errstate(over="ignore"):
                return made.astype(messages.dtype)

        # The run has diverged, or nobody else is there: nothing is left to harm.
        if not np.isfinite(messages).all() or len(byzantine) == len(messages):
            return self._range[0], lies_of(self._range[0])
        harm = self._harm(messages, **about)
        tried: list[tuple[float, float, float]] = []  # in the order of preference
        sent: dict[float, Array] = {}

        def at(strength: float) -> float:
            lies = lies_of(strength)
            tried.append((-harm(lies), abs(strength), strength))
            if min(tried) == tried[-1]:
                sent[strength] = lies
            return -tried[-1][0]

        points = np.linspace(*self._range, self.grid).tolist()
        ends = [at(strength) for strength in points]
        for given, first, reached, side in ((self.low, points[0], ends[0], -1), (self.high, points[-1], ends[-1], 1)):
            # Outward from an end that is no bound; the first point without growth stays, as the far side of a peak.
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

    def harm(self, messages: Array, lies: Array, *, x0: Array, byzantine: Sequence[int], algorithm: Any) -> float:
        """How far the lies turn the master from what the regular messages ask for.

        ``|| A(phi(x_1), ..., phi(x_m)) - mean of phi(x_i) over the regular i ||``, where ``phi`` is what the master
        makes of a message and ``A`` how it joins them:

        * SGD, or a ``rule`` that was given: ``phi(x) = x``, ``A`` the rule, without memory of earlier rounds and with
          draws of its own;
        * RSA: ``phi(x) = lam sgn(x - x0)``, ``A`` the mean (the master adds them: m times as much);
        * ADMM: ``phi(x) = clip(beta/2 (x - x0), -lam, lam)``, ``A`` the mean. That is the dual of one round from zero:
          a dual that has grown over rounds is known to its worker only.

        Lies that are not finite give their senders away: the harm is minus infinity. A result that is not finite is the
        greatest harm there is.

        Parameters
        ----------
        messages : (m, d) array
            Everybody's honest messages.
        lies : (q, d) array
        x0, byzantine, algorithm
            As for any attack.

        Returns
        -------
        float
        """
        messages, x0, byzantine = _checked(messages, x0, byzantine)
        return self._harm(messages, x0=x0, byzantine=byzantine, algorithm=algorithm)(lies)

    def describe(self) -> dict[str, Any]:
        parts = self.rule if isinstance(self.rule, (list, tuple)) else [self.rule]
        rule = None if self.rule is None else "+".join(str(describe(part)) for part in parts)
        return super().describe() | {"rule": rule}

    @property
    def _range(self) -> tuple[float, float]:
        """What was given, and the family's own ends for what was not."""
        low, high = (self._known() or (None, None, math.nan, math.nan))[2:]
        return (low if self.low is None else self.low), (high if self.high is None else self.high)

    def _known(self) -> tuple[type[Attack], str, float, float] | None:
        if isinstance(self.family, str):
            return _FAMILIES[check_choice(self.family.replace("_", "-"), "family", _FAMILIES)]
        if not callable(self.family):
            raise TypeError(f"family: expected a name, a class or a callable, got {type(self.family).__name__}")
        return next((known for known in _FAMILIES.values() if known[0] is self.family), None)

    def _member(self, strength: float) -> Any:
        known = self._known()
        if known is not None:
            return known[0](**{known[1]: strength})
        assert callable(self.family)
        return self.family(strength)

    def _harm(
        self, messages: Array, *, x0: Array, byzantine: Sequence[int], algorithm: Any
    ) -> Callable[[Array], float]:
        if len(byzantine) == len(messages):
            raise ValueError("byzantine: expected a regular worker among them to measure by, got none")
        chain = algorithm.combination()
        if self.rule is not None:
            chain = aggregators.make(self.rule, f=len(byzantine))
        everybody = np.arange(len(messages))
        # A function of a user's, or a rule that draws, is asked as a copy: the master's is not to be changed by it.
        plain = all(
            isinstance(link, aggregators.Aggregator) and not isinstance(getattr(link, "rng", 0), np.random.Generator)
            for link in chain.links
        )

        def received(sent: Array) -> Array:
            return sent if self.rule is not None else algorithm.influence(sent, x0)

        rows = received(messages)
        wanted = np.delete(rows, list(byzantine), axis=0).astype(np.float64).mean(axis=0)
        heard = rows.copy()
        liars = list(byzantine)

        def harm(lies: Array) -> float:
            if not np.isfinite(lies).all():
                return -math.inf
            heard[liars] = received(lies)
            asked, sent = (chain, heard) if plain else (copy.deepcopy(chain), heard.copy())
            rng = np.random.default_rng(0)
            made = asked.in_training(sent, workers=everybody, eliminated=0, rng=rng, threads=1)
            gone = float(np.linalg.norm(np.asarray(made, np.float64) - wanted))
            return gone if math.isfinite(gone) else math.inf

        return harm
