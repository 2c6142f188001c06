"""Walks against exact probabilities, PageRank, and graphs that tempt a walk to run for ever; the table of moves."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from chisquare import assert_follows
from numba import njit

from graphs import graph_of, random_graph
from satkgc.sampling import SamplingConfig
from satkgc.sampling.walk import (
    ALIAS,
    DEGREE,
    FIRST,
    PARALLEL,
    THRESHOLD,
    TRIPLE,
    WalkSampler,
    advance,
    component,
    move_table,
    start_entity,
    walk,
)

POWERS = {"brwr": -1, "rwr": 0, "brwr_p": 1}  # of the degree: inverse, none, proportional
GRAPHS = {
    "parallel edges": [[0, 0, 1], [0, 1, 1], [1, 2, 0], [1, 0, 2], [2, 0, 3]],
    "self-loops": [[0, 0, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [1, 0, 2]],
    "star": [[0, 0, 1], [0, 0, 2], [3, 0, 0], [0, 0, 4], [4, 0, 5]],
    "two components": [[0, 0, 1], [1, 0, 2], [2, 0, 0], [3, 0, 4], [4, 0, 5]],
}


def arrays(kg):
    graph = kg.adjacency
    return graph.neighbour_ptr, graph.neighbours, graph.edge_ptr, graph.edges


def exact_sets(triples, start, bias, restart, steps):
    """The distribution of the set of triples found, from the definition: every path, with its probability."""
    neighbours: dict[int, set[int]] = {}
    for h, _, t in triples:
        neighbours.setdefault(h, set()).add(t)
        neighbours.setdefault(t, set()).add(h)
    now = {(start, frozenset()): Fraction(1)}
    for _ in range(steps):
        later: Counter = Counter()
        for (u, found), p in now.items():
            later[start, found] += p * restart
            weights = {v: Fraction(len(neighbours[v])) ** POWERS[bias] for v in neighbours[u]}
            for v, weight in weights.items():
                joining = [i for i, (h, _, t) in enumerate(triples) if {h, t} == {u, v}]
                for i in joining:
                    later[v, found | {i}] += p * (1 - restart) * weight / sum(weights.values()) / len(joining)
        now = later
    sets: Counter = Counter()
    for (_, found), p in now.items():
        sets[found] += p
    return {found: float(p) for found, p in sets.items()}


@pytest.mark.parametrize("bias", POWERS)
@pytest.mark.parametrize("name", GRAPHS)
def test_walks_find_sets_of_triples_as_often_as_they_should(name, bias):
    kg = graph_of(GRAPHS[name], 6, 3)
    exact = exact_sets(GRAPHS[name], 1, bias, Fraction(1, 4), 4)
    config = SamplingConfig(batch_size=2, sampler=bias, restart=0.25, walk_steps=4)
    walks = WalkSampler(kg, config, seed=11)
    runs = 4000
    seen = Counter(
        frozenset(walk(1, arrays(kg), walks.table, 5, 4, False, walks.restart, walks.seed, step).tolist())
        for step in range(runs)
    )
    assert_follows(seen, exact, runs)


def test_the_start_is_the_end_with_few_neighbours():
    kg = graph_of([[0, 0, 1], [1, 0, 2], [1, 1, 2], [3, 0, 1], [3, 0, 0]], 4, 2)
    degrees = {1: 3, 2: 1}
    for centre, (h, t) in {1: (1, 2), 2: (1, 2)}.items():
        chance = {v: (1 / degrees[v]) / (1 / degrees[h] + 1 / degrees[t]) for v in (h, t)}
        starts = [int(start_entity(kg.train, kg.adjacency.neighbour_ptr, centre, np.uint64(5), s)) for s in range(9000)]
        assert_follows(Counter(starts), chance, 9000)


def test_a_self_loop_starts_at_its_only_entity():
    kg = graph_of([[0, 0, 0], [0, 0, 1]], 2)
    assert {int(start_entity(kg.train, kg.adjacency.neighbour_ptr, 0, np.uint64(5), s)) for s in range(50)} == {0}


@njit
def _visits(start, steps, ptr, table, edge_ptr, edges, restart, seed):
    """How often the walk is at each first slot, and how often it restarts."""
    home = (ptr[start], ptr[start + 1] - ptr[start])
    here = home
    visits = np.zeros(len(table), np.int64)
    restarts = 0
    for index in range(steps):
        here, triple = advance(home, here, table, edge_ptr, edges, restart, seed, 0, index)
        visits[here[0]] += 1
        restarts += triple < 0
    return visits, restarts


def test_uniform_walks_visit_as_personalised_pagerank_says():
    kg = random_graph(3, entities=40, triples=90)
    graph = kg.adjacency
    start = int(kg.train[0, 0])
    walks = WalkSampler(kg, SamplingConfig(batch_size=2, sampler="rwr", restart=1 / 25), seed=1)
    steps = 1_000_000
    visits, restarts = _visits(
        start, steps, graph.neighbour_ptr, walks.table, *arrays(kg)[2:], walks.restart, walks.seed
    )
    plain = nx.Graph([(int(h), int(t)) for h, _, t in kg.train])
    rank = nx.pagerank(plain, alpha=1 - 1 / 25, personalization={start: 1}, tol=1e-12, max_iter=1000)
    expected = np.array([rank.get(v, 0.0) for v in range(40)])
    seen = np.array([visits[graph.neighbour_ptr[v]] if graph.degree[v] else 0 for v in range(40)]) / steps
    assert np.abs(seen - expected).sum() < 0.01
    assert abs(restarts / steps - 1 / 25) < 4 * np.sqrt(1 / 25 / steps)  # four standard deviations


def test_a_component_that_is_too_small_is_found_whole():
    ring = [[i, 0, (i + 1) % 30] for i in range(30)]
    fans = [[i % 30, 1, 30 + i] for i in range(300)]  # rarely all walked: 300 leaves
    apart = [[400, 0, 401], [401, 0, 402]]
    kg = graph_of(ring + fans + apart, 403, 2)
    for bias in POWERS:
        walks = WalkSampler(kg, SamplingConfig(batch_size=2, sampler=bias), seed=1)
        for step in range(20):
            assert sorted(walks.subgraph(5, step)) == list(range(330))
            assert sorted(walks.subgraph(331, step)) == [330, 331]


def test_a_component_of_exactly_the_limit_is_found_and_a_larger_one_is_not_counted():
    kg = graph_of([[0, 0, i] for i in range(1, 11)], 11)
    assert sorted(component(3, arrays(kg), 10)) == list(range(10))
    assert len(component(3, arrays(kg), 9)) == 0
    assert len(component(0, arrays(kg), 5)) == 0


def test_a_component_counts_parallel_triples_and_self_loops_once():
    kg = random_graph(8, entities=30, triples=60)
    plain = nx.Graph([(int(h), int(t)) for h, _, t in kg.train])
    for members in nx.connected_components(plain):
        inside = [i for i, (h, _, _) in enumerate(kg.train) if int(h) in members]
        assert sorted(component(min(members), arrays(kg), 1000)) == inside


def test_a_walk_ends_at_the_limit_and_repeats_nothing():
    kg = random_graph(2, entities=300, triples=2000)
    walks = WalkSampler(kg, SamplingConfig(batch_size=2, subgraph_triples=500), seed=3)
    found = walks.subgraph(7, 0)
    assert len(found) == len(set(found.tolist())) == 500
    np.testing.assert_array_equal(found, walks.subgraph(7, 0))
    assert set(found.tolist()) != set(walks.subgraph(7, 1).tolist())


def test_a_long_chain_ends():
    chain = graph_of([[i, 0, i + 1] for i in range(30_000)], 30_001)
    found = WalkSampler(chain, SamplingConfig(batch_size=2), seed=3).subgraph(15_000, 0)
    assert 20 < len(found) < 1000
    assert np.ptp(found) + 1 == len(found)  # a walk on a chain covers an interval
    shorter = WalkSampler(chain, SamplingConfig(batch_size=2, walk_steps=100), seed=3).subgraph(15_000, 0)
    assert set(shorter) < set(found)


def test_a_limit_to_the_steps_is_kept_in_a_small_component_too():
    kg = graph_of([[0, 0, i] for i in range(1, 201)], 201)
    for steps in (1, 50, 300, 1000):
        found = WalkSampler(kg, SamplingConfig(batch_size=2, walk_steps=steps), seed=3).subgraph(5, 0)
        assert 0 < len(found) < min(steps + 1, 200)
    assert len(WalkSampler(kg, SamplingConfig(batch_size=2), seed=3).subgraph(5, 0)) == 200


def test_one_triple_is_a_graph():
    assert WalkSampler(graph_of([[0, 0, 1]], 2), SamplingConfig(batch_size=2), 1).subgraph(0, 0).tolist() == [0]
    assert WalkSampler(graph_of([[1, 0, 1]], 3), SamplingConfig(batch_size=2), 1).subgraph(0, 0).tolist() == [0]


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
    table = move_table(graph, power)
    for entity in np.flatnonzero(graph.degree):
        weights = graph.degree[graph.neighbours_of(entity)].astype(float) ** power
        drawn = probabilities(table, graph.neighbour_ptr[entity], graph.neighbour_ptr[entity + 1])
        np.testing.assert_allclose(drawn, weights / weights.sum(), atol=1e-8)


def test_a_hub_with_thousands_of_neighbours():
    spokes = [[0, 0, i] for i in range(1, 3001)]
    ring = [[i, 0, i + 1] for i in range(1, 1500)]  # half of the spokes have degree 3
    graph = graph_of(spokes + ring, 3001).adjacency
    weights = 1 / graph.degree[graph.neighbours_of(0)]
    np.testing.assert_allclose(probabilities(move_table(graph, -1), 0, 3000), weights / weights.sum(), atol=1e-8)


def test_moves_lead_to_the_neighbour_and_name_its_triple():
    kg = random_graph(4)
    graph = kg.adjacency
    table = move_table(graph, 1)
    np.testing.assert_array_equal(table[:, FIRST], graph.neighbour_ptr[graph.neighbours])
    np.testing.assert_array_equal(table[:, DEGREE], graph.degree[graph.neighbours])
    several = np.diff(graph.edge_ptr) > 1
    assert several.any()
    np.testing.assert_array_equal(table[:, TRIPLE] == PARALLEL, several)
    np.testing.assert_array_equal(table[~several, TRIPLE], graph.edges[graph.edge_ptr[:-1][~several]])


def test_entities_without_neighbours_have_no_rows():
    assert len(move_table(graph_of([[0, 0, 0]], 5).adjacency, -1)) == 1
    assert len(move_table(graph_of([], 5).adjacency, -1)) == 0
