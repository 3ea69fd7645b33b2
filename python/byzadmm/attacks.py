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
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from byzadmm import _core
from byzadmm._arrays import Array
from byzadmm._validation import check_int, check_real

__all__ = [
    "ALIE",
    "Attack",
    "DualOscillation",
    "Duplicate",
    "Gaussian",
    "InnerProduct",
    "LabelFlip",
    "LargeValue",
    "NonFinite",
    "SameValue",
    "SignFlip",
    "SmallValue",
    "Zero",
]

# Order of AttackKind in cpp/include/byzadmm/attacks.hpp.
_KINDS = (
    "honest",
    "gaussian",
    "sign_flip",
    "duplicate",
    "small_value",
    "large_value",
    "dual_oscillation",
    "constant",
    "alie",
    "inner_product",
)

#: The native form of an attack: kind, value, worker.
Spec = tuple[int, float, int]
HONEST: Spec = (0, 0.0, 0)


def _spec(kind: str, value: float = 0.0, worker: int = 0) -> Spec:
    return _KINDS.index(kind), float(value), worker


@dataclass(frozen=True)
class Attack:
    """Base of the built-in attacks: settings, and how the native side is told about them."""

    sends: ClassVar[str] = "message"
    #: "own": a liar's message depends on no other worker's; "all": it may.
    sees: ClassVar[str] = "all"
    poisons_labels: ClassVar[bool] = False

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        """Kind, value and worker for the native loop; ``q`` of ``m`` workers are Byzantine."""
        raise TypeError(f"{type(self).__name__} is not an attack of its own")

    def __call__(
        self, messages: Array, *, x0: Array, k: int, byzantine: Sequence[int], rng: np.random.Generator, algorithm: Any
    ) -> Array:
        """The protocol of a user's attack, so that attacks can be built out of these."""
        out = np.empty((len(byzantine), messages.shape[1]), messages.dtype)
        spec = self.spec(algorithm, len(messages), len(byzantine))
        seed = int(rng.integers(2**63))
        _core.attack_messages(spec, messages, list(byzantine), x0, k, seed, out, 1)
        return out

    def describe(self) -> dict[str, Any]:
        """Name and settings, for a result's config."""
        return {"name": type(self).__name__} | {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True)
class Gaussian(Attack):
    """Independent ``N(0, std^2)`` in every element, fresh for every iteration and worker."""

    sees: ClassVar[str] = "own"

    std: float = 100.0

    def __post_init__(self) -> None:
        check_real(self.std, "std", low=0.0)

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return _spec("gaussian", self.std)


@dataclass(frozen=True)
class SignFlip(Attack):
    """``scale * own message``, with ``scale = -3`` in the paper."""

    sees: ClassVar[str] = "own"

    scale: float = -3.0

    def __post_init__(self) -> None:
        check_real(self.scale, "scale")

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return _spec("sign_flip", self.scale)


@dataclass(frozen=True)
class Duplicate(Attack):
    """The message of worker ``worker``: the sample-duplicating attack of the non-i.i.d. experiments."""

    worker: int = 0

    def __post_init__(self) -> None:
        check_int(self.worker, "worker", low=0)

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        if self.worker >= m:
            raise ValueError(f"Duplicate: worker={self.worker} is not one of {m} workers")
        return _spec("duplicate", worker=self.worker)


@dataclass(frozen=True)
class SmallValue(Attack):
    """``u^k = x0^k - eps / max(k (k+1), 1)`` (Example ``ex``)."""

    sees: ClassVar[str] = "own"

    eps: float = 0.5

    def __post_init__(self) -> None:
        check_real(self.eps, "eps")

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return _spec("small_value", self.eps)


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
        return _spec("large_value", 4.0 * getattr(algorithm, "lam", 1.0) / beta)


@dataclass(frozen=True)
class DualOscillation(Attack):
    """The dual itself: ``lam (-1)^k`` in every element (section 4.2); lam = 1 where the algorithm has none."""

    sees: ClassVar[str] = "own"
    sends: ClassVar[str] = "dual"

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return _spec("dual_oscillation", getattr(algorithm, "lam", 1.0))


@dataclass(frozen=True)
class Zero(Attack):
    """Zeros."""

    sees: ClassVar[str] = "own"

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return _spec("constant", 0.0)


@dataclass(frozen=True)
class NonFinite(Attack):
    """NaN in every element: gives its sender away."""

    sees: ClassVar[str] = "own"

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return _spec("constant", math.nan)


@dataclass(frozen=True)
class SameValue(Attack):
    """``v`` in every element."""

    sees: ClassVar[str] = "own"

    v: float = 1.0

    def __post_init__(self) -> None:
        check_real(self.v, "v")

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return _spec("constant", self.v)


@dataclass(frozen=True)
class LabelFlip(Attack):
    """The worker follows the algorithm, but on labels ``K - 1 - y``: softmax regression only."""

    sees: ClassVar[str] = "own"
    poisons_labels: ClassVar[bool] = True

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return _spec("honest")


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
        return _spec("alie", self.strength(m, q) if self.z is None else self.z)

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
        return _spec("inner_product", self.eps)
