"""What every sampler can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from satkgc.arrays import Int32
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.sampling.batch import Batch, Needs
from satkgc.sampling.config import SamplingConfig
from satkgc.sampling.distance import Distances
from satkgc.sampling.mcmc import Vectors
from satkgc.sampling.philox import NEGATIVES, seed_word, uniform

State = dict[str, np.ndarray[Any, Any]]


class Sampler(ABC):
    """Draws the batch of a step. Steps are drawn in order, since a schedule may count the visits.

    One that extends this need only say which `triples` a step has.
    """

    period: int | None = None
    """Steps between two calls of `refresh`, where draws depend on the model in training."""

    def __init__(
        self,
        kg: KnowledgeGraph,
        config: SamplingConfig,
        seed: int,
        needs: Needs = Needs(),
        vectors: Vectors | None = None,
    ) -> None:
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
        self.needs = needs
        self.vectors = vectors  # of the model in training
        self.distances = Distances(kg) if needs.hops else None
        self._pending: dict[int, Batch] = {}  # drawn by the sampler whose state was restored

    @property
    def steps_per_epoch(self) -> int:
        """Steps of one epoch by `epoch_rule`."""
        return self.config.steps_per_epoch(len(self.kg.train))

    def draw(self, step: int) -> Batch:
        """The batch of this step."""
        return self._pending.pop(step) if step in self._pending else self._draw(step)

    def state(self, pending: Sequence[Batch] = ()) -> State:
        """Everything that the next draws depend on; `pending` batches were drawn but not used yet and come first."""
        waiting = [*self._pending.values(), *pending]
        state = self._state()
        if waiting:
            state["pending_steps"] = np.array([batch.step for batch in waiting], np.int64)
            state["pending_triples"] = np.stack([batch.triples for batch in waiting])
            if self.needs.hops:
                state["pending_hops"] = np.stack([batch.hops for batch in waiting if batch.hops is not None])
        return state

    def restore(self, state: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Go on exactly as the sampler whose `state` this is would have."""
        steps, triples = state.get("pending_steps", ()), state.get("pending_triples")
        hops = state.get("pending_hops")
        self._pending = {
            int(step): self._batch(int(step), triples[i], None if hops is None else hops[i])
            for i, step in enumerate(steps)
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
        return self._batch(step, triples.astype(np.int32))

    def _batch(self, step: int, triples: Int32, hops: Int32 | None = None) -> Batch:
        """All that follows from the triples, the seed and the step."""
        head, relation, tail = self.kg.train[triples].T  # (n,) each
        if hops is None and self.distances is not None:
            hops = self.distances.hops(triples)
        negatives = None
        if self.needs.negatives:
            shape = 2 * len(triples), self.needs.negatives
            negatives = uniform(shape[0] * shape[1], self.kg.num_entities, self.seed, NEGATIVES, step).reshape(shape)
        return Batch(
            step,
            triples,
            np.concatenate([head, tail]),
            np.concatenate([relation, relation + self.kg.num_relations]),
            np.concatenate([tail, head]),
            hops,
            negatives,
        )

    def _state(self) -> State:
        return {}

    def _restore(self, state: Mapping[str, np.ndarray[Any, Any]]) -> None:
        return None
