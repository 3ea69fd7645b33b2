"""Small training problems, every attack and algorithm on them, and the same runs by their NumPy twins."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from byzadmm import (
    ADMM,
    RSA,
    SGD,
    SVRG,
    Newton,
    PerturbedGD,
    Result,
    _core,
    attacks,
    datasets,
    losses,
    partition,
    redundancy,
    simulate,
    steps,
)
from byzadmm import reference as ref
from byzadmm.algorithms import Algorithm
from byzadmm.training.experiment import Experiment
from support.arrays import same_bits

__all__ = [
    "ALGORITHMS",
    "ATTACKS",
    "BYZANTINE",
    "DEMANDING",
    "KILLED",
    "SOFTMAX_ATTACKS",
    "M",
    "NativeGradients",
    "Q",
    "data_for",
    "equal_runs",
    "experiment",
    "plain_attack",
    "quadratic",
    "small_data",
    "small_parts",
    "small_run",
    "transcription",
]

Array = npt.NDArray[Any]

M, Q = 7, 3
BYZANTINE = list(range(M - Q, M))

#: Every registered attack on messages that runs natively, by its name with underscores; some with other settings.
ATTACKS: dict[str, attacks.Attack | None] = {
    "none": None,
    **{
        name.replace("-", "_"): kind()
        for name, kind in attacks.REGISTRY.items()
        if not kind.poisons_labels and kind().spec(None, M, Q) is not None
    },
    "duplicate": attacks.Duplicate(1),
    "same_value": attacks.SameValue(2.5),
    "alie_1.5": attacks.ALIE(1.5),
    "inner_product": attacks.InnerProduct(0.7),
}

SOFTMAX_ATTACKS = {**ATTACKS, "label_flip": attacks.LabelFlip()}

_STEP = steps.inv_sqrt(2, 1)
ALGORITHMS: dict[str, Algorithm] = {
    "admm": ADMM(lam=0.3, beta=0.8, master_step=steps.inv_sqrt(6, 1), worker_step=_STEP),
    "rsa": RSA(lam=0.2, master_step=steps.inv_sqrt(5, 1), worker_step=_STEP),
    "mean": SGD(rule="mean", step=_STEP),
    "median": SGD(rule="median", step=_STEP),
    "trimmed_mean": SGD(rule="trimmed_mean", f=Q, step=_STEP),
    "geometric_median": SGD(rule="geometric_median", step=_STEP),
    "ideal": SGD(ideal=True, step=_STEP),
}

#: Runs that are killed and resumed: every kind of state that a checkpoint holds.
KILLED: dict[str, Algorithm] = {
    **{name: ALGORITHMS[name] for name in ("admm", "rsa", "median")},
    "history": SGD(rule="bucketing+centered_clip", step=_STEP, momentum=0.9, variance_reduction="saga"),
    "coded": SGD(coding=redundancy.Repetition(r=M), step=_STEP, momentum=0.9),
}

#: Those that ask more of a loss or of the master than gradients: clean samples, full gradients, Hessians.
DEMANDING: dict[str, Algorithm] = {
    "svrg": SVRG(step=_STEP, batch=2),
    "perturbed": PerturbedGD("median", _STEP, eps=0.4, radius=0.3, escape=0.2, rounds=2, length=2),
    "newton": Newton(step=0.5, cg_iterations=6),
    "newton_compares": Newton("comparison", c=(0.75, 2.0), cg_iterations=6),
}


def quadratic(m: int = M, dim: int = 13, noise: float = 0.0) -> losses.Quadratic:
    """Row i depends on i alone, so that fewer workers are the first of more."""
    rows = [np.random.default_rng(i) for i in range(m)]
    a = np.stack([rng.uniform(0.5, 1.5, dim) for rng in rows])
    return losses.Quadratic(a, np.stack([rng.standard_normal(dim) for rng in rows]), noise)


def small_data() -> datasets.Dataset:
    """Three overlapping classes in five dimensions."""
    rng = np.random.default_rng(5)
    y = np.arange(150) % 3
    x = rng.standard_normal((150, 5)) + 1.5 * rng.standard_normal((3, 5))[y]
    return datasets.from_arrays(x[:120], y[:120], x[120:], y[120:], scale=0.9, name="small")


def data_for(loss: str) -> datasets.Dataset:
    """A small data set that the loss of this name is for; the samples of all of them have the parts of small_parts."""
    data = small_data()
    if loss == "softmax":
        return data
    if loss == "logistic":
        return replace(data, train_y=(data.train_y > 0) * 1, test_y=(data.test_y > 0) * 1, n_classes=2)
    rng = np.random.default_rng(6)
    weights = rng.standard_normal(5)
    y, y_test = (x @ weights + rng.normal(1.0, 0.3, len(x)) for x in (data.train_x, data.test_x))
    return replace(data, train_y=y, test_y=y_test, n_classes=0)


def small_parts() -> list[Array]:
    return partition.iid(small_data().train_y, M, seed=3)


def experiment(**changes: Any) -> Experiment:
    """The checked experiment behind ``simulate(**changes)``."""
    settings: dict[str, Any] = {"algorithm": ALGORITHMS["admm"], "n_byzantine": Q, "dtype": "float64", "threads": 1}
    settings |= changes
    return Experiment(settings.pop("dataset", None), settings.pop("parts", None), **settings)


def plain_attack(attack: attacks.Attack, seed: int) -> Callable[..., Array]:
    """The same messages from a function that the native loop does not know."""

    def same(messages: Array, *, x0: Array, k: int, byzantine: Sequence[int], rng: Any, algorithm: Any) -> Array:
        out = np.empty((len(byzantine), len(x0)), messages.dtype)
        spec = attack.spec(algorithm, len(messages), len(byzantine))
        _core.attack_messages(spec, messages, list(byzantine), x0, k, seed, out, 1)
        return out

    same.sends = attack.sends  # type: ignore[attr-defined]
    return same


class NativeGradients:
    """A user's loss that asks the native one, so that only the path differs."""

    def __init__(self, setup: Experiment) -> None:
        assert setup.native_loss is not None
        self.native, self.n_workers, self.dim = setup.native_loss, setup.m, setup.d

    def gradient(self, x: Array, *, worker: int, k: int) -> Array:
        g = np.empty((1, self.dim), x.dtype)
        self.native.gradients(x[None], [worker], k, g, 1)
        return g[0]


