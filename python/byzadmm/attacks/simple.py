"""Attacks that need at most one message: the attacker's own, or that of one other worker."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from byzadmm._internal.arrays import Array
from byzadmm._internal.labels import check_mapping
from byzadmm._internal.validation import check_int, check_real
from byzadmm.attacks.base import Attack, Searched, Spec, register

__all__ = [
    "DualOscillation",
    "Duplicate",
    "Gaussian",
    "Infinite",
    "LabelFlip",
    "LargeValue",
    "NonFinite",
    "SameValue",
    "SignFlip",
    "SmallValue",
    "Zero",
]


@register
@dataclass(frozen=True)
class Gaussian(Attack):
    """Independent ``N(mean, std^2)`` in every element, fresh for every iteration and worker."""

    sees: ClassVar[str] = "own"
    searched: ClassVar[Searched | None] = Searched("std", 0.0, 200.0)
    _later: ClassVar[tuple[str, ...]] = ("mean",)

    std: float = 100.0
    mean: float = 0.0

    def __post_init__(self) -> None:
        check_real(self.std, "std", low=0.0)
        check_real(self.mean, "mean")

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return Spec("gaussian", self.std, shift=self.mean)


@register
@dataclass(frozen=True)
class SignFlip(Attack):
    """``scale`` times the worker's own message; ``scale = -3`` in the paper."""

    sees: ClassVar[str] = "own"
    searched: ClassVar[Searched | None] = Searched("scale", -10.0, 0.0)

    scale: float = -3.0

    def __post_init__(self) -> None:
        check_real(self.scale, "scale")

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return Spec("sign_flip", self.scale)


@register
@dataclass(frozen=True)
class Duplicate(Attack):
    """The message of worker ``worker``: the sample-duplicating attack of the non-i.i.d. experiments.

    In a round in which that worker takes no part, the message of the next one that does.
    """

    worker: int = 0

    def __post_init__(self) -> None:
        check_int(self.worker, "worker", low=0)

    def among(self, workers: Sequence[int]) -> Duplicate:
        return Duplicate(bisect.bisect_left(workers, self.worker) % len(workers))

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        if self.worker >= m:
            raise ValueError(f"Duplicate: worker={self.worker} is not one of {m} workers")
        return Spec("duplicate", worker=self.worker)


@register
@dataclass(frozen=True)
class SmallValue(Attack):
    """``u^k = x0^k - eps / max(k (k+1), 1)`` (Example ``ex``)."""

    sees: ClassVar[str] = "own"
    uses_x0: ClassVar[bool] = True

    eps: float = 0.5

    def __post_init__(self) -> None:
        check_real(self.eps, "eps")

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return Spec("small_value", self.eps)


@register
@dataclass(frozen=True)
class LargeValue(Attack):
    """``u^k = x0^k - (4 lam / beta) (-1)^k`` (Example ``ex``); beta is the algorithm's, 1 where it has none."""

    sees: ClassVar[str] = "own"
    uses_x0: ClassVar[bool] = True

    beta: float | None = None

    def __post_init__(self) -> None:
        if self.beta is not None:
            check_real(self.beta, "beta", low=0.0, strict=True)

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        beta = self.beta if self.beta is not None else getattr(algorithm, "beta", 1.0)
        return Spec("large_value", 4.0 * getattr(algorithm, "lam", 1.0) / beta)


@register
@dataclass(frozen=True)
class DualOscillation(Attack):
    """The dual itself: ``lam (-1)^k`` in every element (section 4.2); lam = 1 where the algorithm has none."""

    sees: ClassVar[str] = "own"
    sends: ClassVar[str] = "dual"

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return Spec("dual_oscillation", getattr(algorithm, "lam", 1.0))


@register
@dataclass(frozen=True)
class Zero(Attack):
    """Zeros."""

    sees: ClassVar[str] = "own"

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return Spec("constant", 0.0)


@register
@dataclass(frozen=True)
class NonFinite(Attack):
    """NaN in every element: the master eliminates its sender."""

    sees: ClassVar[str] = "own"

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return Spec("constant", math.nan)


@register
@dataclass(frozen=True)
class Infinite(Attack):
    """``+inf`` in every element, or ``-inf`` with ``sign=-1``: the master eliminates its sender.

    ADMM's master hears the dual that a worker forms of its model, and that of an infinite one is ``lam`` or ``-lam``:
    legal, and nobody is eliminated.
    """

    sees: ClassVar[str] = "own"

    sign: int = 1

    def __post_init__(self) -> None:
        if check_int(self.sign, "sign") not in (1, -1):
            raise ValueError(f"sign: expected 1 or -1, got {self.sign}")

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return Spec("constant", self.sign * math.inf)


@register
@dataclass(frozen=True)
class SameValue(Attack):
    """``v`` in every element."""

    sees: ClassVar[str] = "own"
    searched: ClassVar[Searched | None] = Searched("v", -100.0, 100.0)

    v: float = 1.0

    def __post_init__(self) -> None:
        check_real(self.v, "v")

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return Spec("constant", self.v)


@register
@dataclass(frozen=True)
class LabelFlip(Attack):
    """The honest message of a worker whose labels ``y`` are replaced by ``mapping[y]``; needs a loss with labels.

    Parameters
    ----------
    mapping : sequence of K labels, dict {old: new}, or None
        The new label of each; those that a dict does not name stay. None is ``K - 1 - y``.

    Examples
    --------
    >>> from byzadmm import attacks
    >>> attacks.LabelFlip({7: 1}).describe()
    {'name': 'LabelFlip', 'mapping': '{7: 1}'}
    """

    sees: ClassVar[str] = "own"
    poisons_labels: ClassVar[bool] = True
    _later: ClassVar[tuple[str, ...]] = ("mapping",)

    mapping: Sequence[int] | Mapping[int, int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mapping", check_mapping(self.mapping))

    def spec(self, algorithm: Any, m: int, q: int) -> Spec:
        return Spec("honest")

    def _beside(self, rows: Array) -> tuple[Array, list[int]]:
        raise TypeError("LabelFlip: changes the labels of workers in training, not their messages; use simulate")
