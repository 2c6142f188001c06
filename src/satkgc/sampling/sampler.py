"""What every sampler can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from satkgc.arrays import Int32
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.sampling.batch import Batch
from satkgc.sampling.config import SamplingConfig
from satkgc.sampling.distance import Distances
from satkgc.sampling.mcmc import Vectors
from satkgc.sampling.philox import seed_word

State = dict[str, np.ndarray[Any, Any]]


class Sampler(ABC):
    """Draws the batch of a step. Steps are drawn in order, since a schedule may count the visits.

    One that extends this need only say which `triples` a step has.
    """

    period: int | None = None
    """Steps between two calls of `refresh`, where draws depend on the model in training."""

    def __init__(self, kg: KnowledgeGraph, config: SamplingConfig, seed: int, vectors: Vectors | None = None) -> None:
        if len(kg.train) < config.triples:
            raise SatkgcError(
                f"a batch of {config.triples:,} triples and their inverses is larger than the training graph "
                f"({len(kg.train):,} triples)",
                remedy=f"set sampling.batch_size to {2 * len(kg.train)} or less"
                if len(kg.train)
                else "give it training triples",
            )
        self.kg = kg
        self.config = config
        self.seed = seed_word(seed)
        self.vectors = vectors  # of the model in training
        self.distances = Distances(kg, config.distances)
        self._ready: dict[int, Batch] = {}

    @property
    def steps_per_epoch(self) -> int:
        """Steps of one epoch by `epoch_rule`."""
        return self.config.steps_per_epoch(len(self.kg.train))

    def draw(self, step: int) -> Batch:
        """The batch of this step."""
        return self._ready.pop(step, None) or self._draw(step)

    def state(self, pending: Sequence[Batch] = ()) -> State:
        """Everything that the next draws depend on; `pending` batches were drawn but not used yet and come first."""
        waiting = [*self._ready.values(), *pending]
        state = self._state()
        if waiting:
            state["pending_steps"] = np.array([[batch.step, batch.centre] for batch in waiting], np.int64)
            state["pending_triples"] = np.stack([batch.triples for batch in waiting])
            state["pending_distances"] = np.stack([batch.distances for batch in waiting])
            if waiting[0].pairs is not None:
                state["pending_pairs"] = np.stack([batch.pairs for batch in waiting if batch.pairs is not None])
        return state

    def restore(self, state: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Go on exactly as the sampler whose `state` this is would have."""
        pairs = state.get("pending_pairs")
        self._ready = {
            int(step): Batch(
                int(step),
                int(centre),
                state["pending_triples"][i].astype(np.int32),
                state["pending_distances"][i].astype(np.int32),
                None if pairs is None else pairs[i].astype(np.int32),
            )
            for i, (step, centre) in enumerate(state.get("pending_steps", ()))
        }
        self._restore(state)

    def refresh(self) -> None:
        """Read the model in training anew: for the trainer, every `period` steps."""
        return None

    @abstractmethod
    def triples(self, step: int) -> Int32:
        """The rows of kg.train that make the batch of this step, `config.triples` of them; the first is its centre."""

    def _draw(self, step: int) -> Batch:
        triples = np.asarray(self.triples(step))
        if triples.shape != (self.config.triples,):
            raise SatkgcError(
                f"the sampler {type(self).__qualname__} gave {triples.size:,} triples for step {step}",
                remedy=f"make it give {self.config.triples:,}, half of sampling.batch_size",
            )
        count = len(self.kg.train)
        if triples.dtype.kind not in "iu" or triples.min() < 0 or triples.max() >= count:
            raise SatkgcError(
                f"the sampler {type(self).__qualname__} gave no rows of kg.train for step {step}",
                remedy=f"make it give whole numbers from 0 to {count - 1}",
            )
        triples = triples.astype(np.int32)
        return self.distances.batch(step, triples, triples)

    def _state(self) -> State:
        return {}

    def _restore(self, state: Mapping[str, np.ndarray[Any, Any]]) -> None:
        return None
