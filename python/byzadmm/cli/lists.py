"""``byzadmm data``, ``byzadmm list`` and ``byzadmm info``."""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
from collections.abc import Callable, Sequence
from typing import Any

import byzadmm
from byzadmm import _core, _isa, aggregators, catalogue, datasets
from byzadmm._internal.progress import remark
from byzadmm._internal.validation import check_choice
from byzadmm.cli.output import print_json, print_table
from byzadmm.cli.reproduce import figures

_EXTRAS = {"plot": ("matplotlib",), "data": ("pooch", "tqdm"), "mpi": ("mpi4py",)}
_LIST_WORKERS = 20  # number of workers for which `list rules` shows the largest legal f


def data(args: argparse.Namespace) -> int:
    """List the data sets, fetch one, or print the folders that are searched."""
    action = check_choice(args.action, "data", ("list", "fetch", "path"))
    if (action == "fetch") != (args.name is not None):
        raise ValueError("data: expected `data list`, `data fetch NAME` or `data path`")
    if action == "list":
        found = datasets.available(args.data_dir)
        rows = [row._asdict() | {"name": catalogue.hyphenated(row.name)} for row in found]
        if args.json:
            print_json(rows)
        else:
            cells = [[row["name"], row["where"] or "not here", _size(row["bytes"]), row["licence"]] for row in rows]
            print_table(["name", "where", ">size", "licence"], cells, "Data sets")
        return 0
    if action == "path":
        paths = datasets.search_path(args.data_dir)
    else:
        name = catalogue.dataset_name(args.name, "name")
        paths = datasets.fetch(name.replace("-", "_"), data_dir=args.data_dir)
        if not paths:
            remark(f"{name}: nothing to fetch, it is always there")
    if args.json:
        print_json([str(path) for path in paths])
    else:
        for path in paths:
            print(path)
    return 0


def _size(count: int) -> str:
    return "-" if count == 0 else f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"


def _list_algorithms() -> list[dict[str, str]]:
    of_sgd = dict.fromkeys([*catalogue.rules(), *catalogue.filters(), *catalogue.codes()], "")
    near = {
        name: "".join(f", {setting}=" for setting in entry.settings)
        for name, entry in catalogue.neighborhood_rules().items()
    }
    # Every rule is there too, and has the name that it has with a master.
    on_graphs = {name: entry for name, entry in catalogue.decentralized().items() if name not in catalogue.rules()}
    return [
        {
            "name": name,
            "settings": f"those of {sgd}{parts[name]}" if name in parts else _settings_of(entry),
            "about": entry.about,
            "topology": topology,
        }
        for topology, sgd, parts, entries in (
            ("master", "sgd", of_sgd, catalogue.algorithms()),
            ("graph", "dsgd", near, on_graphs),
        )
        for name, entry in entries.items()
    ]


def _settings_of(entry: catalogue.AlgorithmEntry) -> str:
    """Options, and what text may give after the name."""
    options = ", ".join(entry.settings).replace("_", "-")
    own = ", ".join(f"{name}=" for name in entry.own if name not in entry.settings)
    return ", ".join(filter(None, [options, own]))


def _list_attacks() -> list[dict[str, str]]:
    none = {"name": "none", "settings": "", "about": "The Byzantine workers are honest."}
    return [*(_row(name, entry) for name, entry in catalogue.attacks().items()), none]


def _list_rules() -> list[dict[str, Any]]:
    entries = catalogue.links()
    kinds = dict.fromkeys(aggregators.RULES, "rule") | dict.fromkeys(aggregators.PRE_AGGREGATORS, "pre-aggregation")
    return [
        {
            **_row(catalogue.hyphenated(name), entries[catalogue.hyphenated(name)]),
            "kind": kind,
            "max_f": byzadmm.max_f(name, _LIST_WORKERS),
            "n": _LIST_WORKERS,
        }
        for name, kind in kinds.items()
    ]


