"""The protocols of the training core: every algorithm, attack and loss, built in or custom, passes the same checks."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import SGD, algorithms, attacks, engines, losses, simulate, simulate_many, steps
from byzadmm.catalogue import LOSSES
from byzadmm.training.run import local
from byzadmm.training.workers import Workers
from support.arrays import same_bits
from support.runs import (
    ALGORITHMS,
    ATTACKS,
    DEMANDING,
    KILLED,
    Array,
    M,
    Q,
    data_for,
    experiment,
    quadratic,
    small_data,
    small_parts,
)

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Pulled(algorithms.Algorithm):
    """Everything an algorithm may override, in a plain class: models at the workers, the master first, a memory of the
    last messages, forged rows that pass through the worker's own step."""

    message = "model"
    master_first = True
    missing = "last"

    def __init__(self, pull: float = 0.5) -> None:
        self.pull = pull

    def bound(self) -> float:
        return 1e6

    def worker_state(self, group: Any) -> algorithms.State:
        return {"x": group.models()}

    def answer(self, group: Any, state: algorithms.State, x0: Array, k: int) -> Array:
        x = state["x"]
        x -= (group.gradients(x, k) + self.pull * (x - x0)) / (2 + np.sqrt(k))
        return x.copy()

    def shown(self, state: algorithms.State, messages: Array, k: int) -> tuple[Array, int]:
        return messages, k + 1

    def forger_state(self, group: Any, q: int) -> algorithms.State:
        return {"sent": np.zeros((q, group.dim), group.dtype)}

    def sent(self, group: Any, state: algorithms.State, forged: Array, x0: Array, *, direct: bool) -> Array:
        state["sent"] += 0.5 * (np.clip(forged, -10, 10) - state["sent"])
        return state["sent"]

    def master_state(self, run: Any) -> algorithms.State:
        return {"rounds": np.zeros(1, np.int64)}

    def update(self, run: Any, state: algorithms.State, heard: algorithms.Heard, k: int) -> None:
        state["rounds"] += 1
        state["x0"] += 0.2 * (np.median(heard.rows, axis=0) - state["x0"])


OWN = {"own_vote": example("own_algorithm").MajorityVote(), "own_pulled": Pulled()}
EVERY = ALGORITHMS | KILLED | DEMANDING | OWN


def parts_for(algorithm: algorithms.Algorithm) -> tuple[list[Array], dict[str, Any]]:
    """The workers' samples; without the first of each, which the master has, for an algorithm that needs them there."""
    parts = small_parts()
    if not algorithm.validates:
        return parts, {}
    return [part[1:] for part in parts], {"validation": [int(part[0]) for part in parts]}


def same_along_every_path(loss: str, kept: Path, settings: dict[str, Any]) -> None:
    """One thread, two, among many, rounds of messages, step by step, and resumed: the same bits."""
    data, algorithm = data_for(loss), settings["algorithm"]
    (parts, more), case = parts_for(algorithm), f"{loss} {algorithm} {settings['attack']}"
    settings = settings | more | {"loss": loss, "n_byzantine": Q, "batch_size": 4, "iterations": 9, "seed": 3}
    settings |= {"dtype": "float32"}
    base = simulate(data, parts, threads=1, **settings)
    assert base.x0.shape == (18 if loss == "softmax" else 6,), case
    assert not same_bits(base.x0, np.zeros_like(base.x0)), case
    json.dumps(base.config)

    two_threads = simulate(data, parts, threads=2, eval_every=4, **settings)
    assert same_bits(base.x0, two_threads.x0), case
    (many,) = simulate_many([settings | {"dataset": data, "parts": parts}])
    assert same_bits(base.x0, many.x0), case  # type: ignore[union-attr]
    if algorithm.second is None:
        rounds = engines.simulate(data, parts, **settings)
        assert same_bits(base.x0, rounds.x0), case
        assert base.eliminated == rounds.eliminated, case
    else:
        with pytest.raises(ValueError, match=f"algorithm: {type(algorithm).__name__} has two exchanges per round"):
            engines.simulate(data, parts, **settings)

    state, advance = local(experiment(dataset=data, parts=parts, **settings), stepwise=True)
    advance(state, 1, 9)
    assert same_bits(base.x0, state["x0"]), case

    simulate(data, parts, checkpoint=kept, eval_every=2, **(settings | {"iterations": 4}))
    resumed = simulate(data, parts, checkpoint=kept, eval_every=2, **settings)
    assert same_bits(base.x0, resumed.x0), case
    assert base.eliminated == resumed.eliminated, case


