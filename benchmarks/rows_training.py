"""Rows of the comparison for training: one iteration of each algorithm, as it runs inside ``simulate``; float32.

The data has the shapes of MNIST and COVERTYPE and random values: an iteration costs the same on the real ones.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measure import Call, Row
from numpy.typing import NDArray

from byzadmm import ADMM, SGD, attacks, datasets, kernels, partition, reference, simulate_many, steps
from byzadmm.training.experiment import Experiment
from byzadmm.training.run import local

__all__ = ["rows"]

Array = NDArray[Any]

TURN = 50  # iterations per call: what simulate does between two evaluations by default
M, Q = 20, 8


def random_data(n: int, features: int, classes: int, dtype: str) -> datasets.Dataset:
    rng = np.random.default_rng(0)
    if dtype == "uint8":
        x = rng.integers(0, 256, (n, features), np.uint8)
    else:
        x = rng.standard_normal((n, features), np.float32)
    y = rng.integers(0, classes, n)
    return datasets.from_arrays(x, y, x[:100], y[:100], n_classes=classes, name="random")


def mnist() -> datasets.Dataset:
    return random_data(60000, 784, 10, "uint8")


def covtype() -> datasets.Dataset:
    return random_data(465264, 54, 7, "float32")


def admm() -> ADMM:
    return ADMM(lam=0.05, beta=0.1, master_step=steps.inv_sqrt(2, 5), worker_step=steps.inv_sqrt(0.1, 5))


def native(
    data: datasets.Dataset,
    algorithm: Any,
    attack: Any,
    threads: int = 1,
    m: int = M,
    turn: int = TURN,
    loss: str = "softmax",
    parts: list[Array] | None = None,
) -> Call:
    """``turn`` iterations on from where the last call ended."""
    parts = partition.iid(data.train_y, m, seed=0) if parts is None else parts
    q = Q * m // M
    run = Experiment(data, parts, loss=loss, algorithm=algorithm, attack=attack, n_byzantine=q, threads=threads)
    state, advance = local(run)
    k = [1]

    def further() -> None:
        advance(state, k[0], turn)
        k[0] += turn

    return further


def batched_numpy(data: datasets.Dataset) -> Call:
    """Softmax regression by :func:`numpy_turn`."""
    parts = [np.asarray(part) for part in partition.iid(data.train_y, M, seed=0)]
    gradients = partial(
        reference.softmax_gradients, data.train_x, data.train_y, parts, n_classes=data.n_classes
    )
    return numpy_turn(parts, gradients, data.n_classes * (data.train_x.shape[1] + 1))


def numpy_turn(parts: list[Array], gradients: Callable[..., Any], d: int) -> Call:
    """The transcription in ``byzadmm.reference``, all workers at once, with NumPy's own generator for the batches."""
    rng = np.random.default_rng(0)
    table = np.stack([part[: min(map(len, parts))] for part in parts])

    def draw(k: int) -> Array:
        return np.take_along_axis(table, rng.integers(0, table.shape[1], (M, 32)), axis=1)

    settings = admm()
    run = reference.train_admm(
        gradients(draw=draw),
        np.zeros(d, np.float32),
        np.zeros((M, d), np.float32),
        lam=settings.lam,
        beta=settings.beta,
        rho=0.01,
        master_step=settings.master_step,
        worker_step=settings.worker_step,
        attack=reference.sign_flip(-3.0),
        byzantine=range(M - Q, M),
    )

    def advance() -> None:
        for _ in range(TURN):
            next(run)

    return advance


def torch_loop(data: datasets.Dataset) -> Call:
    """Only the gradients: worker by worker, a linear model, cross-entropy and autograd, on one thread."""
    import torch

    torch.set_num_threads(1)
    x, y = torch.from_numpy(data.train_x), torch.from_numpy(data.train_y)
    models = [torch.nn.Linear(x.shape[1], data.n_classes) for _ in range(M)]
    rng = np.random.default_rng(0)

    def advance() -> None:
        for _ in range(TURN):
            for model in models:
                rows = torch.from_numpy(rng.integers(0, len(x), 32))
                model.zero_grad()
                torch.nn.functional.cross_entropy(model(x[rows].float()), y[rows]).backward()

    return advance


def versus_torch() -> tuple[Call, Call]:
    data = mnist()
    return native(data, admm(), attacks.SignFlip(), 2), torch_loop(data)


def versus_numpy(data: Callable[[], datasets.Dataset], threads: int) -> tuple[Call, Call]:
    made = data()
    return native(made, admm(), attacks.SignFlip(), threads), batched_numpy(made)


def attack_cost() -> tuple[Call, Call]:
    data = mnist()
    return native(data, admm(), attacks.Gaussian()), native(data, admm(), attacks.Zero())


def random_batches(data: datasets.Dataset, samples: int, threads: int = 1) -> Call:
    """``softmax_gradient`` of ``TURN`` random batches of every worker, out of the first ``samples`` rows."""
    rng = np.random.default_rng(1)
    W = (0.01 * rng.standard_normal((M, data.n_classes, data.train_x.shape[1] + 1))).astype(np.float32)
    out, batches = np.empty_like(W), rng.integers(0, samples, (TURN, M, 32))

    def advance() -> None:
        for rows in batches:
            kernels.softmax_gradient(
                W, data.train_x, data.train_y, rows, scale=float(data.scale), out=out, threads=threads
            )

    return advance


