"""Who is next to whom in the training graph, without direction, parallel edges kept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from satkgc.arrays import Int32, Int64
from satkgc.errors import SatkgcError


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
        from satkgc.kg.kernels import build_adjacency

        return cls(*map(_frozen, build_adjacency(as_triples(triples), num_entities)))

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


def as_triples(rows: Any) -> Int32:
    """A read-only (n, 3) int32 view of rows; one type for all callers, so that each loop is compiled once."""
    array = as_indices(rows)
    if array.size and (array.ndim != 2 or array.shape[1] != 3):
        raise SatkgcError(f"triples of the shape {array.shape}", remedy="give rows of head, relation, tail")
    return array.reshape(-1, 3)


def as_indices(numbers: Any) -> Int32:
    """A read-only int32 view of whole numbers, or a copy; one that int32 cannot hold would become another's index."""
    given = np.asarray(numbers)
    if given.size and given.dtype.kind not in "iu":
        raise SatkgcError(f"numbers of the type {given.dtype} are no indices", remedy="give whole ones")
    array = np.ascontiguousarray(given, np.int32)
    if given.dtype != np.int32 and (wrong := given[array != given]).size:
        raise SatkgcError(f"this is no index: {wrong[0]}", remedy="indices run from 0 to size - 1")
    return _frozen(array)


def _frozen(array: Any) -> Any:
    view = array.view()  # the flag is set on a view: the caller's own array stays as it was
    view.flags.writeable = False
    return view
