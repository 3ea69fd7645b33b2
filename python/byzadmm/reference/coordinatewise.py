"""Twins of ``mean``, ``median``, ``trimmed_mean`` and ``sign_majority``: rules that work on every column by itself."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._arrays import Array, as_rows, narrow

__all__ = [
    "finite_rows",
    "mean",
    "median",
    "sign_majority",
    "trimmed_mean",
    "weighted_median",
    "weighted_trimmed_mean",
]


def finite_rows(X: npt.ArrayLike) -> Array:
    """Which rows hold neither NaN nor an infinity.

    ``mask_i = all_j isfinite(X_ij)``.

    Parameters
    ----------
    X : (n, d)
        One row per worker.

    Returns
    -------
    array (n,)
        Booleans.

    Examples
    --------
    >>> finite_rows([[1.0, 2.0], [float("nan"), 0.0]])
    array([ True, False])

    References
    ----------
    Lin, Li, Ling: below ``eq11``, the elimination of a sender.
    """
    return np.asarray(np.isfinite(as_rows(X)).all(axis=1))


def mean(X: npt.ArrayLike, *, weights: npt.ArrayLike | None = None) -> Array:
    """Weighted mean of the rows.

    ``sum_i w_i X_i / sum_i w_i``, without overflow on the way.

    Parameters
    ----------
    X : (n, d)
        One row per worker.
    weights : (n,), optional
        Finite, at least 0, not all 0; equal by default.

    Returns
    -------
    array (d,)
        Of the dtype of ``X``.

    Examples
    --------
    >>> mean([[0.0, 1.0], [4.0, 3.0]], weights=[3.0, 1.0])
    array([1. , 1.5])

    References
    ----------
    Lin, Li, Ling: section 5, SGD.
    """
    rows = as_rows(X)
    return narrow(mean_of(rows, relative_weights(weights, rows.shape[0])), rows.dtype)


def median(X: npt.ArrayLike, *, even: str = "mid") -> Array:
    """Median of every column.

    The middle of the sorted column; of the two middle values of an even column their midpoint, the lower or the higher.

    Parameters
    ----------
    X : (n, d)
        One row per worker.
    even : {"mid", "low", "high"}
        Which value an even number of rows gives.

    Returns
    -------
    array (d,)
        Of the dtype of ``X``.

    Examples
    --------
    >>> median([[1.0], [9.0], [2.0], [4.0]]), median([[1.0], [9.0], [2.0], [4.0]], even="low")
    (array([3.]), array([2.]))

    References
    ----------
    Lin, Li, Ling: section 5, median.
    """
    if even not in ("mid", "low", "high"):
        raise ValueError(f"even: expected one of mid, low, high; got {even!r}")
    rows = as_rows(X)
    n = rows.shape[0]
    ordered = np.sort(rows, axis=0)
    low, high = ordered[(n - 1) // 2], ordered[n // 2]
    if even == "mid" and n % 2 == 0:
        return narrow(mean_of(np.stack([low, high]), np.ones(2)), rows.dtype)
    return np.array(high if even == "high" else low)


def trimmed_mean(X: npt.ArrayLike, *, f: int) -> Array:
    """Mean of every column without its ``f`` smallest and ``f`` largest values.

    ``1/(n - 2f) sum_{i=f+1}^{n-f} X_(i)`` with ``X_(1) <= ... <= X_(n)``.

    Parameters
    ----------
    X : (n, d)
        One row per worker.
    f : int
        At least 0, with ``2f < n``.

    Returns
    -------
    array (d,)
        Of the dtype of ``X``.

    Examples
    --------
    >>> trimmed_mean([[1.0], [1e9], [2.0], [6.0], [-1e9]], f=1)
    array([3.])

    References
    ----------
    Yin, Chen, Ramchandran, Bartlett: Byzantine-robust distributed learning (2018), definition 2.
    """
    rows = as_rows(X)
    n = rows.shape[0]
    if not 0 <= 2 * f < n:
        raise ValueError(f"f: expected an integer in [0, {(n - 1) // 2}], got {f}")
    # The rest is summed; a sum less the extremes would lose it beside a huge value.
    kept = np.sort(rows, axis=0)[f : n - f]
    return narrow(mean_of(kept, np.ones(n - 2 * f)), rows.dtype)


def sign_majority(X: npt.ArrayLike) -> Array:
    """Sign that most values have, in every column.

    ``sgn(sum_i sgn(X_i))``.

    Parameters
    ----------
    X : (n, d)

    Returns
    -------
    array (d,)

    Examples
    --------
    >>> sign_majority([[0.1, -3.0], [1e-320, 2.0], [-1e9, 0.0]]).tolist()
    [1.0, 0.0]

    References
    ----------
    Bernstein, Zhao, Azizzadenesheli, Anandkumar: signSGD with majority vote is communication efficient and fault
    tolerant (2019).
    """
    rows = as_rows(X)
    return narrow(np.sign(np.sign(rows.astype(np.float64)).sum(axis=0)), rows.dtype)


def weighted_median(X: npt.ArrayLike, *, weights: npt.ArrayLike, even: str = "mid") -> Array:
    """Value with half of the weight on either side, in every column.

    Parameters
    ----------
    X : (n, d)
    weights : (n,)
    even : {"mid", "low", "high"}
        What to give when the half falls between two values.

    Returns
    -------
    array (d,)

    Examples
    --------
    >>> weighted_median([[1.0], [2.0], [9.0]], weights=[1, 1, 3]).tolist()
    [9.0]
    """
    rows = as_rows(X)
    w = relative_weights(weights, len(rows))
    rows, w = rows[w > 0], w[w > 0]
    result = np.empty(rows.shape[1], rows.dtype)
    for j, column in enumerate(rows.T):
        order = np.argsort(column, kind="stable")
        upto = np.cumsum(w[order])
        half = upto[-1] / 2
        i = int(np.argmax(upto >= half * (1 - 1e-12)))
        tied = i + 1 < len(order) and upto[i] <= half * (1 + 1e-12)
        pair = column[order[[i, i + 1 if tied else i]]]
        result[j] = median(pair[:, None], even=even)[0]
    return result


def weighted_trimmed_mean(X: npt.ArrayLike, *, f: int, weights: npt.ArrayLike) -> Array:
    """Weighted mean of every column without the share ``f/n`` of the weight at either end.

    Parameters
    ----------
    X : (n, d)
    f : int
    weights : (n,)

    Returns
    -------
    array (d,)

    Examples
    --------
    >>> weighted_trimmed_mean([[0.0], [1.0], [99.0]], f=1, weights=[2, 2, 2]).tolist()
    [1.0]
    """
    rows = as_rows(X)
    n = len(rows)
    w = relative_weights(weights, n)
    cut = w.sum() * f / n
    result = np.empty(rows.shape[1])
    for j, column in enumerate(rows.T.astype(np.float64)):
        order = np.argsort(column, kind="stable")
        upto = np.cumsum(w[order])
        share = np.minimum(upto, upto[-1] - cut) - np.maximum(upto - w[order], cut)
        kept = share > 1e-12 * upto[-1]
        result[j] = mean_of(column[order][kept][:, None], share[kept])[0]
    return narrow(result, rows.dtype)


def mean_of(rows: Array, w: Array) -> Array:
    """Weighted mean in float64; columns near either end of its range are moved away from it."""
    wide = rows.astype(np.float64, copy=False)
    top = np.abs(wide).max(axis=0, initial=0.0)
    shift = np.where(top > 2.0**900, 64, np.where(top < 2.0**-900, -200, 0))
    scaled = np.ldexp(wide, -shift)
    # Rounding may lead out of the range of the values, and at the very top to an infinity.
    middle = np.clip((w @ scaled) / w.sum(), scaled.min(axis=0), scaled.max(axis=0))
    return np.asarray(np.ldexp(middle, shift))


def relative_weights(weights: npt.ArrayLike | None, n: int) -> Array:
    """Weights with largest value 1, so that their sum is finite."""
    if weights is None:
        return np.ones(n)
    w = np.asarray(weights, np.float64)
    if w.shape != (n,):
        raise ValueError(f"weights: expected shape ({n},), got {w.shape}")
    if not (np.isfinite(w).all() and w.min() >= 0 and w.max() > 0):
        raise ValueError(f"weights: expected finite numbers >= 0 with a positive sum, got {w.tolist()}")
    return np.asarray(w / w.max())
