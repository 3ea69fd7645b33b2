"""Decentralized training under attack: nodes on a graph, no master."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from byzadmm.attacks import Attack
from byzadmm.datasets import Dataset
from byzadmm.decentralized.base import DecentralizedAlgorithm
from byzadmm.decentralized.experiment import GraphExperiment, rounds
from byzadmm.graphs import Flaky, Graph
from byzadmm.results import Result
from byzadmm.training.run import OnEvaluation, Progress, train

__all__ = ["simulate"]


def simulate(
    dataset: Dataset | None,
    parts: Sequence[Any] | None,
    *,
    graph: Graph | Flaky,
    algorithm: DecentralizedAlgorithm,
    attack: Attack | Callable[..., Any] | None = None,
    n_byzantine: int = 0,
    byzantine: Sequence[int] | None = None,
    iterations: int = 1000,
    batch_size: int = 32,
    rho: float | Sequence[float] = 0.01,
    eval_every: int = 50,
    seed: int = 0,
    dtype: str = "float32",
    threads: int = 0,
    loss: str | Any = "softmax",
    x_init: Any = None,
    first_k: int = 1,
    record: str | None = None,
    optimum: Any = None,
    progress: bool | Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    on_evaluation: OnEvaluation | None = None,
) -> Result:
    """Train the nodes of a graph, some of them Byzantine, and return the curves of the regular ones.

    Every node has samples and a model of its own, and exchanges messages with its neighbors. The same seed gives the
    same bits for every thread count and interval of evaluation, resumed or not.

    Parameters
    ----------
    dataset, parts
        As in :func:`byzadmm.simulate`; node i has the samples ``parts[i]``.
    graph : Graph or Flaky
        Of ``byzadmm.graphs``. If its regular nodes are not connected without the Byzantine ones there is a
        RuntimeWarning: they cannot agree.
    algorithm : DecentralizedAlgorithm
    attack, n_byzantine, byzantine
        As in :func:`byzadmm.simulate`. An attack sees the honest messages of all nodes. It is called once per round,
        with the mean of the regular nodes' messages as ``x0``, and tells all neighbors the same; with
        ``per_receiver = True`` or ``uses_x0 = True`` once for each regular node that has Byzantine neighbors, with
        these as ``byzantine`` and the receiver's own message as ``x0``. Byzantine nodes keep an honest state: they
        tell each other the truth. A message that is not finite is left out of that round for its receiver.
    iterations, batch_size, eval_every, seed, dtype, threads, loss, first_k
        As in :func:`byzadmm.simulate`.
    rho : float >= 0, or one for each node
        ``rho/2 ||x_i||^2`` is part of every node's objective.
    x_init : (m, d) array, or number
        Where the nodes start; a number is the standard deviation of independent normal elements. By default what the
        loss says (``initial``), or zeros.
    record : None or "trajectory"
        Keep ``x``, and its mean ``x0``, at every evaluation.
    optimum : (d,) array
        Record the distance of ``x0`` to it.
    progress, checkpoint, on_evaluation
        As in :func:`byzadmm.simulate`.

    Returns
    -------
    Result
        ``x`` has the models of all nodes, ``x0`` is the mean of the regular ones. Of the ``metrics``, those of the loss
        ("accuracy", "loss") are means over the regular nodes' own models; "worst_accuracy" is the least of them;
        "consensus_gap" the mean distance of regular models to their mean, "consensus_variance" the mean squared one
        (Peng, Li, Ling), "consensus_error" the norm of the variances of the coordinates (Wu, Chen, Ling).

    Examples
    --------
    >>> from byzadmm import attacks, datasets, decentralized, graphs, partition, steps
    >>> data = datasets.load("digits")
    >>> parts = partition.iid(data.train_y, 10, seed=0)
    >>> run = decentralized.simulate(data, parts, graph=graphs.complete(10), iterations=300,
    ...                              algorithm=decentralized.DSGD(rule="ios", f=2, step=steps.power(1.0)),
    ...                              attack=attacks.SignFlip(), n_byzantine=2)
    >>> bool(run.metrics["worst_accuracy"][-1] > 0.85), run.x.shape
    (True, (10, 650))
    """
    run = GraphExperiment(
        dataset,
        parts,
        graph=graph,
        algorithm=algorithm,
        attack=attack,
        n_byzantine=n_byzantine,
        byzantine=byzantine,
        iterations=iterations,
        batch_size=batch_size,
        rho=rho,
        eval_every=eval_every,
        seed=seed,
        dtype=dtype,
        threads=threads,
        loss=loss,
        x_init=x_init,
        first_k=first_k,
        record=record,
        optimum=optimum,
    )
    return train(run, *rounds(run), progress=progress, checkpoint=checkpoint, on_evaluation=on_evaluation)
