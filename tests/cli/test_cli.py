"""The command line: every command through ``main``, its exit code, what it prints and what it refuses."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import byzadmm
from byzadmm import ADMM, RSA, SGD, Result, aggregate, aggregators, attacks, catalogue, cli, datasets, steps
from byzadmm import _comparison as comparison
from byzadmm.cli import main

QUICK = ["--iterations", "30", "--batch-size", "8"]


@pytest.fixture(autouse=True)
def _plain_surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("BYZADMM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BYZADMM_DATA", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def call(capsys):
    """Run a command; give back its exit code and what it printed."""

    def run(*words):
        code = main([str(word) for word in words])
        printed = capsys.readouterr()
        return SimpleNamespace(code=code, out=printed.out, err=printed.err)

    return run


@pytest.fixture
def refused(call):
    """Run a command that must fail with exactly one line; give back the line."""

    def run(*words):
        ended = call(*words)
        assert ended.code == 2
        assert ended.out == ""
        assert ended.err.startswith("byzadmm: error: ")
        assert ended.err.count("\n") == 1
        return ended.err.removeprefix("byzadmm: error: ").rstrip()

    return run


@pytest.fixture
def without_matplotlib(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "matplotlib" else real(name))


def rows_of(text):
    """Table rows by their first word."""
    return {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}


def fits(text):
    return all(len(line) <= 80 for line in text.splitlines())


# --- run ------------------------------------------------------------------------------------------------------------


def test_first_command_makes_the_point(call):
    ended = call("run", "--iterations", 300)
    assert ended.code == 0
    assert fits(ended.out)
    rows = rows_of(ended.out)
    assert set(comparison.PAPER) <= set(rows)
    assert rows["ideal"][-1] == "reference"
    assert rows["sgd"][-1] == "fails"
    assert float(rows["sgd"][0]) < 0.2
    assert float(rows["admm"][0]) > 0.8
    assert rows["admm"][2] == "300"
    assert ended.err == "saved byzadmm-run.png\n"
    assert Path("byzadmm-run.png").read_bytes().startswith(b"\x89PNG")


def test_nan_senders_are_counted_as_eliminated(call):
    ended = call("run", *QUICK, "--algorithm", "admm", "sgd", "--attack", "non-finite", "-q", 3, "--no-plot")
    rows = rows_of(ended.out)
    assert rows["admm"][4] == rows["sgd"][4] == "3"
    assert rows["ideal"][4] == "-"
    assert ended.err == ""


def test_run_json_is_json_only_and_needs_no_picture(call):
    ended = call("run", *QUICK, "--algorithm", "median", "--json", "--eval-every", 10, "--seed", 3)
    report = json.loads(ended.out)
    assert ended.err == ""
    assert os.listdir() == []
    assert [run["algorithm"] for run in report["runs"]] == ["ideal", "median"]
    assert report["runs"][1]["curves"]["iterations"] == [0, 10, 20, 30]
    assert report["runs"][1]["settings"]["rule"] == "median"
    assert (report["seed"], report["interrupted"], report["saved"]) == (3, False, [])


def test_json_writes_null_for_what_it_cannot_hold(call):
    words = ["--algorithm", "sgd", "--step", "1e30", "--attack", "same-value:v=1e30"]
    ended = call("run", "--iterations", 200, *words, "--json")

    def refuse(word):
        raise AssertionError(word)

    runs = json.loads(ended.out, parse_constant=refuse)["runs"]
    assert runs[1]["loss"] is None


def test_out_keeps_the_result_of_the_one_algorithm(call):
    ended = call("run", *QUICK, "--algorithm", "rsa", "--lam", 0.1, "--out", "run.npz", "--plot", "run.svg")
    assert ended.code == 0
    kept = Result.load("run.npz")
    assert kept.config["algorithm"]["name"] == "RSA"
    assert kept.config["algorithm"]["lam"] == 0.1
    assert "<svg" in Path("run.svg").read_text(encoding="utf-8")
    assert ended.err == "saved run.npz\nsaved run.svg\n"


def test_ideal_alone(call):
    ended = call("run", *QUICK, "--algorithm", "ideal", "--out", "run.npz", "--quiet", "--no-plot", "--step", 0.5)
    assert list(rows_of(ended.out))[-1] == "ideal"
    assert ended.err == ""
    assert Result.load("run.npz").config["algorithm"]["step"] == "Constant(a=0.5)"


def test_run_gives_the_bits_of_simulate(call):
    call("run", *QUICK, "--algorithm", "admm", "--out", "run.npz", "--no-plot", "--threads", 1, "--seed", 5)
    data = datasets.load("digits")
    own = byzadmm.simulate(
        data,
        byzadmm.partition.iid(data.train_y, 20, seed=5),
        algorithm=catalogue.PRESETS["digits"].admm,
        attack=attacks.SignFlip(),
        n_byzantine=8,
        iterations=30,
        batch_size=8,
        seed=5,
    )
    np.testing.assert_array_equal(Result.load("run.npz").x0, own.x0)


@pytest.mark.parametrize(
    "words",
    [
        ["--partition", "by-label"],
        ["--partition", "dirichlet"],
        ["--partition", "dirichlet:alpha=0.2"],
        ["--scale", "unit"],
        ["--scale", "0.03"],
        ["--dataset", "synthetic", "--attack", "none", "-q", "0"],
        ["--attack", "duplicate:worker=1", "--n-workers", "10", "-q", "2", "--dtype", "float64", "--rho", "0.1"],
    ],
)
def test_run_options(call, words):
    ended = call("run", *QUICK, "--algorithm", "admm", "--no-plot", *words)
    assert (ended.code, ended.err) == (0, "")
    assert set(rows_of(ended.out)) >= {"ideal", "admm"}


def test_settings_follow_the_scale(call):
    def admm(*words):
        ended = call("run", *QUICK, "--algorithm", "admm", "--json", *words)
        return json.loads(ended.out)["runs"][1]["settings"]["lam"], ended.err

    assert admm() == (0.01, "")
    raw, err = admm("--scale", "raw")
    assert (round(raw, 2), err) == (0.16, "")
    assert admm("--scale", "0.01", "--quiet") == (0.01, "")
    assert "data: expected samples of mean squared length >= 1" in admm("--scale", "0.01")[1]


def test_options_reach_the_algorithms(call):
    words = ["--lam", "0.2", "--beta", "0.7", "--master-step", "inv-sqrt:9,1", "--worker-step", "power:c=0.3,p=0.4"]
    runs = json.loads(call("run", *QUICK, "--algorithm", "admm", "rsa", "--json", *words).out)["runs"]
    admm, rsa = runs[1]["settings"], runs[2]["settings"]
    assert (admm["lam"], admm["beta"], rsa["lam"]) == (0.2, 0.7, 0.2)
    assert admm["master_step"] == rsa["master_step"] == "InvSqrt(c0=9.0, c1=1.0)"
    assert admm["worker_step"] == rsa["worker_step"] == "Power(c=0.3, p=0.4)"


def test_rule_of_sgd(call):
    ended = call("run", *QUICK, "--algorithm", "sgd", "--rule", "trimmed-mean:f=5", "--json")
    run = json.loads(ended.out)["runs"][1]
    assert run["algorithm"] == "trimmed-mean:f=5"
    assert (run["settings"]["rule"], run["settings"]["f"]) == ("trimmed_mean", 5)
    plain = json.loads(call("run", *QUICK, "--algorithm", "sgd", "--rule", "mean", "--json").out)["runs"][1]
    assert (plain["algorithm"], plain["settings"]["rule"]) == ("sgd", "mean")


def test_rule_with_settings_runs_as_an_object(call):
    run = json.loads(call("run", *QUICK, "--algorithm", "median:even=low", "--json").out)["runs"][1]
    assert run["settings"]["rule"] == ["Median(nonfinite='exclude', even='low', weights=None)"]


def test_rules_alone_are_compared(call):
    words = ["--rule", "krum", "nnm+trimmed-mean", "clip:max-norm=1e+1+median", "-f", "3", "--momentum", "0.5"]
    ended = call("run", *QUICK, "-q", "4", *words, "--variance-reduction", "saga", "--json")
    assert ended.code == 0
    ideal, krum, mixed, clipped = json.loads(ended.out)["runs"]
    assert [run["algorithm"] for run in (krum, mixed, clipped)] == [words[1], words[2], words[3]]
    assert (krum["settings"]["rule"], krum["settings"]["f"]) == ("krum", 3)
    assert (mixed["settings"]["rule"], mixed["settings"]["f"]) == ("nearest_neighbor_mixing+trimmed_mean", 3)
    assert clipped["settings"]["rule"][0] == "Clipping(nonfinite='exclude', max_norm=10.0)"
    for run in (ideal, krum, mixed, clipped):
        assert (run["settings"]["momentum"], run["settings"]["variance_reduction"]) == (0.5, "saga")
    joined = call("run", *QUICK, "--algorithm", "admm", "sgd", "--rule", "krum", "median", "--json")
    assert [run["algorithm"] for run in json.loads(joined.out)["runs"]] == ["ideal", "admm", "krum", "median"]


def test_a_chain_is_an_algorithm_too(call):
    [_, run] = json.loads(call("run", *QUICK, "--algorithm", "NNM+krum", "--json").out)["runs"]
    assert (run["settings"]["rule"], run["settings"]["f"]) == ("nearest_neighbor_mixing+krum", 8)


def test_krum_on_the_command_line_learns(call):
    runs = json.loads(call("run", "--algorithm", "krum", "sgd", "--iterations", "300", "--json").out)["runs"]
    accuracy = {run["algorithm"]: run["accuracy"] for run in runs}
    assert accuracy["krum"] > accuracy["ideal"] - 0.03
    assert accuracy["sgd"] < 0.3


def test_if_one_of_the_rules_bears_its_f_it_is_shown(call):
    ended = call("run", *QUICK, "--rule", "krum", "bulyan", "--json")
    assert ended.code == 2
    assert [run["algorithm"] for run in json.loads(ended.out)["runs"]] == ["ideal", "krum"]
    assert ended.err == "byzadmm: error: bulyan: f=8 is too large for n=20 workers; at most 4\n"


def test_long_chains_leave_room_for_the_numbers(call):
    ended = call("run", *QUICK, "--rule", "clip:max-norm=10+nnm+clip:max-norm=9+trimmed-mean", "--no-plot")
    assert fits(ended.out)
    assert "iterations  seconds  eliminated  vs Ideal" in ended.out
    names = [line.split()[0] for line in ended.out.splitlines()[-4:]]
    assert names == ["clip:max-norm=10+", "nnm+", "clip:max-norm=9+", "trimmed-mean"]


def test_names_in_any_case_and_one_word_about_the_picture(call, refused):
    ended = call("run", *QUICK, "--algorithm", "SGD", "--rule", "Krum", "--no-plot")
    assert set(rows_of(ended.out)) >= {"ideal", "krum"}
    assert "not allowed with argument" in refused("run", "--plot", "a.svg", "--no-plot")


def test_without_matplotlib_there_is_a_hint(call, without_matplotlib):
    ended = call("run", *QUICK, "--algorithm", "admm")
    assert ended.code == 0
    assert ended.err == "no picture: matplotlib is missing; pip install 'byzadmm[plot]'\n"
    assert call("run", *QUICK, "--algorithm", "admm", "--quiet").err == ""


def test_a_picture_asked_for_without_matplotlib_is_an_error(refused, without_matplotlib):
    assert refused("run", "--plot", "a.png") == "plot: matplotlib is missing; pip install 'byzadmm[plot]'"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dataset", "cifar"], "dataset: expected one of digits, synthetic, mnist, fashion-mnist, covtype; got "),
        (["--algorithm", "adam"], "algorithm: expected one of admm, rsa, sgd, ideal, "),
        (["--algorithm", "admm:lam=1"], "algorithm: admm takes its settings from options such as --step; got "),
        (["--attack", "frown"], "attack: expected one of alie, "),
        (["--attack", "gaussian:sigma=3"], "attack: gaussian takes std; got 'sigma=3'"),
        (["--attack", "gaussian:std=big1"], "attack: gaussian: std: expected a number, got 'big1'"),
        (["--attack", "gaussian:1,2"], "attack: gaussian takes std; got '2'"),
        (["--attack", "gaussian:1,std=2"], "attack: gaussian got std twice"),
        (["--attack", "gaussian:std=-1"], "std: expected a finite number >= 0"),
        (["--attack", "gaussian:std=big"], "std: expected a real number, got str"),
        (["--attack", "none:3"], "attack: none takes no settings; got '3'"),
        (["--attack", "zero:"], "attack: zero takes no settings; got ''"),
        (["-q", "21"], "n_byzantine: expected an integer in [0, 20], got 21"),
        (["-q", "two"], "argument -q/--n-byzantine: invalid int value: 'two' (see byzadmm run --help)"),
        (["--n-workers", "0"], "n_workers: expected an integer >= 1, got 0"),
        (["--iterations", "0"], "iterations: expected an integer >= 1, got 0"),
        (["--threads", "-1"], "threads: expected an integer >= 0, got -1"),
        (["--batch-size", "0"], "batch_size: expected an integer >= 1, got 0"),
        (["--rho", "nan"], "rho: expected a finite number >= 0"),
        (["--lam", "-1"], "lam: expected a finite number > 0.0, got -1.0"),
        (["--algorithm", "median", "--lam", "1"], "lam: none of median has it"),
        (["--algorithm", "admm", "--step", "1"], "step: none of admm has it"),
        (["--algorithm", "admm", "rsa", "--lam", "1e60"], "lam: expected a finite number > 0.0 in float32, got 1e+60"),
        (["--attack", "gaussian:std=1e60"], "attack: std: expected a finite number in float32, got 1e+60"),
        (["--scale", "1e60"], "scale: expected a finite number > 0.0 in float32, got 1e+60"),
        (["--iterations", "9" * 30], "iterations: expected an integer in [0, 4611686018427387904], got 999"),
        (["--dataset", "a\nb\x1b"], "dataset: expected one of "),
        (["--algorithm", "a\nb", "--rule", "krum"], "rule: is for --algorithm sgd, got --algorithm a\\nb"),
        (["--step", "0"], "step: expected a finite number > 0.0, got 0.0"),
        (["--step", "cosine:1"], "step: expected one of constant, inv-linear, inv-sqrt, power; got 'cosine'"),
        (["--master-step", "inv-sqrt:1"], "master_step: inv-sqrt needs c1, as in inv-sqrt:c1=1"),
        (["--rule", "krumm", "--algorithm", "sgd"], "rule: expected one of "),
        (["--rule", "median", "--algorithm", "admm"], "rule: is for --algorithm sgd, got --algorithm admm"),
        (["--rule", "krum", "-f", "9"], "krum: f=9 is too large for n=20 workers; at most 8"),
        (["--rule", "bulyan", "bucketing+krum"], "bulyan: f=8 is too large for n=20 workers; at most 4"),
        (["--algorithm", "nnm+krum:f=9"], "krum: f=9 is too large for n=20 workers; at most 8"),
        (["--rule", "nnm"], "rule: nearest_neighbor_mixing gives rows, so a rule must follow it"),
        (["--rule", "krum+nnm"], "rule: krum gives one vector, so nothing can follow it"),
        (["--rule", "clip+median"], "rule: clip needs max_norm, as in clip:max_norm=1"),
        (["--rule", "nnm:s=2+median"], "rule: nnm takes f; got 's=2'"),
        (["--rule", "median", "-f", "2"], "f: none of median has it"),
        (["--rule", "krum", "-f", "-2"], "f: expected an integer >= 0, got -2"),
        (["--rule", "krum", "--momentum", "1"], "momentum: expected a number in [0, 1), got 1.0"),
        (["--rule", "krum", "--variance-reduction", "svrg"], "variance_reduction: expected one of saga; got 'svrg'"),
        (["--algorithm", "admm", "--momentum", "0.9"], "momentum: none of admm has it"),
        (["--algorithm", "sgd:0.1"], "algorithm: sgd takes its settings from options such as --step; got 'sgd:0.1'"),
        (["--partition", "even"], "partition: expected one of by-label, dirichlet, iid; got 'even'"),
        (["--partition", "iid:seed=3"], "partition: iid takes no settings; got 'seed=3'"),
        (["--partition", "by-label", "--n-workers", "15"], "n_workers: expected 20"),
        (["--scale", "huge"], "scale: expected one of raw, unit, standard; got 'huge'"),
        (["--dtype", "float16"], "dtype: expected float32 or float64, got 'float16'"),
        (["--out", "a.npz"], "out: expected one algorithm, got 5; choose it with --algorithm"),
        (["--algorithm", "admm", "--out", "a.txt"], "out: expected a name ending in .npz; got 'a.txt'"),
        (["--algorithm", "admm", "--out", "no/a.npz"], "out: cannot write 'no/a.npz': No such file or directory"),
        (["--plot", "a.gif"], "plot: expected a name ending in .png, .svg, .pdf; got 'a.gif'"),
        (["--iter=3"], "unrecognized arguments: --iter=3 (see byzadmm --help)"),
    ],
)
def test_run_refuses(refused, words, message):
    assert refused("run", *words).startswith(message)


def test_absent_data_is_said_without_a_traceback(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    ended = call("run", "--dataset", "mnist")
    assert ended.code == 2
    assert ended.err.startswith("byzadmm: error: mnist: data files not found, and not downloaded\n")
    assert "t10k-labels-idx1-ubyte.gz" in ended.err
    assert "Traceback" not in ended.err


def test_one_failing_run_does_not_lose_the_others(call):
    ended = call("run", *QUICK, "--algorithm", "median", "trimmed-mean", "-q", 12, "--no-plot")
    assert ended.code == 2
    assert {"ideal", "median"} <= set(rows_of(ended.out))
    assert ended.err == "byzadmm: error: trimmed-mean: trimmed_mean: f=12 is too large for n=20 workers; at most 9\n"


def interrupted_after(count):
    def stand_in(configs, workers=None, *, progress=None, on_result=None):
        for number, config in enumerate(configs[:count]):
            rest = {key: value for key, value in config.items() if key not in ("dataset", "parts")}
            on_result(number, byzadmm.simulate(config["dataset"], config["parts"], **rest))
        raise KeyboardInterrupt

    return stand_in


def test_ctrl_c_keeps_what_is_finished(call, monkeypatch):
    monkeypatch.setattr(cli, "simulate_many", interrupted_after(2))
    ended = call("run", *QUICK)
    assert ended.code == 130
    assert set(rows_of(ended.out)) >= {"ideal", "admm"}
    assert "rsa" not in ended.out
    assert ended.err == "saved byzadmm-run.png\nbyzadmm: interrupted; 2 of 6 runs were finished\n"


def test_ctrl_c_before_anything_is_finished(call, monkeypatch):
    monkeypatch.setattr(cli, "simulate_many", interrupted_after(0))
    ended = call("run", *QUICK, "--algorithm", "admm", "--out", "run.npz")
    assert (ended.code, ended.out) == (130, "")
    assert ended.err == "byzadmm: interrupted; 0 of 2 runs were finished\n"
    assert os.listdir() == []


def test_ctrl_c_elsewhere(call, monkeypatch):
    def stop(*rest):
        raise KeyboardInterrupt

    monkeypatch.setattr(datasets, "available", stop)
    ended = call("data", "list")
    assert (ended.code, ended.err) == (130, "byzadmm: interrupted\n")


# --- files that cannot be written -------------------------------------------------------------------------------------


@pytest.fixture
def untrained(monkeypatch):
    """Training is a failure of the test."""

    def train(*rest, **options):
        raise AssertionError("trained")

    monkeypatch.setattr(cli, "simulate_many", train)


@pytest.mark.parametrize("option", ["--out", "--plot"])
@pytest.mark.parametrize(
    ("target", "why"),
    [("no/a", "No such file or directory"), ("folder", "Is a directory"), ("/proc/a", ""), ("x" * 260, "File name")],
)
@pytest.mark.usefixtures("untrained")
def test_a_file_that_cannot_be_written_is_found_before_training(refused, option, target, why):
    name = target + {"--out": ".npz", "--plot": ".png"}[option]
    Path(f"folder{name[-4:]}").mkdir()
    said = refused("run", "--algorithm", "admm", option, name)
    assert said.startswith(f"{option[2:]}: cannot write '{name}': {why}")
    assert os.listdir() == [f"folder{name[-4:]}"]


def test_a_picture_that_nobody_asked_for_may_be_impossible(call):
    Path("byzadmm-run.png").mkdir()
    ended = call("run", *QUICK, "--algorithm", "admm")
    assert ended.code == 0
    assert "admm" in rows_of(ended.out)
    assert ended.err == "no picture: cannot write 'byzadmm-run.png': Is a directory\n"


def test_trying_leaves_old_files_as_they_are(refused):
    Path("run.npz").write_bytes(b"old")
    Path("run.png").write_bytes(b"old")
    refused("run", "--algorithm", "admm", "--out", "run.npz", "--plot", "run.png", "--dtype", "float16")
    refused("run", "--algorithm", "admm", "--out", "run.npz", "--plot", "run.png", "--lam", "1e60")
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == {"run.npz": b"old", "run.png": b"old"}


@pytest.mark.parametrize("words", [[], ["--json"]], ids=["table", "json"])
def test_a_disk_that_fills_up_costs_neither_table_nor_result(call, monkeypatch, tmp_path, words):
    save = Result.save

    def full(run, path):
        if Path(path).parent == Path():
            raise OSError(28, "No space left on device")
        save(run, path)

    def torn(path, **options):
        raise RuntimeError("no fonts")

    monkeypatch.setattr(Result, "save", full)
    monkeypatch.setattr(comparison, "draw", torn)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ended = call("run", *QUICK, "--algorithm", "admm", "--out", "run.npz", "--plot", "run.png", *words)
    assert ended.code == 1
    if words:
        assert json.loads(ended.out)["saved"] == []
    else:
        assert "admm" in rows_of(ended.out)
    [kept] = tmp_path.glob("byzadmm-*/run.npz")
    assert ended.err == (
        f"byzadmm: error: out: cannot write 'run.npz'; saved {kept} instead: [Errno 28] No space left on device\n"
        "byzadmm: error: plot: cannot write 'run.png': no fonts\n"
    )
    assert Result.load(kept).config["algorithm"]["name"] == "ADMM"


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_a_full_disk_as_a_process(tmp_path):
    """More than trying needs, less than the result."""
    # The limit ends with the command: what measures coverage writes a file of its own when the process ends.
    script = "import resource, sys; from byzadmm.cli import main; size = resource.RLIMIT_FSIZE\n"
    script += "usual = resource.getrlimit(size); resource.setrlimit(size, (10_000, usual[1]))\n"
    script += "code = main(sys.argv[1:]); resource.setrlimit(size, usual); sys.exit(code)"
    words = [sys.executable, "-c", script, "run", *QUICK, "--algorithm", "admm", "--out", "run.npz", "--no-plot"]
    (tmp_path / "run.npz").write_bytes(b"old")
    (tmp_path / "tmp").mkdir()
    surroundings = environment() | {"TMPDIR": str(tmp_path / "tmp")}
    ended = subprocess.run(words, capture_output=True, text=True, env=surroundings, check=False, encoding="utf-8")
    assert ended.returncode == 1
    assert "admm" in rows_of(ended.stdout)
    assert ended.stderr == "byzadmm: error: out: cannot write 'run.npz': [Errno 27] File too large\n"
    assert Path("run.npz").read_bytes() == b"old"
    assert sorted(os.listdir()) == ["run.npz", "tmp"]
    assert os.listdir("tmp") == []


def test_reproduce_finds_out_before_and_loses_nothing_after(call, refused, monkeypatch):
    Path("out/claims.json").mkdir(parents=True)
    said = refused("reproduce", "example", "--quick", "--out", "out", "--quiet")
    assert said == "out: cannot write 'out/claims.json': Is a directory"
    Path("file").touch()
    said = refused("reproduce", "example", "--quick", "--out", "file")
    assert said == "out: cannot make folder 'file': File exists"
    Path("there/example.csv").mkdir(parents=True)
    ended = call("reproduce", "example", "--quick", "--out", "there", "--quiet")
    assert ended.code == 1
    assert "10 example" in ended.out
    assert "example: not finished: could not be written: [Errno 21] Is a directory" in ended.out


def test_tune_finds_out_before(refused):
    Path("a.tuning.json").mkdir()
    said = refused("tune", "fig1a", "--out", "a.toml", "--quiet")
    assert "a.tuning.json" in said
    assert refused("tune", "fig1a", "--out", "no/a.toml") == "out: cannot write 'no/a.toml': No such file or directory"


# --- names and text to settings --------------------------------------------------------------------------------------


def test_every_attack_step_and_rule_has_a_name():
    classes = {kind for kind in vars(attacks).values() if inspect.isclass(kind) and issubclass(kind, attacks.Attack)}
    assert set(comparison.attack_table().values()) == classes - {attacks.Attack}
    assert {"sign-flip", "label-flip", "alie", "non-finite"} <= set(comparison.attack_table())
    assert set(comparison.step_table()) == {"constant", "inv-linear", "inv-sqrt", "power"}
    rules = comparison.rule_table()
    assert {"mean", "median", "trimmed-mean", "geometric-median"} <= set(rules)
    assert not {"info", "max-f", "clip", "bucketing", "nearest-neighbor-mixing"} & set(rules)
    assert "mean" not in comparison.algorithm_names()


def test_a_new_attack_and_a_new_rule_appear_by_themselves(call, monkeypatch):
    class LoudNoise(attacks.Gaussian):
        """Louder."""

    def first_row(X, *, f, nonfinite="exclude", threads=0):
        """The first row."""
        return X[f]

    @dataclasses.dataclass(frozen=True)
    class FirstRow(aggregators.Aggregator):
        f: int
        rule = "first_row"

    monkeypatch.setattr(attacks, "LoudNoise", LoudNoise, raising=False)
    monkeypatch.setattr(attacks, "__all__", [*attacks.__all__, "LoudNoise"])
    monkeypatch.setattr(aggregate, "first_row", first_row, raising=False)
    monkeypatch.setitem(aggregate._MAX_F, "first_row", lambda n: n - 1)
    monkeypatch.setitem(aggregators.RULES, "first_row", FirstRow)
    ended = call("run", *QUICK, "--algorithm", "first-row", "--attack", "loud-noise:std=1", "--json")
    run = json.loads(ended.out)["runs"][1]
    assert run["settings"]["rule"][0].endswith("FirstRow(nonfinite='exclude', f=8)")
    assert "Louder." in call("list", "attacks").out
    assert "The first row." in call("list", "rules").out


def test_values_in_text():
    table = comparison.attack_table()
    assert comparison.build("alie:none", "attack", table) == ("alie", {"z": None})
    assert comparison.build("sign_flip:-2.5", "attack", table) == ("sign-flip", {"scale": -2.5})
    assert comparison.build("SignFlip: scale = 1e3", "attack", table) == ("sign-flip", {"scale": 1000.0})
    assert comparison.make_attack("duplicate:worker=3") == attacks.Duplicate(worker=3)
    assert comparison.make_attack("none") is None
    assert comparison.make_attack("min-max:unit,factor=0.5") == attacks.MinMax("unit", 0.5)
    searched = comparison.make_attack("worst-case:inner-product,rule=nnm+trimmed-mean,high=3")
    assert searched == attacks.WorstCase("inner-product", "nnm+trimmed-mean", high=3)


def test_rsa_steps():
    preset, one, two = catalogue.PRESETS["digits"], steps.constant(1.0), steps.constant(2.0)
    make = comparison.make_algorithm
    assert make("rsa", preset, 8) == preset.rsa
    assert make("rsa", preset, 8, {"lam": 0.5}) == RSA(lam=0.5, step=preset.rsa.step)
    assert make("rsa", preset, 8, {"step": one}).worker_step == one
    mixed = make("rsa", preset, 8, {"step": one, "worker_step": two})
    assert (mixed.master_step, mixed.worker_step) == (one, two)


def test_algorithms_by_name():
    preset = catalogue.PRESETS["mnist"]
    assert comparison.make_algorithm("admm", preset, 8) == preset.admm
    assert isinstance(comparison.make_algorithm("admm", preset, 8, {"beta": 2.0}), ADMM)
    assert comparison.make_algorithm("ideal", preset, 8) == SGD(step=preset.step, ideal=True)
    assert comparison.make_algorithm("trimmed-mean", preset, 7) == SGD(rule="trimmed_mean", step=preset.step, f=7)
    assert comparison.make_algorithm("trimmed-mean:2", preset, 7).f == 2


def test_every_data_set_has_a_preset():
    assert {name.replace("-", "_") for name in catalogue.PRESETS} == {row.name for row in datasets.available()}


def test_verdict():
    assert comparison.verdict(0.93, 0.95) == "close"
    assert comparison.verdict(0.96, 0.95) == "close"
    assert comparison.verdict(0.92, 0.95) == "0.030 below"
    assert comparison.verdict(0.47, 0.95) == "fails"
    assert comparison.verdict(float("nan"), 0.95) == "fails"
    assert comparison.verdict(0.9, None) == ""


# --- settings files --------------------------------------------------------------------------------------------------

SETTINGS = """
title = "Two algorithms on digits"
dataset = "digits"
n_workers = 6
n_byzantine = 2
attack = { name = "sign-flip" }
iterations = 30
eval_every = 10
batch_size = 4

