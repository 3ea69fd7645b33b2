"""``byzadmm run``: what it trains, prints, saves and draws."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import byzadmm
from byzadmm import Result, attacks, catalogue, datasets
from byzadmm.cli.tables import _short
from support.commands import QUICK, fits, rows_of


def test_the_first_command_shows_that_sgd_fails_and_admm_learns(call):
    ended = call("run", "--iterations", 300)
    assert ended.code == 0
    assert fits(ended.out)
    rows = rows_of(ended.out)
    assert set(catalogue.PAPER) <= set(rows)
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
    call("run", *QUICK, "--algorithm", "admm", "--out", "run.npz", "--no-plot", "--jobs", 1, "--seed", 5)
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


def test_if_one_of_the_rules_tolerates_its_f_it_is_shown(call):
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


def test_names_in_any_case_and_one_option_about_the_picture(call, refused):
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


def test_absent_data_is_said_without_a_traceback(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    ended = call("run", "--dataset", "mnist")
    assert ended.code == 2
    assert ended.err.startswith("byzadmm: error: mnist: data files not found, and not downloaded\n")
    assert "t10k-labels-idx1-ubyte.gz" in ended.err
    assert "Traceback" not in ended.err


def test_a_failing_run_does_not_affect_the_others(call):
    ended = call("run", *QUICK, "--algorithm", "median", "trimmed-mean", "-q", 12, "--no-plot")
    assert ended.code == 2
    assert {"ideal", "median"} <= set(rows_of(ended.out))
    assert ended.err == "byzadmm: error: trimmed-mean: trimmed_mean: f=12 is too large for n=20 workers; at most 9\n"


def test_loss_is_short():
    assert [_short(x) for x in (0.4331, 99.96, 536.2, 999999.4)] == ["0.433", "100", "536", "999999"]
    assert [_short(x) for x in (1.6e7, float("inf"), float("nan"))] == ["2e+07", "inf", "nan"]


def test_the_former_name_of_jobs_works_with_a_remark(call):
    words = ["run", *QUICK, "--algorithm", "admm", "--no-plot", "--threads", 1]
    assert call(*words).err == "--threads is deprecated for run: its new name is --jobs\n"
    assert call(*words, "--quiet").err == ""
