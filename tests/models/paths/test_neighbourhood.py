"""Neighbourhoods against networkx's PageRank, and their triples against a plain filter."""

import networkx as nx
import numpy as np
import pytest

from satkgc.models.paths.neighbourhood import RESTART, neighbourhood, triples_within
from tasks import small_graph


@pytest.fixture(scope="module")
def kg():
    return small_graph()


def test_the_nearest_by_pagerank_are_kept(kg):
    graph = nx.Graph((h, t) for h, _, t in kg.train.tolist())
    entity, size = int(kg.train[0, 0]), 6
    exact = nx.pagerank(graph, alpha=1 - RESTART, personalization={entity: 1}, tol=1e-10)
    exact[entity] = 2.0  # always in
    ours = neighbourhood(kg.adjacency, entity, size)
    assert len(ours) == size
    least = sorted(exact.values())[-size]
    assert all(exact[node] >= 0.8 * least for node in ours.tolist())  # approximate: those left out are about as near
    assert entity in ours


def test_an_entity_without_triples_is_alone(kg):
    lonely = sorted(set(range(kg.num_entities)) - set(kg.train[:, [0, 2]].ravel().tolist()))
    if not lonely:
        pytest.skip("every entity of this graph has triples")
    assert neighbourhood(kg.adjacency, lonely[0], 5).tolist() == [lonely[0]]


@pytest.mark.parametrize("size", [1, 3, 10, 1000])
def test_triples_within_are_those_with_both_ends_inside(kg, size):
    nodes = neighbourhood(kg.adjacency, int(kg.train[3, 0]), size)
    inside = kg.train[np.isin(kg.train[:, [0, 2]], nodes).all(1)]
    ours = triples_within(kg.adjacency, kg.train, nodes)
    back = np.stack([nodes[ours[:, 0]], ours[:, 1], nodes[ours[:, 2]]], 1)
    assert sorted(map(tuple, back.tolist())) == sorted(map(tuple, inside.tolist()))
