"""What relations mean: inverse, symmetric, transitive, hierarchical, functional ones, those that imply another, and
the types of their heads (domain) and tails (range).

Read from what a graph states itself (OWL, RDFS) and from what SKOS and OWL define, else found in its facts:

- *inverse* and *symmetric*: at least half of the triples of each have their mirror (`mirror_relations`);
- *transitive*: of the ends of two steps at least 90 % are joined by one;
- *hierarchy*: there is no cycle, and at most 1 % of such ends are joined, so that what two steps say is left unsaid;
  of both, at least a quarter of the triples are part of two steps, so that a few wrong ones make none;
- *functional*, *inverse_functional*: at least 99 % of its heads have one tail, of its tails one head;
- *implies*: at least 95 % of its triples are also there with another relation;
- *domain*, *range*: at most 20 types that its heads, or tails, have in at least 95 % of the triples where they have
  one. Half of them have one; a type of fewer than 1 % of these triples is none, so that a few wrong ones add none.

What is found has at least 20 triples, ends of two steps, or entities with types, to be found in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.readers.options import expand

PROPERTIES = ("symmetric", "transitive", "hierarchy", "functional", "inverse_functional", "type")
# What vocabularies say of their own relations.
DEFINED: dict[str, dict[str, Any]] = {
    "skos:broader": {"inverse": "skos:narrower", "hierarchy": True},
    "skos:narrower": {"inverse": "skos:broader", "hierarchy": True},
    "skos:broaderTransitive": {"inverse": "skos:narrowerTransitive", "transitive": True, "hierarchy": True},
    "skos:narrowerTransitive": {"inverse": "skos:broaderTransitive", "transitive": True, "hierarchy": True},
    "skos:related": {"symmetric": True},
    "skos:exactMatch": {"symmetric": True, "transitive": True},
    "skos:closeMatch": {"symmetric": True},
    "skos:broadMatch": {"inverse": "skos:narrowMatch"},
    "skos:narrowMatch": {"inverse": "skos:broadMatch"},
    "skos:topConceptOf": {"inverse": "skos:hasTopConcept", "implies": ["skos:inScheme"]},
    "skos:hasTopConcept": {"inverse": "skos:topConceptOf"},
    "rdf:type": {"type": True},
    "http://www.wikidata.org/prop/direct/P31": {"type": True},
    "P31": {"type": True},
    "rdfs:subClassOf": {"transitive": True, "hierarchy": True},
    "rdfs:subPropertyOf": {"transitive": True, "hierarchy": True},
    "owl:sameAs": {"symmetric": True, "transitive": True},
    "owl:equivalentClass": {"symmetric": True, "transitive": True},
    "owl:disjointWith": {"symmetric": True},
    "owl:inverseOf": {"symmetric": True},
}
STATED = {
    "owl:SymmetricProperty": "symmetric", "owl:TransitiveProperty": "transitive",
    "owl:FunctionalProperty": "functional", "owl:InverseFunctionalProperty": "inverse_functional",
}  # fmt: skip


ENDS = {
    "domain": ("rdfs:domain", "schema:domainIncludes", "schemas:domainIncludes"),
    "range": ("rdfs:range", "schema:rangeIncludes", "schemas:rangeIncludes"),
}


@dataclass(frozen=True)
class RelationLogic:
    """The properties of one relation; relations and types are indices, types those of entities."""

    symmetric: bool = False
    transitive: bool = False
    hierarchy: bool = False
    functional: bool = False
    inverse_functional: bool = False
    type: bool = False  # its tails are the types of its heads
    inverse: int | None = None
    implies: tuple[int, ...] = ()
    domain: tuple[int, ...] = ()  # its heads are of one of these types
    range: tuple[int, ...] = ()  # its tails are
    why: dict[str, str] = field(default_factory=dict)  # "stated", or the count that it was found by

    @property
    def plain(self) -> bool:
        """Whether nothing is known."""
        return self == RelationLogic(why=self.why)


def is_general(type: str) -> bool:
    """Whether a type tells nothing of an entity: it is one of the vocabulary's own, as `owl:Class` is."""
    return expand(type).startswith(tuple(expand(f"{prefix}:") for prefix in ("rdf", "rdfs", "owl", "skos")))


