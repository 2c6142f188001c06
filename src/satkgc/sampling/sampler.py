"""What a sampler is, what it draws, and the plain one: random batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from satkgc.arrays import Int32
from satkgc.errors import SatkgcError
from satkgc.kg import HopSearch, KnowledgeGraph
from satkgc.sampling.config import SamplingConfig
from satkgc.sampling.philox import NEGATIVES, PERMUTE, seed_word, shuffle, uniform

SamplerState = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Needs:
    """What batches carry besides ids."""

    hops: bool = False
    negatives: int = 0  # K, for each sample


@dataclass(frozen=True, eq=False)
class Batch:
    """The 2n samples of one step: n training triples, then their inverses in the same order.

    Sample i < n is (h, r) → t, sample n + i is (t, r + R) → h.
    """

    step: int
    triples: Int32  # (n,) rows of kg.train; the first is the centre
    heads: Int32  # (2n,)
    relations: Int32  # (2n,) directed
    tails: Int32  # (2n,)
    hops: Int32 | None = None  # (2n,) from the centre's head to each sample's tail, -1: no path; with Needs.hops
    negatives: Int32 | None = None  # (2n, K) uniform entities, a function of (seed, step); with Needs.negatives

    def __len__(self) -> int:
        return len(self.heads)

    def first(self, triples: int) -> Batch:
        """Its first so many triples, and their inverses."""
        n = len(self.triples)
        rows = np.concatenate([np.arange(triples), np.arange(n, n + triples)])
        heads, relations, tails = self.heads[rows], self.relations[rows], self.tails[rows]
        hops = None if self.hops is None else self.hops[rows]
        negatives = None if self.negatives is None else self.negatives[rows]
        return Batch(self.step, self.triples[:triples], heads, relations, tails, hops, negatives)


class SamplingVectors(Protocol):
    """What a sampler may ask of the model in training; both answers come from one state of it until `refresh`."""

    def query_vectors(self, triples: Int32) -> Any:
        """x_hr of these training triples, float32.  # (n,) -> (n, D)"""
        ...

    def entity_vectors(self) -> Any:
        """x_e of all entities, float32.  # (E, D)"""
        ...


class Sampler(ABC):
    """Draws the batch of a step. Steps are drawn in order, since a schedule may count the visits.

    To write one: a class that says which `triples` a step has, and one line in `SAMPLERS`. One that finds a subgraph
    for each batch extends `SubgraphSampler`. One that remembers something besides the step extends `state` and
    `restore`. One that reads the model's `vectors` sets `period` and reads them in `refresh`.
    """

    period: int | None = None
    """Steps between two calls of `refresh`, where draws depend on the model in training."""

    def __init__(
        self,
        kg: KnowledgeGraph,
        config: SamplingConfig,
        seed: int,
        needs: Needs = Needs(),
        vectors: SamplingVectors | None = None,
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
        self.vectors: SamplingVectors | None = vectors
        self._search = HopSearch(kg.adjacency) if needs.hops else None
        self._pending: dict[int, Batch] = {}  # drawn before the state that was restored

    @property
    def steps_per_epoch(self) -> int:
        """Steps of one epoch by `epoch_rule`."""
        return self.config.steps_per_epoch(len(self.kg.train))

    def draw(self, step: int) -> Batch:
        """The batch of this step."""
        return self._pending.pop(step) if step in self._pending else self._draw(step)

    @abstractmethod
    def triples(self, step: int) -> Int32:
        """The rows of kg.train that make the batch of this step, `config.triples` of them; the first is its centre."""

    def refresh(self) -> None:
        """Read the model in training anew: for the trainer, every `period` steps."""
        return None

    def state(self, pending: Sequence[Batch] = ()) -> SamplerState:
        """Everything that the next draws depend on; `pending` batches were drawn but not used yet and come first."""
        waiting = [*self._pending.values(), *pending]
        if not waiting:
            return {}
        state: SamplerState = {
            "pending_steps": np.array([batch.step for batch in waiting], np.int64),  # (p,)
            "pending_triples": np.stack([batch.triples for batch in waiting]),  # (p, n)
        }
        if self.needs.hops:
            state["pending_hops"] = np.stack([batch.hops for batch in waiting if batch.hops is not None])  # (p, 2n)
        return state

    def restore(self, state: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Go on exactly as the sampler whose `state` this is would have."""
        steps, triples, hops = (state.get(f"pending_{name}") for name in ("steps", "triples", "hops"))
        self._pending = {}
        if steps is None or triples is None:
            return
        for i, step in enumerate(steps.tolist()):
            self._pending[step] = self._batch(step, triples[i], None if hops is None else hops[i])

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
        return self._batch(step, triples)

    def _batch(self, step: int, triples: Any, hops: Int32 | None = None) -> Batch:
        """All that follows from the triples, the seed and the step; hops too, where they were not kept."""
        triples = triples.astype(np.int32)
        head, relation, tail = self.kg.train[triples].T  # (n,) each
        tails = np.concatenate([tail, head])
        if hops is None and self._search is not None:
            hops = self._search.hops(head[0], tails)
        negatives = None
        if self.needs.negatives:
            shape = len(tails), self.needs.negatives
            negatives = uniform(shape[0] * shape[1], self.kg.num_entities, self.seed, NEGATIVES, step).reshape(shape)
        return Batch(
            step,
            triples,
            heads=np.concatenate([head, tail]),
            relations=np.concatenate([relation, relation + self.kg.num_relations]),
            tails=tails,
            hops=hops,
            negatives=negatives,
        )


class RandomSampler(Sampler):
    """Triples without replacement, as SimKGC and the other baselines draw them.

    Each pass over the training set is a fresh permutation cut into batches; a remainder shorter than a batch is left
    out of that pass. The first triple of a batch stands in as its centre, so that hops have an origin.
    """

    _pass = -1
    _order: Int32 = np.empty(0, np.int32)

    def triples(self, step: int) -> Int32:
        """The next piece of the pass at hand."""
        size = self.config.triples
        number, place = divmod(step, len(self.kg.train) // size)
        if number != self._pass:
            self._order = np.arange(len(self.kg.train), dtype=np.int32)
            shuffle(self._order, len(self._order), self.seed, PERMUTE, number)
            self._pass = number
        return self._order[place * size : (place + 1) * size].copy()
