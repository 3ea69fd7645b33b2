"""What every code is: its protocol, the registry, and encoding and decoding as plain functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from byzadmm._internal.arrays import Array, as_float
from byzadmm._internal.validation import check_int, check_threads, check_workers

__all__ = ["REGISTRY", "Code", "DecodingError", "decode", "encode", "register"]


class DecodingError(ValueError):
    """The messages cannot be decoded: more of them are forged or missing than the code tolerates."""


class Code:
    """Base of the codes: which batches a worker computes, its message, and the mean gradient from all messages.

    Worker i of ``m`` has the batches ``batches(i, m)``, some of 0 .. m-1. Your own code is a subclass with the five
    methods below; a frozen dataclass has its settings in a run's config.
    """

    def check(self, m: int) -> None:
        """Raise a ValueError for a number of workers that this code is not for."""

    def tolerated(self, m: int) -> int:
        """The largest number of Byzantine ones of ``m`` workers that this code tolerates, wherever they are."""
        raise NotImplementedError(f"{type(self).__name__} has no tolerated")

    def length(self, d: int) -> int:
        """The numbers in the message of a worker."""
        return d

    def batches(self, worker: int, m: int) -> list[int]:
        """The batches that ``worker`` computes, ascending."""
        raise NotImplementedError(f"{type(self).__name__} has no batches")

    def message(self, worker: int, m: int, gradients: list[Array], out: Array, threads: int) -> None:
        """The message of ``worker`` into ``out`` (length,), from the gradients of its batches, each (d,)."""
        raise NotImplementedError(f"{type(self).__name__} has no message")

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
        """The mean (d,) of the m gradients from the messages (n, length) of ``workers``, ascending.

        Raises :class:`DecodingError`. ``precision`` is the type to which the messages were rounded; ``rng`` must be one
        that nobody else can predict.
        """
        raise NotImplementedError(f"{type(self).__name__} has no decode")


#: The built-in codes by the name that command line and settings files use: "cyclic" is ``Cyclic``.
REGISTRY: dict[str, type[Code]] = {}
_Class = TypeVar("_Class", bound=type[Code])


def register(code: _Class) -> _Class:
    """Add a class to :data:`REGISTRY`."""
    REGISTRY[re.sub(r"(?<=[a-z])(?=[A-Z])", "-", code.__name__).lower()] = code
    return code


def check_code(code: Any, name: str = "code") -> Code:
    """``code`` if it is one."""
    if not isinstance(code, Code):
        got = f"the class {code.__name__}" if isinstance(code, type) else type(code).__name__
        raise TypeError(f"{name}: expected a code of byzadmm.redundancy, such as Cyclic(f=1), got {got}")
    return code


def combined(code: Code, gradients: dict[int, Array], workers: Sequence[int], m: int, threads: int) -> Array:
    """The messages (n, length) of ``workers``, from the gradients (d,) of all of their batches by number."""
    first = next(iter(gradients.values()))
    out = np.empty((len(workers), code.length(first.size)), first.dtype)
    for to, worker in zip(out, workers, strict=True):
        code.message(worker, m, [gradients[batch] for batch in code.batches(worker, m)], to, threads)
    return out


def encode(G: Any, code: Code, *, threads: int = 0) -> Array:
    """Messages of all workers, from the gradients of all batches.

    Parameters
    ----------
    G : (m, d) array
        Gradient of every batch; float32 and float64 keep their type.
    code : Code
    threads : int
        0: one for little work, else all.

    Returns
    -------
    (m, length) array
        ``length`` is d for :class:`Repetition`; 2d for :class:`Cyclic`, d real parts and then d imaginary ones.

    Examples
    --------
    >>> from byzadmm import redundancy
    >>> redundancy.encode([[1.0], [2.0], [4.0]], redundancy.Repetition(r=3)).tolist()
    [[7.0], [7.0], [7.0]]
    """
    gradients = as_float(G, "G")
    if gradients.ndim != 2 or not gradients.size:
        raise ValueError(f"G: expected shape (m, d), one row per batch, got {gradients.shape}")
    m = len(gradients)
    check_code(code).check(m)
    return combined(code, dict(enumerate(gradients)), range(m), m, check_threads(threads))


def decode(
    Z: Any, code: Code, *, m: int | None = None, workers: Any = None, rng: Any = None, threads: int = 0
) -> Array:
    """Mean of the gradients of all batches, from the messages of the workers.

    Parameters
    ----------
    Z : (n, length) array
        Messages as :func:`encode` makes them; a few may be anything.
    code : Code
    m : int
        Number of workers; by default as many as there are rows.
    workers : list of int, ascending
        Who sent the rows, if some messages are missing. A missing message counts as a forged one, and so does one that
        is not finite.
    rng : None, int or numpy.random.Generator
        Where the random projection of :class:`Cyclic` comes from. By default from the operating system, so that no
        attacker knows it; it changes the result by rounding at most.
    threads : int

    Returns
    -------
    (d,) array

    Raises
    ------
    DecodingError
        More messages are forged or missing than the code tolerates, as far as that shows.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import redundancy
    >>> code = redundancy.Cyclic(f=1)
    >>> Z = redundancy.encode([[1.0], [2.0], [3.0], [4.0], [5.0]], code)
    >>> Z[2] = [1e300, -7.0]
    >>> redundancy.decode(Z, code).round(12).tolist()
    [3.0]
    """
    rows = as_float(Z, "Z")
    if rows.ndim != 2 or not rows.shape[1]:
        raise ValueError(f"Z: expected shape (n, length), one row per worker, got {rows.shape}")
    total = len(rows) if m is None else check_int(m, "m", low=1)
    check_code(code).check(total)
    senders = list(range(len(rows))) if workers is None else check_workers(workers, "workers", total)
    if len(senders) != len(rows) or any(a >= b for a, b in pairwise(senders)):
        raise ValueError(f"workers: expected {len(rows)} ascending numbers, one per row of Z, got {senders}")
    if workers is None and total != len(rows):
        raise ValueError(f"workers: expected the senders of {len(rows)} rows of m={total} workers, got None")
    generator = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
    return code.decode(
        rows,
        np.array(senders, np.int64),
        total,
        rng=generator,
        precision=rows.dtype,
        threads=check_threads(threads),
    )
