"""Result files that tests make up."""

from __future__ import annotations

from satkgc.analysis import Result, find_row
from satkgc.analysis.results import SHARES


def metrics(mrr):
    return {**{name: round(mrr - 0.05 * place, 6) for place, name in enumerate(SHARES)}, "mr": 12.5, "count": 10}


def result(row, mrr=0.5, **changes):
    """A result of a row, with plausible figures."""
    known = find_row(row)
    return Result(
        **{
            "row": row,
            "dataset": known.dataset,
            "recipe": known.recipe,
            "backbone": known.backbone,
            "seed": known.seed,
            "split": "test",
            "candidates": "all entities",
            "ties": "realistic",
            "head": metrics(mrr - 0.02),
            "tail": metrics(mrr + 0.02),
            "both": metrics(mrr),
            "steps": 1690,
            "epochs": 10.0,
            "minutes": 3.25,
            "hardware": "NVIDIA H200",
            "commit": "0123456789abcdef",
            "overrides": dict(known.overrides),
            "config": {},
            **changes,
        }
    )
