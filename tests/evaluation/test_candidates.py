"""Candidate sets, and sampled ranks against an explicit draw of entities."""

from __future__ import annotations

import numpy as np
import pytest
from by_hand import split_graph

from graphs import graph_of
from satkgc.errors import SatkgcError
from satkgc.evaluation.candidates import candidate_entities, sample_candidates
from satkgc.evaluation.ranking import Ranks
from satkgc.kg import KnowledgeGraph


def test_all_are_all_and_the_split_has_its_own_and_the_named():
    kg = graph_of([[0, 0, 1], [1, 0, 2]], 8, test=[[4, 0, 6]])
    assert candidate_entities(kg, "test", "all").tolist() == list(range(8))
    assert candidate_entities(kg, "test", "split").tolist() == [4, 6]
    named = {"test": np.array([5, 6], np.int32)}
    inductive = KnowledgeGraph.from_arrays("x", kg.entities, kg.relations, kg.train, None, kg.test, named)
    assert candidate_entities(inductive, "test", "split").tolist() == [4, 5, 6]
    with pytest.raises(SatkgcError, match='"all" or "split"'):
        candidate_entities(split_graph(0), "test", "some")


def full_ranks(repeats):
    """A query with 3 better, 4 equal and 12 worse rivals, many times."""
    return Ranks(*(np.full(repeats, n, np.int64) for n in (3, 4, 20)))


def test_sampled_ranks_have_the_distribution_of_an_explicit_draw():
    repeats, sampled = 20_000, 7
    ranks = sample_candidates(full_ranks(repeats), sampled, seed=3, purpose="head")
    rng = np.random.default_rng(4)
    rivals = np.array([1] * 3 + [0] * 4 + [-1] * 12)
    drawn = rivals[rng.permuted(np.tile(np.arange(19), (repeats, 1)), axis=1)[:, :sampled]]
    for ours, theirs in ((ranks.greater, (drawn == 1).sum(1)), (ranks.equal, (drawn == 0).sum(1))):
        np.testing.assert_allclose(np.bincount(ours, minlength=5), np.bincount(theirs, minlength=5), atol=400)
    together = np.mean(ranks.greater * ranks.equal)
    assert together == pytest.approx(np.mean((drawn == 1).sum(1) * (drawn == 0).sum(1)), abs=0.05)
    assert (ranks.candidates == sampled + 1).all()


def test_sampling_is_seeded_and_stops_at_all_others():
    once, again = (sample_candidates(full_ranks(50), 7, 5, "head").greater for _ in range(2))
    np.testing.assert_array_equal(once, again)
    assert (once != sample_candidates(full_ranks(50), 7, 6, "head").greater).any()
    assert (once != sample_candidates(full_ranks(50), 7, 5, "tail").greater).any()
    everyone = sample_candidates(full_ranks(50), 1_000, 5, "head")
    np.testing.assert_array_equal(everyone.rank(), full_ranks(50).rank())
    assert (everyone.candidates == 20).all()
