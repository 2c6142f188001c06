"""Proposals that say nothing new, or cannot be: dropped by what relations mean (`satkgc.kg.RelationLogic`).

A triple is *mirrored* if the graph has it turned round under a symmetric or inverse relation; *implied* if the graph
has it with a relation that implies this one, or leads from its head to its tail in steps of a transitive relation or a
hierarchy; *cyclic* if it leads from its tail to its head in a hierarchy. The better proposals count as the graph's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from satkgc.arrays import Bool, Int32
from satkgc.kg import SPLITS, KnowledgeGraph, RelationLogic

Triple = tuple[int, int, int]


class Consistency:
    """What a graph and the triples accepted so far leave to be said."""

    def __init__(self, kg: KnowledgeGraph, logic: Sequence[RelationLogic]) -> None:
        self._kg = kg
        self._logic = list(logic)
        self._new: set[Triple] = set()
        self._steps: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))  # relation, head, tails
        self._implied_by: dict[int, list[int]] = defaultdict(list)
        for relation, properties in enumerate(logic):
            for other in properties.implies:
                self._implied_by[other].append(relation)
            inverse = properties.inverse
            if inverse is not None and logic[inverse].inverse is None:  # an edited file may say it of one alone
                self._logic[inverse] = replace(logic[inverse], inverse=relation)
        chained = {r for r in range(len(logic)) if self._is_chain(r)}
        chained |= {one.inverse for r, one in enumerate(self._logic) if r in chained and one.inverse is not None}
        for split in SPLITS:
            triples = kg.split(split)
            for h, r, t in triples[np.isin(triples[:, 1], sorted(chained))].tolist():
                self._step(h, r, t)

    def _is_chain(self, relation: int) -> bool:
        return self._logic[relation].transitive or self._logic[relation].hierarchy

    def _step(self, h: int, r: int, t: int) -> None:
        for head, relation, tail in ((h, r, t), self._mirror(h, r, t)):
            if relation >= 0 and self._is_chain(relation):
                self._steps[relation][head].add(tail)

    def _mirror(self, h: int, r: int, t: int) -> Triple:
        """The triple turned round, under a relation that says the same; -1 where there is none."""
        inverse = self._logic[r].inverse
        return t, r if self._logic[r].symmetric else -1 if inverse is None else inverse, h

    def _knows(self, h: int, r: int, t: int) -> bool:
        if (h, r, t) in self._new:
            return True
        if r < 0 or max(h, t) >= self._kg.num_entities:  # of one that was added
            return False
        tails = self._kg.known_all.tails(h, r)
        place = int(np.searchsorted(tails, t))
        return place < len(tails) and int(tails[place]) == t

    def objection(self, h: int, r: int, t: int) -> str | None:
        """Why a triple is not to be proposed, if it is not."""
        if self._knows(*self._mirror(h, r, t)):
            return "mirrored"
        if any(self._knows(h, s, t) for s in self._implied_by[r]):
            return "implied"
        if self._is_chain(r):
            if self._leads(r, h, t):
                return "implied"
            if self._logic[r].hierarchy and (h == t or self._leads(r, t, h)):
                return "cyclic"
        return None

    def _leads(self, relation: int, start: int, end: int) -> bool:
        steps, seen, front = self._steps[relation], {start}, [start]
        while front:
            for tail in steps.get(front.pop(), ()):
                if tail == end:
                    return True
                if tail not in seen:
                    seen.add(tail)
                    front.append(tail)
        return False

    def keep(self, triples: Int32, n: int) -> tuple[Bool, Counter[str]]:
        """Which triples, best first, can be proposed together, at most `n`; how many were dropped, and why."""
        kept, dropped, left = np.zeros(len(triples), bool), Counter[str](), n
        for row, (h, r, t) in enumerate(triples.tolist()):
            if not left:
                break
            if (why := self.objection(h, r, t)) is not None:
                dropped[why] += 1
                continue
            self._new.add((h, r, t))
            self._step(h, r, t)
            kept[row] = True
            left -= 1
        return kept, dropped
