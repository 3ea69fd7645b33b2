"""The numbers of a cyclic code, and the location of the forged rows from one number per row.

Everything here is about m complex numbers and matrices of at most m rows, whatever the dimension of the gradients is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Tables", "locate", "tables"]

Complex = NDArray[np.complex128]
Real = NDArray[np.float64]

#: Syndromes up to this many times the expected rounding error are rounding errors, or, if no choice of f rows leaves
#: one as small, up to the second times as much: errors so close to rounding may not be located, and do no harm.
_ROUNDING, _AT_MOST = 16.0, 64.0
_CUT = 1e-13  # of singular values


@dataclass(frozen=True)
class Tables:
    """The matrices of ``Cyclic(f)`` for m workers.

    Attributes
    ----------
    nodes : (m,)
        ``exp(2 pi sqrt(-1) i / m)``
    data : (m, m - 2f)
        ``C_L``: the span of regular rows.
    checks : (2f, m)
        ``C_R^H``: the syndrome of a column is its product with these.
    weights : (m, m)
        ``W``: row i has the weights of worker i, zero for batches that it does not compute.
    batches : list of lists
        Those that each worker computes, ascending.
    growth : float
        How many times larger a row can be than m - 2f others that determine it.
    cancellation : float
        How many times larger the terms of a row are than their sum, for equal gradients.
    """

    f: int
    nodes: Complex
    data: Complex
    checks: Complex
    weights: Complex
    batches: list[list[int]]
    growth: float
    cancellation: float

    def combination(self, kept: NDArray[Any]) -> Complex:
        """The shortest ``v`` with ``v^T C_L[kept] = (1, 0, ..., 0)``."""
        wanted = np.zeros(self.data.shape[1])
        wanted[0] = 1.0
        solution: Complex = np.linalg.lstsq(self.data[kept].T, wanted, rcond=None)[0]
        return solution


@lru_cache(maxsize=64)
def tables(m: int, f: int) -> Tables:
    """The matrices of ``Cyclic(f)`` for m workers, to the last digits.

    Column j of W is the polynomial of degree m-2f-1 in ``u = exp(-2 pi sqrt(-1) i / m)`` that vanishes at the workers
    without batch j and is 1 / sqrt(m) at 0: ``prod_z (1 - u_i / u_z) / sqrt(m)``, a product of chords of the circle.
    """
    i = np.arange(m)
    nodes = np.exp(2j * np.pi * i / m)
    dft = np.conj(nodes[np.outer(i, i) % m]) / np.sqrt(m)
    chords = 2 * np.sin(np.pi * (i[None] - i[:, None]) / m)  # chords[i, z] = 2 sin(pi (z - i) / m)
    weights = np.zeros((m, m), np.complex128)
    count = m - 2 * f - 1
    for batch in range(m):
        without = (batch + 1 + np.arange(count)) % m
        for worker in (batch - np.arange(2 * f + 1)) % m:
            # 1 - exp(sqrt(-1) t) = -2 sqrt(-1) sin(t / 2) exp(sqrt(-1) t / 2); the angles add up as integers
            angle = (2 * int((without - worker).sum()) - count * m) % (4 * m)
            size = np.prod(chords[worker, without]) / np.sqrt(m)
            weights[worker, batch] = size * np.exp(1j * np.pi * angle / (2 * m))
    # The worst m-2f rows to know are consecutive ones: the size of each row by Lagrange's formula from them.
    known = i[: m - 2 * f]
    sides = np.abs(chords)
    lagrange = [
        np.prod(sides[:, np.delete(known, row)], axis=1) / np.prod(sides[row, np.delete(known, row)]) for row in known
    ]
    return Tables(
        f,
        nodes,
        dft[:, : m - 2 * f].copy(),
        np.ascontiguousarray(dft[:, m - 2 * f :].conj().T),
        weights,
        [sorted((worker + t) % m for t in range(2 * f + 1)) for worker in range(m)],
        float(np.sum(lagrange, axis=0).max()),
        float(np.abs(weights).sum(axis=1).max() / np.sqrt(m)),
    )


def locate(code: Tables, values: Complex, errors: Real, known: list[int]) -> list[int] | None:
    """At most f rows without which the values (m,) are those of regular rows, up to rounding; None if there are none.

    ``known`` rows are among them; ``errors`` is the expected rounding error of every value. A choice of rows is
    accepted if the syndrome is, up to rounding, one that errors in these rows alone can have: whatever finds the
    choice, at most f rows explain the syndrome in one way only.
    """
    search, given = _Search(code, values, errors), set(known)
    while not search.accepts(known):
        if len(known) == code.f:
            break
        if search.accepts(search.by_roots(known)):
            break
        known = [*known, search.most_likely(known)]  # an error far larger than others hides them: without it
    if search.least > 1.0:
        search.improve(given)
    return search.best if search.least <= _AT_MOST else None


class _Search:
    """Choices of rows that may be forged, and the best one so far.

    ``least`` is what errors in the rows ``best`` leave of the syndrome, in units of what is taken for rounding.
    """

    def __init__(self, code: Tables, values: Complex, errors: Real) -> None:
        self.code, self.values, self.errors = code, values, errors
        self.best: list[int] = []
        self.least = np.inf

    def accepts(self, rows: list[int]) -> bool:
        """Whether errors in ``rows`` explain the syndrome; the best choice is kept."""
        others = np.delete(self.errors, rows)
        _, left, _ = self._fit(rows)
        ratio = float(np.linalg.norm(left)) / (_ROUNDING * float(others.max()))
        if ratio < self.least:
            self.best, self.least = rows, ratio
        return ratio <= 1.0

    def _fit(self, rows: list[int]) -> tuple[Complex, Complex, Complex]:
        """The syndrome without ``rows``, what errors in them leave of it, and a basis of the syndromes they can have.

        The values of ``rows`` are set to zero first: they may be so large that rounding them hides all others.
        """
        values = self.values.copy()
        values[rows] = 0.0
        syndrome = self.code.checks @ values
        basis: Complex = np.linalg.qr(self.code.checks[:, rows])[0]
        return syndrome, syndrome - basis @ (basis.conj().T @ syndrome), basis

    def by_roots(self, known: list[int]) -> list[int]:
        """``f`` rows, ``known`` among them: the roots of the locator polynomial.

        The syndrome of errors e at nodes w is ``s_t ~ sum e w^t``. Multiplied with the polynomial of the known nodes,
        these vanish from it. The locator of the others, ``w^u - sum_k c_k w^k``, solves
        ``sum_k c_k s_{t+k} = s_{t+u}``. Of the 2f rows where it is smallest, those with the largest errors are taken.
        """
        code, f = self.code, self.code.f
        syndrome, _, _ = self._fit(known)
        polynomial = np.atleast_1d(np.poly(code.nodes[known]))
        folded = np.correlate(syndrome, polynomial[::-1].conj(), "valid")
        u = f - len(known)
        hankel = folded[np.arange(len(folded) - u)[:, None] + np.arange(u)]
        c = np.linalg.lstsq(hankel, folded[u:], rcond=_CUT)[0]
        value = np.polyval(np.concatenate([[1.0], -c[::-1]]), code.nodes) * np.polyval(polynomial, code.nodes)
        suspects = np.argsort(np.abs(value), kind="stable")[: 2 * f]
        size = np.abs(np.linalg.lstsq(code.checks[:, suspects], syndrome, rcond=None)[0])
        size[np.isin(suspects, known)] = np.inf
        chosen: list[int] = suspects[np.argsort(-size, kind="stable")[:f]].tolist()
        return chosen

    def most_likely(self, rows: list[int]) -> int:
        """The row that, beside ``rows``, explains most of the syndrome."""
        return int(np.argmax(self._gains(rows)[0]))

    def improve(self, fixed: set[int]) -> None:
        """Exchange one row of the best choice for another as long as that explains more of the syndrome."""
        while self.least > 1.0:
            options = []
            for row in set(self.best) - fixed:
                rest = [other for other in self.best if other != row]
                gains, left = self._gains(rest)
                options.append((left - gains.max(), [*rest, int(np.argmax(gains))]))
            before = self.least
            if not options or self.accepts(min(options, key=lambda option: option[0])[1]) or self.least == before:
                return

    def _gains(self, rows: list[int]) -> tuple[Real, float]:
        """By how much each row, beside ``rows``, would lower the squared size of what is left of the syndrome."""
        _, left, basis = self._fit(rows)
        checks = self.code.checks
        apart = checks - basis @ (basis.conj().T @ checks)
        squares = np.sum(np.abs(apart) ** 2, axis=0)
        usable = squares > 1e-20
        usable[rows] = False
        gains = np.where(usable, np.abs(apart.conj().T @ left) ** 2 / np.where(usable, squares, 1.0), -1.0)
        return gains, float(np.sum(np.abs(left) ** 2))
