"""The picture of a comparison: how many times faster kernels are than their peers, and a roofline of the main ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from measure import Measured
from roofline import measure_points, measure_roof

__all__ = ["draw"]

# Okabe and Ito's palette, told apart with every kind of color vision.
PEERS = {"ByzFL": "#D55E00", "Flower": "#CC79A7", "PyTorch": "#56B4E9", "NumPy": "#0072B2"}
AREAS = ("rules, float32, one thread", "peers, float32, one thread")
#: Rows against ourselves are no comparison with a peer.
OURS = ("our", "the ", "same", "one ", "fused", "gradient", "matmul 1024")


def peer(measured: Measured) -> str:
    """Whom a row compares with."""
    against = measured.row.against
    return next((name for name in PEERS if name.lower() in against.lower()), "NumPy")


def speed(measured: Measured) -> float:
    """How many times faster ours is."""
    return 1 / measured.ratio if measured.row.at_most is not None else measured.ratio


def bars(done: Sequence[Measured], ax: Any) -> None:
    """Speed of ours in units of the peer's, on one thread, fastest above."""
    chosen = sorted((m for m in done if m.row.area in AREAS and not m.row.against.startswith(OURS)), key=speed)
    places = np.arange(len(chosen))
    ax.barh(places, [speed(m) for m in chosen], color=[PEERS[peer(m)] for m in chosen])
    ax.set_yticks(places, [f"{m.row.what}  /  {m.row.against}" for m in chosen], fontsize=6)
    for place, m in zip(places, chosen, strict=True):
        ax.text(speed(m) * 1.05, place, f"{speed(m):.3g}", va="center", fontsize=6)
    ax.set_xscale("log")
    ax.set_ylim(-0.7, len(chosen) - 0.3)
    ax.margins(x=0.15)
    ax.axvline(1, color="0.3", linewidth=0.8)
    ax.set_xlabel("times faster than the peer, one thread")
    found = {peer(m) for m in chosen}
    for name, color in PEERS.items():
        if name in found:
            ax.barh([-9], [1], color=color, label=name)
    ax.legend(loc="lower right", fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)


def roofline(ax: Any, seconds: float) -> None:
    """Operations per second against operations per byte, under what memory and one core can do."""
    roof = measure_roof(seconds)
    intensity = np.geomspace(0.1, 200, 100)
    ax.plot(intensity, np.minimum(roof.bytes * intensity, roof.flops) / 1e9, color="0.3")
    print(f"\nroofline: {roof.bytes / 1e9:.1f} GB/s (sum of rows), {roof.flops / 1e9:.0f} GFLOP/s (matrix product)")
    for point, took in measure_points(seconds):
        rate, x = point.flops / took, point.flops / point.bytes
        share = rate / min(roof.bytes * x, roof.flops)
        moved = point.bytes / took / 1e9
        print(f"{point.name:<34} {rate / 1e9:>8.1f} GFLOP/s  {moved:>7.1f} GB/s  {share:>5.0%} of the roof")
        cached = "7850" in point.name or "softmax" in point.name
        ax.plot(x, rate / 1e9, marker="o" if cached else "s", color="#0072B2" if cached else "#D55E00")
        beside = (4, -8 if cached else 4)
        ax.annotate(point.name, (x, rate / 1e9), xytext=beside, textcoords="offset points", fontsize=6.5)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("operations per byte; circles: in the cache, where memory is no limit", fontsize=8)
    ax.set_ylabel("GFLOP/s")
    ax.grid(alpha=0.25, which="both", linewidth=0.5)


def draw(done: Sequence[Measured], path: Path, title: str, *, seconds: float) -> None:
    """Write the picture, and print what the roofline shows."""
    figure = Figure(figsize=(12, 10), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    bars(done, left)
    roofline(right, seconds)
    figure.suptitle(title, fontsize=9)
    figure.savefig(path)
