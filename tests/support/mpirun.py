"""Starting jobs under mpirun, each in a session of its own with a hard limit."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from byzadmm.engines.mpi._launch import find_mpirun

__all__ = ["LIMIT", "MPIRUN", "SCRIPTS", "end_session", "environment", "launch", "mpirun", "needs_mpi", "read"]

TESTS = Path(__file__).parents[1]
SCRIPTS = TESTS / "support"
LIMIT = 300.0
MPIRUN = find_mpirun() or ""


needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not MPIRUN,
    reason="needs mpi4py and mpirun: pip install 'byzadmm[mpi]'",
)


def environment() -> dict[str, str]:
    paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return os.environ | root | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


def launch(words: list[str], **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run it in a session of its own; all of that is killed at the limit."""
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **{"env": environment()} | settings,
    )
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        end_session(process.pid)
        out, err = process.communicate()
        pytest.fail(f"{' '.join(words)}: not over after {LIMIT} s\n{out}\n{err}")
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def mpirun(ranks: int, *command: Any, tolerant: bool = True) -> subprocess.CompletedProcess[str]:
    """Run ``python command`` on so many ranks."""
    words = [MPIRUN, *(["--with-ft", "ulfm"] if tolerant else []), "--oversubscribe", "--bind-to", "none"]
    return launch([*words, "-np", str(ranks), sys.executable, "-W", "error", *map(str, command)])


def end_session(session: int) -> None:
    """Ranks have process groups of their own; the session is what they share with mpirun."""
    for folder in Path("/proc").glob("[1-9]*"):
        try:
            if int((folder / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                os.kill(int(folder.name), signal.SIGKILL)
        except OSError:  # it ended by itself
            continue


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))
