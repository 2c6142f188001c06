"""Which relations make sense for an entity: those that the entities most like it have.

A probability says which answer is right, given that the question has one. Asked for all relations at once, a person
wants no antonym of a dog: what similar entities never have is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from satkgc.completion import NewEntity
from satkgc.serving.schemas import FittingRelation

if TYPE_CHECKING:
    from satkgc.completion import Completer

NEAREST = 64  # entities that are looked at


def fitting(completer: Completer, entity: str | NewEntity, asked: Literal["head", "tail"]) -> list[FittingRelation]:
    """Relations by the share of the nearest entities that have them on the entity's side, most frequent first."""
    kg, asker = completer.kg, completer.asker
    vector = asker.entity_vector(asker.names.subject(entity))
    _, found = asker.index.search(vector[None], min(NEAREST, len(asker.index)))  # an entity of the graph finds itself
    known = kg.known_train
    ptr, relations = known.head_ptr, known.head_relations
    if asked == "head":
        ptr, relations = known.tail_ptr, known.tail_relations
    near = found[0][(found[0] >= 0) & (found[0] < kg.num_entities)]
    votes = np.zeros(kg.num_relations, np.int64)
    for other in near:
        votes[np.unique(relations[ptr[other] : ptr[other + 1]])] += 1
    return [
        FittingRelation(id=kg.relations.id(r), name=kg.relations.name(r), share=votes[r] / len(near))
        for r in np.argsort(-votes, kind="stable")
        if votes[r]
    ]