@pytest.mark.parametrize("attack", ["none", "sign_flip", "alie", "dual_oscillation", "non_finite"])
@pytest.mark.parametrize("name", EVERY)
def test_an_algorithm_gives_the_same_bits_along_every_path(name: str, attack: str, tmp_path: Path) -> None:
    settings = {"algorithm": EVERY[name], "attack": ATTACKS[attack]}
    same_along_every_path("softmax", tmp_path / "checkpoint.npz", settings)


@pytest.mark.parametrize("loss", [name for name in LOSSES if name != "softmax"])
@pytest.mark.parametrize("attack", ["sign_flip", "non_finite"])
def test_a_loss_by_name_gives_the_same_bits_along_every_path(loss: str, attack: str, tmp_path: Path) -> None:
    for name, algorithm in EVERY.items():
        settings = {"algorithm": algorithm, "attack": ATTACKS[attack]}
        same_along_every_path(loss, tmp_path / f"{name}.npz", settings)


@pytest.mark.parametrize("name", OWN | DEMANDING)
def test_an_algorithm_that_knows_nothing_of_sampled_workers_has_them(name: str, tmp_path: Path) -> None:
    algorithm, data = EVERY[name], small_data()
    parts, more = parts_for(algorithm)
    for attack in ("none", "sign_flip", "alie", "non_finite"):
        settings: dict[str, Any] = {"algorithm": algorithm, "attack": ATTACKS[attack], "n_byzantine": Q} | more
        settings |= {"iterations": 9, "batch_size": 4, "seed": 3, "participation": 0.6}
        base = simulate(data, parts, threads=1, **settings)
        assert not same_bits(base.x0, simulate(data, parts, **settings | {"participation": 1.0}).x0), attack
        kept = tmp_path / f"{attack}.npz"
        simulate(data, parts, checkpoint=kept, eval_every=2, **(settings | {"iterations": 4}))
        resumed = simulate(data, parts, checkpoint=kept, eval_every=2, **settings)
        behind = engines.simulate if algorithm.second is None else simulate
        for run in (behind(data, parts, **settings), resumed):
            assert same_bits(base.x0, run.x0), attack
            assert base.eliminated == run.eliminated, attack


def test_own_algorithms_learn_under_attack() -> None:
    """The example of 30 lines, on its own data: a vote of signs tolerates 8 of 20."""
    run = example("own_algorithm")
    data = run.datasets.load("digits")
    parts = run.partition.iid(data.train_y, 20, seed=0)
    settings = {"algorithm": run.MajorityVote(), "n_byzantine": 8, "iterations": 500}
    for attack in (attacks.SignFlip(), attacks.Gaussian()):
        assert simulate(data, parts, attack=attack, **settings).final_accuracy() > 0.85


def test_an_adaptive_attack_asks_any_algorithm() -> None:
    attack = attacks.WorstCase("sign-flip")
    run = simulate(None, None, loss=quadratic(), algorithm=Pulled(), attack=attack, n_byzantine=Q, iterations=5)
    assert np.isfinite(run.x0).all()


@pytest.mark.parametrize("wrong", [object(), "admm", SGD])
def test_what_is_no_algorithm(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"algorithm: expected ADMM, RSA, SGD or another algorithms\.Algorithm, got"):
        simulate(None, None, loss=quadratic(), algorithm=wrong)


@pytest.mark.parametrize("half", ["answer", "update"])
def test_an_algorithm_without_one_of_its_sides_says_so(half: str) -> None:
    sides: dict[str, Any] = {name: vars(Pulled)[name] for name in ("answer", "update") if name != half}
    lacking = type("Lacking", (algorithms.Algorithm,), sides | {"worker_state": Pulled.worker_state, "pull": 1.0})
    with pytest.raises(NotImplementedError, match=f"Lacking has no {half}"):
        simulate(None, None, loss=quadratic(), algorithm=lacking(), iterations=1)


# --- attacks ---------------------------------------------------------------------------------------------------------


def called(attack: attacks.Attack, messages: Array, byzantine: Sequence[int]) -> Array:
    given: dict[str, Any] = {"x0": np.zeros(messages.shape[1]), "k": 3, "byzantine": byzantine, "algorithm": SGD()}
    return attack(messages, rng=np.random.default_rng(7), **given)


