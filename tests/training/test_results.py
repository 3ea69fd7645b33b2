"""Results: saved, loaded, tabulated, drawn, and refused when damaged."""

from __future__ import annotations

import copy
import io
import json
import os
import re
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import ADMM, SGD, Result, aggregators, attacks, catalogue, results, simulate
from byzadmm._internal import npz
from support.arrays import same_bits
from support.runs import ALGORITHMS, Q, quadratic, small_data, small_parts

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
    again.x = None  # as a study keeps it
    again.save(path)  # over the old one
    assert same_bits(Result.load(path).x0, first.x0)
    assert (Result.load(path).trajectory or {}).keys() == (first.trajectory or {}).keys()


def test_table_has_the_columns_that_the_run_has() -> None:
    table = run().table()
    assert [row["iterations"] for row in table] == [0, 5, 10, 12]
    assert list(table[0]) == ["iterations", "accuracy", "loss", "consensus_gap"]
    assert all(type(value) in (int, float) for row in table for value in row.values())
    quadratics = simulate(None, None, loss=quadratic(), algorithm=ALGORITHMS["rsa"], iterations=3, optimum=np.zeros(13))
    assert list(quadratics.table()[0]) == ["iterations", "loss", "consensus_gap", "distance"]
    assert quadratics.table()[-1]["loss"] == pytest.approx(quadratic().value(quadratics.x0))


def test_a_frame_has_the_rows_of_the_table() -> None:
    first = run()
    frame = first.frame()
    assert frame.to_dict("records") == first.table()
    assert [str(kind) for kind in frame.dtypes] == ["int64", "float64", "float64", "float64"]
    assert frame.index.tolist() == [0, 1, 2, 3]


def test_without_pandas_a_frame_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=re.escape("frame: needs pandas; pip install 'byzadmm[frame]' (")):
        run().frame()


def test_final_accuracy_is_the_mean_from_four_fifths_of_the_run_on() -> None:
    k = np.array([0, 3, 6, 8, 9, 10])
    curves = np.arange(12.0).reshape(2, 6)
    assert results.final_accuracy(k, curves).tolist() == [4.0, 10.0]  # k = 8 counts
    assert results.final_accuracy([0, 15, 24, 30], [0.0, 0.1, 0.2, 0.4]) == pytest.approx(0.3)
    assert results.final_accuracy([0], [0.25]) == 0.25  # a run of no iterations
    assert np.isnan(results.final_accuracy([0, 1], [0.5, np.nan]))


def test_final_accuracy_and_repr() -> None:
    first = run()
    assert first.final_accuracy() == results.final_accuracy(first.iterations, first.accuracy)
    assert first.final_accuracy(3) == pytest.approx(first.accuracy[-3:].mean())
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
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ADMM", "gap"]
    assert one.get_color() != two.get_color()
    assert one.get_xydata().tolist() == [list(point) for point in zip(first.iterations, first.accuracy, strict=True)]
    assert [one.get_label(), two.get_label()] == ["ADMM", "gap"]
    assert two.get_ydata().tolist() == first.consensus_gap.tolist()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("iterations", "consensus gap")
    with pytest.raises(ValueError, match=r"metric: expected one of accuracy, .*; got 'speed'"):
        first.plot(ax, metric="speed")
    with pytest.raises(TypeError, match="ax: expected matplotlib axes, got str; plot"):
        first.plot("run.png")
    pyplot.close("all")


def test_plots_say_which_rule_and_look_the_same_everywhere() -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    made = [
        ADMM(), SGD(), SGD(ideal=True), SGD(rule="median"), SGD(rule="krum", f=2, momentum=0.5),
        SGD(rule=[aggregators.NNM(f=2), "krum"], f=2), SGD(rule="nnm+krum", f=2, variance_reduction="saga"),
    ]  # fmt: skip
    results = [run(algorithm=algorithm, attack=None, n_byzantine=0, iterations=1) for algorithm in made]
    for result in results:
        result.plot(ax)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == [
        "ADMM", "SGD", "Ideal SGD", "Median", "krum, momentum 0.5",
        "NNM(nonfinite='exclude', f=2)+krum", "nnm+krum, saga",
    ]  # fmt: skip
    colors = [line.get_color() for line in ax.get_lines()]
    assert len(set(colors)) == len(colors)
    assert colors[:4] == [catalogue.STYLES[name].color for name in ("admm", "sgd", "ideal", "median")]
    assert repr(results[4]).startswith("<Result krum, momentum 0.5, 1 iterations")


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
    with pytest.raises(ValueError, match=r"checkpoint.npz: not a result of byzadmm \(no accuracy, loss, "):
        Result.load(checkpoint)
    npz.write_npz(checkpoint, {name: np.zeros(1) for name in (*CURVES, "x0")}, {})
    with pytest.raises(ValueError, match=r"checkpoint.npz: not a result of byzadmm \(no config, eliminated, seconds\)"):
        Result.load(checkpoint)


# --- files that were made to harm ------------------------------------------------------------------------------------


