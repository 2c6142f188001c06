"""The lookups of a graph: neighbours of an entity, and known answers of a question.

Their compiled loops are in `kernels`, imported only to build them: a stored graph has them already.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from satkgc.arrays import Int32, Int64
from satkgc.errors import SatkgcError


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Who is next to whom in the training graph, without direction, parallel edges kept.

    A two-level CSR: entity → its distinct neighbours → the triples that join the two. The neighbours of `v` are
    `neighbours[neighbour_ptr[v]:neighbour_ptr[v + 1]]`, ascending. The training triples between `v` and the neighbour
    in slot `j` are `edges[edge_ptr[j]:edge_ptr[j + 1]]`, whichever way they point. The two levels read as one give all
    triples at `v`. A self-loop makes `v` its own neighbour, with one entry.
    """

    neighbour_ptr: Int64  # (E + 1,)
    neighbours: Int32  # (D,)
    edge_ptr: Int64  # (D + 1,)
    edges: Int32  # (2T - loops,)

    @classmethod
    def build(cls, triples: Int32, num_entities: int) -> Adjacency:
        """From (T, 3) triples, in time linear in their number."""
        from satkgc.kg.kernels import build_adjacency

        return cls(*map(_read_only, build_adjacency(as_triples(triples), 0, num_entities)))

    @cached_property
    def degree(self) -> Int32:
        """|N(v)|, the number of distinct neighbours (the paper's degree).  # (E,)"""
        return _read_only(np.diff(self.neighbour_ptr).astype(np.int32))

    def neighbours_of(self, entity: int) -> Int32:
        """The distinct neighbours of an entity, ascending."""
        return self.neighbours[self.neighbour_ptr[entity] : self.neighbour_ptr[entity + 1]]

    def triples_at(self, entity: int) -> Int32:
        """The ids of all training triples that touch an entity."""
        first, last = self.neighbour_ptr[entity], self.neighbour_ptr[entity + 1]
        return self.edges[self.edge_ptr[first] : self.edge_ptr[last]]


@dataclass(frozen=True, eq=False)
class KnownTriples:
    """Which tails are known for (h, r) and which heads for (r, t): the filter of evaluation and of the loss.

    The triples are sorted by (head, relation, tail) and by (tail, relation, head), so that each answer is a slice.
    """

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
        forward = sorted_by(triples, triples[:0], 0, 2, 0, num_entities)
        backward = sorted_by(triples, triples[:0], 2, 0, 0, num_entities)
        return cls(num_relations, *map(_read_only, forward), *map(_read_only, backward))

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


def as_triples(rows: Any) -> Int32:
    """A read-only (n, 3) int32 view of rows; one type for all callers, so that each loop is compiled once."""
    array = as_indices(rows)
    if array.size and (array.ndim != 2 or array.shape[1] != 3):
        raise SatkgcError(f"triples of the shape {array.shape}", remedy="give rows of head, relation, tail")
    return array.reshape(-1, 3)


def as_indices(numbers: Any) -> Int32:
    """A read-only int32 view of whole numbers, or a copy; one that int32 cannot hold would become another's index."""
    values = np.asarray(numbers)
    if values.size and values.dtype.kind not in "iu":
        raise SatkgcError(f"numbers of the type {values.dtype} are no indices", remedy="give whole ones")
    array = np.ascontiguousarray(values, np.int32)
    if values.dtype != np.int32 and (wrong := values[array != values]).size:
        raise SatkgcError(f"this is no index: {wrong[0]}", remedy="indices run from 0 to size - 1")
    return _read_only(array)


def _read_only(array: Any) -> Any:
    view = array.view()  # the flag is set on a view: the caller's own array stays as it was
    view.flags.writeable = False
    return view


def _slice(ptr: Int64, relations: Int32, others: Int32, entity: int, relation: int) -> Int32:
    low, high = int(ptr[entity]), int(ptr[entity + 1])
    block = relations[low:high]
    first, last = np.searchsorted(block, relation, "left"), np.searchsorted(block, relation, "right")
    return others[low + first : low + last]
