"""Adjacency and known triples, against networkx and against looking at every triple."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given, settings
from kg_graphs import graphs

from satkgc import KnowledgeGraph
from satkgc.kg import Adjacency, KnownTriples

SETTINGS = settings(max_examples=40)


@SETTINGS
@given(graphs())
def test_neighbours_and_degrees_are_those_of_networkx(graph: KnowledgeGraph) -> None:
    network = nx.MultiGraph()
    network.add_nodes_from(range(graph.num_entities))
    network.add_edges_from((int(h), int(t)) for h, _, t in graph.train)
    for entity in network:
        expected = sorted(network.neighbors(entity))
        assert graph.adjacency.neighbours_of(entity).tolist() == expected
        assert graph.adjacency.degree[entity] == len(expected)


@SETTINGS
@given(graphs())
def test_every_triple_is_found_at_both_ends_with_its_parallels(graph: KnowledgeGraph) -> None:
    adjacency = graph.adjacency
    for entity in range(graph.num_entities):
        touching = [i for i, (h, _, t) in enumerate(graph.train) if entity in (h, t)]
        assert sorted(adjacency.triples_at(entity).tolist()) == touching
        for slot in range(adjacency.neighbour_ptr[entity], adjacency.neighbour_ptr[entity + 1]):
            joined = adjacency.edges[adjacency.edge_ptr[slot] : adjacency.edge_ptr[slot + 1]]
            pair = {entity, int(adjacency.neighbours[slot])}
            assert joined.tolist() == [i for i, (h, _, t) in enumerate(graph.train) if {int(h), int(t)} == pair]


@SETTINGS
@given(graphs())
def test_known_answers_are_all_there_are(graph: KnowledgeGraph) -> None:
    everything = np.concatenate([graph.train, graph.valid, graph.test, graph.inference]).tolist()
    for known, triples in ((graph.known_train, graph.train.tolist()), (graph.known_all, everything)):
        for entity in range(graph.num_entities):
            for relation in range(graph.num_relations):
                tails = sorted({t for h, r, t in triples if (h, r) == (entity, relation)})
                heads = sorted({h for h, r, t in triples if (r, t) == (relation, entity)})
                assert known.tails(entity, relation).tolist() == tails
                assert known.heads(relation, entity).tolist() == heads
                assert known.answers(entity, relation).tolist() == tails
                assert known.answers(entity, relation + graph.num_relations).tolist() == heads


def test_hubs_are_sorted_too() -> None:
    """Buckets of many members take another way than short ones."""
    rng = np.random.default_rng(3)
    triples = np.stack([np.zeros(5000, int), rng.integers(0, 3, 5000), rng.integers(0, 2000, 5000)], 1)
    known, adjacency = KnownTriples.build(triples, 2000, 3), Adjacency.build(triples, 2000)
    for relation in range(3):
        assert known.tails(0, relation).tolist() == sorted({t for _, r, t in triples.tolist() if r == relation})
    assert adjacency.neighbours_of(0).tolist() == sorted(set(triples[:, 2].tolist()))
