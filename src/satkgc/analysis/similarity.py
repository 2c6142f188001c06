"""Pairs of entities by their distance in the training graph: how many there are, and how similar their vectors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from satkgc.analysis.chart import Chart
from satkgc.analysis.options import Options, Runs
from satkgc.arrays import Float32, Float64, Int32, Int64
from satkgc.errors import SatkgcError
from satkgc.kg import Adjacency, KnowledgeGraph, hops_from
from satkgc.models import VectorModel

_BLOCK = 64


def similarity_by_distance(
    kg: KnowledgeGraph, vectors: Float32, sources: int | None = 2_000, most: int = 8, seed: int = 0
) -> Float64:
    """The paper's distance–similarity table: are entities that are near in the graph near in the vector space?

    The mean cosine of pairs at distance 1 … `most`, from at most `sources` entities to all. `vectors` (E, d) are of
    length one. NaN where there is no pair.
    """
    total, count = np.zeros(most + 1), np.zeros(most + 1, np.int64)
    for block, hops in _hop_blocks(kg.adjacency, choose_sources(kg.num_entities, sources, seed)):
        cosines = vectors[block] @ vectors.T  # (b, E)
        near = (hops >= 0) & (hops <= most)
        total += np.bincount(hops[near], cosines[near], most + 1)
        count += np.bincount(hops[near], minlength=most + 1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)[1:]


def chart_similarity(runs: Runs, options: Options) -> list[Chart]:
    """The table for runs whose models have entity vectors."""
    series: dict[str, Float64] = {}
    for label, run in runs.items():
        model = run.model(options.device)
        if not isinstance(model, VectorModel):
            problem = f"{type(model).__name__} has no entity vectors to compare"
            raise SatkgcError(problem, where=label, remedy="choose a run of a model that has, such as recipe satkgc")
        everyone = np.arange(run.kg.num_entities, dtype=np.int32)
        vectors = model.encode_entities(everyone, progress=options.progress)
        series[label] = similarity_by_distance(run.kg, vectors)
    distances = [str(distance) for distance in range(1, 9)]
    return [Chart("Mean cosine of two entities", "distance between them", distances, series)]


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
