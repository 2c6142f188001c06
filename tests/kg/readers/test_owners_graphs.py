"""A few lines of each kind of graph that people have: the exact triples that become of them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from satkgc import KnowledgeGraph

PREFIXES = """@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix schema: <http://schema.org/> . @prefix mo: <http://purl.org/ontology/mo/> .
"""
GRAPHS = {
    "thesaurus.ttl": (
        PREFIXES
        + """:stars a skos:Concept ; skos:prefLabel "stars"@en, "Sterne"@de ; skos:altLabel "suns"@en ;
            skos:broader :bodies ; skos:scopeNote "not of films"@en ; skos:related :galaxies .
        :bodies skos:narrower :stars ; skos:topConceptOf :all . :galaxies skos:broader :bodies .""",
        {},
        """stars type Concept; stars broader bodies; stars related galaxies; bodies narrower stars;
        bodies topConceptOf all; galaxies broader bodies""",
        {"stars": ("stars", "also called suns; not of films")},
    ),
    "pizza.ttl": (
        PREFIXES
        + """:Margherita rdfs:subClassOf :Pizza, [ a owl:Restriction ; owl:onProperty :hasTopping ;
            owl:someValuesFrom :Mozzarella ], [ a owl:Restriction ; owl:onProperty :hasTopping ;
            owl:allValuesFrom [ a owl:Class ; owl:unionOf ( :Mozzarella :Tomato ) ] ] .
        :Mozzarella owl:disjointWith :Tomato .""",
        {},
        """Margherita subClassOf Pizza; Margherita hasTopping Mozzarella; Margherita hasTopping Tomato;
        Mozzarella disjointWith Tomato""",
        {},
    ),
    "schema.ttl": (
        PREFIXES
        + """schema:director a :Property ; rdfs:label "director" ; schema:domainIncludes schema:Movie, schema:Episode ;
            schema:rangeIncludes schema:Person .
        :film a schema:Movie ; schema:name "The Apartment" ; schema:alternateName "Das Appartement" ;
            schema:description "a film of 1960" ; schema:director :wilder ; schema:datePublished "1960" .""",
        {},
        """director type Property; director domainIncludes Movie; director domainIncludes Episode;
        director rangeIncludes Person; film type Movie; film director wilder""",
        {"film": ("The Apartment", "also called Das Appartement; a film of 1960")},
    ),
    "music.ttl.gz": (
        PREFIXES + ':beatles mo:title "The Beatles" ; mo:bio "a band" ; mo:member :john . :john mo:title "John" .',
        {"label": ("mo:title",), "description": ("http://purl.org/ontology/mo/bio",)},
        "beatles member john",
        {"beatles": ("The Beatles", "a band"), "john": ("John", "")},
    ),
    "controls.csv": (
        "start_id,end_id,type\nAC-1,AC-2,requires\nAC-2,AU-3,supports\n",
        {},
        "AC-1 requires AC-2; AC-2 supports AU-3",
        {},
    ),
    "myths.csv": (
        'n,r,m\n"(:Character {id: 1, name: ""Zeus""})",[:PARENT_OF],"(:Character {id: 2, name: ""Athena""})"\n',
        {},
        "1 PARENT_OF 2; 1 type :Character; 2 type :Character",
        {"1": ("Zeus", ""), "2": ("Athena", "")},
    ),
    "stars.csv": (
        "film,actor\nThe Apartment,Jack Lemmon\n",
        {"relation_name": ("stars",), "head": "film", "tail": "actor"},
        "The Apartment | stars | Jack Lemmon",
        {},
    ),
}  # fmt: skip


def short(id: str) -> str:
    return id if id.startswith(":") else id.rstrip("/").replace("#", "/").rpartition("/")[2]


@pytest.mark.parametrize("name", GRAPHS)
def test_the_exact_triples(tmp_path: Path, name: str) -> None:
    text, options, expected, texts = GRAPHS[name]
    data = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    kg = KnowledgeGraph.load(tmp_path / name, split="none", **options)  # type: ignore[arg-type]
    triples = {
        (short(kg.entities.id(h)), short(kg.relations.id(r)), short(kg.entities.id(t))) for h, r, t in kg.train.tolist()
    }
    said = {
        tuple(part.strip() for part in (one.split("|") if "|" in one else one.split())) for one in expected.split(";")
    }
    assert triples == said
    by_id = {short(kg.entities.id(i)): i for i in range(kg.num_entities)}
    assert {id: (kg.entities.name(by_id[id]), kg.entities.description(by_id[id])) for id in texts} == texts
