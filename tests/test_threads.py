"""Threads: the same bits for every count, from many Python threads at once, and in a forked child."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from arrays import same_bits
from byzadmm import _core, aggregate, kernels

Array = npt.NDArray[Any]


def calls(dtype: str, d: int) -> dict[str, Callable[[int], Any]]:
    """Every kernel on inputs whose lengths no thread count divides, as functions of the thread count."""
    rng = np.random.default_rng(d)
    few, some, many = (rng.standard_normal((n, d)).astype(dtype) for n in (11, 37, 131))
    poisoned = few.copy()
    poisoned[3, d // 2] = np.nan
    x0 = rng.standard_normal(d).astype(dtype)
    X, y = rng.integers(0, 256, (211, 37), dtype=np.uint8), rng.integers(0, 7, 211)
    W, idx = rng.standard_normal((13, 7, 38)).astype(dtype), rng.integers(0, 211, (13, 33))
    return {
        "mean": lambda t: aggregate.mean(few, threads=t),
        "weighted mean": lambda t: aggregate.mean(few, weights=np.arange(1.0, 12.0), threads=t),
        "median, few": lambda t: aggregate.median(few, threads=t),
        "median, some": lambda t: aggregate.median(some, threads=t),
        "median, many": lambda t: aggregate.median(many, threads=t),
        "median, NaN": lambda t: aggregate.median(poisoned, threads=t),
        "median, NaN kept": lambda t: aggregate.median(poisoned, nonfinite="propagate", threads=t),
        "trimmed_mean, few": lambda t: aggregate.trimmed_mean(few, f=2, threads=t),
        "trimmed_mean, some": lambda t: aggregate.trimmed_mean(some, f=9, threads=t),
        "trimmed_mean, many": lambda t: aggregate.trimmed_mean(many, f=50, threads=t),
        "geometric_median": lambda t: aggregate.geometric_median(few, threads=t),
        "geometric_median, some": lambda t: aggregate.geometric_median(some, threads=t),
        "geometric_median, NaN": lambda t: aggregate.geometric_median(poisoned, threads=t),
        "softmax_gradient": lambda t: kernels.softmax_gradient(W, X, y, idx, scale=1 / 255, threads=t),
        "softmax_gradient, all": lambda t: kernels.softmax_gradient(W, X, y, scale=1 / 255, threads=t),
        "softmax_loss": lambda t: kernels.softmax_loss(W, X, y, scale=1 / 255, threads=t),
        "softmax_predict": lambda t: kernels.softmax_predict(W[0], X, threads=t),
        "admm_worker_step": lambda t: kernels.admm_worker_step(few, 2 * few, few - 1, few, alpha=0.1, threads=t),
        "admm_dual_step": lambda t: kernels.admm_dual_step(few, 2 * few, x0, beta=0.3, lam=0.4, threads=t),
        "admm_master_step": lambda t: kernels.admm_master_step(x0, few, 2 * few, alpha=0.1, rho=0.1, threads=t),
        "rsa_worker_step": lambda t: kernels.rsa_worker_step(few, 2 * few, x0, alpha=0.1, lam=0.3, threads=t),
        "rsa_master_step": lambda t: kernels.rsa_master_step(x0, few, alpha=0.1, lam=0.3, rho=0.1, threads=t),
        "philox_normal": lambda t: kernels.philox_normal(d, seed=1, dtype=dtype, threads=t),
    }


NAMES = list(calls("float32", 3))
FORKED = ("median, many", "mean", "softmax_loss")


@pytest.mark.parametrize("d", [1, 13, 2 * 2048 + 1, 8 * 1024 + 11])
@pytest.mark.parametrize("name", NAMES)
def test_same_bits_for_every_thread_count(name: str, d: int, dtype: str) -> None:
    call = calls(dtype, d)[name]
    one = call(1)
    for count in (0, 2, 3, 7):
        assert same_bits(call(count), one), f"threads={count}"


def test_more_threads_than_work(dtype: str) -> None:
    for name, call in calls(dtype, 5).items():
        assert same_bits(call(64), call(1)), name


def test_eight_threads_hammering_the_same_inputs(dtype: str) -> None:
    work = calls(dtype, 1031)
    expected = {name: call(1) for name, call in work.items()}
    wrong: list[str] = []
    start = threading.Barrier(8)

    def hammer(worker: int) -> None:
        names = sorted(work)
        start.wait()
        for turn in range(2):
            for step in range(len(names)):
                name = names[(step * 5 + worker * 3) % len(names)]
                if not same_bits(work[name]((worker + turn) % 3), expected[name]):
                    wrong.append(name)

    pool = [threading.Thread(target=hammer, args=(worker,)) for worker in range(8)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    assert wrong == []


def child(connection: Any, dtype: str) -> None:
    work = calls(dtype, 4097)
    results = [work[name](count) for name in FORKED for count in (0, 1, 4)]
    connection.send((results, _core.max_threads()))
    connection.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_after_a_parallel_call(dtype: str) -> None:
    work = calls(dtype, 4097)
    expected = [work[name](4) for name in FORKED for _ in range(3)]
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=child, args=(there, dtype))
    process.start()
    there.close()
    try:
        assert here.poll(60), "the forked child hangs"
        got, most = here.recv()
    finally:
        process.join(5)
        if process.is_alive():
            process.kill()
            process.join()
    assert process.exitcode == 0
    assert most == 1, "a forked child must not use the threads of its parent"
    assert all(same_bits(a, b) for a, b in zip(got, expected, strict=True))
