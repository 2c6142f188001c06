"""What triples ask in one direction: an entity and a relation, the answer, and the other answers that are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from satkgc.arrays import Int32, Int64
from satkgc.errors import SatkgcError
from satkgc.evaluation.slices import Slices, known_answers
from satkgc.kg import KnowledgeGraph


@dataclass(frozen=True, eq=False)
class Questions:
    """One question a triple; answers are numbered by their places among the candidates."""

    entities: Int32  # (Q,) the entity that is given
    relations: Int32  # (Q,)
    answers: Int32  # (Q,)
    known: Slices  # of each question all known answers among the candidates, for the filter

    @classmethod
    def of(cls, kg: KnowledgeGraph, triples: Int32, direction: str, candidates: Int32) -> Questions:
        """Those for the tails of (n, 3) triples or, for direction "head", for their heads."""
        given, wanted = (0, 2) if direction == "tail" else (2, 0)
        entities, relations, answers = (np.ascontiguousarray(triples[:, column]) for column in (given, 1, wanted))
        known = known_answers(kg.known_all, entities, relations, direction)
        if len(candidates) < kg.num_entities:
            known, answers = known.among(candidates), np.searchsorted(candidates, answers).astype(np.int32)
        return cls(entities, relations, answers, known)


def triples_to_ask(kg: KnowledgeGraph, split: str, rows: Int64 | None = None) -> Int32:
    """A split's triples, or some of its rows; there must be some."""
    triples = kg.split(split) if rows is None else kg.split(split)[rows]
    if not len(triples):
        raise SatkgcError(f"{kg.name} has no {split} triples", remedy="choose another split")
    return triples
