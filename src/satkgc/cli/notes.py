"""What several commands have to say."""

from __future__ import annotations

from pathlib import Path

import typer


def note_unfinished(run: Path) -> None:
    """Say so if a run was stopped before its end: its answers are those of half a training."""
    from satkgc.training import Run

    opened = Run.load(run)
    if opened.log() and not opened.finished:
        typer.echo(
            f"{run} is not finished: the weights are the best so far; `satkgc train … --resume` goes on", err=True
        )
