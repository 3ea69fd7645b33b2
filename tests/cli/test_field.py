"""Every system around the paper by name: runs, labels, settings files, and what is refused."""

from __future__ import annotations

import json

import pytest

from byzadmm import catalogue, compare, filters, redundancy
from byzadmm.catalogue import make_algorithm

NAMED = [*filters.REGISTRY, "cyclic:f=2", "repetition:r=5", "svrg:batch=8,inner=4", "newton:cg-iterations=5", "cnm:c=2"]
NAMED += ["one-round:rule=trimmed-mean", "perturbed-gd", "krum --filter"]


def test_every_system_runs_by_name(call):
    words = ["run", "--n-workers", "10", "-q", "2", "--iterations", "3", "--eval-every", "1", "--json"]
    ended = call(*words, "--algorithm", *NAMED[:-1], "--validation", "150")
    assert ended.code == 0, ended.err
    found = {row["algorithm"]: row for row in json.loads(ended.out)["runs"]}
    assert set(found) >= set(NAMED[:-1])
    assert all(row["accuracy"] > 0.05 for row in found.values())
    ended = call(*words, "--rule", "krum", "--filter", "safeguard:windows=5", "--variance-reduction", "lsvrg")
    assert ended.code == 0, ended.err


def test_names_have_their_settings_and_labels():
    preset = catalogue.PRESETS["digits"]
    made = {name: make_algorithm(name, preset, 3) for name in [*NAMED[:-1], "sign-majority", "nnm+sign-majority"]}
    assert made["zeno"].filter.b == 3, "the declared number of attackers"
    assert made["cyclic:f=2"].coding == redundancy.Cyclic(f=2)
    assert make_algorithm("cyclic", preset, 3).coding == redundancy.Cyclic(f=3)
    assert make_algorithm("safeguard:windows=20/120", preset, 3).filter.windows == (20, 120)
    assert made["svrg:batch=8,inner=4"].inner == 4
    assert made["one-round:rule=trimmed-mean"].f == 3
    assert made["sign-majority"].step == made["nnm+sign-majority"].step == preset.sign_step != preset.step
    labels = {name: catalogue.label_of(one.describe())[1] for name, one in made.items()}
    assert labels["byzantine-sgd"] == "ByzantineSGD"
    assert labels["cyclic:f=2"] == "Cyclic"
    assert labels["cnm:c=2"] == "Newton (CNM)"
    assert labels["one-round:rule=trimmed-mean"] == "One round, trimmed-mean"
    with_filter = make_algorithm("krum", preset, 3, {"filter": "zeno"})
    assert (with_filter.f, with_filter.filter.b) == (3, 3)
    assert catalogue.label_of(with_filter.describe()) == ("krum", "krum, Zeno")


def test_a_comparison_and_a_settings_file_take_the_names(call, tmp_path):
    study = compare(
        "digits", algorithms=["zeno", "cyclic"], n_workers=7, n_byzantine=2, seeds=1, iterations=2, eval_every=1
    )
    assert not study.missing
    path = tmp_path / "own.toml"
    path.write_text(
        """
dataset = "digits"
n_workers = 10
n_byzantine = 2
iterations = 2
eval_every = 1
validation = 100
attack = "sign-flip"
[algorithms.zeno]
step = { power = 10.0 }
filter = "zeno:b=2"
[algorithms.coded]
kind = "sgd"
step = { power = 10.0 }
coding = "cyclic:f=2"
[algorithms.one-round]
""",
        encoding="utf-8",
    )
    ended = call("reproduce", str(path), "--out", str(tmp_path), "--seeds", "1", "--quiet")
    assert ended.code == 0, ended.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--algorithm", "zeno:c=1"], "filter: zeno takes b, rho, samples; got 'c=1'"),
        (["--algorithm", "repetition:r=3"], "r: expected a divisor of the number of workers, m=20, got 3"),
        (["--algorithm", "admm", "--filter", "zeno"], "filter: none of admm has it"),
        (["--algorithm", "sgd", "--filter", "zero"], "filter: expected one of byzantine-sgd, comparison, fltrust"),
        (["--algorithm", "sgd", "--coding", "cyclic", "--filter", "zeno"], "filter: expected None with coding"),
        (["--algorithm", "svrg:steps=3"], "algorithm: svrg takes inner, batch, threshold, V, delta; got 'steps=3'"),
        (["--algorithm", "zeno", "--validation", "0"], "validation: expected an integer >= 1, got 0"),
        (["--algorithm", "zeno", "--validation", "1437"], "validation: expected at most 1436 free rows, got 1437"),
    ],
)
def test_what_is_refused(refused, words, message):
    assert message in refused("run", *words, "--iterations", "1", "--no-plot")
