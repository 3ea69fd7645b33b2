"""Random numbers of a counter-based generator: any part of any stream, in any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array, prepare_out
from byzadmm._internal.validation import check_int, check_threads

__all__ = ["philox_integers", "philox_normal"]


_UINT64_MAX = 2**64 - 1


def _stream(stream: int | Sequence[int]) -> tuple[int, int, int]:
    words = [stream] if not isinstance(stream, (tuple, list)) else list(stream)
    if not 1 <= len(words) <= 3:
        raise ValueError(f"stream: expected an integer or up to three, got {len(words)}")
    first, second, third, *_ = [*(check_int(word, "stream", low=0, high=_UINT64_MAX) for word in words), 0, 0]
    return first, second, third


def _shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(check_int(size, "shape", low=0) for size in sizes)


def _draw(out: Any, shape: Any, dtype: np.dtype[Any], fill: Callable[[Array], None]) -> Any:
    result = prepare_out(out, _shape(shape), dtype, [])
    fill(result)
    return result if out is None else out


def philox_normal(
    shape: int | Sequence[int],
    *,
    seed: int,
    stream: int | Sequence[int] = 0,
    dtype: Any = "float64",
    out: Any = None,
    threads: int = 0,
) -> Any:
    """Standard normal numbers of one stream of Philox4x64-10.

    Element ``e`` comes from word ``e`` (float64) or half a word (float32) of the stream, through the normal quantile.

    Parameters
    ----------
    shape : int or tuple
    seed : int in [0, 2**64)
    stream : int or up to three
        Names the stream: purpose, worker, iteration.
    dtype : "float32" or "float64"
    out : array of that shape and dtype, optional
    threads : int
        Accepted like everywhere; a stream is short and drawn by one thread.

    Examples
    --------
    >>> from byzadmm import kernels
    >>> a = kernels.philox_normal(3, seed=1, stream=(0, 5, 9))
    >>> bool((a == kernels.philox_normal(5, seed=1, stream=(0, 5, 9))[:3]).all())
    True

    References
    ----------
    Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
    """
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise TypeError(f"dtype: expected float32 or float64, got {kind}")
    key, words, _ = check_int(seed, "seed", low=0, high=_UINT64_MAX), _stream(stream), check_threads(threads)
    return _draw(out, shape, kind, lambda result: _core.philox_normal(result, 1.0, key, words))


def philox_integers(
    shape: int | Sequence[int],
    *,
    high: int,
    seed: int,
    stream: int | Sequence[int] = 0,
    out: Any = None,
    threads: int = 0,
) -> Any:
    """Uniform integers in ``[0, high)`` of one stream of Philox4x64-10.

    ``floor(word_e * high / 2**64)``; arguments as in :func:`philox_normal`, ``1 <= high <= 2**63``.

    Examples
    --------
    >>> from byzadmm import kernels
    >>> kernels.philox_integers(4, high=10, seed=0).tolist()
    [0, 8, 8, 4]
    """
    key, words, _ = check_int(seed, "seed", low=0, high=_UINT64_MAX), _stream(stream), check_threads(threads)
    top = check_int(high, "high", low=1, high=2**63)
    return _draw(out, shape, np.dtype(np.int64), lambda result: _core.philox_integers(result, top, key, words))
