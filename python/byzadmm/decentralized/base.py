"""The protocol of an algorithm on a graph: what every node does in a round, without a master."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from byzadmm import steps
from byzadmm._internal.arrays import Array
from byzadmm.algorithms.base import Algorithm, State

if TYPE_CHECKING:
    from byzadmm.decentralized.experiment import GraphExperiment
    from byzadmm.decentralized.network import Nodes
    from byzadmm.graphs import Flaky, Graph

__all__ = ["DecentralizedAlgorithm", "NodeSteps"]

#: A step size for all nodes, or one for each.
NodeSteps = steps.Step | Sequence[steps.Step]


class DecentralizedAlgorithm(Algorithm):
    """A training algorithm on a graph: in every round the nodes send messages to their neighbors and move.

    ``iterate`` is all that it must have. Everything that changes is in the arrays of the state, which keep their
    shapes: a checkpoint holds them.

    Attributes
    ----------
    message : str
        What the nodes send: "primal", or another word.
    dictates : str
        What an attack with this ``sends`` forges in place of a message; the algorithm finds it with ``mail.dictated``.
    ideal : bool
        The Byzantine nodes are cut off: nobody hears them, or they anybody.
    together : str
        Why all nodes must be in one process; empty where a node goes by its own rows and its mail alone, so that the
        nodes may be in several, each with the rows of its own nodes (``nodes.numbers``).
    exchanges : int
        Messages as long as a model that a node sends each neighbor in a round.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import attacks, decentralized, graphs, losses
    >>> class MedianGossip(decentralized.DecentralizedAlgorithm):
    ...     def iterate(self, nodes, state, k):
    ...         y = state["x"] - 0.5 / np.sqrt(k) * nodes.gradients(state["x"], k)
    ...         mail = nodes.exchange(y, k)
    ...         for i in range(nodes.m):
    ...             state["x"][i] = np.median([y[i], *mail.rows(i)], axis=0)
    >>> loss = losses.Quadratic(np.ones(7), np.full((7, 2), 3.0))
    >>> run = decentralized.simulate(None, None, loss=loss, graph=graphs.complete(7), algorithm=MedianGossip(),
    ...                              attack=attacks.SignFlip(), n_byzantine=2)
    >>> bool(np.all(np.abs(run.x0 - 3.0) < 0.01)), run.x.shape
    (True, (7, 2))
    """

    schedule: ClassVar[str] = "graph"
    message: ClassVar[str] = "primal"
    dictates: ClassVar[str] = ""
    together: ClassVar[str] = ""

    @property
    def exchanges(self) -> int:
        return 1

    def check_graph(self, graph: Graph | Flaky, byzantine: Sequence[int]) -> None:
        """Raise a ValueError for settings that are illegal on a graph with these attackers, naming the node."""

    def check_run(self, run: GraphExperiment) -> None:
        """Raise a ValueError for settings that are illegal in this run, beyond :meth:`check_graph`."""

    def begin(self, nodes: Nodes) -> State:
        """What the nodes hold before the first round; an entry "x", (m, d), holds their models."""
        return {"x": nodes.models()}

    def iterate(self, nodes: Nodes, state: State, k: int) -> None:
        """Round ``k``: change the arrays of ``state``, or put others of the same shape in their place."""
        raise NotImplementedError(f"{type(self).__name__} has no iterate")


def checked_steps(step: Any, name: str = "step") -> Any:
    """A step size, or a tuple of them, one for each node."""
    if not isinstance(step, (str, bytes)) and isinstance(step, Sequence):
        return tuple(steps.check_step(one, f"{name}[{i}]") for i, one in enumerate(step))
    return steps.check_step(step, name)


def check_step_count(step: NodeSteps, m: int, name: str = "step") -> None:
    """Raise a ValueError unless there is one step size for all of ``m`` nodes, or one for each."""
    if isinstance(step, tuple) and len(step) != m:
        raise ValueError(f"{name}: expected one step size, or one for each of {m} nodes, got {len(step)}")


def steps_at(step: NodeSteps, nodes: Nodes, k: int, name: str = "step") -> NDArray[np.float64]:
    """The step sizes of the nodes in round ``k``, (m,)."""
    if isinstance(step, tuple):
        return np.array([steps.at(step[i], f"{name}[{i}]", k, nodes.dtype) for i in nodes.workers])
    return np.full(nodes.m, steps.at(step, name, k, nodes.dtype))  # type: ignore[arg-type]


def regularized(run: GraphExperiment, x: Array, g: Array) -> Array:
    """``g_i + rho_i x_i`` of every node: the slopes of its own objective."""
    total: Array = g + (run.rhos[:, None] * x).astype(g.dtype) if np.any(run.rhos) else g
    return total


def shared_out(value: float, graph: Graph | Flaky) -> float:
    """What each of the E links of a graph gets of the ``value`` of m links with a master, to three digits."""
    return float(f"{value * graph.m / max(1, len(graph.edges)):.3g}")
