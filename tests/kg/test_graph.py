"""What a graph is made of, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from kg_graphs import vocabulary

from satkgc import KnowledgeGraph, SatkgcError
from satkgc.kg import Vocabulary


def test_arrays_cannot_be_written_to() -> None:
    mine, held_out = np.array([[0, 0, 1]], np.int32), np.array([1], np.int32)
    members = vocabulary("entity", ["a", "b"]), vocabulary("relation", ["r"])
    graph = KnowledgeGraph.from_arrays("g", *members, mine, split_entities={"test": held_out})
    derived = graph.adjacency.neighbours, graph.adjacency.degree, graph.known_all.head_tails
    for array in (graph.train, graph.split_entities["test"], graph.entities.id_order, *derived):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    mine[0, 2] = held_out[0] = 0  # the caller's own arrays stay writable


@pytest.mark.parametrize(
    ("triples", "message"),
    [
        ([[0, 0, 2]], "points to entity 2 of 2"),
        ([[-1, 0, 0]], "points to entity -1 of 2"),
        ([[0, 0, 1], [-3, 0, 1]], "points to entity -3 of 2"),
        ([[0, 1, 0]], "points to relation 1 of 1"),
        ([[0, 0]], "shape"),
        ([[2**32, 0, 2**32 + 1]], f"no index: {2**32}"),
        ([[0, -(2**32), 1]], f"no index: -{2**32}"),
        (np.array([[0, 0, 2**63]], np.uint64), f"no index: {2**63}"),
        ([[0.9, 0, 1]], "numbers of the type float64 are no indices; give whole ones"),
        ([[False, False, True]], "type bool"),
        ([["0", "0", "1"]], "type <U1"),
    ],
)
def test_indices_that_point_nowhere_are_refused(triples: Any, message: str) -> None:
    with pytest.raises(SatkgcError, match=message):
        KnowledgeGraph.from_arrays("g", vocabulary("entity", ["a", "b"]), vocabulary("relation", ["r"]), triples)


@pytest.mark.parametrize(
    ("members", "message"), [([2], "entity 2 of 2"), ([2**32], "no index"), ([0.5], "type float64")]
)
def test_held_out_entities_that_are_none_are_refused(members: Any, message: str) -> None:
    both = vocabulary("entity", ["a", "b"]), vocabulary("relation", ["r"])
    with pytest.raises(SatkgcError, match=message):
        KnowledgeGraph.from_arrays("g", *both, [[0, 0, 1]], split_entities={"test": members})


def test_a_graph_is_of_its_own_copy_and_says_what_it_takes() -> None:
    both = [Vocabulary.build(kind, ["a", "b"], pd.Series(["A", "B"]), ["", ""]) for kind in ("entity", "relation")]
    mine = np.array([[0, 0, 1]], np.int32)
    graph = KnowledgeGraph.from_arrays("g", *both, mine)
    mine[0] = 7
    assert graph.train.tolist() == [[0, 0, 1]]
    assert graph.entities.name(1) == "B"
    for wrong in ((None, *both), ("g", ["a", "b"], both[1]), ("g", both[0], ["r"])):
        with pytest.raises(SatkgcError, match="a graph has a name and two vocabularies; give a text"):
            KnowledgeGraph.from_arrays(*wrong, [[0, 0, 1]])
    with pytest.raises(SatkgcError, match="with gaps; give each a text"):
        Vocabulary.build("entity", ["a", "b"], pd.Series(["A", None]), ["", ""])
