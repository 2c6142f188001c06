"""Graphs that take in what is new, against sets of statements in words."""

from __future__ import annotations

import numpy as np
import pytest

from graphs import graph_of, random_graph
from satkgc.errors import SatkgcError
from satkgc.kg import SPLITS, KnowledgeGraph, grow, read_more


def statements(kg: KnowledgeGraph, *splits: str) -> set[tuple[str, str, str]]:
    return {
        (kg.entities.id(h), kg.relations.id(r), kg.entities.id(t))
        for split in splits or SPLITS
        for h, r, t in kg.split(split).tolist()
    }


def table(folder, text, name="more.csv"):
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.parametrize("seed", range(4))
def test_old_numbers_stay_and_every_statement_is_there_once(seed):
    old = random_graph(seed, 30, 3, 60)
    rows = np.random.default_rng(seed).permutation(random_graph(seed + 10, 50, 5, 80).train)
    more = graph_of(rows[:50], 50, 5, valid=rows[40:70], test=rows[60:])
    growth = grow(old, more, new_relations=True)
    kg = growth.kg
    assert kg.entities.ids.to_pylist()[:30] == old.entities.ids.to_pylist()
    assert kg.relations.ids.to_pylist()[:3] == old.relations.ids.to_pylist()
    assert statements(kg) == statements(old) | statements(more)
    assert sum(len(kg.split(split)) for split in SPLITS) == len(statements(kg))
    assert statements(kg, "train") == statements(old) | statements(more, "train")
    assert (growth.entities, growth.relations) == (20, 2)
    assert growth.triples == len(statements(more) - statements(old))
    np.testing.assert_array_equal(kg.train[: len(old.train)], old.train)


def test_what_a_held_out_split_has_is_not_moved_to_train():
    old = graph_of([[0, 0, 1]], 3, valid=[[1, 0, 2]])
    growth = grow(old, graph_of([[1, 0, 2], [0, 0, 1]], 3))
    assert not growth
    np.testing.assert_array_equal(growth.kg.train, old.train)


def test_texts_are_filled_in_and_corrected_only_on_demand(tmp_path):
    old = graph_of([[0, 0, 1]], 3)
    texts = "id,name,description\ne1,entity e1,one\ne3,third,\n"
    filled = grow(old, read_more([], {"entities": [table(tmp_path, texts)]}))
    assert filled.kg.entities.descriptions.to_pylist() == ["", "one", "", ""]
    assert filled.kg.entities.names.to_pylist()[1::2] == ["entity e1", "third"]
    assert (filled.texts, filled.entities, filled.triples) == (1, 1, 0)
    other = read_more([], {"entities": [table(tmp_path, "id,name,description\ne1,uno,\n")]})
    with pytest.raises(SatkgcError, match=r"entity 'e1' is 'entity e1' in the graph and 'uno' here") as told:
        grow(filled.kg, other, shown="more.csv")
    assert "--correct" in str(told.value)
    assert str(told.value).startswith("more.csv")
    corrected = grow(filled.kg, other, correct=True).kg.entities
    assert (corrected.name(1), corrected.description(1)) == ("uno", "one"), "an empty description says nothing"
    contradiction = read_more([], {"entities": [table(tmp_path, "id,name,description\ne1,,two\n")]})
    with pytest.raises(SatkgcError, match="'one' in the graph and 'two' here"):
        grow(filled.kg, contradiction)


def test_ids_alone_contradict_nothing(tmp_path):
    old = graph_of([[0, 0, 1]], 3)
    growth = grow(old, read_more([table(tmp_path, "head,relation,tail\ne1,r0,e2\nnew_one,r0,e0\n")], {}))
    assert growth.kg.entities.names.to_pylist() == [*old.entities.names.to_pylist(), "new one"]
    assert str(growth) == "2 new triples, 1 new entity"


def test_triples_may_name_what_a_table_of_new_entities_does_not_list(tmp_path):
    triples = table(tmp_path, "head,relation,tail\nx,r0,e2\n")
    more = read_more([triples], {"entities": [table(tmp_path, "id,name\nx,the x\n", "entities.csv")]})
    assert grow(graph_of([[0, 0, 1]], 3), more).kg.entities.names.to_pylist()[2:] == ["entity e2", "the x"]


def test_a_relation_that_the_graph_lacks_is_refused_with_what_looks_like_it():
    old = graph_of([[0, 0, 1]], 3, 12)
    more = graph_of([[0, 12, 1], [0, 12, 2]], 3, 13)
    with pytest.raises(SatkgcError, match=r"no relation 'r12', which 2 triples have; did you mean 'r2' or 'r1'"):
        grow(old, more)
    assert grow(old, more, new_relations=True).relations == 1


def test_accepted_rdf_of_a_graph_without_iris_is_told_what_to_give_instead(tmp_path):
    (tmp_path / "accepted.nt").write_text("<urn:satkgc:entity:e0> <urn:satkgc:relation:r0> <urn:satkgc:entity:e1> .\n")
    more = KnowledgeGraph.load(tmp_path / "accepted.nt", split="none")
    with pytest.raises(SatkgcError, match=r"`satkgc accept FILE OUT.csv` keeps those of the graph"):
        grow(graph_of([[0, 0, 1]], 3), more)


def test_nothing_to_read_and_inductive_graphs_are_refused():
    with pytest.raises(SatkgcError, match="nothing to take in"):
        read_more([], {})
    inductive = KnowledgeGraph.from_arrays(
        "inductive", (one := graph_of([[0, 0, 1]], 3)).entities, one.relations, one.train, [[2, 0, 1]], [],
        {"valid": np.array([2], np.int32)},
    )  # fmt: skip
    with pytest.raises(SatkgcError, match="an inductive graph takes in nothing"):
        grow(inductive, one)
