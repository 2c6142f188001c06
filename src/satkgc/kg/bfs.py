"""Breadth-first searches in the training graph, compiled; edges are walked either way.

Every search takes the `Adjacency` first, then int32 entity indices. Kept apart from `adjacency`, because opening a
stored graph needs none of this and should not wait for numba's import.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from satkgc.arrays import Int32, Int64
from satkgc.kg.adjacency import Adjacency

_MOST = np.iinfo(np.int32).max


def hops_from(adjacency: Adjacency, sources: Int32) -> Int32:
    """Hops from each source to every entity, -1 where there is no path.  # (n, E)"""
    return _hops(adjacency.neighbour_ptr, adjacency.neighbours, np.asarray(sources, np.int32))


def entities_within(adjacency: Adjacency, sources: Int32, hops: int) -> tuple[Int32, Int64]:
    """All entities at most so many hops from each source, itself included.

    Returns `entities, ptr`: those of source i are `entities[ptr[i]:ptr[i + 1]]`, ascending.
    """
    return _within(adjacency.neighbour_ptr, adjacency.neighbours, np.asarray(sources, np.int32), hops)


def shortest_path(adjacency: Adjacency, sources: Int32, targets: Int32, *, direct: bool = True) -> Int32:
    """The entities of one shortest path from any source to any target, both ends included; empty if there is none.

    Of several, the first in the order of the sources and of the neighbours. `direct=False` forbids the single edge
    from a source to a target: a path to explain that edge must go another way.
    """
    ends = (np.asarray(entities, np.int32) for entities in (sources, targets))
    return _path(adjacency.neighbour_ptr, adjacency.neighbours, *ends, direct)


class HopSearch:
    """Hops from one entity to a few others, again and again, at a cost that does not grow with the graph.

    The search goes from both sides. Its working arrays, of the size of the graph, are allocated once and never
    cleared: the marks of a search lie above those of all searches before it. Not for several threads at once.
    """

    def __init__(self, adjacency: Adjacency) -> None:
        self.adjacency = adjacency
        size = len(adjacency.neighbour_ptr) - 1
        self.base = 1  # marks below are those of earlier searches
        self._mark = np.zeros(size, np.int32)  # (E,) by the search from the source: base + hops
        self._back = np.zeros(size, np.int64)  # (E,) by the searches from the targets
        self._queue = np.empty(size, np.int32)  # (E,)

    def hops(self, source: int, targets: Int32) -> Int32:
        """Hops from the source to each target, -1 where there is no path; of the shape of `targets`."""
        if self.base > _MOST - len(self._mark) - 2:
            self._mark[:] = 0
            self._back[:] = 0
            self.base = 1
        flat = np.ascontiguousarray(targets, np.int32).ravel()
        hops = np.empty(len(flat), np.int32)
        graph = self.adjacency.neighbour_ptr, self.adjacency.neighbours
        self.base = _meet_targets(int(source), flat, *graph, self._mark, self._back, self._queue, self.base, hops)
        return hops.reshape(np.shape(targets))


@njit(cache=True, nogil=True)
def _hops(ptr, neighbours, sources):  # type: ignore[no-untyped-def]
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


@njit(cache=True, nogil=True)
def _within(ptr, neighbours, sources, hops):  # type: ignore[no-untyped-def]
    met = np.full(len(ptr) - 1, -1, np.int64)  # by which source an entity was met last
    queue = np.empty(len(ptr) - 1, np.int32)
    entities = np.empty(1024, np.int32)
    stops = np.zeros(len(sources) + 1, np.int64)
    used = 0
    for i in range(len(sources)):
        queue[0] = sources[i]
        met[sources[i]] = i
        first, last = 0, 1
        for _ in range(hops):
            level = last
            while first < level:
                for slot in range(ptr[queue[first]], ptr[queue[first] + 1]):
                    v = neighbours[slot]
                    if met[v] != i:
                        met[v] = i
                        queue[last] = v
                        last += 1
                first += 1
        while used + last > len(entities):
            entities = np.concatenate((entities, np.empty_like(entities)))
        entities[used : used + last] = np.sort(queue[:last])
        used += last
        stops[i + 1] = used
    return entities[:used].copy(), stops


@njit(cache=True, nogil=True)
def _path(ptr, neighbours, sources, targets, direct):  # type: ignore[no-untyped-def]
    parent = np.full(len(ptr) - 1, -1, np.int32)
    queue = np.empty(len(ptr) - 1, np.int32)
    is_target = np.zeros(len(ptr) - 1, np.bool_)
    is_target[targets] = True
    first, last, end = 0, 0, -1
    for source in sources:
        if is_target[source]:
            return np.array([source], np.int32)
        parent[source] = source
        queue[last] = source
        last += 1
    while first < last and end < 0:
        u = queue[first]
        first += 1
        for slot in range(ptr[u], ptr[u + 1]):
            v = neighbours[slot]
            if parent[v] < 0 and (direct or parent[u] != u or not is_target[v]):
                parent[v] = u
                queue[last] = v
                last += 1
                if is_target[v]:
                    end = v
                    break
    if end < 0:
        return np.empty(0, np.int32)
    length = 1
    v = end
    while parent[v] != v:
        v = parent[v]
        length += 1
    path = np.empty(length, np.int32)
    v = end
    for place in range(length - 1, -1, -1):
        path[place] = v
        v = parent[v]
    return path


@njit(cache=True, nogil=True)
def _meet_targets(source, targets, ptr, neighbours, mark, back, queue, base, hops):  # type: ignore[no-untyped-def]
    """Hops from the source to all targets, into `hops`; returns the base of the next search.

    Level by level from the source. Before a level is expanded, the targets still missing search for it from their
    side, with as many edges to look at as the expansion would need. Far targets are peripheral and meet it soon, so
    the last and widest levels, most of a large graph, are never expanded; and targets in another, small component
    cost little.
    """
    is_target = base  # the mark of a target not met yet; all marks of earlier searches are below
    base = is_target + 1
    missing = np.empty(len(targets), np.int32)
    count = 0
    for v in targets:
        if mark[v] != is_target:
            mark[v] = is_target
            missing[count] = v
            count += 1
    mark[source] = base
    queue[0] = source
    first, last = 0, 1  # the level is queue[first:last]
    level = top = base
    while first < last:
        kept = cost = 0
        for v in missing[:count]:  # drop those met
            if mark[v] == is_target:
                missing[kept] = v
                kept += 1
        count = kept
        for u in queue[first:last]:
            cost += ptr[u + 1] - ptr[u]
        back_hops = _meet_level(missing[:count], cost, ptr, neighbours, mark, back, queue[last:], level)
        if len(back_hops) == count:
            for i in range(count):
                if back_hops[i] > 0:
                    mark[missing[i]] = level + back_hops[i]
                    top = max(top, level + back_hops[i])
            break
        end = last
        for u in queue[first:last]:
            for v in neighbours[ptr[u] : ptr[u + 1]]:
                if mark[v] <= is_target:
                    mark[v] = level + 1
                    queue[end] = v
                    end += 1
        first, last = last, end
        level += 1
        top = level
    for i in range(len(targets)):
        hops[i] = mark[targets[i]] - base  # not met: still `is_target`, which gives -1
    return top + 1


@njit(cache=True, nogil=True)
def _meet_level(missing, budget, ptr, neighbours, mark, back, queue, level):  # type: ignore[no-untyped-def]
    """Hops from each missing target to the level, 0 where there is no way; fewer of them if the budget runs out.

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
