"""Hops from the centre's head to the entities of a batch (Section 4.3)."""

from __future__ import annotations

import numpy as np
from numba import njit

from satkgc.kg import KnowledgeGraph
from satkgc.kg.vocabulary import Int32
from satkgc.sampling.batch import Batch
from satkgc.sampling.config import DistanceScope


class Distances:
    """Breadth-first distances in the undirected training graph.

    `mark` remembers who was seen without being cleared between batches: the marks of a search lie above those of all
    searches before it, and the difference to the search's base is the distance.
    """

    def __init__(self, kg: KnowledgeGraph, scope: DistanceScope) -> None:
        self.kg = kg
        self.scope = scope
        self.mark: Int32 = np.zeros(kg.num_entities if scope == "graph" else 0, np.int32)  # (E,)
        self.queue: Int32 = np.empty_like(self.mark)  # (E,)
        self.base = 1

    def batch(self, step: int, triples: Int32, subgraph: Int32) -> Batch:
        """The batch of these triples, the first of which is the centre, with its distances."""
        distances = np.full((len(triples), 2), -1, np.int32)
        if self.scope == "graph":
            ends = np.ascontiguousarray(self.kg.train[triples][:, ::2])  # (n, 2)
            graph = self.kg.adjacency
            self.base = _search(
                ends, graph.neighbour_ptr, graph.neighbours, self.mark, self.queue, self.base, distances
            )
        return Batch(step, int(triples[0]), triples, distances)


@njit(cache=True, nogil=True)
def _search(ends, ptr, neighbours, mark, queue, base, distances):  # type: ignore[no-untyped-def]
    """Fill `distances` from ends[0, 0] and return the base of the next search; stop when every end was met."""
    wanted = base  # all marks below are of earlier searches
    base = wanted + 1
    missing = 0
    for i in range(len(ends)):
        for j in range(2):
            if mark[ends[i, j]] != wanted:
                mark[ends[i, j]] = wanted
                missing += 1
    source = ends[0, 0]
    mark[source] = base
    missing -= 1
    queue[0] = source
    head, tail = 0, 1
    while head < tail and missing > 0:
        u = queue[head]
        head += 1
        for slot in range(ptr[u], ptr[u + 1]):
            v = neighbours[slot]
            if mark[v] <= wanted:
                missing -= mark[v] == wanted
                mark[v] = mark[u] + 1
                queue[tail] = v
                tail += 1
    top = mark[queue[tail - 1]]
    for i in range(len(ends)):
        for j in range(2):
            distances[i, j] = max(mark[ends[i, j]] - base, -1)
    return top + 1
