"""The table of the field: every work that the paper cites, what the table names, and what it says of compositions."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import byzadmm
from byzadmm import aggregate, asynchronous, catalogue, decentralized, filters, losses, redundancy
from byzadmm.aggregators import Bucketing, Chain, GeometricMedian

#: The bibliography of the paper.
_CITED = """
    Agrawal2000 Sicari2015 Lu2018 Konecny2015 Konecny2016 Kairouz2021 Lamport1982 Lynch996 Venpaty2013 Chen2018a
    Blanchard2017 Li2019 Li2020 Ravi2019 Alistarh2018 Zhu2021 Chen2018 Chen2018b Xie2018a Cao2020 Yin2018a Xie2018b
    Xie2018c Mhamdi2018 Kevin2019 He2020-rs Peng2020-rs Liping2018 Wu2019 Mahdi2020 Khanduri2019 Karimireddy2021
    Damaskinos2018 Yang2020 Xie2019 Yin2018b Yang2019a Yang2019b Guo2020 Peng2021-dec Hua2013 sta-opt Nesterov
"""
CITED = _CITED.split()


def test_every_work_that_the_paper_cites_has_its_place(root: Path) -> None:
    page = (root / "docs" / "field.md").read_text("utf-8")
    assert len(CITED) == 43
    assert [key for key in CITED if not re.search(rf"(?<![\w-]){re.escape(key)}(?![\w-])", page)] == []


def test_code_and_tests_that_the_table_names_exist(root: Path) -> None:
    page = (root / "docs" / "field.md").read_text("utf-8")
    tables = page.partition("## Under attack")[0] + page.partition("## Without a master")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in tables.splitlines() if line.startswith("|")][2:]
    rows = [row for row in rows if row[0].strip("- ") not in ("", "system")]
    assert len(rows) == 35
    for system, _, _, here, _, _, code, test in rows:
        for path in re.findall(r"`([\w/]+\.py)`", code):
            assert (root / "python" / "byzadmm" / path).is_file(), system
        (path,) = re.findall(r"`([\w/]+\.py)`", test)
        assert (root / "tests" / path).is_file(), system
        names = re.findall(r"`(?:filters\.|losses\.|redundancy\.)?(\w+)", here)
        modules = (byzadmm, filters, redundancy, asynchronous, decentralized, losses)
        known = {*filters.REGISTRY.values(), *(name for module in modules for name in dir(module))}
        assert [name for name in names if name not in known] == [], system


def test_every_filter_code_and_algorithm_is_in_the_table(root: Path) -> None:
    page = (root / "docs" / "field.md").read_text("utf-8")
    kinds = {*filters.REGISTRY.values(), *redundancy.REGISTRY.values()}
    kinds |= {entry.kind for entry in catalogue.algorithms().values()}
    assert sorted(kind.__name__ for kind in kinds if not re.search(rf"\b{kind.__name__}\b", page)) == []


def test_krum_is_one_krum_and_fixed_groups_are_those_of_byzantine_gradient_descent() -> None:
    X = np.random.default_rng(3).normal(size=(12, 5))
    assert aggregate.multi_krum(X, f=2, m=1).tolist() == aggregate.krum(X, f=2).tolist()
    chain = Chain([Bucketing(s=3, rng=0), GeometricMedian()])
    order = aggregate.bucketing(X, s=3, rng=0, return_info=True)[1].selected
    means = X[order].reshape(4, 3, 5).mean(axis=1)
    np.testing.assert_allclose(chain(X), aggregate.geometric_median(means), rtol=1e-9)
    assert chain(X).tolist() == chain(X).tolist()  # the same groups in every round
