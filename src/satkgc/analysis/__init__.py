"""What runs teach: analyses of the paper for any run, experiments by name, and their results."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from satkgc.analysis.experiments import Row, find_row, load_rows, make_plan, reproduce
from satkgc.analysis.results import Result, load_results, save_result

if TYPE_CHECKING:
    from satkgc.analysis.registry import ANALYSES, Analysis, bars_table, bars_to_json, draw_bars, find_analysis

__all__ = [
    "ANALYSES",
    "Analysis",
    "Result",
    "Row",
    "bars_table",
    "bars_to_json",
    "draw_bars",
    "find_analysis",
    "find_row",
    "load_results",
    "load_rows",
    "make_plan",
    "reproduce",
    "save_result",
]


def __getattr__(name: str) -> Any:
    """Analyses need torch: they are imported when they are first used, so that a list of rows does not wait for it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.registry"), name)
