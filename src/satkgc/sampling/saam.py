"""Subgraph as a Mini-batch (SaaM, Section 4.2): the least-visited centre, its subgraph, |B|/2 of its triples."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numba import njit

from satkgc.arrays import Int32, Int64
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.sampling.config import SamplingConfig
from satkgc.sampling.hashset import contains, insert, new_set
from satkgc.sampling.philox import CENTRE, FILL, SELECT, SHARE, below, seed_word, shuffle, words
from satkgc.sampling.sampler import Batch, Needs, Sampler, SamplerState, SamplingVectors

TRIES = 16  # candidates looked at per missing triple before entity-disjointness is given up
_NONE = np.zeros(0, np.int32)


class SubgraphSampler(Sampler):
    """Batches from the subgraphs of least-visited triples. A new kind of subgraph is a class that finds one."""

    def __init__(
        self,
        kg: KnowledgeGraph,
        config: SamplingConfig,
        seed: int,
        needs: Needs = Needs(),
        vectors: SamplingVectors | None = None,
    ) -> None:
        super().__init__(kg, config, seed, needs, vectors)
        self.schedule = Schedule(len(kg.train), seed)

    @abstractmethod
    def subgraph(self, centre: int, step: int) -> Int32:
        """Distinct training triples around the centre, a training triple; a fresh array."""

    def triples(self, step: int) -> Int32:
        """The centre, and of its subgraph as many as a batch has."""
        schedule, config = self.schedule, self.config
        centre = schedule.centre(step)
        triples: Int32 = assemble(
            centre,
            self.subgraph(centre, step),
            round(config.random_share * config.triples),
            config.triples,
            config.entity_disjoint,
            schedule.visits if config.pick == "least-visited" else _NONE,
            self.kg.train,
            schedule.order,
            schedule.place,
            schedule.bounds,
            self.seed,
            step,
        )
        schedule.visit(triples)
        return triples

    def state(self, pending: Sequence[Batch] = ()) -> SamplerState:
        """The pending batches, and the schedule."""
        schedule = self.schedule
        return {**super().state(pending), "visits": schedule.visits.copy(), "order": schedule.order.copy()}

    def restore(self, state: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Go on exactly as the sampler whose `state` this is would have."""
        count = len(state.get("visits", ()))
        if count != len(self.kg.train):
            raise SatkgcError(
                f"the saved sampler counted {count:,} triples, this graph has {len(self.kg.train):,}",
                remedy="resume with the graph the run was started on",
            )
        super().restore(state)
        self.schedule.restore(state["visits"], state["order"])


class Schedule:
    """Visit counts kept sorted, so that choosing and counting are O(1).

    `order` lists the triples by visits; those with c visits are `order[bounds[c]:bounds[c + 1]]`, in no particular
    order. One more visit swaps a triple with the last of its block and moves the border by one. 12 bytes a triple.
    """

    def __init__(self, num_triples: int, seed: int) -> None:
        self.seed = seed_word(seed)
        self.restore(np.zeros(num_triples, np.int32), np.arange(num_triples, dtype=np.int32))

    def restore(self, visits: Any, order: Any) -> None:
        """Take up saved `visits` and `order`; the rest follows from them."""
        self.visits: Int32 = np.array(visits, np.int32)  # (T,)
        self.order: Int32 = np.array(order, np.int32)  # (T,)
        self.place: Int32 = np.empty_like(self.order)  # (T,) order[place[t]] == t
        self.place[self.order] = np.arange(len(self.order), dtype=np.int32)
        counts = np.bincount(self.visits, minlength=1)
        self.bounds: Int64 = np.concatenate([[0], np.cumsum(counts)])
        self.least = int(self.visits.min(initial=0))
        if np.any(np.diff(self.visits[self.order]) < 0):
            raise SatkgcError("the saved order of the triples does not agree with their visit counts")

    def centre(self, step: int) -> int:
        """A least-visited triple, ties broken at random."""
        while self.bounds[self.least + 1] == 0:
            self.least += 1
        return int(_one_of(self.order, self.bounds[self.least + 1], self.seed, step))

    def visit(self, triples: Int32) -> None:
        """Count one visit of each of these distinct triples."""
        if self.bounds[-2] < len(self.visits):  # somebody is in the last block: there must be one after it
            bounds = np.full(2 * len(self.bounds), len(self.visits), np.int64)
            bounds[: len(self.bounds)] = self.bounds
            self.bounds = bounds
        _visit(triples, self.visits, self.order, self.place, self.bounds)


