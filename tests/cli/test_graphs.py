"""``byzadmm run --graph``: nodes without a master."""

from __future__ import annotations

import json

import pytest

from byzadmm import Result, catalogue, compare, graphs
from byzadmm.study import plots
from support.commands import QUICK, fits, rows_of

SMALL = ["run", "--n-workers", "8", *QUICK, "--quiet"]


def test_a_run_on_a_ring(call, monkeypatch):
    drawn = []
    monkeypatch.setattr(plots, "save", lambda figure, path: drawn.append(figure) or path.touch())
    ended = call(*SMALL, "--graph", "ring:k=2", "--attack", "isolation", "-q", 1, "--algorithm", "dadmm", "ios", "krum")
    assert (ended.code, ended.err) == (0, "")
    assert fits(ended.out)
    title = " ".join(" ".join(ended.out.splitlines()[:2]).split())
    assert title.startswith("digits, isolation attack, 1 of 8 nodes Byzantine, graph ring:k=2")
    rows = rows_of(ended.out)
    assert rows["algorithm"] == ["accuracy", "worst", "node", "loss", "iterations", "seconds", "vs", "Ideal"]
    assert {"ideal", "dadmm", "ios", "krum"} <= rows.keys()
    assert all(float(rows[name][1]) <= float(rows[name][0]) for name in ("ideal", "dadmm", "ios", "krum"))
    assert [line.get_label() for line in drawn[0].axes[0].get_lines()][:2] == ["Ideal SGD", "DADMM"]


def test_the_same_as_compare(call, tmp_path):
    words = ["--graph", "erdos-renyi:0.6,seed=3", "--byzantine", 2, 5, "--attack", "local-alie", "none", "--no-plot"]
    ended = call(*SMALL, *words, "--rule", "ios", "median", "--json", "--report", "page.html", "--seed", 4)
    assert ended.code == 0, ended.err
    record = json.loads(ended.out)
    assert (record["graph"], record["byzantine"]) == ("erdos-renyi:0.6,seed=3", [2, 5])
    assert (tmp_path / "page.html").stat().st_size > 1000
    study = compare(
        "digits",
        algorithms=["ideal", "ios", "median"],
        attacks=["local-alie", "none"],
        n_workers=8,
        graph="erdos-renyi:0.6,seed=3",
        byzantine=[2, 5],
        seeds=[4],
        iterations=30,
        batch_size=8,
        eval_every=1,
        progress=False,
    )
    found = {(run["algorithm"].partition(",")[0], run["attack"]): run["accuracy"] for run in record["runs"]}
    assert len(found) == 6
    for cell in study.results:
        assert found[cell.algorithm, cell.attack] == study.final(cell), cell


def test_what_is_compared_on_a_graph_and_how_many_attack(monkeypatch, call):
    plans = []
    monkeypatch.setattr("byzadmm.cli.run.carry_out", lambda plan, **_: plans.append(plan))
    call("run", "--graph", "complete", "--quiet")
    assert plans[0].axes["algorithm"] == ["ideal", *catalogue.ON_GRAPHS]
    assert plans[0].axes["n_byzantine"] == [4]
    run = next(run for run in plans[0].runs.values() if not isinstance(run, str))
    assert run["graph"] == graphs.complete(20)
    words = ["--graph", "complete", "--algorithm", "dadmm:slope=0.2", "drsa", "--lam", "0.03", "-q", "1", "2"]
    call("run", *words, "--scale", "0.5", "--quiet")
    made = {cell.algorithm: run["algorithm"] for cell, run in plans[1].runs.items() if cell.n_byzantine == 1}
    assert made["dadmm:slope=0.2"].lam == made["drsa"].lam == 0.03
    assert 1 / made["dadmm:slope=0.2"].step(4) - 1 / made["dadmm:slope=0.2"].step(1) == pytest.approx(0.2)


def test_the_one_result_is_kept(call, tmp_path):
    words = ["--graph", "two-castle", "--algorithm", "dadmm", "-q", 1, "--no-plot", "--out", "run.npz"]
    assert call(*SMALL, *words).code == 0
    kept = Result.load(tmp_path / "run.npz")
    assert kept.config["graph"] == graphs.two_castle(4).describe()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--delays", "1"], "delays: not on a graph, where nodes work in rounds without a master; got '1'"),
        (["--local-steps", "3"], "local_steps: not on a graph, where nodes work in rounds without a master; got 3"),
        (["--algorithm", "admm"], "algorithm: admm needs a master; on a graph there is dadmm"),
        (["--master-step", "1", "--algorithm", "dadmm"], "master_step: none of dadmm has it"),
        (["--rule", "ios", "--algorithm", "dadmm"], "rule: is for --algorithm dsgd, got --algorithm dadmm"),
        (["--byzantine", "3", "-q", "1"], "byzantine: names the Byzantine workers, and -q how many there are; give"),
        (["--byzantine", "20"], "byzantine: expected an integer in [0, 19], got 20"),
        (["--algorithm", "ios:b=5"], "f: 5 is too large for node 0 with degree 2: IOS tolerates at most 2 Byzantine"),
        (["--graph", "rin"], "graph: expected one of complete, ring"),
        (["--graph", "torus:a=3"], "graph: torus:a=3: a: expected a divisor of the 20 nodes, got 3"),
        (["--graph", "flaky:0.5"], "graph: flaky needs a graph after a plus, as in flaky:0.5+ring"),
        (["--rule", "krumm"], "rule: expected one of self-centered-clipping"),
    ],
)
def test_refusals(refused, words, message):
    assert refused("run", "--graph", "ring", "--no-plot", *words).startswith(message)


def test_an_algorithm_without_its_graph(refused):
    assert refused("run", "--algorithm", "dadmm") == "graph: dadmm is decentralized and needs one, such as 'ring:k=2'"
    assert refused("run", "fig1a", "--graph", "ring") == "graph: is in the settings file fig1a"
