"""What every attack is: its protocol, its native form, and the registry of the built-in ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array, as_float
from byzadmm._internal.description import describe, settings_of
from byzadmm._internal.validation import check_int, check_workers

__all__ = ["REGISTRY", "Attack", "Searched"]

#: The native form of an attack: a kind of ``_core.ATTACKS``, and its value and worker.
Spec = _core.Attack
HONEST = Spec("honest")


class Searched(NamedTuple):
    """The setting of an attack that :class:`WorstCase` searches, and the range in which the search starts."""

    setting: str
    low: float
    high: float


@dataclass(frozen=True)
class Attack:
    """Base of the built-in attacks: settings, and their native form.

    Attributes
    ----------
    sends : "message" or "dual"
        Whether the result stands for the algorithm's message, or for ADMM's outgoing dual itself.
    sees : "own" or "all"
        Whether a forged message depends on its own worker's message alone, or on other workers' too.
    uses_x0 : bool
        Whether a forged message depends on ``x0``: such an attack needs messages as long as the model.
    poisons_labels : bool
        Whether it changes the data of the Byzantine workers in place of their messages.
    searched : Searched or None
        What :class:`WorstCase` searches in this family of attacks.
    asks_defense : bool
        Whether it is called with ``defense=``, what the master would make of messages (``Algorithm.defense``), None
        where the algorithm has no such function.
    per_receiver : bool
        Whether, on a graph, it tells every receiver something else and is called with ``receiver=``.
    asks_weights : bool
        Whether it is then called with ``weights=``, those of the receiver.
    view : "all" or "neighbors"
        What it sees of a graph: all messages, or those of the receiver's neighborhood.
    """

    sends: ClassVar[str] = "message"
    sees: ClassVar[str] = "all"
    uses_x0: ClassVar[bool] = False
    poisons_labels: ClassVar[bool] = False
    searched: ClassVar[Searched | None] = None
    asks_defense: ClassVar[bool] = False
    per_receiver: ClassVar[bool] = False
    asks_weights: ClassVar[bool] = False
    view: ClassVar[str] = "all"
    #: Settings that came later than the class: by default not described, so that earlier records still match.
    _later: ClassVar[tuple[str, ...]] = ()

    def among(self, workers: Sequence[int]) -> Attack:
        """The same where the rows of messages are those of ``workers``, in this order, and not of all."""
        return self

    def spec(self, algorithm: Any, m: int, q: int) -> Spec | None:
        """The native form with ``q`` of ``m`` workers Byzantine; None if there is none, and the attack is called."""
        raise TypeError(f"{type(self).__name__}: a base class, it has no native form")

    def __call__(
        self,
        messages: Any,
        *,
        x0: Any = None,
        k: int = 1,
        byzantine: Sequence[int] | None = None,
        rng: np.random.Generator | None = None,
        algorithm: Any = None,
        state: dict[str, Array] | None = None,
        defense: Callable[[Array], Array] | None = None,
        receiver: int | None = None,
        weights: Any = None,
    ) -> Array:
        """Forged messages: the protocol of a custom attack, or from the honest rows alone, ``SignFlip()(X)``.

        Parameters
        ----------
        messages : (m, d) array
            The honest messages of all workers.
        x0 : (d,) array
            The master's model, by default zeros.
        k : int
            Index of the message.
        byzantine : list of int, optional
            The Byzantine workers. By default all rows are honest messages: an attack that sees its own message only
            makes a forged row of each; for one that is made from all of them, one attacker sends, and its own honest
            message is the mean of the rows.
        rng : numpy.random.Generator, optional
            By default a new one with fresh entropy: two calls draw different numbers.
        algorithm : Algorithm, optional
            The algorithm in use; by default ``lam`` and ``beta`` are 1, and the master takes the mean.
        state : dict of arrays, optional
            Of an attack with ``begin``: what it keeps from round to round, changed in place.
        defense : callable, optional
            Of an attack with ``asks_defense``: what the master would make of messages.
        receiver : int, optional
            Of an attack with ``per_receiver``: the node that ``x0`` is of, on a graph.
        weights : (m,) array, optional
            Of an attack with ``asks_weights``: those of the receiver; by default all equal.

        Returns
        -------
        (q, d) array, a row per Byzantine worker; without ``byzantine`` (m, d) if ``sees == "own"``, else (1, d)
        """
        messages, x0 = checked(messages, x0)
        rows = len(messages)
        if byzantine is None:
            self.spec(algorithm, rows, 0)  # a setting that names a worker names one of these
            messages, byzantine = self._beside(messages)
        attackers = check_workers(byzantine, "byzantine", len(messages))
        about = {"x0": x0, "k": check_int(k, "k", low=0), "rng": check_rng(rng), "algorithm": algorithm}
        if state is not None:
            if not hasattr(self, "begin"):
                raise TypeError(f"state: {type(self).__name__} keeps none")
            about["state"] = state
        if defense is not None:
            if not self.asks_defense:
                raise TypeError(f"defense: {type(self).__name__} does not ask for it")
            about["defense"] = defense
        about |= self._of_graph(receiver, weights, len(messages))
        made = self._forge(messages, byzantine=attackers, **about)
        return made[:1] if len(messages) > rows else made

    def _of_graph(self, receiver: Any, weights: Any, m: int) -> dict[str, Any]:
        """The keywords of an attack on one node of a graph."""
        about: dict[str, Any] = {}
        if receiver is not None:
            if not self.per_receiver:
                raise TypeError(f"receiver: {type(self).__name__} tells all the same")
            about["receiver"] = check_int(receiver, "receiver", low=0, high=m - 1)
        if weights is not None:
            if not self.asks_weights:
                raise TypeError(f"weights: {type(self).__name__} does not ask for them")
            about["weights"] = as_float(weights, "weights", np.dtype(np.float64))
            if about["weights"].shape != (m,):
                raise ValueError(f"weights: expected one for each of {m} rows, got shape {about['weights'].shape}")
        return about

    def _beside(self, rows: Array) -> tuple[Array, list[int]]:
        """Messages and attackers where all that is known are honest rows."""
        if not len(rows):
            raise ValueError("messages: expected at least one row, got none")
        if self.sees == "own":
            return rows, list(range(len(rows)))
        with np.errstate(all="ignore"):
            mean = rows.mean(axis=0, dtype=np.float64).astype(rows.dtype)
        return np.vstack([rows, mean]), [len(rows)]

    def _forge(
        self, messages: Array, *, x0: Array, k: int, byzantine: list[int], rng: np.random.Generator, algorithm: Any
    ) -> Array:
        """The forged messages from arguments that were checked; an attack without a native form overrides it."""
        out = np.empty((len(byzantine), messages.shape[1]), messages.dtype)
        spec = self.spec(algorithm, len(messages), len(byzantine))
        assert spec is not None
        _core.attack_messages(spec, messages, byzantine, x0, k, drawn(rng), out, 1)
        return out

    def describe(self) -> dict[str, Any]:
        """Name and settings, for a result's config."""
        usual = {item.name: item.default for item in fields(self) if item.name in self._later}
        given = {name: value for name, value in settings_of(self).items() if usual.get(name, ...) != value}
        return {"name": type(self).__name__} | {name: describe(value) for name, value in given.items()}


