"""A job's two sides without mpirun: how processes end, ranks that are ready late, whose saved state is loaded."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from byzadmm import ADMM, losses
from byzadmm.engines import Experiment, Kind, pack
from byzadmm.engines.messages import peek
from byzadmm.engines.mpi import Job, share
from byzadmm.engines.mpi._channels import Channels
from byzadmm.engines.mpi._master import MasterEngine
from byzadmm.engines.mpi._worker import RankWorkers, WorkerRank
from support.fake_mpi import DIED, FAKE, Comm, FailureError


@pytest.mark.parametrize(("m", "size"), [(1, 2), (7, 2), (7, 4), (3, 6), (20, 7), (1000, 64)])
def test_every_worker_is_on_one_rank(m: int, size: int) -> None:
    shares = [share(m, rank, size) for rank in range(size)]
    assert list(shares[0]) == []
    assert [worker for mine in shares for worker in mine] == list(range(m))
    sizes = [len(mine) for mine in shares[1:]]
    assert max(sizes) - min(sizes) <= 1


def bare_job(**parts: Any) -> Job:
    job = Job.__new__(Job)
    job._closed, job._leave, job._code, job._ranks, job._worker = False, None, 0, None, None
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


def test_closing_twice_is_closing_once() -> None:
    calls: list[float] = []
    job = bare_job(deadline=2.0, _ranks=SimpleNamespace(stop=calls.append))
    job.close()
    job.close()
    assert calls == [2.0]


def test_a_worker_without_a_master_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", leave)
    comm = Comm()
    rank = WorkerRank(FAKE, comm, 1, 2, patience=10.0)
    comm.queue.append(FailureError(DIED))
    with pytest.raises(SystemExit):
        rank._next()

    def fails(*_: Any) -> None:
        raise FailureError(DIED)

    rank.comm = SimpleNamespace(Send=fails)
    with pytest.raises(SystemExit):
        rank._send(ready(0, 0))


def test_a_message_beyond_the_limit_of_mpi_is_refused() -> None:
    settings = {"algorithm": ADMM(), "loss": losses.Quadratic(np.ones((4, 1)), np.ones((4, 1)))}
    experiment = Experiment(None, None, **settings)
    experiment.d = experiment.length = 2**28
    ranks = Channels(FAKE, Comm(), 2, True)
    with pytest.raises(ValueError, match="mpi: 4294967296 bytes from one rank are too many for a message"):
        MasterEngine(ranks, experiment, 0, 1.0)


def small_experiment() -> Experiment:
    return Experiment(None, None, algorithm=ADMM(), loss=losses.Quadratic(np.ones((2, 3)), np.ones((2, 3))))


def ready(worker: int, run: int) -> Any:
    return pack(Kind.START, np.ones((1, 1)), run=run, first=worker)


def round_answer(worker: int, run: int, k: int) -> Any:
    return pack(Kind.ROUND, np.full((1, 3), 0.25, np.float32), run=run, round=k, first=worker)


def test_a_rank_that_is_ready_late_takes_part_from_then_on() -> None:
    comm = Comm()
    ranks = Channels(FAKE, comm, 3, True)
    x0 = np.zeros(3, np.float32)
    first = MasterEngine(ranks, small_experiment(), 0, patience=0.01)
    comm.queue.append((1, ready(0, 0), True))
    first.start(0, x0, 0)
    assert list(ranks.states().values()) == ["ready", "slow"]
    comm.queue.append((1, round_answer(0, 0, 1), True))
    assert first.exchange(1, x0, 10.0).present.tolist() == [True, False]
    # it is still at the start of the first run when the second begins: asked nothing, then to start, then as the others
    second = MasterEngine(ranks, small_experiment(), 1, patience=0.01)
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

    def side(done: int, token: int) -> RankWorkers:
        header = peek(pack(Kind.START, x0[None], round=done, token=token))
        assert header is not None
        return RankWorkers(small_experiment(), range(2), tmp_path / "run.npz", header, x0)

    saved = side(0, token=5)
    saved.workers.state()["x"][:] = 3.0
    assert saved._checkpoint is not None
    saved._checkpoint.save(saved.workers, 4)
    own, other = side(4, token=5), side(4, token=6)
    assert own.restored
    assert np.all(own.workers.state()["x"] == 3.0)
    assert not other.restored
    assert np.all(other.workers.state()["x"] == 7.0)
