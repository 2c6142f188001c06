"""Neighbourhood re-ranking: a bonus for candidates near the query's entity in the training graph. Off by default.

SimKGC's trick, no part of SATKGC: the answers of a benchmark tend to be near the question's entity, so adding a
constant to everything within a few hops helps the ranks without teaching the model anything. Reports name it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from satkgc.arrays import Int32
from satkgc.evaluation.ranking import Bonus
from satkgc.evaluation.slices import Slices
from satkgc.kg import Adjacency


def neighbourhood_bonus(adjacency: Adjacency, entities: Int32, hops: int, weight: float) -> Bonus:
    """Add `weight` to the cosine of all entities at most `hops` from entities[i], itself included."""
    sources, place = np.unique(entities, return_inverse=True)
    values, stops = _within(adjacency.neighbour_ptr, adjacency.neighbours, sources, hops)
    starts = np.concatenate([[0], stops[:-1]]).astype(np.int64)
    return Bonus(Slices(values, starts[place], stops[place]), weight)


@njit(cache=True, nogil=True)
def _within(ptr, neighbours, sources, hops):  # type: ignore[no-untyped-def]
    """A breadth-first search from each source, cut at a depth; the entities met, ascending, one after the other."""
    met = np.full(len(ptr) - 1, -1, np.int64)  # by which source an entity was met last
    queue = np.empty(len(ptr) - 1, np.int32)
    values = np.empty(1024, np.int32)
    stops = np.empty(len(sources), np.int64)
    used = 0
    for i in range(len(sources)):
        queue[0] = sources[i]
        met[sources[i]] = i
        first, last = 0, 1
        for _ in range(hops):
            level = last
            while first < level:
                for j in range(ptr[queue[first]], ptr[queue[first] + 1]):
                    if met[neighbours[j]] != i:
                        met[neighbours[j]] = i
                        queue[last] = neighbours[j]
                        last += 1
                first += 1
        while used + last > len(values):
            values = np.concatenate((values, np.empty_like(values)))
        values[used : used + last] = np.sort(queue[:last])
        used += last
        stops[i] = used
    return values[:used].copy(), stops
