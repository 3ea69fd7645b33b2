"""The start of a program, Python included, each time in a process of its own."""

from __future__ import annotations

import subprocess
import sys

STARTS = {
    "numpy": ["-c", "import numpy"],
    "byzadmm": ["-c", "import byzadmm"],
    "byzadmm.median": ["-c", "import byzadmm; byzadmm.median"],
    "byzadmm.simulate": ["-c", "import byzadmm; byzadmm.simulate"],
    "byzadmm --help": ["-m", "byzadmm", "--help"],
}


class Start:
    """What is imported, or run."""

    param_names = ("start",)
    params = (list(STARTS),)

    def time_start(self, start: str) -> None:
        subprocess.run([sys.executable, *STARTS[start]], check=True, stdout=subprocess.DEVNULL)
