"""``--attack FILE.py:NAME``: attacks from a user's file, on the command line, in settings files and over MPI."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from byzadmm import Result, catalogue, figures
from support.arrays import same_bits
from support.commands import QUICK, TWO_ALGORITHMS
from support.mpirun import mpirun, needs_mpi

OWN = '''\
"""Attacks of the tests."""
from __future__ import annotations

from dataclasses import dataclass

from beside import FACTOR
from byzadmm.attacks import SignFlip


def flip(messages, *, x0, k, byzantine, rng, algorithm):
    """The sign-flipping attack once more."""
    return FACTOR * messages[byzantine]


@dataclass
class Flip:
    """The same with a setting."""

    factor: float = -3.0
    sees = "own"

    def __call__(self, messages, *, byzantine, **_):
        return self.factor * messages[byzantine]


@dataclass
class Scaled:
    factor: float
    __call__ = Flip.__call__

    def __post_init__(self):
        if self.factor == 0:
            raise ValueError("factor: expected another number, got 0")


class Family:
    flip = staticmethod(flip)


class Silent:
    pass


built_in = SignFlip(-3.0)
number = 3


def divides(messages, **_):
    return messages * (1 // 0)


def all_rows(messages, **_):
    return messages
'''


def line_of(text):
    """The number of the line of OWN that has this text."""
    return next(number for number, line in enumerate(OWN.splitlines(), 1) if text in line)


@pytest.fixture
def own(tmp_path):
    folder = tmp_path / "own files"
    folder.mkdir()
    (folder / "beside.py").write_text("FACTOR = -3.0\n")
    path = folder / "my.attacks.py"
    path.write_text(OWN)
    yield path
    sys.modules.pop("beside", None)


def curves(ended):
    assert ended.code == 0, ended.err
    return [run["curves"] for run in json.loads(ended.out)["runs"]]


def test_every_form_of_an_attack_gives_the_run_of_the_built_in_one(call, own):
    words = ("run", "--algorithm", "admm", "median", *QUICK, "--json", "--quiet", "--attack")
    expected = curves(call(*words, "sign-flip:-3"))
    before = list(sys.path)
    for name in ("flip", "Flip", "Flip:-3", "Scaled:factor=-3", "Family.flip", "built_in"):
        assert curves(call(*words, f"{own}:{name}")) == expected, name
    assert curves(call(*words, "own files/my.attacks.py:flip")) == expected
    assert sys.path == before


def test_the_table_names_the_attack(call, own):
    os.chdir(own.parent)
    ended = call("run", "--algorithm", "rsa", *QUICK, "--no-plot", "--attack", "my.attacks.py:flip")
    assert ended.out.startswith("digits, my.attacks.py:flip attack, 8 of 20 workers Byzantine")


def test_a_windows_path_is_a_file_and_a_name():
    cases = {
        r"C:\my.files\a.py:bias": (r"C:\my.files\a.py", "bias", ""),
        r"C:\my.files\a.py:Bias.weak:size=2": (r"C:\my.files\a.py", "Bias.weak", "size=2"),
        "a.py.d/b.py:x": ("a.py.d/b.py", "x", ""),
        "a.py": ("a.py", "", ""),
        "gaussian:50": None,
        "worst-case:family=alie": None,
    }
    assert {text: catalogue.split_own(text) for text in cases} == cases


REFUSED = {
    "nothing.py:flip": "attack: nothing.py: no such file",
    "own.py": "attack: own.py: expected FILE.py:NAME; it has flip, Flip, Scaled, Family, Silent, built_in, divides,",
    "own.py:flop": "attack: own.py: no 'flop' in it; it has flip, Flip, ",
    "own.py:Family.flop": "attack: own.py: no 'Family.flop' in it",
    "own.py:number": "attack: own.py:number: expected a function, an attack or a class, got int",
    "own.py:Silent": "attack: own.py:Silent: expected a class with __call__, the attack; it has none",
    "own.py:Scaled": "attack: own.py:Scaled needs factor, as in own.py:Scaled:factor=1",
    "own.py:Scaled:0": f"attack: own.py, line {line_of('raise')}: ValueError: factor: expected another number, got 0",
    "own.py:flip:3": "attack: own.py:flip takes no settings; got '3'",
    "own.py:Flip:size=3": "attack: own.py:Flip takes factor; got 'size=3'",
    "own.py:divides": f"attack: own.py, line {line_of('1 // 0')}: ZeroDivisionError: ",
    "own.py:all_rows": "attack: expected messages of shape (8, 650), got (20, 650)",
    "imports.py:x": "attack: imports.py, line 2: ModuleNotFoundError: No module named 'byzadmm_nowhere'",
    "syntax.py:x": "attack: syntax.py, line 3: SyntaxError: ",
    "ends.py:x": "attack: ends.py, line 2: SystemExit: 3",
    "binary.py:x": "attack: binary.py: ",
}


def test_what_is_wrong_with_a_file_is_one_line(refused, own):
    os.chdir(own.parent)
    Path("own.py").write_text(OWN)
    Path("imports.py").write_text("\nimport byzadmm_nowhere\n")
    Path("syntax.py").write_text("\n\ndef x(:\n")
    Path("ends.py").write_text("import sys\nsys.exit(3)\n")
    Path("binary.py").write_bytes(b"\0\xff")
    for attack, message in REFUSED.items():
        said = refused("run", "--algorithm", "median", *QUICK, "--no-plot", "--quiet", "--attack", attack)
        assert said.startswith(message), attack


def test_a_settings_file_names_an_attack_beside_it(call, own):
    path = own.parent / "two.toml"
    written = {
        'attack = "my.attacks.py:flip"': "flip",
        'attack = "my.attacks.py:Scaled:-3"': "Scaled(factor=-3)",
        'attack = { name = "my.attacks.py:Scaled", factor = -3.0 }': "Scaled(factor=-3.0)",
        'attack = "sign-flip:-3"': "SignFlip",
    }
    found = []
    for line, name in written.items():
        path.write_text(TWO_ALGORITHMS.replace('attack = { name = "sign-flip" }', line))
        ended = call("run", path, "--json", "--quiet")
        found.append(curves(ended))
        assert json.loads(ended.out)["attack"][0]["name"] == name, line
    assert all(one == found[0] for one in found)
    path.write_text(path.read_text().replace('"sign-flip:-3"', '["my.attacks.py:flip", "my.attacks.py:Flip", "none"]'))
    report = figures.reproduce([path], seeds=1, out="out", progress=False)
    assert report.panels["two"].plots == ["flip attack", "Flip attack", "no attack"]
    assert report.panels["two"].finals()[1]["mean"] == report.panels["two"].finals()[3]["mean"]
    path.write_text(TWO_ALGORITHMS.replace('{ name = "sign-flip" }', '"my.attacks.py:divides"'))
    report = figures.reproduce([path], seeds=1, out="out", progress=False)
    said = f"attack: my.attacks.py, line {line_of('1 // 0')}: ZeroDivisionError: integer division or modulo by zero"
    assert report.failed == {"two": said}


def test_a_settings_file_with_a_wrong_attack(refused, own):
    path = own.parent / "two.toml"
    for line, message in {
        '"my.attacks.py:flop"': "attack: my.attacks.py: no 'flop' in it",
        '{ name = "my.attacks.py:flip", factor = 3 }': "attack.factor: unknown key",
        '{ name = "none.py:flip" }': "attack: none.py: no such file",
        "3": "attack: expected a string or a table, got int",
    }.items():
        path.write_text(TWO_ALGORITHMS.replace('{ name = "sign-flip" }', line))
        assert refused("run", path).startswith(f"{path}: {message}"), line


@pytest.mark.slow
@needs_mpi
def test_every_rank_reads_the_file(call, own):
    for name in ("flip", "Flip"):  # sees all messages, sees its own
        words = ("run", "--algorithm", "admm", *QUICK, "--no-plot", "--attack", f"{own}:{name}")
        run = mpirun(3, "-m", "byzadmm", "mpi", *words, "--out", "ours.npz")
        assert run.returncode == 0, run.stderr
        assert call(*words, "--out", "whole.npz").code == 0
        ours, whole = Result.load("ours.npz"), Result.load("whole.npz")
        assert same_bits(ours.x0, whole.x0), name
        assert ours.config == whole.config | {"wire": "float32"}
    run = mpirun(3, "-m", "byzadmm", "mpi", "run", "--attack", "nothing.py:flip", *QUICK, "--no-plot")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.count("byzadmm: error: attack: nothing.py: no such file") == 1
