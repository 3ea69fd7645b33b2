"""Draws ``redundancy.svg``: redundant gradients under attack have the curve of the mean without one."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from byzadmm import SGD, attacks, datasets, partition, redundancy, simulate

HERE = Path(__file__).parent
BLACK, ORANGE, BLUE, GREEN = "black", "#E69F00", "#0072B2", "#009E73"


def redundancy_figure(path: Path) -> None:
    """15 workers on digits, 3 of them Byzantine; prints the largest differences between models."""
    mpl.rcParams["svg.hashsalt"] = "byzadmm"
    data = datasets.load("digits")
    parts = partition.iid(data.train_y, 15, seed=0)
    common = {"iterations": 300, "eval_every": 10, "dtype": "float64"}
    alone = simulate(data, parts, algorithm=SGD.for_dataset(data), **common)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
    kinds = {"sign flip": attacks.SignFlip(), "Gaussian": attacks.Gaussian()}
    curves = {
        "mean": (dict(rule="mean"), GREEN, ":"),
        "geometric median": (dict(rule="geometric_median"), BLUE, "-."),
        "Cyclic(f=3)": (dict(coding=redundancy.Cyclic(f=3)), ORANGE, "--"),
    }
    for axis, (title, attack) in zip(axes, kinds.items(), strict=True):
        axis.plot(alone.iterations, alone.accuracy, color=BLACK, linewidth=3, label="mean, no attack")
        for label, (settings, color, dash) in curves.items():
            algorithm = SGD.for_dataset(data, **settings)
            run = simulate(data, parts, algorithm=algorithm, attack=attack, n_byzantine=3, **common)
            axis.plot(run.iterations, run.accuracy, dash, color=color, linewidth=1.6, label=label)
            apart = np.abs(run.x0 - alone.x0).max() / np.abs(alone.x0).max()
            print(f"{title}: {label}: final accuracy {run.final_accuracy():.3f}, model apart by {apart:.1e}")
        axis.set(title=f"{title}, 3 of 15 workers", xlabel="iteration")
        axis.grid(alpha=0.25)
    print(f"mean, no attack: final accuracy {alone.final_accuracy():.3f}")
    axes[0].set_ylabel("accuracy")
    axes[0].legend(frameon=False, fontsize=8, loc="lower right")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    redundancy_figure(HERE / "redundancy.svg")
