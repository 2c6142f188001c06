"""The least-visited schedule against plain counting."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from chisquare import assert_follows

from satkgc.errors import SatkgcError
from satkgc.sampling.schedule import Schedule


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
