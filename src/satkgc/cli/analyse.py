"""`satkgc analyse`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from satkgc.cli.arguments import DeviceOption
from satkgc.files import check_writable


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(analyse)


def analyse(
    name: Annotated[str, typer.Argument(metavar="NAME", help="One of the analyses above.")],
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="The run folders that `satkgc train` wrote.")],
    split: Annotated[str, typer.Option(help="Whose questions to ask: test, valid or train.")] = "test",
    device: DeviceOption = "auto",
    plot: Annotated[Path | None, typer.Option(help="Draw the values into this picture.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Put trained runs to an analysis of the paper, side by side.

    [bold]false-positives-by-distance[/]: wrong answers above the right one, by distance (Figure 1)

    [bold]false-positives-by-degree[/]: the same by the degree of the wrong answer (Figure 2)

    [bold]distance-similarity[/]: cosines of entity vectors, by the distance of the two

    [dim]Examples:[/]
      satkgc analyse false-positives-by-distance runs/satkgc runs/simkgc --plot distance.png
      satkgc analyse distance-similarity runs/demo --json
    """
    import json as json_module

    from rich.console import Console

    from satkgc.analysis import bars_table, bars_to_json, draw_bars, find_analysis

    analysis = find_analysis(name)
    if plot is not None:
        check_writable(plot, ".png")
    bars = {label: analysis.run(run, split, device) for label, run in _labels(runs).items()}
    if plot is not None:
        draw_bars(bars, analysis, plot)
    if json:
        print(json_module.dumps(bars_to_json(bars)))
    else:
        Console().print(bars_table(bars, analysis))


def _labels(runs: list[Path]) -> dict[str, Path]:
    """Runs by the names of their folders, or by their whole paths where two are called the same."""
    names = Counter(run.resolve().name for run in runs)
    return {run.resolve().name if names[run.resolve().name] == 1 else str(run): run for run in runs}
