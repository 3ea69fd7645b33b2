"""Consensus without learning: rounds of a neighborhood rule on given values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from byzadmm import steps
from byzadmm._internal.arrays import Array, as_float
from byzadmm.attacks import Attack
from byzadmm.decentralized.dsgd import DSGD
from byzadmm.decentralized.mixing import Declared
from byzadmm.decentralized.simulation import simulate
from byzadmm.graphs import Flaky, Graph
from byzadmm.results import Result

__all__ = ["consensus"]


class _Nothing:
    """A loss without gradients: nothing to learn."""

    def __init__(self, m: int, d: int) -> None:
        self.n_workers, self.dim = m, d

    def gradient(self, x: Array, *, worker: int, k: int) -> Array:
        return np.zeros_like(x)

    def gradients(self, models: Array, *, workers: Sequence[int], k: int, out: Array) -> None:
        out[:] = 0


def consensus(
    values: Any,
    graph: Graph | Flaky,
    rule: Any = "gossip",
    rounds: int = 100,
    *,
    attack: Attack | Callable[..., Any] | None = None,
    n_byzantine: int = 0,
    byzantine: Sequence[int] | None = None,
    f: Declared = 0,
    seed: int = 0,
    threads: int = 0,
) -> Result:
    """Rounds of a neighborhood rule on given values, without learning.

    Parameters
    ----------
    values : (m,) or (m, d) array
        Where the nodes start; single precision if the array is.
    graph, attack, n_byzantine, byzantine, seed, threads
        As in :func:`byzadmm.decentralized.simulate`.
    rule, f
        As in :class:`byzadmm.decentralized.DSGD`.
    rounds : int

    Returns
    -------
    Result
        ``x`` (m, d) are the values after all rounds, ``trajectory["x"]`` (rounds + 1, m, d) those after each;
        "consensus_gap", "consensus_variance" and "consensus_error" are of the regular nodes.

    Examples
    --------
    >>> from byzadmm import attacks
    >>> from byzadmm.decentralized import WMSR, consensus
    >>> from byzadmm.graphs import complete
    >>> run = consensus([0.0, 1.0, 2.0, 3.0, 9.0], complete(5), WMSR(F=1), 50, attack=attacks.SameValue(1e6),
    ...                 n_byzantine=1)
    >>> run.x[:4].round(6).ravel().tolist()
    [2.0, 2.0, 2.0, 2.0]
    """
    start = as_float(values, "values")
    start = start[:, None] if start.ndim == 1 else start
    if start.ndim != 2 or not start.size:
        raise ValueError(f"values: expected shape (m,) or (m, d), got {np.shape(values)}")
    return simulate(
        None,
        None,
        graph=graph,
        algorithm=DSGD(rule=rule, f=f, step=steps.constant(1.0)),  # along gradients that are zero
        attack=attack,
        n_byzantine=n_byzantine,
        byzantine=byzantine,
        iterations=rounds,
        eval_every=1,
        rho=0.0,
        seed=seed,
        dtype=str(start.dtype),
        threads=threads,
        loss=_Nothing(*start.shape),
        x_init=start,
        record="trajectory",
    )
