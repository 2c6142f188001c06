"""SIGTERM, Ctrl-C and a closed terminal: the loop stops between two steps, after it has saved."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

HANG_UP = getattr(signal, "SIGHUP", None)  # the terminal was closed; Windows has no such signal

T = TypeVar("T")


class _StopNow(BaseException):
    """A signal, in work that may be left at any point."""


class Interrupts:
    """Inside, the first signal only sets `signal`, and says so; a second one acts as it would have without this.

    But a second SIGHUP does nothing: a shell that is closed passes it on, and the system sends another. Nor does any
    second one under torchrun, which passes on what its processes have been sent already.
    """

    SIGNALS = tuple(number for number in (signal.SIGINT, signal.SIGTERM, HANG_UP) if number is not None)

    def __init__(self, say: Callable[[str], None] | None = None) -> None:
        self.say = say
        self.signal: str | None = None
        self._before: dict[int, Any] = {}
        self._at_once = False

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():  # elsewhere Python allows no handlers
            # nohup has hang-ups ignored, and that is to stay.
            ignored = HANG_UP is not None and signal.getsignal(HANG_UP) is signal.SIG_IGN
            handled = [number for number in self.SIGNALS if not (number == HANG_UP and ignored)]
            self._before = {number: signal.signal(number, self._handle) for number in handled}
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def unless_signalled(self, work: Callable[[], T]) -> T | None:
        """Do work that can be done again later: None if a signal has come already, or ends it in the middle."""
        if self.signal is not None:
            return None
        self._at_once = True
        try:
            return work()
        except _StopNow:
            return None
        finally:
            self._at_once = False

    def _handle(self, number: int, _: FrameType | None) -> None:
        self.signal = signal.Signals(number).name
        relayed = "TORCHELASTIC_RUN_ID" in os.environ
        kept = {n: handler for n, handler in self._before.items() if relayed or n == HANG_UP}
        self._restore()
        for kind in kept:
            signal.signal(kind, signal.SIG_IGN)
        self._before = kept
        if self.say is not None:
            more = "" if relayed or number == HANG_UP else "; once more stops it at once, unsaved"
            first = "validation is left for later" if self._at_once else "this step ends"
            self.say(f"{self.signal}: {first}, then the run is saved{more}")
        if self._at_once:
            raise _StopNow

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}
