"""Arguments that several commands have: the run folder, and where its model runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunArgument = Annotated[Path, typer.Argument(help="The run folder that `satkgc train` wrote.", show_default=False)]
DeviceOption = Annotated[
    str, typer.Option("--device", help="auto: the GPU if there is one; cpu, cuda, cuda:1.", show_default=True)
]


def note_unfinished(run: Path) -> None:
    """Say so if training was stopped before its end: the answers are those of a half-trained model."""
    from satkgc.training import RunFolder

    folder = RunFolder.load(run)
    if (log := folder.log()) and not folder.finished:
        which = "best" if any("validation" in record for record in log) else "latest"
        typer.echo(
            f"{run} is not finished: the weights are the {which} so far; `satkgc train … --resume` continues", err=True
        )
