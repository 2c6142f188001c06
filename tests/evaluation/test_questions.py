"""Known answers: the right ones, cut to tiles and to candidate sets; candidates; the questions of triples."""

from __future__ import annotations

import numpy as np
import pytest
from by_hand import slices_of, split_graph

from graphs import graph_of
from satkgc.errors import SatkgcError
from satkgc.evaluation import RankingTask, candidate_entities, known_answers
from satkgc.kg import KnowledgeGraph


def test_known_answers_are_those_of_the_graph_in_both_directions():
    kg = split_graph(1)
    triples = np.concatenate([kg.train, kg.valid, kg.test])
    for direction, asked, answer in (("tail", 0, 2), ("head", 2, 0)):
        slices = known_answers(kg.known_all, kg.test[:, asked], kg.test[:, 1], direction)
        for place, row in enumerate(kg.test):
            alike = triples[(triples[:, asked] == row[asked]) & (triples[:, 1] == row[1])]
            np.testing.assert_array_equal(slices.of(place), np.unique(alike[:, answer]))
            assert row[answer] in slices.of(place)


def test_with_an_inference_split_a_split_competes_within_the_graph_it_is_about():
    train, inference = [(0, 0, 1), (1, 0, 2), (2, 0, 3)], [(4, 0, 5), (5, 0, 6)]
    kg = graph_of(train, 9, valid=[(0, 0, 2)], test=[(4, 0, 6)], inference=inference)
    assert candidate_entities(kg, "valid", "split").tolist() == [0, 1, 2, 3]
    assert candidate_entities(kg, "test", "split").tolist() == [4, 5, 6]
    assert candidate_entities(kg, "test", "all").tolist() == list(range(9))
    joined = graph_of(train, 9, test=[(4, 0, 2), (8, 0, 5)], inference=inference)  # new entities beside old ones
    assert candidate_entities(joined, "test", "split").tolist() == [0, 1, 2, 3, 4, 5, 6, 8]
    bridged = graph_of(train, 9, test=[(4, 0, 5)], inference=[*inference, (6, 0, 3)])  # asked about new ones alone
    assert candidate_entities(bridged, "test", "split").tolist() == [3, 4, 5, 6]


def test_the_filter_takes_out_what_the_inference_split_answers():
    kg = graph_of([(0, 0, 1)], 7, test=[(4, 0, 6)], inference=[(4, 0, 5), (5, 0, 6)])
    task = RankingTask.of(kg, kg.test, "tail", candidate_entities(kg, "test", "split"))
    assert task.known.of(0).tolist() == [1, 2]  # 5 and 6, by their places among 4, 5, 6


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


def test_a_task_asks_for_tails_and_for_heads_by_directed_relations():
    kg = split_graph(3)
    everyone, few = (candidate_entities(kg, "test", which) for which in ("all", "split"))
    for direction, source, answer, shift in (("tail", 0, 2, 0), ("head", 2, 0, kg.num_relations)):
        task = RankingTask.of(kg, kg.test, direction, everyone)
        assert len(task) == len(kg.test)
        np.testing.assert_array_equal(task.entities, kg.test[:, source])
        np.testing.assert_array_equal(task.relations, kg.test[:, 1] + shift)
        np.testing.assert_array_equal(task.answers, kg.test[:, answer])
        assert task.relations.dtype == np.int32
        renumbered = RankingTask.of(kg, kg.test, direction, few)
        np.testing.assert_array_equal(few[renumbered.answers], task.answers)
        for place in range(len(task)):
            assert few[renumbered.known.of(place)].tolist() == [e for e in task.known.of(place) if e in few]


def test_all_are_all_and_the_split_has_its_own_and_the_named():
    kg = graph_of([[0, 0, 1], [1, 0, 2]], 8, test=[[4, 0, 6]])
    assert candidate_entities(kg, "test", "all").tolist() == list(range(8))
    assert candidate_entities(kg, "test", "split").tolist() == [4, 6]
    named = {"test": np.array([5, 6], np.int32)}
    inductive = KnowledgeGraph.from_arrays("x", kg.entities, kg.relations, kg.train, None, kg.test, named)
    assert candidate_entities(inductive, "test", "split").tolist() == [4, 5, 6]
    with pytest.raises(SatkgcError, match='"all" or "split"'):
        candidate_entities(split_graph(0), "test", "some")
