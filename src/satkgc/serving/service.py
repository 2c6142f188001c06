"""The loaded model behind the API: absent at first, then ready, and stopped without dropping a question."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING

from satkgc.completion import Answer, Question
from satkgc.serving.batching import Batcher
from satkgc.serving.metrics import Metrics
from satkgc.serving.settings import MAX_WAITING, Settings

if TYPE_CHECKING:
    from satkgc.completion import Completer


class NotReady(Exception):
    """The model is still loading, or could not be loaded."""


class Service:
    """Loads a completer in the background, so that the port is open and `/health` can say so meanwhile."""

    def __init__(self, load: Callable[[], Completer], settings: Settings) -> None:
        self.metrics = Metrics()
        self.failure: Exception | None = None
        self.doing: str | None = None  # what loading is at, where it takes long
        self.settings = settings
        self._load = load
        self._ready: tuple[Completer, Batcher[Question, list[Answer]]] | None = None

    @property
    def status(self) -> str:
        """loading, ready or failed."""
        return "ready" if self._ready else "failed" if self.failure else "loading"

    @property
    def completer(self) -> Completer:
        """The completer, once it is there."""
        return self._loaded()[0]

    @property
    def batcher(self) -> Batcher[Question, list[Answer]]:
        """Where questions wait for their answers."""
        return self._loaded()[1]

    def start(self, failed: Callable[[], None] = lambda: None) -> None:
        """Begin to load; `failed` is called should that not work."""
        Thread(target=self._run, args=[failed], name="satkgc-load", daemon=True).start()

    def stop(self) -> None:
        """Answer what still waits."""
        if self._ready:
            self._ready[1].close()

    def _loaded(self) -> tuple[Completer, Batcher[Question, list[Answer]]]:
        if self._ready is None:
            doing = f" ({self.doing})" if self.doing else ""
            raise NotReady("the model could not be loaded" if self.failure else f"the model is still loading{doing}")
        return self._ready

    def _run(self, failed: Callable[[], None]) -> None:
        try:
            completer = self._load()
            batcher = Batcher(
                completer.ask_each,
                weight=completer.texts_read,
                size=self.settings.batch_size,
                wait=self.settings.batch_wait,
                capacity=MAX_WAITING,
                observe=self.metrics.batches.observe,
            )
        except Exception as error:
            self.failure = error
            failed()
            return
        self.metrics.waiting.set_function(batcher.waiting)
        self.metrics.ready.set(1)
        self._ready = completer, batcher
