"""Decentralized stochastic ADMM: the paper's algorithm on a graph, with a dual for every link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from byzadmm import _core
from byzadmm._internal.validation import check_real
from byzadmm.algorithms.base import State
from byzadmm.decentralized.base import (
    DecentralizedAlgorithm,
    NodeSteps,
    check_step_count,
    checked_steps,
    steps_at,
)

if TYPE_CHECKING:
    from byzadmm.decentralized.experiment import GraphExperiment
    from byzadmm.decentralized.network import Nodes

__all__ = ["DADMM"]


@dataclass(frozen=True)
class DADMM(DecentralizedAlgorithm):
    """Byzantine-robust stochastic ADMM on a graph, for the problem of :class:`DRSA`.

    Node i holds a dual ``e_ij`` for each neighbor, 0 at the start, and in every round

        x_i  <- x_i - a_i (g_i + rho x_i + sum_j (2 e_ij - e_ij before)),   sends x_i,
        e_ij <- clip(e_ij + beta/2 (x_i - x_j), lam)

    Both ends of an edge compute the same dual with opposite signs, so that no message can be out of range: a Byzantine
    neighbor moves an element by at most ``3 a lam`` per round, whatever it sends, and no number of them is declared. A
    link on which nothing arrives, or nothing finite, keeps its dual. On a star whose hub has no samples this is
    :class:`byzadmm.ADMM`. No convergence bound is claimed (``docs/decentralized.md``).

    Parameters
    ----------
    lam : float > 0
        Weight of the TV norm; bounds every element of a dual. See :class:`DRSA`.
    beta : float > 0
        Penalty parameter.
    step : step size, or one for each node
        Itself, also where it is meant as ``1/(sigma + beta |N_i|)``.

    Examples
    --------
    A neighbor that says 1e6, ``F = (x - 1)^2/2``, moves its neighbor by ``lam``:

    >>> from byzadmm import attacks, decentralized, graphs, losses, steps
    >>> admm = decentralized.DADMM(lam=0.5, beta=1.0, step=steps.constant(0.2))
    >>> run = decentralized.simulate(None, None, loss=losses.Quadratic([1.0, 1.0], [1.0, 0.0]), dtype="float64",
    ...     graph=graphs.complete(2), algorithm=admm, rho=0.0, attack=attacks.SameValue(1e6), n_byzantine=1)
    >>> run.x[0].round(6).tolist()
    [1.5]
    """

    lam: float
    beta: float
    step: NodeSteps

    dictates: ClassVar[str] = "dual"

    def __post_init__(self) -> None:
        check_real(self.lam, "lam", low=0.0, strict=True)
        check_real(self.beta, "beta", low=0.0, strict=True)
        object.__setattr__(self, "step", checked_steps(self.step))

    def check_dtype(self, dtype: np.dtype[Any]) -> None:
        check_real(self.lam, "lam", low=0.0, strict=True, dtype=dtype)
        check_real(self.beta, "beta", low=0.0, strict=True, dtype=dtype)

    def check_run(self, run: GraphExperiment) -> None:
        check_step_count(self.step, run.m)

    def begin(self, nodes: Nodes) -> State:
        x = nodes.models()
        # "e" has a row for each link; "pull" is sum_j (2 e_ij - e_ij before), so that the former duals are not kept.
        return {"x": x, "e": np.zeros((len(nodes.links.senders), nodes.dim), nodes.dtype), "pull": np.zeros(x.shape)}

    def iterate(self, nodes: Nodes, state: State, k: int) -> None:
        x, pull, threads = state["x"], state["pull"], nodes.threads
        alpha = steps_at(self.step, nodes.m, k, nodes.dtype)
        _core.node_steps(x, x, nodes.gradients(x, k), pull, alpha, nodes.run.rhos, x, threads)
        mail = nodes.exchange(x, k, index=k + 1)
        _core.edge_dual_steps(x, *mail.heard, mail.dictated, state["e"], pull, self.beta, self.lam, threads)
