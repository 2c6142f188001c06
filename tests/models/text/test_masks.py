"""The compiled masks agree with looking every pair up."""

from __future__ import annotations

import numpy as np
import pytest

from graphs import graph_of, random_graph
from satkgc.models.text import answer_pairs, frequency_weights, known_pairs


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
    found = pairs(known_pairs(kg.known_train, heads, np.array([0, 0, 1, 1], np.int32), tails, 1))
    assert found == [(0, 1), (1, 0), (2, 3), (3, 2)]


def test_answer_pairs_are_equal_tails():
    tails = np.array([7, 3, 7, 7, 1, 3], np.int32)
    expected = [(i, j) for i in range(6) for j in range(6) if i != j and tails[i] == tails[j]]
    assert pairs(answer_pairs(tails)) == expected
    assert pairs(answer_pairs(np.arange(4, dtype=np.int32))) == []


def test_frequency_weight_is_the_logarithm_of_distinct_neighbours():
    kg = graph_of([(0, 0, 1), (0, 1, 1), (0, 0, 2), (3, 0, 0)], 5, 2)  # parallel edges count once
    assert frequency_weights(kg, np.array([0, 1, 4])) == pytest.approx([np.log(4), np.log(2), 0])
