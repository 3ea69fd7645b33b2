"""Logistic and linear regression on a data set: a linear model with one output."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array, as_float
from byzadmm.datasets import Dataset
from byzadmm.losses.sampled import LabeledLoss, SampledLoss

__all__ = ["LeastSquares", "Logistic"]


class Logistic(LabeledLoss):
    """Mean logistic loss of a linear classifier of two classes, one batch per worker and round.

    ``F_i(x) = mean over the samples of worker i of log(1 + exp(-s x.a))`` with ``a = (scale * features, 1)``, so that
    ``x = [w, bias]``, and ``s = +1`` for label 1, ``-1`` for label 0. A batch is drawn with replacement by ``seed``,
    the worker and the round alone. The gradient is finite wherever ``x.a`` is, and has its limit where that is
    infinite.

    A model ``V`` (2, D+1) of :class:`Softmax` with two classes has the value of ``x = V[1] - V[0]`` here, and the
    gradient ``(-g, g)`` with ``g = dF/dx``: a step of softmax moves ``x`` twice as far.

    Parameters
    ----------
    dataset : Dataset
        Of ``byzadmm.datasets``, with ``n_classes == 2``.
    parts : list of index arrays, one per worker
        Of ``byzadmm.partition``.
    batch_size, seed : int
    threads : int
        0: choose.

    Examples
    --------
    >>> from byzadmm import datasets, losses
    >>> data = datasets.from_arrays([[-2.0], [2.0]], [0, 1], [[3.0]], [1])
    >>> loss = losses.Logistic(data, [[0], [1]], batch_size=1)
    >>> loss.gradient([0.0, 0.0], worker=1, k=1).tolist()
    [-1.0, -0.5]
    >>> loss.evaluate([1.0, 0.0])["accuracy"]
    1.0
    """

    name: ClassVar[str] = "logistic"
    _native_loss = staticmethod(_core.Loss.logistic)
    _native_mean = staticmethod(_core.logistic_loss)
    _native_gradient = staticmethod(_core.logistic_gradient)
    _native_hessian_product = staticmethod(_core.logistic_hessian_product)

    def _check(self, dataset: Dataset) -> None:
        if dataset.n_classes != 2:
            other = "least-squares" if dataset.n_classes == 0 else "softmax"
            raise ValueError(
                f"dataset: expected two classes for logistic regression, got n_classes={dataset.n_classes}; "
                f"loss={other!r} takes such data"
            )

    def evaluate(self, x: Any) -> dict[str, float]:
        """Accuracy of ``x.a > 0`` on the test set, and mean loss on training samples (5000 if there are more)."""
        (samples, labels), model = self._test, self._model(x)
        z = np.empty(len(samples), model.dtype)
        _core.linear_predict(model, samples, z, float(self.dataset.scale), True, self.threads)
        return {"accuracy": float(np.mean((z > 0) == labels)), "loss": self._training_loss(x)}

    @staticmethod
    def _residuals(z: Array, y: Array) -> Array:
        """``sigmoid(z) - y``, formed as ``-s sigmoid(-s z)``: it keeps its relative precision where it is small."""
        side = np.where(y[:, None] > 0, z.dtype.type(1), z.dtype.type(-1))
        t = side * z
        e = np.exp(-np.abs(t))
        residuals: Array = -side * (np.where(t < 0, z.dtype.type(1), e) / (1 + e))
        return residuals


class LeastSquares(SampledLoss):
    """Half the mean squared residual of linear regression, one batch per worker and round.

    ``F_i(x) = 1/2 mean over the samples of worker i of (x.a - y)^2`` with ``a = (scale * features, 1)``, so that
    ``x = [w, bias]``. A batch is drawn with replacement by ``seed``, the worker and the round alone. A residual beyond
    the range of the dtype makes the gradient infinite or NaN: the worker is eliminated. Targets have no labels to flip:
    :class:`byzadmm.attacks.LabelFlip` is refused.

    Parameters
    ----------
    dataset : Dataset
        Of ``byzadmm.datasets``, with real targets, ``n_classes == 0``.
    parts : list of index arrays, one per worker
        Of ``byzadmm.partition``.
    batch_size, seed : int
    threads : int
        0: choose.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import datasets, losses
    >>> x, y = np.array([[1.0], [2.0], [3.0]]), np.array([1.5, 2.5, 3.5])
    >>> loss = losses.LeastSquares(datasets.Dataset("line", x, y, x, y, 0, 1.0), [[0, 1], [2]], batch_size=1)
    >>> loss.gradient([1.0, 0.0], worker=1, k=1).tolist()
    [-1.5, -0.5]
    >>> loss.evaluate([1.0, 0.5])
    {'loss': 0.0, 'test_loss': 0.0, 'r2': 1.0}
    """

    name: ClassVar[str] = "least-squares"
    _native_loss = staticmethod(_core.Loss.least_squares)
    _native_mean = staticmethod(_core.least_squares_loss)
    _native_gradient = staticmethod(_core.least_squares_gradient)
    _native_hessian_product = staticmethod(_core.least_squares_hessian_product)

    def _check(self, dataset: Dataset) -> None:
        if dataset.n_classes != 0:
            raise ValueError(
                f"dataset: expected real targets for least squares, got labels (n_classes={dataset.n_classes}); "
                "from_arrays(task='regression') takes whole numbers as targets"
            )

    def _targets(self, y: Any, name: str) -> Array:
        targets = as_float(y, name, np.dtype(np.float64))
        if not np.all(np.isfinite(targets)):
            raise ValueError(f"{name}: expected finite numbers")
        return targets

    def _check_dtype(self, dtype: np.dtype[Any]) -> None:
        super()._check_dtype(dtype)
        if np.max(np.abs(self._y)) > np.finfo(dtype).max:
            raise ValueError(f"train_y: expected finite numbers in {dtype}")

    def evaluate(self, x: Any) -> dict[str, float]:
        """``F`` on training samples (5000 of them if there are more) and on the test set, and the test set's ``r2``.

        ``r2 = 1 - mean (x.a - y)^2 / var y``, NaN if the targets of the test set are all the same.
        """
        spread = float(np.var(self._test[1]))
        test = self._mean(x, *self._test, None)
        r2 = 1 - 2 * test / spread if spread > 0 else np.nan
        return {"loss": self._training_loss(x), "test_loss": test, "r2": r2}

    @staticmethod
    def _residuals(z: Array, y: Array) -> Array:
        """``z - y``"""
        z -= y[:, None]
        return z
