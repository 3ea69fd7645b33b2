"""The class of each rule, made from its entry in the table of rules and its function's signature."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any, ClassVar

from byzadmm.aggregate import _registry

__all__ = ["PRE_AGGREGATORS", "RULES", "Aggregator"]

_CALL_KEYWORDS = ("return_info", "out", "threads")  # of a call, not of the rule


@dataclass(frozen=True, kw_only=True)
class Aggregator:
    """Base of the configured rules: the fields are keywords of the function named ``rule``."""

    nonfinite: str = "exclude"

    rule: ClassVar[str]

    def __call__(self, X: Any, **call: Any) -> Any:
        """Apply the rule to the rows of ``X``."""
        return _registry.RULES[self.rule].function(X, **settings_of(self), **call)


#: Function name -> class, for rules that give a vector.
RULES: dict[str, type[Aggregator]] = {}

#: Function name -> class, for pre-aggregations, which give rows.
PRE_AGGREGATORS: dict[str, type[Aggregator]] = {}

#: Function name -> settings of a rule that is given by name, beside ``f`` and the defaults of its class.
NAMED: dict[str, Mapping[str, Any]] = {}


def settings_of(link: Aggregator) -> dict[str, Any]:
    """The fields of a configured rule by name."""
    return {item.name: getattr(link, item.name) for item in fields(link)}


def add(name: str) -> type[Aggregator]:
    """Make the class of a registered rule and enter it in the tables of this module."""
    rule = _registry.RULES[name]
    own = []
    for key, parameter in list(inspect.signature(rule.function).parameters.items())[1:]:
        if key in _CALL_KEYWORDS or key == "nonfinite":  # a field of the base
            continue
        annotation, default = parameter.annotation, rule.defaults.get(key, parameter.default)
        if key in rule.defaults and default is None:
            annotation = f"{annotation} | None"
        own.append((key, annotation) if default is parameter.empty else (key, annotation, field(default=default)))
    kind = make_dataclass(rule.class_name, own, bases=(Aggregator,), namespace={"rule": name}, frozen=True)
    kind.__module__ = "byzadmm.aggregators"  # where pickle finds it
    summary = (inspect.getdoc(rule.function) or "").partition("\n")[0]
    kind.__doc__ = f"{summary}\n\nA configured :func:`byzadmm.aggregate.{name}`, which explains the settings.\n"
    (PRE_AGGREGATORS if rule.gives_rows else RULES)[name] = kind
    if rule.named:
        NAMED[name] = rule.named
    return kind
