"""Who is next to whom in the training graph, without direction, parallel edges kept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit

from satkgc.kg.vocabulary import Int32

Int64 = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True, eq=False)
class Adjacency:
    """A two-level CSR: entity → its distinct neighbours → the triples that join the two.

    The neighbours of `v` are `neighbours[neighbour_ptr[v]:neighbour_ptr[v + 1]]`, ascending. The training triples
    between `v` and the neighbour in slot `j` are `edges[edge_ptr[j]:edge_ptr[j + 1]]`, whichever way they point.
    The two levels read as one give all triples at `v`. A self-loop makes `v` its own neighbour, with one entry.
    """

    neighbour_ptr: Int64  # (E + 1,)
    neighbours: Int32  # (D,)
    edge_ptr: Int64  # (D + 1,)
    edges: Int32  # (2T - loops,)

    @classmethod
    def build(cls, triples: Int32, num_entities: int) -> Adjacency:
        """From (T, 3) triples, in time linear in their number."""
        return cls(*map(_frozen, _build(np.ascontiguousarray(triples), num_entities)))

    @cached_property
    def degree(self) -> Int32:
        """|N(v)|, the number of distinct neighbours (the paper's degree).  # (E,)"""
        return _frozen(np.diff(self.neighbour_ptr).astype(np.int32))

    def neighbours_of(self, entity: int) -> Int32:
        """The distinct neighbours of an entity, ascending."""
        return self.neighbours[self.neighbour_ptr[entity] : self.neighbour_ptr[entity + 1]]

    def triples_at(self, entity: int) -> Int32:
        """The ids of all training triples that touch an entity."""
        first, last = self.neighbour_ptr[entity], self.neighbour_ptr[entity + 1]
        return self.edges[self.edge_ptr[first] : self.edge_ptr[last]]


def _frozen(array: Any) -> Any:
    array.flags.writeable = False
    return array


@njit(cache=True, nogil=True)
def _build(triples, num_entities):  # type: ignore[no-untyped-def]
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
