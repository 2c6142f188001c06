"""Breadth-first searches, compiled. None of them clears an array of the graph's size: see `Distances.mark`."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def search_graph(ends, ptr, neighbours, mark, back, queue, base, distances):  # type: ignore[no-untyped-def]
    """Hops from ends[0, 0] to all `ends` (n, 2), into `distances`; returns the base of the next search.

    Level by level from the source. Before a level is expanded, the ends still missing search for it from their side,
    with as many edges to look at as the expansion would need. Far ends are peripheral and meet it soon, so the last
    and widest levels, most of a large graph, are never expanded; and ends in another, small component cost little.
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
    level = top = base
    while first < last:
        kept = cost = 0
        for v in missing[:count]:  # drop those met
            if mark[v] == wanted:
                missing[kept] = v
                kept += 1
        count = kept
        for u in queue[first:last]:
            cost += ptr[u + 1] - ptr[u]
        hops = _meet(missing[:count], cost, ptr, neighbours, mark, back, queue[last:], level)
        if len(hops) == count:
            for i in range(count):
                if hops[i] > 0:
                    mark[missing[i]] = level + hops[i]
                    top = max(top, level + hops[i])
            break
        end = last
        for u in queue[first:last]:
            for v in neighbours[ptr[u] : ptr[u + 1]]:
                if mark[v] <= wanted:
                    mark[v] = level + 1
                    queue[end] = v
                    end += 1
        first, last = last, end
        level += 1
        top = level
    for i in range(len(ends)):
        for j in range(2):
            distances[i, j] = mark[ends[i, j]] - base  # not met: still `wanted`, which gives -1
    return top + 1


@njit(cache=True, nogil=True)
def _meet(missing, budget, ptr, neighbours, mark, back, queue, level):  # type: ignore[no-untyped-def]
    """Hops from each missing entity to the level, 0 where there is no way; fewer than asked if the budget runs out.

    Nobody beyond the level has a neighbour before it, so the first neighbour that was met at all is on the level.
    """
    hops = np.zeros(len(missing), np.int32)
    for i in range(len(missing)):
        stamp = np.int64(level) << 31 | i  # levels only rise, so each search has a stamp of its own
        queue[0] = missing[i]
        back[missing[i]] = stamp
        first, last, depth = 0, 1, 0
        while first < last and hops[i] == 0:
            depth += 1
            end = last
            for u in queue[first:last]:
                budget -= ptr[u + 1] - ptr[u]
                if budget < 0:
                    return hops[:i]
                for v in neighbours[ptr[u] : ptr[u + 1]]:
                    if mark[v] == level:
                        hops[i] = depth
                        break
                    if back[v] != stamp:
                        back[v] = stamp
                        queue[end] = v
                        end += 1
                if hops[i] > 0:
                    break
            first, last = last, end
    return hops


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
