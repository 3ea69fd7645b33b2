"""SGD with redundant gradients: whatever a few workers send, the trajectory is that of the mean without attack."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import SGD, attacks, datasets, engines, partition, redundancy, simulate, steps
from byzadmm.redundancy import Cyclic, Repetition
from byzadmm.training.workers import Workers
from support.arrays import same_bits
from support.runs import M, experiment, quadratic, small_data, small_parts

Array = npt.NDArray[Any]

STEP = steps.power(1.0)
#: Every attack that forms its messages without x0, which has half the length of a cyclic code's messages.
APPLICABLE = {name: kind() for name, kind in attacks.REGISTRY.items() if not kind.uses_x0}


class Anything:
    """Rows of a random size, which a first attacker sends as NaN from the third round on."""

    sees = "own"

    def __call__(self, messages: Array, *, k: int, byzantine: Sequence[int], rng: Any, **_: Any) -> Array:
        q, length = len(byzantine), messages.shape[1]
        made = 10.0 ** rng.uniform(-2, 4, (q, 1)) * rng.standard_normal((q, length))
        if k >= 3:
            made[0] = np.nan
        return np.asarray(made)


def apart(run: Any, other: Any) -> float:
    """The largest difference of two trajectories, of the size of the model at the end."""
    return float(np.abs(run.trajectory["x0"] - other.trajectory["x0"]).max() / np.abs(other.x0).max())


def trajectories(m: int, f: int, iterations: int, **settings: Any) -> dict[str, float]:
    data = datasets.load("digits")
    parts = partition.iid(data.train_y, m, seed=0)
    common: dict[str, Any] = {"dtype": "float64", "iterations": iterations, "eval_every": 5, "record": "trajectory"}
    plain = simulate(data, parts, algorithm=SGD(step=STEP, **settings), **common)
    every: dict[str, Any] = {"none": None, "anything": Anything(), **APPLICABLE}
    found = {}
    for number, (name, attack) in enumerate(every.items()):
        byzantine = np.sort((number + np.arange(f) * (1 + number % 3)) % m)  # beside each other, and apart
        algorithm = SGD(step=STEP, coding=Cyclic(f), **settings)
        run = simulate(data, parts, algorithm=algorithm, attack=attack, byzantine=byzantine, **common)
        found[name] = apart(run, plain)
    return found


def test_every_attack_leaves_the_trajectory_of_the_mean() -> None:
    for name, difference in trajectories(7, 2, 10, momentum=0.9).items():
        assert difference <= 1e-9, name


@pytest.mark.slow
@pytest.mark.parametrize(("m", "f"), [(7, 2), (9, 1), (15, 3), (20, 4), (21, 6)])
def test_every_attack_leaves_the_trajectory_of_a_whole_run(m: int, f: int) -> None:
    for name, difference in trajectories(m, f, 30).items():
        assert difference <= 1e-9, name


@pytest.mark.slow
@pytest.mark.data
def test_the_curve_on_mnist_is_that_without_attack(mnist: datasets.Dataset) -> None:
    parts = partition.iid(mnist.train_y, 15, seed=0)
    common: dict[str, Any] = {"dtype": "float64", "iterations": 200, "eval_every": 20}
    plain = simulate(mnist, parts, algorithm=SGD.for_dataset(mnist), **common)
    for attack in (attacks.SignFlip(), attacks.LabelFlip()):
        algorithm = SGD.for_dataset(mnist, coding=Cyclic(f=3))
        run = simulate(mnist, parts, algorithm=algorithm, attack=attack, n_byzantine=3, **common)
        assert np.abs(run.x0 - plain.x0).max() <= 1e-9 * np.abs(plain.x0).max(), attack
        np.testing.assert_allclose(run.accuracy, plain.accuracy, rtol=0, atol=1e-4)
    assert plain.accuracy[-1] > 0.85


def test_repetition_under_attack_has_the_bits_of_repetition_without() -> None:
    data = small_data()
    parts = partition.iid(data.train_y, 6, seed=3)
    for dtype in ("float32", "float64"):
        common: dict[str, Any] = {"dtype": dtype, "iterations": 20, "record": "trajectory", "eval_every": 5}
        algorithm = SGD(step=STEP, coding=Repetition(r=3), momentum=0.5)
        alone = simulate(data, parts, algorithm=algorithm, **common)
        plain = simulate(data, parts, algorithm=SGD(step=STEP, momentum=0.5), **common)
        assert apart(alone, plain) <= 100 * np.finfo(dtype).eps
        for attack in (*(kind() for kind in attacks.REGISTRY.values()), Anything()):
            run = simulate(data, parts, algorithm=algorithm, attack=attack, byzantine=[0, 5], **common)
            assert same_bits(run.x0, alone.x0), (attack, dtype)


def test_two_attackers_in_one_group_break_repetition() -> None:
    data = small_data()
    parts = partition.iid(data.train_y, 6, seed=3)
    common: dict[str, Any] = {"iterations": 3, "rho": 0.0, "algorithm": SGD(step=STEP, coding=Repetition(r=3))}
    colluding = simulate(data, parts, attack=attacks.SameValue(6.0), byzantine=[3, 4], **common)
    alone = simulate(data, parts, **common)
    assert np.abs(colluding.x0 - alone.x0).min() > 0.5  # they have the majority of their group
    with pytest.warns(RuntimeWarning, match="a gradient counts as zero: Repetition: group 1, workers 3 to 5: no"):
        apart_from_each_other = simulate(data, parts, attack=attacks.Gaussian(), byzantine=[3, 4], **common)
    assert same_bits(apart_from_each_other.x0, np.zeros_like(alone.x0))


def test_more_attackers_than_declared_take_the_gradient_away_and_not_more() -> None:
    settings: dict[str, Any] = {"loss": quadratic(), "algorithm": SGD(coding=Cyclic(f=1)), "n_byzantine": 2}
    for attack in (attacks.SignFlip(), attacks.NonFinite()):
        with pytest.warns(RuntimeWarning, match="a gradient counts as zero: Cyclic: "):
            run = simulate(None, None, attack=attack, iterations=4, x0_init=np.ones(13), rho=0.0, **settings)
        assert same_bits(run.x0, np.ones_like(run.x0)), attack


def test_messages_of_poisoned_workers_are_made_of_flipped_labels_alone() -> None:
    code = Cyclic(f=2)
    run = experiment(
        dataset=small_data(), parts=small_parts(), algorithm=SGD(coding=code), attack=attacks.LabelFlip(),
        byzantine=[1, 4], n_byzantine=2, batch_size=5,
    )  # fmt: skip
    x0 = np.random.default_rng(0).standard_normal(18)
    gradients = [
        np.stack([loss.gradient(x0, worker=worker, k=3) for worker in range(M)])
        for loss in (run.loss, run.loss.poisoned(range(M)))
    ]
    clean, flipped = (redundancy.encode(G, code) for G in gradients)
    flipped[[0, 2, 3, 5, 6]] = clean[[0, 2, 3, 5, 6]]
    assert same_bits(Workers(run, range(M)).answer(3, x0), flipped)
    for mine in ([0, 1], [4], [5, 6]):  # wherever the workers are
        assert same_bits(Workers(run, mine).answer(3, x0), flipped[mine]), mine


def test_every_gradient_is_computed_once() -> None:
    class Counting:
        dim, n_workers = 2, M

        def __init__(self) -> None:
            self.asked: list[tuple[int, int]] = []

        def gradient(self, x: Array, *, worker: int, k: int) -> Array:
            self.asked.append((k, worker))
            return x - worker

    for code in (Cyclic(f=2), Repetition(r=7)):
        loss = Counting()
        algorithm = SGD(step=steps.constant(1.0), coding=code)
        run = simulate(None, None, loss=loss, algorithm=algorithm, iterations=2, rho=0.0)
        assert sorted(loss.asked) == [(k, worker) for k in (1, 2) for worker in range(M)], code
        np.testing.assert_allclose(run.x0, 3.0, rtol=1e-6)


def test_the_same_bits_along_every_path(tmp_path: Path) -> None:
    data, parts = small_data(), small_parts()
    settings: dict[str, Any] = {"algorithm": SGD(step=STEP, coding=Cyclic(f=2), momentum=0.9), "n_byzantine": 2}
    settings |= {"iterations": 9, "batch_size": 4, "seed": 3}
    for attack in (attacks.ALIE(), attacks.MinMax(), attacks.LabelFlip(), attacks.NonFinite(), Anything()):
        base = simulate(data, parts, attack=attack, threads=1, **settings)
        kept = tmp_path / f"{type(attack).__name__}.npz"
        simulate(data, parts, attack=attack, checkpoint=kept, eval_every=2, **settings | {"iterations": 4})
        runs = {
            "rounds": engines.simulate(data, parts, attack=attack, **settings),
            "threads": simulate(data, parts, attack=attack, threads=3, **settings),
            "resumed": simulate(data, parts, attack=attack, checkpoint=kept, eval_every=2, **settings),
        }
        for path, run in runs.items():
            assert same_bits(base.x0, run.x0), (attack, path)
            assert base.eliminated == run.eliminated, (attack, path)
        rounded = engines.simulate(data, parts, attack=attack, wire="float32", dtype="float64", **settings)
        np.testing.assert_allclose(rounded.x0, base.x0, atol=1e-3)
    assert base.config["algorithm"]["coding"] == "Cyclic(f=2)"


def test_what_an_attack_sees_of_longer_messages() -> None:
    settings: dict[str, Any] = {"loss": quadratic(), "n_byzantine": 1, "iterations": 2}
    for kind in (attacks.SmallValue, attacks.LargeValue):
        with pytest.raises(ValueError, match=f"attack: {kind.__name__} compares messages with x0, expected"):
            simulate(None, None, algorithm=SGD(coding=Cyclic()), attack=kind(), **settings)
        simulate(None, None, algorithm=SGD(coding=Repetition(r=7)), attack=kind(), **settings)
    shapes = []

    def own(messages: Array, *, x0: Array, byzantine: Sequence[int], **_: Any) -> Array:
        shapes.append((messages.shape, x0.shape))
        return -messages[list(byzantine)]

    simulate(None, None, algorithm=SGD(coding=Cyclic()), attack=own, **settings)
    assert shapes == [((7, 26), (13,))] * 2
    own.uses_x0 = True  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="attack: own compares messages with x0"):
        simulate(None, None, algorithm=SGD(coding=Cyclic()), attack=own, **settings)


def test_what_says_that_it_does_not_use_x0_does_not() -> None:
    messages = np.random.default_rng(0).standard_normal((7, 5))
    for name, kind in attacks.REGISTRY.items():
        made = [
            kind()(messages, x0=x0, k=3, byzantine=[5, 6], rng=np.random.default_rng(1), algorithm=SGD())
            for x0 in (np.zeros(5), np.full(5, 7.0))
        ]
        assert same_bits(*made) != kind.uses_x0, name


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"rule": "median"}, ValueError, 'rule: expected "mean" with coding, which recovers the mean exactly, got'),
        ({"variance_reduction": "saga"}, ValueError, "variance_reduction: expected None with coding, got 'saga'"),
        ({"ideal": True}, ValueError, "ideal: expected False with coding"),
        ({"coding": "cyclic"}, TypeError, "coding: expected a code of byzadmm.redundancy, such as Cyclic.*, got str"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        SGD(**({"coding": Cyclic()} | settings))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"algorithm": SGD(coding=Cyclic(f=3))}, r"f: expected less than 3 for m=7 workers"),
        ({"algorithm": SGD(coding=Repetition(r=3))}, "r: expected a divisor of the number of workers, m=7, got 3"),
        ({"participation": 0.5}, "coding: expected the messages of all 7 workers in every round, got 4"),
        ({"local_steps": 2}, "local_steps: expected 1 for SGD with these settings, got 2"),
    ],
)
def test_runs_that_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate(None, None, **{"loss": quadratic(), "algorithm": SGD(coding=Cyclic())} | settings)
