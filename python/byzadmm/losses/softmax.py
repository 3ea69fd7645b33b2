"""Softmax regression on a data set: the loss of the paper's experiments."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array
from byzadmm.datasets import Dataset
from byzadmm.losses.sampled import LabeledLoss

__all__ = ["Softmax"]


class Softmax(LabeledLoss):
    """Mean cross-entropy of softmax regression, one batch per worker and round.

    ``F_i(x) = mean over the samples of worker i of -log softmax(W a)_y`` with ``a = (scale * features, 1)`` and ``x``
    the (K, D+1) matrix ``W``, flat. A batch is drawn with replacement by ``seed``, the worker and the round alone.

    Parameters
    ----------
    dataset : Dataset
        Of ``byzadmm.datasets``, with labels.
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

    name: ClassVar[str] = "softmax"
    #: The same vector added to the weights of every class changes no probability.
    singular: ClassVar[bool] = True
    _native_loss = staticmethod(_core.Loss.softmax)
    _native_mean = staticmethod(_core.softmax_loss)
    _native_gradient = staticmethod(_core.softmax_gradient)
    _native_hessian_product = staticmethod(_core.softmax_hessian_product)

    def _check(self, dataset: Dataset) -> None:
        if dataset.n_classes < 1:
            raise ValueError(
                "dataset: expected labels for softmax regression, got real targets (n_classes=0); "
                "loss='least-squares' takes those"
            )

    @property
    def outputs(self) -> int:
        return int(self.dataset.n_classes)

    def evaluate(self, x: Any) -> dict[str, float]:
        """Accuracy on the test set, and mean loss on training samples (5000 of them if there are more)."""
        samples, labels = self._test
        predicted = np.empty(len(samples), np.int64)
        _core.softmax_predict(self._model(x), samples, predicted, float(self.dataset.scale), True, self.threads)
        right = int(np.count_nonzero(predicted == labels))
        return {"accuracy": right / len(labels), "loss": self._training_loss(x)}

    @staticmethod
    def _residuals(z: Array, y: Array) -> Array:
        """``softmax(z) - e_y``"""
        z -= z.max(axis=1, keepdims=True)
        np.exp(z, out=z)
        z /= z.sum(axis=1, keepdims=True)
        z[np.arange(len(y)), y] -= 1
        return z
