"""The analyses that any run can be put to, by name; their values as a table, as JSON, as a picture."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from rich.table import Table

from satkgc.analysis.false_positives import count_by_degree, count_by_distance, find_false_positives
from satkgc.analysis.similarity import similarity_by_distance
from satkgc.arrays import Float64
from satkgc.errors import SatkgcError
from satkgc.files import atomic_write
from satkgc.kg import KnowledgeGraph
from satkgc.models import Model, VectorModel
from satkgc.training import RunFolder


class Bars(Protocol):
    """What an analysis finds of one run: a value for each group."""

    @property
    def groups(self) -> list[str]:
        """Labels."""

    @property
    def values(self) -> Float64:
        """Heights; NaN where a group is empty."""


@dataclass(frozen=True)
class Analysis:
    """Something to find out of a trained model. A new one is a function and an entry in `ANALYSES`."""

    groups: str  # what its groups are: the label of the x axis
    values: str  # what is measured: that of the y axis
    measure: Callable[[Model, KnowledgeGraph, str], Bars]  # by the questions of a split, where it asks any

    def run(self, folder: Path, split: str, device: str) -> Bars:
        """Open a run folder and measure."""
        run = RunFolder.load(folder)
        return self.measure(run.model(device), run.kg, split)


def _distance_similarity(model: Model, kg: KnowledgeGraph, _: str) -> Bars:
    if not isinstance(model, VectorModel):
        problem = f"{type(model).__name__} has no entity vectors to compare"
        raise SatkgcError(problem, remedy="choose a run of a model that has, such as recipe satkgc")
    return similarity_by_distance(kg, model.encode_entities(np.arange(kg.num_entities, dtype=np.int32)))


ANALYSES = {
    "false-positives-by-distance": Analysis(
        "distance between head and tail",
        "false-positive ratio",
        lambda model, kg, split: count_by_distance(kg, find_false_positives(model, kg, split)),
    ),
    "false-positives-by-degree": Analysis(
        "degree of the tail",
        "false-positive ratio",
        lambda model, kg, split: count_by_degree(kg, find_false_positives(model, kg, split)),
    ),
    "distance-similarity": Analysis("distance of two entities", "mean cosine", _distance_similarity),
}


def find_analysis(name: str) -> Analysis:
    """An analysis by its name; an unknown one is answered with those that there are."""
    if name not in ANALYSES:
        near = difflib.get_close_matches(name, ANALYSES, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(ANALYSES)}"
        raise SatkgcError(f"unknown analysis {name!r}", remedy=remedy)
    return ANALYSES[name]


def bars_to_json(bars: Mapping[str, Bars]) -> dict[str, dict[str, float]]:
    """Of each run the values by group, but for empty groups."""
    return {
        run: {group: value for group, value in zip(part.groups, part.values.tolist(), strict=True) if value == value}
        for run, part in bars.items()
    }


def bars_table(bars: Mapping[str, Bars], analysis: Analysis) -> Table:
    """A row a group and a column a run, for a terminal."""
    table = Table(title=analysis.values.capitalize(), title_justify="left")
    table.add_column(analysis.groups)
    values = bars_to_json(bars)
    for run in bars:
        table.add_column(run, justify="right")
    for group in dict.fromkeys(group for part in values.values() for group in part):
        table.add_row(group, *(f"{values[run][group]:.3g}" if group in values[run] else "" for run in bars))
    return table


def draw_bars(bars: Mapping[str, Bars], analysis: Analysis, file: Path) -> None:
    """Bars side by side, one colour a run."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    width = 0.8 / len(bars)
    for place, (name, part) in enumerate(bars.items()):
        axes.bar(np.arange(len(part.values)) + place * width, part.values, width, label=name)
    longest = max((part.groups for part in bars.values()), key=len)
    axes.set_xticks(np.arange(len(longest)) + 0.4 - width / 2, longest)
    axes.set(xlabel=analysis.groups, ylabel=analysis.values)
    axes.legend()
    with atomic_write(file) as part_file:
        figure.savefig(part_file, format=file.suffix[1:] or "png")
    pyplot.close(figure)
