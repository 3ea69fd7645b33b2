"""What an engine is: the way from the master to its workers and back, what came back, and what happened on the way."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from byzadmm._internal.arrays import Array
from byzadmm.training.sampling import Mask

__all__ = ["Engine", "Event", "Replies"]


class Replies(NamedTuple):
    """What came back in a round.

    Attributes
    ----------
    messages : (m, d) array
        Rows of workers that did not answer have no meaning.
    present : (m,) bool
        Which workers answered.
    eliminated : list of int
        Workers whose process sent something that is no valid message: the master ignores them for the rest of the run.
    good : (m,) bool, optional
        Which messages the master can accept, if the engine has checked that; by default ``Master.receive`` does.
    """

    messages: Array
    present: Mask
    eliminated: Sequence[int] = ()
    good: Mask | None = None

    @property
    def thrown_out(self) -> Sequence[int]:
        """Deprecated name of ``eliminated``."""
        warnings.warn("Replies.thrown_out: use eliminated", DeprecationWarning, stacklevel=2)
        return self.eliminated


@dataclass(frozen=True)
class Event:
    """What happened in ``round`` to the process ``rank`` and its ``workers``: a word, and a text that explains it."""

    round: int
    rank: int
    workers: tuple[int, ...]
    what: str
    text: str = ""

    noun: ClassVar[str] = "worker"

    def record(self) -> dict[str, Any]:
        """As values that JSON has."""
        return asdict(self)

    def __str__(self) -> str:
        who = f"{self.noun}{'s' * (len(self.workers) > 1)} {_spans(self.workers)}"
        where = f" (rank {self.rank})" if self.rank else ""
        return f"round {self.round}: {who}{where}: {self.what}" + (f": {self.text}" if self.text else "")


class Engine(Protocol):
    """The way from the master to its workers and back.

    ``start`` is called once and may take as long as loading data does; ``exchange`` once per round; ``models`` at every
    evaluation; ``close`` at the end.
    """

    events: list[Event]

    def start(self, done: int, x0: Array, token: int) -> None:
        """Bring every worker to its state after ``done`` iterations of the experiment called ``token``."""

    def exchange(self, k: int, x0: Array, deadline: float) -> Replies:
        """Send ``x0`` to the workers in round ``k`` and collect what they send within ``deadline`` seconds.

        The caller may read and change the messages until two more rounds have passed.
        """

    def models(self, done: int, save: bool, deadline: float) -> Replies | None:
        """The workers' models after ``done`` iterations, None if they have none; ``save``: their state is saved too."""

    def rank_of(self, worker: int) -> int:
        """The process that holds ``worker``."""

    def close(self) -> None:
        """Release the workers."""


def _spans(workers: Sequence[int]) -> str:
    """Numbers as text; processes hold consecutive workers."""
    return f"{workers[0]} to {workers[-1]}" if len(workers) > 2 else ", ".join(map(str, workers))
