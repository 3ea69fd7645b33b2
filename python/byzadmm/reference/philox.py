"""Twin of ``philox.hpp``: counter-based random numbers, addressed by seed, stream and position."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ._arrays import Array

__all__ = ["ndtri", "philox_integers", "philox_normal", "philox_words"]

# Wichura's PPND16: numerator and denominator, lowest power first, for the middle, the tails and the far tails.
_MIDDLE = (
    (
        3.3871328727963666080e0,
        1.3314166789178437745e2,
        1.9715909503065514427e3,
        1.3731693765509461125e4,
        4.5921953931549871457e4,
        6.7265770927008700853e4,
        3.3430575583588128105e4,
        2.5090809287301226727e3,
    ),
    (
        1.0,
        4.2313330701600911252e1,
        6.8718700749205790830e2,
        5.3941960214247511077e3,
        2.1213794301586595867e4,
        3.9307895800092710610e4,
        2.8729085735721942674e4,
        5.2264952788528545610e3,
    ),
)
_TAIL = (
    (
        1.42343711074968357734e0,
        4.63033784615654529590e0,
        5.76949722146069140550e0,
        3.64784832476320460504e0,
        1.27045825245236838258e0,
        2.41780725177450611770e-1,
        2.27238449892691845833e-2,
        7.74545014278341407640e-4,
    ),
    (
        1.0,
        2.05319162663775882187e0,
        1.67638483018380384940e0,
        6.89767334985100004550e-1,
        1.48103976427480074590e-1,
        1.51986665636164571966e-2,
        5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    ),
)
_FAR_TAIL = (
    (
        6.65790464350110377720e0,
        5.46378491116411436990e0,
        1.78482653991729133580e0,
        2.96560571828504891230e-1,
        2.65321895265761230930e-2,
        1.24266094738807843860e-3,
        2.71155556874348757815e-5,
        2.01033439929228813265e-7,
    ),
    (
        1.0,
        5.99832206555887937690e-1,
        1.36929880922735805310e-1,
        1.48753612908506148525e-2,
        7.86869131145613259100e-4,
        1.84631831751005468180e-5,
        1.42151175831644588870e-7,
        2.04426310338993978564e-15,
    ),
)


def philox_words(n: int, *, seed: int, stream: int | tuple[int, ...] = 0) -> Array:
    """First ``n`` 64-bit words of a stream of Philox4x64-10.

    Word ``e`` is word ``e mod 4`` of the block with key ``(seed, 0)`` and counter ``(e div 4, s0, s1, s2)``.

    Parameters
    ----------
    n : int
        Number of words.
    seed : int
        In ``[0, 2^64)``.
    stream : int or tuple of up to three ints
        ``(s0, s1, s2)``, each in ``[0, 2^64)``; missing words are 0.

    Returns
    -------
    array (n,)
        Words as uint64.

    Examples
    --------
    >>> hex(philox_words(1, seed=0)[0])
    '0x16554d9eca36314c'

    References
    ----------
    Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (2011).
    """
    parts = stream if isinstance(stream, tuple) else (stream,)
    if len(parts) > 3:
        raise ValueError(f"stream: expected at most 3 words, got {len(parts)}")
    for name, word in (("seed", seed), *(("stream", part) for part in parts)):
        if not 0 <= word < 2**64:
            raise ValueError(f"{name}: expected an integer in [0, 2^64), got {word}")
    first = sum(int(part) << 64 * (place + 1) for place, part in enumerate(parts))
    # NumPy counts up before each block, hence one less over all 256 bits.
    source = np.random.Philox(key=int(seed), counter=(first - 1) % 2**256)
    return np.asarray(source.random_raw(n), np.uint64)


def philox_integers(shape: int | tuple[int, ...], *, high: int, seed: int, stream: int | tuple[int, ...] = 0) -> Array:
    """Integers in ``[0, high)``.

    Element ``e`` is ``floor(w_e high / 2^64)`` with word ``w_e`` of the stream.

    Parameters
    ----------
    shape : int or tuple of ints
        Shape of the result.
    high : int
        In ``[1, 2^63]``.
    seed, stream
        As in :func:`philox_words`.

    Returns
    -------
    array of the given shape
        Integers as int64.

    Examples
    --------
    >>> philox_integers(4, high=10, seed=0)
    array([0, 8, 8, 4])

    References
    ----------
    Lin, Li, Ling: the sample ``xi_i^k`` of worker ``i`` at iteration ``k`` in ``eqxi-update``.
    """
    if not 1 <= high <= 2**63:
        raise ValueError(f"high: expected an integer in [1, 2^63], got {high}")
    dims = _dims(shape)
    w = philox_words(math.prod(dims), seed=seed, stream=stream)
    half, low = np.uint64(32), np.uint64(2**32 - 1)
    # The upper half of a 128-bit product from 32-bit halves; no partial sum passes 2^64.
    w1, w0 = w >> half, w & low
    h1, h0 = np.uint64(high >> 32), np.uint64(high & (2**32 - 1))
    carry = w1 * h0 + (w0 * h0 >> half)
    upper = w1 * h1 + (carry >> half) + (w0 * h1 + (carry & low) >> half)
    result: Array = upper.astype(np.int64).reshape(dims)
    return result


def philox_normal(
    shape: int | tuple[int, ...],
    *,
    seed: int,
    stream: int | tuple[int, ...] = 0,
    dtype: npt.DTypeLike = "float64",
) -> Array:
    """Standard normal numbers by inversion.

    ``z = sign * -ndtri(p)`` with the sign in the top bit (1 is negative). float64: word ``e`` gives
    ``p = (k + 1/2) 2^-53`` from its 52 bits below the sign; float32: half word ``e``, the low half of a word first,
    gives ``p = (k + 1/2) 2^-32`` from its 31 bits below the sign.

    Parameters
    ----------
    shape : int or tuple of ints
        Shape of the result.
    seed, stream
        As in :func:`philox_words`.
    dtype : {"float64", "float32"}
        Type of the result.

    Returns
    -------
    array of the given shape
        Numbers of the given dtype.

    Examples
    --------
    >>> bool(abs(philox_normal(10_000, seed=1).mean()) < 0.03)
    True

    References
    ----------
    Lin, Li, Ling: the Gaussian attack of section 5.
    """
    kind = np.dtype(dtype)
    dims = _dims(shape)
    n = math.prod(dims)
    if kind == np.float64:
        w = philox_words(n, seed=seed, stream=stream)
        negative = w >> np.uint64(63) == 1
        k = (w & np.uint64(2**63 - 1)) >> np.uint64(11)
        p = (k.astype(np.float64) + 0.5) * 2.0**-53
    elif kind == np.float32:
        # As little-endian bytes a word reads as its low half, then its high half, whatever the machine.
        words = philox_words((n + 1) // 2, seed=seed, stream=stream)
        h = words.astype("<u8").view("<u4")[:n].astype(np.uint32)
        negative = h >> np.uint32(31) == 1
        p = ((h & np.uint32(2**31 - 1)).astype(np.float64) + 0.5) * 2.0**-32
    else:
        raise ValueError(f"dtype: expected float32 or float64, got {kind}")
    size = -ndtri(p)
    return np.where(negative, -size, size).astype(kind).reshape(dims)


def ndtri(p: npt.ArrayLike) -> Array:
    """Quantile of the standard normal distribution.

    The ``z`` with ``Phi(z) = p``, by three rational approximations good to about 1e-16.

    Parameters
    ----------
    p : array
        Probabilities strictly between 0 and 1.

    Returns
    -------
    array
        Quantiles as float64, of the shape of ``p``.

    Examples
    --------
    >>> ndtri([0.5, 0.975]).round(6)
    array([0.      , 1.959964])

    References
    ----------
    Wichura: Algorithm AS 241, the percentage points of the normal distribution (1988), PPND16.
    """
    p_ = np.asarray(p, np.float64)
    q = p_ - 0.5
    r = np.sqrt(-np.log(np.minimum(p_, 1.0 - p_)))
    tail = np.where(r <= 5.0, _ratio(_TAIL, r - 1.6), _ratio(_FAR_TAIL, r - 5.0))
    return np.where(np.abs(q) <= 0.425, q * _ratio(_MIDDLE, 0.180625 - q * q), np.copysign(tail, q))


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], r: Array) -> Array:
    top, bottom = np.zeros_like(r), np.zeros_like(r)
    for a, b in zip(*(reversed(row) for row in coefficients), strict=True):
        top = top * r + a
        bottom = bottom * r + b
    return top / bottom


def _dims(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    return shape if isinstance(shape, tuple) else (shape,)