def _transcribed(attack: attacks.Attack | None, algorithm: Any, m: int, q: int, seed: int) -> Any:
    """The twin of an attack: the function of ``reference`` with its name, given the settings that it takes."""
    if attack is None:
        return None
    if attack.poisons_labels:
        return lambda messages, x0, k, byzantine: messages[list(byzantine)]
    values = {"Zero": 0.0, "NonFinite": np.nan, "Infinite": np.inf}  # without a twin of their own
    if type(attack).__name__ in values:
        return ref.same_value(values[type(attack).__name__])
    known = {"lam": getattr(algorithm, "lam", 1.0), "beta": getattr(algorithm, "beta", 1.0), "seed": seed}
    known |= {"z": attacks.ALIE.strength(m, q)}
    known |= {name: value for name, value in vars(attack).items() if value is not None}
    name = next(name for name, kind in attacks.REGISTRY.items() if kind is type(attack))
    twin = getattr(ref, name.replace("-", "_"))
    return twin(**{name: known[name] for name in inspect.signature(twin).parameters})


def transcription(
    algorithm: Any,
    attack: Any,
    gradients: Any,
    x0: Array,
    x: Array,
    byzantine: Sequence[int],
    iterations: int,
    *,
    rho: float = 0.01,
    seed: int = 0,
    first_k: int = 1,
    drawn: Any = None,
) -> Iterator[ref.State]:
    """The states of the NumPy twin; ``attack`` is one of byzadmm.attacks or a function of the twin's own kind."""
    m = len(x)
    if attack is None or isinstance(attack, attacks.Attack):
        sends_dual = attack is not None and attack.sends == "dual"
        attack = _transcribed(attack, algorithm, m, len(byzantine), seed)
    else:
        sends_dual = getattr(attack, "sends", "") == "dual"
    common: dict[str, Any] = {"rho": rho, "attack": attack, "byzantine": byzantine, "first_k": first_k}
    common["drawn"] = drawn
    if isinstance(algorithm, SGD):
        common |= {"rule": algorithm.rule, "f": algorithm.f, "ideal": algorithm.ideal, "momentum": algorithm.momentum}
        run = ref.train_sgd(gradients, x0, m, step=algorithm.step, **common)
    else:
        common |= {"lam": algorithm.lam, "master_step": algorithm.master_step, "worker_step": algorithm.worker_step}
        if isinstance(algorithm, ADMM):
            run = ref.train_admm(gradients, x0, x, beta=algorithm.beta, sends_dual=sends_dual, **common)
        else:
            run = ref.train_rsa(gradients, x0, x, **common)
    return islice(run, iterations)


def small_run(**changes: Any) -> Result:
    settings: dict[str, Any] = {"loss": quadratic(noise=0.2), "algorithm": ALGORITHMS["admm"], "iterations": 20}
    settings |= {"eval_every": 5, "attack": attacks.Gaussian(), "n_byzantine": Q} | changes
    return simulate(settings.pop("dataset", None), settings.pop("parts", None), **settings)


def equal_runs(a: Result, b: Result) -> bool:
    """The same bits in state and elimination, and in every curve where both evaluated."""
    same = same_bits(a.x0, b.x0) and a.eliminated == b.eliminated
    if a.x is not None and b.x is not None:
        same = same and same_bits(a.x, b.x)
    for t in set(a.iterations.tolist()) & set(b.iterations.tolist()):
        i, j = a.iterations.tolist().index(t), b.iterations.tolist().index(t)
        same = same and a.consensus_gap[i].tobytes() == b.consensus_gap[j].tobytes()
        same = same and a.accuracy[i].tobytes() == b.accuracy[j].tobytes()
    return same

