"""The record of one panel: what a settings file says, checked; ``figures.parser`` reads it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from byzadmm import catalogue, losses
from byzadmm.algorithms import Algorithm
from byzadmm.datasets import Dataset
from byzadmm.figures.keys import CLOCK, TRAINING
from byzadmm.graphs import Flaky, Graph
from byzadmm.study.network import check_on_graph
from byzadmm.study.plan import Cell
from byzadmm.training.experiment import check_byzantine

__all__ = [
    "FIGURES",
    "PAPER",
    "READINGS",
    "SWEPT",
    "TABLES",
    "VARIANTS",
    "Case",
    "Curve",
    "Published",
    "Search",
    "Settings",
    "build_algorithm",
    "make_parts",
    "packaged_path",
    "settings_path",
    "without_reading",
]

#: The panels of the paper, in its order.
PAPER = ("fig1a", "fig1b", "fig2a", "fig2b", "fig3a", "fig3b", "fig4a", "fig4b", "fig5a", "fig5b", "example")
#: The same with one thing changed: the attack as the text has it, a longer run, standardized columns.
VARIANTS = (
    *("fig1a-std100", "fig1b-std100", "fig2a-long"),
    *("fig1b-standard", "fig2b-standard", "fig4b-standard", "fig5b-standard"),
)
#: Published tables of learning without a master -> the panels that have their numbers.
TABLES = {
    "peng": ("peng-iid", "peng-labels", "peng-lam"),
    "ios": ("ios-iid", "ios-labels", "ios-apart", "ios-octopus"),
}
#: The panels that come with the package: all of the above, and heat maps of rules and of whole systems under attacks.
FIGURES = (*PAPER, *VARIANTS, "rules", "field", *(name for panels in TABLES.values() for name in panels))

#: The algorithms of which a sweep has a curve for each ``lam``.
SWEPT = ("admm", "dadmm", "drsa")

#: How the settings of a curve were found -> what that is called. A name that ends with "-blind" or "-tuned" says it.
READINGS = {"printed": "printed parameters", "blind": "tuned without attack", "tuned": "tuned under attack"}


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
        Whether its settings are those of the paper or of its authors' code; a search leaves them alone.
    validation : float or None
        Final accuracy of the settings on the validation samples of the search that found them.
    variants : tuple
        The algorithm in cases where it has other settings: ((place of the attack, partition), algorithm).
    iterations : int or None
        The length of its runs, if not that of all.
    """

    name: str
    kind: str
    label: str
    algorithm: Algorithm
    printed: bool = False
    validation: float | None = None
    variants: tuple[tuple[tuple[int, str], Algorithm], ...] = ()
    iterations: int | None = None

    def of(self, attack: int, partition: str) -> Algorithm:
        """The algorithm under the attack at this place, with this partition."""
        return dict(self.variants).get((attack, partition), self.algorithm)

    def swept(self, lam: float) -> dict[str, Any]:
        """The algorithms of its cases with another ``lam``."""
        variants = tuple((case, made.changed(lam=lam)) for case, made in self.variants)
        return {"algorithm": self.algorithm.changed(lam=lam), "variants": variants}

    @property
    def reading(self) -> str:
        """How its settings were found: one of :data:`READINGS`."""
        return "printed" if self.printed else "blind" if self.name.partition(":")[0].endswith("-blind") else "tuned"

    @property
    def algorithm_name(self) -> str:
        """Its name without the reading: the curves of one algorithm share it."""
        return without_reading(self.name)

    @property
    def plain_label(self) -> str:
        """Its label without the reading."""
        return re.sub(r" \((printed|blind|tuned)\)$", "", self.label)

    @property
    def style(self) -> str:
        """The name of its style in the catalogue, if it has one there: not for SGD with a rule of the file."""
        plain = self.kind not in ("sgd", "dsgd") or getattr(self.algorithm, "rule", None) == "mean"
        return self.kind if plain else self.name


@dataclass(frozen=True)
class Case:
    """Attack, number of Byzantine workers and partition of one plot of a panel, or of one column of a heat map."""

    attack: Callable[..., Any] | None
    n_byzantine: int
    partition: str


@dataclass(frozen=True)
class Published:
    """What a published figure shows of one algorithm: its final accuracy, and some points of its curve or all.

    ``why`` is the best explanation of a difference to ours, where there is one to explain.
    """

    final: float
    iterations: tuple[int, ...]
    accuracy: tuple[float, ...]
    why: str = ""


