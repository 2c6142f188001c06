"""The compiled masks agree with looking every pair up."""

from __future__ import annotations

import numpy as np
import pytest

from graphs import graph_of, random_graph
from satkgc.models.text.false_negatives import known_pairs


def pairs(arrays):
    return sorted(zip(*(a.tolist() for a in arrays), strict=True))


@pytest.mark.parametrize(("entities", "triples"), [(5, 60), (40, 200), (300, 200)])  # long, middling, short answers
def test_known_pairs_are_those_a_lookup_finds(entities, triples):
    for seed in range(5):
        kg = random_graph(seed, entities=entities, relations=2, triples=triples)
        rng = np.random.default_rng(seed)
        size = 30
        heads = rng.integers(0, entities, size).astype(np.int32)
        directed = rng.integers(0, 4, size).astype(np.int32)
        tails = rng.integers(0, entities, size).astype(np.int32)
        facts = {(h, r, t) for h, r, t in kg.train.tolist()} | {(t, r + 2, h) for h, r, t in kg.train.tolist()}
        expected = [
            (i, j) for i in range(size) for j in range(size) if i != j and (heads[i], directed[i], tails[j]) in facts
        ]
        assert pairs(known_pairs(kg.known_train, heads, directed, tails, 2)) == expected


def test_a_hub_is_masked_for_both_directions():
    kg = graph_of([(i, 0, 100) for i in range(100)], 101)  # a hundred heads share one tail
    heads, tails = np.array([3, 4, 100, 100], np.int32), np.array([100, 100, 3, 4], np.int32)
    masked = pairs(known_pairs(kg.known_train, heads, np.array([0, 0, 1, 1], np.int32), tails, 1))
    assert masked == [(0, 1), (1, 0), (2, 3), (3, 2)]


def test_equal_tails_are_masked():
    """A sample's own triple is in the training graph, so that a copy of its answer is a known one."""
    kg = random_graph(0, entities=6, relations=1, triples=30)
    heads, relations, tails = kg.train.T
    masked = set(pairs(known_pairs(kg.known_train, heads, relations, tails, 1)))
    size = len(tails)
    assert {(i, j) for i in range(size) for j in range(size) if i != j and tails[i] == tails[j]} <= masked
