"""Names made from ids and IRIs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satkgc.kg.readers.readable import readable


@pytest.mark.parametrize(
    ("id", "name"),
    [
        ("http://dbpedia.org/resource/Barack_Obama", "Barack Obama"),
        ("http://dbpedia.org/ontology/birthPlace", "birth place"),
        ("http://www.w3.org/2002/07/owl#sameAs", "same as"),
        ("http://xmlns.com/foaf/0.1/Person", "Person"),
        ("http://e.org/BarackObama", "Barack Obama"),
        ("http://e.org/hasDNASequence", "has DNA sequence"),
        ("http://e.org/XMLParser", "XML Parser"),
        ("http://e.org/S%C3%A3o_Paulo", "São Paulo"),
        ("http://e.org/a%2Fb", "a b"),
        ("http://e.org/things/", "things"),
        ("http://e.org/#", "e.org"),
        ("http://www.wikidata.org/entity/Q42", "Q42"),
        ("urn:isbn:0451450523", "0451450523"),
        ("_hypernym", "hypernym"),
        ("/people/person/place_of_birth", "people person place of birth"),
        ("bornIn", "born in"),
        ("new york", "new york"),
        ("iPhone of McDonald", "iPhone of McDonald"),
        ("dog.n.01", "dog.n.01"),
        ("12:30", "12:30"),
        ("note: this", "note: this"),
        ("___", "___"),
    ],
)
def test_examples(id: str, name: str) -> None:
    assert readable(id) == name


@given(st.text(min_size=1))
def test_never_empty_and_always_one_line_of_words(id: str) -> None:
    name = readable(id)
    assert name
    assert name == id or name == " ".join(name.split())
