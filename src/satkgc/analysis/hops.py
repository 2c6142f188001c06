"""Distances in the training graph from a few entities to all, and how many pairs lie at each distance."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import njit

from satkgc.arrays import Int32, Int64
from satkgc.kg import Adjacency

_BLOCK = 64


def hops_from(adjacency: Adjacency, sources: Int32) -> Int32:
    """Hops from each source to every entity, -1 where there is no path.  # (n, E)"""
    return _search(adjacency.neighbour_ptr, adjacency.neighbours, np.asarray(sources, np.int32))


def blocks_of_hops(adjacency: Adjacency, sources: Int32) -> Iterator[tuple[Int32, Int32]]:
    """Sources and their hops, a few at a time: memory does not grow with their number."""
    for start in range(0, len(sources), _BLOCK):
        block = sources[start : start + _BLOCK]
        yield block, hops_from(adjacency, block)


def pairs_at_distance(adjacency: Adjacency, sources: Int32) -> Int64:
    """How many ordered pairs (source, other entity) lie at distance 1, 2, …, at index 0, 1, …"""
    count: Int64 = np.zeros(1, np.int64)
    for _, hops in blocks_of_hops(adjacency, sources):
        count = add_counts(count, np.bincount(hops[hops >= 0]))
    return count[1:]


def add_counts(a: Int64, b: Int64) -> Int64:
    """The sum of two counts whose lengths may differ."""
    long, short = (a, b) if len(a) >= len(b) else (b, a)
    total = long.astype(np.int64)
    total[: len(short)] += short
    return total


def choose_sources(num_entities: int, most: int | None, seed: int = 0) -> Int32:
    """All entities, or a seeded sample where there are more than `most`."""
    if most is None or num_entities <= most:
        return np.arange(num_entities, dtype=np.int32)
    return np.sort(np.random.default_rng(seed).choice(num_entities, most, replace=False)).astype(np.int32)


@njit(cache=True, nogil=True)
def _search(ptr, neighbours, sources):  # type: ignore[no-untyped-def]
    size = len(ptr) - 1
    hops = np.full((len(sources), size), -1, np.int32)
    queue = np.empty(size, np.int32)
    for i in range(len(sources)):
        hops[i, sources[i]] = 0
        queue[0] = sources[i]
        first, last = 0, 1
        while first < last:
            u = queue[first]
            first += 1
            for slot in range(ptr[u], ptr[u + 1]):
                v = neighbours[slot]
                if hops[i, v] < 0:
                    hops[i, v] = hops[i, u] + 1
                    queue[last] = v
                    last += 1
    return hops
