"""Finding entities by what is typed, against scans of all names."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satkgc.completion import AmbiguousNameError, UnknownNameError
from satkgc.completion.names import Names
from satkgc.completion.search import EntitySearch, _bits, _overlap, _sign, name_match
from satkgc.kg import KnowledgeGraph, Vocabulary

NAMES = [
    "Leonardo da Vinci", "Leonardo DiCaprio", "Vinci", "Mona Lisa", "Lisa", "Österreich", "Zürich", "Zug", "New York",
    "New York City", "Newark", "newt", "NEW", "", "São Paulo", "東京", "東京タワー", "vincible", "covincing", "a_b-c",
]  # fmt: skip


def search_over(names, degree=None):
    ids = pa.array([f"id{i}" for i in range(len(names))])
    vocabulary = Vocabulary.build("entity", ids, pa.array(names), pa.array([""] * len(names)))
    return EntitySearch.build(vocabulary, np.zeros(len(names), np.int32) if degree is None else degree)


@pytest.fixture(scope="module")
def search():
    return search_over(NAMES, np.arange(len(NAMES), dtype=np.int32))


def names_of(search, text, limit=10):
    return [search.entities.name(i) for i in search.search(text, limit)]


def test_prefixes_whole_names_first_then_the_most_linked(search):
    assert names_of(search, "new")[:5] == ["NEW", "newt", "Newark", "New York City", "New York"]
    assert names_of(search, "LEONARDO")[:2] == ["Leonardo DiCaprio", "Leonardo da Vinci"]
    assert names_of(search, "zü")[0] == "Zürich"
    assert names_of(search, "東")[:2] == ["東京タワー", "東京"]
    assert names_of(search, "ö")[0] == "Österreich"


def test_ids(search):
    assert search.search("id3", 5)[0] == 3
    assert set(search.search("id1", 20)) >= {1, *range(10, 20)}
    assert search.search("id1", 3)[0] == 1


def test_mistyped_iris():
    base = "http://data.example/place/"
    ids = [base + name for name in ("K%C3%B6ln", "Munich", "inv-0005", "inv-0050", "Augsburg")] + ["http://other/K"]
    vocabulary = Vocabulary.build("entity", pa.array(ids), pa.array([f"n{i}" for i in range(6)]), pa.array([""] * 6))
    search = EntitySearch.build(vocabulary, np.zeros(6, np.int32))
    assert search.search(base + "Köln", 3)[0] == 0
    assert search.search(base + "K%c3%b6ln", 3)[0] == 0
    assert search.search(base + "Munch", 3)[0] == 1
    assert set(search.search(base + "inv-005", 2)) == {2, 3}
    assert search.search(base + "Timbuktu", 3) == []
    assert search.search("http://nowhere.example/Munich", 3) == []


def test_the_last_part_of_an_iri():
    base = "http://e.org/entity/"
    ids = [base + "Q1", base + "Q12", base + "P#Q12", "wd:Q3", "Q4", "http://e.org/", base + "Q4"]
    names = ["Q1 of all", "a", "Q3", "b", "Q1", "Q12 again", "q4"]
    vocabulary = Vocabulary.build("entity", pa.array(ids), pa.array(names), pa.array([""] * 7))
    search = EntitySearch.build(vocabulary, np.array([9, 1, 2, 0, 0, 9, 0], np.int32))
    assert search.search("Q1", 3) == [0, 4, 5]  # before the name
    assert search.search("Q12", 3) == [2, 1, 5]
    assert search.search("Q3", 2) == [3, 2]
    assert [search.last_part(text).tolist() for text in ("Q12", "2", "", "entity/Q1")] == [[1, 2], [], [], [0]]
    # A question may name an entity so, unless an id or a name is the same.
    kg = KnowledgeGraph.from_arrays("g", vocabulary, vocabulary, np.zeros((1, 3), np.int32))
    known = Names(kg, search)
    assert [known.entity(text) for text in ("entity/Q1", "Q1", "Q4", "wd:Q3", "Q3")] == [0, 4, 4, 3, 2]
    with pytest.raises(AmbiguousNameError, match="Q12"):
        known.entity("Q12")
    with pytest.raises(UnknownNameError):
        known.entity("")


def test_misspelt_and_inner_words_are_found(search):
    assert names_of(search, "Lenardo da Vinci")[0] == "Leonardo da Vinci"
    assert names_of(search, "vinchi")[0] == "Vinci"
    assert "Leonardo da Vinci" in names_of(search, "vinci")
    assert names_of(search, "dicaprio")[0] == "Leonardo DiCaprio"
    assert names_of(search, "york ciy")[0] == "New York City"
    assert names_of(search, "Osterreich")[0] == "Österreich"


def test_nothing_comes_of_nothing(search):
    assert search.search("", 5) == []
    assert search.search("   ", 5) == []
    assert search.search("qqqqxxxx", 5) == []
    assert len(search.search("x" * 100_000, 5)) == 0
    assert search_over([]).search("a", 5) == []


@settings(max_examples=50)
@given(st.lists(st.text("abAB é_", max_size=4), min_size=1, max_size=30), st.text("abAB é_", min_size=1, max_size=3))
def test_every_name_that_begins_so_is_found(names, text):
    search = search_over(names)
    text = text.strip()
    expected = {i for i, name in enumerate(names) if name.lower().startswith(text.lower())} if text else set()
    found = search.search(text, 100)
    assert len(set(found)) == len(found)
    assert set(found[: len(expected)]) == expected
    if text:
        assert search.by_name(text) == [i for i, name in enumerate(names) if name.lower() == text.lower()]


def test_limits_keep_the_most_linked():
    rng = np.random.default_rng(0)
    degree = rng.permutation(5000).astype(np.int32)
    search = search_over([f"ab{i:04}" for i in range(5000)], degree)
    assert search.search("ab", 7) == np.argsort(-degree)[:7].tolist()


def trigrams(text):
    spaced = "".join(c if c.isalnum() else " " for c in f"  {text.lower()} ")  # two before: a first letter counts more
    return {spaced[i : i + 3] for i in range(len(spaced) - 2) if spaced[i + 1 : i + 3].strip()}


def test_signs_are_sets_of_trigrams():
    words = ["leonardo", "leonard", "abc", "xyz"]
    letters = np.frombuffer("".join(words).encode(), np.uint8)
    signs = _sign(letters, np.cumsum([0, *map(len, words)]))
    bits = [sum(int(_bits(part)) for part in sign) for sign in signs]
    for word, count in zip(words, bits, strict=True):
        assert len(trigrams(word)) - 1 <= count <= len(trigrams(word))  # two trigrams may share a bit
    like = _overlap(signs, signs[0])
    assert like[0] == pytest.approx(1.25)
    assert like[0] > like[1] > like[2] == like[3] == 0
    rng = np.random.default_rng(1)
    for number in rng.integers(0, 2**63, 20):
        assert _bits(np.uint64(number)) == int(number).bit_count()


def test_it_is_mapped_from_what_was_saved(tmp_path, search):
    search.save(tmp_path)
    again = EntitySearch.open(tmp_path, search.entities, search.degree)
    assert isinstance(again.trigrams, np.memmap)
    for text in ("new", "vinchi", "id7"):
        assert again.search(text, 10) == search.search(text, 10)


def test_names_outside_the_index():
    assert name_match("zan", "Zanzibar") == 1
    assert 0.6 < name_match("zanzbar", "Zanzibar") < 1
    assert name_match("paris", "Zanzibar") == 0


def test_relations_and_entities_with_a_prefix():
    """Usual prefixes are known; any other stands for what comes before the last part of an id."""
    rdf, owl = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2002/07/owl#"
    ids = [f"{owl}Class", "http://e/cat"]
    entities = Vocabulary.build("entity", ids, ["class", "cat"], ["", ""])
    relations = Vocabulary.build(
        "relation", [f"{rdf}type", "http://e/madeBy", "http://f/madeBy", "http://e/of"], list("abcd"), [""] * 4
    )
    kg = KnowledgeGraph.from_arrays("g", entities, relations, [(1, 0, 0), (1, 1, 0), (1, 2, 0), (1, 3, 0)])
    names = Names(kg, EntitySearch.build(kg.entities, kg.adjacency.degree))
    assert [names.relation(ref) for ref in ("rdf:type", f"{rdf}type", "e:of")] == [0, 0, 3]
    assert names.entity("owl:Class") == 0
    with pytest.raises(AmbiguousNameError, match="e:madeBy"):
        names.relation("e:madeBy")
    with pytest.raises(UnknownNameError, match="e:nothing"):
        names.relation("e:nothing")
