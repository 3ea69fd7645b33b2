"""``byzadmm data``, ``list`` and ``info``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import byzadmm
from byzadmm import aggregators, catalogue, datasets
from byzadmm.cli import lists
from support.commands import fits, rows_of


def test_data_list(call, tmp_path):
    ended = call("data", "list")
    assert fits(ended.out)
    rows = rows_of(ended.out)
    assert rows["digits"] == ["in", "the", "package", "45", "kB", "CC", "BY", "4.0"]
    assert rows["mnist"][:4] == ["not", "here", "11.6", "MB"]
    records = json.loads(call("data", "list", "--json", "--data-dir", tmp_path).out)
    names = [record["name"] for record in records]
    assert names == ["digits", "synthetic", "mnist", "covtype", "fashion-mnist", "cifar10"]


def test_data_path_and_fetch(call, tmp_path):
    assert call("data", "path", "--data-dir", "here").out == f"here\n{tmp_path / 'cache'}\n"
    assert json.loads(call("data", "path", "--json").out) == [str(tmp_path / "cache")]
    ended = call("data", "fetch", "digits")
    assert (ended.code, ended.out, ended.err) == (0, "", "digits: nothing to fetch, it is always there\n")


def test_data_fetch_prints_the_files(call, monkeypatch):
    asked = []
    monkeypatch.setattr(datasets, "fetch", lambda name, **options: asked.append((name, options)) or [Path("a.gz")])
    assert call("data", "fetch", "fashion-mnist", "--data-dir", "d").out == "a.gz\n"
    assert asked == [("fashion_mnist", {"data_dir": "d"})]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fetch"], "data: expected `data list`, `data fetch NAME` or `data path`"),
        (["list", "mnist"], "data: expected `data list`, `data fetch NAME` or `data path`"),
        (["drop"], "data: expected one of list, fetch, path; got 'drop'"),
        (
            ["fetch", "cifar"],
            "name: expected one of digits, synthetic, mnist, fashion-mnist, covtype, cifar10; got 'cifar'",
        ),
    ],
)
def test_data_refuses(refused, words, message):
    assert refused("data", *words) == message


@pytest.mark.parametrize("what", ["algorithms", "attacks", "rules", "filters", "codes", "delays", "graphs", "figures"])
def test_list(call, figures, what):
    ended = call("list", what)
    assert ended.code == 0
    assert fits(ended.out + ended.err)
    names = [row["name"] for row in json.loads(call("list", what, "--json").out)]
    expected = {"algorithms": "geometric-median", "attacks": "gaussian", "rules": "trimmed-mean", "figures": "fig1a"}
    expected |= {"filters": "zeno", "codes": "cyclic", "delays": "stragglers", "graphs": "ring"}
    assert expected[what] in names
    assert set(names) <= set(rows_of(ended.out))


def test_list_of_algorithms_on_graphs(call):
    ended = call("list", "algorithms")
    with_master, on_graphs = ended.out.split("On a graph, with --graph")
    assert "admm" in rows_of(with_master)
    expected = catalogue.decentralized().keys() - catalogue.rules().keys()
    assert expected >= {"dadmm", "dsgd", "ideal", "ios"}
    assert expected <= rows_of(on_graphs).keys()
    assert "every rule of `byzadmm list rules` is one too" in ended.err
    assert fits(ended.err)
    rows = [row for row in json.loads(call("list", "algorithms", "--json").out) if row["topology"] == "graph"]
    assert {row["name"]: row["settings"] for row in rows}["ios"] == "those of dsgd, b="


def test_list_of_rules(call):
    rows = {row["name"]: row for row in json.loads(call("list", "rules", "--json").out)}
    assert set(rows) == {name.replace("_", "-") for name in aggregators.RULES | aggregators.PRE_AGGREGATORS}
    legal = {name: rows[name]["max_f"] for name in ("mean", "median", "krum", "bulyan", "nearest-neighbor-mixing")}
    assert legal == {"mean": 0, "median": 9, "krum": 8, "bulyan": 4, "nearest-neighbor-mixing": 9}
    assert {row["n"] for row in rows.values()} == {20}
    before = [name for name, row in rows.items() if row["kind"] == "pre-aggregation"]
    assert before == [name.replace("_", "-") for name in aggregators.PRE_AGGREGATORS]
    assert list(rows)[-len(before) :] == before
    assert all(row["about"].endswith(".") for row in rows.values())
    printed = call("list", "rules")
    assert rows_of(printed.out)["krum"][0] == "8"
    remark = f"pre-aggregations, from {before[0]} to {before[-1]}, come before a rule: byzadmm run --rule nnm+krum"
    assert remark in " ".join(printed.err.split())


def test_list_refuses(refused):
    known = "algorithms, attacks, rules, filters, codes, delays, graphs, figures"
    assert refused("list", "clouds") == f"list: expected one of {known}; got 'clouds'"


def test_info(call, monkeypatch):
    monkeypatch.setitem(lists._EXTRAS, "mpi", ("no-such-package-at-all",))
    ended = call("info")
    assert ended.code == 0
    assert fits(ended.out)
    assert "not installed" in ended.out
    facts = json.loads(call("info", "--json").out)
    assert facts["version"] == byzadmm.__version__
    assert facts["numpy"] == np.__version__
    assert facts["instruction set"] in facts["instruction sets built"]
    assert facts["threads"] >= 1
    assert facts["data"]["digits"] == "in the package"
    assert facts["extras"]["mpi"] is None
    assert facts["extras"]["plot"].startswith("matplotlib ")
