"""Questions to a trained model: index, calibration, evidence → answers."""

from typing import TYPE_CHECKING, Any

from satkgc.completion.answer import (
    Answer,
    Entity,
    EntityDetail,
    Evidence,
    Neighbour,
    NewEntity,
    Question,
    Relation,
    Role,
)

if TYPE_CHECKING:
    from satkgc.completion.completer import Completer

__all__ = [
    "Answer", "Completer", "Entity", "EntityDetail", "Evidence", "Neighbour", "NewEntity", "Question", "Relation",
    "Role",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """The completer brings torch along, which takes seconds to import: only when it is asked for."""
    if name == "Completer":
        from satkgc.completion.completer import Completer

        return Completer
    raise AttributeError(name)
