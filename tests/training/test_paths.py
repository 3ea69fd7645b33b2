"""The same bits along every path: native, step by step, in pieces, with any number of threads."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import ADMM, SGD, attacks, simulate
from byzadmm import aggregate as rules
from byzadmm.training.run import local
from support.arrays import same_bits
from support.runs import (
    ALGORITHMS,
    SOFTMAX_ATTACKS,
    NativeGradients,
    Q,
    equal_runs,
    experiment,
    plain_attack,
    quadratic,
    small_data,
    small_parts,
)

Array = npt.NDArray[Any]
DTYPES = ("float32", "float64")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("attack", SOFTMAX_ATTACKS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_fused_stepwise_chunks_and_threads_give_the_same_bits(name: str, attack: str, dtype: str) -> None:
    data, parts = small_data(), small_parts()
    algorithm, built_in = ALGORITHMS[name], SOFTMAX_ATTACKS[attack]
    settings: dict[str, Any] = {"algorithm": algorithm, "n_byzantine": Q, "batch_size": 5, "seed": 21, "dtype": dtype}
    run = {"iterations": 12, "eval_every": 12}
    base = simulate(data, parts, attack=built_in, threads=1, **settings, **run)
    # One of the counts for each pair: all of them would only repeat, and many threads on few cores are slow.
    threads = (2, 3, 7)[(list(ALGORITHMS).index(name) + list(SOFTMAX_ATTACKS).index(attack)) % 3]
    other = simulate(data, parts, attack=built_in, threads=threads, **settings, **run)
    assert equal_runs(base, other), f"{threads} threads"
    for interval in (1, 5):
        other = simulate(data, parts, attack=built_in, threads=1, iterations=12, eval_every=interval, **settings)
        assert equal_runs(base, other), f"evaluated every {interval}"

    run_of = experiment(dataset=data, parts=parts, attack=built_in, **settings)
    (fused, advance), (state, step) = local(run_of), local(run_of, stepwise=True)
    for first, count in ((1, 5), (6, 4), (10, 3)):
        advance(fused, first, count)
        step(state, first, count)
        for part in fused.keys() - {"forged", "g"}:  # scratch where there is no attack
            assert same_bits(fused[part], state[part]), f"{part} after {first + count - 1} iterations"
    assert same_bits(base.x0, state["x0"])
    assert base.eliminated == {i: int(k) for i, k in enumerate(state["eliminated"]) if k >= 0}

    if built_in is not None and not built_in.poisons_labels:
        other = simulate(data, parts, attack=plain_attack(built_in, 21), **settings, **run)
        assert equal_runs(base, other), "a user's attack"
    native = NativeGradients(experiment(dataset=data, parts=parts, attack=built_in, **settings))
    if built_in is None or not built_in.poisons_labels:
        other = simulate(None, None, loss=native, attack=built_in, **settings, **run)
        assert same_bits(base.x0, other.x0), "a user's loss"
    else:
        # The poison is in the gradients already; what is left is a worker that sends its own message.
        other = simulate(None, None, loss=native, attack=attacks.SignFlip(1.0), **settings, **run)
        assert same_bits(base.x0, other.x0), "poisoned gradients"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("mean", rules.mean),
        ("median", rules.median),
        ("geometric_median", rules.geometric_median),
        ("trimmed_mean", lambda X: rules.trimmed_mean(X, f=Q)),
    ],
)
def test_a_rule_in_python_gives_the_same_bits(name: str, rule: Any, dtype: str) -> None:
    settings: dict[str, Any] = {"loss": quadratic(noise=0.1), "attack": attacks.SignFlip(), "n_byzantine": Q}
    settings |= {"iterations": 50, "dtype": dtype}
    native = simulate(None, None, algorithm=ALGORITHMS[name], **settings)
    python = simulate(None, None, algorithm=SGD(rule=rule, step=ALGORITHMS[name].step), **settings)  # type: ignore[union-attr]
    assert equal_runs(native, python)
    assert native.config["algorithm"]["rule"] == name


@pytest.mark.parametrize("name", ALGORITHMS)
def test_threads_do_not_matter_to_a_wide_problem(name: str) -> None:
    settings: dict[str, Any] = {"loss": quadratic(dim=5003, noise=1.0), "algorithm": ALGORITHMS[name], "iterations": 5}
    settings |= {"attack": attacks.Gaussian(), "byzantine": [0, 3, 5]}
    one, *others = (simulate(None, None, threads=threads, **settings) for threads in (1, 0, 2, 3, 7))
    assert all(equal_runs(one, other) for other in others)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_seed_decides(name: str) -> None:
    data, parts = small_data(), small_parts()
    runs = [simulate(data, parts, algorithm=ALGORITHMS[name], iterations=5, seed=s) for s in (1, 1, 2)]
    assert equal_runs(runs[0], runs[1])
    assert not same_bits(runs[0].x0, runs[2].x0)


def test_the_global_generator_is_left_alone() -> None:
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    before = np.random.get_state()[1].tobytes(), random.getstate()  # type: ignore[index, union-attr] # noqa: NPY002

    def noisy(messages: Array, *, rng: np.random.Generator, byzantine: list[int], **_: Any) -> Array:
        return rng.standard_normal((len(byzantine), messages.shape[1]))

    for attack in (attacks.Gaussian(), noisy):
        simulate(small_data(), small_parts(), algorithm=ADMM(), attack=attack, n_byzantine=2, iterations=4)
    after = np.random.get_state()[1].tobytes(), random.getstate()  # type: ignore[index, union-attr] # noqa: NPY002
    assert before == after
