"""Twin of ``geometric_median``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._arrays import Array, as_rows, narrow
from .coordinatewise import mean_of, relative_weights

__all__ = ["geometric_median", "geometric_median_residual"]


def geometric_median(
    X: npt.ArrayLike, *, weights: npt.ArrayLike | None = None, tol: float = 1e-6, max_iter: int = 1000
) -> Array:
    """Point with the smallest weighted sum of distances to the rows.

    ``argmin_z sum_i w_i ||X_i - z||``, by the Weiszfeld map with the correction of Vardi and Zhang, sped up by Newton
    steps. A row that is the minimizer is returned exactly; where a whole segment is (two rows, or an even number on a
    line) its midpoint is.

    Parameters
    ----------
    X : (n, d)
        One row per worker, finite.
    weights : (n,), optional
        Finite, at least 0, not all 0; equal by default.
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
    w = relative_weights(weights, rows.shape[0])
    wide = rows[w > 0].astype(np.float64)
    w = w[w > 0]
    tied = _best_rows(wide, w)
    if len(tied) > 1:
        return narrow(mean_of(wide[tied], np.ones(len(tied))), rows.dtype)
    around = _Around(wide, int(tied[0]), w)
    z = around.start(w)
    here = _Pull(around.Q, z, w)
    for _ in range(max_iter):
        if here.residual <= tol:
            break
        step = _newton_step(around.Q, z, w, here)
        if step is None:
            step = here.weiszfeld_step()
        z = z + step
        here = _Pull(around.Q, z, w)
        # Offsets from a row are exact beside it, so a solution close to one keeps its digits.
        if np.linalg.norm(z - around.Q[here.nearest]) < 1e-3 * np.linalg.norm(z):
            around = _Around(wide, here.nearest, w)
            z = around.start(w)
            here = _Pull(around.Q, z, w)
    most = float(np.finfo(rows.dtype).max)
    return narrow(np.clip(around.point(z), -most, most), rows.dtype)


def geometric_median_residual(X: npt.ArrayLike, z: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """How far a point is from being the geometric median, in ``[0, 1]``; 0 exactly at a minimizer.

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
    gaps, _ = _gaps(rows, np.asarray(z, np.float64))
    return _Pull(gaps, np.zeros(rows.shape[1]), relative_weights(weights, rows.shape[0])).residual


def _gaps(rows: Array, point: Array) -> tuple[Array, Array]:
    """Rows less a point, each with its largest entry in ``[1/2, 1)``, and the powers of two that were divided out."""
    with np.errstate(over="ignore"):
        half = np.where(np.isfinite(rows - point).all(axis=1), 0, 1)
    gaps = np.ldexp(rows, -half[:, None]) - np.ldexp(point, -half[:, None])
    exponent = np.frexp(np.abs(gaps).max(axis=1, initial=0.0))[1]
    return np.ldexp(gaps, -exponent[:, None]), exponent + half


class _Around:
    """Offsets ``Q`` of the rows from row ``k``, in a unit of the size of the solution.

    The unit is the radius of the smallest ball around row ``k`` whose rows outweigh all others, so that no minority
    chooses it. Rows beyond ``2**500`` are moved there: only their direction matters to the solution.
    """

    def __init__(self, rows: Array, k: int, w: Array) -> None:
        self.center = rows[k]
        gaps, size = _gaps(rows, self.center)
        self.at = ~gaps.any(axis=1)
        U = _Pull(gaps, np.zeros_like(self.center), w).U
        self.unit = 0
        for radius in np.unique(size[~self.at]):
            self.unit = int(radius)
            outside = ~self.at & (size > radius)
            if np.linalg.norm(w[outside] @ U[outside]) <= w[~outside].sum():
                break
        self.size = size - self.unit
        self.Q = np.ldexp(gaps, np.minimum(self.size, 500)[:, None])

    def start(self, w: Array) -> Array:
        """Row ``k``; if other rows are too close to tell apart from it in this unit, a point away from all of these."""
        z: Array = np.zeros_like(self.center)
        close = ~self.at & (self.size < -20)
        if not close.any():
            return z
        coarse = _Pull(np.where(close[:, None], 0.0, self.Q), z, w)
        return coarse.weiszfeld_step() if coarse.norm > coarse.at_row else z

    def point(self, z: Array) -> Array:
        """``z`` in the coordinates of the rows, in halves where the sum of two terms may overflow."""
        half = int(self.unit > 900)
        with np.errstate(over="ignore"):
            return np.asarray(np.ldexp(np.ldexp(self.center, -half) + np.ldexp(z, self.unit - half), half))


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

    Weiszfeld's map alone needs thousands of steps when the minimizer is close to a row or the rows are close to a line.
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


def _best_rows(rows: Array, w: Array) -> Array:
    """The row to start from, or the two rows at the ends of the segment of minimizers."""
    residual = np.array([_Pull(_gaps(rows, row)[0], np.zeros_like(row), w).residual for row in rows])
    k = int(residual.argmin())
    rounding = 16 * len(rows) * float(np.finfo(np.float64).eps)
    other = [i for i in np.flatnonzero(residual <= rounding) if not np.array_equal(rows[i], rows[k])]
    return np.array([k, other[0]] if other else [k])
