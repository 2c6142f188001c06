"""Tables of triples (CSV, TSV or Parquet), with tables of entities and relations beside them if there are any.

`header.py` finds the columns. A column `split` divides the triples into the splits. Of Neo4j's exports,
APOC can write nodes and edges into one table with the columns of both, which is read twice; those of the Browser, whose
cells are whole nodes, are read by `neo4j.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from satkgc.errors import SatkgcError
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.readers import neo4j
from satkgc.kg.readers.assemble import assemble, finish
from satkgc.kg.readers.columns import Listing, Triples, Where, blank, counted, join_listings, join_triples, unlisted
from satkgc.kg.readers.header import Choices, column_flags, locate, names_columns, relation_place, tell_unread
from satkgc.kg.readers.large import memory_to_read, tell_obstacle
from satkgc.kg.readers.listing import check_listing
from satkgc.kg.readers.options import SPLIT_VALUES, ReadOptions
from satkgc.kg.readers.parquet import ParquetTable, number_triples
from satkgc.kg.readers.property_graph import add_labels
from satkgc.kg.readers.source import SourceFile
from satkgc.kg.readers.table_file import Table, TextTable, has_header, header_by_names, is_plain_triples, open_table
from satkgc.kg.vocabulary import Vocabulary, names_from_ids

LARGE = 64 << 20  # bytes of a Parquet file
PROPOSALS = ("head", "relation", "tail", "score", "probability", "accept")  # columns of `satkgc propose`
YES = ("yes", "y", "x", "true", "1")  # in the last of them, in capitals too
DIRECTIONS = ("Directed", "Undirected", "Mutual")  # what Gephi says in its column Type, which is no relation
MANY = 10  # rows from which on the number of relations says something


def read(files: Sequence[SourceFile], options: ReadOptions) -> KnowledgeGraph:
    """Read the tables and those that the options name."""
    name = options.name or files[0].graph_name
    beside = [_beside(path) for path in (*options.entities, *([options.relations] if options.relations else []))]
    if (memory := memory_to_read([*files, *beside], options)) is not None:
        from satkgc.kg.readers.large_tables import obstacle, read_large

        opened = [open_table(file) for file in files], [open_table(_beside(path)) for path in options.entities]
        relations_table = open_table(_beside(options.relations)) if options.relations else None
        if (reason := obstacle(*opened, relations_table, options)) is None:
            return read_large(name, *opened, relations_table, options, memory)
        tell_obstacle(reason, files[0].shown, options)
    if len(files) == 1 and (graph := _read_listed(files[0], name, options)) is not None:
        return graph
    entities = [open_table(_beside(path)) for path in options.entities]
    relations = open_table(_beside(options.relations)) if options.relations else None
    return read_tables(name, [open_table(file) for file in files], entities, relations, options)


def read_tables(
    name: str, tables: Sequence[Table], entities: Sequence[Table], relations: Table | None, options: ReadOptions
) -> KnowledgeGraph:
    """Put a graph together from tables of triples and of entities; of several tables, those without ends list nodes."""
    kinds = check_kinds(tables, entities, relations, options)
    edges = [table for table, kind in zip(tables, kinds, strict=True) if kind != "nodes"]
    every = row_relations(edges, options)
    splits: dict[str, list[Triples]] = {split: [] for split in SPLIT_VALUES}
    nodes: list[Listing] = []
    for table, kind in zip(tables, kinds, strict=True):
        if kind == "cells":
            assert isinstance(table, TextTable)
            triples, listing = neo4j.read_browser_export(table.rows(), table.shown, options)
            splits["train"].append(triples)
            nodes.append(listing)
        if kind in ("nodes", "both"):
            nodes.append(read_listing(table, options))
        if kind in ("edges", "both"):
            for split, triples in _read_triples(table, every[edges.index(table)], options, len(tables) > 1).items():
                splits[split].append(triples)
    nodes += [read_listing(table, options) for table in entities]
    inline = [
        listing for table, kind in zip(tables, kinds, strict=True) if kind == "edges" for listing in _named(table)
    ]
    joined = {split: join_triples(parts) for split, parts in splits.items() if parts}
    if "train" not in joined:
        where = next(iter(joined.values())).where(0)
        raise SatkgcError("no triple is for training", where=where, remedy="mark some as train in the split column")
    listed = join_listings(nodes + unlisted(inline, nodes))
    relation_listing = read_listing(relations, options, bool(nodes)) if relations else None
    if listed is not None and listed.labels is not None:
        joined, listed, relation_listing, options = add_labels(joined, listed, relation_listing, options)
    return assemble(name, joined, listed, relation_listing, options)


def check_kinds(
    tables: Sequence[Table], entities: Sequence[Table], relations: Table | None, options: ReadOptions
) -> list[str]:
    """What each table holds; refuses tables and options that do not go together."""
    everything = [*tables, *entities, *([relations] if relations else [])]
    for flag in ("head", "relation", "tail", "id", "label", "description"):
        columns = getattr(options, flag)
        for column in columns if len(columns) > 1 else ():
            if not any(column in table.names for table in everything):
                remedy = f"check --{flag}; of several, each table takes the first that it has"
                raise SatkgcError(f"no table has the column {column!r}", remedy=remedy)
    kinds = [_kind(table, len(tables) > 1, options) for table in tables]
    edges = [table for table, kind in zip(tables, kinds, strict=True) if kind != "nodes"]
    for table in edges:
        _refuse_proposals(table)
    if not edges:
        remedy = "name the columns: --head COLUMN --relation COLUMN --tail COLUMN"
        raise SatkgcError("no table has triples", where=tables[0].shown, remedy=remedy)
    if not entities and relations is None and set(kinds) == {"edges"}:
        for flag in ("id", "label", "description"):
            if getattr(options, flag):
                what = f"--{flag} names a column of a table of entities, and there is none"
                raise SatkgcError(what, where=tables[0].shown, remedy="give that with --entities")
    row_relations(edges, options)
    return kinds


def row_relations(tables: Sequence[Table], options: ReadOptions) -> list[str | None]:
    """What `relation_name` says of all rows of each table of triples; None of those with relations of their own."""
    names = options.relation_name
    if not names:
        return [None] * len(tables)
    columns = {place: column for place, table in enumerate(tables) if (column := _own_relations(table, options))}
    without = [place for place in range(len(tables)) if place not in columns]
    if not without:
        what = f"--relation-name {names[0]} would take the place of the relations in {columns[0]}"
        raise SatkgcError(what, where=tables[0].shown, remedy="leave it out; it is for tables without such a column")
    if len(names) not in (1, len(without)):
        them = ", ".join(Path(tables[place].shown).name for place in without[:8])
        them = f"{counted(len(without), 'table')} of triples{' without relations' if columns else ''}, {them}"
        remedy = "give one for all, or one for each in order; columns tell which they are: --head and --tail of "
        remedy += "triples, --id, --label and --description of entities"
        raise SatkgcError(f"{len(names)} relation names for {them}", remedy=remedy)
    said: list[str | None] = [None] * len(tables)
    for number, place in enumerate(without):
        said[place] = names[number if len(names) > 1 else 0]
    return said


def _own_relations(table: Table, options: ReadOptions) -> str | None:
    """The column that has a table's relations, in words, if there is one."""
    if isinstance(table, TextTable) and neo4j.is_browser_export(table.rows()):
        return "its cells"
    choices = triple_choices(options, table.names, every="")
    if not header_by_names(table, choices):
        return "its second column" if is_plain_triples(table, choices) else None
    place = relation_place(table.names, choices, table.shown)
    if place is None or (isinstance(table, TextTable) and table.first_cell(place) in DIRECTIONS):
        return None
    return f"the column {table.names[place]!r}"