def versus_gradients() -> tuple[Call, Call]:
    data = mnist()
    return native(data, admm(), attacks.SignFlip()), random_batches(data, len(data.train_x))


def memory_cost() -> tuple[Call, Call]:
    data = mnist()
    return random_batches(data, len(data.train_x)), random_batches(data, M * 32)


def second_thread() -> tuple[Call, Call]:
    data = mnist()
    return random_batches(data, len(data.train_x), threads=2), random_batches(data, len(data.train_x))


def evaluation_cost() -> tuple[Call, Call]:
    """A turn and an evaluation, against a turn and five more iterations.

    Three in five runs of eight pixels are zero, as in MNIST.
    """
    rng = np.random.default_rng(2)
    x = rng.integers(0, 256, (70_000, 784), np.uint8)
    x *= np.repeat(rng.random((70_000, 98)) < 0.4, 8, axis=1)
    y = rng.integers(0, 10, len(x))
    data = datasets.from_arrays(x[:60_000], y[:60_000], x[60_000:], y[60_000:], n_classes=10, name="sparse")
    parts = partition.iid(data.train_y, M, seed=0)
    run = Experiment(data, parts, algorithm=admm(), attack=attacks.SignFlip(), n_byzantine=Q, threads=1)
    state, advance = local(run)
    k = [1]

    def evaluated() -> None:
        advance(state, k[0], TURN)
        k[0] += TURN
        run.history().evaluate(k[0], state)

    return evaluated, native(data, admm(), attacks.SignFlip(), turn=TURN + 5)


def rule_cost(rule: str, f: int = Q) -> tuple[Call, Call]:
    data = mnist()
    ours, mean = (native(data, SGD(rule=r, f=f, step=steps.power(1e-4)), attacks.SignFlip()) for r in (rule, "mean"))
    return ours, mean


def many_workers(few: int) -> tuple[Call, Call]:
    data = mnist()
    many, some = (native(data, admm(), attacks.SignFlip(), m=m, turn=1) for m in (2000, few))
    return many, some


def side_by_side() -> tuple[Call, Call]:
    data = mnist()
    shared: dict[str, Any] = {
        "dataset": data,
        "parts": partition.iid(data.train_y, M, seed=0),
        "algorithm": admm(),
        "attack": attacks.SignFlip(),
        "n_byzantine": Q,
        "iterations": 100,
        "eval_every": 100,
    }
    configs = [shared | {"seed": seed} for seed in range(8)]
    return (lambda: simulate_many(configs, jobs=2)), (lambda: simulate_many(configs, jobs=1))


def rows() -> list[Row]:
    area = "training, one iteration, 20 workers x 32 samples, 8 Byzantine, float32"
    torch_rows = [Row(area, "the same, two threads", "PyTorch gradients", versus_torch, at_least=10, threads=2)]
    return [
        Row(area, "ADMM, MNIST uint8, sign-flip", "batched NumPy", lambda: versus_numpy(mnist, 1), at_least=2.5),
        Row(area, "the same, two threads", "batched NumPy", lambda: versus_numpy(mnist, 2), at_least=4, threads=2),
        *(torch_rows if importlib.util.find_spec("torch") else []),
        Row(area, "ADMM, COVERTYPE, sign-flip", "batched NumPy", lambda: versus_numpy(covtype, 1), at_least=10),
        Row(area, "ADMM, MNIST uint8, sign-flip", "softmax_gradient alone", versus_gradients, at_most=1.2),
        Row(area, "softmax_gradient, MNIST", "its rows in the cache", memory_cost, at_most=1.15),
        Row(area, "softmax_gradient, two threads", "one thread", second_thread, at_least=1.85, threads=2),
        Row(area, "ADMM, MNIST, Gaussian attack", "zero attack", attack_cost, at_most=1 / (1 - 0.12)),
        Row(area, "50 iterations, an evaluation", "55 iterations", evaluation_cost, at_most=1),
        Row(area, "SGD with median", "SGD with mean", lambda: rule_cost("median"), at_most=1.5),
        Row(area, "SGD with geometric median", "SGD with mean", lambda: rule_cost("geometric_median"), at_most=1.5),
        Row(area, "SGD with krum", "SGD with mean", lambda: rule_cost("krum"), at_most=1.35),
        Row(area, "SGD with multi_krum", "SGD with mean", lambda: rule_cost("multi_krum"), at_most=1.35),
        Row(area, "SGD with bulyan, f=4", "SGD with mean", lambda: rule_cost("bulyan", 4), at_most=1.7),
        Row(area, "SGD with nnm+median", "SGD with mean", lambda: rule_cost("nnm+median"), at_most=1.7),
        Row(area, "SGD with nnm+trimmed_mean", "SGD with mean", lambda: rule_cost("nnm+trimmed_mean"), at_most=1.7),
        Row(area, "SGD with nnm+krum", "SGD with mean", lambda: rule_cost("nnm+krum"), at_most=1.7),
        Row(area, "SGD with bucketing+median", "SGD with mean", lambda: rule_cost("bucketing+median"), at_most=1.7),
        Row(area, "ADMM, 2000 workers", "200 workers", lambda: many_workers(200), at_most=10),
        Row(area, "ADMM, 2000 workers", "20 workers, in the cache", lambda: many_workers(20), at_most=100),
        Row(area, "simulate_many, 8 runs, 2 at once", "one after the other", side_by_side, at_least=1.8, threads=2),
    ]
