"""The workers' side of a round: the state they hold, their honest messages, and the forged ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from byzadmm import _core, steps
from byzadmm._internal.arrays import Array, as_float, checked_vector
from byzadmm._internal.validation import check_int
from byzadmm.algorithms.base import Algorithm, State
from byzadmm.attacks import HONEST, Attack

if TYPE_CHECKING:
    from byzadmm.training.experiment import Experiment

__all__ = ["Group", "Workers", "call_attack", "check_apart", "first_state", "held_by", "taken"]

_USER_ATTACK = _core.PURPOSES.index("user_attack")
_KEPT = "attack_"  # before the names of an attack's arrays in the workers' state


class Group:
    """Some workers as an algorithm sees them: their numbers, their loss, and room for their arrays.

    Attributes
    ----------
    run : Experiment
    workers : list of int
        Numbers, ascending; row r of every array belongs to ``workers[r]``.
    taking_part : list of int
        Rows of the workers that take part: all, but for the Byzantine ones where the algorithm is ideal.
    kept : dict
        What an algorithm prepares once for these workers; not part of a checkpoint.
    held : Group
        The workers of which these take part in a round; by default this group itself.
    """

    def __init__(self, run: Experiment, workers: Sequence[int], held: Group | None = None) -> None:
        self.run, self.workers = run, list(workers)
        self.held = self if held is None else held
        absent = set(run.byzantine) if run.algorithm.ideal else set()
        self.taking_part = [row for row, worker in enumerate(self.workers) if worker not in absent]
        self.kept: dict[str, Any] = {}

    @property
    def dim(self) -> int:
        return self.run.d

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.run.dtype

    @property
    def threads(self) -> int:
        return self.run.threads

    def zeros(self) -> Array:
        """Zeros (n, d)."""
        return np.zeros((len(self.workers), self.dim), self.dtype)

    def models(self) -> Array:
        """Where the workers' models start, (n, d)."""
        return self.run.models(self.workers)

    def gradients(self, models: Array, k: int, rows: Sequence[int] | None = None) -> Array:
        """Stochastic gradients of round ``k``, (n, d), at the workers' models (n, d) or at one model (d,).

        ``rows`` picks some of the workers; models are then one for all, or one per row picked. With ``local_steps=E``
        it is the sum of the gradients along E steps from there, ``(models - w) / step`` for the models ``w`` after
        them; step e of round k draws what round ``k E + e`` of the loss draws.
        """
        run = self.run
        workers = self.workers if rows is None else [self.workers[row] for row in rows]
        total = self._gradients(models, k * run.local_steps, workers)
        if run.local_steps > 1:
            step = run.dtype.type(steps.at(run.algorithm.local_step, "local_step", k, run.dtype))  # type: ignore[arg-type]
            with np.errstate(over="ignore", invalid="ignore"):  # a worker that diverges is eliminated
                for e in range(1, run.local_steps):
                    total += self._gradients(models - step * total, k * run.local_steps + e, workers)
        return total

    def full_gradients(self, x: Array) -> Array:
        """Gradients on all samples of each worker, (n, d), at one model (d,); zeros for those that take no part."""
        out = self.zeros()
        for row in self.taking_part:
            made = self.run.loss.full_gradient(x.copy(), worker=self.workers[row])
            with np.errstate(over="ignore"):
                out[row] = checked_vector(made, "loss.full_gradient", self.dim, finite=False)
        return out

    def batch_gradients(self, model: Array, k: int, batches: Sequence[int], *, flipped: bool = False) -> Array:
        """Gradients (n, d) at one model (d,) on the batches of round ``k`` of any workers, or on flipped labels."""
        return self._gradients(model, k, list(batches), flipped)

    def _gradients(self, models: Array, k: int, workers: list[int], flipped: bool = False) -> Array:
        """The loss's gradients of ``workers`` with the draws of its round ``k``."""
        run = self.run
        loss, native = (run.flipped, run.native_flipped) if flipped else (run.loss, run.native_loss)
        out = np.empty((len(workers), run.d), run.dtype)
        if native is not None:
            native.gradients(models, workers, k, out, run.threads)
            return out
        if hasattr(loss, "gradients"):
            loss.gradients(models.copy(), workers=list(workers), k=k, out=out)
            return out
        for row, worker in enumerate(workers):
            at = models if models.ndim == 1 else models[row]
            made = loss.gradient(at.copy(), worker=worker, k=k)
            with np.errstate(over="ignore"):  # too large for float32 is an infinity there, and eliminates its worker
                out[row] = checked_vector(made, "loss.gradient", run.d, finite=False)
        return out


