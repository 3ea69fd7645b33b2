"""Redundant gradients: the codes by their definitions, and decoding by trying every choice of forged rows."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["cyclic_decode", "cyclic_encode", "cyclic_weights", "repetition_decode", "repetition_encode"]

Array = NDArray[Any]


def repetition_encode(G: Array, r: int) -> Array:
    """Every worker sends the sum of the r rows of its group."""
    return np.repeat(G.reshape(-1, r, G.shape[1]).sum(axis=1), r, axis=0)


def repetition_decode(Z: Array, r: int) -> Array:
    """The mean of all gradients, from the row of each group that more than half of it sent."""
    total = np.zeros(Z.shape[1])
    for group in Z.reshape(-1, r, Z.shape[1]):
        votes = [sum(row.tobytes() == other.tobytes() for other in group) for row in group]
        if max(votes) <= r // 2:
            raise ValueError("a group has no majority")
        total += group[int(np.argmax(votes))]
    return total / len(Z)


def _dft(m: int, f: int) -> tuple[Array, Array]:
    """``C_L`` and ``C_R``: the first m-2f columns of the DFT matrix, and the rest."""
    matrix = np.exp(-2j * np.pi * np.outer(np.arange(m), np.arange(m)) / m) / np.sqrt(m)
    return matrix[:, : m - 2 * f], matrix[:, m - 2 * f :]


def cyclic_weights(m: int, f: int) -> Array:
    """``W`` (m, m): column j is ``C_L q`` with ``q_0 = 1`` that vanishes at the workers without batch j.

    Examples
    --------
    >>> from byzadmm import reference
    >>> abs(reference.cyclic_weights(4, 1)).round(6).tolist()[0]
    [0.707107, 1.0, 0.707107, 0.0]
    """
    left, _ = _dft(m, f)
    weights = np.zeros((m, m), np.complex128)
    for j in range(m):
        without = [(j + 1 + t) % m for t in range(m - 2 * f - 1)]
        q = np.linalg.solve(left[without, 1:], -left[without, 0])
        weights[:, j] = left @ np.concatenate([[1.0], q])
        weights[without, j] = 0.0
    return weights


def cyclic_encode(G: Array, f: int) -> Array:
    """``Z = W G`` as rows of 2d numbers: real parts, then imaginary ones."""
    coded = cyclic_weights(len(G), f) @ G
    return np.concatenate([coded.real, coded.imag], axis=1).astype(G.dtype)


def cyclic_decode(Z: Array, f: int) -> Array:
    """The mean of all gradients, without the f rows whose absence lets the others fit the code best."""
    m, d = len(Z), Z.shape[1] // 2
    coded = Z[:, :d] + 1j * Z[:, d:]
    left, _ = _dft(m, f)

    def fit(forged: tuple[int, ...]) -> tuple[float, Array]:
        kept = np.delete(np.arange(m), forged)
        found = np.linalg.lstsq(left[kept], coded[kept], rcond=None)[0]
        return float(np.linalg.norm(left[kept] @ found - coded[kept])), found[0].real / m

    return min((fit(forged) for forged in combinations(range(m), f)), key=lambda pair: pair[0])[1]
