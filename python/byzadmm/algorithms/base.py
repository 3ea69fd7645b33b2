"""The protocol of an algorithm: the messages between the master and its workers, and what both sides compute.

Built-in and custom algorithms are subclasses of :class:`Algorithm` with ``answer``, a worker's side of a round, and
``update``, the master's. It then runs in ``simulate`` and ``simulate_many``, under every
attack, with checkpoints, and with its workers in other processes. Settings live on the object and do not change;
everything that changes is in the two state dictionaries, whose arrays a checkpoint keeps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from byzadmm import aggregators
from byzadmm._internal.arrays import Array
from byzadmm._internal.description import describe, settings_of

if TYPE_CHECKING:
    from byzadmm.catalogue import Preset
    from byzadmm.datasets import Dataset
    from byzadmm.training.experiment import Experiment
    from byzadmm.training.workers import Group

__all__ = ["Algorithm", "Heard", "State"]

def preset(data: Dataset) -> Preset:
    """Settings for ``data``. Imported when asked for: the catalogue is made of the algorithms' classes."""
    from byzadmm.catalogue import preset_for

    return preset_for(data)


#: Arrays by name: what one side of a run holds from one round to the next.
State = dict[str, Array]


class Heard(NamedTuple):
    """The messages that count in a round.

    Attributes
    ----------
    rows : (n, d) array
    workers : (n,) int array
        Their senders, ascending. An eliminated worker is not among them; one that sent nothing is, with its last
        message, if the algorithm's ``missing`` is "last", and is not if it is "skip".
    """

    rows: Array
    workers: NDArray[np.int64]


