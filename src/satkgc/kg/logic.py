"""What relations mean: inverse, symmetric, transitive, hierarchical, functional ones, and those that imply another.

Read from what a graph states itself (OWL, RDFS) and from what SKOS and OWL define, else found in its facts:

- *inverse* and *symmetric*: at least half of the triples of each have their mirror (`mirror_relations`);
- *transitive*: of the ends of two steps at least 90 % are joined by one;
- *hierarchy*: there is no cycle, and at most 1 % of such ends are joined, so that what two steps say is left unsaid;
- *functional*: at least 95 % of its heads have one tail;
- *implies*: at least 95 % of its triples are also there with another relation.

What is found has at least 20 triples, or ends of two steps, to be found in. The properties are kept as TOML.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from satkgc.arrays import Int32
from satkgc.errors import SatkgcError
from satkgc.files import atomic_write
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.inspect import mirror_relations
from satkgc.kg.readers.options import expand

FEWEST = 20
CLOSED, OPEN = 0.9, 0.01  # shares of two steps that one joins: in a transitive relation, in a hierarchy
SINGLE = IMPLIED = 0.95
LARGEST = 2_000_000  # triples of a relation whose steps are followed

PROPERTIES = ("symmetric", "transitive", "hierarchy", "functional")
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
    "rdfs:subClassOf": {"transitive": True, "hierarchy": True},
    "rdfs:subPropertyOf": {"transitive": True, "hierarchy": True},
    "owl:sameAs": {"symmetric": True, "transitive": True},
    "owl:equivalentClass": {"symmetric": True, "transitive": True},
    "owl:disjointWith": {"symmetric": True},
    "owl:inverseOf": {"symmetric": True},
}
STATED = {
    "owl:SymmetricProperty": "symmetric", "owl:TransitiveProperty": "transitive",
    "owl:FunctionalProperty": "functional",
}  # fmt: skip


@dataclass(frozen=True)
class RelationLogic:
    """The properties of one relation; relations are indices."""

    symmetric: bool = False
    transitive: bool = False
    hierarchy: bool = False
    functional: bool = False
    inverse: int | None = None
    implies: tuple[int, ...] = ()
    why: dict[str, str] = field(default_factory=dict)  # "stated", or the count that it was found by

    @property
    def plain(self) -> bool:
        """Whether nothing is known."""
        return not (self.implies or self.inverse is not None or any(getattr(self, name) for name in PROPERTIES))


def relation_logic(kg: KnowledgeGraph) -> list[RelationLogic]:
    """The properties of every relation of a graph."""
    found = _found(kg)
    return [_joined(found[r], stated) for r, stated in enumerate(_stated(kg))]


def _joined(found: RelationLogic, stated: RelationLogic) -> RelationLogic:
    """What is stated, and what is found beside it."""
    both = {name: getattr(found, name) or getattr(stated, name) for name in PROPERTIES}
    inverse = found.inverse if stated.inverse is None else stated.inverse
    implies = tuple(dict.fromkeys(stated.implies + found.implies))
    return RelationLogic(**both, inverse=inverse, implies=implies, why=found.why | stated.why)


def _stated(kg: KnowledgeGraph) -> Iterator[RelationLogic]:
    """What the graph says of its relations, which are then among its entities, and what their vocabulary defines."""
    find = kg.relations.find
    kinds = {kg.entities.find(expand(iri)): name for iri, name in STATED.items()}
    defined = {expand(iri): facts for iri, facts in DEFINED.items()}
    typed, inverse, sub = (find(expand(iri)) for iri in ("rdf:type", "owl:inverseOf", "rdfs:subPropertyOf"))
    inverses = {
        one: other
        for a, b in _ends(kg, inverse)
        for one, other in ((a, b), (b, a))
        if find(kg.entities.id(one)) is not None
    }
    for r in range(kg.num_relations):
        id = kg.relations.id(r)
        facts = dict(defined.get(id, {}))
        partner = find(expand(facts.pop("inverse", ""))) if "inverse" in facts else None
        implies = [s for iri in facts.pop("implies", ()) if (s := find(expand(iri))) is not None]
        entity = kg.entities.find(id)
        if entity is not None:
            facts |= {kinds[t]: True for h, t in _ends(kg, typed, entity) if t in kinds}
            partner = find(kg.entities.id(inverses[entity])) if entity in inverses else partner
            implies += [s for _, t in _ends(kg, sub, entity) if (s := find(kg.entities.id(t))) not in (None, r)]
        why = dict.fromkeys(
            [*facts, *(["inverse"] if partner is not None else []), *(["implies"] if implies else [])], "stated"
        )
        yield RelationLogic(**facts, inverse=partner, implies=tuple(implies), why=why)


def _ends(kg: KnowledgeGraph, relation: int | None, head: int | None = None) -> list[list[int]]:
    if relation is None:
        return []
    rows = kg.facts[kg.facts[:, 1] == relation]
    return (rows if head is None else rows[rows[:, 0] == head])[:, [0, 2]].tolist()


def _found(kg: KnowledgeGraph) -> list[RelationLogic]:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    facts, size = kg.facts, kg.num_entities
    logic = [RelationLogic() for _ in range(kg.num_relations)]
    counts = np.bincount(facts[:, 1], minlength=kg.num_relations)
    for r, s in mirror_relations(kg.facts, kg.fact_adjacency, kg.num_relations).tolist():
        if min(counts[r], counts[s]) >= FEWEST:
            why = f"{min(counts[r], counts[s]):,} triples"
            if r == s:
                logic[r] = replace(logic[r], symmetric=True, why=logic[r].why | {"symmetric": why})
            elif logic[r].inverse is None:
                logic[r] = replace(logic[r], inverse=s, why=logic[r].why | {"inverse": why})
    order = np.argsort(facts[:, 1], kind="stable")
    bounds = np.searchsorted(facts[order, 1], np.arange(kg.num_relations + 1))
    for r in range(kg.num_relations):
        rows = facts[order[bounds[r] : bounds[r + 1]]]
        if not FEWEST <= len(rows) <= LARGEST:
            continue
        heads, per_head = np.unique(rows[:, 0], return_counts=True)
        changes: dict[str, str] = {}
        if len(heads) >= FEWEST and (per_head == 1).mean() >= SINGLE:
            changes["functional"] = f"{(per_head == 1).sum():,} of {len(heads):,} heads"
        rows = rows[rows[:, 0] != rows[:, 2]]
        used, ends = np.unique(rows[:, [0, 2]], return_inverse=True)
        ends = ends.reshape(-1, 2)
        steps = csr_array((np.ones(len(ends), np.int32), (ends[:, 0], ends[:, 1])), (len(used), len(used)))
        steps.data[:] = 1
        if np.bincount(ends[:, 1], minlength=len(used)) @ np.bincount(ends[:, 0], minlength=len(used)) <= 10 * LARGEST:
            two = steps @ steps
            two.setdiag(0)
            two.eliminate_zeros()
            joined = two.multiply(steps).nnz
            if two.nnz >= FEWEST and not logic[r].symmetric:
                if joined >= CLOSED * two.nnz:
                    changes["transitive"] = f"{joined:,} of {two.nnz:,} two steps"
                acyclic = connected_components(steps, directed=True, connection="strong")[0] == len(used)
                if acyclic and joined <= OPEN * two.nnz:
                    changes["hierarchy"] = f"{two.nnz:,} two steps"
        logic[r] = replace(logic[r], **dict[str, Any](dict.fromkeys(changes, True)), why=logic[r].why | changes)
    for r, s, count in _implications(facts, counts, size):
        by = logic[r].why | {"implies": f"{count:,} of {counts[r]:,} triples"}
        logic[r] = replace(logic[r], implies=(*logic[r].implies, s), why=by)
    return logic


def _implications(facts: Int32, counts: Any, size: int) -> Iterator[tuple[int, int, int]]:
    """Relations whose triples another one has, too, and how many of them it has."""
    from scipy.sparse import csr_array

    pairs, row = np.unique(facts[:, 0].astype(np.int64) * size + facts[:, 2], return_inverse=True)
    has = csr_array((np.ones(len(facts), np.int32), (row, facts[:, 1])), (len(pairs), len(counts)))
    has.data[:] = 1
    both = (has.T @ has).tocoo()
    for r, s, count in zip(both.row.tolist(), both.col.tolist(), both.data.tolist(), strict=True):
        if r != s and counts[r] >= FEWEST and count >= IMPLIED * counts[r]:
            yield r, s, count


def describe_logic(kg: KnowledgeGraph, logic: Iterable[RelationLogic]) -> list[dict[str, Any]]:
    """Each property of each relation, with the other relations that it speaks of, and by what it is known."""
    id = kg.relations.id
    return [
        {"id": id(r), "property": name, "others": [id(s) for s in others if s is not None], "by": by}
        for r, one in enumerate(logic)
        for name, by in one.why.items()
        for others in [one.implies if name == "implies" else (one.inverse,) if name == "inverse" else ()]
    ]


def write_logic(kg: KnowledgeGraph, logic: Iterable[RelationLogic], file: Path) -> None:
    """Write the properties as TOML, one table for each relation that has any, to be edited."""
    lines = ["# What relations mean. Change what is wrong; `satkgc propose --logic` reads this file.\n"]
    for r, properties in enumerate(logic):
        if properties.plain:
            continue
        lines.append(f"\n[[relation]]\nid = {_text(kg.relations.id(r))}\n")
        true = [name for name in PROPERTIES if getattr(properties, name)]
        lines += [f"{name} = true  # {properties.why.get(name, '')}\n" for name in true]
        if properties.inverse is not None:
            lines.append(
                f"inverse = {_text(kg.relations.id(properties.inverse))}  # {properties.why.get('inverse', '')}\n"
            )
        if properties.implies:
            implied = ", ".join(_text(kg.relations.id(s)) for s in properties.implies)
            lines.append(f"implies = [{implied}]  # {properties.why.get('implies', '')}\n")
    with atomic_write(file) as part:
        part.write_text("".join(lines), encoding="utf-8")


def _text(id: str) -> str:
    return json.dumps(id, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_logic(kg: KnowledgeGraph, file: Path) -> list[RelationLogic]:
    """What `write_logic` wrote, after somebody edited it; relations that are not in it have no properties."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8")).get("relation", [])
    except OSError as error:
        raise SatkgcError(f"cannot be read ({error.strerror})", where=file, remedy="check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SatkgcError(f"not TOML: {error}", where=file, remedy="correct it there") from None
    logic = [RelationLogic() for _ in range(kg.num_relations)]
    try:
        for table in tables:
            relation = kg.relations.index(table.pop("id"))
            inverse, implies = table.pop("inverse", None), table.pop("implies", [])
            unknown = table.keys() - set(PROPERTIES)
            if unknown or not all(isinstance(value, bool) for value in table.values()):
                raise SatkgcError(f"{min(unknown or table)} is no property", remedy=f"known: {', '.join(PROPERTIES)}")
            logic[relation] = RelationLogic(
                **table,
                inverse=None if inverse is None else kg.relations.index(inverse),
                implies=tuple(kg.relations.index(id) for id in implies),
            )
    except (KeyError, TypeError, AttributeError) as error:
        raise SatkgcError(f"not what `satkgc kg inspect --logic` writes ({error})", where=file) from None
    except SatkgcError as error:
        raise SatkgcError(error.what, where=file, remedy=error.remedy) from None
    return logic
