"""Which tails are known for (h, r) and which heads for (r, t): the filter of evaluation and of the loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from satkgc.arrays import Int32, Int64
from satkgc.kg.adjacency import _frozen, as_triples


@dataclass(frozen=True, eq=False)
class KnownTriples:
    """Triples sorted by (head, relation, tail) and by (tail, relation, head), so that each answer is a slice."""

    num_relations: int  # R
    head_ptr: Int64  # (E + 1,) triples of head h are at head_ptr[h]:head_ptr[h + 1]
    head_relations: Int32  # (T,) ascending within a head
    head_tails: Int32  # (T,) ascending within a head and relation
    tail_ptr: Int64  # (E + 1,)
    tail_relations: Int32  # (T,)
    tail_heads: Int32  # (T,)

    @classmethod
    def build(cls, triples: Int32, num_entities: int, num_relations: int) -> KnownTriples:
        """From (T, 3) triples; duplicates are kept once each way."""
        from satkgc.kg.kernels import sorted_by

        triples = as_triples(triples)
        forward = sorted_by(triples, 0, 2, num_entities)
        backward = sorted_by(triples, 2, 0, num_entities)
        return cls(num_relations, *map(_frozen, forward), *map(_frozen, backward))

    def tails(self, head: int, relation: int) -> Int32:
        """Known tails of (head, relation, ?), ascending; a view."""
        return _slice(self.head_ptr, self.head_relations, self.head_tails, head, relation)

    def heads(self, relation: int, tail: int) -> Int32:
        """Known heads of (?, relation, tail), ascending; a view."""
        return _slice(self.tail_ptr, self.tail_relations, self.tail_heads, tail, relation)

    def answers(self, entity: int, directed: int) -> Int32:
        """Known answers of a directed query: tails for `directed < R`, heads for the inverse of `directed - R`."""
        if directed < self.num_relations:
            return self.tails(entity, directed)
        return self.heads(directed - self.num_relations, entity)


def _slice(ptr: Int64, relations: Int32, others: Int32, entity: int, relation: int) -> Int32:
    low, high = int(ptr[entity]), int(ptr[entity + 1])
    block = relations[low:high]
    first, last = np.searchsorted(block, relation, "left"), np.searchsorted(block, relation, "right")
    return others[low + first : low + last]
