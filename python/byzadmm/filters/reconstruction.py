"""Messages far from the span of clean gradients are excluded: the linear form of detection by an autoencoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzadmm._internal.arrays import Array, as_float
from byzadmm._internal.lengths import lengths
from byzadmm._internal.validation import check_int, check_real
from byzadmm.filters.base import Filter, register

__all__ = ["Reconstruction"]


@register
@dataclass(frozen=True)
class Reconstruction(Filter):
    """Messages whose distance to the span of clean gradients is below average, or weights by that distance.

    ``e_i = ||(I - U U^T)(g_i - mu)||^2``; kept if ``e_i <= mean_j e_j``, or ``w_i = (min_j e_j / e_i)^power``

    with the mean ``mu`` and the first principal components ``U`` of clean gradients. The master computes these before
    the first round, along a run of its own: so many steps of SGD from the first model on batches of its samples, with
    the step of the first round. The published detector is an autoencoder, of which this is the linear form; pass the
    error of another one as ``score``.

    The threshold takes no number of Byzantine workers, and excludes somebody whenever errors differ, without any
    attack too; a message of enormous error lifts the mean above others that are merely large. Messages in the span are
    not found, however harmful.

    Parameters
    ----------
    rank : int
        Columns of ``U``.
    power : float > 0 or None
        None: the threshold.
    score : callable or None
        ``score(messages) -> (n,)`` errors >= 0 in place of ``e``; then the master needs no samples.
    gradients : int
        Clean gradients.
    samples : int
        Size of the batch of each.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import filters
    >>> given = dict(x0=np.zeros(1), k=1, step=0.1, workers=np.arange(3), state={}, validation=None, rng=None)
    >>> off = filters.Reconstruction(score=lambda X: np.abs(X[:, 0] - 1.0))
    >>> off.weigh(np.array([[1.0], [1.2], [9.0]]), **given).tolist()
    [1.0, 1.0, 0.0]

    References
    ----------
    Li, Cheng, Liu, Wang, Chen, "Abnormal client behavior detection in federated learning", 2019 (weights); Li, Cheng,
    Wang, Liu, Chen, "Learning to detect malicious clients for robust federated learning", 2020 (threshold).
    """

    rank: int = 16
    power: float | None = None
    score: Callable[[Array], Any] | None = None
    gradients: int = 200
    samples: int = 32

    def __post_init__(self) -> None:
        for name in ("rank", "gradients", "samples"):
            check_int(getattr(self, name), name, low=1)
        if self.power is not None:
            check_real(self.power, "power", low=0.0, strict=True)
        if self.score is not None and not callable(self.score):
            raise TypeError(f"score: expected None or a callable, got {type(self.score).__name__}")

    @property
    def validates(self) -> bool:
        return self.score is None

    @property
    def needs(self) -> tuple[str, ...]:
        return ("batch_gradient",) if self.score is None else ()

    def begin(self, m: int, d: int, dtype: np.dtype[Any]) -> dict[str, Array]:
        if self.score is not None:
            return {}
        return {"mean": np.full(d, np.nan), "basis": np.zeros((self.rank, d))}

    def weigh(
        self, messages: Array, *, x0: Array, step: float, state: dict[str, Array], validation: Any, **_: Any
    ) -> Array:
        if self.score is not None:
            made = as_float(self.score(messages.copy()), "score", np.dtype(np.float64))
            if made.shape != (len(messages),):
                raise ValueError(f"score: expected shape ({len(messages)},), got {made.shape}")
            errors = np.where(np.isfinite(made), made, np.inf)
            if np.any(errors < 0):
                raise ValueError(f"score: expected errors >= 0, got {float(errors.min())}")
            return _weights(errors, self.power)
        if np.isnan(state["mean"][0]):
            self._learn(x0, step, state, validation)
        found = reconstruction_lengths(messages, state["mean"], state["basis"])
        if self.power is not None:
            return _weights(found, 2 * self.power)
        unit = found[np.isfinite(found)].max(initial=0.0) or 1.0  # squares that vanish in it are below the mean
        return _weights((found / unit) ** 2, None)

    def _learn(self, x0: Array, step: float, state: dict[str, Array], validation: Any) -> None:
        """Mean and principal components of clean gradients along a run of the master's own."""
        x, found = x0.copy(), []
        with np.errstate(over="ignore", invalid="ignore"):
            for t in range(1, self.gradients + 1):
                gradient = validation.gradient(x, validation.batch(self.samples, t)).astype(np.float64)
                if not np.all(np.isfinite(gradient)):
                    break
                found.append(gradient)
                x -= (step * gradient).astype(x.dtype)
        if not found:
            raise ValueError("filter: Reconstruction: the master's gradient at the first model is not finite")
        clean = np.array(found)
        state["mean"][:] = clean.mean(axis=0)
        _, sizes, basis = np.linalg.svd(clean - state["mean"], full_matrices=False)
        real = sizes > sizes[0] * max(clean.shape) * np.finfo(np.float64).eps  # the others are rounding
        basis = basis[real][: self.rank]
        state["basis"][: len(basis)] = basis


def reconstruction_lengths(messages: Array, mean: Array, basis: Array) -> Array:
    """``||(I - U U^T)(g_i - mu)||`` of rows (n, d), with ``mu`` (d,) and ``U^T`` (rank, d)."""
    with np.errstate(over="ignore", invalid="ignore"):  # what leaves float64 is infinitely far
        apart = messages.astype(np.float64) - mean
        # Not by BLAS, whose bits depend on its number of threads.
        apart -= np.einsum("ik,kj->ij", np.einsum("ij,kj->ik", apart, basis), basis)
    return lengths(apart)


def _weights(errors: Array, power: float | None) -> Array:
    """Weights of errors in [0, inf]: those up to the mean, or a power of them."""
    finite = np.isfinite(errors)
    if not finite.any():
        return np.zeros(len(errors))
    least = errors[finite].min()
    if power is not None:
        quotient = np.where(errors > least, np.divide(least, errors, where=errors > 0, out=np.ones(len(errors))), 1.0)
        return np.where(finite, quotient**power, 0.0)
    unit = errors[finite].max() or 1.0
    limit = np.mean(errors / unit) * unit if finite.all() else np.inf
    return np.where(finite & (errors <= max(limit, least)), 1.0, 0.0)
