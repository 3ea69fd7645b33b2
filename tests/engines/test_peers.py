"""The connections between ranks with nodes of a graph, over an MPI that fails on demand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzadmm.engines import Kind, pack
from byzadmm.engines.messages import EMPTY, FAULTS, HEADER_BYTES, pack_notice
from byzadmm.engines.mpi._peers import REASONS, WITHIN, Column, Peers
from support.fake_mpi import DIED, FAKE, OTHER, Comm, FailureError

ROWS = np.ones((1, 3), np.float32)


def connected(others: int = 2, deadline: float = 0.02) -> tuple[Peers, Comm]:
    """Rank 1 and so many others, each with one node, in run 4 of 100 rounds."""
    comm = Comm()
    peers = Peers(FAKE, comm)
    peers.begin(4, 100 * WITHIN - 1, 0, {rank: rank for rank in range(2, 2 + others)}, 100, "float32", deadline)
    return peers, comm


def said(rank: int, round: int, **changes: Any) -> tuple[int, Any, bool]:
    about = {"run": 4, "round": round * WITHIN, "first": rank} | changes
    return rank, pack(Kind.EXCHANGE, np.full((1, 3), float(rank), np.float32), **about), True


def play(peers: Peers, round: int) -> dict[int, list[list[float]]]:
    """One exchange with all others; what was heard in time."""
    peers.round = round
    out = dict.fromkeys(peers.peers, ROWS)
    came = peers.exchange(round * WITHIN, out, dict.fromkeys(peers.peers, 1), lambda: False)
    return {rank: rows.tolist() for rank, rows in came.items()}


def counts(peers: Peers, rank: int) -> list[int]:
    """Messages asked for, on time and late."""
    return [int(peers.peers[rank].stats[column]) for column in (Column.ASKED, Column.ON_TIME, Column.LATE)]


def test_messages_are_taken_in_their_round_and_early_ones_wait() -> None:
    peers, comm = connected()
    comm.queue += [said(3, 0), said(3, 1), said(2, 0)]
    assert play(peers, 0) == {2: [[2.0] * 3], 3: [[3.0] * 3]}
    assert len(comm.queue) + sum(peer.held is not None for peer in peers.peers.values()) == 1
    comm.queue += [said(2, 1)]
    assert sorted(play(peers, 1)) == [2, 3]
    assert counts(peers, 3) == [2, 2, 0]
    assert [(rank, bytes(message)) for rank, message in comm.sent[:2]] == [
        (rank, bytes(pack(Kind.EXCHANGE, ROWS, run=4, round=0, first=0))) for rank in (2, 3)
    ]
    assert peers.ahead() == WITHIN
    assert peers.settle(0.0)


def test_a_rank_that_is_late_is_missing_and_is_not_waited_for_until_it_is_back() -> None:
    peers, comm = connected()
    comm.queue += [said(2, 0)]
    assert list(play(peers, 0)) == [2]
    assert peers.peers[3].slow
    peers.deadline = 1000.0  # it is not waited for
    comm.queue += [said(2, 1)]
    assert list(play(peers, 1)) == [2]
    comm.queue += [said(3, 0), said(3, 1), said(3, 2), said(2, 2)]
    assert sorted(play(peers, 2)) == [2, 3]
    assert not peers.peers[3].slow
    assert counts(peers, 3) == [3, 1, 2]


def test_the_end_of_the_run_ends_waiting() -> None:
    peers, _ = connected(deadline=1000.0)
    looks = iter([False, True])
    assert peers.exchange(0, {}, {2: 1, 3: 1}, lambda: next(looks)) == {}


def test_who_was_left_behind_sees_where_the_others_are() -> None:
    peers, comm = connected(3)
    comm.queue += [said(2, 0), said(3, 7), said(4, 0)]
    peers.deadline = 1000.0  # nobody waits for one that is ahead
    assert sorted(play(peers, 0)) == [2, 4]
    assert peers.ahead() == 0, "one of three is ahead"
    comm.queue += [said(2, 7), said(4, 1)]
    assert sorted(play(peers, 1)) == [4]
    assert peers.ahead() == 7 * WITHIN
    comm.queue += [said(4, 7)]
    assert sorted(play(peers, 7)) == [2, 3, 4]


FAULTY: dict[str, Any] = {
    "oversized": (3, HEADER_BYTES + 201, True),
    "garbage": (3, np.full(HEADER_BYTES + 5, 200, np.uint8), True),
    "wrong_worker": said(3, 5, first=2),
    "wrong_dtype": (3, pack(Kind.EXCHANGE, np.ones((1, 3)), run=4, round=5 * WITHIN, first=3), True),
    "wrong_length": (3, pack(Kind.EXCHANGE, np.ones((1, 2), np.float32), run=4, round=5 * WITHIN, first=3), True),
    "wrong_round": said(3, 100),
    "old_round": said(3, 4),
    "raised": (3, pack_notice("ValueError: no"), True),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_one_that_breaks_the_format_is_heard_no_more(fault: str) -> None:
    peers, comm = connected()
    comm.queue += [said(2, 4), said(3, 4)]
    assert sorted(play(peers, 4)) == [2, 3]
    comm.queue += [FAULTY[fault], said(2, 5)]
    assert list(play(peers, 5)) == [2]
    stats = peers.peers[3].stats
    assert (REASONS[int(stats[Column.CLOSED])], stats[Column.CLOSED_AT]) == (fault, 5)
    sent = len(comm.sent)
    comm.queue += [said(3, 6), said(2, 6)]
    assert list(play(peers, 6)) == [2]
    assert [rank for rank, _ in comm.sent[sent:]] == [2]
    told = [message[5] for rank, message in comm.sent if rank == 3][2:]
    assert told == ([] if fault == "raised" else [Kind.OVER]), "it hears that it is not heard"
    assert counts(peers, 3) == [2, 1, 0]
    peers.begin(5, 100 * WITHIN - 1, 0, {2: 2, 3: 3}, 100, "float32", 0.02)
    assert (peers.peers[3].closed == "") == (fault == "raised"), "an exception may be of that run alone"
    assert set(FAULTY) - {"raised"} == set(FAULTS)


def test_one_that_does_not_hear_this_rank_is_not_waited_for() -> None:
    peers, comm = connected()
    peers.deadline = 1000.0
    comm.queue += [said(2, 0), (3, pack(Kind.OVER, EMPTY, run=4), True)]
    assert list(play(peers, 0)) == [2]
    assert peers.peers[3].closed == "refused"


def test_a_wrong_answer_that_was_early_is_found_in_its_round() -> None:
    peers, comm = connected(1)
    comm.queue += [said(2, 0), said(2, 1, first=7)]
    assert list(play(peers, 0)) == [2]
    assert play(peers, 1) == {}
    assert peers.peers[2].closed == "wrong_worker"


def test_other_runs() -> None:
    peers, comm = connected()
    comm.queue += [said(2, 3, run=3), said(2, 0), said(3, 0, run=5)]
    assert list(play(peers, 0)) == [2]
    assert counts(peers, 2) == [1, 1, 0]
    assert peers.ahead() == -1, "the others are in the next run"
    peers.begin(5, 100 * WITHIN - 1, 0, {2: 2, 3: 3}, 100, "float32", 0.02)
    comm.queue += [said(2, 0, run=5)]
    assert sorted(play(peers, 0)) == [2, 3]


def test_no_more_than_two_messages_wait_for_a_rank_that_does_not_take_them() -> None:
    peers, comm = connected()
    comm.taken = False
    for round in range(4):
        comm.queue += [said(2, round), said(3, round)]
        assert sorted(play(peers, round)) == [2, 3]
    assert len(comm.sent) == 4
    assert not peers.settle(0.01)


@pytest.mark.parametrize("where", ["probe", "test", "receive", "send"])
def test_a_dead_rank_is_a_crashed_neighbor(where: str) -> None:
    peers, comm = connected()
    comm.dead = [3]
    if where == "probe":
        comm.queue.append(FailureError(DIED))
    elif where == "test":
        comm.queue.append((3, said(3, 0)[1], FailureError(DIED)))
    elif where == "receive":
        comm.queue.append((3, said(3, 0)[1], "refused"))
    else:
        comm.send_fails = FailureError(DIED)
    comm.queue.append(said(2, 0))
    assert list(play(peers, 0)) == [2]
    comm.send_fails = None
    assert peers.peers[3].closed == "died"
    comm.queue.append(said(2, 1))
    assert list(play(peers, 1)) == [2]
    assert not peers.settle(0.0), "MPI_Finalize could wait for it"
    comm.queue.append(FailureError(OTHER))
    with pytest.raises(FailureError):
        play(peers, 2)
