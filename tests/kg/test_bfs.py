"""Breadth-first searches against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kg_graphs import graphs

from graphs import graph_of, random_graph
from satkgc.kg import Adjacency, HopSearch, KnowledgeGraph, entities_within, hops_from, shortest_path

GRAPHS = {
    "dense": random_graph(1, entities=60, triples=300),
    "sparse, many components": random_graph(2, entities=300, triples=200),
    "deep": random_graph(3, entities=700, triples=800),
    "chain": graph_of([[i, 0, i + 1] for i in range(100)], 101),
    "star with tails": graph_of([[0, 0, i] for i in range(1, 60)] + [[i, 0, i + 60] for i in range(1, 60)], 121),
}


def network(graph: KnowledgeGraph) -> nx.Graph:
    result = nx.Graph()
    result.add_nodes_from(range(graph.num_entities))
    result.add_edges_from((int(h), int(t)) for h, _, t in graph.train)
    return result


def all_hops(graph: KnowledgeGraph) -> np.ndarray:
    """All distances, -1 where there is no path.  # (E, E)"""
    hops = np.full((graph.num_entities,) * 2, -1)
    for source, lengths in nx.all_pairs_shortest_path_length(network(graph)):
        hops[source, list(lengths)] = list(lengths.values())
    return hops


EXPECTED = {name: all_hops(graph) for name, graph in GRAPHS.items()}


@settings(max_examples=40)
@given(graphs(), st.data())
def test_searches_of_random_multigraphs(graph: KnowledgeGraph, data: st.DataObject) -> None:
    expected, adjacency = all_hops(graph), graph.adjacency
    everyone = np.arange(graph.num_entities, dtype=np.int32)
    np.testing.assert_array_equal(hops_from(adjacency, everyone), expected)
    limit = data.draw(st.integers(0, 4))
    entities, ptr = entities_within(adjacency, everyone, limit)
    search = HopSearch(adjacency)
    for source in everyone:
        near = np.flatnonzero((expected[source] >= 0) & (expected[source] <= limit))
        np.testing.assert_array_equal(entities[ptr[source] : ptr[source + 1]], near)
        np.testing.assert_array_equal(search.hops(source, everyone), expected[source])
        for target in everyone:
            path = shortest_path(adjacency, np.array([source]), np.array([target]))
            assert len(path) - 1 == expected[source, target]


@pytest.mark.parametrize("name", GRAPHS)
def test_hops_from_some_entities(name: str) -> None:
    sources = np.array([3, 0, 59, 3], np.int32)
    hops = hops_from(GRAPHS[name].adjacency, sources)
    assert hops.dtype == np.int32
    np.testing.assert_array_equal(hops, EXPECTED[name][sources])


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_entities_within_some_hops(name: str, limit: int) -> None:
    graph = GRAPHS[name]
    sources = np.arange(0, graph.num_entities, 7, dtype=np.int32)
    entities, ptr = entities_within(graph.adjacency, sources, limit)
    assert (entities.dtype, ptr.dtype) == (np.int32, np.int64)
    assert ptr[0] == 0
    assert ptr[-1] == len(entities)
    for i, source in enumerate(sources):
        expected = nx.single_source_shortest_path_length(network(graph), int(source), cutoff=limit)
        assert entities[ptr[i] : ptr[i + 1]].tolist() == sorted(expected)


def test_nothing_is_within_reach_of_no_source() -> None:
    entities, ptr = entities_within(GRAPHS["chain"].adjacency, np.empty(0, np.int32), 2)
    assert (entities.tolist(), ptr.tolist()) == ([], [0])


@pytest.mark.parametrize("name", GRAPHS)
def test_a_shortest_path_between_sets(name: str) -> None:
    graph, edges = GRAPHS[name], network(GRAPHS[name])
    rng = np.random.default_rng(4)
    for _ in range(50):
        sources, targets = (rng.choice(graph.num_entities, 3, replace=False).astype(np.int32) for _ in range(2))
        path = shortest_path(graph.adjacency, sources, targets)
        hops = EXPECTED[name][np.ix_(sources, targets)]
        if not (hops >= 0).any():
            assert len(path) == 0
            continue
        assert path.dtype == np.int32
        assert len(path) - 1 == hops[hops >= 0].min()
        assert path[0] in sources
        assert path[-1] in targets
        assert nx.is_path(edges, path.tolist())


@pytest.mark.parametrize("name", GRAPHS)
def test_a_shortest_path_that_is_not_the_edge_itself(name: str) -> None:
    graph = GRAPHS[name]
    edges = network(graph)
    for head, _, tail in graph.train[:60].tolist():
        if head == tail:
            continue
        ends = np.array([head], np.int32), np.array([tail], np.int32)
        assert shortest_path(graph.adjacency, *ends).tolist() == [head, tail]
        path = shortest_path(graph.adjacency, *ends, direct=False).tolist()
        edges.remove_edge(head, tail)
        if nx.has_path(edges, head, tail):
            assert len(path) - 1 == nx.shortest_path_length(edges, head, tail)
            assert nx.is_path(edges, path)
        else:
            assert path == []
        edges.add_edge(head, tail)


def targets_of(graph: KnowledgeGraph, count: int, size: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [graph.train[rng.choice(len(graph.train), size, replace=False)][:, ::2] for _ in range(count)]


@pytest.mark.parametrize("name", GRAPHS)
def test_search_after_search_is_exact(name: str) -> None:
    graph = GRAPHS[name]
    search = HopSearch(graph.adjacency)
    for ends in targets_of(graph, 200, 1) + targets_of(graph, 200, 12):
        hops = search.hops(ends[0, 0], ends)
        assert hops.dtype == np.int32
        np.testing.assert_array_equal(hops, EXPECTED[name][ends[0, 0]][ends])
        source = graph.num_entities - 1 - ends[0, 0]  # mostly none of the targets
        np.testing.assert_array_equal(search.hops(source, ends[:, 1]), EXPECTED[name][source][ends[:, 1]])


def test_marks_start_over_before_they_overflow() -> None:
    graph = GRAPHS["deep"]
    full = np.iinfo(np.int32).max - graph.num_entities - 1
    for ends in targets_of(graph, 50, 12):
        search = HopSearch(graph.adjacency)
        expected = search.hops(ends[0, 0], ends)
        search.base = full  # starts over with the very numbers it had in the first search
        np.testing.assert_array_equal(search.hops(ends[0, 0], ends), expected)
        assert search.base < full
    search.base = full - 50
    for ends in targets_of(graph, 50, 12):
        np.testing.assert_array_equal(search.hops(ends[0, 0], ends), EXPECTED["deep"][ends[0, 0]][ends])
    assert search.base < full


def test_a_graph_without_triples() -> None:
    adjacency = Adjacency.build(np.empty((0, 3), np.int32), 3)
    lone = np.array([1], np.int32)
    assert hops_from(adjacency, lone).tolist() == [[-1, 0, -1]]
    assert HopSearch(adjacency).hops(1, np.array([0, 1])).tolist() == [-1, 0]
    assert shortest_path(adjacency, lone, np.array([2], np.int32)).tolist() == []
