"""Graphs made up for tests."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from satkgc.kg import KnowledgeGraph, Vocabulary


def graph_of(triples, num_entities, num_relations=1, valid=None, test=None, inference=None) -> KnowledgeGraph:  # type: ignore[no-untyped-def]
    """A graph from index triples, with made-up names: for tests of structure."""
    entities = [f"e{i}" for i in range(num_entities)]
    relations = [f"r{i}" for i in range(num_relations)]
    return KnowledgeGraph.from_arrays(
        "made-up",
        Vocabulary.build(
            "entity",
            pa.array(entities),
            pa.array([f"entity {e}" for e in entities]),
            pa.array([""] * num_entities),
        ),
        Vocabulary.build(
            "relation",
            pa.array(relations),
            pa.array([f"relation {r}" for r in relations]),
            pa.array([""] * num_relations),
        ),
        np.array(triples, np.int32).reshape(-1, 3),
        None if valid is None else np.array(valid, np.int32).reshape(-1, 3),
        None if test is None else np.array(test, np.int32).reshape(-1, 3),
        inference=None if inference is None else np.array(inference, np.int32).reshape(-1, 3),
    )


def random_graph(seed: int, entities: int = 60, relations: int = 4, triples: int = 200) -> KnowledgeGraph:
    """A seeded random multigraph with parallel edges and self-loops."""
    rng = np.random.default_rng(seed)
    rows = np.stack(
        [
            rng.integers(0, entities, triples),
            rng.integers(0, relations, triples),
            rng.integers(0, entities, triples),
        ],
        1,
    )
    return graph_of(np.unique(rows, axis=0), entities, relations)
