"""The batches of all steps to come, drawn and collated ahead on other threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from satkgc.arrays import Float32, Int32
from satkgc.errors import SatkgcError
from satkgc.models import Model, Questions, VectorModel
from satkgc.sampling import Batch, Sampler, SamplerState, Stream


class Batches:
    """Iterates over the collated batches of steps `start` to `stop - 1`; `state` is the sampler's after the last one.

    A sampler that reads the model's vectors (MCMC) does so between two streams, so that what it sees does not depend on
    how far ahead the threads are. Only there can such a run be saved: later the model has moved on.
    """

    def __init__(
        self, sampler: Sampler, collate: Callable[[Batch], Any], start: int, stop: int, workers: int = 1
    ) -> None:
        self.sampler = sampler
        self.collate = collate
        self.start, self.stop = start, stop
        self.workers = workers
        self.period = sampler.period
        self._stream: Stream[Any] | None = None
        self._waited = 0.0

    def __iter__(self) -> Iterator[Any]:
        step = self.start
        while step < self.stop:
            end = self.stop
            if self.period is not None:
                self.sampler.refresh()
                end = min(self.stop, (step // self.period + 1) * self.period)
            self._stream = Stream(self.sampler, step, end, self.collate, workers=self.workers)
            yield from self._stream
            self.close()
            step = end

    def may_save(self, step: int) -> bool:
        """Whether a run saved after so many steps can go on as if it had not stopped."""
        return self.period is None or step % self.period == 0 or step == self.stop

    def state(self) -> SamplerState:
        """What the sampler needs to go on after the last batch that was handed out."""
        return self._stream.state() if self._stream is not None else self.sampler.state()

    @property
    def waited(self) -> float:
        """Seconds that the loop has waited for batches."""
        return self._waited + (self._stream.waited if self._stream is not None else 0.0)

    def close(self) -> None:
        """End the threads."""
        if self._stream is not None:
            self._stream.close()
            self._waited += self._stream.waited
            self._stream = None


class FrozenVectors:
    """The vectors of the model as it was at the last refresh: what the MCMC sampler asks for on its own thread."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._frozen: VectorModel | None = None

    def entity_vectors(self) -> Float32:
        """All entities' vectors, after taking a copy of the model.  # (E, D)"""
        if not isinstance(self.model, VectorModel):
            what = f"the sampler reads vectors, which a {type(self.model).__name__} has not"
            raise SatkgcError(what, remedy="choose another sampling.sampler")
        self._frozen = self.model.frozen()
        return self._frozen.encode_entities(np.arange(self.model.kg.num_entities, dtype=np.int32))

    def query_vectors(self, triples: Int32) -> Float32:
        """The query vectors of training triples.  # (n,) → (n, D)"""
        assert self._frozen is not None
        heads, relations, _ = self.model.kg.train[triples].T
        return self._frozen.encode_questions(Questions(heads, relations))
