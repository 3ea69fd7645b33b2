"""The TV-norm penalized subgradient method on a graph: RSA without a master."""

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
    shared_out,
    steps_at,
)

if TYPE_CHECKING:
    from byzadmm.algorithms.rsa import RSA
    from byzadmm.datasets import Dataset
    from byzadmm.decentralized.network import Nodes
    from byzadmm.graphs import Flaky, Graph

__all__ = ["DRSA"]


@dataclass(frozen=True)
class DRSA(DecentralizedAlgorithm):
    """Subgradient method for ``min sum_i F_i(x_i) + rho/2 ||x_i||^2 + lam sum_edges ||x_i - x_j||_1``.

    ``x_i <- x_i - a (g_i + rho x_i + lam sum_j sgn(x_i - x_j))``, ``sgn(0) = 0``, with all ``x_j`` of the same round.
    A Byzantine neighbor moves an element by at most ``a lam`` per round; no number of them is declared. On a star whose
    hub has no samples it is :class:`byzadmm.RSA`.

    Parameters
    ----------
    lam : float > 0
        Weight of the TV norm; ``graph.lambda_0`` is the least with which all nodes agree on the minimizer.
    step : step size, or one for each node

    Examples
    --------
    Two nodes with ``F = (x - b)^2/2``, ``b = 1, -1``:

    >>> from byzadmm import decentralized, graphs, losses, steps
    >>> run = decentralized.simulate(None, None, loss=losses.Quadratic([1.0, 1.0], [1.0, -1.0]), dtype="float64",
    ...     graph=graphs.complete(2), algorithm=decentralized.DRSA(lam=0.5, step=steps.constant(0.1)), rho=0.0)
    >>> run.x.ravel().round(6).tolist()
    [0.5, -0.5]

    References
    ----------
    Peng, Li, Ling, "Byzantine-robust decentralized stochastic optimization over static and time-varying networks",
    Signal Processing 183, 2021.
    """

    lam: float
    step: NodeSteps

    def __post_init__(self) -> None:
        check_real(self.lam, "lam", low=0.0, strict=True)
        object.__setattr__(self, "step", checked_steps(self.step))

    @classmethod
    def for_dataset(cls, data: Dataset, graph: Graph | Flaky, **changes: Any) -> DRSA:
        """Settings for regression on ``data``, on this graph: those of :meth:`byzadmm.RSA.for_dataset`, shared out.

        Examples
        --------
        >>> from byzadmm import datasets, graphs
        >>> from byzadmm.decentralized import DRSA
        >>> DRSA.for_dataset(datasets.load("digits"), graphs.ring(12, k=2))
        DRSA(lam=0.007, step=Power(c=3.0, p=0.5))
        """
        return cls.of(preset(data).rsa, graph, **changes)

    @classmethod
    def of(cls, rsa: RSA, graph: Graph | Flaky, **changes: Any) -> DRSA:
        """The workers' settings of ``rsa``, with ``lam`` of its m links with the master shared out among E links."""
        usual: dict[str, Any] = {"lam": shared_out(rsa.lam, graph), "step": rsa.worker_step}
        return cls(**(usual | changes))

    def check_dtype(self, dtype: np.dtype[Any]) -> None:
        check_real(self.lam, "lam", low=0.0, strict=True, dtype=dtype)

    def check_graph(self, graph: Graph | Flaky, byzantine: Sequence[int]) -> None:
        check_step_count(self.step, graph.m)

    def iterate(self, nodes: Nodes, state: State, k: int) -> None:
        x, threads = state["x"], nodes.threads
        g = nodes.gradients(x, k)
        mail = nodes.exchange(x, k)
        pull = np.empty(x.shape)
        _core.sign_pulls(x, *mail.heard, pull, self.lam, threads)
        alpha = steps_at(self.step, nodes, k)
        _core.node_steps(x, x, g, pull, alpha, nodes.rhos, x, threads)
