"""Micro-batching: questions that arrive together are answered by one pass of the model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from queue import Empty, Full, Queue
from threading import Thread
from typing import Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")


class Busy(Exception):
    """More questions wait than the queue holds."""


class Batcher(Generic[Q, A]):
    """A queue drained by one thread, which hands questions to `answer` at once until their weights reach `size`.

    The first question waits at most `wait` seconds for others. Under load nobody waits: what arrived while the last
    batch was computed is the next one. An answer that is an exception goes to its own question, and so does what
    `answer` raises.
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

    def slices(self, questions: Sequence[Q]) -> Iterator[list[Q]]:
        """Questions that come together, in parts of one batch each: between two of them others get in."""
        part: list[Q] = []
        for question in questions:
            part.append(question)
            if sum(map(self._weight, part)) >= self._size:
                yield part
                part = []
        if part:
            yield part

    def submit(self, question: Q) -> Future[A]:
        """Queue a question; the future holds its answer or what went wrong with it."""
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
        while (first := self._queue.get()) is not None:
            batch, ended = self._gather(first)
            # The questions of a client that went away were cancelled (see `waiting.unless_gone`): they cost nothing.
            batch = [(question, future) for question, future in batch if future.set_running_or_notify_cancel()]
            if batch:
                self._observe(len(batch))
                self._serve(batch)
            if ended:
                return

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
