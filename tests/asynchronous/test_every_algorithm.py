"""What every asynchronous algorithm keeps, built in or a user's own, under any attack and with any delays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import Result, asynchronous, attacks, delays, steps
from byzadmm.asynchronous import ASGD, AsyncAlgorithm
from support.asynchronous import ASYNCHRONOUS, DELAYS, ROBUST, differences, run
from support.runs import Array, M, Q


def shouts(messages: Array, *, byzantine: Any, rng: Any, k: int, **_: Any) -> Array:
    """A user's attack: it sees what everybody has under way, and draws."""
    noise = rng.standard_normal((len(byzantine), messages.shape[1]))
    return np.asarray(-2 * messages[list(byzantine)] + noise / k, messages.dtype)


ATTACKS: dict[str, Any] = {
    "none": None,
    "sign flip": attacks.SignFlip(),
    "alie": attacks.ALIE(),
    "gaussian": attacks.Gaussian(),
    "own": shouts,
    "mimic": attacks.Mimic(warmup=6),
    "dual oscillation": attacks.DualOscillation(),
    "non-finite": attacks.NonFinite(),
}
LOWEST, HIGHEST = list(range(Q)), list(range(M - Q, M))


def agree(a: Result, b: Result, case: str, **settings: Any) -> None:
    assert not differences(a, b, **settings), f"{case}: {differences(a, b, **settings)}"


