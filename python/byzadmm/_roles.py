"""The two sides of a round: what workers do and send, and what the master makes of it.

They share nothing but the checked experiment, ``x0`` and the messages, so they may live in one process or in many. The
kernels and their order are those of ``cpp/include/byzadmm/simulation.hpp``, hence the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from byzadmm import _core
from byzadmm._arrays import Array, as_float
from byzadmm._saga import Saga
from byzadmm._validation import check_int
from byzadmm.aggregators import CenteredClipping
from byzadmm.algorithms import ADMM, RSA, SGD

if TYPE_CHECKING:
    from byzadmm.simulation import _Setup

__all__ = ["Master", "State", "Workers", "checked_start", "checked_vector", "message_bound", "play"]

State = dict[str, Array]
Mask = NDArray[np.bool_]

_USER_ATTACK, _RULE = 2, 4  # Purpose of cpp/include/byzadmm/attacks.hpp


def play(k: int, master: Master, ask: Callable[[int, Array], tuple[Any, ...]]) -> None:
    """Round ``k``: ADMM's master moves first and its workers compare themselves with where it went; else it moves last.

    ``ask(k, x0)`` returns what :meth:`Master.receive` takes: the messages (m, d), who sent one (None: everybody), and
    which of them are acceptable if that is known already.
    """
    if isinstance(master.setup.algorithm, ADMM):
        master.receive(k, *ask(k, master.update(k)))
    else:
        master.receive(k, *ask(k, master.x0))
        master.update(k)


def message_bound(setup: _Setup) -> float:
    """What no element of a message may exceed in size (``lam`` for duals); 0 if it need only be finite."""
    return setup.algorithm.lam if isinstance(setup.algorithm, ADMM) else 0.0


class Workers:
    """Some of the workers, Byzantine ones among them: the models they hold and the messages they send.

    A Byzantine worker keeps an honest state and sends something else. If its attack looks at messages that are not held
    here, shadows of all workers are: every draw can be repeated anywhere, so they are what the others hold, to the bit
    (as long as those others answer every round).

    Parameters
    ----------
    setup : _Setup
    mine : list of int
        Numbers of the workers, ascending.
    x_init : (m, d) array, optional
        Where everybody's models start; zeros without it.
    """

    def __init__(self, setup: _Setup, mine: Sequence[int], x_init: Any = None) -> None:
        self.setup = setup
        self.mine = [check_int(worker, "mine", low=0, high=setup.m - 1) for worker in mine]
        if any(a >= b for a, b in zip(self.mine, self.mine[1:], strict=False)):
            raise ValueError(f"mine: expected ascending numbers, got {self.mine}")
        algorithm = setup.algorithm
        self._ideal = isinstance(algorithm, SGD) and algorithm.ideal
        liars = [] if self._ideal else setup.byzantine
        looks = getattr(setup.attack, "sees", "all") == "all"
        self.held = list(range(setup.m)) if looks and not set(liars).isdisjoint(self.mine) else self.mine
        held = set(self.held)
        self.liars = [worker for worker in liars if worker in held]
        self._own = np.searchsorted(self.held, self.mine)
        self._lying = np.searchsorted(self.held, self.liars)
        n, q, d = len(self.held), len(self.liars), setup.d
        # Attacks know workers by number. A user's sees NaN where it promised not to look; a native one really does not,
        # and the memory of the rows in between is never touched.
        self._everybody: Array | None = None
        if q and n < setup.m:
            self._everybody = np.empty((setup.m, d), setup.dtype)
            if setup.spec is None:
                self._everybody[:] = np.nan
        self._saga: Saga | None = None
        # Ideal SGD leaves the Byzantine workers out, but the native loop keeps a place for their lies.
        self._state: State = {"lies": self._zeros(len(setup.byzantine) if self._ideal else q, d)}
        if isinstance(algorithm, SGD):
            if x_init is not None:
                raise ValueError("x_init: SGD's workers have no models of their own")
            self._state["g"] = self._zeros(n, d)
            if algorithm.momentum:
                self._state["momentum"] = self._zeros(n, d)
            if setup.samples is not None and algorithm.variance_reduction == "saga":
                self._saga = Saga(setup.samples, self.held, setup.dtype, setup.seed, setup.batch_size)
                self._state |= self._saga.state
            return
        self._state["x"] = self._zeros(n, d)
        if x_init is not None:
            self._state["x"][:] = checked_start(x_init, "x_init", (setup.m, d), setup.dtype)[self.held]
        if isinstance(algorithm, ADMM):
            self._state |= {name: self._zeros(n, d) for name in ("eta", "eta_prev")}
            self._state |= {name: self._zeros(q, d) for name in ("sent", "sent_prev")}

    def state(self) -> State:
        """The arrays themselves, rows in the order of ``held`` (or ``liars``)."""
        return dict(self._state)

    def restore(self, state: State) -> None:
        """Go on from ``state``, whose arrays are taken over, not copied; other entries in it are left alone."""
        self._state = {name: _taken(state, name, old) for name, old in self._state.items()}
        if self._saga is not None:
            self._saga.state = {name: self._state[name] for name in self._saga.state}

    def answer(self, k: int, x0: Array) -> Array:
        """What these workers send in round ``k``, (len(mine), d), given the master's ``x0``; their state moves on."""
        algorithm = self.setup.algorithm
        if isinstance(algorithm, ADMM):
            return self._answer_admm(algorithm, k, x0)
        if isinstance(algorithm, RSA):
            return self._answer_rsa(algorithm, k, x0)
        return self._answer_sgd(algorithm, k, x0)

    def _answer_admm(self, algorithm: ADMM, k: int, x0: Array) -> Array:
        state, threads = self._state, self.setup.threads
        alpha = float(self.setup.step_sizes("worker_step", k)[0])
        x, eta, eta_prev = state["x"], state["eta"], state["eta_prev"]
        g = self._gradients(x, self.held, k)
        _core.admm_worker_step(x, g, eta, eta_prev, x, alpha, threads)
        _core.admm_dual_step(eta, x, x0, eta_prev, algorithm.beta, algorithm.lam, threads)
        state["eta"], state["eta_prev"] = eta_prev, eta
        if self.liars:
            lies, sent, sent_prev = state["lies"], state["sent"], state["sent_prev"]
            self._lie(x, x0, k + 1)
            if getattr(self.setup.attack, "sends", "message") == "dual":
                sent_prev[:] = lies
            else:
                _core.admm_dual_step(sent, lies, x0, sent_prev, algorithm.beta, algorithm.lam, threads)
            state["sent"], state["sent_prev"] = sent_prev, sent
        return self.outgoing("eta", "sent")

    def _answer_rsa(self, algorithm: RSA, k: int, x0: Array) -> Array:
        x = self._state["x"]
        alpha = float(self.setup.step_sizes("worker_step", k)[0])
        self._lie(x, x0, k)
        messages = self.outgoing("x", "lies")
        g = self._gradients(x, self.held, k)
        _core.rsa_worker_step(x, g, x0, x, alpha, algorithm.lam, self.setup.threads)
        return messages

    def _answer_sgd(self, algorithm: SGD, k: int, x0: Array) -> Array:
        g = self._state["g"]
        absent = set(self.setup.byzantine) if self._ideal else set()
        taking_part = [worker for worker in self.held if worker not in absent]
        made = self._gradients if self._saga is None else self._saga.gradients
        g[np.searchsorted(self.held, taking_part)] = made(x0, taking_part, k)
        honest = "g"
        if algorithm.momentum:
            honest = "momentum"
            _core.momentum_step(self._state[honest], g, algorithm.momentum, self.setup.threads)
        self._lie(self._state[honest], x0, k)
        return self.outgoing(honest, "lies")

    def outgoing(self, honest: str, lies: str) -> Array:
        """One part of the state of ``mine``, with what the liars among them show in its place."""
        shown: Array = self._state[honest].copy()
        if self.liars:
            shown[self._lying] = self._state[lies]
        return shown if len(self.mine) == len(self.held) else np.ascontiguousarray(shown[self._own])

    def _gradients(self, models: Array, workers: Sequence[int], k: int) -> Array:
        """Of ``workers`` at their models (n, d), or at one model (d)."""
        setup = self.setup
        out = np.empty((len(workers), setup.d), setup.dtype)
        if setup.native_loss is not None:
            setup.native_loss.gradients(models, list(workers), k, out, setup.threads)
            return out
        for row, worker in enumerate(workers):
            at = models if models.ndim == 1 else models[row]
            made = setup.loss.gradient(at.copy(), worker=worker, k=k)
            with np.errstate(over="ignore"):  # too large for float32 is an infinity there, and gives its worker away
                out[row] = checked_vector(made, "loss.gradient", setup.d, finite=False)
        return out

    def _lie(self, honest: Array, x0: Array, k: int) -> None:
        """Messages of index ``k`` of the liars, from the honest messages of those held."""
        if not self.liars:
            return
        setup, out = self.setup, self._state["lies"]
        if self._everybody is not None:
            self._everybody[self.held] = honest
            honest = self._everybody
        if setup.spec is not None:
            _core.attack_messages(setup.spec, honest, self.liars, x0, k, setup.seed, out, setup.threads)
            return
        assert setup.attack is not None
        rng = np.random.Generator(np.random.Philox(key=setup.seed, counter=[0, _USER_ATTACK, 0, k]))
        made = setup.attack(
            honest.copy(), x0=x0.copy(), k=k, byzantine=list(self.liars), rng=rng, algorithm=setup.algorithm
        )
        messages = as_float(made, "attack")
        if messages.shape != out.shape:
            raise ValueError(f"attack: expected messages of shape {out.shape}, got {messages.shape}")
        with np.errstate(over="ignore"):
            out[:] = messages

    def _zeros(self, *shape: int) -> Array:
        return np.zeros(shape, self.setup.dtype)


