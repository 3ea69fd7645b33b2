"""Decentralized ADMM: the three-variable form, the star that is the paper's ADMM, and fixed points known exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzadmm import ADMM, RSA, attacks, decentralized, graphs, losses, simulate, steps
from byzadmm import reference as ref
from byzadmm.decentralized import DADMM, DRSA
from support.arrays import same_bits
from support.graphs import GRAPH, On, after, experiment_on, links, parabolas
from support.runs import M, Q, quadratic


def test_it_is_the_three_variable_form() -> None:
    """Four nodes, five edges, stochastic gradients, 200 rounds: Proposition lem:simp edge by edge."""
    graph = graphs.Graph([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], 4)
    loss = losses.Quadratic(np.linspace(0.5, 2, 4), np.random.default_rng(0).normal(0, 3, (4, 6)), noise=0.5)
    lam, beta, rho = 0.3, 0.7, 0.02
    algorithm = DADMM(lam, beta, [lambda k, i=i: 1 / (3 + i + np.sqrt(k)) for i in range(4)])
    start = np.random.default_rng(1).normal(0, 1, (4, 6))
    run = experiment_on(graph, algorithm, loss=loss, dtype="float64", rho=rho, x_init=start)
    plain = ref.ThreeVariableDADMM(start, graph.edges, beta=beta, lam=lam)
    state, native = after(0, run), loss.native_form(np.dtype(np.float64), 0)
    clipped = 0
    for k in range(1, 201):
        g = np.empty((4, 6))
        native.gradients(plain.x, [0, 1, 2, 3], k, g, 1)
        plain.step(g, alpha=[step(k) for step in algorithm.step], rho=rho)  # type: ignore[union-attr]
        state = after(k, run) if k in (1, 2, 50, 200) else state
        if k in (1, 2, 50, 200):
            assert np.abs(state["x"] - plain.x).max() < 1e-12, k
            clipped = np.count_nonzero(np.abs(state["e"]) == lam)
    assert 0 < clipped < state["e"].size  # the bound is active on some edges, and not on all


def test_duals_of_regular_neighbors_are_opposite_and_bounded(dtype: str) -> None:
    for attack in (attacks.Gaussian(), attacks.NonFinite(), attacks.Dissensus(), attacks.DualOscillation()):
        for graph in (GRAPH, graphs.Flaky(GRAPH, 0.6)):
            settings: dict[str, Any] = {"loss": quadratic(noise=0.3), "attack": attack, "n_byzantine": Q}
            run = experiment_on(graph, DADMM(0.2, 0.5, steps.inv_sqrt(2, 1)), dtype=dtype, **settings)
            state, (_, receivers, senders, _) = after(30, run), links(run)
            place = {(i, j): row for row, (i, j) in enumerate(zip(receivers.tolist(), senders.tolist(), strict=True))}
            back = np.array([place[j, i] for i, j in place])
            regular = (receivers < M - Q) & (senders < M - Q)
            e, bound = state["e"], np.dtype(dtype).type(0.2)
            assert np.array_equal(e[regular], -e[back][regular]), (attack, graph)
            assert np.abs(e).max() <= bound, (attack, graph)
            assert np.count_nonzero(e[regular]) > 0


@pytest.mark.parametrize("attack", ["sign", "gauss", "small", "large", "dual", "zero", "none"])
def test_a_star_whose_hub_has_no_samples_is_the_paper(attack: str) -> None:
    """ADMM and RSA with a master, bit for bit in float64."""
    kinds: dict[str, Any] = {"sign": attacks.SignFlip(), "gauss": attacks.Gaussian(), "small": attacks.SmallValue()}
    kinds |= {"large": attacks.LargeValue(), "dual": attacks.DualOscillation(), "zero": attacks.Zero(), "none": None}
    star = graphs.Graph([(i, M) for i in range(M)], M + 1)  # the hub is the last node
    loss, byzantine = quadratic(noise=0.3), [4, 5, 6]
    hub, leaf = steps.inv_sqrt(6, 1), steps.inv_sqrt(2, 1)
    common: dict[str, Any] = {"dtype": "float64", "iterations": 60, "attack": kinds[attack], "byzantine": byzantine}
    both = [
        (ADMM(0.3, 0.8, hub, leaf), DADMM(0.3, 0.8, [leaf] * M + [hub])),
        (RSA(0.2, master_step=hub, worker_step=leaf), DRSA(0.2, [leaf] * M + [hub])),
    ]
    for with_master, without in both:
        if attack == "dual" and isinstance(with_master, RSA):
            continue
        one = simulate(None, None, loss=loss, algorithm=with_master, rho=0.05, **common)
        other = decentralized.simulate(
            None, None, loss=On(loss, M + 1), graph=star, algorithm=without, rho=[0.0] * M + [0.05], **common
        )
        assert one.x is not None
        assert other.x is not None
        assert same_bits(one.x0, other.x[M]), (attack, without)
        assert same_bits(one.x, other.x[:M]), (attack, without)


def settled(algorithm: Any, b: list[float], graph: graphs.Graph, **settings: Any) -> list[float]:
    run = decentralized.simulate(
        None, None, loss=parabolas(b), graph=graph, algorithm=algorithm, rho=0.0, dtype="float64", iterations=1500,
        **settings,
    )  # fmt: skip
    assert run.x is not None
    found: list[float] = run.x.ravel().tolist()
    return found


def test_fixed_points() -> None:
    """Two nodes; a ring of four with lambda_0 = 1; a neighbor that says 1e6; by ADMM and by subgradients."""
    ring, pair = graphs.ring(4), graphs.complete(2)
    assert ring.lambda_0([-2.0, 0.0, 2.0, 0.0]) == pytest.approx(1.0)
    cases: list[tuple[list[float], graphs.Graph, float, list[float], dict[str, Any]]] = [
        ([1, -1], pair, 0.5, [0.5, -0.5], {}),
        ([1, -1], pair, 1.5, [0, 0], {}),
        ([2, 0, -2, 0], ring, 0.9, [0.2, 0, -0.2, 0], {}),
        ([2, 0, -2, 0], ring, 1.1, [0, 0, 0, 0], {}),
        ([1, 0], pair, 0.5, [1.5], {"attack": attacks.SameValue(1e6), "n_byzantine": 1}),
    ]
    for b, graph, lam, expected, settings in cases:
        regular = len(expected)
        by_admm = settled(DADMM(lam, 1.0, steps.constant(0.2)), b, graph, **settings)[:regular]
        assert by_admm == pytest.approx(expected, abs=1e-9), (b, lam)
        by_signs = settled(DRSA(lam, steps.power(0.2, 0.7)), b, graph, **settings)[:regular]
        assert by_signs == pytest.approx(expected, abs=0.01), (b, lam)


def test_what_a_run_holds() -> None:
    """2 |edges| d numbers for duals, besides some for every node: never as many as pairs of nodes."""
    for graph in (graphs.ring(40, k=2), graphs.complete(7)):
        loss = losses.Quadratic(np.ones(graph.m), np.zeros((graph.m, 50)))
        state = after(2, experiment_on(graph, DADMM(0.2, 0.5, steps.constant(0.1)), loss=loss))
        assert state["e"].shape == (2 * len(graph.edges), 50)
        assert state["e"].dtype == np.float32
        others = sum(array.size for name, array in state.items() if name != "e")
        assert others <= 2 * graph.m * 50


def test_a_link_on_which_nothing_arrives_keeps_its_dual() -> None:
    quiet = experiment_on(graphs.Flaky(GRAPH, 0.0), DADMM(0.2, 0.5, steps.constant(0.1)), loss=quadratic())
    assert not after(5, quiet)["e"].any()
    run = experiment_on(
        GRAPH, DADMM(0.2, 0.5, steps.constant(0.1)), loss=quadratic(), attack=attacks.NonFinite(), n_byzantine=Q
    )
    state, (_, receivers, senders, _) = after(5, run), links(run)
    forged = (receivers < M - Q) & (senders >= M - Q)
    assert not state["e"][forged].any()
    assert state["e"][~forged].any()
    assert np.isfinite(state["x"]).all()


def test_kernels_are_their_twins(dtype: str) -> None:
    from byzadmm import _core

    rng = np.random.default_rng(3)
    d, lam, beta = 2 * 2048 + 5, 0.3, 0.9
    x, g, base = (rng.normal(0, 1, (M, d)).astype(dtype) for _ in range(3))
    alpha, rho, pull = rng.random(M), rng.random(M), rng.normal(0, 1, (M, d))
    offset = np.array([0, 3, 3, 5, 6, 8, 9, 11])
    index = rng.integers(-1, 6, 11)
    table = [rng.normal(0, 1, d).astype(dtype) for _ in range(6)]
    table[0][:100] = x[0, :100]
    e = np.clip(rng.normal(0, 0.3, (11, d)), -lam, lam).astype(dtype)
    heard = [[None if row < 0 else table[row] for row in index[offset[i] : offset[i + 1]]] for i in range(M)]
    duals = [list(e[offset[i] : offset[i + 1]]) for i in range(M)]
    tol = 1e-6 if dtype == "float32" else 1e-14
    new, pulled = ref.edge_dual_steps(x, heard, duals, beta=beta, lam=lam)
    signs = ref.sign_pulls(x, heard, lam=lam)
    for threads in (1, 2, 3, 7):
        out, made, sums = np.empty_like(x), e.copy(), np.empty((M, d))
        _core.node_steps(base, x, g, pull, alpha, rho, out, threads)
        assert same_bits(out, ref.node_steps(base, x, g, pull, alpha=alpha, rho=rho))
        _core.edge_dual_steps(x, table, index, offset, None, made, sums, beta, lam, threads)
        assert np.abs(made - np.concatenate([np.stack(rows) for rows in new if rows])).max() < tol
        assert np.abs(sums - pulled).max() < 20 * tol
        assert np.abs(made).max() <= np.dtype(dtype).type(lam)
        _core.sign_pulls(x, table, index, offset, sums, lam, threads)
        assert np.abs(sums - signs).max() < 1e-15
    for wrong, message in ((index + 6, "index: expected rows of the table"), (index[:-1], "offset: expected 0 to")):
        with pytest.raises(ValueError, match=message):
            _core.sign_pulls(x, table, wrong, offset, sums, lam, 1)