def _refuse_proposals(table: Table) -> None:
    """A model's guesses are facts only where somebody has accepted them."""
    if not isinstance(table, TextTable) or not set(PROPOSALS) <= set(table.names):
        return
    [verdicts] = table.columns([table.names.index(PROPOSALS[-1])])
    accepted = pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(verdicts)), pa.array(YES, verdicts.type))
    if not pc.all(accepted).as_py():
        remedy = f"`satkgc accept {table.shown} FILE` writes those that say yes; give that file"
        raise SatkgcError("not all of these proposals were accepted", where=table.shown, remedy=remedy)


def read_entities(options: ReadOptions) -> Vocabulary:
    """The tables of entities alone."""
    listing = join_listings([read_listing(open_table(_beside(path)), options) for path in options.entities])
    assert listing is not None
    return Vocabulary.build("entity", *check_listing("entity", listing, options))


def _read_listed(file: SourceFile, name: str, options: ReadOptions) -> KnowledgeGraph | None:
    """The fast path for large graphs (see `number_triples`), or None where it cannot be taken."""
    if len(options.entities) != 1 or options.unlisted != "error" or not file.stem.lower().endswith(".parquet"):
        return None
    if options.exclude or options.relation_name:  # what is excluded may not be listed
        return None
    if file.path.stat().st_size < LARGE:  # the other way counts what its texts take before it writes them out
        return None
    table = ParquetTable(file)
    places = locate(
        table.names, triple_choices(options, table.names), ("head", "relation", "tail"), file.shown, header=True
    )
    columns = {role: table.names[place] for role, place in places.items()}
    entity_listing = read_listing(open_table(_beside(options.entities[0])), options)
    if entity_listing.labels is not None:
        return None
    entity = check_listing("entity", entity_listing, options)
    relation = None
    if options.relations:
        listing = read_listing(open_table(_beside(options.relations)), options, second=True)
        relation = check_listing("relation", listing, options)
    numbered = number_triples(file.path, columns, entity[0], relation and relation[0])
    if numbered is None:
        return None
    splits, ids = numbered
    entities = Vocabulary.build("entity", *entity)
    relations = Vocabulary.build("relation", *(relation or (ids, names_from_ids(ids), blank(len(ids)))))
    return finish(name, entities, relations, splits, {}, options)


