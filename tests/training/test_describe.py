"""Parts of a run in words: the same in every process, different for different settings."""

from __future__ import annotations

import functools
import json
import os
import random
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import SGD, aggregators, attacks, datasets, losses, simulate, steps
from byzadmm._internal.description import describe, settings_of
from support.runs import Q, quadratic, small_data, small_parts


class Thing:
    """A user's object without a __repr__."""

    def __init__(self, **held: Any) -> None:
        self.__dict__ |= held

    def __call__(self, *_: Any) -> float:
        return 0.1

    def method(self) -> None: ...

    @functools.cached_property
    def kept(self) -> int:
        return 3


class Slotted:
    __slots__ = ("a", "unset")

    def __init__(self, a: Any) -> None:
        self.a = a


class OneSlot:
    __slots__ = "a"

    def __init__(self, a: Any) -> None:
        self.a = a


@dataclass
class Record:
    a: Any
    b: int = 2


def ring() -> Thing:
    thing = Thing()
    thing.__dict__["me"] = [thing]
    return thing


def deep(levels: int) -> Any:
    part: Any = Thing()
    for _ in range(levels):
        part = Thing(inner=part)
    return part


PLAIN: list[tuple[Any, Any]] = [
    (None, None),
    (True, True),
    (3, 3),
    (0.5, 0.5),
    ("name", "name"),
    (np.float32(0.5), 0.5),
    ((1, "a", len), [1, "a", "len"]),
    (Record(np.int64(1)), "Record(a=1, b=2)"),
    (Thing(b=2, a="x"), "Thing(a='x', b=2)"),
    (Thing(), "Thing()"),
    (Slotted(1), "Slotted(a=1)"),
    (OneSlot(1), "OneSlot(a=1)"),
    (Thing, "Thing"),
    (Thing(a=1).method, "Thing(a=1).method"),
    (functools.partial(max, 3, key=abs), "partial(max, 3, key=abs)"),
    (Thing(s={2, 1}, d={"b": 1, "a": (2,)}), "Thing(d={'a': [2], 'b': 1}, s={1, 2})"),
    (ring(), "Thing(me=[...])"),
    (range(3), "range(0, 3)"),
    (steps.inv_sqrt(10, 2), "InvSqrt(c0=10.0, c1=2.0)"),
]


@pytest.mark.parametrize(("part", "expected"), PLAIN, ids=[str(expected) for _, expected in PLAIN])
def test_what_is_said(part: Any, expected: Any) -> None:
    assert describe(part) == expected
    assert json.loads(json.dumps(describe(part))) == expected


