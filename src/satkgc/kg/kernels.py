"""The compiled loops behind adjacency and known triples: linear-time counting sorts.

Kept apart so that opening a stored graph, which needs none of them, does not wait for the compiler's import.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def build_adjacency(triples, num_entities):  # type: ignore[no-untyped-def]
    """Entity → distinct neighbours → triples, from (T, 3) triples: neighbour_ptr, neighbours, edge_ptr, edges."""
    # Counting sort of the incidences (u, v, triple) by v, then stably by u: linear, and one pass each.
    count = np.zeros(num_entities + 1, np.int64)
    for i in range(len(triples)):
        h, t = triples[i, 0], triples[i, 2]
        count[t + 1] += 1
        if h != t:
            count[h + 1] += 1
    ptr = np.cumsum(count)  # symmetric: the number of entries with u = x is that with v = x
    total = ptr[-1]

    at = ptr[:-1].copy()
    by_v_u = np.empty(total, np.int32)
    by_v_triple = np.empty(total, np.int32)
    for i in range(len(triples)):
        h, t = triples[i, 0], triples[i, 2]
        by_v_u[at[t]] = h
        by_v_triple[at[t]] = i
        at[t] += 1
        if h != t:
            by_v_u[at[h]] = t
            by_v_triple[at[h]] = i
            at[h] += 1

    at[:] = ptr[:-1]
    other = np.empty(total, np.int32)
    edges = np.empty(total, np.int32)
    for v in range(num_entities):
        for i in range(ptr[v], ptr[v + 1]):
            u = by_v_u[i]
            other[at[u]] = v
            edges[at[u]] = by_v_triple[i]
            at[u] += 1

    neighbour_ptr = np.zeros(num_entities + 1, np.int64)
    slots = 0
    for u in range(num_entities):
        for i in range(ptr[u], ptr[u + 1]):
            if i == ptr[u] or other[i] != other[i - 1]:
                slots += 1
        neighbour_ptr[u + 1] = slots
    neighbours = np.empty(slots, np.int32)
    edge_ptr = np.empty(slots + 1, np.int64)
    slot = 0
    for u in range(num_entities):
        for i in range(ptr[u], ptr[u + 1]):
            if i == ptr[u] or other[i] != other[i - 1]:
                neighbours[slot] = other[i]
                edge_ptr[slot] = i
                slot += 1
    edge_ptr[slots] = total
    return neighbour_ptr, neighbours, edge_ptr, edges


@njit(cache=True, nogil=True)
def counting_sort(keys, order, size):  # type: ignore[no-untyped-def]
    """A stable reordering of `order` by keys[order[i]], keys in [0, size)."""
    at = np.zeros(size + 1, np.int64)
    for key in keys:
        at[key + 1] += 1
    for i in range(size):
        at[i + 1] += at[i]
    result = np.empty_like(order)
    for i in order:
        key = keys[i]
        result[at[key]] = i
        at[key] += 1
    return result


@njit(cache=True, nogil=True)
def sorted_by(triples, first, last, num_entities, num_relations):  # type: ignore[no-untyped-def]
    """Sort by (column first, relation, column last), drop repeats, and point into it by the first column."""
    order = np.arange(len(triples)).astype(np.int32)
    order = counting_sort(triples[:, last], order, num_entities)
    order = counting_sort(triples[:, 1], order, num_relations)
    order = counting_sort(triples[:, first], order, num_entities)
    relations = np.empty(len(order), np.int32)
    others = np.empty(len(order), np.int32)
    ptr = np.zeros(num_entities + 1, np.int64)
    kept = 0
    for place in range(len(order)):
        a, r, b = triples[order[place], first], triples[order[place], 1], triples[order[place], last]
        if place > 0:
            p = order[place - 1]
            if triples[p, first] == a and triples[p, 1] == r and triples[p, last] == b:
                continue
        relations[kept] = r
        others[kept] = b
        ptr[a + 1] += 1
        kept += 1
    return np.cumsum(ptr), relations[:kept].copy(), others[:kept].copy()