#: The built-in attacks by the name that command line and settings files use: "sign-flip" is ``SignFlip``.
REGISTRY: dict[str, type[Attack]] = {}
_Class = TypeVar("_Class", bound=type[Attack])


def register(attack: _Class) -> _Class:
    """Add a class to :data:`REGISTRY`.

    Everything else follows from that: its name for the command line and settings files, its place in ``byzadmm list``,
    its family of :class:`WorstCase` if it has ``searched``, and the tests that every attack must pass.
    """
    REGISTRY[re.sub(r"(?<=[a-z])(?=[A-Z])", "-", attack.__name__).lower()] = attack
    return attack


def checked(messages: Any, x0: Any) -> tuple[Array, Array]:
    """Messages and model as arrays, checked by name; lists are taken too, and None is a model of zeros."""
    rows = as_float(messages, "messages")
    if rows.ndim != 2:
        raise ValueError(f"messages: expected shape (m, d), one row per worker, got {rows.shape}")
    master = np.zeros(rows.shape[1], rows.dtype) if x0 is None else as_float(x0, "x0", rows.dtype)
    if master.shape != rows.shape[1:]:
        raise ValueError(f"x0: expected shape {rows.shape[1:]}, got {master.shape}")
    return rows, master


def check_rng(rng: Any) -> np.random.Generator:
    """``rng``, or a new generator with fresh entropy for None."""
    if rng is None:
        return np.random.default_rng()
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng: expected a numpy.random.Generator, got {type(rng).__name__}")
    return rng


def drawn(rng: np.random.Generator) -> int:
    """A key for the native generator, drawn from ``rng``."""
    return int(rng.integers(2**63))
