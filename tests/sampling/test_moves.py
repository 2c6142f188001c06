"""The walker's records: alias tables give exactly the weights, and the rest points where it should."""

from __future__ import annotations

import numpy as np
import pytest

from graphs import graph_of, random_graph
from satkgc.sampling.moves import ALIAS, DEGREE, FIRST, PARALLEL, THRESHOLD, TRIPLE, moves


def probabilities(table, first, last):
    """What drawing a slot of [first, last) and then a coin comes to."""
    chance = np.zeros(last - first)
    for slot in range(first, last):
        stays = table[slot, THRESHOLD] / 2**32
        chance[slot - first] += stays
        chance[table[slot, ALIAS] - first] += 1 - stays
    return chance / (last - first)


@pytest.mark.parametrize("power", [-1, 0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_neighbours_are_drawn_by_a_power_of_their_degree(seed, power):
    graph = random_graph(seed).adjacency
    table = moves(graph, power)
    for entity in np.flatnonzero(graph.degree):
        weights = graph.degree[graph.neighbours_of(entity)].astype(float) ** power
        drawn = probabilities(table, graph.neighbour_ptr[entity], graph.neighbour_ptr[entity + 1])
        np.testing.assert_allclose(drawn, weights / weights.sum(), atol=1e-8)


def test_a_hub_with_thousands_of_neighbours():
    spokes = [[0, 0, i] for i in range(1, 3001)]
    ring = [[i, 0, i + 1] for i in range(1, 1500)]  # half of the spokes have degree 3
    graph = graph_of(spokes + ring, 3001).adjacency
    weights = 1 / graph.degree[graph.neighbours_of(0)]
    np.testing.assert_allclose(probabilities(moves(graph, -1), 0, 3000), weights / weights.sum(), atol=1e-8)


def test_records_lead_to_the_neighbour_and_name_its_triple():
    kg = random_graph(4)
    graph = kg.adjacency
    table = moves(graph, 1)
    np.testing.assert_array_equal(table[:, FIRST], graph.neighbour_ptr[graph.neighbours])
    np.testing.assert_array_equal(table[:, DEGREE], graph.degree[graph.neighbours])
    several = np.diff(graph.edge_ptr) > 1
    assert several.any()
    np.testing.assert_array_equal(table[:, TRIPLE] == PARALLEL, several)
    np.testing.assert_array_equal(table[~several, TRIPLE], graph.edges[graph.edge_ptr[:-1][~several]])


def test_entities_without_neighbours_have_no_records():
    assert len(moves(graph_of([[0, 0, 0]], 5).adjacency, -1)) == 1
    assert len(moves(graph_of([], 5).adjacency, -1)) == 0
