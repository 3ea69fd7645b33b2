"""Draws ``graphs.svg`` and ``decentralized.svg`` of ``decentralized.md``; about a minute.

``python docs/make_decentralized_figure.py``
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

import byzadmm
from byzadmm import attacks, decentralized, graphs, losses, steps
from byzadmm.catalogue import styles

HERE = Path(__file__).parent
NAMES = ["ideal", *byzadmm.catalogue.ON_GRAPHS]
SHOWN: dict[str, tuple[graphs.Graph, list[int]]] = {
    "ring(12, k=2)": (graphs.ring(12, k=2), [3, 8]),
    "torus(3, 4)": (graphs.torus(3, 4), [5, 10]),
    "erdos_renyi(12, 0.5)": (graphs.erdos_renyi(12, 0.5, connected=range(10)), [10, 11]),
    "two_castle(6)": (graphs.two_castle(6), [10, 11]),
    "octopus(6)": (graphs.octopus(6), [10, 11]),
    "two_worlds(6, 1)": (graphs.two_worlds(6, 1), [5, 6]),
}


def draw_graphs(path: Path) -> None:
    """Six graphs on twelve nodes, two of them Byzantine."""
    figure, axes = plt.subplots(2, 3, figsize=(9, 6), layout="constrained")
    for axis, (name, (graph, byzantine)) in zip(axes.flat, SHOWN.items(), strict=True):
        graph.plot(ax=axis, byzantine=byzantine)
        axis.get_legend().remove()
        axis.margins(0.15)
        apart = np.setdiff1d(np.arange(graph.m), byzantine)
        most = int(graph.adjacency[np.ix_(apart, byzantine)].sum(axis=1).max())
        axis.set_title(f"{name}\nrobustness {graph.robustness()}, at most {most} Byzantine neighbors", fontsize=9)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def draw_runs(path: Path) -> None:
    """Accuracies on two graphs, and the models of a ring of four by the penalty."""
    figure, axes = plt.subplots(1, 3, figsize=(13, 3.9), layout="constrained")
    cases: tuple[tuple[str, dict[str, Any]], ...] = (
        (
            "digits i.i.d., Erdos-Renyi 0.5, 4 of 20 flip signs",
            {"graph": "erdos-renyi:0.5", "attacks": attacks.SignFlip(), "n_workers": 20, "n_byzantine": 4},
        ),
        (
            "one label per regular node, two_castle(6), isolation",
            {
                "partition": "by-label:1,among=regular",
                "graph": "two-castle",
                "attacks": attacks.Isolation(),
                "n_workers": 12,
                "n_byzantine": 2,
                "algorithms": {  # such data needs a larger penalty than the usual 0.006 and 0.0084
                    name: f"{name}:lam=0.1" if name in ("dadmm", "drsa") else name for name in NAMES
                },
            },
        ),
    )
    looks = styles(NAMES)
    for axis, (title, settings) in zip(axes, cases, strict=False):
        given = {"algorithms": {name: name for name in NAMES}} | settings
        study = byzadmm.compare("digits", seeds=3, iterations=500, eval_every=20, **given)
        for name in NAMES:
            runs = [study.results[cell] for cell in study.cells(algorithm=name)]
            curves = np.array([run.accuracy for run in runs])
            look, k = looks[name], runs[0].iterations
            label = f"{byzadmm.catalogue.LABELS[name]}: {study.finals(algorithm=name).mean():.3f}"
            print(f"{title}: {label}")
            axis.plot(k, curves.mean(axis=0), color=look.color, linestyle=look.line, label=label)
            axis.fill_between(k, curves.min(axis=0), curves.max(axis=0), color=look.color, alpha=0.15, linewidth=0)
        axis.set(title=title, xlabel="iterations", ylim=(0, 1), xlim=(0, 500))
        axis.legend(fontsize=7, loc="lower right", title="final accuracy", title_fontsize=7)
        axis.grid(alpha=0.25)
    axes[0].set_ylabel("accuracy, mean over regular nodes")
    _draw_penalty(axes[2])
    for axis in axes:
        axis.title.set_fontsize(9)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _draw_penalty(axis: Any) -> None:
    """Where DADMM ends on the ring of four with F_i = (x - b_i)^2/2: the nodes agree from lambda_0 on."""
    ring, b = graphs.ring(4), np.array([2.0, 0.0, -2.0, 0.0])
    penalties = np.linspace(0.05, 1.5, 30)
    ends = []
    for lam in penalties:
        algorithm = decentralized.DADMM(lam=lam, beta=1.0, step=steps.constant(0.2))
        run = decentralized.simulate(
            None, None, loss=losses.Quadratic(np.ones(4), b), graph=ring, algorithm=algorithm, rho=0.0,
            iterations=1500, eval_every=1500, dtype="float64",
        )  # fmt: skip
        assert run.x is not None
        ends.append(run.x.ravel())
    for node, (models, dash) in enumerate(zip(np.array(ends).T, ("-", "--", "-", ":"), strict=True)):
        axis.plot(penalties, models, dash, label=f"node {node}, b = {b[node]:g}")
    axis.axvline(ring.lambda_0(-b), color="0.5", linewidth=0.8)
    axis.annotate("lambda_0", (ring.lambda_0(-b), 1.6), xytext=(4, 0), textcoords="offset points", fontsize=8)
    axis.set(title="DADMM on ring(4), where the models end", xlabel="penalty lam", ylabel="x_i")
    axis.legend(fontsize=7)
    axis.grid(alpha=0.25)


if __name__ == "__main__":
    mpl.rcParams["svg.hashsalt"] = "byzadmm"
    draw_graphs(HERE / "graphs.svg")
    draw_runs(HERE / "decentralized.svg")
