"""`satkgc reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from satkgc.cli.arguments import DeviceOption
from satkgc.errors import UNFINISHED, SatkgcError


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(reproduce)


def reproduce(
    row: Annotated[str | None, typer.Argument(metavar="ROW", help="An experiment; --list names them.")] = None,
    list_rows: Annotated[bool, typer.Option("--list", help="List all experiments, and which have a result.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Begin without asking.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that stopped, or begin it.")] = False,
    backbone: Annotated[
        str | None,
        typer.Option(help="A folder that holds the row's backbone, where no hub can be reached.", show_default="hub"),
    ] = None,
    max_minutes: Annotated[
        float | None, typer.Option(help="Save and stop after so many minutes; the exit code is then 3.")
    ] = None,
    device: DeviceOption = "auto",
    out: Annotated[Path | None, typer.Option(help="The run folder.", show_default="runs/ROW")] = None,
    results: Annotated[Path, typer.Option(help="Where results are kept.")] = Path("results"),
) -> None:
    """Train one of the named experiments, evaluate it on test, and write its result file.

    It first says what it will do and how long that takes on which hardware, by the results measured so far.
    Afterwards `make results` puts the figure into the tables.

    [dim]Examples:[/]
      satkgc reproduce --list
      satkgc reproduce wn18rr-satkgc
      satkgc reproduce wn18rr-satkgc --yes --resume --max-minutes 9 --backbone models/all-mpnet-base-v2
    """
    if list_rows:
        _list(results)
        return
    if row is None:
        raise SatkgcError("which experiment?", remedy="name a row; `satkgc reproduce --list` shows them all")
    from satkgc.analysis import find_row, make_plan
    from satkgc.analysis import reproduce as run_experiment

    experiment = find_row(row)
    folder = out or Path("runs") / row
    for line in make_plan(experiment, results, backbone).lines():
        typer.echo(line, err=True)
    typer.echo(f"writes {folder} and {results / row}.json", err=True)
    if not (yes or typer.confirm("Begin?", err=True)):
        raise typer.Exit(1)
    result = run_experiment(
        experiment, folder, results, backbone=backbone, device=device, resume=resume, max_minutes=max_minutes
    )
    if result is None:
        typer.echo("not finished: the same command with --resume goes on", err=True)
        raise typer.Exit(UNFINISHED)
    typer.echo(f"test MRR {result.both['mrr']:.4f}, Hits@1 {result.both['hits@1']:.4f}")


def _list(results: Path) -> None:
    from satkgc.analysis import load_results, load_rows

    done, rows = load_results(results), load_rows()
    if not done:
        typer.echo(f"no results in {results}: --results names the folder that has them", err=True)
    width = max(map(len, rows))
    typer.echo(f"{'row':{width}}  test MRR  minutes  what it is")
    for row in rows.values():
        result = done.get(row.name)
        figures = f"{result.both['mrr']:8.3f}  {result.minutes:7.1f}" if result else f"{'–':>8}  {'':7}"
        changes = " ".join(f"{name}={value}" for name, value in row.overrides.items())
        typer.echo(f"{row.name:{width}}  {figures}  {row.recipe} on {row.dataset} {changes}".rstrip())
