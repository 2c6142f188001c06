"""Pairs of entities by their distance in the training graph: how many there are, and how similar their vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from satkgc.arrays import Float32, Float64, Int32, Int64
from satkgc.kg import Adjacency, KnowledgeGraph, hops_from

_BLOCK = 64


@dataclass(frozen=True, eq=False)
class SimilarityByDistance:
    """Index i is distance i + 1."""

    values: Float64  # mean cosine; NaN where there is no pair

    @property
    def groups(self) -> list[str]:
        """The distances, as labels."""
        return [str(distance) for distance in range(1, len(self.values) + 1)]


def similarity_by_distance(
    kg: KnowledgeGraph, vectors: Float32, sources: int | None = 2_000, most: int = 8, seed: int = 0
) -> SimilarityByDistance:
    """The paper's distance–similarity table: are entities that are near in the graph near in the vector space?

    The mean cosine of pairs at distance 1 … `most`, from at most `sources` entities to all. `vectors` (E, d) are of
    length one.
    """
    total, count = np.zeros(most + 1), np.zeros(most + 1, np.int64)
    for block, hops in _hop_blocks(kg.adjacency, choose_sources(kg.num_entities, sources, seed)):
        cosines = vectors[block] @ vectors.T  # (b, E)
        near = (hops >= 0) & (hops <= most)
        total += np.bincount(hops[near], cosines[near], most + 1)
        count += np.bincount(hops[near], minlength=most + 1)
    return SimilarityByDistance(np.where(count > 0, total / np.maximum(count, 1), np.nan)[1:])


def pairs_at_distance(adjacency: Adjacency, sources: Int32) -> Int64:
    """How many ordered pairs (source, other entity) lie at distance 1, 2, …, at index 0, 1, …"""
    count: Int64 = np.zeros(1, np.int64)
    for _, hops in _hop_blocks(adjacency, sources):
        count = add_counts(count, np.bincount(hops[hops >= 0]))
    return count[1:]


def add_counts(a: Int64, b: Int64) -> Int64:
    """The sum of two counts whose lengths may differ."""
    long, short = (a, b) if len(a) >= len(b) else (b, a)
    total = long.astype(np.int64)
    total[: len(short)] += short
    return total


def choose_sources(num_entities: int, most: int | None, seed: int = 0) -> Int32:
    """All entities, or a seeded sample where there are more than `most`."""
    if most is None or num_entities <= most:
        return np.arange(num_entities, dtype=np.int32)
    return np.sort(np.random.default_rng(seed).choice(num_entities, most, replace=False)).astype(np.int32)


def _hop_blocks(adjacency: Adjacency, sources: Int32) -> Iterator[tuple[Int32, Int32]]:
    """Sources and their hops to all entities, a few at a time: memory does not grow with their number."""
    for start in range(0, len(sources), _BLOCK):
        block = sources[start : start + _BLOCK]
        yield block, hops_from(adjacency, block)
