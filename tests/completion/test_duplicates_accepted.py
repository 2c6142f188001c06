"""From a reviewed table of duplicates to owl:sameAs, a map, and a merged graph."""

from __future__ import annotations

import csv

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from little_world import little_world
from satkgc.completion.duplicates import (
    Duplicate,
    accept_duplicates,
    is_duplicates_file,
    merge_duplicates,
    write_duplicates,
)
from satkgc.completion.duplicates.accept import AcceptedPair, merge_map
from satkgc.errors import SatkgcError
from satkgc.kg import SPLITS, KnowledgeGraph, Vocabulary, merge_entities


def duplicate(entity, other, degrees=(5, 2)):
    return Duplicate(entity, other, f"={entity}", "b", 0.9, 1.0, None, 0.2, ("r – c",), None, *degrees, "", "")


def review(path, pairs, verdicts, delimiter=","):
    """The table as `satkgc duplicates` writes it and a spreadsheet saves it."""
    write_duplicates(path, pairs)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["accept"] for row in rows] == [""] * len(pairs)
    for row, verdict in zip(rows, verdicts, strict=True):
        row["accept"] = verdict
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_same_as_and_a_map(tmp_path, delimiter) -> None:
    pairs = [duplicate("http://e/a", "http://e/b"), duplicate("http://e/b", "-3", (2, 1)), duplicate("x", "y")]
    table = review(tmp_path / "same.csv", pairs, ("yes", "X", "no"), delimiter)
    assert is_duplicates_file(table)
    assert accept_duplicates(table, tmp_path / "same.nt") == (2, 3)
    same = "<http://www.w3.org/2002/07/owl#sameAs>"
    assert (tmp_path / "same.nt").read_text().splitlines() == [
        f"<http://e/b> {same} <http://e/a> .",
        f"<urn:satkgc:entity:-3> {same} <http://e/b> .",
    ]
    accept_duplicates(table, tmp_path / "same.tsv")
    assert (tmp_path / "same.tsv").read_text() == "http://e/b\thttp://e/a\n-3\thttp://e/a\n"  # a chain has one end


def test_ids_that_differ_in_spaces_are_two(tmp_path) -> None:
    table = review(tmp_path / "same.csv", [duplicate("b", " b"), duplicate("a ", "c")], ("yes", "yes"))
    accept_duplicates(table, tmp_path / "same.tsv")
    assert (tmp_path / "same.tsv").read_text() == " b\tb\nc\ta \n"


def test_cells_that_would_be_formulas_are_escaped(tmp_path) -> None:
    write_duplicates(tmp_path / "same.csv", [duplicate("=1+1", "@b")])
    (row,) = csv.DictReader((tmp_path / "same.csv").open(newline=""))
    assert (row["entity"], row["duplicate"], row["entity_name"]) == ("'=1+1", "'@b", "'==1+1")
    assert (row["score"], row["vector_similarity"], row["shared"]) == ("0.9000", "", "r – c")


def test_the_one_with_most_neighbours_is_kept() -> None:
    pairs = [AcceptedPair("a", "b", (3, 1)), AcceptedPair("c", "b", (9, 1)), AcceptedPair("c", "d", (9, 9))]
    assert merge_map(pairs) == dict.fromkeys("abd", "c")
    circle = [AcceptedPair("a", "b"), AcceptedPair("b", "a")]  # as a person may have written it
    assert merge_map(circle) == {"b": "a"}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda p: p[0] != p[1]), min_size=1))
def test_a_map_joins_what_pairs_join(rows) -> None:
    into = merge_map([AcceptedPair(str(a), str(b)) for a, b in rows])
    assert not set(into) & set(into.values())
    component = {i: {i} for i in range(10)}
    for _ in range(10):
        for a, b in rows:
            component[a] = component[b] = component[a] | component[b]
    for a in range(10):
        for b in range(10):
            assert (into.get(str(a), str(a)) == into.get(str(b), str(b))) == (b in component[a] or a in component[b])