def held_by(run: Experiment, mine: Sequence[int]) -> list[int]:
    """The workers whose state a process with the workers ``mine`` holds: these, or all if its attackers see all."""
    forgers = [] if run.algorithm.ideal else run.byzantine
    looks = getattr(run.attack, "sees", "all") == "all"
    return list(range(run.m)) if looks and not set(forgers).isdisjoint(mine) else list(mine)


class Workers:
    """Some of the workers, Byzantine ones among them: the models they hold and the messages they send.

    A Byzantine worker keeps an honest state and sends a forged message. If its attack needs messages of workers that
    are not held here, copies of all workers are computed here too: every draw can be repeated anywhere, so they have
    the bits of the originals as long as those answer every round.

    Parameters
    ----------
    run : Experiment
    mine : list of int
        Numbers of the workers, ascending.
    master : callable, optional
        The master's state, where it is in the same process: what attacks that ask for its defense attack.
    """

    def __init__(
        self, run: Experiment, mine: Sequence[int], master: Callable[[], State] | None = None
    ) -> None:
        self.run, self.master = run, master
        if master is None:
            check_apart(run)
        self.mine = [check_int(worker, "mine", low=0, high=run.m - 1) for worker in mine]
        if any(a >= b for a, b in zip(self.mine, self.mine[1:], strict=False)):
            raise ValueError(f"mine: expected ascending numbers, got {self.mine}")
        self.held = held_by(run, self.mine)
        held = set(self.held)
        self.byzantine = [worker for worker in run.byzantine if worker in held and not run.algorithm.ideal]
        self.group = Group(run, self.held)
        q = len(self.byzantine)
        # Ideal SGD has no Byzantine workers, but the native loop keeps a place for their forged messages.
        place = len(run.byzantine) if run.algorithm.ideal else q
        of_workers = run.algorithm.worker_state(self.group)
        self._state: State = {"forged": np.zeros((place, run.length), run.dtype)} | of_workers
        self._state |= run.algorithm.forger_state(self.group, q)
        self._by_worker = of_workers.keys() - set(run.algorithm.whole)
        self._by_forger = self._state.keys() - of_workers.keys()
        self._state |= first_state(run) if self.byzantine else {}
        self._everyone = _Part(self, np.arange(run.m), self.group)
        self._kept: dict[tuple[str, int], _Some] = {}

    def state(self) -> State:
        """The arrays themselves, rows in the order of ``held`` (or ``byzantine``)."""
        return dict(self._state)

    def restore(self, state: State) -> None:
        """Continue from ``state``, whose arrays are used, not copied; other entries in it are ignored."""
        self._kept.clear()
        self._state = {name: taken(state, name, old) for name, old in self._state.items()}

    def answer(self, k: int, x0: Array, asked: Array | None = None) -> Array:
        """What these workers send in round ``k``, given the master's ``x0``; their state moves on.

        In the second exchange of a round the master has ``asked`` something besides. One row for each of ``mine`` that
        takes part in the round; the state of those that do not stays as it is.
        """
        sampling = self.run.sampling
        if sampling.complete:
            return self._answer(self._everyone, self._state, k, x0, asked)
        part = _Part(self, sampling.workers(k))
        if not part.group.workers:
            return np.empty((0, self.run.length), self.run.dtype)
        rows = {"worker": part.rows, "forger": part.forgers}
        held = self._some(rows)
        state = held.copy()
        messages = self._answer(part, state, k, x0, asked)
        self._keep(state, rows, held)
        return messages

    def compute(self, workers: Sequence[int], k: int, x0: Array) -> Array:
        """The honest messages of some workers for their job number ``k`` at ``x0``, a row each; their state moves on.

        ``workers`` are numbers in ascending order.
        """
        if len(workers) == len(self.held) > 1:
            before = self._state.copy()
            messages = self.run.algorithm.answer(self.group, self._state, x0, k)
            if any(self._state[name] is not array for name, array in before.items()):
                self._kept.clear()  # rows of arrays that others have replaced
            return messages
        part = self._part_of("worker", workers)
        state = part.state.copy()
        messages = self.run.algorithm.answer(part.group, state, x0, k)
        self._keep(state, part.rows, part.state)
        return messages

    def forge(self, attackers: Sequence[int], honest: Array, x0: Array, k: int, job: int) -> Array:
        """What some Byzantine workers send for their job number ``job``, a row each, in place of their honest messages.

        The attack sees the ``honest`` messages of all workers (m, length), and ``k`` is its round; what it draws goes
        by ``job``. The rows may be part of the state: copy what you keep.
        """
        algorithm = self.run.algorithm
        part = self._part_of("forger", attackers)
        state = part.state.copy()
        shown, index = algorithm.shown(state, honest, k)
        self._everyone.forge(algorithm, shown, index, x0, state, alone=part, draws=index + job - k)
        direct = getattr(self.run.attack, "sends", "message") == algorithm.message
        messages = algorithm.sent(part.group, state, state["forged"], x0, direct=direct)
        self._keep(state, part.rows, part.state)
        return messages

    def _part_of(self, kind: str, workers: Sequence[int]) -> _Some:
        """Some of the workers ("worker") or attackers ("forger").

        Those of a single one are kept: an asynchronous run asks for them again and again.
        """
        key = kind, workers[0]
        found = self._kept.get(key) if len(workers) == 1 else None
        if found is None:
            rows = {kind: np.searchsorted(self.held if kind == "worker" else self.byzantine, workers)}
            found = _Some(Group(self.run, workers, self.group), rows, self._some(rows))
            if len(workers) == 1:
                self._kept[key] = found
        return found

    def _some(self, rows: Mapping[str, Array]) -> State:
        """The state with some rows of the entries that have one per worker ("worker") or per attacker ("forger")."""
        names = {"worker": self._by_worker, "forger": self._by_forger}
        chosen = {name: _slice(picked) for kind, picked in rows.items() for name in names[kind]}
        return {name: array[chosen[name]] if name in chosen else array for name, array in self._state.items()}

    def _keep(self, state: State, rows: Mapping[str, Array], held: State) -> None:
        """Put what an algorithm has exchanged or replaced in ``held``, of :meth:`_some`, back to its rows.

        Entries may have changed places: all are read before any is set.
        """
        for kind, picked in rows.items():
            names = self._by_worker if kind == "worker" else self._by_forger
            # Rows one after another are the state itself as long as nothing has taken their place.
            found = {name: state[name] for name in names if state[name] is not held[name] or held[name].base is None}
            if found:
                place = _slice(picked)
                for name, array in [(name, array.copy()) for name, array in found.items()]:
                    self._state[name][place] = array

    def _answer(self, part: _Part, state: State, k: int, x0: Array, asked: Array | None) -> Array:
        algorithm = self.run.algorithm
        if asked is not None:
            assert algorithm.second is not None
            algorithm, state = algorithm.second, state | {"asked": asked}
        messages = algorithm.answer(part.group, state, x0, k)
        if len(part.forging):
            part.forge(algorithm, *algorithm.shown(state, messages, k), x0, state)
            direct = getattr(self.run.attack, "sends", "message") == algorithm.message and not part.alone
            messages[part.forging] = algorithm.sent(part.group, state, state["forged"], x0, direct=direct)
        return messages if len(part.own) == len(messages) else np.ascontiguousarray(messages[part.own])


