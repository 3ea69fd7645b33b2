"""Losses, gradients and products with the Hessian of a module on given samples: for masters that hold some, and for
algorithms that need all samples of a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch

from byzadmm._internal.arrays import Array, as_float
from byzadmm._internal.validation import check_int, check_workers
from byzadmm.losses.sampled import check_either, check_rows
from byzadmm.torch._batches import Batch, Batches
from byzadmm.torch._replica import Replica
from byzadmm.torch._samples import Samples

__all__ = ["OnSamples"]

_CHUNK = 1000  # samples of one forward pass


class OnSamples:
    """The members of ``ModuleLoss`` that take samples by their rows, or all of a worker's.

    Gradients are those of the mode in which the module came, and what random layers draw goes by the worker (that of
    the master is a number that no worker has); losses are those of evaluation mode.
    """

    parts: list[Array]
    device: torch.device
    _train: Samples
    _batches: Batches
    _replica: Callable[..., AbstractContextManager[Replica]]
    _seeding: Callable[[], AbstractContextManager[Callable[[int, int], None]]]
    _checked: Callable[[Any], Array]

    def full_gradient(self, x: Any, *, worker: int) -> Array:
        """The gradient of ``worker`` at ``x`` (dim,) on all of its samples."""
        (worker,) = check_workers([worker], "worker", len(self.parts))
        return self._derived(x, self.parts[worker], worker, _gradient)

    def batch_gradient(self, x: Any, rows: Any) -> Array:
        """The gradient at ``x`` (dim,) on some rows of the training set, with their true targets."""
        return self._derived(x, check_rows(rows, len(self._train)), len(self.parts), _gradient)

    def hessian_product(self, x: Any, v: Any, *, worker: int) -> Array:
        """The Hessian of all samples of ``worker`` at ``x`` (dim,) times ``v`` (dim,), by a second backward pass."""
        (worker,) = check_workers([worker], "worker", len(self.parts))
        return self._derived(x, self.parts[worker], worker, self._product_with(v))

    def batch_hessian_product(self, x: Any, v: Any, rows: Any) -> Array:
        """The same on some rows of the training set, with their true targets."""
        return self._derived(x, check_rows(rows, len(self._train)), len(self.parts), self._product_with(v))

    def batch_losses(self, models: Any, rows: Any = None, *, worker: int | None = None, k: int | None = None) -> Array:
        """Mean losses (n,) of models (n, dim) on rows of the training set, or on a worker's batch of round ``k``."""
        check_either(rows, worker, k)
        at = as_float(models, "models")
        seen = len(self.parts)
        if worker is not None:
            (seen,) = check_workers([worker], "worker", len(self.parts))
            rows = self._batches.rows([seen], check_int(k, "k", low=0))[0]
        rows = check_rows(rows, len(self._train))
        held = torch.from_numpy(np.stack([self._checked(row) for row in at])).to(self.device)
        out = np.zeros(len(held))
        with self._replica(held.dtype, training=False) as replica, torch.no_grad(), self._seeding() as seed:
            for number, row in enumerate(held):
                seed(seen, 0)
                replica.hold(row)
                for x, y in self._chunks(rows, seen, row.dtype):
                    out[number] += float(replica.loss(x, y)[0]) * (len(x) / len(rows))
        return out

    def _derived(self, x: Any, rows: Array, worker: int, derivative: Callable[..., list[torch.Tensor]]) -> Array:
        """The mean over ``rows``, seen by ``worker``, of a derivative of the criterion at ``x``."""
        row = torch.from_numpy(self._checked(x)).to(self.device)
        total = torch.zeros_like(row)
        with self._replica(row.dtype, training=True) as replica, torch.enable_grad(), self._seeding() as seed:
            seed(worker, 0)
            replica.hold(row)
            for inputs, targets in self._chunks(rows, worker, row.dtype):
                share = len(inputs) / len(rows)
                made = derivative(replica, replica.loss(inputs, targets)[0])
                for part, into in zip(made, replica.views(total), strict=True):
                    into += share * part
        return np.asarray(total.cpu().numpy())

    def _product_with(self, v: Any) -> Callable[..., list[torch.Tensor]]:
        direction = torch.from_numpy(self._checked(v)).to(self.device)

        def product(replica: Replica, loss: torch.Tensor) -> list[torch.Tensor]:
            first = torch.autograd.grad(loss, replica.parameters, create_graph=True, materialize_grads=True)
            along = sum(
                (g * u).sum() for g, u in zip(first, replica.views(direction.to(loss.dtype)), strict=True)
            )
            if not isinstance(along, torch.Tensor) or not along.requires_grad:  # linear in every parameter
                return [torch.zeros_like(parameter) for parameter in replica.parameters]
            return list(torch.autograd.grad(along, replica.parameters, materialize_grads=True))

        return product

    def _chunks(self, rows: Array, worker: int, dtype: torch.dtype) -> Iterator[Batch]:
        """Inputs and targets, as ``worker`` sees them, some rows at a time."""
        for at in range(0, len(rows), _CHUNK):
            x, y = self._train.of(torch.from_numpy(rows[at : at + _CHUNK]), dtype)
            yield x, self._batches.seen(y, worker)


def _gradient(replica: Replica, loss: torch.Tensor) -> list[torch.Tensor]:
    return list(torch.autograd.grad(loss, replica.parameters, materialize_grads=True))
