"""Distances against scipy's shortest paths."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import shortest_path

from graphs import graph_of, random_graph
from satkgc.sampling.distance import Distances


def exact(triples, num_entities):
    """All distances by scipy, -1 where there is no path."""
    size = (num_entities, num_entities)
    graph = coo_matrix((np.ones(len(triples)), (triples[:, 0], triples[:, 2])), size)
    hops = shortest_path(graph.tocsr(), directed=False, unweighted=True)
    return np.where(np.isinf(hops), -1, hops).astype(int)


def batches(kg, count, size, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.choice(len(kg.train), size, replace=False).astype(np.int32) for _ in range(count)]


GRAPHS = {
    "dense": random_graph(1, entities=60, triples=300),
    "sparse, many components": random_graph(2, entities=300, triples=200),
    "deep": random_graph(3, entities=700, triples=800),
    "chain": graph_of([[i, 0, i + 1] for i in range(100)], 101),
    "star with tails": graph_of([[0, 0, i] for i in range(1, 60)] + [[i, 0, i + 60] for i in range(1, 60)], 121),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_distances_in_the_graph_are_exact(name):
    kg = GRAPHS[name]
    hops = exact(kg.train, kg.num_entities)
    distances = Distances(kg, "graph")
    for i, triples in enumerate(batches(kg, 200, 1) + batches(kg, 200, 12)):
        batch = distances.batch(i, triples, triples[:0])
        assert batch.step == i
        assert batch.centre == triples[0]
        assert batch.distances.dtype == np.int32
        np.testing.assert_array_equal(batch.distances, hops[kg.train[triples[0], 0]][kg.train[triples][:, ::2]])


@pytest.mark.parametrize("name", GRAPHS)
def test_distances_in_the_subgraph_are_exact_there(name):
    kg = GRAPHS[name]
    distances = Distances(kg, "subgraph")
    for i, (triples, walked) in enumerate(zip(batches(kg, 60, 8, 1), batches(kg, 60, 40, 2), strict=True)):
        hops = exact(kg.train[np.concatenate([triples, walked])], kg.num_entities)
        batch = distances.batch(i, triples, walked)
        np.testing.assert_array_equal(batch.distances, hops[kg.train[triples[0], 0]][kg.train[triples][:, ::2]])


@pytest.mark.parametrize("name", GRAPHS)
def test_all_pairs_are_exact(name):
    kg = GRAPHS[name]
    hops = exact(kg.train, kg.num_entities)
    distances = Distances(kg, "pairs")
    for triples in batches(kg, 3, 50):  # more entities than one word has bits
        batch = distances.batch(0, triples, triples)
        h, t = kg.train[triples, 0], kg.train[triples, 2]
        np.testing.assert_array_equal(batch.pairs, hops[np.ix_(np.r_[h, t], np.r_[t, h])])
        np.testing.assert_array_equal(batch.distances, hops[h[0]][np.stack([h, t], 1)])


@pytest.mark.parametrize("scope", ["graph", "subgraph"])
def test_marks_start_over_before_they_overflow(scope):
    kg = GRAPHS["deep"]
    full = np.iinfo(np.int32).max - kg.num_entities - 1
    for i, triples in enumerate(batches(kg, 50, 12)):
        distances = Distances(kg, scope)
        expected = distances.batch(i, triples, triples).distances
        distances.base = full  # starts over with the very numbers it had in the first search
        np.testing.assert_array_equal(distances.batch(i, triples, triples).distances, expected)
        assert distances.base < full
    distances.base = full - 50
    for i, triples in enumerate(batches(kg, 50, 12)):
        np.testing.assert_array_equal(
            distances.batch(i, triples, triples).distances, Distances(kg, scope).batch(i, triples, triples).distances
        )
    assert distances.base < full


def test_no_distances_are_all_unknown():
    batch = Distances(GRAPHS["dense"], "none").batch(0, np.arange(4, dtype=np.int32), np.arange(9, dtype=np.int32))
    assert batch.distances.tolist() == [[-1, -1]] * 4
    assert batch.pairs is None
