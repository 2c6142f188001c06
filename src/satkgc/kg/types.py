"""The types of entities, by what the graph states: `rdf:type`, labels of Neo4j, and classes above those."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np

from satkgc.arrays import Int32
from satkgc.kg.adjacency import KnownTriples
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.logic import RelationLogic, find_relation, is_general

SUBCLASS = ("rdfs:subClassOf", "http://www.wikidata.org/prop/direct/P279", "P279")


class EntityTypes:
    """Types of a graph's entities; a class counts as what the classes above it are."""

    def __init__(self, kg: KnowledgeGraph, logic: Sequence[RelationLogic], known: KnownTriples | None = None) -> None:
        self._kg, self._known = kg, known or kg.known_all
        self._type = [r for r, one in enumerate(logic) if one.type]
        found = (find_relation(kg, iri) for iri in SUBCLASS)
        self._subclass = [r for r in found if r is not None]
        self.above = lru_cache(maxsize=1 << 16)(self._above)

    def of(self, entity: int) -> tuple[int, ...]:
        """The types that are stated of an entity itself, less those of the vocabulary's own."""
        if entity >= self._kg.num_entities:  # one that was added
            return ()
        stated = {t for r in self._type for t in self._known.tails(entity, r).tolist()}
        return tuple(sorted(t for t in stated if not is_general(self._kg.entities.id(t))))

    def all_of(self, entity: int) -> frozenset[int]:
        """The types of an entity with the classes above them, and those above the entity where it is a class."""
        if entity >= self._kg.num_entities:
            return frozenset()
        above = self.above(entity) if self._subclass else frozenset()
        return above.union(*((t, *self.above(t)) for t in self.of(entity)))

    def _above(self, entity: int) -> frozenset[int]:
        return frozenset(self._reached(entity, 0)) - {entity}

    def _reached(self, entity: int, shift: int) -> set[int]:
        """Classes above a class, or below it where `shift` is the number of relations; itself among them."""
        seen, front = {entity}, [entity]
        while front:
            one = front.pop()
            more = {t for r in self._subclass for t in self._known.answers(one, r + shift).tolist()} - seen
            seen |= more
            front += more
        return seen

    def members(self, type: int) -> Int32:
        """The entities of a type, ascending; where nothing is of it, the classes below it."""
        size = self._kg.num_relations
        below = self._reached(type, size)
        parts = [self._known.answers(c, r + size) for c in below for r in self._type]
        found = np.unique(np.concatenate([*parts, np.empty(0, np.int32)])).astype(np.int32)
        return found if len(found) else np.array(sorted(below - {type}), np.int32)

    @cached_property
    def counts(self) -> list[tuple[int, int]]:
        """Every type with how many entities it is stated of, most frequent first."""
        known = self._known
        typed = known.tail_relations
        mask = np.isin(typed, self._type)
        ends = np.repeat(np.arange(self._kg.num_entities), np.diff(known.tail_ptr))[mask]
        types, counts = np.unique(ends, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        pairs = zip(types[order].tolist(), counts[order].tolist(), strict=True)
        return [(t, n) for t, n in pairs if not is_general(self._kg.entities.id(t))]
