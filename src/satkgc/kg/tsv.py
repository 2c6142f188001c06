"""Write a graph as the TSV folder: the form that people read and edit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow.compute as pc

from satkgc.errors import SatkgcError
from satkgc.files import new_folder
from satkgc.kg.graph import SPLITS, KnowledgeGraph
from satkgc.kg.vocabulary import Vocabulary

ROWS = 1 << 16
NOT_TSV = r"^$|[\t\r\n]"  # an id that is no cell of TSV, which has no quoting


def write_tsv(graph: KnowledgeGraph, folder: Path) -> None:
    """Write the files that `readers.folder` reads, but none that would be empty, for it takes those for damaged."""
    if folder.exists():
        raise SatkgcError("the output exists already", where=folder, remedy="remove it or choose another folder")
    for vocabulary in (graph.entities, graph.relations):
        check_tsv_ids(vocabulary, folder, "keep it in binary form, or give it another id")
    try:
        with new_folder(folder) as part:
            for split in SPLITS:
                if len(graph.split(split)):
                    _write(part / f"{split}.tsv", _triples(graph, split))
            for split, members in graph.split_entities.items():
                if len(members):
                    _write(part / f"{split}_entities.tsv", ([graph.entities.id(i)] for i in members))
            _write(part / "entities.tsv", _members(graph.entities))
            _write(part / "relations.tsv", _members(graph.relations))
    except OSError as error:
        raise SatkgcError(f"cannot write the graph: {error.strerror or error}", where=folder) from error


def check_tsv_ids(vocabulary: Vocabulary, where: Path, remedy: str) -> None:
    """Texts may be rewritten so that they fit a cell; ids may not, for two could become one."""
    if (at := pc.index(pc.match_substring_regex(vocabulary.ids, NOT_TSV), True).as_py()) >= 0:
        raise tsv_id_error(vocabulary.kind, vocabulary.id(at), where, remedy)


def tsv_id_error(kind: str, id: str, where: Path, remedy: str) -> SatkgcError:
    """The error for an id that no cell of a TSV file can hold."""
    what = f"{kind} {id!r} cannot stand in a TSV file: it is empty, or has a tab or newline"
    return SatkgcError(what, where=where, remedy=remedy)


def _write(path: Path, rows: Iterable[Iterable[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines("\t".join(row) + "\n" for row in rows)


def _triples(graph: KnowledgeGraph, split: str) -> Iterator[Iterable[str]]:
    triples = graph.split(split)
    for start in range(0, len(triples), ROWS):
        rows = triples[start : start + ROWS]
        heads, tails = graph.entities.ids.take(rows[:, 0].copy()), graph.entities.ids.take(rows[:, 2].copy())
        relations = graph.relations.ids.take(rows[:, 1].copy())
        yield from zip(heads.to_pylist(), relations.to_pylist(), tails.to_pylist(), strict=True)


def _members(vocabulary: Vocabulary) -> Iterator[Iterable[str]]:
    described = pc.any(pc.not_equal(vocabulary.descriptions, "")).as_py()
    columns = [vocabulary.ids, vocabulary.names] + [vocabulary.descriptions] * bool(described)
    for start in range(0, len(vocabulary), ROWS):
        for id, *texts in zip(*(column[start : start + ROWS].to_pylist() for column in columns), strict=True):
            # A tab or newline within a text would end the cell: any run of white space becomes one blank.
            yield id, *(" ".join(text.split()) for text in texts)
