"""Questions to a trained model: load a run once, ask as often as you like, from any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from satkgc.completion.answer import (
    Answer,
    Asked,
    Entity,
    EntityDetail,
    EntityRef,
    Evidence,
    Neighbour,
    NewEntity,
    Question,
    Relation,
)
from satkgc.completion.approximate import FaissIndex
from satkgc.completion.asking import Asker
from satkgc.completion.evidence import find_evidence
from satkgc.completion.prepare import (
    IndexKind,
    index_checksum,
    is_prepared,
    open_prepared,
    prepare,
    stored_tokens,
)
from satkgc.completion.propose import propose
from satkgc.completion.weigh import COMPETING
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.processes import find_device
from satkgc.training import Run


class Completer:
    """A loaded run: towers, graph, entity vectors, calibration. All methods may be called from several threads."""

    def __init__(self, asker: Asker, run: Path) -> None:
        self.asker, self.run = asker, run
        self._adding = threading.Lock()

    @classmethod
    def load(cls, run: str | Path, device: str = "cpu", told: Callable[[str], None] = lambda doing: None) -> Completer:
        """Open a run folder; what it needs to answer is made on the first call, tells how far it is, and is kept."""
        loaded = Run.load(run)
        towers = loaded.towers(find_device(device))
        parts = loaded.folder, loaded.kg, towers
        if is_prepared(loaded.folder):
            return cls(open_prepared(*parts, loaded.texts(towers, stored_tokens(loaded.folder))), loaded.folder)
        return cls(prepare(*parts, loaded.texts(towers), told=told), loaded.folder)

    @classmethod
    def prepare(cls, run: str | Path, device: str = "cpu", index: IndexKind = "exact") -> dict[str, Any]:
        """Make entity vectors, index and calibration anew; tells what was measured."""
        loaded = Run.load(run)
        towers = loaded.towers(find_device(device))
        asker = prepare(loaded.folder, loaded.kg, towers, loaded.texts(towers), index)
        facts: dict[str, Any] = {"entities": len(asker.vectors), "dim": asker.vectors.dim, "index": index}
        if isinstance(asker.index, FaissIndex):
            facts["recall@10"] = asker.index.recall
        if asker.calibration is not None:
            facts |= {"calibration questions": asker.calibration.questions}
            facts |= {"calibration error": asker.calibration.ece, "of first answers": asker.calibration.ece_first}
        if asker.joining.questions:
            many = min(COMPETING, asker.kg.num_relations)
            facts["relation questions"] = asker.joining.questions
            facts[f"right relation first of {many}"] = asker.joining.first
        return facts

    @property
    def kg(self) -> KnowledgeGraph:
        """The run's graph."""
        return self.asker.kg

    def tails(self, head: EntityRef, relation: str, k: int = 10, **filters: object) -> list[Answer]:
        """Answers to (head, relation, ?), best first; the filters are those of `Question`."""
        return self.ask([Question(head=head, relation=relation, k=k, **filters)])[0]  # type: ignore[arg-type]

    def heads(self, relation: str, tail: EntityRef, k: int = 10, **filters: object) -> list[Answer]:
        """Answers to (?, relation, tail), best first."""
        return self.ask([Question(relation=relation, tail=tail, k=k, **filters)])[0]  # type: ignore[arg-type]

    def relations(self, head: EntityRef, tail: EntityRef, k: int = 10, **filters: object) -> list[Answer]:
        """Answers to (head, ?, tail), best first: `Answer.id` and `.name` are the relation's.

        The score is the mean cosine of (head, relation, tail) asked from both ends; the order is that of the
        probability, which weighs how frequent the relation is as well.
        """
        return self.ask([Question(head=head, tail=tail, k=k, **filters)])[0]  # type: ignore[arg-type]

    def ask(self, questions: Sequence[Question]) -> list[list[Answer]]:
        """Answer many questions at once: their distinct queries are encoded in one go."""
        return self.asker.ask(questions)

    def ask_each(self, questions: Sequence[Question]) -> list[list[Answer] | SatkgcError]:
        """As `ask`, but a question that cannot be answered has its error in the place of answers."""
        return self.asker.ask_each(questions)

    def texts_read(self, question: Question) -> int:
        """How many texts have to be encoded to answer it: one, but two a relation where the relation is asked for."""
        return 2 * self.kg.num_relations if question.relation is None else 1

    def evidence(self, head: EntityRef, relation: str, tail: EntityRef, k: int = 5, asked: Asked = "tail") -> Evidence:
        """Why (head, relation, tail): similar known triples, a shortest path, the texts that were compared.

        Score and probability are those of the tail among the answers to (head, relation, ?); `asked` may be "head" or
        "relation" instead.
        """
        if asked not in get_args(Asked):
            raise SatkgcError(f"asked is {asked!r}", remedy="say head, relation or tail")
        names = self.asker.names
        parts = names.subject(head), names.relation(relation), names.subject(tail)
        return find_evidence(self.asker, *parts, k, asked)

    def propose(
        self,
        out: str | Path,
        n: int = 1000,
        relations: Sequence[str] | None = None,
        min_probability: float | None = None,
        second_answers: bool = False,
        without: Sequence[str] = (),
        typed: bool = False,
    ) -> int:
        """Write the `n` most likely missing triples of the graph, or of some relations, to .tsv, .csv, .parquet or .nt.

        Where a relation gives nearly every entity one answer, those that have it get no second one, unless
        `second_answers` are wanted; `typed`, only entities that the graph has at that end of the relation already are
        proposed there. A call that was stopped goes on where it was when it is made again. Returns how many were
        written.
        """
        names = self.asker.names
        if isinstance(relations, str) or isinstance(without, str):
            raise SatkgcError("relations are given as a text", remedy="give a list of ids or names")
        chosen = set(range(self.kg.num_relations) if relations is None else map(names.relation, relations))
        chosen -= set(map(names.relation, without))
        if not chosen:
            raise SatkgcError("no relation is left to propose", remedy="leave fewer out")
        signature = index_checksum(self.run)
        return propose(self.asker, Path(out), n, sorted(chosen), min_probability, signature, second_answers, typed)

    def search(self, text: str, limit: int = 10) -> list[Entity]:
        """Entities whose id or name begins with the text or looks like it, best first."""
        return self.asker.names.search(text, limit)

    def entity(self, entity: str, limit: int = 50, offset: int = 0) -> EntityDetail:
        """An entity by id or name, with its neighbours in the training graph and by facts of those added since, from
        the one at `offset` on."""
        names, relations, size = self.asker.names, self.kg.relations, self.kg.num_relations
        index = names.entity(entity)
        shown = names.describe(index)
        edges = self.kg.adjacency.triples_at(index) if index < self.kg.num_entities else np.empty(0, np.int32)
        found = [
            (r, t) if h == index else (r + size, h)
            for h, r, t in self.kg.train[edges[offset : offset + limit]].tolist()
        ]
        late = names.facts(index)
        neighbours = []
        for directed, other in [*found, *late[max(0, offset - len(edges)) :]][:limit]:
            r = directed % size
            way: Literal["out", "in"] = "out" if directed < size else "in"
            neighbours.append(Neighbour(relations.id(r), relations.name(r), way, names.id(other), names.name(other)))
        total = len(edges) + len(late)
        return EntityDetail(shown.id, shown.name, shown.description, shown.degree, total, tuple(neighbours))

    def relation_list(self) -> list[Relation]:
        """All relations of the graph, most frequent first."""
        names = self.asker.names
        return [names.describe_relation(int(r)) for r in np.argsort(-names.frequency, kind="stable")]

    def add(self, entity: NewEntity) -> str:
        """Put a new entity into the loaded index, so that it can be an answer; returns its id. Kept in memory only."""
        vector = self.asker.entity_vector(self.asker.names.subject(entity))
        with self._adding:
            # The name first: a search in another thread may find only what can be named.
            new = self.asker.names.add(entity)
            self.asker.index.add(vector[None])
            self.asker.names.join(new)
        return new.id
