"""Results: saved, loaded, tabulated, drawn, and refused when damaged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arrays import same_bits
from byzadmm import Result, attacks, results, simulate
from runs import ALGORITHMS, Q, quadratic, small_data, small_parts

CURVES = ("iterations", "accuracy", "loss", "consensus_gap", "distance")


def run(name: str = "admm", **changes: Any) -> Result:
    settings: dict[str, Any] = {"algorithm": ALGORITHMS[name], "attack": attacks.NonFinite(), "n_byzantine": Q}
    settings |= {"iterations": 12, "eval_every": 5} | changes
    return simulate(small_data(), small_parts(), **settings)


@pytest.mark.parametrize("record", [None, "trajectory"])
@pytest.mark.parametrize("name", ["admm", "mean"])
def test_round_trip(name: str, record: str | None, tmp_path: Path) -> None:
    first = run(name, record=record)
    path = tmp_path / "run.npz"
    first.save(path)
    again = Result.load(os.fspath(path))
    for field in (*CURVES, "x0"):
        assert same_bits(getattr(first, field), getattr(again, field))
    assert (first.x is None) == (again.x is None)
    if first.x is not None:
        assert same_bits(first.x, again.x)  # type: ignore[arg-type]
    assert again.config == first.config
    assert again.eliminated == first.eliminated != {}
    assert again.seconds == first.seconds
    assert (again.trajectory or {}).keys() == (first.trajectory or {}).keys()
    for key, values in (first.trajectory or {}).items():
        assert same_bits(values, again.trajectory[key])  # type: ignore[index]
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]
    again.save(path)  # over the old one
    assert same_bits(Result.load(path).x0, first.x0)


def test_table_has_the_columns_that_the_run_has() -> None:
    table = run().table()
    assert [row["iterations"] for row in table] == [0, 5, 10, 12]
    assert list(table[0]) == ["iterations", "accuracy", "loss", "consensus_gap"]
    assert all(type(value) in (int, float) for row in table for value in row.values())
    quadratics = simulate(None, None, loss=quadratic(), algorithm=ALGORITHMS["rsa"], iterations=3, optimum=np.zeros(13))
    assert list(quadratics.table()[0]) == ["iterations", "loss", "consensus_gap", "distance"]
    assert quadratics.table()[-1]["loss"] == pytest.approx(quadratic().value(quadratics.x0))


def test_final_accuracy_and_repr() -> None:
    first = run()
    assert first.final_accuracy() == pytest.approx(first.accuracy[-3:].mean())
    assert first.final_accuracy(1) == first.accuracy[-1]
    with pytest.raises(ValueError, match="last: expected an integer >= 1, got 0"):
        first.final_accuracy(0)
    with pytest.raises(TypeError, match="last: expected an integer, got str"):
        first.final_accuracy("3")  # type: ignore[arg-type]
    assert repr(first) == f"<Result ADMM, 12 iterations, accuracy {first.accuracy[-1]:.3f}>"
    assert "accuracy nan" in repr(simulate(None, None, loss=quadratic(), algorithm=ALGORITHMS["rsa"], iterations=1))


def test_plot(monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    first = run()
    ax = first.plot()
    assert first.plot(ax, metric="consensus_gap", label="gap") is ax
    one, two = ax.get_lines()
    assert one.get_xydata().tolist() == [list(point) for point in zip(first.iterations, first.accuracy, strict=True)]
    assert [one.get_label(), two.get_label()] == ["ADMM", "gap"]
    assert two.get_ydata().tolist() == first.consensus_gap.tolist()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("iterations", "consensus gap")
    with pytest.raises(ValueError, match=r"metric: expected one of accuracy, .*; got 'speed'"):
        first.plot(ax, metric="speed")
    pyplot.close("all")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"something else", None])
def test_a_damaged_file_is_an_error_that_names_it(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    run().save(path)
    path.write_bytes(path.read_bytes()[:-100] if content is None else content)
    with pytest.raises(ValueError, match=r"run.npz: not a whole file of byzadmm"):
        Result.load(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Result.load(tmp_path / "absent.npz")
    np.savez(tmp_path / "plain.npz", x0=np.zeros(2))
    with pytest.raises(ValueError, match=r"plain.npz: not a whole file of byzadmm"):
        Result.load(tmp_path / "plain.npz")
    checkpoint = tmp_path / "checkpoint.npz"
    run(checkpoint=checkpoint)
    with pytest.raises(ValueError, match=r"checkpoint.npz: not a result of byzadmm \(no accuracy, "):
        Result.load(checkpoint)
    results.write_npz(checkpoint, {name: np.zeros(1) for name in (*CURVES, "x0")}, {})
    with pytest.raises(ValueError, match=r"checkpoint.npz: not a result of byzadmm \(no config\)"):
        Result.load(checkpoint)


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.npz"
    first = run()
    first.save(path)
    before = path.read_bytes()

    def full(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        first.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]


def test_values_that_json_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    results.write_npz(path, {}, {"n": np.int64(3), "v": np.arange(2), "f": float, "x": np.float32(0.5)})
    assert results.read_npz(path) == ({}, {"n": 3, "v": [0, 1], "f": repr(float), "x": 0.5})
