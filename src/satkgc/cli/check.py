"""`satkgc check`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from satkgc.cli.arguments import DeviceOption, RunArgument, note_unfinished
from satkgc.cli.terminal import clean

if TYPE_CHECKING:
    from satkgc.completion import Doubt


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(check)


def check(
    run: RunArgument,
    out: Annotated[
        Path | None, typer.Argument(help="A file to write: .csv or .json; else a table is printed.", show_default=False)
    ] = None,
    n: Annotated[int, typer.Option("--n", "-n", help="How many statements.")] = 20,
    relation: Annotated[list[str] | None, typer.Option(help="Only this relation; may be repeated.")] = None,
    split: Annotated[str, typer.Option(help="Whose statements: train, valid, test or inference.")] = "train",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of the table.")] = False,
    device: DeviceOption = "auto",
) -> None:
    """List the statements of the graph that are most likely wrong: candidates for a look, not verdicts.

    First come those that contradict others by what relations mean: a cycle in a hierarchy, a second value, a wrong
    type. Then those that the model finds least likely. Each is asked for from both ends as if the graph did not have
    it: texts and paths leave it out. The probability is that of the less likely end; beside it is what the
    model would rather say.

    The model has been trained on the statements of train, and may have learnt some errors by heart: what it doubts is
    worth a look, what it does not doubt is not proven.

    All statements of the split are asked, whatever --n says: two questions each. A check that was stopped continues
    when the same command is run again, where it writes a file.

    [bold]Examples[/]

      satkgc check runs/demo

      satkgc check runs/demo doubts.csv --n 200 --relation hypernym

      satkgc check runs/demo --split valid --json
    """
    from satkgc.completion import Completer, check_count, check_doubts_file

    check_count(n)
    if out is not None:
        check_doubts_file(out, n)
    note_unfinished(run)
    doubts = Completer.load(run, device).check(n, relation or None, split, out)
    if out is not None:
        typer.echo(f"{out}: {len(doubts):,} statements")
    elif as_json:
        print(clean(json.dumps([asdict(doubt) for doubt in doubts], ensure_ascii=False, indent=1)))
    else:
        _print_doubts(doubts)


def _print_doubts(doubts: Sequence[Doubt]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("#", "probability", "as tail", "as head"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("statement", overflow="fold", ratio=2)
    table.add_column("why", overflow="fold", ratio=3)
    for place, doubt in enumerate(doubts, 1):
        chance = "" if doubt.probability is None else f"{doubt.probability:.2%}"
        ranks = [f"{end.rank:,}" for end in (doubt.asked_tail, doubt.asked_head)]
        said = f"{doubt.head_name} – {doubt.relation_name} – {doubt.tail_name}"
        table.add_row(str(place), chance, *ranks, Text(clean(said)), Text(clean(doubt.reason)))
    Console(width=None if sys.stdout.isatty() else 160).print(table)
