"""Every rule's judgement: the functions ``judge_<rule>`` of the files of oracles."""

from __future__ import annotations

from collections.abc import Callable

from support import oracles, oracles_spread
from support.oracles import Call

__all__ = ["JUDGES"]

#: Rule or pre-aggregation -> its judgement.
JUDGES: dict[str, Callable[[Call], None]] = {
    name.removeprefix("judge_"): judge
    for module in (oracles, oracles_spread)
    for name, judge in vars(module).items()
    if name.startswith("judge_")
}
