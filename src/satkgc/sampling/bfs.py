"""Breadth-first searches, compiled. None of them clears an array of the graph's size: see `Distances.mark`."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def search_graph(ends, ptr, neighbours, mark, queue, base, distances):  # type: ignore[no-untyped-def]
    """Hops from ends[0, 0] to all `ends` (n, 2), into `distances`; returns the base of the next search.

    Level by level, until every end was met. Where the ends still missing have fewer neighbours than the level has,
    they look for the level themselves, which spares the last and widest expansion.
    """
    wanted = base  # all marks of earlier searches are below
    base = wanted + 1
    missing = np.empty(2 * len(ends), np.int32)
    count = 0
    for i in range(len(ends)):
        for j in range(2):
            if mark[ends[i, j]] != wanted:
                mark[ends[i, j]] = wanted
                missing[count] = ends[i, j]
                count += 1
    mark[ends[0, 0]] = base
    queue[0] = ends[0, 0]
    first, last = 0, 1  # the level is queue[first:last]
    level = base
    while first < last:
        kept = cost = 0
        for i in range(count):  # drop those met
            v = missing[i]
            if mark[v] == wanted:
                missing[kept] = v
                kept += 1
                cost += ptr[v + 1] - ptr[v]
        count = kept
        if count == 0:
            break
        for i in range(first, last):
            cost -= ptr[queue[i] + 1] - ptr[queue[i]]
            if cost < 0:
                break
        if cost < 0 and _all_touch(missing[:count], ptr, neighbours, mark, level):
            for v in missing[:count]:
                mark[v] = level + 1
            level += 1
            break
        end = last
        for i in range(first, last):
            u = queue[i]
            for slot in range(ptr[u], ptr[u + 1]):
                v = neighbours[slot]
                if mark[v] <= wanted:
                    mark[v] = level + 1
                    queue[end] = v
                    end += 1
        first, last = last, end
        level += 1
    for i in range(len(ends)):
        for j in range(2):
            distances[i, j] = mark[ends[i, j]] - base  # not met: still `wanted`, which gives -1
    return level + 1


@njit(cache=True, nogil=True)
def _all_touch(entities, ptr, neighbours, mark, level):  # type: ignore[no-untyped-def]
    """Whether each of the entities has a neighbour on the level."""
    for v in entities:
        touches = False
        for slot in range(ptr[v], ptr[v + 1]):
            if mark[neighbours[slot]] == level:
                touches = True
                break
        if not touches:
            return False
    return True


@njit(cache=True, nogil=True)
def search_edges(ends, edges, mark, base, distances):  # type: ignore[no-untyped-def]
    """As `search_graph`, over the few edges (m, 2) alone; here a mark is an entity's number within this search."""
    entities = 0
    for i in range(len(edges)):
        for j in range(2):
            if mark[edges[i, j]] < base:
                mark[edges[i, j]] = base + entities
                entities += 1
    ptr = np.zeros(entities + 2, np.int64)
    for i in range(len(edges)):
        for j in range(2):
            ptr[mark[edges[i, j]] - base + 2] += 1
    ptr = np.cumsum(ptr)
    neighbours = np.empty(2 * len(edges), np.int32)
    for i in range(len(edges)):
        for j in range(2):
            u, v = mark[edges[i, j]] - base, mark[edges[i, 1 - j]] - base
            neighbours[ptr[u + 1]] = v
            ptr[u + 1] += 1
    hops = np.full(entities, -1, np.int32)
    queue = np.empty(entities, np.int32)
    queue[0] = mark[ends[0, 0]] - base
    hops[queue[0]] = 0
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
    for i in range(len(ends)):
        for j in range(2):
            distances[i, j] = hops[mark[ends[i, j]] - base]
    return base + entities


@njit(cache=True, nogil=True)
def all_pairs(entities, ptr, neighbours):  # type: ignore[no-untyped-def]
    """Hops between all of the distinct entities, -1 where there is no path.  # (U, U)

    64 searches at a time, one in each bit of a word (Then et al., "The more the merrier", VLDB 2014).
    """
    size = len(ptr) - 1
    hops = np.full((len(entities), len(entities)), -1, np.int32)
    for block in range(0, len(entities), 64):
        width = min(64, len(entities) - block)
        seen = np.zeros(size, np.uint64)
        front = np.zeros(size, np.uint64)
        for bit in range(width):
            seen[entities[block + bit]] = front[entities[block + bit]] = np.uint64(1) << np.uint64(bit)
            hops[block + bit, block + bit] = 0
        level = 0
        moving = True
        while moving:
            level += 1
            moving = False
            reached = np.zeros(size, np.uint64)
            for u in range(size):
                if front[u]:
                    for slot in range(ptr[u], ptr[u + 1]):
                        reached[neighbours[slot]] |= front[u]
            for v in range(size):
                front[v] = reached[v] & ~seen[v]
                seen[v] |= front[v]
                moving |= front[v] != 0
            for i in range(len(entities)):
                bits = front[entities[i]]
                for bit in range(width):
                    if (bits >> np.uint64(bit)) & np.uint64(1):
                        hops[block + bit, i] = level
    return hops
