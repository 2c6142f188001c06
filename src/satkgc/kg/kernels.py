"""Compiled loops over triples: they build adjacency and known triples, and drop duplicates.

Triples are spread over buckets by entity, then each bucket is sorted. A bucket's members are two 31-bit numbers packed
into one, so that one sort orders by both. Kept apart, because opening a stored graph needs none of this and should not
wait for numba's import.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from satkgc.arrays import Int32
from satkgc.kg.adjacency import as_triples

LOW = (1 << 32) - 1


@njit(cache=True, nogil=True)
def build_adjacency(triples, num_entities):  # type: ignore[no-untyped-def]
    """Entity → distinct neighbours → triples, from (T, 3) triples: neighbour_ptr, neighbours, edge_ptr, edges."""
    ptr = np.zeros(num_entities + 1, np.int64)
    for i in range(len(triples)):
        ptr[triples[i, 0] + 1] += 1
        if triples[i, 0] != triples[i, 2]:
            ptr[triples[i, 2] + 1] += 1
    ptr = np.cumsum(ptr)
    at = ptr[:-1].copy()
    packed = np.empty(ptr[-1], np.int64)  # (neighbour, triple) by entity
    for i in range(len(triples)):
        h, t = triples[i, 0], triples[i, 2]
        packed[at[h]] = (np.int64(t) << 32) | i
        at[h] += 1
        if h != t:
            packed[at[t]] = (np.int64(h) << 32) | i
            at[t] += 1
    sort_buckets(packed, ptr)

    edges = np.empty(len(packed), np.int32)
    neighbour_ptr = np.zeros(num_entities + 1, np.int64)
    slots = 0
    for u in range(num_entities):
        for i in range(ptr[u], ptr[u + 1]):
            edges[i] = packed[i] & LOW
            slots += i == ptr[u] or packed[i] >> 32 != packed[i - 1] >> 32
        neighbour_ptr[u + 1] = slots
    neighbours = np.empty(slots, np.int32)
    edge_ptr = np.empty(slots + 1, np.int64)
    slot = 0
    for u in range(num_entities):
        for i in range(ptr[u], ptr[u + 1]):
            if i == ptr[u] or packed[i] >> 32 != packed[i - 1] >> 32:
                neighbours[slot] = packed[i] >> 32
                edge_ptr[slot] = i
                slot += 1
    edge_ptr[slots] = len(packed)
    return neighbour_ptr, neighbours, edge_ptr, edges


@njit(cache=True, nogil=True)
def sorted_by(triples, first, last, num_entities):  # type: ignore[no-untyped-def]
    """Distinct triples by (column first, relation, column last): pointers by the first, then the other two columns."""
    ptr = np.zeros(num_entities + 1, np.int64)
    for i in range(len(triples)):
        ptr[triples[i, first] + 1] += 1
    ptr = np.cumsum(ptr)
    at = ptr[:-1].copy()
    packed = np.empty(len(triples), np.int64)  # (relation, last) by first
    for i in range(len(triples)):
        a = triples[i, first]
        packed[at[a]] = (np.int64(triples[i, 1]) << 32) | triples[i, last]
        at[a] += 1
    sort_buckets(packed, ptr)

    relations = np.empty(len(triples), np.int32)
    others = np.empty(len(triples), np.int32)
    kept = 0
    low = 0
    for a in range(num_entities):
        high = ptr[a + 1]
        for i in range(low, high):
            if i == low or packed[i] != packed[i - 1]:
                relations[kept] = packed[i] >> 32
                others[kept] = packed[i] & LOW
                kept += 1
        low = high
        ptr[a + 1] = kept
    if kept == len(triples):
        return ptr, relations, others
    return ptr, relations[:kept].copy(), others[:kept].copy()


@njit(cache=True, nogil=True)
def sort_buckets(values, ptr):  # type: ignore[no-untyped-def]
    """Sort values[ptr[b]:ptr[b + 1]] for every bucket; most buckets of a knowledge graph are short."""
    for b in range(len(ptr) - 1):
        low, high = ptr[b], ptr[b + 1]
        if high - low > 32:
            values[low:high].sort()
            continue
        for i in range(low + 1, high):
            value = values[i]
            j = i
            while j > low and values[j - 1] > value:
                values[j] = values[j - 1]
                j -= 1
            values[j] = value


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


def drop_duplicates(triples: Int32, num_entities: int, num_relations: int) -> Int32:
    """The triples without repeats, each where it first stood; in linear time."""
    triples = as_triples(triples)
    _, relations, _ = sorted_by(triples, 0, 2, num_entities)
    if len(relations) == len(triples):  # as most often
        return triples
    return triples[_first_of_each(triples, num_entities, num_relations)]


@njit(cache=True, nogil=True)
def _first_of_each(triples, num_entities, num_relations):  # type: ignore[no-untyped-def]
    order = np.arange(len(triples)).astype(np.int32)
    order = counting_sort(triples[:, 2], order, num_entities)
    order = counting_sort(triples[:, 1], order, num_relations)
    order = counting_sort(triples[:, 0], order, num_entities)
    first = np.ones(len(triples), np.bool_)
    for place in range(1, len(order)):
        a, b = order[place - 1], order[place]
        if triples[a, 0] == triples[b, 0] and triples[a, 1] == triples[b, 1] and triples[a, 2] == triples[b, 2]:
            first[b] = False
    return first
