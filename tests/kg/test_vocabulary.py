"""Looking up members by id and by name; names made from ids and IRIs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kg_graphs import TEXT, vocabulary

from satkgc import SatkgcError
from satkgc.kg.vocabulary import name_from_id


@settings(max_examples=40)
@given(st.lists(TEXT, min_size=1, max_size=12, unique=True), st.data())
def test_every_id_and_name_is_found_and_no_other(ids: list[str], data: st.DataObject) -> None:
    names = data.draw(st.lists(TEXT, min_size=len(ids), max_size=len(ids)))
    members = vocabulary("entity", ids, names)
    other = data.draw(TEXT)
    for i, id in enumerate(ids):
        assert members.find(id) == members.index(id) == i
        assert members.by_name(names[i]).tolist() == [j for j, name in enumerate(names) if name == names[i]]
        assert (members.id(i), members.name(i)) == (id, names[i])
    assert (members.find(other) is not None) == (other in ids)
    assert members.by_name(other).tolist() == [j for j, name in enumerate(names) if name == other]


@pytest.mark.parametrize("size", [50, 30_000])
def test_an_unknown_id_is_answered_with_its_likes(size: int) -> None:
    members = vocabulary("entity", [f"city_{i:05}" for i in range(size)])
    with pytest.raises(SatkgcError, match=r"unknown entity 'city_00017x'; did you mean .*'city_00017'"):
        members.index("city_00017x")
    with pytest.raises(SatkgcError, match="no entity id looks like it"):
        members.index("ÄÖÜ")


def test_ids_must_be_distinct_and_every_member_needs_its_texts() -> None:
    with pytest.raises(SatkgcError, match="relation 'b' is listed twice"):
        vocabulary("relation", ["b", "a", "b"])
    with pytest.raises(SatkgcError, match="different lengths"):
        vocabulary("relation", ["a", "b"], ["only one"])


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
        ("ATP5PD", "ATP5PD"),  # a code, not words
        ("http://e.org/part2Of", "part2 of"),
        ("12:30", "12:30"),
        ("note: this", "note: this"),
        ("___", "___"),
    ],
)
def test_names_from_ids(id: str, name: str) -> None:
    assert name_from_id(id) == name


@given(st.text(min_size=1))
def test_a_name_from_an_id_is_never_empty_and_always_one_line_of_words(id: str) -> None:
    name = name_from_id(id)
    assert name
    assert name == id or name == " ".join(name.split())
