"""Small training problems, every attack and algorithm on them, and the same run by the NumPy transcription."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from byzadmm import ADMM, RSA, SGD, _core, attacks, datasets, losses, partition, steps
from byzadmm import reference as ref
from byzadmm.training.experiment import Experiment

__all__ = [
    "ALGORITHMS",
    "ATTACKS",
    "KILLED",
    "M",
    "NativeGradients",
    "Q",
    "experiment",
    "plain_attack",
    "quadratic",
        "small_data",
    "small_parts",
    "transcription",
]

Array = npt.NDArray[Any]

M, Q = 7, 3

ATTACKS: dict[str, attacks.Attack | None] = {
    "none": None,
    "gaussian": attacks.Gaussian(),
    "sign_flip": attacks.SignFlip(),
    "duplicate": attacks.Duplicate(1),
    "small_value": attacks.SmallValue(),
    "large_value": attacks.LargeValue(),
    "dual_oscillation": attacks.DualOscillation(),
    "zero": attacks.Zero(),
    "non_finite": attacks.NonFinite(),
    "same_value": attacks.SameValue(2.5),
    "alie": attacks.ALIE(),
    "alie_1.5": attacks.ALIE(1.5),
    "inner_product": attacks.InnerProduct(0.7),
}

_STEP = steps.inv_sqrt(2, 1)
ALGORITHMS: dict[str, ADMM | RSA | SGD] = {
    "admm": ADMM(lam=0.3, beta=0.8, master_step=steps.inv_sqrt(6, 1), worker_step=_STEP),
    "rsa": RSA(lam=0.2, master_step=steps.inv_sqrt(5, 1), worker_step=_STEP),
    "mean": SGD(rule="mean", step=_STEP),
    "median": SGD(rule="median", step=_STEP),
    "trimmed_mean": SGD(rule="trimmed_mean", f=Q, step=_STEP),
    "geometric_median": SGD(rule="geometric_median", step=_STEP),
    "ideal": SGD(ideal=True, step=_STEP),
}

#: Runs that are killed and resumed: every kind of state that a checkpoint holds.
KILLED: dict[str, ADMM | RSA | SGD] = {
    **{name: ALGORITHMS[name] for name in ("admm", "rsa", "median")},
    "history": SGD(rule="bucketing+centered_clip", step=_STEP, momentum=0.9, variance_reduction="saga"),
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
    lam, beta = getattr(algorithm, "lam", 1.0), getattr(algorithm, "beta", 1.0)
    match attack:
        case attacks.Gaussian():
            return ref.gaussian(attack.std, seed=seed)
        case attacks.SignFlip():
            return ref.sign_flip(attack.scale)
        case attacks.Duplicate():
            return ref.duplicate(attack.worker)
        case attacks.SmallValue():
            return ref.small_value(attack.eps)
        case attacks.LargeValue():
            return ref.large_value(lam, beta)
        case attacks.DualOscillation():
            return ref.dual_oscillation(lam)
        case attacks.Zero():
            return ref.same_value(0.0)
        case attacks.NonFinite():
            return ref.same_value(np.nan)
        case attacks.SameValue():
            return ref.same_value(attack.v)
        case attacks.ALIE():
            return ref.alie(attacks.ALIE.strength(m, q) if attack.z is None else attack.z)
        case attacks.InnerProduct():
            return ref.inner_product(attack.eps)
        case attacks.LabelFlip():
            return lambda messages, x0, k, byzantine: messages[list(byzantine)]
    return None


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
) -> Iterator[ref.State]:
    """The states of the NumPy twin; ``attack`` is one of byzadmm.attacks or a function of the twin's own kind."""
    m = len(x)
    if attack is None or isinstance(attack, attacks.Attack):
        sends_dual = isinstance(attack, attacks.DualOscillation)
        attack = _transcribed(attack, algorithm, m, len(byzantine), seed)
    else:
        sends_dual = getattr(attack, "sends", "") == "dual"
    common: dict[str, Any] = {"rho": rho, "attack": attack, "byzantine": byzantine, "first_k": first_k}
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
