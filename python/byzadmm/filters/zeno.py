"""Zeno: messages are ranked by how much the master's own loss falls along them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm._internal.lengths import lengths
from byzadmm._internal.validation import check_int, check_real
from byzadmm.filters.base import Filter, register

__all__ = ["Zeno"]


@register
@dataclass(frozen=True)
class Zeno(Filter):
    """The n - b messages along which the loss on the master's samples falls the most, less a penalty of their length.

    ``score_i = f(x0) - f(x0 - a g_i) - rho a ||g_i||^2``

    with the mean loss ``f`` on a batch of the master's samples, drawn anew for every round, and the step ``a``. Of
    equal scores the lower index is kept. Legal for ``q <= b < m``: the regular workers may be a minority.

    Parameters
    ----------
    b : int or None
        Messages to exclude: at least the number of Byzantine workers. None: the number that is declared, the ``f`` of
        ``SGD``. Workers that are eliminated lower it.
    rho : float >= 0
        Penalty in units of the step. Published values are not comparable: they depend on how gradients are scaled.
    samples : int
        Size of a batch.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import filters
    >>> class Bowl:  # the master's loss is x^2 / 2
    ...     def batch(self, count, k): return None
    ...     def losses(self, models, rows): return 0.5 * (models**2).sum(axis=1)
    >>> round_1 = dict(x0=np.array([1.0]), k=1, step=0.5, workers=np.arange(3), state={}, rng=None)
    >>> filters.Zeno(b=1).weigh(np.array([[1.0], [-1.0], [0.9]]), validation=Bowl(), **round_1).tolist()
    [1.0, 0.0, 1.0]

    References
    ----------
    Xie, Koyejo, Gupta, "Zeno: distributed stochastic gradient descent with suspicion-based fault-tolerance", ICML 2019.
    """

    b: int | None = None
    rho: float = 0.1
    samples: int = 32

    def __post_init__(self) -> None:
        if self.b is not None:
            check_int(self.b, "b", low=0)
        check_real(self.rho, "rho", low=0.0)
        check_int(self.samples, "samples", low=1)

    @property
    def validates(self) -> bool:
        return True

    @property
    def needs(self) -> tuple[str, ...]:
        return ("batch_losses",)

    def check(self, n: int, workers: int | None = None) -> None:
        if self.b is None:
            raise ValueError("filter: Zeno needs b, the number of messages to exclude, or an f that SGD declares")
        if self.b >= n:
            raise ValueError(f"filter: Zeno: expected b < {n}, the number of messages, got {self.b}")

    def lowered(self, eliminated: int) -> Zeno:
        return self if self.b is None or not eliminated else replace(self, b=max(self.b - eliminated, 0))

    def declaring(self, f: int) -> Zeno:
        return replace(self, b=f) if self.b is None else self

    def weigh(self, messages: Array, *, x0: Array, k: int, step: float, validation: Any, **_: Any) -> Array:
        if self.b is None:
            self.check(len(messages))
        assert self.b is not None
        scores = self.scores(messages, x0=x0, k=k, step=step, validation=validation)
        weights = np.zeros(len(messages))
        kept = max(len(messages) - self.b, 1)
        weights[np.argsort(-scores, kind="stable")[:kept]] = 1.0
        return weights

    def scores(self, messages: Array, *, x0: Array, k: int, step: float, validation: Any) -> Array:
        """The scores (n,); minus infinity where a loss or a length is not finite."""
        models = np.empty((len(messages) + 1, messages.shape[1]), messages.dtype)
        models[-1] = x0
        with np.errstate(over="ignore", invalid="ignore"):
            np.multiply(messages, messages.dtype.type(-step), out=models[:-1])
            models[:-1] += x0
            found = validation.losses(models, validation.batch(self.samples, k))
            scores: Array = found[-1] - found[:-1]
            if self.rho:
                scores = scores - self.rho * step * lengths(messages) ** 2
        scores[~np.isfinite(scores)] = -np.inf
        return scores
