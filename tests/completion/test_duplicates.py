"""Pairs of entities that are one: names, blocks and neighbours against brute force; scores, objections, the order."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from little_world import little_world
from satkgc.completion import Completer
from satkgc.completion.duplicates import blocks
from satkgc.completion.duplicates import vectors as vectors_module
from satkgc.completion.duplicates.find import candidate_pairs
from satkgc.completion.duplicates.names import NameTable, is_code, normalise
from satkgc.completion.duplicates.neighbours import NeighbourTable
from satkgc.completion.prepare import prepare
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph, ReadOptions, RelationLogic, Vocabulary, read_graph
from satkgc.models import EmbeddingConfig, EmbeddingModel
from toy_models import PlainScores, WordVectors


def vocabulary(names, kind="entity"):
    ids = pa.array([f"{kind} {i}." for i in range(len(names))])
    return Vocabulary.build(kind, ids, pa.array(names), pa.array([""] * len(names)))


def named(*names):
    """A graph of entities with these names, and nothing else."""
    return KnowledgeGraph.from_arrays("named", vocabulary(names), vocabulary(["r"], "relation"), [])


def alike(one, other):
    return float(NameTable(named(one, other)).similarity(np.array([[0, 1]], np.int32))[0])


def edits_by_definition(a, b):
    """Optimal string alignment, as its recursion is written down."""

    @lru_cache(None)
    def cost(i, j):
        if not i or not j:
            return i + j
        ways = [cost(i - 1, j) + 1, cost(i, j - 1) + 1, cost(i - 1, j - 1) + (a[i - 1] != b[j - 1])]
        if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
            ways.append(cost(i - 2, j - 2) + 1)
        return min(ways)

    return cost(len(a), len(b))


def dice_by_definition(a, b):
    one, other = ({f" {text} "[i : i + n] for n in (2, 3) for i in range(len(text) + 3 - n)} for text in (a, b))
    return 2 * len(one & other) / (len(one) + len(other))


@settings(max_examples=60, deadline=None)
@given(st.text("abc ", min_size=1, max_size=9), st.text("abc ", min_size=1, max_size=9))
def test_likeness_of_names_is_the_better_of_ngrams_and_edits(one, other) -> None:
    a, b = (" ".join(sorted(normalise(text))) for text in (one, other))
    if not a or not b:
        assert math.isnan(alike(one, other))
        return
    expected = max(dice_by_definition(a, b), 1 - edits_by_definition(a, b) / max(len(a), len(b)))
    assert alike(one, other) >= expected - 1e-6
    if alike(one, other) > expected + 1e-6:  # an abbreviation
        assert alike(one, other) in (pytest.approx(0.85), pytest.approx(0.7))
    assert alike(one, other) == pytest.approx(alike(other, one))


@pytest.mark.parametrize(
    ("one", "other", "similarity"),
    [
        ("Ångström, Anders Jonas", "anders jonas ANGSTROM", 1.0),
        ("J. S. Bach", "Bach, Johann Sebastian", 0.85),
        ("United Nations Organisation", "UNO", 0.7),
        ("elephant", "elephnat", 1 - 1 / 8),
        ("Apollo 11", "Apollo 12", 0.0),
        ("World War", "World War 2", 0.0),
    ],
)
def test_names_that_people_write_differently(one, other, similarity) -> None:
    assert alike(one, other) == pytest.approx(similarity)


def test_a_code_is_no_name() -> None:
    assert is_code("Q42", "Q42")
    assert is_code("/m/02mjmr", "m 02mjmr")
    assert not is_code("Q42", "Douglas Adams")
    assert not is_code("http://e/World_War_2", "World War 2")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=30, unique=True), st.integers(2, 5))
def test_groups_give_all_pairs_that_share_a_key_which_few_have(rows, most) -> None:
    keys, entities = (np.array([row[i] for row in rows], kind) for i, kind in ((0, np.int64), (1, np.int32)))
    groups = {key: [e for k, e in rows if k == key] for key, _ in rows}
    expected = {frozenset(p) for group in groups.values() if len(group) <= most for p in combinations(group, 2)}
    pairs = blocks.pairs_of_groups(keys, entities, most)
    assert {frozenset(pair) for pair in pairs.tolist()} == expected
    assert len(pairs) <= len(rows) * (most - 1) / 2  # linear in the rows
    rare, own = blocks.rarest(keys, entities, 1)
    count = {key: len(group) for key, group in groups.items()}
    for entity in {e for k, e in rows if count[k] > 1}:
        assert count[rare[own == entity].item()] == min(count[k] for k, e in rows if e == entity and count[k] > 1)


def test_shared_neighbours_by_sets() -> None:
    kg = little_world()
    table, size = NeighbourTable(kg), kg.num_entities
    links = [set() for _ in range(size)]
    for h, r, t in np.concatenate([kg.train, kg.valid, kg.test]).tolist():
        links[h].add((r, t))
        links[t].add((r + 4, h))
    holders = {link: sum(link in own for own in links) for own in links for link in own}
    weight = {link: math.log(size / k) / math.log(size) for link, k in holders.items()}
    pairs = np.array(list(combinations(range(size), 2)), np.int32)
    found = table.similarity(pairs)
    for (a, b), value in zip(pairs.tolist(), found, strict=True):
        both = sum(weight[link] for link in links[a] & links[b])
        least = min(sum(weight[link] for link in links[e]) for e in (a, b))
        assert value == pytest.approx(both / least * both / (1 + both) if both else 0.0, rel=1e-5)
        assert set(table.shared(a, b)) == links[a] & links[b]
    assert found.max() > 0.1


def test_what_is_said_twice_is_one_link() -> None:
    rows = [[0, 0, 2], [2, 1, 0], [1, 1, 2], [2, 0, 1]]
    kg = KnowledgeGraph.from_arrays("twice", vocabulary("abc"), vocabulary("rs", "relation"), rows)
    assert NeighbourTable(kg).shared(0, 1) == []
    assert NeighbourTable(kg, [RelationLogic(inverse=1), RelationLogic()]).shared(0, 1) == []
    same = KnowledgeGraph.from_arrays("same", kg.entities, kg.relations, [[0, 0, 2], [2, 1, 1]])
    assert NeighbourTable(same, [RelationLogic(inverse=1), RelationLogic()]).shared(0, 1) == [(0, 2)]
    mirrored = KnowledgeGraph.from_arrays("mirrored", kg.entities, kg.relations, [[0, 0, 2], [2, 0, 0], [2, 0, 1]])
    assert NeighbourTable(mirrored, [RelationLogic(symmetric=True), RelationLogic()]).shared(0, 1) == [(0, 2)]


def test_few_of_all_pairs_are_compared() -> None:
    rng = np.random.default_rng(0)
    counts = []
    for size in (500, 2000):
        names = ["".join(rng.choice(list("abcdefgh"), 9)) for _ in range(size)]
        triples = np.stack(
            [rng.integers(size, size=3 * size), np.zeros(3 * size, int), rng.integers(size, size=3 * size)], 1
        )
        kg = KnowledgeGraph.from_arrays("random", vocabulary(names), vocabulary(["r"], "relation"), triples)
        counts.append(len(candidate_pairs(NameTable(kg), NeighbourTable(kg), None)))
    assert counts[1] < 6 * counts[0]  # not 16 times


MUSIC = """@prefix : <http://e/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:born a owl:FunctionalProperty .
:b1 rdfs:label "Johann Sebastian Bach" ; a :Person ; :wrote :w1, :w2, :w3 ; :born :y1685 .
:b2 rdfs:label "BACH, Johann Sebastian" ; a :Person ; :wrote :w1, :w2 ; :born :y1685 .
:k1 rdfs:label "Carl Orff" ; a :Person ; :wrote :w4 ; :born :y1895 .
:k2 rdfs:label "Carl Orf" ; a :Person ; :wrote :w4 ; :born :y1900 .
:p1 rdfs:label "Purcell" ; a :Person ; :wrote :w5 ; :knows :p2 .
:p2 rdfs:label "Purcell" ; a :Person ; :wrote :w5 .
:v1 rdfs:label "Verdi" ; a :Person ; :wrote :w6 .
:v2 rdfs:label "Verdi" ; a :Ship ; :wrote :w6 .
:h1 rdfs:label "Holst" ; a :Person ; :wrote :w7 ; owl:sameAs :h2 .
:h2 rdfs:label "Holst" ; a :Person ; :wrote :w7 .
:w1 rdfs:label "Fugue" . :w2 rdfs:label "Passion" . :w3 rdfs:label "Mass" . :w4 rdfs:label "Songs" .
:w5 rdfs:label "Dido" . :w6 rdfs:label "Nabucco" . :w7 rdfs:label "Planets" .
"""


@pytest.fixture(scope="module")
def music(tmp_path_factory):
    folder = tmp_path_factory.mktemp("music")
    (folder / "music.ttl").write_text(MUSIC)
    return read_graph(folder / "music.ttl", ReadOptions(split="none"))


def completer_of(model, folder):
    folder.mkdir()
    model.save(folder / "model")
    return Completer(prepare(folder, model), folder)


def pair(duplicate):
    return "{} {}".format(*(id.removeprefix("http://e/") for id in (duplicate.entity, duplicate.duplicate)))


@pytest.mark.parametrize("kind", [WordVectors, PlainScores])
def test_objections_and_what_was_said_already(music, tmp_path, kind) -> None:
    duplicates = completer_of(kind(music), tmp_path / "run").duplicates(min_score=0)
    found = {pair(duplicate): duplicate for duplicate in duplicates}
    assert {name: found[name].objection for name in ("b1 b2", "k1 k2", "p1 p2", "v1 v2")} == {
        "b1 b2": None,
        "k1 k2": "different values of born: y1895, y1900",
        "p1 p2": "joined: Purcell – knows – Purcell",
        "v1 v2": "different types: Person; Ship",
    }
    assert "h1 h2" not in found
    assert found["b1 b2"].shared[-1].startswith("type – ")  # which most have
    assert set(found["b1 b2"].shared) == {"wrote – Fugue", "wrote – Passion", "born – y1685", "type – Person"}
    assert (found["b1 b2"].entity_degree, found["b1 b2"].duplicate_degree) == (5, 4)


@pytest.mark.parametrize("kind", [WordVectors, PlainScores])
def test_the_score_is_the_documented_one_and_orders_the_list(music, tmp_path, kind) -> None:
    completer = completer_of(kind(music), tmp_path / "run")
    duplicates = completer.duplicates(min_score=0)
    for one in duplicates:
        name, vector = (0.5 if value is None else value for value in (one.name_similarity, one.vector_similarity))
        x = -10 + 8 * name + 4 * vector + 5 * one.shared_similarity - 4 * (one.objection is not None)
        assert one.score == pytest.approx(1 / (1 + math.exp(-x)))
        assert (one.vector_similarity is None) == (kind is PlainScores)
    scores = [one.score for one in duplicates]
    assert scores == sorted(scores, reverse=True)
    assert pair(duplicates[0]) == "b1 b2"
    for n in (1, 3, 7):
        assert [one.score for one in completer.duplicates(n=n, min_score=0)] == scores[:n]
    least = scores[4]
    assert [one.score for one in completer.duplicates(min_score=least - 1e-9)] == [s for s in scores if s >= least]


def test_nearest_vectors_are_candidates(tmp_path, monkeypatch) -> None:
    kg = KnowledgeGraph.from_arrays("codes", *(little_world().entities, little_world().relations), little_world().train)
    model = WordVectors(kg)
    model.entity.data[33] = 2 * model.entity.data[8]
    completer = completer_of(model, tmp_path / "run")
    best = max(completer.duplicates(min_score=0), key=lambda one: one.vector_similarity)
    assert {best.entity, best.duplicate} == {"Q8", "Q33"}
    assert best.vector_similarity == pytest.approx(1)
    monkeypatch.setattr(vectors_module, "MOST_EXACT", 89)  # the exact index compares all, which is too much
    assert {"Q8", "Q33"} not in [{d.entity, d.duplicate} for d in completer.duplicates(min_score=0)]


def test_embeddings_without_texts(tmp_path) -> None:
    world = little_world()
    ids = [f"Q{i}" for i in range(90)]
    entities = Vocabulary.build("entity", pa.array(ids), pa.array(ids), pa.array([""] * 90))
    train = world.train[(world.train[:, ::2] != 50).all(1)]  # Q50 has no triple: its embedding is noise
    train = train[(train[:, ::2] != 4).all(1)]
    twin = train[(train[:, ::2] == 3).any(1)]
    train = np.concatenate([train, np.where(twin == 3, [4, 3, 4], twin)])  # Q4 has all that Q3 has
    kg = KnowledgeGraph.from_arrays("codes", entities, world.relations, train)
    model = EmbeddingModel(kg, EmbeddingConfig(dim=8))
    model.entities.weight.data[4] = model.entities.weight.data[3]
    model.entities.weight.data[50] = model.entities.weight.data[51]
    duplicates = completer_of(model, tmp_path / "run").duplicates(min_score=0)
    assert {duplicates[0].entity, duplicates[0].duplicate} == {"Q3", "Q4"}
    assert duplicates[0].name_similarity is None
    assert all("Q50" not in (one.entity, one.duplicate) for one in duplicates)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"n": 0}, "n is 0; ask for 1 to 1,000,000 pairs"),
        ({"min_score": 1.5}, "the least score is 1.5; give one from 0 to 1"),
        ({"out": "x.xlsx"}, "'x.xlsx' does not end in .csv"),
    ],
)
def test_what_cannot_be_looked_for_is_told(music, tmp_path, options, told) -> None:
    completer = completer_of(PlainScores(music), tmp_path / "run")
    with pytest.raises(SatkgcError, match=told):
        completer.duplicates(**options)
