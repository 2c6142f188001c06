"""What several commands have to say."""

from __future__ import annotations

from pathlib import Path

import typer


def note_unfinished(run: Path) -> None:
    """Say so if a run was stopped before its end: its answers are those of half a training."""
    from satkgc.training import RunFolder

    opened = RunFolder.load(run)
    if (log := opened.log()) and not opened.finished:
        which = "best" if any("validation" in record for record in log) else "latest"
        typer.echo(
            f"{run} is not finished: the weights are the {which} so far; `satkgc train … --resume` goes on", err=True
        )