def _list_figures() -> list[dict[str, str]]:
    return [{"name": name, "settings": "", "about": title} for name, title in figures().available()]


def _list_filters() -> list[dict[str, str]]:
    return [_row(name, entry) for name, entry in catalogue.filters().items()]


def _list_delays() -> list[dict[str, str]]:
    return [_row(name, entry) for name, entry in catalogue.delays().items()]


def _list_graphs() -> list[dict[str, str]]:
    flaky = {"name": "flaky", "settings": "p", "about": "Before another: each edge is there with probability p."}
    return [*(_row(name, entry) for name, entry in catalogue.graphs().items()), flaky]


def _list_codes() -> list[dict[str, str]]:
    return [_row(name, entry) for name, entry in catalogue.codes().items()]


LISTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "algorithms": _list_algorithms,
    "attacks": _list_attacks,
    "rules": _list_rules,
    "filters": _list_filters,
    "codes": _list_codes,
    "delays": _list_delays,
    "graphs": _list_graphs,
    "figures": _list_figures,
}


def _row(name: str, entry: catalogue.Entry) -> dict[str, str]:
    settings = [key if default is catalogue.REQUIRED else f"{key}={default}" for key, default in entry.settings.items()]
    return {"name": name, "settings": ", ".join(settings), "about": entry.about}


def show(args: argparse.Namespace) -> int:
    """Print the names of one kind with their settings."""
    what = check_choice(args.what, "list", LISTS)
    rows = LISTS[what]()
    if args.json:
        print_json(rows)
        return 0
    heads = {"name": "name", "max_f": f">f of {_LIST_WORKERS}", "settings": "settings", "about": "about"}
    columns = {key: head for key, head in heads.items() if any(row.get(key) for row in rows)}
    for topology in dict.fromkeys(row.get("topology") for row in rows):
        cells = [[str(row[key]) for key in columns] for row in rows if row.get("topology") == topology]
        title = "\nOn a graph, with --graph" if topology == "graph" else what.capitalize()
        print_table(list(columns.values()), cells, title)
    if what == "algorithms":
        remark("on a graph every rule of `byzadmm list rules` is one too: dsgd with that rule")
    if what == "graphs":
        remark("also FILE.py:NAME, and flaky:0.8+ring:k=2")
    if what == "rules":
        first, *_, last = (row["name"] for row in rows if row["kind"] == "pre-aggregation")
        remark(f"pre-aggregations, from {first} to {last}, come before a rule:", "byzadmm run --rule nnm+krum")
    if what == "delays":
        remark("also a number, FILE.npz (a trace), FILE.py:NAME; stragglers:0.2,10+exponential")
    return 0


def info(args: argparse.Namespace) -> int:
    """Print versions, instruction set, threads, data and extras."""
    facts: dict[str, Any] = {
        "version": byzadmm.__version__,
        "python": platform.python_version(),
        "numpy": importlib.metadata.version("numpy"),
        "machine": f"{platform.system()} {platform.machine()}",
        "instruction set": _core.isa,
        "instruction sets built": list(_isa.built()),
        "threads": _core.max_threads(),
        "openmp": _core.openmp,
        "data": {catalogue.hyphenated(row.name): row.where for row in datasets.available(args.data_dir)},
        "extras": {extra: _versions(packages) for extra, packages in _EXTRAS.items()},
    }
    if args.json:
        print_json(facts)
        return 0
    rows = []
    for name, value in facts.items():
        if isinstance(value, dict):
            absent = "not here" if name == "data" else "not installed"
            rows += [[f"{name}: {key}", found or absent] for key, found in value.items()]
        else:
            rows.append([name, ", ".join(value) if isinstance(value, list) else str(value)])
    print_table(["", ""], rows, "byzadmm")
    return 0


def _versions(packages: Sequence[str]) -> str | None:
    """Names and versions, or None if one of them is missing."""
    try:
        return ", ".join(f"{package} {importlib.metadata.version(package)}" for package in packages)
    except importlib.metadata.PackageNotFoundError:
        return None
