"""`satkgc export`."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """Forms that other tools read."""

    sentence_transformers = "sentence-transformers"
    onnx = "onnx"
    parquet = "parquet"
    npy = "npy"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("export")(export)


def export(
    run: Annotated[Path, typer.Argument(help="The run folder that `satkgc train` wrote.", show_default=False)],
    out: Annotated[Path, typer.Argument(help="The folder to write; it must not exist.", show_default=False)],
    format: Annotated[Format, typer.Option(help="What to write.")] = Format.sentence_transformers,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was checked as JSON.")] = False,
) -> None:
    """Give a model to other tools, with a model card.

    sentence-transformers and onnx write both towers and compare their vectors with the run's own; parquet and npy
    write the entity vectors.

    [bold]Examples[/]

      satkgc export runs/demo demo-st

      satkgc export runs/demo demo-onnx --format onnx

      satkgc export runs/demo demo-vectors --format parquet
    """
    from satkgc.cli.notes import note_unfinished
    from satkgc.export import export as write

    note_unfinished(run)
    facts = write(run, format.value, out)
    if as_json:
        print(json.dumps(facts))
    else:
        told = ", ".join(
            f"{name} {value:.2g}" if isinstance(value, float) else f"{name} {value:,}" for name, value in facts.items()
        )
        typer.echo(f"{out}: {format.value} ({told})")
