"""UBAR: the nearest neighbors, and of these the ones that do well on the node's own batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from byzadmm import _core
from byzadmm._internal.validation import check_real
from byzadmm.algorithms.base import State, preset
from byzadmm.decentralized.base import (
    DecentralizedAlgorithm,
    NodeSteps,
    check_step_count,
    checked_steps,
    steps_at,
)
from byzadmm.decentralized.rules.base import weighted_mean
from byzadmm.decentralized.rules.excluding import order_of

if TYPE_CHECKING:
    from byzadmm.datasets import Dataset
    from byzadmm.decentralized.network import Nodes
    from byzadmm.graphs import Flaky, Graph

__all__ = ["UBAR"]


@dataclass(frozen=True)
class UBAR(DecentralizedAlgorithm):
    """Uniform Byzantine-resilient aggregation: of the nearest neighbors, those with no larger loss on the own batch.

    ``N_s`` are the ``floor(rho n)`` (at least one) of n neighbors whose models are nearest to ``x_i``; ``N_r`` those of
    them whose loss on the node's batch of this round is at most its own, or the one of least loss if there is none.
    ``x_i <- alpha x_i + (1 - alpha) mean_{N_r} x_j - a (g_i + rho0 x_i)``, ``rho0`` the weight of the regularizer.

    It tolerates any number of Byzantine neighbors below ``1 - rho`` of all. Where nodes have different data, neighbors
    have larger losses and nodes isolate themselves. It needs a loss with ``batch_losses``.

    Parameters
    ----------
    rho : float in (0, 1]
        Share of the neighbors that are regular.
    alpha : float in [0, 1]
        Weight of the own model.
    step : step size, or one for each node

    Examples
    --------
    >>> from byzadmm import steps
    >>> from byzadmm.decentralized import UBAR
    >>> UBAR(rho=0.4, step=steps.power(0.1)).needs
    ('batch_losses',)

    References
    ----------
    Guo, Zhang, Yu, Xie, Ma, Xiang, Liu, "Byzantine-resilient decentralized stochastic gradient descent", IEEE
    Transactions on Circuits and Systems for Video Technology 32, 2022.
    """

    rho: float = 0.4
    alpha: float = 0.5
    step: NodeSteps = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        check_real(self.rho, "rho", low=0.0, high=1.0, strict=True)
        check_real(self.alpha, "alpha", low=0.0, high=1.0)
        if self.step is None:
            raise TypeError("step: expected a step size of byzadmm.steps, one for each node, or a callable k -> float")
        object.__setattr__(self, "step", checked_steps(self.step))

    @property
    def needs(self) -> tuple[str, ...]:
        return ("batch_losses",)

    @classmethod
    def for_dataset(cls, data: Dataset, graph: Graph | Flaky | None = None, **changes: Any) -> UBAR:
        """The step of :meth:`DSGD.for_dataset`, on any graph."""
        return cls(**({"step": preset(data).step} | changes))

    def check_graph(self, graph: Graph | Flaky, byzantine: Sequence[int]) -> None:
        check_step_count(self.step, graph.m)

    def iterate(self, nodes: Nodes, state: State, k: int) -> None:
        x = state["x"]
        g = nodes.gradients(x, k)
        mail = nodes.exchange(x, k)
        moved: Any = np.empty_like(x)
        for i in range(nodes.m):
            rows = mail.rows(i)
            if not rows or not mail.finite[i]:
                moved[i] = x[i]
                continue
            nearest = order_of(rows, x[i])[: max(1, int(self.rho * len(rows) + 1e-9))]
            models = np.stack([x[i], *(rows[j] for j in nearest)])
            with np.errstate(all="ignore"):  # forged models may have any loss
                losses = np.asarray(nodes.run.loss.batch_losses(models, worker=nodes.workers[i], k=k), np.float64)
            losses = np.where(np.isnan(losses), np.inf, losses)
            chosen = np.flatnonzero(losses[1:] <= losses[0])
            if not len(chosen):
                chosen = np.array([np.argmin(losses[1:])])
            # Summed in the order of the neighbors, and without overflow.
            picked = [rows[j] for j in np.sort(nearest[chosen])]
            shares = [self.alpha, *([(1 - self.alpha) / len(picked)] * len(picked))]
            moved[i] = weighted_mean([np.ascontiguousarray(x[i]), *picked], np.array(shares))
        alpha = steps_at(self.step, nodes, k)
        _core.node_steps(moved, x, g, None, alpha, nodes.rhos, x, nodes.threads)
