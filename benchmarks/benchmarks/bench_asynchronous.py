"""Arrivals of asynchronous training with the shapes of MNIST, on one thread."""

from __future__ import annotations

from typing import Any

from byzadmm import asynchronous, attacks, datasets, delays, partition, steps

from .common import PROFILE, normal

STEP = steps.power(1e-3)
ALGORITHMS: dict[str, Any] = {
    "asgd": asynchronous.ASGD(step=STEP),
    "basgd": asynchronous.BASGD(step=STEP, f=6),
    "kardam": asynchronous.Kardam(step=STEP, f=6),
    "zeno++": asynchronous.ZenoPlusPlus(step=steps.constant(1e-3), rho=1e-5),
    "async-rsa": asynchronous.AsyncRSA(step=STEP),
    "async-admm": asynchronous.AsyncADMM(),
    "async-admm, barrier 10": asynchronous.AsyncADMM(barrier=10),
}


class Arrivals:
    """A thousand messages, six of twenty workers Byzantine."""

    param_names = ("algorithm",)
    params = (list(ALGORITHMS),)

    def setup(self, algorithm: str) -> None:
        x, y = normal(PROFILE.samples, PROFILE.features), [n % 10 for n in range(PROFILE.samples)]
        data = datasets.from_arrays(x, y, x[:100], y[:100], name="random")
        held = 20  # samples of the master's own
        parts = [held + part for part in partition.iid(data.train_y[held:], 20, seed=0)]
        self.settings: dict[str, Any] = {"dataset": data, "parts": parts, "threads": 1}
        self.settings |= {"algorithm": ALGORITHMS[algorithm], "attack": attacks.SignFlip(), "n_byzantine": 6}
        self.settings["validation"] = range(held) if ALGORITHMS[algorithm].validates else None
        self.settings |= {"delays": delays.Exponential(), "arrivals": 1000, "eval_every": 10**6}

    def time_arrivals(self, algorithm: str) -> None:
        asynchronous.simulate(**self.settings)

    def track_arrivals_per_second(self, algorithm: str) -> float:
        run = asynchronous.simulate(**self.settings)
        return int(run.arrivals[-1]) / run.seconds

    track_arrivals_per_second.unit = "arrivals/s"  # type: ignore[attr-defined]
