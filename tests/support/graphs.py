"""Small decentralized runs: every algorithm, and the state behind them."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzadmm import algorithms, decentralized, graphs, losses, steps
from byzadmm.decentralized import DADMM, DRSA, DSGD, RSGP, UBAR, ByRDiE
from byzadmm.decentralized.experiment import GraphExperiment, rounds
from byzadmm.decentralized.network import Network
from support.runs import Array, M, Q

__all__ = ["DECENTRALIZED", "GRAPH", "On", "after", "experiment_on", "parabolas"]

_STEP = steps.inv_sqrt(2, 1)

#: Seven nodes: complete but for two edges between regular nodes.
GRAPH = graphs.Graph([(i, j) for i in range(M) for j in range(i) if (j, i) not in ((0, 1), (2, 3))], M)

#: Every decentralized algorithm, and DSGD with every neighborhood rule.
DECENTRALIZED: dict[str, decentralized.DecentralizedAlgorithm] = {
    **{name: DSGD(rule=name, f=Q - 1, step=_STEP) for name in decentralized.RULES},
    "median": DSGD(rule="median", order="combine-first", step=_STEP),
    "bucketing": DSGD(rule="bucketing+median", step=[_STEP] * M, momentum=0.9),
    "clipping": DSGD(rule=decentralized.SelfCenteredClipping(tau=0.5), f="exact", step=_STEP, momentum=0.5),
    "byrdie": ByRDiE(b=Q - 1, blocks=3, inner=2, step=_STEP),
    "drsa": DRSA(lam=0.05, step=_STEP),
    "dadmm": DADMM(lam=0.05, beta=0.3, step=_STEP),
    "ubar": UBAR(rho=0.5, step=_STEP),
    "rsgp": RSGP(step=_STEP, window=2),
}


def experiment_on(graph: Any, algorithm: Any, **settings: Any) -> GraphExperiment:
    """The checked experiment behind ``decentralized.simulate(**settings)``."""
    parts = settings.pop("parts", None)
    return GraphExperiment(settings.pop("dataset", None), parts, graph=graph, algorithm=algorithm, **settings)


def after(count: int, run: GraphExperiment) -> algorithms.State:
    """The state of a run after so many rounds."""
    state, advance = rounds(run)
    advance(state, run.first_k, count)
    return state


def parabolas(b: Any) -> losses.Quadratic:
    """``F_i = (x - b_i)^2/2``"""
    return losses.Quadratic(np.ones(len(b)), b)


class On:
    """A loss for some of the nodes; the others have no samples."""

    def __init__(self, loss: Any, m: int) -> None:
        self.loss, self.n_workers, self.dim = loss, m, loss.dim

    def gradient(self, x: Array, *, worker: int, k: int) -> Array:
        if worker >= self.loss.n_workers:
            return np.zeros_like(x)
        out = np.empty((1, self.dim), x.dtype)
        self.loss.native_form(x.dtype, 0).gradients(x[None], [worker], k, out, 1)
        return out[0]


def links(run: GraphExperiment) -> Any:
    return Network(run).links
