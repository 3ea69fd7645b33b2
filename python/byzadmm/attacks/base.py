"""What every attack is: its protocol, its native form, and the registry of the built-in ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
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
    """

    sends: ClassVar[str] = "message"
    sees: ClassVar[str] = "all"
    uses_x0: ClassVar[bool] = False
    poisons_labels: ClassVar[bool] = False
    searched: ClassVar[Searched | None] = None

    def among(self, workers: Sequence[int]) -> Attack:
        """The same where the rows of messages are those of ``workers``, in this order, and not of all."""
        return self

    def spec(self, algorithm: Any, m: int, q: int) -> Spec | None:
        """The native form with ``q`` of ``m`` workers Byzantine; None if there is none, and the attack is called."""
        raise TypeError(f"{type(self).__name__}: a base class, it has no native form")

    def __call__(
        self, messages: Array, *, x0: Array, k: int, byzantine: Sequence[int], rng: np.random.Generator, algorithm: Any
    ) -> Array:
        """Forged messages (q, d) for the workers ``byzantine``: the protocol of a custom attack."""
        messages, x0, attackers = checked(messages, x0, byzantine)
        out = np.empty((len(attackers), messages.shape[1]), messages.dtype)
        spec = self.spec(algorithm, len(messages), len(attackers))
        assert spec is not None  # an attack without a native form overrides __call__
        _core.attack_messages(spec, messages, attackers, x0, check_int(k, "k", low=0), drawn(rng), out, 1)
        return out

    def describe(self) -> dict[str, Any]:
        """Name and settings, for a result's config."""
        return {"name": type(self).__name__} | {name: describe(value) for name, value in settings_of(self).items()}



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


def checked(messages: Any, x0: Any, byzantine: Any) -> tuple[Array, Array, list[int]]:
    """The arguments of an attack, checked by name; lists are taken too."""
    rows = as_float(messages, "messages")
    if rows.ndim != 2:
        raise ValueError(f"messages: expected shape (m, d), one row per worker, got {rows.shape}")
    master = as_float(x0, "x0", rows.dtype)
    if master.shape != rows.shape[1:]:
        raise ValueError(f"x0: expected shape {rows.shape[1:]}, got {master.shape}")
    return rows, master, check_workers(byzantine, "byzantine", len(rows))


def drawn(rng: Any) -> int:
    """A key for the native generator, drawn from ``rng``."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng: expected a numpy.random.Generator, got {type(rng).__name__}")
    return int(rng.integers(2**63))
