"""Metrics: their bounds and relations for any ranks, and what chance gets."""

from __future__ import annotations

import numpy as np
import pytest
from by_hand import slices_of, unit_vectors
from hypothesis import given
from hypothesis import strategies as st

from satkgc.evaluation import Ranks, measure, rank_queries
from satkgc.evaluation.metrics import measure_directions
from satkgc.evaluation.ranking import TIES


@st.composite
def any_ranks(draw):
    """Counts that can be: no more rivals than there are candidates."""
    rows = draw(st.lists(st.tuples(*[st.integers(0, 40)] * 3), min_size=1, max_size=30))
    greater, equal, worse = (np.array(column) for column in zip(*rows, strict=True))
    return Ranks(greater, equal, greater + equal + worse + 1)


@given(any_ranks())
def test_metrics_lie_within_their_bounds_and_hits_grow_with_k(ranks):
    for ties in TIES:
        metrics = measure(ranks, ties)
        assert 0 < metrics["hits@1"] + metrics["mrr"] <= 2
        assert metrics["hits@1"] <= metrics["hits@3"] <= metrics["hits@10"] <= 1
        assert metrics["hits@1"] <= metrics["mrr"] <= 1
        assert 1 <= metrics["mr"] <= ranks.candidates.max()
        assert 0 < metrics["amr"] < 2
        assert -1 <= metrics["amri"] <= 1 + 1e-12


@given(any_ranks())
def test_a_kinder_tie_rule_never_gives_less(ranks):
    best, middle, worst = (measure(ranks, ties) for ties in TIES)
    for name in ("mrr", "hits@1", "hits@3", "hits@10", "amri"):
        assert best[name] >= middle[name] - 1e-12
        assert middle[name] >= worst[name] - 1e-12
    assert middle["mr"] == pytest.approx((best["mr"] + worst["mr"]) / 2)


@given(any_ranks(), any_ranks())
def test_both_is_the_mean_of_the_directions_where_they_are_of_one_length(one, other):
    size = min(len(one), len(other))
    sides = measure_directions({"head": one.select(np.arange(size)), "tail": other.select(np.arange(size))})
    for name in ("mrr", "hits@1", "hits@3", "hits@10", "mr"):
        assert sides["both"][name] == pytest.approx((sides["head"][name] + sides["tail"][name]) / 2)
    assert sides["both"]["count"] == 2 * size


def test_random_vectors_get_what_a_random_order_gets():
    rng = np.random.default_rng(0)
    size = 60
    ranks = rank_queries(
        unit_vectors(rng, 6_000, 12),
        unit_vectors(rng, size, 12),
        rng.integers(0, size, 6_000).astype(np.int32),
        slices_of([[]] * 6_000),
    )
    metrics = measure(ranks)
    assert metrics["mrr"] == pytest.approx(sum(1 / r for r in range(1, size + 1)) / size, abs=0.01)
    assert metrics["hits@10"] == pytest.approx(10 / size, abs=0.02)
    assert metrics["amr"] == pytest.approx(1, abs=0.03)


def test_no_questions_no_figures_and_one_candidate_is_no_feat():
    nothing = np.empty(0, np.int64)
    assert measure(Ranks(nothing, nothing, nothing)) == {"count": 0}
    alone = measure(Ranks(np.zeros(3, np.int64), np.zeros(3, np.int64), np.ones(3, np.int64)))
    assert (alone["mrr"], alone["amri"]) == (1, 0)
