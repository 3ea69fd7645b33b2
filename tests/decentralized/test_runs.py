"""Runs on a graph: the same bits along every path, who hears what, and the curves of the regular nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import ADMM, Result, attacks, decentralized, graphs, losses, simulate, steps
from byzadmm.decentralized import DADMM, DRSA, DSGD, UBAR, ByRDiE, TrimNeighbors, consensus
from byzadmm.decentralized.network import Network
from support.arrays import same_bits
from support.graphs import DECENTRALIZED, GRAPH, after, experiment_on, parabolas
from support.runs import M, Q, data_for, equal_runs, quadratic, small_data, small_parts

Array = Any
STEP = steps.inv_sqrt(2, 1)
ATTACKS = {
    "none": None,
    "sign_flip": attacks.SignFlip(),
    "large": attacks.LargeValue(),
    "dissensus": attacks.Dissensus(),
    "mimic": attacks.Mimic(warmup=3),
    "non_finite": attacks.NonFinite(),
    "dual": attacks.DualOscillation(),
    "labels": attacks.LabelFlip(),
}


@pytest.mark.parametrize("name", DECENTRALIZED)
def test_the_same_bits_for_threads_evaluations_and_resumed_runs(name: str, tmp_path: Path) -> None:
    data, parts = small_data(), small_parts()
    for attack, kind in ATTACKS.items():
        for graph in (GRAPH, graphs.Flaky(GRAPH, 0.7)) if attack in ("none", "dissensus") else (GRAPH,):
            settings: dict[str, Any] = {"graph": graph, "algorithm": DECENTRALIZED[name], "attack": kind, "seed": 3}
            settings |= {"n_byzantine": Q - 1, "iterations": 9, "batch_size": 4}
            base = decentralized.simulate(data, parts, threads=1, **settings)
            case = (attack, graph)
            assert base.x is not None
            assert base.x.shape == (M, 18), case
            assert np.isfinite(base.x[: M - Q + 1]).all(), case
            assert not same_bits(base.x, np.zeros_like(base.x)), case
            json.dumps(base.config)
            other = decentralized.simulate(data, parts, threads=2, eval_every=4, **settings)
            kept = tmp_path / f"{attack}{graph is GRAPH}.npz"
            decentralized.simulate(data, parts, checkpoint=kept, eval_every=2, **(settings | {"iterations": 4}))
            resumed = decentralized.simulate(data, parts, checkpoint=kept, eval_every=2, **settings)
            assert equal_runs(base, other), case
            assert equal_runs(base, resumed), case
    other_graph = settings | {"graph": graphs.complete(M)}
    with pytest.raises(ValueError, match="another run"):
        decentralized.simulate(data, parts, checkpoint=kept, eval_every=2, **other_graph)


@pytest.mark.parametrize("name", ["dadmm", "drsa", "ios", "trimneighbors", "median"])
def test_every_attack_runs_on_a_graph(name: str) -> None:
    for attack, kind in attacks.REGISTRY.items():
        settings: dict[str, Any] = {"graph": graphs.complete(M), "algorithm": DECENTRALIZED[name], "attack": kind()}
        run = decentralized.simulate(small_data(), small_parts(), n_byzantine=2, iterations=4, batch_size=4, **settings)
        assert np.isfinite(run.x0).all(), attack
        assert run.eliminated == {}


def test_bridge_is_byrdie_with_one_block() -> None:
    data, parts = small_data(), small_parts()
    for own in ("kept", "trimmed"):
        runs = [
            decentralized.simulate(
                data, parts, graph=GRAPH, algorithm=algorithm, attack=attacks.Gaussian(), n_byzantine=2, iterations=20
            )
            for algorithm in (
                DSGD(rule=TrimNeighbors(2, own), order="combine-first", step=STEP),
                ByRDiE(b=2, blocks=1, inner=1, step=STEP, own=own),
            )
        ]
        assert runs[0].x is not None
        assert same_bits(runs[0].x, runs[1].x), own


def test_byrdie_touches_one_block_at_a_time() -> None:
    """By hand: two blocks, the second with the slope at what the first has become."""
    loss = losses.Quadratic(np.ones((4, 3)), np.arange(12.0).reshape(4, 3))
    run = experiment_on(graphs.complete(4), ByRDiE(b=1, blocks=[[2], [0]], step=STEP), loss=loss, rho=0.5)
    state = after(1, run)
    x, alpha = np.zeros((4, 3)), STEP(1)
    for block in ([2], [0]):
        trimmed = np.stack([(x[i] + np.sort(np.delete(x, i, 0), 0)[1]) / 2 for i in range(4)])
        x[:, block] = (trimmed - alpha * (x - loss.b + 0.5 * x))[:, block]
    assert state["x"] == pytest.approx(x, rel=1e-6)
    assert not state["x"][:, 1].any()
    for wrong, message in (([[0], [0]], "different coordinates"), ([[3]], r"in \[0, 3\)"), (4, "at most one for each")):
        with pytest.raises(ValueError, match=f"blocks: expected {message}|{message}"):
            experiment_on(graphs.complete(4), ByRDiE(b=1, blocks=wrong, step=STEP), loss=loss)


def test_ubar_follows_near_neighbors_that_do_well() -> None:
    """Identical models: a plain local step. Attackers far away are never among the nearest."""
    data, parts = small_data(), small_parts()
    run = experiment_on(GRAPH, UBAR(rho=0.5, step=STEP), dataset=data, parts=parts, rho=0.0, dtype="float64")
    state, nodes = after(1, run), Network(run)
    assert state["x"] == pytest.approx(-STEP(1) * nodes.gradients(np.zeros((M, 18)), 1))
    common: dict[str, Any] = {"graph": graphs.complete(M), "algorithm": UBAR(rho=0.5, step=STEP), "iterations": 40}
    runs = [
        decentralized.simulate(data, parts, byzantine=[5, 6], attack=attack, **common)
        for attack in (attacks.SameValue(1e3), attacks.SameValue(-1e30))
    ]
    assert runs[0].x is not None
    assert runs[1].x is not None
    assert same_bits(runs[0].x[:5], runs[1].x[:5])
    with pytest.raises(ValueError, match="loss: UBAR with these settings needs one with batch_losses"):
        decentralized.simulate(None, None, loss=quadratic(), **common)


class Told:
    """Says to each receiver its number, and keeps what it was shown."""

    per_receiver = True
    asks_weights = True
    view = "neighbors"

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def __call__(self, messages: Array, *, x0: Array, k: int, byzantine: Any, receiver: int, **more: Any) -> Array:
        self.calls.append((receiver, list(byzantine), np.isnan(messages[:, 0]).tolist(), float(x0[0]), more["weights"]))
        return np.full((len(byzantine), messages.shape[1]), 1000.0 * receiver)


def test_who_is_told_what() -> None:
    """A path 0 - 1 - 2 - 3 and an attacker 4 at 1 and 3."""
    graph = graphs.Graph([(0, 1), (1, 2), (2, 3), (1, 4), (3, 4)], 5)
    told = Told()
    run = experiment_on(
        graph, DSGD(step=STEP), loss=parabolas([0.0] * 5), attack=told, byzantine=[4], x_init=np.arange(5.0)[:, None]
    )
    nodes = Network(run)
    mail = nodes.exchange(np.arange(5.0, dtype=np.float32)[:, None], 1)
    heard = [[(int(j), float(row[0])) for j, row in zip(mail.senders(i), mail.rows(i), strict=True)] for i in range(5)]
    assert heard == [
        [(1, 1)], [(0, 0), (2, 2), (4, 1000)], [(1, 1), (3, 3)], [(2, 2), (4, 3000)], [(1, 1), (3, 3)],
    ]  # fmt: skip
    assert [call[:4] for call in told.calls] == [
        (1, [4], [False, False, False, True, False], 1.0),
        (3, [4], [True, True, False, False, False], 3.0),
    ]
    weights = graph.metropolis()
    assert [call[4].tolist() for call in told.calls] == [weights[1].tolist(), weights[3].tolist()]
    for i in range(5):
        shares, own = mail.weights(i)
        assert shares.tolist() == weights[i][mail.senders(i)].tolist()
        assert own == pytest.approx(weights[i, i])
    # A message that is not finite is left out, and its weight is the receiver's own.
    messages = np.arange(5.0)[:, None]
    messages[2] = np.inf
    mail = nodes.exchange(messages, 2)
    assert [mail.senders(i).tolist() for i in range(5)] == [[1], [0, 4], [1, 3], [4], [1, 3]]
    assert (mail.left_out.tolist(), mail.finite.tolist()) == ([0, 1, 0, 1, 0], [True, True, False, True, True])
    assert mail.weights(1)[1] == pytest.approx(weights[1, 1] + weights[1, 2])
    # No edge is there: nobody hears anything.
    quiet = experiment_on(graphs.Flaky(graph, 0.0), DSGD(step=STEP), loss=parabolas([0.0] * 5))
    assert [Network(quiet).exchange(messages, 1).rows(i) for i in range(5)] == [[]] * 5


def test_dissensus_and_isolation() -> None:
    """Isolation makes every weighted mean the receiver's own message; dissensus goes beyond."""
    x = np.random.default_rng(0).normal(0, 1, (M, 4))
    weights = GRAPH.metropolis()
    for attack, beyond in ((attacks.Isolation(), 0.0), (attacks.Dissensus(eps=3.0), 2.0)):
        run = experiment_on(GRAPH, DSGD(step=STEP), loss=quadratic(dim=4), attack=attack, n_byzantine=2, x_init=x)
        mail = Network(run).exchange(x, 1)
        for i in range(M - 2):
            shares, own = mail.weights(i)
            mean = own * x[i] + shares @ np.stack(mail.rows(i))
            pull = weights[i, : M - 2] @ (x[: M - 2] - x[i])
            assert mean == pytest.approx(x[i] - beyond * pull), attack
    # With a master, it is the receiver, and all weights are equal.
    assert attacks.Isolation()(x, x0=np.ones(4), byzantine=[6])[0] == pytest.approx(1 - (x[:6] - 1).sum(axis=0))
    with pytest.raises(TypeError, match="receiver: SignFlip tells all the same"):
        attacks.SignFlip()(x, receiver=0)
    with pytest.raises(ValueError, match="weights: expected one for each of 7 rows"):
        attacks.Isolation()(x, byzantine=[6], weights=[1.0])