[algorithms.ideal]
step = { power = [10.0] }
[algorithms.admm]
lam = 0.01
beta = 0.5
master_step = { inv_sqrt = [10, 0.3] }
worker_step = { inv_sqrt = [0.5, 0.3] }
"""


@pytest.fixture
def settings_file(tmp_path):
    path = tmp_path / "two.toml"
    path.write_text(SETTINGS, encoding="utf-8")
    return path


def test_run_takes_a_settings_file(call, settings_file):
    ended = call("run", settings_file, "--out", "run.npz", "--plot", "run.png", "--seed", 3, "--iterations", 20)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("Two algorithms on digits")
    run = Result.load("run.npz")
    settings = byzadmm.figures.load_settings(settings_file)
    data = datasets.load("digits")
    parts = byzadmm.figures.settings.make_parts(settings, data, 3)
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
    named = SETTINGS.replace("Two", "$x_{$").replace("[algorithms.admm]", '[algorithms."$y_{$"]\nkind = "admm"')
    settings_file.write_text(named, encoding="utf-8")
    ended = call("run", settings_file, "--plot", "a.svg")
    assert (ended.code, ended.err) == (0, "saved a.svg\n")


ODD_SETTINGS = {
    "deep array": ("x = " + "[" * 60_000, "nested too deeply"),
    "deep table": ("x = " + "{x=" * 20_000, "nested too deeply"),
    "deep key": ("x" + ".x" * 30_000 + " = 1", "not a TOML file: expected keys of at most 100 parts"),
    "deep header": ("[" + "x." * 30_000 + "x]", "not a TOML file: expected keys of at most 100 parts"),
    "many digits": ("x = " + "1" * 60_000, "not a TOML file: Exceeds the limit"),
    "huge": ("#" * 100_000, "expected at most 65536 bytes of settings, got 100000"),
    "not text": ("\udcff", "not a TOML file: 'utf-8' codec can't decode byte 0xff"),
    "control characters": (SETTINGS.replace("title", '"\\u001b[2J\\n"'), "\\x1b[2J\\n: unknown key"),
    "list for a table": ("algorithms = []\ndataset = 'digits'\niterations = 1\neval_every = 1", "algorithms: expected"),
}


@pytest.mark.parametrize("kind", ODD_SETTINGS)
def test_run_refuses_odd_settings(refused, kind):
    content, message = ODD_SETTINGS[kind]
    Path("odd.toml").write_text(content, encoding="utf-8", errors="surrogateescape")
    assert refused("run", "odd.toml").startswith(f"odd.toml: {message}")


@pytest.mark.parametrize(
    "record",
    [
        "[" * 100_000,
        "[]",
        '{"search": {}, "trials": {}}',
        '{"search": {"budget": 1, "seed": 0, "iterations": 1}, "trials": {"rsa": []}}',
        '{"search": {"budget": 1, "seed": 0, "iterations": 1}, "trials": {"rsa": {"one": {}}}}',
        '{"search": {"budget": 1, "seed": 0, "iterations": 1}, "trials": {"rsa": {"1": {"step": 1}}}}',
        '{"search": {"budget": 1, "seed": 0, "iterations": 1}, "trials": {"rsa": {"1": {"accuracy": "high"}}}}',
        '{"search": {"budget": 1, "seed": 0, "iterations": 1}, "trials": {"rsa": {"1": {"accuracy": 1}}}}',
    ],
    ids=range(8),
)
def test_tune_refuses_a_broken_journal(refused, record):
    packaged = byzadmm.figures.settings.settings_path("fig1a")
    Path("mine.toml").write_text(packaged.read_text(encoding="utf-8"), encoding="utf-8")
    Path("mine.tuning.json").write_text(record, encoding="utf-8")
    assert refused("tune", "mine.toml", "--check").startswith("mine.tuning.json: ")


def test_run_refuses_a_file_that_is_not_there(refused):
    assert refused("run", "none.toml") == "none.toml: no such settings file"


# --- reproduce, tune -------------------------------------------------------------------------------------------------


@pytest.fixture
def figures(monkeypatch):
    """A stand-in for ``byzadmm.figures`` that notes how it was called."""
    calls = []
    report = SimpleNamespace(table=lambda: "claim 1 holds", failed={}, interrupted=False)
    report.paths = [Path("figures/fig1a.png")]
    found = SimpleNamespace(table=lambda: "admm 0.9", differences=[])

    def note(answer):
        def function(*names, **options):
            calls.append((names, options))
            return answer

        return function

    made = SimpleNamespace(
        available=lambda: [("fig1a", "MNIST, Gaussian"), ("example", "The example")],
        reproduce=note(report),
        tune=note(found),
        calls=calls,
        report=report,
        found=found,
    )
    monkeypatch.setitem(sys.modules, "byzadmm.figures", made)
    return made


@pytest.mark.parametrize("words", [[], ["all"], ["fig1a", "all"]])
def test_reproduce_all(call, figures, words):
    ended = call("reproduce", *words)
    assert (ended.code, ended.out, ended.err) == (0, "claim 1 holds\n", "saved figures/fig1a.png\n")
    options = {"seeds": 3, "quick": False, "out": "figures", "data_dir": None, "progress": True}
    assert figures.calls == [((["fig1a", "example"],), options)]


def test_reproduce_options(call, figures):
    words = ["my.toml", "--seeds", 1, "--quick", "--out", "there", "--data-dir", "data", "--quiet"]
    assert call("reproduce", *words).err == ""
    options = {"seeds": 1, "quick": True, "out": "there", "data_dir": "data", "progress": False}
    assert figures.calls == [((["my.toml"],), options)]


def test_reproduce_failed_and_interrupted(call, figures):
    figures.report.failed["fig1a"] = "no data"
    assert call("reproduce", "fig1a").code == 1
    figures.report.interrupted = True
    ended = call("reproduce", "fig1a", "--quiet")
    assert (ended.code, ended.out) == (130, "claim 1 holds\n")
    assert ended.err == "byzadmm: interrupted; what was finished is in figures\n"


def test_reproduce_refuses(refused, figures):
    assert refused("reproduce", "--seeds", 0) == "seeds: expected an integer >= 1, got 0"


def test_tune(call, figures):
    words = ["--algorithms", "rsa", "median", "--budget", 4, "--seed", 2, "--out", "a.toml", "--data-dir", "d"]
    ended = call("tune", "fig1a", "--quiet", *words)
    assert (ended.code, ended.out, ended.err) == (0, "admm 0.9\n", "")
    options = {"algorithms": ["rsa", "median"], "budget": 4, "seed": 2, "data_dir": "d", "out": "a.toml"}
    assert figures.calls == [(("fig1a",), options | {"check": False, "progress": False})]


def test_tune_check_that_differs(call, figures):
    figures.found.differences.append("rsa: lam")
    ended = call("tune", "fig1a", "--check")
    assert (ended.code, ended.err) == (1, "byzadmm: differs: rsa: lam\n")
    assert figures.calls[0][1]["check"] is True


def test_tune_interrupted(call, figures):
    def stop(*names, **options):
        raise KeyboardInterrupt

    figures.tune = stop
    ended = call("tune", "fig1a")
    assert (ended.code, ended.err) == (130, "byzadmm: interrupted; the same command goes on from the journal\n")


def test_reproduce_and_tune_as_json(call, tmp_path):
    ended = call("reproduce", "example", "--quick", "--out", tmp_path, "--json")
    found = json.loads(ended.out)
    assert (found["seeds"], found["quick"], found["interrupted"], found["failed"]) == (1, True, False, {})
    assert [claim["claim"] for claim in found["claims"]] == [10]
    assert {Path(name).name for name in found["files"]} >= {"example.png", "example.csv", "claims.json"}
    found = json.loads(call("tune", "fig1a", "--check", "--json").out)
    assert found["differences"] == []
    assert 0.5 < found["best"]["rsa"]["accuracy"] < 1


@pytest.mark.slow
def test_reproduce_keeps_what_is_finished_on_ctrl_c(tmp_path):
    """A real signal to a real process, sent as soon as the first panel is there."""
    slow = tmp_path / "slow.toml"
    slow.write_text(
        'title = "slow"\ndataset = "digits"\npartition = "iid"\nn_workers = 20\nn_byzantine = 8\n'
        'iterations = 100000000\neval_every = 100\n[attack]\nname = "sign-flip"\n'
        "[algorithms.ideal]\nstep = { power = 1.0 }\n"
    )
    # A shell's background job ignores SIGINT, and so would its children: ask for the usual behaviour.
    script = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from byzadmm.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    options = ["--seeds", "1", "--out", str(tmp_path / "out")]
    words = [sys.executable, "-c", script, "reproduce", "example", str(slow), *options]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), encoding="utf-8"
    )
    try:
        deadline = time.monotonic() + 120
        while not (tmp_path / "out" / "example.png").exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "interrupted; what was finished is in" in err
    assert "Traceback" not in err
    assert "holds" in out


# --- data, list, info, mpi, help -------------------------------------------------------------------------------------


def test_data_list(call, tmp_path):
    ended = call("data", "list")
    assert fits(ended.out)
    rows = rows_of(ended.out)
    assert rows["digits"] == ["in", "the", "package", "45", "kB", "CC", "BY", "4.0"]
    assert rows["mnist"][:4] == ["not", "here", "11.6", "MB"]
    records = json.loads(call("data", "list", "--json", "--data-dir", tmp_path).out)
    assert [record["name"] for record in records] == ["digits", "synthetic", "mnist", "covtype", "fashion-mnist"]


def test_data_path_and_fetch(call, tmp_path):
    assert call("data", "path", "--data-dir", "here").out == f"here\n{tmp_path / 'cache'}\n"
    assert json.loads(call("data", "path", "--json").out) == [str(tmp_path / "cache")]
    ended = call("data", "fetch", "digits")
    assert (ended.code, ended.out, ended.err) == (0, "", "digits: nothing to fetch, it is always there\n")


def test_data_fetch_prints_the_files(call, monkeypatch):
    asked = []
    monkeypatch.setattr(datasets, "fetch", lambda name, **options: asked.append((name, options)) or [Path("a.gz")])
    assert call("data", "fetch", "fashion-mnist", "--data-dir", "d").out == "a.gz\n"
    assert asked == [("fashion_mnist", {"data_dir": "d"})]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fetch"], "data: expected `data list`, `data fetch NAME` or `data path`"),
        (["list", "mnist"], "data: expected `data list`, `data fetch NAME` or `data path`"),
        (["drop"], "data: expected one of list, fetch, path; got 'drop'"),
        (["fetch", "cifar"], "name: expected one of digits, synthetic, mnist, fashion-mnist, covtype; got 'cifar'"),
    ],
)
def test_data_refuses(refused, words, message):
    assert refused("data", *words) == message


@pytest.mark.parametrize("what", ["algorithms", "attacks", "rules", "figures"])
def test_list(call, figures, what):
    ended = call("list", what)
    assert ended.code == 0
    assert fits(ended.out)
    names = [row["name"] for row in json.loads(call("list", what, "--json").out)]
    expected = {"algorithms": "geometric-median", "attacks": "gaussian", "rules": "trimmed-mean", "figures": "fig1a"}
    assert expected[what] in names
    assert set(names) <= set(rows_of(ended.out))


def test_list_of_rules(call):
    rows = {row["name"]: row for row in json.loads(call("list", "rules", "--json").out)}
    assert set(rows) == {name.replace("_", "-") for name in aggregators.RULES | aggregators.PRE_AGGREGATORS}
    legal = {name: rows[name]["max_f"] for name in ("mean", "median", "krum", "bulyan", "nearest-neighbor-mixing")}
    assert legal == {"mean": 0, "median": 9, "krum": 8, "bulyan": 4, "nearest-neighbor-mixing": 9}
    assert {row["n"] for row in rows.values()} == {20}
    assert [name for name, row in rows.items() if row["kind"] == "pre-aggregation"] == [
        "nearest-neighbor-mixing",
        "bucketing",
        "clip",
    ]
    assert all(row["about"].endswith(".") for row in rows.values())
    printed = call("list", "rules")
    assert rows_of(printed.out)["krum"][0] == "8"
    assert "byzadmm run --rule nnm+krum" in printed.err


def test_list_refuses(refused):
    assert refused("list", "clouds") == "list: expected one of algorithms, attacks, rules, figures; got 'clouds'"


def test_info(call, monkeypatch):
    monkeypatch.setitem(cli._EXTRAS, "mpi", ("no-such-package-at-all",))
    ended = call("info")
    assert ended.code == 0
    assert fits(ended.out)
    assert "not installed" in ended.out
    facts = json.loads(call("info", "--json").out)
    assert facts["version"] == byzadmm.__version__
    assert facts["numpy"] == np.__version__
    assert facts["instruction set"] in facts["instruction sets built"]
    assert facts["threads"] >= 1
    assert facts["data"]["digits"] == "in the package"
    assert facts["extras"]["mpi"] is None
    assert facts["extras"]["plot"].startswith("matplotlib ")


@pytest.mark.parametrize("error", [ImportError("no module"), RuntimeError("cannot load MPI library")])
def test_mpi_says_what_to_install(refused, monkeypatch, error):
    def missing(name):
        raise error

    monkeypatch.setattr("byzadmm.engines.mpi.importlib.import_module", missing)
    said = refused("mpi", "run", "--dataset", "mnist")
    assert said == f"mpi: needs mpi4py and an MPI library; pip install 'byzadmm[mpi]' ({error})"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--deadline", "0"], "deadline: expected a finite number > 0.0, got 0.0"),
        (["--patience", "nan"], "patience: expected a finite number > 0.0, got nan"),
    ],
)
def test_mpi_refuses(refused, words, message):
    assert refused("mpi", "run", *words) == message


def test_mpi_alone_shows_its_help(call):
    ended = call("mpi")
    assert ended.code == 0
    assert "mpirun --with-ft ulfm --oversubscribe -np 5 byzadmm mpi run" in ended.out


@pytest.mark.parametrize("command", ["run", "reproduce", "tune", "data", "list", "info", "mpi"])
def test_help_has_examples_and_fits(capsys, command):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    start = "mpirun --with-ft ulfm --oversubscribe -np 5 byzadmm" if command == "mpi" else "byzadmm"
    assert f"examples:\n  {start} {command}" in text
    assert fits(text)


def test_no_command_shows_the_help(call):
    ended = call()
    assert ended.code == 0
    assert fits(ended.out)
    assert all(command in ended.out for command in ("run", "reproduce", "tune", "data", "list", "info", "mpi"))


def test_version(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"byzadmm {byzadmm.__version__}\n"


def test_unknown_command(refused):
    assert "invalid choice: 'fly'" in refused("fly")


def test_a_reader_that_has_enough_sees_no_traceback(call, monkeypatch):
    def closed(*rest):
        raise BrokenPipeError

    dropped = []
    monkeypatch.setattr(datasets, "available", closed)
    monkeypatch.setattr(cli, "_drop_stdout", lambda: dropped.append(True))
    ended = call("data", "list")
    assert (ended.code, ended.err, dropped) == (1, "", [True])


def test_loss_is_short():
    assert [cli._short(x) for x in (0.4331, 99.96, 536.2, 999999.4)] == ["0.433", "100", "536", "999999"]
    assert [cli._short(x) for x in (1.6e7, float("inf"), float("nan"))] == ["2e+07", "inf", "nan"]


# --- as a process ----------------------------------------------------------------------------------------------------


def environment():
    # The package under test, installed or not, whatever folder the test is in.
    package = str(Path(byzadmm.__file__).parents[1])
    return os.environ | {"PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])}


def test_as_a_process():
    words = [sys.executable, "-m", "byzadmm", "run", *QUICK, "--algorithm", "admm", "--no-plot"]
    ended = subprocess.run(words, capture_output=True, text=True, env=environment(), check=True, encoding="utf-8")
    assert set(rows_of(ended.stdout)) >= {"ideal", "admm"}
    assert fits(ended.stdout)
    assert ended.stderr == ""


STREAMS = {
    "closed output": ("list rules >&-", 0, ""),
    "closed output, but JSON": ("list rules --json >&-", 2, "byzadmm: error: json: standard output is closed\n"),
    "closed errors": ("list rules 2>&-", 0, ""),
    "closed errors, and one": ("list clouds 2>&-", 2, ""),
    "both closed": ("run --iterations 2 --no-plot --algorithm admm --out run.npz >&- 2>&-", 0, ""),
    "progress to closed errors": ("run --iterations 2 --no-plot --algorithm admm 2>&-", 0, ""),
    "help to closed output": ("--help >&-", 0, ""),
    "full output": ("list rules >/dev/full", 1, "byzadmm: error: standard output: No space left on device\n"),
    "full errors": ("list clouds 2>/dev/full", 2, ""),
    "full errors, and a remark": ("list rules 2>/dev/full", 0, ""),
}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("kind", STREAMS)
def test_closed_and_full_streams_as_a_process(kind):
    words, code, said = STREAMS[kind]
    ended = subprocess.run(
        ["sh", "-c", f'"$0" -m byzadmm {words}', sys.executable], capture_output=True, env=environment(), check=False
    )
    remarks = [line for line in ended.stderr.decode().splitlines(keepends=True) if not line.startswith("pre-aggreg")]
    assert (ended.returncode, "".join(remarks)) == (code, said)
    assert "pre-aggregations" not in ended.stdout.decode()  # a remark is never part of the result
    if "--out" in words:
        assert Result.load("run.npz").iterations[-1] == 2


def test_a_reader_that_went_away_does_not_cost_the_result():
    words = [sys.executable, "-m", "byzadmm", "run", *QUICK, "--algorithm", "admm", "--out", "run.npz", "--no-plot"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1
    assert Result.load("run.npz").iterations[-1] == 30


def test_output_that_cannot_hold_every_character(call, tmp_path):
    words = [sys.executable, "-m", "byzadmm", "data", "path", "--data-dir", "\u00e9\udcff"]
    ended = subprocess.run(words, capture_output=True, env=environment() | {"PYTHONIOENCODING": "ascii"}, check=True)
    assert ended.stdout.decode() == f"\\xe9\\udcff\n{tmp_path / 'cache'}\n"


def test_head_as_a_process():
    with subprocess.Popen(
        [sys.executable, "-m", "byzadmm", "list", "attacks"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        process.stdout.close()  # before anything is written
        assert process.stderr.read() == ""
    assert process.returncode == 1


def test_ctrl_c_as_a_process():
    # A shell's background job ignores SIGINT, and so would its children: ask for the usual behaviour.
    script = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from byzadmm._internal.progress import Bar; Bar.PLAIN_INTERVAL = 0.0\n"
        "from byzadmm.cli import main\n"
        "sys.exit(main(['run', '--iterations', '100000000', '--eval-every', '50', '--no-plot']))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stderr.readline().startswith("iterations: ")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines()[-1] == "byzadmm: interrupted; 0 of 6 runs were finished"
    assert "Traceback" not in err
