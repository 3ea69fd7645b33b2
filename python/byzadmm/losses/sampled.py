"""What the losses on a data set share: the workers' samples, their batches, and the native form.

Each is a loss of the outputs ``z = W a`` of a linear model, ``a = (scale * features, 1)``, so that the gradient of a
sample is ``dF/dz a^T``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array, as_float, as_index, as_samples, checked_vector
from byzadmm._internal.labels import mapped
from byzadmm._internal.validation import check_int, check_real, check_threads, check_workers
from byzadmm.datasets import Dataset
from byzadmm.losses.base import Samples

__all__ = ["LabeledLoss", "SampledLoss", "check_either", "check_parts", "check_rows", "spread_rows"]

#: Training rows on which the loss is evaluated: all, or this many spread evenly.
LOSS_SAMPLES = 5000

_BATCH = _core.PURPOSES.index("batch")

_Labeled = TypeVar("_Labeled", bound="LabeledLoss")


class SampledLoss:
    """Base of the losses on a data set: mean loss of a linear model, one batch per worker and round.

    A subclass has ``name``, the four native functions, ``_check``, ``_residuals`` and ``evaluate``.

    Attributes
    ----------
    name : str
        What ``simulate(loss=)`` calls it.
    """

    name: ClassVar[str]
    #: Constructor of the native loss, and the native mean losses, gradients and Hessians times vectors on given rows.
    _native_loss: ClassVar[Callable[..., _core.Loss]]
    _native_mean: ClassVar[Callable[..., Array]]
    _native_gradient: ClassVar[Callable[..., None]]
    _native_hessian_product: ClassVar[Callable[..., None]]

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
        self._check(dataset)
        self.dataset = dataset
        self.parts = check_parts(parts, len(dataset.train_x))
        self.batch_size = check_int(batch_size, "batch_size", low=1)
        if self.batch_size >= 2**31:
            raise ValueError(f"batch_size: expected less than 2**31, got {self.batch_size}")
        self.seed = check_int(seed, "seed", low=0, high=2**64 - 1)
        self.threads = check_threads(threads)
        self._poisoned = _poisoned
        self._y = self._targets(dataset.train_y, "train_y")
        self._native: dict[np.dtype[Any], _core.Loss] = {}

    def _check(self, dataset: Dataset) -> None:
        """Raise a ValueError for a data set that this loss is not for."""
        raise NotImplementedError(f"{type(self).__name__} has no _check")

    def evaluate(self, x: Any) -> dict[str, float]:
        """Metrics of a model."""
        raise NotImplementedError(f"{type(self).__name__} has no evaluate")

    @staticmethod
    def _residuals(z: Array, y: Array) -> Array:
        """``dF/dz`` (n, K) of outputs (n, K), which it may change, and targets (n,)."""
        raise NotImplementedError("a base class")

    def _targets(self, y: Any, name: str) -> Array:
        """Labels as int64, or real targets as float64."""
        return as_index(y, name)

    @property
    def outputs(self) -> int:
        """Outputs of the linear model: 1, or one per class."""
        return 1

    @property
    def dim(self) -> int:
        return self.outputs * (self.dataset.n_features + 1)

    @property
    def n_workers(self) -> int:
        return len(self.parts)

    def initial(self) -> Array:
        """Zeros: the loss is convex."""
        return np.zeros(self.dim)

    def gradient(self, x: Any, *, worker: int, k: int) -> Array:
        """The gradient of ``worker`` at ``x`` (dim,) on its batch of round ``k``."""
        model = checked_vector(x, "x", self.dim, finite=False)
        out: Array = np.empty((1, self.dim), model.dtype)
        self.gradients(model, workers=check_workers([worker], "worker", self.n_workers), k=k, out=out)
        return out.ravel()

    def gradients(self, models: Array, *, workers: Sequence[int], k: int, out: Array) -> None:
        """The gradients of ``workers`` at their models (n, dim), or at one model (dim,), into ``out``."""
        self.native_form(out.dtype, self.seed).gradients(models, list(workers), k, out, self.threads)

    def value(self, x: Any) -> float:
        """The mean loss on all training samples."""
        return self._mean(x, self._train, self._y, None)

    def full_gradient(self, x: Any, *, worker: int) -> Array:
        """The gradient of ``worker`` at ``x`` (dim,) on all of its samples."""
        (worker,) = check_workers([worker], "worker", self.n_workers)
        return self._gradient(x, self.parts[worker], self._seen_by(worker))

    def batch_gradient(self, x: Any, rows: Any) -> Array:
        """The gradient at ``x`` (dim,) on some rows of the training set, with their true targets."""
        return self._gradient(x, check_rows(rows, len(self.dataset.train_x)), self._y)

    def hessian_product(self, x: Any, v: Any, *, worker: int) -> Array:
        """The Hessian of ``worker`` at ``x`` (dim,) on all of its samples, times ``v`` (dim,)."""
        (worker,) = check_workers([worker], "worker", self.n_workers)
        return self._hessian_product(x, v, self.parts[worker])

    def batch_hessian_product(self, x: Any, v: Any, rows: Any) -> Array:
        """The Hessian at ``x`` (dim,) on some rows of the training set, times ``v`` (dim,)."""
        return self._hessian_product(x, v, check_rows(rows, len(self.dataset.train_x)))

    def batch_losses(self, models: Any, rows: Any = None, *, worker: int | None = None, k: int | None = None) -> Array:
        """Mean losses (n,) of models (n, dim) on some rows of the training set, or on a worker's batch of round ``k``.

        One native call for all models. A worker whose labels are flipped sees those; the rows have their true targets.

        Examples
        --------
        >>> import numpy as np
        >>> from byzadmm import datasets, losses, partition
        >>> data = datasets.load("digits")
        >>> loss = losses.Softmax(data, partition.iid(data.train_y, 5, seed=0))
        >>> loss.batch_losses(np.zeros((2, 650)), range(100)).round(3).tolist()
        [2.303, 2.303]
        """
        at = as_float(models, "models")
        if at.ndim != 2 or at.shape[1] != self.dim:
            raise ValueError(f"models: expected shape (n, {self.dim}), got {at.shape}")
        check_either(rows, worker, k)
        targets = self._y
        if worker is not None:
            (worker,) = check_workers([worker], "worker", self.n_workers)
            targets = self._seen_by(worker)
            part = self.parts[worker]
            drawn = np.empty(self.batch_size, np.int64)
            _core.philox_integers(drawn, len(part), self.seed, (_BATCH, worker, check_int(k, "k", low=0)))
            rows = part[drawn]
        every = np.repeat(check_rows(rows, len(self.dataset.train_x))[None], len(at), axis=0)
        shape = (len(at), self.outputs, -1)
        scale = float(self.dataset.scale)
        return self._native_mean(at.reshape(shape), self._train, targets, every, scale, True, self.threads)

    def native_form(self, dtype: np.dtype[Any], seed: int) -> _core.Loss:
        """The loss of the fused loop; its batches go by its own seed."""
        if dtype not in self._native:
            self._check_dtype(dtype)
            poisoned = np.zeros(self.n_workers, np.bool_)
            poisoned[list(self._poisoned)] = True
            self._native[dtype] = self._native_loss(
                self._train,
                self._y,
                self._flipped,
                np.concatenate(self.parts),
                np.cumsum([0, *(len(part) for part in self.parts)], dtype=np.int64),
                poisoned,
                self.outputs,
                float(self.dataset.scale),
                self.batch_size,
                self.seed,
                dtype == np.float32,
            )
        return self._native[dtype]

    @property
    def samples(self) -> Samples:
        """All samples and the worker of each, for algorithms that keep a table of their gradients (SAGA)."""
        return Samples(
            x=self.dataset.train_x,
            y=self._y,
            flipped=self._flipped,
            parts=self.parts,
            outputs=self.outputs,
            residuals=self._residuals,
            scale=float(self.dataset.scale),
            poisoned=self._poisoned,
            batch_size=self.batch_size,
            seed=self.seed,
        )

    def describe(self) -> str:
        """The name of the loss; the data set has its own entry in the config, and :meth:`fingerprint` its numbers."""
        return self.name

    def fingerprint(self) -> list[Any]:
        """Training and test set, the workers' shares, and the draws."""
        data = self.dataset
        arrays = [data.train_x, self._y, *self.parts, data.test_x, data.test_y]
        return [*arrays, float(data.scale), self.batch_size, self.seed]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dataset.name!r}, n_workers={self.n_workers}, dim={self.dim})"

    def _check_dtype(self, dtype: np.dtype[Any]) -> None:
        """Raise a ValueError for data that is not finite in ``dtype``."""
        check_real(self.dataset.scale, "scale", low=0.0, strict=True, dtype=dtype)

    def _model(self, x: Any) -> Array:
        """``x`` (dim,) as the kernels take one model, (1, K, D+1)."""
        return checked_vector(x, "x", self.dim, finite=False).reshape(1, self.outputs, -1)

    def _mean(self, x: Any, samples: Array, y: Array, rows: Array | None) -> float:
        """The mean loss on some rows of the samples, by default all."""
        mean = self._native_mean(self._model(x), samples, y, rows, float(self.dataset.scale), True, self.threads)
        return float(mean[0])

    def _training_loss(self, x: Any) -> float:
        """The mean loss on training samples, 5000 of them if there are more."""
        return self._mean(x, self._train, self._y, self._rows)

    def _gradient(self, x: Any, rows: Array, targets: Array) -> Array:
        model = self._model(x)
        out: Array = np.empty_like(model)
        scale = float(self.dataset.scale)
        self._native_gradient(model, self._train, targets, rows[None], out, scale, True, self.threads)
        return out.ravel()

    def _hessian_product(self, x: Any, v: Any, rows: Array) -> Array:
        model = self._model(x)
        along = checked_vector(v, "v", self.dim, finite=False).astype(model.dtype, copy=False).reshape(model.shape)
        out: Array = np.empty_like(model)
        scale = float(self.dataset.scale)
        self._native_hessian_product(model, along, self._train, rows[None], out, scale, True, self.threads)
        return out.ravel()

    def _seen_by(self, worker: int) -> Array:
        """The targets that a worker sees."""
        return self._flipped if worker in self._poisoned else self._y

    @cached_property
    def _flipped(self) -> Array:
        """The targets that poisoned workers see."""
        return self._y

    @cached_property
    def _train(self) -> Array:
        return as_samples(self.dataset.train_x)

    @cached_property
    def _test(self) -> tuple[Array, Array]:
        x, y = as_samples(self.dataset.test_x), self._targets(self.dataset.test_y, "test_y")
        if x.ndim != 2 or x.shape[1] != self.dataset.n_features or y.shape != (len(x),) or not len(x):
            expected = f"at least one row of {self.dataset.n_features} columns, and a target for each"
            raise ValueError(f"test_x, test_y: expected {expected}; got shapes {x.shape} and {y.shape}")
        return x, y

    @cached_property
    def _rows(self) -> Array | None:
        rows = spread_rows(len(self.dataset.train_x))
        return None if rows is None else rows[None]


