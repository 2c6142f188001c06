"""What a person sees while a run goes on: a bar on a terminal, a line for every event anywhere."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

# In the order of their worth: a narrow terminal shows the first ones.
NUMBERS = (
    "loss {loss:.3f}",
    "{triples_per_second:,.0f} triples/s",
    "lr {lr:.1e}",
    "τ {tau:.4f}",
    "β {beta:.1e}",
    "wait {data_wait:.0%}",
)
TAKEN = 64  # columns of a terminal that bar, steps and times need


class Display:
    """A progress bar on stderr where that is a terminal; silent on all ranks but the first."""

    def __init__(self, first: bool = True) -> None:
        self.first = first
        self.console = Console(file=sys.stderr, highlight=False)
        columns = [
            TextColumn("training"),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
        ]
        self.progress = Progress(*columns, console=self.console, disable=not (first and sys.stderr.isatty()))

    def say(self, message: str) -> None:
        """One line about an event."""
        if self.first:
            self.progress.console.print(message, markup=False, soft_wrap=True)

    def start(self, done: int, total: int) -> None:
        """Show the bar."""
        self.task = self.progress.add_task("", total=total, completed=done)
        self.progress.start()

    def advance(self, done: int, record: dict[str, Any] | None = None) -> None:
        """Move the bar; with a record of the log, show its numbers."""
        if record is None:
            self.progress.update(self.task, completed=done)
            return
        text = ""
        for number in NUMBERS:
            longer = f"{text}  {number.format(**record)}".strip()
            if len(longer) > self.console.width - TAKEN:
                break
            text = longer
        self.progress.update(self.task, completed=done, description=text)

    def stop(self) -> None:
        """Leave the bar as it is."""
        self.progress.stop()
