"""Markdown of the generated pages: lines of tables, and our figures beside the paper's."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from statistics import mean

from satkgc.analysis.results import SHARES, Evaluation
from satkgc.files import atomic_write

METRICS = ("MRR", "Hits@1", "Hits@3", "Hits@10")
NOT_YET = "not yet run"


@cache
def paper_figures() -> dict[str, dict[str, list[float]]]:
    """The paper's MRR, Hits@1, Hits@3 and Hits@10 by dataset and name; its other figures by table and name."""
    return tomllib.loads((Path(__file__).parent / "paper.toml").read_text(encoding="utf-8"))


def table_line(cells: Iterable[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


def table_head(names: Sequence[str], texts: int = 1) -> list[str]:
    """The first two lines of a table; all columns but the first few are numbers."""
    return [table_line(names), table_line(("---",) * texts + ("---:",) * (len(names) - texts))]


def figure_cells(evaluations: Sequence[Evaluation], paper: list[float] | None) -> Iterator[str]:
    """Ours, over the seeds, beside the paper's."""
    for place, name in enumerate(SHARES):
        ours = [evaluation.both[name] for evaluation in evaluations]
        text = f"{mean(ours):.3f}" if ours else "–"
        if len(ours) > 1:
            text += f" ± {(max(ours) - min(ours)) / 2:.3f}"
        yield f"{text} / {paper[place]:.3f}" if paper else text


def write_page(file: Path, text: str) -> None:
    """Whole or not at all."""
    with atomic_write(file) as part:
        part.write_text(text, encoding="utf-8")
