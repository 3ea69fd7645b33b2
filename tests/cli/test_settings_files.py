"""``byzadmm run`` with a settings file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import byzadmm
from byzadmm import Result, attacks, datasets
from byzadmm.figures import settings as figure_settings
from support.commands import TWO_ALGORITHMS


def test_run_takes_a_settings_file(call, settings_file):
    ended = call("run", settings_file, "--out", "run.npz", "--plot", "run.png", "--seed", 3, "--iterations", 20)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("Two algorithms on digits")
    run = Result.load("run.npz")
    settings = byzadmm.figures.load_settings(settings_file)
    data = datasets.load("digits")
    parts = figure_settings.make_parts(settings, data, 3)
    direct = byzadmm.simulate(
        data,
        parts,
        algorithm=settings.curves[1].algorithm,
        attack=attacks.SignFlip(),
        n_byzantine=2,
        iterations=20,
        eval_every=10,
        batch_size=4,
        seed=3,
    )
    assert run.x0.tobytes() == direct.x0.tobytes()
    assert run.config == direct.config


def test_run_takes_the_name_of_a_figure(call):
    ended = call("run", "example", "--iterations", 5, "--json", "--plot", "loss.svg")
    assert ended.code == 0, ended.err
    record = json.loads(ended.out)
    assert [run["algorithm"] for run in record["runs"]][1:3] == ["rsa, small-value attack", "admm, large-value attack"]
    assert record["attack"][0] == {"name": "SmallValue", "eps": 0.5}
    assert "<svg" in Path("loss.svg").read_text("utf-8")


def test_run_and_reproduce_mean_the_same_by_final_accuracy(call, settings_file):
    ran = json.loads(call("run", settings_file, "--json").out)["runs"]
    made = json.loads(call("reproduce", settings_file, "--seeds", 1, "--out", "out", "--json", "--quiet").out)["finals"]
    assert {row["algorithm"]: row["accuracy"] for row in ran} == {row["algorithm"]: row["mean"] for row in made}
    kept = json.loads(Path("out/two.json").read_text())["plots"][0]["curves"]["admm"][0]
    assert ran[1]["accuracy"] == pytest.approx(kept[-1])  # k = 24 .. 30 of 0, 10, 20, 30


def test_run_takes_one_curve_of_a_settings_file(call, settings_file):
    ended = call("run", settings_file, "--algorithm", "admm", "--dtype", "float64", "--json")
    assert [run["algorithm"] for run in json.loads(ended.out)["runs"]] == ["admm"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--lam", "1"], "lam: is in the settings file two.toml"),
        (["--dataset", "mnist"], "dataset: is in the settings file two.toml"),
        (["--algorithm", "rsa"], "algorithm: expected one of ideal, admm; got 'rsa'"),
        (["--seed", "-1"], "seed: expected an integer >= 0, got -1"),
    ],
)
def test_run_refuses_beside_a_settings_file(refused, settings_file, words, message):
    assert refused("run", settings_file.name, *words) == message


def test_a_title_is_not_mathematics(call, settings_file):
    named = TWO_ALGORITHMS.replace("Two", "$x_{$").replace("[algorithms.admm]", '[algorithms."$y_{$"]\nkind = "admm"')
    settings_file.write_text(named, encoding="utf-8")
    ended = call("run", settings_file, "--plot", "a.svg")
    assert (ended.code, ended.err) == (0, "saved a.svg\n")


def test_settings_prints_a_file_that_runs(call, refused):
    ended = call("settings")
    assert (ended.code, ended.err) == (0, "")
    Path("my.toml").write_text(ended.out)
    assert call("run", "my.toml", "--iterations", 10, "--quiet", "--no-plot").code == 0
    assert call("settings", "fig2a").out == byzadmm.figures.settings_text("fig2a")
    assert refused("settings", "fig9").startswith("name: expected one of fig1a, ")


ODD_SETTINGS = {
    "deep array": ("x = " + "[" * 60_000, "nested too deeply"),
    "deep table": ("x = " + "{x=" * 20_000, "nested too deeply"),
    "deep key": ("x" + ".x" * 30_000 + " = 1", "not a TOML file: expected keys of at most 100 parts"),
    "deep header": ("[" + "x." * 30_000 + "x]", "not a TOML file: expected keys of at most 100 parts"),
    "many digits": ("x = " + "1" * 60_000, "not a TOML file: Exceeds the limit"),
    "huge": ("#" * 100_000, "expected at most 65536 bytes of settings, got 100000"),
    "not text": ("\udcff", "not a TOML file: 'utf-8' codec can't decode byte 0xff"),
    "control characters": (TWO_ALGORITHMS.replace("title", '"\\u001b[2J\\n"'), "\\x1b[2J\\n: unknown key"),
    "list for a table": ("algorithms = []\ndataset = 'digits'\niterations = 1\neval_every = 1", "algorithms: expected"),
}


@pytest.mark.parametrize("kind", ODD_SETTINGS)
def test_run_refuses_odd_settings(refused, kind):
    content, message = ODD_SETTINGS[kind]
    Path("odd.toml").write_text(content, encoding="utf-8", errors="surrogateescape")
    assert refused("run", "odd.toml").startswith(f"odd.toml: {message}")


def test_run_refuses_a_file_that_is_not_there(refused):
    assert refused("run", "none.toml") == "none.toml: no such settings file"


def test_a_file_with_several_readings_runs_the_first(call, tmp_path):
    """The others by name: byzadmm run fig1a --algorithm admm-tuned."""
    readings = [f"[algorithms.{name}]\nprinted = true\nstep = {{ power = 1.0 }}\n" for name in ("ideal", "median")]
    readings += [f"[algorithms.{name}-blind]\nstep = {{ power = 2.0 }}\n" for name in ("ideal", "median")]
    path = tmp_path / "two.toml"
    path.write_text('dataset = "digits"\niterations = 20\neval_every = 10\nn_byzantine = 4\n' + "\n".join(readings))
    ended = call("run", path, "--no-plot", "--json")
    assert [run["algorithm"] for run in json.loads(ended.out)["runs"]] == ["ideal", "median"]
    assert "not run: ideal-blind, median-blind; choose with --algorithm" in ended.err
    ended = call("run", path, "--no-plot", "--json", "--quiet", "--algorithm", "median-blind")
    assert [run["algorithm"] for run in json.loads(ended.out)["runs"]] == ["median-blind"]
    assert ended.err == ""
