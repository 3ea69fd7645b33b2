"""The frame of every rule: rows in, checks, rows that are not finite, result and ``Info`` out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byzadmm import _core
from byzadmm._internal.arrays import Array, as_rows, prepare_out, wrapper_of
from byzadmm._internal.validation import check_choice, check_int, check_threads
from byzadmm.aggregate._registry import check_f

__all__ = ["Call", "Info", "generator"]

_NONFINITE = ("exclude", "raise", "propagate")


@dataclass(frozen=True)
class Info:
    """Details of one call of a rule; a field that the rule does not have is None.

    Attributes
    ----------
    kept : indices of the rows that took part
    excluded : indices of the rows that did not, because they hold NaN or an infinity
    weights : each kept row's share in the result
    iterations, converged, residual : how an iterative rule ended
    selected : indices of the selected rows, best first; for nearest-neighbor mixing one line of neighbors per kept row,
        for bucketing the kept rows in the order of the buckets, for resampling one line per group
    scores : the number that each kept row was selected by, smallest first; for several rounds a line per round
    distances : squared distances between kept rows, or the length of each kept row before it was clipped; values out of
        the range of float64 are infinite or 0 here and in ``scores``, while the selection used their true values
    """

    kept: NDArray[np.int64]
    excluded: NDArray[np.int64]
    weights: NDArray[np.float64] | None = None
    iterations: int | None = None
    converged: bool | None = None
    residual: float | None = None
    selected: NDArray[np.int64] | None = None
    scores: NDArray[np.float64] | None = None
    distances: NDArray[np.float64] | None = None


class Call:
    """One call of a rule.

    Attributes
    ----------
    rows, n, d : the rows as the native functions take them, their number and their length
    out : where the result goes
    kept : indices of the rows that take part, None for all
    excluded : indices of the rows that do not, because they are not finite
    """

    def __init__(
        self, rule: str, X: Any, *, nonfinite: str, return_info: bool, out: Any, threads: Any, gives_rows: bool = False
    ) -> None:
        """Check the arguments that all rules share. The ``out`` of a pre-aggregation waits for :meth:`allocate`."""
        self.rule, self._X, self._out, self._return_info = rule, X, out, return_info
        self.rows, self.n, self.d, self.dtype = as_rows(X)
        self.out: Array
        if not gives_rows:
            self._allocate((self.d,))
        self.nonfinite = check_choice(nonfinite, "nonfinite", _NONFINITE)
        self.threads = check_threads(threads)
        self.kept: list[int] | None = None
        self.excluded: list[int] = []

    def _allocate(self, shape: tuple[int, ...]) -> None:
        inputs = self.rows if isinstance(self.rows, list) else [self.rows]
        self.out = prepare_out(self._out, shape, self.dtype, inputs, [self._X])

    def allocate(self, n_rows: int) -> None:
        """Prepare ``out`` for this many rows."""
        self._allocate((n_rows, self.d))

    def check_f(self, f: Any) -> int:
        return check_f(self.rule, f, self.n)

    @property
    def n_kept(self) -> int:
        return self.n - len(self.excluded)

    def original(self, index: Any) -> NDArray[np.int64]:
        """Indices among the kept rows as indices among all rows."""
        chosen: NDArray[np.int64] = np.asarray(index, np.int64)
        return chosen if self.kept is None else np.array(self.kept, np.int64)[chosen]

    def nonfinite_rows(self) -> NDArray[np.bool_]:
        return _core.nonfinite_rows(self.rows, self.threads)

    def exclude(self, tolerated: int) -> bool:
        """Exclude rows that are not finite, at most ``tolerated``. False: there are none, or they are to take part."""
        found = self.nonfinite_rows()
        bad = np.flatnonzero(found).tolist()
        if not bad or self.nonfinite == "propagate":
            return False
        if self.nonfinite == "raise":
            raise ValueError(f"{self.rule}: rows {_abbreviated(bad)} hold NaN or infinite values")
        if len(bad) > tolerated:
            raise ValueError(
                f"{self.rule}: {len(bad)} of {self.n} rows hold NaN or infinite values; "
                f"at most {tolerated} can be excluded"
            )
        self.excluded = bad
        self.kept = np.flatnonzero(~found).tolist()
        return True

    def compute(self, kernel: Callable[[], bool], tolerated: int) -> bool:
        """Run a kernel on the kept rows; if it reports a sum that is not finite, again without the rows at fault.

        Rows are not looked at beforehand, so that finite ones cost nothing. True: rows that are not finite may have
        taken part (``nonfinite="propagate"``).
        """
        if not kernel():
            return False
        if self.exclude(tolerated):
            kernel()
            return False
        return self.nonfinite == "propagate"

    def make_rows(self, make: Callable[[], bool]) -> None:
        """Run ``make``, which allocates ``out`` and writes the rows of a pre-aggregation for the kept rows.

        If it reports that a row may not be finite, it runs again without the rows at fault.
        """
        if self._out is not None:  # its shape tells how many rows are to be kept
            self.exclude(self.n - 1)
            make()
        elif make() and self.exclude(self.n - 1):
            make()

    def result(self, details: Callable[[], dict[str, Any]] | None = None) -> Any:
        """What the rule returns; ``details`` gives the fields of the info and is called only if that was asked for."""
        made = self._out if self._out is not None else wrapper_of(self._X)(self.out)
        if not self._return_info:
            return made
        kept = range(self.n) if self.kept is None else self.kept
        fields = {} if details is None else details()
        return made, Info(np.array(kept, np.int64), np.array(self.excluded, np.int64), **fields)


def generator(rng: Any, purpose: str) -> np.random.Generator:
    """The generator that ``rng`` is or seeds; ``purpose`` ends the sentence "to draw the" of an error."""
    if rng is None:  # the default of a configured object
        raise TypeError(
            f"rng: expected a seed or a numpy.random.Generator to draw the {purpose}, got None; "
            "only in training does the run draw for it"
        )
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(check_int(rng, "rng", low=0))


def _abbreviated(rows: list[int]) -> str:
    return f"{rows[:5]}" if len(rows) <= 5 else f"{rows[:5]} and {len(rows) - 5} more"
