"""Separable quadratics, whose minimum is known in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array, as_float, checked_start
from byzadmm._internal.validation import check_real

__all__ = ["Quadratic"]


class Quadratic:
    """Worker i minimises a separable quadratic.

    ``F_i(x) = 1/2 sum_j a_ij (x_j - b_ij)^2``; its stochastic gradient is ``a_i (x - b_i) + N(0, noise^2)``.

    Parameters
    ----------
    a : (m,) or (m, d) array, > 0
    b : (m,) (then d = 1) or (m, d) array
    noise : float >= 0

    Examples
    --------
    >>> from byzadmm import losses
    >>> losses.Quadratic([0.5, 0.5], [[1.0], [1.0]]).gradient([0.0], worker=0, k=1).tolist()
    [-0.5]

    References
    ----------
    Example ``ex`` of the paper has ``F_1 = F_2 = (x-1)^2 / 4``.
    """

    def __init__(self, a: Any, b: Any, noise: float = 0.0) -> None:
        centre = as_float(b, "b", np.dtype(np.float64))
        centre = centre[:, None] if centre.ndim == 1 else centre
        curvature = as_float(a, "a", np.dtype(np.float64))
        curvature = curvature[:, None] if curvature.ndim == 1 else curvature
        if centre.ndim != 2 or centre.size == 0:
            raise ValueError(f"b: expected shape (m, d), got {centre.shape}")
        if curvature.shape not in (centre.shape, (len(centre), 1)):
            raise ValueError(f"a: expected shape ({len(centre)},) or {centre.shape}, got {np.shape(a)}")
        if not (np.all(np.isfinite(curvature)) and np.all(curvature > 0)):
            raise ValueError("a: expected finite numbers > 0")
        if not np.all(np.isfinite(centre)):
            raise ValueError("b: expected finite numbers")
        self.a: Array = np.ascontiguousarray(np.broadcast_to(curvature, centre.shape))
        self.b: Array = np.ascontiguousarray(centre)
        self.noise = check_real(noise, "noise", low=0.0)

    @property
    def n_workers(self) -> int:
        return len(self.b)

    @property
    def dim(self) -> int:
        return int(self.b.shape[1])

    def gradient(self, x: Any, *, worker: int, k: int) -> Array:
        """The gradient without noise."""
        exact: Array = self.a[worker] * (np.asarray(x) - self.b[worker])
        return exact

    def full_gradient(self, x: Any, *, worker: int) -> Array:
        """The gradient without noise."""
        return self.gradient(x, worker=worker, k=0)

    def hessian_product(self, x: Any, v: Any, *, worker: int) -> Array:
        """``a_i v``: the Hessian is the same everywhere."""
        product: Array = self.a[worker] * np.asarray(v)
        return product

    def value(self, x: Any) -> float:
        """``mean_i F_i(x)``"""
        return float(0.5 * np.mean(np.sum(self.a * (np.asarray(x, np.float64) - self.b) ** 2, axis=1)))

    def native_form(self, dtype: np.dtype[Any], seed: int) -> _core.Loss:
        """The loss of the fused loop, whose noise goes by ``seed``."""
        check_real(self.noise, "loss.noise", low=0.0, dtype=dtype)
        a, b = (checked_start(getattr(self, name), f"loss.{name}", self.b.shape, dtype) for name in ("a", "b"))
        return _core.Loss.quadratic(a, b, self.noise, seed)

    def fingerprint(self) -> list[Any]:
        return [self.a, self.b, self.noise]

    def __repr__(self) -> str:
        return f"Quadratic(n_workers={self.n_workers}, dim={self.dim}, noise={self.noise})"
