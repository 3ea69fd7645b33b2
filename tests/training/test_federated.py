"""Local steps and sampled workers: against the NumPy twins, in closed form, and along every path."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import SGD, Result, algorithms, attacks, engines, losses, simulate, simulate_many, steps
from byzadmm import reference as ref
from byzadmm.training.run import local
from byzadmm.training.sampling import Sampling
from support.arrays import same_bits
from support.runs import (
    ALGORITHMS,
    ATTACKS,
    BYZANTINE,
    KILLED,
    M,
    NativeGradients,
    Q,
    equal_runs,
    experiment,
    plain_attack,
    quadratic,
    small_data,
    small_parts,
    transcription,
)

Array = npt.NDArray[Any]

STEP = steps.inv_sqrt(2, 1)
MOMENTUM = SGD(rule="median", step=STEP, momentum=0.9)
SHARE, COUNT = 0.6, 5  # of M = 7
LEGAL = {"trimmed_mean": SGD(rule="trimmed_mean", f=2, step=STEP)}  # f among the five drawn
#: Attacks whose twin does not depend on how many workers there are.
CHOSEN = ("none", "sign_flip", "gaussian", "alie_1.5", "inner_product", "small_value", "dual_oscillation", "non_finite")


FOLLOWED: dict[str, Any] = ALGORITHMS | LEGAL | {"momentum": MOMENTUM}


@pytest.mark.parametrize("name", FOLLOWED)
def test_runs_follow_the_transcription(name: str) -> None:
    loss, algorithm = quadratic(noise=0.3), FOLLOWED[name]
    rng = np.random.default_rng(9)
    x0, x = rng.standard_normal(loss.dim), rng.standard_normal((M, loss.dim))
    gradients = ref.quadratic_gradients(loss.a, loss.b, noise=0.3, seed=4)
    drawn = ref.participants(M, COUNT, seed=4)
    is_sgd = isinstance(algorithm, SGD)
    settings: dict[str, Any] = {"loss": loss, "algorithm": algorithm, "n_byzantine": Q, "iterations": 15, "seed": 4}
    settings |= {"eval_every": 1, "dtype": "float64", "record": "trajectory", "participation": SHARE}
    settings |= {"x0_init": x0} | ({} if is_sgd else {"x_init": x})
    for attack in CHOSEN:
        for local_steps in (1, 3) if is_sgd else (1,):
            run = simulate(None, None, attack=ATTACKS[attack], local_steps=local_steps, **settings)
            made = ref.local_gradients(gradients, algorithm.step, local_steps) if is_sgd else gradients
            states = transcription(algorithm, ATTACKS[attack], made, x0, x, BYZANTINE, 15, seed=4, drawn=drawn)
            # The geometric median is iterated to 1e-6 of the size of its rows, which the Gaussian attack makes large.
            tol = (1e-3 if attack == "gaussian" else 1e-5) if name == "geometric_median" else 1e-9
            assert run.trajectory is not None
            for t, state in enumerate(states, start=1):
                case = f"{attack}, {local_steps} local steps, at {t}"
                np.testing.assert_allclose(run.trajectory["x0"][t], state.x0, tol, tol, err_msg=f"x0: {case}")
                if run.x is not None:
                    np.testing.assert_allclose(run.trajectory["x"][t], state.x, tol, tol, err_msg=f"x: {case}")
            left = {i: int(k) for i, k in enumerate(state.eliminated) if k >= 0}
            assert run.eliminated == ({} if name == "ideal" else left), case


PATHS: dict[str, tuple[Any, int]] = {
    **{name: (ALGORITHMS[name], 1) for name in ("admm", "rsa", "ideal")},
    "median": (ALGORITHMS["median"], 3),
    "momentum": (MOMENTUM, 2),
    "chain": (SGD(rule="nnm+krum", f=1, step=STEP), 2),
    "history": (KILLED["history"], 1),
}


@pytest.mark.parametrize("name", PATHS)
def test_the_same_bits_along_every_path(name: str, tmp_path: Path) -> None:
    algorithm, local_steps = PATHS[name]
    data, parts = small_data(), small_parts()
    for attack in ("none", "gaussian", "alie", "non_finite", "duplicate"):
        settings: dict[str, Any] = {"algorithm": algorithm, "attack": ATTACKS[attack], "n_byzantine": Q}
        settings |= {"batch_size": 4, "iterations": 9, "seed": 3, "local_steps": local_steps, "participation": SHARE}
        base = simulate(data, parts, threads=1, **settings)
        assert not same_bits(base.x0, np.zeros(18, np.float32)), attack
        paths = {
            "two threads": simulate(data, parts, threads=2, eval_every=4, **settings),
            "many": simulate_many([settings | {"dataset": data, "parts": parts}])[0],
            "rounds": engines.simulate(data, parts, **settings),
        }
        kept = tmp_path / f"{attack}.npz"
        simulate(data, parts, checkpoint=kept, eval_every=2, **(settings | {"iterations": 4}))
        paths["resumed"] = simulate(data, parts, checkpoint=kept, eval_every=2, **settings)
        if name != "history":  # SAGA needs the samples
            loss = NativeGradients(experiment(dataset=data, parts=parts, **settings | {"dtype": "float32"}))
            paths["custom loss"] = simulate(None, None, loss=loss, **settings)
        if ATTACKS[attack] is not None and attack not in ("alie", "duplicate"):  # those ask how many there are, and who
            plain = plain_attack(ATTACKS[attack], 3)  # type: ignore[arg-type]
            paths["custom attack"] = simulate(data, parts, **settings | {"attack": plain})
        for path, run in paths.items():
            assert isinstance(run, Result), f"{attack}: {path}: {run}"
            assert same_bits(base.x0, run.x0), f"{attack}: {path}"
            assert base.eliminated == run.eliminated, f"{attack}: {path}"


def test_all_workers_and_one_step_are_the_plain_run() -> None:
    data, parts = small_data(), small_parts()
    for name in ("admm", "rsa", "median"):
        settings: dict[str, Any] = {"algorithm": ALGORITHMS[name], "attack": attacks.ALIE(), "n_byzantine": Q}
        settings |= {"iterations": 8, "batch_size": 4}
        plain = simulate(data, parts, **settings)
        for same in ({"local_steps": 1, "participation": 1.0}, {"participation": 1}, {"participation": 0.9}):  # 7 of 7
            run = simulate(data, parts, **settings, **same)
            assert equal_runs(run, plain), (name, same)
        setup = experiment(dataset=data, parts=parts, **settings | {"dtype": "float32"})
        state, advance = local(setup, stepwise=True)
        advance(state, 1, 8)
        assert same_bits(plain.x0, state["x0"]), name


# --- local steps -----------------------------------------------------------------------------------------------------


def test_local_steps_on_quadratics_in_closed_form() -> None:
    loss = quadratic()
    x0, step, rho = np.linspace(-1, 1, 13), 0.4, 0.05
    for local_steps in (1, 2, 7):
        settings: dict[str, Any] = {"loss": loss, "algorithm": SGD(step=steps.constant(step)), "iterations": 1}
        settings |= {"x0_init": x0, "dtype": "float64", "local_steps": local_steps}
        w = loss.b + (1 - step * loss.a) ** local_steps * (x0 - loss.b)  # models after so many steps
        averaged = simulate(None, None, rho=0.0, **settings)
        np.testing.assert_allclose(averaged.x0, w.mean(axis=0), rtol=1e-12)  # FedAvg
        shrunk = simulate(None, None, rho=rho, **settings)  # f0 is the master's: local steps do not see it
        np.testing.assert_allclose(shrunk.x0, w.mean(axis=0) - step * rho * x0, rtol=1e-12)
        seen: list[Array] = []

        def spy(messages: Array, *, byzantine: Sequence[int], seen: list[Array] = seen, **_: Any) -> Array:
            seen.append(messages)
            return messages[list(byzantine)]

        simulate(None, None, attack=spy, n_byzantine=1, **settings)
        np.testing.assert_allclose(seen[0], (x0 - w) / step, rtol=1e-11)


class Calls:
    """A loss that keeps (worker, k) of every gradient."""

    dim, n_workers = 2, 10

    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []

    def gradient(self, x: Array, *, worker: int, k: int) -> Array:
        self.calls.append((worker, k))
        return np.asarray(x - worker)


def test_every_local_step_has_draws_of_its_own() -> None:
    loss = Calls()
    simulate(None, None, loss=loss, algorithm=SGD(step=STEP), iterations=4, local_steps=3, first_k=5)
    assert Counter(loss.calls) == Counter((worker, k) for worker in range(10) for k in range(15, 27))
    one = Calls()
    simulate(None, None, loss=one, algorithm=SGD(step=STEP), iterations=4, first_k=5)
    assert Counter(one.calls) == Counter((worker, k) for worker in range(10) for k in range(5, 9))


class Signs(algorithms.Algorithm):
    """A custom algorithm that knows nothing of local steps but their size."""

    def local_step(self, k: int) -> float:
        return 0.25 / k

    def answer(self, group: Any, state: algorithms.State, x0: Array, k: int) -> Array:
        return np.sign(group.gradients(x0, k))

    def update(self, run: Any, state: algorithms.State, heard: algorithms.Heard, k: int) -> None:
        state["x0"] -= 0.1 * np.sign(heard.rows.sum(axis=0))


def test_a_custom_algorithm_takes_local_steps() -> None:
    loss = losses.Quadratic(np.ones(3), np.array([[4.0], [5.0], [6.0]]))
    run = simulate(None, None, loss=loss, algorithm=Signs(), local_steps=4, iterations=80)
    assert run.x0[0] == pytest.approx(5.0, abs=0.2)


def test_a_worker_that_diverges_in_its_local_steps_is_eliminated() -> None:
    loss = losses.Quadratic(np.array([1.0, 1.0, 1e30]), np.ones((3, 2)))
    algorithm = SGD(step=steps.constant(0.5))
    run = simulate(None, None, loss=loss, algorithm=algorithm, local_steps=4, iterations=30, rho=0.0)
    assert run.eliminated == {2: 1}
    np.testing.assert_allclose(run.x0, 1.0, rtol=1e-5)


def test_who_takes_no_local_steps() -> None:
    own = type("Own", (Signs,), {"local_step": algorithms.Algorithm.local_step})()
    wrong = [ALGORITHMS["admm"], ALGORITHMS["rsa"], SGD(variance_reduction="saga"), own]
    for algorithm in wrong:
        expected = f"local_steps: expected 1 for {type(algorithm).__name__} with these settings, got 2"
        with pytest.raises(ValueError, match=expected):
            simulate(small_data(), small_parts(), algorithm=algorithm, local_steps=2)
    for value, error in ((0, ValueError), (1.5, TypeError), (True, TypeError), (2**20 + 1, ValueError)):
        with pytest.raises(error, match="local_steps: expected an integer"):
            simulate(small_data(), small_parts(), algorithm=SGD(), local_steps=value)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="local_steps: 4 in 1000 iterations are too many to number"):
        simulate(small_data(), small_parts(), algorithm=SGD(), local_steps=4, first_k=2**61)


# --- sampled workers -------------------------------------------------------------------------------------------------


def test_how_many_take_part() -> None:
    cases = [(10, 0.3, 3), (20, 0.3, 6), (7, 0.01, 1), (7, 0.6, 5), (3, 1 / 3, 1), (30, 7 / 30, 7), (100, 0.07, 7)]
    for m, share, count in [*cases, (1, 1e-12, 1), (5, 1.0, 5), (5, 0.81, 5)]:
        sampling = Sampling(m, share, 0)
        assert sampling.count == count, (m, share)
        for k in range(20):
            workers = sampling.workers(k)
            assert len(set(workers.tolist())) == count, (m, share, k)
            assert workers.tolist() == sorted(workers.tolist()), (m, share, k)
            assert 0 <= workers[0] <= workers[-1] < m, (m, share, k)
    for value, error in ((0.0, ValueError), (1.1, ValueError), (np.nan, ValueError), ("all", TypeError)):
        with pytest.raises(error, match="participation: expected"):
            simulate(small_data(), small_parts(), algorithm=SGD(), participation=value)  # type: ignore[arg-type]


def test_every_pair_of_workers_is_drawn_as_often_as_any_other() -> None:
    m, count, rounds = 6, 3, 4000
    for seed in (0, 7):
        sampling = Sampling(m, 0.5, seed)
        pairs: Counter[tuple[int, int]] = Counter()
        for k in range(rounds):
            drawn = sampling.workers(k).tolist()
            pairs.update((a, b) for a in drawn for b in drawn if a < b)
        share = count * (count - 1) / (m * (m - 1))
        spread = math.sqrt(rounds * share * (1 - share))
        assert len(pairs) == 15
        assert all(abs(times - rounds * share) < 4.5 * spread for times in pairs.values()), (seed, pairs)
    a, b = (Sampling(20, 0.3, seed) for seed in (0, 1))
    assert any(a.workers(k).tolist() != b.workers(k).tolist() for k in range(3))


def test_only_those_drawn_compute_and_move() -> None:
    loss, sampling = Calls(), Sampling(10, 0.3, 2)
    settings: dict[str, Any] = {"iterations": 6, "participation": 0.3, "seed": 2}
    simulate(None, None, loss=loss, algorithm=SGD(step=STEP), **settings)
    assert loss.calls == [(worker, k) for k in range(1, 7) for worker in sampling.workers(k).tolist()]
    for name in ("admm", "rsa"):
        about = settings | {"algorithm": ALGORITHMS[name], "eval_every": 1, "record": "trajectory"}
        run = simulate(None, None, loss=quadratic(10), x_init=np.ones((10, 13)), **about)
        assert run.trajectory is not None
        for k in range(1, 7):
            before, after = run.trajectory["x"][k - 1 : k + 1]
            moved = np.flatnonzero((before != after).any(axis=1))
            assert moved.tolist() == sampling.workers(k).tolist(), (name, k)


def test_an_attack_sees_those_drawn() -> None:
    sampling, seen = Sampling(M, SHARE, 5), {}

    def spy(messages: Array, *, k: int, byzantine: Sequence[int], **_: Any) -> Array:
        seen[k] = messages.shape, list(byzantine)
        return np.zeros((len(byzantine), messages.shape[1]))

    settings: dict[str, Any] = {"loss": quadratic(), "algorithm": ALGORITHMS["mean"], "byzantine": [1, 4], "seed": 5}
    settings |= {"iterations": 20, "participation": SHARE}
    simulate(None, None, attack=spy, **settings)
    wanted = {}
    for k in range(1, 21):
        drawn = sampling.workers(k).tolist()
        if attackers := [drawn.index(worker) for worker in (1, 4) if worker in drawn]:
            wanted[k] = (COUNT, 13), attackers
    assert seen == wanted
    assert len({tuple(attackers) for _, attackers in wanted.values()}) > 2


def test_alie_counts_those_drawn_and_duplicate_copies_one_of_them() -> None:
    m, byzantine = 9, [2, 6, 7]
    loss = quadratic(m)
    sampling = Sampling(m, 0.5, 1)
    one = {"loss": loss, "algorithm": SGD(step=steps.constant(1.0)), "byzantine": byzantine, "rho": 0.0, "seed": 1}
    for k in range(1, 12):
        drawn = sampling.workers(k)
        honest = loss.a[drawn] * (0.0 - loss.b[drawn])
        attackers = np.flatnonzero(np.isin(drawn, byzantine))
        regular = np.delete(honest, attackers, axis=0)
        z = attacks.ALIE.strength(len(drawn), len(attackers))
        victim = next((i for i, worker in enumerate(drawn) if worker >= 4), 0)
        forged = {attacks.ALIE(): regular.mean(axis=0) - z * regular.std(axis=0), attacks.Duplicate(4): honest[victim]}
        for attack, row in forged.items():
            sent = honest.copy()
            sent[attackers] = row
            settings = one | {"first_k": k, "iterations": 1, "participation": 0.5, "dtype": "float64"}
            run = simulate(None, None, attack=attack, **settings)  # type: ignore[arg-type]
            np.testing.assert_allclose(run.x0, -sent.mean(axis=0), 1e-12, 1e-12, err_msg=f"{attack} at {k}")


def test_attackers_without_regular_workers_beside_them() -> None:
    """Two of six, four of them Byzantine: attacks made from the others' messages are honest in a round without them."""
    loss, sampling, byzantine = quadratic(6), Sampling(6, 1 / 3, 0), [2, 3, 4, 5]
    alone = [k for k in range(1, 30) if min(sampling.workers(k)) >= 2]
    assert len(alone) > 5
    settings: dict[str, Any] = {"loss": loss, "byzantine": byzantine, "participation": 1 / 3, "dtype": "float64"}
    for attack in attacks.REGISTRY.values():
        if attack.poisons_labels:
            continue
        for name in ("mean", "admm", "rsa"):
            about = settings | {"algorithm": ALGORITHMS[name], "attack": attack(), "iterations": 29}
            run, rounds = (by(None, None, **about) for by in (simulate, engines.simulate))
            assert np.isfinite(run.x0).all(), (attack, name)
            eliminates = attack is attacks.NonFinite or (attack is attacks.Infinite and name != "admm")
            assert set(run.eliminated) == (set(byzantine) if eliminates else set()), (attack, name)
            assert same_bits(run.x0, rounds.x0), (attack, name)
    drawn = sampling.workers(alone[0])
    one = settings | {"algorithm": SGD(step=steps.constant(1.0)), "rho": 0.0, "iterations": 1, "first_k": alone[0]}
    honest = (loss.a * loss.b)[drawn].mean(axis=0)
    np.testing.assert_allclose(simulate(None, None, attack=attacks.ALIE(), **one).x0, honest, rtol=1e-12)
    flipped = simulate(None, None, attack=attacks.SignFlip(-2.0), **one)  # sees its own message, which it has
    np.testing.assert_allclose(flipped.x0, -2 * honest, rtol=1e-12)


