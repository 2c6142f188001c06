"""`satkgc duplicates`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from satkgc.cli.arguments import DeviceOption, RunArgument, note_unfinished


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(duplicates)


def duplicates(
    run: RunArgument,
    out: Annotated[Path, typer.Argument(help="The table to write: .csv.", show_default=False)],
    n: Annotated[int, typer.Option("--n", "-n", help="How many pairs.")] = 1000,
    min_score: Annotated[float, typer.Option(help="Only pairs with at least this score.")] = 0.5,
    device: DeviceOption = "auto",
) -> None:
    """Propose pairs of entities that are the same thing, for a person to look through.

    Three things count, each from 0 to 1: names (whatever their case, accents, punctuation and order of words), vectors
    (where the model has them), and links that both have (the same relation to the same neighbour, the rarer the more).
    The score is 1 / (1 + exp(-x)) with x = -10 + 8 name + 4 vector + 5 shared. It orders; it is no probability. Where
    the graph speaks against it, x is 4 less and the column "objection" says why: a relation joins the two, they have
    different values of a relation that gives one, or types that have nothing in common.

    Not all pairs are compared: only entities of one name, with rare n-grams or rare neighbours in common, next to each
    other in the order of names, or with the nearest vectors.

    Write yes in the column "accept" where two are one. `satkgc accept` then writes owl:sameAs (.nt), a map of what goes
    to what stays (.tsv), or merges them in a graph (--into).

    [bold]Examples[/]

      satkgc duplicates runs/demo same.csv --n 200

      satkgc accept same.csv same.nt

      satkgc accept same.csv --into my-graph
    """
    from satkgc.completion import Completer, check_duplicates_file

    check_duplicates_file(out, n, min_score)
    note_unfinished(run)
    found = Completer.load(run, device).duplicates(n, min_score, out)
    typer.echo(f"{out}: {len(found):,} pairs")
