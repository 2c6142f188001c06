"""The model behind the API: loaded in the background, asked in micro-batches, exchanged for a new version of the run
and stopped without dropping a question."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fastapi import HTTPException, Request

from satkgc.completion import Answer, Question
from satkgc.errors import SatkgcError
from satkgc.serving.metrics import ServiceMetrics
from satkgc.serving.queue import ReviewQueue
from satkgc.serving.settings import MAX_WAITING, ServiceSettings

if TYPE_CHECKING:
    from satkgc.completion import Completer

CLIENT_CLOSED_REQUEST = 499  # nobody reads it; it is counted in /metrics
Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")
Asked = tuple["Completer", Question]  # a question, and the version of the run that is to answer it
LOOK = 1.0  # seconds between two looks whether there is a new version


class NotReady(Exception):
    """The model is still loading, or could not be loaded."""


class Busy(Exception):
    """More questions wait than the queue holds."""


class Service:
    """Loads a completer in the background: the port is open meanwhile, and `/health` says how far it is.

    `version` says which version of the run is there now, None where none can be opened. When it changes, the new one is
    loaded beside the old, which answers until then, and also afterwards what was asked of it.
    """

    def __init__(
        self, load: Callable[[], Completer], settings: ServiceSettings, version: Callable[[], object] = lambda: None
    ) -> None:
        self.metrics = ServiceMetrics()
        self.failure: Exception | None = None
        self.progress: str | None = None  # of a load that takes long
        self.on_failure: Callable[[], None] = lambda: None  # called if the completer cannot be loaded
        self.settings = settings
        self.loading = False  # whether a thread is opening a completer now
        self._load, self._version = load, version
        self._ready: tuple[Completer, ReviewQueue | None] | None = None
        self.batcher: Batcher[Asked, list[Answer]]  # where questions wait for their answers, once it has started
        self._settled, self._stopping = Event(), Event()

    @property
    def status(self) -> str:
        """loading, ready or failed."""
        return "ready" if self._ready else "failed" if self.failure else "loading"

    @property
    def completer(self) -> Completer:
        """The completer; NotReady until it is loaded. Another one may be here a moment later: keep it for a request."""
        return self._loaded()[0]

    @property
    def review(self) -> ReviewQueue:
        """The proposals to decide on; NotReady until the completer is loaded."""
        review = self._loaded()[1]
        assert review is not None, "its routes are there where it is"
        return review

    def start(self) -> None:
        """Begin to load."""
        self.batcher = Batcher(
            _answer,
            weight=lambda asked: asked[0].texts_read(asked[1]),
            size=self.settings.batch_size,
            wait=self.settings.batch_wait,
            capacity=MAX_WAITING,
            observe=self.metrics.batches.observe,
        )
        self.loading = True
        Thread(target=self._run, name="satkgc-load", daemon=True).start()

    def wait(self, seconds: float) -> None:
        """Until the completer is loaded, or could not be, or the time is over."""
        self._settled.wait(seconds)

    def ask(self, completer: Completer, question: Question) -> list[Answer]:
        """The answers to one question, by whatever pass of the model has room for it; waits for them."""
        return self.batcher.submit((completer, question)).result()

    def stop(self) -> None:
        """Answer what is still in the queue."""
        self._stopping.set()
        self.batcher.close()

    def _loaded(self) -> tuple[Completer, ReviewQueue | None]:
        if self._ready is None:
            progress = f" ({self.progress})" if self.progress else ""
            raise NotReady("the model could not be loaded" if self.failure else f"the model is still loading{progress}")
        return self._ready

    def _run(self) -> None:
        version = self._version()
        try:
            self._open()
        except Exception as error:
            self.failure = error
            self._settled.set()
            self.on_failure()
            return
        self.metrics.waiting.set_function(self.batcher.waiting)
        self.metrics.ready.set(1)
        self._settled.set()
        version = version or self._version()  # or it was prepared here
        while not self._stopping.wait(LOOK):
            if (now := self._version()) not in (None, version):
                version = now
                self._exchange()
                self._stopping.wait(LOOK)  # for the last answers of the version before
                gc.collect()  # its parts refer to one another, and Python hardly looks for such among a million objects

    def _open(self) -> None:
        self.loading = True
        try:
            completer = self._load()
            proposals = self.settings.proposals
            self._ready = completer, None if proposals is None else ReviewQueue.open(completer, proposals)
        finally:
            self.loading = False

    def _exchange(self) -> None:
        """Go on with the version that is there now; one that cannot be opened is left, and the next is waited for."""
        try:
            self._open()
        except Exception as error:
            print(f"the new version cannot be served, the one before goes on: {error}", file=sys.stderr, flush=True)
            return
        number = self.completer.info().run_version.number
        print(f"version {number} of the run is served now", file=sys.stderr, flush=True)


def _answer(asked: list[Asked]) -> list[list[Answer] | SatkgcError]:
    """Each question by the version that it was asked of: while one takes the place of another there are two."""
    answers: dict[int, list[Answer] | SatkgcError] = {}
    for completer in {id(completer): completer for completer, _ in asked}.values():
        rows = [row for row, (own, _) in enumerate(asked) if own is completer]
        answers |= zip(rows, completer.ask_each([asked[row][1] for row in rows]), strict=True)
    return [answers[row] for row in range(len(asked))]


class Batcher(Generic[Q, A]):
    """A queue drained by one thread, which hands questions to `answer` together until their weights reach `size`.

    The first question waits at most `wait` seconds for others. Under load nobody waits: what arrives while one batch is
    computed is the next batch. An answer that is an exception goes to its own question, and so does what `answer`
    raises.
    """

    def __init__(
        self,
        answer: Callable[[list[Q]], Sequence[A | Exception]],
        *,
        weight: Callable[[Q], int] = lambda question: 1,
        size: int,
        wait: float,
        capacity: int,
        observe: Callable[[int], None] = lambda size: None,
    ) -> None:
        self._answer, self._weight, self._size, self._wait, self._observe = answer, weight, size, wait, observe
        self._queue: Queue[tuple[Q, Future[A]] | None] = Queue(capacity)
        self._thread = Thread(target=self._run, name="satkgc-batcher", daemon=True)
        self._thread.start()

    def split(self, questions: Sequence[Q]) -> Iterator[list[Q]]:
        """Questions of one request in parts of one batch each: between two parts other requests get in."""
        part: list[Q] = []
        for question in questions:
            part.append(question)
            if sum(map(self._weight, part)) >= self._size:
                yield part
                part = []
        if part:
            yield part

    def submit(self, question: Q) -> Future[A]:
        """Queue a question; the future holds its answer, or its error."""
        future: Future[A] = Future()
        try:
            self._queue.put_nowait((question, future))
        except Full:
            raise Busy from None
        return future

    def waiting(self) -> int:
        """How many questions are in the queue now."""
        return self._queue.qsize()

    def close(self) -> None:
        """Answer what is queued, then end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while self._serve_next():
            pass

    def _serve_next(self) -> bool:
        """Wait for a batch and answer it; whether more may come. While it waits, nothing holds the last one."""
        first = self._queue.get()
        if first is None:
            return False
        batch, closing = self._gather(first)
        # The questions of a client that went away are cancelled (see `until_disconnect`): they cost nothing.
        batch = [(question, future) for question, future in batch if future.set_running_or_notify_cancel()]
        if batch:
            self._observe(len(batch))
            self._serve(batch)
        return not closing

    def _gather(self, first: tuple[Q, Future[A]]) -> tuple[list[tuple[Q, Future[A]]], bool]:
        batch, deadline = [first], time.monotonic() + self._wait
        while sum(self._weight(question) for question, _ in batch) < self._size:
            try:
                item = self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                break
            if item is None:
                return batch, True
            batch.append(item)
        return batch, False

    def _serve(self, batch: list[tuple[Q, Future[A]]]) -> None:
        try:
            answers = self._answer([question for question, _ in batch])
        except Exception as error:
            if len(batch) == 1:
                batch[0][1].set_exception(error)
                return
            # Halves instead of one by one: the questions beside a bad one still share their passes.
            self._serve(batch[: len(batch) // 2])
            self._serve(batch[len(batch) // 2 :])
        else:
            for (_, future), answer in zip(batch, answers, strict=True):
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)


async def until_disconnect(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled if the client goes away first, and with it what has not begun."""
    task, disconnect = asyncio.ensure_future(work), asyncio.ensure_future(_disconnect(request))
    try:
        await asyncio.wait({task, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise HTTPException(CLIENT_CLOSED_REQUEST, "the client went away")
        return task.result()
    finally:
        task.cancel()
        disconnect.cancel()


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
