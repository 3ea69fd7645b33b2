"""Decentralized stochastic ADMM: the paper's algorithm on a graph, with a dual for every link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from byzadmm import _core, steps
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
    from byzadmm.algorithms.admm import ADMM
    from byzadmm.datasets import Dataset
    from byzadmm.decentralized.network import Nodes
    from byzadmm.graphs import Flaky, Graph

__all__ = ["DADMM", "degree_steps"]


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
        Itself, also where it is meant as ``1/(sigma + beta |N_i|)``: :func:`degree_steps`.

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

    @classmethod
    def for_dataset(cls, data: Dataset, graph: Graph | Flaky, **changes: Any) -> DADMM:
        """Settings for regression on ``data``, on this graph: those of :meth:`byzadmm.ADMM.for_dataset`, shared out.

        Parameters
        ----------
        data : Dataset
            See :func:`byzadmm.catalogue.preset_for`.
        graph : Graph or Flaky
        **changes
            Settings to use in place of those; ``slope`` for steps ``1/(beta |N_i| + slope sqrt k)``.

        Examples
        --------
        >>> from byzadmm import datasets, graphs
        >>> from byzadmm.decentralized import DADMM
        >>> DADMM.for_dataset(datasets.load("digits"), graphs.ring(12, k=2))
        DADMM(lam=0.005, beta=0.25, step=InvSqrt(c0=1.0, c1=0.3))
        """
        return cls.of(preset(data).admm, graph, **changes)

    @classmethod
    def of(cls, admm: ADMM, graph: Graph | Flaky, *, slope: float | None = None, **changes: Any) -> DADMM:
        """The settings of ``admm``, those of its m links with the master shared out among the E links of a graph.

        ``lam`` and ``beta`` are ``m/E`` times as large, and the steps are ``1/(beta |N_i| + slope sqrt k)`` with the
        slope of the workers' steps.
        """
        given = {"lam": shared_out(admm.lam, graph), "beta": shared_out(admm.beta, graph)} | changes
        if "step" not in given:
            # The workers' steps are 1/(c0 + c1 sqrt k).
            usual = 1 / admm.worker_step(4) - 1 / admm.worker_step(1)
            given["step"] = degree_steps(graph, given["beta"], float(f"{usual:.6g}") if slope is None else slope)
        elif slope is not None:
            raise TypeError("slope: expected step or slope, got both")
        return cls(**given)

    def check_dtype(self, dtype: np.dtype[Any]) -> None:
        check_real(self.lam, "lam", low=0.0, strict=True, dtype=dtype)
        check_real(self.beta, "beta", low=0.0, strict=True, dtype=dtype)

    def check_graph(self, graph: Graph | Flaky, byzantine: Sequence[int]) -> None:
        check_step_count(self.step, graph.m)

    def begin(self, nodes: Nodes) -> State:
        x = nodes.models()
        # "e" has a row for each link; "pull" is sum_j (2 e_ij - e_ij before), so that the former duals are not kept.
        return {"x": x, "e": np.zeros((len(nodes.links.senders), nodes.dim), nodes.dtype), "pull": np.zeros(x.shape)}

    def iterate(self, nodes: Nodes, state: State, k: int) -> None:
        x, pull, threads = state["x"], state["pull"], nodes.threads
        alpha = steps_at(self.step, nodes, k)
        _core.node_steps(x, x, nodes.gradients(x, k), pull, alpha, nodes.rhos, x, threads)
        mail = nodes.exchange(x, k, index=k + 1)
        _core.edge_dual_steps(x, *mail.heard, mail.dictated, state["e"], pull, self.beta, self.lam, threads)


def degree_steps(graph: Graph | Flaky, beta: float, slope: float) -> NodeSteps:
    """Step sizes ``1/(beta |N_i| + slope sqrt k)`` of the nodes; a single one where all have as many neighbors.

    Examples
    --------
    >>> from byzadmm import graphs
    >>> from byzadmm.decentralized import degree_steps
    >>> degree_steps(graphs.star(3), beta=0.5, slope=0.3)
    (InvSqrt(c0=1.0, c1=0.3), InvSqrt(c0=0.5, c1=0.3), InvSqrt(c0=0.5, c1=0.3))
    """
    beta, slope = check_real(beta, "beta", low=0.0, strict=True), check_real(slope, "slope", low=0.0, strict=True)
    # To twelve digits: 0.6 for three neighbors and beta = 0.2.
    made = tuple(steps.inv_sqrt(float(f"{beta * degree:.12g}"), slope) for degree in graph.degrees.tolist())
    return made[0] if len(set(made)) == 1 else made
