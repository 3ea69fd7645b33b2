"""Objects from text such as ``gaussian:std=50``, ``inv-sqrt:10,1``, ``clip:max-norm=10+nnm+krum`` or ``admm``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from byzadmm import aggregators, steps
from byzadmm._internal.validation import check_choice, check_int, check_real
from byzadmm.algorithms import Algorithm
from byzadmm.attacks import Attack
from byzadmm.catalogue.entries import (
    PARTITIONS,
    REQUIRED,
    STEPS,
    Entry,
    attacks,
    codes,
    delays,
    filters,
    hyphenated,
    links,
)
from byzadmm.catalogue.own import own_entry, split_own
from byzadmm.datasets import Dataset
from byzadmm.delays import Constant, Replay

__all__ = [
    "hyphenated",
    "make_attack",
    "make_coding",
    "make_delays",
    "make_filter",
    "make_parts",
    "make_rule",
    "make_step",
    "parse",
    "split_chain",
    "takes_f",
]


_PLUS = r"\+(?=\s*[A-Za-z])"  # between parts, not the plus of 1e+3


def parse(
    text: str, what: str, table: Mapping[str, Entry], *, defaults: Mapping[str, Any] | None = None
) -> tuple[str, dict[str, Any]]:
    """Name and settings in ``name:value,key=value``, checked against the settings of the name's entry.

    Parameters
    ----------
    text : str
        A name of ``table``; after a colon, values in order or by key.
    what : str
        The argument's name in error messages.
    table : mapping
        Name -> Entry.
    defaults : mapping, optional
        Values of settings that the text does not give, used where the entry has such a setting.

    Returns
    -------
    name, settings : str and dict

    Examples
    --------
    >>> from byzadmm import catalogue
    >>> catalogue.parse("gaussian:std=50", "attack", catalogue.attacks())
    ('gaussian', {'std': 50})
    """
    head, colon, tail = text.partition(":")
    name = check_choice(hyphenated(head.strip()), what, table)
    return name, settings_in(name, tail if colon else None, what, table[name].settings, defaults)


def settings_in(
    name: str,
    text: str | None,
    what: str,
    known: Mapping[str, Any],
    defaults: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The settings in ``value,key=value``, which belong to ``name``; in None there are none."""
    free = list(known)
    settings: dict[str, Any] = {}
    for position, item in enumerate(() if text is None else text.split(",")):
        key, equals, value = item.rpartition("=")
        if not equals:
            key = free[position] if position < len(free) else ""
        key = key.strip().replace("-", "_")
        if key not in free:
            raise ValueError(f"{what}: {name} takes {', '.join(free) or 'no settings'}; got {item!r}")
        if key in settings:
            raise ValueError(f"{what}: {name} got {key} twice")
        settings[key] = _number(value.strip(), f"{what}: {name}: {key}")
    settings = {key: value for key, value in (defaults or {}).items() if key in free} | settings
    missing = [key for key in free if known[key] is REQUIRED and key not in settings]
    if missing:
        raise ValueError(f"{what}: {name} needs {', '.join(missing)}, as in {name}:{missing[0]}=1")
    return settings


_WORDS = {"none": None, "true": True, "false": False}


def _number(text: str, what: str) -> int | float | str | tuple[int, ...] | None:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if re.fullmatch(r"\d+(/\d+)+", text):  # a list, such as mapping=1/0
        return tuple(map(int, text.split("/")))
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    # A choice such as even=low or family=inner-product; what it is passed to checks it.
    if re.fullmatch(r"[a-z]+([-_+][a-z]+)*", text):
        return text
    raise ValueError(f"{what}: expected a number, got {text!r}")


def make_attack(text: str, folder: str | os.PathLike[str] = "") -> Attack | Callable[..., Any] | None:
    """``none``, or an attack with its settings; ``FILE.py:NAME`` is one in a file of yours.

    Parameters
    ----------
    text : str
        ``sign-flip``, ``gaussian:std=50``, ``label-flip:mapping=1/2/0``, ``my_attack.py:bias``,
        ``my_attack.py:Bias:size=2``.
    folder : path
        What ``FILE.py`` is relative to, by default the current one.

    Returns
    -------
    Attack, callable or None

    Examples
    --------
    >>> from byzadmm import catalogue
    >>> catalogue.make_attack("gaussian:50")
    Gaussian(std=50, mean=0.0)
    """
    own = split_own(text)
    if own is not None:
        file, name, given = own
        entry = own_entry(file, name, folder)
        settings = settings_in(f"{file}:{name}", given or None, "attack", entry.settings)
    else:
        table = attacks() | {"none": Entry(lambda: None)}
        name, settings = parse(text, "attack", table)
        entry = table[name]
    attack: Attack | Callable[..., Any] | None = entry.make(**settings)
    return attack