def test_byzantine_nodes_keep_an_honest_state() -> None:
    """Byzantine nodes that hear each other and unharmed ones alone are as they would be without an attack."""
    graph = graphs.Graph([(0, 1), (1, 2), (2, 3)], 4)
    for algorithm in (DSGD(step=STEP), DADMM(0.2, 0.5, STEP), DRSA(0.2, STEP)):
        common: dict[str, Any] = {"loss": quadratic(4), "graph": graph, "algorithm": algorithm, "iterations": 1}
        honest = decentralized.simulate(None, None, **common)
        attacked = decentralized.simulate(None, None, attack=attacks.SignFlip(), byzantine=[1, 2, 3], **common)
        assert honest.x is not None
        assert attacked.x is not None
        assert same_bits(honest.x[1:], attacked.x[1:])


def test_curves_are_of_the_regular_nodes() -> None:
    data, parts = small_data(), small_parts()
    common: dict[str, Any] = {"graph": GRAPH, "algorithm": DECENTRALIZED["dadmm"], "attack": attacks.Gaussian()}
    common |= {"n_byzantine": 2, "iterations": 20, "eval_every": 10, "record": "trajectory"}
    run = decentralized.simulate(data, parts, **common)
    assert run.x is not None
    assert run.trajectory is not None
    loss, regular = losses.Softmax(data, parts), run.x[: M - 2].astype(np.float64)
    each = [loss.evaluate(x) for x in run.x[: M - 2]]
    spread = regular - regular.mean(axis=0)
    last = {name: values[-1] for name, values in run.metrics.items()}
    assert last["accuracy"] == pytest.approx(np.mean([one["accuracy"] for one in each]))
    assert last["worst_accuracy"] == min(one["accuracy"] for one in each)
    assert last["loss"] == pytest.approx(np.mean([one["loss"] for one in each]))
    assert last["consensus_gap"] == pytest.approx(np.mean(np.linalg.norm(spread, axis=1)), rel=1e-6)
    assert last["consensus_variance"] == pytest.approx(np.mean(np.sum(spread**2, axis=1)))
    assert last["consensus_error"] == pytest.approx(np.linalg.norm(np.var(regular, axis=0)))
    assert run.x0 == pytest.approx(regular.mean(axis=0), rel=1e-6)
    assert run.trajectory["x"].shape == (3, M, 18)
    assert same_bits(run.trajectory["x0"][-1], run.x0)
    assert run.metrics["worst_accuracy"][0] == run.accuracy[0]


