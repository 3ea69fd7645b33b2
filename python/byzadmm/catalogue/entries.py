"""What each name stands for: algorithms, rules, attacks, delays, step sizes, partitions and losses."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from byzadmm import aggregate, aggregators, losses, partition, redundancy, steps
from byzadmm import attacks as _attacks
from byzadmm import delays as _delays
from byzadmm import filters as _filters
from byzadmm import graphs as _graphs
from byzadmm.aggregate import _registry
from byzadmm.algorithms import ADMM, RSA, SGD, SVRG, Algorithm, Newton, OneRound, PerturbedGD
from byzadmm.asynchronous import ASGD, BASGD, AsyncADMM, AsyncRSA, Kardam, ZenoPlusPlus

if TYPE_CHECKING:
    from byzadmm.catalogue.presets import Preset

__all__ = [
    "LOSSES",
    "PAPER",
    "PARTITIONS",
    "REQUIRED",
    "STEPS",
    "AlgorithmEntry",
    "Entry",
    "Style",
    "algorithms",
    "attacks",
    "codes",
    "delays",
    "filters",
    "first_line",
    "graphs",
    "hyphenated",
    "links",
    "options",
    "rules",
    "suited_step",
]

#: In the place of a default: the setting has none and must be given.
REQUIRED: Any = MISSING

# Fields that are no settings of text: of a rule arrays, generators, and what a run decides; the base of a delay.
_NOT_SETTINGS = ("base", "center", "nonfinite", "permutation", "rng", "weights")


def hyphenated(name: str) -> str:
    """The command line's spelling of a class or function: lower case, words joined by hyphens.

    Examples
    --------
    >>> from byzadmm.catalogue import hyphenated
    >>> hyphenated("SignFlip"), hyphenated("ALIE"), hyphenated("MoNNA"), hyphenated("geometric_median")
    ('sign-flip', 'alie', 'monna', 'geometric-median')
    """
    # Capitals after a single small letter are an abbreviation, unless they begin a word, as in TrMean.
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z0-9]{2})(?=[A-Z])", "-", name)
    return words.replace("_", "-").lower()


def first_line(part: Any) -> str:
    """The first line of the documentation of a class or function."""
    return (inspect.getdoc(part) or "").partition("\n")[0].replace("`", "")


@dataclass(frozen=True)
class Entry:
    """What a name stands for.

    Attributes
    ----------
    make : callable
        Called with the settings as keywords.
    settings : dict
        Setting -> default, or :data:`REQUIRED`, in the order in which values can be given without their names.
    about : str
        One line for lists.
    """

    make: Callable[..., Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""


@dataclass(frozen=True)
class Style:
    """Color, line and marker of a curve, as matplotlib takes them."""

    color: str
    line: Any
    marker: str


@dataclass(frozen=True)
class AlgorithmEntry:
    """What the name of an algorithm stands for.

    Attributes
    ----------
    kind : class
    label : str
        What it is called in a picture.
    required, optional : tuple of str
        Its settings in a settings file; on the command line all are optional, as ``suited`` has the others.
    suited : callable
        The algorithm with the settings of a :class:`byzadmm.catalogue.Preset`; on a graph called with that too, and
        with further settings by name.
    tuned : tuple of str
        What a search varies: ``lam``, ``beta``, ``step`` (``step / sqrt k``), and ``slope``, the factor of ``sqrt k``
        in both steps of ADMM. :mod:`byzadmm.study.boxes` has a range for each.
    style : Style or None
        Its color, line and marker; None: a free one.
    fixed : dict
        Arguments of ``kind`` that make it this algorithm.
    about : str
        One line for lists.
    own : tuple of str
        Settings that text may give after the name, as in ``svrg:batch=8``.
    on_graph : callable or None
        ``f(settings, graph)`` gives the arguments of ``kind`` that settings lead to on a graph; None: the same.
    """

    kind: type[Algorithm]
    label: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    suited: Callable[..., Any]
    tuned: tuple[str, ...] = ("step",)
    style: Style | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""
    own: tuple[str, ...] = ()
    on_graph: Callable[[Mapping[str, Any], Any], Mapping[str, Any]] | None = None

    @property
    def settings(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.required, *self.optional)

    def build(self, given: Mapping[str, Any], graph: Any = None) -> Algorithm:
        """The algorithm with these settings, on this graph if it needs one."""
        arguments = given if self.on_graph is None else self.on_graph(given, graph)
        made: Algorithm = self.kind(**{**self.fixed, **arguments})
        return made


_MEMORY = ("momentum", "variance_reduction")
# What a master may do with messages before its rule.
_MASTER = (*_MEMORY, "filter")

# Of perturbed descent on convex losses, where trials find no way down: small ones, so that they end soon.
_TRIALS: dict[str, Any] = {"rule": "median", "eps": 1e-3, "radius": 0.1, "escape": 0.2}

# Colors of Okabe and Ito, which color-blind readers tell apart.
_ALGORITHMS = {
    "admm": AlgorithmEntry(
        ADMM,
        "ADMM",
        ("lam", "beta", "master_step", "worker_step"),
        (),
        lambda preset: preset.admm,
        ("lam", "beta", "slope"),
        Style("#D55E00", "-", "o"),
        about=first_line(ADMM),
    ),
    "rsa": AlgorithmEntry(
        RSA,
        "RSA",
        ("lam",),
        ("step", "master_step", "worker_step"),
        lambda preset: preset.rsa,
        ("lam", "step"),
        Style("#0072B2", "--", "s"),
        about=first_line(RSA),
    ),
    "sgd": AlgorithmEntry(
        SGD,
        "SGD",
        ("step",),
        ("rule", "f", *_MASTER, "coding"),
        lambda preset: SGD(step=preset.step),
        style=Style("#999999", "-.", "x"),
        about=first_line(SGD),
    ),
    "ideal": AlgorithmEntry(
        SGD,
        "Ideal SGD",
        ("step",),
        _MEMORY,
        lambda preset: SGD(step=preset.step, ideal=True),
        style=Style("#000000", ":", "*"),
        fixed={"ideal": True},
        about="SGD without the Byzantine workers: the reference of every comparison.",
    ),
    "svrg": AlgorithmEntry(
        SVRG,
        "SVRG",
        ("step",),
        (),
        lambda preset: SVRG(step=preset.step, batch=8),
        fixed={"batch": 8},
        about=first_line(SVRG),
        own=("inner", "batch", "threshold", "V", "delta"),
    ),
    "perturbed-gd": AlgorithmEntry(
        PerturbedGD,
        "Perturbed GD",
        ("step",),
        ("rule", "f"),
        lambda preset: PerturbedGD(step=preset.step, **_TRIALS),
        fixed=_TRIALS,
        about=first_line(PerturbedGD),
        own=("rule", "eps", "radius", "escape", "rounds", "length", "f"),
    ),
    "newton": AlgorithmEntry(
        Newton,
        "Newton (MNM)",
        (),
        ("f",),
        lambda preset: Newton(),
        (),
        about=first_line(Newton),
        own=("join", "c", "cg_iterations", "cg_tol", "f"),
    ),
    "cnm": AlgorithmEntry(
        Newton,
        "Newton (CNM)",
        (),
        (),
        lambda preset: Newton("comparison", step=0.5),
        (),
        fixed={"join": "comparison", "step": 0.5},
        about="Newton's method; messages are compared with what the master's own samples give.",
        own=("c", "cg_iterations", "cg_tol"),
    ),
    "one-round": AlgorithmEntry(
        OneRound,
        "One round",
        (),
        ("rule", "f"),
        lambda preset: OneRound(),
        (),
        about=first_line(OneRound),
        own=("rule", "f", "newton_steps", "tol"),
    ),
    "asgd": AlgorithmEntry(
        ASGD,
        "ASGD",
        ("step",),
        ("momentum",),
        lambda preset: ASGD(step=preset.async_step),
        style=Style("#8C564B", (0, (3, 1, 1, 1)), "x"),
        about=first_line(ASGD),
        own=("dampening", "momentum"),
    ),
    "kardam": AlgorithmEntry(
        Kardam,
        "Kardam",
        ("step",),
        ("f", "momentum"),
        lambda preset: Kardam(step=preset.async_step),
        style=Style("#B8860B", "-.", "P"),
        about="Asynchronous SGD that steps with gradients which change slowly, of senders that are not frequent.",
        own=("f", "dampening", "momentum", "history"),
    ),
    "basgd": AlgorithmEntry(
        BASGD,
        "BASGD",
        ("step",),
        ("rule", "f", "momentum"),
        lambda preset: BASGD(step=preset.step),
        style=Style("#117733", (0, (5, 1)), "^"),
        about=first_line(BASGD),
        own=("rule", "buffers", "f", "momentum", "patience"),
    ),
    "zeno-plus-plus": AlgorithmEntry(
        ZenoPlusPlus,
        "Zeno++",
        ("step",),
        ("momentum",),
        lambda preset: ZenoPlusPlus(step=preset.constant_step, rho=preset.constant_step(1) / 100),
        (),
        Style("#EE3377", (0, (1, 1)), "D"),
        about=first_line(ZenoPlusPlus),
        own=("rho", "eps", "renew", "samples", "momentum"),
    ),
    "async-rsa": AlgorithmEntry(
        AsyncRSA,
        "Async RSA",
        ("lam",),
        ("step", "master_step", "worker_step"),
        lambda preset: AsyncRSA.of(preset.rsa),
        ("lam", "step"),
        Style("#1F3A93", (0, (8, 2)), "s"),
        about=first_line(AsyncRSA),
        own=("barrier", "max_delay", "memory"),
    ),
    "async-admm": AlgorithmEntry(
        AsyncADMM,
        "Async ADMM",
        ("lam", "beta", "master_step", "worker_step"),
        (),
        lambda preset: AsyncADMM.of(preset.admm),
        ("lam", "beta", "slope"),
        Style("#6A3D9A", "-", "o"),
        about=first_line(AsyncADMM),
        own=("barrier", "max_delay"),
    ),
}

# SGD with these rules has a label and a style of its own.
_RULE_LOOKS = {
    "geometric-median": ("Geometric median", Style("#009E73", (0, (5, 1)), "^")),
    "median": ("Median", Style("#CC79A7", (0, (3, 1, 1, 1)), "v")),
    "trimmed-mean": ("Trimmed mean", Style("#56B4E9", (0, (1, 1)), "D")),
}

#: What the paper compares, besides Ideal SGD.
PAPER = ("admm", "rsa", "sgd", "median", "geometric-median")


def algorithms() -> dict[str, AlgorithmEntry]:
    """Every algorithm, and SGD with each rule but the mean, each filter and each code under their names."""
    return (
        _ALGORITHMS
        | {name: _with_rule(name, entry) for name, entry in rules().items() if name != "mean"}
        | {name: _with_part("filter", entry, _MEMORY) for name, entry in filters().items()}
        | {name: _with_part("coding", entry, ("momentum",)) for name, entry in codes().items()}
    )


def _with_rule(name: str, entry: Entry) -> AlgorithmEntry:
    label, style = _RULE_LOOKS.get(name, (name, None))
    rule = name.replace("-", "_")
    return AlgorithmEntry(
        SGD,
        label,
        ("step", *(["f"] if "f" in entry.settings else [])),
        _MASTER,
        lambda preset: SGD(step=suited_step(rule, preset), rule=rule),
        style=style,
        fixed={"rule": rule},
        about=f"SGD with this rule. {entry.about}",
    )


def suited_step(rule: Any, preset: Preset) -> steps.Step:
    """The step of SGD with this rule; one that gives signs has the step of signs."""
    last = aggregators.make(rule).links[-1]
    signs = isinstance(last, aggregators.Aggregator) and _registry.RULES[last.rule].signs
    return preset.sign_step if signs else preset.step


def _with_part(setting: str, entry: Entry, optional: tuple[str, ...]) -> AlgorithmEntry:
    """SGD with a filter or a code."""
    return AlgorithmEntry(
        SGD,
        entry.make.__name__,
        ("step",),
        (*optional, setting),
        lambda preset: SGD(step=preset.step, **{setting: entry.make()}),
        fixed={setting: entry.make()},
        about=f"SGD with this {'filter' if setting == 'filter' else 'code'}. {entry.about}",
    )


def options() -> tuple[str, ...]:
    """Every setting that an algorithm takes from an option of the command line."""
    every = dict.fromkeys(name for entry in algorithms().values() for name in entry.settings)
    return tuple(name for name in every if name != "rule")


def rules() -> dict[str, Entry]:
    """Every rule that gives a vector."""
    return {hyphenated(name): _rule(kind) for name, kind in aggregators.RULES.items()}


def links() -> dict[str, Entry]:
    """Rules and pre-aggregations, the parts of a chain: by the name of the function, then by that of the class."""
    kinds = {**aggregators.RULES, **aggregators.PRE_AGGREGATORS}
    by_function = {hyphenated(name): _rule(kind) for name, kind in kinds.items()}
    return by_function | {hyphenated(kind.__name__): _rule(kind) for kind in kinds.values()}


def _rule(kind: type[aggregators.Aggregator]) -> Entry:
    return Entry(kind, _fields(kind), first_line(getattr(aggregate, kind.rule)))


def attacks() -> dict[str, Entry]:
    """Every attack of ``byzadmm.attacks``."""
    return {name: Entry(kind, _fields(kind), first_line(kind)) for name, kind in sorted(_attacks.REGISTRY.items())}


def filters() -> dict[str, Entry]:
    """Every filter of ``byzadmm.filters``."""
    return {name: Entry(kind, _fields(kind), first_line(kind)) for name, kind in sorted(_filters.REGISTRY.items())}


def codes() -> dict[str, Entry]:
    """Every code of ``byzadmm.redundancy``."""
    return {name: Entry(kind, _fields(kind), first_line(kind)) for name, kind in sorted(redundancy.REGISTRY.items())}


def delays() -> dict[str, Entry]:
    """Every delay of ``byzadmm.delays`` that text can say."""
    return {name: Entry(kind, _fields(kind), first_line(kind)) for name, kind in sorted(_delays.REGISTRY.items())}


# What the run decides: which nodes have to be connected.
_OF_THE_RUN = ("connected",)


def graphs() -> dict[str, Entry]:
    """Every maker of ``byzadmm.graphs``, called as ``make(m, **settings)``.

    Examples
    --------
    >>> from byzadmm import catalogue
    >>> catalogue.graphs()["ring"].settings
    {'k': 1}
    """
    return {name: Entry(make, _graph_settings(make), first_line(make)) for name, make in _graphs.REGISTRY.items()}


def _graph_settings(make: Callable[..., Any]) -> dict[str, Any]:
    """The arguments of a maker beside the number of nodes and what the run decides."""
    _, *others = inspect.signature(make).parameters.values()
    return {
        item.name: REQUIRED if item.default is item.empty else item.default
        for item in others
        if item.name not in _OF_THE_RUN
    }


def _fields(kind: Any) -> dict[str, Any]:
    """The settings of a dataclass."""
    return {
        item.name: item.default_factory() if item.default_factory is not MISSING else item.default
        for item in fields(kind)
        if item.init and item.name not in _NOT_SETTINGS
    }


#: Step sizes.
STEPS: dict[str, Entry] = {
    "constant": Entry(steps.constant, {"a": REQUIRED}, first_line(steps.constant)),
    "inv-linear": Entry(
        steps.inv_linear, {"c": REQUIRED, "b": REQUIRED, "cap": math.inf}, first_line(steps.inv_linear)
    ),
    "inv-sqrt": Entry(steps.inv_sqrt, {"c0": REQUIRED, "c1": REQUIRED}, first_line(steps.inv_sqrt)),
    "power": Entry(steps.power, {"c": REQUIRED, "p": 0.5}, first_line(steps.power)),
}

# Who holds the samples: all workers, or the regular ones; then each Byzantine one has all of them.
_AMONG = {"among": "all"}

#: How the samples are divided among the workers; labels, number of workers and seed come from the run.
PARTITIONS: dict[str, Entry] = {
    "iid": Entry(partition.iid, _AMONG, first_line(partition.iid)),
    "by-label": Entry(partition.by_label, {"per_label": 2} | _AMONG, first_line(partition.by_label)),
    "dirichlet": Entry(partition.dirichlet, {"alpha": 0.5} | _AMONG, first_line(partition.dirichlet)),
    "gamma-similarity": Entry(
        partition.gamma_similarity, {"gamma": 0.5} | _AMONG, first_line(partition.gamma_similarity)
    ),
}

#: Losses that a name stands for; they are made of a data set and its parts.
LOSSES = losses.BY_NAME