def make_delays(text: str, folder: str | os.PathLike[str] = "") -> Any:
    """A delay from text: a number, a name with its settings, a recorded trace, or one in a file of yours.

    Parameters
    ----------
    text : str
        ``2``, ``exponential:2``, ``stragglers:0.2,10``; with a base after a plus ``stragglers:0.2,10+exponential:2``;
        ``trace.npz``, written by :meth:`byzadmm.delays.Replay.save`; ``my_delays.py:slow``, ``my_delays.py:Slow:by=2``.
    folder : path
        What a file is relative to, by default the current one.

    Returns
    -------
    A delay of ``byzadmm.delays``, or a user's function

    Examples
    --------
    >>> from byzadmm import catalogue
    >>> catalogue.make_delays("outage:worker=3,start=10,end=20+2")
    Outage(base=Constant(seconds=2.0), worker=3, start=10, end=20)
    """
    table = delays()
    if hyphenated(re.split("[:+]", text)[0].strip()) not in table:
        return _delay_of_file(text.strip(), folder) or _seconds(text, table)
    first, *rest = re.split(r"(?<![\d.][eE])\+", text, maxsplit=1)  # not at the plus of 1e+3
    name, settings = parse(first, "delays", table)
    if rest:
        if not hasattr(table[name].make, "base"):
            raise ValueError(f"delays: {name} has no base, got {text!r}")
        settings["base"] = make_delays(rest[0].strip(), folder)
    return table[name].make(**settings)


def _delay_of_file(text: str, folder: str | os.PathLike[str]) -> Any:
    """A recorded trace, or a delay of a user's own; None for other text."""
    if text.lower().endswith(".npz"):
        try:
            return Replay.load(Path(folder, os.path.expanduser(text)))
        except FileNotFoundError:
            raise ValueError(f"delays: {text}: no such file") from None
        except ValueError as error:
            raise ValueError(f"delays: {error}") from error
    own = split_own(text)
    if own is None:
        return None
    file, name, given = own
    entry = own_entry(file, name, folder, "delays")
    return entry.make(**settings_in(f"{file}:{name}", given or None, "delays", entry.settings))


def _seconds(text: str, table: Mapping[str, Entry]) -> Constant:
    try:
        number = float(text)
    except ValueError:
        known = ", ".join(table)
        wanted = f"a number, FILE.npz, FILE.py:NAME or one of {known}"
        raise ValueError(f"delays: expected {wanted}; got {text!r}") from None
    return Constant(check_real(number, "delays", low=0.0, strict=True))


