"""What every filter must do: the same bits along every path, weights that are numbers, a model that stays finite."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import SGD, Result, attacks, engines, filters, losses, partition, simulate, simulate_many, steps
from byzadmm.training.run import local
from support.arrays import same_bits
from support.runs import M, Q, experiment, small_data

Array = npt.NDArray[Any]
STEP = steps.inv_sqrt(2, 1)


class Nearest:
    """A filter that is no subclass: everything that the protocol has, and a memory that moves as a new array."""

    eliminates, validates, needs = False, False, ()

    def begin(self, m: int, d: int, dtype: np.dtype[Any]) -> dict[str, Array]:
        return {"last": np.zeros(d, dtype)}

    def weigh(self, messages: Array, *, state: dict[str, Array], **_: Any) -> Array:
        middle = np.median(messages, axis=0)
        apart = np.abs(messages - middle - 0.01 * state["last"]).max(axis=1)
        state["last"] = middle
        return np.where(apart <= np.median(apart), 1.0 / (1.0 + apart), 0.0)

    def adjusted(self, rows: Array, weights: Array, *, state: Any, rng: Any) -> tuple[Array, Array]:
        return rows + rng.standard_normal(1).astype(rows.dtype) * 1e-3, weights

    def projected(self, x0: Array, *, state: Any) -> None:
        np.clip(x0, -5, 5, out=x0)

    def check(self, n: int, workers: int | None = None) -> None: ...

    def lowered(self, eliminated: int) -> Nearest:
        return self

    def declaring(self, f: int) -> Nearest:
        return self


#: Every registered filter with settings under which it excludes somebody within nine rounds, and one of a user's own.
SETTINGS: dict[str, dict[str, Any]] = {
    "zeno": {"b": Q, "samples": 8},
    "byzantine-sgd": {"V": 1.5, "D": 0.5},
    "safeguard": {"windows": (2, 5), "noise": 0.01},
    "reconstruction": {"rank": 2, "gradients": 20, "power": 1.0},
}
FILTERS: dict[str, Any] = {name: kind(**SETTINGS.get(name, {})) for name, kind in filters.REGISTRY.items()}
FILTERS["own"] = Nearest()


def problem() -> tuple[Any, list[Array], Array]:
    """Data, the workers' parts, and the master's rows."""
    data = small_data()
    parts = [part + 20 for part in partition.iid(data.train_y[20:], M, seed=3)]
    return data, parts, np.arange(20)


def settings(name: str, **changes: Any) -> dict[str, Any]:
    about = {"algorithm": SGD(step=STEP, filter=FILTERS[name]), "n_byzantine": Q, "batch_size": 4, "iterations": 9}
    return about | {"seed": 3, "validation": problem()[2], "attack": attacks.SignFlip(-2.0)} | changes


def test_names_and_defaults() -> None:
    assert {name: kind.__name__ for name, kind in filters.REGISTRY.items()} == {
        "zeno": "Zeno", "fltrust": "FLTrust", "comparison": "Comparison", "byzantine-sgd": "ByzantineSGD",
        "safeguard": "Safeguard", "reconstruction": "Reconstruction",
    }  # fmt: skip
    for kind in filters.REGISTRY.values():
        assert kind.__name__ in filters.__all__
        described = kind().declaring(2).describe()
        assert json.loads(json.dumps(described)) == described


@pytest.mark.parametrize("attack", ["sign_flip", "non_finite"])
@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_gives_the_same_bits_along_every_path(name: str, attack: str, tmp_path: Path) -> None:
    data, parts, _ = problem()
    given = settings(name, attack={"sign_flip": attacks.SignFlip(-2.0), "non_finite": attacks.NonFinite()}[attack])
    base = simulate(data, parts, threads=1, eval_every=2, **given)
    plain = simulate(data, parts, threads=1, **given | {"algorithm": SGD(step=STEP)})
    assert attack != "sign_flip" or not same_bits(base.x0, plain.x0)
    assert np.isfinite(base.x0).all()
    json.dumps(base.config)

    def same(other: Result | Exception) -> None:
        assert isinstance(other, Result)
        assert same_bits(base.x0, other.x0)
        assert base.eliminated == other.eliminated

    same(simulate(data, parts, threads=2, eval_every=4, **given))
    same(simulate_many([given | {"dataset": data, "parts": parts}])[0])
    state, advance = local(experiment(dataset=data, parts=parts, **given | {"dtype": "float32"}), stepwise=True)
    advance(state, 1, 9)
    assert same_bits(base.x0, state["x0"])
    kept = tmp_path / "checkpoint.npz"
    simulate(data, parts, checkpoint=kept, eval_every=2, **given | {"iterations": 4})
    resumed = simulate(data, parts, checkpoint=kept, eval_every=2, **given)
    rounds = engines.simulate(data, parts, eval_every=2, **given)
    for other in (resumed, rounds):
        same(other)
        assert base.weights is not None
        assert other.weights is not None
        for curve, values in base.weights.items():
            np.testing.assert_array_equal(values, other.weights[curve], err_msg=curve)


@pytest.mark.parametrize("name", FILTERS)
def test_a_row_of_any_size_leaves_a_finite_model(name: str) -> None:
    """At the lowest index, from the first round on or later; a robust rule behind a filter keeps the model near."""
    data, parts, _ = problem()
    for dtype, sizes in (("float32", (3e38, 1e-44)), ("float64", (1e308, 1e-300))):
        for size in sizes:
            for first in (1, 6):

                def shout(messages: Array, *, k: int, size: float = size, first: int = first, **_: Any) -> Array:
                    return np.full((1, messages.shape[1]), size) if k >= first else messages[:1]

                given = settings(name, attack=shout, n_byzantine=1, byzantine=[0], dtype=dtype)
                sgd = given["algorithm"]
                for rule in ("mean", "median"):
                    run = simulate(data, parts, **given | {"algorithm": replace(sgd, rule=rule), "iterations": 8})
                    case = (dtype, size, first, rule)
                    assert np.isfinite(run.x0).all(), case
                    remembers = name in ("byzantine-sgd", "safeguard")  # a first message may count
                    if size > 1 and not (rule == "mean" and remembers):
                        assert np.abs(run.x0).max() < 10, case
                    assert run.weights is not None
                    curves = np.array(list(run.weights.values()))[:, 1:]
                    assert np.isfinite(curves).all(), case


def test_equal_weights_are_the_plain_mean() -> None:
    data, parts, _ = problem()
    given = settings("zeno", dtype="float32")
    plain = simulate(data, parts, **given | {"algorithm": SGD(step=STEP)})
    for kept in (filters.Zeno(0), filters.Safeguard((1, 1), (np.inf, np.inf)), filters.Safeguard(1, np.inf)):
        run = simulate(data, parts, **given | {"algorithm": SGD(step=STEP, filter=kept)})
        assert same_bits(run.x0, plain.x0), kept
        assert run.weights is not None
        assert run.weights["byzantine"].tolist()[1:] == [1.0]


class Half(filters.Filter):
    """Weights 1, 2, ... of the rows, and zero for the first two."""

    def weigh(self, messages: Array, **_: Any) -> Array:
        return np.arange(len(messages)) * (np.arange(len(messages)) > 1)


def test_the_mean_uses_weights_and_other_rules_the_rows() -> None:
    b = np.arange(1.0, 8.0)[:, None] ** 2
    given: dict[str, Any] = {"loss": losses.Quadratic(np.ones(7), b), "iterations": 1, "rho": 0.0, "dtype": "float64"}

    def moved(**more: Any) -> float:
        run = simulate(None, None, algorithm=SGD(step=steps.constant(1.0), filter=Half(), **more), **given)
        return float(run.x0[0])

    kept, weights = b[2:, 0], np.arange(2.0, 7.0)
    assert moved() == pytest.approx(weights @ kept / weights.sum(), rel=1e-14)
    assert moved(rule="median") == np.median(kept)
    # f is lowered by the two that are excluded: 3 of 7 become 1 of 5.
    assert moved(rule="trimmed_mean", f=3) == pytest.approx(np.mean(kept[1:-1]), rel=1e-14)
    assert moved(rule=["trimmed_mean"], f=3) == pytest.approx(np.mean(kept[1:-1]), rel=1e-14)


def test_what_is_recorded_survives_a_file(tmp_path: Path) -> None:
    data, parts, _ = problem()
    run = simulate(data, parts, eval_every=2, **settings("zeno", attack=attacks.NonFinite()))
    assert run.weights is not None
    assert run.weights["byzantine"].tolist()[1:] == [0.0] * 5  # eliminated: weight zero
    assert run.weights["regular"].tolist()[1:] == [1.0] * 5  # which lowers b to 0
    assert np.isnan([values[0] for values in run.weights.values()]).all()
    run.save(tmp_path / "run.npz")
    again = Result.load(tmp_path / "run.npz")
    assert again.weights is not None
    for name, values in run.weights.items():
        np.testing.assert_array_equal(values, again.weights[name])
    assert simulate(data, parts, algorithm=SGD(step=STEP), iterations=1).weights is None
    nobody = simulate(data, parts, **settings("zeno", n_byzantine=0))
    assert nobody.weights is not None
    assert np.isnan(nobody.weights["byzantine"]).all()
    assert nobody.weights["regular"][1] == pytest.approx((M - Q) / M)
    assert nobody.weights["regular_excluded"][1] == 9 * Q


@pytest.mark.slow
def test_the_picture_of_weights(tmp_path: Path) -> None:
    data, parts, _ = problem()
    run = simulate(data, parts, eval_every=2, **settings("fltrust"))
    ax = run.plot_weights(tmp_path / "weights.png")
    assert (tmp_path / "weights.png").stat().st_size > 5000
    assert [line.get_label() for line in ax.get_lines()] == ["regular workers", "Byzantine workers"]
    np.testing.assert_array_equal(ax.get_lines()[1].get_ydata(), run.weights["byzantine"])  # type: ignore[index]
    assert ax.get_title() == "FLTrust"
    with pytest.raises(ValueError, match="weights: expected a run with a filter, got one without"):
        simulate(data, parts, algorithm=SGD(step=STEP), iterations=1).plot_weights()


def test_whom_a_filter_eliminates_is_named_with_the_reason() -> None:
    data, parts, _ = problem()
    run = experiment(dataset=data, parts=parts, **settings("byzantine-sgd", attack=attacks.SignFlip(-9.0)))
    with engines.LocalEngine(run) as engine:
        found = engines.lead(run, engine, deadline=1.0)
        assert [str(event) for event in engine.events] == [
            f"round {k}: worker {worker}: filtered" for worker, k in sorted(found.eliminated.items())
        ]
    assert found.eliminated.keys() == set(range(M - Q, M))


class Wrong(filters.Filter):
    def __init__(self, weights: Any) -> None:
        self.weights = weights

    def weigh(self, messages: Array, **_: Any) -> Any:
        return self.weights


def test_what_a_filter_must_not_do() -> None:
    data, parts, rows = problem()

    def run(**changes: Any) -> Result:
        return simulate(data, parts, iterations=1, **changes)

    for weights, message in [
        (np.ones(3), r"filter: expected weights of shape \(7,\), got \(3,\)"),
        (-np.ones(M), "filter: expected finite weights >= 0"),
        (np.full(M, np.nan), "filter: expected finite weights >= 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            run(algorithm=SGD(filter=Wrong(weights)))
    expected = r"filter: expected None, a filters\.Filter or an object with its methods, got str, which has no elimin"
    with pytest.raises(TypeError, match=expected):
        SGD(filter="zeno")
    with pytest.raises(TypeError, match="got the class Zeno"):
        SGD(filter=filters.Zeno)
    with pytest.raises(ValueError, match="validation: SGD with these settings needs rows of the training set"):
        run(algorithm=SGD(filter=filters.FLTrust()))
    with pytest.raises(ValueError, match="loss: SGD with these settings needs one with batch_losses; Quadratic has"):
        run(loss=losses.Quadratic([1.0], [[1.0]]), algorithm=SGD(filter=filters.Zeno(0)), validation=rows)
    with pytest.raises(ValueError, match="Safeguard needs the messages of all 7 workers in every round, got 4"):
        run(algorithm=SGD(filter=filters.Safeguard()), participation=0.5)
    with pytest.raises(ValueError, match="Zeno: expected b < 4"):
        run(algorithm=SGD(filter=filters.Zeno(4)), participation=0.5, validation=rows)
    for name in FILTERS:  # a majority is eliminated
        few = simulate(data, parts, **settings(name, attack=attacks.NonFinite(), n_byzantine=5, iterations=30))
        assert set(few.eliminated) == {2, 3, 4, 5, 6}, name
        assert np.isfinite(few.x0).all(), name
    sampled = simulate(data, parts, **settings("zeno", participation=0.8, attack=attacks.NonFinite()))
    assert np.isfinite(sampled.x0).all()


# --- the worst case --------------------------------------------------------------------------------------------------


class Spy:
    """An attack that writes down what it is told."""

    asks_defense = True

    def __init__(self, attack: attacks.Attack) -> None:
        self.attack = attack
        self.seen: list[dict[str, Any]] = []

    def __call__(self, messages: Array, **given: Any) -> Array:
        self.seen.append(given | {"messages": messages})
        return self.attack(messages, **given)


def test_the_worst_case_attacks_filter_and_rule() -> None:
    """It finds a weaker attack against the filter than against the mean, and reports the harm that x0 shows."""
    data, parts, rows = problem()
    attack = attacks.WorstCase("inner-product", high=20.0)
    about = {"n_byzantine": Q, "batch_size": 8, "iterations": 1, "seed": 1, "rho": 0.0, "dtype": "float64"}
    every: list[filters.Filter] = [filters.Zeno(Q), filters.FLTrust(), filters.ByzantineSGD(V=2.0)]
    every.append(filters.Safeguard(5, 0.5))
    for chosen in every:
        spy = Spy(attack)
        sgd = SGD(step=steps.constant(0.5), filter=chosen)
        run = simulate(data, parts, algorithm=sgd, attack=spy, validation=rows, **about)
        (given,) = spy.seen
        messages = given.pop("messages")
        rng = np.random.default_rng(0)
        strength, forged = attack.search(messages, **given | {"rng": rng})
        bare, other = attack.search(messages, **given | {"rng": rng, "defense": None})
        assert bare == 20.0
        without = {name: value for name, value in given.items() if name not in ("k", "rng")}
        harm = attack.harm(messages, forged, **without)
        direction = -(run.x0 - given["x0"]) / 0.5
        assert harm == pytest.approx(np.linalg.norm(direction - messages[: M - Q].mean(axis=0)), rel=1e-9), chosen
        assert harm >= attack.harm(messages, other, **without), chosen
        if chosen != every[-1]:  # with Safeguard the first message of any strength counts
            assert harm < attack.harm(messages, other, **without | {"defense": None}), chosen
            assert strength < bare, chosen


def test_the_worst_case_over_processes() -> None:
    data, parts, _ = problem()
    attack = attacks.WorstCase("sign-flip", grid=3, refine=1)
    for name in ("zeno", "fltrust"):
        given = settings(name, attack=attack, iterations=4)
        assert same_bits(simulate(data, parts, **given).x0, engines.simulate(data, parts, **given).x0)
    for name in ("safeguard", "byzantine-sgd"):
        given = settings(name, attack=attack, iterations=4)
        assert np.isfinite(simulate(data, parts, **given).x0).all()
        with pytest.raises(ValueError, match="attack: it asks for the master's memory of"):
            engines.simulate(data, parts, **given)
