"""The graph of a study: from a name or an object, and what its runs may not have beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from byzadmm import catalogue
from byzadmm.algorithms import Algorithm
from byzadmm.decentralized import DecentralizedAlgorithm
from byzadmm.graphs import Flaky, Graph
from byzadmm.graphs.flaky import checked_graph
from byzadmm.training.experiment import DEFAULTS

__all__ = [
    "WITH_A_MASTER",
    "NeedsMaster",
    "check_beside",
    "check_on_graph",
    "choose_graph",
    "graph_words",
    "nodes_of",
]

#: Arguments of runs with a master -> their values where they say nothing.
WITH_A_MASTER: dict[str, Any] = {name: DEFAULTS[name] for name in ("local_steps", "participation")}
WITH_A_MASTER |= dict.fromkeys(("validation", "x0_init", "delays", "until", "arrivals", "eval_time"))


def choose_graph(given: Any, m: int, byzantine: Sequence[int], folder: Any = "") -> Graph | Flaky:
    """The graph of a study on ``m`` nodes.

    Parameters
    ----------
    given : name, Graph or Flaky
        As :func:`byzadmm.catalogue.make_graph` takes names; a random graph is drawn until the regular nodes are
        connected.
    m : int
    byzantine : list of int
    folder : path
        What a file is relative to.

    Examples
    --------
    >>> from byzadmm.study.network import choose_graph
    >>> choose_graph("ring:k=2", 10, [9])
    <Graph, 10 nodes, 20 edges>
    """
    if isinstance(given, str):
        regular = [node for node in range(m) if node not in byzantine]
        return catalogue.make_graph(given, m, connected=regular or None, folder=folder)
    graph = checked_graph(given)
    if graph.m != m:
        raise ValueError(f"graph: expected one node for each of {m} workers, got {graph.m}")
    return graph


def nodes_of(given: Any, n_workers: int | None) -> int | None:
    """The number of workers: that of a graph if it is none that a name stands for."""
    return n_workers if given is None or isinstance(given, str) or n_workers is not None else checked_graph(given).m


def graph_words(given: Any) -> str | None:
    """What a study says about its graph: the name as it was given, or the kind and size of an object."""
    return given.strip() if isinstance(given, str) else None if given is None else repr(given)


def check_beside(settings: Mapping[str, Any]) -> None:
    """Raise a ValueError for an argument that has no meaning on a graph."""
    for name, value in settings.items():
        if name in WITH_A_MASTER and value is not None and value != WITH_A_MASTER[name]:
            raise ValueError(f"{name}: not on a graph, where nodes work in rounds without a master; got {value!r}")


def check_on_graph(name: str, algorithm: Algorithm, graph: Graph | Flaky, byzantine: Sequence[int]) -> None:
    """Raise a ValueError unless an algorithm is one for graphs, and its settings are legal on this one.

    ``byzantine`` are the nodes that attack, or that an ideal algorithm cuts off.
    """
    if not isinstance(algorithm, DecentralizedAlgorithm):
        raise NeedsMaster(f"algorithm: {name} needs a master; on a graph there are {', '.join(catalogue.ON_GRAPHS)}")
    algorithm.check_graph(graph.cut_off(byzantine) if algorithm.ideal else graph, byzantine)


class NeedsMaster(ValueError):
    """An algorithm with a master on a graph."""
