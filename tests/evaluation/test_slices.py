"""Slices of known answers: the right ones, cut to tiles and to candidate sets."""

from __future__ import annotations

import numpy as np
from by_hand import slices_of, split_graph

from satkgc.evaluation import known_answers


def test_known_answers_are_those_of_the_graph_in_both_directions():
    kg = split_graph(1)
    triples = np.concatenate([kg.train, kg.valid, kg.test])
    for direction, asked, answer in (("tail", 0, 2), ("head", 2, 0)):
        slices = known_answers(kg.known_all, kg.test[:, asked], kg.test[:, 1], direction)
        for place, row in enumerate(kg.test):
            alike = triples[(triples[:, asked] == row[asked]) & (triples[:, 1] == row[1])]
            np.testing.assert_array_equal(slices.of(place), np.unique(alike[:, answer]))
            assert row[answer] in slices.of(place)


def test_tiles_put_together_are_the_whole():
    rng = np.random.default_rng(2)
    slices = slices_of([rng.integers(0, 50, n) for n in (0, 9, 30, 1, 0, 4)])
    for height, width in ((1, 1), (2, 7), (6, 50), (4, 60)):
        pairs = set()
        for top in range(0, 6, height):
            for left in range(0, 50, width):
                rows, columns = slices.tile(slice(top, top + height), slice(left, left + width))
                assert (columns < width).all()
                pairs |= {(r + top, c + left) for r, c in zip(rows.tolist(), columns.tolist(), strict=True)}
        assert pairs == {(q, int(e)) for q in range(6) for e in slices.of(q)}


def test_membership_and_candidate_sets():
    slices = slices_of([[3, 5, 9], [], [0, 9]])
    np.testing.assert_array_equal(slices.contain(np.array([5, 5, 1], np.int32)), [True, False, False])
    np.testing.assert_array_equal(slices.contain(np.array([10, 0, 9], np.int32)), [False, False, True])
    among = slices.among(np.array([0, 4, 5, 9], np.int32))
    assert [among.of(q).tolist() for q in range(3)] == [[2, 3], [], [0, 3]]
