"""The protocol of a loss, built in or custom.

Required are ``dim``, ``n_workers`` and ``gradient(x, *, worker, k) -> (dim,)``. Used where they are present:

==================================================  ===================================================================
``gradients(models, *, workers, k, out)``           gradients of many workers at once, into ``out`` (n, d); ``models``
                                                    is (n, d), or one model (d,) for all
``evaluate(x) -> dict of str to float``             curves of the result: "accuracy", "loss", or any other name
``evaluate_all(models) -> dict``                     the same of many models (n, d) at once, an array (n,) by name: runs
                                                    on a graph
``value(x) -> float``                               the curve "loss", where there is no ``evaluate``
``initial() -> (dim,)``                             where the master and all workers start; zeros by default
``poisoned(workers, mapping) -> loss``              the same with other labels for some workers (label flipping)
``native_form(dtype, seed)``                        a native loss for the fused loop, None if there is none
``describe()``                                      its entry in the result's config
``fingerprint() -> list``                           what identifies the data of a checkpoint, arrays among it
``full_gradient(x, *, worker) -> (dim,)``           gradient on all samples of a worker: LSVRG, perturbed descent,
                                                    Newton
``hessian_product(x, v, *, worker) -> (dim,)``      Hessian of all samples of a worker times a vector: Newton
``batch_hessian_product(x, v, rows) -> (dim,)``     the same on samples that the master holds: Newton with comparison
``singular``                                        True: the Hessian is singular everywhere, so that Newton needs
                                                    ``rho > 0``
``batch_losses(models, rows) -> (n,)``              mean losses of models (n, d) on samples that the master holds: Zeno;
                                                    ``batch_losses(models, worker=, k=)`` on a worker's batch of a round
``batch_gradient(x, rows) -> (dim,)``               gradient on samples that the master holds: FLTrust, SVRG, Newton
``thread_safe``                                     True: runs side by side may share it; else each run of a study has
                                                    a copy, unless there is a ``native_form``
==================================================  ===================================================================

A loss that is given as an object keeps its own seed and batch size; the dtype is that of the run. With
``local_steps=E``, local step e of round k calls it with ``k E + e`` in the place of ``k``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from byzadmm._internal.arrays import Array

__all__ = ["Loss", "Samples"]


@runtime_checkable
class Loss(Protocol):
    """The required members of a loss."""

    @property
    def dim(self) -> int: ...
    @property
    def n_workers(self) -> int: ...
    def gradient(self, x: Array, *, worker: int, k: int) -> Array: ...


@dataclass(frozen=True)
class Samples:
    """The samples of a linear model: features (N, D), targets (N,), the workers' rows, whose targets are flipped.

    Attributes
    ----------
    y, flipped : (N,)
        Targets, and those that the workers ``poisoned`` see.
    outputs : int
        Number K of outputs ``z = W (scale * x, 1)``.
    residuals : callable
        ``(z (n, K), targets (n,)) -> dF/dz (n, K)``; it may change ``z``.
    """

    x: Array
    y: Array
    flipped: Array
    parts: list[Array]
    outputs: int
    residuals: Callable[[Array, Array], Array]
    scale: float
    poisoned: frozenset[int]
    batch_size: int
    seed: int