class LabeledLoss(SampledLoss):
    """Base of those whose targets are labels 0 to K - 1, which an attack can flip."""

    #: The new label of each for poisoned workers, int64 (K,).
    _mapping: Array | None = None

    def poisoned(self: _Labeled, workers: Iterable[int], mapping: Any = None) -> _Labeled:
        """The same with labels ``K - 1 - y``, or ``mapping[y]`` (K labels, or a dict), for ``workers``."""
        settings: dict[str, Any] = {"threads": self.threads, "_poisoned": frozenset(workers)}
        made = type(self)(self.dataset, self.parts, self.batch_size, self.seed, **settings)
        made._mapping = mapped(mapping, self.dataset.n_classes)
        return made

    def _targets(self, y: Any, name: str) -> Array:
        labels = super()._targets(y, name)
        wrong = np.flatnonzero((labels < 0) | (labels >= self.dataset.n_classes))
        if len(wrong):
            expected, got = f"[0, {self.dataset.n_classes})", labels.flat[wrong[0]]
            raise ValueError(f"{name}: expected labels in {expected}, got {got} at row {wrong[0]}")
        return labels

    @cached_property
    def _flipped(self) -> Array:
        return self._y if self._mapping is None else self._mapping[self._y]


def spread_rows(n: int) -> Array | None:
    """The training samples, of ``n``, on which the loss is evaluated; None for all."""
    return None if n <= LOSS_SAMPLES else np.linspace(0, n - 1, LOSS_SAMPLES).astype(np.int64)


def check_rows(rows: Any, n: int) -> Array:
    """Some of ``n`` training samples, at least one, as an index array."""
    checked = as_index(rows, "rows")
    if checked.ndim != 1 or not checked.size:
        raise ValueError(f"rows: expected a list of at least one sample, got shape {checked.shape}")
    if checked.min() < 0 or checked.max() >= n:
        raise ValueError(f"rows: expected indices in [0, {n}), got {checked.min()} to {checked.max()}")
    return checked


def check_either(rows: Any, worker: Any, k: Any) -> None:
    """A batch is given by its rows, or by a worker and a round."""
    if (rows is None) == (worker is None) or (worker is None) != (k is None):
        raise TypeError("batch_losses: expected either rows, or worker and k")


def check_parts(parts: Sequence[Any], n: int) -> list[Array]:
    """The samples of every worker as index arrays, each at least one of ``n``."""
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