def same_along_every_path(algorithm: AsyncAlgorithm, folder: Path, case: str, by_time: bool, **settings: Any) -> None:
    start = np.linspace(-1, 1, 18 if algorithm.validates else 13)

    def one(**changes: Any) -> Result:
        return run(algorithm, **(settings | {"threads": 1, "x0_init": start} | changes))

    base = one(updates=8, eval_every=8)
    assert not np.allclose(base.x0, start), case
    for threads in (2, 7):
        agree(base, one(updates=8, eval_every=4, threads=threads), f"{case}, {threads} threads", curves=False)

    # Evaluated after every update, also in the middle of an instant; stopped there and resumed.
    often = one(updates=8, eval_every=1)
    agree(base, often, f"{case}, eval_every=1", curves=False)
    for updates in (4, 5, 8):
        resumed = one(updates=updates, eval_every=1, checkpoint=folder / "updates.npz")
    agree(often, resumed, f"{case}, resumed by updates")
    often.save(folder / "run.npz")
    agree(often, Result.load(folder / "run.npz"), f"{case}, loaded")

    # Ends by arrivals and by time, and evaluations by time.
    assert often.arrivals is not None
    assert often.time is not None
    whole, late = int(often.arrivals[-1]), float(often.time[-1])
    evaluated: dict[str, Any] = {"eval_time": late / 5} if by_time else {"eval_every": 3}
    for end, ends in {"arrivals": (whole // 2, whole // 2 + 1, whole), "until": (late / 2, late / 1.9, late)}.items():
        unbroken = one(**{end: ends[-1]}, **evaluated)
        for place in ends:
            resumed = one(**{end: place}, checkpoint=folder / f"{end}.npz", **evaluated)
        agree(unbroken, resumed, f"{case}, resumed by {end}, {evaluated}")
        found = getattr(unbroken, "time" if end == "until" else end)
        assert found[-1] == ends[-1], case


@pytest.mark.slow
@pytest.mark.parametrize("name", ASYNCHRONOUS)
def test_every_algorithm_gives_the_same_bits_along_every_path(name: str, tmp_path: Path) -> None:
    place = list(ASYNCHRONOUS).index(name)
    for number, (kind, attack) in enumerate(ATTACKS.items()):
        delay = list(DELAYS)[(number + place) % len(DELAYS)]
        byzantine = (LOWEST, HIGHEST)[(number + number // 2) % 2]
        (tmp_path / kind).mkdir()
        settings: dict[str, Any] = {"attack": attack, "byzantine": byzantine, "delays": DELAYS[delay]}
        case = f"{name}, {kind} from {byzantine}, {delay}"
        same_along_every_path(ASYNCHRONOUS[name], tmp_path / kind, case, by_time=bool(number % 2), **settings)


def test_an_instant_is_interrupted_anywhere(tmp_path: Path) -> None:
    """Seven messages arrive at every second, and each is an update: runs that end between any two of them."""
    settings: dict[str, Any] = {"delays": 1.0, "attack": attacks.Mimic(warmup=3), "byzantine": LOWEST}
    for name in ("asgd", "admm 1"):
        whole = run(ASYNCHRONOUS[name], updates=24, eval_every=2, **settings)
        for updates in (1, 6, 7, 13):
            kept = tmp_path / f"{name} {updates}.npz"
            run(ASYNCHRONOUS[name], updates=updates, eval_every=2, checkpoint=kept, **settings)
            resumed = run(ASYNCHRONOUS[name], updates=24, eval_every=2, checkpoint=kept, **settings)
            assert not differences(whole, resumed), f"{name}, {updates}: {differences(whole, resumed)}"


def test_an_eliminated_worker_gets_no_more_jobs() -> None:
    asked: list[tuple[int, int]] = []

    def delay(worker: int, job: int, rng: Any) -> float:
        asked.append((worker, job))
        return float(rng.random()) + 0.1

    def breaks(messages: Array, *, byzantine: Any, k: int, **_: Any) -> Array:
        return np.full((len(byzantine), messages.shape[1]), np.nan if k > 5 else 0.01)

    for name, algorithm in ASYNCHRONOUS.items():
        for byzantine in (LOWEST, HIGHEST):
            asked.clear()
            found = run(algorithm, delays=delay, attack=breaks, byzantine=byzantine, until=15.0)
            case = f"{name}, {byzantine}"
            assert sorted(found.eliminated) == byzantine, case
            assert found.accepted is not None
            assert found.rejected is not None
            answered = (found.accepted + found.rejected)[byzantine]
            jobs = np.bincount([worker for worker, _ in asked], minlength=M)
            assert np.all(jobs[byzantine] == answered), case  # the message that eliminated it was its last job
            others = np.delete(jobs, byzantine)
            assert np.all(others > jobs[byzantine].max() + 3), case
            assert np.all(found.rejected[byzantine] >= 1), case


# --- hostile numbers -------------------------------------------------------------------------------------------------


def hostile(seed: int, dtype: str) -> Any:
    """An attack with finite numbers of any size, in any mixture: rows, elements, signs, zeros, the largest number."""
    largest = float(np.finfo(dtype).max)

    def attack(messages: Array, *, byzantine: Any, rng: Any, **_: Any) -> Array:
        chance = np.random.default_rng([seed, int(rng.integers(2**32))])
        shape = len(byzantine), messages.shape[1]
        sizes = chance.uniform(-300, 308, [(1, 1), (shape[0], 1), shape][chance.integers(3)])
        rows = chance.choice([-1.0, 1.0], shape) * 10.0**sizes
        special = chance.choice([0.0, 5e-324, largest, -largest], shape)
        rows = np.where(chance.random(shape) < chance.choice([0, 0.2, 1]), special, rows)
        mixed = chance.random(shape) < chance.choice([0.0, 0.5])
        return np.where(mixed, messages[list(byzantine)], np.clip(rows, -largest, largest))

    attack.sends = "message" if seed % 2 else "dual"  # type: ignore[attr-defined]
    return attack


@pytest.mark.parametrize("name", ROBUST)
def test_finite_numbers_of_any_size_from_a_minority(name: str, dtype: str) -> None:
    for seed in range(6):
        settings: dict[str, Any] = {"delays": list(DELAYS.values())[seed % len(DELAYS)], "dtype": dtype}
        settings |= {"byzantine": (LOWEST, HIGHEST)[seed % 2], "attack": hostile(seed, dtype), "arrivals": 150}
        found = run(ROBUST[name], **settings)
        assert np.isfinite(found.x0).all(), (name, seed)
        assert set(found.eliminated) <= set(settings["byzantine"]), (name, seed)
        assert np.abs(found.x0).max() < 1e3, (name, seed, np.abs(found.x0).max())


@pytest.mark.filterwarnings("ignore:the run ended early. every worker is eliminated")
def test_finite_numbers_of_any_size_where_nothing_is_promised(dtype: str) -> None:
    """Runs of the others may diverge, and end because every regular worker is eliminated; without an exception."""
    for name in ASYNCHRONOUS.keys() - ROBUST.keys():
        for seed in range(4):
            with np.errstate(all="raise", under="ignore"):
                run(ASYNCHRONOUS[name], attack=hostile(seed, dtype), byzantine=HIGHEST, dtype=dtype, arrivals=120)


# --- a user's own ----------------------------------------------------------------------------------------------------


class Replaces(AsyncAlgorithm):
    """Its workers put new arrays in the place of the old ones, or write into them."""

    def __init__(self, replaces: bool) -> None:
        self.replaces = replaces

    def worker_state(self, group: Any) -> Any:
        return {"v": group.zeros()}

    def answer(self, group: Any, state: Any, x0: Array, k: int) -> Array:
        v = state["v"] / 2 + group.gradients(x0, k)
        if self.replaces:
            state["v"] = v
        else:
            state["v"][:] = v
        return np.array(v)

    def master_state(self, run: Any) -> Any:
        return {"direction": np.zeros(run.d, run.dtype)}

    def receive(self, run: Any, state: Any, arrival: Any) -> bool:
        state["direction"][:] = arrival.message
        return True

    def move(self, run: Any, state: Any, t: int) -> None:
        state["x0"] -= 0.1 * state["direction"]


def test_new_arrays_in_a_worker_s_state_count_alone_and_together() -> None:
    for name, delay in DELAYS.items():
        written, replaced = (run(Replaces(which), delays=delay, updates=60) for which in (False, True))
        assert not differences(written, replaced, curves=False), name


def test_entries_with_the_names_of_others_are_refused() -> None:
    class Clashes(Replaces):
        def __init__(self, entry: str) -> None:
            super().__init__(True)
            self.entry = entry

        def master_state(self, run: Any) -> Any:
            return super().master_state(run) | {self.entry: np.zeros(run.m)}

    for entry in ("versions", "clock", "x0", "v", "forged"):
        with pytest.raises(ValueError, match=f"Clashes.master_state: '{entry}' is an entry of the queue or of the wor"):
            run(Clashes(entry), updates=1)


def test_a_missing_half_says_so() -> None:
    for half in ("answer", "receive", "move"):
        held = {name: vars(Replaces)[name] for name in ("answer", "receive", "move") if name != half}
        lacking = type("Lacking", (AsyncAlgorithm,), held | {"worker_state": Replaces.worker_state, "replaces": True,
                                                             "master_state": Replaces.master_state})  # fmt: skip
        with pytest.raises(NotImplementedError, match=f"Lacking has no {half}"):
            run(lacking(), updates=1)


def test_what_is_not_asynchronous_says_where_it_runs() -> None:
    from byzadmm import simulate
    from support.runs import quadratic

    with pytest.raises(ValueError, match=r"algorithm: ASGD is asynchronous: byzadmm\.asynchronous\.simulate runs it"):
        simulate(None, None, loss=quadratic(), algorithm=ASGD(steps.constant(0.1)))
    with pytest.raises(TypeError, match="algorithm: expected ADMM, RSA, SGD or another"):
        asynchronous.simulate(None, None, loss=quadratic(), algorithm=ASGD, delays=delays.Constant())  # type: ignore[arg-type]
