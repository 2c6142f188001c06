"""The samples of all steps to come, prepared ahead on other threads."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from satkgc.arrays import Int32
from satkgc.kg import KnowledgeGraph
from satkgc.models.text import Towers
from satkgc.sampling import Batch, Sampler, Stream
from satkgc.sampling.sampler import State as SamplerState
from satkgc.text import Texts
from satkgc.training.collate import Samples


class Batches:
    """Iterates over the samples of steps `start` to `stop - 1`; `state` is that of the sampler after the last one.

    A sampler that reads the model's vectors (MCMC) does so between two streams, so that what it sees does not depend on
    how far ahead the threads are. Only there can such a run be saved: later the model has moved on.
    """

    def __init__(
        self, sampler: Sampler, collate: Callable[[Batch], Samples], start: int, stop: int, workers: int = 1
    ) -> None:
        self.sampler = sampler
        self.collate = collate
        self.start, self.stop = start, stop
        self.workers = workers
        self.period = sampler.period
        self._stream: Stream[Samples] | None = None
        self._waited = 0.0

    def __iter__(self) -> Iterator[Samples]:
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
        """What the sampler needs to go on after the last samples that were handed out."""
        return self._stream.state() if self._stream is not None else self.sampler.state()

    @property
    def waited(self) -> float:
        """Seconds that the loop has waited for samples."""
        return self._waited + (self._stream.waited if self._stream is not None else 0.0)

    def close(self) -> None:
        """End the threads."""
        if self._stream is not None:
            self._stream.close()
            self._waited += self._stream.waited
            self._stream = None


class FrozenVectors:
    """The vectors of the model as it was at the last look: what the MCMC sampler asks for on its own thread."""

    def __init__(self, kg: KnowledgeGraph, texts: Texts, towers: Towers) -> None:
        self.kg, self.texts, self.towers = kg, texts, towers
        self._frozen: Towers | None = None

    def entity_vectors(self) -> Any:
        """All entities' vectors, after taking a copy of the model.  # (E, D)"""
        self._frozen = copy.deepcopy(self.towers).eval()
        return self._frozen.encode_entities(self.texts.entities(range(self.kg.num_entities)), progress=False)

    def query_vectors(self, triples: Int32) -> Any:
        """The query vectors of training triples.  # (n,) → (n, D)"""
        assert self._frozen is not None
        heads, relations, _ = self.kg.train[triples].T
        return self._frozen.encode_queries(self.texts.queries(heads, relations), progress=False)