def _beside(path: Path) -> SourceFile:
    if not path.is_file():
        raise SatkgcError("there is no such file", where=path, remedy="check the path")
    return SourceFile.of(path)


def triple_choices(options: ReadOptions, names: Sequence[str], every: str | None = None) -> dict[str, str | None]:
    """The columns chosen for a table of triples, no column for two roles; none of relations where all rows say one."""
    choices: dict[str, str | None] = {}
    for role in ("head", "relation", "tail") if every is None else ("head", "tail"):
        choices[role] = _choice(getattr(options, role), names, choices.values())
    return choices | {"split": options.split_column}


def listing_choices(options: ReadOptions, names: Sequence[str]) -> dict[str, str | None]:
    """The columns chosen for a table of entities."""
    roles = {"id": options.id, "name": options.label, "description": options.description}
    return {role: _choice(columns, names) for role, columns in roles.items()} | {"labels": None}


def _choice(columns: Sequence[str], names: Sequence[str], taken: Collection[str | None] = ()) -> str | None:
    """Of the columns named for a role the first that a table has; one alone it must have, so `locate` refuses it."""
    there = [column for column in columns if column in names and column not in taken]
    return there[0] if there else columns[0] if len(columns) == 1 else None


def _kind(table: Table, several: bool, options: ReadOptions) -> str:
    """What a table holds: edges, nodes, both (of APOC), or nodes and edges as cells (of Neo4j's Browser)."""
    if isinstance(table, TextTable) and neo4j.is_browser_export(table.rows()):
        return "cells"
    if {"_id", "_labels", "_start"} <= set(table.names):
        return "edges" if options.entities else "both"
    if not several:
        return "edges"
    choices = triple_choices(options, table.names)
    if options.head and options.tail:
        edges = all(choices[end] in table.names or str(choices[end]).isdigit() for end in ("head", "tail"))
    else:
        edges = names_columns(table.names, choices)
    listing = not edges and names_columns(table.names, listing_choices(options, table.names))
    return "nodes" if listing else "edges"