@pytest.mark.parametrize("name", attacks.REGISTRY)
def test_every_attack_keeps_the_protocol(name: str, dtype: str) -> None:
    kind = attacks.REGISTRY[name]
    attack = kind()
    assert kind.__name__ in attacks.__all__
    described = attack.describe()
    assert json.loads(json.dumps(described)) == described
    assert described["name"] == kind.__name__
    assert (attack.sends, attack.sees) in {("message", "own"), ("message", "all"), ("dual", "own")}
    assert kind.searched is None or hasattr(attack, kind.searched.setting)

    messages = np.random.default_rng(0).normal(1.0, 1.0, (M, 11)).astype(dtype)
    before = messages.copy()
    forged = called(attack, messages, [1, 4])
    assert (forged.shape, forged.dtype) == ((2, 11), messages.dtype)
    assert same_bits(messages, before)
    assert same_bits(forged, called(attack, messages, [1, 4]))
    if attack.poisons_labels:
        with pytest.raises(TypeError, match=f"{kind.__name__}: changes the labels"):
            attack(messages)
    else:  # the honest rows alone; drawn from fresh entropy unless a generator is given
        alone, again = (attack(messages, rng=np.random.default_rng(7)) for _ in range(2))
        assert (alone.shape, alone.dtype) == ((M if attack.sees == "own" else 1, 11), messages.dtype)
        assert same_bits(alone, again)
        assert attack(messages.tolist()).shape == alone.shape
        assert same_bits(messages, before)
    if attack.sees == "own":  # what it promises to other processes
        hidden = np.full_like(messages, np.nan)
        hidden[4] = messages[4]
        assert same_bits(called(attack, hidden, [4])[0], forged[1])


@pytest.mark.parametrize("algorithm", ["admm", "rsa", "mean", "own_pulled"])
@pytest.mark.parametrize("name", attacks.REGISTRY)
def test_every_attack_runs_with_any_algorithm_and_engine(name: str, algorithm: str) -> None:
    settings: dict[str, Any] = {"algorithm": EVERY[algorithm], "attack": attacks.REGISTRY[name](), "n_byzantine": Q}
    settings |= {"iterations": 4, "batch_size": 4, "seed": 3}
    data, parts = small_data(), small_parts()
    whole, rounds = (run(data, parts, **settings) for run in (simulate, engines.simulate))
    assert same_bits(whole.x0, rounds.x0)
    assert np.isfinite(whole.x0).all()
    assert whole.eliminated == rounds.eliminated
    assert set(whole.eliminated) <= set(range(M - Q, M))
    own = simulate(data, parts, **settings | {"byzantine": [], "n_byzantine": 0})
    assert same_bits(own.x0, simulate(data, parts, **settings | {"attack": None}).x0)  # no attacker, no attack


class Drift:
    """A custom attack with a state: it goes on from what it sent last, and follows worker 1 by number."""

    sees = "all"
    row = 1

    def begin(self, m: int, d: int, dtype: Any) -> dict[str, Any]:
        assert m == M
        return {"sent": np.zeros(d, dtype), "calls": np.zeros((), np.int64)}

    def among(self, workers: Sequence[int]) -> Drift:
        made = Drift()
        made.row = workers.index(1) if 1 in workers else 0
        return made

    def __call__(self, messages: Array, *, byzantine: Sequence[int], rng: Any, state: Any, **_: Any) -> Array:
        state["calls"] += 1
        noise = rng.standard_normal(messages.shape[1]).astype(messages.dtype)
        # A new array in place of the old one is kept too.
        state["sent"] = 0.9 * state["sent"] - messages[self.row] / state["calls"] + 0.01 * noise
        return np.repeat(state["sent"][None], len(byzantine), axis=0)


@pytest.mark.parametrize("attack", [Drift(), attacks.Mimic(warmup=6)], ids=["own", "mimic"])
def test_an_attack_with_a_state_gives_the_same_bits_along_every_path(attack: Any, tmp_path: Path) -> None:
    for name in ("admm", "rsa", "median", "own_pulled"):
        for share in (1.0, 0.6):
            settings = {"algorithm": EVERY[name], "attack": attack, "participation": share}
            same_along_every_path("softmax", tmp_path / f"{name}{share}.npz", settings)
    setup = experiment(dataset=small_data(), parts=small_parts(), attack=attack)
    held = [Workers(setup, mine).state().keys() for mine in (range(4), range(4, M))]
    own = {f"attack_{key}" for key in attack.begin(M, 2, np.dtype(np.float64))}
    assert not own & held[0]  # no attacker, no state
    assert own <= held[1]


