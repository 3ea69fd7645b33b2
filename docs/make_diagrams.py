"""Draw the diagrams of docs/how-it-works.md: mean-and-median.svg, bounded-pull.svg and round.svg."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

import byzadmm

__all__ = ["bounded_pull", "mean_and_median", "round_of_admm"]

HERE = Path(__file__).resolve().parent
# Okabe and Ito's palette, told apart with every kind of color vision.
BLACK, ORANGE, GREEN, BLUE, RED = "#000000", "#E69F00", "#009E73", "#0072B2", "#D55E00"


def page(width: float, height: float) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    return figure, figure.subplots()


def mean_and_median() -> Figure:
    """Four regular points and an attacker; where the mean and the geometric median are."""
    rows = np.array([[1.0, 1.0], [1.6, 0.7], [1.3, 1.5], [0.8, 1.3], [7.0, 3.2]])
    figure, ax = page(7.2, 2.6)
    ax.scatter(*rows[:4].T, s=60, color=BLUE, label="regular workers")
    ax.scatter(*rows[4:].T, s=80, color=RED, marker="X", label="attacker")
    for name, marker, color in (("mean", "D", ORANGE), ("geometric_median", "s", GREEN)):
        point = getattr(byzadmm, name)(rows)
        ax.scatter(*point, s=80, color=color, marker=marker, label=name.replace("_", " "), zorder=3)
    ax.annotate(
        "",
        rows[:4].mean(axis=0) + np.array([0.25, 0.1]),
        byzadmm.mean(rows) - np.array([0.1, 0.04]),
        arrowprops={"arrowstyle": "<-", "color": ORANGE, "linestyle": ":"},
    )
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    ax.legend(loc="upper center", ncols=2, frameon=False)
    return figure


def bounded_pull() -> Figure:
    """What a worker at a distance does to an element of the master's model."""
    figure, ax = page(6.4, 2.8)
    t = np.linspace(-3, 3, 301)
    ax.plot(t, t, color=ORANGE, linewidth=2, label="mean: as far as it says")
    ax.plot(t, np.sign(t), color=BLUE, linewidth=2, linestyle="--", label="RSA: lam or nothing")
    ax.plot(t, np.clip(t, -1, 1), color=GREEN, linewidth=2.4, label="ADMM: the dual, at most lam")
    ax.set_yticks([-1, 0, 1], ["-lam", "0", "lam"])
    ax.set_xticks([0], ["$x_0$"])
    ax.set_xlabel("what a worker says about one element")
    ax.set_ylabel("pull on the master")
    ax.set_ylim(-2.2, 2.2)
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="upper left")
    return figure


def round_of_admm() -> Figure:
    """The master above, four workers below, what travels between them."""
    figure, ax = page(8.4, 3.7)
    ax.set_xlim(0, 12)
    ax.set_ylim(0, 5.6)
    ax.set_axis_off()
    box: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 10}
    master = {"boxstyle": "round,pad=0.5", "facecolor": "#F2F2F2", "edgecolor": BLACK}
    ax.text(
        6,
        4.8,
        "master: $x_0$ from the duals it holds\neliminates whoever sends a number beyond $\\lambda$",
        bbox=master,
        **box,
    )
    for i, x in enumerate((1.5, 4.5, 7.5, 10.5)):
        attacker = i == 3
        color = RED if attacker else BLUE
        text = (
            "attacker: anything;\nbeyond $\\lambda$ it is\neliminated"
            if attacker
            else f"worker {i + 1}: $x_{i + 1}$, its data\na step, then\nits dual $\\eta_{i + 1}$"
        )
        ax.text(x, 0.8, text, bbox={"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": color}, **box)
        top = 6 + 0.28 * (x - 6)
        ax.annotate("", (x - 0.25, 1.75), (top - 0.15, 3.95), arrowprops={"arrowstyle": "->", "color": "0.5"})
        ax.annotate(
            "", (top + 0.15, 3.95), (x + 0.25, 1.75), arrowprops={"arrowstyle": "->", "color": color, "linewidth": 1.6}
        )
    ax.text(1.2, 3.3, "$x_0$ down", color="0.35", fontsize=10)
    ax.text(9.2, 3.3, "$\\eta_i \\in [-\\lambda, \\lambda]$ up", color=BLUE, fontsize=10)
    return figure


if __name__ == "__main__":
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "byzadmm", "font.family": "sans-serif"}):
        for name, draw in {
            "mean-and-median": mean_and_median,
            "bounded-pull": bounded_pull,
            "round": round_of_admm,
        }.items():
            draw().savefig(HERE / f"{name}.svg", metadata={"Date": None})
