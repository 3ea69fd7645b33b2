"""The record of an experiment: everything that does not change while it runs, checked once.

``simulate``, ``simulate_many``, settings files, the command line and the engines all construct it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array, checked_start, checked_vector
from byzadmm._internal.description import describe, settings_of
from byzadmm._internal.validation import check_choice, check_int, check_real, check_threads, check_workers
from byzadmm.algorithms.base import Algorithm, State
from byzadmm.attacks import HONEST, Attack, Spec
from byzadmm.datasets import Dataset
from byzadmm.losses import BY_NAME as LOSSES
from byzadmm.losses.base import Loss, Samples
from byzadmm.training.history import History
from byzadmm.training.sampling import Sampling
from byzadmm.training.validation import Validation
from byzadmm.training.workers import Group

__all__ = ["DEFAULTS", "MAX_ITERATIONS", "Experiment", "check_byzantine", "check_settings"]

MAX_ITERATIONS = 2**62  # so that their number is one of the kernels' integers, wherever it starts
_MAX_LOCAL_STEPS = 2**20

#: The settings of a run that are plain values, each with its default.
DEFAULTS: dict[str, Any] = {
    "dtype": "float32",
    "batch_size": 32,
    "seed": 0,
    "threads": 0,
    "rho": 0.01,
    "first_k": 1,
    "iterations": 1000,
    "eval_every": 50,
    "record": None,
    "local_steps": 1,
    "participation": 1.0,
}

# Settings that a checkpoint of a run without them does not mention.
_LATER = {name: DEFAULTS[name] for name in ("local_steps", "participation")} | {"validation": None}

# Who runs an algorithm, by its schedule.
_RUN_BY = {
    "rounds": "has a master: byzadmm.simulate runs it",
    "events": "is asynchronous: byzadmm.asynchronous.simulate runs it, and byzadmm.compare with delays",
    "graph": "is decentralized: byzadmm.decentralized.simulate runs it, on a graph",
}

_CHECKS: dict[str, Callable[[Any, np.dtype[Any]], Any]] = {
    "dtype": lambda value, dtype: dtype,
    "batch_size": lambda value, _: check_int(value, "batch_size", low=1),
    "seed": lambda value, _: check_int(value, "seed", low=0, high=2**64 - 1),
    "threads": lambda value, _: check_threads(value),
    "rho": lambda value, dtype: check_real(value, "rho", low=0.0, dtype=dtype),
    "first_k": lambda value, _: check_int(value, "first_k", low=0, high=MAX_ITERATIONS),
    "iterations": lambda value, _: check_int(value, "iterations", low=0, high=MAX_ITERATIONS),
    "eval_every": lambda value, _: check_int(value, "eval_every", low=1),
    "record": lambda value, _: None if value is None else check_choice(value, "record", ("trajectory",)),
    "local_steps": lambda value, _: check_int(value, "local_steps", low=1, high=_MAX_LOCAL_STEPS),
    "participation": lambda value, _: check_real(value, "participation", low=0.0, high=1.0, strict=True),
}


def check_settings(**settings: Any) -> dict[str, Any]:
    """All of :data:`DEFAULTS`, checked, with the values of ``settings`` where there are any.

    Examples
    --------
    >>> from byzadmm.training.experiment import check_settings
    >>> check_settings(batch_size=8)["batch_size"], check_settings()["rho"]
    (8, 0.01)
    """
    for name in settings:
        if name not in DEFAULTS:
            raise TypeError(f"Experiment() got an unexpected keyword argument {name!r}")
    given = DEFAULTS | settings
    dtype = _float_type(given["dtype"])
    return {name: check(given[name], dtype) for name, check in _CHECKS.items()}


class Experiment:
    """The arguments of :func:`byzadmm.simulate`, checked, as every part of a run needs them.

    Parameters
    ----------
    dataset, parts, algorithm, attack, n_byzantine, byzantine, loss, x0_init, x_init, optimum, validation
        As in ``simulate``.
    wire : None, "float32" or "float64"
        Type of the numbers that travel where the workers are in other processes; by default that of the run.
    settings
        The plain settings of ``simulate``, those of :data:`DEFAULTS`.

    Attributes
    ----------
    m, d : int
        Workers and parameters.
    length : int
        Numbers in a message.
    flipped : loss or None
        With flipped labels everywhere: what a Byzantine worker that computes batches of several workers sees of them.
    byzantine : list of int
        The workers that attack, or that take no part in Ideal SGD; without an attack a Byzantine worker is a regular
        one.
    sampling : Sampling
        Who takes part in each round.
    validation : Validation or None
        The master's own samples.
    native_loss, native_attack
        Loss and attack of the fused loop, None where only Python can compute them.
    """

    dtype: np.dtype[Any]
    batch_size: int
    seed: int
    threads: int
    rho: float
    first_k: int
    iterations: int
    eval_every: int
    record: str | None
    local_steps: int
    participation: float

    #: The kinds of algorithms that it runs (``Algorithm.schedule``).
    schedules: ClassVar[tuple[str, ...]] = ("rounds",)
    # Entries of the config in which a run and its continuation may differ.
    _open: ClassVar[tuple[str, ...]] = ("iterations",)

    def __init__(
        self,
        dataset: Dataset | None,
        parts: Sequence[Any] | None,
        *,
        algorithm: Algorithm,
        attack: Callable[..., Any] | None = None,
        n_byzantine: int = 0,
        byzantine: Sequence[int] | None = None,
        loss: Any = "softmax",
        x0_init: Any = None,
        x_init: Any = None,
        optimum: Any = None,
        validation: Any = None,
        wire: str | None = None,
        **settings: Any,
    ) -> None:
        if not isinstance(algorithm, Algorithm):
            raise TypeError(
                f"algorithm: expected ADMM, RSA, SGD or another algorithms.Algorithm, got {type(algorithm).__name__}"
            )
        if algorithm.schedule not in self.schedules:
            raise ValueError(
                f"algorithm: {type(algorithm).__name__} {_RUN_BY[algorithm.schedule]}"
            )
        if attack is not None and not callable(attack):
            raise TypeError(f"attack: expected an attack of byzadmm.attacks or a callable, got {type(attack).__name__}")
        if dataset is not None and not isinstance(dataset, Dataset):
            raise TypeError(f"dataset: expected a Dataset of byzadmm.datasets or None, got {type(dataset).__name__}")
        self.algorithm: Algorithm = algorithm
        self.attack: Callable[..., Any] | None = attack
        self.dataset: Dataset | None = dataset
        vars(self).update(check_settings(**settings))
        self.loss: Any = self._make_loss(dataset, parts, loss)
        self.m = check_int(self.loss.n_workers, "loss.n_workers", low=1)
        self.d = check_int(self.loss.dim, "loss.dim", low=1)
        self.length = check_int(algorithm.message_length(self.d), "algorithm.message_length", low=1)
        self.sampling = Sampling(self.m, self.participation, self.seed)
        self.named_byzantine = check_byzantine(n_byzantine, byzantine, self.m)
        active = self.named_byzantine if attack is not None or algorithm.ideal else []
        self.byzantine = active
        self.flipped: Any = None
        self.native_attack: Spec | None = HONEST if attack is None else None
        if isinstance(attack, Attack):
            if attack.poisons_labels:
                if not hasattr(self.loss, "poisoned"):
                    raise ValueError(
                        f"attack: {type(attack).__name__} needs a loss with labels, such as softmax and logistic; got "
                        f"{type(self.loss).__name__}"
                    )
                mapping = getattr(attack, "mapping", None)
                if algorithm.redundant:
                    self.flipped = self.loss.poisoned(range(self.m), mapping)
                else:
                    self.loss = self.loss.poisoned(active, mapping)
            self.native_attack = attack.spec(algorithm, self.m, len(active))
        self.samples: Samples | None = getattr(self.loss, "samples", None)
        for name in algorithm.needs:
            if not hasattr(self.loss, name):
                kind, lacking = type(algorithm).__name__, type(self.loss).__name__
                raise ValueError(f"loss: {kind} with these settings needs one with {name}; {lacking} has none")
        if algorithm.validates and validation is None:
            kind = type(algorithm).__name__
            raise ValueError(f"validation: {kind} with these settings needs rows of the training set for the master")
        self.validation = None if validation is None else Validation(self.loss, validation, self.seed)
        self.native_loss: _core.Loss | None = None
        self.native_flipped: _core.Loss | None = None
        if hasattr(self.loss, "native_form"):
            self.native_loss = self.loss.native_form(self.dtype, self.seed)
            if self.flipped is not None:
                self.native_flipped = self.flipped.native_form(self.dtype, self.seed)
        algorithm.check_dtype(self.dtype)
        self._check_attack()
        self._check_local_steps()
        self._check_rows()
        start = self.loss.initial() if hasattr(self.loss, "initial") else np.zeros(self.d)
        self._start = checked_start(start, "loss.initial", (self.d,), self.dtype)
        self.x0_init = self._start if x0_init is None else checked_start(x0_init, "x0_init", (self.d,), self.dtype)
        self.x_init = None if x_init is None else checked_start(x_init, "x_init", (self.m, self.d), self.dtype)
        if self.x_init is not None and not self.has_models:
            raise ValueError(f"x_init: {type(algorithm).__name__}'s workers have no models of their own")
        self.optimum = None if optimum is None else checked_vector(optimum, "optimum", self.d)
        self.wire = np.dtype(
            self.dtype if wire is None else check_choice(wire, "wire", ("float32", "float64"))
        ).newbyteorder("<")
        if self.shrink:
            check_real(algorithm.bound(), "the bound of a message", low=0.0, strict=True, dtype=self.wire)

    def roles(self, state: dict[str, Any]) -> _core.Roles:
        """Who is Byzantine and what those send, for a fused loop; it writes whom the master eliminates into state."""
        assert self.native_attack is not None
        return _core.Roles(
            byzantine=self.byzantine,
            attack=self.native_attack,
            seed=self.seed,
            eliminated=state["eliminated"],
            threads=self.threads,
        )

    def _check_rows(self) -> None:
        """The algorithm must be able to work with the messages of one round."""
        sampling = self.sampling
        n = min(sampling.count, self.m - (len(self.byzantine) if self.algorithm.ideal else 0))
        try:
            self.algorithm.check(n, self.m)
        except ValueError as error:
            if sampling.complete:
                raise
            taking_part = f"participation={self.participation}: {sampling.count} of {self.m} take part in a round"
            raise ValueError(f"{error} ({taking_part})") from error

    def _check_local_steps(self) -> None:
        if self.local_steps == 1:
            return
        if self.algorithm.local_step(self.first_k) is None:
            kind = type(self.algorithm).__name__
            raise ValueError(f"local_steps: expected 1 for {kind} with these settings, got {self.local_steps}")
        if (self.first_k + self.iterations) * self.local_steps >= 2**63:
            raise ValueError(f"local_steps: {self.local_steps} in {self.iterations} iterations are too many to number")

    def _check_attack(self) -> None:
        """Every number in an attack's settings must be finite in the dtype of the run."""
        if isinstance(self.attack, Attack):
            for name, value in settings_of(self.attack).items():
                if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and abs(value) < np.inf:
                    check_real(value, f"attack: {name}", dtype=self.dtype)
        if self.length != self.d and getattr(self.attack, "uses_x0", False):
            name = getattr(self.attack, "__name__", type(self.attack).__name__)
            raise ValueError(
                f"attack: {name} compares messages with x0, expected messages of its length {self.d}; those of "
                f"{type(self.algorithm).__name__} with these settings have {self.length}"
            )
        # Made of the algorithm's settings.
        native = self.native_attack
        if native is not None and native.kind != "constant":  # a constant is a setting, or not finite on purpose
            check_real(native.value, "attack: strength", dtype=self.dtype)

    def _make_loss(self, dataset: Any, parts: Any, loss: Any) -> Any:
        if isinstance(loss, str):
            check_choice(loss, "loss", LOSSES)
            if dataset is None or parts is None:
                raise TypeError(f"loss: {loss!r} needs a dataset and parts")
            return LOSSES[loss](dataset, parts, self.batch_size, self.seed, threads=self.threads)
        if not isinstance(loss, Loss):
            raise TypeError(
                f"loss: expected {', '.join(map(repr, LOSSES))}, a loss of byzadmm.losses, or an object with dim, "
                f"n_workers and gradient; got {type(loss).__name__}"
            )
        return loss

    @property
    def regular(self) -> list[int]:
        """The workers that are not Byzantine."""
        byzantine = set(self.byzantine)
        return [worker for worker in range(self.m) if worker not in byzantine]

    @property
    def plain(self) -> bool:
        """Whether all workers take part in every round, with one gradient each: what the native loops compute."""
        return self.sampling.complete and self.local_steps == 1

    @property
    def shrink(self) -> bool:
        """Whether messages are rounded toward zero on the wire: they must not leave their range on the way."""
        return bool(np.isfinite(self.algorithm.bound()))

    @cached_property
    def has_models(self) -> bool:
        """Whether workers keep models of their own."""
        return "x" in self.algorithm.worker_state(Group(self, []))

    def models(self, workers: Sequence[int]) -> Array:
        """Where the models of ``workers`` start, (n, d)."""
        models: Array = np.empty((len(workers), self.d), self.dtype)
        models[:] = self._start if self.x_init is None else self.x_init[list(workers)]
        return models

    def history(self) -> History:
        """An empty record of evaluations."""
        return History(self)

    @property
    def unit(self) -> str:
        """What the progress bar counts."""
        return "iterations"

    def span(self, done: int) -> int:
        """Iterations from ``done`` on to the next evaluation."""
        return min(self.eval_every - done % self.eval_every, self.iterations - done)

    def progress(self, done: int, state: State) -> tuple[int, int]:
        """How far a run is, and how far it goes, in units of :attr:`unit`."""
        return done, self.iterations

    def describe(self) -> dict[str, Any]:
        """Every setting as plain values: the config of the result."""
        data, attack, loss = self.dataset, self.attack, self.loss
        return {
            "dataset": data.name if data is not None else None,
            "scale": float(data.scale) if data is not None else None,
            "loss": loss.describe() if hasattr(loss, "describe") else describe(loss),
            "attack": attack.describe() if isinstance(attack, Attack) else describe(attack),
            "byzantine": self.named_byzantine,
            "version": _core.__version__,
            "algorithm": self.algorithm.describe(),
            "n_workers": self.m,
            "dim": self.d,
            "batch_size": getattr(loss, "batch_size", self.batch_size),
            "rho": self.rho,
            "seed": self.seed,
            "dtype": str(self.dtype),
            "first_k": self.first_k,
            "iterations": self.iterations,
            "eval_every": self.eval_every,
            "record": self.record,
            "local_steps": self.local_steps,
            "participation": self.participation,
            "validation": None if self.validation is None else describe(self.validation.rows),
        }

    def fingerprint(self, config: Mapping[str, Any], state: State) -> str:
        """Tells whether a checkpoint belongs to this very run; a longer run of the same kind may go on from it.

        Functions of a user's own are known by name only, objects by class and attributes.
        """
        same = {
            name: value
            for name, value in config.items()
            if name not in self._open and _LATER.get(name, ...) != value
        }
        data = self.loss.fingerprint() if hasattr(self.loss, "fingerprint") else []
        arrays = [describe(array) for array in (*state.values(), *data, self.optimum)]
        return hashlib.sha256(repr((sorted(same.items()), arrays)).encode()).hexdigest()


def check_byzantine(n_byzantine: Any, byzantine: Any, m: int) -> list[int]:
    """The Byzantine ones of ``m`` workers: those that are named, or the last ``n_byzantine``."""
    q = check_int(n_byzantine, "n_byzantine", low=0, high=m)
    if byzantine is None:
        return list(range(m - q, m))
    named = sorted(check_workers(byzantine, "byzantine", m))
    if q not in (0, len(named)):
        raise ValueError(f"byzantine: names {len(named)} workers, but n_byzantine={q}")
    return named


def _float_type(dtype: Any) -> np.dtype[Any]:
    try:
        name = np.dtype(dtype).name if dtype is not None else None
    except TypeError:
        name = None
    if name not in ("float32", "float64"):
        raise ValueError(f"dtype: expected float32 or float64, got {dtype!r}")
    kind: np.dtype[Any] = np.dtype(name)
    return kind
