"""The runs of a panel, as the plan of a study."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from byzadmm import catalogue
from byzadmm.algorithms import Algorithm
from byzadmm.datasets import Dataset
from byzadmm.figures.settings import Curve, Settings
from byzadmm.study import Plan, make_plan
from byzadmm.study.choices import AlgorithmChoice, Choice
from byzadmm.study.extent import progress_of

__all__ = ["length", "plan_of", "runs_of"]


def plan_of(
    settings: Settings,
    seeds: Sequence[int],
    dataset: Dataset | None = None,
    *,
    data_dir: Any = None,
    quick: bool = False,
) -> Plan:
    """The plan of a panel.

    Parameters
    ----------
    settings : Settings
    seeds : list of int
        Of partition and run; the first alone in the example, in which nothing is random.
    dataset : Dataset, optional
        That of the settings; by default it is loaded.
    data_dir : path, optional
        Where the data is.
    quick : bool
        Whether the title says that it is a first look.

    Examples
    --------
    >>> from byzadmm import figures
    >>> from byzadmm.figures.plan import plan_of
    >>> plan_of(figures.load_settings("example"), range(3)).axes["algorithm"]
    ['admm', 'rsa']
    """
    if dataset is None and not settings.quadratic:
        dataset = catalogue.load_dataset(settings.dataset, data_dir=data_dir, scale=settings.scale)
    maps = settings.heat_map or [(settings.n_byzantine, kind) for kind in settings.partitions]
    usual = catalogue.attack_name if settings.heat_map else catalogue.attack_title
    names = catalogue.distinct_attacks(settings.attacks, usual)
    plan = make_plan(
        dataset,
        "iid" if settings.quadratic else list(dict.fromkeys(kind for _, kind in maps)),
        algorithms=[_choice(settings, curve, names) for curve in settings.all_curves()],
        attacks=[Choice(name, name, attack) for name, attack in zip(names, settings.attacks, strict=True)],
        n_workers=settings.n_workers,
        n_byzantine=list(dict.fromkeys(q for q, _ in maps)),
        seeds=list(seeds)[:1] if settings.quadratic else list(seeds),
        **settings.arguments() | ({} if settings.quadratic else {"loss": settings.loss_name}),
    )
    title = f"{settings.name}: {settings.title}" + ("\n(quick look, not the paper's experiment)" if quick else "")
    return replace(plan, title=title)


def _choice(settings: Settings, curve: Curve, attacks: Sequence[str]) -> AlgorithmChoice:
    def maker(algorithm: Algorithm) -> Callable[[int], Algorithm]:
        declares = settings.heat_map and not algorithm.ideal
        return lambda q: algorithm.declaring(q) if declares else algorithm

    makers = {id(made): maker(made) for _, made in curve.variants}
    variants = {(attacks[place], partition): makers[id(made)] for (place, partition), made in curve.variants}
    made = AlgorithmChoice(curve.name, curve.label, maker(curve.algorithm), curve.style, variants)
    return replace(made, extent=settings.extent(curve))


def length(plan: Plan) -> int:
    """What the progress of all runs counts up to: iterations, or what there is in their place with delays."""
    runs = {id(run): run for run in plan.runs.values() if not isinstance(run, str)}
    return sum(progress_of(run)[0] for run in runs.values())


def runs_of(settings: Settings, *, seed: int = 0, data_dir: Any = None) -> dict[str, dict[str, Any]]:
    """The runs of one panel with one seed, as arguments of ``simulate``.

    Parameters
    ----------
    settings : Settings
    seed : int
        Of partition and run; without effect on the example, in which nothing is random.
    data_dir : path, optional
        Where the data is.

    Returns
    -------
    dict
        Name of the curve (and of the attack and the partition, if the panel has several) -> arguments.

    Examples
    --------
    >>> from byzadmm import figures
    >>> list(figures.runs_of(figures.load_settings("example")))[:2]
    ['admm, small-value attack', 'rsa, small-value attack']
    """
    plan = plan_of(settings, [seed], data_dir=data_dir)
    cases, titles = settings.cases(), settings.plot_titles(catalogue.attack_title)
    found = {}
    for number, (case, title) in enumerate(zip(cases, titles, strict=True)):
        more = [title] if len(cases) > 1 else []
        more += [f"q = {case.n_byzantine}, {case.partition}"] if settings.heat_map else []
        for curve in settings.all_curves():
            if settings.algorithm(curve, case) is not None:
                run = plan.runs[settings.cell(plan.axes, number, curve, seed)]
                assert not isinstance(run, str)
                found[", ".join([curve.name, *more])] = run
    return found
