"""The report of a run over MPI: its counts, its timeline, its picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from byzadmm._internal.progress import Bar
from byzadmm.delays import Replay
from byzadmm.engines import Event
from byzadmm.engines._timeline import shares
from byzadmm.engines.report import RankReport, RunReport


def some_report(trace: bool = False) -> RunReport:
    report = RunReport([RankReport(1, (0, 1)), RankReport(2, (2,)), RankReport(3)], [], "float32", 3, 10)
    report.trace = [] if trace else None
    for k in range(1, 6):
        for rank in report.ranks[:2]:
            rank.asked += 1
            if (rank.rank, k) != (2, 4):
                rank.answered(0.01 * k, 99.0)  # it claims more work than there was time for
        report.ranks[0].bytes_up += 500_000
        report.rounds += 1
        report.keep_round(k, report.begun + k)
    report.events += [Event(4, 2, (2,), "slow"), Event(5, 2, (2,), "wrong_length")]
    report.finish({1: "ready", 2: "wrong_length", 3: "ready"})
    return report


def test_the_report_counts(tmp_path: Path) -> None:
    report = some_report()
    assert report.rows() == [
        ["1", "0-1", "5/5", "-", "30.00", "50.0", "30.00", "2.5", "ready"],
        ["2", "2", "4/5", "-", "27.50", "50.0", "27.50", "0.0", "wrong length"],
        ["3", "-", "0/0", "-", "0.00", "0.0", "0.00", "0.0", "ready"],
    ]
    assert len(report.rows()[0]) == len(RunReport.columns)
    assert "2 of 3 workers, 1 eliminated, 2.5 MB" in report.line()
    whole = RunReport.together([report, report])
    assert whole.rows()[0] == ["1", "0-1", "10/10", "-", "30.00", "50.0", "30.00", "5.0", "ready"]
    assert (whole.rounds, len(whole.events)) == (10, 4)
    report.save(tmp_path / "report.json")
    record = json.loads((tmp_path / "report.json").read_text())
    assert record["ranks"][1]["on_time"] == 4
    assert record["events"][0] == {"round": 4, "rank": 2, "workers": [2], "what": "slow", "text": ""}
    assert record["timeline"][3] == [4, pytest.approx(4.0), [[0.04, 0.04], None, None]]


def test_a_trace_has_the_time_of_every_answer(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="trace: expected a run with trace=True, and at least one round"):
        some_report().save_trace(tmp_path / "none.npz")
    some_report(trace=True).save_trace(tmp_path / "trace.npz")
    times = Replay.load(tmp_path / "trace.npz").times
    assert times.tolist() == [[0.01, 0.02, 0.03, 0.04, 0.05]] * 2 + [[0.01, 0.02, 0.03, np.inf, 0.05]]


def test_a_long_run_keeps_some_rounds_only() -> None:
    report = RunReport([RankReport(1, (0,))], [], "float32", 1, 1)
    for k in range(5000):
        report.keep_round(k, report.begun)
    kept = [k for k, _, _ in report.timeline]
    assert 500 <= len(kept) <= 1000
    assert set(np.diff(kept)) == {8}
    assert kept[0] == 0


def test_the_timeline_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    some_report().draw(tmp_path / "timeline.png")
    assert (tmp_path / "timeline.png").read_bytes()[1:4] == b"PNG"
    RunReport([RankReport(1, (0,))], [Event(0, 1, (0,), "died")], "float32", 1, 1).draw(tmp_path / "empty.svg")
    assert (tmp_path / "empty.svg").exists()


@pytest.mark.parametrize("rounds", [30, 3000])
def test_the_timeline_agrees_with_the_table(rounds: int, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    report = RunReport([RankReport(1, (0, 1))], [], "float32", 2, 10)
    for k in range(rounds):
        report.ranks[0].answered(0.0023, 0.00046)
        report.keep_round(k, report.begun + 0.0025 * k)
    report.draw(tmp_path / "timeline.png", "x")
    bar = imread(tmp_path / "timeline.png")[:-60, :, :3]  # without the legend
    work, wait = (np.all(np.abs(bar - np.array(rgb) / 255) < 0.03, -1).sum() for rgb in [(0, 114, 178), (86, 180, 233)])
    assert work / (work + wait) == pytest.approx(report.ranks[0].work / report.ranks[0].mean, rel=0.1)
    _, waited, worked = shares(report, 0)
    assert np.sum(waited) / len(waited) == pytest.approx(0.0023 / 0.0025, rel=0.01)
    assert np.sum(worked) / np.sum(waited) == pytest.approx(0.2, rel=0.01)


def test_a_line_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bar, "TERMINAL", "/no/such/terminal")
    monkeypatch.setattr(Bar, "LIVE_INTERVAL", 0.0)
    bar = Bar("admm", live=True)
    bar.update(1, 2, lambda: "all well")
    bar.clear()
    bar.close()
    assert capsys.readouterr().err == "admm: 1 of 2, all well\n"
