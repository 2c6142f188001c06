"""What a split promises, on graphs of every shape that hypothesis thinks of."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import graph_of, random_graph
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph, Vocabulary
from satkgc.kg.inspect import find_leaks
from satkgc.kg.kernels import drop_duplicates
from satkgc.kg.split import split_graph

SIDES = "valid", "test"
Rows = set[tuple[int, int, int]]


@st.composite
def graphs(draw: st.DrawFn) -> KnowledgeGraph:
    """Distinct triples over few entities, so that parallel edges, mirrors, loops and rare relations are common."""
    entities, relations = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    one = st.integers(0, entities - 1)
    triples = draw(st.lists(st.tuples(one, st.integers(0, relations - 1), one), min_size=1, max_size=60, unique=True))
    return graph_of(triples, entities, relations)


shares = st.tuples(*[st.sampled_from([0.0, 0.1, 0.3, 0.45])] * 2)


def rows(triples: np.ndarray) -> Rows:
    return {(int(h), int(r), int(t)) for h, r, t in triples}


def entities_of(triples: Rows) -> set[int]:
    return {e for h, _, t in triples for e in (h, t)}


def relations_of(triples: Rows) -> set[int]:
    return {r for _, r, _ in triples}


def most(share: float, total: int) -> int:
    return max(1, round(share * total)) if share else 0


@settings(max_examples=200)
@given(graphs(), shares, st.integers(0, 9))
def test_transductive(graph: KnowledgeGraph, share: tuple[float, float], seed: int) -> None:
    split = split_graph(graph, "transductive", *share, seed)
    train, valid, test = rows(split.train), rows(split.valid), rows(split.test)
    assert len(split.train) + len(split.valid) + len(split.test) == len(graph.train)
    assert train | valid | test == rows(graph.train)
    assert entities_of(train) == entities_of(rows(graph.train))
    assert relations_of(train) == relations_of(rows(graph.train))
    assert len(valid) <= most(share[0], len(graph.train))
    assert len(test) <= most(share[1], len(graph.train))
    pairs = [{frozenset((h, t)) for h, _, t in side} for side in (train, valid, test)]
    assert sum(map(len, pairs)) == len(set().union(*pairs))  # no pair is on two sides
    leaks = find_leaks(split)
    assert leaks.test.same == leaks.test.symmetric == leaks.test.inverse == leaks.valid.symmetric == 0


@settings(max_examples=200)
@given(graphs(), shares, st.integers(0, 9))
def test_inductive(graph: KnowledgeGraph, share: tuple[float, float], seed: int) -> None:
    split = split_graph(graph, "inductive", *share, seed)
    train, valid, test = rows(split.train), rows(split.valid), rows(split.test)
    held_out = {name: set(members.tolist()) for name, members in split.split_entities.items()}
    everything = rows(graph.train)
    assert len(split.train) + len(split.valid) + len(split.test) == len(graph.train)
    assert train | valid | test == everything
    assert relations_of(train) == relations_of(everything)
    assert entities_of(train) == entities_of(everything) - held_out["valid"] - held_out["test"]
    assert test == {row for row in everything if held_out["test"] & {row[0], row[2]}}
    assert valid == {row for row in everything - test if held_out["valid"] & {row[0], row[2]}}
    present = len(entities_of(everything))
    assert len(held_out["valid"]) <= most(share[0], present)
    assert len(held_out["test"]) <= most(share[1], present)


@pytest.mark.parametrize("kind", ["transductive", "inductive"])
def test_a_graph_with_room_gets_just_what_was_asked_for(kind: str) -> None:
    graph = random_graph(3, entities=100, relations=4, triples=2000)
    split = split_graph(graph, kind, 0.1, 0.2, seed=5)
    if kind == "transductive":
        held_out = len(split.valid), len(split.test)
        assert held_out == (round(0.1 * len(graph.train)), round(0.2 * len(graph.train)))
    else:
        assert {name: len(members) for name, members in split.split_entities.items()} == {"valid": 10, "test": 20}


@pytest.mark.parametrize("kind", ["transductive", "inductive"])
def test_the_only_triple_of_a_relation_stays(kind: str) -> None:
    ring = [(i, 0, (i + k) % 12) for i in range(12) for k in (1, 2, 3)]
    graph = graph_of([*ring, (0, 1, 6), (3, 2, 9), (9, 2, 3)], 12, 3)
    for seed in range(20):
        assert relations_of(rows(split_graph(graph, kind, 0.3, 0.3, seed).train)) == {0, 1, 2}


def test_a_small_graph_has_at_least_one_triple_on_each_side() -> None:
    ring = graph_of([(i, 0, (i + k) % 5) for i in range(5) for k in (1, 2)], 5)
    split = split_graph(ring, "transductive", 0.01, 0.01)
    assert (len(split.valid), len(split.test)) == (1, 1)
    assert len(split_graph(ring, "transductive", 0, 0.01).valid) == 0


@pytest.mark.parametrize("kind", ["transductive", "inductive"])
def test_without_a_share_a_large_graph_holds_out_no_more_than_the_most(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = graph_of([(i, 0, (i + k) % 400) for i in range(400) for k in (1, 7, 30)], 400)
    monkeypatch.setattr("satkgc.kg.split.MOST", 15)

    def held_out(valid: float | None, test: float | None) -> list[int]:
        split = split_graph(ring, kind, valid, test)
        return [len(split.split(name) if kind == "transductive" else split.split_entities[name]) for name in SIDES]

    assert held_out(None, None) == [15, 15]
    assert held_out(0.05, None) == [20 if kind == "inductive" else 60, 15]  # a share that is given holds
    monkeypatch.setattr("satkgc.kg.split.MOST", 1000)
    assert held_out(None, None) == held_out(0.05, 0.05)


@pytest.mark.parametrize("kind", ["transductive", "inductive"])
def test_the_seed_alone_decides(kind: str) -> None:
    graph = random_graph(4, triples=400)
    first, again, other = (split_graph(graph, kind, 0.1, 0.1, seed) for seed in (1, 1, 2))
    assert rows(first.test) == rows(again.test)
    assert rows(first.test) != rows(other.test)


@pytest.mark.parametrize("kind", ["transductive", "inductive"])
def test_numbering_and_order_do_not_matter(kind: str) -> None:
    graph = random_graph(5, entities=50, triples=300)
    rng = np.random.default_rng(0)
    new = rng.permutation(50).astype(np.int32)  # entity i becomes entity new[i]
    old = np.argsort(new)
    entities = Vocabulary.build(
        "entity", *(c.take(old) for c in (graph.entities.ids, graph.entities.names, graph.entities.descriptions))
    )
    triples = rng.permutation(np.stack([new[graph.train[:, 0]], graph.train[:, 1], new[graph.train[:, 2]]], 1))
    other = KnowledgeGraph.from_arrays("other", entities, graph.relations, triples)
    first, second = split_graph(graph, kind), split_graph(other, kind)
    for name in ("valid", "test"):
        assert len(first.split(name))
        renamed = first.split(name).copy()
        renamed[:, [0, 2]] = new[renamed[:, [0, 2]]]
        assert rows(renamed) == rows(second.split(name))


def test_what_cannot_be_held_out_is_said(caplog: pytest.LogCaptureFixture) -> None:
    star = graph_of([(0, 0, i) for i in range(1, 9)], 9)  # every pair is the only one of its leaf
    with caplog.at_level(logging.WARNING):
        split = split_graph(star, "transductive", 0.25, 0.25)
    assert len(split.train) == 8
    assert "only 0 triples could be held out, not 4" in caplog.text


def test_a_split_that_is_there_stays() -> None:
    graph = graph_of([(0, 0, 1)] * 1, 2, test=[(1, 0, 0)])
    assert split_graph(graph, "transductive") is graph
    assert split_graph(graph_of([(0, 0, 1)], 2), "none").valid.shape == (0, 3)
    with pytest.raises(SatkgcError, match="no 'random' split"):
        split_graph(graph, "random")


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3)), max_size=30))
def test_dropping_duplicates_keeps_the_first_of_each_in_order(triples: list[tuple[int, int, int]]) -> None:
    kept = drop_duplicates(np.array(triples, np.int32).reshape(-1, 3), 4, 3)
    assert [tuple(row) for row in kept.tolist()] == list(dict.fromkeys(triples))
