"""Settings files to start from: one of the package, with a comment for every key."""

from __future__ import annotations

import re
from collections.abc import Iterator

from byzadmm._internal.validation import check_choice
from byzadmm.figures._toml import REQUIRED
from byzadmm.figures.keys import SECTIONS
from byzadmm.figures.settings import FIGURES, packaged_path

__all__ = ["settings_text"]

_START = "start"  # the file of the package that is no panel
_COLUMN, _WIDTH = 38, 120  # where comments begin, after what is shorter; longest line
_LEGEND = "# A key after a # is not set: it shows the default, or an example where there is none."
_OF_ALL, _WHERE = "algorithms.NAME", "algorithms.NAME.where"
_ATTACK_SETTING = "setting of the attack: see `byzadmm list attacks`"


def settings_text(name: str | None = None) -> str:
    """A settings file as text: every key with its meaning, those that the file does not have as comments.

    Parameters
    ----------
    name : str, optional
        A panel of the package; by default a small experiment on digits to start from.

    Returns
    -------
    str
        TOML that ``load_settings`` reads from a file of yours as it reads the panel.

    Examples
    --------
    >>> from byzadmm import figures
    >>> print(next(line for line in figures.settings_text("fig2a").splitlines() if line.startswith("n_workers")))
    n_workers = 20                        # workers in all, Byzantine ones included
    """
    path = packaged_path(_START if name is None else check_choice(name, "name", FIGURES))
    written: list[str] = []
    said: set[tuple[str, str]] = set()
    ends: dict[str, int] = {}  # section -> end of the keys of its first table
    for section, number, key, line in _walk(path.read_text(encoding="utf-8")):
        if key and (section, key) not in said:
            said.add((section, key))
            known = SECTIONS[section].get(key) or (SECTIONS[_OF_ALL].get(key) if section == _WHERE else None)
            line = _beside(line, known.meaning if known else _ATTACK_SETTING)
        written.append(line)
        if key and number == 1:
            ends[section] = len(written)
    for section, end in sorted(ends.items(), key=lambda item: -item[1]):
        absent = [key for key in SECTIONS[section] if (section, key) not in said and key not in _tables(ends)]
        written[end:end] = _absent(section, absent)
    for section in SECTIONS:
        if section not in (*ends, "attack"):
            head = f"# [[{section}]]" if section == _WHERE else f"# [{section}]"
            owner = SECTIONS[_OF_ALL]["where"] if section == _WHERE else SECTIONS[""][section.partition(".")[0]]
            written += ["", _beside(head, owner.meaning)]
            written += _absent(section, list(SECTIONS[section]))
    return "\n".join([_LEGEND, *written]) + "\n"


def _walk(text: str) -> Iterator[tuple[str, int, str, str]]:
    """Every line with its section, the number of the section's table that it is in, and its key if it has one.

    A value of several lines is one with its key.
    """
    section, counts = "", {"": 1}
    lines = iter(text.splitlines())
    for line in lines:
        header = re.match(r"\[+([^\]]+)\]", line)
        if header:
            section = re.sub(r'^(algorithms|published)\.("[^"]*"|[^.]*)(\.where)?$', r"\1.NAME\3", header[1])
            counts[section] = counts.get(section, 0) + 1
        key = re.match(r"(\w+) *=", line)
        closing = "]" if line.endswith("[") else '"""' if line.count('"""') == 1 else ""
        if key and closing:
            for more in lines:
                line += f"\n{more}"
                if more.endswith(closing):
                    break
        yield section, counts[section], key[1] if key else "", line


def _tables(sections: dict[str, int]) -> set[str]:
    """Keys of the first section that are tables: not to be mentioned among the others."""
    return {"algorithms", "published", *SECTIONS} - ({"attack"} - sections.keys())


def _absent(section: str, names: list[str]) -> list[str]:
    """A comment for each key, with its default or an example."""
    lines = []
    for name in names:
        key = SECTIONS[section][name]
        default = key.otherwise if key.default is REQUIRED else f"by default {key.words}" if key.words else ""
        comment = "; ".join(filter(None, [key.meaning, default]))
        lines.append(_beside(f"# {name} = {key.toml or key.example}", comment))
    return lines


def _beside(line: str, comment: str) -> str:
    """The line with a comment at its end, or before it if it is long or goes on; one that it has already is kept."""
    if "\n" in line:
        return f"# {comment}\n{line}"
    line, _, own = line.partition("  # ")
    comment = f"{comment} ({own})" if own else comment
    whole = f"{line:<{_COLUMN - 2}}  # {comment}"
    return whole if len(whole) <= _WIDTH else f"# {comment}\n{line}"
