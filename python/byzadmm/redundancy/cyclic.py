"""The cyclic code: every worker combines 2f+1 batches, and forged rows are located by a syndrome of 2f numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byzadmm import _core
from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_int
from byzadmm.redundancy._location import Tables, locate, tables
from byzadmm.redundancy.base import Code, DecodingError, register

__all__ = ["Cyclic"]

_WORST = 1e8  # growth beyond which double precision no longer separates forged rows from rounding
_TILE = 2048  # columns that share a factor of the projection
_SAFE = 400  # binary exponents of sizes whose squares and sums are far from the ends of double


@register
@dataclass(frozen=True)
class Cyclic(Code):
    """Worker i combines the gradients of batches i, ..., i + 2f (mod m) to a complex row; ``f`` forged ones are found.

    ``z_i = sum_j W_ij g_j`` with columns of W in the span of the first ``m - 2f`` columns ``C_L`` of the DFT matrix, so
    that the last 2f columns give the syndrome ``C_R^H Z = 0`` unless somebody attacks. The master looks at ``Z phi``
    with one random ``phi``; the rows of its errors are the roots of a polynomial whose coefficients solve a Hankel
    system of the syndrome. From the other rows, the gradients add up to ``Re(v^T Z)`` with
    ``v^T C_L = (1, 0, ..., 0)``, v of least length. See ``docs/redundancy.md``.

    Tolerates any ``f`` Byzantine workers. A message has 2d numbers: d real parts, then d imaginary ones.

    Parameters
    ----------
    f : int
        Number of Byzantine workers tolerated; more than ``2f + 1`` workers are needed. Both messages that are missing
        and those that are forged count.

    Examples
    --------
    >>> from byzadmm import redundancy
    >>> redundancy.Cyclic(f=1).batches(4, 5)
    [0, 1, 4]

    References
    ----------
    Chen, Wang, Charles, Papailiopoulos, "DRACO: Byzantine-resilient distributed training via redundant gradients",
    ICML 2018.
    """

    f: int = 1

    def __post_init__(self) -> None:
        check_int(self.f, "f", low=1)

    def check(self, m: int) -> None:
        if m <= 2 * self.f + 1:
            raise ValueError(f"f: expected less than {(m - 1) / 2:g} for m={m} workers (m > 2f + 1), got {self.f}")
        if tables(m, self.f).growth > _WORST:
            raise ValueError(
                f"f: expected a code whose rounding errors grow {_WORST:g} times at most; f={self.f} of m={m} workers "
                f"has {tables(m, self.f).growth:.0e}; take fewer workers, or Repetition"
            )

    def tolerated(self, m: int) -> int:
        return self.f

    def length(self, d: int) -> int:
        return 2 * d

    def batches(self, worker: int, m: int) -> list[int]:
        return tables(m, self.f).batches[worker]

    def message(self, worker: int, m: int, gradients: list[Array], out: Array, threads: int) -> None:
        w, half = tables(m, self.f).weights[worker, self.batches(worker, m)], len(out) // 2
        _core.weighted_sum(gradients, out[:half], w.real.copy(), 1.0, threads)
        _core.weighted_sum(gradients, out[half:], w.imag.copy(), 1.0, threads)

    def decode(
        self,
        rows: Array,
        workers: NDArray[np.int64],
        m: int,
        *,
        rng: np.random.Generator,
        precision: np.dtype[Any],
        threads: int,
    ) -> Array:
        if rows.shape[1] % 2:
            raise ValueError(f"Z: expected rows of an even length, real and imaginary parts, got {rows.shape[1]}")
        d = rows.shape[1] // 2
        code = tables(m, self.f)
        out: Array = np.zeros(d, rows.dtype)
        # phi_j = inner[j % tile] outer[j // tile]: any error but those of a null set has a product with it.
        inner = rng.uniform(-1.0, 1.0, min(d, _TILE))
        outer = rng.uniform(-1.0, 1.0, -(-d // len(inner)))
        found = np.zeros((m, 4))
        if len(rows):
            found[workers] = _core.look_at_rows(rows, inner, outer, 1.0, threads)
        lost, exponent = self._lost(found, workers, code)
        if np.all(found[~lost, 3] == 0):
            return out
        scale = 1.0
        if abs(exponent) > _SAFE:  # the numbers of the first look are too large or too small
            scale = float(np.ldexp(1.0, -max(exponent, -1000)))
            found[workers] = _core.look_at_rows(rows, inner, outer, scale, threads)
        found[lost] = 0.0
        kind = np.finfo(precision)
        grain = float(kind.smallest_subnormal) * np.sqrt(2.0 * d) * scale  # rounding of the smallest numbers
        errors = (float(kind.eps) + 2.0**-52 * code.cancellation) * np.sqrt(found[:, 2]) + grain
        forged = locate(code, found[:, 0] + 1j * found[:, 1], errors, np.flatnonzero(lost).tolist())
        if forged is None:
            raise DecodingError(
                f"Cyclic: more than f={self.f} of m={m} messages are forged or missing: no choice of {self.f} explains "
                "the syndrome"
            )
        kept = np.setdiff1d(np.arange(m), forged)
        v = code.combination(kept)
        at = np.searchsorted(workers, kept)
        parts = [part for row in at for part in (rows[row, :d], rows[row, d:])]
        _core.weighted_sum(parts, out, np.stack([v.real, -v.imag], axis=1).ravel(), float(m), threads)
        return out

    def _lost(self, found: Array, workers: NDArray[np.int64], code: Tables) -> tuple[NDArray[np.bool_], int]:
        """The rows that count as zero, and the binary exponent of the largest of the others.

        These are missing, not finite, or larger than any regular row can be: if the largest regular row has size M, the
        code has at least 2f+1 rows of at least M / growth; f+1 of them are still there, so that the (f+1)-th largest
        row has a size between M / growth and M.
        """
        m, f = len(found), self.f
        lost = np.ones(m, np.bool_)
        lost[workers] = False
        lost |= ~np.isfinite(found[:, 3]) | np.isnan(found[:, 2])
        size = np.where(lost, 0.0, found[:, 3])
        with np.errstate(over="ignore"):
            lost |= size > 4 * code.growth * np.partition(size, m - 1 - f)[m - 1 - f]
        if lost.sum() > f:
            gone = m - len(workers)
            raise DecodingError(
                f"Cyclic: {int(lost.sum())} of m={m} messages are missing ({gone}), not finite or far too large; at "
                f"most f={f} may be"
            )
        return lost, int(np.frexp(size[~lost].max())[1])
