"""What a graph looks like before one trains on it: sizes, degrees, components, kinds of relations, texts, leaks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from satkgc.kg.categories import CATEGORIES, relation_categories
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.leaks import find_leaks
from satkgc.kg.readers.readable import readable_names

WORD = r"[^\s\v\x1c-\x1f\x{85}\p{Z}]+"  # what Python's str.split takes for one; RE2's \S knows no Unicode
EXAMPLES = 3
ROWS = 1 << 16  # texts are looked at so many at a time, whatever the size of the graph


def inspect(graph: KnowledgeGraph) -> dict[str, Any]:
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
        "relation_categories": _categories(graph),
        "named_by_id": _named_by_id(graph),
        "described_entities": len(described),
        "description_words": _lengths(described),
        "name_words": _lengths(_words(graph.entities.names)),
        "leaks": find_leaks(graph).to_json(),
    }


def component_sizes(graph: KnowledgeGraph) -> Any:
    """How many entities each connected component of the training graph has; an isolated entity is one of its own."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    if not graph.num_entities:
        return np.zeros(0, np.int64)
    adjacency = graph.adjacency
    ones = np.ones(len(adjacency.neighbours))
    ptr = adjacency.neighbour_ptr.astype(np.int32) if len(ones) < 2**31 else adjacency.neighbour_ptr
    shape = (graph.num_entities, graph.num_entities)
    _, label = connected_components(csr_array((ones, adjacency.neighbours, ptr), shape), directed=False)
    return np.bincount(label)


def _categories(graph: KnowledgeGraph) -> dict[str, dict[str, int]]:
    category = relation_categories(graph)
    triples = np.bincount(graph.train[:, 1], minlength=graph.num_relations)
    return {
        name: {"relations": int((category == i).sum()), "train": int(triples[category == i].sum())}
        for i, name in enumerate(CATEGORIES)
    }


def _relation_triples(graph: KnowledgeGraph) -> list[dict[str, Any]]:
    """Every relation with its triples of all splits, the most frequent first."""
    relations = graph.relations
    column = np.concatenate([graph.split(split)[:, 1] for split in ("train", "valid", "test")])
    counts = np.bincount(column, minlength=len(relations))
    order = np.argsort(-counts, kind="stable")
    return [{"id": relations.id(r), "name": relations.name(r), "triples": int(counts[r])} for r in order]


def _named_by_id(graph: KnowledgeGraph) -> dict[str, Any]:
    """How many entities have a name that was made from their id, or might have been, and some of their ids."""
    count = 0
    examples: list[str] = []
    for start in range(0, graph.num_entities, ROWS):
        ids = graph.entities.ids[start : start + ROWS]
        same = pc.equal(graph.entities.names[start : start + ROWS], readable_names(ids))
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
