"""What a person sees while a run goes on: a bar on a terminal, a line a minute elsewhere, and one for every event."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from satkgc.progress import duration

TAKEN = 64  # columns of a terminal that bar, steps and times need
EVERY = 60.0  # seconds between two lines where there is no bar


class Display:
    """A progress bar on stderr where that is a terminal, lines elsewhere; silent on all ranks but the first."""

    def __init__(
        self, first: bool = True, title: str = "training", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.first = first
        self.clock = clock
        self.console = Console(file=sys.stderr, highlight=False, force_jupyter=False)  # lines in a notebook too
        columns = [
            TextColumn(title),
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
            with _terminal_may_go():
                self.progress.console.print(message, markup=False, soft_wrap=True)

    def start(self, done: int, total: int) -> None:
        """Show the bar."""
        self._total, self._record = total, dict[str, Any]()
        self._began: tuple[int, float] | None = None  # the first step and when it was done
        self.task = self.progress.add_task("", total=total, completed=done)
        with _terminal_may_go():
            self.progress.start()

    def advance(self, done: int, record: dict[str, Any] | None = None) -> None:
        """Move the bar; with a record of the log, show its numbers."""
        if self.progress.disable:
            self._record = record or self._record
            self._tell(done)
            return
        if record is None:
            self.progress.update(self.task, completed=done)
            return
        text = ""
        for number in _numbers(record):
            longer = f"{text}  {number}".strip()
            if len(longer) > self.console.width - TAKEN:
                break
            text = longer
        self.progress.update(self.task, completed=done, description=text)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The bar makes room for another one."""
        self.progress.live.transient = True
        self.stop()
        try:
            yield
        finally:
            self.progress.live.transient = False
            with _terminal_may_go():
                self.progress.start()

    def stop(self) -> None:
        """Leave the bar as it is."""
        with _terminal_may_go():
            self.progress.stop()

    def _tell(self, done: int) -> None:
        """A sign of life: after the first step, then about once a minute."""
        now = self.clock()
        if self._began is None:
            self._began, self._told = (done, now), now
            self.say(f"step {done} of {self._total}")
        elif now - self._told >= EVERY and done < self._total:
            self._told = now
            step, began = self._began
            numbers = _numbers(self._record)[:2] if self._record else []
            numbers.append(f"about {duration((now - began) / (done - step) * (self._total - done))} left")
            self.say(f"step {done} of {self._total}: {', '.join(numbers)}")


def _numbers(record: dict[str, Any]) -> list[str]:
    """A record of the log in the order of its worth: a narrow terminal shows the first ones."""
    numbers = [f"loss {record['loss']:.3f}", f"{record['triples_per_second']:,.0f} triples/s", f"lr {record['lr']:.1e}"]
    numbers += [f"{name.replace('_', ' ')} {value:.3g}" for name, value in record["metrics"].items()]
    return [*numbers, f"wait {record['data_wait']:.0%}"]


@contextmanager
def _terminal_may_go() -> Iterator[None]:
    """Writing to a terminal that was closed is an error: then nothing is shown any more, and the run goes on."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for number in (1, 2):
            try:
                os.write(number, b"")
            except OSError:
                os.dup2(nowhere, number)
        os.close(nowhere)
