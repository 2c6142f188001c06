"""What is ranked: the questions that triples ask in one direction, the answers known to each, and the candidates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numba import njit

from satkgc.arrays import Bool, Int32, Int64
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph, KnownTriples

MANY_ENTITIES = 100_000  # from which on sampled candidates come from a pool, and nothing else is encoded


@dataclass(frozen=True, eq=False)
class Slices:
    """A sorted list of entities for every query, as slices of one array: known answers, or neighbours.

    Query i has the entities values[starts[i]:stops[i]], ascending and distinct.
    """

    values: Int32  # (n,) shared with whoever owns it, never copied
    starts: Int64  # (Q,)
    stops: Int64  # (Q,)

    def __len__(self) -> int:
        return len(self.starts)

    def of(self, query: int) -> Int32:
        """The entities of one query; a view."""
        return self.values[self.starts[query] : self.stops[query]]

    def contain(self, entities: Int32) -> Bool:
        """Whether slice i holds entities[i].  # (Q,)"""
        return _contain(self.values, self.starts, self.stops, entities)

    def tile(self, rows: slice | Int64, columns: slice) -> tuple[Int64, Int64]:
        """The members within a tile of queries × entities, as local row and column numbers."""
        starts, stops = self.starts[rows], self.stops[rows]
        return _tile(self.values, starts, stops, columns.start, columns.stop)

    def among(self, candidates: Int32) -> Slices:
        """Only the members that are in ascending `candidates`, renumbered to their places in it."""
        values, stops = _among(self.values, self.starts, self.stops, candidates)
        return Slices(values, np.concatenate([[0], stops[:-1]]).astype(np.int64), stops)


@dataclass(frozen=True, eq=False)
class RankingTask:
    """One question a triple, in one direction; answers are numbered by their places among the candidates."""

    entities: Int32  # (Q,) the entity that is asked about
    relations: Int32  # (Q,) directed: r asks for tails, r + R for heads
    answers: Int32  # (Q,) -1: not among them
    known: Slices  # of each question all known answers among the candidates, for the filter

    @classmethod
    def of(cls, kg: KnowledgeGraph, triples: Int32, direction: str, candidates: Int32) -> RankingTask:
        """The questions for the tails of (n, 3) triples or, for direction "head", for their heads."""
        source, target, shift = (0, 2, 0) if direction == "tail" else (2, 0, kg.num_relations)
        entities, relations, answers = (np.ascontiguousarray(triples[:, column]) for column in (source, 1, target))
        known = known_answers(kg.known_all, entities, relations, direction)
        if len(candidates) < kg.num_entities:
            place = np.minimum(np.searchsorted(candidates, answers), len(candidates) - 1)
            answers = np.where(candidates[place] == answers, place, -1).astype(np.int32)
            known = known.among(candidates)
        return cls(entities, (relations + shift).astype(np.int32), answers, known)

    def __len__(self) -> int:
        return len(self.entities)


def known_answers(known: KnownTriples, entities: Int32, relations: Int32, direction: str) -> Slices:
    """Known tails of (entity, relation, ?) or, for direction "head", known heads of (?, relation, entity)."""
    if direction == "tail":
        ptr, group, values = known.head_ptr, known.head_relations, known.head_tails
    else:
        ptr, group, values = known.tail_ptr, known.tail_relations, known.tail_heads
    starts, stops = _ranges(ptr, group, entities, relations)
    return Slices(values, starts, stops)


def draw_pool(candidates: Int32, sampled: int, seed: int) -> Int32:
    """Candidates that all questions share, ascending, drawn once from the seed.

    Given a question, a pool is a uniform draw from the candidates: as good as one of its own. It has a quarter more
    than are `sampled`, for the filter takes some away.
    """
    size = min(len(candidates), sampled + sampled // 4 + 16)
    rng = np.random.default_rng([seed, *b"pool"])
    return np.sort(candidates[rng.choice(len(candidates), size, replace=False)])


def split_triples(kg: KnowledgeGraph, split: str, rows: Int64 | None = None) -> Int32:
    """A split's triples, or some of its rows; there must be some."""
    triples = kg.split(split) if rows is None else kg.split(split)[rows]
    if not len(triples):
        raise SatkgcError(f"{kg.name} has no {split} triples", remedy="choose another split")
    return triples


def candidate_entities(kg: KnowledgeGraph, split: str, which: str) -> Int32:
    """The entities to rank, ascending.

    "all" is every entity of the graph. "split" is the entities in the split's own triples, with those that an inductive
    graph names for the split: what Wikidata5M's inductive setting ranks. Where the graph has an inference split, train
    and inference are two graphs, and "split" is all entities of the one that the split's triples are about, or of both.
    """
    if which == "all":
        return np.arange(kg.num_entities, dtype=np.int32)
    if which != "split":
        raise SatkgcError(f"unknown candidates {which!r}", remedy='evaluation.candidates is "all" or "split"')
    named = kg.split_entities.get(split, np.empty(0, np.int32))
    members = np.union1d(kg.split(split)[:, [0, 2]], named)
    if len(kg.inference):
        graphs = [np.unique(facts[:, [0, 2]]) for facts in (kg.train, kg.inference)]
        members = reduce(np.union1d, [part for part in graphs if len(np.intersect1d(part, members))], members)
    return members.astype(np.int32)


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
    inside = np.zeros(len(starts), np.bool_)
    for i in range(len(starts)):
        at = starts[i] + np.searchsorted(values[starts[i] : stops[i]], entities[i])
        inside[i] = at < stops[i] and values[at] == entities[i]
    return inside


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