def find_relation(kg: KnowledgeGraph, iri: str) -> int | None:
    """A relation of a vocabulary, in full as RDF has it, or with its prefix as tables do."""
    full = kg.relations.find(expand(iri))
    return kg.relations.find(iri) if full is None else full


def relation_logic(kg: KnowledgeGraph) -> list[RelationLogic]:
    """The properties of every relation of a graph."""
    from satkgc.kg.logic_found import found_domains, found_logic

    found = found_logic(kg)
    both = [_joined(found[r], stated) for r, stated in enumerate(_stated(kg))]
    for r, end, types, why in found_domains(kg, [r for r, one in enumerate(both) if one.type]):
        if not (getattr(both[r], end) or both[r].type):
            both[r] = replace(both[r], **dict[str, Any]({end: types}), why=both[r].why | {end: why})
    return both


def _joined(found: RelationLogic, stated: RelationLogic) -> RelationLogic:
    """What is stated, and what is found beside it."""
    both = {name: getattr(found, name) or getattr(stated, name) for name in PROPERTIES}
    inverse = found.inverse if stated.inverse is None else stated.inverse
    implies = tuple(dict.fromkeys(stated.implies + found.implies))
    return replace(stated, **both, inverse=inverse, implies=implies, why=found.why | stated.why)


def _stated(kg: KnowledgeGraph) -> Iterator[RelationLogic]:
    """What the graph says of its relations, which are then among its entities, and what their vocabulary defines."""
    find = kg.relations.find
    kinds = {kg.entities.find(id): name for iri, name in STATED.items() for id in (iri, expand(iri))}
    defined = DEFINED | {expand(iri): facts for iri, facts in DEFINED.items()}
    typed, inverse, sub = (find_relation(kg, iri) for iri in ("rdf:type", "owl:inverseOf", "rdfs:subPropertyOf"))
    inverses = {
        one: other
        for a, b in _ends(kg, inverse)
        for one, other in ((a, b), (b, a))
        if find(kg.entities.id(one)) is not None
    }
    ends = {name: [find_relation(kg, iri) for iri in iris] for name, iris in ENDS.items()}
    for r in range(kg.num_relations):
        id = kg.relations.id(r)
        facts = dict(defined.get(id, {}))
        partner = find_relation(kg, facts.pop("inverse")) if "inverse" in facts else None
        implies = [s for iri in facts.pop("implies", ()) if (s := find_relation(kg, iri)) is not None]
        entity = kg.entities.find(id)
        if entity is not None:
            facts |= {kinds[t]: True for h, t in _ends(kg, typed, entity) if t in kinds}
            partner = find(kg.entities.id(inverses[entity])) if entity in inverses else partner
            implies += [s for _, t in _ends(kg, sub, entity) if (s := find(kg.entities.id(t))) not in (None, r)]
            for name, relations in ends.items():
                types = tuple(t for relation in relations for _, t in _ends(kg, relation, entity))
                if types and not any(is_general(kg.entities.id(t)) for t in types):
                    facts[name] = types
        why = dict.fromkeys(
            [*facts, *(["inverse"] if partner is not None else []), *(["implies"] if implies else [])], "stated"
        )
        yield RelationLogic(**facts, inverse=partner, implies=tuple(implies), why=why)


def _ends(kg: KnowledgeGraph, relation: int | None, head: int | None = None) -> list[list[int]]:
    if relation is None:
        return []
    rows = kg.facts[kg.facts[:, 1] == relation]
    return (rows if head is None else rows[rows[:, 0] == head])[:, [0, 2]].tolist()
