"""Draw docs/attack.png, the picture of README: accuracy on MNIST under two attacks, ours over the published curves.

It needs the MNIST files (``BYZADMM_DATA``).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import byzadmm
from byzadmm import datasets, figures
from byzadmm.catalogue import styles
from byzadmm.figures.published import published_curves

__all__ = ["readme_figure"]

HERE = Path(__file__).resolve().parent
TITLES = {
    "fig2a": "8 of 20 workers send their message times -3",
    "fig3a": "every worker has one digit, 4 of 20 send copies",
}


def readme_figure(path: Path, seeds: int) -> None:
    """Both panels with the printed settings; what is in them as text."""
    data = datasets.load("mnist", scale="raw")
    figure = Figure(figsize=(9.6, 3.9), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    handles: dict[str, Any] = {}
    for (name, title), ax in zip(TITLES.items(), figure.subplots(1, 2, sharey=True), strict=True):
        settings = figures.load_settings(name)
        curves, published = settings.read("printed"), published_curves(settings)
        study = byzadmm.compare(
            data,
            algorithms={curve.plain_label: curve.algorithm for curve in curves.values()},
            partition=settings.partitions[0],
            attacks=settings.attacks[0],
            n_byzantine=settings.n_byzantine,
            seeds=seeds,
            iterations=settings.iterations,
            eval_every=settings.eval_every,
            rho=settings.rho,
        )
        looks = styles([curve.style for curve in curves.values()])
        for known, curve in curves.items():
            look = looks[curve.style]
            runs = [study.results[cell] for cell in study.cells(algorithm=curve.plain_label)]
            values = np.array([run.accuracy for run in runs])
            k = runs[0].iterations
            ax.fill_between(k, values.min(axis=0), values.max(axis=0), color=look.color, alpha=0.15, linewidth=0)
            [line] = ax.plot(k, values.mean(axis=0), color=look.color, linestyle=look.line, linewidth=2.4)
            handles.setdefault(curve.plain_label, line)
            ours = np.mean([run.final_accuracy() for run in runs])
            line_of_text = f"{name}  {curve.plain_label:<17} ours {ours:.3f}"
            if known in published:
                theirs = published[known]
                ax.plot(theirs.iterations, theirs.accuracy, color=look.color, linewidth=0.8, zorder=4)
                line_of_text += f"  published {theirs.final:.3f}"
            print(line_of_text)
        ax.set_title(title, fontsize=11)
        ax.set_xlim(0, k[-1])
        ax.set_ylim(0, 1)
        ax.set_xlabel("iterations")
        ax.grid(alpha=0.25, linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("accuracy on MNIST")
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), handlelength=3)
    figure.suptitle(f"thick: byzadmm, mean and range of {seeds} seeds; thin: as published", fontsize=10, color="0.3")
    figure.savefig(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=HERE / "attack.png")
    given = parser.parse_args()
    readme_figure(given.out, given.seeds)