def npy(descr: str, shape: tuple[int, ...], content: bytes = b"") -> bytes:
    """An array's entry whose header need not be true."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue() + content


def write_archive(path: Path, entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(f"{name}.npy", content)


def entries_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name.removesuffix(".npy"): archive.read(name) for name in archive.namelist()}


def about(text: str) -> bytes:
    content = np.array(text)
    return npy(content.dtype.str, (), content.tobytes())


HUGE = 10**12
HOSTILE: dict[str, tuple[dict[str, bytes], str]] = {
    "huge shape": ({"x0": npy("<f4", (HUGE,))}, "x0.npy: float32 of shape .* is not of that entry's size"),
    "huge text": ({"about": npy(f"<U{10**8}", ())}, "about.npy: <U100000000 of shape .* is not of that entry's size"),
    "empty text, many times": ({"x0": npy("<U0", (HUGE,))}, "x0: expected numbers, got <U0"),
    "negative shape": ({"x0": npy("<f4", (-1,), bytes(4))}, "x0.npy: float32 of shape .* is not of that entry's size"),
    "too short": ({"x0": npy("<f4", (2,), bytes(4))}, "is not of that entry's size"),
    "too long": ({"x0": npy("<f4", (2,), bytes(12))}, "is not of that entry's size"),
    "nothing of a large thing": ({"x0": npy("<f4", (0, 10**30))}, "x: expected float32 of shape"),
    "objects": ({"x0": npy("|O", (1,), bytes(8))}, "x0: expected numbers, got object"),
    "complex": ({"x0": npy("<c8", (1,), bytes(8))}, "x0: expected numbers, got complex64"),
    "half": ({"x0": npy("<f2", (1,), bytes(2))}, "x: expected float64 of shape"),
    "other byte order": ({"loss": npy(">f8", (4,), bytes(32))}, r"loss: expected float64 of shape \(4,\), got >f8"),
    "real iterations": ({"iterations": npy("<f8", (4,), bytes(32))}, "iterations: expected int64"),
    "no evaluation": ({"iterations": npy("<i8", (0,))}, "accuracy: expected float64"),
    "a curve too short": ({"accuracy": npy("<f8", (3,), bytes(24))}, r"accuracy: expected .* \(4,\), got .* \(3,\)"),
    "a number for a model": ({"x0": npy("<f4", (), bytes(4))}, "x: expected float32 of shape"),
    "another model": ({"x": npy("<f4", (2, 3), bytes(24))}, "x: expected float32 of shape"),
    "another type": ({"x": npy("<f8", (1, 1), bytes(8))}, "x: expected float32 of shape"),
    "unknown name": ({"y": npy("<f4", (1,), bytes(4))}, "y: expected nothing, got float32"),
    "future format": ({"x0": b"\x93NUMPY\x09\x00" + bytes(100)}, "we only support format version|expected format"),
    "about is a number": ({"about": npy("<f8", (), bytes(8))}, "about: expected text, got float64"),
    "about is a list": ({"about": about("[]")}, "not a whole file of byzadmm"),
    "about is deep": ({"about": about("[" * 20_000)}, "not a whole file of byzadmm"),
}
RECORDS: dict[str, tuple[dict[str, Any], str]] = {
    "config is a list": ({"config": [1]}, "not a result of byzadmm"),
    "eliminated is a list": ({"eliminated": [1]}, "not a result of byzadmm"),
    "eliminated at infinity": ({"eliminated": {"1": float("inf")}}, "not a result of byzadmm"),
    "eliminated is no number": ({"eliminated": {"one": 1}}, "not a result of byzadmm"),
    "seconds are words": ({"seconds": "many"}, "not a result of byzadmm"),
}


def refused(path: Path, message: str) -> None:
    tracemalloc.start()
    with pytest.raises(ValueError, match=f"{path.name}: .*({message})"):
        Result.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3_000_000


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "run.npz"
    run().save(path)
    return path


@pytest.mark.parametrize("kind", HOSTILE)
def test_sizes_and_kinds_are_checked_before_anything_is_read(kind: str, saved: Path, tmp_path: Path) -> None:
    changes, message = HOSTILE[kind]
    entries = entries_of(saved)
    record = json.loads(str(np.load(saved)["about"]))
    record["arrays"] = sorted((entries | changes).keys() - {"about"})
    path = tmp_path / "hostile.npz"
    write_archive(path, entries | {"about": about(json.dumps(record))} | changes)
    refused(path, message)


@pytest.mark.parametrize("kind", RECORDS)
def test_records_of_the_wrong_kind_are_refused(kind: str, saved: Path, tmp_path: Path) -> None:
    changes, message = RECORDS[kind]
    arrays, record = npz.read_npz(saved)
    npz.write_npz(tmp_path / "hostile.npz", arrays, record | changes)
    with pytest.raises(ValueError, match=f"hostile.npz: {message}"):
        Result.load(tmp_path / "hostile.npz")


def test_what_is_compressed_or_overlaps_is_not_unpacked(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    entries = entries_of(saved) | {"x0": npy("<f4", (5_000_000,), bytes(20_000_000))}
    write_archive(path, entries, zipfile.ZIP_DEFLATED)
    refused(path, r"the arrays are larger than the \d+ bytes of the file")
    write_archive(path, {"x0": npy("<f4", (250_000,), bytes(1_000_000))})
    with zipfile.ZipFile(path, "a") as archive:  # the same bytes under a hundred names
        for number in range(1, 100):
            other = copy.copy(archive.infolist()[0])
            other.filename = f"x{number}.npy"
            archive.filelist.append(other)
        archive._didModify = True  # type: ignore[attr-defined]
    refused(path, r"the arrays are larger than the \d+ bytes of the file")
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("x1.npy", b"")
    refused(path, "an array is there twice")


@pytest.mark.skipif(os.name != "posix", reason="devices are files on POSIX")
def test_a_device_is_not_read() -> None:  # /dev/zero has no end
    with pytest.raises(ValueError, match="/dev/null: expected a regular file"):
        Result.load("/dev/null")


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
    npz.write_npz(path, {}, {"n": np.int64(3), "v": np.arange(2), "f": float, "x": np.float32(0.5)})
    assert npz.read_npz(path) == ({}, {"n": 3, "v": [0, 1], "f": repr(float), "x": 0.5})
