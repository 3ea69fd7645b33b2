"""Robust subgradient push: its equations in plain NumPy, what is conserved, who is cut, and hostile numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzadmm import attacks, decentralized, graphs, losses, steps
from byzadmm.decentralized import RSGP
from support.arrays import same_bits
from support.graphs import GRAPH, after, experiment_on, links
from support.runs import M, quadratic

Array = Any
STEP = steps.inv_sqrt(2, 1)


def plain(graph: graphs.Graph, x: Array, gradient: Any, forge: Any, rounds: int, c: float, window: int) -> Any:
    """Sums, weights and cut pairs after so many rounds, node by node; ``forge(j, s_j)`` is what node j sends."""
    m = graph.m
    s, w, y, step = x.copy(), x.copy(), np.ones(m), 1.0
    cut, strikes, score = set(), np.zeros((m, m), int), np.zeros((m, m))
    for k in range(1, rounds + 1):
        near = [[j for j in graph.neighbors(i) if not {(i, j), (j, i)} & cut] for i in range(m)]
        said = {(i, j): forge(i, j, s[j]) for i in range(m) for j in near[i]}
        for i in range(m):
            claimed = np.array([(w[j] - said[i, j]) / step for j in near[i]])
            if len(claimed) > 2:
                score[i, near[i]] += np.linalg.norm(claimed - np.median(claimed, axis=0), axis=1)
        if k % window == 0:
            for i in range(m):
                for j in near[i]:
                    strikes[i, j] = strikes[i, j] + 1 if score[i, j] > c * np.median(score[i, near[i]]) else 0
            cut |= {(i, j) for i, j in zip(*np.nonzero(strikes > 1), strict=True)}
            near = [[j for j in near[i] if not {(i, j), (j, i)} & cut] for i in range(m)]
            score[:] = 0
        share = np.array([1 / (1 + len(others)) for others in near])
        w = np.array([share[i] * s[i] + sum(share[j] * said[i, j] for j in near[i]) for i in range(m)])
        y = np.array([share[i] * y[i] + sum(share[j] * y[j] for j in near[i]) for i in range(m)])
        step = STEP(k)
        s = w - step * gradient(w / y[:, None], k)
    return s, y, cut


def test_it_is_its_equations() -> None:
    """An irregular graph, noisy gradients, and two nodes that report the gradients of another objective."""
    graph = graphs.Graph([(i, j) for i in range(9) for j in range(i) if (i + 2 * j) % 5], 9)
    loss = losses.Quadratic(np.ones((9, 4)), np.full((9, 4), 2.0), noise=0.3)
    start, byzantine = np.random.default_rng(0).normal(0, 1, (9, 4)), (7, 8)
    push = RSGP(STEP, c=2.0, window=3)
    run = experiment_on(
        graph, push, loss=loss, dtype="float64", rho=0.1, x_init=start, byzantine=byzantine, attack=Shift(5.0)
    )
    native = loss.native_form(np.dtype(np.float64), 0)

    def gradient(x: Array, k: int) -> Array:
        g = np.empty_like(x)
        native.gradients(x, list(range(9)), k, g, 1)
        return g + 0.1 * x

    def forge(receiver: int, sender: int, message: Array) -> Array:
        return message + 5.0 if sender in byzantine and receiver not in byzantine else message

    for rounds in (1, 2, 5, 6, 20):
        state = after(rounds, run)
        s, y, cut = plain(graph, start, gradient, forge, rounds, 2.0, 3)
        assert state["sent"] == pytest.approx(s, rel=1e-12, abs=1e-12), rounds
        assert state["y"] == pytest.approx(y, rel=1e-12), rounds
        to, by = (links(run).receivers[state["strikes"] > 1], links(run).senders[state["strikes"] > 1])
        assert set(zip(to.tolist(), by.tolist(), strict=True)) == cut, rounds
    found = {(i, j) for i, j in cut if i not in byzantine}
    assert found == {(i, j) for j in byzantine for i in graph.neighbors(j) if i not in byzantine}


class Shift:
    """The honest messages, shifted by a number."""

    def __init__(self, by: float) -> None:
        self.by = by

    def __call__(self, messages: Array, *, byzantine: Any, **_: Any) -> Array:
        return messages[byzantine] + self.by


def test_without_attackers_mass_moves_by_gradients_alone() -> None:
    loss = losses.Quadratic(np.ones((M, 4)), np.random.default_rng(1).normal(0, 1, (M, 4)), noise=0.2)
    for graph in (graphs.star(M), graphs.octopus(4).without([7]), graphs.Flaky(GRAPH, 0.6)):
        run = experiment_on(graph, RSGP(STEP, c=5.0), loss=loss, dtype="float64", rho=0.3)
        native = loss.native_form(np.dtype(np.float64), 0)
        for k in (1, 2, 30):
            before, state = after(k - 1, run), after(k, run)
            g = np.empty_like(state["x"])
            native.gradients(state["x"], list(range(M)), k, g, 1)
            moved = STEP(k) * (g + 0.3 * state["x"]).sum(axis=0)
            assert state["sent"].sum(axis=0) == pytest.approx(before["sent"].sum(axis=0) - moved, rel=1e-12), graph
            assert state["y"].sum() == pytest.approx(M, rel=1e-13), graph
            assert not state["strikes"].any(), graph
        assert np.ptp(state["y"]) > 0.1, graph  # columns sum to one, rows do not
    # Equal objectives without noise: only rounding tells the nodes apart, and nobody is cut for that.
    same = losses.Quadratic(np.ones((M, 4)), np.full((M, 4), 0.3))
    for dtype in ("float32", "float64"):
        run = experiment_on(graphs.star(M), RSGP(STEP, window=1), loss=same, dtype=dtype)
        assert not after(100, run)["strikes"].any(), dtype


def test_a_message_that_is_not_finite_is_an_edge_that_is_not_there() -> None:
    """For both ends: the regular nodes are as they would be without their Byzantine neighbors, bit for bit."""
    loss = losses.Quadratic(np.ones((M, 4)), np.full((M, 4), 1.0), noise=0.2)
    kept = graphs.Graph(GRAPH.edges[GRAPH.edges.max(axis=1) < M - 2], M)
    for attack in (attacks.NonFinite(), attacks.Infinite()):
        attacked = experiment_on(GRAPH, RSGP(STEP), loss=loss, attack=attack, n_byzantine=2)
        with pytest.warns(RuntimeWarning, match="not connected"):  # the attackers are alone there
            alone = experiment_on(kept, RSGP(STEP), loss=loss)
        state = after(25, attacked)
        assert same_bits(state["x"][: M - 2], after(25, alone)["x"][: M - 2])
        assert state["y"].sum() == pytest.approx(M)


def test_any_finite_messages() -> None:
    """Whatever is sent, nothing but finite numbers follows; what was sent before the cut counts in full."""
    for dtype, sizes in (("float32", (1e-44, 1e20, 3.3e38)), ("float64", (1e-300, 1e160, 1.7e308))):
        for size in sizes:
            for attack in (attacks.SameValue(size), attacks.SignFlip(-size), attacks.Dissensus(min(size, 1e300))):
                run = experiment_on(GRAPH, RSGP(STEP), loss=quadratic(), attack=attack, n_byzantine=2, dtype=dtype)
                state = after(15, run)
                case = (dtype, size, attack)
                assert np.isfinite(state["x"]).all(), case
                assert np.isfinite(state["sent"]).all(), case
                assert state["y"].sum() == pytest.approx(M), case
    small = decentralized.simulate(
        None, None, loss=quadratic(), graph=GRAPH, algorithm=RSGP(STEP, window=1), attack=Shift(3.0), n_byzantine=2
    )
    honest = decentralized.simulate(None, None, loss=quadratic(), graph=GRAPH, algorithm=RSGP(STEP), byzantine=[5, 6])
    assert small.x0 == pytest.approx(honest.x0, abs=0.5)


def test_settings() -> None:
    for wrong, message in (
        ({"c": 0.5}, "c: expected a finite number >= 1"),
        ({"window": 0}, "window: expected an integer >= 1"),
        ({"step": [STEP]}, r"step: expected one step size, or one for each of 7 nodes, got 1"),
    ):
        with pytest.raises(ValueError, match=message):
            experiment_on(GRAPH, RSGP(**({"step": STEP} | wrong)), loss=quadratic())
