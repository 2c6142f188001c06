"""One table of triples (CSV, TSV or Parquet), with tables of entities and relations beside it if there are any.

Columns are found by the names or positions in `ReadOptions`, else by their usual names. The first row of a CSV or TSV
file is a header if it has a column that was chosen by name, or usual ones; else all rows are data, and the columns are
head, relation, tail, or id, name, description. A column `split` divides the triples into train, valid, test and
inference.

APOC, which exports from Neo4j, can write nodes and edges into one table with the columns of both, which is read twice.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from satkgc.errors import SatkgcError
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.readers.assemble import Listing, Triples, Where, assemble, blank, check_listing, finish
from satkgc.kg.readers.delimited import Delimited, csv_delimiter
from satkgc.kg.readers.options import SPLIT_VALUES, ReadOptions
from satkgc.kg.readers.parquet import ParquetTable, number_triples
from satkgc.kg.readers.source import SourceFile
from satkgc.kg.vocabulary import Vocabulary, names_from_ids

log = logging.getLogger("satkgc.kg")

# The usual names of each role, in lower case, the best first. Those of Neo4j and its APOC exports stand before all
# others, for an edge may have properties called source or to, and a node one called id.
USUAL = {
    "head": (":START_ID", "_start", "head", "subject", "source", "from", "head_id", "subject_id", "h", "s"),
    "relation": (":TYPE", "_type", "relation", "predicate", "property", "rel", "relation_id", "predicate_id", "r", "p"),
    "tail": (":END_ID", "_end", "tail", "object", "target", "to", "tail_id", "object_id", "t", "o"),
    "split": ("split",),
    "id": (":ID", "_id", "id", "entity", "relation", "entity_id", "relation_id", "iri", "uri", "qid"),
    "name": ("name", "label", "title"),
    "description": ("description", "definition", "text", "gloss", "comment", "abstract"),
}

# One of these in a first row is enough: no entity is called so. `:LABEL` and `_labels` hold a node's kinds, no name.
SURE = (":START_ID", ":END_ID", ":TYPE", ":ID", ":LABEL", "_labels")
_NEO4J = re.compile(r"[^:]*(:START_ID|:END_ID|:TYPE|:ID|:LABEL)(\(.*\))?(\{.*\})?")  # `objectId:ID(Object)`


def read(source: Path, options: ReadOptions) -> KnowledgeGraph:
    """Read the table and those that the options name."""
    choices = {
        "head": options.head, "relation": options.relation, "tail": options.tail, "split": options.split_column,
    }  # fmt: skip
    if options.entities is None and _has_nodes_and_edges(_names(source)):
        options = replace(options, entities=source)
    if (graph := _read_listed(source, choices, options)) is not None:
        return graph
    columns, where = _read_columns(source, choices, ("head", "relation", "tail"))
    splits = _divide(columns, where)
    entities = _listing(options.entities, options) if options.entities else None
    relations = _listing(options.relations, options) if options.relations else None
    return assemble(options.name or source.name.partition(".")[0], splits, entities, relations, options)


def _read_listed(source: Path, choices: dict[str, str | None], options: ReadOptions) -> KnowledgeGraph | None:
    """The fast path for large graphs (see `number_triples`), or None where it cannot be taken."""
    if options.entities is None or options.unlisted != "error" or source.suffix.lower() != ".parquet":
        return None
    if options.exclude:  # what is excluded may not be listed
        return None
    file = SourceFile.of(source)
    table = ParquetTable(file)
    places = locate(table.names, choices, ("head", "relation", "tail"), file.shown, header=True)
    columns = {role: table.names[place] for role, place in places.items()}
    entity = check_listing("entity", _listing(options.entities, options), options)
    relation = check_listing("relation", _listing(options.relations, options), options) if options.relations else None
    numbered = number_triples(source, columns, entity[0], relation and relation[0])
    if numbered is None:
        return None
    splits, ids = numbered
    entities = Vocabulary.build("entity", *entity)
    relations = Vocabulary.build("relation", *(relation or (ids, names_from_ids(ids), blank(len(ids)))))
    return finish(options.name or source.name.partition(".")[0], entities, relations, splits, {}, options)


def _listing(source: Path, options: ReadOptions) -> Listing:
    if not source.is_file():
        raise SatkgcError("there is no such file", where=source, remedy="check the path")
    choices = {"id": options.id, "name": options.label, "description": options.description}
    if options.entities is not None and source == options.relations:
        # The names were chosen for the entities; the relations' table uses those that it has, too.
        has = _names(source)
        choices = {role: name if name in has else None for role, name in choices.items()}
    columns, where = _read_columns(source, choices, ("id",))
    return Listing(columns["id"], columns.get("name"), columns.get("description"), str(source), where)


def _names(source: Path) -> list[str]:
    """The names of a table's columns, or its first row."""
    file = SourceFile.of(source)
    return ParquetTable(file).names if _is_parquet(source) else _text(file).first_row()


def _has_nodes_and_edges(names: Sequence[str]) -> bool:
    """Whether a table has the columns of APOC's nodes and of its edges."""
    return {"_id", "_labels", "_start"} <= set(names)


def _is_parquet(source: Path) -> bool:
    return source.name.lower().endswith(".parquet")


def _text(file: SourceFile) -> Delimited:
    plain = file.path.name.lower().removesuffix(".gz").removesuffix(".zst")
    return Delimited(file, csv_delimiter(file) if plain.endswith(".csv") else "\t")


