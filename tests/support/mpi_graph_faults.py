"""A script for mpirun: ranks with nodes of a graph that fail in a round; every rank notes what it has not heard.

``python mpi_graph_faults.py FOLDER DEADLINE ROUND FAULT ...``: rank 1 has the first fault and so on. What was noted
can be replayed without MPI.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from byzadmm import graphs, steps
from byzadmm.decentralized import DADMM
from byzadmm.engines.messages import HEADER_BYTES, Kind, body, pack, peek
from byzadmm.engines.mpi import Job
from byzadmm.engines.mpi._node_rank import NodeRank
from byzadmm.engines.mpi._peers import WITHIN, Peers
from byzadmm.engines.mpi._routes import RankNodes
from support.runs import quadratic

__all__ = ["ROUNDS", "settings"]

ROUNDS = 14


def settings(ranks: int) -> dict[str, Any]:
    """Two nodes on each rank, all linked to all; models of 11."""
    m = 2 * ranks
    admm = DADMM(lam=0.3, beta=0.2, step=steps.inv_sqrt(4, 1))
    return {"loss": quadratic(m, 11), "graph": graphs.complete(m), "algorithm": admm, "iterations": ROUNDS} | {
        "eval_every": 5
    }


def note(path: Path, strikes: int, faults: tuple[str, ...], own: str, deadline: float) -> None:
    """Write what the nodes of this rank did not hear in each round, and fail in round ``strikes``."""
    exchange = RankNodes.exchange
    file = path.open("w")

    def noted(nodes: Any, messages: Any, k: int, **more: Any) -> Any:
        peers = nodes._peers
        if k == strikes and own == "kill":
            while any(peer.sends for peer in peers.peers.values()):  # what it has said arrives
                for peer in peers.peers.values():
                    peers._settle(peer)
            os.kill(os.getpid(), signal.SIGKILL)
        if k == strikes and own == "slow":
            time.sleep(1.3 * deadline)
        if k == strikes and own == "raise":
            raise ValueError("no such thing")
        if k == strikes + 2 and own != "slow" and "slow" in faults:  # or the run is over before it is back
            slow, end = peers.peers[1 + faults.index("slow")], time.monotonic() + 60
            while slow.slow and time.monotonic() < end:
                peers.poll()
                time.sleep(0.01)
        mail = exchange(nodes, messages, k, **more)
        lost = np.flatnonzero(mail.index < 0)
        pairs = np.stack([nodes.numbers[nodes.links.receivers[lost]], nodes.links.senders[lost]], axis=1)
        print(json.dumps([k, pairs.tolist()]), file=file, flush=True)
        return mail

    RankNodes.exchange = noted  # type: ignore[method-assign]
    send = Peers._send

    def said(peers: Any, peer: Any, message: Any) -> None:
        header = peek(message)
        assert header is not None
        if header.kind == Kind.EXCHANGE and header.round == (strikes - 1) * WITHIN:
            numbers = body(message, header).copy()
            about = {"run": header.run, "round": header.round, "first": header.first}
            if own == "nan":
                numbers[0, 3] = np.nan
                message = pack(Kind.EXCHANGE, numbers, **about)
            elif own == "wrong_length":
                message = pack(Kind.EXCHANGE, numbers[:, :-1], **about)
            elif own == "garbage":
                message = np.full(HEADER_BYTES + 5, 200, np.uint8)
            elif own == "oversized":
                message = np.zeros(10_000_000, np.uint8)
            elif own == "twice":
                send(peers, peer, message)
        send(peers, peer, message)

    Peers._send = said  # type: ignore[method-assign]
    if own == "account":
        say = NodeRank._isend

        def nonsense(rank: Any, message: Any, **more: Any) -> Any:
            header = peek(message)
            assert header is not None
            if header.kind == Kind.ACCOUNT:
                body(message, header)[:] = np.resize([np.nan, np.inf, -7.0, 1e300], (header.rows, header.dim))
            return say(rank, message, **more)

        NodeRank._isend = nonsense  # type: ignore[method-assign]


def main(folder: str, deadline: str, strikes: str, *faults: str) -> None:
    with Job(deadline=float(deadline)) as job:
        if not job.is_master:
            own = faults[job.rank - 1]
            note(Path(folder, f"rank{job.rank}.jsonl"), int(strikes), faults, own, float(deadline))
        result = job.simulate_decentralized(None, None, **settings(len(faults)))
        if result is not None and job.report is not None:
            result.save(f"{folder}/run.npz")
            job.report.save(f"{folder}/run.json")
            for row in job.report.rows():
                print("  ".join(row))
    job.leave(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
