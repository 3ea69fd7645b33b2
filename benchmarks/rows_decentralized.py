"""Rows of the comparison for training on a graph: 30 nodes of degree 20, d = 7850, float32, six nodes Byzantine."""

from __future__ import annotations

from typing import Any

import numpy as np
from measure import Call, Row
from numpy.typing import NDArray
from rows_training import mnist

from byzadmm import _core, attacks, decentralized, graphs, partition, reference, steps
from byzadmm.decentralized.experiment import GraphExperiment, rounds
from byzadmm.decentralized.network import Nodes, links_of

__all__ = ["rows"]

Array = NDArray[Any]

GRAPH = graphs.ring(30, k=10)
D, STEP = 7850, steps.power(0.3)
ALGORITHMS: dict[str, Any] = {
    "DADMM": decentralized.DADMM(lam=0.001, beta=0.1, step=STEP),
    "DRSA": decentralized.DRSA(lam=0.001, step=STEP),
    "gossip": decentralized.DSGD(step=STEP),
    "trimmed neighbors": decentralized.DSGD(rule="trim-neighbors", f=3, step=STEP),
    "IOS, b = 3": decentralized.DSGD(rule="ios", f=3, step=STEP),
}


def started(algorithm: Any) -> tuple[GraphExperiment, Any, Any]:
    data = mnist()
    settings: dict[str, Any] = {"graph": GRAPH, "attack": attacks.SignFlip(), "n_byzantine": 6, "threads": 1}
    run = GraphExperiment(data, partition.iid(data.train_y, GRAPH.m, seed=0), algorithm=algorithm, **settings)
    return (run, *rounds(run))


def against_gradients(algorithm: Any) -> tuple[Call, Call]:
    """A round, and twice its gradients with one pass over the duals of all links where there are any."""
    run, state, advance = started(algorithm)
    nodes, e, k = Nodes(run), state.get("e"), [1, 1]

    def further() -> None:
        advance(state, k[0], 1)
        k[0] += 1

    def gradients() -> None:
        for _ in range(2):
            nodes.gradients(state["x"], k[1])
            k[1] += 1
        if e is not None:
            np.multiply(e, 1, out=e)

    return further, gradients


def duals() -> tuple[Call, Call]:
    """One pass over the duals of all links, and its NumPy twin."""
    rng, links = np.random.default_rng(0), links_of(GRAPH.edges, GRAPH.m)
    x = rng.standard_normal((GRAPH.m, D), np.float32)
    e, pull = np.zeros((len(links.senders), D), np.float32), np.zeros((GRAPH.m, D))
    heard = [[x[j] for j in GRAPH.neighbors(i)] for i in range(GRAPH.m)]
    rows = [list(e[links.offsets[i] : links.offsets[i + 1]].copy()) for i in range(GRAPH.m)]
    table = list(x)
    return (
        lambda: _core.edge_dual_steps(x, table, links.senders, links.offsets, None, e, pull, 0.1, 0.001, 1),
        lambda: reference.edge_dual_steps(x, heard, rows, beta=0.1, lam=0.001),
    )


def signs() -> tuple[Call, Call]:
    """The signs of all differences to neighbors, and their NumPy twin."""
    rng, links = np.random.default_rng(0), links_of(GRAPH.edges, GRAPH.m)
    x, pull = rng.standard_normal((GRAPH.m, D), np.float32), np.zeros((GRAPH.m, D))
    heard: list[list[Array | None]] = [[x[j] for j in GRAPH.neighbors(i)] for i in range(GRAPH.m)]
    table = list(x)
    return (
        lambda: _core.sign_pulls(x, table, links.senders, links.offsets, pull, 0.001, 1),
        lambda: reference.sign_pulls(x, heard, lam=0.001),
    )


def rows() -> list[Row]:
    area = "on a graph: 30 nodes of degree 20, d = 7850, float32"
    whole = [
        Row(area, f"a round of {name}", "2 gradients (+ duals)", lambda made=made: against_gradients(made))
        for name, made in ALGORITHMS.items()
    ]
    return [
        Row(area, "duals of all links", "NumPy", duals, at_least=5),
        Row(area, "signs of all links", "NumPy", signs, at_least=5),
        *whole,
    ]
