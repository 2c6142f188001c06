"""How far long work is: a bar on a terminal, gone when the work is done; a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import Progress, TaskID

FIRST, EVERY = 10.0, 60.0  # seconds until the first line, and between two


class _Lines(Progress):
    """Where there is no terminal: of work that takes long, how much is done."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(disable=True)
        self.clock = clock
        self._began = clock()
        self._next = self._began + FIRST
        self._before: dict[TaskID, float] = {}  # what was done of each by an earlier process

    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        task = self._tasks[task_id]
        before = self._before.setdefault(task_id, task.completed)
        super().advance(task_id, advance)
        now = self.clock()
        if now < self._next or not task.total or task.completed <= before or task.finished:
            return
        self._next = now + EVERY
        left = (now - self._began) / (task.completed - before) * (task.total - task.completed)
        done = f"{task.completed:,.0f} of {task.total:,.0f}"
        print(f"{task.description}: {done}, about {duration(left)} left", file=sys.stderr, flush=True)


_spinners: list[Callable[[], object]] = []


def give_way(stop: Callable[[], object]) -> None:
    """What to call when a bar is shown: two displays at once would write over each other."""
    _spinners[:] = [stop]


def progress_bar(shown: bool = True) -> Progress:
    """A context in which tasks are added and advanced."""
    while shown and _spinners:
        _spinners.pop()()
    if shown and not sys.stderr.isatty():
        return _Lines()
    return Progress(console=Console(file=sys.stderr), transient=True, disable=not shown)


def duration(seconds: float) -> str:
    """So long, as one says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
