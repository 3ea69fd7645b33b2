"""The record of an experiment on a graph, and its curves: those of the regular nodes' own models."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from byzadmm import _core
from byzadmm._internal.arrays import Array, checked_start
from byzadmm._internal.description import describe
from byzadmm._internal.npz import Found
from byzadmm._internal.validation import check_real
from byzadmm.algorithms.base import State
from byzadmm.decentralized.base import DecentralizedAlgorithm
from byzadmm.decentralized.network import Network, Nodes
from byzadmm.graphs.flaky import checked_graph
from byzadmm.results import Result
from byzadmm.training.experiment import Experiment
from byzadmm.training.history import History
from byzadmm.training.run import Advance

__all__ = ["GraphExperiment", "rounds"]

_START = _core.PURPOSES.index("start")


class GraphExperiment(Experiment):
    """The arguments of :func:`byzadmm.decentralized.simulate`, checked.

    Attributes
    ----------
    graph : Graph or Flaky
        The given one; for an ideal algorithm without the links of the Byzantine nodes.
    rhos : (m,) float64
        Weight of each node's regularizer.
    absent : set of int
        Nodes whose process has died: the curves are without them from then on.
    """

    schedules: ClassVar[tuple[str, ...]] = ("graph",)
    algorithm: DecentralizedAlgorithm

    def __init__(
        self, dataset: Any, parts: Any, *, graph: Any, rho: Any = 0.01, x_init: Any = None, **settings: Any
    ) -> None:
        checked_graph(graph)
        self._given_rho = rho if np.ndim(rho) == 0 else list(rho)
        deviation = None if x_init is None or np.ndim(x_init) else check_real(x_init, "x_init", low=0.0, strict=True)
        more = settings if deviation is not None else settings | {"x_init": x_init}
        super().__init__(dataset, parts, rho=rho if np.ndim(rho) == 0 else 0.0, **more)
        if graph.m != self.m:
            raise ValueError(f"graph: expected one node for each of {self.m} workers, got {graph.m}")
        self.rhos = self._checked_rhos()
        self.absent: set[int] = set()
        self.given_graph = graph
        self.graph = graph.cut_off(self.byzantine) if self.algorithm.ideal else graph
        if deviation is not None:
            drawn = np.empty((self.m, self.d))
            for i, row in enumerate(drawn):
                _core.philox_normal(row, deviation, self.seed, (_START, i, 0))
            self.x_init = checked_start(drawn, "x_init", drawn.shape, self.dtype)
        if len(self.regular) > 1 and not graph.connected(self.regular):
            warnings.warn(
                "graph: the regular nodes are not connected without the Byzantine ones, so that they cannot agree",
                RuntimeWarning,
                stacklevel=3,
            )
        self.algorithm.check_graph(self.graph, self.byzantine)
        self.algorithm.check_run(self)

    def _checked_rhos(self) -> NDArray[np.float64]:
        if np.ndim(self._given_rho) == 0:
            return np.full(self.m, self.rho)
        if np.shape(self._given_rho) != (self.m,):
            raise ValueError(f"rho: expected a number, or one for each of {self.m} nodes, got {self._given_rho!r}")
        return np.array([check_real(one, "rho", low=0.0, dtype=self.dtype) for one in self._given_rho])

    @cached_property
    def has_models(self) -> bool:
        """Whether nodes have models of their own: always."""
        return True

    def history(self) -> GraphHistory:
        return GraphHistory(self)

    def describe(self) -> dict[str, Any]:
        links = 2 * len(self.graph.edges) * getattr(self.graph, "p", 1.0)
        return super().describe() | {
            "rho": describe(self._given_rho),
            "graph": self.given_graph.describe(),
            "messages": links * self.algorithm.exchanges,
        }


def rounds(run: GraphExperiment, nodes: Nodes | None = None) -> tuple[State, Advance]:
    """The first state of a run on a graph, or of some of its nodes, and the function that advances it."""
    nodes = Network(run) if nodes is None else nodes
    state = run.algorithm.begin(nodes)
    if "x" not in state or state["x"].shape != (nodes.m, run.d):
        raise ValueError(f"begin: expected a state with models x of shape ({nodes.m}, {run.d})")

    def advance(state: State, first: int, count: int) -> None:
        nodes.memory = {name: state[name] for name in nodes.memory}
        for k in range(first, first + count):
            run.algorithm.iterate(nodes, state, k)

    return state | nodes.memory, advance


class GraphHistory(History):
    """The curves of a run on a graph: every metric of the loss is the mean over the regular nodes' own models."""

    run: GraphExperiment

    def evaluate(self, done: int, state: State) -> dict[str, float]:
        self._x = state["x"]
        self._regular = [i for i in self.run.regular if i not in self.run.absent] or self.run.regular
        found = super().evaluate(done, state | {"x0": self._center(state)})
        return found

    def _center(self, state: State) -> Array:
        """The mean of the regular models."""
        who = self._regular or range(self.run.m)
        with np.errstate(over="ignore", invalid="ignore"):
            mean: Array = state["x"][who].mean(axis=0, dtype=np.float64).astype(state["x"].dtype)
        return mean

    def _metrics(self, x0: Array) -> dict[str, float]:
        models = self._x[self._regular or range(self.run.m)]
        each = self._of_models(models)
        found = {name: float(np.mean(values)) for name, values in each.items()}
        if "accuracy" in each:
            found["worst_accuracy"] = float(np.min(each["accuracy"]))
        spread = models.astype(np.float64)
        spread -= spread.mean(axis=0)
        np.square(spread, out=spread)
        found["consensus_variance"] = float(np.mean(spread.sum(axis=1)))
        found["consensus_error"] = float(np.linalg.norm(spread.mean(axis=0)))
        return found

    def _of_models(self, models: Array) -> dict[str, Array]:
        """Every metric of the loss for each of the models (n, d); equal models are evaluated once."""
        different, place = _different(models)
        evaluate_all = getattr(self.run.loss, "evaluate_all", None)
        if evaluate_all is not None:
            made = evaluate_all(models[different])
            if not isinstance(made, Mapping):
                raise TypeError(f"loss.evaluate_all: expected a dict of arrays by name, got {type(made).__name__}")
            return {str(name): np.asarray(values, np.float64)[place] for name, values in made.items()}
        found = [super(GraphHistory, self)._metrics(models[row]) for row in different]
        return {name: np.array([one.get(name, np.nan) for one in found])[place] for name in found[0]}

    def layout(self, found: dict[str, Found], state: State) -> dict[str, Found]:
        return super().layout(found, state | {"x0": self._center(state)})

    def result(self, config: dict[str, Any], state: State, seconds: float) -> Result:
        whole = state | {"x0": self._center(state), "eliminated": np.full(self.run.m, -1, np.int64)}
        return super().result(config, whole, seconds)


def _different(models: Array) -> tuple[list[int], list[int]]:
    """The first of each set of equal rows, and for each row its place among them."""
    places: dict[bytes, int] = {}
    first: list[int] = []
    place = []
    for row, model in enumerate(models):
        key = model.tobytes()
        if key not in places:
            places[key] = len(first)
            first.append(row)
        place.append(places[key])
    return first, place
