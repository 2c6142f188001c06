"""Ontologies in functional syntax, Manchester syntax, OWL/XML and OBO, each a few lines of its kind."""

from __future__ import annotations

from pathlib import Path

import forms
import pytest

from satkgc.errors import SatkgcError
from satkgc.kg.readers import ReadOptions, owl_syntaxes, read_graph

TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
SUBCLASS = "http://www.w3.org/2000/01/rdf-schema#subClassOf"
FUNCTIONAL = """Prefix(:=<http://e/>)
Prefix(rdfs:=<http://www.w3.org/2000/01/rdf-schema#>)
Ontology(<http://e/pizzas>
Declaration(Class(:Pizza)) Declaration(ObjectProperty(:hasTopping))
AnnotationAssertion(rdfs:label :Pizza "a pizza :( ("@en)
SubClassOf(:Pizza :Food)
SubClassOf(:Margherita ObjectSomeValuesFrom(:hasTopping :Tomato))
EquivalentClasses(:Rosa ObjectIntersectionOf(:Pizza ObjectSomeValuesFrom(:hasTopping :Tomato)))
)
"""
MANCHESTER = """Prefix: : <http://e/>
Ontology: <http://e/pizzas>
ObjectProperty: :hasTopping
Class: :Food
Class: :Tomato
Class: :Pizza
  SubClassOf: :Food
Class: :Margherita
  SubClassOf: :hasTopping some :Tomato
Class: :Rosa
  EquivalentTo: :Pizza and (:hasTopping some :Tomato)
"""
XML = """<?xml version="1.0"?>
<Ontology xmlns="http://www.w3.org/2002/07/owl#" ontologyIRI="http://e/pizzas">
<SubClassOf><Class IRI="http://e/Pizza"/><Class IRI="http://e/Food"/></SubClassOf>
<SubClassOf><Class IRI="http://e/Margherita"/><ObjectSomeValuesFrom>
<ObjectProperty IRI="http://e/hasTopping"/><Class IRI="http://e/Tomato"/></ObjectSomeValuesFrom></SubClassOf>
<EquivalentClasses><Class IRI="http://e/Rosa"/><ObjectIntersectionOf><Class IRI="http://e/Pizza"/>
<ObjectSomeValuesFrom><ObjectProperty IRI="http://e/hasTopping"/><Class IRI="http://e/Tomato"/></ObjectSomeValuesFrom>
</ObjectIntersectionOf></EquivalentClasses>
</Ontology>
"""
OBO = """format-version: 1.2
ontology: go

[Term]
id: GO:1
name: mitochondrion inheritance
def: "The distribution of mitochondria." [GOC:mcc]
synonym: "mitochondrial inheritance" EXACT []
is_a: GO:2 ! organelle inheritance
relationship: part_of GO:3

[Term]
id: GO:2
name: organelle inheritance

[Typedef]
id: part_of
name: part of
"""
PIZZAS = {
    ("http://e/Pizza", SUBCLASS, "http://e/Food"),
    ("http://e/Margherita", "http://e/hasTopping", "http://e/Tomato"),
    ("http://e/Rosa", SUBCLASS, "http://e/Pizza"),
    ("http://e/Rosa", "http://e/hasTopping", "http://e/Tomato"),
}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.ofn", FUNCTIONAL), ("g.owl", FUNCTIONAL), ("g.omn", MANCHESTER), ("g.owl", MANCHESTER),
        ("g.owx", XML), ("g.owl", "\ufeff" + XML),
    ],
)  # fmt: skip
def test_three_syntaxes_say_the_same(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    graph = forms.said(read_graph(tmp_path / name, ReadOptions(split="none")))
    assert {triple for triple in graph.splits["train"] if triple[1] != TYPE} == PIZZAS
    if text == FUNCTIONAL:
        assert graph.entities["http://e/Pizza"] == ("a pizza :( (", "")


def test_obo(tmp_path: Path) -> None:
    (tmp_path / "go.obo").write_text(OBO)
    graph = forms.said(read_graph(tmp_path / "go.obo", ReadOptions(split="none", exclude="rdf:type")))
    go = "http://purl.obolibrary.org/obo/"
    assert set(graph.splits["train"]) == {
        (f"{go}GO_1", SUBCLASS, f"{go}GO_2"),
        (f"{go}GO_1", f"{go}go#part_of", f"{go}GO_3"),
    }
    texts = ("mitochondrion inheritance", "also called mitochondrial inheritance; The distribution of mitochondria.")
    assert graph.entities[f"{go}GO_1"] == texts
    assert graph.relations[f"{go}go#part_of"] == "part of"


def test_what_is_wrong_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = FUNCTIONAL.replace("SubClassOf(:Pizza :Food)", "SubClassOf(:Pizza")
    deep = FUNCTIONAL.replace(":Food", "ObjectComplementOf(" * 9999 + ":Food" + ")" * 9999)
    for text, message in ((cut, r"g\.ofn:\d+: not OWL in functional syntax"), (deep, r"g\.ofn:6: brackets too deep")):
        (tmp_path / "g.ofn").write_text(text)
        with pytest.raises(SatkgcError, match=message):
            read_graph(tmp_path / "g.ofn")
    monkeypatch.setattr(owl_syntaxes, "find_spec", lambda name: None)
    with pytest.raises(SatkgcError, match=r"pip install 'satkgc\[owl\]', or convert it with ROBOT: robot convert -i"):
        read_graph(tmp_path / "g.ofn")
