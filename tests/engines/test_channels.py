"""The master's connections to its ranks, over an MPI that fails on demand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzadmm.engines import Expected, Kind, pack
from byzadmm.engines.messages import pack_notice
from byzadmm.engines.mpi import _channels as channels
from byzadmm.engines.mpi import _launch as launch
from byzadmm.engines.mpi._channels import Channels
from support.fake_mpi import DIED, FAKE, OTHER, Comm, FailureError, Request

OWED = Expected(Kind.ROUND, run=0, round=1, first=0, rows=1, dim=3, dtype="float32")
ANSWER = pack(Kind.ROUND, np.ones((1, 3), np.float32), round=1)
LEAVING = pack(Kind.STOP, np.zeros((1, 0), np.float32))


def asked(count: int = 2, tolerant: bool = True) -> tuple[Channels, Comm, Any]:
    """A master that has asked every rank, each with one worker."""
    comm = Comm()
    ranks = Channels(FAKE, comm, count + 1, tolerant)
    ranks.present, ranks.good = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    sink = np.zeros((count, 3), np.float32)
    for number, channel in enumerate(ranks.channels):
        channel.workers = range(number, number + 1)
        ranks.ask(channel, ANSWER, OWED._replace(first=number), sink)
    return ranks, comm, sink


def answer(worker: int) -> Any:
    return pack(Kind.ROUND, np.full((1, 3), worker + 1.0, np.float32), round=1, first=worker)


def states(ranks: Channels) -> list[str]:
    return list(ranks.states().values())


def test_answers_go_where_they_belong() -> None:
    ranks, comm, sink = asked()
    comm.queue += [(2, answer(1), True), (1, answer(0), True)]
    ranks.collect(10.0)
    assert sink.tolist() == [[1, 1, 1], [2, 2, 2]]
    assert ranks.present.all()
    assert states(ranks) == ["ready", "ready"]
    assert ranks.events == []


@pytest.mark.parametrize("where", ["probe", "test", "receive", "send"])
def test_a_death_is_noticed_wherever_it_shows(where: str) -> None:
    ranks, comm, sink = asked()
    comm.dead = [1]
    if where == "probe":
        comm.queue.append(FailureError(DIED))
    elif where == "test":
        comm.queue.append((1, answer(0), FailureError(DIED)))
    elif where == "receive":
        comm.queue.append((1, answer(0), "refused"))
    else:
        comm.send_fails = FailureError(DIED)
        ranks._send(ranks.channels[0], ANSWER)
    comm.queue.append((2, answer(1), True))
    ranks.collect(10.0)
    assert states(ranks) == ["died", "ready"]
    assert [(event.rank, event.what) for event in ranks.events] == [(1, "died")]
    assert ranks.eliminated == []  # missing, not eliminated
    assert sink.tolist() == [[0, 0, 0], [2, 2, 2]]


def test_what_a_rank_said_before_it_died_counts() -> None:
    ranks, comm, sink = asked()
    comm.dead = [1]
    comm.queue += [(1, answer(0), True), FailureError(DIED), (2, answer(1), True)]
    ranks.collect(10.0)
    assert states(ranks) == ["died", "ready"]
    assert ranks.present.all()
    assert sink.tolist() == [[1, 1, 1], [2, 2, 2]]


def test_any_other_error_of_mpi_is_not_hidden() -> None:
    ranks, comm, _ = asked()
    comm.queue.append(FailureError(OTHER))
    with pytest.raises(FailureError):
        ranks.collect(1.0)


def test_who_is_silent_is_slow_and_not_asked_again() -> None:
    ranks, comm, _ = asked()
    comm.queue.append((2, answer(1), True))
    ranks.collect(0.01)
    assert [str(event) for event in ranks.events] == ["round 0: worker 0 (rank 1): slow"]
    assert states(ranks) == ["slow", "ready"]
    comm.queue.append((1, answer(0), True))
    assert ranks.poll()
    assert states(ranks) == ["ready", "ready"]
    assert str(ranks.events[-1]).endswith("back: its answer to round 1 came too late")
    assert not ranks.present[0]


@pytest.mark.parametrize(
    ("content", "fault"), [(10_000_000, "oversized"), (-32766, "oversized"), (np.zeros(60, np.uint8), "garbage")]
)
def test_no_length_is_received_that_does_not_fit(content: Any, fault: str) -> None:
    ranks, comm, _ = asked()
    comm.queue += [(1, content, True), (2, answer(1), True)]
    ranks.collect(10.0)
    assert states(ranks) == [fault, "ready"]
    assert ranks.eliminated == [0]
    assert comm.received == (2 if fault == "garbage" else 1)
    assert ranks.unreceived == (fault == "oversized")


def test_unwanted_messages_take_a_bounded_amount_of_memory() -> None:
    ranks, comm, _ = asked(1)
    comm.queue.append((1, np.zeros(10, np.uint8), True))
    ranks.collect(10.0)
    assert states(ranks) == ["garbage"]
    before = comm.received
    comm.queue += [(1, np.zeros(1000, np.uint8), False)] * 100  # receives that never end
    while ranks.poll():
        pass
    assert comm.received - before == len(ranks.channels[0].discards) == 16
    assert ranks.unreceived
    assert len(ranks.events) == 1


def test_a_second_message_while_the_first_is_on_its_way_is_a_fault() -> None:
    ranks, comm, _ = asked(1)
    comm.queue += [(1, answer(0), False), (1, answer(0), True)]
    ranks.collect(10.0)
    assert states(ranks) == ["unasked"]
    assert len(ranks.channels[0].discards) == 1  # the receive may still write, so its buffer lives


def test_a_notice_and_an_unasked_message() -> None:
    ranks, comm, _ = asked()
    comm.queue += [(2, answer(1), True), (2, answer(1), True), (1, pack_notice("ValueError: no"), True)]
    ranks.collect(10.0)
    assert states(ranks) == ["raised", "unasked"]
    assert ranks.events[1].text == "ValueError: no"
    assert ranks.eliminated == [1]


def test_a_death_among_the_eliminated_is_no_surprise() -> None:
    ranks, comm, _ = asked(1)
    comm.queue.append((1, np.zeros(10, np.uint8), True))
    ranks.collect(10.0)
    comm.dead = [1]
    comm.queue += [(1, np.zeros(10, np.uint8), "refused"), (1, np.zeros(10, np.uint8), FailureError(DIED))]
    while ranks.poll():
        pass
    assert states(ranks) == ["died"]
    assert [event.what for event in ranks.events] == ["garbage", "died"]


# --- the end ---------------------------------------------------------------------------------------------------------


def test_everybody_leaves_in_good_order() -> None:
    ranks, comm, _ = asked()
    comm.queue += [(1, answer(0), True), (2, answer(1), True)]
    ranks.collect(10.0)
    comm.queue += [(1, LEAVING, True), (2, LEAVING, True)]
    assert ranks.stop(10.0) is None
    flags = [message[7] for rank, message in comm.sent[2:]]
    assert flags == [0, 0, 0, 0]


def test_with_a_dead_rank_nobody_waits_for_mpi() -> None:
    ranks, comm, _ = asked()
    comm.dead = [1]
    comm.queue += [FailureError(DIED), (2, answer(1), True), (2, LEAVING, True)]
    assert ranks.stop(10.0) == "exit"
    assert [(rank, int(message[7])) for rank, message in comm.sent[-1:]] == [(2, 1)]


def test_a_rank_that_does_not_answer_ends_in_an_abort(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_to_end: list[set[int]] = []
    monkeypatch.setattr(launch, "end_ranks", asked_to_end.append)
    monkeypatch.setattr(channels, "_MOMENT", 0.01)
    ranks, comm, _ = asked()
    comm.queue.append((2, LEAVING, True))
    assert ranks.stop(0.01) == "abort"
    assert asked_to_end == [{1}]
    plain, _, _ = asked(tolerant=False)
    assert plain.stop(0.01) == "abort"
    assert len(asked_to_end) == 1


def test_an_eliminated_rank_can_still_leave() -> None:
    ranks, comm, _ = asked(1)
    comm.queue.append((1, np.zeros(10, np.uint8), True))
    ranks.collect(10.0)
    pending = Request(False)
    ranks.channels[0].discards.append((pending, LEAVING))
    pending.outcome = True
    assert ranks.stop(10.0) is None


def test_what_a_rank_tells_beside_its_answers() -> None:
    ranks, comm, sink = asked()
    told = [pack(Kind.ACCOUNT, np.full((2, 4), value), run=run, first=1) for run, value in ((3, 1.0), (4, 2.0))]
    channel = ranks.channels[0]
    channel.account = Expected(Kind.ACCOUNT, 4, 0, 1, 2, 4, "float64")
    channel.room = channel.account.nbytes
    comm.queue += [(1, told[0], True), (1, told[1], True)]
    while ranks.poll():
        pass
    assert ranks.waiting == {1, 2}, "it is no answer"
    assert channel.told is not None
    assert np.all(channel.told == 2.0), "that of an earlier run is ignored"
    comm.queue += [(1, answer(0), True), (1, told[1], True), (2, answer(1), True)]
    ranks.collect(10.0)
    assert sink.tolist() == [[1, 1, 1], [2, 2, 2]]
    assert states(ranks) == ["ready", "ready"]
    comm.queue += [(1, pack(Kind.ACCOUNT, np.zeros((2, 5)), run=4, first=1), True)]
    ranks.poll()
    assert channel.closed == "unasked", "it is no account"
