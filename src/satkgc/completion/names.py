"""From what a person writes to entities and relations of the graph, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from satkgc.arrays import Int32
from satkgc.completion.answer import (
    AmbiguousNameError,
    Entity,
    EntityRef,
    NewEntity,
    Relation,
    Role,
    UnknownNameError,
)
from satkgc.completion.search import LONGEST, EntitySearch, letters_alike, name_matches
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph

SHOWN = 5  # candidates or suggestions named in a message


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A new entity whose facts have been looked up: directed relations and entities, in the order of the texts."""

    name: str
    description: str
    facts: tuple[tuple[int, int], ...]
    id: str = ""


class Names:
    """Ids and names of the graph's entities and relations, and of the entities added since."""

    def __init__(self, kg: KnowledgeGraph, search: EntitySearch) -> None:
        self.kg, self._search = kg, search
        self.added: tuple[Newcomer, ...] = ()  # replaced as a whole, so that other threads see all or nothing
        self.joined: dict[tuple[int, int], tuple[int, ...]] = {}  # facts of these: answers to (entity, directed)
        self.frequency = np.bincount(kg.train[:, 1], minlength=kg.num_relations)  # (R,) training triples
        self._joins = 0  # part of a key of the cache: what another thread began before a change is not found after it
        self._members = lru_cache(maxsize=64)(self._find_members)

    def id(self, index: int) -> str:
        """The id of an entity."""
        new = self._new(index)
        return self.kg.entities.id(index) if new is None else new.id

    def name(self, index: int) -> str:
        """The name of an entity."""
        new = self._new(index)
        return self.kg.entities.name(index) if new is None else new.name

    def describe(self, index: int) -> Entity:
        """An entity as a search shows it."""
        new = self._new(index)
        if new is not None:
            return Entity(new.id, new.name, new.description, len({other for _, other in new.facts}))
        entities, degree = self.kg.entities, int(self.kg.adjacency.degree[index])
        return Entity(entities.id(index), entities.name(index), entities.description(index), degree)

    def describe_relation(self, index: int) -> Relation:
        """A relation with its frequency."""
        relations = self.kg.relations
        return Relation(relations.id(index), relations.name(index), int(self.frequency[index]))

    def add(self, entity: NewEntity) -> Newcomer:
        """Take an entity in under its id, or under one made up; the caller keeps two threads from adding at once."""
        id = entity.id or f"new:{len(self.added) + 1}"
        if self._find(id) is not None:
            raise SatkgcError(f"there is an entity {id!r} already", remedy="choose another id")
        new = replace(self._look_up(entity), id=id)
        self.added = (*self.added, new)
        return new

    def join(self, new: Newcomer) -> None:
        """Take in what is known of an entity that was added, from both sides; its vector has to be there by now."""
        index, joined = self.entity(new.id), dict(self.joined)
        for directed, other in new.facts:
            back = (directed + self.kg.num_relations) % (2 * self.kg.num_relations)
            for key, answer in (((index, directed), other), ((other, back), index)):
                joined[key] = (*joined.get(key, ()), answer)
        self.joined = joined
        self._joins += 1

    def called(self, subject: int | Newcomer) -> tuple[str, str]:
        """Id and name; text that was not added has no id."""
        return (subject.id, subject.name) if isinstance(subject, Newcomer) else (self.id(subject), self.name(subject))

    def facts(self, subject: int | Newcomer) -> list[tuple[int, int]]:
        """What was told of an entity since the graph was loaded: directed relations and entities across."""
        if isinstance(subject, Newcomer):
            return list(subject.facts)
        return [(d, other) for (e, d), others in self.joined.items() if e == subject for other in others]

    def entity(self, ref: str) -> int:
        """The entity with this id, or name, or last part of an id; of several, all are told."""
        found = self._find(ref)
        if found is not None:
            return found
        named = [int(i) for i in self.kg.entities.by_name(ref)] + self._added_as(ref)
        named = named or self._search.called(ref) or self._search.last_part(ref).tolist()
        if len(named) == 1:
            return named[0]
        if named:
            degree = self.kg.adjacency.degree
            shown = sorted(named, key=lambda i: -int(degree[i]) if i < len(degree) else 0)[:SHOWN]
            raise AmbiguousNameError("entity", ref, [self.describe(i) for i in shown], len(named))
        raise UnknownNameError("entity", ref, self.search(ref, SHOWN))

    def subject(self, ref: EntityRef) -> int | Newcomer:
        """What a question is about: an entity of the index, or new text."""
        return self.entity(ref) if isinstance(ref, str) else self._look_up(ref)

    def _look_up(self, new: NewEntity) -> Newcomer:
        if not new.name.strip():
            raise SatkgcError("a new entity without a name", remedy="give it a name")
        _check(new.name)
        _check(new.description)
        facts = set()
        for fact in new.facts:
            inverse = self.kg.num_relations if fact.side == "tail" else 0
            facts.add((self.relation(fact.relation) + inverse, self.entity(fact.other or "")))
        return Newcomer(new.name, new.description, tuple(sorted(facts)))

    def relation(self, ref: str) -> int:
        """The relation with this id or else with this name."""
        _check(ref)
        relations = self.kg.relations
        found = relations.find(ref)
        if found is not None:
            return found
        named = relations.by_name(ref)
        if len(named) == 1:
            return int(named[0])
        if len(named):
            raise AmbiguousNameError(
                "relation", ref, [self.describe_relation(int(i)) for i in named[:SHOWN]], len(named)
            )
        wanted = ref.lower()[:LONGEST]
        likeness = {
            i: max(letters_alike(wanted, text.lower()) for text in {relations.id(i), relations.name(i)})
            for i in range(len(relations))
        }
        near = sorted((i for i in likeness if likeness[i] > 0.4), key=lambda i: -likeness[i])
        raise UnknownNameError("relation", ref, [self.describe_relation(i) for i in near[:SHOWN]])

    def search(self, text: str, limit: int) -> list[Entity]:
        """Entities that begin with or look like a text; those added come where they match as well."""
        _check(text)
        scored = [(name_matches(text, new.name), i) for i, new in enumerate(self.added)]
        late = [len(self.kg.entities) + i for score, i in sorted(scored, reverse=True) if score > 0]
        return [self.describe(i) for i in [*late, *self._search.search(text, limit)][:limit]]

    def allowed(self, among: Sequence[str] | None, role: Role | None) -> Int32 | None:
        """The entities that a question's filters leave, ascending; None where there is no filter."""
        chosen = None if among is None else np.unique(np.array([self.entity(e) for e in among], np.int32))
        if role is None:
            return chosen
        other = None if role.other is None else self.entity(role.other)
        typed = self.members(self.relation(role.relation), role.side, other)
        return typed if chosen is None else np.intersect1d(chosen, typed)

    def members(self, relation: int, side: str, other: int | None) -> Int32:
        """The entities on one side of a relation's triples, in any split; only of those with `other` across."""
        return self._members(relation, side, other, self._joins)

    def _find_members(self, relation: int, side: str, other: int | None, _: int) -> Int32:
        column, across = (0, 2) if side == "head" else (2, 0)
        found = []
        for triples in (self.kg.train, self.kg.valid, self.kg.test):
            kept = triples[triples[:, 1] == relation]
            found.append(kept[:, column] if other is None else kept[kept[:, across] == other, column])
        directed = relation if side == "head" else relation + self.kg.num_relations
        late = [e for (e, d), others in self.joined.items() if d == directed and (other is None or other in others)]
        members = np.zeros(len(self.kg.entities) + len(self.added), bool)
        for entities in (*found, np.array(late, np.int32)):
            members[entities] = True
        return np.flatnonzero(members).astype(np.int32)  # np.unique takes seconds for a million

    def _new(self, index: int) -> Newcomer | None:
        first = len(self.kg.entities)
        return self.added[index - first] if index >= first else None

    def _find(self, id: str) -> int | None:
        _check(id)
        found = self.kg.entities.find(id)
        if found is None:
            late = [i for i, new in enumerate(self.added) if new.id == id]
            return len(self.kg.entities) + late[0] if late else None
        return found

    def _added_as(self, name: str) -> list[int]:
        return [len(self.kg.entities) + i for i, new in enumerate(self.added) if new.name == name]


def _check(text: str) -> None:
    """Refuse half a character, which a terminal makes of bytes that are not UTF-8 and nothing below can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SatkgcError(f"{text[:40]!a} is not valid Unicode", remedy="write it in UTF-8") from error
