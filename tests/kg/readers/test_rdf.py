"""What RDF statements become, which named graphs are read, and XML entities that grow."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import forms
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satkgc.errors import SatkgcError
from satkgc.kg.readers import ReadOptions, rdf, read_graph
from satkgc.kg.readers.guards import LONGEST_ENTITY, XmlGuard

PREFIXES = """@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix schema: <http://schema.org/> .
@prefix schemas: <https://schema.org/> . @prefix foaf: <http://xmlns.com/foaf/0.1/> .
@prefix dct: <http://purl.org/dc/terms/> . @prefix oboInOwl: <http://www.geneontology.org/formats/oboInOwl#> .
:a :knows :b .
"""


@pytest.fixture
def turtle(tmp_path: Path):  # type: ignore[no-untyped-def]
    """Read statements that follow the prefixes and :a :knows :b."""

    def run(text: str, **options: object) -> forms.Source:
        (tmp_path / "g.ttl").write_text(PREFIXES + text)
        return forms.said(read_graph(tmp_path / "g.ttl", ReadOptions(split="none", **options)))  # type: ignore[arg-type]

    return run


@pytest.mark.parametrize(
    "predicate", ["rdfs:label", "skos:prefLabel", "schema:name", "schemas:name", "foaf:name", "dct:title"]
)
def test_names(turtle, predicate: str) -> None:  # type: ignore[no-untyped-def]
    source = turtle(f':a {predicate} "Ann  of\\n Green Gables" .')
    assert source.entities == {"http://e/a": ("Ann of Green Gables", ""), "http://e/b": ("b", "")}
    assert source.splits["train"] == [("http://e/a", "http://e/knows", "http://e/b")]


@pytest.mark.parametrize(
    "predicate",
    [
        "schema:description", "schemas:description", "rdfs:comment", "dct:description", "skos:definition",
        "skos:scopeNote", "skos:note", "dct:abstract", "oboInOwl:hasDefinition",
    ],
)  # fmt: skip
def test_descriptions(turtle, predicate: str) -> None:  # type: ignore[no-untyped-def]
    assert turtle(f':a {predicate} "a girl" .').entities["http://e/a"] == ("a", "a girl")


@pytest.mark.parametrize(
    ("languages", "labels", "chosen"),
    [
        (("en",), '"Wien"@de, "Vienna"@en, "Vindobona"', "Vienna"),
        (("en",), '"Wien"@de, "Vindobona"', "Vindobona"),
        (("en",), '"Wien"@de, "Vienne"@fr', "Wien"),
        (("en",), '"color"@en-US, "Farbe"@de', "color"),
        (("en",), '"colour"@en-GB, "color"@en', "color"),
        (("en",), '"x"@eng, "Vindobona"', "Vindobona"),
        (("fr", "de"), '"Wien"@de, "Vienna"@en, "Vienne"@fr', "Vienne"),
        (("fr", "de"), '"Wien"@de, "Vienna"@en, "Vindobona"', "Wien"),
        (("", "de"), '"Wien"@de, "Vindobona"', "Vindobona"),
        (("DE",), '"Wien"@de, "Vienna"@en', "Wien"),
        (("en",), '"", "  "@en, "Wien"@de', "Wien"),
    ],
)
def test_languages(turtle, languages: tuple[str, ...], labels: str, chosen: str) -> None:  # type: ignore[no-untyped-def]
    assert turtle(f":a rdfs:label {labels} .", languages=languages).entities["http://e/a"][0] == chosen


@pytest.mark.parametrize("languages", ["fr,de", " fr , de ", ["fr", "de"], ("fr,de",)])
def test_languages_in_one_text(turtle, languages: object) -> None:  # type: ignore[no-untyped-def]
    labels = ':a rdfs:label "Wien"@de, "Vienna"@en, "W" . :b rdfs:label "Paris"@en, "Lutèce"@fr .'
    source = turtle(labels, languages=languages)
    assert source.entities == {"http://e/a": ("Wien", ""), "http://e/b": ("Lutèce", "")}


@pytest.mark.parametrize("language", ["german", "de_AT", "@de", "de en", "d", "de-", "x"])
def test_what_is_no_language_is_refused(language: str) -> None:
    with pytest.raises(SatkgcError, match=f"'{language}' is no language; write it as"):
        ReadOptions(languages=("en", language))
    assert ReadOptions(languages="gsw,de-AT-1996,x-own").languages == ("gsw", "de-AT-1996", "x-own")


@pytest.mark.parametrize(
    ("languages", "text", "languages_there"),
    [
        ("it,es", ':a rdfs:label "A"@de, "B"@en-GB ; rdfs:comment "C"@de, "D"', "2 de, 1 en-gb, 1 without a language"),
        ("en", ':a rdfs:label "A"@de', "1 de"),
        ("de", ':a rdfs:label "A"', "1 without a language"),
        ("de", ":a :b :c", "none at all"),
        ("en", ':a rdfs:label "A"', None),
        ("it,de", ':a rdfs:label "A"@de-AT, "B"@en', None),
        ("it", ':a rdfs:label "A" ; rdfs:comment "B"@it', None),
        (",it", ':a rdfs:label "A"', None),
    ],
)
def test_languages_that_no_text_has_are_told(
    turtle, caplog, languages: str, text: str, languages_there: str | None
) -> None:  # type: ignore[no-untyped-def]
    turtle(f"{text} .", languages=languages)
    chosen = languages.replace(",", ", ")
    assert caplog.messages == (
        [f"g: no name or description is in {chosen}; there are {languages_there}"] if languages_there else []
    )


def test_the_language_comes_before_the_predicate(turtle) -> None:  # type: ignore[no-untyped-def]
    assert turtle(':a rdfs:label "Wien"@de ; foaf:name "Vienna"@en .').entities["http://e/a"][0] == "Vienna"
    assert turtle(':a foaf:name "Ann" ; rdfs:label "Anne" .').entities["http://e/a"][0] == "Anne"


def test_literals_and_statements_about_statements_are_left_out_and_counted(turtle, caplog) -> None:  # type: ignore[no-untyped-def]
    with caplog.at_level(logging.WARNING):
        source = turtle(':a :age 5 ; :born "1999" . :c :says <<( :a :knows :b )>> .')
    assert set(source.entities) == {"http://e/a", "http://e/b"}
    assert "2 literals (1 of http://e/age, 1 of http://e/born)" in caplog.text
    assert "1 statements about statements" in caplog.text


def test_the_predicates_of_most_literals_are_named(turtle, caplog) -> None:  # type: ignore[no-untyped-def]
    turtle("".join(f":a :p{i} {', '.join(map(str, range(i)))} ." for i in range(1, 8)))
    most = ", ".join(f"{i} of http://e/p{i}" for i in range(7, 2, -1))
    assert caplog.messages == [f"g: left out of the graph: 28 literals ({most}, …)"]


def test_a_label_that_is_no_text_is_neither_name_nor_relation(turtle) -> None:  # type: ignore[no-untyped-def]
    source = turtle(":a rdfs:label :b .")
    assert set(source.relations) == {"http://e/knows"}
    assert source.entities["http://e/a"] == ("a", "")


def test_relations_are_named_too_and_are_no_entities(turtle) -> None:  # type: ignore[no-untyped-def]
    source = turtle(':knows rdfs:label "is acquainted with" . :a :worksFor :b .')
    assert source.relations == {"http://e/knows": "is acquainted with", "http://e/worksFor": "works for"}
    assert set(source.entities) == {"http://e/a", "http://e/b"}


def test_what_has_a_text_is_an_entity_even_alone(turtle) -> None:  # type: ignore[no-untyped-def]
    source = turtle(':lonely rdfs:comment "nobody" . :mute :age 3 .')
    assert source.entities["http://e/lonely"] == ("lonely", "nobody")
    assert "http://e/mute" not in source.entities


def test_blank_nodes_with_a_name_stay_and_others_go(turtle, caplog) -> None:  # type: ignore[no-untyped-def]
    with caplog.at_level(logging.WARNING):
        source = turtle(
            '_:z foaf:name "Bob" . :a :likes _:z . :a :owns [ :has :b ] ; :list ( :a :b ) . '
            '[] foaf:name "Cy" ; :likes :a . [] rdfs:comment "no name" ; :likes :a . :a :owns [ a :Thing ] .'
        )
    assert source.entities == {
        "http://e/a": ("a", ""), "http://e/b": ("b", ""), "_:b0": ("Bob", ""), "_:b1": ("Cy", ""),
    }  # fmt: skip
    assert ("http://e/a", "http://e/likes", "_:b0") in source.splits["train"]
    relations = {"knows": "knows", "likes": "likes", "owns/has": "owns has", "list": "list"}
    assert source.relations == {f"http://e/{id}": name for id, name in relations.items()}
    assert "3 triples of blank nodes without a name" in caplog.text  # of the nameless two
    assert "3 triples made of blank nodes" in caplog.text


def test_named_graphs_are_one_and_repeats_are_dropped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "g.nq").write_text(
        "".join(f"<http://e/a> <http://e/r> <http://e/b> <http://g/{i}> .\n" for i in range(3))
    )
    with caplog.at_level(logging.WARNING):
        graph = read_graph(tmp_path / "g.nq", ReadOptions(split="none"))
    assert graph.train.tolist() == [[0, 0, 1]]
    assert "2 duplicate triples dropped from train" in caplog.text


def test_an_iri_of_more_than_8192_characters_is_refused(turtle) -> None:  # type: ignore[no-untyped-def]
    assert len(turtle(f":{'a' * 8_000} :knows :b .").entities) == 3  # with :a and :b
    with pytest.raises(SatkgcError, match=r"an IRI of 8,\d+ characters; shorten it"):
        turtle(f":{'a' * 8_192} :knows :b .")


def test_relative_iris_do_not_depend_on_the_folder(turtle) -> None:  # type: ignore[no-untyped-def]
    assert "file:///g.ttl#me" in turtle("<#me> :knows :a .").entities


def test_short_xml_entities_are_fine(tmp_path: Path) -> None:
    xml = forms.rdf_xml(forms.Source({"train": [("http://e/a", "http://r/r", "http://e/b")]}, {}))
    declared = '<!DOCTYPE rdf:RDF [<!ENTITY e "http://e/"><!ENTITY amp2 "&#38;">]>\n'
    (tmp_path / "g.owl").write_text(declared + xml.replace("http://e/", "&e;"))
    assert read_graph(tmp_path / "g.owl").entities.ids.to_pylist() == ["http://e/a", "http://e/b"]


def test_without_pyoxigraph_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "g.nt").write_text("")
    monkeypatch.setattr(rdf, "find_spec", lambda name: None)
    with pytest.raises(SatkgcError, match=r"pip install 'satkgc\[rdf\]'"):
        read_graph(tmp_path / "g.nt")


TRIG = """@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . :a :plain :b .
:objects { :a :made :b . :a rdfs:label "A" } :people { :b :knows :c . :b rdfs:label "B" } _:x { :a :blank :b }
"""


def test_named_graphs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "g.trig").write_text(TRIG)

    def relations(**options: object) -> list[str]:
        graph = read_graph(tmp_path / "g.trig", ReadOptions(split="none", **options))  # type: ignore[arg-type]
        return [id.removeprefix("http://e/") for id in graph.relations.ids.to_pylist()]

    assert relations() == ["plain", "made", "knows", "blank"]
    assert caplog.messages == []
    assert relations(graphs="http://e/people") == ["knows"]
    assert caplog.messages == [f"{tmp_path / 'g.trig'}: left out: 4 statements of other graphs"]
    assert relations(graphs=["http://e/people", "http://e/objects"]) == ["made", "knows"]
    graph = read_graph(tmp_path / "g.trig", ReadOptions(split="none", graphs="http://e/people"))
    assert forms.said(graph).entities == {"http://e/b": ("B", ""), "http://e/c": ("c", "")}


def test_a_graph_without_a_statement_is_refused(tmp_path: Path) -> None:
    (tmp_path / "g.trig").write_text(TRIG)
    with pytest.raises(SatkgcError, match="in the graph http://e/object; did you mean http://e/objects"):
        read_graph(tmp_path / "g.trig", ReadOptions(graphs=("http://e/people", "http://e/object")))
    (tmp_path / "g.nt").write_text(forms.nt(forms.Source({"train": [("http://e/a", "http://e/r", "http://e/b")]}, {})))
    with pytest.raises(SatkgcError, match=r"g\.nt: no statement is in the graph http://e/g; it has 0 named graphs"):
        read_graph(tmp_path / "g.nt", ReadOptions(graphs=("http://e/g",)))


def test_a_description_that_is_a_node_is_told(turtle, caplog: pytest.LogCaptureFixture) -> None:  # type: ignore[no-untyped-def]
    source = turtle(':a skos:note :n , "a note" ; rdfs:label [ :of :b ] .')
    assert source.entities["http://e/a"] == ("a", "a note")
    note, label = "http://www.w3.org/2004/02/skos/core#note", "http://www.w3.org/2000/01/rdf-schema#label"
    told = f"g: left out of the graph: 2 names and descriptions that are no text (1 of {note}, 1 of {label})"
    assert told in caplog.text


def test_other_names_stand_in_the_description(turtle) -> None:  # type: ignore[no-untyped-def]
    other = ", ".join(f'"N{i}"' for i in range(9))
    source = turtle(
        ':a rdfs:label "Ann" ; skos:altLabel "Annie"@en, "Ännchen"@de, "Ann" ; rdfs:comment "a girl" . '
        f':b skos:altLabel {other} . :c schema:alternateName "Cy" . :a :knows :c .'
    )
    assert source.entities["http://e/a"] == ("Ann", "also called Annie; a girl")
    assert source.entities["http://e/b"] == ("b", "also called N0, N1, N2, N3, N4")
    assert source.entities["http://e/c"] == ("c", "also called Cy")


def test_predicates_of_texts_can_be_chosen(turtle) -> None:  # type: ignore[no-untyped-def]
    """The chosen ones come first, in order, then the usual ones; by IRI, by prefix of the file or a known one."""
    text = ':a :title "T" ; rdfs:label "L" ; :nick "N" ; :about "A" ; skos:note "S" . :b :alias "B" ; rdfs:label "L" . '
    text += ':c rdfs:label "C" . :c :knows :a .'
    source = turtle(text, label=["http://e/title", ":alias"], alt_label=":nick", description=["skos:note", ":about"])
    assert source.entities == {
        "http://e/a": ("T", "also called N; S"), "http://e/b": ("B", ""), "http://e/c": ("C", ""),
    }  # fmt: skip
    with pytest.raises(
        SatkgcError, match=r"no statement has the predicate http://e/titel; did you mean http://e/title"
    ):
        turtle(text, label="http://e/titel")


def test_a_prefix_may_be_declared_further_down(turtle) -> None:  # type: ignore[no-untyped-def]
    """As in files that were put together."""
    text = '@prefix m: <http://m/> . :a m:title "T" .' + "".join(f" :a :knows :b{i} ." for i in range(120))
    assert turtle(text + ' :b m:title "B" .', label="m:title").entities["http://e/a"] == ("T", "")


sizes = st.lists(st.integers(1, 60), min_size=1, max_size=20)


def pass_through(data: bytes, sizes: list[int]) -> bytes:
    guarded, out, turn = XmlGuard(io.BytesIO(data), "g.rdf"), b"", 0
    while part := guarded.read(sizes[turn % len(sizes)]):
        out += part
        turn += 1
    return out


@given(sizes, st.integers(0, 40))
def test_harmless_bytes_pass_unchanged(sizes: list[int], gap: int) -> None:
    declared = b"<!ENTITY owl \"http://owl#\"> <!ENTITY\n% p 'x &lt; &#38; 5%'><!ENTITY ext SYSTEM 'file'>"
    data = b"<!" * gap + declared + b"<a>&owl; <!ENT &x;</a><!ENTIT"
    assert pass_through(data, sizes) == data


@pytest.mark.parametrize(
    "declaration",
    [
        b'<!ENTITY b "&a;&a;">',
        b"<!ENTITY  b\t'x &a;'>",
        b'<!ENTITY % b "%a;">',
        b'<!ENTITY b "' + b"x" * (LONGEST_ENTITY + 1) + b'">',
        b'<!ENTITY b "' + b"x" * 1200,
        b"<!ENTITY " + b"x" * 1200,
    ],
)
@given(sizes=sizes, gap=st.integers(0, 40))
def test_growing_entities_are_refused_before_they_are_passed_on(declaration: bytes, sizes: list[int], gap: int) -> None:
    data = b"<" * gap + b'<!ENTITY a "ha">' + declaration + b"<a>&b;</a>"
    with pytest.raises(SatkgcError, match="an XML entity is long or made of other entities"):
        pass_through(data, sizes)
