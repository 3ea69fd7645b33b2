"""The one generator of awkward inputs that every test draws from.

Everything is seeded here and finite unless its name says otherwise, so a label in a failure names the input exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["POISONS", "awkward", "conversions", "layouts", "poisoned", "same_bits"]

Array = npt.NDArray[Any]

POISONS = ("nan", "inf", "-inf", "mixed", "single")

# Every n and every d around a tile boundary appears at least once; large n meets small d to keep the suite quick.
_SIZES = (
    (1, 1),
    (2, 2),
    (3, 7),
    (4, 8),
    (5, 9),
    (8, 15),
    (16, 16),
    (19, 17),
    (20, 31),
    (31, 33),
    (32, 63),
    (33, 64),
    (34, 65),
    (63, 127),
    (64, 128),
    (65, 129),
    (100, 255),
    (257, 8),
    (5, 256),
    (4, 257),
    (20, 521),
)


def awkward(dtype: npt.DTypeLike) -> Iterator[tuple[str, Array]]:
    """Yield ``(label, array)`` with finite C-ordered ``(n, d)`` arrays of a float dtype."""
    kind = np.dtype(dtype)
    info = np.finfo(kind)
    huge = 1e300 if kind == np.float64 else 3e38
    rng = np.random.default_rng(20260)

    def normal(n: int, d: int) -> Array:
        return rng.standard_normal((n, d)).astype(kind)

    for n, d in _SIZES:
        yield f"normal {n}x{d}", normal(n, d)

    yield "one worker", normal(1, 33)
    yield "one column, odd", normal(19, 1)
    yield "one column, even", normal(20, 1)
    yield "two rows", normal(2, 17)
    yield "two opposite rows", np.stack([row := normal(1, 9)[0], -row])
    yield "all equal", np.repeat(normal(1, 16), 7, axis=0)
    yield "duplicates", np.repeat(normal(5, 9), [1, 4, 2, 3, 1], axis=0)
    yield "majority of duplicates", np.concatenate([normal(4, 8), np.repeat(normal(1, 8), 6, axis=0)])
    yield "ties", rng.integers(-2, 3, (20, 17)).astype(kind)
    yield "zeros", np.zeros((5, 7), kind)
    yield "signed zeros", np.where(rng.random((9, 15)) < 0.5, 0.0, -0.0).astype(kind)
    yield "zeros among values", normal(8, 31) * (rng.random((8, 31)) < 0.3)
    yield "on a line", np.outer(np.arange(7) ** 2, [1.0, 2.0, -0.5]).astype(kind)
    yield "on a line, even", np.outer(np.arange(8) ** 2, [1.0, 2.0, -0.5]).astype(kind)
    yield "subnormal", rng.integers(-9, 10, (6, 9)).astype(kind) * info.smallest_subnormal
    yield "smallest normal", normal(7, 8) * info.smallest_normal
    yield "huge", (rng.uniform(0.5, 1.0, (5, 16)) * rng.choice([-1.0, 1.0], (5, 16)) * huge).astype(kind)
    yield "huge, one sign", (rng.uniform(0.9, 1.0, (6, 8)) * huge).astype(kind)
    yield "a huge outlier", np.concatenate([normal(6, 9), np.full((1, 9), huge, kind)])
    yield "mixed row scales", normal(13, 15) * (10.0 ** rng.integers(-12, 13, (13, 1))).astype(kind)
    yield "mixed column scales", normal(12, 15) * (10.0 ** rng.integers(-6, 7, (1, 15))).astype(kind)
    yield "large and close together", (2.0 + 1e-3 * rng.standard_normal((30, 127))).astype(kind)
    yield "sorted", np.sort(normal(32, 9), axis=0)
    yield "reversed", np.sort(normal(33, 9), axis=0)[::-1].copy()


def layouts(array: Array) -> Iterator[tuple[str, Any]]:
    """Yield ``(label, object)`` with the same values as ``array`` in other memory or another container.

    The gaps of strided views hold NaN, so that a misread stride shows. A list of lists has Python floats: its dtype is
    float64 whatever ``array`` has.
    """
    n, d = array.shape
    yield "C", np.ascontiguousarray(array)
    yield "Fortran", np.asfortranarray(array)
    yield "transposed view", np.ascontiguousarray(array.T).T
    columns = np.full((n, 2 * d), np.nan, array.dtype)
    columns[:, ::2] = array
    yield "strided columns", columns[:, ::2]
    rows = np.full((2 * n, d), np.nan, array.dtype)
    rows[::2] = array
    yield "strided rows", rows[::2]
    yield "negative strides", array[::-1, ::-1].copy()[::-1, ::-1]
    fixed = array.copy()
    fixed.flags.writeable = False
    yield "read-only", fixed
    yield "big-endian", array.astype(array.dtype.newbyteorder(">"))
    yield "list of arrays", [row.copy() for row in array]
    yield "list of lists", array.tolist()


def conversions() -> Iterator[tuple[str, Array]]:
    """Yield ``(label, array)`` of real types other than float32 and float64, extreme values included."""
    rng = np.random.default_rng(20261)
    yield "float16", rng.standard_normal((9, 17)).astype(np.float16)
    yield "float16 extremes", np.array([[65504.0, -65504.0], [6e-8, -6e-8], [1.0, 0.0]], np.float16)
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        kind = np.dtype(name)
        info = np.iinfo(kind)
        values = rng.integers(max(info.min, -100), 101, (8, 9)).astype(kind)
        values[0, 0], values[1, 0] = info.min, info.max
        yield name, values


def poisoned(
    rng: np.random.Generator, n: int, d: int, rows: Sequence[int], kind: str, dtype: npt.DTypeLike = "float64"
) -> Array:
    """Return normal ``(n, d)`` values with the given ``rows`` made non-finite.

    ``kind`` is one of ``POISONS``: a whole row of NaN, Inf or -Inf, a row of all three at random, or a single NaN.
    """
    if kind not in POISONS:
        raise ValueError(f"kind: expected one of {', '.join(POISONS)}; got {kind!r}")
    X = rng.standard_normal((n, d)).astype(dtype)
    for row in rows:
        if kind == "mixed":
            X[row] = rng.choice([np.nan, np.inf, -np.inf], d)
        elif kind == "single":
            X[row, rng.integers(d)] = np.nan
        else:
            X[row] = float(kind)
    return X


def same_bits(a: npt.ArrayLike, b: npt.ArrayLike) -> bool:
    """Whether two arrays agree in dtype, shape and every bit: NaN equals itself, and 0.0 is not -0.0."""
    x, y = np.asarray(a), np.asarray(b)
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
