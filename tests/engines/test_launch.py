"""The mpirun around a rank, the ranks beside it, and a job that cannot start."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from byzadmm.engines.mpi import _launch as launch
from byzadmm.engines.mpi import _start as start


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="ranks are found in /proc, which this system has not")
def test_only_ranks_of_this_job_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
    monkeypatch.setattr(os, "getppid", os.getpid)
    monkeypatch.setenv("PMIX_NAMESPACE", "this job")

    def begin(job: str, rank: str) -> subprocess.Popen[bytes]:
        environment = os.environ | {"PMIX_NAMESPACE": job, "PMIX_RANK": rank}
        process = subprocess.Popen(sleep, env=environment, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        return process

    other, spared, ended = begin("another", "2"), begin("this job", "1"), begin("this job", "2")
    try:
        launch.end_ranks({2, 3})
        assert ended.wait(60) == -signal.SIGKILL
        assert (other.poll(), spared.poll()) == (None, None)
    finally:
        for process in (other, spared, ended):
            process.kill()
            process.communicate()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="mpirun is ended through a pidfd, which Linux alone has")
@pytest.mark.parametrize("deaf", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_mpirun_is_ended_if_it_does_not_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, deaf: bool) -> None:
    launcher = tmp_path / "mpirun"
    launcher.symlink_to(shutil.which("bash") or "bash")
    script = ("trap '' TERM; " if deaf else "") + "echo up; while :; do read -t 1; done"
    with subprocess.Popen([launcher, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            monkeypatch.setattr(os, "getppid", lambda: process.pid)
            ending = launch.end_launcher(0.1)
            assert ending is not None
            assert process.wait(60) == -(signal.SIGKILL if deaf else signal.SIGTERM)
            assert ending.wait(60) == 0
        finally:
            process.kill()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="mpirun is ended through a pidfd, which Linux alone has")
def test_only_mpirun_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    assert launch.end_launcher(0.1) is None  # a child of the test's own parent, which is none
    monkeypatch.setattr(os, "getppid", lambda: 2**22 + 1)  # beyond the largest number of a process
    assert launch.end_launcher(0.1) is None


def test_one_rank_speaks_first() -> None:
    waits = [launch.patience_of(rank, 5.0) for rank in (0, 1, 2, 1000)]
    assert waits == [5.0, 5.5, 6.0, 15.0]


@pytest.mark.parametrize(("seconds", "expected"), [(1e300, 0), (0.01, 1)])
def test_a_watchdog_calls_once_if_time_is_up(seconds: float, expected: int) -> None:
    called = threading.Event()
    with launch.watchdog(seconds, called.set):
        assert called.wait(60 * expected) == bool(expected)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="ranks are found in /proc, which this system has not")
def test_the_absent_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getppid", os.getpid)
    monkeypatch.delenv("PMIX_NAMESPACE", raising=False)
    assert launch.absent() == {}
    monkeypatch.setenv("PMIX_NAMESPACE", "this job")
    for name in ("SIZE", "LOCAL_SIZE"):
        monkeypatch.setenv(f"OMPI_COMM_WORLD_{name}", "4")
    with contextlib.ExitStack() as ranks:
        for rank in (1, 2):
            about = os.environ | {"PMIX_RANK": str(rank)}
            process = ranks.enter_context(subprocess.Popen(["cat"], env=about, stdin=subprocess.PIPE))
            if rank == 2:
                process.send_signal(signal.SIGSTOP)
                os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            ranks.callback(process.kill)
        elsewhere = {1: "(cat) has not called MPI_Init", 2: "is stopped"}
        assert launch.absent() == elsewhere | dict.fromkeys((0, 3), "has ended")
        monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "12")  # the others are elsewhere
        assert launch.absent() == elsewhere


def test_a_bad_start_ends_the_job(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    done: list[Any] = []
    monkeypatch.setattr(os, "_exit", done.append)
    monkeypatch.setattr(launch, "end_ranks", lambda ranks: done.append("killed"))
    comm = SimpleNamespace(Abort=lambda code: done.append(("abort", code)))
    monkeypatch.setenv("OMPI_MCA_mpi_ft_enable", "1")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2")  # ranks on other machines: only MPI can end those
    monkeypatch.setenv("PMIX_SERVER_TMPDIR", str(tmp_path))
    start.bad_start(comm, "mpi: no")
    start.bad_start(comm, "mpi: no")  # another rank on the same machine
    assert done == 2 * ["killed", ("abort", 2), 2]
    assert capfd.readouterr().err == "byzadmm: error: mpi: no\n"
