"""Judgements in decimal arithmetic, for inputs whose differences, squares or sums no float holds."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["geometric_median_excess", "geometric_median_residual"]

Array = npt.NDArray[Any]

#: A float converts exactly and every operation rounds once, to this many digits whatever the exponent.
_CONTEXT = Context(prec=50, Emin=-999999, Emax=999999)


def geometric_median_residual(X: Array, z: Array, weights: Array | None = None) -> float:
    """Residual ``max(0, ||R|| - w_z) / sum w`` of a point: 0 at a minimizer of ``sum_i w_i ||x_i - z||``, 1 far away.

    ``R`` is the weighted sum of unit vectors from ``z`` to the rows, ``w_z`` the weight of the rows at ``z``. ``inf``
    if ``z`` is not finite.

    Examples
    --------
    >>> geometric_median_residual(np.array([[0.0, 5e-324], [3e-324, 0.0], [1e300, 0.0]]), np.zeros(2)) > 0.3
    True
    """
    return _residual(X, z, weights, Decimal(0))


def geometric_median_excess(X: Array, z: Array, weights: Array | None = None) -> float:
    """Lower bound on the residual of all points within rounding of ``z``: 0 where ``z`` may be a rounded minimizer.

    Within ``rho``, a unit in the last place of every ``z_j``, a row may be reached if ``d_i <= rho``, and the unit
    vector to any other row turns by at most ``sqrt(2) rho / d_i``; both are given in favor of ``z``. A result with
    tolerance ``tol`` is as good as its dtype permits if this is at most ``tol``. ``inf`` if ``z`` is not finite.

    Examples
    --------
    >>> X = np.array([[0.0, 3.0], [4.0, 0.0], [1e300, 0.0]])
    >>> geometric_median_excess(X, X[1]), geometric_median_excess(X, X[2]) > 0.3
    (0.0, True)
    """
    with localcontext(_CONTEXT):
        limits = np.finfo(z.dtype)
        eps, tiny = Decimal(float(limits.eps)), Decimal(float(limits.smallest_subnormal))
        rho = sum((max(abs(Decimal(float(v))) * eps, tiny) ** 2 for v in z), Decimal(0)).sqrt()
    return _residual(X, z, weights, rho)


def _residual(X: Array, z: Array, weights: Array | None, rho: Decimal) -> float:
    if not np.isfinite(z).all():
        return np.inf
    with localcontext(_CONTEXT):
        zero = Decimal(0)
        point = [Decimal(float(v)) for v in z]
        w = [Decimal(1)] * len(X) if weights is None else [Decimal(float(v)) for v in weights]
        pull, slack = [zero] * len(point), zero
        for weight, row in zip(w, X, strict=True):
            gap = [Decimal(float(v)) - p for v, p in zip(row, point, strict=True)]
            distance = sum((v * v for v in gap), zero).sqrt()
            if distance <= rho:
                slack += weight
                continue
            slack += weight * Decimal(2).sqrt() * rho / distance
            share = weight / distance
            pull = [r + share * v for r, v in zip(pull, gap, strict=True)]
        force = sum((v * v for v in pull), zero).sqrt()
        return float(max(zero, force - slack) / sum(w, zero))
