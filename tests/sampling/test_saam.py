"""SaaM: the least-visited schedule, who gets into a batch, and whole runs of batches, saved, restored, at the edge."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from chisquare import assert_follows

from graphs import graph_of, random_graph
from satkgc.errors import SatkgcError
from satkgc.sampling import Needs, SamplingConfig, make_sampler
from satkgc.sampling.saam import Schedule, assemble

WALKS = ["brwr", "rwr", "brwr_p"]


def assert_same(first, second):
    """Two batches are one."""
    for name, value in vars(first).items():
        np.testing.assert_array_equal(value, getattr(second, name))


@pytest.mark.parametrize("settings", [{}, {"entity_disjoint": True}, {"random_share": 0.5}, {"pick": "least-visited"}])
@pytest.mark.parametrize("sampler", WALKS)
def test_thousands_of_batches_keep_to_the_schedule(sampler, settings):
    kg = random_graph(5, entities=120, triples=300)
    config = SamplingConfig(sampler=sampler, batch_size=20, subgraph_triples=40, **settings)
    made = make_sampler(kg, config, seed=1)
    visits = np.zeros(len(kg.train), int)
    for step in range(1000):
        batch = made.draw(step)
        assert visits[batch.triples[0]] == visits.min()
        assert len(set(batch.triples.tolist())) == 10
        visits[batch.triples] += 1
    np.testing.assert_array_equal(made.state()["visits"], visits)


@pytest.mark.parametrize("sampler", WALKS)
def test_picking_the_least_visited_evens_the_visits_out(sampler):
    kg = random_graph(5, entities=120, triples=300)
    spread = {}
    for pick in ("random", "least-visited"):
        config = SamplingConfig(sampler=sampler, batch_size=20, subgraph_triples=60, pick=pick)
        made = make_sampler(kg, config, seed=1)
        for step in range(300):
            made.draw(step)
        spread[pick] = made.state()["visits"].std()
    assert spread["least-visited"] < spread["random"] / 3


def test_without_a_random_share_a_batch_is_its_centres_component():
    kg = graph_of([[i, 0, (i + 1) % 50] for i in range(50)] + [[50 + i, 0, 50 + (i + 1) % 50] for i in range(50)], 100)
    made = make_sampler(kg, SamplingConfig(batch_size=20), 1, Needs(hops=True))
    for step in range(100):
        batch = made.draw(step)
        assert len({triple // 50 for triple in batch.triples.tolist()}) == 1
        assert np.all(batch.hops >= 0)


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


@pytest.mark.parametrize("needs", [Needs(), Needs(hops=True, negatives=3)])
@pytest.mark.parametrize("settings", [{}, {"entity_disjoint": True}, {"sampler": "random"}])
def test_a_restored_sampler_goes_on_the_same(settings, needs):
    kg = random_graph(5)
    config = SamplingConfig(batch_size=20, subgraph_triples=15, **settings)
    first, second = make_sampler(kg, config, 1, needs), make_sampler(kg, config, 1, needs)
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
        made = make_sampler(
            kg, SamplingConfig(sampler=sampler, batch_size=2, entity_disjoint=True), 1, Needs(hops=True)
        )
        batches = [made.draw(step) for step in range(5)]
        assert [batch.triples.tolist() for batch in batches] == [[0]] * 5
        assert batches[0].hops.tolist() == [int(triple[0][2] != triple[0][0]), 0]


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
    made = make_sampler(kg, SamplingConfig(batch_size=20, subgraph_triples=50), 1)
    for step in range(len(kg.train)):
        made.draw(step)
    assert made.state()["visits"].min() >= 1  # the centre of each step is among the least visited


def assert_consistent(schedule, counts):
    """The sorted blocks say what plain counting says."""
    np.testing.assert_array_equal(schedule.visits, counts)
    np.testing.assert_array_equal(schedule.order[schedule.place], np.arange(len(counts)))
    assert np.all(np.diff(counts[schedule.order]) >= 0)
    for c in range(counts.max() + 1):
        block = schedule.order[schedule.bounds[c] : schedule.bounds[c + 1]]
        np.testing.assert_array_equal(np.sort(block), np.flatnonzero(counts == c))


@pytest.mark.parametrize("skewed", [False, True])
def test_thousands_of_steps_agree_with_counting(skewed):
    rng = np.random.default_rng(1)
    schedule = Schedule(200, seed=3)
    counts = np.zeros(200, np.int64)
    weights = (np.arange(200) + 1.0) ** (3 if skewed else 0)
    for step in range(3000):
        centre = schedule.centre(step)
        assert counts[centre] == counts.min()
        others = rng.choice(200, 11, replace=False, p=weights / weights.sum())
        batch = np.unique([centre, *others]).astype(np.int32)
        schedule.visit(batch)
        counts[batch] += 1
        if step % 100 == 0:
            assert_consistent(schedule, counts)
    assert_consistent(schedule, counts)
    assert not skewed or counts.max() > 10 * counts.min()


def test_ties_are_broken_at_random():
    schedule = Schedule(10, seed=1)
    schedule.visit(np.arange(10, dtype=np.int32))
    schedule.visit(np.array([1, 4, 7], np.int32))
    centres = Counter(schedule.centre(step) for step in range(7000))
    assert_follows(centres, dict.fromkeys((0, 2, 3, 5, 6, 8, 9), 1 / 7), 7000)


def test_a_restored_schedule_goes_on_the_same():
    first, second = Schedule(50, seed=5), Schedule(50, seed=5)
    for step in range(120):
        first.visit(np.unique([first.centre(step), step % 50]).astype(np.int32))
    second.restore(first.visits, first.order)
    assert_consistent(second, first.visits.astype(np.int64))
    for step in range(120, 400):
        centre = first.centre(step)
        assert second.centre(step) == centre
        first.visit(np.array([centre], np.int32))
        second.visit(np.array([centre], np.int32))


def test_restoring_copies():
    schedule, visits = Schedule(4, seed=0), np.zeros(4, np.int32)
    schedule.restore(visits, np.arange(4, dtype=np.int32))
    schedule.visit(np.array([2], np.int32))
    assert visits.tolist() == [0, 0, 0, 0]


def test_an_order_that_contradicts_the_counts_is_refused():
    with pytest.raises(SatkgcError, match="does not agree"):
        Schedule(3, seed=0).restore(np.array([0, 2, 1]), np.array([0, 1, 2]))


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
