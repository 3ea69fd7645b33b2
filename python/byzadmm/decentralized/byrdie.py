"""ByRDiE: coordinate descent with trimmed neighbors, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array, as_index
from byzadmm._internal.validation import check_int
from byzadmm.algorithms.base import State, preset
from byzadmm.decentralized.base import (
    DecentralizedAlgorithm,
    NodeSteps,
    check_step_count,
    checked_steps,
    steps_at,
)
from byzadmm.decentralized.mixing import Declared, check_declared, combine, declared_of
from byzadmm.decentralized.rules import TrimNeighbors

if TYPE_CHECKING:
    from byzadmm.datasets import Dataset
    from byzadmm.decentralized.experiment import GraphExperiment
    from byzadmm.decentralized.network import Nodes
    from byzadmm.graphs import Flaky, Graph

__all__ = ["ByRDiE"]


@dataclass(frozen=True)
class ByRDiE(DecentralizedAlgorithm):
    """BRIDGE-T on one block of coordinates after the other: an iteration is a sweep over all blocks.

    For each block c, ``inner`` times: ``x_i[c] <- trim(x_i[c]; x_j[c]) - a (g_i + rho x_i)[c]`` with the slope at the
    present ``x_i``, and the batch of this iteration. A sweep costs a gradient per block and inner round. With one block
    it is ``DSGD(rule=TrimNeighbors(b))``, bit for bit. An attack forges whole models; the block of them is sent.

    Parameters
    ----------
    b : int, one for each node, or "exact"
        Byzantine neighbors; a node needs at least ``2b + 1``. "exact": as many as it has.
    blocks : int, or a list of index arrays
        So many blocks of consecutive coordinates, as even as possible: 10 are the classes of softmax on MNIST; or the
        coordinates of each block, none in two of them.
    inner : int
        Rounds on a block in each sweep.
    step : step size, or one for each node
        By sweeps.
    own : "kept" or "trimmed"
        See :class:`TrimNeighbors`.

    Examples
    --------
    >>> from byzadmm import steps
    >>> from byzadmm.decentralized import ByRDiE
    >>> [block.tolist() for block in ByRDiE(b=1, blocks=2, step=steps.power(0.1)).blocks_of(5)]
    [[0, 1, 2], [3, 4]]

    References
    ----------
    Yang, Bajwa, "ByRDiE: Byzantine-resilient distributed coordinate descent for decentralized learning", IEEE
    Transactions on Signal and Information Processing over Networks 5, 2019.
    """

    b: Declared
    blocks: int | Sequence[Any] = 1
    inner: int = 1
    step: NodeSteps = None  # type: ignore[assignment]
    own: str = "kept"

    def __post_init__(self) -> None:
        object.__setattr__(self, "b", check_declared(self.b, "b"))
        self._rule  # noqa: B018 - checks own
        if self.step is None:
            raise TypeError("step: expected a step size of byzadmm.steps, one for each node, or a callable k -> float")
        object.__setattr__(self, "step", checked_steps(self.step))
        check_int(self.inner, "inner", low=1)
        if np.ndim(self.blocks) == 0 and not isinstance(self.blocks, Sequence):
            check_int(self.blocks, "blocks", low=1)
        else:
            made = tuple(as_index(block, f"blocks[{c}]") for c, block in enumerate(self.blocks))  # type: ignore[arg-type]
            object.__setattr__(self, "blocks", made)

    @cached_property
    def _rule(self) -> TrimNeighbors:
        return TrimNeighbors(own=self.own)

    @property
    def exchanges(self) -> int:
        return self.inner

    @classmethod
    def for_dataset(cls, data: Dataset, graph: Graph | Flaky | None = None, **changes: Any) -> ByRDiE:
        """The step of :meth:`DSGD.for_dataset`, on any graph, and by default ``b="exact"``."""
        usual: dict[str, Any] = {"b": "exact", "step": preset(data).step}
        return cls(**(usual | changes))

    def blocks_of(self, d: int) -> list[Array]:
        """The coordinates of each block of models of ``d``."""
        if not isinstance(self.blocks, tuple):
            if self.blocks > d:  # type: ignore[operator]
                raise ValueError(f"blocks: expected at most one for each of {d} coordinates, got {self.blocks}")
            return np.array_split(np.arange(d), self.blocks)
        every = np.concatenate([np.empty(0, np.int64), *self.blocks])
        if np.any((every < 0) | (every >= d)) or len(np.unique(every)) < len(every):
            raise ValueError(f"blocks: expected different coordinates in [0, {d}), each in one block")
        return list(self.blocks)

    def check_graph(self, graph: Graph | Flaky, byzantine: Sequence[int]) -> None:
        check_step_count(self.step, graph.m)
        declared_of(graph, byzantine, self._rule, self.b)

    def check_run(self, run: GraphExperiment) -> None:
        self.blocks_of(run.d)

    def iterate(self, nodes: Nodes, state: State, k: int) -> None:
        x, rhos = state["x"], nodes.rhos
        f = declared_of(nodes.run.graph, nodes.run.byzantine, self._rule, self.b)[nodes.numbers]
        alpha = steps_at(self.step, nodes, k)
        for block in self.blocks_of(nodes.dim):
            for _ in range(self.inner):
                g = nodes.gradients(x, k)
                mail = nodes.exchange(x, k).columns(block)
                own = np.ascontiguousarray(x[:, block])
                moved = np.empty_like(own)
                combine(nodes, mail, self._rule, f, own, moved, k)
                _core.node_steps(moved, own, np.ascontiguousarray(g[:, block]), None, alpha, rhos, moved, nodes.threads)
                x[:, block] = moved
