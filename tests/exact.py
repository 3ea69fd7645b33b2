"""Judgements in decimal arithmetic, for inputs whose differences, squares or sums no float holds."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["geometric_median_excess"]

Array = npt.NDArray[Any]

#: A float converts exactly and every operation rounds once, to this many digits whatever the exponent.
_CONTEXT = Context(prec=50, Emin=-999999, Emax=999999)


def geometric_median_excess(X: Array, z: Array, weights: Array | None = None) -> float:
    """Lower bound on the residual of all points within rounding of ``z``: 0 where ``z`` may be a rounded minimizer.

    The residual of a point is ``max(0, ||R|| - w_z) / sum w`` with ``R`` the weighted sum of unit vectors to the rows
    and ``w_z`` the weight of the rows at the point. Within ``rho``, one unit in the last place of every ``z_j``, a row
    may be reached if ``d_i <= rho``, and the unit vector to any other row turns by at most ``sqrt(2) rho / d_i``;
    both are given in favor of ``z``. A result with tolerance ``tol`` is as good as its dtype permits if this is at
    most ``tol``. ``inf`` if ``z`` is not finite.

    Examples
    --------
    >>> X = np.array([[0.0, 3.0], [4.0, 0.0], [1e300, 0.0]])
    >>> geometric_median_excess(X, X[1]), geometric_median_excess(X, X[2]) > 0.3
    (0.0, True)
    """
    if not np.isfinite(z).all():
        return np.inf
    with localcontext(_CONTEXT):
        zero, one = Decimal(0), Decimal(1)
        point = [Decimal(float(v)) for v in z]
        w = [one] * len(X) if weights is None else [Decimal(float(v)) for v in weights]
        rho = sum((Decimal(float(v)) ** 2 for v in np.spacing(np.abs(z))), zero).sqrt()
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
