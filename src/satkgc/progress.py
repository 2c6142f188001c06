"""How far long work is: a bar on a terminal, gone when the work is done; a line now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import Progress, TaskID

FIRST, EVERY = 10.0, 60.0  # seconds until the first line, and between two


class _Lines(Progress):
    """Where there is no terminal: of work that takes long, how much is done. Also of work that stands still: who looks
    wants to know that it lives."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(disable=True)
        self._clock = clock
        self._first: dict[TaskID, tuple[float, float]] = {}  # when the first advance of each was over, and how far
        self._ended = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._tell, daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        super().advance(task_id, advance)
        if task_id not in self._first:
            self._first[task_id] = self._clock(), self._tasks[task_id].completed

    def lines(self) -> list[str]:
        """One for each task that is not done. The first advance has what is done once, and says nothing of the rest."""
        found = []
        for task in self.tasks:
            if not task.total or task.finished:
                continue
            line = f"{task.description}: {task.completed:,.0f} of {task.total:,.0f}"
            began, before = self._first.get(task.id, (0.0, task.completed))
            if task.completed > before:
                left = (self._clock() - began) / (task.completed - before) * (task.total - task.completed)
                line += f", about {duration(left)} left"
            found.append(line)
        return found

    def _tell(self) -> None:
        wait = FIRST
        while not self._ended.wait(wait):
            for line in self.lines():
                print(line, file=sys.stderr, flush=True)
            wait = EVERY


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
