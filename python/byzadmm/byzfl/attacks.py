"""ByzFL's attacks: ``attack(honest_vectors)`` is the one vector that every attacker sends."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from byzadmm import aggregate
from byzadmm import attacks as own
from byzadmm._internal.arrays import Array, to_numpy, wrapper_of
from byzadmm._internal.validation import check_int, check_real
from byzadmm.byzfl._inputs import check_rng, legacy, stacked
from byzadmm.byzfl.aggregators import Average, Clipping

__all__ = [
    "ALittleIsEnough",
    "Gaussian",
    "Inf",
    "InnerProductManipulation",
    "LabelFlipping",
    "Mimic",
    "Optimal_ALittleIsEnough",
    "Optimal_InnerProductManipulation",
    "SignFlipping",
]


class _Attack:
    """Base: rows of any kind in, one vector of that kind and dtype out."""

    def __call__(self, honest_vectors: Any) -> Any:
        """The forged vector, from the vectors of the honest workers."""
        forged = self._forged(stacked(honest_vectors), honest_vectors)
        return wrapper_of(honest_vectors)(forged)

    def _forged(self, rows: Array, vectors: Any) -> Array:
        raise NotImplementedError("a base class")


class SignFlipping(_Attack):
    """Minus the mean of the honest vectors. ``byzadmm.attacks.SignFlip`` turns each worker's own message around."""

    def _forged(self, rows: Array, vectors: Any) -> Array:
        forged: Array = own.InnerProduct(1.0)(rows)[0]
        return forged


@dataclass
class InnerProductManipulation(_Attack):
    """``-tau`` times the mean of the honest vectors."""

    tau: float = 2.0

    def __post_init__(self) -> None:
        self.tau = check_real(self.tau, "tau")

    def _forged(self, rows: Array, vectors: Any) -> Array:
        forged: Array = own.InnerProduct(self.tau)(rows)[0]
        return forged


@dataclass
class ALittleIsEnough(_Attack):
    """Mean plus ``tau`` standard deviations of the honest vectors, the deviation of a sample (divided by ``n-1``).

    ``byzadmm.attacks.ALIE(z)`` is the mean minus ``z`` deviations of the population. Of a single vector, the vector.
    """

    tau: float = 1.5

    def __post_init__(self) -> None:
        self.tau = check_real(self.tau, "tau")

    def _forged(self, rows: Array, vectors: Any) -> Array:
        n = len(rows)
        forged: Array = own.ALIE(-self.tau * math.sqrt(n / max(n - 1, 1)))(rows)[0]
        return forged


@dataclass
class Mimic(_Attack):
    """The honest vector number ``epsilon``."""

    epsilon: int = 0

    def __post_init__(self) -> None:
        self.epsilon = check_int(self.epsilon, "epsilon", low=0)

    def _forged(self, rows: Array, vectors: Any) -> Array:
        copied: Array = rows[check_int(self.epsilon, "epsilon", low=0, high=len(rows) - 1)].copy()
        return copied


class Inf(_Attack):
    """Infinity in every coordinate, in the dtype of the honest vectors."""

    def _forged(self, rows: Array, vectors: Any) -> Array:
        return np.full(rows.shape[1], np.inf, rows.dtype)


@dataclass
class Gaussian(_Attack):
    """Independent ``N(mu, sigma^2)`` in every coordinate, new ones in every call.

    ``rng`` is a seed or a ``numpy.random.Generator``. By default the numbers are drawn as ByzFL draws them, from the
    global state of NumPy or, for tensors, of PyTorch.
    """

    mu: float = 0.0
    sigma: float = 1.0
    rng: Any = None

    def __post_init__(self) -> None:
        self.mu = check_real(self.mu, "mu")
        self.sigma = check_real(self.sigma, "sigma", low=0.0)
        check_rng(self.rng)
        if self.rng is not None:
            self.rng = np.random.default_rng(self.rng)

    def _forged(self, rows: Array, vectors: Any) -> Array:
        d = rows.shape[1]
        source, is_torch = legacy(vectors)
        if self.rng is not None:
            normal = self.rng.standard_normal(d)
        else:
            normal = source.randn(d).numpy() if is_torch else source.standard_normal(d)
        made: Array = (self.mu + self.sigma * normal).astype(rows.dtype)
        return made