class Master:
    """The master: its model ``x0``, what it heard, and whom it has thrown out.

    ``eliminated[i]`` is the round in which worker i gave itself away, or -1. A worker that sends nothing in a round is
    not thrown out: in ADMM its last dual stays in the sum, as now and as before; RSA and SGD do without it.

    Parameters
    ----------
    setup : _Setup
    x0_init : (d,) array, optional
        Zeros without it.
    """

    def __init__(self, setup: _Setup, x0_init: Any = None) -> None:
        self.setup = setup
        m, d = setup.m, setup.d
        self._state: State = {"x0": np.zeros(d, setup.dtype), "eliminated": np.full(m, -1, np.int64)}
        if x0_init is not None:
            self._state["x0"][:] = checked_start(x0_init, "x0_init", (d,), setup.dtype)
        if isinstance(setup.algorithm, ADMM):
            self._state |= {name: np.zeros((m, d), setup.dtype) for name in ("heard", "heard_prev")}
        self._expected = np.ones(m, np.bool_)
        if isinstance(setup.algorithm, SGD) and setup.algorithm.ideal:
            self._expected[setup.byzantine] = False
        if isinstance(setup.algorithm, SGD):
            self._chain = setup.algorithm.chain()
            last = self._chain.links[-1]
            if isinstance(last, CenteredClipping) and last.center is None:
                self._state["center"] = np.full(d, np.nan, setup.dtype)
        self._messages: Array = np.empty((0, d), setup.dtype)
        self._senders: Array = np.empty(0, np.int64)

    @property
    def x0(self) -> Array:
        """The model itself: the next update changes it."""
        return self._state["x0"]

    @property
    def eliminated(self) -> NDArray[np.int64]:
        return self._state["eliminated"]

    def state(self) -> State:
        """The arrays themselves."""
        return dict(self._state)

    def restore(self, state: State) -> None:
        """Go on from ``state``, whose arrays are taken over, not copied; other entries in it are left alone."""
        self._state = {name: _taken(state, name, old) for name, old in self._state.items()}

    def receive(self, k: int, messages: Array, present: Mask | None = None, good: Mask | None = None) -> None:
        """Take the messages of round ``k``, (m, d); rows of workers that are not ``present`` are not looked at.

        A message that is not finite, or a dual out of range, gives its sender away (paper, below ``eq11``). ADMM's
        master keeps ``messages`` itself for two rounds, with the last duals of the missing workers written into it.
        """
        setup = self.setup
        arrived = self._expected if present is None else self._expected & present
        if good is None:
            good = np.array(_core.acceptable(messages, message_bound(setup)))
        self.eliminated[arrived & ~good & (self.eliminated < 0)] = k
        if isinstance(setup.algorithm, ADMM):
            now = self._state["heard"]
            if not arrived.all():
                messages[~arrived] = now[~arrived]
            self._state["heard"], self._state["heard_prev"] = messages, now
        else:
            heard = arrived & (self.eliminated < 0)
            self._messages, self._senders = _rows(messages, heard), np.flatnonzero(heard)

    def update(self, k: int) -> Array:
        """Move ``x0`` by what was heard last, and return it."""
        algorithm, x0, setup = self.setup.algorithm, self.x0, self.setup
        if isinstance(algorithm, SGD):
            alpha = float(setup.step_sizes("step", k)[0])
            _core.sgd_step(x0, self._direction(algorithm, k), x0, alpha, setup.rho, setup.threads)
            return x0
        alpha = float(setup.step_sizes("master_step", k)[0])
        if isinstance(algorithm, ADMM):
            heard = self.eliminated < 0
            now, before = _rows(self._state["heard"], heard), _rows(self._state["heard_prev"], heard)
            _core.admm_master_step(x0, now, before, x0, alpha, setup.rho, setup.threads)
        else:
            following = np.empty_like(x0)
            _core.rsa_master_step(x0, self._messages, following, alpha, algorithm.lam, setup.rho, setup.threads)
            x0[:] = following
        return x0

    def _direction(self, algorithm: SGD, k: int) -> Array:
        """One vector from the gradients that were heard; zero if they were too few for the rule."""
        heard, threads = self._messages, self.setup.threads
        out = np.zeros(self.setup.d, self.setup.dtype)
        if not len(heard):
            return out
        thrown_out = int(np.sum(self.eliminated >= 0))
        if algorithm.rule == "mean":
            _core.mean(heard, out, None, None, threads)
        elif algorithm.rule == "median":
            _core.median(heard, out, 0, None, threads)
        elif algorithm.rule == "trimmed_mean":
            f = min(max(algorithm.f - thrown_out, 0), (len(heard) - 1) // 2)
            _core.trimmed_mean(heard, out, f, None, threads)
        elif algorithm.rule == "geometric_median":
            _core.geometric_median(heard, out, None, 1e-6, 1000, None, threads)
        else:
            self._apply_chain(heard, thrown_out, k, out)
        return out

    def _apply_chain(self, heard: Array, thrown_out: int, k: int, out: Array) -> None:
        center = self._state.get("center")
        made = self._chain.in_training(
            heard,
            workers=self._senders,
            thrown_out=thrown_out,
            rng=np.random.Generator(np.random.Philox(key=self.setup.seed, counter=[0, _RULE, 0, k])),
            center=None if center is None or np.isnan(center[0]) else center,
            threads=self.setup.threads,
        )
        if made is None:
            return
        with np.errstate(over="ignore"):
            out[:] = checked_vector(made, "rule", self.setup.d, finite=False)
        if center is not None and np.all(np.isfinite(out)):
            center[:] = out


def checked_start(value: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """``value`` in the dtype of the run, where it must be finite too."""
    array = as_float(value, name)
    if array.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
    with np.errstate(over="ignore"):
        start: Array = array.astype(dtype, copy=False)
    if not np.all(np.isfinite(start)):
        raise ValueError(f"{name}: expected finite numbers in {dtype}")
    return start


def checked_vector(value: Any, name: str, d: int, finite: bool = True) -> Array:
    """``value`` as a float array (d,)."""
    array = as_float(value, name)
    if array.shape != (d,):
        raise ValueError(f"{name}: expected shape ({d},), got {array.shape}")
    if finite and not np.all(np.isfinite(array)):
        raise ValueError(f"{name}: expected finite numbers")
    return array


def _rows(array: Array, keep: Mask) -> Array:
    return array if keep.all() else np.ascontiguousarray(array[keep])


def _taken(state: State, name: str, old: Array) -> Array:
    if name not in state:
        raise ValueError(f"state: {name} is missing")
    new = state[name]
    if new.shape != old.shape or new.dtype != old.dtype:
        raise ValueError(
            f"state: expected {name} of shape {old.shape} and dtype {old.dtype}, got {new.shape} and {new.dtype}"
        )
    return new
