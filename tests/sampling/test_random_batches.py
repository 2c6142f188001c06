"""RANDOM: every triple once in a pass, and no memory of earlier steps."""

from __future__ import annotations

import numpy as np

from graphs import random_graph
from satkgc.sampling import SamplingConfig, make_sampler


def test_a_pass_holds_every_triple_once_but_the_remainder():
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


def test_any_step_can_be_drawn_at_once():
    kg = random_graph(1)
    config = SamplingConfig(sampler="random", batch_size=14)
    in_order = make_sampler(kg, config, seed=1)
    batches = [in_order.draw(step) for step in range(100)]
    for step in (99, 0, 57):
        alone = make_sampler(kg, config, seed=1).draw(step)
        np.testing.assert_array_equal(alone.triples, batches[step].triples)
        np.testing.assert_array_equal(alone.distances, batches[step].distances)
    assert not np.array_equal(make_sampler(kg, config, seed=2).draw(0).triples, batches[0].triples)


def test_the_first_triple_stands_in_as_the_centre():
    kg = random_graph(1)
    batch = make_sampler(kg, SamplingConfig(sampler="random", batch_size=14), seed=1).draw(3)
    assert batch.centre == batch.triples[0]
    assert batch.distances[0, 0] == 0
