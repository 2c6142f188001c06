"""What a graph looks like before one trains on it: sizes, degrees, components, kinds of relations, texts, leaks.

*Leaks* are answers that the facts (train, and inference where there is any) give away: held-out triples that they hold
too, or whose mirror they hold. The mirror of
(h, r, t) is (t, r, h) where r is symmetric, and (t, s, h) where s is the inverse of r. Which relations are so is read
off the training triples, loops left aside: r and s are inverse if at least half of the triples of r have a mirror in s
and at least half of those of s in r; r is symmetric if it is its own inverse. Half, because a random split has already
torn many a pair apart.
"""

from __future__ import annotations

import logging
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from satkgc.arrays import Int32, Int64
from satkgc.errors import SatkgcError
from satkgc.kg.adjacency import Adjacency
from satkgc.kg.graph import SPLITS, KnowledgeGraph
from satkgc.kg.vocabulary import names_from_ids

log = logging.getLogger("satkgc.kg")

WORD = r"[^\s\v\x1c-\x1f\x{85}\p{Z}]+"  # what Python's str.split takes for one; RE2's \S knows no Unicode
EXAMPLES = 3
ROWS = 1 << 16  # texts are looked at so many at a time, whatever the size of the graph
CATEGORIES = ("1-1", "1-N", "N-1", "N-N")
MANY = 1.5  # TransE's bound: an average below it counts as one
MIRRORED = 0.5  # the share of mirrored triples that makes two relations inverse


def inspect_graph(graph: KnowledgeGraph) -> dict[str, Any]:
    """All figures, ready for JSON. Degrees and components are those of the training graph over all entities."""
    degree = graph.adjacency.degree
    p50, p90, p99 = (float(x) for x in np.percentile(degree, [50, 90, 99])) if len(degree) else (0.0,) * 3
    sizes = component_sizes(graph)
    descriptions = _words(graph.entities.descriptions)
    described = descriptions[descriptions > 0]
    return {
        "name": graph.name,
        "entities": graph.num_entities,
        "relations": graph.num_relations,
        "train": len(graph.train),
        "valid": len(graph.valid),
        "test": len(graph.test),
        "inference": len(graph.inference),
        "held_out_entities": {split: len(members) for split, members in graph.split_entities.items()},
        "mean_degree": float(degree.mean()) if len(degree) else 0.0,
        "median_degree": p50,
        "p90_degree": p90,
        "p99_degree": p99,
        "max_degree": int(degree.max(initial=0)),
        "isolated_entities": int((degree == 0).sum()),
        "components": len(sizes),
        "largest_component": int(sizes.max(initial=0)),
        "relation_triples": _relation_triples(graph),
        "relation_categories": _category_counts(graph),
        "named_by_id": _named_by_id(graph),
        "described_entities": len(described),
        "description_words": _lengths(described),
        "name_words": _lengths(_words(graph.entities.names)),
        "leaks": find_leaks(graph).to_json(),
    }


def component_sizes(graph: KnowledgeGraph) -> Any:
    """How many entities each connected component of the training graph has; an isolated entity is one of its own."""
    return (
        np.bincount(_roots(graph.adjacency.neighbour_ptr, graph.adjacency.neighbours))
        if graph.num_entities
        else np.zeros(0, np.int64)
    )


@njit(cache=True, nogil=True)
def _roots(neighbour_ptr, neighbours):  # type: ignore[no-untyped-def]
    """The number of each entity's component: union-find, four bytes an entity."""
    root = np.arange(len(neighbour_ptr) - 1).astype(np.int32)
    for u in range(len(root)):
        for slot in range(neighbour_ptr[u], neighbour_ptr[u + 1]):
            a, b = u, neighbours[slot]
            while root[a] != a:
                root[a] = root[root[a]]
                a = root[a]
            while root[b] != b:
                root[b] = root[root[b]]
                b = root[b]
            root[max(a, b)] = min(a, b)  # so that a root is the first of its component
    count = 0
    for u in range(len(root)):
        if root[u] == u:
            root[u] = -1 - count  # below 0: numbered
            count += 1
        else:
            root[u] = root[root[u]]  # of one before, which is numbered already
    return -1 - root


def _category_counts(graph: KnowledgeGraph) -> dict[str, dict[str, int]]:
    category = relation_categories(graph)
    triples = np.bincount(graph.train[:, 1], minlength=graph.num_relations)
    return {
        name: {"relations": int((category == i).sum()), "train": int(triples[category == i].sum())}
        for i, name in enumerate(CATEGORIES)
    }


def _relation_triples(graph: KnowledgeGraph) -> list[dict[str, Any]]:
    """Every relation with its triples of all splits, the most frequent first."""
    relations = graph.relations
    column = np.concatenate([graph.split(split)[:, 1] for split in SPLITS])
    counts = np.bincount(column, minlength=len(relations))
    order = np.argsort(-counts, kind="stable")
    return [{"id": relations.id(r), "name": relations.name(r), "triples": int(counts[r])} for r in order]


