"""The record of one panel: what a settings file says, checked; ``figures.parser`` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from byzadmm import catalogue, losses
from byzadmm.algorithms import Algorithm
from byzadmm.attacks import Attack
from byzadmm.datasets import Dataset

__all__ = [
    "FIGURES",
    "Case",
    "Curve",
    "Search",
    "Settings",
    "build_algorithm",
    "make_parts",
    "settings_path",
]

#: The panels that come with the package: those of the paper in its order, and the rules under every attack.
FIGURES = ("fig1a", "fig1b", "fig2a", "fig2b", "fig3a", "fig3b", "fig4a", "fig4b", "fig5a", "fig5b", "example", "rules")

#: Settings of an experiment that a file may have; ``training.experiment`` has their defaults and checks.
TRAINING = ("iterations", "eval_every", "batch_size", "rho")


@dataclass(frozen=True)
class Curve:
    """One algorithm of a panel.

    Attributes
    ----------
    name : str
        Its name in the file.
    kind : str
        Its name in the catalogue.
    label : str
        What it is called in the legend.
    algorithm : Algorithm
    printed : bool
        Whether its settings are those that the paper prints; a search leaves them alone.
    validation : float or None
        Final accuracy of the settings on the validation samples of the search that found them.
    """

    name: str
    kind: str
    label: str
    algorithm: Algorithm
    printed: bool = False
    validation: float | None = None


@dataclass(frozen=True)
class Case:
    """Attack, number of Byzantine workers and partition of one plot of a panel, or of one column of a heat map."""

    attack: Attack | None
    n_byzantine: int
    partition: str


@dataclass(frozen=True)
class Search:
    """How ``tune`` searches: trials per algorithm, seed, iterations of a trial, and the ranges that the file gives."""

    budget: int
    seed: int
    iterations: int
    ranges: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Settings:
    """One panel, checked.

    ``attacks`` has one entry per plot of the panel; None is "no attack". ``sweep`` lists the values of ``lam`` with
    which every ADMM of the file is run. ``heat_map`` lists the number of Byzantine workers and the partition of every
    map; a panel that has it shows final accuracies, algorithms by attacks. ``seeds`` is the largest number of seeds.
    """

    name: str
    title: str
    path: Path
    dataset: str
    scale: float | str | None
    partition: str
    alpha: float
    n_workers: int
    n_byzantine: int
    attacks: tuple[Attack | None, ...]
    iterations: int
    eval_every: int
    batch_size: int
    rho: float
    curves: tuple[Curve, ...]
    sweep: tuple[float, ...] = ()
    search: Search | None = None
    quadratic: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    heat_map: tuple[tuple[int, str], ...] = ()
    seeds: int | None = None

    def arguments(self) -> dict[str, Any]:
        """What all runs of the panel have in common, as arguments of ``simulate``."""
        common: dict[str, Any] = {name: getattr(self, name) for name in TRAINING}
        if self.quadratic:
            common |= {
                "loss": self.loss(),
                "x0_init": [self.quadratic["x0"]],
                "x_init": [[value] for value in self.quadratic["x"]],
                "first_k": self.quadratic["first_k"],
                "dtype": "float64",
                "record": "trajectory",
            }
        return common

    def cases(self) -> tuple[Case, ...]:
        """One per attack; in a heat map one per attack for every map."""
        maps = self.heat_map or ((self.n_byzantine, self.partition),)
        return tuple(Case(attack, q, partition) for q, partition in maps for attack in self.attacks)

    def algorithm(self, curve: Curve, case: Case) -> Algorithm | None:
        """The algorithm of a curve; in a heat map a rule's ``f`` is the number of Byzantine workers by default.

        None: nothing to run, as the rule does not tolerate that ``f``, or as it is Ideal SGD, which is the same under
        every attack, for another attack than the first.
        """
        made = curve.algorithm
        if not self.heat_map:
            return made
        if made.ideal:
            return made if case.attack is self.attacks[0] else None
        made = made.declaring(case.n_byzantine)
        try:
            made.check(self.n_workers)
        except ValueError:
            return None
        return made

    def all_curves(self) -> tuple[Curve, ...]:
        """The curves to draw: those of the file, or one per value of the sweep."""
        if not self.sweep:
            return self.curves
        return tuple(
            replace(
                curve,
                name=f"{curve.name}:lam={lam:g}",
                label=f"{curve.kind.upper()}, λ = {lam:g}",
                algorithm=curve.algorithm.changed(lam=lam),
            )
            for curve in self.curves
            if curve.kind == "admm"
            for lam in self.sweep
        )

    def words(self, partition: str) -> str:
        """The name of a partition, with ``alpha`` where it has one."""
        return f"Dirichlet({self.alpha:g})" if partition == "dirichlet" else partition

    def quick(self) -> Settings:
        """The same with a fifth of the iterations, for a first look; not the paper's."""
        iterations = max(1, self.iterations // 5)
        return replace(self, iterations=iterations, eval_every=max(1, min(self.eval_every, iterations // 10)))

    def loss(self) -> losses.Quadratic | str:
        """What the workers minimize."""
        return losses.Quadratic(self.quadratic["a"], self.quadratic["b"]) if self.quadratic else "softmax"


def settings_path(name_or_path: str | Path) -> Path:
    """The file of a panel of the package, or the path itself."""
    text = str(name_or_path)
    if text in FIGURES:
        return Path(str(resources.files("byzadmm.figures"))) / "settings" / f"{text}.toml"
    path = Path(text)
    if not path.is_file():
        hint = "" if path.suffix == ".toml" else f"; panels are {', '.join(FIGURES)}"
        raise ValueError(f"{text}: no such settings file{hint}")
    return path


def make_parts(settings: Settings, dataset: Dataset, seed: int, kind: str | None = None) -> list[Any]:
    """The workers' parts of the training set for one seed; ``kind`` if not the partition of the file."""
    name = kind or settings.partition
    own = {"per_label": max(1, settings.n_workers // max(1, dataset.n_classes)), "alpha": settings.alpha}
    entry = catalogue.PARTITIONS[name]
    given = {key: own[key] for key in entry.settings}
    return list(entry.make(dataset.train_y, settings.n_workers, seed=seed, **given))


def build_algorithm(kind: str, given: dict[str, Any]) -> Algorithm:
    """The algorithm of that name in the catalogue, with these settings."""
    return catalogue.algorithms()[kind].build(given)
