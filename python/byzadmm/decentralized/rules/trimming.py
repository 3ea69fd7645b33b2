"""Rules that trim coordinate by coordinate: BRIDGE-T and W-MSR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_choice, check_int
from byzadmm.decentralized.rules.base import Counting, NeighborhoodRule, Reals, register, weighted_mean

if TYPE_CHECKING:
    from byzadmm.decentralized.network import Mail

__all__ = ["WMSR", "TrimNeighbors"]


@register("trimneighbors")
@dataclass(frozen=True)
class TrimNeighbors(Counting):
    """Per coordinate, the mean of the node's own value and its neighbors' without their b largest and b smallest.

    The screening of BRIDGE-T and ByRDiE. With at most b Byzantine neighbors every coordinate stays between the least
    and the largest of the regular values.

    Parameters
    ----------
    b : int, optional
        Byzantine neighbors; by default the ``f`` of the run. A node needs at least ``2b + 1`` neighbors.
    own : "kept" or "trimmed"
        "kept": the node's own value is never dropped, as in the paper; "trimmed": it is trimmed along with the others,
        as in the authors' program, and a node needs at least ``2b`` neighbors.

    Examples
    --------
    >>> from byzadmm.decentralized import TrimNeighbors
    >>> TrimNeighbors(b=1)([0.0], [[1.0], [2.0], [3.0], [90.0]]).round(3).tolist()
    [1.667]

    References
    ----------
    Fang, Yang, Bajwa, "BRIDGE: Byzantine-resilient decentralized gradient descent", IEEE Transactions on Signal and
    Information Processing over Networks 8, 2022.
    """

    order: ClassVar[str] = "combine-first"

    b: int | None = None
    own: str = "kept"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.own, "own", ("kept", "trimmed"))

    def max_f(self, n: int) -> int:
        return n // 2 if self.own == "trimmed" else (n - 1) // 2

    def combined(self, own: Array, rows: list[Array], weights: Reals, own_weight: float, f: int) -> Array:
        out = np.empty_like(own)
        if self.own == "trimmed":
            _core.trimmed_mean([own, *rows], out, f, None, 0)
            return out
        _core.trimmed_mean(rows, out, f, None, 0)
        return weighted_mean([own, out], np.array([1.0, len(rows) - 2.0 * f]))

    @property
    def everywhere(self) -> Any:
        """At all nodes at once, where the own value is kept."""
        return self._everywhere if self.own == "kept" else None

    def _everywhere(self, own: Array, mail: Mail, f: Array, out: Array, threads: int) -> None:
        _core.trim_neighbors(own, *mail.heard, f, out, threads)


@register("wmsr")
@dataclass(frozen=True)
class WMSR(NeighborhoodRule):
    """Weighted-mean subsequence reduced, per coordinate: the mean of what is left of own and neighbors' values.

    Of the neighbors' values that are larger than the node's own the F largest are dropped (all if there are fewer), of
    those that are smaller the F smallest. With at most F Byzantine neighbors every coordinate stays between the least
    and the largest of the regular values; on (2F+1)-robust graphs the regular nodes agree.

    Parameters
    ----------
    F : int, optional
        Byzantine neighbors; by default the ``f`` of the run.

    Examples
    --------
    >>> from byzadmm.decentralized import WMSR
    >>> WMSR(F=1)([5.0], [[1.0], [4.0], [6.0], [100.0], [7.0]]).tolist(), WMSR(F=2)([5.0], [[6.0], [7.0]]).tolist()
    ([5.5], [5.0])

    References
    ----------
    LeBlanc, Zhang, Koutsoukos, Sundaram, "Resilient asymptotic consensus in robust networks", IEEE JSAC 31(4), 2013.
    """

    order: ClassVar[str] = "combine-first"

    F: int | None = None

    def __post_init__(self) -> None:
        if self.F is not None:
            check_int(self.F, "F", low=0)

    def declared(self, f: int) -> int:
        return f if self.F is None else self.F

    def combined(self, own: Array, rows: list[Array], weights: Reals, own_weight: float, f: int) -> Array:
        out, n = np.empty_like(own), len(rows)
        mine = np.ascontiguousarray(own)[None]
        _core.subsequence_neighbors(mine, rows, np.arange(n), np.array([0, n]), np.array([f]), out[None], 0)
        return out

    def everywhere(self, own: Array, mail: Mail, f: Array, out: Array, threads: int) -> None:
        """At all nodes at once."""
        _core.subsequence_neighbors(own, *mail.heard, f, out, threads)
