"""Triples against what relations mean (`satkgc.kg.RelationLogic`): which say nothing new, and which cannot be.

Said already: a triple is *mirrored* if the graph has it turned round under a symmetric or inverse relation, *implied*
if the graph has it with a relation that implies this one, or leads from its head to its tail in steps of a transitive
relation or a hierarchy. Contradictions: it is *cyclic* if a hierarchy leads from its tail to its head, a *second value*
if an end has the one answer that the relation gives, of a *wrong type* if an end has types and none of those that the
relation has there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from satkgc.arrays import Bool, Int32
from satkgc.completion.answer import Objection, ObjectionKind
from satkgc.kg import EntityTypes, KnowledgeGraph, KnownTriples, RelationLogic

Triple = tuple[int, int, int]
CONTRADICTIONS: tuple[ObjectionKind, ...] = ("cyclic", "second_value", "wrong_type")
MOST_SEEN = 10_000  # entities that a search for a path looks at before it gives up
SHOWN = 6  # entities of a path, or types, that a reason names


@dataclass(frozen=True)
class Conflict:
    """Why a triple says nothing new or cannot be: triples of the graph that tell, in order where they are a path."""

    kind: ObjectionKind
    triples: tuple[Triple, ...] = ()
    types: tuple[int, ...] = ()  # those that the relation has there, of a wrong one

    def objection(self, entity: Callable[[int], str], relation: Callable[[int], str]) -> Objection:
        """In words, by what entities and relations are called."""
        if self.kind == "wrong_type":
            (end, _, _), own = self.triples[0], [entity(t) for _, _, t in self.triples[:SHOWN]]
            wanted = ", ".join([*(entity(t) for t in self.types[:SHOWN]), *["…"] * (len(self.types) > SHOWN)])
            return Objection(self.kind, f"{entity(end)} is {', '.join(own)}, not {wanted}")
        said = [f"{entity(h)} – {relation(r)} – {entity(t)}" for h, r, t in self.triples]
        if len(said) > SHOWN:
            said[SHOWN // 2 : -SHOWN // 2] = ["…"]
        return Objection(self.kind, "the graph has " + ", ".join(said) if said else "an entity is not above itself")


class Consistency:
    """What a graph, and the triples accepted so far, leave to be said.

    An index beyond the graph's entities is one that was added; None is one of which nothing is known.
    """

    def __init__(self, kg: KnowledgeGraph, logic: Sequence[RelationLogic], known: KnownTriples | None = None) -> None:
        self._known, self._logic = known or kg.known_all, list(logic)
        self._size, self._entities = kg.num_relations, kg.num_entities
        self._new: dict[tuple[int, int], list[int]] = defaultdict(list)  # answers to an entity and directed relation
        self._implied_by: dict[int, list[int]] = defaultdict(list)
        for relation, one in enumerate(logic):
            for other in one.implies:
                self._implied_by[other].append(relation)
            if one.inverse is not None and logic[one.inverse].inverse is None:  # an edited file may say it of one alone
                self._logic[one.inverse] = replace(logic[one.inverse], inverse=relation)
        self.types = EntityTypes(kg, self._logic, self._known)

    def _turned(self, directed: int) -> int:
        return (directed + self._size) % (2 * self._size)

    def _same(self, directed: int) -> int | None:
        """The directed relation, if any, that has the same answers by the graph's logic."""
        one = self._logic[directed % self._size]
        other = directed % self._size if one.symmetric else one.inverse
        return None if other is None else other + (self._size if directed < self._size else 0)

    def _stated(self, entity: int, directed: int) -> list[int]:
        old = self._known.answers(entity, directed).tolist() if entity < self._entities else []
        return old + self._new.get((entity, directed), []) if self._new else old

    def _has(self, entity: int, directed: int, answer: int) -> bool:
        if answer in self._new.get((entity, directed), ()):
            return True
        if max(entity, answer) >= self._entities:
            return False
        answers = self._known.answers(entity, directed)
        place = int(np.searchsorted(answers, answer))
        return place < len(answers) and int(answers[place]) == answer

    def _answers(self, entity: int, directed: int) -> list[int]:
        """What the graph has, under the relation or turned round."""
        same = self._same(directed)
        return self._stated(entity, directed) + ([] if same is None else self._stated(entity, same))

    def conflict(self, head: int | None, relation: int, tail: int | None) -> Conflict | None:
        """Why a triple that the graph does not have is not to be said, if it is not."""
        if head is not None and tail is not None and (found := self._by_triples(head, relation, tail)) is not None:
            return found
        return self.mistyped(head, relation, tail)

    def mistyped(self, head: int | None, relation: int, tail: int | None) -> Conflict | None:
        """What an end's types say against a triple."""
        logic = self._logic[relation]
        for end, types in ((head, logic.domain), (tail, logic.range)):
            if end is not None and types and (own := self.types.all_of(end)) and own.isdisjoint(types):
                stated = self.types.of(end) or tuple(sorted(own))
                return Conflict("wrong_type", tuple((end, -1, t) for t in stated), types)
        return None

    def contradiction(self, head: int, relation: int, tail: int) -> Conflict | None:
        """What the other triples of the graph say against one that it has."""
        logic = self._logic[relation]
        if logic.hierarchy:
            path = self._path(relation, tail, head)
            if path or head == tail:
                return Conflict("cyclic", path)
        ends = ((logic.functional, head, relation, tail), (logic.inverse_functional, tail, relation + self._size, head))
        for gives_one, entity, directed, answer in ends:
            others = [other for other in self._answers(entity, directed) if other != answer] if gives_one else []
            if others:
                pair = (entity, others[0]) if directed < self._size else (others[0], entity)
                return Conflict("second_value", ((pair[0], relation, pair[1]),))
        return self.mistyped(head, relation, tail)

    def _by_triples(self, head: int, relation: int, tail: int) -> Conflict | None:
        logic, same = self._logic[relation], self._same(relation)
        if same is not None and self._has(head, same, tail):
            return Conflict("mirrored", ((tail, same % self._size, head),))
        for other in self._implied_by[relation]:
            if self._has(head, other, tail):
                return Conflict("implied", ((head, other, tail),))
        if logic.transitive or logic.hierarchy:
            if path := self._path(relation, head, tail):
                return Conflict("implied", path)
            if logic.hierarchy and (head == tail or (path := self._path(relation, tail, head))):
                return Conflict("cyclic", path)
        if logic.functional and (others := self._answers(head, relation)):
            return Conflict("second_value", ((head, relation, others[0]),))
        if logic.inverse_functional and (others := self._answers(tail, relation + self._size)):
            return Conflict("second_value", ((others[0], relation, tail),))
        return None

    def _path(self, relation: int, start: int, end: int) -> tuple[Triple, ...]:
        """Steps of a relation that lead from one entity to another; from both sides, the smaller first."""
        ways: tuple[dict[int, int], dict[int, int]] = (
            {start: start},
            {end: end},
        )  # entities, and where each came from
        fronts = [[start], [end]]
        if start == end:
            return ()
        while all(fronts) and sum(map(len, ways)) < MOST_SEEN:
            side = 0 if len(fronts[0]) <= len(fronts[1]) else 1
            directed, front = relation + side * self._size, []
            for entity in fronts[side]:
                for other in self._answers(entity, directed):
                    if other not in ways[side]:
                        ways[side][other] = entity
                        if other in ways[1 - side]:
                            stops = [*_back(ways[0], other)[::-1], *_back(ways[1], other)[1:]]
                            return tuple((a, relation, b) for a, b in pairwise(stops))
                        front.append(other)
            fronts[side] = front
        return ()

    def keep(self, triples: Int32, n: int) -> tuple[Bool, Counter[str]]:
        """Which triples, best first, can be said together, at most `n`; how many were dropped, and why."""
        kept, dropped, left = np.zeros(len(triples), bool), Counter[str](), n
        for row, (h, r, t) in enumerate(triples.tolist()):
            if not left:
                break
            if (found := self.conflict(h, r, t)) is not None:
                dropped[found.kind] += 1
                continue
            self._new[h, r].append(t)
            self._new[t, r + self._size].append(h)
            kept[row] = True
            left -= 1
        return kept, dropped


def _back(way: dict[int, int], entity: int) -> list[int]:
    stops = [entity]
    while way[stops[-1]] != stops[-1]:
        stops.append(way[stops[-1]])
    return stops
