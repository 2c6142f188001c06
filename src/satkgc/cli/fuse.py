"""`satkgc fuse`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from satkgc.cli.arguments import DeviceOption
from satkgc.errors import UNFINISHED


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("fuse")(fuse)


def fuse(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Finished runs on the same graph.")],
    out: Annotated[Path, typer.Option(help="The run folder to write.", show_default=False)],
    hold_back: Annotated[
        float, typer.Option(min=0, max=0.9, help="Share of validation to leave out of the fit, and to measure on.")
    ] = 0.0,
    novelty: Annotated[
        bool, typer.Option("--novelty", help="For a graph whose held-out triples are about new entities.")
    ] = False,
    device: DeviceOption = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="Continue a fit that was stopped.")] = False,
) -> None:
    """Mix runs that exist into one: any kinds of models, or several seeds of one.

    Each becomes an expert of the new run, which holds a copy of it and needs the old one no more. How much each expert
    is believed, for each relation and direction, is fitted on the validation triples and written to
    RUN/model/fusion.json. `satkgc train KG --recipe fused` trains the experts as well.

    [bold]Examples[/]

      satkgc fuse runs/text runs/complex --out runs/fused

      satkgc fuse runs/text-seed0 runs/text-seed1 --out runs/text-two --hold-back 0.5
    """
    from satkgc.api import fuse_or_stop
    from satkgc.training import EXIT_CODES

    run, stopped = fuse_or_stop(runs, out, held_back=hold_back, novelty=novelty, device=device, resume=resume)
    print(run.folder)
    raise typer.Exit(0 if stopped is None else EXIT_CODES.get(stopped, UNFINISHED))
