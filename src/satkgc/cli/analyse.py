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
    steps: Annotated[
        int | None, typer.Option(min=1, help="Batches to draw, where any are. Default: what the analysis needs.")
    ] = None,
    device: DeviceOption = "auto",
    plot: Annotated[Path | None, typer.Option(help="Draw the values into this picture.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Put trained runs to an analysis of the paper, side by side.

    Asking the model: [bold]false-positives-by-distance[/] (Figure 1), [bold]false-positives-by-degree[/] (Figure 2) and
    the mean degree of their tails; [bold]distance-similarity[/], cosines of entity vectors by the distance of the two;
    [bold]false-positive-loss[/], the loss on false positives of the last run, with and without ψ.

    By its ranks, those in the run folder or taken now: [bold]won-and-lost[/], top-10 answers between the first run and
    each other one; [bold]relation-categories[/], Hits@1 of 1-1, 1-N, N-1 and N-N.

    Drawing its batches: [bold]occurrences[/] of triples and entities by sampler, [bold]entity-frequencies[/] of the
    graph, of random and of SaaM batches, [bold]most-and-least-visited[/], the degree and betweenness of entities,
    [bold]restart[/], duplicates by restart probability, [bold]times[/] of drawing and of training.

    Of a fused run: [bold]experts[/], ranks by each expert alone, by pairs and by all, by relation category.

    By its log: [bold]negative-cosines[/], how hard in-batch negatives are, by epoch.

    [dim]Examples:[/]
      satkgc analyse false-positives-by-distance runs/satkgc runs/simkgc --plot distance.png
      satkgc analyse won-and-lost runs/simkgc runs/satkgc --json
      satkgc analyse occurrences runs/demo --steps 200
    """
    import json as json_module

    from rich.console import Console

    from satkgc.analysis import Options, draw_charts
    from satkgc.analysis import analyse as analyse_runs
    from satkgc.training import RunFolder

    if plot is not None:
        check_writable(plot, ".png")
    opened = {label: RunFolder.load(run) for label, run in _labels(runs).items()}
    findings = analyse_runs(name, opened, Options(split, device, steps, progress=True))
    if plot is not None:
        draw_charts(findings.charts, plot)
    if json:
        print(json_module.dumps(findings.to_json(), ensure_ascii=False))
        return
    for chart in findings.charts:
        Console().print(chart.title, chart.table(), sep="\n")


def _labels(runs: list[Path]) -> dict[str, Path]:
    """Runs by the names of their folders, or by their whole paths where two are called the same."""
    names = Counter(run.resolve().name for run in runs)
    return {run.resolve().name if names[run.resolve().name] == 1 else str(run): run for run in runs}
