"""Settings that follow from a graph: steps by degrees, shared links, the ideal reference, where nodes start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzadmm import ADMM, RSA, attacks, datasets, decentralized, graphs, steps
from byzadmm.decentralized import DADMM, DRSA, DSGD, UBAR, ByRDiE, degree_steps
from support.arrays import same_bits
from support.graphs import GRAPH, after, experiment_on
from support.runs import M, quadratic, small_data, small_parts

STEP = steps.inv_sqrt(2, 1)


def test_settings_for_a_data_set_share_out_what_the_links_of_a_master_have() -> None:
    digits, path = datasets.load("digits"), graphs.Graph([(0, 1), (1, 2), (2, 3)], 4)
    admm, rsa = ADMM.for_dataset(digits), RSA.for_dataset(digits)
    made = DADMM.for_dataset(digits, path)
    assert (made.lam, made.beta) == (float(f"{admm.lam * 4 / 3:.3g}"), float(f"{admm.beta * 4 / 3:.3g}"))
    assert made.step == tuple(steps.inv_sqrt(c0, 0.3) for c0 in (0.667, 1.334, 1.334, 0.667))
    # beta and slope move the steps; a step of its own stays.
    assert DADMM.for_dataset(digits, graphs.ring(5), beta=2.0, slope=0.1).step == steps.inv_sqrt(4.0, 0.1)
    assert DADMM.for_dataset(digits, path, step=STEP, beta=2.0) == DADMM(lam=made.lam, beta=2.0, step=STEP)
    with pytest.raises(TypeError, match="slope: expected step or slope, got both"):
        DADMM.for_dataset(digits, path, step=STEP, slope=0.1)
    # On a star with many leaves, as good as what the workers and the master have.
    star = DADMM.for_dataset(digits, graphs.star(2001))
    assert (star.lam, star.beta) == (admm.lam, admm.beta)
    assert isinstance(star.step, tuple)
    assert star.step[1] == admm.worker_step
    made_drsa = DRSA.for_dataset(digits, path)
    assert (made_drsa.lam, made_drsa.step) == (float(f"{rsa.lam * 4 / 3:.3g}"), rsa.worker_step)
    for other in (DSGD.for_dataset(digits), UBAR.for_dataset(digits, path), ByRDiE.for_dataset(digits, path)):
        assert other.step == steps.power(10.0), other
    assert degree_steps(graphs.complete(4), 0.5, 0.3) == steps.inv_sqrt(1.5, 0.3)


def test_the_ideal_is_training_without_the_byzantine_nodes() -> None:
    data, parts = small_data(), small_parts()
    common: dict[str, Any] = {"iterations": 12, "batch_size": 4, "seed": 5, "eval_every": 3}
    kept = [0, 2, 3, 4, 6]
    for graph in (GRAPH, graphs.Flaky(GRAPH, 0.6)):
        ideal = decentralized.simulate(
            data, parts, graph=graph, algorithm=DSGD(step=STEP, ideal=True), byzantine=[1, 5], **common
        )
        attacked = decentralized.simulate(
            data, parts, graph=graph, algorithm=DSGD(step=STEP, ideal=True), byzantine=[1, 5], **common,
            attack=attacks.Dissensus(),
        )  # fmt: skip
        assert ideal.x is not None
        assert attacked.x is not None
        assert same_bits(ideal.x, attacked.x)
        assert ideal.config["graph"] == graph.describe()
    # The last nodes: batches go by the number of a node, and those of the others do not change.
    run = decentralized.simulate(
        data, parts, graph=GRAPH, algorithm=DSGD(step=STEP, ideal=True), n_byzantine=2, **common
    )
    alone = decentralized.simulate(data, parts[:5], graph=GRAPH.without([5, 6]), algorithm=DSGD(step=STEP), **common)
    assert run.x is not None
    assert alone.x is not None
    assert same_bits(run.x[:5], alone.x)
    for name, curve in alone.metrics.items():
        np.testing.assert_array_equal(run.metrics[name], curve, err_msg=name)
    assert GRAPH.cut_off([1, 5]).without([1, 5]) == GRAPH.without([1, 5])
    assert GRAPH.cut_off([1, 5]).degrees[kept].tolist() == GRAPH.without([1, 5]).degrees.tolist()
    with pytest.raises(TypeError, match="ideal: expected True or False, got int"):
        DSGD(step=STEP, ideal=1)  # type: ignore[arg-type]


def test_where_nodes_start() -> None:
    loss = quadratic(M, 2000)
    runs = [
        experiment_on(GRAPH, DSGD(step=STEP), loss=loss, x_init=6.0, seed=seed, dtype=dtype)
        for seed, dtype in ((0, "float64"), (0, "float32"), (1, "float64"))
    ]
    first, single, other = (after(0, run)["x"] for run in runs)
    assert first.astype(np.float32).tobytes() == single.tobytes()
    assert abs(float(first.std()) - 6) < 0.15
    assert abs(float(np.corrcoef(first[0], first[1])[0, 1])) < 0.1
    assert abs(float(np.corrcoef(first[0], other[0])[0, 1])) < 0.1
    few = experiment_on(GRAPH.without([5, 6]), DSGD(step=STEP), loss=quadratic(5, 2000), x_init=6.0, dtype="float64")
    assert same_bits(after(0, few)["x"], first[:5])  # node by node
    with pytest.raises(ValueError, match=r"x_init: expected a finite number > 0\.0, got -1"):
        experiment_on(GRAPH, DSGD(step=STEP), loss=loss, x_init=-1)


def test_messages_of_a_round() -> None:
    count = 2 * len(GRAPH.edges)
    cases = {count: DSGD(step=STEP), 3 * count: ByRDiE(b="exact", inner=3, step=STEP)}
    for messages, algorithm in cases.items():
        config = experiment_on(GRAPH, algorithm, loss=quadratic()).describe()
        assert config["messages"] == messages
    flaky = experiment_on(graphs.Flaky(GRAPH, 0.5), DSGD(step=STEP), loss=quadratic())
    assert flaky.describe()["messages"] == count / 2
    ideal = experiment_on(GRAPH, DSGD(step=STEP, ideal=True), loss=quadratic(), n_byzantine=2)
    assert ideal.describe()["messages"] == 2 * len(GRAPH.without([5, 6]).edges)


def test_byrdie_with_as_many_byzantine_neighbors_as_there_are() -> None:
    data, parts = small_data(), small_parts()
    graph = graphs.Graph([(i, j) for i in range(M) for j in range(i) if (i, j) not in ((5, 4), (6, 4))], M)
    common: dict[str, Any] = {"byzantine": [5, 6], "attack": attacks.Gaussian(), "iterations": 6, "graph": graph}
    models = [
        decentralized.simulate(data, parts, algorithm=ByRDiE(b=b, step=STEP), **common).x
        for b in ("exact", [2, 2, 2, 2, 0, 0, 0])
    ]
    assert models[0] is not None
    assert models[1] is not None
    assert same_bits(models[0], models[1])
    with pytest.raises(ValueError, match="f: 2 is too large for node 4 with degree 4"):
        ByRDiE(b=2, step=STEP).check_graph(graph, [5, 6])
