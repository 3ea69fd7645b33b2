"""Comparisons: algorithms under attacks, over seeds, as rows, tables, pictures and a page.

:func:`byzadmm.compare` makes a :class:`Study`. A :class:`Plan` lists its cells and the arguments of every run, and
:func:`carry_out` runs it; the command line and the figures of the paper make plans of their own.
"""

from byzadmm.study.plan import AXES, Cell, Plan, make_plan
from byzadmm.study.run import carry_out
from byzadmm.study.study import Missing, Study

__all__ = ["AXES", "Cell", "Missing", "Plan", "Study", "carry_out", "make_plan"]
