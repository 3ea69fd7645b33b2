"""Draws ``asynchronous.svg`` and prints the tables of ``asynchronous.md``, on MNIST with 32 samples a job.

``python docs/make_asynchronous_figure.py [figure] [kardam] [table]``; all three take about ten minutes on two cores.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

import byzadmm
from byzadmm import ADMM, attacks, datasets, delays, partition, steps
from byzadmm.asynchronous import ASGD, BASGD, AsyncADMM, AsyncRSA, Kardam, ZenoPlusPlus, simulate

HERE = Path(__file__).parent
QUICK, SLOW = delays.LogNormal(1.0, sigma=0.2), 10.0  # seconds of most workers; factor of a slow one


def straggler_figure(path: Path) -> None:
    """20 workers, the first ten times slower: ADMM in rounds against ADMM without them, with and without an attack."""
    mpl.rcParams["svg.hashsalt"] = "byzadmm"
    data = datasets.load("mnist")
    kinds = {
        "in rounds": (ADMM.for_dataset(data), "black", "-"),
        "barrier 10": (AsyncADMM.for_dataset(data, barrier=10), "#D55E00", "-"),
        "barrier 1": (AsyncADMM.for_dataset(data, barrier=1), "#0072B2", "--"),
    }
    study = byzadmm.compare(
        data,
        algorithms={name: algorithm for name, (algorithm, _, _) in kinds.items()},
        attacks={"no attack": None, "8 of 20 flip signs": attacks.SignFlip()},
        n_byzantine=8,
        seeds=3,
        delays=delays.Stragglers(QUICK, workers=[0], factor=SLOW),
        until=2000.0,
        eval_time=20.0,
    )
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
    for axis, attack, goal in zip(axes, study.axes["attack"], (0.87, 0.84), strict=True):
        for name, (_, color, dash) in kinds.items():
            runs = [study.results[cell] for cell in study.cells(algorithm=name, attack=attack)]
            accuracy, time = np.array([run.accuracy for run in runs]), runs[0].time
            axis.plot(time, accuracy.mean(axis=0), dash, color=color, label=name)
            axis.fill_between(time, accuracy.min(axis=0), accuracy.max(axis=0), color=color, alpha=0.2, linewidth=0)
            reached = [next((t for t, a in zip(time, run.accuracy, strict=True) if a >= goal), None) for run in runs]
            stale = sum(int(run.staleness @ np.arange(len(run.staleness))) for run in runs)
            print(
                f"{attack}: {name}: {goal} at time {', '.join(f'{t or np.inf:g}' for t in reached)}; at the end "
                f"{accuracy[:, -1].mean():.3f} after {runs[0].iterations[-1]} updates, "
                f"mean staleness {stale / sum(int(run.arrivals[-1]) for run in runs):.1f}"
            )
        axis.set(title=attack, xlabel="simulated time", ylim=(0.6, 0.9))
        axis.grid(alpha=0.25)
    axes[0].set_ylabel("accuracy")
    axes[0].legend(title="ADMM, one worker ten times slower", frameon=False, fontsize=9, loc="lower right")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


class OwnCoefficient(Kardam):
    """Kardam that looks at the last coefficient of the sender itself, in place of one with the last accepted."""

    def receive(self, run: Any, state: Any, arrival: Any) -> bool:
        self.__dict__["sender"] = arrival.worker
        return super().receive(run, state, arrival)

    def _is_smooth(self, state: Any, g: Any, m: int) -> bool:
        sender, largest = self.__dict__["sender"], state["largest"]
        own = state["coefficients"][sender, (state["received"][sender] - 2) % self.history]
        known = np.sort(largest[largest >= 0])
        return not len(known) or own <= known[max(int(np.ceil((m - self.f) / m * len(known))) - 1, 0)]


def kardam_table() -> None:
    """30 workers, messages ``-10 g``: how often Kardam rejects whom, and what ASGD, Kardam and BASGD reach."""
    data = datasets.load("mnist")
    parts = partition.iid(data.train_y, 30, seed=0)
    common: dict[str, Any] = {"attack": attacks.SignFlip(-10.0), "delays": delays.Exponential(), "arrivals": 30_000}
    cold = lambda messages, *, byzantine, k, **_: messages[byzantine] * (-10 if k > 300 else 1)  # noqa: E731
    steady = lambda worker, job, rng: max(0.05, 1 + 0.25 * rng.standard_normal())  # noqa: E731
    readings: dict[str, tuple[type[Kardam], dict[str, Any], dict[str, Any]]] = {
        "as above": (Kardam, {}, {}),
        "last coefficient of each worker, not the largest of 25": (Kardam, {"history": 1}, {}),
        "the sender's own last coefficient is compared": (OwnCoefficient, {}, {}),
        "workers' momentum 0.9": (Kardam, {"momentum": 0.9}, {}),
        "no dampening": (Kardam, {"dampening": None}, {}),
        "300 clean updates first": (Kardam, {}, {"attack": cold}),
        "delays normal, 1 +- 0.25": (Kardam, {}, {"delays": steady}),
        "steps 1000 times as long": (Kardam, {"step": steps.power(0.1 / np.sqrt(30))}, {}),
    }
    print("| f | Kardam rejects regular / Byzantine | by frequency alone | ASGD | Kardam | BASGD |")
    for f in (3, 8):
        step = steps.power(1e-4 / np.sqrt(30))
        runs = {
            "ASGD": simulate(data, parts, algorithm=ASGD(step=step), n_byzantine=f, **common),
            "Kardam": simulate(data, parts, algorithm=Kardam(step=step, f=f), n_byzantine=f, **common),
            "BASGD": simulate(
                data, parts, algorithm=BASGD.for_dataset(data, buffers=3 * f + 1, f=f), n_byzantine=f, **common
            ),
        }
        rates, frequent = runs["Kardam"].rejection_rates(), runs["Kardam"].events["too_frequent"].sum()
        ends = " | ".join(f"{run.final_accuracy():.3f}" for run in runs.values())
        share = frequent / common["arrivals"]
        print(f"| {f} | {rates['regular']:.3f} / {rates['byzantine']:.3f} | {share:.3f} | {ends} |")
    print("| reading | f = 3 | f = 8 |\n|---|---:|---:|")
    for name, (kind, settings, changes) in readings.items():
        cells = []
        for f in (3, 8):
            algorithm = kind(**({"step": steps.power(1e-4 / np.sqrt(30)), "f": f} | settings))
            run = simulate(data, parts, algorithm=algorithm, n_byzantine=f, **(common | changes))
            rates = run.rejection_rates()
            cells.append(f"{rates['regular']:.3f} / {rates['byzantine']:.3f}")
        print(f"| {name} | {' | '.join(cells)} |")


def fast_attackers(base: Any, byzantine: list[int]) -> delays.PerWorker:
    """The Byzantine workers answer ten times as fast."""
    quick = delays.LogNormal(0.1, sigma=0.2)
    return delays.PerWorker([quick if worker in byzantine else base for worker in range(20)])


def all_algorithms() -> None:
    """20 workers, six of them Byzantine, two of the others ten times slower: final accuracies at the same time."""
    data, q, held = datasets.load("mnist"), 6, 500
    constant = ZenoPlusPlus.for_dataset(data)
    kinds = {
        "ideal": "ideal",
        "ADMM in rounds": "admm",
        "NNM + trimmed mean in rounds": "nnm+trimmed-mean",
        "AsyncADMM, barrier 10": AsyncADMM.for_dataset(data, barrier=10),
        "AsyncRSA, barrier 10": AsyncRSA.for_dataset(data, barrier=10),
        "ASGD": ASGD.for_dataset(data),
        "Kardam": Kardam.for_dataset(data, f=q),
        "BASGD, median, 20 buffers": BASGD.for_dataset(data, f=q, buffers=20),
        "BASGD, nnm+trimmed mean, 20 buffers": BASGD.for_dataset(data, rule="nnm+trimmed_mean", f=q, buffers=20),
        "Zeno++": constant,
    }
    slow = delays.Stragglers(QUICK, workers=[0, 1], factor=SLOW)
    byzantine = list(range(20 - q, 20))
    cases: dict[str, tuple[Callable[..., Any] | None, Any]] = {
        "none": (None, slow),
        "sign flip": (attacks.SignFlip(), slow),
        "sign flip, attackers ten times faster": (attacks.SignFlip(), fast_attackers(slow, byzantine)),
        "Gaussian": (attacks.Gaussian(), slow),
        "ALIE": (attacks.ALIE(), slow),
    }
    found: dict[str, list[float]] = {name: [] for name in kinds}
    for attack, pace in cases.values():
        study = byzadmm.compare(
            data, algorithms=kinds, attacks=attack, n_byzantine=q, seeds=3, delays=pace, until=500.0, validation=held
        )
        for name in kinds:
            found[name].append(float(study.finals(algorithm=name).mean()))
    print(f"| | {' | '.join(cases)} |")
    print("|---|" + "---:|" * len(cases))
    for name, values in found.items():
        print(f"| {name} | {' | '.join(f'{value:.3f}' for value in values)} |")


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["figure", "kardam", "table"]
    if "figure" in wanted:
        straggler_figure(HERE / "asynchronous.svg")
    if "kardam" in wanted:
        kardam_table()
    if "table" in wanted:
        all_algorithms()
