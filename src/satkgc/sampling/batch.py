"""What a sampler hands on, and what every sampler can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.kg.vocabulary import Int32
from satkgc.sampling.config import SamplingConfig
from satkgc.sampling.philox import seed_word

State = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True, eq=False, slots=True)
class Batch:
    """n training triples; with their inverses they are the 2n samples of one step."""

    step: int
    centre: int  # a training triple, the first of `triples`
    triples: Int32  # (n,) rows of kg.train
    distances: Int32  # (n, 2) hops from the centre's head to each triple's head and tail; -1: not reached
    pairs: Int32 | None = None  # (2n, 2n) hops from sample i's head to sample j's tail; with `distances = "pairs"`


class Sampler(ABC):
    """Draws the batch of a step. Steps are drawn in order, since the schedule counts the visits."""

    def __init__(self, kg: KnowledgeGraph, config: SamplingConfig, seed: int) -> None:
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
        """Read the model in training anew, where draws depend on it: for the trainer, every `mcmc.refresh` steps."""
        return None

    @abstractmethod
    def _draw(self, step: int) -> Batch: ...

    def _state(self) -> State:
        return {}

    def _restore(self, state: Mapping[str, np.ndarray[Any, Any]]) -> None:
        return None
