"""Batches: ids of both directions, hops against scipy's shortest paths, negatives; random batches; the registry."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from chisquare import assert_follows
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import shortest_path

from graphs import graph_of, random_graph
from satkgc.errors import SatkgcError
from satkgc.sampling import SAMPLERS, Needs, Sampler, SamplingConfig, make_sampler

GRAPHS = {
    "dense": random_graph(1, entities=60, triples=300),
    "sparse, many components": random_graph(2, entities=300, triples=200),
    "deep": random_graph(3, entities=700, triples=800),
    "chain": graph_of([[i, 0, i + 1] for i in range(100)], 101),
    "star with tails": graph_of([[0, 0, i] for i in range(1, 60)] + [[i, 0, i + 60] for i in range(1, 60)], 121),
}


def all_hops(kg):
    """Between all entities by scipy, -1 where there is no path."""
    size = (kg.num_entities, kg.num_entities)
    graph = coo_matrix((np.ones(len(kg.train)), (kg.train[:, 0], kg.train[:, 2])), size)
    hops = shortest_path(graph.tocsr(), directed=False, unweighted=True)
    return np.where(np.isinf(hops), -1, hops).astype(int)


def test_a_batch_has_the_ids_of_its_triples_and_of_their_inverses():
    kg = random_graph(5)
    for sampler in ("brwr", "random"):
        batch = make_sampler(kg, SamplingConfig(sampler=sampler, batch_size=20), 1).draw(4)
        assert (batch.step, len(batch)) == (4, 20)
        forward = np.stack([batch.heads, batch.relations, batch.tails], 1)[:10]
        backward = np.stack([batch.tails, batch.relations - kg.num_relations, batch.heads], 1)[10:]
        np.testing.assert_array_equal(forward, kg.train[batch.triples])
        np.testing.assert_array_equal(backward, kg.train[batch.triples])
        arrays = (batch.triples, batch.heads, batch.relations, batch.tails)
        assert all(array.dtype == np.int32 and array.flags.c_contiguous for array in arrays)
        assert batch.hops is None
        assert batch.negatives is None


@pytest.mark.parametrize("sampler", ["brwr", "random"])
@pytest.mark.parametrize("name", GRAPHS)
def test_hops_from_the_centres_head_are_exact(name, sampler):
    kg = GRAPHS[name]
    hops = all_hops(kg)
    for size in (2, 24):
        made = make_sampler(kg, SamplingConfig(sampler=sampler, batch_size=size), 1, Needs(hops=True))
        for step in range(200):
            batch = made.draw(step)
            assert batch.hops.dtype == np.int32
            np.testing.assert_array_equal(batch.hops, hops[batch.heads[0], batch.tails])


def test_negatives_are_uniform_and_depend_on_seed_and_step_alone():
    kg = random_graph(5, entities=7, triples=30)
    made = {
        name: make_sampler(kg, SamplingConfig(sampler=name, batch_size=4), 1, Needs(negatives=25))
        for name in ("brwr", "random")
    }
    drawn = [made["brwr"].draw(step).negatives for step in range(200)]
    assert drawn[0].shape == (4, 25)
    assert drawn[0].dtype == np.int32
    counts = Counter(np.concatenate(drawn).ravel().tolist())
    assert_follows(counts, dict.fromkeys(range(7), 1 / 7), 200 * 100)
    pairs = Counter((int(a), int(b)) for negatives in drawn for a, b in negatives[:, :2])
    assert_follows(pairs, {(a, b): 1 / 49 for a in range(7) for b in range(7)}, 800)
    np.testing.assert_array_equal(made["random"].draw(57).negatives, drawn[57])
    assert not np.array_equal(drawn[0], drawn[1])
    other = make_sampler(kg, SamplingConfig(batch_size=4), 2, Needs(negatives=25))
    assert not np.array_equal(other.draw(0).negatives, drawn[0])


@pytest.mark.parametrize("sampler", ["brwr", "rwr", "brwr_p", "random"])
def test_what_a_model_needs_changes_no_triple(sampler):
    kg = random_graph(5)
    config = SamplingConfig(sampler=sampler, batch_size=20, subgraph_triples=40)
    plain, full = make_sampler(kg, config, 1), make_sampler(kg, config, 1, Needs(hops=True, negatives=2))
    for step in range(30):
        np.testing.assert_array_equal(plain.draw(step).triples, full.draw(step).triples)


class EveryOther(Sampler):
    """What a newcomer writes."""

    def triples(self, step):
        return 2 * np.arange(self.config.triples) + step


def test_a_sampler_is_a_class_and_a_line_in_the_registry(monkeypatch):
    with pytest.raises(SatkgcError, match=r"sampling\.sampler is 'every-other'; choose one of brwr, rwr, brwr_p"):
        SamplingConfig(sampler="every-other")
    monkeypatch.setitem(SAMPLERS, "every-other", EveryOther)
    config = SamplingConfig(sampler="every-other", batch_size=6)
    batch = make_sampler(random_graph(1), config, 0, Needs(hops=True)).draw(3)
    assert batch.triples.tolist() == [3, 5, 7]
    assert batch.hops[3] == 0


@pytest.mark.parametrize(
    ("triples", "message"),
    [
        ([0, 1], "the sampler Fixed gave 2 triples for step 5; make it give 4, half of sampling.batch_size"),
        (
            [0, 1, 2, 10**6],
            "the sampler Fixed gave no rows of kg.train for step 5; make it give whole numbers",
        ),
        ([-1, 0, 1, 2], "the sampler Fixed gave no rows of kg.train"),
        ([0.7, 1, 2, 3], "the sampler Fixed gave no rows of kg.train"),
    ],
)
def test_triples_are_looked_at_before_compiled_code_trusts_them(triples, message):
    class Fixed(Sampler):
        __qualname__ = "Fixed"

        def triples(self, step):
            return triples

    with pytest.raises(SatkgcError, match=message):
        Fixed(random_graph(1), SamplingConfig(batch_size=8), 0).draw(5)


class CountingSampler(Sampler):
    """Remembers how often it was asked."""

    calls = 0

    def triples(self, step):
        self.calls += 1
        return np.arange(self.config.triples) + self.calls

    def state(self, pending=()):
        return {**super().state(pending), "calls": np.array([self.calls])}

    def restore(self, state):
        super().restore(state)
        self.calls = int(state["calls"][0])


def test_a_sampler_with_a_memory_goes_on_where_it_was():
    first, second = (
        CountingSampler(random_graph(1), SamplingConfig(batch_size=8), 0, Needs(hops=True)) for _ in range(2)
    )
    drawn = [first.draw(step) for step in range(6)]
    second.restore(first.state(pending=drawn[4:]))
    assert [second.draw(step).triples[0] for step in range(4, 9)] == [5, 6, 7, 8, 9]


def test_a_pass_of_random_batches_holds_every_triple_once_but_the_remainder():
    kg = random_graph(1)
    sampler = make_sampler(kg, SamplingConfig(sampler="random", batch_size=14), seed=1)
    steps = len(kg.train) // 7
    assert len(kg.train) % 7 != 0
    passes = [np.concatenate([sampler.draw(p * steps + i).triples for i in range(steps)]) for p in range(3)]
    for drawn in passes:
        assert len(set(drawn.tolist())) == len(drawn) == 7 * steps
    assert len({tuple(drawn.tolist()) for drawn in passes}) == 3
    left_out = [set(range(len(kg.train))) - set(drawn.tolist()) for drawn in passes]
    assert left_out[0] != left_out[1]


def test_any_step_of_random_batches_can_be_drawn_at_once():
    kg = random_graph(1)
    config, needs = SamplingConfig(sampler="random", batch_size=14), Needs(hops=True)
    in_order = make_sampler(kg, config, 1, needs)
    batches = [in_order.draw(step) for step in range(100)]
    for step in (99, 0, 57):
        alone = make_sampler(kg, config, 1, needs).draw(step)
        np.testing.assert_array_equal(alone.triples, batches[step].triples)
        np.testing.assert_array_equal(alone.hops, batches[step].hops)
    assert not np.array_equal(make_sampler(kg, config, seed=2).draw(0).triples, batches[0].triples)


def test_the_first_triple_of_a_random_batch_stands_in_as_the_centre():
    kg = random_graph(1)
    batch = make_sampler(kg, SamplingConfig(sampler="random", batch_size=14), 1, Needs(hops=True)).draw(3)
    assert batch.heads[0] == kg.train[batch.triples[0], 0]
    assert batch.hops[7] == 0  # the first inverse leads back to it
