"""``byzadmm run --delays``: asynchronous algorithms beside those in rounds, by simulated time."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from byzadmm import Result, delays
from byzadmm.study import plots
from support.commands import environment, fits, rows_of

SHORT = ["--n-workers", "8", "-q", "2", "--batch-size", "8"]
SLOW_FILE = """
dataset = "digits"
n_workers = 6
n_byzantine = 2
batch_size = 4
until = 20
delays = "mine.py:slow"
attack = "sign-flip"

[algorithms.admm]
lam = 0.01
beta = 0.5
master_step = { inv_sqrt = [10, 0.3] }
worker_step = { inv_sqrt = [0.5, 0.3] }
[algorithms.waits]
kind = "async-admm:barrier=3"
lam = 0.01
beta = 0.5
master_step = { inv_sqrt = [10, 0.3] }
worker_step = { inv_sqrt = [0.5, 0.3] }
"""


def test_a_run_with_stragglers(call, monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(plots, "save", lambda figure, path: drawn.append(figure) or path.touch())
    ended = call("run", *SHORT, "--delays", "stragglers:0.2,10", "--algorithm", "async-admm", "--until", "40")
    assert ended.code == 0, ended.err
    assert fits(ended.out)
    head, rows = ended.out.splitlines()[:2], rows_of(ended.out)
    assert " ".join(" ".join(head).split()) == (
        "digits, sign-flip attack, 2 of 8 workers Byzantine, delays stragglers:0.2,10"
    )
    assert rows["algorithm"] == ["accuracy", "loss", "updates", "messages", "time", "vs", "Ideal"]
    assert rows["ideal"][2:5] == ["4", "24", "40"]  # a round takes ten
    assert rows["async-admm"][2:5] == ["249", "248", "40"]  # six fast workers, two slow ones, and the first update
    assert [ax.get_xlabel() for ax in drawn[0].axes] == ["simulated time"]
    assert "saved byzadmm-run.png" in ended.err


def test_the_end_is_that_of_a_thousand_usual_jobs(monkeypatch, call):
    plans = []
    monkeypatch.setattr("byzadmm.cli.run.carry_out", lambda plan, **_: plans.append(plan))
    for words, until in (
        (["--delays", "stragglers:0.2,10"], 1000.0),
        (["--delays", "0.02"], 20.0),
        (["--delays", "2", "--iterations", "30"], None),
        (["--delays", "2", "--arrivals", "30"], None),
    ):
        call("run", "--algorithm", "asgd", "--quiet", *words)
        run = next(run for run in plans[-1].runs.values() if run["algorithm"].schedule == "events")
        assert run["until"] == until, words
    assert (run["updates"], run["arrivals"]) == (None, 30)


def test_json_has_the_clock(call, tmp_path):
    words = ["--delays", "exponential", "--algorithm", "zeno-plus-plus", "kardam:f=2", "--arrivals", "200"]
    ended = call("run", *SHORT, *words, "--eval-time", "5", "--json")
    assert ended.code == 0, ended.err
    record = json.loads(ended.out)
    assert record["delays"] == "exponential"
    ideal, zeno, kardam = record["runs"]
    for run in (ideal, zeno, kardam):
        assert run["arrivals"] == run["curves"]["arrivals"][-1] >= 200, run["algorithm"]
        assert run["time"] == run["curves"]["time"][-1], run["algorithm"]
        assert run["curves"]["time"][1:3] == [5.0, 10.0], run["algorithm"]
        assert run["rejected"].keys() == {"regular", "byzantine"}
    assert zeno["rejected"]["byzantine"] > 0.7 > 0.3 > zeno["rejected"]["regular"]
    assert kardam["settings"]["f"] == 2


def test_out_and_a_trace(call, tmp_path):
    delays.Replay([[1.0], *[[0.5]] * 7]).save("trace.npz")
    ended = call(
        "run", *SHORT, "--algorithm", "async-rsa", "--lam", "0.05", "--delays", "trace.npz", "--until", "10", "--out",
        "run.npz", "--no-plot",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    run = Result.load("run.npz")
    assert (run.config["algorithm"]["lam"], run.arrivals[-1], run.time[-1]) == (0.05, 10 + 7 * 20, 10)


def test_refusals(refused, tmp_path):
    (tmp_path / "mine.py").write_text("def never(worker, job, rng):\n    return 0.0\n")
    cases = {
        ("--algorithm", "async-admm"): "delays: async-admm is asynchronous and needs them, such as 'stragglers:0.2,10'",
        ("--until", "5"): "until: needs delays, which say how long workers take; got 5.0 without",
        ("--eval-time", "5"): "eval_time: needs delays, which say how long workers take; got 5.0 without",
        ("--delays", "fast"): "delays: expected a number, FILE.npz, FILE.py:NAME or one of constant, exponential, ",
        ("--delays", "1", "--until", "0"): "until: expected a finite number > 0.0, got 0.0",
        ("--delays", "1", "--arrivals", "-1"): "arrivals: expected an integer in [0, ",
        ("--delays", "none.npz"): "delays: none.npz: no such file",
        ("--delays", "mine.py:never"): "delays: expected a positive number of seconds for job 0 of worker 0, got 0.0",
        ("--delays", "1", "--algorithm", "kardam"): "f: expected 3 f + 1 <= 20 workers, f <= 6, got 8",
        ("--delays", "1", "--algorithm", "basgd:buffers=9"): "f: expected 2 f < 9 buffers, f <= 4, got 8",
        ("--delays", "1", "--algorithm", "async-rsa", "--beta", "1"): "beta: none of async-rsa has it",
        ("--delays", "1", "--algorithm", "asgd:speed=2"): "algorithm: asgd takes dampening, momentum; got 'speed=2'",
    }
    for words, message in cases.items():
        assert refused("run", "--no-plot", "--quiet", *words).startswith(message), words


def test_a_settings_file_with_delays(call, refused, tmp_path):
    (tmp_path / "mine.py").write_text("def slow(worker, job, rng):\n    return 5.0 if worker == 0 else 1.0\n")
    (tmp_path / "slow.toml").write_text(SLOW_FILE)
    ended = call("run", "slow.toml", "--json")
    assert ended.code == 0, ended.err
    admm, waits = json.loads(ended.out)["runs"]
    assert (admm["iterations"], waits["iterations"] > 20, waits["settings"]["barrier"]) == (5, True, 3)
    short = json.loads(call("run", "slow.toml", "--json", "--iterations", "2").out)["runs"]
    assert [run["iterations"] for run in short] == [2, 2]
    assert refused("run", "slow.toml", "--until", "3") == "until: is in the settings file slow.toml"


@pytest.mark.slow
def test_a_run_that_ends_early_is_one_line():
    words = ["run", *SHORT, "--delays", "outage:start=5", "--algorithm", "asgd", "--until", "20", "--no-plot"]
    command = [sys.executable, "-m", "byzadmm", *words]
    run = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert run.returncode == 0, run.stderr
    assert run.stderr == (
        "byzadmm: the run ended early: a worker never answers in round 6, and the master waits for it\n"
    )