class _Some(NamedTuple):
    """Some of the workers, their rows in the state by its kind of entries, and the state with these rows alone."""

    group: Group
    rows: dict[str, Array]
    state: State


class _Part:
    """Those of some workers that take part in a round, and the attack of the Byzantine ones among them.

    Attributes
    ----------
    group : Group
        The workers held that take part.
    rows, forgers : int arrays
        Their rows among all that are held, and those of the Byzantine ones among all Byzantine ones that are held.
    own, forging : int arrays
        Rows of the group: the workers that are not held as copies, and the Byzantine ones.
    alone : bool
        No regular worker was drawn, and the attack is made from their messages: the Byzantine ones send honest ones.
    """

    def __init__(self, workers: Workers, drawn: NDArray[np.int64], group: Group | None = None) -> None:
        self.run = run = workers.run
        self._master = workers.master
        self.rows = np.flatnonzero(np.isin(workers.held, drawn))
        here = np.array(workers.held, np.int64)[self.rows]
        self.group = Group(run, here.tolist(), workers.group) if group is None else group
        self.forgers = np.flatnonzero(np.isin(workers.byzantine, drawn))
        attackers = np.array(workers.byzantine, np.int64)[self.forgers]
        self.own = np.flatnonzero(np.isin(here, workers.mine))
        self.forging = np.searchsorted(here, attackers)
        # Attacks address workers by their places among those that take part.
        self._byzantine: list[int] = np.searchsorted(drawn, attackers).tolist()
        self._attack = run.native_attack
        self._called: Any = run.attack
        q = len(np.intersect1d(drawn, run.byzantine))
        self.alone = q == len(drawn) < run.m and getattr(run.attack, "sees", None) == "all"
        if self.alone:
            self._attack = HONEST
        elif len(drawn) < run.m and hasattr(self._called, "among"):
            following: Any = self._called
            self._called = following.among(drawn.tolist())
            if self._attack is not None:
                self._attack = self._called.spec(run.algorithm, len(drawn), q)
        # A custom attack with sees="own" gets NaN in the other rows; a native one does not read them, so their memory
        # is never touched.
        self._places = np.searchsorted(drawn, here)
        self._all_rows: Array | None = None
        if len(attackers) and len(here) < len(drawn):
            self._all_rows = np.empty((len(drawn), run.length), run.dtype)
            if self._attack is None:
                self._all_rows[:] = np.nan

    def forge(
        self,
        algorithm: Algorithm,
        honest: Array,
        k: int,
        x0: Array,
        state: State,
        *,
        alone: _Some | None = None,
        draws: int | None = None,
    ) -> None:
        """Forged messages of index ``k`` into ``state["forged"]``, from the honest messages of the group.

        ``alone``: those of these attackers alone; ``draws``: what draws go by, by default ``k``.
        """
        run, out, draws = self.run, state["forged"], k if draws is None else draws
        if run.length != run.d and isinstance(run.attack, Attack):
            x0 = np.zeros(run.length, run.dtype)  # one that looked at it would have been refused
        if self._all_rows is not None:
            self._all_rows[self._places] = honest
            honest = self._all_rows
        if self._attack is not None:
            some = self._byzantine if alone is None else alone.group.workers
            _core.attack_messages(
                self._attack, honest, some, x0, draws, run.seed, out, run.threads, others=self._byzantine
            )
            return
        given: dict[str, Any] = {"x0": x0.copy(), "k": k, "byzantine": list(self._byzantine), "algorithm": algorithm}
        if getattr(run.attack, "asks_defense", False):
            memory = None if self._master is None else self._master()
            given["defense"] = algorithm.defense(run, memory, x0, k)
        messages = call_attack(run, self._called, honest.copy(), state, given, len(self._byzantine), draws=draws)
        with np.errstate(over="ignore"):
            out[:] = messages if alone is None else messages[alone.rows["forger"]]