@njit(cache=True, nogil=True)
def _one_of(order, count, seed, step):  # type: ignore[no-untyped-def]
    a, b, _, _ = words(seed, CENTRE, step, 0)
    return order[below(a, b, count)[0]]


@njit(cache=True, nogil=True)
def swap(order, place, i, j):  # type: ignore[no-untyped-def]
    """Swap two places."""
    s, t = order[i], order[j]
    order[i], order[j] = t, s
    place[t], place[s] = i, j


@njit(cache=True, nogil=True)
def _visit(triples, visits, order, place, bounds):  # type: ignore[no-untyped-def]
    for t in triples:
        block = visits[t] + 1
        bounds[block] -= 1
        swap(order, place, place[t], bounds[block])
        visits[t] = block


@njit(cache=True, nogil=True)
def assemble(centre, subgraph, num_random, size, disjoint, visits, triples, order, place, bounds, seed, step):  # type: ignore[no-untyped-def]
    """The triples of a batch, the centre first.  # (size,)

    1. The centre, always: a least-visited triple that stayed unvisited would be chosen for ever.
    2. The subgraph in random order, with `visits` (T,) by them first, up to `size - num_random` triples.
    3. `num_random` triples drawn from the whole training set ("Mixed").
    4. What is still missing: the least-visited triples, ties broken at random.

    No triple comes twice. With `disjoint`, a triple enters only if neither of its ends is in the batch yet; where
    steps 3 and 4 find no such triple among `TRIES` candidates for each one missing, step 4 goes on without it, since
    a star, say, holds no two disjoint triples and a batch has a fixed size.
    """
    batch = np.empty(size, np.int32)
    inside = new_set(size)
    ends = new_set(2 * size)
    insert(inside, centre)
    insert(ends, triples[centre, 0])
    insert(ends, triples[centre, 2])
    batch[0] = centre
    count = 1

    shuffle(subgraph, len(subgraph), seed, SELECT, step)
    if len(visits) > 0:
        subgraph = subgraph[np.argsort(visits[subgraph], kind="mergesort")]
    for triple in subgraph:
        if count >= size - num_random:
            break
        if _admit(triple, triples, disjoint, inside, ends):
            batch[count] = triple
            count += 1

    target = min(size, count + num_random)
    for i in range(TRIES * num_random):
        if count >= target:
            break
        a, b, _, _ = words(seed, SHARE, step, i)
        triple = np.int32(below(a, b, len(triples))[0])
        if _admit(triple, triples, disjoint, inside, ends):
            batch[count] = triple
            count += 1

    shuffled = 0  # places of `order` so far: a second look finds them in the same random order
    for keep_disjoint in (disjoint, False):
        at = 0
        tries = min(TRIES * (size - count), len(order)) if keep_disjoint else len(order)
        block = 0
        while count < size and at < tries:
            while bounds[block + 1] <= at:
                block += 1
            if at == shuffled:
                a, b, _, _ = words(seed, FILL, step, at)
                swap(order, place, at, at + below(a, b, bounds[block + 1] - at)[0])
                shuffled += 1
            triple = order[at]
            at += 1
            if _admit(triple, triples, keep_disjoint, inside, ends):
                batch[count] = triple
                count += 1
    return batch


@njit(cache=True, nogil=True)
def _admit(triple, triples, disjoint, inside, ends):  # type: ignore[no-untyped-def]
    """Take the triple in unless it is there already or, where that matters, one of its ends is."""
    if contains(inside, triple):
        return False
    h, t = triples[triple, 0], triples[triple, 2]
    if disjoint and (contains(ends, h) or contains(ends, t)):
        return False
    insert(inside, triple)
    insert(ends, h)
    insert(ends, t)
    return True
