"""Proposals that wait for a person's decision: the rows of a table, beside the decisions of the run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from satkgc.errors import SatkgcError
from satkgc.kg import DECISIONS, Decision, Decisions, Statement, Verdict

if TYPE_CHECKING:
    from satkgc.completion import Completer


@dataclass(frozen=True, slots=True)
class Proposal:
    """A statement that the model proposes, and what was decided on it."""

    head: str
    relation: str
    tail: str
    head_name: str
    relation_name: str
    tail_name: str
    head_description: str
    tail_description: str
    score: float
    probability: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Progress:
    """How many proposals are undecided, accepted, rejected and skipped."""

    open: int
    accept: int
    reject: int
    skip: int


@dataclass(frozen=True, slots=True)
class RelationCount:
    """A relation with how many of its proposals are undecided."""

    id: str
    name: str
    open: int
    total: int


class ReviewQueue:
    """Proposals, the most likely first. May be used from several threads, and beside other processes."""

    def __init__(self, proposals: list[Proposal], decisions: Decisions) -> None:
        worth = sorted(proposals, key=lambda p: p.score if p.probability is None else p.probability, reverse=True)
        self._rows: dict[Statement, Proposal] = {}
        for row in worth:
            self._rows.setdefault((row.head, row.relation, row.tail), row)
        self._decisions = decisions

    @classmethod
    def open(cls, completer: Completer, file: Path) -> ReviewQueue:
        """The queue of a table that `satkgc propose` wrote for the run, or for its graph."""
        from satkgc.completion import read_proposals

        decisions = Decisions(completer.run / DECISIONS)
        decisions.check_writable()
        decisions.last()
        entities, relations = completer.kg.entities, completer.kg.relations
        rows = []
        for number, row in enumerate(read_proposals(file), 1):
            head, relation, tail = entities.find(row[0]), relations.find(row[1]), entities.find(row[2])
            if head is None or relation is None or tail is None:
                what = next(id for id, at in zip(row, (head, relation, tail), strict=False) if at is None)
                remedy = "give what `satkgc propose` wrote for this run"
                raise SatkgcError(f"row {number}: the graph has no {what!r}", where=file, remedy=remedy)
            names = entities.name(head), relations.name(relation), entities.name(tail)
            texts = entities.description(head), entities.description(tail)
            rows.append(Proposal(*row[:3], *names, *texts, row[6], row[7], "open"))
        if not rows:
            raise SatkgcError("no proposals here", where=file, remedy="make some with `satkgc propose`")
        return cls(rows, decisions)

    def progress(self) -> Progress:
        """Over all proposals."""
        counts = Counter(row.verdict for row in self._decided())
        return Progress(counts["open"], counts["accept"], counts["reject"], counts["skip"])

    def relations(self) -> list[RelationCount]:
        """The relations of the proposals, those with most of them first."""
        total = Counter((row.relation, row.relation_name) for row in self._rows.values())
        left = Counter(row.relation for row in self._decided() if row.verdict == "open")
        return [RelationCount(id, name, left[id], count) for (id, name), count in total.most_common()]

    def select(self, verdict: Verdict | Literal["all"], relation: str | None) -> list[Proposal]:
        """Those of a verdict and a relation: undecided ones in their order, others the last decided first."""
        last = self._decisions.last()  # once: a decision may be taken back meanwhile
        decided = self._decided(last)
        rows = [row for row in decided if verdict in ("all", row.verdict) and relation in (None, row.relation)]
        if verdict in ("open", "all"):
            return rows
        when = {statement: number for number, statement in enumerate(last)}
        return sorted(rows, key=lambda row: -when[row.head, row.relation, row.tail])

    def decide(self, statement: Statement, verdict: Verdict) -> None:
        """Keep a decision on a proposal; it is on the disk when this returns."""
        row = self._rows.get(statement)
        if row is None:
            raise SatkgcError("this is none of the proposals", remedy="decide on what GET /api/v1/proposals lists")
        names = row.head_name, row.relation_name, row.tail_name
        self._decisions.add(Decision(*statement, verdict, *names, row.score, row.probability))

    def _decided(self, last: dict[Statement, Decision] | None = None) -> list[Proposal]:
        last = self._decisions.last() if last is None else last
        return [
            row if (decision := last.get(statement)) is None else replace(row, verdict=decision.verdict)
            for statement, row in self._rows.items()
        ]