@dataclass(frozen=True)
class Search:
    """How ``tune`` searches.

    Attributes
    ----------
    budget : int
        Trials per searched setting: ADMM has three of them, RSA two, SGD with any rule one.
    seed : int
    iterations : int or None
        Length of a trial; None: that of the panel.
    ranges : dict
        Those that the file gives: setting -> lowest and highest.
    """

    budget: int
    seed: int
    iterations: int | None
    ranges: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Settings:
    """One panel, checked.

    There is a plot for each of ``partitions`` (``dirichlet`` with its alpha, as in "dirichlet:0.5") and of ``attacks``;
    None is "no attack". ``sweep`` lists the values of ``lam`` with which every ADMM of the file is run. ``heat_map``
    lists the number of Byzantine workers and the partition of every map; a panel that has it shows final accuracies,
    algorithms by attacks. ``seeds`` is the largest number of seeds. ``graph`` is the one that ``graph_name`` stands
    for, and ``byzantine`` names the Byzantine workers where they are not the last ones. ``published`` has curves to
    compare with, by :attr:`Curve.algorithm_name`, ``published_finals`` final accuracies for the maps, one per attack;
    ``cause`` says what drives the result.
    """

    name: str
    title: str
    path: Path
    dataset: str
    scale: float | str | None
    partitions: tuple[str, ...]
    alpha: float
    n_workers: int
    n_byzantine: int
    attacks: tuple[Callable[..., Any] | None, ...]
    iterations: int | None
    eval_every: int | None
    batch_size: int
    rho: float | tuple[float, ...]
    local_steps: int
    participation: float
    curves: tuple[Curve, ...]
    sweep: tuple[float, ...] = ()
    search: Search | None = None
    quadratic: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    cause: str = ""
    published: Mapping[str, Published] = field(default_factory=dict)
    published_finals: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    heat_map: tuple[tuple[int, str], ...] = ()
    seeds: int | None = None
    loss_name: str | None = None
    validation: int | None = None
    delays: Any = None
    until: float | None = None
    arrivals: int | None = None
    eval_time: float | None = None
    graph: Graph | Flaky | None = None
    graph_name: str | None = None
    byzantine: tuple[int, ...] | None = None
    x_init: float | None = None

    @property
    def partition(self) -> str:
        """The first of ``partitions``."""
        return self.partitions[0]

    @property
    def packaged(self) -> bool:
        """Whether the file is one of the package."""
        return self.name in FIGURES and self.path == packaged_path(self.name)

    def arguments(self) -> dict[str, Any]:
        """What all runs of the panel have in common, as arguments of ``simulate``, with delays those of ``compare``."""
        common: dict[str, Any] = {name: getattr(self, name) for name in TRAINING} | {"loss": self.loss()}
        if self.delays is not None:
            common |= {name: getattr(self, name) for name in CLOCK}
        for name in ("graph", "byzantine", "x_init"):
            if getattr(self, name) is not None:
                common[name] = getattr(self, name)
        if self.validation is not None:
            common["validation"] = self.validation
        if self.quadratic:
            common |= {
                "x0_init": [self.quadratic["x0"]],
                "x_init": [[value] for value in self.quadratic["x"]],
                "first_k": self.quadratic["first_k"],
                "dtype": "float64",
                "record": "trajectory",
            }
        return common

    def cases(self) -> tuple[Case, ...]:
        """One per attack for every partition; in a heat map for every map."""
        maps = self.heat_map or tuple((self.n_byzantine, partition) for partition in self.partitions)
        return tuple(Case(attack, q, partition) for q, partition in maps for attack in self.attacks)

    def cell(self, axes: Mapping[str, Sequence[Any]], number: int, curve: Curve, seed: int) -> Cell:
        """The place in the panel's study, with these axes, of a curve of case ``number``."""
        case = self.cases()[number]
        partition = axes["partition"][0] if self.quadratic else case.partition
        return Cell(curve.name, axes["attack"][number % len(self.attacks)], case.n_byzantine, partition, seed)

    def attackers(self, case: Case) -> list[int]:
        """The Byzantine workers of a case."""
        return check_byzantine(case.n_byzantine, self.byzantine, self.n_workers)

    def made(self, curve: Curve, case: Case) -> Algorithm:
        """The algorithm of a curve in a case; in a heat map a rule's ``f`` is the number of Byzantine workers."""
        place = next(place for place, attack in enumerate(self.attacks) if attack is case.attack)
        made = curve.of(place, case.partition)
        return made.declaring(case.n_byzantine) if self.heat_map and not made.ideal else made

    def check(self, algorithm: Algorithm, case: Case) -> None:
        """Raise a ValueError if an algorithm does not tolerate the Byzantine workers of a case."""
        algorithm.check(self.n_workers - (case.n_byzantine if algorithm.ideal else 0))
        if self.graph is not None:
            acting = [] if case.attack is None and not algorithm.ideal else self.attackers(case)
            check_on_graph("algorithm", algorithm, self.graph, acting)

    def algorithm(self, curve: Curve, case: Case) -> Algorithm | None:
        """:meth:`made`, or None: nothing to run in a heat map, as it is not tolerated or the same run as another.

        Ideal SGD is the same under every attack, and is run under the first.
        """
        made = self.made(curve, case)
        if not self.heat_map:
            return made
        if made.ideal:
            return made if case.attack is self.attacks[0] else None
        try:
            self.check(made, case)
        except ValueError:
            return None
        return made

    @property
    def figure(self) -> str:
        """The panel of the paper that it shows, or its own name: "fig1a" for "fig1a-std100"."""
        base = self.name.partition("-")[0]
        return base if base in PAPER else self.name

    def readings(self) -> tuple[str, ...]:
        """The readings to compare: those with several algorithms, in the order of READINGS; () if there is one."""
        counts = Counter(curve.reading for curve in self.curves if not self.sweep or curve.kind in SWEPT)
        found = tuple(name for name in READINGS if counts[name] > (0 if self.sweep else 1))
        return found if len(found) > 1 else ()

    def read(self, reading: str) -> dict[str, Curve]:
        """The curves of a reading by :attr:`Curve.algorithm_name`; none if the file has no such curve.

        What was not tuned under attack is there as tuned without; Ideal SGD, which is not attacked, is in all readings.
        In a file that has no readings to compare, every algorithm is in each.
        """
        own = [curve for curve in self.all_curves() if curve.reading == reading]
        others = [
            curve
            for curve in self.all_curves()
            if not self.readings() or (reading, curve.reading) == ("tuned", "blind") or curve.algorithm.ideal
        ]
        return {curve.algorithm_name: curve for curve in [*others, *own]} if own else {}

    def all_curves(self) -> tuple[Curve, ...]:
        """The curves to draw: those of the file, or one per value of the sweep."""
        if not self.sweep:
            return self.curves
        return tuple(
            replace(
                curve,
                name=f"{curve.name}:lam={lam:g}",
                label=f"{curve.kind.upper()}, λ = {lam:g}" + (f" ({curve.reading})" if self.readings() else ""),
                **curve.swept(lam),
            )
            for curve in self.curves
            if curve.kind in SWEPT
            for lam in self.sweep
        )

    def plot_titles(self, named: Callable[[Any], str] | None = None) -> list[str]:
        """What each of :meth:`cases` is called: its attack, and its partition if there are several plots for that.

        ``named`` gives the name of an attack, by default that of a picture of this kind.
        """
        usual = catalogue.attack_name if self.heat_map else catalogue.attack_title
        attacks = catalogue.distinct_attacks(self.attacks, named or usual)
        if self.heat_map or len(self.partitions) == 1:
            return attacks * (len(self.heat_map) or 1)
        return [f"{attack}, {self.words(partition)}" for partition in self.partitions for attack in attacks]

    def words(self, partition: str) -> str:
        """The name of a partition, with its setting if it has one."""
        name, settings = catalogue.parse(partition, "partition", catalogue.PARTITIONS)
        among = settings.pop("among", "all")
        for value in settings.values():  # one number at most
            name = f"{name.capitalize() if name == 'dirichlet' else name}({value:g})"
        return name if among == "all" else f"{name} among regular"

    def quick(self) -> Settings:
        """The same with a fifth of the iterations, for a first look; not the paper's."""
        shorter: dict[str, Any] = {
            name: max(1, value // 5) if isinstance(value, int) else value / 5
            for name in ("iterations", "until", "arrivals", "eval_time")
            if (value := getattr(self, name)) is not None
        }
        if self.eval_every is not None:
            shorter["eval_every"] = max(1, min(self.eval_every, shorter.get("iterations", self.eval_every) // 10))
        curves = tuple(
            curve if curve.iterations is None else replace(curve, iterations=max(1, curve.iterations // 5))
            for curve in self.curves
        )
        return replace(self, curves=curves, **shorter)

    def extent(self, curve: Curve) -> dict[str, int]:
        """Length and evaluations of the runs of a curve, if they are not those of all."""
        if curve.iterations is None or self.iterations is None or self.eval_every is None:
            return {}
        every = max(1, round(curve.iterations * self.eval_every / self.iterations))
        return {"iterations": curve.iterations, "eval_every": every}

    def loss(self) -> losses.Quadratic | str:
        """What the workers minimize."""
        if self.quadratic:
            return losses.Quadratic(self.quadratic["a"], self.quadratic["b"])
        return self.loss_name or "softmax"


def without_reading(name: str) -> str:
    """The name of a curve without the "-blind" or "-tuned" at its end, or before the ":lam=" of a sweep."""
    head, colon, tail = name.partition(":")
    return head.removesuffix("-blind").removesuffix("-tuned") + colon + tail


def packaged_path(name: str) -> Path:
    """The file of that name in the package."""
    return Path(str(resources.files("byzadmm.figures"))) / "settings" / f"{name}.toml"


def settings_path(name_or_path: str | Path) -> Path:
    """The file of a panel of the package, or the path itself."""
    text = str(name_or_path)
    if text in FIGURES:
        return packaged_path(text)
    path = Path(text)
    if not path.is_file():
        hint = "" if path.suffix == ".toml" else f"; panels are {', '.join(FIGURES)}"
        raise ValueError(f"{text}: no such settings file{hint}")
    return path


def make_parts(settings: Settings, dataset: Dataset, seed: int, kind: str | None = None, rows: Any = None) -> list[Any]:
    """The workers' parts of the training set, or of ``rows`` of it; ``kind`` if not the partition of the file."""
    return catalogue.make_parts(kind or settings.partition, dataset, settings.n_workers, seed, rows)


def build_algorithm(kind: str, given: dict[str, Any]) -> Algorithm:
    """The algorithm of that name in the catalogue, with these settings."""
    return catalogue.algorithms()[kind].build(given)
