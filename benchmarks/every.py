"""A call of every kernel, for comparisons of a kernel with itself: with two threads, on another instruction set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from benchmarks.bench_decentralized import ALGORITHMS as ON_GRAPHS
from benchmarks.bench_decentralized import GRAPH
from benchmarks.bench_rules import CLASSES, arguments
from benchmarks.bench_steps import STEPS
from measure import Call
from numpy.typing import NDArray
from rows_kernels import attacked, normal, softmax_problem
from rows_training import admm, covtype, mnist, native

from byzadmm import RSA, SGD, aggregate, attacks, datasets, decentralized, kernels, partition, redundancy, steps
from byzadmm.decentralized import experiment

__all__ = ["Kernel", "every"]

Array = NDArray[Any]
CACHED, LONG, MANY, HUNDRED = (20, 7850), (20, 1_000_000), (1000, 10_000), (100, 100_000)
#: Rules that take another path for more rows.
BY_ROWS = ["mean", "median", "trimmed_mean", "geometric_median", "krum", "nearest_neighbor_mixing", "centered_clip"]
TURN = 10  # iterations of training per call


class Kernel(NamedTuple):
    """``make(threads)`` gives the call; the arrays are made there. ``long``: it has a millisecond of work or more."""

    area: str
    name: str
    make: Callable[[int], Call]
    long: bool = True


def every(dtype: str) -> Iterator[Kernel]:
    """Rules, gradients, steps, random numbers and codes; in float32 also training and rounds on a graph."""
    for shape in (CACHED, LONG, HUNDRED, MANY):
        for rule in CLASSES if shape[0] == 20 else BY_ROWS:
            yield Kernel(f"rules {shape}", rule, _rule(rule, shape, dtype), long=shape != CACHED)
    yield from _models(dtype)
    yield from _steps(dtype)
    for code in (redundancy.Cyclic(2), redundancy.Repetition(3)):
        yield Kernel("redundant gradients (9, 1000000)", f"decode, {type(code).__name__}", _decode(code, dtype))
    if dtype == "float32":
        yield from _training()


def _rule(rule: str, shape: tuple[int, int], dtype: str) -> Callable[[int], Call]:
    def make(threads: int) -> Call:
        X, settings = attacked(*shape, dtype), arguments(rule, shape[0])
        if "tau" in settings:  # lengths of the rows: as many are clipped as not
            settings["tau"] = float(np.sqrt(shape[1]))
        return lambda: getattr(aggregate, rule)(X, threads=threads, **settings)

    return make


def _models(dtype: str) -> Iterator[Kernel]:
    area = "losses, 20 workers x 32 samples x 784, uint8"
    for loss in ("softmax", "logistic", "least_squares"):
        for kind in ("gradient", "loss", "hessian_product"):
            yield Kernel(area, f"{loss}_{kind}", _loss(loss, kind, dtype), long=False)
    area = "predictions of 20000 rows of 784, uint8"
    for model in ("softmax", "linear"):
        yield Kernel(area, f"{model}_predict", _prediction(model, dtype))


def _loss(loss: str, kind: str, dtype: str) -> Callable[[int], Call]:
    def make(threads: int) -> Call:
        W, X, y, idx = softmax_problem(dtype)
        w = W if loss == "softmax" else np.ascontiguousarray(W[:, 0])
        target = {"softmax": y, "logistic": y % 2, "least_squares": y / 3}[loss]
        arrays = (w, w[::-1].copy(), X, idx) if kind == "hessian_product" else (w, X, target, idx)
        more = {} if kind == "loss" else {"out": np.empty_like(w)}
        return partial(getattr(kernels, f"{loss}_{kind}"), *arrays, scale=1 / 255, threads=threads, **more)

    return make


def _prediction(model: str, dtype: str) -> Callable[[int], Call]:
    def make(threads: int) -> Call:
        W, X, _, _ = softmax_problem(dtype)
        w = W[0] if model == "softmax" else W[0, 0]
        return partial(getattr(kernels, f"{model}_predict"), w, X[:20_000], threads=threads)

    return make


def _steps(dtype: str) -> Iterator[Kernel]:
    for shape in (CACHED, LONG):
        for name in STEPS:
            yield Kernel(f"steps {shape}", name, _step(name, shape, dtype), long=shape != CACHED)
    area, drawn = "random numbers (100, 10000)", (100, 10_000)
    normals, integers = partial(kernels.philox_normal, drawn, seed=1), partial(kernels.philox_integers, drawn, seed=1)
    yield Kernel(area, "philox_normal", lambda t: partial(normals, dtype=dtype, threads=t))
    if dtype == "float32":
        yield Kernel(area, "philox_integers", lambda t: partial(integers, high=60_000, threads=t))


def _step(name: str, shape: tuple[int, int], dtype: str) -> Callable[[int], Call]:
    def make(threads: int) -> Call:
        names, numbers = STEPS[name]
        arrays = [
            normal(*(shape[1:] if one == "x0" else shape), dtype=dtype) + i for i, one in enumerate(names.split())
        ]
        out = np.empty(shape[1:] if "master" in name else shape, dtype)
        return partial(getattr(kernels, name), *arrays, out=out, threads=threads, **numbers)

    return make


def _decode(code: redundancy.Code, dtype: str) -> Callable[[int], Call]:
    def make(threads: int) -> Call:
        Z = redundancy.encode(normal(9, 1_000_000, dtype=dtype), code, threads=1)
        Z[1] *= -3
        return lambda: redundancy.decode(Z, code, threads=threads)

    return make


def _training() -> Iterator[Kernel]:
    area = "training, 10 iterations, 20 workers x 32 samples, 8 Byzantine, MNIST"

    def train(algorithm: Any, attack: Any, data: Any = mnist, **more: Any) -> Callable[[int], Call]:
        return lambda threads: native(data(), algorithm, attack, threads, turn=TURN, **more)

    sgd = steps.power(1e-4)
    yield Kernel(area, "ADMM, sign-flip", train(admm(), attacks.SignFlip()))
    yield Kernel(area, "ADMM, Gaussian", train(admm(), attacks.Gaussian()))
    yield Kernel(area, "ADMM, COVERTYPE", train(admm(), attacks.SignFlip(), covtype))
    yield Kernel(area, "ADMM, logistic", train(admm(), attacks.SignFlip(), _two_classes, loss="logistic"))
    yield Kernel(area, "RSA, sign-flip", train(RSA(lam=0.05, step=sgd), attacks.SignFlip()))
    for rule in ("mean", "median", "krum", "nnm+trimmed_mean"):
        yield Kernel(area, f"SGD, {rule}", train(SGD(rule=rule, f=8, step=sgd), attacks.ALIE()))
    for name in ("dadmm", "drsa", *decentralized.RULES):
        yield Kernel("one round on a graph, 30 nodes of degree 20, MNIST", name, _rounds(name))


def _two_classes() -> datasets.Dataset:
    data = mnist()
    x, y = data.train_x, data.train_y % 2
    return datasets.from_arrays(x, y, x[:100], y[:100], n_classes=2, name="random")


def _rounds(name: str) -> Callable[[int], Call]:
    def make(threads: int) -> Call:
        data = mnist()
        run = experiment.GraphExperiment(
            data, partition.iid(data.train_y, GRAPH.m, seed=0), algorithm=ON_GRAPHS[name], graph=GRAPH,
            attack=attacks.SignFlip(), n_byzantine=6, threads=threads,
        )  # fmt: skip
        state, advance = experiment.rounds(run)
        k = [1]

        def further() -> None:
            advance(state, k[0], 1)
            k[0] += 1

        return further

    return make
