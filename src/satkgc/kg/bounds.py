"""Whether the indices of an opened graph stay within their arrays: compiled loops follow them without looking."""

from __future__ import annotations

from typing import Any

from satkgc.kg.graph import SPLITS, KnowledgeGraph
from satkgc.kg.vocabulary import Vocabulary


def check_bounds(graph: KnowledgeGraph) -> None:
    """ValueError for a graph whose files are as they were written, by somebody who wrote something else."""
    entities, relations, triples = graph.num_entities, graph.num_relations, len(graph.train)
    for split in SPLITS:
        _within(graph.split(split)[:, ::2], entities, f"{split}'s entities")
        _within(graph.split(split)[:, 1], relations, f"{split}'s relations")
    for split, members in graph.split_entities.items():
        _within(members, entities, f"the entities held out for {split}")
    adjacency = graph.adjacency
    _ascending(adjacency.neighbour_ptr, "the adjacency")
    _ascending(adjacency.edge_ptr, "the adjacency")
    _within(adjacency.neighbours, entities, "the neighbours")
    _within(adjacency.edges, triples, "the edges")
    for known in (graph.known_train, graph.known_all):
        for ptr, directed, others in (
            (known.head_ptr, known.head_relations, known.head_tails),
            (known.tail_ptr, known.tail_relations, known.tail_heads),
        ):
            _ascending(ptr, "the known triples")
            _within(directed, relations, "the known triples' relations")
            _within(others, entities, "the known triples' entities")
    for vocabulary in (graph.entities, graph.relations):
        _check_vocabulary(vocabulary)


def _check_vocabulary(vocabulary: Vocabulary) -> None:
    for column in (vocabulary.ids, vocabulary.names, vocabulary.descriptions):
        column.validate(full=True)  # offsets and UTF-8; ArrowInvalid is a ValueError
    for order in (vocabulary.id_order, vocabulary.name_order):
        _within(order, len(vocabulary), f"the order of the {vocabulary.kind} texts")


def _within(indices: Any, size: int, what: str) -> None:
    if indices.size and not (indices.min() >= 0 and indices.max() < size):
        raise ValueError(f"{what} point outside of the graph")


def _ascending(ptr: Any, what: str) -> None:
    """CSR pointers from 0 to the end, which the shapes were checked against."""
    if ptr[0] != 0 or (len(ptr) > 1 and bool((ptr[1:] < ptr[:-1]).any())):
        raise ValueError(f"the pointers of {what} are out of order")
