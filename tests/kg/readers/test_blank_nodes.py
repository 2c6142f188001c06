"""Blank nodes without a name: which triples they stand for, in the words of small ontologies."""

from __future__ import annotations

from pathlib import Path

import forms
import pytest

from satkgc.kg.readers import ReadOptions, read_graph

HEAD = """@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . :x :knows :y .
"""
SHORT = {
    "http://e/": "",
    "http://www.w3.org/2000/01/rdf-schema#": "",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#": "",
}


def said(folder: Path, text: str) -> set[str]:
    """The triples that a text adds, in short."""
    (folder / "g.ttl").write_text(HEAD + text)
    graph = forms.said(read_graph(folder / "g.ttl", ReadOptions(split="none")))
    assert not any(id.startswith("_:") for id in graph.entities)
    lines = {" ".join(triple) for triple in graph.splits["train"]} - {"http://e/x http://e/knows http://e/y"}
    for long, short in SHORT.items():
        lines = {line.replace(long, short) for line in lines}
    return lines


@pytest.mark.parametrize(
    ("text", "triples"),
    [
        (":P rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :has ; owl:someValuesFrom :C ] .", {"P has C"}),
        (":P rdfs:subClassOf [ owl:onProperty :has ; owl:hasValue :i ] .", {"P has i"}),
        (":P rdfs:subClassOf [ owl:onProperty :has ; owl:onClass :C ; owl:minQualifiedCardinality 2 ] .", {"P has C"}),
        (
            ":P rdfs:subClassOf [ owl:onProperty :has ; owl:allValuesFrom [ a owl:Class ; owl:unionOf ( :C :D ) ] ] .",
            {"P has C", "P has D"},
        ),
        (
            ":V owl:equivalentClass [ a owl:Class ; owl:intersectionOf ( :P [ owl:onProperty :has ; "
            "owl:someValuesFrom :C ] [ owl:complementOf :M ] ) ] .",
            {"V subClassOf P", "V has C"},
        ),
        (
            ":V owl:intersectionOf ( :P [ owl:onProperty :has ; owl:someValuesFrom :C ] ) .",
            {"V subClassOf P", "V has C"},
        ),
        (":S owl:equivalentClass [ owl:unionOf ( :A :B ) ] .", {"A subClassOf S", "B subClassOf S"}),
        (":S owl:equivalentClass [ owl:oneOf ( :i :j ) ] .", {"i type S", "j type S"}),
        (":i a [ owl:onProperty :has ; owl:someValuesFrom :C ] .", {"i has C"}),
        (
            ":has rdfs:domain [ owl:unionOf ( :A :B ) ] ; rdfs:range :C .",
            {"has domain A", "has domain B", "has range C"},
        ),
        (":a :list ( :b [ :p :d ] :c ) .", {"a list b", "a list c", "a list/p d"}),
        (":a :address [ a :Address ; :city :c ; :geo [ :in :d ] ] .", {"a address/city c", "a address/geo/in d"}),
        (":a :weight [ rdf:value :heavy ; :unit :kg ] .", {"a weight heavy", "a weight/unit kg"}),
        ("_:m :place :c . :a :spouse _:m . :b :spouse _:m .", {"a spouse/place c", "b spouse/place c"}),
        # What says nothing: unions above, complements, datatypes, chains, axioms about axioms, nodes nobody points to.
        (":P rdfs:subClassOf [ owl:unionOf ( :A :B ) ] .", set()),
        (":P rdfs:subClassOf [ owl:complementOf :A ] .", set()),
        (":P rdfs:subClassOf [ owl:onProperty :age ; owl:someValuesFrom xsd:integer ] .", set()),
        (":P owl:propertyChainAxiom ( :a :b ) .", set()),
        ("[] a owl:AllDisjointClasses ; owl:members ( :A :B ) .", set()),
        ("[] a owl:Axiom ; owl:annotatedSource :A ; owl:annotatedTarget :B .", set()),
        ("_:l rdf:first :a ; rdf:rest _:l . :x :list _:l .", {"x list a"}),
        ("_:n :p _:n . :x :has _:n .", set()),
    ],
)
def test_rules(tmp_path: Path, text: str, triples: set[str]) -> None:
    assert said(tmp_path, text) == triples


def test_a_node_that_many_point_to_is_no_record(tmp_path: Path) -> None:
    some = "".join(f":a{i} :has _:n . " for i in range(8))
    assert len(said(tmp_path, f"_:n :of :b . {some}")) == 8
    assert said(tmp_path, f"_:n :of :b . {some} :z :has _:n .") == set()


def test_composed_relations_of_one_end_are_two(tmp_path: Path) -> None:
    triples = said(tmp_path, ":a :at [ :name :b ; <http://other/name> :c ] .")
    assert triples == {"a at/name b", "a at/http%3A%2F%2Fother%2Fname c"}


def test_composed_relations_can_be_excluded(tmp_path: Path) -> None:
    (tmp_path / "g.ttl").write_text(HEAD + ":a :at [ :city :c ; :land :d ] .")
    for exclude in ("http://e/at/city", "at city"):
        graph = read_graph(tmp_path / "g.ttl", ReadOptions(split="none", exclude=exclude))
        assert graph.relations.names.to_pylist() == ["knows", "at land"]
