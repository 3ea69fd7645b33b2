"""Draws ``decentralized-tables.png``: ours beside the published accuracies, from the files of ``byzadmm reproduce``.

``byzadmm reproduce peng ios --out figures && python docs/make_decentralized_tables_figure.py figures``
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt

from byzadmm import figures

HERE = Path(__file__).parent
#: Panel -> the part of its maps that is shown, and what stands before the name of an attack.
SHOWN: dict[str, tuple[dict[str, str], str]] = {
    "peng-iid": ({"n_byzantine": "6"}, ""),
    "peng-labels": ({"n_byzantine": "6", "partition": "by-label:3"}, "by label: "),
    "ios-iid": ({}, ""),
    "ios-labels": ({}, ""),
}


def rows_of(folder: Path, panel: str) -> list[dict[str, str]]:
    """The rows of a panel that are shown."""
    with (folder / f"{panel}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [row for row in rows if all(row[key] == value for key, value in SHOWN[panel][0].items())]


def draw(axis: Any, rows: list[dict[str, str]], labels: dict[str, str]) -> None:
    """A dot for ours, a ring for the published number, a line between them."""
    for place, row in enumerate(rows):
        ours = 100 * float(row["mean"])
        color = "#B2182B" if row["algorithm"] == "dadmm" else "#0072B2"
        if row["published"]:
            known = 100 * float(row["published"])
            axis.plot([ours, known], [place, place], color="0.7", linewidth=1, zorder=1)
            axis.plot([known], [place], "o", markerfacecolor="white", markeredgecolor="black", zorder=2)
        axis.plot([ours], [place], "o", color=color, markersize=5, zorder=3)
    axis.set(xlim=(0, 100), ylim=(len(rows) - 0.5, -0.5))
    axis.set_yticks(range(len(rows)), [labels[row["algorithm"]] for row in rows], fontsize=8)
    axis.tick_params(axis="x", labelsize=7)
    axis.grid(axis="x", alpha=0.3)


def main(folder: Path, path: Path) -> None:
    figure = plt.figure(figsize=(12, 8.2), layout="constrained")
    above, middle, below = figure.subfigures(3, 1, height_ratios=(0.62, 1, 1))
    groups = (
        (above, ("peng-iid", "peng-labels"), "Peng, Li, Ling: 30 nodes, 6 attackers"),
        (middle, ("ios-iid",), "Wu, Chen, Ling: two castles, 2 of 12 attack, all labels everywhere"),
        (below, ("ios-labels",), "the same, one label per regular node"),
    )
    for part, panels, heading in groups:
        part.suptitle(heading, fontsize=9)
        columns: list[tuple[str, list[dict[str, str]], dict[str, str]]] = []
        for panel in panels:
            labels = {curve.name: curve.label for curve in figures.load_settings(panel).curves}
            rows = rows_of(folder, panel)
            for attack in dict.fromkeys(row["attack"] for row in rows):
                of_attack = [row for row in rows if row["attack"] == attack]
                columns.append((SHOWN[panel][1] + attack.removeprefix("local-"), of_attack, labels))
        for axis, (title, rows, labels) in zip(
            part.subplots(1, len(columns), sharey="row", squeeze=False)[0], columns, strict=True
        ):
            draw(axis, rows, labels)
            axis.set_title(title, fontsize=8)
    figure.suptitle("accuracy in percent; dots: ours (red: DADMM, which is new), rings: published", fontsize=10)
    figure.savefig(path, dpi=90)
    plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "figures"), HERE / "decentralized-tables.png")
