"""Robust subgradient push: directed weights, and links that are cut when a neighbor's gradients stand out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array
from byzadmm._internal.lengths import lengths
from byzadmm._internal.validation import check_int, check_real
from byzadmm.algorithms.base import State
from byzadmm.decentralized.base import (
    DecentralizedAlgorithm,
    NodeSteps,
    check_step_count,
    checked_steps,
    steps_at,
)

if TYPE_CHECKING:
    from byzadmm.decentralized.experiment import GraphExperiment
    from byzadmm.decentralized.network import Mail, Nodes

__all__ = ["RSGP"]

_FAR = 1e150  # gradients of messages are clipped to it, so that no square overflows
_ROUNDINGS = 8  # so many roundings of a sum are no difference
_STRIKES = 2  # windows running after which a neighbor is cut


@dataclass(frozen=True)
class RSGP(DecentralizedAlgorithm):
    """Robust subgradient push: gossip with weights of the senders, and links that are cut for good.

    A round of node i, with ``n_j`` the open links of node j, ``y_i = 1`` and ``s_i`` its model at the start:

        w_i = sum_j s_j / (1 + n_j),   y_i = sum_j y_j / (1 + n_j),   x_i = w_i / y_i,
        s_i = w_i - a (g_i(x_i) + rho x_i)

    over itself and its neighbors; ``x_i`` is its model, ``s_i`` what it sends. Nodes also publish ``w_j``, so that
    ``d_j = (w_j - s_j) / a`` is the gradient that j claims to have used. The score of neighbor j at node i is the mean
    of ``||d_j - median||`` over a window of rounds, the median taken by coordinates over the neighbors of i. One whose
    score is above ``c`` times the median score in two windows running is cut: neither of the two hears the other again,
    and both divide by one link less.

    The threat is an attacker with a false objective: an attack forges ``s_j``, while ``w_j`` and ``y_j`` are true.
    Nodes that lie about ``w_j`` are not found. What a node sends before it is cut counts in full, whatever its size,
    and objectives have to be alike. A message that is not finite counts as a link that is not there in this round, for
    both ends, so that no mass is lost: the ``y_i`` always add up to m.

    **The score is a reconstruction**: the paper's own formula is not known here.

    Parameters
    ----------
    step : step size, or one for each node
    c : float >= 1
        How many times the median score is too much.
    window : int
        Rounds of a score.

    Examples
    --------
    Two of seven nodes have another objective than they should; every link to them is cut:

    >>> import numpy as np
    >>> from byzadmm import decentralized, graphs, losses, steps
    >>> class OtherObjective:
    ...     uses_x0 = True
    ...     def __call__(self, messages, *, byzantine, **more):
    ...         return messages[byzantine] + 5.0
    >>> push = decentralized.RSGP(step=steps.constant(0.1), window=5)
    >>> run = decentralized.simulate(None, None, loss=losses.Quadratic(np.ones(7), np.full((7, 3), 2.0), noise=0.1),
    ...     graph=graphs.complete(7), algorithm=push, rho=0.0, attack=OtherObjective(), n_byzantine=2, iterations=200)
    >>> bool(np.all(np.abs(run.x0 - 2.0) < 0.1))
    True

    References
    ----------
    Ravi, Scaglione, "Detection and isolation of adversaries in decentralized optimization for non-strongly convex
    objectives", IFAC Workshop on Distributed Estimation and Control in Networked Systems, 2019; Nedic, Olshevsky,
    "Distributed optimization over time-varying directed graphs", IEEE Transactions on Automatic Control 60, 2015
    (subgradient push).
    """

    together: ClassVar[str] = "its nodes use what their neighbors publish besides their messages"

    step: NodeSteps
    c: float = 3.0
    window: int = 5

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", checked_steps(self.step))
        check_real(self.c, "c", low=1.0)
        check_int(self.window, "window", low=1)

    def check_run(self, run: GraphExperiment) -> None:
        check_step_count(self.step, run.m)

    def begin(self, nodes: Nodes) -> State:
        x, count = nodes.models(), len(nodes.links.senders)
        return {
            "x": x,
            "sent": x.copy(),
            "w": x.copy(),
            "y": np.ones(nodes.m),
            "step": np.ones(nodes.m),  # of the last round; before the first, s_i = w_i
            "score": np.zeros(count),  # of this window, as a sum over the rounds in which there was a message
            "heard": np.zeros(count, np.int64),
            "rounding": np.zeros(nodes.m),
            "strikes": np.zeros(count, np.int64),
        }

    def iterate(self, nodes: Nodes, state: State, k: int) -> None:
        mail = nodes.exchange(state["sent"], k)
        heard = (mail.index >= 0) & ~_closed(nodes, state)
        _add_scores(nodes, state, mail, heard)
        if (k - nodes.run.first_k + 1) % self.window == 0:
            self._judge(nodes, state)
            heard &= ~_closed(nodes, state)
        links, own = _weights(nodes, heard)
        senders = nodes.links.senders
        w, y = np.empty_like(state["w"]), own * state["y"]
        y += np.bincount(nodes.links.receivers, links * state["y"][senders], nodes.m)
        for i in range(nodes.m):
            here = _to(nodes, i, links > 0)
            rows = [state["sent"][i], *(mail.table[row] for row in mail.index[here].tolist())]
            _core.weighted_sum(rows, w[i], np.append(own[i], links[here]), 1.0, nodes.threads)
        most = np.finfo(nodes.dtype).max
        np.clip(w, -most, most, out=w)
        with np.errstate(over="ignore"):
            x = np.clip(w / y[:, None], -most, most).astype(nodes.dtype)
        alpha = steps_at(self.step, nodes, k)
        sent = np.empty_like(w)
        _core.node_steps(w, x, nodes.gradients(x, k), None, alpha, nodes.rhos, sent, nodes.threads)
        lost = ~np.asarray(_core.acceptable(sent, 0.0))  # a step that is not finite is not made
        sent[lost] = w[lost]
        # Where the step is 0 there is no gradient: what is sent is compared itself.
        state |= {"x": x, "w": w, "y": y, "sent": sent, "step": np.where(alpha > 0, alpha, 1.0)}

    def _judge(self, nodes: Nodes, state: State) -> None:
        """At the end of a window: strikes for the neighbors whose scores are too high."""
        there = (state["heard"] > 0) & ~_closed(nodes, state)
        for i in range(nodes.m):
            here = _to(nodes, i, there)
            if len(here):
                score = state["score"][here] / state["heard"][here]
                high = score > self.c * np.median(score) + state["rounding"][i]
                state["strikes"][here] = np.where(high, state["strikes"][here] + 1, 0)
        for name in ("score", "heard", "rounding"):
            state[name][:] = 0


def _to(nodes: Nodes, i: int, chosen: Any) -> Array:
    """Those of the ``chosen`` links that lead to node i."""
    lo, hi = nodes.links.offsets[i : i + 2]
    return np.asarray(lo + np.flatnonzero(chosen[lo:hi]))


def _backwards(nodes: Nodes) -> Array:
    """For each link the one in the other direction."""
    if "backwards" not in nodes.kept:
        nodes.kept["backwards"] = np.lexsort((nodes.links.receivers, nodes.links.senders))
    return np.asarray(nodes.kept["backwards"])


def _closed(nodes: Nodes, state: State) -> Array:
    """Links that one of their ends has cut."""
    cut = state["strikes"] >= _STRIKES
    return np.asarray(cut | cut[_backwards(nodes)])


def _weights(nodes: Nodes, heard: Array) -> tuple[Array, Array]:
    """The column-stochastic weights of a round: of what came on each link, and of a node's own.

    A link counts if both its ends heard the other; the others have the weight 0.
    """
    links = nodes.links
    there = heard & heard[_backwards(nodes)]
    own = 1.0 / (1.0 + np.bincount(links.receivers[there], minlength=nodes.m))
    return np.where(there, own[links.senders], 0.0), own


def _add_scores(nodes: Nodes, state: State, mail: Mail, heard: Array) -> None:
    """Add to the scores how far the neighbors' gradients of the last round are from their median."""
    senders = nodes.links.senders
    gradients = _gradients(nodes, state, mail, heard)
    rounding = _ROUNDINGS * float(np.finfo(nodes.dtype).eps) * lengths(state["w"]) / state["step"]
    for i in range(nodes.m):
        here = _to(nodes, i, heard)
        if len(here) < 3:  # two are equally far from their median
            continue
        rows = gradients[mail.index[here]]
        center = np.empty(rows.shape[1])
        _core.median(rows, center, "mid", None, nodes.threads)
        state["score"][here] += lengths(rows, center)
        state["heard"][here] += 1
        state["rounding"][i] = max(state["rounding"][i], rounding[senders[here]].max())


def _gradients(nodes: Nodes, state: State, mail: Mail, heard: Array) -> Array:
    """For each message that is heard the gradient that its sender claims to have used."""
    found = np.zeros((len(mail.table), nodes.dim))
    senders = np.full(len(found), -1)
    senders[mail.index[heard]] = nodes.links.senders[heard]
    with np.errstate(over="ignore"):
        for row in np.flatnonzero(senders >= 0):
            j = senders[row]
            found[row] = (state["w"][j].astype(np.float64) - mail.table[row]) / state["step"][j]
    return np.clip(found, -_FAR, _FAR, out=found)