def test_f_is_meant_among_those_drawn() -> None:
    settings: dict[str, Any] = {"loss": quadratic(20), "n_byzantine": 8, "iterations": 3, "participation": 0.3}
    expected = r"trimmed_mean: f=8 is too large for n=6 .* \(participation=0.3: 6 of 20 take part in a round\)"
    with pytest.raises(ValueError, match=expected):
        simulate(None, None, algorithm=SGD(rule="trimmed_mean", f=8, step=STEP), **settings)
    with pytest.raises(ValueError, match="krum: f=3 is too large for n=6"):
        simulate(None, None, algorithm=SGD(rule="krum", f=3, step=STEP), **settings)  # 6 - 3 - 2 neighbors
    simulate(None, None, algorithm=SGD(rule="trimmed_mean", f=2, step=STEP), **settings)
    simulate(None, None, algorithm=SGD(rule="krum", f=1, step=STEP), **settings)


def test_f_is_lowered_by_those_eliminated_among_the_drawn() -> None:
    """Three of ten are eliminated when first drawn; f = 2 stays in a round without them."""
    step, loss, sampling, byzantine = 0.5, quadratic(10), Sampling(10, 0.5, 0), (7, 8, 9)
    settings: dict[str, Any] = {"algorithm": SGD(rule="trimmed_mean", f=2, step=steps.constant(step)), "rho": 0.0}
    settings |= {"attack": attacks.NonFinite(), "n_byzantine": 3, "participation": 0.5, "dtype": "float64"}
    run = simulate(None, None, loss=loss, iterations=25, eval_every=1, record="trajectory", **settings)
    assert run.trajectory is not None
    first = {worker: next(k for k in range(1, 26) if worker in sampling.workers(k)) for worker in byzantine}
    assert run.eliminated == first
    counts = set()
    for k in range(1, 26):
        x0, drawn = run.trajectory["x0"][k - 1], sampling.workers(k)
        heard = [worker for worker in drawn if worker not in byzantine]
        f = max(2 - (len(drawn) - len(heard)), 0)
        rows = np.sort(loss.a[heard] * (x0 - loss.b[heard]), axis=0)
        expected = x0 - step * rows[f : len(rows) - f].mean(axis=0)
        np.testing.assert_allclose(run.trajectory["x0"][k], expected, 1e-12, 1e-12, err_msg=str(k))
        counts.add(f)
    assert counts == {0, 1, 2}


