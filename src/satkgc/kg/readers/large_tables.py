"""Tables that are larger than memory, as the graph that `table.py` would make of them: the same ids, the same arrays.

Rows pass once, a batch at a time, and are checked on the way; `staging.py` numbers them.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from satkgc.errors import SatkgcError
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.readers.assemble import check_relations_trained, exclude_from_listing, excluded_ids, finish
from satkgc.kg.readers.columns import Where, refuse_empty
from satkgc.kg.readers.header import locate
from satkgc.kg.readers.large_listing import entity_vocabulary, relation_vocabulary, stage_listing
from satkgc.kg.readers.options import SPLIT_VALUES, ReadOptions
from satkgc.kg.readers.staging import Staging, staging
from satkgc.kg.readers.table import (
    check_kinds,
    check_relations,
    file_split,
    listing_choices,
    names_ends,
    read_listing,
    row_relations,
    triple_choices,
)
from satkgc.kg.readers.table_file import FileTable, has_header
from satkgc.progress import progress_bar

MOST_RELATIONS = 1 << 20  # distinct ones; a column that has more holds something else
SPLITS = {value: split for split, values in SPLIT_VALUES.items() for value in values}


def obstacle(
    tables: Sequence[FileTable], entities: Sequence[FileTable], relations: FileTable | None, options: ReadOptions
) -> str | None:
    """What these tables have that can only be read in memory."""
    kinds = check_kinds(tables, entities, relations, options)
    if "cells" in kinds or "both" in kinds:
        return "nodes and edges of Neo4j in one table"
    if any(kind == "edges" and names_ends(table) for table, kind in zip(tables, kinds, strict=True)):
        return "names beside the triples"
    listings = [*entities, *(table for table, kind in zip(tables, kinds, strict=True) if kind == "nodes")]
    if any("labels" in locate(t.names, listing_choices(options, t.names), ("id",), t.shown, True) for t in listings):
        return "labels of Neo4j"
    return None


def read_large(
    name: str,
    tables: Sequence[FileTable],
    entities: Sequence[FileTable],
    relations: FileTable | None,
    options: ReadOptions,
    memory: float,
) -> KnowledgeGraph:
    """Put a graph together from tables without an `obstacle`, within so many GiB."""
    kinds = check_kinds(tables, entities, relations, options)
    nodes = [*(table for table, kind in zip(tables, kinds, strict=True) if kind == "nodes"), *entities]
    edges = [table for table, kind in zip(tables, kinds, strict=True) if kind == "edges"]
    every = row_relations(edges, options)
    sources = [
        _Edges.of(table, relation, len(tables) > 1, options) for table, relation in zip(edges, every, strict=True)
    ]
    listing = read_listing(relations, options, bool(nodes)) if relations else None
    excluded: list[str] = []
    if options.exclude:
        excluded = excluded_ids(_count_relations(sources), listing, options, sources[0].table.shown)
        listing = listing and exclude_from_listing(listing, excluded)
    with staging(memory, options.spill, tables[0].shown) as area:
        stage = _Stage(area, excluded)
        with progress_bar() as bar:
            task = bar.add_task("reading triples", total=sum(source.table.estimate() for source in sources))
            for source in sources:
                for rows in source.batches():
                    stage.add(source, rows)
                    bar.advance(task, len(rows["head"]))
                stage.end(source)
        splits = [split for split in SPLIT_VALUES if area.rows.get(split)]
        if "train" not in splits:
            where = stage.where(int(area.places(splits[0], np.zeros(1, np.int64))[0]))
            raise SatkgcError("no triple is for training", where=where, remedy="mark some as train in the split column")
        stage.check_columns(options)
        listed = stage_listing(area, nodes, options) if nodes else None
        numbers, relation_words = relation_vocabulary(stage.relations, stage.first, stage.where, listing, options)
        words = entity_vocabulary(area, _cells(area, splits), listed, options)
        arrays = area.number(splits, words.ids, numbers)
        wheres = {split: _where(area, split, stage.where) for split in splits}
        if listed is not None:
            listed.refuse_unlisted(area, arrays, wheres)
        check_relations_trained(arrays, relation_words, wheres)
        area.database.close()  # its memory is wanted for what follows
        return finish(name, words, relation_words, arrays, {}, options)


def _cells(area: Staging, splits: Sequence[str]) -> str:
    """All ids with their places, as they are numbered: the heads of a split, then its tails, then the next split."""
    parts, start = [], 0
    for split in splits:
        for role in ("head", "tail"):
            parts.append(f"SELECT {role} AS id, {start} + file_row_number AS place FROM {area.table(split)}")
            start += area.rows[split]
    return " UNION ALL ".join(parts)


def _where(area: Staging, split: str, where: Where) -> Where:
    return lambda row: where(int(area.places(split, np.array([row]))[0]))


@dataclass(frozen=True)
class _Edges:
    """A table of triples: where its columns are."""

    table: FileTable
    header: bool
    places: dict[str, int]
    relation: str | None  # of all rows
    split: str  # where no column tells
    guessed: bool  # which column is what

    @classmethod
    def of(cls, table: FileTable, every: str | None, several: bool, options: ReadOptions) -> _Edges:
        choices = triple_choices(options, table.names, every)
        required = ("head", "tail") if every is not None else ("head", "relation", "tail")
        header = has_header(table, choices, required)
        places = locate(table.names, choices, required, table.shown, header)
        guessed = not header and not options.relation and every is None
        return cls(table, header, places, every, file_split(table, several), guessed)

    def batches(self) -> Iterator[dict[str, pa.Array]]:
        """Columns by role, some rows at a time."""
        for columns in self.table.batches(list(self.places.values()), self.header):
            rows = dict(zip(self.places, columns, strict=True))
            if self.relation is not None:
                rows["relation"] = pa.repeat(pa.scalar(self.relation), len(columns[0]))
            yield rows


@dataclass
class _Stage:
    """Triples on their way: relations are few, and numbered as they come."""

    area: Staging
    excluded: Sequence[str]
    relations: dict[str, int] = field(default_factory=dict)
    first: list[tuple[int, int]] = field(default_factory=list)  # of each relation: its first place, and that in train
    _starts: list[int] = field(default_factory=list)  # the place of each table's first row
    _sources: list[_Edges] = field(default_factory=list)
    _seen: list[set[int]] = field(default_factory=list)  # relations of each table
    _rows: int = 0

    def where(self, place: int) -> str:
        """The place that a message names."""
        number = bisect(self._starts, place) - 1
        source = self._sources[number]
        return source.table.where(place - self._starts[number], source.header)

    def add(self, source: _Edges, rows: dict[str, pa.Array]) -> None:
        """Check and stage some rows."""
        if not len(rows["head"]):
            return
        if not self._sources or self._sources[-1] is not source:
            self._sources.append(source)
            self._starts.append(self._rows)
            self._seen.append(set())
        places = np.arange(self._rows, self._rows + len(rows["head"]))
        self._rows += len(places)
        if self.excluded:
            keep = pc.invert(pc.is_in(rows["relation"], value_set=pa.array(self.excluded, rows["relation"].type)))
            rows = {role: column.filter(keep) for role, column in rows.items()}
            places = places[keep.to_numpy(zero_copy_only=False)]
        if not len(places):
            return
        for role in ("head", "relation", "tail"):
            column = pa.chunked_array([rows[role]])
            refuse_empty(column, f"the {role} of this triple", lambda row: self.where(int(places[row])))
        for split, mask in self._split(source, rows, places):
            self._stage(split, rows, places, mask)

    def _split(
        self, source: _Edges, rows: dict[str, pa.Array], places: np.ndarray
    ) -> Iterator[tuple[str, np.ndarray | None]]:
        if "split" not in rows:
            yield source.split, None
            return
        value = pc.utf8_lower(pc.utf8_trim_whitespace(pc.fill_null(rows["split"], "")))
        for word in pc.unique(value).to_pylist():
            if word not in SPLITS:
                row = pc.index(value, word).as_py()
                what = f"{rows['split'][row].as_py()!r} is no split"
                where = self.where(int(places[row]))
                raise SatkgcError(what, where=where, remedy="write train, valid, test or inference")
        for split, words in SPLIT_VALUES.items():
            mask = pc.is_in(value, value_set=pa.array(words, value.type)).to_numpy(zero_copy_only=False)
            if mask.any():
                yield split, mask

    def _stage(self, split: str, rows: dict[str, pa.Array], places: np.ndarray, mask: np.ndarray | None) -> None:
        head, relation, tail = (rows[role] for role in ("head", "relation", "tail"))
        if mask is not None:
            head, relation, tail = (column.filter(pa.array(mask)) for column in (head, relation, tail))
            places = places[mask]
        encoded = relation.dictionary_encode()
        local = encoded.indices.to_numpy()
        codes = np.empty(len(encoded.dictionary), np.int32)
        for i, id in enumerate(encoded.dictionary.to_pylist()):
            code = codes[i] = self.relations.setdefault(id, len(self.relations))
            new = code == len(self.first)
            if new or (split == "train" and self.first[code][1] < 0):
                place = int(places[np.argmax(local == i)])
                train = place if split == "train" else -1
                self.first[code:] = [(place if new else self.first[code][0], train), *self.first[code + 1 :]]
        if len(self.relations) > MOST_RELATIONS:
            what = f"more than {MOST_RELATIONS:,} relations"
            raise SatkgcError(what, where=self._sources[-1].table.shown, remedy="name their column: --relation COLUMN")
        self._seen[-1].update(codes.tolist())
        self.area.add(split, [head, codes[local], tail, places])

    def end(self, source: _Edges) -> None:
        """Refuse a table without rows."""
        if not self._sources or self._sources[-1] is not source:
            what = "the file has a header and no rows"
            raise SatkgcError(what, where=source.table.shown, remedy="put rows in it")

    def check_columns(self, options: ReadOptions) -> None:
        """Refuse tables whose second column hardly has the relations."""
        for source, start, stop, seen in zip(
            self._sources, self._starts, [*self._starts[1:], self._rows], self._seen, strict=True
        ):
            if source.guessed and len(seen) > (stop - start) / 2:
                tails = " UNION ALL ".join(
                    f"SELECT tail, place FROM {self.area.table(split)}" for split in self.area.rows
                )
                text = f"SELECT count(DISTINCT tail) AS tails FROM ({tails}) WHERE place BETWEEN {start} AND {stop - 1}"
                count = next(self.area.query(text))["tails"][0].as_py()
                check_relations(source.table, stop - start, len(seen), count)


def _count_relations(sources: Sequence[_Edges]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for source in sources:
        for rows in source.batches():
            for pair in pc.value_counts(rows["relation"].drop_null()).to_pylist():
                counts[pair["values"]] += pair["counts"]
            if len(counts) > MOST_RELATIONS:
                break
    return counts
