"""Break-downs: parts that make up the whole, and categories of relations by hand."""

from __future__ import annotations

import numpy as np
import pytest
from by_hand import split_graph

from graphs import graph_of
from satkgc.evaluation import Ranks
from satkgc.evaluation.breakdown import break_down
from satkgc.evaluation.metrics import measure_directions
from satkgc.kg import CATEGORIES, relation_categories


def random_ranks(rng, size):
    return {d: Ranks(rng.integers(0, 9, size), rng.integers(0, 3, size), np.full(size, 30)) for d in ("head", "tail")}


def test_the_parts_weighted_by_their_size_are_the_whole():
    kg = split_graph(6)
    ranks = random_ranks(np.random.default_rng(7), len(kg.test))
    whole = measure_directions(ranks)["both"]
    parts = break_down(kg, kg.test, ranks, "realistic")
    for name in ("relation", "category", "degree", "unseen"):
        groups = (
            [group.get("both", group) for group in parts[name].values()]
            if name != "unseen"
            else list(parts[name].values())
        )
        groups = [group for group in groups if group["count"]]
        assert sum(group["count"] for group in groups) == whole["count"]
        for metric in ("mrr", "hits@1", "hits@10", "mr"):
            mean = sum(group[metric] * group["count"] for group in groups) / whole["count"]
            assert mean == pytest.approx(whole[metric]), (name, metric)


def test_categories_by_hand():
    one_to_one = [[0, 0, 1], [2, 0, 3]]
    one_to_many = [[0, 1, 1], [0, 1, 2], [0, 1, 3]]
    many_to_one = [[1, 2, 0], [2, 2, 0], [3, 2, 0]]
    many_to_many = [[h, 3, t] for h in (0, 1) for t in (2, 3)]
    kg = graph_of([*one_to_one, *one_to_many, *one_to_many, *many_to_one, *many_to_many], 4, 5)
    names = [(*CATEGORIES, "new")[c] for c in relation_categories(kg)]
    assert names == ["1-1", "1-N", "N-1", "N-N", "new"]


def test_categories_by_counting():
    kg = split_graph(8, entities=12, relations=6, triples=100)
    for relation, category in enumerate(relation_categories(kg)):
        triples = {tuple(row) for row in kg.train.tolist() if row[1] == relation}
        many = [len(triples) / len({triple[end] for triple in triples}) >= 1.5 for end in (2, 0)]
        assert CATEGORIES[category] == f"{'N' if many[0] else '1'}-{'N' if many[1] else '1'}"


def test_groups_hold_the_right_questions():
    # 0 has the neighbours 1, 2 and 3; 4 and 5 are new.
    kg = graph_of([[0, 0, 1], [0, 0, 2], [0, 0, 3]], 6, 2, test=[[0, 1, 4], [1, 1, 0], [4, 0, 5]])
    at = {
        direction: Ranks(np.arange(3) + shift, np.zeros(3, np.int64), np.full(3, 6))
        for direction, shift in (("head", 0), ("tail", 3))
    }
    parts = break_down(kg, kg.test, at, "realistic")
    assert {name: part["count"] for name, part in parts["degree"].items()} == {"0": 3, "1": 1, "2-3": 2}
    assert parts["degree"]["1"]["mr"] == 2  # (?, 1, 0): the answer 1 at rank 2
    assert {name: part["count"] for name, part in parts["unseen"].items()} == {
        "neither": 2,
        "answer": 1,
        "question": 1,
        "both": 2,
    }
    assert parts["unseen"]["answer"]["mr"] == 4  # (0, 1, ?): the answer 4
    assert parts["unseen"]["question"]["mr"] == 1  # (?, 1, 4): asked about 4
    assert set(parts["relation"]) == {"r0", "r1"}
    assert parts["relation"]["r0"]["tail"] == pytest.approx(parts["category"]["1-N"]["tail"])
    assert parts["category"]["new"]["head"]["count"] == 2
