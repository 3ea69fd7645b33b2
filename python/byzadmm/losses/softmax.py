"""Softmax regression on a data set: the loss of the paper's experiments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array, as_float, as_index, as_samples
from byzadmm._internal.validation import check_int, check_real, check_threads, check_workers
from byzadmm.datasets import Dataset
from byzadmm.losses.base import Samples

__all__ = ["Softmax"]

#: Training rows on which the loss is evaluated: all, or this many spread evenly.
LOSS_SAMPLES = 5000


class Softmax:
    """Mean cross-entropy of softmax regression, one batch per worker and round.

    ``F_i(x) = mean over the samples of worker i of -log softmax(W a)_y`` with ``a = (scale * features, 1)`` and ``x``
    the (K, D+1) matrix ``W``, flat. A batch is drawn with replacement by ``seed``, the worker and the round alone.

    Parameters
    ----------
    dataset : Dataset
        Of ``byzadmm.datasets``.
    parts : list of index arrays, one per worker
        Of ``byzadmm.partition``.
    batch_size, seed : int
    threads : int
        0: choose.

    Examples
    --------
    >>> from byzadmm import datasets, losses, partition
    >>> data = datasets.load("digits")
    >>> loss = losses.Softmax(data, partition.iid(data.train_y, 5, seed=0))
    >>> loss.dim, loss.n_workers, round(loss.evaluate(loss.initial())["loss"], 3)
    (650, 5, 2.303)
    """

    def __init__(
        self,
        dataset: Dataset,
        parts: Sequence[Any],
        batch_size: int = 32,
        seed: int = 0,
        *,
        threads: int = 0,
        _poisoned: frozenset[int] = frozenset(),
    ) -> None:
        if not isinstance(dataset, Dataset):
            raise TypeError(f"dataset: expected a Dataset of byzadmm.datasets, got {type(dataset).__name__}")
        self.dataset = dataset
        self.parts = _check_parts(parts, len(dataset.train_x))
        self.batch_size = check_int(batch_size, "batch_size", low=1)
        if self.batch_size >= 2**31:
            raise ValueError(f"batch_size: expected less than 2**31, got {self.batch_size}")
        self.seed = check_int(seed, "seed", low=0, high=2**64 - 1)
        self.threads = check_threads(threads)
        self._poisoned = _poisoned
        self._labels = as_index(dataset.train_y, "train_y")
        self._native: dict[np.dtype[Any], _core.Loss] = {}

    @property
    def dim(self) -> int:
        return int(self.dataset.n_classes * (self.dataset.train_x.shape[1] + 1))

    @property
    def n_workers(self) -> int:
        return len(self.parts)

    def initial(self) -> Array:
        """Zeros: the loss is convex."""
        return np.zeros(self.dim)

    def gradient(self, x: Any, *, worker: int, k: int) -> Array:
        """The gradient of ``worker`` at ``x`` (dim,) on its batch of round ``k``."""
        model = as_float(x, "x")
        if model.shape != (self.dim,):
            raise ValueError(f"x: expected shape ({self.dim},), got {model.shape}")
        out: Array = np.empty((1, self.dim), model.dtype)
        self.gradients(model, workers=check_workers([worker], "worker", self.n_workers), k=k, out=out)
        return out.ravel()

    def gradients(self, models: Array, *, workers: Sequence[int], k: int, out: Array) -> None:
        """The gradients of ``workers`` at their models (n, dim), or at one model (dim,), into ``out``."""
        self.native_form(out.dtype, self.seed).gradients(models, list(workers), k, out, self.threads)

    def evaluate(self, x: Array) -> dict[str, float]:
        """Accuracy on the test set, and mean loss on training samples (5000 of them if there are more)."""
        model, scale = x.reshape(1, self.dataset.n_classes, -1), float(self.dataset.scale)
        predicted = np.empty(len(self._test[0]), np.int64)
        _core.softmax_predict(model, self._test[0], predicted, scale, True, self.threads)
        loss = _core.softmax_loss(model, *self._train, scale, True, self.threads)
        return {"accuracy": float(np.mean(predicted == self._test[1])), "loss": float(loss[0])}

    def poisoned(self, workers: Iterable[int], mapping: None = None) -> Softmax:
        """The same with labels ``K - 1 - y`` for ``workers``."""
        poisoned = frozenset(workers)
        return Softmax(
            self.dataset, self.parts, self.batch_size, self.seed, threads=self.threads, _poisoned=poisoned
        )

    def native_form(self, dtype: np.dtype[Any], seed: int) -> _core.Loss:
        """The loss of the fused loop; its batches go by its own seed."""
        if dtype not in self._native:
            classes, y = self.dataset.n_classes, self._labels
            check_real(self.dataset.scale, "scale", low=0.0, strict=True, dtype=dtype)
            poisoned = np.zeros(self.n_workers, np.bool_)
            poisoned[list(self._poisoned)] = True
            self._native[dtype] = _core.Loss.softmax(
                as_samples(self.dataset.train_x),
                y,
                np.ascontiguousarray(classes - 1 - y) if self._poisoned else y,
                np.concatenate(self.parts),
                np.cumsum([0, *(len(part) for part in self.parts)], dtype=np.int64),
                poisoned,
                classes,
                float(self.dataset.scale),
                self.batch_size,
                self.seed,
                dtype == np.float32,
            )
        return self._native[dtype]

    @property
    def samples(self) -> Samples:
        """All samples and the worker of each, for algorithms that keep a table of their gradients (SAGA)."""
        data = self.dataset
        settings = (float(data.scale), self._poisoned, self.batch_size, self.seed)
        return Samples(data.train_x, self._labels, self.parts, data.n_classes, *settings)

    def describe(self) -> str:
        """The name of the loss; the data set has its own entry in the config, and :meth:`fingerprint` its numbers."""
        return "softmax"

    def fingerprint(self) -> list[Any]:
        """Training and test set, and the workers' shares."""
        data = self.dataset
        return [data.train_x, self._labels, *self.parts, data.test_x, data.test_y]

    @cached_property
    def _test(self) -> tuple[Array, Array]:
        return as_samples(self.dataset.test_x), as_index(self.dataset.test_y, "test_y")

    @cached_property
    def _train(self) -> tuple[Array, Array, Array]:
        n = len(self.dataset.train_x)
        rows = np.arange(n) if n <= LOSS_SAMPLES else np.linspace(0, n - 1, LOSS_SAMPLES).astype(np.int64)
        return as_samples(self.dataset.train_x), self._labels, rows[None].astype(np.int64)

    def __repr__(self) -> str:
        return f"Softmax({self.dataset.name!r}, n_workers={self.n_workers}, dim={self.dim})"


def _check_parts(parts: Sequence[Any], n: int) -> list[Array]:
    if not isinstance(parts, Iterable):
        raise TypeError(f"parts: expected a list of index arrays, one per worker, got {type(parts).__name__}")
    checked = [as_index(part, f"parts[{i}]") for i, part in enumerate(parts)]
    if not checked:
        raise ValueError("parts: expected at least one worker, got none")
    for i, part in enumerate(checked):
        if part.ndim != 1 or part.size == 0:
            raise ValueError(f"parts[{i}]: expected a list of at least one sample, got shape {part.shape}")
        if part.min() < 0 or part.max() >= n:
            raise ValueError(f"parts[{i}]: expected indices in [0, {n}), got {part.min()} to {part.max()}")
    return checked
