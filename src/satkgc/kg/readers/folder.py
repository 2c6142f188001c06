"""The folder of TSV files: train.tsv, and beside it valid.tsv test.tsv entities.tsv relations.tsv where there are any.

UTF-8, tabs, no header and no quoting. `entities.tsv` and `relations.tsv` have the columns id, name, description; a file
with fewer columns lacks the later ones, further columns are ignored. `valid_entities.tsv` and `test_entities.tsv` (one
id a line) list the entities that an inductive graph holds out.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from satkgc.errors import SatkgcError
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.readers.assemble import Listing, Triples, Where, assemble
from satkgc.kg.readers.delimited import Delimited
from satkgc.kg.readers.options import ReadOptions
from satkgc.kg.readers.source import SourceFile

SPLITS = ("train", "valid", "test")


def read(source: Path, options: ReadOptions) -> KnowledgeGraph:
    """Read a folder from the disk."""
    if not (source / "train.tsv").is_file():
        held = sorted(path.name for path in source.iterdir())
        raise SatkgcError(
            "this folder is no graph: it has no train.tsv",
            where=source,
            remedy=f"it holds {', '.join(held[:8])}{' …' if len(held) > 8 else ''}" if held else "it is empty",
        )
    return read_files(options.name or source.name, lambda name: _existing(source / name), options)


def _existing(path: Path) -> SourceFile | None:
    return SourceFile.of(path) if path.is_file() else None


def read_files(name: str, find: Callable[[str], SourceFile | None], options: ReadOptions) -> KnowledgeGraph:
    """Read the files of a graph that `find` gives by their names; it answers None for one that is not there."""
    splits: dict[str, Triples] = {}
    for split in SPLITS:
        if file := find(f"{split}.tsv"):
            (head, relation, tail), where = _columns(file, 3, 3)
            splits[split] = Triples(head, relation, tail, where)
    held_out: dict[str, tuple[pa.ChunkedArray, Where]] = {}
    for split in SPLITS[1:]:
        if file := find(f"{split}_entities.tsv"):
            (ids,), where = _columns(file, 1)
            held_out[split] = ids, where
    entities_file = find(options.entities_file)
    if entities_file is None and options.entities_file != ReadOptions.entities_file:
        raise SatkgcError(f"there is no {options.entities_file} in it", where=name, remedy="check entities_file")
    relations_file = find("relations.tsv")
    entities = _listing(entities_file) if entities_file else None
    relations = _listing(relations_file) if relations_file else None
    return assemble(name, splits, entities, relations, options, held_out)


def _columns(file: SourceFile, most: int, exactly: int | None = None) -> tuple[list[pa.ChunkedArray], Where]:
    """The first columns of a file, at most so many, or an error where there must be that many."""
    text = Delimited(file)
    found = len(text.first_row())
    width = exactly or found
    columns = text.columns(range(min(width, most)), width)
    return columns, lambda row: file.at(text.line_of(row))


def _listing(file: SourceFile) -> Listing:
    columns, where = _columns(file, 3)
    ids, names, descriptions = [*columns, None, None][:3]
    return Listing(ids, names, descriptions, file.shown, where)
