"""What the graph has against two entities being one: a relation joins them, they have different values of a relation
that gives one, or types that have nothing in common."""

from __future__ import annotations

from satkgc.completion.consistency import Consistency
from satkgc.completion.names import Names
from satkgc.kg import KnowledgeGraph, KnownTriples, RelationLogic, expand

SAME = ("owl:sameAs", "skos:exactMatch", "owl:equivalentClass", "owl:equivalentProperty")
DISJOINT = ("owl:disjointWith", "owl:differentFrom")
SHOWN = 3  # types that a reason names


class PairObjections:
    """Looks pairs up in all splits of a graph."""

    def __init__(self, kg: KnowledgeGraph, logic: list[RelationLogic], consistency: Consistency, names: Names) -> None:
        self._kg, self._names, self._types = kg, names, consistency.types
        self._known: KnownTriples = kg.known_all
        size = kg.num_relations
        self._single = [r for r, one in enumerate(logic) if one.functional and not one.type]
        self._single += [r + size for r, one in enumerate(logic) if one.inverse_functional and not one.type]
        self._same = {kg.relations.find(expand(iri)) for iri in SAME}
        self._disjoint = [r for iri in DISJOINT if (r := kg.relations.find(expand(iri))) is not None]

    def said(self, a: int, b: int) -> bool:
        """Whether the graph says already that they are one."""
        return any(relation in self._same for _, relation, _ in self._joins(a, b))

    def find(self, a: int, b: int) -> str | None:
        """The first objection, in words."""
        name, relation = self._names.name, self._kg.relations.name
        for head, r, tail in self._joins(a, b):
            return f"joined: {name(head)} – {relation(r)} – {name(tail)}"
        for directed in self._single:
            one, other = (self._known.answers(entity, directed).tolist() for entity in (a, b))
            if one and other and not set(one) & set(other):
                way = "" if directed < self._kg.num_relations else " of"
                told = relation(directed % self._kg.num_relations) + way
                return f"different values of {told}: {name(one[0])}, {name(other[0])}"
        own, others = self._types.all_of(a), self._types.all_of(b)
        stated = any(t in others for c in own for r in self._disjoint for t in self._either(c, r))
        if own and others and (stated or own.isdisjoint(others)):
            first, second = (", ".join(map(name, (self._types.of(e) or sorted(s))[:SHOWN])) for e, s in
                             ((a, own), (b, others)))  # fmt: skip
            return f"different types: {first}; {second}"
        return None

    def _joins(self, a: int, b: int) -> list[tuple[int, int, int]]:
        known, triples = self._known, []
        for head, tail in ((a, b), (b, a)):
            low, high = int(known.head_ptr[head]), int(known.head_ptr[head + 1])
            at = low + (known.head_tails[low:high] == tail).nonzero()[0]
            triples += [(head, int(known.head_relations[i]), tail) for i in at]
        return triples

    def _either(self, entity: int, relation: int) -> list[int]:
        both = (relation, relation + self._kg.num_relations)
        return [t for directed in both for t in self._known.answers(entity, directed).tolist()]
