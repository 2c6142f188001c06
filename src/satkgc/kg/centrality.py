"""Betweenness centrality: how many shortest paths of the training graph lead through an entity."""

from __future__ import annotations

import numpy as np
from numba import njit

from satkgc.arrays import Float64, Int32
from satkgc.kg.adjacency import Adjacency


def betweenness(adjacency: Adjacency, sources: Int32) -> Float64:
    """The share of shortest paths between two others that pass each entity, by Brandes' algorithm.  # (E,)

    Exact if `sources` are all entities; from a sample of them an estimate. Edges are walked either way and count once.
    """
    size = len(adjacency.neighbour_ptr) - 1
    if size < 3 or not len(sources):
        return np.zeros(size)
    total = _accumulate(adjacency.neighbour_ptr, adjacency.neighbours, np.asarray(sources, np.int32))
    return total * (size / len(sources)) / ((size - 1) * (size - 2))  # ordered pairs of others


@njit(cache=True, nogil=True)
def _accumulate(ptr, neighbours, sources):  # type: ignore[no-untyped-def]
    size = len(ptr) - 1
    total = np.zeros(size)
    hops = np.empty(size, np.int32)
    queue = np.empty(size, np.int32)
    paths = np.empty(size)  # shortest ones from the source
    share = np.empty(size)  # of the paths that start there and go through this entity
    for source in sources:
        hops[:] = -1
        paths[:] = 0
        share[:] = 0
        hops[source], paths[source], queue[0] = 0, 1, source
        first, last = 0, 1
        while first < last:
            u = queue[first]
            first += 1
            for slot in range(ptr[u], ptr[u + 1]):
                v = neighbours[slot]
                if hops[v] < 0:
                    hops[v] = hops[u] + 1
                    queue[last] = v
                    last += 1
                if hops[v] == hops[u] + 1:
                    paths[v] += paths[u]
        for place in range(last - 1, 0, -1):  # the farthest first; the source itself is no passage
            v = queue[place]
            for slot in range(ptr[v], ptr[v + 1]):
                u = neighbours[slot]
                if hops[u] == hops[v] - 1:
                    share[u] += paths[u] / paths[v] * (1 + share[v])
            total[v] += share[v]
    return total