def call_attack(
    run: Experiment,
    attack: Any,
    messages: Array,
    state: State,
    given: dict[str, Any],
    count: int,
    *,
    draws: int | None = None,
    stream: int = 0,
) -> Array:
    """What an attack that is called sends for ``count`` workers; what it keeps in ``state`` moves on.

    ``given`` are its keywords; what it draws goes by ``draws``, by default its ``k``, and by ``stream``.
    """
    counter = [0, _USER_ATTACK, stream, given["k"] if draws is None else draws]
    given = given | {"rng": np.random.Generator(np.random.Philox(key=run.seed, counter=counter))}
    kept = {name: array for name, array in state.items() if name.startswith(_KEPT)}
    if hasattr(run.attack, "begin"):
        given["state"] = {name.removeprefix(_KEPT): array for name, array in kept.items()}
    made = as_float(attack(messages, **given), "attack")
    for name, array in kept.items():
        new = np.asarray(given["state"].get(name.removeprefix(_KEPT)))  # it may have a new array in its place
        if new.shape != array.shape:
            expected = f"{name.removeprefix(_KEPT)} of shape {array.shape}"
            raise ValueError(f"attack: expected state {expected}, got {new.shape}")
        np.copyto(array, new, casting="same_kind")
    if made.shape != (count, messages.shape[1]):
        raise ValueError(f"attack: expected messages of shape {(count, messages.shape[1])}, got {made.shape}")
    return made


def first_state(run: Experiment) -> State:
    """What an attack that keeps a state starts with."""
    begin = getattr(run.attack, "begin", None)
    if run.native_attack is not None or begin is None:
        return {}
    made = begin(run.m, run.length, run.dtype)
    if not isinstance(made, Mapping):
        raise TypeError(f"attack.begin: expected a dict of arrays, got {type(made).__name__}")
    state = {f"{_KEPT}{name}": np.array(array) for name, array in made.items()}
    for name, array in state.items():
        if array.dtype.kind not in "biufc":
            raise TypeError(f"attack.begin: expected numbers, got {array.dtype} for {name.removeprefix(_KEPT)}")
    return state


def _slice(rows: Array) -> slice | Array:
    """Rows in ascending order as an index: a slice, which copies nothing, if they are one after another."""
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def check_apart(run: Experiment) -> None:
    """Raise a ValueError for an attack that needs the master's memory, where the workers are in other processes."""
    if getattr(run.attack, "asks_defense", False) and run.byzantine:
        run.algorithm.defense(run, None, run.x0_init, run.first_k)


def taken(state: State, name: str, old: Array) -> Array:
    """``state[name]``, which must be like ``old``."""
    if name not in state:
        raise ValueError(f"state: {name} is missing")
    new = state[name]
    if new.shape != old.shape or new.dtype != old.dtype:
        raise ValueError(
            f"state: expected {name} of shape {old.shape} and dtype {old.dtype}, got {new.shape} and {new.dtype}"
        )
    return new
