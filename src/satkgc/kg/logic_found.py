"""What relations mean, found in a graph's facts, with counts; `satkgc.kg.logic` has the rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from satkgc.arrays import Int32
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.inspect import mirror_relations
from satkgc.kg.logic import RelationLogic, is_general

FEWEST = 20
CLOSED, OPEN = 0.9, 0.01  # shares of two steps that one joins: in a transitive relation, in a hierarchy
CHAINED = 0.25  # of a relation's triples are part of two steps, else a few wrong ones make it one
SINGLE = 0.99  # with 0.95, hypernyms of WordNet had one tail, and right second ones were pushed behind wrong ones
IMPLIED = TYPED = 0.95
WITH_TYPE = 0.5  # where fewer ends have a type, it is an exception that has one
RARE = 0.01  # a type that fewer of the triples have at an end is none of that end's; a few wrong triples have many ends
MOST_TYPES = 20
LARGEST = 2_000_000  # triples of a relation whose steps are followed


def found_logic(kg: KnowledgeGraph) -> list[RelationLogic]:
    """What the facts show of every relation, types left aside."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    facts, size = kg.facts, kg.num_entities
    logic = [RelationLogic() for _ in range(kg.num_relations)]
    counts = np.bincount(facts[:, 1], minlength=kg.num_relations)
    for r, s in mirror_relations(kg.facts, kg.fact_adjacency, kg.num_relations).tolist():
        if min(counts[r], counts[s]) >= FEWEST:
            why = f"{min(counts[r], counts[s]):,} triples"
            if r == s:
                logic[r] = replace(logic[r], symmetric=True, why=logic[r].why | {"symmetric": why})
            elif logic[r].inverse is None:
                logic[r] = replace(logic[r], inverse=s, why=logic[r].why | {"inverse": why})
    order = np.argsort(facts[:, 1], kind="stable")
    bounds = np.searchsorted(facts[order, 1], np.arange(kg.num_relations + 1))
    for r in range(kg.num_relations):
        rows = facts[order[bounds[r] : bounds[r + 1]]]
        if not FEWEST <= len(rows) <= LARGEST:
            continue
        changes: dict[str, str] = {}
        for name, column, ends in (("functional", 0, "heads"), ("inverse_functional", 2, "tails")):
            each = np.unique(rows[:, column], return_counts=True)[1]
            if len(each) >= FEWEST and (each == 1).mean() >= SINGLE:
                changes[name] = f"{(each == 1).sum():,} of {len(each):,} {ends}"
        rows = rows[rows[:, 0] != rows[:, 2]]
        used, places = np.unique(rows[:, [0, 2]], return_inverse=True)
        places = places.reshape(-1, 2)
        steps = csr_array((np.ones(len(places), np.int32), (places[:, 0], places[:, 1])), (len(used), len(used)))
        steps.data[:] = 1
        leaving, coming = (np.bincount(places[:, side], minlength=len(used)) for side in (0, 1))
        if coming @ leaving <= 10 * LARGEST:
            two = steps @ steps
            two.setdiag(0)
            two.eliminate_zeros()
            joined = two.multiply(steps).nnz
            chained = (leaving[places[:, 1]] > 0) | (coming[places[:, 0]] > 0)
            if two.nnz >= FEWEST and chained.mean() >= CHAINED and not logic[r].symmetric:
                if joined >= CLOSED * two.nnz:
                    changes["transitive"] = f"{joined:,} of {two.nnz:,} two steps"
                acyclic = connected_components(steps, directed=True, connection="strong")[0] == len(used)
                if acyclic and joined <= OPEN * two.nnz:
                    changes["hierarchy"] = f"{two.nnz:,} two steps"
        logic[r] = replace(logic[r], **dict[str, Any](dict.fromkeys(changes, True)), why=logic[r].why | changes)
    for r, s, count in _implications(facts, counts, size):
        by = logic[r].why | {"implies": f"{count:,} of {counts[r]:,} triples"}
        logic[r] = replace(logic[r], implies=(*logic[r].implies, s), why=by)
    return logic


def _implications(facts: Int32, counts: Any, size: int) -> Iterator[tuple[int, int, int]]:
    """Relations whose triples another one has, too, and how many of them it has."""
    from scipy.sparse import csr_array

    pairs, row = np.unique(facts[:, 0].astype(np.int64) * size + facts[:, 2], return_inverse=True)
    has = csr_array((np.ones(len(facts), np.int32), (row, facts[:, 1])), (len(pairs), len(counts)))
    has.data[:] = 1
    both = (has.T @ has).tocoo()
    for r, s, count in zip(both.row.tolist(), both.col.tolist(), both.data.tolist(), strict=True):
        if r != s and counts[r] >= FEWEST and count >= IMPLIED * counts[r]:
            yield r, s, count


def found_domains(kg: KnowledgeGraph, type_relations: Sequence[int]) -> Iterator[tuple[int, str, tuple[int, ...], str]]:
    """The types of each relation's heads ("domain") and tails ("range"), and how many triples have one."""
    from scipy.sparse import csr_array

    typed = kg.facts[np.isin(kg.facts[:, 1], type_relations)]
    types, place = np.unique(typed[:, 2], return_inverse=True)
    special = np.array([not is_general(kg.entities.id(t)) for t in types.tolist()], bool)
    typed, place = typed[special[place]], place[special[place]]
    if len(typed) < FEWEST:
        return
    has = csr_array((np.ones(len(typed), np.int32), (typed[:, 0], place)), (kg.num_entities, len(types)))
    has.data[:] = 1
    order = np.argsort(kg.facts[:, 1], kind="stable")
    bounds = np.searchsorted(kg.facts[order, 1], np.arange(kg.num_relations + 1))
    for r in range(kg.num_relations):
        rows = kg.facts[order[bounds[r] : bounds[r + 1]]]
        for end, column in (("domain", 0), ("range", 2)):
            ends, triples = np.unique(rows[:, column], return_counts=True)
            own = has[ends]
            with_type = np.diff(own.indptr) > 0
            members, known = int(with_type.sum()), int(triples[with_type].sum())
            counts = triples @ own
            chosen = np.flatnonzero(counts >= max(1, RARE * known))
            if members < max(FEWEST, WITH_TYPE * own.shape[0]) or not 0 < len(chosen) <= MOST_TYPES:
                continue
            covered = int(triples[own[:, chosen].sum(axis=1) > 0].sum())
            if covered >= TYPED * known:
                order_by = chosen[np.argsort(-counts[chosen], kind="stable")]
                yield r, end, tuple(types[order_by].tolist()), f"{covered:,} of {known:,} triples"
