"""A sorted list of entities for every query, as slices of one array: known answers, or neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from satkgc.arrays import Int32, Int64
from satkgc.kg import KnownTriples


@dataclass(frozen=True, eq=False)
class Slices:
    """Query i has the entities values[starts[i]:stops[i]], ascending and distinct."""

    values: Int32  # (n,) shared with whoever owns it, never copied
    starts: Int64  # (Q,)
    stops: Int64  # (Q,)

    def __len__(self) -> int:
        return len(self.starts)

    def of(self, query: int) -> Int32:
        """The entities of one query; a view."""
        return self.values[self.starts[query] : self.stops[query]]

    def contain(self, entities: Int32) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether slice i holds entities[i].  # (Q,)"""
        return _contain(self.values, self.starts, self.stops, entities)

    def tile(self, rows: slice, columns: slice) -> tuple[Int64, Int64]:
        """The members within a tile of queries × entities, as local row and column numbers."""
        starts, stops = self.starts[rows], self.stops[rows]
        return _tile(self.values, starts, stops, columns.start, columns.stop)

    def among(self, candidates: Int32) -> Slices:
        """Only the members that are in ascending `candidates`, renumbered to their places in it."""
        values, stops = _among(self.values, self.starts, self.stops, candidates)
        return Slices(values, np.concatenate([[0], stops[:-1]]).astype(np.int64), stops)


def known_answers(known: KnownTriples, entities: Int32, relations: Int32, direction: str) -> Slices:
    """Known tails of (entity, relation, ?) or, for direction "head", known heads of (?, relation, entity)."""
    if direction == "tail":
        ptr, group, values = known.head_ptr, known.head_relations, known.head_tails
    else:
        ptr, group, values = known.tail_ptr, known.tail_relations, known.tail_heads
    starts, stops = _ranges(ptr, group, entities, relations)
    return Slices(values, starts, stops)


@njit(cache=True, nogil=True)
def _ranges(ptr, group, entities, relations):  # type: ignore[no-untyped-def]
    starts = np.empty(len(entities), np.int64)
    stops = np.empty(len(entities), np.int64)
    for i in range(len(entities)):
        low, high = ptr[entities[i]], ptr[entities[i] + 1]
        starts[i] = low + np.searchsorted(group[low:high], relations[i])
        stops[i] = low + np.searchsorted(group[low:high], relations[i], side="right")
    return starts, stops


@njit(cache=True, nogil=True)
def _contain(values, starts, stops, entities):  # type: ignore[no-untyped-def]
    found = np.zeros(len(starts), np.bool_)
    for i in range(len(starts)):
        at = starts[i] + np.searchsorted(values[starts[i] : stops[i]], entities[i])
        found[i] = at < stops[i] and values[at] == entities[i]
    return found


@njit(cache=True, nogil=True)
def _tile(values, starts, stops, first, last):  # type: ignore[no-untyped-def]
    low = np.empty(len(starts), np.int64)
    high = np.empty(len(starts), np.int64)
    total = 0
    for i in range(len(starts)):
        members = values[starts[i] : stops[i]]
        low[i] = starts[i] + np.searchsorted(members, first)
        high[i] = starts[i] + np.searchsorted(members, last)
        total += high[i] - low[i]
    rows = np.empty(total, np.int64)
    columns = np.empty(total, np.int64)
    at = 0
    for i in range(len(starts)):
        for j in range(low[i], high[i]):
            rows[at] = i
            columns[at] = values[j] - first
            at += 1
    return rows, columns


@njit(cache=True, nogil=True)
def _among(values, starts, stops, candidates):  # type: ignore[no-untyped-def]
    kept = np.empty(np.sum(stops - starts), np.int32)
    ends = np.empty(len(starts), np.int64)
    at = 0
    for i in range(len(starts)):
        for j in range(starts[i], stops[i]):
            place = np.searchsorted(candidates, values[j])
            if place < len(candidates) and candidates[place] == values[j]:
                kept[at] = place
                at += 1
        ends[i] = at
    return kept[:at].copy(), ends
