"""The ``mpirun`` that started this rank, the ranks beside it on the same machine, and a watchdog over the start."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Container, Iterator
from pathlib import Path

__all__ = [
    "EXAMPLE",
    "absent",
    "all_here",
    "end_launcher",
    "end_ranks",
    "find_mpirun",
    "patience_of",
    "say",
    "tolerant",
    "watchdog",
]

#: How a job is started on a machine with fewer cores than ranks.
EXAMPLE = "mpirun --with-ft ulfm --oversubscribe -np 5 byzadmm mpi run --algorithm admm"
_LAUNCHERS = ("mpirun", "mpiexec", "prterun", "orterun")
# The first rank whose time is up speaks, and mpirun ends the others before it is their turn.
_TURN, _LAST_TURN = 0.5, 10.0
# After one SIGTERM prterun waits for its daemons; a further one within five seconds ends it.
_END = """
import select, signal, sys
launcher, seconds = int(sys.argv[1]), float(sys.argv[2])
for wait, number in ((seconds, signal.SIGTERM), (1.0, signal.SIGTERM), (1.0, signal.SIGTERM), (3.0, signal.SIGKILL)):
    if select.select([launcher], [], [], wait)[0]:
        break
    signal.pidfd_send_signal(launcher, number)
"""


def tolerant() -> bool:
    """Whether the job outlives a rank that dies: ``mpirun --with-ft ulfm``."""
    return os.environ.get("OMPI_MCA_mpi_ft_enable", "") in ("1", "true")  # noqa: SIM112


def find_mpirun() -> str | None:
    """Path of the ``mpirun`` installed with this interpreter, else of the one on PATH; None if there is none."""
    scripts = (sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user"))
    return shutil.which("mpirun", path=os.pathsep.join((*scripts, os.environ.get("PATH", os.defpath))))


def patience_of(rank: int, seconds: float) -> float:
    """``seconds`` and a little more for each lower rank, so that one of them speaks for all."""
    return seconds + min(_TURN * rank, _LAST_TURN)


def say(text: str) -> None:
    """Write an error as one line, not by ``sys.stderr``, which may be locked; once for all ranks of this machine."""
    folder = os.environ.get("PMIX_SERVER_TMPDIR")  # of this job alone; mpirun removes it
    try:
        if folder is not None:
            os.close(os.open(Path(folder, "byzadmm-error"), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    except OSError:  # no such folder: better twice than never
        pass
    os.write(2, f"byzadmm: error: {text}\n".encode())


@contextlib.contextmanager
def watchdog(seconds: float, expired: Callable[[], None]) -> Iterator[None]:
    """Call ``expired`` from another thread if the block takes longer than ``seconds``."""
    over = threading.Event()

    def watch() -> None:
        if not over.wait(min(seconds, threading.TIMEOUT_MAX)):
            expired()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _ranks_here() -> dict[int, Path]:
    """Rank -> its folder in /proc, for the children of this process's own launcher; only where there is a /proc."""
    job, found = os.environ.get("PMIX_NAMESPACE"), {}
    for folder in Path("/proc").glob("[1-9]*") if job else ():
        with contextlib.suppress(OSError, ValueError):  # it has just ended, or is not ours
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if int(parent) == os.getppid() and state != "Z":
                words = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
                about = dict(word.split("=", 1) for word in words if "=" in word)
                if about.get("PMIX_NAMESPACE") == job:
                    found[int(about["PMIX_RANK"])] = folder
    return found


def end_ranks(ranks: Container[int]) -> None:
    """Kill these ranks, never this one, if they are children of this process's own launcher on this machine."""
    for rank, folder in _ranks_here().items():
        if rank in ranks and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):
                os.kill(int(folder.name), signal.SIGKILL)


def all_here() -> bool:
    """Whether every rank of the job is on this machine."""
    size, local = (os.environ.get(f"OMPI_COMM_WORLD_{name}SIZE") for name in ("", "LOCAL_"))
    return size is not None and size == local


def absent() -> dict[int, str]:
    """Ranks of this machine that are not in MPI, and why, as far as /proc shows it."""
    here = _ranks_here()
    ranks = range(int(os.environ["OMPI_COMM_WORLD_SIZE"])) if here and all_here() else ()
    found = {rank: "has ended" for rank in ranks if rank not in here}
    for rank, folder in sorted(here.items()):
        with contextlib.suppress(OSError):
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
            if rest.split()[0] == "T":
                found[rank] = "is stopped"
            elif "libmpi" not in (folder / "maps").read_text():
                found[rank] = f"({name}) has not called MPI_Init"
    return found


def end_launcher(seconds: float) -> subprocess.Popen[bytes] | None:
    """Start a process that ends ``mpirun`` in so many ``seconds`` if it still runs then.

    It would wait for its daemon on a host that cannot be reached any more. No rank can do this: mpirun ends the ranks
    first. None where this rank is not a child of mpirun itself, and where there is no Linux.
    """
    launcher = os.getppid()
    with contextlib.suppress(OSError, AttributeError):  # no /proc, no pidfd_open, or it has ended
        if Path(f"/proc/{launcher}/comm").read_text().strip() not in _LAUNCHERS:
            return None
        handle = os.pidfd_open(launcher)
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _END, str(handle), str(seconds)],
            pass_fds=[handle],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    return None