def test_what_a_state_of_an_attack_may_be() -> None:
    settings: dict[str, Any] = {"loss": quadratic(), "algorithm": EVERY["mean"], "n_byzantine": Q, "iterations": 2}
    for begun, error, message in (
        ([1.0], TypeError, "attack.begin: expected a dict of arrays, got list"),
        ({"a": "text"}, TypeError, "attack.begin: expected numbers, got <U4 for a"),
        ({"sent": np.zeros(1), "calls": np.zeros(())}, ValueError, r"expected state sent of shape \(1,\), got \(13,\)"),
    ):
        attack = Drift()
        attack.begin = lambda m, d, dtype, begun=begun: begun  # type: ignore[method-assign]
        with pytest.raises(error, match=message):
            simulate(None, None, attack=attack, **settings)
    with pytest.raises(ValueError, match="family: Mimic keeps a state, which is not searched"):
        attacks.WorstCase(lambda s: attacks.Mimic(), low=0, high=1)


@pytest.mark.parametrize("algorithm", DEMANDING)
def test_every_attack_runs_with_demanding_algorithms(algorithm: str) -> None:
    parts, more = parts_for(DEMANDING[algorithm])
    settings: dict[str, Any] = {"algorithm": DEMANDING[algorithm], "n_byzantine": Q, "iterations": 3} | more
    for name, kind in attacks.REGISTRY.items():
        run = simulate(small_data(), parts, attack=kind(), **settings)
        assert np.isfinite(run.x0).all(), name
        assert set(run.eliminated) <= set(range(M - Q, M)), name


def test_the_list_of_attacks_is_the_registry(root: Path) -> None:
    page = (root / "docs" / "api.md").read_text("utf-8")
    section = page.split("## `byzadmm.attacks`")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    built_in = [kind.__name__ for kind in attacks.REGISTRY.values()]
    assert sorted(listed) == sorted([*built_in, "Attack", "REGISTRY", "Searched"])


# --- losses ----------------------------------------------------------------------------------------------------------


class Rows:
    """A loss with everything that is optional and not native: the middle of a cloud of points per worker."""

    dim, n_workers = 4, M

    def __init__(self, flipped: Sequence[int] = ()) -> None:
        self.flipped = list(flipped)
        self.calls = 0
        self.points = np.random.default_rng(1).normal(2.0, 1.0, (M, 30, 4))
        self.points[self.flipped] *= -1

    def gradient(self, x: Array, *, worker: int, k: int) -> Array:
        return np.asarray(x - self.points[worker, k % 30])

    def gradients(self, models: Array, *, workers: Sequence[int], k: int, out: Array) -> None:
        self.calls += 1
        out[:] = models - self.points[list(workers), k % 30]

    def initial(self) -> Array:
        return np.full(4, 7.0)

    def evaluate(self, x: Array) -> dict[str, float]:
        return {"loss": float(np.mean((x - self.points) ** 2)), "largest": float(x.max()), "accuracy": 0.5}

    def poisoned(self, workers: Sequence[int], mapping: Any) -> Rows:
        return Rows(workers)


class Alone:
    """The least that a loss must have."""

    dim, n_workers = 4, M

    def gradient(self, x: Array, *, worker: int, k: int) -> Array:
        return Rows().gradient(x, worker=worker, k=k)


@pytest.mark.parametrize("name", [name for name, algorithm in EVERY.items() if not algorithm.needs])
def test_a_loss_with_everything_optional(name: str, tmp_path: Path) -> None:
    loss = Rows()
    settings: dict[str, Any] = {"algorithm": EVERY[name], "n_byzantine": Q, "iterations": 8, "eval_every": 3}
    run = simulate(None, None, loss=loss, attack=attacks.SignFlip(), **settings)
    assert loss.calls == 8
    assert run.iterations.tolist() == [0, 3, 6, 8]
    assert run.metrics.keys() == {"accuracy", "loss", "consensus_gap", "distance", "largest"}
    assert run.metrics["largest"][0] == 7.0  # where the loss says that models start
    assert run.accuracy.tolist() == [0.5] * 4
    assert run.loss is run.metrics["loss"]
    if run.x is not None:
        assert run.consensus_gap[0] == 0.0
    alone = simulate(None, None, loss=Alone(), attack=attacks.SignFlip(), x0_init=np.full(4, 7.0),
                     **(settings | ({"x_init": np.full((M, 4), 7.0)} if run.x is not None else {})))  # fmt: skip
    assert same_bits(run.x0, alone.x0)
    assert np.isnan(alone.loss).all()
    run.save(tmp_path / "run.npz")
    again = type(run).load(tmp_path / "run.npz")
    assert again.metrics.keys() == run.metrics.keys()
    assert same_bits(again.metrics["largest"], run.metrics["largest"])
    assert {"largest", "loss"} <= run.table()[0].keys()


