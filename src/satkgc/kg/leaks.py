"""Answers that train gives away: held-out triples that it holds too, or whose mirror it holds.

The mirror of (h, r, t) is (t, r, h) where r is symmetric, and (t, s, h) where s is the inverse of r. Which relations
are so is read off the training triples, loops left aside: r and s are inverse if at least half of the triples of r
have a mirror in s and at least half of those of s in r; r is symmetric if it is its own inverse. Half, because a
random split has already torn many a pair apart.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numba import njit

from satkgc.arrays import Int32
from satkgc.kg.adjacency import Adjacency
from satkgc.kg.graph import KnowledgeGraph

log = logging.getLogger("satkgc.kg")

SHARE = 0.5


@dataclass(frozen=True)
class SplitLeaks:
    """How many triples of one split train gives away; a triple may count in more than one way."""

    same: int
    symmetric: int
    inverse: int


@dataclass(frozen=True)
class Leaks:
    """The leaks of both splits, and the relations found to be symmetric or inverse of each other, by id."""

    valid: SplitLeaks
    test: SplitLeaks
    symmetric_relations: tuple[str, ...]
    inverse_relations: tuple[tuple[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        """As dictionaries and lists."""
        return asdict(self)


def find_leaks(graph: KnowledgeGraph) -> Leaks:
    """Count the leaks of a graph's valid and test triples."""
    pairs = mirror_relations(graph.train, graph.adjacency, graph.num_relations)
    symmetric = pairs[pairs[:, 0] == pairs[:, 1]]
    inverse = pairs[pairs[:, 0] != pairs[:, 1]]
    itself = np.repeat(np.arange(graph.num_relations, dtype=np.int32), 2).reshape(-1, 2)
    counts = [
        SplitLeaks(
            _given_away(graph, triples, itself, False),
            _given_away(graph, triples, symmetric, True),
            _given_away(graph, triples, inverse, True),
        )
        for triples in (graph.valid, graph.test)
    ]
    name = graph.relations.id
    return Leaks(
        counts[0],
        counts[1],
        tuple(name(r) for r, _ in symmetric),
        tuple((name(r), name(s)) for r, s in inverse if r < s),
    )


def warn_of_leaks(graph: KnowledgeGraph) -> None:
    """Say how many held-out triples train gives away, if any."""
    leaks = find_leaks(graph)
    for split in ("valid", "test"):
        counts = getattr(leaks, split)
        if counts.same or counts.symmetric or counts.inverse:
            log.warning(
                "%s: of %s %s triples train holds %s as they are, %s turned round under a symmetric relation "
                "and %s under an inverse one",
                graph.name, f"{len(graph.split(split)):,}", split,
                f"{counts.same:,}", f"{counts.symmetric:,}", f"{counts.inverse:,}",
            )  # fmt: skip


def mirror_relations(train: Int32, adjacency: Adjacency, num_relations: int) -> Int32:
    """All (r, s) such that s is the inverse of r: both orders of a pair, and (r, r) for a symmetric one.  # (M, 2)"""
    slots = adjacency.neighbour_ptr, adjacency.edge_ptr, adjacency.edges
    keys = _mirrored(train, *slots, num_relations)
    keys, mirrored = np.unique(keys, return_counts=True)
    pairs = np.stack([keys // num_relations, keys % num_relations], axis=1).astype(np.int32)
    proper = train[train[:, 0] != train[:, 2], 1]
    size = np.bincount(proper, minlength=num_relations)[pairs]  # (M, 2)
    return pairs[mirrored >= SHARE * size.max(axis=1, initial=0)]


@njit(cache=True, nogil=True)
def _mirrored(train, neighbour_ptr, edge_ptr, edges, num_relations):  # type: ignore[no-untyped-def]
    """r * R + s for every training triple of r and every triple of s that joins its tail to its head."""
    count = 0
    for counting in (True, False):
        found = np.empty(count, np.int64)
        count = 0
        for u in range(len(neighbour_ptr) - 1):
            for slot in range(neighbour_ptr[u], neighbour_ptr[u + 1]):
                for i in range(edge_ptr[slot], edge_ptr[slot + 1]):
                    if train[edges[i], 0] != u:
                        continue
                    for j in range(edge_ptr[slot], edge_ptr[slot + 1]):
                        if train[edges[j], 0] != u:
                            if not counting:
                                found[count] = np.int64(train[edges[i], 1]) * num_relations + train[edges[j], 1]
                            count += 1
    return found


def _given_away(graph: KnowledgeGraph, triples: Int32, pairs: Int32, mirror: bool) -> int:
    """How many triples are in train, as they are or turned round with a relation that `pairs` gives for theirs."""
    known = graph.known_train
    partner_ptr = np.searchsorted(pairs[:, 0], np.arange(graph.num_relations + 1))
    partners = np.ascontiguousarray(pairs[:, 1])
    return int(
        _count_known(triples, known.head_ptr, known.head_relations, known.head_tails, partner_ptr, partners, mirror)
    )


@njit(cache=True, nogil=True)
def _count_known(triples, ptr, relations, tails, partner_ptr, partners, mirror):  # type: ignore[no-untyped-def]
    count = 0
    for i in range(len(triples)):
        h, r, t = triples[i]
        if mirror:
            if h == t:
                continue
            h, t = t, h
        for p in range(partner_ptr[r], partner_ptr[r + 1]):
            if _contains(ptr, relations, tails, h, partners[p], t):
                count += 1
                break
    return count


@njit(cache=True, nogil=True)
def _contains(ptr, relations, tails, h, r, t):  # type: ignore[no-untyped-def]
    low, high = ptr[h], ptr[h + 1]
    while low < high:
        middle = (low + high) // 2
        if relations[middle] < r or (relations[middle] == r and tails[middle] < t):
            low = middle + 1
        else:
            high = middle
    return low < ptr[h + 1] and relations[low] == r and tails[low] == t
