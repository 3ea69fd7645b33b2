"""The digest of a run: the same in every process for the same arguments, another one after any change."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byzadmm
from byzadmm import SGD, aggregators, datasets, losses, partition, simulate, steps
from byzadmm.study.identity import Identity

CLASS = """
class Base:
    shift = {0}
    class Inner:
        def get(self): return {1}
class A(Base):
    __slots__ = ("own",)
    rate = {2}
    table = dict(a=[{3}])
    def __init__(self, own={4}):
        self.own, self.call = own, lambda m: m + {5}
    @property
    def p(self): return {6}
    @functools.cached_property
    def c(self): return {7}
    @staticmethod
    def s(): return {8}
    @classmethod
    def k(cls): return {9}
    def __call__(self, m, **_): return self.own * m
a = A({10})
"""
FUNCTION = """
@dataclasses.dataclass
class Settings:
    width: int = {0}
SETTINGS = Settings({1})
FACTOR, TABLE, ARRAY = {2}, dict(a={3}), np.full(3, {4})
class Helper:
    def get(self): return {5}
def deep(m): return m + {6}
def helper(m): return deep(m) + Helper().get()
def decorated(f):
    @functools.wraps(f)
    def inner(*a, **k): return f(*a, **k) + {7}
    return inner
def made(closed, values):
    @decorated
    def a(m, *, byzantine, k, scale={8}, **_):
        "Reads its module, what it closes over and its defaults."
        try:
            m = m if k in {{1, 2, "three", {9}}} else helper(m)
        except KeyError:
            return [x + {10} for x in m]
        return m * FACTOR * TABLE["a"] * ARRAY[0] * closed * values["a"] * Settings().width * SETTINGS.width * scale
    return a
a = functools.partial(made({11}, dict(a={12}, b=set("xyz"))), extra={13})
"""
HEAD = "import dataclasses, functools\nimport numpy as np\n"
ORDERS = [
    "def a(m, *, byzantine, k, **_): return both(byzantine, k)",
    "def a(m, *, k, byzantine, **_): return both(k, byzantine)",
]


def sources() -> list[str]:
    """Scripts that define ``a``, each with a meaning of its own."""
    found = list(ORDERS)
    for text, count in ((CLASS, 11), (FUNCTION, 14)):
        found.append(HEAD + text.format(*[20] * count))
        found += [HEAD + text.format(*[30 if n == at else 20 for n in range(count)]) for at in range(count)]
    return found


SCRIPT = """
import json, sys
from byzadmm.study.identity import Identity
out = []
for text in json.load(sys.stdin):
    names = {"__name__": "__main__"}
    exec(text, names)
    out.append([Identity().digest({"attack": None, key: names["a"]}) for key in ("attack", "loss", "on_evaluation")])
print(json.dumps(out))
"""


def digests(hash_seed: int) -> list[list[str]]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        input=json.dumps(sources()),
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
    )
    made: list[list[str]] = json.loads(done.stdout)
    return made


def test_a_changed_function_or_class_has_another_digest_in_every_process_the_same() -> None:
    first, second = digests(1), digests(2)
    texts = sources()
    for at, (one, other) in enumerate(zip(first, second, strict=True)):
        assert one == other, texts[at]
    for kind in range(3):
        seen: dict[str, str] = {}
        for text, found in zip(texts, first, strict=True):
            assert found[kind] not in seen, f"{text}\nand{seen[found[kind]]}"
            seen[found[kind]] = text


def test_objects_have_another_digest_after_any_change() -> None:
    data = datasets.load("digits")
    parts = partition.iid(data.train_y, 4, seed=0)
    scaled = dataclasses.replace(data, scale=1.0)
    ones = np.ones(4)
    rules = [
        "krum",
        aggregators.Krum(f=1),
        aggregators.Krum(f=2),
        aggregators.make("nnm+krum", f=1),
        aggregators.make("nnm+krum", f=2),
        [aggregators.NNM(f=1), np.median],
        [aggregators.NNM(f=2), np.median],
    ]
    cases: list[dict[str, Any]] = [
        *({"algorithm": SGD(rule=rule)} for rule in rules),
        *({"algorithm": SGD(step=step)} for step in (steps.constant(1.0), steps.power(1.0), steps.power(1.0, 0.4))),
        {"loss": losses.Softmax(data, parts)},
        {"loss": losses.Softmax(data, parts, seed=1)},
        {"loss": losses.Softmax(data, parts, 31)},
        {"loss": losses.Softmax(scaled, parts)},
        {"loss": losses.Softmax(data, parts[::-1])},
        *({"loss": losses.Quadratic(ones, ones, noise)} for noise in (0.0, 0.1)),
        *({"x0_init": np.full(650, value)} for value in (0.0, 1.0)),
        {"dataset": data},
        {"dataset": scaled},
        {"dtype": "float64"},
    ]
    found = [Identity().digest(case) for case in cases]
    assert found == [Identity().digest(case) for case in cases]
    twice = [case for case, name in zip(cases, found, strict=True) if found.count(name) > 1]
    assert not twice


def test_a_checkpoint_of_a_loss_with_another_seed_is_no_start(tmp_path: Path) -> None:
    data = datasets.load("digits")
    parts = partition.iid(data.train_y, 4, seed=0)
    settings: dict[str, Any] = {"algorithm": SGD(), "iterations": 2, "checkpoint": tmp_path / "state.npz"}
    simulate(None, None, loss=losses.Softmax(data, parts, seed=0), **settings)
    for other in (
        losses.Softmax(data, parts, seed=1),
        losses.Softmax(dataclasses.replace(data, scale=1.0), parts, seed=0),
    ):
        with pytest.raises(ValueError, match="belongs to another run"):
            simulate(None, None, loss=other, **settings)


class Stop:
    def __init__(self, at: int) -> None:
        self.at = at

    def __call__(self, k: int, metrics: dict[str, Any]) -> bool:
        return k >= self.at


def test_a_run_that_another_setting_stopped_is_not_found(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"algorithms": "sgd", "attacks": None, "seeds": 1, "iterations": 30, "eval_every": 10}
    for at in (10, 20, 10):
        study = byzadmm.compare("digits", **settings, on_evaluation=Stop(at), checkpoint=tmp_path)
        assert [row["iterations"] for row in study.rows()] == [at]
