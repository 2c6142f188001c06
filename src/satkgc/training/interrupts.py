"""SIGTERM and Ctrl-C as a wish to stop, which the loop grants between two steps."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class Interrupts:
    """Inside, the first signal only sets `asked`, and says so; a second one acts as it would have without this."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self, say: Callable[[str], None] | None = None) -> None:
        self.say = say
        self.asked: str | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():  # elsewhere Python allows no handlers
            self._before = {number: signal.signal(number, self._ask) for number in self.SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _ask(self, number: int, _: FrameType | None) -> None:
        self.asked = signal.Signals(number).name
        self._restore()
        if self.say is not None:
            self.say(f"{self.asked}: this step ends, then the run is saved; once more stops it at once, unsaved")

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}
