"""Checkpoints: resumed runs have the same bits; damaged or foreign files are never used."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import ADMM, attacks, losses, simulate
from byzadmm._internal import npz
from byzadmm.training import run as training_run
from support.arrays import same_bits
from support.runs import ATTACKS, KILLED, M, Q, equal_runs, quadratic, small_data, small_parts, small_run

SCRIPT = """
import sys
from support.runs import *
from byzadmm import simulate
name, path, iterations = sys.argv[1], sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
run = simulate(small_data(), small_parts(), algorithm=KILLED[name], attack=ATTACKS["gaussian"], n_byzantine=Q,
               iterations=iterations, eval_every=10, batch_size=4, checkpoint=path, record="trajectory")
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", KILLED)
def test_a_killed_run_resumes_to_the_same_bits(name: str, tmp_path: Path) -> None:
    path, iterations = tmp_path / "run.npz", 150 if name == "history" else 600  # SAGA's take longer
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    chance = random.Random(name)
    killed = 0
    for _ in range(2 if name == "history" else 1):  # the state of every kind is killed, one of them once more
        before = path.stat().st_mtime_ns if path.exists() else 0
        command = [sys.executable, "-c", SCRIPT, name, str(path), str(iterations)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            while process.poll() is None and (not path.exists() or path.stat().st_mtime_ns == before):
                time.sleep(0.001)
            time.sleep(chance.random() * 0.02)
            process.send_signal(signal.SIGKILL)
        killed += process.returncode == -signal.SIGKILL
    assert killed >= 1
    settings: dict[str, Any] = {"algorithm": KILLED[name], "attack": ATTACKS["gaussian"], "n_byzantine": Q}
    settings |= {"iterations": iterations, "eval_every": 10, "batch_size": 4, "record": "trajectory"}
    resumed = simulate(small_data(), small_parts(), checkpoint=path, **settings)
    unbroken = simulate(small_data(), small_parts(), **settings)
    assert equal_runs(resumed, unbroken)
    assert resumed.iterations.tolist() == unbroken.iterations.tolist()
    for curve in ("accuracy", "loss", "consensus_gap"):
        assert same_bits(getattr(resumed, curve), getattr(unbroken, curve))
    assert resumed.trajectory is not None
    assert unbroken.trajectory is not None
    assert all(same_bits(resumed.trajectory[key], unbroken.trajectory[key]) for key in unbroken.trajectory)


def test_resume_goes_on_where_the_checkpoint_ends(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    small_run(iterations=10, checkpoint=path)
    seen: list[tuple[int, int]] = []
    resumed = small_run(iterations=20, checkpoint=path, progress=lambda *now: seen.append(now))
    assert seen == [(10, 20), (15, 20), (20, 20)]
    whole = small_run()
    assert equal_runs(resumed, whole)
    assert resumed.iterations.tolist() == whole.iterations.tolist()
    again = small_run(checkpoint=path, progress=lambda *now: seen.append(now))  # finished: nothing is left to do
    assert seen[-1] == (20, 20)
    assert len(seen) == 4
    assert equal_runs(again, whole)
    assert resumed.seconds > 0
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]


def test_a_checkpoint_that_cannot_be_written_is_found_before_training(tmp_path: Path) -> None:
    seen: list[int] = []
    with pytest.raises(FileNotFoundError, match=r"checkpoint: cannot write '.*no/run.npz': No such file or directory"):
        small_run(checkpoint=tmp_path / "no" / "run.npz", progress=lambda done, _: seen.append(done))
    assert seen == []


def test_a_checkpoint_may_be_a_link_and_parts_of_killed_runs_go(tmp_path: Path) -> None:
    link, target = tmp_path / "link.npz", tmp_path / "there" / "run.npz"
    target.parent.mkdir()
    link.symlink_to(target)
    left = target.with_name(f".{target.name}.0123456789abcdef.part")
    left.write_bytes(b"a part")
    small_run(iterations=10, checkpoint=link)
    assert not left.exists()
    assert link.is_symlink()
    seen: list[int] = []
    resumed = small_run(iterations=20, checkpoint=link, progress=lambda done, _: seen.append(done))
    assert seen[0] == 10
    assert equal_runs(resumed, small_run(iterations=20))
    assert os.listdir(target.parent) == ["run.npz"]


def test_a_checkpoint_of_the_wrong_shape_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    small_run(iterations=10, checkpoint=path)
    arrays, about = npz.read_npz(path)
    wrong = ({"state_x0": arrays["state_x0"][1:]}, {"curve_loss": arrays["curve_loss"][1:]}, {"more": np.zeros(1)})
    for changes in wrong:
        npz.write_npz(path, arrays | changes, about)
        with pytest.warns(RuntimeWarning, match="checkpoint ignored: .*run.npz: (state_x0|curve_loss|more): expected"):
            small_run(iterations=2, checkpoint=path)
    for record in ({"done": "ten"}, {"seconds": None}):
        npz.write_npz(path, arrays, about | record)
        with pytest.warns(RuntimeWarning, match="checkpoint ignored: .*run.npz: (done|seconds): expected"):
            small_run(iterations=2, checkpoint=path)


def test_a_checkpoint_that_is_further_on_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    small_run(iterations=10, checkpoint=path)
    with pytest.raises(ValueError, match=r"checkpoint: .*run.npz is at iteration 10, beyond iterations=5"):
        small_run(iterations=5, checkpoint=path)


OTHERS: dict[str, dict[str, Any]] = {
    "seed": {"seed": 1},
    "algorithm": {"algorithm": ADMM()},
    "attack": {"attack": attacks.SignFlip()},
    "byzantine": {"n_byzantine": 1},
    "dtype": {"dtype": "float64"},
    "start": {"x0_init": np.ones(13)},
    "workers' start": {"x_init": np.ones((M, 13))},
    "interval": {"eval_every": 10},
    "record": {"record": "trajectory"},
    "rho": {"rho": 0.5},
    "first_k": {"first_k": 2},
    "centres": {"loss": losses.Quadratic(quadratic().a, quadratic().b + 1, 0.2)},
    "curvatures": {"loss": losses.Quadratic(quadratic().a + 1, quadratic().b, 0.2)},
    "optimum": {"optimum": np.zeros(13)},
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_checkpoint_of_another_run_is_refused(what: str, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    small_run(iterations=10, checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"checkpoint: .*run.npz belongs to another run"):
        small_run(checkpoint=path, **OTHERS[what])
    assert path.read_bytes() == before


def test_a_checkpoint_of_other_data_or_another_partition_is_refused(tmp_path: Path) -> None:
    path, data, parts = tmp_path / "run.npz", small_data(), small_parts()
    settings: dict[str, Any] = {"algorithm": ADMM(), "iterations": 2, "checkpoint": path}
    simulate(data, parts, **settings)
    other = small_data()
    other.train_x[0, 0] += 1
    for dataset, split in ((data, parts[::-1]), (other, parts)):
        with pytest.raises(ValueError, match="belongs to another run"):
            simulate(dataset, split, **settings)
    simulate(data, parts, threads=2, **settings)  # threads are not part of what a run is


def test_a_result_file_is_not_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    small_run().save(path)
    with pytest.raises(ValueError, match="belongs to another run"):
        small_run(checkpoint=path)


@pytest.mark.parametrize("damage", ["empty", "half", "last byte", "text", "extra", "bits"])
def test_a_damaged_checkpoint_is_never_used(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    whole = small_run()
    small_run(iterations=10, checkpoint=path)
    content = path.read_bytes()
    rng = random.Random(damage)
    broken = {
        "empty": [b""],
        "half": [content[: len(content) // 2], content[: rng.randrange(len(content))]],
        "last byte": [content[:-1]],
        "text": [b"not a checkpoint at all"],
        "extra": [bytes(len(content))],
        "bits": [flipped(content, rng.randrange(8 * len(content))) for _ in range(60)],
    }[damage]
    detected = 0
    for bad in broken:
        path.write_bytes(bad)
        seen: list[int] = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run = small_run(checkpoint=path, progress=lambda done, _, seen=seen: seen.append(done))  # type: ignore[misc]
        assert equal_runs(run, whole)
        messages = [str(w.message) for w in caught]
        detected += len(messages) == 1
        # A flip in a byte that nothing reads (a time stamp) leaves a whole checkpoint.
        assert seen[0] == (0 if messages else 10)
        assert all(f"checkpoint ignored: {path}: not a whole file of byzadmm" in message for message in messages)
    assert detected >= 0.8 * len(broken)


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_every_byte_of_a_checkpoints_headers_may_be_wrong(tmp_path: Path) -> None:
    path, wrong = tmp_path / "run.npz", tmp_path / "wrong.npz"
    # Two arrays: the headers of more have the same form.
    npz.write_npz(path, {"one": np.arange(3.0), "two": np.ones((2, 2), np.float32)}, {"done": 5})
    content = path.read_bytes()
    good, same = npz.read_npz(path)
    rng = random.Random(4)
    start = content.find(b"PK\x01\x02")  # the directory at the end, then the first local header
    for place in [*range(start, len(content)), *range(60)]:
        wrong.write_bytes(flipped(content, 8 * place + rng.randrange(8)))
        with suppress(ValueError):  # the only kind of error it may be
            arrays, about = npz.read_npz(wrong)
            assert about == same
            assert arrays.keys() == good.keys()
            assert all(same_bits(arrays[name], good[name]) for name in good)


def test_a_longer_run_forgets_where_the_shorter_one_ended(tmp_path: Path) -> None:
    given: dict[str, Any] = {"eval_every": 10, "record": "trajectory"}
    path = tmp_path / "run.npz"
    assert small_run(iterations=15, checkpoint=path, **given).iterations.tolist() == [0, 10, 15]
    assert small_run(iterations=15, checkpoint=path, **given).iterations.tolist() == [0, 10, 15]
    resumed, whole = small_run(iterations=40, checkpoint=path, **given), small_run(iterations=40, **given)
    assert resumed.iterations.tolist() == whole.iterations.tolist() == [0, 10, 20, 30, 40]
    assert equal_runs(resumed, whole)
    for curve in ("loss", "consensus_gap"):
        assert same_bits(getattr(resumed, curve), getattr(whole, curve))
    assert resumed.trajectory is not None
    assert whole.trajectory is not None
    assert all(same_bits(resumed.trajectory[key], whole.trajectory[key]) for key in whole.trajectory)


def test_a_checkpoint_that_another_process_removes_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two comparisons in one folder: the first to finish removes the state of its run."""
    path = tmp_path / "state.npz"
    settings: dict[str, Any] = {"algorithm": KILLED["median"], "iterations": 6, "eval_every": 3}
    whole = simulate(small_data(), small_parts(), **settings, checkpoint=path)
    read = training_run.read_npz

    def removed(*arguments: Any) -> Any:
        path.unlink()
        return read(*arguments)

    monkeypatch.setattr(training_run, "read_npz", removed)
    assert equal_runs(simulate(small_data(), small_parts(), **settings, checkpoint=path), whole)
