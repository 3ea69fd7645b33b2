"""Studies on disk: saved and loaded, resumed after a kill, extended by a row, and what makes a run another run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import byzadmm
from byzadmm import SGD, Study, attacks, datasets, steps
from byzadmm.study.identity import Identity, code_digest
from support.runs import equal_runs

Array = npt.NDArray[Any]
SHORT: dict[str, Any] = {"dataset": "digits", "iterations": 20, "eval_every": 10, "seeds": 2}


def same(one: Study, other: Study) -> bool:
    return one.cells() == other.cells() and all(
        equal_runs(one.results[cell], other.results[cell]) for cell in one.results
    )


def evaluations(**arguments: Any) -> int:
    """How many evaluations a comparison makes: none for what it finds in its folder."""
    seen: list[int] = []
    byzadmm.compare(**SHORT, **arguments, on_evaluation=lambda k, metrics: seen.append(k))
    return len(seen)


def test_saved_and_loaded_is_the_same_study(tmp_path: Path) -> None:
    study = byzadmm.compare(
        **SHORT, algorithms=["ideal", "krum"], attacks=["none", "alie"], n_byzantine=[8, 9], tune=1, rho=np.float32(0.5)
    )
    study.save(tmp_path / "study")
    loaded = Study.load(tmp_path / "study")
    assert same(study, loaded)
    assert loaded.missing == study.missing
    assert loaded.table() == study.table()
    for name in ("title", "axes", "settings", "labels", "kinds", "ideal", "seconds", "tuned"):
        assert getattr(loaded, name) == getattr(study, name), name
    assert loaded.rows() == study.rows() or str(loaded.rows()) == str(study.rows())  # NaN differs from itself
    whole = json.loads((tmp_path / "study" / "study.json").read_text("utf-8"))
    foreign = [whole | {"axes": {}}, whole | {"axes": whole["axes"] | {"seed": [7]}}, whole | {"axes": 3}]
    for damage in ("{", '{"byzadmm": "study"}', "[]", '{"byzadmm": "panel"}', *map(json.dumps, foreign)):
        (tmp_path / "study" / "study.json").write_text(damage, "utf-8")
        with pytest.raises(ValueError, match="not a study of byzadmm"):
            Study.load(tmp_path / "study")
    with pytest.raises(FileNotFoundError):
        Study.load(tmp_path / "nowhere")


def test_a_study_that_is_being_replaced_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (byzadmm.compare(**SHORT, algorithms="sgd", attacks=None, batch_size=n) for n in (4, 5))
    first.save(tmp_path)

    def killed(path: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("byzadmm.study.study.replacing", killed)
    with pytest.raises(KeyboardInterrupt):
        second.save(tmp_path)
    assert same(Study.load(tmp_path), first)


def test_a_file_that_the_record_names_stays_inside_the_folder(tmp_path: Path) -> None:
    study = byzadmm.compare(**SHORT, algorithms="sgd", attacks=None)
    study.save(tmp_path / "study")
    record = tmp_path / "study" / "study.json"
    about = json.loads(record.read_text("utf-8"))
    about["results"][0][-1] = "../../elsewhere.npz"
    record.write_text(json.dumps(about), "utf-8")
    study.results[study.cells()[0]].save(tmp_path / "elsewhere.npz")
    with pytest.raises(FileNotFoundError):
        Study.load(tmp_path / "study")


def test_a_finished_study_computes_only_what_is_new(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    settings: dict[str, Any] = {"attacks": ["none", "alie"], "checkpoint": folder}
    assert evaluations(algorithms=["ideal", "median"], **settings) == 3 * (2 + 4)
    assert evaluations(algorithms=["ideal", "median"], **settings) == 0
    assert evaluations(algorithms=["ideal", "median", "rsa"], **settings) == 3 * 4
    assert evaluations(algorithms=["rsa"], **settings | {"attacks": "alie"}) == 0
    assert evaluations(algorithms=["rsa"], **settings, rho=0.5) == 3 * 4
    assert not list((folder / "states").iterdir())
    kept = byzadmm.compare(**SHORT, algorithms=["ideal", "median", "rsa"], **settings)
    assert same(kept, byzadmm.compare(**SHORT, algorithms=["ideal", "median", "rsa"], attacks=["none", "alie"]))
    assert same(kept, Study.load(folder))


def test_a_damaged_result_is_computed_anew(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"algorithms": "sgd", "attacks": None, "checkpoint": tmp_path, "jobs": 1}
    study = byzadmm.compare(**SHORT, **settings)
    file = sorted((tmp_path / "results").iterdir())[0]
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.warns(RuntimeWarning, match="a result is computed anew"):
        again = byzadmm.compare(**SHORT, **settings)
    assert same(study, again)
    assert evaluations(**settings) == 0


def test_a_function_counts_by_its_code(tmp_path: Path) -> None:
    def made(factor: float, inside: bool = False) -> Any:
        if inside:

            def attack(messages: Array, *, byzantine: list[int], **_: Any) -> Array:
                out: Array = factor * messages[byzantine] + 0.0
                return out

        else:

            def attack(messages: Array, *, byzantine: list[int], **_: Any) -> Array:
                out: Array = factor * messages[byzantine]
                return out

        return attack

    settings: dict[str, Any] = {"algorithms": "sgd", "checkpoint": tmp_path}
    assert evaluations(attacks=made(2.0), **settings) == 6
    assert evaluations(attacks=made(2.0), **settings) == 0
    assert evaluations(attacks=made(3.0), **settings) == 6  # what it closes over
    assert evaluations(attacks=made(2.0, inside=True), **settings) == 6  # its own code


def test_a_run_that_was_stopped_is_kept_for_the_function_that_stopped_it(tmp_path: Path) -> None:
    settings: dict[str, Any] = {**SHORT, "algorithms": "sgd", "attacks": None, "checkpoint": tmp_path}
    stopped = byzadmm.compare(**settings, on_evaluation=lambda k, metrics: k == 10)
    assert {row["iterations"] for row in stopped.rows()} == {10}
    assert {row["iterations"] for row in byzadmm.compare(**settings).rows()} == {20}
    again = byzadmm.compare(**settings, on_evaluation=lambda k, metrics: k == 10)
    assert {row["iterations"] for row in again.rows()} == {20}  # the whole run is there, and says more


def test_what_makes_a_run_another_run() -> None:
    data = datasets.load("digits")
    base: dict[str, Any] = {
        "dataset": data,
        "parts": [np.arange(5)],
        "algorithm": SGD(),
        "attack": None,
        "loss": "softmax",
    }
    other = {
        "dataset": datasets.load("digits", scale="raw"),
        "parts": [np.arange(1, 6)],
        "algorithm": SGD(step=steps.constant(0.5)),
        "attack": attacks.SignFlip(),
        "loss": lambda data, parts, **_: None,
        "seed": 1,
    }
    identity = Identity()
    names = [identity.digest(base), *(identity.digest(base | {key: value}) for key, value in other.items())]
    assert len(set(names)) == len(names)
    assert Identity().digest({**base, "parts": [np.arange(5)]}) == names[0]
    assert code_digest(attacks.SignFlip()) == code_digest(np.sum) == code_digest(3) == ""


SCRIPT = """
import sys, time
import byzadmm

def slow(messages, *, byzantine, **_):
    time.sleep(0.01)
    return -messages[byzantine]

print("begun", flush=True)
study = byzadmm.compare("digits", algorithms=["median", "sgd"], attacks=slow, seeds=2, iterations=100, eval_every=5,
                        checkpoint=sys.argv[1], jobs=1)
print(study.table(), flush=True)
"""


@pytest.mark.slow
def test_a_study_that_was_killed_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", SCRIPT]
    whole = subprocess.run([*command, str(tmp_path / "whole")], capture_output=True, text=True, check=True)
    folder = tmp_path / "killed"
    kills = 0
    for _ in range(20):
        with subprocess.Popen([*command, str(folder)], stdout=subprocess.PIPE, text=True) as job:
            assert job.stdout is not None
            assert job.stdout.readline() == "begun\n"
            time.sleep(1.2)
            if job.poll() is None:
                job.send_signal(signal.SIGKILL)
                kills += 1
            rest = job.stdout.read()
        if job.returncode == 0:
            break
    assert kills >= 2  # it was alive, and every time got further
    assert "begun\n" + rest == whole.stdout