def make_parts(
    text: str, dataset: Dataset, n_workers: int, seed: int = 0, rows: Any = None, byzantine: Sequence[int] = ()
) -> list[Any]:
    """The workers' parts of a training set by the name of a partition, with its settings.

    Parameters
    ----------
    text : str
        ``iid``, ``dirichlet:0.3``, ``gamma-similarity:0.5``, ``by-label``; by default so many workers share a label
        that all are used. With ``among=regular`` the samples are divided among the regular workers, and each Byzantine
        one has all of them: ``by-label:among=regular``.
    dataset : Dataset
    n_workers, seed : int
    rows : index array, optional
        The samples to divide, by default all.
    byzantine : list of int
        The Byzantine workers.

    Returns
    -------
    list of index arrays, one per worker

    Examples
    --------
    >>> from byzadmm import catalogue, datasets
    >>> [len(part) for part in catalogue.make_parts("iid", datasets.load("digits"), 3)]
    [479, 479, 479]
    >>> [len(part) for part in catalogue.make_parts("iid:among=regular", datasets.load("digits"), 3, byzantine=[0])]
    [1437, 719, 718]
    """
    m = check_int(n_workers, "n_workers", low=1)
    name, given = parse(text, "partition", PARTITIONS)
    entry = PARTITIONS[name]
    among = check_choice(given.pop("among", "all"), "partition: among", ("all", "regular"))
    holders = [worker for worker in range(m) if among == "all" or worker not in byzantine]
    suited = {"per_label": max(1, len(holders) // max(1, dataset.n_classes))}
    settings = {key: suited.get(key, default) for key, default in entry.settings.items() if key != "among"} | given
    every = np.arange(len(dataset.train_y)) if rows is None else rows
    parts = [every] * m
    made = entry.make(dataset.train_y[every], len(holders), seed=seed, **settings)
    for worker, part in zip(holders, made, strict=True):
        parts[worker] = every[part]
    return parts


def make_step(text: str, what: str = "step") -> steps.Step:
    """A number for a constant step, or one of ``byzadmm.steps`` with its settings.

    Examples
    --------
    >>> from byzadmm.catalogue import make_step
    >>> make_step("0.1"), make_step("inv-sqrt:10,1")
    (Constant(a=0.1), InvSqrt(c0=10.0, c1=1.0))
    """
    try:
        number = float(text)
    except ValueError:
        name, settings = parse(text, what, STEPS)
        step: steps.Step = STEPS[name].make(**settings)
        return step
    return steps.constant(check_real(number, what, low=0.0, strict=True))


def make_rule(text: str, f: int) -> tuple[Any, int]:
    """Rule and ``f`` of SGD from text: a name or a chain of names, each with settings if it has any.

    Parameters
    ----------
    text : str
        ``krum``, ``krum:f=3``, ``clip:max-norm=10+nnm+trimmed-mean``.
    f : int
        For every name that takes one and is not given its own.

    Returns
    -------
    rule, f
        Arguments of ``SGD``: a name or a chain of names and the ``f`` of all of them, or objects and 0.

    Examples
    --------
    >>> from byzadmm.catalogue import make_rule
    >>> make_rule("nnm+krum", 8)
    ('nnm+krum', 8)
    >>> make_rule("median:even=low", 8)
    ((Median(nonfinite='exclude', even='low', weights=None),), 0)
    """
    table = links()
    chain: list[Any] = []
    names = []
    for part in split_chain(text):
        head = hyphenated(part.partition(":")[0].strip())
        usual = aggregators.NAMED.get(table[head].make.rule, {}) if head in table else {}  # type: ignore[attr-defined]
        name, settings = parse(part, "rule", table, defaults={"f": f * aggregators.reach(chain), **usual})
        chain.append(table[name].make(**settings))
        names.append(name)
    declared = [link.f // aggregators.reach(chain[:at]) for at, link in enumerate(chain) if _has_f(link)]
    # By name where names and one f describe the chain: a result's config is clearer.
    if len(set(declared)) <= 1 and aggregators.Chain(tuple(chain)) == _as_named(names, *declared[:1]):
        return "+".join(names), declared[0] if declared else 0
    return tuple(chain), 0


def split_chain(text: str) -> list[str]:
    """The parts of a chain as text, ``["nnm", "krum:f=3"]`` of ``nnm+krum:f=3``."""
    return re.split(_PLUS, text)


def make_filter(text: str, q: int = 0) -> Any:
    """A filter of ``byzadmm.filters`` from text such as ``zeno:b=8``; ``q`` Byzantine workers are declared.

    Examples
    --------
    >>> from byzadmm.catalogue import make_filter
    >>> make_filter("zeno", 8).b
    8
    """
    name, settings = parse(text, "filter", filters())
    return filters()[name].make(**settings).declaring(q)


def make_coding(text: str, q: int = 1) -> Any:
    """A code of ``byzadmm.redundancy`` from text such as ``repetition:r=5``; by default one for ``q`` attackers.

    Examples
    --------
    >>> from byzadmm.catalogue import make_coding
    >>> make_coding("cyclic", 2)
    Cyclic(f=2)
    """
    name, settings = parse(text, "coding", codes(), defaults={"f": max(q, 1)})
    return codes()[name].make(**settings)


def _as_named(names: Sequence[str], f: int = 0) -> aggregators.Chain | None:
    try:
        return aggregators.make("+".join(names), f=f)
    except ValueError:  # clipping has no settings that a name could stand for
        return None


def _has_f(link: Any) -> bool:
    return isinstance(link, aggregators.Aggregator) and "f" in {item.name for item in fields(link)}


def takes_f(algorithm: Algorithm) -> bool:
    """Whether a rule of the algorithm has a setting ``f``, the declared number of Byzantine workers."""
    return any(map(_has_f, algorithm.combination().links))
