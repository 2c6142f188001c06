"""MCMC subgraphs: the chain's law against the exact one, paths, nearest neighbours, and whole draws."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from chisquare import assert_follows

from graphs import graph_of, random_graph
from satkgc.errors import SatkgcError
from satkgc.sampling import McmcConfig, SamplingConfig, make_sampler
from satkgc.sampling.mcmc import LEAST_COSINE, McmcSampler, chain, depth_first, nearest, triples_of


def unit(rng, *shape):
    vectors = rng.normal(size=shape).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


class Model:
    """Vectors at random, and a count of how often they were asked for."""

    def __init__(self, kg, seed=0, dim=8):
        rng = np.random.default_rng(seed)
        self.kg, self.reads = kg, 0
        self.entities, self.relations = unit(rng, kg.num_entities, dim), unit(rng, kg.num_relations, dim)

    def query_vectors(self, triples):
        return self.entities[self.kg.train[triples, 0]] + self.relations[self.kg.train[triples, 1]]

    def entity_vectors(self):
        self.reads += 1
        return self.entities


def sampler_of(kg, model, **settings):
    config = SamplingConfig(sampler="mcmc", batch_size=2, mcmc=McmcConfig(**settings))
    return McmcSampler(kg, config, 1, vectors=model)


@pytest.mark.parametrize("k", [1, 3])
def test_the_chain_visits_entities_by_a_power_of_their_cosine(k):
    rng = np.random.default_rng(k)
    entities = unit(rng, 10, 3)  # in three dimensions many cosines are negative
    query = unit(rng, 1, 3)
    cosine = (query @ entities.T)[0]
    assert (cosine < 0).any()
    target = np.maximum(cosine, LEAST_COSINE) ** 0.75
    near = nearest(entities, k)
    states = chain(query, entities, near, 400_000, 0.75, 100, np.uint64(1), 0)
    seen = np.bincount(states, minlength=10) / len(states)
    assert np.abs(seen - target / target.sum()).sum() < 0.02


def test_the_chain_goes_on_from_triple_to_triple():
    rng = np.random.default_rng(3)
    entities = unit(rng, 50, 4)
    queries = np.repeat(unit(rng, 1, 4), 6, axis=0)
    near = nearest(entities, 3)
    parts = chain(queries, entities, near, 5, 0.5, 20, np.uint64(1), 0)
    whole = chain(queries[:1], entities, near, 30, 0.5, 20, np.uint64(1), 0)
    np.testing.assert_array_equal(parts, whole)
    later = chain(queries[:1], entities, near, 40, 0.5, 10, np.uint64(1), 0)
    np.testing.assert_array_equal(later[10:], whole)  # the burn-in is thrown away, nothing else


def test_the_nearest_are_those_of_sorting():
    vectors = unit(np.random.default_rng(1), 700, 6)
    found = nearest(vectors, 9, block=64)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -2)
    np.testing.assert_array_equal(np.sort(found, 1), np.sort(np.argsort(-cosines, 1)[:, :9], 1))
    assert nearest(vectors[:1], 5).shape == (1, 0)
    assert nearest(vectors[:3], 5).shape == (3, 2)


def test_a_path_is_a_depth_first_search():
    kg = random_graph(4, entities=80, triples=110)
    graph = kg.adjacency
    arrays = (graph.neighbour_ptr, graph.neighbours, graph.edge_ptr, graph.edges)
    plain = nx.Graph([(int(h), int(t)) for h, _, t in kg.train])
    for centre in range(0, len(kg.train), 5):
        start = int(kg.train[centre, 0])
        path = depth_first(start, centre, kg.train, arrays, 1000, np.uint64(1), centre)
        assert path[0] == centre
        loop = int(kg.train[centre, 2] == start)
        assert len(path) == len(nx.node_connected_component(plain, start)) - 1 + loop  # all of it: a spanning tree
        stack, visited = [start], {start}
        for i, triple in enumerate(path):
            h, _, t = (int(x) for x in kg.train[triple])
            while i > loop and not {h, t} & {stack[-1]}:
                assert set(plain[stack[-1]]) <= visited  # turned back only where nothing was left
                stack.pop()
            new = t if h == stack[-1] else h
            assert i == 0 or new not in visited
            stack.append(new)
            visited.add(new)
        np.testing.assert_array_equal(depth_first(start, centre, kg.train, arrays, 3, np.uint64(1), centre), path[:3])


def test_a_path_chooses_neighbours_uniformly_even_where_most_are_used():
    # A star of 40: after the first 37 leaves the last ones must be found by counting.
    kg = graph_of([[0, 0, i] for i in range(1, 41)], 41)
    graph = kg.adjacency
    arrays = (graph.neighbour_ptr, graph.neighbours, graph.edge_ptr, graph.edges)
    last = Counter(int(depth_first(0, 0, kg.train, arrays, 40, np.uint64(2), step)[-1]) for step in range(4000))
    assert_follows(last, dict.fromkeys(range(1, 40), 1 / 39), 4000)


def test_negatives_give_triples_they_head():
    kg = graph_of([[0, 0, 1], [0, 0, 2], [0, 0, 3], [4, 0, 3]], 6)
    made = sampler_of(kg, Model(kg))
    picks = [triples_of(np.array([0, 4, 3, 5]), *made.by_head, *made.by_tail, np.uint64(1), s) for s in range(3000)]
    assert_follows(Counter(int(p[0]) for p in picks), {0: 1 / 3, 1: 1 / 3, 2: 1 / 3}, 3000)
    assert {int(p[1]) for p in picks} == {3}
    assert_follows(Counter(int(p[2]) for p in picks), {2: 1 / 2, 3: 1 / 2}, 3000)  # entity 3 heads nothing
    assert {int(p[3]) for p in picks} == {-1}  # entity 5 has no triple


def test_a_subgraph_is_the_path_and_what_the_negatives_head():
    kg = random_graph(4)
    found = sampler_of(kg, Model(kg), path=10, k=4, burn_in=5).subgraph(7, 0)
    assert 7 in found
    assert 10 <= len(found) <= 50
    assert len(set(found.tolist())) == len(found)
    assert sampler_of(kg, Model(kg), path=10, k=4, burn_in=5).subgraph(7, 0).tolist() == found.tolist()


def test_negatives_follow_the_model():
    kg = random_graph(4, entities=60, triples=240)
    model = Model(kg)
    liked = np.unique(kg.train[:, 0])[:5]
    model.entities[:] = [0, 1, 0, 0, 0, 0, 0, 0]
    model.entities[liked] = [1, 0, 0, 0, 0, 0, 0, 0]
    model.query_vectors = lambda triples: np.tile(np.eye(1, 8, dtype=np.float32), (len(triples), 1))
    found = sampler_of(kg, model, path=1, k=50).subgraph(0, 0)
    assert set(kg.train[found[found != 0], 0]) <= set(liked)


def test_batches_and_refreshing():
    kg = random_graph(4)
    model = Model(kg)
    config = SamplingConfig(sampler="mcmc", batch_size=20, mcmc=McmcConfig(path=5, k=3))
    sampler = make_sampler(kg, config, 1, vectors=model)
    batches = [sampler.draw(step) for step in range(20)]
    assert all(len(set(batch.triples.tolist())) == 10 for batch in batches)
    assert model.reads == 1
    sampler.refresh()
    assert model.reads == 2
    assert sampler.period == config.mcmc.refresh


def test_mcmc_without_vectors_or_with_too_few_is_refused():
    kg = random_graph(4)
    config = SamplingConfig(sampler="mcmc", batch_size=20)
    with pytest.raises(SatkgcError, match="vectors of a model"):
        make_sampler(kg, config, 1)
    model = Model(kg)
    model.entities = model.entities[:-1]
    with pytest.raises(SatkgcError, match="59 entity vectors for 60"):
        make_sampler(kg, config, 1, vectors=model).draw(0)
