"""Ctrl-C, closed pipes: what is finished is kept, and there is no traceback."""

from __future__ import annotations

import os

import byzadmm
from byzadmm import datasets
from support.commands import QUICK, rows_of


def interrupted_after(count):
    def stand_in(configs, jobs=None, *, progress=None, on_result=None):
        for number, config in enumerate(configs[:count]):
            rest = {key: value for key, value in config.items() if key not in ("dataset", "parts")}
            on_result(number, byzadmm.simulate(config["dataset"], config["parts"], **rest))
        raise KeyboardInterrupt

    return stand_in


def test_ctrl_c_keeps_what_is_finished(call, monkeypatch):
    monkeypatch.setattr("byzadmm.cli.run.simulate_many", interrupted_after(2))
    ended = call("run", *QUICK)
    assert ended.code == 130
    assert set(rows_of(ended.out)) >= {"ideal", "admm"}
    assert "rsa" not in ended.out
    assert ended.err == "saved byzadmm-run.png\nbyzadmm: interrupted; 2 of 6 runs were finished\n"


def test_ctrl_c_before_anything_is_finished(call, monkeypatch):
    monkeypatch.setattr("byzadmm.cli.run.simulate_many", interrupted_after(0))
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


def test_a_closed_pipe_gives_no_traceback(call, monkeypatch):
    def closed(*rest):
        raise BrokenPipeError

    discarded = []
    monkeypatch.setattr(datasets, "available", closed)
    monkeypatch.setattr("byzadmm.cli.output._discard_stdout", lambda: discarded.append(True))
    ended = call("data", "list")
    assert (ended.code, ended.err, discarded) == (1, "", [True])
