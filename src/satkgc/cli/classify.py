"""`satkgc classify`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from satkgc.cli.arguments import DeviceOption, RunArgument, note_unfinished


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(classify)


def classify(
    run: RunArgument,
    valid_negatives: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Wrong triples (.tsv, .csv), by ids, to fit the thresholds with."),
    ] = None,
    test_negatives: Annotated[Path | None, typer.Option(metavar="FILE", help="Wrong triples to measure with.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON, each relation too.")] = False,
    device: DeviceOption = "auto",
) -> None:
    """Tell right test triples from wrong ones: accuracy and AUC, with a threshold for each relation fitted on valid.

    The wrong triples are those that were published with the graph (FB15k-237N has such), or of two files.

    [bold]Examples[/]

      satkgc classify runs/fb15k-237n

      satkgc classify runs/mine --valid-negatives wrong-valid.tsv --test-negatives wrong-test.tsv --json
    """
    from satkgc.completion import Completer

    note_unfinished(run)
    result = Completer.load(run, device).classify(valid_negatives, test_negatives)
    if as_json:
        print(json.dumps(asdict(result), ensure_ascii=False, indent=1))
    else:
        typer.echo(f"{result.right:,} right and {result.wrong:,} wrong test triples")
        typer.echo(f"accuracy {result.accuracy:.4f} ({result.accuracy_one_threshold:.4f} with one threshold for all)")
        typer.echo(f"AUC      {result.auc:.4f}")
        typer.echo(f"F1       {result.f1:.4f} (precision {result.precision:.4f}, recall {result.recall:.4f})")
