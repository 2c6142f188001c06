"""From what a person writes to entities and relations of the graph, and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
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
from satkgc.completion.search import MAX_LETTERS, EntitySearch, name_match, similarity
from satkgc.errors import SatkgcError
from satkgc.kg import SPLITS, KnowledgeGraph, expand
from satkgc.models import Fact, NewEntityText

SHOWN = 5  # candidates or suggestions named in a message


EntityOrText = int | NewEntityText  # an entity of the graph or one that was added, or words


@dataclass(frozen=True, slots=True)
class AddedEntity:
    """An entity that the graph does not have, under an id."""

    id: str
    text: NewEntityText


class Names:
    """Ids and names of the graph's entities and relations, and of the entities added since."""

    def __init__(self, kg: KnowledgeGraph, search: EntitySearch) -> None:
        self.kg, self._search = kg, search
        self.added: tuple[AddedEntity, ...] = ()  # replaced as a whole, so that other threads see all or nothing
        self.fact_answers: dict[tuple[int, int], tuple[int, ...]] = {}  # to (entity, directed), by facts of these
        self.frequency = np.bincount(kg.train[:, 1], minlength=kg.num_relations)  # (R,) training triples
        self._version = 0  # part of a cache's key: what another thread began before a change is not found after it
        self._members = lru_cache(maxsize=64)(self._find_members)

    def id(self, index: int) -> str:
        """The id of an entity."""
        new = self._new(index)
        return self.kg.entities.id(index) if new is None else new.id

    def name(self, index: int) -> str:
        """The name of an entity."""
        new = self._new(index)
        return self.kg.entities.name(index) if new is None else new.text.name

    def describe(self, index: int) -> Entity:
        """An entity as a search shows it."""
        new = self._new(index)
        if new is not None:
            text = new.text
            return Entity(new.id, text.name, text.description, len({fact.entity for fact in text.facts}))
        entities, degree = self.kg.entities, int(self.kg.fact_adjacency.degree[index])
        return Entity(entities.id(index), entities.name(index), entities.description(index), degree)

    def describe_relation(self, index: int) -> Relation:
        """A relation with its frequency."""
        relations = self.kg.relations
        return Relation(relations.id(index), relations.name(index), int(self.frequency[index]))

    def add(self, entity: NewEntity) -> AddedEntity:
        """Take an entity in under its id, or under a new one; the caller keeps two threads from adding at once."""
        id = entity.id or f"new:{len(self.added) + 1}"
        if self._find(id) is not None:
            raise SatkgcError(f"there is an entity {id!r} already", remedy="choose another id")
        new = AddedEntity(id, self.text(entity))
        self.added = (*self.added, new)
        return new

    def add_facts(self, index: int) -> None:
        """Take in what is known of an entity that was added, from both sides; its vector has to be there by now."""
        answers = dict(self.fact_answers)
        for fact in self.added[index - self.kg.num_entities].text.facts:
            inverse = (fact.relation + self.kg.num_relations) % (2 * self.kg.num_relations)
            for key, answer in (((index, fact.relation), fact.entity), ((fact.entity, inverse), index)):
                answers[key] = (*answers.get(key, ()), answer)
        self.fact_answers = answers
        self._version += 1

    def id_and_name(self, entity: EntityOrText) -> tuple[str, str]:
        """Of an entity; text that was not added has no id."""
        return (self.id(entity), self.name(entity)) if isinstance(entity, int) else ("", entity.name)

    def facts(self, entity: EntityOrText) -> list[tuple[int, int]]:
        """What facts say of an entity since the graph was loaded: directed relations and entities across."""
        if not isinstance(entity, int):
            return [(fact.relation, fact.entity) for fact in entity.facts]
        return [(d, other) for (e, d), others in self.fact_answers.items() if e == entity for other in others]

    def entity(self, ref: str) -> int:
        """The entity with this id, or name, or last part of an id; the error for several lists them."""
        index = self._find(ref)
        if index is not None:
            return index
        if (index := self.kg.entities.find(expand(ref))) is not None:
            return index
        named = [int(i) for i in self.kg.entities.by_name(ref)] + self._added_by_name(ref)
        named = named or self._search.by_name(ref) or self._search.last_part(ref).tolist()
        if len(named) == 1:
            return named[0]
        if named:
            degree = self.kg.fact_adjacency.degree
            shown = sorted(named, key=lambda i: -int(degree[i]) if i < len(degree) else 0)[:SHOWN]
            raise AmbiguousNameError("entity", ref, [self.describe(i) for i in shown], len(named))
        raise UnknownNameError("entity", ref, self.search(ref, SHOWN))

    def resolve(self, ref: EntityRef) -> EntityOrText:
        """An entity by id or name, or new text with its facts looked up."""
        return self.entity(ref) if isinstance(ref, str) else self.text(ref)

    def text(self, new: NewEntity) -> NewEntityText:
        """A new entity as a model reads it, its facts by relation and entity."""
        if not new.name.strip():
            raise SatkgcError("a new entity without a name", remedy="give it a name")
        _check(new.name)
        _check(new.description)
        facts = set()
        for fact in new.facts:
            inverse = self.kg.num_relations if fact.side == "tail" else 0
            facts.add((self.relation(fact.relation) + inverse, self.entity(fact.other or "")))
        ordered = tuple(Fact(directed, entity, self.name(entity)) for directed, entity in sorted(facts))
        return NewEntityText(new.name, new.description, ordered)

    def relation(self, ref: str) -> int:
        """The relation with this id, `rdf:type` or else with this name, or last part of an id after a prefix."""
        _check(ref)
        relations = self.kg.relations
        for id in (ref, expand(ref)):
            if (index := relations.find(id)) is not None:
                return index
        named = relations.by_name(ref)
        prefix, _, end = ref.partition(":")
        if not len(named) and prefix.isalnum() and end:  # as the file had it, whose prefixes are not kept
            ids = relations.ids.to_pylist()
            named = np.array([i for i, id in enumerate(ids) if re.search(rf"[#/:]{re.escape(end)}$", id)], np.int32)
        if len(named) == 1:
            return int(named[0])
        if len(named):
            raise AmbiguousNameError(
                "relation", ref, [self.describe_relation(int(i)) for i in named[:SHOWN]], len(named)
            )
        text = ref.lower()[:MAX_LETTERS]
        ratios = {
            i: max(similarity(text, name.lower()) for name in {relations.id(i), relations.name(i)})
            for i in range(len(relations))
        }
        near = sorted((i for i in ratios if ratios[i] > 0.4), key=lambda i: -ratios[i])
        raise UnknownNameError("relation", ref, [self.describe_relation(i) for i in near[:SHOWN]])

    def search(self, text: str, limit: int) -> list[Entity]:
        """Entities that begin with or look like a text; those added come where they match as well."""
        _check(text)
        scored = [(name_match(text, new.text.name), i) for i, new in enumerate(self.added)]
        late = [len(self.kg.entities) + i for score, i in sorted(scored, reverse=True) if score > 0]
        return [self.describe(i) for i in [*late, *self._search.search(text, limit)][:limit]]

    def allow(self, among: Sequence[str] | None, role: Role | None) -> Int32 | None:
        """The entities that a question's filters leave, ascending; None where there is no filter."""
        chosen = None if among is None else np.unique(np.array([self.entity(e) for e in among], np.int32))
        if role is None:
            return chosen
        other = None if role.other is None else self.entity(role.other)
        typed = self.members(self.relation(role.relation), role.side, other)
        return typed if chosen is None else np.intersect1d(chosen, typed)

    def members(self, relation: int, side: str, other: int | None) -> Int32:
        """The entities on one side of a relation's triples, in any split; only of those with `other` across."""
        return self._members(relation, side, other, self._version)

    def _find_members(self, relation: int, side: str, other: int | None, _: int) -> Int32:
        column, across = (0, 2) if side == "head" else (2, 0)
        parts = []
        for triples in map(self.kg.split, SPLITS):
            kept = triples[triples[:, 1] == relation]
            parts.append(kept[:, column] if other is None else kept[kept[:, across] == other, column])
        directed = relation if side == "head" else relation + self.kg.num_relations
        facts = self.fact_answers.items()
        late = [e for (e, d), others in facts if d == directed and (other is None or other in others)]
        members = np.zeros(len(self.kg.entities) + len(self.added), bool)
        for entities in (*parts, np.array(late, np.int32)):
            members[entities] = True
        return np.flatnonzero(members).astype(np.int32)  # np.unique takes seconds for a million

    def _new(self, index: int) -> AddedEntity | None:
        first = len(self.kg.entities)
        return self.added[index - first] if index >= first else None

    def _find(self, id: str) -> int | None:
        _check(id)
        index = self.kg.entities.find(id)
        if index is None:
            late = [i for i, new in enumerate(self.added) if new.id == id]
            return len(self.kg.entities) + late[0] if late else None
        return index

    def _added_by_name(self, name: str) -> list[int]:
        return [len(self.kg.entities) + i for i, new in enumerate(self.added) if new.text.name == name]


def _check(text: str) -> None:
    """Refuse half a character, which a terminal makes of bytes that are not UTF-8 and nothing below can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SatkgcError(f"{text[:40]!a} is not valid Unicode", remedy="write it in UTF-8") from error
