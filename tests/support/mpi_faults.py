"""A script for mpirun: the master is the real one, and so is every rank until its fault; then it fails.

``python mpi_faults.py FOLDER DEADLINE ROUND FAULT ...``: rank 1 has the first fault and so on; all of them strike in
round ROUND of the first of three runs. The master writes what it did into FOLDER: it can be replayed without MPI.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from byzadmm import ADMM, RSA, SGD, engines, steps
from byzadmm.engines import Kind, pack
from byzadmm.engines.messages import HEADER_BYTES, body, peek
from byzadmm.engines.mpi import Job
from byzadmm.engines.mpi._channels import Channels
from byzadmm.engines.mpi._master import MasterEngine
from byzadmm.engines.mpi._worker import RankWorkers
from support.runs import quadratic

STEP = steps.inv_sqrt(4, 1)
RUNS: list[Any] = [
    ADMM(lam=0.3, beta=0.8, master_step=steps.inv_sqrt(16, 1), worker_step=STEP),
    RSA(lam=0.2, master_step=steps.inv_sqrt(16, 1), worker_step=STEP),
    SGD(rule="median", step=STEP),
]
DIM, LAM = 13, 0.3


def settings(m: int, algorithm: Any, iterations: int) -> dict[str, Any]:
    return {"loss": quadratic(m, DIM), "algorithm": algorithm, "iterations": iterations, "eval_every": 5}


def misbehave(rank: Any, fault: str, deadline: float, strikes: int) -> None:
    """Replace what the rank says, or how it works, in round ``strikes`` of run 0."""
    send, comm, byte = rank._send, rank.comm, rank.mpi.BYTE
    kept: list[Any] = []

    def now(message: Any) -> bool:
        header = peek(message)
        return header is not None and (header.kind, header.run, header.round) == (Kind.ROUND, 0, strikes)

    def instead(message: Any) -> Any:
        header = peek(message)
        assert header is not None
        about = {"run": 0, "round": header.round, "first": header.first}
        numbers = body(message, header).copy()
        if fault == "slow":
            time.sleep(1.2 * deadline)
        elif fault == "exit":
            os._exit(0)
        elif fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault in ("stop", "stop_forever"):
            if fault == "stop":
                subprocess.Popen(["sh", "-c", f"sleep {1.2 * deadline}; kill -CONT {os.getpid()}"])
            os.kill(os.getpid(), signal.SIGSTOP)
        elif fault == "nan":
            numbers[0, 3] = np.nan
            return pack(Kind.ROUND, numbers, **about)
        elif fault == "out_of_range":
            numbers[0, 0] = LAM * 1.5
            return pack(Kind.ROUND, numbers, **about)
        elif fault == "wrong_length":
            return pack(Kind.ROUND, numbers[:, :-1], **about)
        elif fault == "wrong_dtype":
            return pack(Kind.ROUND, numbers.astype(np.float64), **about)
        elif fault == "wrong_worker":
            return pack(Kind.ROUND, numbers, **about | {"first": 0})
        elif fault == "old_round":
            return pack(Kind.ROUND, numbers, **about | {"round": header.round - 1})
        elif fault == "garbage":
            return np.full(HEADER_BYTES + 5, 200, np.uint8)
        elif fault in ("oversized", "stuck"):
            large = np.zeros(100_000_000, np.uint8)
            if fault == "stuck":
                return large  # a blocking send that is never received
            kept.extend([large, comm.Isend([large, byte], 0, 7)])
            return None
        elif fault == "flood":
            for _ in range(30_000):
                comm.Send([np.full(2000, 7, np.uint8), byte], 0, 7)
            return None
        elif fault == "twice":
            send(message)
        return message

    def send_or_fail(message: Any) -> None:
        if now(message):
            message = instead(message)
        if message is not None:
            send(message)

    rank._send = send_or_fail
    if fault in ("raise", "sys_exit"):
        answer = RankWorkers.answer

        def fail(side: Any, header: Any, message: Any) -> Any:
            if (header.kind, header.round) == (Kind.ROUND, strikes):
                if fault == "sys_exit":
                    sys.exit(3)
                raise ValueError("no such\nthing")
            return answer(side, header, message)

        RankWorkers.answer = fail  # type: ignore[method-assign]


def main(folder: str, deadline: str, strikes: str, *faults: str) -> int:
    m, rounds = len(faults), 12
    with Job(deadline=float(deadline)) as job:
        if not job.is_master:
            misbehave(job._worker, faults[job.rank - 1], float(deadline), int(strikes))
        record: list[dict[str, Any]] = []
        if job.is_master:
            watch_master(record)

        def wait_for_the_slow(done: int, report: Any) -> None:
            """Two rounds go without those that owe an answer; then the master takes a break, so that they can come."""
            end = time.monotonic() + 60
            ranks: Any = job._ranks
            while done == int(strikes) + 2 and time.monotonic() < end and "stop_forever" not in faults:
                if not any(channel.owed for channel in ranks.channels):
                    break
                if not ranks.poll():
                    time.sleep(0.01)

        for number, algorithm in enumerate(RUNS):
            result = job.simulate(None, None, watch=wait_for_the_slow, **settings(m, algorithm, rounds))
            if result is not None and job.report is not None:
                result.save(f"{folder}/run{number}.npz")
                job.report.save(f"{folder}/run{number}.json")
        if job.is_master:
            record.append({"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss})
            Path(folder, "record.json").write_text(json.dumps(record))
    job.leave(0)
    return 0


def watch_master(record: list[dict[str, Any]]) -> None:
    """Who was asked in a round, who answered, who was eliminated."""
    ask, exchange = Channels.ask, MasterEngine.exchange

    def noted_ask(ranks: Any, channel: Any, message: Any, owed: Any, sink: Any) -> None:
        if owed.kind == Kind.ROUND:
            record.append({"run": owed.run, "round": owed.round, "asked": list(channel.workers)})
        ask(ranks, channel, message, owed, sink)

    def noted_exchange(engine: Any, k: int, x0: Any, deadline: float) -> engines.Replies:
        begun = time.monotonic()
        replies = exchange(engine, k, x0, deadline)
        entry = {"run": engine.number, "round": k, "seconds": time.monotonic() - begun}
        record.append(entry | {"present": replies.present.tolist(), "eliminated": list(replies.eliminated)})
        return replies

    Channels.ask = noted_ask  # type: ignore[method-assign]
    MasterEngine.exchange = noted_exchange  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
