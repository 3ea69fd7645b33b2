"""Ctrl-C, closed pipes: what is finished is kept, and there is no traceback."""

from __future__ import annotations

import json
import os

from byzadmm import datasets
from byzadmm.study import run as study_run
from support.commands import QUICK, rows_of


def interrupted_after(count):
    real = study_run.run_many

    def stand_in(tasks, jobs=None, *, on_result=None, **_):
        real(tasks[:count], jobs, on_result=on_result)
        raise KeyboardInterrupt

    return stand_in


def test_ctrl_c_keeps_what_is_finished(call, monkeypatch):
    monkeypatch.setattr(study_run, "run_many", interrupted_after(2))
    ended = call("run", *QUICK)
    assert ended.code == 130
    assert set(rows_of(ended.out)) >= {"ideal", "admm"}
    assert "rsa" not in ended.out
    assert ended.err == "saved byzadmm-run.png\nbyzadmm: interrupted; 2 of 6 runs were finished\n"


def test_ctrl_c_before_anything_is_finished(call, monkeypatch):
    monkeypatch.setattr(study_run, "run_many", interrupted_after(0))
    ended = call("run", *QUICK, "--algorithm", "admm", "--out", "run.npz")
    assert (ended.code, ended.out) == (130, "")
    assert ended.err == "byzadmm: interrupted; 0 of 2 runs were finished\n"
    assert os.listdir() == []


def test_ctrl_c_with_a_checkpoint_goes_on(call, monkeypatch):
    words = ("run", *QUICK, "--no-plot", "--checkpoint", "kept")
    with monkeypatch.context() as patched:
        patched.setattr(study_run, "run_many", interrupted_after(2))
        ended = call(*words)
    assert ended.err == "byzadmm: interrupted; 2 of 6 runs were finished; the same command goes on\n"
    todo, real = [], study_run.run_many

    def counted(tasks, jobs, **more):
        todo.append(len(tasks))
        real(tasks, jobs, **more)

    monkeypatch.setattr(study_run, "run_many", counted)
    again, whole = call(*words, "--json"), call(*words[:-2], "--json")
    assert todo == [4, 6]
    runs = [json.loads(ended.out)["runs"] for ended in (again, whole)]
    assert [run["curves"] for run in runs[0]] == [run["curves"] for run in runs[1]]


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
