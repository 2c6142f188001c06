"""Whole samplers: what a run of batches keeps to, saving and restoring, and graphs at the edge."""

from __future__ import annotations

import numpy as np
import pytest

from graphs import graph_of, random_graph
from satkgc.errors import SatkgcError
from satkgc.sampling import SamplingConfig, make_sampler

WALKS = ["brwr", "rwr", "brwr_p"]


def assert_same(first, second):
    """Two batches are one."""
    assert (first.step, first.centre) == (second.step, second.centre)
    np.testing.assert_array_equal(first.triples, second.triples)
    np.testing.assert_array_equal(first.distances, second.distances)
    assert (first.pairs is None) == (second.pairs is None)
    if first.pairs is not None:
        np.testing.assert_array_equal(first.pairs, second.pairs)


@pytest.mark.parametrize("settings", [{}, {"entity_disjoint": True}, {"random_share": 0.5}, {"pick": "least-visited"}])
@pytest.mark.parametrize("sampler", WALKS)
def test_thousands_of_batches_keep_to_the_schedule(sampler, settings):
    kg = random_graph(5, entities=120, triples=300)
    config = SamplingConfig(sampler=sampler, batch_size=20, subgraph_triples=40, distances="none", **settings)
    made = make_sampler(kg, config, seed=1)
    visits = np.zeros(len(kg.train), int)
    for step in range(1000):
        batch = made.draw(step)
        assert visits[batch.centre] == visits.min()
        assert batch.triples[0] == batch.centre
        assert len(set(batch.triples.tolist())) == 10
        visits[batch.triples] += 1
    np.testing.assert_array_equal(made.state()["visits"], visits)


@pytest.mark.parametrize("sampler", WALKS)
def test_picking_the_least_visited_evens_the_visits_out(sampler):
    kg = random_graph(5, entities=120, triples=300)
    spread = {}
    for pick in ("random", "least-visited"):
        config = SamplingConfig(sampler=sampler, batch_size=20, subgraph_triples=60, distances="none", pick=pick)
        made = make_sampler(kg, config, seed=1)
        for step in range(300):
            made.draw(step)
        spread[pick] = made.state()["visits"].std()
    assert spread["least-visited"] < spread["random"] / 3


def test_without_a_random_share_a_batch_is_its_centres_component():
    kg = graph_of([[i, 0, (i + 1) % 50] for i in range(50)] + [[50 + i, 0, 50 + (i + 1) % 50] for i in range(50)], 100)
    made = make_sampler(kg, SamplingConfig(batch_size=20), seed=1)
    for step in range(100):
        batch = made.draw(step)
        assert len({triple // 50 for triple in batch.triples.tolist()}) == 1
        assert np.all(batch.distances >= 0)


def test_the_same_seed_gives_the_same_batches_and_another_seed_others():
    kg = random_graph(5)
    config = SamplingConfig(batch_size=20, subgraph_triples=40)
    first, second, other = (make_sampler(kg, config, seed) for seed in (1, 1, 2))
    differs = 0
    for step in range(50):
        batch = first.draw(step)
        assert_same(batch, second.draw(step))
        differs += not np.array_equal(batch.triples, other.draw(step).triples)
    assert differs > 45


@pytest.mark.parametrize("settings", [{}, {"entity_disjoint": True}, {"distances": "pairs"}, {"sampler": "random"}])
def test_a_restored_sampler_goes_on_the_same(settings):
    kg = random_graph(5)
    config = SamplingConfig(batch_size=20, subgraph_triples=15, **settings)
    first, second = make_sampler(kg, config, 1), make_sampler(kg, config, 1)
    drawn = [first.draw(step) for step in range(60)]
    state = first.state(pending=drawn[57:])
    assert all(isinstance(array, np.ndarray) for array in state.values())
    expected = drawn[57:] + [first.draw(step) for step in range(60, 120)]
    second.restore(state)
    second.restore(second.state())  # what waits is kept when saved again
    for step, batch in zip(range(57, 120), expected, strict=True):
        assert_same(second.draw(step), batch)


def test_a_state_of_another_graph_is_refused():
    small, large = random_graph(1, triples=50), random_graph(1, triples=90)
    config = SamplingConfig(batch_size=4)
    with pytest.raises(SatkgcError, match="this graph has"):
        make_sampler(large, config, 1).restore(make_sampler(small, config, 1).state())
    with pytest.raises(SatkgcError, match="counted 0 triples"):
        make_sampler(large, config, 1).restore({})


@pytest.mark.parametrize("sampler", [*WALKS, "random"])
def test_a_graph_of_one_triple(sampler):
    for triple in ([[0, 0, 1]], [[1, 0, 1]]):
        kg = graph_of(triple, 3)  # entity 2 has no triple
        made = make_sampler(kg, SamplingConfig(sampler=sampler, batch_size=2, entity_disjoint=True), 1)
        batches = [made.draw(step) for step in range(5)]
        assert [batch.triples.tolist() for batch in batches] == [[0]] * 5
        assert batches[0].distances.tolist() == [[0, int(triple[0][2] != triple[0][0])]]


@pytest.mark.parametrize("sampler", [*WALKS, "random"])
def test_a_batch_larger_than_the_graph_says_what_to_set(sampler):
    kg = random_graph(1, triples=50)
    with pytest.raises(SatkgcError, match=f"sampling.batch_size to {2 * len(kg.train)} or less"):
        make_sampler(kg, SamplingConfig(sampler=sampler, batch_size=1024), 1)
    with pytest.raises(SatkgcError, match="training triples"):
        make_sampler(graph_of([], 3), SamplingConfig(sampler=sampler, batch_size=2), 1)


@pytest.mark.parametrize("sampler", WALKS)
def test_a_batch_as_large_as_the_graph_and_a_subgraph_larger_than_it(sampler):
    kg = random_graph(1, entities=90, triples=80)  # isolated entities, several components
    config = SamplingConfig(sampler=sampler, batch_size=2 * len(kg.train), subgraph_triples=10**6)
    made = make_sampler(kg, config, 1)
    for step in range(5):
        assert sorted(made.draw(step).triples) == list(range(len(kg.train)))


def test_visiting_all_equally_would_be_too_strict_but_nobody_is_forgotten():
    kg = random_graph(7, entities=200, triples=500)
    made = make_sampler(kg, SamplingConfig(batch_size=20, subgraph_triples=50, distances="none"), 1)
    for step in range(len(kg.train)):
        made.draw(step)
    assert made.state()["visits"].min() >= 1  # the centre of each step is among the least visited
