"""What an analysis finds, as a table, as JSON, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from rich.table import Table

from satkgc.arrays import Float64
from satkgc.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["bars", "line", "log-log"]


@dataclass(frozen=True, eq=False)
class Chart:
    """A value for each group and series."""

    title: str  # what is measured
    groups_are: str
    groups: list[str]  # of "line" and "log-log" numbers
    series: dict[str, Float64]  # NaN where a group is empty
    kind: Kind = "bars"

    def to_json(self) -> dict[str, dict[str, float]]:
        """Of each series the values by group, but for empty groups."""
        return {
            name: {g: v for g, v in zip(self.groups, np.asarray(values).tolist(), strict=True) if v == v}
            for name, values in self.series.items()
        }

    def table(self) -> Table:
        """A row a group and a column a series, for a terminal that has shown the title."""
        table = Table(self.groups_are)
        for name in self.series:
            table.add_column(name, justify="right")
        columns = self.to_json().values()
        for group in self.groups:
            table.add_row(group, *(f"{column[group]:.4g}" if group in column else "" for column in columns))
        return table


def align(title: str, groups_are: str, series: dict[str, dict[str, float]], kind: Kind = "bars") -> Chart:
    """A chart of series whose groups need not be the same; the order is that of the longest."""
    longest = max(series.values(), key=len)
    groups = list(dict.fromkeys([*longest, *(group for part in series.values() for group in part)]))
    values = {name: np.array([part.get(group, np.nan) for group in groups]) for name, part in series.items()}
    return Chart(title, groups_are, groups, values, kind)


def draw_charts(charts: Sequence[Chart], file: Path, title: str = "") -> None:
    """All charts of an analysis side by side, one colour a series."""
    from matplotlib.figure import Figure  # without pyplot, which would look for a screen

    figure = Figure(figsize=(7 * len(charts), 4.2), layout="constrained")
    for axes, chart in zip(figure.subplots(1, len(charts), squeeze=False)[0], charts, strict=True):
        (_draw_bars if chart.kind == "bars" else _draw_lines)(axes, chart)
        axes.set(xlabel=chart.groups_are, title=chart.title)
        axes.grid(alpha=0.3, axis="y" if chart.kind == "bars" else "both")
        axes.set_axisbelow(True)
        axes.legend(fontsize="small")
    figure.suptitle(title)
    with atomic_write(file) as part:
        figure.savefig(part, dpi=120, format="png")


def _draw_bars(axes: Axes, chart: Chart) -> None:
    width = 0.8 / len(chart.series)
    places = np.arange(len(chart.groups))
    for place, (name, values) in enumerate(chart.series.items()):
        bars = axes.bar(places + (place + 0.5) * width - 0.4, values, width, label=name)
        if len(chart.groups) * len(chart.series) <= 12:
            labels: list[Any] = [f"{value:.4g}" if value == value else "" for value in values]
            axes.bar_label(bars, labels, fontsize="x-small")
    axes.margins(y=0.08 + 0.07 * len(chart.series))  # room for the legend
    many = sum(map(len, chart.groups)) > 70
    axes.set_xticks(places, chart.groups)
    if many:
        axes.tick_params("x", rotation=20, labelsize="small")


def _draw_lines(axes: Axes, chart: Chart) -> None:
    at = np.array([float(group) for group in chart.groups])
    for place, (name, values) in enumerate(chart.series.items()):
        width = max(1.5, 4 - 1.5 * place)  # so that one line under another is seen
        axes.plot(at, values, label=name, linewidth=width, marker="o" if len(at) <= 20 else None, markersize=width + 2)
    if chart.kind == "log-log":
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=0)
