"""Properties of relations: stated by a graph, found in one, written and read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from satkgc import KnowledgeGraph, SatkgcError
from satkgc.kg import RelationLogic, Vocabulary, describe_logic, read_logic, relation_logic, write_logic
from satkgc.kg.readers import ReadOptions, read_graph
from satkgc.kg.types import EntityTypes


def graph(**relations: list[tuple[int, int]]) -> KnowledgeGraph:
    """A graph of these relations between numbered entities."""
    size = 1 + max(max(pair) for pairs in relations.values() for pair in pairs)
    ids = [f"e{i}" for i in range(size)]
    names = list(relations)
    train = [(h, r, t) for r, pairs in enumerate(relations.values()) for h, t in pairs]
    entities = Vocabulary.build("entity", ids, ids, [""] * size)
    return KnowledgeGraph.from_arrays(
        "g", entities, Vocabulary.build("relation", names, names, [""] * len(names)), train
    )


def names(kg: KnowledgeGraph, logic: list[RelationLogic]) -> set[tuple[str, ...]]:
    return {(entry["id"], entry["property"], *entry["others"]) for entry in describe_logic(kg, logic)}


def test_what_is_found_in_the_triples() -> None:
    tree = [(i, (i - 1) // 2) for i in range(1, 40)]
    pairs = [(i, i + 1) for i in range(0, 50, 2)]
    line = [(i, j) for i in range(10) for j in range(i + 1, 10)]
    rng = np.random.default_rng(0)
    noise = [(int(h), int(t)) for h, t in rng.integers(0, 40, (200, 2))]
    kg = graph(
        parent=tree, child=[(t, h) for h, t in tree], beside=pairs + [(t, h) for h, t in pairs], below=line,
        noise=noise, ancestor=[*tree, *line],
    )  # fmt: skip
    assert names(kg, relation_logic(kg)) == {
        ("parent", "inverse", "child"), ("child", "inverse", "parent"), ("parent", "functional"),
        ("parent", "hierarchy"), ("child", "hierarchy"), ("beside", "symmetric"), ("beside", "functional"),
        ("below", "transitive"), ("parent", "implies", "ancestor"), ("below", "implies", "ancestor"),
        ("child", "inverse_functional"), ("beside", "inverse_functional"),
    }  # fmt: skip
    cyclic = graph(parent=[*tree, (0, 39)])
    assert names(cyclic, relation_logic(cyclic)) == {("parent", "functional")}


def test_too_few_triples_show_nothing() -> None:
    kg = graph(parent=[(i, (i - 1) // 2) for i in range(1, 8)], beside=[(0, 1), (1, 0)])
    assert all(properties.plain for properties in relation_logic(kg))


@pytest.mark.parametrize(("typed", "found"), [(29, False), (30, True)])
def test_a_domain_is_found_where_half_of_the_heads_have_a_type(typed: int, found: bool) -> None:
    kind = 120
    kg = graph(P31=[(i, kind) for i in range(typed)], knows=[(i, 60 + i) for i in range(60)])
    assert (("knows", "domain", f"e{kind}") in names(kg, relation_logic(kg))) is found


def test_a_few_wrong_triples_make_no_hierarchy_and_nothing_transitive() -> None:
    """Ten wrong ones, between things at the other end, give more than enough two steps."""
    pairs = [(i, 500 + i % 100) for i in range(500)]
    wrong = [(500 + i, 900 + i) for i in range(10)]
    joined = [(h, 900 + t - 500) for h, t in pairs if t < 510]
    assert sum(t < 510 for _, t in pairs) == 50
    kg = graph(treats=pairs + wrong, below=pairs + wrong + joined)
    assert not {("treats", "hierarchy"), ("below", "transitive")} & names(kg, relation_logic(kg))


@pytest.mark.parametrize(("wrong", "found"), [(9, False), (30, True)])
def test_types_at_an_end_are_counted_by_triples(wrong: int, found: bool) -> None:
    """Of 100 drugs in 1,700 triples nine wrong heads are 8 % of the heads, and 0.5 % of the triples."""
    drug, disease = 500, 501
    types = [(i, drug) for i in range(100)] + [(200 + i, disease) for i in range(100)]
    treats = [(i, 200 + (i + j) % 100) for i in range(100) for j in range(17)]
    kg = graph(P31=types, treats=treats + [(200 + i, 200 + i + 1) for i in range(wrong)])
    [domain] = [
        set(entry["others"]) for entry in describe_logic(kg, relation_logic(kg)) if entry["property"] == "domain"
    ]
    assert domain == {"e500", *(["e501"] if found else [])}


def test_tables_state_types_with_a_prefix(tmp_path: Path) -> None:
    rows = ["head,relation,tail", *(f"a{i},knows,b{i}" for i in range(30)), "Painter,rdfs:subClassOf,Person"]
    (tmp_path / "facts.csv").write_text("\n".join(rows))
    types = [f"{end}{i},rdf:type,{kind}" for i in range(30) for end, kind in (("a", "Painter"), ("b", "owl:Thing"))]
    (tmp_path / "types.csv").write_text("\n".join(["head,relation,tail", *types]))
    kg = read_graph([tmp_path / "facts.csv", tmp_path / "types.csv"], ReadOptions(split="none"))
    logic = relation_logic(kg)
    found = names(kg, logic)
    assert ("rdf:type", "type") in found
    assert ("knows", "domain", "Painter") in found
    assert not any(entry[:2] == ("knows", "range") for entry in found)  # owl:Thing says nothing
    every = {kg.entities.id(t) for t in EntityTypes(kg, logic).all_of(kg.entities.index("a0"))}
    assert every == {"Painter", "Person"}


TURTLE = """@prefix : <http://e/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:a :married :b ; :partOf :b ; :hasPart :c ; :born :p ; skos:broader :b ; skos:related :c .
:b skos:narrower :a . :a :knows :b . :married a owl:SymmetricProperty ; rdfs:subPropertyOf :knows .
:partOf owl:inverseOf :hasPart ; a owl:TransitiveProperty . :born a owl:FunctionalProperty .
"""


def test_what_a_graph_and_vocabularies_state(tmp_path: Path) -> None:
    (tmp_path / "g.ttl").write_text(TURTLE)
    kg = read_graph(tmp_path / "g.ttl", ReadOptions(split="none"))
    skos = "http://www.w3.org/2004/02/skos/core#"
    expected = {
        ("married", "symmetric"), ("married", "implies", "knows"), ("partOf", "inverse", "hasPart"),
        ("hasPart", "inverse", "partOf"), ("partOf", "transitive"), ("born", "functional"),
        ("broader", "hierarchy"), ("narrower", "hierarchy"), ("broader", "inverse", "narrower"),
        ("narrower", "inverse", "broader"), ("related", "symmetric"),
    }  # fmt: skip
    said = {
        tuple(part.replace("http://e/", "").replace(skos, "") for part in entry)
        for entry in names(kg, relation_logic(kg))
        if entry[0].startswith(("http://e/", skos))
    }
    assert said == expected


def test_an_edited_file(tmp_path: Path) -> None:
    tree = [(i, (i - 1) // 2) for i in range(1, 40)]
    kg = graph(parent=tree, child=[(t, h) for h, t in tree], noise=[(0, 1)])
    write_logic(kg, relation_logic(kg), tmp_path / "logic.toml")
    assert names(kg, relation_logic(kg)) == {
        ("parent", "inverse", "child"), ("child", "inverse", "parent"), ("parent", "functional"),
        ("parent", "hierarchy"), ("child", "hierarchy"), ("child", "inverse_functional"),
    }  # fmt: skip
    again = read_logic(kg, tmp_path / "logic.toml")
    assert (again[0].inverse, again[0].hierarchy, again[1].hierarchy, again[2].plain) == (1, True, True, True)
    text = (tmp_path / "logic.toml").read_text().replace("hierarchy = true", "transitive = true", 1)
    (tmp_path / "logic.toml").write_text(text + '\n[[relation]]\nid = "noise"\nimplies = ["parent"]\n')
    edited = read_logic(kg, tmp_path / "logic.toml")
    assert (edited[0].hierarchy, edited[0].transitive, edited[2].implies) == (False, True, (0,))
    for wrong, message in (
        ('[[relation]]\nid = "parnt"', "unknown relation 'parnt'; did you mean 'parent'"),
        ('[[relation]]\nid = "parent"\nsymetric = true', "symetric is no property"),
        ("[[relation]]\nsymmetric = true", "not what `satkgc kg inspect --logic` writes"),
        ("[[relation", "not TOML"),
    ):
        (tmp_path / "bad.toml").write_text(wrong)
        with pytest.raises(SatkgcError, match=rf"bad\.toml: {message}"):
            read_logic(kg, tmp_path / "bad.toml")
    with pytest.raises(SatkgcError, match="cannot be read"):
        read_logic(kg, tmp_path / "none.toml")
