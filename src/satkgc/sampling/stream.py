"""Batches ahead of time: drawn in order on one thread, prepared on several, handed over in order."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

from satkgc.sampling.sampler import Batch, Sampler, SamplerState

Item = TypeVar("Item")


class Stream(Generic[Item]):
    """An iterator over `transform(batch)` for the steps `start` to `stop - 1`, the same for any number of workers.

    At most `depth + 1` batches are ahead of the consumer. The compiled parts of drawing and of a good transform hold
    no interpreter lock, so they run beside the consumer. An exception in a draw or a transform is raised where the
    consumer asks for that batch, with its own traceback. Use it in a `with` statement, or call `close`: either stops
    the threads, whether all batches were taken or not. `waited` is the time, in seconds, the consumer had to wait.
    """

    def __init__(
        self,
        sampler: Sampler,
        start: int,
        stop: int,
        transform: Callable[[Batch], Item] | None = None,
        workers: int = 1,
        depth: int = 4,
    ) -> None:
        self.waited = 0.0
        self._sampler = sampler
        self._left = stop - start
        self._work = _Work(sampler, range(start, stop), transform or cast(Callable[[Batch], Item], _same), depth)
        self._workers = ThreadPoolExecutor(max(1, workers), thread_name_prefix="satkgc-prepare")
        # The thread knows the work, not the stream: a stream that nobody holds any more can then close itself.
        self._thread = threading.Thread(
            target=_draw_all, args=(self._work, self._workers), name="satkgc-draw", daemon=True
        )
        self._thread.start()

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        if self._left <= 0 or self._work.stopped.is_set():
            raise StopIteration
        began = time.perf_counter()
        try:
            item = self._work.ready.get().result()
        except BaseException:
            self.close()
            raise
        finally:
            self.waited += time.perf_counter() - began
        self._left -= 1
        self._work.pending.popleft()
        return cast(Item, item)

    def state(self) -> SamplerState:
        """The sampler's state as of the last batch handed over: those drawn ahead are kept in it."""
        with self._work.lock:
            return self._sampler.state(pending=list(self._work.pending))

    def close(self) -> None:
        """Stop the threads and wait for them; closing twice does no harm."""
        self._work.stopped.set()
        while self._thread.is_alive():
            try:  # take one out, in case the drawing thread waits to put one in
                self._work.ready.get_nowait()
            except queue.Empty:
                self._thread.join(0.01)
        self._workers.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Stream[Item]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_thread"):
            self.close()


class _Work:
    """What the drawing thread and the consumer share."""

    def __init__(self, sampler: Sampler, steps: range, transform: Callable[[Batch], Any], depth: int) -> None:
        self.sampler = sampler
        self.steps = steps
        self.transform = transform
        self.ready: queue.Queue[Future[Any]] = queue.Queue(max(1, depth))
        self.pending: deque[Batch] = deque()  # drawn, not handed over
        self.lock = threading.Lock()  # held while the sampler's state changes
        self.stopped = threading.Event()


def _same(batch: Batch) -> Batch:
    return batch


def _draw_all(work: _Work, workers: ThreadPoolExecutor) -> None:
    for step in work.steps:
        if work.stopped.is_set():
            return
        try:
            with work.lock:
                batch = work.sampler.draw(step)
                work.pending.append(batch)
            future = workers.submit(work.transform, batch)
        except BaseException as error:
            future = Future()
            future.set_exception(error)
            work.ready.put(future)
            return
        work.ready.put(future)
