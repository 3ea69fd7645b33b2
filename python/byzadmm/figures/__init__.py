"""The paper's experiments: settings, runs, plots, claims and tuning."""

from __future__ import annotations

from byzadmm.figures.claims import Claim, check_claims, claims_table
from byzadmm.figures.document import write_report
from byzadmm.figures.panel import HeatMap, Panel
from byzadmm.figures.parser import available, load_settings
from byzadmm.figures.plan import plan_of
from byzadmm.figures.run import Report, reproduce, runs_of
from byzadmm.figures.settings import FIGURES, Settings
from byzadmm.figures.template import settings_text
from byzadmm.figures.tuning import Tuned, tune

__all__ = [
    "FIGURES",
    "Claim",
    "HeatMap",
    "Panel",
    "Report",
    "Settings",
    "Tuned",
    "available",
    "check_claims",
    "claims_table",
    "load_settings",
    "plan_of",
    "reproduce",
    "runs_of",
    "settings_text",
    "tune",
    "write_report",
]
