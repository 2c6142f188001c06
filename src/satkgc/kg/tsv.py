"""Write a graph as the TSV folder: the form that people read and edit."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from satkgc import output
from satkgc.errors import SatkgcError
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.vocabulary import Vocabulary

ROWS = 1 << 16


def write_tsv(graph: KnowledgeGraph, folder: Path) -> None:
    """Write train, valid, test, entities and relations.tsv, and the held-out entities of an inductive graph."""
    if folder.exists():
        raise SatkgcError("the output exists already", where=folder, remedy="remove it or choose another folder")
    partial = output.partial(folder)
    try:
        partial.mkdir(parents=True)
        for split in ("train", "valid", "test"):
            _write(partial / f"{split}.tsv", _triples(graph, split))
        for split, members in graph.split_entities.items():
            _write(partial / f"{split}_entities.tsv", ([graph.entities.id(i)] for i in members))
        _write(partial / "entities.tsv", _members(graph.entities, described=True))
        _write(partial / "relations.tsv", _members(graph.relations, described=False))
        os.rename(partial, folder)
    except OSError as error:
        raise SatkgcError(f"cannot write the graph: {error.strerror or error}", where=folder) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write(path: Path, rows: Iterable[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        # A tab or newline within a text would end the cell: any run of white space becomes one blank.
        file.writelines("\t".join(" ".join(cell.split()) for cell in row) + "\n" for row in rows)


def _triples(graph: KnowledgeGraph, split: str) -> Iterator[list[str]]:
    triples = graph.split(split)
    for start in range(0, len(triples), ROWS):
        rows = triples[start : start + ROWS]
        heads, tails = graph.entities.ids.take(rows[:, 0].copy()), graph.entities.ids.take(rows[:, 2].copy())
        relations = graph.relations.ids.take(rows[:, 1].copy())
        yield from map(list, zip(heads.to_pylist(), relations.to_pylist(), tails.to_pylist(), strict=True))


def _members(vocabulary: Vocabulary, described: bool) -> Iterator[list[str]]:
    columns = [vocabulary.ids, vocabulary.names] + [vocabulary.descriptions] * described
    for start in range(0, len(vocabulary), ROWS):
        yield from map(list, zip(*(column[start : start + ROWS].to_pylist() for column in columns), strict=True))
