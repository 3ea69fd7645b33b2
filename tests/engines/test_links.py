"""The master's end of its links against an MPI that fails on demand: what a real one does too seldom to be tested."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from byzadmm import ADMM, losses
from byzadmm.engines import Expected, Experiment, Kind, _launch, mpi, pack
from byzadmm.engines.messages import pack_notice, peek
from byzadmm.engines.mpi import Job

DIED, OTHER = 75, 15
OWED = Expected(Kind.ROUND, run=0, round=1, first=0, rows=1, dim=3, dtype="float32")
ANSWER = pack(Kind.ROUND, np.ones((1, 3), np.float32), round=1)
LEAVING = pack(Kind.STOP, np.zeros((1, 0), np.float32))


class FailureError(Exception):
    def __init__(self, code: int) -> None:
        self.code = code

    def Get_error_class(self) -> int:
        return self.code


class Request:
    """Over at once, never, or failing."""

    def __init__(self, outcome: Any = True) -> None:
        self.outcome = outcome

    def Test(self) -> bool:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return bool(self.outcome)


class Comm:
    """One queue of (rank, bytes, outcome of the receive); an exception in it is raised by the probe."""

    def __init__(self) -> None:
        self.queue: deque[Any] = deque()
        self.dead: list[int] = []
        self.sent: list[tuple[int, Any]] = []
        self.received = 0
        self.send_fails: Exception | None = None

    def Improbe(self, source: int, tag: int, status: Any) -> Any:
        if not self.queue:
            return None
        item = self.queue.popleft()
        if isinstance(item, Exception):
            raise item
        rank, content, outcome = item
        status.source, status.count = rank, content if isinstance(content, int) else len(content)

        def receive(buffer: Any) -> Request:
            if outcome == "refused":
                raise FailureError(DIED)
            self.received += 1
            buffer[0][:] = content
            return Request(outcome)

        return SimpleNamespace(Irecv=receive)

    def Isend(self, buffer: Any, rank: int, tag: int) -> Request:
        if self.send_fails is not None:
            raise self.send_fails
        self.sent.append((rank, buffer[0]))
        return Request()

    def Get_failed(self) -> Any:
        return SimpleNamespace(Get_size=lambda: len(self.dead), ranks=self.dead)

    def Ack_failed(self, count: int) -> int:
        return count

    def Get_group(self) -> Any:
        return None


class Status:
    source = count = 0

    def Get_count(self, kind: Any) -> int:
        return self.count

    def Get_source(self) -> int:
        return self.source


FAKE = SimpleNamespace(
    BYTE="byte",
    ANY_SOURCE=-1,
    ANY_TAG=-1,
    ERR_PROC_FAILED=DIED,
    ERR_PROC_FAILED_PENDING=76,
    Exception=FailureError,
    Status=Status,
    Group=SimpleNamespace(Translate_ranks=lambda group, numbers, other: group.ranks),
)


def asked(ranks: int = 2, tolerant: bool = True) -> tuple[mpi._Hub, Comm, Any]:
    """A master that has asked every rank, each with one worker."""
    comm = Comm()
    hub = mpi._Hub(FAKE, comm, ranks + 1, tolerant)
    hub.present, hub.good = np.zeros(ranks, np.bool_), np.zeros(ranks, np.bool_)
    sink = np.zeros((ranks, 3), np.float32)
    for number, link in enumerate(hub.links):
        link.workers = range(number, number + 1)
        hub.ask(link, ANSWER, OWED._replace(first=number), sink)
    return hub, comm, sink


def answer(worker: int) -> Any:
    return pack(Kind.ROUND, np.full((1, 3), worker + 1.0, np.float32), round=1, first=worker)


def states(hub: mpi._Hub) -> list[str]:
    return list(hub.states().values())


def test_answers_go_where_they_belong() -> None:
    hub, comm, sink = asked()
    comm.queue += [(2, answer(1), True), (1, answer(0), True)]
    hub.collect(10.0)
    assert sink.tolist() == [[1, 1, 1], [2, 2, 2]]
    assert hub.present.all()
    assert states(hub) == ["ready", "ready"]
    assert hub.events == []


@pytest.mark.parametrize("where", ["probe", "test", "receive", "send"])
def test_a_death_is_noticed_wherever_it_shows(where: str) -> None:
    hub, comm, sink = asked()
    comm.dead = [1]
    if where == "probe":
        comm.queue.append(FailureError(DIED))
    elif where == "test":
        comm.queue.append((1, answer(0), FailureError(DIED)))
    elif where == "receive":
        comm.queue.append((1, answer(0), "refused"))
    else:
        comm.send_fails = FailureError(DIED)
        hub._send(hub.links[0], ANSWER)
    comm.queue.append((2, answer(1), True))
    hub.collect(10.0)
    assert states(hub) == ["died", "ready"]
    assert [(event.rank, event.what) for event in hub.events] == [(1, "died")]
    assert hub.lost == []  # missing, not eliminated
    assert sink.tolist() == [[0, 0, 0], [2, 2, 2]]


def test_what_a_rank_said_before_it_died_counts() -> None:
    hub, comm, sink = asked()
    comm.dead = [1]
    comm.queue += [(1, answer(0), True), FailureError(DIED), (2, answer(1), True)]
    hub.collect(10.0)
    assert states(hub) == ["died", "ready"]
    assert hub.present.all()
    assert sink.tolist() == [[1, 1, 1], [2, 2, 2]]


def test_any_other_error_of_mpi_is_not_hidden() -> None:
    hub, comm, _ = asked()
    comm.queue.append(FailureError(OTHER))
    with pytest.raises(FailureError):
        hub.collect(1.0)


def test_who_is_silent_is_slow_and_not_asked_again() -> None:
    hub, comm, _ = asked()
    comm.queue.append((2, answer(1), True))
    hub.collect(0.01)
    assert [str(event) for event in hub.events] == ["round 0: worker 0 (rank 1): slow"]
    assert states(hub) == ["slow", "ready"]
    comm.queue.append((1, answer(0), True))
    assert hub.poll()
    assert states(hub) == ["ready", "ready"]
    assert str(hub.events[-1]).endswith("back: its answer to round 1 came too late")
    assert not hub.present[0]


@pytest.mark.parametrize(
    ("content", "fault"), [(10_000_000, "oversized"), (-32766, "oversized"), (np.zeros(60, np.uint8), "garbage")]
)
def test_no_length_is_received_that_does_not_fit(content: Any, fault: str) -> None:
    hub, comm, _ = asked()
    comm.queue += [(1, content, True), (2, answer(1), True)]
    hub.collect(10.0)
    assert states(hub) == [fault, "ready"]
    assert hub.lost == [0]
    assert comm.received == (2 if fault == "garbage" else 1)
    assert hub.unreceived == (fault == "oversized")


def test_unwanted_messages_take_a_bounded_amount_of_memory() -> None:
    hub, comm, _ = asked(1)
    comm.queue.append((1, np.zeros(10, np.uint8), True))
    hub.collect(10.0)
    assert states(hub) == ["garbage"]
    before = comm.received
    comm.queue += [(1, np.zeros(1000, np.uint8), False)] * 100  # receives that never end
    while hub.poll():
        pass
    assert comm.received - before == len(hub.links[0].discards) == 16
    assert hub.unreceived
    assert len(hub.events) == 1


def test_a_second_message_while_the_first_is_on_its_way_is_a_fault() -> None:
    hub, comm, _ = asked(1)
    comm.queue += [(1, answer(0), False), (1, answer(0), True)]
    hub.collect(10.0)
    assert states(hub) == ["unasked"]
    assert len(hub.links[0].discards) == 1  # the receive may still write, so its buffer lives


def test_a_notice_and_an_unasked_message() -> None:
    hub, comm, _ = asked()
    comm.queue += [(2, answer(1), True), (2, answer(1), True), (1, pack_notice("ValueError: no"), True)]
    hub.collect(10.0)
    assert states(hub) == ["raised", "unasked"]
    assert hub.events[1].text == "ValueError: no"
    assert hub.lost == [1]


# --- the end ---------------------------------------------------------------------------------------------------------


def test_everybody_leaves_in_good_order() -> None:
    hub, comm, _ = asked()
    comm.queue += [(1, answer(0), True), (2, answer(1), True)]
    hub.collect(10.0)
    comm.queue += [(1, LEAVING, True), (2, LEAVING, True)]
    assert hub.stop(10.0) is None
    flags = [message[7] for rank, message in comm.sent[2:]]
    assert flags == [0, 0, 0, 0]


def test_with_a_dead_rank_nobody_waits_for_mpi() -> None:
    hub, comm, _ = asked()
    comm.dead = [1]
    comm.queue += [FailureError(DIED), (2, answer(1), True), (2, LEAVING, True)]
    assert hub.stop(10.0) == "exit"
    assert [(rank, int(message[7])) for rank, message in comm.sent[-1:]] == [(2, 1)]


def test_a_rank_that_does_not_answer_ends_in_an_abort(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_to_end: list[set[int]] = []
    monkeypatch.setattr(_launch, "end_ranks", asked_to_end.append)
    monkeypatch.setattr(mpi, "_MOMENT", 0.01)
    hub, comm, _ = asked()
    comm.queue.append((2, LEAVING, True))
    assert hub.stop(0.01) == "abort"
    assert asked_to_end == [{1}]
    plain, _, _ = asked(tolerant=False)
    assert plain.stop(0.01) == "abort"
    assert len(asked_to_end) == 1


def test_an_eliminated_rank_can_still_leave() -> None:
    hub, comm, _ = asked(1)
    comm.queue.append((1, np.zeros(10, np.uint8), True))
    hub.collect(10.0)
    pending = Request(False)
    hub.links[0].discards.append((pending, LEAVING))
    pending.outcome = True
    assert hub.stop(10.0) is None


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_only_ranks_of_this_job_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
    monkeypatch.setattr(os, "getppid", os.getpid)
    monkeypatch.setenv("PMIX_NAMESPACE", "this job")

    def start(job: str, rank: str) -> subprocess.Popen[bytes]:
        environment = os.environ | {"PMIX_NAMESPACE": job, "PMIX_RANK": rank}
        process = subprocess.Popen(sleep, env=environment, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        return process

    other, spared, ended = start("another", "2"), start("this job", "1"), start("this job", "2")
    try:
        _launch.end_ranks({2, 3})
        assert ended.wait(60) == -signal.SIGKILL
        assert (other.poll(), spared.poll()) == (None, None)
    finally:
        for process in (other, spared, ended):
            process.kill()
            process.communicate()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")
@pytest.mark.parametrize("deaf", [False, True])
def test_mpirun_is_ended_if_it_does_not_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, deaf: bool) -> None:
    launcher = tmp_path / "mpirun"
    launcher.symlink_to(shutil.which("bash") or "bash")
    script = ("trap '' TERM; " if deaf else "") + "echo up; while :; do read -t 1; done"
    with subprocess.Popen([launcher, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        monkeypatch.setattr(os, "getppid", lambda: process.pid)
        ending = _launch.end_launcher(0.1)
        assert ending is not None
        assert process.wait(60) == -(signal.SIGKILL if deaf else signal.SIGTERM)
        assert ending.wait(60) == 0


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")
def test_only_mpirun_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _launch.end_launcher(0.1) is None  # a child of the test's own parent, which is none
    monkeypatch.setattr(os, "getppid", lambda: 2**22 + 1)  # beyond the largest number of a process
    assert _launch.end_launcher(0.1) is None


def test_one_rank_speaks_first() -> None:
    waits = [_launch.patience_of(rank, 5.0) for rank in (0, 1, 2, 1000)]
    assert waits == [5.0, 5.5, 6.0, 15.0]


@pytest.mark.parametrize(("seconds", "expected"), [(1e300, 0), (0.01, 1)])
def test_a_watchdog_calls_once_if_time_is_up(seconds: float, expected: int) -> None:
    called = threading.Event()
    with _launch.watchdog(seconds, called.set):
        assert called.wait(60 * expected) == bool(expected)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_the_absent_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getppid", os.getpid)
    monkeypatch.delenv("PMIX_NAMESPACE", raising=False)
    assert _launch.absent() == {}
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
        assert _launch.absent() == elsewhere | dict.fromkeys((0, 3), "has ended")
        monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "12")  # the others are elsewhere
        assert _launch.absent() == elsewhere


def test_a_bad_start_ends_the_job(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    done: list[Any] = []
    monkeypatch.setattr(os, "_exit", done.append)
    monkeypatch.setattr(_launch, "end_ranks", lambda ranks: done.append("killed"))
    comm = SimpleNamespace(Abort=lambda code: done.append(("abort", code)))
    monkeypatch.setenv("OMPI_MCA_mpi_ft_enable", "1")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2")  # ranks on other machines: only MPI can end those
    monkeypatch.setenv("PMIX_SERVER_TMPDIR", str(tmp_path))
    mpi._bad_start(comm, "mpi: no")
    mpi._bad_start(comm, "mpi: no")  # another rank on the same machine
    assert done == 2 * ["killed", ("abort", 2), 2]
    assert capfd.readouterr().err == "byzadmm: error: mpi: no\n"


def bare_job(**parts: Any) -> Job:
    job = Job.__new__(Job)
    job._closed, job._leave, job._code, job._hub, job._desk = False, None, 0, None, None
    vars(job).update(parts)
    return job


def test_leaving_by_abort_or_exit_keeps_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[Any] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    job = bare_job(_comm=SimpleNamespace(Abort=lambda code: codes.append(("abort", code))))
    job.leave(3)
    assert codes == []
    job._leave = "exit"
    job.leave(3)
    job._leave = "abort"
    job.leave(4)
    assert codes == [3, ("abort", 4), 4]


def test_a_worker_without_a_master_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", leave)
    comm = Comm()
    desk = mpi._Desk(FAKE, comm, 1, 2, patience=10.0)
    comm.queue.append(FailureError(DIED))
    with pytest.raises(SystemExit):
        desk._next()

    def fails(*_: Any) -> None:
        raise FailureError(DIED)

    desk.comm = SimpleNamespace(Send=fails)
    with pytest.raises(SystemExit):
        desk._say(ANSWER)


def test_a_message_beyond_the_limit_of_mpi_is_refused() -> None:
    settings = {"algorithm": ADMM(), "loss": losses.Quadratic(np.ones((4, 1)), np.ones((4, 1)))}
    experiment = Experiment(None, None, **settings)
    experiment.d = 2**28
    hub = mpi._Hub(FAKE, Comm(), 2, True)
    with pytest.raises(ValueError, match="mpi: 4294967296 bytes from one rank are too many for a message"):
        mpi._Engine(hub, experiment, 0, 1.0)


# --- who comes late, and whose state it is ---------------------------------------------------------------------------


def small_experiment() -> Experiment:
    return Experiment(None, None, algorithm=ADMM(), loss=losses.Quadratic(np.ones((2, 3)), np.ones((2, 3))))


def ready(worker: int, run: int) -> Any:
    return pack(Kind.START, np.ones((1, 1)), run=run, first=worker)


def round_answer(worker: int, run: int, k: int) -> Any:
    return pack(Kind.ROUND, np.full((1, 3), 0.25, np.float32), run=run, round=k, first=worker)


def test_a_rank_that_is_ready_late_takes_part_from_then_on() -> None:
    comm = Comm()
    hub = mpi._Hub(FAKE, comm, 3, True)
    x0 = np.zeros(3, np.float32)
    first = mpi._Engine(hub, small_experiment(), 0, patience=0.01)
    comm.queue.append((1, ready(0, 0), True))
    first.start(0, x0, 0)
    assert states(hub) == ["ready", "slow"]
    comm.queue.append((1, round_answer(0, 0, 1), True))
    assert first.exchange(1, x0, 10.0).present.tolist() == [True, False]
    # it is still at the start of the first run when the second begins: asked nothing, then to start, then as the others
    second = mpi._Engine(hub, small_experiment(), 1, patience=0.01)
    comm.queue.append((1, ready(0, 1), True))
    second.start(0, x0, 0)
    comm.queue += [(2, ready(1, 0), True), (1, round_answer(0, 1, 1), True)]
    assert second.exchange(1, x0, 10.0).present.tolist() == [True, False]
    assert [(event.rank, event.what) for event in second.events] == [(2, "back")]
    sent = len(comm.sent)
    comm.queue += [(2, ready(1, 1), True), (1, round_answer(0, 1, 2), True)]
    assert second.exchange(2, x0, 10.0).present.tolist() == [True, False]
    assert sorted((rank, int(message[5])) for rank, message in comm.sent[sent:]) == [(1, Kind.ROUND), (2, Kind.START)]
    comm.queue += [(2, round_answer(1, 1, 3), True), (1, round_answer(0, 1, 3), True)]
    assert second.exchange(3, x0, 10.0).present.tolist() == [True, True]


def test_a_saved_state_of_another_experiment_is_not_taken(tmp_path: Path) -> None:
    x0 = np.full(3, 7.0, np.float32)

    def side(done: int, token: int) -> mpi._Side:
        header = peek(pack(Kind.START, x0[None], round=done, token=token))
        assert header is not None
        return mpi._Side(small_experiment(), range(2), tmp_path / "run.npz", header, x0)

    saved = side(0, token=5)
    saved.workers.state()["x"][:] = 3.0
    saved._save(4)
    own, other = side(4, token=5), side(4, token=6)
    assert own.restored
    assert np.all(own.workers.state()["x"] == 3.0)
    assert not other.restored
    assert np.all(other.workers.state()["x"] == 7.0)


def test_a_death_among_the_eliminated_is_no_surprise() -> None:
    hub, comm, _ = asked(1)
    comm.queue.append((1, np.zeros(10, np.uint8), True))
    hub.collect(10.0)
    comm.dead = [1]
    comm.queue += [(1, np.zeros(10, np.uint8), "refused"), (1, np.zeros(10, np.uint8), FailureError(DIED))]
    while hub.poll():
        pass
    assert states(hub) == ["died"]
    assert [event.what for event in hub.events] == ["garbage", "died"]


def test_closing_twice_is_closing_once() -> None:
    calls: list[float] = []
    job = bare_job(deadline=2.0, _hub=SimpleNamespace(stop=calls.append))
    job.close()
    job.close()
    assert calls == [2.0]
