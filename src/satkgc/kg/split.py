"""Seeded splits for graphs that come without one.

Both kinds walk once through candidates in a random order and hold a candidate out unless that would take something
from train that must stay. The random order is drawn over ids in sorted order, so that the same graph gets the same
split whatever the form or the order in which it was read.

*Transductive*: the candidates are pairs of entities with all triples between them, either way. A pair is held out if
its two entities and its relations keep at least one other triple in train. Keeping a pair together means that no
triple of valid or test has its mirror (under a symmetric or inverse relation) in train.

*Inductive*: the candidates are entities. One is held out, with all its triples, if its neighbours and its relations
keep at least one other triple in train. As in BLP (Daza et al., 2021), test gets the triples that touch a test
entity, valid the remaining ones that touch a valid entity.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
from numba import njit

from satkgc.arrays import Int32
from satkgc.errors import SatkgcError
from satkgc.kg.adjacency import as_indices, as_triples
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.kernels import LOW, sort_buckets
from satkgc.kg.readers.options import MOST, SHARE

log = logging.getLogger("satkgc.kg")

TRAIN, VALID, TEST = 0, 1, 2  # the larger wins where a triple joins entities of two sides


def split_graph(
    graph: KnowledgeGraph, kind: str, valid: float | None = None, test: float | None = None, seed: int = 0
) -> KnowledgeGraph:
    """Hold out shares of the triples ("transductive") or of the entities ("inductive").

    Without a share it is 5 %, of large graphs 10,000: more would tell little more and take hours to measure by.
    A graph that has a split already is returned as it is, as is any graph for "none".
    """
    if kind not in ("transductive", "inductive", "none"):
        raise SatkgcError(f"there is no {kind!r} split", remedy="use transductive, inductive or none")
    if kind == "none" or len(graph.valid) or len(graph.test):
        return graph
    rng = np.random.default_rng(seed)
    entities: dict[str, Int32] = {}
    if kind == "transductive":
        quotas = _quota(valid, len(graph.train)), _quota(test, len(graph.train))
        side = _transductive(graph, quotas, rng)
        held_out = [int((side == VALID).sum()), int((side == TEST).sum())]
    else:
        present = int((graph.adjacency.degree > 0).sum())
        quotas = _quota(valid, present), _quota(test, present)
        entity_side = _inductive(graph, quotas, rng)
        for name, code in (("valid", VALID), ("test", TEST)):
            entities[name] = as_indices(np.flatnonzero(entity_side == code).astype(np.int32))
        held_out = [len(entities["valid"]), len(entities["test"])]
        side = np.maximum(entity_side[graph.train[:, 0]], entity_side[graph.train[:, 2]])
    if sum(held_out) < sum(quotas):
        what = "triples" if kind == "transductive" else "entities"
        log.warning(
            "%s: only %s %s could be held out, not %s: train needs the rest to know every entity and relation",
            graph.name, f"{sum(held_out):,}", what, f"{sum(quotas):,}",
        )  # fmt: skip
    train, valid_triples, test_triples = (as_triples(graph.train[side == code]) for code in (TRAIN, VALID, TEST))
    return replace(
        graph,
        train=train,
        valid=valid_triples,
        test=test_triples,
        split_entities=entities,
        path=None,
        fingerprint=None,
        benchmark=None,
    )


def _quota(share: float | None, total: int) -> int:
    """How many to hold out: at least one of a small graph, so that there is something to measure by."""
    if share is None:
        return min(MOST, _quota(SHARE, total))
    return max(1, round(share * total)) if share else 0


def _ranks(order: Int32) -> Int32:
    """The place of each index in the order of the ids."""
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    return ranks


def _transductive(graph: KnowledgeGraph, quotas: tuple[int, int], rng: np.random.Generator) -> np.ndarray:  # (T,) side
    ranks = _ranks(graph.entities.id_order)
    order, low, high, starts = _by_pair(graph.train, ranks)
    pairs = rng.permutation(np.arange(len(starts) - 1, dtype=np.int32))
    side = np.zeros(len(order), np.uint8)
    side[order] = _hold_out_pairs(
        low, high, graph.train[order, 1], starts, pairs, len(ranks), graph.num_relations, *quotas
    )
    return side


@njit(cache=True, nogil=True)
def _by_pair(triples, ranks):  # type: ignore[no-untyped-def]
    """The triples in the order of their two entities' ranks, the lower and the higher rank, and each pair's start."""
    ptr = np.zeros(len(ranks) + 1, np.int64)
    for i in range(len(triples)):
        ptr[min(ranks[triples[i, 0]], ranks[triples[i, 2]]) + 1] += 1
    ptr = np.cumsum(ptr)
    at = ptr[:-1].copy()
    packed = np.empty(len(triples), np.int64)  # (higher, triple) by lower
    for i in range(len(triples)):
        head, tail = ranks[triples[i, 0]], ranks[triples[i, 2]]
        low = min(head, tail)
        packed[at[low]] = (np.int64(max(head, tail)) << 32) | i
        at[low] += 1
    sort_buckets(packed, ptr)
    # Loops, and 32 bits: an array operation would hold several arrays more, and 10⁸ triples are 0.4 GB in each.
    lower, higher = np.empty(len(triples), np.int32), np.empty(len(triples), np.int32)
    order = np.empty(len(triples), np.int32)
    pairs = 0
    for low in range(len(ranks)):
        for i in range(ptr[low], ptr[low + 1]):
            lower[i], higher[i], order[i] = low, packed[i] >> 32, packed[i] & LOW
            pairs += i == ptr[low] or higher[i] != higher[i - 1]
    starts = np.empty(pairs + 1, np.int32)
    pairs = 0
    for i in range(len(triples)):
        if i == 0 or lower[i] != lower[i - 1] or higher[i] != higher[i - 1]:
            starts[pairs] = i
            pairs += 1
    starts[pairs] = len(triples)
    return order, lower, higher, starts


@njit(cache=True, nogil=True)
def _hold_out_pairs(low, high, relation, ptr, pairs, num_entities, num_relations, valid, test):  # type: ignore[no-untyped-def]
    """The side of each triple; the triples of pair p are ptr[p]:ptr[p + 1]."""
    at_entity = np.zeros(num_entities, np.int64)  # triples left in train
    of_relation = np.zeros(num_relations, np.int64)
    for i in range(len(low)):
        at_entity[low[i]] += 1
        at_entity[high[i]] += low[i] != high[i]
        of_relation[relation[i]] += 1
    side = np.zeros(len(low), np.uint8)
    for p in pairs:
        if valid == 0 and test == 0:
            break
        first, last = ptr[p], ptr[p + 1]
        size = last - first
        if size > max(valid, test) or at_entity[low[first]] <= size or at_entity[high[first]] <= size:
            continue
        for i in range(first, last):
            of_relation[relation[i]] -= 1
        kept = True
        for i in range(first, last):
            kept = kept and of_relation[relation[i]] > 0
        if not kept:
            for i in range(first, last):
                of_relation[relation[i]] += 1
            continue
        at_entity[low[first]] -= size
        if low[first] != high[first]:
            at_entity[high[first]] -= size
        if size <= test:
            test -= size
            side[first:last] = TEST
        else:
            valid -= size
            side[first:last] = VALID
    return side


def _inductive(graph: KnowledgeGraph, quotas: tuple[int, int], rng: np.random.Generator) -> np.ndarray:  # (E,) side
    adjacency = graph.adjacency
    candidates = rng.permutation(graph.entities.id_order)
    return _hold_out_entities(
        candidates, adjacency.neighbour_ptr, adjacency.neighbours, adjacency.edge_ptr, adjacency.edges,
        np.ascontiguousarray(graph.train[:, 1]), graph.num_relations, *quotas,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _hold_out_entities(  # type: ignore[no-untyped-def]
    candidates, neighbour_ptr, neighbours, edge_ptr, edges, relation, num_relations, valid, test
):
    """The side of each entity; the arrays are those of `Adjacency`."""
    at_entity = np.zeros(len(candidates), np.int64)  # triples left in train
    for e in range(len(candidates)):
        at_entity[e] = edge_ptr[neighbour_ptr[e + 1]] - edge_ptr[neighbour_ptr[e]]
    of_relation = np.zeros(num_relations, np.int64)
    for r in relation:
        of_relation[r] += 1
    side = np.zeros(len(candidates), np.uint8)
    for e in candidates:
        if valid == 0 and test == 0:
            break
        first, last = neighbour_ptr[e], neighbour_ptr[e + 1]
        kept = last > first
        for slot in range(first, last):
            v = neighbours[slot]
            if side[v] == TRAIN:
                kept = kept and (v == e or at_entity[v] > edge_ptr[slot + 1] - edge_ptr[slot])
                for i in range(edge_ptr[slot], edge_ptr[slot + 1]):
                    of_relation[relation[edges[i]]] -= 1
        for slot in range(first, last):
            for i in range(edge_ptr[slot], edge_ptr[slot + 1]):
                kept = kept and of_relation[relation[edges[i]]] > 0
        for slot in range(first, last):
            v = neighbours[slot]
            if side[v] == TRAIN:
                if kept and v != e:
                    at_entity[v] -= edge_ptr[slot + 1] - edge_ptr[slot]
                elif not kept:
                    for i in range(edge_ptr[slot], edge_ptr[slot + 1]):
                        of_relation[relation[edges[i]]] += 1
        if kept:
            if test > 0:
                test -= 1
                side[e] = TEST
            else:
                valid -= 1
                side[e] = VALID
    return side
