"""Which tails are known for (h, r) and which heads for (r, t): the filter of evaluation and of the loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from satkgc.kg.adjacency import Int64, _frozen
from satkgc.kg.vocabulary import Int32


@dataclass(frozen=True, eq=False)
class KnownTriples:
    """Triples sorted by (head, relation, tail) and by (tail, relation, head), so that each answer is a slice."""

    head_ptr: Int64  # (E + 1,) triples of head h are at head_ptr[h]:head_ptr[h + 1]
    head_relations: Int32  # (T,) ascending within a head
    head_tails: Int32  # (T,) ascending within a head and relation
    tail_ptr: Int64  # (E + 1,)
    tail_relations: Int32  # (T,)
    tail_heads: Int32  # (T,)

    @classmethod
    def build(cls, triples: Int32, num_entities: int, num_relations: int) -> KnownTriples:
        """From (T, 3) triples; duplicates are kept once each way."""
        triples = np.ascontiguousarray(triples)
        forward = _sorted_by(triples, 0, 2, num_entities, num_relations)
        backward = _sorted_by(triples, 2, 0, num_entities, num_relations)
        return cls(*map(_frozen, forward), *map(_frozen, backward))

    def tails(self, head: int, relation: int) -> Int32:
        """Known tails of (head, relation, ?), ascending; a view."""
        return _slice(self.head_ptr, self.head_relations, self.head_tails, head, relation)

    def heads(self, relation: int, tail: int) -> Int32:
        """Known heads of (?, relation, tail), ascending; a view."""
        return _slice(self.tail_ptr, self.tail_relations, self.tail_heads, tail, relation)

    def answers(self, entity: int, directed: int, num_relations: int) -> Int32:
        """Known answers of a directed query: tails for `directed < R`, heads for the inverse of `directed - R`."""
        if directed < num_relations:
            return self.tails(entity, directed)
        return self.heads(directed - num_relations, entity)


def _slice(ptr: Int64, relations: Int32, others: Int32, entity: int, relation: int) -> Int32:
    low, high = int(ptr[entity]), int(ptr[entity + 1])
    block = relations[low:high]
    first, last = np.searchsorted(block, relation, "left"), np.searchsorted(block, relation, "right")
    return others[low + first : low + last]


@njit(cache=True, nogil=True)
def _counting_sort(keys, order, size):  # type: ignore[no-untyped-def]
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
def _sorted_by(triples, first, last, num_entities, num_relations):  # type: ignore[no-untyped-def]
    """Sort by (column first, relation, column last), drop repeats, and point into it by the first column."""
    order = np.arange(len(triples)).astype(np.int32)
    order = _counting_sort(triples[:, last], order, num_entities)
    order = _counting_sort(triples[:, 1], order, num_relations)
    order = _counting_sort(triples[:, first], order, num_entities)
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
