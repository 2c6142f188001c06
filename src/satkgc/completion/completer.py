"""Questions to a trained model: load a run once, ask as often as you like, from any thread."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from satkgc.completion.answer import Answer, Entity, EntityDetail, EntityRef, NewEntity, Question, Relation

if TYPE_CHECKING:
    from satkgc.completion.evidence import Evidence


class Completer:
    """A loaded run: towers, graph, entity vectors, calibration. All methods may be called from several threads."""

    @classmethod
    def load(cls, run: str | Path, device: str = "cpu", index: str = "exact") -> Completer:
        """Open a run folder; its entity vectors and calibration are made on the first call and kept in it."""
        raise NotImplementedError

    def tails(self, head: EntityRef, relation: str, k: int = 10, **filters: object) -> list[Answer]:
        """Answers to (head, relation, ?), best first; the filters are those of `Question`."""
        return self.ask([Question(head=head, relation=relation, k=k, **filters)])[0]  # type: ignore[arg-type]

    def heads(self, relation: str, tail: EntityRef, k: int = 10, **filters: object) -> list[Answer]:
        """Answers to (?, relation, tail), best first."""
        return self.ask([Question(relation=relation, tail=tail, k=k, **filters)])[0]  # type: ignore[arg-type]

    def relations(self, head: EntityRef, tail: EntityRef, k: int = 10, **filters: object) -> list[Answer]:
        """Answers to (head, ?, tail), best first: `Answer.id` and `.name` are the relation's."""
        return self.ask([Question(head=head, tail=tail, k=k, **filters)])[0]  # type: ignore[arg-type]

    def ask(self, questions: Sequence[Question]) -> list[list[Answer]]:
        """Answer many questions at once: their distinct queries are encoded in one go."""
        raise NotImplementedError

    def evidence(self, head: EntityRef, relation: str, tail: EntityRef, k: int = 5) -> Evidence:
        """Why (head, relation, tail): similar known triples, a shortest path, the texts that were compared."""
        raise NotImplementedError

    def search(self, text: str, limit: int = 10) -> list[Entity]:
        """Entities whose id or name begins with the text or looks like it, best first."""
        raise NotImplementedError

    def entity(self, entity: str, limit: int = 50) -> EntityDetail:
        """An entity by id or name, with its neighbours."""
        raise NotImplementedError

    def relation_list(self) -> list[Relation]:
        """All relations of the graph, most frequent first."""
        raise NotImplementedError

    def add(self, entity: NewEntity) -> str:
        """Put a new entity into the loaded index, so that it can be an answer; returns its id. Kept in memory only."""
        raise NotImplementedError
