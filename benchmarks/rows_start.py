"""Rows of the comparison for the start of a program: Python itself, and what it imports, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import time

from measure import Call, Row

__all__ = ["rows"]


def _start(*words: str) -> Call:
    return lambda: subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)


def _against_numpy(code: str) -> tuple[Call, Call]:
    return _start("-c", code), _start("-c", "import numpy")


def rows() -> list[Row]:
    """What every program waits for, a program that calls one rule, one that trains, and the command."""
    area = "start of a program, with that of Python"
    rule, train = "import byzadmm; byzadmm.median", "import byzadmm; byzadmm.simulate"
    help_ = (_start("-m", "byzadmm", "--help"), lambda: time.sleep(0.25))
    return [
        Row(area, "import byzadmm", "import numpy", lambda: _against_numpy("import byzadmm"), at_most=1.5, threads=0),
        Row(area, "byzadmm.median", "import numpy", lambda: _against_numpy(rule), at_most=1.5, threads=0),
        Row(area, "byzadmm.simulate", "import numpy", lambda: _against_numpy(train), threads=0),
        Row(area, "byzadmm --help", "0.25 s", lambda: help_, at_most=1, threads=0),
    ]
