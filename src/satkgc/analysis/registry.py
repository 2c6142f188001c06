"""The analyses that any run can be put to, by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from satkgc.analysis.answers import chart_categories, chart_won_and_lost
from satkgc.analysis.chart import Chart
from satkgc.analysis.experts import chart_experts
from satkgc.analysis.false_positives import chart_by_degree, chart_by_distance
from satkgc.analysis.negatives import chart_cosines, chart_loss
from satkgc.analysis.options import Options, Runs
from satkgc.analysis.similarity import chart_similarity
from satkgc.analysis.times import chart_times
from satkgc.analysis.visits import chart_extremes, chart_frequencies, chart_occurrences, chart_restart
from satkgc.errors import SatkgcError

# A new analysis is a function from runs to charts, and a line here.
ANALYSES: dict[str, Callable[[Runs, Options], list[Chart]]] = {
    "false-positives-by-distance": chart_by_distance,
    "false-positives-by-degree": chart_by_degree,
    "false-positive-loss": chart_loss,
    "entity-frequencies": chart_frequencies,
    "occurrences": chart_occurrences,
    "most-and-least-visited": chart_extremes,
    "negative-cosines": chart_cosines,
    "won-and-lost": chart_won_and_lost,
    "relation-categories": chart_categories,
    "distance-similarity": chart_similarity,
    "restart": chart_restart,
    "times": chart_times,
    "experts": chart_experts,
}


@dataclass(frozen=True, eq=False)
class Findings:
    """What an analysis found, and of which runs."""

    analysis: str
    runs: dict[str, dict[str, Any]]  # by label: graph, recipe, seed, commit
    split: str
    charts: list[Chart]

    def to_json(self) -> dict[str, Any]:
        """All of it; of each chart, by its title, the values by series and group."""
        charts = {chart.title: chart.to_json() for chart in self.charts}
        return {"analysis": self.analysis, "split": self.split, "runs": self.runs, "charts": charts}


def analyse(name: str, runs: Runs, options: Options | None = None) -> Findings:
    """Put runs to an analysis, side by side; an unknown one is answered with those that there are."""
    if name not in ANALYSES:
        near = difflib.get_close_matches(name, ANALYSES, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(ANALYSES)}"
        raise SatkgcError(f"unknown analysis {name!r}", remedy=remedy)
    options = options or Options()
    charts = ANALYSES[name](runs, options)
    about = {
        label: {
            "graph": run.kg.name,
            "recipe": run.config.recipe,
            "seed": run.config.training.seed,
            "commit": run.about.get("commit"),
        }
        for label, run in runs.items()
    }
    return Findings(name, about, options.split, charts)