def test_a_saved_result_comes_back(tmp_path: Path) -> None:
    run = consensus(np.arange(7.0), GRAPH, "ios", 5, f=1)
    run.save(tmp_path / "run.npz")
    again = Result.load(tmp_path / "run.npz")
    assert run.x is not None
    assert again.x is not None
    assert same_bits(again.x, run.x)
    assert again.metrics["consensus_error"].tolist() == run.metrics["consensus_error"].tolist()


def test_consensus() -> None:
    values = np.random.default_rng(4).normal(0, 1, (8, 3))
    mixed = consensus(values, graphs.ring(8), rounds=200)
    assert mixed.x == pytest.approx(np.repeat(values.mean(axis=0)[None], 8, axis=0))
    weights = graphs.ring(8).metropolis()
    assert mixed.trajectory is not None
    assert mixed.trajectory["x"][2] == pytest.approx(weights @ weights @ values)
    # W-MSR on a (2F+1)-robust graph: agreement in the hull of the regular values, whatever one neighbor says.
    for attack in (attacks.Gaussian(1e6), attacks.Dissensus(100.0), attacks.NonFinite()):
        run = consensus(values, graphs.complete(8), decentralized.WMSR(F=1), 60, attack=attack, n_byzantine=1)
        assert run.x is not None
        regular = run.x[:7]
        assert np.ptp(regular, axis=0).max() < 1e-9
        assert np.all(regular >= values[:7].min(axis=0))
        assert np.all(regular <= values[:7].max(axis=0))


