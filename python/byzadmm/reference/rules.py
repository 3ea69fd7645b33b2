"""Twin of ``median.hpp`` and ``geometric_median.hpp``: robust rules over an ``(n, d)`` array, rows are workers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._arrays import Array, as_rows, narrow

__all__ = ["finite_rows", "geometric_median", "geometric_median_residual", "mean", "median", "trimmed_mean"]


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
        Finite, at least 0, not all 0; equal when left out.

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
    return narrow(_mean(rows, _weights(weights, rows.shape[0])), rows.dtype)


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
        return narrow(_mean(np.stack([low, high]), np.ones(2)), rows.dtype)
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
    return narrow(_mean(kept, np.ones(n - 2 * f)), rows.dtype)


def geometric_median(
    X: npt.ArrayLike, *, weights: npt.ArrayLike | None = None, tol: float = 1e-6, max_iter: int = 1000
) -> Array:
    """Point with the least weighted sum of distances to the rows.

    ``argmin_z sum_i w_i ||X_i - z||``, by the Weiszfeld map with the correction of Vardi and Zhang, sped up by Newton
    steps. A row that is the minimiser is returned exactly; where a whole segment is (two rows, or an even number on a
    line) its midpoint is.

    Parameters
    ----------
    X : (n, d)
        One row per worker, finite.
    weights : (n,), optional
        Finite, at least 0, not all 0; equal when left out.
    tol : float
        Stop once :func:`geometric_median_residual` is at most this; it has no unit.
    max_iter : int
        Largest number of iterations.

    Returns
    -------
    array (d,)
        Of the dtype of ``X``.

    Examples
    --------
    >>> geometric_median([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    array([4., 5., 6.])

    References
    ----------
    Vardi, Zhang: The multivariate L1-median and associated data depth (2000); Lin, Li, Ling: section 5.
    """
    rows = as_rows(X)
    w = _weights(weights, rows.shape[0])
    wide = rows[w > 0].astype(np.float64)
    w = w[w > 0]
    # A power of two costs no accuracy, and differences of the largest floats stay finite.
    exponent = int(np.frexp(np.abs(wide).max(initial=0.0))[1])
    P = np.ldexp(wide, -exponent)

    tied = _best_rows(P, w)
    if len(tied) > 1:
        return narrow(_mean(wide[tied], np.ones(len(tied))), rows.dtype)
    # Offsets from the nearest row are exact beside it, so a tight group far from the origin keeps its digits.
    k = int(tied[0])
    Q = P - P[k]
    z = np.zeros(P.shape[1])
    here = _Pull(Q, z, w)
    for _ in range(max_iter):
        if here.residual <= tol:
            break
        step = _newton_step(Q, z, w, here)
        if step is None:
            step = here.weiszfeld_step()
        z = z + step
        here = _Pull(Q, z, w)
        if here.nearest != k:
            k, z = here.nearest, z - Q[here.nearest]
            Q = P - P[k]
            here = _Pull(Q, z, w)
    if not z.any():
        return narrow(wide[k], rows.dtype)
    return narrow(np.ldexp(P[k] + z, exponent), rows.dtype)


def geometric_median_residual(X: npt.ArrayLike, z: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """How far a point is from being the geometric median, in ``[0, 1]``; 0 exactly at a minimiser.

    ``max(0, ||R|| - w_z) / sum_i w_i`` with ``R = sum_{X_i != z} w_i (X_i - z) / ||X_i - z||`` and ``w_z`` the weight
    of the rows that equal ``z``.

    Parameters
    ----------
    X : (n, d)
        One row per worker, finite.
    z : (d,)
        Point to judge.
    weights : (n,), optional
        As in :func:`geometric_median`.

    Returns
    -------
    float
        The residual, which has no unit.

    Examples
    --------
    >>> geometric_median_residual([[0.0], [1.0], [5.0]], [1.0]), geometric_median_residual([[0.0], [1.0]], [9.0])
    (0.0, 1.0)

    References
    ----------
    Vardi, Zhang: The multivariate L1-median and associated data depth (2000).
    """
    rows = as_rows(X).astype(np.float64)
    point = np.asarray(z, np.float64)
    largest = max(np.abs(rows).max(initial=0.0), np.abs(point).max(initial=0.0))
    exponent = -int(np.frexp(largest)[1])
    return _Pull(np.ldexp(rows, exponent), np.ldexp(point, exponent), _weights(weights, rows.shape[0])).residual


class _Pull:
    """Unit vectors ``U`` from ``z`` to the rows and their weighted sum ``R``, minus the gradient of the objective."""

    def __init__(self, P: Array, z: Array, w: Array) -> None:
        self.U = P - z
        # Scaled by the largest entry, squares neither overflow nor vanish.
        size = np.abs(self.U).max(axis=1, initial=0.0)
        apart = size > 0
        self.U[apart] /= size[apart, None]
        norm = np.sqrt(np.einsum("ij,ij->i", self.U, self.U))
        self.U[apart] /= norm[apart, None]
        distance = size * norm
        self.objective = float(w @ distance)
        self.nearest = int(distance.argmin())
        self.at_row = float(w[~apart].sum())
        self.R = w @ self.U
        self.norm = float(np.linalg.norm(self.R))
        self.residual = max(0.0, self.norm - self.at_row) / float(w.sum())
        # w_i / distance_i is kept times the smallest distance, which may be subnormal.
        self.unit = float(distance[apart].min(initial=np.inf))
        self.c = np.zeros_like(w)
        self.c[apart] = w[apart] * (self.unit / distance[apart])

    def weiszfeld_step(self) -> Array:
        """Step of Vardi and Zhang; away from the rows it is Weiszfeld's."""
        return np.asarray(self.R * ((1.0 - self.at_row / self.norm) * self.unit / self.c.sum()))


def _newton_step(Q: Array, z: Array, w: Array, here: _Pull) -> Array | None:
    """Newton step, shortened or stretched to where the objective stops falling; None where there is no Hessian.

    Weiszfeld's map alone needs thousands of steps when the minimiser is close to a row or the rows are close to a line.
    The Hessian ``s I - U^T C U`` is inverted on the span of the rows by Woodbury's identity: an (n, n) system.
    """
    if here.at_row > 0:
        return None
    s = float(here.c.sum())
    try:
        inner = np.linalg.solve(np.diag(s / here.c) - here.U @ here.U.T, here.U @ here.R)
    except np.linalg.LinAlgError:
        return None
    step = (here.R + here.U.T @ inner) * (here.unit / s)
    start = float(here.R @ step)
    if not (np.isfinite(step).all() and start > 0):
        return None
    # The slope along the step tells the side of the minimum where differences of the objective are lost in rounding.
    low, high, t = 0.0, np.inf, 1.0
    for _ in range(60):
        then = _Pull(Q, z + t * step, w)
        slope = float(then.R @ step)
        if then.residual <= 0.5 * here.residual or abs(slope) <= 0.1 * start:
            break
        low, high = (t, high) if slope > 0 else (low, t)
        t = 2.0 * t if high == np.inf else 0.5 * (low + high)
    return np.asarray(t * step)


def _best_rows(P: Array, w: Array) -> Array:
    """The row to start from, or the two rows at the ends of the segment of minimisers."""
    residual, objective = np.empty(len(P)), np.empty(len(P))
    for i, row in enumerate(P):
        pull = _Pull(P, row, w)
        residual[i], objective[i] = pull.residual, pull.objective
    k = int(residual.argmin())
    rounding = 16 * len(P) * float(np.finfo(np.float64).eps)
    if residual[k] > rounding:
        return np.array([objective.argmin()])
    other = [i for i in np.flatnonzero(residual <= rounding) if not np.array_equal(P[i], P[k])]
    return np.array([k, other[0]] if other else [k])


def _mean(rows: Array, w: Array) -> Array:
    """Weighted mean in float64; 64 bits of headroom where a column comes near the largest float."""
    wide = rows.astype(np.float64, copy=False)
    shift = np.where(np.abs(wide).max(axis=0, initial=0.0) > 2.0**900, 64, 0)
    scaled = np.ldexp(wide, -shift)
    # Rounding may lead out of the range of the values, and at the very top to an infinity.
    middle = np.clip((w @ scaled) / w.sum(), scaled.min(axis=0), scaled.max(axis=0))
    return np.asarray(np.ldexp(middle, shift))


def _weights(weights: npt.ArrayLike | None, n: int) -> Array:
    """Weights with largest value 1, so that their sum is finite."""
    if weights is None:
        return np.ones(n)
    w = np.asarray(weights, np.float64)
    if w.shape != (n,):
        raise ValueError(f"weights: expected shape ({n},), got {w.shape}")
    if not (np.isfinite(w).all() and w.min() >= 0 and w.max() > 0):
        raise ValueError(f"weights: expected finite numbers >= 0 with a positive sum, got {w.tolist()}")
    return np.asarray(w / w.max())
