"""Asynchronous SGD and its dampening; the two filters of Kardam."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from byzadmm import asynchronous, delays, losses, steps
from byzadmm.asynchronous import ASGD, Arrival, Kardam
from byzadmm.asynchronous.experiment import AsyncExperiment
from support.asynchronous import differences, run
from support.runs import Array, quadratic

STEP = steps.constant(0.05)


class Watched(Kardam):
    """Notes whom it accepts."""

    def receive(self, run: Any, state: Any, arrival: Arrival) -> bool:
        taken = super().receive(run, state, arrival)
        if taken:
            SENDERS.append(arrival.worker)
        return taken


SENDERS: list[int] = []


def test_dampening() -> None:
    for kind in ("inverse", "exponential", None, lambda tau: 0.5**tau):
        factor = ASGD(STEP, dampening=kind).factor
        assert factor(0) == 1.0, kind
        values = [factor(tau) for tau in range(200)]
        assert all((a > b > 0) if kind else a == b == 1 for a, b in itertools.pairwise(values)), kind
    assert ASGD(STEP, dampening="inverse").factor(3) == 0.25
    assert ASGD(STEP, dampening="exponential").factor(3) == pytest.approx(np.exp(-0.6), rel=1e-15)
    assert Kardam(STEP).dampening == "inverse"
    wrong_ones = ((lambda tau: -1.0, ValueError), (lambda tau: np.nan, ValueError), (lambda tau: None, TypeError))
    for wrong, error in wrong_ones:
        with pytest.raises(error, match="dampening: at staleness 0"):
            run(ASGD(STEP, dampening=wrong), updates=1)
    with pytest.raises(ValueError, match="dampening: expected one of"):
        ASGD(STEP, dampening="none")


def test_a_step_shrinks_with_the_staleness_of_its_message() -> None:
    """Worker 1 answers after three updates of worker 0, all from the same gradient."""
    loss = losses.Quadratic([1.0, 1.0], [[8.0], [8.0]])
    times = delays.Replay([[1.0, 1.0, 1.0, 9.0], [3.5, 9.0, 9.0, 9.0]])
    found = asynchronous.simulate(None, None, loss=loss, algorithm=ASGD(steps.constant(0.5), dampening="inverse"),
                                  delays=times, updates=4, eval_every=1, rho=0.0, record="trajectory")  # fmt: skip
    assert found.trajectory is not None
    assert found.trajectory["x0"][:, 0].tolist() == [0.0, 4.0, 6.0, 7.0, 8.0]  # 0.5 * 8 / 4 with staleness 3
    assert found.staleness is not None
    assert found.staleness.tolist() == [3, 0, 0, 1]
    assert found.time is not None
    assert found.time.tolist() == [0.0, 1.0, 2.0, 3.0, 3.5]


class Same:
    """The same gradient everywhere: nothing changes, and everything is smooth."""

    n_workers, dim = 5, 3

    def gradient(self, x: Array, *, worker: int, k: int) -> Array:
        return np.array([1.0, -2.0, 0.5])


def test_without_attackers_and_with_smooth_gradients_it_is_asynchronous_sgd() -> None:
    alone = quadratic(1, 4)  # one worker: its own coefficients are what it is compared with
    for loss, delay in ((Same(), delays.Exponential()), (Same(), 1.0), (alone, delays.Exponential())):
        plain, kardam = (run(kind(STEP, dampening=None), loss=loss, delays=delay, updates=50, dtype="float64")
                         for kind in (ASGD, Kardam))  # fmt: skip
        assert not set(differences(plain, kardam)) - {"too_frequent"}, loss
        assert kardam.rejected is not None
        assert not kardam.rejected.any()


def test_accepted_senders_are_all_different() -> None:
    """In any 2 f + 1 gradients accepted in turn, also where f attackers collude and are a hundred times as fast."""
    for f, m in ((1, 4), (2, 7), (3, 10)):
        speeds = delays.PerWorker([delays.Exponential(0.01 if worker < f else 1.0) for worker in range(m)])
        SENDERS.clear()
        found = run(Watched(STEP, f=f), loss=quadratic(m, 3, noise=0.1), delays=speeds, arrivals=1200,
                    byzantine=list(range(f)), attack=lambda messages, byzantine, **_: messages[byzantine])  # fmt: skip
        window = 2 * f + 1
        turns = [SENDERS[i : i + window] for i in range(len(SENDERS) - window + 1)]
        assert len(turns) > 10, f
        assert all(len(set(turn)) == window for turn in turns), f
        assert all(sum(sender >= f for sender in turn) >= f + 1 for turn in turns), f
        assert found.events is not None
        # Without the filter they would be nearly all: a count of one's own gradients alone lets 2 f of 2 f + 1 pass.
        assert found.events["too_frequent"][:f].sum() > 300, f
        assert found.accepted is not None
        assert found.accepted[:f].sum() <= f / window * found.accepted.sum() + f, f


def jumps(k_from: int) -> Any:
    def attack(messages: Array, *, byzantine: Any, k: int, **_: Any) -> Array:
        return messages[byzantine] * (1e6 if k > k_from else 1.0)

    return attack


class Master:
    """One master, told by the test what arrives; its workers have sent a few gradients that change a little."""

    def __init__(self, m: int, f: int, d: int = 2) -> None:
        self.algorithm, self.d, self.t = Kardam(STEP, f=f), d, 0
        loss = quadratic(m, d)
        self.setup = AsyncExperiment(None, None, algorithm=self.algorithm, loss=loss, delays=1.0, dtype="float64")
        self.state: dict[str, Any] = {"x0": np.zeros(d), "eliminated": np.full(m, -1), "left": np.array(m)}
        self.state |= self.algorithm.master_state(self.setup)
        for turn in range(3):
            for worker in range(m):
                self.hears(worker, 1 + 0.1 * (-1) ** turn)

    def hears(self, worker: int, g: float) -> bool:
        state = self.state
        taken = self.algorithm.receive(self.setup, state, Arrival(worker, np.full(self.d, g), state["x0"].copy(), 0, 0))
        if taken:
            self.algorithm.move(self.setup, state, self.t)
            self.t += 1
        return taken

    def hears_the_last_again(self) -> bool:
        """From a sender that is not frequent."""
        return self.hears(self.rare()[0], float(self.state["last"][0]))

    def rare(self) -> list[int]:
        return [worker for worker in range(self.setup.m) if worker not in self.state["senders"]]


def test_a_gradient_that_jumps_is_rejected_once_there_is_something_to_compare_with() -> None:
    for m, f in ((4, 1), (7, 2)):
        master = Master(m, f)
        for turn in range(20):
            assert master.hears_the_last_again(), (m, turn)
            x0 = master.state["x0"].copy()
            for jump in (1e6, -1e6, 1e300):  # it raises the attackers' own coefficients
                assert not master.hears(m - 1 - turn % f, jump), (m, turn, jump)
            assert np.array_equal(master.state["x0"], x0), (m, turn)


def test_the_scale_of_the_losses_changes_no_decision() -> None:
    base = quadratic(7, 4)
    found = []
    for c in (1.0, 2.0**-20, 2.0**20):
        loss = losses.Quadratic(c * base.a, base.b)
        found.append(run(Kardam(steps.constant(0.1 / c), f=2), loss=loss, updates=150, rho=0.0, dtype="float64",
                         attack=jumps(15), byzantine=[2]))  # fmt: skip
    assert found[0].rejected is not None
    assert found[0].rejected.sum() > 20
    for other in found[1:]:
        assert not set(differences(found[0], other)) - {"loss"}


def test_after_m_rejections_running_the_next_message_counts() -> None:
    for m, f in ((4, 1), (7, 2)):
        master = Master(m, f)
        assert master.hears_the_last_again(), m
        for i in range(m):
            assert not master.hears(m - 1, (-1.0) ** i * 10.0 ** (3 + i)), (m, i)
        rare = [worker for worker in master.rare() if worker < m - 1]
        assert master.hears(rare[0], 1e3), m
        assert not master.hears(rare[0], float(master.state["last"][0])), m  # a frequent sender, however smooth


def test_what_is_illegal() -> None:
    with pytest.raises(ValueError, match=r"f: expected 3 f \+ 1 <= 7 workers, f <= 2, got 3"):
        run(Kardam(STEP, f=3), updates=1)
    for changes in ({"f": -1}, {"history": 0}, {"momentum": 1.0}):
        with pytest.raises(ValueError, match=next(iter(changes))):
            Kardam(STEP, **changes)  # type: ignore[arg-type]
    assert Kardam(STEP).declaring(2).f == 2
    assert Kardam(STEP, f=1).declaring(2).f == 1