class LabelFlipping(_Attack):
    """Mean of the vectors, which are to be gradients computed from flipped labels."""

    def _forged(self, rows: Array, vectors: Any) -> Array:
        mean: Array = aggregate.mean(rows, nonfinite="propagate")
        return mean


@dataclass
class _Optimal(_Attack):
    """Base of the attacks whose ``tau`` is searched along a line.

    The harm of ``tau`` is the distance between the mean of the honest vectors and what ``agg`` makes, after
    ``pre_agg_list``, of these and ``f`` forged ones. From ``start``, a step ``delta`` doubles as long as it adds harm;
    then it shrinks by ``ratio`` with every trial. The harm is computed ``evals`` times.
    """

    _kind: ClassVar[Callable[[float], _Attack]]

    agg: Callable[[Any], Any] = field(default_factory=Average)
    pre_agg_list: Sequence[Callable[[Any], Any]] = field(default_factory=lambda: [Clipping()])
    f: int = 1
    evals: int = 20
    start: float = 0.0
    delta: float = 10.0
    ratio: float = 0.8

    def __post_init__(self) -> None:
        for name, link in (("agg", self.agg), *(("pre_agg_list", link) for link in self.pre_agg_list)):
            if not callable(link):
                raise TypeError(f"{name}: expected a callable, got {type(link).__name__}")
        self.f = check_int(self.f, "f", low=0)
        self.evals = check_int(self.evals, "evals", low=1)
        self.start = check_real(self.start, "start")
        self.delta = check_real(self.delta, "delta")
        if self.delta == 0:
            raise ValueError("delta: expected a step other than 0, got 0")
        self.ratio = check_real(self.ratio, "ratio")
        if not 0.5 < self.ratio < 1:
            raise ValueError(f"ratio: expected a number in (0.5, 1), got {self.ratio}")

    def _forged(self, rows: Array, vectors: Any) -> Array:
        wrap, mean = wrapper_of(vectors), aggregate.mean(rows, nonfinite="propagate")

        def forged(tau: float) -> Array:
            return type(self)._kind(tau)._forged(rows, vectors)

        def harm(tau: float) -> float:
            made = wrap(np.concatenate([rows, np.repeat(forged(tau)[None], self.f, axis=0)]))
            for link in (*self.pre_agg_list, self.agg):
                made = link(made)
            return float(np.linalg.norm(to_numpy(made, "agg").astype(np.float64) - mean))

        best, step, growing = self.start, self.delta, True
        most = harm(best)
        for _ in range(self.evals - 1):
            found = harm(best + step)
            if found > most:
                best, most = best + step, found
            else:
                growing = False
            step *= 2.0 if growing else self.ratio
        return forged(best)


class Optimal_InnerProductManipulation(_Optimal):
    """:class:`InnerProductManipulation` with the ``tau`` that does the most harm to ``agg`` after ``pre_agg_list``.

    The harm of ``tau`` is the distance between the mean of the honest vectors and what ``agg`` makes, after
    ``pre_agg_list``, of these and ``f`` forged ones. From ``start``, a step ``delta`` doubles as long as it adds harm;
    then it shrinks by ``ratio`` with every trial. The harm is computed ``evals`` times.
    """

    _kind = InnerProductManipulation


class Optimal_ALittleIsEnough(_Optimal):
    """:class:`ALittleIsEnough` with the ``tau`` that does the most harm to ``agg`` after ``pre_agg_list``.

    Searched as in :class:`Optimal_InnerProductManipulation`.
    """

    _kind = ALittleIsEnough
