"""Compiled loops over triples: they build adjacency and known triples, and drop duplicates.

Triples are spread over buckets by entity, then each bucket is sorted. A bucket's members are two 31-bit numbers packed
into one, so that one sort orders by both. Kept apart, because opening a stored graph needs none of this and should not
wait for numba's import.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import njit

from satkgc.arrays import Int32, Int64
from satkgc.kg.adjacency import as_triples

LOW = (1 << 32) - 1
BLOCK = 1 << 25  # triples that are sorted at once, eight bytes each


@njit(cache=True, nogil=True)
def build_adjacency(triples, low, high):  # type: ignore[no-untyped-def]
    """Entity → distinct neighbours → triples, of the entities low … high - 1, from all (T, 3) triples.

    Returns neighbour_ptr, neighbours, edge_ptr, edges; the pointers begin at 0.
    """
    ptr = np.zeros(high - low + 1, np.int64)
    for i in range(len(triples)):
        h, t = triples[i, 0], triples[i, 2]
        if low <= h < high:
            ptr[h - low + 1] += 1
        if h != t and low <= t < high:
            ptr[t - low + 1] += 1
    ptr = np.cumsum(ptr)
    at = ptr[:-1].copy()
    packed = np.empty(ptr[-1], np.int64)  # (neighbour, triple) by entity
    for i in range(len(triples)):
        h, t = triples[i, 0], triples[i, 2]
        if low <= h < high:
            packed[at[h - low]] = (np.int64(t) << 32) | i
            at[h - low] += 1
        if h != t and low <= t < high:
            packed[at[t - low]] = (np.int64(h) << 32) | i
            at[t - low] += 1
    sort_buckets(packed, ptr)

    edges = np.empty(len(packed), np.int32)
    neighbour_ptr = np.zeros(len(ptr), np.int64)
    slots = 0
    for u in range(len(ptr) - 1):
        for i in range(ptr[u], ptr[u + 1]):
            edges[i] = packed[i] & LOW
            slots += i == ptr[u] or packed[i] >> 32 != packed[i - 1] >> 32
        neighbour_ptr[u + 1] = slots
    neighbours = np.empty(slots, np.int32)
    edge_ptr = np.empty(slots + 1, np.int64)
    slot = 0
    for u in range(len(ptr) - 1):
        for i in range(ptr[u], ptr[u + 1]):
            if i == ptr[u] or packed[i] >> 32 != packed[i - 1] >> 32:
                neighbours[slot] = packed[i] >> 32
                edge_ptr[slot] = i
                slot += 1
    edge_ptr[slots] = len(packed)
    return neighbour_ptr, neighbours, edge_ptr, edges


@njit(cache=True, nogil=True)
def sorted_by(triples, more, first, last, low, high):  # type: ignore[no-untyped-def]
    """Distinct triples by (column first, relation, column last): pointers by the first, then the other two columns.

    Of the triples and some more of them those whose first column is in low … high - 1; the pointers begin at 0.
    """
    ptr = np.zeros(high - low + 1, np.int64)
    for rows in (triples, more):
        for i in range(len(rows)):
            if low <= rows[i, first] < high:
                ptr[rows[i, first] - low + 1] += 1
    ptr = np.cumsum(ptr)
    at = ptr[:-1].copy()
    packed = np.empty(ptr[-1], np.int64)  # (relation, last) by first
    for rows in (triples, more):
        for i in range(len(rows)):
            a = rows[i, first] - low
            if 0 <= a < high - low:
                packed[at[a]] = (np.int64(rows[i, 1]) << 32) | rows[i, last]
                at[a] += 1
    sort_buckets(packed, ptr)

    relations = np.empty(len(packed), np.int32)
    others = np.empty(len(packed), np.int32)
    kept = 0
    start = 0
    for a in range(high - low):
        stop = ptr[a + 1]
        for i in range(start, stop):
            if i == start or packed[i] != packed[i - 1]:
                relations[kept] = packed[i] >> 32
                others[kept] = packed[i] & LOW
                kept += 1
        start = stop
        ptr[a + 1] = kept
    if kept == len(packed):
        return ptr, relations, others
    return ptr, relations[:kept].copy(), others[:kept].copy()


@njit(cache=True, nogil=True)
def count_entities(triples, first, last, num_entities):  # type: ignore[no-untyped-def]
    """How many triples each entity has as either end; as one of them, where first and last are the same column."""
    counts = np.zeros(num_entities, np.int64)
    for i in range(len(triples)):
        counts[triples[i, first]] += 1
        if triples[i, first] != triples[i, last]:
            counts[triples[i, last]] += 1
    return counts


def entity_blocks(counts: Int64, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of entities, together all of them, that have at most so many triples each; one entity may have more."""
    ends = np.cumsum(counts)
    low = 0
    while low < len(ends):
        before = int(ends[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(ends, before + most, "right")))
        yield low, high
        low = high


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
    """The triples without repeats, each where it first stood; in linear time, and few of them at once."""
    triples = as_triples(triples)
    keep = None
    counts = count_entities(triples, 0, 0, num_entities)
    for low, high in entity_blocks(counts, BLOCK):
        _, relations, _ = sorted_by(triples, triples[:0], 0, 2, low, high)
        if len(relations) == counts[low:high].sum():  # as most often
            continue
        rows = np.flatnonzero((triples[:, 0] >= low) & (triples[:, 0] < high))
        keep = np.ones(len(triples), bool) if keep is None else keep
        keep[rows] = _first_of_each(as_triples(triples[rows]), num_entities, num_relations)
    return triples if keep is None else triples[keep]


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
