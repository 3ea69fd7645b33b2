"""``byzadmm run`` with several attacks, numbers of Byzantine workers, partitions and seeds; checkpoints and pages."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from byzadmm import Result, Study, catalogue, compare, datasets, simulate
from support.commands import QUICK, TWO_ALGORITHMS, environment, fits
from support.panels import MAPS

SEVERAL = ["--attack", "sign-flip", "alie", "-q", 4, 8, "--partition", "iid", "dirichlet:1", "--algorithm", "krum"]


def runs_of(ended):
    assert ended.code == 0, ended.err
    return json.loads(ended.out)["runs"]


def plain(run, **settings):
    """The same run by ``simulate``; JSON has null for NaN."""
    data = datasets.load("digits")
    preset = catalogue.PRESETS["digits"]
    given = {"iterations": 30, "batch_size": 8, "eval_every": 1} | settings
    result = simulate(
        data,
        catalogue.make_parts(run["partition"], data, 20, run["seed"]),
        algorithm=catalogue.make_algorithm(run["algorithm"].partition(",")[0], preset, run["n_byzantine"]),
        attack=catalogue.make_attack(run["attack"]),
        n_byzantine=run["n_byzantine"],
        seed=run["seed"],
        **given,
    )
    return result.accuracy.tolist()


def test_every_cell_has_the_numbers_of_simulate(call):
    ended = call("run", *QUICK, *SEVERAL, "--seed", 3, "--seeds", 2, "--json", "--quiet")
    record = json.loads(ended.out)
    assert (record["attack"], record["n_byzantine"], record["seed"]) == (["sign-flip", "alie"], [4, 8], 3)
    runs = runs_of(ended)
    places = [(run["attack"], run["n_byzantine"], run["partition"], run["seed"]) for run in runs]
    assert places[::4] == list(product(["sign-flip", "alie"], [4, 8], ["iid", "dirichlet:1"], [3]))
    assert len(set(places)) == 16
    assert [run["algorithm"] for run in runs[:4]] == 2 * ["ideal, sign-flip, q = 4, i.i.d."] + 2 * [
        "krum, sign-flip, q = 4, i.i.d."
    ]
    for run in runs[::3]:
        assert run["curves"]["accuracy"] == plain(run), run["algorithm"]
        if run["algorithm"].startswith("krum"):
            assert run["settings"]["f"] == run["n_byzantine"]


def test_tables_and_picture(call):
    ended = call("run", *QUICK, *SEVERAL, "--seeds", 2, "--plot", "many.svg")
    assert (ended.code, ended.err) == (0, "saved many.svg\n")
    assert fits(ended.out)
    head, *tables = ended.out.split("\n\n")
    assert head == "digits, mean over 2 seeds"
    assert [table.splitlines()[0].strip() for table in tables] == [
        f"{attack}, q = {q}, {kind}"
        for attack, q, kind in product(["sign-flip", "ALIE"], [4, 8], ["i.i.d.", "Dirichlet(1)"])
    ]
    runs = runs_of(call("run", *QUICK, *SEVERAL, "--seeds", 2, "--json"))
    for number, table in enumerate(tables):
        finals = np.array([run["accuracy"] for run in runs[4 * number + 2 : 4 * number + 4]])
        cells = table.splitlines()[-1].split()
        assert cells[:4] == ["krum", *(f"{value:.3f}" for value in (finals.mean(), finals.min(), finals.max()))]
    drawn = Path("many.svg").read_text("utf-8")
    assert all(word in drawn for word in ("Dirichlet(1)", "ALIE", "8 of 20 Byzantine"))


@pytest.mark.parametrize("attacks", [["sign-flip"], ["sign-flip", "alie"]])
def test_the_title_of_the_picture_is_not_over_the_legend(attacks):
    pytest.importorskip("matplotlib")
    rules = ["ideal", "clip:max-norm=10+nnm+trimmed-mean", "median"]
    study = compare("digits", algorithms=rules, attacks=attacks, seeds=1, iterations=2, eval_every=1)
    study.title = "digits, sign-flip attack, 8 of 20 workers Byzantine, and rather more than that in the title"
    figure = study.plot()
    figure.draw_without_rendering()
    title, [legend] = figure._suptitle.get_window_extent(), figure.legends
    assert not title.overlaps(legend.get_window_extent())
    assert title.x0 >= 0
    width = figure.canvas.get_width_height()[0]
    assert legend.get_window_extent().x1 <= width
    for ax in figure.axes:
        assert ax.get_window_extent().width > 0.4 * width / len(attacks)
        assert not ax.get_tightbbox().overlaps(title)


def test_a_settings_file_with_several_seeds(call, settings_file):
    whole = runs_of(call("run", settings_file, "--seeds", 2, "--json"))
    assert [(run["algorithm"], run["seed"]) for run in whole] == [
        ("ideal", 0), ("ideal", 1), ("admm", 0), ("admm", 1)
    ]  # fmt: skip
    alone = runs_of(call("run", settings_file, "--seed", 1, "--json"))
    assert [run["curves"] for run in alone] == [run["curves"] for run in whole[1::2]]


def test_a_settings_file_of_a_heat_map(call):
    Path("maps.toml").write_text(MAPS)
    words = ("--iterations", 5, "--algorithm", "bulyan", "rsa", "--plot", "maps.svg", "--report", "a.html", "--quiet")
    ended = call("run", "maps.toml", *words)
    assert (ended.code, ended.err) == (0, "")  # what is not tolerated is no error there
    assert [table.splitlines()[0].strip() for table in ended.out.split("\n\n")[1:]] == [
        f"{attack}, q = {q}, {kind}"
        for attack, q, kind in product(["none", "gaussian", "worst-case"], [1, 3], ["i.i.d.", "data by label"])
    ]
    assert ended.out.count("bulyan") == 6  # with one Byzantine worker, not with three
    drawn = Path("maps.svg").read_text("utf-8")
    assert "final accuracy in %" in drawn
    assert "hatched: so many Byzantine workers are not tolerated" in drawn


def test_a_rule_may_be_illegal_for_some_numbers(call):
    ended = call("run", *QUICK, "--rule", "krum", "bulyan", "-q", 4, 8, "--no-plot")
    assert ended.code == 2
    assert ended.out.count("bulyan") == 1
    assert ended.err == "byzadmm: error: bulyan: f=8 is too large for n=20 workers; at most 4\n"


def test_one_run_is_kept_and_several_are_refused(call, refused):
    said = refused("run", "--algorithm", "admm", "--seeds", 2, "--out", "a.npz")
    assert said == "out: expected one run, got 2; --checkpoint keeps them all"
    assert refused("run", "--seeds", 0) == "seeds: expected an integer >= 1, got 0"
    assert refused("run", "--report", "a.txt") == "report: expected a name ending in .html; got 'a.txt'"
    assert refused("run", "--attack", "alie", "alie").startswith("attacks: two are called 'alie'")
    assert refused("run", "-q", 4, 4) == "n_byzantine: expected different numbers, at least one; got [4, 4]"
    call("run", *QUICK, "--algorithm", "admm", "--out", "a.npz", "--no-plot", "--checkpoint", "kept")
    assert Result.load("a.npz").x.shape == (20, 650)  # the workers' models too


def test_local_steps_and_sampled_workers(call, refused):
    words = ("run", *QUICK, "--algorithm", "krum", "-q", 2, "--local-steps", 3, "--participation", 0.5)
    runs = runs_of(call(*words, "--json", "--quiet"))
    assert runs[1]["curves"]["accuracy"] == plain(runs[1], local_steps=3, participation=0.5)
    assert "local_steps" in refused("run", *QUICK, "--algorithm", "admm", "rsa", "--local-steps", 2, "--quiet")
    assert refused("run", "--participation", 0).startswith("participation: expected a finite number in (0.0, 1.0]")
    Path("two.toml").write_text("participation = 0.5\nloss = 'softmax'\n" + TWO_ALGORITHMS)
    ended = call("run", "two.toml", "--json", "--algorithm", "admm", "--seed", 2)
    assert runs_of(ended)[0]["curves"] != runs_of(call("run", "two.toml", "--json"))[1]["curves"]
    assert refused("run", "two.toml", "--local-steps", 2) == "local_steps: is in the settings file two.toml"


def test_losses_by_name(call, refused):
    assert refused("run", "--loss", "hinge").startswith("loss: expected one of softmax, ")
    words = ("run", *QUICK, "--algorithm", "sgd", "--json")
    softmax, default = call(*words, "--loss", "softmax"), call(*words)
    assert [run["curves"] for run in runs_of(softmax)] == [run["curves"] for run in runs_of(default)]
    assert "logistic" in refused("run", *QUICK, "--algorithm", "sgd", "--loss", "logistic", "--quiet")  # ten classes


def test_a_report_is_a_page(call):
    ended = call("run", *QUICK, "--algorithm", "admm", "krum", "--seeds", 2, "--report", "page.html", "--no-plot")
    assert (ended.code, ended.err) == (0, "saved page.html\n")
    page = Path("page.html").read_text("utf-8")
    assert page.lower().startswith("<!doctype html>")
    assert "digits, sign-flip attack, 8 of 20 workers Byzantine" in page
    assert json.loads(call("run", *QUICK, "--report", "b.html", "--json").out)["saved"] == ["b.html"]


def test_pages_and_checkpoints_of_reproduce(call, refused, settings_file):
    said = refused("reproduce", settings_file, "example", "--report", "one.html", "--quick")
    assert said == "report: expected a folder for 2 panels, got 'one.html'"
    words = ("reproduce", settings_file, "--seeds", 2, "--quiet", "--out", "out")
    first = call(*words, "--report", "pages", "--checkpoint", "kept")
    assert first.code == 0, first.err
    assert os.listdir("pages") == ["two.html"]
    assert call(*words, "--report", "one.html").code == 0
    study = Study.load("kept/two")
    assert len(study.results) == 4
    files = {name: Path("out", name).read_bytes() for name in ("two.csv", "two.png")}
    again = call(*words, "--checkpoint", "kept")
    assert again.out == first.out
    assert files == {name: Path("out", name).read_bytes() for name in files}


SLOW = """
import time

def slow(messages, *, byzantine, **_):
    time.sleep(0.01)
    return -messages[byzantine]
"""


@pytest.mark.slow
def test_a_killed_command_goes_on(call, tmp_path):
    (tmp_path / "own.py").write_text(SLOW)
    words = ["run", "--attack", "own.py:slow", "--algorithm", "median", "rsa", "--iterations", "100"]
    words += ["--batch-size", "4", "--jobs", "1", "--no-plot", "--json"]
    command = [sys.executable, "-m", "byzadmm", *words, "--checkpoint", "kept", "--quiet"]

    def written():
        return {path: path.stat().st_mtime_ns for path in tmp_path.glob("kept/*/*.npz")}

    for kill in (True, True, True, False):
        before = written()
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(), cwd=tmp_path, text=True) as job:
            limit = time.monotonic() + 60
            while kill and written() == before and time.monotonic() < limit:
                time.sleep(0.02)
            if kill:  # it has got further than the one before
                assert job.poll() is None
                job.send_signal(signal.SIGKILL)
            out = job.communicate()[0]
        assert job.returncode == (-signal.SIGKILL if kill else 0)
    whole = runs_of(call(*words))
    assert [run["curves"] for run in json.loads(out)["runs"]] == [run["curves"] for run in whole]
