"""Custom losses, attacks and rules: what they are given and what they may return."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import ADMM, RSA, SGD, attacks, simulate, steps
from support.runs import ALGORITHMS, M, Q, equal_runs, quadratic

Array = npt.NDArray[Any]


class Centre:
    """The least that a loss must offer."""

    n_workers, dim = 3, 2

    def __init__(self, made: Any = None) -> None:
        self.made = made
        self.asked: list[tuple[int, int, Array]] = []

    def gradient(self, x: Array, *, worker: int, k: int) -> Any:
        self.asked.append((worker, k, x.copy()))
        g = x - worker
        x[:] = 1e9  # a copy: spoiling it changes nothing
        return g if self.made is None else self.made


def test_a_custom_loss() -> None:
    loss = Centre()
    run = simulate(None, None, loss=loss, algorithm=SGD(step=steps.constant(0.5)), iterations=2, rho=0.0, first_k=7)
    np.testing.assert_array_equal(run.x0, 0.75)
    assert [(worker, k) for worker, k, _ in loss.asked] == [(w, k) for k in (7, 8) for w in range(3)]
    assert np.isnan(run.loss).all()
    assert run.config["loss"] == "Centre(asked=[], made=None)"
    worker_models = Centre()
    simulate(None, None, loss=worker_models, algorithm=RSA(step=steps.constant(0.5)), iterations=2, rho=0.0)
    assert [x.tolist() for _, k, x in worker_models.asked if k == 2] == [[0, 0], [0.5, 0.5], [1.0, 1.0]]


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (np.zeros(3), ValueError, r"loss.gradient: expected shape \(2,\), got \(3,\)"),
        (np.zeros((1, 2)), ValueError, r"loss.gradient: expected shape \(2,\), got \(1, 2\)"),
        (np.zeros(2, complex), TypeError, "loss.gradient: expected real numbers"),
        (["a", "b"], TypeError, "loss.gradient: expected real numbers"),
    ],
)
def test_what_a_loss_may_not_return(made: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        simulate(None, None, loss=Centre(made), algorithm=ADMM(), iterations=1)


class Judged(Centre):
    """One whose ``evaluate`` gives ``found``."""

    found: Any = None

    def evaluate(self, x: Array) -> Any:
        return self.found


def test_what_evaluate_may_not_return() -> None:
    loss = Judged()
    for loss.found in (3.0, {"error": "big"}, {"error": [1.0, 2.0]}, None):
        with pytest.raises(TypeError) as caught:
            simulate(None, None, loss=loss, algorithm=SGD(), iterations=1)
        assert str(caught.value).startswith("loss.evaluate: expected a dict of numbers by name, got "), loss.found


@pytest.mark.parametrize("made", [np.array([np.nan, 0]), np.array([1e300, 0])])
def test_a_loss_may_diverge(made: Array) -> None:
    run = simulate(None, None, loss=Centre(made), algorithm=SGD(), iterations=2)
    assert run.eliminated == {0: 1, 1: 1, 2: 1}
    assert not run.x0.any()


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (np.zeros((2, 3)), ValueError, r"attack: expected messages of shape \(1, 2\), got \(2, 3\)"),
        (np.zeros(2), ValueError, r"attack: expected messages of shape \(1, 2\), got \(2,\)"),
        (None, TypeError, "attack: expected real numbers"),
        (np.zeros((1, 2), complex), TypeError, "attack: expected real numbers"),
    ],
)
@pytest.mark.parametrize("name", ["admm", "rsa", "mean"])
def test_what_an_attack_may_not_return(name: str, made: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        simulate(
            None, None, loss=Centre(), algorithm=ALGORITHMS[name], attack=lambda *_, **__: made, n_byzantine=1,
            iterations=1,
        )  # fmt: skip


def test_what_an_attack_is_given() -> None:
    calls: list[dict[str, Any]] = []

    def attack(messages: Array, **given: Any) -> list[list[int]]:
        calls.append(given | {"messages": messages.copy(), "draw": given["rng"].standard_normal()})
        given["x0"][:] = np.nan  # copies: spoiling them changes nothing
        messages[:] = np.nan
        return [[1, 2], [3, 4]]

    for name, index in (("admm", 6), ("rsa", 5), ("mean", 5)):
        calls.clear()
        settings: dict[str, Any] = {"loss": Centre(), "algorithm": ALGORITHMS[name], "byzantine": [2, 0]}
        run = simulate(None, None, attack=attack, iterations=3, first_k=5, **settings)
        assert run.eliminated == {}
        assert np.isfinite(run.x0).all()
        assert [call["k"] for call in calls] == [index, index + 1, index + 2]
        assert all(call["byzantine"] == [0, 2] and call["algorithm"] is ALGORITHMS[name] for call in calls)
        assert all(call["messages"].shape == (3, 2) and call["x0"].shape == (2,) for call in calls)
        draws = [call["draw"] for call in calls]
        assert len(set(draws)) == 3
        again = simulate(None, None, attack=attack, iterations=3, first_k=5, **settings)
        assert [call["draw"] for call in calls[3:]] == draws
        assert equal_runs(run, again)
        simulate(None, None, attack=attack, iterations=1, first_k=5, seed=1, **settings)
        assert calls[-1]["draw"] != draws[0]
        assert run.config["attack"].endswith("attack")


def test_an_attack_object_may_be_part_of_a_users_attack() -> None:
    def half(messages: Array, **given: Any) -> Array:
        return 0.5 * attacks.SignFlip(-6.0)(messages, **given)

    settings: dict[str, Any] = {"loss": quadratic(), "algorithm": ALGORITHMS["rsa"], "n_byzantine": Q, "iterations": 9}
    mine = simulate(None, None, attack=half, dtype="float64", **settings)
    assert equal_runs(mine, simulate(None, None, attack=attacks.SignFlip(-3.0), dtype="float64", **settings))


@pytest.mark.parametrize("made", [np.zeros(5), np.zeros((1, 2)), 1.0])
def test_what_a_rule_may_not_return(made: Any) -> None:
    with pytest.raises(ValueError, match=r"rule: expected shape \(2,\), got"):
        simulate(None, None, loss=Centre(), algorithm=SGD(rule=lambda X: made), iterations=1)


def test_a_rule_gets_the_messages_of_workers_not_eliminated() -> None:
    shapes: list[tuple[int, ...]] = []

    def rule(X: Array) -> Array:
        shapes.append(X.shape)
        return X[0]

    settings: dict[str, Any] = {"loss": quadratic(), "iterations": 2, "n_byzantine": Q, "attack": attacks.NonFinite()}
    simulate(None, None, algorithm=SGD(rule=rule), **settings)
    simulate(None, None, algorithm=SGD(rule=rule, ideal=True), **settings)
    assert shapes == [(M - Q, 13)] * 4
