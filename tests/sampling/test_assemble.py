"""From subgraph to batch: who gets in, in which order of preference."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from chisquare import assert_follows

from graphs import graph_of, random_graph
from satkgc.sampling.assemble import assemble
from satkgc.sampling.schedule import Schedule


def batch_of(kg, schedule, centre, subgraph, size, disjoint=False, random=0, step=0, least=False):
    """What `assemble` makes of copies of all it is given."""
    return assemble(
        centre,
        np.array(subgraph, np.int32),
        random,
        size,
        disjoint,
        schedule.visits if least else np.zeros(0, np.int32),
        kg.train,
        schedule.order,
        schedule.place,
        schedule.bounds,
        schedule.seed,
        step,
    )


def visited(kg, seed=1, rounds=40):
    """A schedule with uneven counts."""
    schedule = Schedule(len(kg.train), seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        schedule.visit(np.unique(rng.integers(0, len(kg.train), 40) ** 2 // len(kg.train)).astype(np.int32))
    return schedule


def are_disjoint(kg, batch):
    ends = [{int(h), int(t)} for h, _, t in kg.train[batch]]
    return sum(map(len, ends)) == len(set().union(*ends))


@pytest.mark.parametrize("disjoint", [False, True])
def test_a_batch_has_its_size_its_centre_first_and_nothing_twice(disjoint):
    kg = random_graph(1)
    schedule = visited(kg)
    for step in range(50):
        for size in (1, 10, 100, len(kg.train)):
            batch = batch_of(kg, schedule, 5, range(20, 90), size, disjoint, step=step)
            assert len(batch) == len(set(batch.tolist())) == size
            assert batch[0] == 5


def test_the_least_visited_of_the_subgraph_come_first_where_asked_for():
    kg = random_graph(1)
    schedule = visited(kg)
    subgraph = np.arange(20, 90)
    for step in range(20):
        batch = batch_of(kg, schedule, 5, subgraph, 31, step=step, least=True)[1:]
        left = np.setdiff1d(subgraph, batch)
        assert np.isin(batch, subgraph).all()
        assert schedule.visits[batch].max() <= schedule.visits[left].min()
    tied = [
        frozenset(batch_of(kg, Schedule(len(kg.train), seed=2), 5, subgraph, 31, step=s, least=True)) for s in (0, 1)
    ]
    assert tied[0] != tied[1]  # among equals chance decides


def test_every_triple_of_the_subgraph_is_as_likely():
    kg = random_graph(1)
    schedule = Schedule(len(kg.train), seed=2)
    seen = Counter()
    for step in range(3000):
        batch = batch_of(kg, schedule, 5, [3, 4, 5, 6, 7, 8], 3, step=step)
        seen[tuple(sorted(batch[1:].tolist()))] += 1
    others = [3, 4, 6, 7, 8]
    assert_follows(seen, {(a, b): 1 / 10 for a in others for b in others if a < b}, 3000)


def test_a_subgraph_that_is_too_small_is_filled_with_the_least_visited():
    kg = random_graph(2)
    schedule = visited(kg)
    for step, size in enumerate((5, 20, 60, 150)):
        batch = batch_of(kg, schedule, 9, [7, 8, 9], size, step=step)
        assert {7, 8, 9} <= set(batch.tolist())
        outside = np.setdiff1d(np.arange(len(kg.train)), [7, 8, 9])
        least = np.sort(schedule.visits[outside])[: size - 3]
        np.testing.assert_array_equal(np.sort(schedule.visits[batch[3:]]), least)
        assert np.all(np.diff(schedule.visits[batch[3:]]) >= 0)


def test_ties_of_the_fill_are_broken_at_random():
    kg = graph_of([[2 * i, 0, 2 * i + 1] for i in range(6)], 12)
    schedule = Schedule(6, seed=1)
    schedule.visit(np.array([0, 1], np.int32))
    seen = Counter(tuple(batch_of(kg, schedule, 0, [0], 3, step=step)[1:].tolist()) for step in range(3000))
    assert_follows(seen, {(a, b): 1 / 12 for a in range(2, 6) for b in range(2, 6) if a != b}, 3000)


def test_the_fill_leaves_the_schedule_consistent():
    kg = random_graph(2)
    schedule = visited(kg)
    before = schedule.visits.copy()
    batch_of(kg, schedule, 9, [9], 100)
    np.testing.assert_array_equal(schedule.visits, before)
    np.testing.assert_array_equal(schedule.order[schedule.place], np.arange(len(before)))
    assert np.all(np.diff(before[schedule.order]) >= 0)


def test_disjoint_batches_share_no_entity_while_there_is_a_choice():
    kg = random_graph(3, entities=400, triples=600)
    schedule = visited(kg)
    for step in range(30):
        batch = batch_of(kg, schedule, 4, range(0, 300), 40, disjoint=True, step=step)
        assert are_disjoint(kg, batch)
        assert all(triple < 300 for triple in batch)  # the subgraph had enough
        assert not are_disjoint(kg, batch_of(kg, schedule, 4, range(0, 300), 40, disjoint=False, step=step))


def test_the_fill_is_disjoint_too_while_there_is_a_choice():
    kg = graph_of([[2 * i, 0, 2 * i + 1] for i in range(30)] + [[0, 0, i] for i in range(2, 60)], 60)
    batch = batch_of(kg, Schedule(len(kg.train), seed=1), 0, [0, 31, 32], 12, disjoint=True)
    assert are_disjoint(kg, batch)


def test_a_star_has_no_disjoint_triples_and_still_gives_a_batch():
    star = graph_of([[0, 0, i] for i in range(1, 101)], 101)
    schedule = visited(star, rounds=5)
    batch = batch_of(star, schedule, 3, range(100), 50, disjoint=True)
    assert len(set(batch.tolist())) == 50
    rest = np.setdiff1d(np.arange(100), [3])
    np.testing.assert_array_equal(np.sort(schedule.visits[batch[1:]]), np.sort(schedule.visits[rest])[:49])


@pytest.mark.parametrize("random", [0, 10, 20])
def test_a_share_of_random_triples(random):
    kg = random_graph(3, entities=4000, triples=6000)
    schedule = Schedule(len(kg.train), seed=1)
    outside = Counter()
    for step in range(60):
        batch = batch_of(kg, schedule, 4, range(0, 200), 20, random=random, step=step)
        assert len(set(batch.tolist())) == 20
        assert np.all(batch[: 20 - random] < 200)
        outside.update(batch[20 - random :].tolist() if random < 20 else batch[1:].tolist())
    assert len(outside) > 0.8 * 60 * (random - 1)  # they come from everywhere
    if random:
        assert 2000 < np.mean(list(outside.elements())) < 4000
