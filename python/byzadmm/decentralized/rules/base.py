"""What a neighborhood rule is: how a node combines its own model with those of its neighbors."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from byzadmm import _core
from byzadmm._internal.arrays import Array, as_float
from byzadmm._internal.description import describe, settings_of
from byzadmm._internal.validation import check_int

__all__ = ["REGISTRY", "NeighborhoodRule"]

Rows = Array | Sequence[Array]
Reals = NDArray[np.float64]


class NeighborhoodRule:
    """Base of the neighborhood rules; any function with the same arguments is one too.

    A subclass has ``combined``, which is given checked arguments.

    Attributes
    ----------
    order : "adapt-first" or "combine-first"
        What :class:`byzadmm.decentralized.DSGD` does by default: a step and then this rule, or this rule and then the
        step.
    draws : bool
        Whether it is called with a further keyword ``rng``, a generator for this node and round.

    A method ``everywhere(own, mail, f, out, threads)``, if there is one, is the rule at all nodes at once: from their
    own rows (m, n), their ``Mail`` and f (m,), negative where the own row is the result, into ``out`` (m, n).

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import decentralized
    >>> def midpoint(own, rows, weights, own_weight, f):
    ...     return (own + np.median(rows, axis=0)) / 2
    >>> decentralized.DSGD(rule=midpoint, step=lambda k: 0.1).order
    'adapt-first'
    """

    order: ClassVar[str] = "adapt-first"
    draws: ClassVar[bool] = False

    def __call__(
        self, own: Any, rows: Any, weights: Any = None, own_weight: float | None = None, f: int = 0
    ) -> Array:
        """The node's next model.

        Parameters
        ----------
        own : (d,) array
            What the node itself sent, finite.
        rows : (n, d) array, or a list of n arrays
            What it heard from its neighbors, finite.
        weights : (n,) array, optional
            Weights of the rows, and
        own_weight : float, optional
            of the node itself; by default all equal. They sum to one.
        f : int
            How many of the neighbors may be Byzantine, where the rule's own settings do not say.

        Returns
        -------
        (d,) array
        """
        mine = as_float(own, "own")
        heard = [as_float(row, "rows", mine.dtype) for row in rows]
        for row in heard:
            if row.shape != mine.shape or mine.ndim != 1:
                raise ValueError(f"rows: expected rows of the shape of own, {mine.shape}, got {row.shape}")
        n = len(heard)
        if weights is None:
            weights, own_weight = np.full(n, 1 / (n + 1)), 1 / (n + 1)
        shares = np.ascontiguousarray(weights, np.float64)
        if shares.shape != (n,):
            raise ValueError(f"weights: expected one for each of {n} rows, got shape {shares.shape}")
        f = self.declared(check_int(f, "f", low=0))
        if f > self.max_f(n):
            raise ValueError(f"f: {f} is too large for {n} neighbors; {type(self).__name__} tolerates {self.max_f(n)}")
        return self.combined(mine, heard, shares, 1 - shares.sum() if own_weight is None else own_weight, f)

    def combined(self, own: Array, rows: list[Array], weights: Reals, own_weight: float, f: int) -> Array:
        """The result from arguments that were checked."""
        raise NotImplementedError(f"{type(self).__name__} has no combined")

    def declared(self, f: int) -> int:
        """The number of Byzantine neighbors that it takes into account where ``f`` are declared."""
        return f

    def max_f(self, n: int) -> int:
        """The largest number of Byzantine ones among ``n`` neighbors; negative if it needs more neighbors."""
        return n

    def describe(self) -> dict[str, Any]:
        """Name and settings, for a result's config."""
        return {"name": type(self).__name__} | {name: describe(value) for name, value in settings_of(self).items()}


class Counting(NeighborhoodRule):
    """Base of those with a number ``b`` of Byzantine neighbors; None: that of the run."""

    b: int | None

    def __post_init__(self) -> None:
        if self.b is not None:
            check_int(self.b, "b", low=0)

    def declared(self, f: int) -> int:
        return f if self.b is None else self.b


#: The built-in rules by their names in lower case: "trimneighbors", "ios".
REGISTRY: dict[str, type[NeighborhoodRule]] = {}
_Class = TypeVar("_Class", bound=type[NeighborhoodRule])


def register(name: str) -> Callable[[_Class], _Class]:
    """Add a class to :data:`REGISTRY`; its name and the tests that every rule must pass follow."""

    def add(kind: _Class) -> _Class:
        REGISTRY[name] = kind
        return kind

    return add


def weighted_mean(rows: list[Array], weights: Reals) -> Array:
    """``sum_j w_j x_j / sum_j w_j`` of finite rows: finite, whatever their size."""
    out = np.empty_like(rows[0])
    _core.mean(rows, out, weights, None, 0)
    return out


def simplified(name: str) -> str:
    """A rule's name without case, hyphens and underscores."""
    return re.sub(r"[-_ ]", "", name).lower()
