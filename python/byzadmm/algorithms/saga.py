"""Byrd-SAGA: workers' gradients of a linear model, corrected by a table of the last gradient of every sample.

The gradient of one sample is ``r a^T`` with ``a = (scale x, 1)`` and the residuals ``r = dF/dz`` of its K outputs
(``p - e_y`` in softmax regression), so these K numbers stand for all of it: a table of shape (n_i, K) per worker, and
the mean of its gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array
from byzadmm.algorithms.base import State
from byzadmm.losses.base import Samples

__all__ = ["Saga"]

_BATCH = 0  # Purpose::batch of cpp/include/byzadmm/attacks.hpp: the samples that the native loss would draw
_BLOCK = 256  # rows at a time when a table is begun


class Saga:
    """The tables of some workers, and the corrected gradients made with them.

    ``v_i = mean_b ( r_b - T_i[b] ) a_b^T + mean_j T_i[j] a_j^T`` over the drawn samples b; then ``T_i[b] <- r_b``. A
    sample that was drawn twice counts twice in the first mean, against the same old entry, and once in the second: the
    expectation over the draws is the worker's full gradient. Tables begin with the residuals at the first model.
    """

    def __init__(self, samples: Samples, workers: Sequence[int], dtype: np.dtype[Any]) -> None:
        self.samples, self.dtype = samples, dtype
        self.sizes = [len(samples.parts[worker]) for worker in workers]
        ends = np.cumsum(self.sizes).tolist()
        places = zip(workers, self.sizes, ends, strict=True)
        self.place = {w: (row, slice(e - n, e)) for row, (w, n, e) in enumerate(places)}

    def begin(self) -> State:
        """Tables before the first round. NaN: not begun. The mean moves a little in every round: it is in double."""
        outputs = self.samples.outputs
        d = outputs * (self.samples.x.shape[1] + 1)
        return {
            "saga": np.full((sum(self.sizes), outputs), np.nan, self.dtype),
            "saga_mean": np.full((len(self.sizes), d), np.nan, np.float64),
        }

    def gradients(self, state: State, model: Array, workers: Sequence[int], k: int) -> Array:
        """Corrected gradients of ``workers`` at ``model`` (d,) in round ``k``; their tables move on."""
        weights = model.reshape(self.samples.outputs, -1)
        out = np.empty((len(workers), model.size), self.dtype)
        drawn = np.empty(self.samples.batch_size, np.int64)
        with np.errstate(over="ignore", invalid="ignore"):  # a model may diverge; its worker is eliminated
            for to, worker in zip(out, workers, strict=True):
                row, rows = self.place[worker]
                table, mean, part = state["saga"][rows], state["saga_mean"][row], self.samples.parts[worker]
                if np.isnan(table[0, 0]):
                    self._begin(weights, worker, table, mean)
                _core.philox_integers(drawn, len(part), self.samples.seed, (_BATCH, worker, k))
                inputs, new = self._residuals(weights, worker, part[drawn])
                change = new - table[drawn]
                to[:] = mean + _outer(change, inputs) / self.samples.batch_size
                _, once = np.unique(drawn, return_index=True)
                mean += _outer(change[once], inputs[once]) / len(part)
                table[drawn] = new
        return out

    def _begin(self, weights: Array, worker: int, table: Array, mean: Array) -> None:
        part = self.samples.parts[worker]
        mean[:] = 0.0
        for low in range(0, len(part), _BLOCK):
            rows = slice(low, low + _BLOCK)
            inputs, table[rows] = self._residuals(weights, worker, part[rows])
            mean += _outer(table[rows], inputs) / len(part)

    def _residuals(self, weights: Array, worker: int, rows: Array) -> tuple[Array, Array]:
        """``a`` (n, D+1) and the residuals (n, K) of some samples."""
        samples = self.samples
        inputs = np.ones((len(rows), weights.shape[1]), self.dtype)
        inputs[:, :-1] = samples.x[rows]
        inputs[:, :-1] *= self.dtype.type(samples.scale)
        targets = (samples.flipped if worker in samples.poisoned else samples.y)[rows]
        return inputs, samples.residuals(np.einsum("nd,kd->nk", inputs, weights), targets)


def _outer(residuals: Array, inputs: Array) -> Array:
    """``sum_b r_b a_b^T``, flat. Not by BLAS, whose threads compete with ours and change the bits."""
    flat: Array = np.einsum("nk,nd->kd", residuals, inputs).ravel()
    return flat
