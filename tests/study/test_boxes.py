"""Where searches look: the scale of gradients, and settings known to be good inside the boxes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import catalogue, datasets, losses
from byzadmm.study import boxes
from byzadmm.study.search import ROUNDS, propose, round_of_trials

# Steps; (lam, step) of RSA; (lam, beta, slope) of ADMM. Found by searches before the boxes were derived, or printed in
# the paper.
GOOD: dict[str, tuple[Any, Any, Any]] = {
    "digits": ([10.0], [(0.014, 3.0)], [(0.01, 0.5, 0.3)]),
    "mnist iid": (
        [1.3e-4, 2.7e-4, 4e-5],
        [(0.1, 4e-5), (0.93, 8.2e-4)],
        [(0.2, 321, 49600), (0.5, 0.5, 10), (0.05, 0.1, 5)],
    ),
    "mnist by-label": ([5e-5, 1e-4, 1e-6], [(10, 2.5e-5)], [(16, 4, 200), (10, 60, 10000)]),
    "covtype raw": ([1e-5, 6e-5], [(0.5, 1e-4), (1.25, 2.6e-5)], [(0.3, 0.3, 10), (0.5, 0.3, 100)]),
    "covtype standard": ([1.3, 6.6], [(0.02, 0.9), (0.05, 2.3)], [(0.027, 0.55, 1.2)]),
}


def outside(name: str, data: datasets.Dataset, partition: str = "iid") -> list[str]:
    """The good settings that are outside of the box of a data set."""
    ranges = boxes.measure(losses.Softmax(data, catalogue.make_parts(partition, data, 20, 0))).ranges()
    step, rsa, admm = GOOD[name]
    points = [{"step": c} for c in step] + [{"lam": lam, "step": c} for lam, c in rsa]
    points += [{"lam": lam, "slope/lam": slope / lam, "beta/slope": beta / slope} for lam, beta, slope in admm]
    return [
        f"{name}: {key} = {value} not in {ranges[key]}"
        for point in points
        for key, value in point.items()
        if not ranges[key][0] <= value <= ranges[key][1]
    ]


def test_good_settings_for_digits_are_inside() -> None:
    assert outside("digits", datasets.load("digits")) == []


@pytest.mark.slow
@pytest.mark.data
def test_good_settings_for_mnist_are_inside(mnist: datasets.Dataset) -> None:
    data = dataclasses.replace(mnist, scale=1.0)
    assert outside("mnist iid", data) + outside("mnist by-label", data, "by-label") == []


@pytest.mark.slow
@pytest.mark.data
def test_good_settings_for_covtype_are_inside(data_dir: Path, covtype: datasets.Dataset) -> None:
    raw = datasets.load("covtype", data_dir=data_dir, scale="raw")
    assert outside("covtype raw", raw) + outside("covtype standard", covtype) == []


def test_boxes_move_with_the_scale_of_features_and_with_the_partition() -> None:
    data = datasets.load("digits", scale="raw")  # 0..16
    scaled = dataclasses.replace(data, scale=1e3 * data.scale)
    parts = catalogue.make_parts("iid", data, 20, 0)
    one, other = (boxes.measure(losses.Softmax(d, parts)) for d in (data, scaled))
    assert other.gradient / one.gradient == pytest.approx(1e3, rel=0.02)
    assert other.weight / one.weight == pytest.approx(1e-3, rel=0.02)
    for name, power in {"step": -2, "lam": 1, "slope/lam": 1, "beta/slope": 0}.items():
        assert other.ranges()[name][0] / one.ranges()[name][0] == pytest.approx(1e3**power, rel=0.05), name
    by_label = boxes.measure(losses.Softmax(data, catalogue.make_parts("by-label", data, 20, 0)))
    assert by_label.gradient > 2 * one.gradient
    assert by_label.weight == one.weight


def test_features_that_are_always_0_do_not_count() -> None:
    data = datasets.load("digits")
    wide = dataclasses.replace(
        data, train_x=np.pad(data.train_x, ((0, 0), (0, 500))), test_x=np.pad(data.test_x, ((0, 0), (0, 500)))
    )
    parts = catalogue.make_parts("iid", data, 20, 0)
    assert boxes.measure(losses.Softmax(wide, parts)) == boxes.measure(losses.Softmax(data, parts))


def test_what_has_no_scale_is_an_error_that_says_what_to_give() -> None:
    with pytest.raises(ValueError, match=r"ranges: .* without samples \(Quadratic\); give step, lam, .*\[tuning\]"):
        boxes.measure(losses.Quadratic([1.0], [[2.0]]))

    class Flat(losses.Softmax):
        def gradient(self, x: Any, *, worker: int, k: int) -> Any:
            return np.zeros(self.dim)

    data = datasets.load("digits")
    with pytest.raises(ValueError, match=r"ranges: .* gradients of size 0 at .*; give step, lam, beta and slope"):
        boxes.measure(Flat(data, catalogue.make_parts("iid", data, 4, 0)))


def test_a_range_may_be_that_of_a_quotient() -> None:
    ranges = {"beta/slope": (0.1, 10.0), "slope/lam": (100.0, 1e4), "lam": (0.01, 1.0)}
    names = ("lam", "beta", "slope")
    first = [propose(names, ranges, number, 1.0, None, 0) for number in range(200)]
    around = [propose(names, ranges, number, 0.2, first[0], 0) for number in range(200)]
    for trials, shrunk in ((first, 0), (around, 1)):
        assert all(tuple(trial) == names for trial in trials)
        for key, (low, high) in ranges.items():
            name, _, divisor = key.partition("/")
            values = [trial[name] / (trial[divisor] if divisor else 1) for trial in trials]
            assert 0.9 * low < min(values) < max(values) < 1.1 * high, key
            width = (high / low) ** (0.2 if shrunk else 1)
            assert 0.85 * width < max(values) / min(values) < 1.2 * width, f"{key}: fills its box"
    assert boxes.merge(ranges, {"slope": (1, 2)}) == {"beta/slope": (0.1, 10.0), "lam": (0.01, 1.0), "slope": (1, 2)}
    mixed = propose(names, boxes.merge(ranges, {"slope": (1, 2)}), 3, 1.0, None, 0)
    assert 1 <= mixed["slope"] <= 2


def test_a_round_depends_on_the_rounds_before_alone() -> None:
    ranges = {"lam": (0.01, 1.0), "step": (0.1, 10.0)}
    done: list[dict[str, float]] = []
    for turn in range(len(ROUNDS)):
        made = round_of_trials(("lam", "step"), ranges, turn, 6, done, 0)
        assert list(made) == list(range(len(done), len(done) + len(made)))
        more = [trial | {"score": 2.0} for trial in made.values()]
        assert round_of_trials(("lam", "step"), ranges, turn, 6, done + more, 0) == made
        for trial in made.values():
            done.append(trial | {"score": -np.hypot(np.log(2 * trial["lam"]), np.log(trial["step"]))})
    assert len(done) == 12
    best = max(done, key=lambda trial: trial["score"])
    assert 0.3 < best["lam"] < 0.8
    assert 0.6 < best["step"] < 1.7