PAIRS: dict[str, tuple[Any, Any]] = {
    "array": (np.zeros(5000), np.eye(1, 5000, 2500)[0]),
    "dtype": (np.zeros(3), np.zeros(3, np.float32)),
    "shape": (np.zeros((2, 3)), np.zeros((3, 2))),
    "objects in an array": (np.array([Thing(a=1)]), np.array([Thing(a=2)])),
    "array in an object": (Thing(a=np.zeros(5000)), Thing(a=np.ones(5000))),
    "long list": ([0.0] * 1000, [0.0] * 999 + [1.0]),
    "long text": (Thing(a="x" * 1000), Thing(a="x" * 999 + "y")),
    "many attributes": (Thing(**{f"a{i}": 0 for i in range(99)}), Thing(**{f"a{i}": i // 98 for i in range(99)})),
    "argument of a partial": (functools.partial(max, np.zeros(9)), functools.partial(max, np.ones(9))),
    "generator": (np.random.default_rng(1), np.random.default_rng(2)),
    "generator of the standard library": (random.Random(1), random.Random(2)),
    "center": tuple(aggregators.CenteredClipping(tau=1, center=c) for c in (np.zeros(5000), np.eye(1, 5000, 2500)[0])),
    "20 levels": (deep(20), deep(21)),
}


@pytest.mark.parametrize("what", PAIRS)
def test_different_settings_are_described_differently(what: str) -> None:
    first, second = map(describe, PAIRS[what])
    assert first != second
    assert len(str(first)) <= 1000
    assert " at 0x" not in str(first)
    assert json.loads(json.dumps(first)) == first


def test_order_and_layout_do_not_count() -> None:
    x = np.arange(6.0).reshape(2, 3)
    assert describe(x) == describe(np.asfortranarray(x)) == describe(x.copy())
    assert describe(Thing(a=1, b=2)) == describe(Thing(b=2, a=1))


def test_what_was_computed_is_no_setting() -> None:
    thing = Thing(a=1)
    before = describe(thing)
    assert thing.kept == 3
    assert describe(thing) == before


def test_no_end_and_many_paths_are_no_trouble() -> None:
    wide: Any = Thing()
    for _ in range(35):
        wide = Thing(left=wide, right=wide)
    assert describe(wide).startswith("Thing(")
    assert describe(deep(5000)).startswith("Thing(")


def test_an_object_that_only_prints_itself_loses_its_address() -> None:
    assert re.fullmatch(r"<memory>", describe(memoryview(b"a")))


def test_tensors_count_by_their_numbers(torch: Any) -> None:
    x = torch.arange(3.0)
    assert describe(x) == describe(x.clone().requires_grad_()) == describe(x.numpy())
    assert describe(x) != describe(x + 1)
    assert "0x" not in describe(torch.empty(3, device="meta"))


def test_attributes_of_an_attack_that_is_no_dataclass() -> None:
    class Mine(attacks.SignFlip):
        def __init__(self, secret: int) -> None:
            object.__setattr__(self, "scale", -1.0)
            object.__setattr__(self, "secret", secret)

    assert Mine(4).describe() == {"name": "Mine", "scale": -1.0, "secret": 4}
    assert settings_of(Mine(4)) == {"scale": -1.0, "secret": 4}


@pytest.mark.parametrize("rule", [None, Thing(a=1), [Thing(a=1), functools.partial(np.median, axis=0)]])
def test_worst_case_of_a_partial(rule: Any) -> None:
    family = functools.partial(attacks.SignFlip)
    described = attacks.WorstCase(family, rule, low=-2, high=0).describe()
    assert described["family"] == "partial(SignFlip)"
    expected = {0: None, 1: "Thing(a=1)", 2: "Thing(a=1)+partial(median, axis=0)"}
    assert described["rule"] == expected[0 if rule is None else 2 if isinstance(rule, list) else 1]


# --- checkpoints -----------------------------------------------------------------------------------------------------


class Forger:
    def __init__(self, size: float) -> None:
        self.size = size

    def __call__(self, messages: Any, *, byzantine: Any, **_: Any) -> Any:
        return np.full((len(byzantine), messages.shape[1]), self.size)


class Centre:
    """A loss whose settings are two arrays."""

    dim, n_workers = 2000, 7

    def __init__(self, at: float = 1.0) -> None:
        self.at = np.full(self.dim, at)
        self.at[:900] = 0.0

    def gradient(self, x: Any, *, worker: int, k: int) -> Any:
        return x - self.at


def weights(last: float) -> Any:
    return np.append(np.ones(6), last)


def clipping(value: float) -> SGD:
    center = np.zeros(13)
    center[6] = value
    return SGD(rule=aggregators.CenteredClipping(tau=1, center=center), step=steps.constant(0.1))


TWO: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "attack's settings": ({"attack": Forger(1.0)}, {"attack": Forger(2.0)}),
    "partial's arguments": tuple(
        {"algorithm": SGD(step=functools.partial(pow, 0.1), rule="median", f=n)} for n in (0, 1)
    ),  # type: ignore[dict-item]
    "center": ({"algorithm": clipping(0.0)}, {"algorithm": clipping(1e-9)}),
    "weights": tuple(
        {"algorithm": SGD(rule=aggregators.Average(weights=weights(w)), step=steps.constant(0.1))} for w in (1.0, 2.0)
    ),  # type: ignore[dict-item]
    "loss": ({"loss": Centre(1.0)}, {"loss": Centre(2.0)}),
    "step": tuple({"algorithm": SGD(step=functools.partial(max, a))} for a in (10, 20)),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("what", TWO)
def test_a_checkpoint_of_other_settings_is_refused(what: str, tmp_path: Path) -> None:
    first, second = TWO[what]
    given: dict[str, Any] = {"loss": quadratic(), "algorithm": SGD(step=steps.constant(0.1)), "n_byzantine": Q}
    given |= {"iterations": 2, "checkpoint": tmp_path / "run.npz"}
    simulate(None, None, **(given | first))
    simulate(None, None, **(given | first))
    with pytest.raises(ValueError, match=r"run.npz belongs to another run"):
        simulate(None, None, **(given | second))


@pytest.mark.parametrize("name", ["test_x", "test_y"])
def test_a_checkpoint_of_another_test_set_is_refused(name: str, tmp_path: Path) -> None:
    data, given = small_data(), {"algorithm": SGD(), "iterations": 2, "checkpoint": tmp_path / "run.npz"}
    simulate(data, small_parts(), **given)  # type: ignore[arg-type]
    arrays = {part: getattr(data, part).copy() for part in ("train_x", "train_y", "test_x", "test_y")}
    arrays[name][-1] = 1 - arrays[name][-1].clip(0, 1)
    other = datasets.from_arrays(**arrays, n_classes=3, scale=data.scale, name=data.name)
    with pytest.raises(ValueError, match=r"run.npz belongs to another run"):
        simulate(other, small_parts(), **given)  # type: ignore[arg-type]


SCRIPT = """
import functools, sys
from test_describe import *
a = SGD(step=functools.partial(min, 0.1), rule=[Shrink(0.5), functools.partial(np.median, axis=0)])
b = SGD(step=Thing(a=1), rule="median")
for number, (algorithm, rule) in enumerate([(a, Shrink(2.0)), (b, None)]):
    attack = attacks.WorstCase("sign-flip", [rule, "mean"] if rule else None, grid=2, refine=0)
    run = simulate(None, None, algorithm=algorithm, attack=attack, loss=Centre(), n_byzantine=2,
                   iterations=int(sys.argv[2]), eval_every=2, checkpoint=f"{sys.argv[1]}{number}.npz")
    print(run.iterations.tolist())
"""


class Shrink:
    def __init__(self, by: float) -> None:
        self.by = by

    def __call__(self, X: Any) -> Any:
        return X * self.by


@pytest.mark.slow
def test_objects_of_ones_own_resume_in_another_process(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    for iterations in (2, 4):
        command = [sys.executable, "-c", SCRIPT, str(tmp_path / "run"), str(iterations)]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
    assert run.stdout.split("\n")[:2] == ["[0, 2, 4]", "[0, 2, 4]"]


def test_the_loss_of_a_run_is_readable() -> None:
    run = simulate(None, None, loss=losses.Quadratic([1.0], [[2.0]], 0.5), algorithm=SGD(), iterations=1)
    assert re.fullmatch(
        r"Quadratic\(a=array\(float64, \(1, 1\), \w{16}\), b=array\(.*\), noise=0.5\)", run.config["loss"]
    )
