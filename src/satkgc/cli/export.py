"""`satkgc export`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from satkgc.cli.arguments import DeviceOption, RunArgument, note_unfinished


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("export")(export)


def export(
    run: RunArgument,
    out: Annotated[Path, typer.Argument(help="The folder to write; it must not exist.", show_default=False)],
    format: Annotated[str, typer.Option(help="sentence-transformers, onnx, parquet or npy.")] = "sentence-transformers",
    as_json: Annotated[bool, typer.Option("--json", help="Print what was checked as JSON.")] = False,
    device: DeviceOption = "auto",
) -> None:
    """Export a model to other tools, with a model card.

    sentence-transformers and onnx write both towers of a text model and compare their vectors with the run's own;
    parquet and npy write the entity vectors, of an embedding model those of relations too. A mixture has no vectors:
    of a fused run (such as the recipe quick trains), the first expert that reads texts is written, and nothing else.

    [bold]Examples[/]

      satkgc export runs/demo demo-st

      satkgc export runs/demo demo-onnx --format onnx

      satkgc export runs/demo demo-vectors --format parquet
    """
    from satkgc.export import export as write

    note_unfinished(run)
    checks = write(run, format, out, device=device)
    if as_json:
        print(json.dumps(checks))
    else:
        expert = checks.pop("expert", None)
        only = "" if expert is None else f" of the expert {expert} alone"
        shown = ", ".join(
            f"{name} {value:.2g}" if isinstance(value, float) else f"{name} {value:,}" for name, value in checks.items()
        )
        typer.echo(f"{out}: {format}{only} ({shown})")