def test_what_is_no_run() -> None:
    loss, ring = quadratic(), graphs.ring(M)

    def run(**changes: Any) -> Any:
        settings = {"loss": loss, "graph": ring, "algorithm": DSGD(step=STEP), "iterations": 1} | changes
        return decentralized.simulate(None, None, **settings)

    for changes, error, message in (
        ({"graph": ring.adjacency}, TypeError, r"graph: expected one of byzadmm\.graphs, got ndarray"),
        ({"graph": graphs.ring(6)}, ValueError, "graph: expected one node for each of 7 workers, got 6"),
        ({"rho": [0.1]}, ValueError, "rho: expected a number, or one for each of 7 nodes"),
        ({"rho": [0.1] * 6 + [-1.0]}, ValueError, "rho: expected a finite number >= 0.0"),
        ({"algorithm": ADMM()}, ValueError, "ADMM has a master: byzadmm.simulate runs it"),
        ({"x_init": np.zeros((2, 2))}, ValueError, "x_init"),
    ):
        with pytest.raises(error, match=message):
            run(**changes)
    with pytest.raises(ValueError, match=r"DSGD is decentralized: byzadmm\.decentralized\.simulate runs it"):
        simulate(None, None, loss=loss, algorithm=DSGD(step=STEP))
    with pytest.warns(RuntimeWarning, match="graph: the regular nodes are not connected without the Byzantine ones"):
        run(byzantine=[0, 3], attack=attacks.Zero())
    with pytest.warns(RuntimeWarning, match="not connected"):  # everybody alone: a baseline
        run(graph=graphs.Graph([], M))


@pytest.mark.parametrize("loss", ["logistic", "least-squares"])
def test_other_losses(loss: str) -> None:
    run = decentralized.simulate(
        data_for(loss), small_parts(), graph=GRAPH, algorithm=DADMM(0.05, 0.3, STEP), loss=loss, iterations=50
    )
    assert run.loss[-1] < run.loss[0]
