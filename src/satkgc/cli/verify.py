"""`satkgc verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from satkgc.errors import SatkgcError


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(verify)


def verify(
    folder: Annotated[Path, typer.Argument(help="A graph in binary form, or a run.", show_default=False)],
) -> None:
    """Read every file of a graph or a run and compare it with the sum that was written with it.

    Names every file that was altered, cut short or lost; exit code 2 if there is one. What is only for people to look
    at (README.md, log.jsonl, pictures) has no sum. Commands check what they open themselves: this is for copies,
    archives and doubts.

    [bold]Examples[/]

      satkgc verify runs/demo

      satkgc verify my-graph
    """
    from satkgc.completion import verify_folder

    result = verify_folder(folder)
    for name in result.without_sum:
        typer.echo(f"{name}: no sum, as earlier versions left it")
    for name in result.altered:
        typer.echo(f"{name}: altered, cut short or missing")
    if result.altered:
        count = len(result.altered)
        what = "1 file is" if count == 1 else f"{count} files are"
        raise SatkgcError(f"{what} not as written", where=folder, remedy="copy them again, or make them anew")
    typer.echo(f"{folder}: all is as it was written ({result.parts} parts)")
