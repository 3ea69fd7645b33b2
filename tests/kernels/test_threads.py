"""Threads: the same bits for every count, from many Python threads at once, and in a forked child."""

from __future__ import annotations

import multiprocessing
import os
import threading
from typing import Any

import numpy.typing as npt
import pytest

from byzadmm import _core
from support.arrays import same_bits
from support.kernel_calls import NAMES, calls

Array = npt.NDArray[Any]


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
