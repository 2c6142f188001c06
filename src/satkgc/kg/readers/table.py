"""One table of triples (CSV, TSV or Parquet), with tables of entities and relations beside it if there are any.

Columns are found by the names or positions in `ReadOptions`, else by their usual names. The first row of a CSV or TSV
file is a header if it has a column that was given by name, or usual ones; else all rows are data, and the columns are
head, relation, tail, or id, name, description. A column `split` divides the triples into train, valid and test.

APOC, which exports from Neo4j, can write nodes and edges into one table with the columns of both, which is read twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from satkgc.errors import SatkgcError
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.readers import streamed
from satkgc.kg.readers.assemble import Listing, Triples, Where, assemble, blank, check_listing, finish
from satkgc.kg.readers.columns import SPLIT_VALUES, is_header, locate
from satkgc.kg.readers.delimited import Delimited
from satkgc.kg.readers.options import ReadOptions
from satkgc.kg.readers.parquet import ParquetTable
from satkgc.kg.readers.readable import readable_names
from satkgc.kg.readers.source import SourceFile
from satkgc.kg.vocabulary import Vocabulary


def read(source: Path, options: ReadOptions) -> KnowledgeGraph:
    """Read the table and those that the options name."""
    given = {
        "head": options.head, "relation": options.relation, "tail": options.tail, "split": options.split_column,
    }  # fmt: skip
    if options.entities is None and _is_both(_names(source)):
        options = replace(options, entities=source)
    if (graph := _read_listed(source, given, options)) is not None:
        return graph
    columns, where = _read_columns(source, given, ("head", "relation", "tail"))
    splits = _divide(columns, where)
    entities = _listing(options.entities, options) if options.entities else None
    relations = _listing(options.relations, options) if options.relations else None
    return assemble(options.name or source.name.partition(".")[0], splits, entities, relations, options)


def _read_listed(source: Path, given: dict[str, str | None], options: ReadOptions) -> KnowledgeGraph | None:
    """The way for large graphs (see streamed.py), where it is open."""
    if options.entities is None or options.unlisted != "error" or source.suffix.lower() != ".parquet":
        return None
    if options.without:  # what is left out may not be listed
        return None
    file = SourceFile.of(source)
    table = ParquetTable(file)
    found = locate(table.names, given, ("head", "relation", "tail"), file.shown, header=True)
    columns = {role: table.names[place] for role, place in found.items() if place is not None}
    entity = check_listing("entity", _listing(options.entities, options), options)
    relation = check_listing("relation", _listing(options.relations, options), options) if options.relations else None
    numbered = streamed.number(source, columns, entity[0], relation and relation[0])
    if numbered is None:
        return None
    splits, ids = numbered
    entities = Vocabulary.build("entity", *entity)
    relations = Vocabulary.build("relation", *(relation or (ids, readable_names(ids), blank(len(ids)))))
    return finish(options.name or source.name.partition(".")[0], entities, relations, splits, {}, options)


def _listing(source: Path, options: ReadOptions) -> Listing:
    if not source.is_file():
        raise SatkgcError("there is no such file", where=source, remedy="check the path")
    given = {"id": options.id, "name": options.label, "description": options.description}
    if options.entities is not None and source == options.relations:
        # The names were given for the entities; the relations' table uses those that it has, too.
        has = _names(source)
        given = {role: name if name in has else None for role, name in given.items()}
    columns, where = _read_columns(source, given, ("id",))
    return Listing(columns["id"], columns.get("name"), columns.get("description"), str(source), where)


def _names(source: Path) -> list[str]:
    """The names of a table's columns, or its first row."""
    file = SourceFile.of(source)
    return ParquetTable(file).names if _is_parquet(source) else _text(file).first_row()


def _is_both(names: Sequence[str]) -> bool:
    """Whether a table has the columns of APOC's nodes and of its edges."""
    return {"_id", "_labels", "_start"} <= set(names)


def _is_parquet(source: Path) -> bool:
    return source.name.lower().endswith(".parquet")


def _text(file: SourceFile) -> Delimited:
    plain = file.path.name.lower().removesuffix(".gz").removesuffix(".zst")
    return Delimited(file, csv_delimiter(file) if plain.endswith(".csv") else "\t")


def csv_delimiter(file: SourceFile) -> str:
    """A comma, or what the first line has more of outside quotes: where commas are decimal, CSV has semicolons."""
    with file.open() as stream:
        line = next((line for line in stream.read(1 << 16).splitlines() if line.strip()), b"")
    plain = re.sub(rb'"[^"]*"', b"", line)
    return max(",;\t", key=lambda mark: plain.count(mark.encode()))


def _read_columns(
    source: Path, given: dict[str, str | None], required: Sequence[str]
) -> tuple[dict[str, pa.ChunkedArray], Where]:
    """The columns that are there, by role, and a row's place in the file."""
    file = SourceFile.of(source)
    if _is_parquet(source):
        table = ParquetTable(file)
        found = locate(table.names, given, required, file.shown, header=True)
        places = {role: at for role, at in found.items() if at is not None}
        arrays = table.columns(list(places.values()))
        return _own_rows(table.names, dict(zip(places, arrays, strict=True)), required[0], table.where)
    text = _text(file)
    names = text.first_row()
    header = is_header(names, given)
    found = locate(names, given, required, file.shown, header)
    places = {role: at for role, at in found.items() if at is not None}
    arrays = text.columns(list(places.values()), len(names), header)
    if not len(arrays[0]):
        raise SatkgcError("the file has a header and no rows", where=source, remedy="put rows in it")
    columns = dict(zip(places, arrays, strict=True))
    return _own_rows(names, columns, required[0], lambda row: file.at(text.line_of(row, header)))


def _own_rows(
    names: Sequence[str], columns: dict[str, pa.ChunkedArray], role: str, where: Where
) -> tuple[dict[str, pa.ChunkedArray], Where]:
    """The rows of a table of nodes and edges that have this role; any other table as it is."""
    if not _is_both(names):
        return columns, where
    filled = pc.fill_null(pc.not_equal(columns[role], ""), False)
    rows = np.flatnonzero(filled.to_numpy())
    if not len(rows):
        raise SatkgcError(f"no row has a {role}", where=where(0), remedy="export the nodes and the edges")
    return {name: column.filter(filled) for name, column in columns.items()}, lambda row: where(int(rows[row]))


def _divide(columns: dict[str, pa.ChunkedArray], where: Where) -> dict[str, Triples]:
    """The triples by split; all are for training where no column tells."""
    if "split" not in columns:
        return {"train": Triples(columns["head"], columns["relation"], columns["tail"], where)}
    value = pc.utf8_lower(pc.utf8_trim_whitespace(pc.fill_null(columns["split"], "")))
    splits: dict[str, Triples] = {}
    rest = np.ones(len(value), bool)
    for split, values in SPLIT_VALUES.items():
        mask = pc.is_in(value, value_set=pa.array(values, value.type))
        rows = np.flatnonzero(mask.to_numpy())
        rest[rows] = False
        if len(rows):
            head, relation, tail = (columns[role].filter(mask) for role in ("head", "relation", "tail"))
            splits[split] = Triples(head, relation, tail, lambda row, rows=rows: where(int(rows[row])))  # type: ignore[misc]
    if rest.any():
        row = int(np.flatnonzero(rest)[0])
        raise SatkgcError(
            f"{columns['split'][row].as_py()!r} is no split", where=where(row), remedy="write train, valid or test"
        )
    if "train" not in splits:
        raise SatkgcError("no triple is for training", where=where(0), remedy="mark some as train in the split column")
    return splits