def read_listing(table: Table, options: ReadOptions, second: bool = False) -> Listing:
    """A table of entities, or as the second one that of relations."""
    choices = listing_choices(options, table.names)
    if second:  # the names were chosen for the entities; the relations' table uses those that it has, too
        choices = {role: name if name in table.names else None for role, name in choices.items()}
    header = header_by_names(table, choices)
    columns, where = _columns(table, choices, ("id",), header)
    names, descriptions, labels = (columns.get(role) for role in ("name", "description", "labels"))
    return Listing(columns["id"], names, descriptions, table.shown, where, labels)


def names_ends(table: Table) -> bool:
    """Whether a table of triples has the names of both ends beside them."""
    return {"head", "tail", "head_name", "tail_name"} <= set(table.names)


def _named(table: Table) -> list[Listing]:
    """The names and descriptions of both ends that a table of triples has beside them, as those of proposals do."""
    if not names_ends(table):
        return []
    listings = []
    for end in ("head", "tail"):
        names = [end, f"{end}_name", f"{end}_description"]
        columns = table.columns([table.names.index(name) for name in names if name in table.names])
        ids, texts, descriptions = [*columns, None][:3]
        listings.append(Listing(ids, texts, descriptions, table.shown, table.where))
    return listings


def _read_triples(table: Table, every: str | None, options: ReadOptions, several: bool) -> dict[str, Triples]:
    """The triples of a table by split; `every` is the relation of all rows, if it is no column's."""
    choices = triple_choices(options, table.names, every)
    required = ("head", "tail") if every is not None else ("head", "relation", "tail")
    header = has_header(table, choices, required)
    columns, where = _columns(table, choices, required, header)
    if every is not None:
        columns["relation"] = pa.chunked_array([pa.repeat(pa.scalar(every), len(columns["head"]))])
    elif not header and not options.relation:
        distinct = (len(pc.unique(columns[role])) for role in ("relation", "tail"))
        check_relations(table, len(columns["head"]), *distinct)
    return _divide(columns, where, file_split(table, several))


def file_split(table: Table, several: bool) -> str:
    """The split that a table's name tells; of one alone it tells none."""
    stem = Path(table.shown).name.partition(".")[0].lower()
    return next((split for split, values in SPLIT_VALUES.items() if several and stem in values), "train")


def check_relations(table: Table, rows: int, relations: int, tails: int) -> None:
    """Refuse three columns without a header whose second hardly has the relations, while the third may."""
    if rows >= MANY and relations > rows / 2 and tails < relations / 4:
        in_order, turned = ({"head": 0, "relation": relation, "tail": 3 - relation} for relation in (1, 2))
        raise SatkgcError(
            f"which column has relations? Of {rows:,} rows the second has {relations:,} values, the third {tails:,}",
            where=table.shown,
            remedy=f"the third: {column_flags(turned)}; the second: {column_flags(in_order)}",
        )


def _columns(
    table: Table, choices: Choices, required: Sequence[str], header: bool
) -> tuple[dict[str, pa.ChunkedArray], Where]:
    """The columns that are there, by role, and a row's place in the file."""
    places = locate(table.names, choices, required, table.shown, header)
    if header and "id" in required and "_start" not in table.names:  # which has the columns of edges, too
        tell_unread(table.names, places, table.shown)
    arrays = table.columns(list(places.values()), header)
    if not len(arrays[0]):
        raise SatkgcError("the file has a header and no rows", where=table.shown, remedy="put rows in it")
    columns = dict(zip(places, arrays, strict=True))

    def where(row: int) -> str:
        return table.where(row, header)

    if not {"_id", "_labels", "_start"} <= set(table.names):
        return columns, where
    filled = pc.fill_null(pc.not_equal(columns[required[0]], ""), False)  # rows of nodes, or of edges
    rows = np.flatnonzero(filled.to_numpy())
    if not len(rows):
        raise SatkgcError(f"no row has a {required[0]}", where=where(0), remedy="export the nodes and the edges")
    return {name: column.filter(filled) for name, column in columns.items()}, lambda row: where(int(rows[row]))


def _divide(columns: dict[str, pa.ChunkedArray], where: Where, otherwise: str) -> dict[str, Triples]:
    """The triples by split; all are of one where no column tells."""
    if "split" not in columns:
        return {otherwise: Triples(columns["head"], columns["relation"], columns["tail"], where)}
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
    return splits