def test_label_flipping_is_the_loss_s_own() -> None:
    settings: dict[str, Any] = {"algorithm": ALGORITHMS["mean"], "n_byzantine": Q, "iterations": 5}
    poisoned = simulate(None, None, loss=Rows(), attack=attacks.LabelFlip(), **settings)
    by_hand = simulate(None, None, loss=Rows(range(M - Q, M)), **settings)
    assert same_bits(poisoned.x0, by_hand.x0)
    with pytest.raises(ValueError, match="attack: LabelFlip needs a loss with labels, such as softmax"):
        simulate(None, None, loss=Alone(), attack=attacks.LabelFlip(), **settings)


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_a_mapping_of_labels(loss: str, tmp_path: Path) -> None:
    """The attackers' labels replaced by hand give the same run; other mappings are other runs, in checkpoints too."""
    data, parts = data_for(loss), small_parts()
    settings: dict[str, Any] = {"algorithm": ALGORITHMS["mean"], "n_byzantine": Q, "iterations": 6, "eval_every": 3}
    settings |= {"loss": loss, "batch_size": 5}
    whole = [1, 2, 0] if loss == "softmax" else [1, 1]
    mappings: list[Any] = [whole, tuple(whole), np.array(whole), dict(enumerate(whole)), None, {0: 1}, [0] * len(whole)]
    new = [whole] * 4 + [list(range(len(whole)))[::-1], [1, *range(1, len(whole))], [0] * len(whole)]
    mine = np.concatenate(parts[M - Q :])
    for mapping, labels in zip(mappings, new, strict=True):
        run = simulate(data, parts, attack=attacks.LabelFlip(mapping), **settings)
        y = data.train_y.copy()
        y[mine] = np.array(labels)[y[mine]]
        by_hand = simulate(replace(data, train_y=y), parts, **settings)
        assert same_bits(run.x0, by_hand.x0), mapping
    kept = tmp_path / "checkpoint.npz"
    simulate(data, parts, attack=attacks.LabelFlip([0] * len(whole)), checkpoint=kept, **settings)
    with pytest.raises(ValueError, match="another run"):
        simulate(data, parts, attack=attacks.LabelFlip({0: 1}), checkpoint=kept, **settings)
    for wrong in ([0], [0, 9, 1, 2], {0: 3}, {3: 0}, [3] * len(whole)):
        with pytest.raises(ValueError, match=rf"mapping: expected {len(whole)} labels in \[0, {len(whole)}\)"):
            simulate(data, parts, attack=attacks.LabelFlip(wrong), **settings)


def test_softmax_as_an_object_is_the_short_form() -> None:
    data, parts = small_data(), small_parts()
    settings: dict[str, Any] = {"algorithm": ALGORITHMS["admm"], "attack": attacks.LabelFlip(), "n_byzantine": Q}
    settings |= {"iterations": 10, "dtype": "float64"}
    short = simulate(data, parts, batch_size=6, seed=9, **settings)
    loss = losses.Softmax(data, parts, batch_size=6, seed=9)
    whole = simulate(None, None, loss=loss, seed=9, **settings)
    assert same_bits(short.x0, whole.x0)
    assert same_bits(short.accuracy, whole.accuracy)
    own_seed = simulate(None, None, loss=loss, seed=1, batch_size=50, **settings)  # it keeps its own
    assert same_bits(short.x0, own_seed.x0)
    assert own_seed.config["batch_size"] == 6


def test_softmax_gradients_are_slopes_of_its_value() -> None:
    data, parts = small_data(), [np.arange(120)] * 2
    loss = losses.Softmax(data, parts, batch_size=4000)  # nearly the whole sum: drawn with replacement
    x = np.random.default_rng(0).standard_normal(loss.dim)
    slope = loss.gradient(x, worker=1, k=3)
    along = np.random.default_rng(1).standard_normal(loss.dim)
    central = (loss.evaluate(x + 1e-5 * along)["loss"] - loss.evaluate(x - 1e-5 * along)["loss"]) / 2e-5
    assert float(slope @ along) == pytest.approx(central, abs=0.2 * np.linalg.norm(slope))


def test_steps_are_evaluated_one_by_one() -> None:
    assert steps.at(steps.power(1.0), "step", 4) == 0.5
