"""Helpers of the command line's tests: short runs, tables taken apart, the environment of a process."""

from __future__ import annotations

import os
from pathlib import Path

import byzadmm

QUICK = ["--iterations", "30", "--batch-size", "8"]

TWO_ALGORITHMS = """
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


def rows_of(text):
    """Rows of a printed table by their first word."""
    return {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}


def fits(text):
    """Whether no line is longer than 80 characters."""
    return all(len(line) <= 80 for line in text.splitlines())


def environment():
    """That of a process which imports the package under test, installed or not, from any folder."""
    package = str(Path(byzadmm.__file__).parents[1])
    return os.environ | {"PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])}
