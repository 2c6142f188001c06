"""What runs teach: analyses of the paper for any run, experiments by name, and their results."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from satkgc.analysis.experiments import Row, find_row, load_rows, make_plan, reproduce
from satkgc.analysis.results import Result, load_results, save_result

if TYPE_CHECKING:
    from satkgc.analysis.chart import Chart, draw_charts
    from satkgc.analysis.options import Options
    from satkgc.analysis.registry import ANALYSES, Findings, analyse

__all__ = [
    "ANALYSES",
    "Chart",
    "Findings",
    "Options",
    "Result",
    "Row",
    "analyse",
    "draw_charts",
    "find_row",
    "load_results",
    "load_rows",
    "make_plan",
    "reproduce",
    "save_result",
]

# Analyses need torch: they are imported when they are first used, so that a list of rows does not wait for it.
_LAZY = {"chart": ("Chart", "draw_charts"), "options": ("Options",), "registry": ("ANALYSES", "Findings", "analyse")}
_MODULES = {name: module for module, names in _LAZY.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
