"""Which relations make sense for an entity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from satkgc.completion import NewEntity
from satkgc.serving.schemas import FittingRelation

if TYPE_CHECKING:
    from satkgc.completion import Completer


def fitting(completer: Completer, entity: str | NewEntity, asked: Literal["head", "tail"]) -> list[FittingRelation]:
    """Relations by the share of the nearest entities that have them on the entity's side, most frequent first."""
    shares = completer.suggest_relations(entity, asked)
    return [FittingRelation(id=one.id, name=one.name, share=one.share) for one in shares]
