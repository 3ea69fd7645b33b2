"""Names and text to objects: every attack, rule, step size and algorithm of the package has a name."""

from __future__ import annotations

import inspect
import json

from byzadmm import ADMM, RSA, SGD, aggregate, attacks, catalogue, datasets, partition, steps
from byzadmm.results import versus_ideal
from support.commands import QUICK
from support.rules import registered


def test_every_attack_step_partition_and_rule_has_a_name():
    classes = {kind for kind in vars(attacks).values() if inspect.isclass(kind) and issubclass(kind, attacks.Attack)}
    assert {entry.make for entry in catalogue.attacks().values()} == classes - {attacks.Attack}
    assert {"sign-flip", "label-flip", "alie", "non-finite"} <= set(catalogue.attacks())
    functions = {name for name in steps.__all__ if name[0].islower()} - {"at", "evaluate"}
    assert {entry.make for entry in catalogue.STEPS.values()} == {getattr(steps, name) for name in functions}
    made = {entry.make for entry in catalogue.PARTITIONS.values()}
    assert made == {getattr(partition, name) for name in partition.__all__}
    rules = catalogue.rules()
    assert {"mean", "median", "trimmed-mean", "geometric-median"} <= set(rules)
    assert not {"info", "max-f", "clip", "bucketing", "nearest-neighbor-mixing"} & set(rules)
    assert "mean" not in catalogue.algorithms()


def test_a_new_attack_and_a_new_rule_appear_by_themselves(call, monkeypatch):
    class LoudNoise(attacks.Gaussian):
        """Louder."""

    def first_row(X, *, f, nonfinite="exclude", threads=0):
        """The first row."""
        return X[f]

    monkeypatch.setitem(attacks.REGISTRY, "loud-noise", LoudNoise)
    monkeypatch.setattr(aggregate, "first_row", first_row, raising=False)
    with registered(first_row, "FirstRow", max_f=lambda n: n - 1):
        ended = call("run", *QUICK, "--algorithm", "first-row", "--attack", "loud-noise:std=1", "--json")
        listed = call("list", "rules").out
    assert "The first row." in listed
    run = json.loads(ended.out)["runs"][1]
    assert run["settings"]["rule"] == "first_row"
    assert "Louder." in call("list", "attacks").out


def test_values_in_text():
    table = catalogue.attacks()
    assert catalogue.parse("alie:none", "attack", table) == ("alie", {"z": None})
    assert catalogue.parse("sign_flip:-2.5", "attack", table) == ("sign-flip", {"scale": -2.5})
    assert catalogue.parse("SignFlip: scale = 1e3", "attack", table) == ("sign-flip", {"scale": 1000.0})
    assert catalogue.make_attack("duplicate:worker=3") == attacks.Duplicate(worker=3)
    assert catalogue.make_attack("none") is None
    assert catalogue.make_attack("min-max:unit,factor=0.5") == attacks.MinMax("unit", 0.5)
    assert catalogue.make_attack("fang:defense=krum") == attacks.Fang("krum")
    assert catalogue.make_attack("label-flip:mapping=1/2/0") == attacks.LabelFlip([1, 2, 0])
    searched = catalogue.make_attack("worst-case:inner-product,rule=nnm+trimmed-mean,high=3")
    assert searched == attacks.WorstCase("inner-product", "nnm+trimmed-mean", high=3)


def test_rsa_steps():
    preset, one, two = catalogue.PRESETS["digits"], steps.constant(1.0), steps.constant(2.0)
    make = catalogue.make_algorithm
    assert make("rsa", preset, 8) == preset.rsa
    assert make("rsa", preset, 8, {"lam": 0.5}) == RSA(lam=0.5, step=preset.rsa.step)
    assert make("rsa", preset, 8, {"step": one}).worker_step == one
    mixed = make("rsa", preset, 8, {"step": one, "worker_step": two})
    assert (mixed.master_step, mixed.worker_step) == (one, two)


def test_algorithms_by_name():
    preset = catalogue.PRESETS["mnist"]
    assert catalogue.make_algorithm("admm", preset, 8) == preset.admm
    assert isinstance(catalogue.make_algorithm("admm", preset, 8, {"beta": 2.0}), ADMM)
    assert catalogue.make_algorithm("ideal", preset, 8) == SGD(step=preset.step, ideal=True)
    assert catalogue.make_algorithm("trimmed-mean", preset, 7) == SGD(rule="trimmed_mean", step=preset.step, f=7)
    assert catalogue.make_algorithm("trimmed-mean:2", preset, 7).f == 2


def test_every_data_set_has_a_preset():
    assert {name.replace("-", "_") for name in catalogue.PRESETS} == {row.name for row in datasets.available()}


def test_verdict():
    assert versus_ideal(0.93, 0.95) == "close"
    assert versus_ideal(0.96, 0.95) == "close"
    assert versus_ideal(0.92, 0.95) == "0.030 below"
    assert versus_ideal(0.47, 0.95) == "fails"
    assert versus_ideal(float("nan"), 0.95) == "fails"
    assert versus_ideal(0.9, None) == ""