class Algorithm:
    """A distributed training algorithm with a master.

    Attributes
    ----------
    message : str
        What the workers send: "gradient", "primal", "dual", or another word.
    master_first : bool
        The master moves before the workers of the same round, by the messages of the round before.
    missing : "skip" or "last"
        What a missing message means: the worker does not count in this round, or its last message counts again.
    ideal : bool
        The Byzantine workers are excluded.
    whole : tuple of str
        Entries of the workers' state that are not one row per worker. Where only some of the workers take part in a
        round, :meth:`answer` gets their rows of all other entries, and these entries as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import algorithms, attacks, losses, simulate
    >>> class SignSGD(algorithms.Algorithm):
    ...     def answer(self, group, state, x0, k):
    ...         return np.sign(group.gradients(x0, k))
    ...     def update(self, run, state, heard, k):
    ...         state["x0"] -= 0.1 / np.sqrt(k) * np.sign(np.sign(heard.rows).sum(axis=0))
    >>> loss = losses.Quadratic(np.ones(5), np.full((5, 2), 3.0))
    >>> run = simulate(None, None, loss=loss, algorithm=SignSGD(), attack=attacks.SignFlip(), n_byzantine=2)
    >>> bool(np.all(np.abs(run.x0 - 3.0) < 0.01))
    True
    """

    message: ClassVar[str] = "gradient"
    #: "rounds", or "events" for those of ``byzadmm.asynchronous``: how the master and its workers take turns.
    schedule: ClassVar[str] = "rounds"
    #: Numbers per worker in the master's state that a result with events has.
    tallies: ClassVar[tuple[str, ...]] = ()
    master_first: ClassVar[bool] = False
    missing: ClassVar[str] = "skip"
    #: Entries of the master's state that repeat what the workers hold: a native loop in one process needs no copy.
    echoes: ClassVar[tuple[str, ...]] = ()
    whole: ClassVar[tuple[str, ...]] = ()
    ideal: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """Optional members of the loss that this algorithm requires (``byzadmm.losses.base``)."""
        return ()

    @property
    def validates(self) -> bool:
        """Whether the master needs samples of its own, ``simulate(validation=)``."""
        return False

    @property
    def second(self) -> Algorithm | None:
        """The second exchange of a round as an algorithm with ``message`` and ``answer``; None: there is none.

        The workers then answer ``x0``, the master sends what :meth:`question` makes of that, the workers answer it by
        ``second.answer``, whose state has it as the entry "asked", and :meth:`update` hears those messages. An attack
        is called in each exchange, with the algorithm of that exchange. It runs in one process: engines refuse it.
        """
        return None

    @property
    def redundant(self) -> bool:
        """Whether a worker computes batches of other workers too, so that flipped labels are all that it sees."""
        return False

    def message_length(self, d: int) -> int:
        """The numbers in a message, for models of ``d``."""
        return d

    def check(self, n: int, workers: int | None = None) -> None:
        """Raise a ValueError for settings that are illegal for ``n`` messages out of ``workers`` workers."""

    def changed(self, **changes: Any) -> Algorithm:
        """The same with other settings; for an algorithm that is a dataclass."""
        return replace(self, **changes)  # type: ignore[type-var]

    def declaring(self, f: int) -> Algorithm:
        """The same with ``f`` Byzantine workers declared, if it takes their number and it is not set."""
        return self

    def check_dtype(self, dtype: np.dtype[Any]) -> None:
        """Raise a ValueError for a setting that is infinite in ``dtype``, or zero there and has to be positive."""

    def bound(self) -> float:
        """What no element of an acceptable message exceeds in size; infinity if it need only be finite."""
        return math.inf

    def local_step(self, k: int) -> float | None:
        """Step size of the workers' local steps in round ``k``; None if this algorithm has none (``local_steps=1``).

        With ``local_steps=E``, ``group.gradients`` returns the sum of the gradients along E such steps.
        """
        return None

    def worker_state(self, group: Group) -> State:
        """What the workers of ``group`` hold before the first round: arrays whose first axis is the worker.

        An entry "x" holds their models, (n, d): its distance to the master is recorded, and ``x_init`` sets it.
        """
        return {}

    def answer(self, group: Group, state: State, x0: Array, k: int) -> Array:
        """The honest messages (n, length) of round ``k``, an array that the caller may change; ``state`` moves on."""
        raise NotImplementedError(f"{type(self).__name__} has no answer")

    def shown(self, state: State, messages: Array, k: int) -> tuple[Array, int]:
        """What an attack sees of the honest workers and forges, (n, d), and its index ``k`` for the attack."""
        return messages, k

    def forger_state(self, group: Group, q: int) -> State:
        """What is kept about the forged messages of ``q`` Byzantine workers of ``group``."""
        return {}

    def sent(self, group: Group, state: State, forged: Array, x0: Array, *, direct: bool) -> Array:
        """What goes out for forged rows (q, d); ``direct``: the attack has formed the message itself."""
        return forged

    def master_state(self, run: Experiment) -> State:
        """What the master holds before the first round, besides ``x0``."""
        return {}

    def point(self, state: State) -> Array:
        """What the master sends in the first exchange of a round: where the workers compute. By default the model."""
        return state["x0"]

    def question(self, run: Experiment, state: State, heard: Heard, k: int) -> Array:
        """What the master sends in the second exchange, (d,), made of the messages ``heard`` in the first."""
        raise NotImplementedError(f"{type(self).__name__} has no question")

    def update(self, run: Experiment, state: State, heard: Heard, k: int) -> None:
        """Move ``state["x0"]``, in place, by the messages ``heard``."""
        raise NotImplementedError(f"{type(self).__name__} has no update")

    def fused(self, run: Experiment) -> Callable[[State, int, int], None] | None:
        """Iterations ``first .. first+count-1`` of the whole run in one call ``f(state, first, count)``.

        None if this experiment has no such form. It must give the bits of the steps above.
        """
        return None

    def influence(self, rows: Array, x0: Array) -> Array:
        """What the master makes of messages as an attack forges them; an adaptive attack measures its harm by it."""
        return rows

    def combination(self) -> aggregators.Chain:
        """How the master combines what :meth:`influence` returns, up to a factor."""
        return aggregators.make("mean")

    def defense(self, run: Experiment, state: State | None, x0: Array, k: int) -> Callable[[Array], Array] | None:
        """What the master would make of the messages of round ``k``, (n, d) -> (d,), for attacks that ask for it.

        It changes nothing. ``state`` is the master's; None where the workers are in other processes, and a ValueError
        if the answer depends on it. None: :meth:`influence` and :meth:`combination` say all.
        """
        return None

    def describe(self) -> dict[str, Any]:
        """Name and settings as plain values, for a result's config and for telling checkpoints apart."""
        return {"name": type(self).__name__} | {name: describe(value) for name, value in settings_of(self).items()}
