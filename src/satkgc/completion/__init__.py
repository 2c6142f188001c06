"""Questions to a trained model: index, calibration, evidence → answers."""

from satkgc.completion.answer import Answer, Entity, EntityDetail, Neighbour, NewEntity, Question, Relation, Role
from satkgc.completion.completer import Completer

__all__ = [
    "Answer", "Completer", "Entity", "EntityDetail", "Neighbour", "NewEntity", "Question", "Relation", "Role",
]  # fmt: skip
