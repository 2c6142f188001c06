"""Depth-first paths through the training graph (Appendix B)."""

from __future__ import annotations

import numpy as np
from numba import njit

from satkgc.sampling.hashset import contains, insert, new_set
from satkgc.sampling.philox import PATH, below, words


@njit(cache=True, nogil=True)
def depth_first(start, centre, triples, graph, length, seed, step):  # type: ignore[no-untyped-def]
    """The triples of a depth-first path that begins with the centre."""
    ptr, neighbours, edge_ptr, edges = graph
    path = np.empty(length, np.int32)
    path[0] = centre
    other = triples[centre, 2] if triples[centre, 0] == start else triples[centre, 0]
    stack = np.empty(length + 1, np.int32)
    stack[0], stack[1] = start, other
    depth = 2
    visited = new_set(length + 1)
    insert(visited, start)
    insert(visited, other)
    count = 1
    index = 0
    while count < length and depth > 0:
        u = stack[depth - 1]
        degree = ptr[u + 1] - ptr[u]
        slot = np.int64(-1)
        for _ in range(16):  # a uniform slot whose entity is new; hubs seldom need more tries
            a, b, _, _ = words(seed, PATH, step, index)
            index += 1
            at = ptr[u] + below(a, b, degree)[0]
            if not contains(visited, neighbours[at]):
                slot = at
                break
        if slot < 0:  # the same choice, by counting those that are left
            left = 0
            for v in neighbours[ptr[u] : ptr[u + 1]]:
                left += not contains(visited, v)
            if left == 0:
                depth -= 1
                continue
            a, b, _, _ = words(seed, PATH, step, index)
            index += 1
            rank = below(a, b, left)[0]
            slot = ptr[u]
            while rank > 0 or contains(visited, neighbours[slot]):
                rank -= not contains(visited, neighbours[slot])
                slot += 1
        a, b, _, _ = words(seed, PATH, step, index)
        index += 1
        path[count] = edges[edge_ptr[slot] + below(a, b, edge_ptr[slot + 1] - edge_ptr[slot])[0]]
        count += 1
        insert(visited, neighbours[slot])
        stack[depth] = neighbours[slot]
        depth += 1
    return path[:count].copy()