def _read_columns(
    source: Path, choices: dict[str, str | None], required: Sequence[str]
) -> tuple[dict[str, pa.ChunkedArray], Where]:
    """The columns that are there, by role, and a row's place in the file."""
    file = SourceFile.of(source)
    if _is_parquet(source):
        table = ParquetTable(file)
        places = locate(table.names, choices, required, file.shown, header=True)
        arrays = table.columns(list(places.values()))
        return _rows_of_role(table.names, dict(zip(places, arrays, strict=True)), required[0], table.where)
    text = _text(file)
    names = text.first_row()
    header = is_header(names, choices)
    places = locate(names, choices, required, file.shown, header)
    arrays = text.columns(list(places.values()), len(names), header)
    if not len(arrays[0]):
        raise SatkgcError("the file has a header and no rows", where=source, remedy="put rows in it")
    columns = dict(zip(places, arrays, strict=True))
    return _rows_of_role(names, columns, required[0], lambda row: file.at(text.line_of(row, header)))


def _rows_of_role(
    names: Sequence[str], columns: dict[str, pa.ChunkedArray], role: str, where: Where
) -> tuple[dict[str, pa.ChunkedArray], Where]:
    """The rows of a table of nodes and edges that have this role; any other table as it is."""
    if not _has_nodes_and_edges(names):
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
            f"{columns['split'][row].as_py()!r} is no split",
            where=where(row),
            remedy="write train, valid, test or inference",
        )
    if "train" not in splits:
        raise SatkgcError("no triple is for training", where=where(0), remedy="mark some as train in the split column")
    return splits


def is_header(row: Sequence[str], choices: Mapping[str, str | None]) -> bool:
    """Whether a first row names columns: it has a chosen one, one of Neo4j's, or usual ones for two roles.

    Where triples have "relation" in the middle, that alone is enough: no relation is called so.
    """
    positions = _positions(row, choices)
    if any(name in row for name in choices.values() if name not in positions):
        return True
    if any(_plain(name) in SURE for name in row):
        return True
    if "head" in choices and len(row) == 3 and _plain(row[1]) in ("relation", "predicate"):
        return True
    return sum(_usual(role, row) is not None for role in choices) >= min(2, len(row))


def locate(
    names: Sequence[str], choices: Mapping[str, str | None], required: Sequence[str], shown: str, header: bool
) -> dict[str, int]:
    """The columns by role: those chosen by name or position, else those with a usual name; roles without one lack.

    Where neither finds the required ones, those of a table of three columns are its columns in order, and the id of a
    listing is its first free column. A listing of which nothing is known has its other columns in order, too.
    """
    places: dict[str, int] = {}
    positions = _positions(names, choices)
    for role, name in choices.items():
        if name is not None:
            places[role] = _named(name, role, names, shown, positions)
        elif header and (place := _usual(role, names)) is not None:
            places[role] = place
    _tell_groups(places, names, shown)
    missing = [role for role in required if role not in places]
    if not missing:
        return places
    free = [place for place in range(len(names)) if place not in places.values()]
    if len(missing) == len(required) and (free if len(required) == 1 else len(free) == len(names) == 3):
        by_position = dict(zip(missing if places else choices, free, strict=False))
        _tell_positions(by_position, names, shown, header)
        places |= by_position
        return {role: places[role] for role in choices if role in places}
    raise SatkgcError(
        f"which column is the {missing[0]}?",
        where=shown,
        remedy=f"name it (--{missing[0]} NAME); it has {_list_columns(names)}",
    )


def _list_columns(names: Sequence[str]) -> str:
    """The names for a message, not too many of them."""
    shown = ", ".join(repr(_cut(name)) for name in names[:12])
    return f"the columns {shown}{' …' if len(names) > 12 else ''}"


def _tell_positions(places: Mapping[str, int], names: Sequence[str], shown: str, header: bool) -> None:
    """Say which columns were taken without being chosen."""
    taken = ", ".join(f"{_cut(names[place])!r} as {role}" for role, place in places.items())
    log.warning("%s: columns taken by position: %s%s", shown, taken, "" if header else "; its first row counts as data")


def _tell_groups(places: Mapping[str, int], names: Sequence[str], shown: str) -> None:
    """Say where Neo4j's ids are of two groups: one that both have would be two nodes there, and is one entity here."""
    ends = [places.get(role) for role in ("head", "tail")]
    groups = [match[2] for place in ends if place is not None and (match := _NEO4J.fullmatch(names[place].strip()))]
    if len(set(groups)) > 1:
        log.warning("%s: ids of %s that are the same become one entity", shown, " and ".join(map(str, groups)))


def _cut(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:40]}…"


def _named(name: str, role: str, names: Sequence[str], shown: str, positions: Sequence[str]) -> int:
    if name in names and name not in positions:
        return names.index(name)
    if _is_number(name) and int(name) < len(names):
        return int(name)
    raise SatkgcError(
        f"there is no column {name!r} for the {role}", where=shown, remedy=f"it has {_list_columns(names)}"
    )


def _positions(row: Sequence[str], choices: Mapping[str, str | None]) -> list[str]:
    """The numbers given for columns, which are positions; unless all of them stand in the first row, as its names."""
    numbers = [name for name in choices.values() if name is not None and _is_number(name)]
    return [] if all(number in row for number in numbers) else numbers


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit()


def _usual(role: str, names: Sequence[str]) -> int | None:
    plain = [_plain(name) for name in names]
    return next((plain.index(usual) for usual in USUAL[role] if usual in plain), None)


def _plain(name: str) -> str:
    """A column's name as USUAL has it: in lower case, or what Neo4j says of it, without its property and group."""
    if match := _NEO4J.fullmatch(name.strip()):
        return match[1]
    return name.strip().lower().removesuffix(":string")
