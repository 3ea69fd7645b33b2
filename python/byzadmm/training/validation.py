"""Clean samples that the master holds: batches of them, and what the loss makes of those."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array, as_float, as_index, checked_vector

__all__ = ["Validation"]

_VALIDATION = _core.PURPOSES.index("validation")


class Validation:
    """Rows of the training set that belong to no worker, for masters that measure messages by clean samples.

    Parameters
    ----------
    loss : loss with ``batch_losses`` or ``batch_gradient``
    rows : (n,) ints
        Of the training set. None of them may be in a worker's part.
    seed : int
        Of the stream of batches.

    Examples
    --------
    >>> from byzadmm import datasets, losses, partition
    >>> from byzadmm.training.validation import Validation
    >>> data = datasets.load("digits")
    >>> parts = partition.iid(data.train_y[100:], 5, seed=0)
    >>> validation = Validation(losses.Softmax(data, [part + 100 for part in parts]), range(100), seed=0)
    >>> validation.batch(4, k=1).tolist()
    [86, 95, 89, 15]
    """

    def __init__(self, loss: Any, rows: Any, seed: int) -> None:
        self.loss, self.seed = loss, seed
        self.rows: Array = as_index(rows if np.size(rows) else np.empty(0, np.int64), "validation")
        if self.rows.ndim != 1 or not self.rows.size:
            raise ValueError(f"validation: expected a list of at least one row, got shape {self.rows.shape}")
        if self.rows.min() < 0:
            raise ValueError(f"validation: expected rows of the training set, got {self.rows.min()}")
        for worker, part in enumerate(getattr(loss, "parts", ())):
            shared = np.intersect1d(part, self.rows)
            if len(shared):
                held = f"{len(shared)} of them, row {shared[0]} first, are in the part of worker {worker}"
                raise ValueError(f"validation: expected rows that no worker holds, but {held}")

    def batch(self, count: int, k: int) -> Array:
        """``count`` rows of round ``k``, drawn with replacement."""
        drawn = np.empty(count, np.int64)
        _core.philox_integers(drawn, len(self.rows), self.seed, (_VALIDATION, 0, k))
        picked: Array = self.rows[drawn]
        return picked

    def losses(self, models: Array, rows: Array) -> Array:
        """Mean losses (n,) of models (n, d) on ``rows``."""
        made = as_float(self.loss.batch_losses(models, rows), "loss.batch_losses", np.dtype(np.float64))
        if made.shape != (len(models),):
            raise ValueError(f"loss.batch_losses: expected shape ({len(models)},), got {made.shape}")
        return made

    def gradient(self, x: Array, rows: Array) -> Array:
        """The gradient at ``x`` (d,) on ``rows``."""
        return checked_vector(self.loss.batch_gradient(x.copy(), rows), "loss.batch_gradient", x.size, finite=False)

    def hessian_product(self, x: Array, v: Array, rows: Array) -> Array:
        """The Hessian at ``x`` (d,) on ``rows``, times ``v`` (d,)."""
        made = self.loss.batch_hessian_product(x.copy(), v, rows)
        return checked_vector(made, "loss.batch_hessian_product", x.size, finite=False)
