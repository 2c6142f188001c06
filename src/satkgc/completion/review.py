"""Proposals that a person has looked through, in a table or on the page: what was accepted, in another form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from satkgc.completion.consistency import Triple
from satkgc.completion.proposals import ACCEPT, COLUMNS, DESCRIPTIONS, Row, check_ending, write_triples
from satkgc.completion.reviewed_table import cell, check_table, number, reviewed_records
from satkgc.errors import SatkgcError
from satkgc.files import check_new
from satkgc.kg import (
    DECISIONS,
    Decision,
    Decisions,
    KnowledgeGraph,
    RelationLogic,
    is_graph_folder,
    read_decisions,
)
from satkgc.training import RunFolder


def accept_proposals(reviewed: str | Path, out: str | Path, column: str = ACCEPT) -> tuple[int, int]:
    """Write what was accepted: how many statements those are, and of how many.

    `reviewed` is a .tsv or .csv of proposals, whose column says yes, or a run folder with decisions made on the page.
    """
    reviewed, out = Path(reviewed), Path(out)
    check_ending(check_new(out))
    accepted, total = accepted_rows(reviewed, column)
    return write_triples(out, [accepted]), total


def accept_into(reviewed: str | Path, graph: str | Path, column: str = ACCEPT) -> tuple[int, KnowledgeGraph]:
    """Add what was accepted to a graph, for training: how many statements are new to it, and the graph.

    A graph that is there is replaced in one step; under a new name the run's own is written with the statements.
    """
    reviewed, graph = Path(reviewed), Path(graph)
    accepted, _ = accepted_rows(reviewed, column)
    if (graph.parent / "config.json").exists():
        raise SatkgcError("this is the graph of a run, whose model knows no other", where=graph, remedy="name another")
    if is_graph_folder(graph):
        base = KnowledgeGraph.load(graph)
    elif reviewed.is_dir() and not graph.exists():
        base = RunFolder.load(reviewed).kg
    else:
        remedy = "give one that `satkgc kg import` wrote" + (", or a new name" if reviewed.is_dir() else "")
        raise SatkgcError("no graph here", where=graph, remedy=remedy)
    fresh = list({row[:3]: row for row in accepted if not _has(base, row)}.values())
    if not fresh:
        return 0, base if is_graph_folder(graph) else base.save(graph)
    with TemporaryDirectory() as folder:
        write_triples(Path(folder, "accepted.csv"), [fresh])
        grown = KnowledgeGraph.load([base.path or reviewed, Path(folder, "accepted.csv")])
        return len(fresh), grown.save(graph, overwrite=True)


def decided_triples(run: Path, kg: KnowledgeGraph, logic: Sequence[RelationLogic] | None) -> list[Triple]:
    """What the run's decisions accept or reject, and its mirrors under symmetric and inverse relations."""
    triples = []
    for decision in read_decisions(run).values():
        if decision.verdict == "skip" or (triple := kg.find_triple(*decision.statement)) is None:
            continue
        triples.append(triple)
        head, relation, tail = triple
        if logic is not None:
            mirror = relation if logic[relation].symmetric else logic[relation].inverse
            triples += [] if mirror is None else [(tail, mirror, head)]
    return triples


def read_proposals(file: Path) -> Iterator[Row]:
    """The rows of a .tsv or .csv of proposals, whatever its column of acceptance says."""
    check_table(file)
    return (row for row, _ in _rows(file, None))


def accepted_rows(reviewed: Path, column: str) -> tuple[list[Row], int]:
    """The rows that were accepted, and how many were looked through."""
    if reviewed.is_dir():
        decisions = Decisions(reviewed / DECISIONS).last().values()
        yes = [decision for decision in decisions if decision.verdict == "accept"]
        accepted: list[Row] = [
            (*d.statement, d.head_name, d.relation_name, d.tail_name, d.score or 0.0, d.probability, *texts)
            for d, texts in zip(yes, _descriptions(reviewed, yes), strict=True)
        ]
        if not accepted:
            remedy = "accept some on the page: satkgc serve RUN --proposals FILE"
            raise SatkgcError("nothing was accepted in this run", where=reviewed / DECISIONS, remedy=remedy)
        return accepted, len(decisions)
    check_table(reviewed)
    rows = list(_rows(reviewed, column))
    accepted = [row for row, yes in rows if yes]
    if not accepted:
        remedy = "write yes where a triple is right, and save it"
        raise SatkgcError(f"no row says yes in column {column!r}", where=reviewed, remedy=remedy)
    return accepted, len(rows)


def _descriptions(run: Path, decisions: Sequence[Decision]) -> list[tuple[str, str]]:
    """Of both ends, by the run's graph; nothing of what has come since."""
    if not decisions:
        return []
    entities = RunFolder.load(run).kg.entities
    texts = (
        entities.description(end) if (end := entities.find(id)) is not None else ""
        for d in decisions
        for id in (d.statement[0], d.statement[2])
    )
    return list(zip(texts, texts, strict=True))


def _has(kg: KnowledgeGraph, row: Row) -> bool:
    triple = kg.find_triple(*row[:3])
    return triple is not None and triple[2] in kg.known_all.tails(*triple[:2])


def _rows(file: Path, column: str | None) -> Iterator[tuple[Row, bool]]:
    for record, verdict, where in reviewed_records(file, COLUMNS[:3], column, "propose"):
        words = [cell(record, name) for name in (*COLUMNS[:6], *DESCRIPTIONS)]
        head, relation, tail, *names = words
        if not (head.strip() and relation.strip() and tail.strip()):
            raise SatkgcError("a triple without head, relation or tail", where=where, remedy="fill it in")
        score, probability = (number(record, name, where) for name in COLUMNS[6:])
        row = head, relation, tail, names[0], names[1], names[2], score or 0.0, probability, names[3], names[4]
        yield row, verdict