def id_triples(kg, split):
    return [(kg.entities.id(h), kg.relations.id(r), kg.entities.id(t)) for h, r, t in kg.split(split).tolist()]


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.integers(0, 44), st.integers(45, 89), min_size=1, max_size=30))
def test_a_merge_by_sets(into) -> None:
    kg = little_world()
    merged = merge_entities(kg, into)
    named = {kg.entities.id(a): kg.entities.id(b) for a, b in into.items()}
    seen = set()
    for split in ("train", "valid", "test"):
        expected = []
        for h, r, t in id_triples(kg, split):
            new = named.get(h, h), r, named.get(t, t)
            if (new[0] != new[2] or h == t) and new not in seen:
                expected.append(new)
                seen.add(new)
        assert id_triples(merged, split) == expected
    assert merged.entities.ids.to_pylist() == [id for id in kg.entities.ids.to_pylist() if id not in named]
    for i, id in enumerate(merged.entities.ids.to_pylist()):
        own = kg.entities.index(id)
        others = [kg.entities.description(a) for a in sorted(into) if into[a] == own]
        texts = [text for text in (kg.entities.description(own), *others) if text]
        assert merged.entities.description(i) == (texts[0] if texts else "")


def test_splits_of_entities_are_merged_too() -> None:
    entities = Vocabulary.build("entity", pa.array(list("abcd")), pa.array(list("abcd")), pa.array([""] * 4))
    relations = Vocabulary.build("relation", pa.array(["r"]), pa.array(["r"]), pa.array([""]))
    held_out = {"test": np.array([2, 3], np.int32)}
    kg = KnowledgeGraph.from_arrays("g", entities, relations, [[0, 0, 1]], None, [[3, 0, 2]], held_out, [[2, 0, 1]])
    merged = merge_entities(kg, {3: 0})
    assert merged.split_entities["test"].tolist() == [0, 2]
    assert {split: id_triples(merged, split) for split in SPLITS} == {
        "train": [("a", "r", "b")],
        "valid": [],
        "test": [("a", "r", "c")],
        "inference": [("c", "r", "b")],
    }


def test_a_graph_is_merged_once(tmp_path) -> None:
    kg = little_world().save(tmp_path / "graph")
    table = review(tmp_path / "same.csv", [duplicate("Q41", "Q7"), duplicate("Q1", "nowhere")], ("yes", "yes"))
    count, merged = merge_duplicates(table, tmp_path / "graph")
    assert (count, merged.num_entities) == (1, kg.num_entities - 1)
    again = KnowledgeGraph.load(tmp_path / "graph")
    assert again.entities.find("Q7") is None
    assert set(id_triples(again, "train")) == set(id_triples(merged, "train"))
    assert merge_duplicates(table, tmp_path / "graph")[0] == 0


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("out.nt", lambda text: text.replace(",yes,", ",maybe,"), "same.csv:2: accept is 'maybe'; write yes"),
        ("out.nt", lambda text: text.replace(",yes,", ",,"), "no row says yes in column 'accept'"),
        ("out.nt", lambda text: text.replace("Q41,Q7", "Q41,Q41"), "same.csv:2: not a pair of two entities"),
        ("out.nt", lambda text: text.replace("duplicate,", "copy,", 1), "there is no column 'duplicate'"),
        ("out.docx", str, "cannot tell the form of 'out.docx'; end its name in .nt"),
        ("same.csv", str, "cannot tell the form of 'same.csv'"),
    ],
)
def test_what_cannot_be_accepted_is_told(tmp_path, name, change, told) -> None:
    table = review(tmp_path / "same.csv", [duplicate("Q41", "Q7")], ("yes",))
    table.write_text(change(table.read_text(encoding="utf-8-sig")))
    with pytest.raises(SatkgcError, match=told):
        accept_duplicates(table, tmp_path / name)


def test_a_graph_that_cannot_be_merged_is_told(tmp_path) -> None:
    table = review(tmp_path / "same.csv", [duplicate("Q41", "Q7")], ("yes",))
    with pytest.raises(SatkgcError, match="no graph here; give one that `satkgc kg import` wrote"):
        merge_duplicates(table, tmp_path / "graph")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(SatkgcError, match="this is the graph of a run"):
        merge_duplicates(table, tmp_path / "graph")
