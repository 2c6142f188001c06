"""Entities dealt to few buckets, so that no two that a fact joins share one, where that can be."""

from __future__ import annotations

import numpy as np
from numba import njit

from satkgc.arrays import UInt8
from satkgc.kg import Adjacency

BUCKETS = 126


def deal(adjacency: Adjacency, before: UInt8 | None = None) -> UInt8:
    """The bucket of every entity; the first ones keep those that they had before.  # (E,)

    One by one, those with most neighbours first, each gets a bucket of its own choice that none of its neighbours has.
    """
    before = np.empty(0, np.uint8) if before is None else before
    order = np.argsort(-adjacency.degree[len(before) :], kind="stable") + len(before)
    return np.asarray(_deal(adjacency.neighbour_ptr, adjacency.neighbours, order, before))


@njit(cache=True, nogil=True)
def _deal(ptr, neighbours, order, before):  # type: ignore[no-untyped-def]
    buckets = np.full(len(ptr) - 1, BUCKETS, np.uint8)  # of nobody yet
    buckets[: len(before)] = before
    taken_by = np.full(BUCKETS + 1, -1, np.int64)  # the last entity whose neighbour has a bucket
    for entity in order:
        for neighbour in neighbours[ptr[entity] : ptr[entity + 1]]:
            taken_by[buckets[neighbour]] = entity
        choice = ((entity * 0x9E3779B1) & 0xFFFFFFFF) // 128 % BUCKETS  # as good as drawn
        free = choice
        while taken_by[free] == entity:
            free = (free + 1) % BUCKETS
            if free == choice:  # all have one of its neighbours
                break
        buckets[entity] = free
    return buckets
