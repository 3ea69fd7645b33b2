"""Training under attack: joins data, partition, algorithm, attack and evaluation. Holds no arithmetic of its own.

Built-in parts run as one native call from evaluation to evaluation; a user's own attack, rule or loss runs through the
same kernels one iteration at a time. Both paths give the same bits, for every thread count and evaluation interval.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from byzadmm import _core, losses, steps
from byzadmm._arrays import Array, as_index, as_samples
from byzadmm._describe import describe
from byzadmm._roles import Master, State, Workers, checked_start, checked_vector, play
from byzadmm._saga import Samples
from byzadmm._validation import check_choice, check_int, check_real, check_threads, check_workers
from byzadmm.algorithms import ADMM, RSA, SGD
from byzadmm.attacks import HONEST, Attack, Spec
from byzadmm.datasets import Dataset
from byzadmm.results import Result, read_npz, write_npz

__all__ = ["simulate", "simulate_many"]

Algorithm = ADMM | RSA | SGD
Progress = Callable[[int, int], None]

#: Training rows on which the loss is evaluated: all, or this many spread evenly.
LOSS_SAMPLES = 5000

#: Iterations of one native call: the memory of their step sizes, and the time until they are known, stay small.
_AT_ONCE = 10_000

# What ADMM's master heard, in terms of what its workers hold: the honest dual, and what liars show in its place.
_HEARD = {"heard": ("eta", "sent"), "heard_prev": ("eta_prev", "sent_prev")}


def simulate(
    dataset: Dataset | None,
    parts: Sequence[Any] | None,
    *,
    algorithm: Algorithm,
    attack: Attack | Callable[..., Any] | None = None,
    n_byzantine: int = 0,
    byzantine: Sequence[int] | None = None,
    iterations: int = 1000,
    batch_size: int = 32,
    rho: float = 0.01,
    eval_every: int = 50,
    seed: int = 0,
    dtype: str = "float32",
    threads: int = 0,
    loss: str | Any = "softmax",
    x0_init: Any = None,
    x_init: Any = None,
    first_k: int = 1,
    record: str | None = None,
    optimum: Any = None,
    progress: bool | Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Result:
    """Train with ``len(parts)`` workers, some of them Byzantine, and return the curves.

    Parameters
    ----------
    dataset : Dataset or None
        Of ``byzadmm.datasets``; None with a loss that needs none.
    parts : list of index arrays, one per worker, or None
        Of ``byzadmm.partition``.
    algorithm : ADMM, RSA or SGD
    attack : Attack, callable or None
        None: the Byzantine workers are honest (Ideal SGD leaves them out all the same).
    n_byzantine : int
        The last so many workers are Byzantine; or
    byzantine : list of int
        exactly these.
    iterations, batch_size : int
    rho : float >= 0
        ``f0(x) = rho/2 ||x||^2``.
    eval_every : int
        Iterations between evaluations; never changes the run.
    seed : int
    dtype : "float32" or "float64"
    threads : int
        0: choose.
    loss : "softmax", losses.Quadratic, or an object with ``dim``, ``n_workers`` and ``gradient(x, *, worker, k)``
    x0_init, x_init : (d,) and (m, d) arrays
        Zeros without them.
    first_k : int
        Number of the first iteration in step sizes and attacks.
    record : None or "trajectory"
        Keep ``x0`` (and ``x``) at every evaluation.
    optimum : (d,) array
        Record the distance of ``x0`` to it.
    progress : None, True or callable
        True: a progress bar; a callable gets (done, total).
    checkpoint : path
        State is kept there at every evaluation; the same call after a crash goes on from it, to the same bits.
        Whether a call is the same: arrays count by their numbers, functions by name, objects by class and attributes.

    Returns
    -------
    Result

    Examples
    --------
    >>> from byzadmm import ADMM, attacks, datasets, partition, simulate, steps
    >>> data = datasets.load("digits")
    >>> parts = partition.iid(data.train_y, 20, seed=0)
    >>> admm = ADMM(lam=0.01, beta=0.5, master_step=steps.inv_sqrt(10, 0.3), worker_step=steps.inv_sqrt(0.5, 0.3))
    >>> run = simulate(data, parts, algorithm=admm, attack=attacks.SignFlip(), n_byzantine=8, iterations=1000)
    >>> bool(run.accuracy[-1] > 0.88)
    True
    """
    setup = _Setup.build(
        dataset, parts, algorithm, attack, n_byzantine, byzantine, batch_size, rho, seed, dtype, threads, loss, first_k
    )
    run = _Run(setup, setup.initial_state(x0_init, x_init), iterations, eval_every, record, optimum)
    return run.train(setup.advance, progress=progress, checkpoint=checkpoint)


class _Run:
    """A checked experiment from its first iteration to its result, whoever does the iterations."""

    def __init__(
        self, setup: _Setup, state: State, iterations: Any, eval_every: Any, record: Any, optimum: Any, **more: Any
    ) -> None:
        self.setup, self.state = setup, state
        self.total = check_int(iterations, "iterations", low=0)
        self.interval = check_int(eval_every, "eval_every", low=1)
        if record is not None:
            check_choice(record, "record", ("trajectory",))
        self.goal = None if optimum is None else checked_vector(optimum, "optimum", setup.d)
        self.history = _History(setup, self.goal, record is not None)
        self.config = setup.describe() | {"iterations": self.total, "eval_every": self.interval, "record": record}
        self.config |= more

    def fingerprint(self) -> str:
        """Of the run before its first iteration."""
        return _fingerprint(self.config, self.state, self.setup, self.goal)

    def train(
        self,
        advance: Callable[[State, int, int], None],
        *,
        progress: bool | Progress | None,
        checkpoint: str | os.PathLike[str] | None,
        begin: Callable[[int], None] = lambda done: None,
    ) -> Result:
        """From evaluation to evaluation: ``advance(state, first, count)`` moves ``state`` on, in place.

        ``begin(done)`` is called once the state is that of a checkpoint, or the first one.
        """
        state, history, total = self.state, self.history, self.total
        fingerprint = self.fingerprint() if checkpoint is not None else ""
        done, seconds = 0, 0.0
        if checkpoint is not None and Path(checkpoint).exists():
            done, seconds = _resume(checkpoint, fingerprint, state, history, total)
            history.keep_only([k for k in history.iterations if k % self.interval == 0 or k == total])
        if not history.iterations:
            history.evaluate(0, state)
        begin(done)
        report, close = _reporter(progress)
        try:
            report(done, total)
            while done < total:
                count = min(self.interval - done % self.interval, total - done)
                start = time.perf_counter()
                advance(state, self.setup.first_k + done, count)
                seconds += time.perf_counter() - start
                done += count
                history.evaluate(done, state)
                if checkpoint is not None:
                    write_npz(
                        checkpoint,
                        {f"state_{name}": array for name, array in state.items()} | history.arrays(),
                        {"fingerprint": fingerprint, "done": done, "seconds": seconds},
                    )
                report(done, total)
        finally:
            close()
        return history.result(self.config, state, seconds)


@dataclass
class _Setup:
    """A checked experiment: everything that does not change while it runs."""

    algorithm: Algorithm
    attack: Attack | Callable[..., Any] | None
    byzantine: list[int]
    m: int
    d: int
    rho: float
    seed: int
    dtype: np.dtype[Any]
    threads: int
    first_k: int
    batch_size: int
    loss: Any
    dataset: Dataset | None
    native_loss: _core.Loss | None
    samples: Samples | None
    spec: Spec | None
    labels: dict[str, Any]
    inputs: list[Array]

    @classmethod
    def build(
        cls,
        dataset: Dataset | None,
        parts: Sequence[Any] | None,
        algorithm: Any,
        attack: Any,
        n_byzantine: Any,
        byzantine: Any,
        batch_size: Any,
        rho: Any,
        seed: Any,
        dtype: Any,
        threads: Any,
        loss: Any,
        first_k: Any,
    ) -> _Setup:
        if not isinstance(algorithm, (ADMM, RSA, SGD)):
            raise TypeError(f"algorithm: expected ADMM, RSA or SGD, got {type(algorithm).__name__}")
        if attack is not None and not callable(attack):
            raise TypeError(f"attack: expected an attack of byzadmm.attacks or a callable, got {type(attack).__name__}")
        if dataset is not None and not isinstance(dataset, Dataset):
            raise TypeError(f"dataset: expected a Dataset of byzadmm.datasets or None, got {type(dataset).__name__}")
        kind = _float_type(dtype)
        batch = check_int(batch_size, "batch_size", low=1)
        if batch >= 2**31:
            raise ValueError(f"batch_size: expected less than 2**31, got {batch}")
        key = check_int(seed, "seed", low=0, high=2**64 - 1)
        softmax = isinstance(loss, str)
        if softmax:
            check_choice(loss, "loss", ("softmax",))
            if dataset is None or parts is None:
                raise TypeError("loss: 'softmax' needs a dataset and parts")
            indices = _check_parts(parts, len(dataset.train_x))
            m = len(indices)
            d = dataset.n_classes * (dataset.train_x.shape[1] + 1)
        else:
            if not isinstance(loss, losses.Loss):
                raise TypeError(
                    f"loss: expected 'softmax', losses.Quadratic, or an object with dim, n_workers and gradient; got "
                    f"{type(loss).__name__}"
                )
            m, d = check_int(loss.n_workers, "loss.n_workers", low=1), check_int(loss.dim, "loss.dim", low=1)
        liars = _check_byzantine(n_byzantine, byzantine, m)
        poisons = isinstance(attack, Attack) and attack.poisons_labels
        if poisons and not softmax:
            raise ValueError(f"attack: {type(attack).__name__} needs the softmax loss")
        # Without an attack a Byzantine worker is one of the others; only Ideal SGD knows it as absent.
        ideal = isinstance(algorithm, SGD) and algorithm.ideal
        active = liars if attack is not None or ideal else []
        spec: Spec | None = HONEST
        if isinstance(attack, Attack):
            spec = attack.spec(algorithm, m, len(active))
        elif attack is not None:
            spec = None
        if isinstance(algorithm, SGD):
            algorithm.native_rule(m - (len(active) if ideal else 0), m)  # an illegal f is an error now
            if algorithm.variance_reduction is not None and not softmax:
                raise ValueError(
                    f"variance_reduction: needs the softmax loss, whose gradients belong to samples; got "
                    f"{type(loss).__name__}"
                )
        native: _core.Loss | None = None
        samples: Samples | None = None
        inputs: list[Array] = []
        if softmax and dataset is not None:
            poisoned = np.zeros(m, np.bool_)
            poisoned[active if poisons else []] = True
            labels = as_index(dataset.train_y, "train_y")
            native = _core.Loss.softmax(
                as_samples(dataset.train_x),
                labels,
                np.ascontiguousarray(dataset.n_classes - 1 - labels) if poisons else labels,
                np.concatenate(indices),
                np.cumsum([0, *(len(part) for part in indices)], dtype=np.int64),
                poisoned,
                dataset.n_classes,
                float(dataset.scale),
                batch,
                key,
                kind == np.float32,
            )
            inputs = [dataset.train_x, labels, *indices, dataset.test_x, dataset.test_y]
            flipped = frozenset(active) if poisons else frozenset()
            samples = Samples(dataset.train_x, labels, indices, dataset.n_classes, float(dataset.scale), flipped)
        elif isinstance(loss, losses.Quadratic):
            a, b = (checked_start(getattr(loss, name), f"loss.{name}", (m, d), kind) for name in ("a", "b"))
            native = _core.Loss.quadratic(a, b, loss.noise, key)
            inputs = [loss.a, loss.b]
        described = {
            "dataset": dataset.name if dataset is not None else None,
            "scale": float(dataset.scale) if dataset is not None else None,
            "loss": describe(loss),
            "attack": attack.describe() if isinstance(attack, Attack) else describe(attack),
            "byzantine": liars,
        }
        return cls(
            algorithm=algorithm,
            attack=attack,
            byzantine=active,
            m=m,
            d=d,
            rho=check_real(rho, "rho", low=0.0),
            seed=key,
            dtype=kind,
            threads=check_threads(threads),
            first_k=check_int(first_k, "first_k", low=0, high=2**62),
            batch_size=batch,
            loss=loss,
            dataset=dataset,
            native_loss=native,
            samples=samples,
            spec=spec,
            labels=described,
            inputs=inputs,
        )

    def describe(self) -> dict[str, Any]:
        return self.labels | {
            "version": _core.__version__,
            "algorithm": self.algorithm.describe(),
            "n_workers": self.m,
            "dim": self.d,
            "batch_size": self.batch_size,
            "rho": self.rho,
            "seed": self.seed,
            "dtype": str(self.dtype),
            "first_k": self.first_k,
        }

    def initial_state(self, x0_init: Any, x_init: Any) -> State:
        """x0, who was thrown out, what the workers hold, and what the Byzantine ones sent."""
        master = Master(self, x0_init).state()
        # What the master heard is what the workers sent: no need to keep it twice.
        own = {name: array for name, array in master.items() if name not in _HEARD}
        return own | Workers(self, range(self.m), x_init).state()

    def advance(self, state: State, first: int, count: int) -> None:
        """Iterations ``first .. first+count-1``, natively if every part is native."""
        rule = self.algorithm.native_rule(self.m) if isinstance(self.algorithm, SGD) else (0, 0, 0.0, 0)
        if self.native_loss is not None and self.spec is not None and rule is not None:
            for at in range(first, first + count, _AT_ONCE):
                self._advance_fused(state, at, min(_AT_ONCE, first + count - at), rule)
        else:
            self._advance_stepwise(state, first, count)

    def _advance_fused(self, state: State, first: int, count: int, rule: tuple[int, int, float, int]) -> None:
        assert self.native_loss is not None
        assert self.spec is not None
        tail = (first, self.byzantine, self.spec, self.seed, self.threads)
        algorithm = self.algorithm
        if isinstance(algorithm, SGD):
            alpha = steps.evaluate(algorithm.step, "step", first, count)
            momentum = float(algorithm.momentum)
            _core.run_sgd(self.native_loss, state, rule, self.rho, momentum, algorithm.ideal, alpha, *tail)
            return
        master = steps.evaluate(algorithm.master_step, "master_step", first, count)
        worker = steps.evaluate(algorithm.worker_step, "worker_step", first, count)
        if isinstance(algorithm, ADMM):
            _core.run_admm(self.native_loss, state, algorithm.lam, algorithm.beta, self.rho, master, worker, *tail)
        else:
            _core.run_rsa(self.native_loss, state, algorithm.lam, self.rho, master, worker, *tail)

    def _advance_stepwise(self, state: State, first: int, count: int) -> None:
        """The same by the two sides of a round, a call from Python for every kernel."""
        workers, master = Workers(self, range(self.m)), Master(self)
        workers.restore(state)
        dual = isinstance(self.algorithm, ADMM)
        heard = {name: workers.outgoing(*parts) for name, parts in _HEARD.items()} if dual else {}
        master.restore(state | heard)
        for k in range(first, first + count):
            play(k, master, lambda k, x0: (workers.answer(k, x0), None))
        state |= workers.state()


class _History:
    """The curves of a run, measured from outside: nothing here touches the state."""

    def __init__(self, setup: _Setup, optimum: Array | None, keep: bool) -> None:
        self.setup, self.optimum, self.keep = setup, optimum, keep
        self.iterations: list[int] = []
        self.curves: dict[str, list[float]] = {"accuracy": [], "loss": [], "consensus_gap": [], "distance": []}
        self.trajectory: dict[str, list[Array]] = {}
        self.regular = np.setdiff1d(np.arange(setup.m), setup.byzantine).tolist()
        if setup.dataset is not None:
            n = len(setup.dataset.train_x)
            rows = np.arange(n) if n <= LOSS_SAMPLES else np.linspace(0, n - 1, LOSS_SAMPLES).astype(np.int64)
            self.rows = rows[None].astype(np.int64)
            self.train_x, self.train_y = as_samples(setup.dataset.train_x), as_index(setup.dataset.train_y, "train_y")
            self.test_x, self.test_y = as_samples(setup.dataset.test_x), as_index(setup.dataset.test_y, "test_y")

    def evaluate(self, done: int, state: State) -> None:
        setup, x0 = self.setup, state["x0"]
        accuracy, loss, distance = np.nan, np.nan, np.nan
        if setup.dataset is not None and isinstance(setup.loss, str):
            model = x0.reshape(1, setup.dataset.n_classes, -1)
            scale = float(setup.dataset.scale)
            predicted = np.empty(len(self.test_x), np.int64)
            _core.softmax_predict(model, self.test_x, predicted, scale, True, setup.threads)
            accuracy = float(np.mean(predicted == self.test_y))
            samples = (self.train_x, self.train_y, self.rows)
            loss = float(_core.softmax_loss(model, *samples, scale, True, setup.threads)[0])
        gap = 0.0
        with np.errstate(over="ignore", invalid="ignore"):  # a run may diverge: its curves say so
            if hasattr(setup.loss, "value"):
                loss = float(setup.loss.value(x0))
            if "x" in state and self.regular:  # worker by worker: all at once would be a copy of the state, and larger
                gap = float(np.mean([_distance(state["x"][i], x0) for i in self.regular]))
            if self.optimum is not None:
                distance = _distance(x0, self.optimum)
        self.iterations.append(done)
        for name, value in zip(self.curves, (accuracy, loss, gap, distance), strict=True):
            self.curves[name].append(value)
        if self.keep:
            for name in ("x0", "x"):
                if name in state:
                    self.trajectory.setdefault(name, []).append(state[name].copy())

    def arrays(self) -> dict[str, Array]:
        """For a checkpoint."""
        arrays = {"iterations": np.array(self.iterations, np.int64)}
        arrays |= {name: np.array(values) for name, values in self.curves.items()}
        return arrays | {f"trajectory_{name}": np.array(values) for name, values in self.trajectory.items()}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.iterations = arrays["iterations"].tolist()
        self.curves = {name: arrays[name].tolist() for name in self.curves}
        self.trajectory = {
            name.removeprefix("trajectory_"): list(values)
            for name, values in arrays.items()
            if name.startswith("trajectory_")
        }

    def keep_only(self, iterations: list[int]) -> None:
        """Forget the end of a shorter run, where this one does not evaluate."""
        wanted = set(iterations)
        kept = [t for t, k in enumerate(self.iterations) if k in wanted]
        for values in (self.iterations, *self.curves.values(), *self.trajectory.values()):
            values[:] = [values[t] for t in kept]  # type: ignore[index]

    def result(self, config: dict[str, Any], state: State, seconds: float) -> Result:
        return Result(
            config=config,
            iterations=np.array(self.iterations, np.int64),
            **{name: np.array(values) for name, values in self.curves.items()},
            x0=state["x0"],
            x=state.get("x"),
            eliminated={int(i): int(state["eliminated"][i]) for i in np.flatnonzero(state["eliminated"] >= 0)},
            trajectory={name: np.array(values) for name, values in self.trajectory.items()} or None,
            seconds=seconds,
        )


def simulate_many(
    configs: Sequence[dict[str, Any]],
    workers: int | None = None,
    *,
    progress: bool | Progress | None = None,
    on_result: Callable[[int, Result | Exception], None] | None = None,
) -> list[Result | Exception]:
    """Run many experiments side by side, one thread each. Ctrl-C ends them all.

    Parameters
    ----------
    configs : list of dict
        Arguments of :func:`simulate`, ``dataset`` and ``parts`` included.
    workers : int, optional
        How many at once; one per CPU without it.
    progress : None, True or callable
        One bar for all of them; a callable gets (iterations done, total).
    on_result : callable, optional
        Gets (number, result) as each run ends.

    Returns
    -------
    list
        In the order of ``configs``: a Result, or the exception that ended that run; the others are not lost.

    Examples
    --------
    >>> from byzadmm import SGD, losses, simulate_many, steps
    >>> config = dict(dataset=None, parts=None, loss=losses.Quadratic([1.0], [[2.0]]),
    ...               algorithm=SGD(step=steps.constant(0.5)), rho=0.0, iterations=60)
    >>> [round(float(run.x0[0]), 3) for run in simulate_many([config, config | {"first_k": 3}])]
    [2.0, 2.0]
    """
    todo = [dict(config) for config in configs]
    at_once = check_int(workers, "workers", low=1) if workers is not None else (os.cpu_count() or 1)
    cancellation = _core.Cancellation()
    lock = threading.Lock()
    done = [0] * len(todo)
    # A run with an impossible number of iterations fails by itself, later.
    wanted = [config.get("iterations", 1000) for config in todo]
    total = sum(max(int(number), 0) for number in wanted if isinstance(number, (int, np.integer)))
    report, close = _reporter(progress)
    results: list[Result | Exception] = [RuntimeError("not run")] * len(todo)

    def run(number: int) -> Result:
        def tick(now: int, _: int) -> None:
            with lock:
                done[number] = now
                report(sum(done), total)

        config = {"threads": 1} | todo[number] | {"progress": tick}
        with cancellation:
            return simulate(config.pop("dataset", None), config.pop("parts", None), **config)

    try:
        with ThreadPoolExecutor(max_workers=at_once) as pool:
            futures: dict[Future[Result], int] = {}
            try:  # from the first submission on: Ctrl-C may come at any moment, and the pool waits for its threads
                for number in range(len(todo)):
                    futures[pool.submit(run, number)] = number
                for future in as_completed(futures):
                    number = futures[future]
                    error = future.exception()
                    if error is not None and not isinstance(error, Exception):
                        raise error
                    results[number] = error if error is not None else future.result()
                    if on_result is not None:
                        on_result(number, results[number])
            except BaseException:
                cancellation.cancel()
                for future in futures:
                    future.cancel()
                raise
    finally:
        close()
    return results


# --- small checks and helpers ----------------------------------------------------------------------------------------


def _check_parts(parts: Sequence[Any], n: int) -> list[Array]:
    if not isinstance(parts, Iterable):
        raise TypeError(f"parts: expected a list of index arrays, one per worker, got {type(parts).__name__}")
    checked = [as_index(part, f"parts[{i}]") for i, part in enumerate(parts)]
    if not checked:
        raise ValueError("parts: expected at least one worker, got none")
    for i, part in enumerate(checked):
        if part.ndim != 1 or part.size == 0:
            raise ValueError(f"parts[{i}]: expected a list of at least one sample, got shape {part.shape}")
        if part.min() < 0 or part.max() >= n:
            raise ValueError(f"parts[{i}]: expected indices in [0, {n}), got {part.min()} to {part.max()}")
    return checked


def _check_byzantine(n_byzantine: Any, byzantine: Any, m: int) -> list[int]:
    q = check_int(n_byzantine, "n_byzantine", low=0, high=m)
    if byzantine is None:
        return list(range(m - q, m))
    liars = sorted(check_workers(byzantine, "byzantine", m))
    if q not in (0, len(liars)):
        raise ValueError(f"byzantine: names {len(liars)} workers, but n_byzantine={q}")
    return liars


def _float_type(dtype: Any) -> np.dtype[Any]:
    try:
        name = np.dtype(dtype).name if dtype is not None else None
    except TypeError:
        name = None
    if name not in ("float32", "float64"):
        raise ValueError(f"dtype: expected float32 or float64, got {dtype!r}")
    kind: np.dtype[Any] = np.dtype(name)
    return kind


def _distance(x: Array, y: Array) -> float:
    return float(np.linalg.norm(x.astype(np.float64) - y))


def _fingerprint(config: dict[str, Any], state: State, setup: _Setup, optimum: Array | None) -> str:
    """Tells whether a checkpoint belongs to this very run; a longer run of the same kind may go on from it.

    Functions of a user's own are known by name only, objects by class and attributes.
    """
    same = {name: value for name, value in config.items() if name not in ("iterations",)}
    arrays = [describe(array) for array in (*state.values(), *setup.inputs, optimum)]
    return hashlib.sha256(repr((sorted(same.items()), arrays)).encode()).hexdigest()


def _resume(path: Any, fingerprint: str, state: State, history: _History, total: int) -> tuple[int, float]:
    try:
        arrays, about = read_npz(path)
    except ValueError as error:
        warnings.warn(f"checkpoint ignored: {error}; starting from the beginning", RuntimeWarning, stacklevel=4)
        return 0, 0.0
    if about.get("fingerprint") != fingerprint:
        raise ValueError(f"checkpoint: {os.fspath(path)} belongs to another run; remove it or choose another path")
    if about["done"] > total:
        raise ValueError(f"checkpoint: {os.fspath(path)} is at iteration {about['done']}, beyond iterations={total}")
    for name in state:
        state[name][...] = arrays[f"state_{name}"]
    history.restore(arrays)
    return int(about["done"]), float(about["seconds"])


def _reporter(progress: bool | Progress | None) -> tuple[Progress, Callable[[], None]]:
    if progress is None or progress is False:
        return (lambda done, total: None), (lambda: None)
    if callable(progress):
        return progress, (lambda: None)
    if progress is not True:
        raise TypeError(f"progress: expected None, True or a callable, got {type(progress).__name__}")
    from byzadmm._progress import Bar

    bar = Bar("iterations")
    return bar.update, bar.close
