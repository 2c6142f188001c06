"""Literals as words behind descriptions: the exact texts, what bounds them, what is refused."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.kg.readers.literals import LETTERS, LONGEST, MOST, XSD, format_literal

LOVELACE = """@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
:ada :livedIn :london ; rdfs:label "Ada Lovelace" ; rdfs:comment "English mathematician" ; skos:altLabel "Ada Byron" ;
  :born "1815-12-10"^^xsd:date ; :motto "Poetical science"@en, "Science poétique"@fr ; :code "x"^^:own .
:london :population 3769495 ; :area 1572.03 ; :seen "2024-05-01T12:30:00Z"^^xsd:dateTime .
:population rdfs:label "number of people" .
"""


@pytest.fixture
def described(tmp_path):
    """Descriptions by the ends of ids."""

    def run(text=LOVELACE, **options):
        (tmp_path / "g.ttl").write_text(text)
        kg = KnowledgeGraph.load(tmp_path / "g.ttl", split="none", **options)
        ids = [id.removeprefix("http://e/") for id in kg.entities.ids.to_pylist()]
        return dict(zip(ids, kg.entities.descriptions.to_pylist(), strict=True))

    return run


def test_all_literals(described, caplog) -> None:
    with caplog.at_level(logging.WARNING):
        assert described(literals="all") == {
            "ada": "also called Ada Byron; English mathematician; born 1815-12-10; motto Poetical science",
            "london": "number of people 3,769,495; area 1,572.03; seen 2024-05-01 12:30",
            "population": "",
        }
    assert "left out of the graph: 2 literals (1 of http://e/motto, 1 of http://e/code)" in caplog.text


def test_some_literals_by_iri_and_prefix(described, caplog) -> None:
    with caplog.at_level(logging.WARNING):
        texts = described(literals=["http://e/born", ":area"], languages=["fr"])
    assert texts["ada"].endswith("English mathematician; born 1815-12-10")
    assert texts["london"] == "area 1,572.03"
    assert "left out of the graph: 5 literals" in caplog.text
    assert described(literals=["http://e/motto"], languages=["fr"])["ada"].endswith("; motto Science poétique")


def test_without_the_option_descriptions_are_as_they_were(described) -> None:
    also = "also called Ada Byron; English mathematician"
    assert described() == {"ada": also, "london": "", "population": ""}


def test_a_long_literal_is_cut_and_told(described, caplog) -> None:
    text = f'@prefix : <http://e/> . :a :r :b ; :note "{"word " * 2_000_000}" .'  # 10 MB
    with caplog.at_level(logging.WARNING):
        note = described(text, literals="all")["a"]
    assert note == "note " + ("word " * 19).strip() + "…"
    assert len(note) <= LONGEST + len("note ")
    assert "1 literal cut short or left out of long descriptions" in caplog.text


def test_many_literals_are_bounded_in_number_and_characters(described, caplog) -> None:
    values = ", ".join(str(i) for i in range(100))
    with caplog.at_level(logging.WARNING):
        text = described(f"@prefix : <http://e/> . :a :r :b ; :n {values} .", literals="all")["a"]
    assert text == "; ".join(f"n {i}" for i in range(MOST))
    assert "84 literals cut short or left out" in caplog.text
    words = ", ".join(f'"{chr(97 + i) * 90}"' for i in range(9))
    text = described(f"@prefix : <http://e/> . :a :r :b ; :n {words} .", literals="all")["a"]
    assert text == "; ".join(f"n {chr(97 + i) * 90}" for i in range(4))
    assert len(text) <= LETTERS


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ("+0042", "integer", "42"),
        ("-1234567", "int", "-1,234,567"),
        ("1.50E3", "double", "1,500"),
        ("0.250", "decimal", "0.25"),
        ("1e300", "double", "1e300"),
        ("NaN", "double", "NaN"),
        ("many", "integer", "many"),
        ("1815-12-10Z", "date", "1815-12-10"),
        ("-0044-03-15", "date", "-0044-03-15"),
        ("2024-05-01T00:00:00+02:00", "dateTime", "2024-05-01"),
        ("1815", "gYear", "1815"),
        (" two\n words ", "string", "two words"),
        ("aGk=", "base64Binary", None),
        ("  ", "string", None),
    ],
)
def test_values_as_people_write_them(value, kind, text) -> None:
    assert format_literal(value, XSD + kind) == text


@given(st.integers(-(10**18), 10**18))
def test_whole_numbers_have_separators(number) -> None:
    assert format_literal(str(number), XSD + "integer") == f"{number:,}"


def test_what_is_not_there_or_says_nothing_is_refused(described, tmp_path) -> None:
    with pytest.raises(SatkgcError, match=r"no statement has the predicate http://e/bron; did you mean http://e/born"):
        described(literals=["http://e/bron"])
    (tmp_path / "t.csv").write_text("head,relation,tail\na,r,b\n")
    with pytest.raises(SatkgcError, match="--literal says nothing of tables; leave it out; it is for RDF"):
        KnowledgeGraph.load(tmp_path / "t.csv", literals=["x"])
