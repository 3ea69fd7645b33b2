"""Rounds on a graph with the shapes of MNIST: 30 nodes of degree 20; and the duals of its links beside their twin."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzadmm import attacks, datasets, decentralized, graphs, partition, reference, steps
from byzadmm.decentralized import experiment
from byzadmm.decentralized.network import links_of

from .common import IMPLS, PROFILE, normal

STEP = steps.power(0.3)
GRAPH = graphs.ring(30, k=10)
ALGORITHMS: dict[str, Any] = {
    "dadmm": decentralized.DADMM(lam=0.001, beta=0.1, step=STEP),
    "drsa": decentralized.DRSA(lam=0.001, step=STEP),
    **{name: decentralized.DSGD(rule=name, f=3, step=STEP) for name in decentralized.RULES},
}


class Rounds:
    """Ten rounds, gradients included, six nodes Byzantine."""

    param_names = ("algorithm",)
    params = (list(ALGORITHMS),)

    def setup(self, algorithm: str) -> None:
        x, y = normal(PROFILE.samples, PROFILE.features), [n % 10 for n in range(PROFILE.samples)]
        data = datasets.from_arrays(x, y, x[:100], y[:100], name="random")
        parts = partition.iid(data.train_y, GRAPH.m, seed=0)
        settings: dict[str, Any] = {"graph": GRAPH, "attack": attacks.SignFlip(), "n_byzantine": 6}
        self.run = experiment.GraphExperiment(data, parts, algorithm=ALGORITHMS[algorithm], **settings)
        self.state, self.advance = experiment.rounds(self.run)

    def time_rounds(self, algorithm: str) -> None:
        self.advance(self.state, 1, 10)


class Duals:
    """One pass over the duals of all links."""

    param_names = ("impl",)
    params = (IMPLS,)

    def setup(self, impl: str) -> None:
        from byzadmm import _core

        d = 10 * (PROFILE.features + 1)
        x = normal(GRAPH.m, d)
        links = links_of(GRAPH.edges, GRAPH.m)
        e, pull = np.zeros((len(links.senders), d), np.float32), np.zeros((GRAPH.m, d))
        heard = [[x[j] for j in GRAPH.neighbors(i)] for i in range(GRAPH.m)]
        duals = [list(e[links.offsets[i] : links.offsets[i + 1]]) for i in range(GRAPH.m)]
        self.call: Any = lambda: reference.edge_dual_steps(x, heard, duals, beta=0.1, lam=0.001)
        if impl == "native":
            self.call = lambda: _core.edge_dual_steps(
                x, list(x), links.senders, links.offsets, None, e, pull, 0.1, 0.001, 0
            )

    def time_duals(self, impl: str) -> None:
        self.call()