def test_a_round_in_which_nobody_counts_moves_by_the_regularizer_alone() -> None:
    ideal = SGD(ideal=True, step=steps.constant(0.5))
    settings: dict[str, Any] = {"loss": quadratic(3), "algorithm": ideal, "byzantine": [1, 2], "participation": 1 / 3}
    run = simulate(None, None, x0_init=np.ones(13), rho=0.1, iterations=12, eval_every=1, record="trajectory",
                   dtype="float64", **settings)  # fmt: skip
    assert run.trajectory is not None
    moved = [bool(Sampling(3, 1 / 3, 0).workers(k)[0] == 0) for k in range(1, 13)]
    assert any(moved)
    assert not all(moved)
    for k, counts in enumerate(moved, start=1):
        before, after = run.trajectory["x0"][k - 1 : k + 1]
        shrinks = np.allclose(after, before * 0.95, rtol=1e-13)
        assert shrinks is not counts, k


# --- records ---------------------------------------------------------------------------------------------------------


def test_the_record_has_both_and_a_checkpoint_knows_them(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    settings: dict[str, Any] = {"loss": quadratic(), "algorithm": MOMENTUM, "iterations": 4, "eval_every": 2}
    run = simulate(None, None, checkpoint=path, local_steps=2, participation=SHARE, **settings)
    assert (run.config["local_steps"], run.config["participation"]) == (2, SHARE)
    for other in ({}, {"local_steps": 2}, {"participation": SHARE}, {"local_steps": 2, "participation": 0.5}):
        with pytest.raises(ValueError, match="belongs to another run"):
            simulate(None, None, checkpoint=path, **other, **settings)


def test_a_plain_run_has_the_fingerprint_it_had_before() -> None:
    setup = experiment(loss=quadratic())
    state, _ = local(setup)
    config = setup.describe()
    before = {name: value for name, value in config.items() if name not in ("local_steps", "participation")}
    assert setup.fingerprint(config, state) == setup.fingerprint(before, state)
