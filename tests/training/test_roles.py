"""The two sides of a round: workers apart give the bits of workers together, and what a missing reply means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import ADMM, attacks, simulate
from byzadmm.training.experiment import Experiment
from byzadmm.training.master import Master, play
from byzadmm.training.workers import Workers
from support.arrays import same_bits
from support.runs import (
    ALGORITHMS,
    ATTACKS,
    SOFTMAX_ATTACKS,
    M,
    Q,
    experiment,
    plain_attack,
    quadratic,
    small_data,
    small_parts,
)

Array = npt.NDArray[Any]

SPLITS = {"one and the rest": [1, 6], "uneven thirds": [1, 4, 2], "halves": [4, 3], "each alone": [1] * M}
EVERY_ATTACK = {
    **SOFTMAX_ATTACKS,
    "min_max": attacks.MinMax(),
    "mimic": attacks.Mimic(warmup=5),
    "fang": attacks.Fang("krum"),
    "worst_case": attacks.WorstCase("inner-product", grid=3, refine=1),
}


def groups(sizes: Sequence[int]) -> list[range]:
    ends = np.cumsum(sizes).tolist()
    return [range(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def run_apart(setup: Experiment, sizes: Sequence[int], iterations: int, first: int = 1) -> Master:
    master = Master(setup)
    ranks = [Workers(setup, mine) for mine in groups(sizes)]
    for k in range(first, first + iterations):
        play(k, master, asking(ranks))
    return master


def asking(ranks: list[Workers]) -> Any:
    return lambda k, x0: (np.concatenate([rank.answer(k, x0) for rank in ranks]), None)


@pytest.mark.parametrize("attack", EVERY_ATTACK)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_workers_apart_give_the_bits_of_workers_together(name: str, attack: str) -> None:
    settings: dict[str, Any] = {"algorithm": ALGORITHMS[name], "attack": EVERY_ATTACK[attack], "n_byzantine": Q}
    settings |= {"batch_size": 5, "seed": 21, "dtype": "float32"}
    data, parts = small_data(), small_parts()
    whole = simulate(data, parts, iterations=8, **settings)
    setup = experiment(dataset=data, parts=parts, **settings)
    for label, sizes in SPLITS.items():
        master = run_apart(setup, sizes, 8)
        assert same_bits(whole.x0, master.x0), label
        assert whole.eliminated == {i: int(k) for i, k in enumerate(master.eliminated) if k >= 0}, label


@pytest.mark.parametrize("name", ["admm", "rsa", "median"])
@pytest.mark.parametrize("attack", ["alie", "duplicate", "sign_flip", "dual_oscillation"])
def test_a_users_attack_apart_gives_the_bits_of_together(attack: str, name: str) -> None:
    built_in = ATTACKS[attack]
    assert built_in is not None
    settings: dict[str, Any] = {"loss": quadratic(noise=0.3), "algorithm": ALGORITHMS[name], "seed": 4}
    settings |= {"attack": plain_attack(built_in, 4), "byzantine": [0, 3, 6], "dtype": "float32"}
    whole = simulate(None, None, iterations=8, **settings)
    assert same_bits(whole.x0, run_apart(experiment(**settings, n_byzantine=0), [2, 5], 8).x0)


def test_a_users_attack_draws_the_same_numbers_everywhere() -> None:
    def noise(messages: Array, *, byzantine: Sequence[int], rng: np.random.Generator, **_: Any) -> Array:
        return messages[list(byzantine)] + rng.standard_normal((len(byzantine), messages.shape[1]))

    settings: dict[str, Any] = {"loss": quadratic(), "algorithm": ALGORITHMS["rsa"], "attack": noise}
    settings |= {"n_byzantine": Q, "dtype": "float64"}
    whole = simulate(None, None, iterations=6, **settings)
    assert same_bits(whole.x0, run_apart(experiment(**settings), [5, 2], 6).x0)


# --- shadows ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attack", "mine", "held"),
    [
        (attacks.ALIE(), [0, 5], range(M)),
        (attacks.InnerProduct(), [5], range(M)),
        (attacks.Duplicate(), [4, 6], range(M)),
        (lambda messages, **_: messages[-Q:], [6], range(M)),
        (attacks.ALIE(), [0, 1], [0, 1]),  # no Byzantine worker here
        (attacks.SignFlip(), [3, 5], [3, 5]),
        (attacks.Gaussian(), [6], [6]),
        (None, [1, 6], [1, 6]),
    ],
)
def test_copies_of_others_are_kept_where_needed(attack: Any, mine: list[int], held: Sequence[int]) -> None:
    workers = Workers(experiment(loss=quadratic(), attack=attack), mine)
    assert workers.held == list(held)
    assert workers.state()["x"].shape == (len(held), 13)
    assert workers.answer(1, np.zeros(13)).shape == (len(mine), 13)


def test_ideal_sgd_needs_no_shadows() -> None:
    setup = experiment(loss=quadratic(), attack=attacks.ALIE(), algorithm=ALGORITHMS["ideal"])
    assert Workers(setup, [2, 6]).held == [2, 6]


def test_an_attack_that_promised_to_look_at_its_own_message_sees_no_other() -> None:
    seen: list[tuple[Array, list[int]]] = []

    def shy(messages: Array, *, byzantine: list[int], **_: Any) -> Array:
        seen.append((messages, byzantine))
        return -messages[byzantine]

    shy.sees = "own"  # type: ignore[attr-defined]
    settings: dict[str, Any] = {"loss": quadratic(), "algorithm": ALGORITHMS["median"], "attack": shy}
    whole = simulate(None, None, iterations=5, n_byzantine=Q, dtype="float64", **settings)
    seen.clear()
    assert same_bits(whole.x0, run_apart(experiment(**settings), [5, 2], 5).x0)
    messages, byzantine = seen[-1]
    assert byzantine == [5, 6]
    assert np.isnan(messages[:5]).all()
    assert np.isfinite(messages[5:]).all()


def test_every_attack_says_what_it_sees() -> None:
    sees = {kind.__name__: kind.sees for kind in (attacks.Attack, *attacks.REGISTRY.values())}
    assert {name for name, what in sees.items() if what == "all"} >= {"ALIE", "Attack", "Duplicate", "InnerProduct"}
    assert set(sees.values()) == {"own", "all"}


# --- replies that do not come ----------------------------------------------------------------------------------------


def absent_mask(k: int) -> npt.NDArray[np.bool_]:
    """Worker k mod m is missing, worker 2 in rounds 3 to 5, and all in round 6."""
    present = np.ones(M, np.bool_)
    present[k % M] = False
    present[2] &= not 3 <= k <= 5
    return present & (k != 6)


def run_with_gaps(setup: Experiment, rounds: int) -> tuple[Master, list[Array], list[Array]]:
    """The master, and for each round its x0 and the messages; absent rows hold values that must not be read."""
    master, workers = Master(setup), Workers(setup, range(M))
    models: list[Array] = []
    sent: list[Array] = []

    def ask(k: int, x0: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
        messages = workers.answer(k, x0)
        sent.append(messages.copy())
        present = absent_mask(k)
        messages[~present] = np.nan
        return messages, present

    for k in range(1, rounds + 1):
        play(k, master, ask)
        models.append(master.x0.copy())
    return master, models, sent


def test_a_missing_dual_stays_as_it_was() -> None:
    admm = ALGORITHMS["admm"]
    assert isinstance(admm, ADMM)
    master, models, sent = run_with_gaps(experiment(loss=quadratic(), algorithm=admm, attack=attacks.SignFlip()), 12)
    x0 = np.zeros(13)
    now = before = np.zeros((M, 13))
    for k in range(1, 13):
        x0 = x0 - admm.master_step(k) * (0.01 * x0 - (2 * now - before).sum(axis=0))
        np.testing.assert_allclose(models[k - 1], x0, rtol=1e-12, atol=1e-12, err_msg=f"round {k}")
        before = now
        now = np.where(absent_mask(k)[:, None], sent[k - 1], now)
    assert np.all(master.eliminated == -1)
    assert same_bits(master.state()["heard"], now)
    assert same_bits(master.state()["heard_prev"], before)


def test_a_missing_model_is_not_counted() -> None:
    rsa = ALGORITHMS["rsa"]
    setup = experiment(loss=quadratic(), algorithm=rsa, attack=attacks.SignFlip())
    master, models, sent = run_with_gaps(setup, 12)
    x0 = np.zeros(13)
    for k in range(1, 13):
        votes = np.sign(sent[k - 1][absent_mask(k)] - x0).sum(axis=0)
        x0 = x0 - rsa.master_step(k) * (0.01 * x0 - rsa.lam * votes)  # type: ignore[union-attr]
        np.testing.assert_allclose(models[k - 1], x0, rtol=1e-12, atol=1e-12, err_msg=f"round {k}")
    assert np.all(master.eliminated == -1)


@pytest.mark.parametrize("name", ["mean", "median", "trimmed_mean", "ideal"])
def test_a_missing_gradient_leaves_a_smaller_rule(name: str) -> None:
    sgd = ALGORITHMS[name]
    setup = experiment(loss=quadratic(), algorithm=sgd, attack=attacks.SignFlip())
    master, models, sent = run_with_gaps(setup, 12)
    x0 = np.zeros(13)
    taking_part = np.arange(M) < (M - Q if name == "ideal" else M)
    for k in range(1, 13):
        heard = np.sort(sent[k - 1][absent_mask(k) & taking_part], axis=0)
        n = len(heard)
        f = {"median": (n - 1) // 2, "trimmed_mean": min(Q, (n - 1) // 2)}.get(name, 0)
        direction = heard[f : n - f].mean(axis=0) if n else 0.0
        x0 = x0 - sgd.step(k) * (direction + 0.01 * x0)  # type: ignore[union-attr, operator]
        np.testing.assert_allclose(models[k - 1], x0, rtol=1e-12, atol=1e-12, err_msg=f"round {k}")
    assert np.all(master.eliminated == -1)


@pytest.mark.parametrize("name", ["admm", "rsa", "mean"])
def test_only_what_arrived_gives_its_sender_away(name: str) -> None:
    master = Master(experiment(loss=quadratic(), algorithm=ALGORITHMS[name]))
    messages = np.zeros((M, 13))
    messages[[1, 4]] = np.nan
    present = np.arange(M) != 4
    master.receive(3, messages.copy(), present)
    assert master.eliminated.tolist() == [-1, 3, -1, -1, -1, -1, -1]
    master.receive(5, messages)
    assert master.eliminated.tolist() == [-1, 3, -1, -1, 5, -1, -1]
    assert np.isfinite(master.update(6)).all()


# --- states ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attack", ["sign_flip", "alie"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_both_sides_go_on_from_their_states(name: str, attack: str) -> None:
    setup = experiment(
        loss=quadratic(noise=0.2), algorithm=ALGORITHMS[name], attack=ATTACKS[attack], dtype="float32", seed=3
    )
    unbroken = run_apart(setup, [3, 4], 10)
    master, ranks = Master(setup), [Workers(setup, mine) for mine in groups([3, 4])]
    for k in range(1, 11):
        if k == 6:
            kept = [{key: array.copy() for key, array in side.state().items()} for side in (master, *ranks)]
            master, ranks = Master(setup), [Workers(setup, mine) for mine in groups([3, 4])]
            master.x0[:] = 1.0
            for side, state in zip((master, *ranks), kept, strict=True):
                side.restore(state | {"other": np.zeros(1)})
        play(k, master, asking(ranks))
    assert same_bits(unbroken.x0, master.x0)


def test_models_start_where_they_are_told() -> None:
    start = np.arange(M * 13.0).reshape(M, 13)
    setup = experiment(loss=quadratic(), x_init=start, x0_init=start[3])
    assert np.array_equal(Workers(setup, [1, 4]).state()["x"], start[[1, 4]])
    assert np.array_equal(Master(setup).x0, start[3])


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, "state: forged is missing"),
        ({"forged": np.zeros((2, 13))}, r"state: expected forged of shape \(0, 13\) and dtype float64, got \(2, 13\)"),
        ({"forged": np.zeros((0, 13), "float32")}, r"got \(0, 13\) and float32"),
    ],
)
def test_states_that_do_not_fit(state: dict[str, Array], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Workers(experiment(loss=quadratic()), [0, 1]).restore(state)


@pytest.mark.parametrize(
    ("mine", "error", "message"),
    [
        ([0, 0], ValueError, r"mine: expected ascending numbers, got \[0, 0\]"),
        ([2, 1], ValueError, r"mine: expected ascending numbers, got \[2, 1\]"),
        ([7], ValueError, r"mine: expected an integer in \[0, 6\], got 7"),
        ([0.5], TypeError, "mine: expected an integer, got float"),
    ],
)
def test_workers_that_are_not_there(mine: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Workers(experiment(loss=quadratic()), mine)