def _named_by_id(graph: KnowledgeGraph) -> dict[str, Any]:
    """How many entities have a name that was made from their id, or might have been, and some of their ids."""
    count = 0
    examples: list[str] = []
    for start in range(0, graph.num_entities, ROWS):
        ids = graph.entities.ids[start : start + ROWS]
        same = pc.equal(graph.entities.names[start : start + ROWS], names_from_ids(ids))
        count += pc.sum(same).as_py()
        if len(examples) < EXAMPLES:
            examples += ids.filter(same)[: EXAMPLES - len(examples)].to_pylist()
    return {"entities": count, "examples": examples}


def _words(texts: pa.LargeStringArray) -> Any:
    """The number of words in each text."""
    slices = [pc.count_substring_regex(texts[i : i + ROWS], WORD).to_numpy() for i in range(0, len(texts), ROWS)]
    return np.concatenate(slices) if slices else np.zeros(0, np.int64)


def _lengths(words: Any) -> dict[str, float]:
    if not len(words):
        return {"mean": 0.0, "median": 0.0, "max": 0}
    return {"mean": float(words.mean()), "median": float(np.median(words)), "max": int(words.max())}


def relation_categories(graph: KnowledgeGraph) -> Int32:
    """1-1, 1-N, N-1 or N-N, by how many tails a head has and how many heads a tail.

    For each relation an index into CATEGORIES, by averages over train; 4 for one without a triple there.
    """
    known = graph.known_train
    triples = np.bincount(known.head_relations, minlength=graph.num_relations)  # (R,)
    heads = _entities_of(known.head_ptr, known.head_relations, graph.num_relations)
    tails = _entities_of(known.tail_ptr, known.tail_relations, graph.num_relations)
    many_tails = triples >= MANY * heads  # tails per head
    many_heads = triples >= MANY * tails  # heads per tail
    category = np.where(many_tails, np.where(many_heads, 3, 1), np.where(many_heads, 2, 0))
    return np.where(triples == 0, len(CATEGORIES), category).astype(np.int32)


def _entities_of(ptr: Int64, relations: Int32, num_relations: int) -> Int64:
    """How many entities each relation occurs at: (entity, relation) pairs, which lie together in the sorted order."""
    first = np.ones(len(relations), bool)
    first[1:] = relations[1:] != relations[:-1]
    starts = ptr[:-1]
    first[starts[starts < len(relations)]] = True
    return np.bincount(relations[first], minlength=num_relations)


@dataclass(frozen=True)
class SplitLeaks:
    """How many triples of one split train gives away; a triple may count in more than one way."""

    same: int
    symmetric: int
    inverse: int


@dataclass(frozen=True)
class Leaks:
    """The leaks of both splits, and the relations that are symmetric or inverse of each other, by id."""

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
            _count_leaks(graph, triples, itself, False),
            _count_leaks(graph, triples, symmetric, True),
            _count_leaks(graph, triples, inverse, True),
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
                "%s: of %s %s triples %s %s as they are, %s turned round under a symmetric relation "
                "and %s under an inverse one",
                graph.name, f"{len(graph.split(split)):,}", split,
                "train and inference hold" if len(graph.inference) else "train holds",
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
    return pairs[mirrored >= MIRRORED * size.max(axis=1, initial=0)]


@njit(cache=True, nogil=True)
def _mirrored(train, neighbour_ptr, edge_ptr, edges, num_relations):  # type: ignore[no-untyped-def]
    """r * R + s for every training triple of r and every triple of s that joins its tail to its head."""
    count = 0
    for counting in (True, False):
        keys = np.empty(count, np.int64)
        count = 0
        for u in range(len(neighbour_ptr) - 1):
            for slot in range(neighbour_ptr[u], neighbour_ptr[u + 1]):
                for i in range(edge_ptr[slot], edge_ptr[slot + 1]):
                    if train[edges[i], 0] != u:
                        continue
                    for j in range(edge_ptr[slot], edge_ptr[slot + 1]):
                        if train[edges[j], 0] != u:
                            if not counting:
                                keys[count] = np.int64(train[edges[i], 1]) * num_relations + train[edges[j], 1]
                            count += 1
    return keys


def _count_leaks(graph: KnowledgeGraph, triples: Int32, pairs: Int32, mirror: bool) -> int:
    """How many triples are facts, as they are or turned round with a relation that `pairs` gives for theirs."""
    known = graph.known_facts
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


def plot_degrees(graph: KnowledgeGraph, file: Path) -> None:
    """How many entities have each degree, and the share that has at least it; both axes logarithmic."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    degree = graph.adjacency.degree
    values, entities = np.unique(degree[degree > 0], return_counts=True)
    if not len(values):
        raise SatkgcError("no entity has a neighbour: there is nothing to draw", where=graph.name)
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.loglog(values, entities, ".", color="#4477aa", alpha=0.7, label="entities of this degree")
    at_least = np.cumsum(entities[::-1])[::-1]
    axes.loglog(values, at_least, "-", color="#cc6677", linewidth=1.5, label="entities of this degree or more")
    axes.set_xlabel("degree (distinct neighbours in train)")
    axes.set_ylabel("entities")
    axes.set_title(f"{graph.name}: mean degree {degree.mean():.1f}, highest {degree.max():,}")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(frameon=False)
    partial = file.with_name(f".{file.name}.partial")
    try:
        FigureCanvasAgg(figure).print_png(partial)
        os.replace(partial, file)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise SatkgcError(f"cannot write the picture: {error.strerror or error}", where=file) from error
