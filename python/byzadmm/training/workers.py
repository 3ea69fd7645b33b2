"""The workers' side of a round: the state they hold, their honest messages, and the forged ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array, as_float, checked_vector
from byzadmm._internal.validation import check_int
from byzadmm.algorithms.base import State

if TYPE_CHECKING:
    from byzadmm.training.experiment import Experiment

__all__ = ["Group", "Workers", "taken"]

_USER_ATTACK = _core.PURPOSES.index("user_attack")


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
    """

    def __init__(self, run: Experiment, workers: Sequence[int]) -> None:
        self.run, self.workers = run, list(workers)
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

        ``rows`` picks some of the workers; models are then one for all, or one per row picked.
        """
        run = self.run
        workers = self.workers if rows is None else [self.workers[row] for row in rows]
        out = np.empty((len(workers), run.d), run.dtype)
        if run.native_loss is not None:
            run.native_loss.gradients(models, workers, k, out, run.threads)
            return out
        if hasattr(run.loss, "gradients"):
            run.loss.gradients(models.copy(), workers=list(workers), k=k, out=out)
            return out
        for row, worker in enumerate(workers):
            at = models if models.ndim == 1 else models[row]
            made = run.loss.gradient(at.copy(), worker=worker, k=k)
            with np.errstate(over="ignore"):  # too large for float32 is an infinity there, and eliminates its worker
                out[row] = checked_vector(made, "loss.gradient", run.d, finite=False)
        return out


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
    """

    def __init__(self, run: Experiment, mine: Sequence[int]) -> None:
        self.run = run
        self.mine = [check_int(worker, "mine", low=0, high=run.m - 1) for worker in mine]
        if any(a >= b for a, b in zip(self.mine, self.mine[1:], strict=False)):
            raise ValueError(f"mine: expected ascending numbers, got {self.mine}")
        forgers = [] if run.algorithm.ideal else run.byzantine
        looks = getattr(run.attack, "sees", "all") == "all"
        self.held = list(range(run.m)) if looks and not set(forgers).isdisjoint(self.mine) else self.mine
        held = set(self.held)
        self.byzantine = [worker for worker in forgers if worker in held]
        self._own = np.searchsorted(self.held, self.mine)
        self._forging = np.searchsorted(self.held, self.byzantine)
        self.group = Group(run, self.held)
        # Attacks address workers by number. A custom attack with sees="own" gets NaN in the other rows; a native one
        # does not read them, so their memory is never touched.
        self._all_rows: Array | None = None
        if self.byzantine and len(self.held) < run.m:
            self._all_rows = np.empty((run.m, run.d), run.dtype)
            if run.native_attack is None:
                self._all_rows[:] = np.nan
        q = len(self.byzantine)
        # Ideal SGD has no Byzantine workers, but the native loop keeps a place for their forged messages.
        place = len(run.byzantine) if run.algorithm.ideal else q
        self._state: State = {"forged": np.zeros((place, run.d), run.dtype)}
        self._state |= run.algorithm.worker_state(self.group)
        self._state |= run.algorithm.forger_state(self.group, q)

    def state(self) -> State:
        """The arrays themselves, rows in the order of ``held`` (or ``byzantine``)."""
        return dict(self._state)

    def restore(self, state: State) -> None:
        """Continue from ``state``, whose arrays are used, not copied; other entries in it are ignored."""
        self._state = {name: taken(state, name, old) for name, old in self._state.items()}

    def answer(self, k: int, x0: Array) -> Array:
        """What these workers send in round ``k``, (len(mine), d), given the master's ``x0``; their state moves on."""
        algorithm, group, state = self.run.algorithm, self.group, self._state
        messages = algorithm.answer(group, state, x0, k)
        if self.byzantine:
            self._forge(*algorithm.shown(state, messages, k), x0)
            direct = getattr(self.run.attack, "sends", "message") == algorithm.message
            messages[self._forging] = algorithm.sent(group, state, state["forged"], x0, direct=direct)
        return messages if len(self.mine) == len(self.held) else np.ascontiguousarray(messages[self._own])

    def _forge(self, honest: Array, k: int, x0: Array) -> None:
        """Forged messages of index ``k``, from the honest messages of those held."""
        run, out = self.run, self._state["forged"]
        if self._all_rows is not None:
            self._all_rows[self.held] = honest
            honest = self._all_rows
        if run.native_attack is not None:
            _core.attack_messages(run.native_attack, honest, self.byzantine, x0, k, run.seed, out, run.threads)
            return
        assert run.attack is not None
        rng = np.random.Generator(np.random.Philox(key=run.seed, counter=[0, _USER_ATTACK, 0, k]))
        made = run.attack(
            honest.copy(), x0=x0.copy(), k=k, byzantine=list(self.byzantine), rng=rng, algorithm=run.algorithm
        )
        messages = as_float(made, "attack")
        if messages.shape != out.shape:
            raise ValueError(f"attack: expected messages of shape {out.shape}, got {messages.shape}")
        with np.errstate(over="ignore"):
            out[:] = messages


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
