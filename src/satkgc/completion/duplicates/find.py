"""Pairs of entities that may be the same thing, scored by their names, vectors and shared neighbours.

    score = 1 / (1 + exp(-x)),   x = -10 + 8 · name + 4 · vector + 5 · shared - 4 · objection

Each similarity is from 0 to 1; `objection` is 1 where the graph speaks against it. A name that is only a code, or a
model without vectors, says nothing either way: its similarity counts as UNKNOWN. The weights are fixed.
"""

from __future__ import annotations

import heapq
import logging
from dataclasses import dataclass

import numpy as np

from satkgc.arrays import Float64, Int32
from satkgc.completion.duplicates import blocks
from satkgc.completion.duplicates.names import NameTable
from satkgc.completion.duplicates.neighbours import NeighbourTable
from satkgc.completion.duplicates.objections import PairObjections
from satkgc.completion.duplicates.vectors import VectorTable
from satkgc.completion.engine import Engine

log = logging.getLogger("satkgc.completion")

BIAS, NAME, VECTOR, SHARED, OBJECTION = -10.0, 8.0, 4.0, 5.0, 4.0
UNKNOWN = 0.5
SHOWN = 5  # links that evidence names
CHUNK = 1 << 18  # pairs compared at once


@dataclass(frozen=True)
class Duplicate:
    """Two entities that may be one; `entity` has more neighbours and is the one to keep."""

    entity: str
    duplicate: str
    entity_name: str
    duplicate_name: str
    score: float
    name_similarity: float | None  # None where a name is only a code
    vector_similarity: float | None  # None where the model has no vectors
    shared_similarity: float
    shared: tuple[str, ...]  # links that both have, the rarest first
    objection: str | None
    entity_degree: int
    duplicate_degree: int
    entity_description: str
    duplicate_description: str


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs with what they have in common."""

    pairs: Int32  # (n, 2)
    similarities: Float64  # (n, 3) name, vector, shared; NaN where nothing is known
    compared: int  # how many pairs there were before weak ones were dropped

    @property
    def logits(self) -> Float64:
        """x of the score without objections.  # (n,)"""
        filled = np.where(np.isnan(self.similarities), UNKNOWN, self.similarities)
        return np.asarray(BIAS + filled @ [NAME, VECTOR, SHARED])


def candidate_pairs(names: NameTable, neighbours: NeighbourTable, vectors: VectorTable | None) -> Int32:
    """From blocks: one name, rare n-grams, the order of names, acronyms, rare neighbours, nearest vectors.  # (n, 2)"""
    size = len(names.sorted)
    named = np.flatnonzero(names.known).astype(np.int32)
    _, same = np.unique(np.array(names.sorted, object)[named].astype(str), return_inverse=True)
    parts = [
        blocks.pairs_of_groups(same.astype(np.int64), named, blocks.SAME_NAME),
        blocks.pairs_of_groups(*blocks.rarest(*names.keys(), blocks.RAREST), blocks.RARE),
        blocks.pairs_in_order(names.sorted),
        blocks.pairs_of_groups(*names.acronyms(), blocks.RARE),
        blocks.pairs_of_groups(neighbours.links, neighbours.entities, blocks.RARE),
    ]
    if vectors is not None:
        parts.append(vectors.nearest())
    return blocks.distinct(parts, size)


def compare_pairs(
    pairs: Int32, names: NameTable, neighbours: NeighbourTable, vectors: VectorTable | None, least: float
) -> Candidates:
    """What pairs have in common, of those whose x reaches `least`."""
    kept, similarities = [np.empty((0, 2), np.int32)], [np.empty((0, 3))]
    for start in range(0, len(pairs), CHUNK):
        part = pairs[start : start + CHUNK]
        unknown = np.full(len(part), np.nan, np.float32)
        columns = np.stack([names.similarity(part), unknown, neighbours.similarity(part)], 1).astype(float)
        if vectors is not None:  # read only where they can still make a difference
            hopeful = np.flatnonzero(Candidates(part, _filled(columns, 1, 1.0), 0).logits >= least)
            part, columns = part[hopeful], columns[hopeful]
            columns[:, 1] = vectors.similarity(part)
        good = Candidates(part, columns, 0).logits >= least
        kept.append(part[good])
        similarities.append(columns[good])
    return Candidates(np.concatenate(kept), np.concatenate(similarities), len(pairs))


def _filled(columns: Float64, column: int, value: float) -> Float64:
    result = columns.copy()
    result[:, column] = value
    return result


def find_duplicates(engine: Engine, n: int, min_score: float) -> list[Duplicate]:
    """The `n` pairs with the highest scores, which are at least `min_score`, best first."""
    kg, names = engine.kg, NameTable(engine.kg)
    neighbours, vectors = NeighbourTable(kg, engine.logic), VectorTable(engine)
    least = -np.inf if min_score <= 0 else float(np.log(min_score / (1 - min_score))) if min_score < 1 else np.inf
    found = compare_pairs(candidate_pairs(names, neighbours, vectors), names, neighbours, vectors, least)
    log.info("%s of %s pairs that were compared reach the score", f"{len(found.pairs):,}", f"{found.compared:,}")
    objections = PairObjections(kg, list(engine.logic), engine.consistency, engine.names)
    best: list[tuple[float, int]] = []  # a heap of x and the row, less
    reasons: dict[int, str | None] = {}
    logits = found.logits
    for row in np.argsort(-logits, kind="stable").tolist():
        if len(best) == n and best[0][0] >= logits[row]:
            break  # an objection only lowers what follows
        a, b = found.pairs[row].tolist()
        if objections.said(a, b):
            continue
        reason = objections.find(a, b)
        value = float(logits[row]) - OBJECTION * (reason is not None)
        if value >= least:
            reasons[row] = reason
            (heapq.heappushpop if len(best) == n else heapq.heappush)(best, (value, -row))
    return [_duplicate(engine, found, -row, value, reasons[-row], neighbours) for value, row in sorted(best)[::-1]]


def _duplicate(
    engine: Engine, found: Candidates, row: int, x: float, objection: str | None, neighbours: NeighbourTable
) -> Duplicate:
    kg, names = engine.kg, engine.names
    degree = kg.fact_adjacency.degree
    a, b = sorted(found.pairs[row].tolist(), key=lambda entity: (-int(degree[entity]), entity))
    one, other = names.describe(a), names.describe(b)
    links = []
    for directed, across in neighbours.shared(a, b)[:SHOWN]:
        relation, way = directed % kg.num_relations, "" if directed < kg.num_relations else " of"
        links.append(f"{kg.relations.name(relation)}{way} – {names.name(across)}")
    name, vector, shared = (None if np.isnan(value) else float(value) for value in found.similarities[row])
    score = float(1 / (1 + np.exp(-x)))
    similarities = name, vector, shared or 0.0
    texts = one.description, other.description
    degrees = one.degree, other.degree
    return Duplicate(
        one.id, other.id, one.name, other.name, score, *similarities, tuple(links), objection, *degrees, *texts
    )
