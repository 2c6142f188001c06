"""Vocabularies of a graph that is larger than memory: ids, names and descriptions of entities on the disk."""

from __future__ import annotations

import logging
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from satkgc.arrays import Int32, Int64
from satkgc.errors import SatkgcError
from satkgc.kg.pieces import TextWriter
from satkgc.kg.readers.assemble import warn_of_likes
from satkgc.kg.readers.columns import Listing, Where, blank, counted, refuse_empty, trimmed
from satkgc.kg.readers.header import locate, tell_unread
from satkgc.kg.readers.listing import check_listing, choose_rows, refuse_textless
from satkgc.kg.readers.options import ReadOptions
from satkgc.kg.readers.staging import ROWS, Staging, add_unlisted
from satkgc.kg.readers.table import listing_choices
from satkgc.kg.readers.table_file import FileTable, header_by_names
from satkgc.kg.vocabulary import Vocabulary, names_from_ids
from satkgc.progress import progress_bar

log = logging.getLogger("satkgc.kg")

TEXTS = pa.schema([("id", pa.string()), ("name", pa.string()), ("description", pa.string())])
NAME = "listing"


@dataclass(frozen=True)
class StagedListing:
    """Tables of entities that have been staged, one after the other."""

    shown: str
    tables: Sequence[tuple[FileTable, bool]]  # each with whether it has a header
    starts: Sequence[int]  # the place of each table's first row

    def where(self, row: int) -> str:
        """The place that a message names."""
        number = bisect(self.starts, row) - 1
        table, header = self.tables[number]
        return table.where(row - self.starts[number], header)

    def refuse_unlisted(self, area: Staging, arrays: Mapping[str, Int32], wheres: Mapping[str, Where]) -> None:
        """Refuse triples that have an entity that is not listed: those were numbered -1."""
        for split, triples in arrays.items():
            missing = (triples[:, 0] < 0) | (triples[:, 2] < 0)
            if not missing.any():
                continue
            row = int(np.argmax(missing))
            role = "head" if triples[row, 0] < 0 else "tail"
            text = f"SELECT {role} AS id FROM {area.table(split)} WHERE file_row_number = {row}"
            id = next(area.query(text))["id"][0].as_py()
            raise SatkgcError(
                f"entity {id!r} is not listed in {self.shown}",
                where=wheres[split](row),
                remedy="list it there, or take unlisted ones in with --unlisted add",
            )


def stage_listing(area: Staging, tables: Sequence[FileTable], options: ReadOptions) -> StagedListing:
    """Read tables of entities; each row is checked for an id."""
    headers = [(table, header_by_names(table, listing_choices(options, table.names))) for table in tables]
    shown = tables[0].shown + (f" and {counted(len(tables) - 1, 'more table')}" if len(tables) > 1 else "")
    starts: list[int] = []
    listing = StagedListing(shown, headers, starts)
    row = 0
    with progress_bar() as bar:
        task = bar.add_task("reading entities", total=sum(table.estimate() for table in tables))
        for table, header in headers:
            starts.append(row)
            places = locate(table.names, listing_choices(options, table.names), ("id",), table.shown, header)
            if header:
                tell_unread(table.names, places, table.shown)
            for columns in table.batches(list(places.values()), header):
                texts = dict(zip(places, (pa.chunked_array([column]) for column in columns), strict=True))
                refuse_empty(texts["id"], "the entity's id", lambda at, start=row: listing.where(start + at))  # type: ignore[misc]
                ids = texts["id"].combine_chunks()
                names = trimmed(texts["name"]) if "name" in texts else names_from_ids(ids)
                descriptions = trimmed(texts["description"]) if "description" in texts else blank(len(ids))
                area.add(NAME, [ids, names, descriptions], TEXTS)
                row += len(ids)
                bar.advance(task, len(ids))
            if starts[-1] == row:
                raise SatkgcError("the file has a header and no rows", where=table.shown, remedy="put rows in it")
    return listing


def entity_vocabulary(area: Staging, cells: str, listing: StagedListing | None, options: ReadOptions) -> Vocabulary:
    """The entities in the order of the listing, or of `cells`, (id, place) in SQL, where there is none."""
    writers = [TextWriter(area.folder, name) for name in ("id", "name", "description")]
    if listing is not None:
        _copy(area, listing, writers, options)
    if listing is None or options.unlisted == "add":
        listed = None
        if listing is not None:
            listed = writers[0].written()
        new = area.ids(cells, "new", listed).finish()
        if listed is not None and len(new):
            message = "%s taken in that the listing does not have, such as %a"
            log.warning(message, counted(len(new), "entity id"), new[0].as_py())
        add_unlisted(writers, new)
    texts = [writer.finish() for writer in writers]
    _warn_of_likes(area, texts[0])
    return area.vocabulary("entity", texts)


def _copy(area: Staging, listing: StagedListing, writers: Sequence[TextWriter], options: ReadOptions) -> None:
    """The texts of the listing, each id once."""
    kept, changed = _distinct(area, listing, options)
    textless = _Textless(options)
    start = 0
    for batch in area.batches(NAME, TEXTS.names):
        rows = np.arange(start, start + len(batch))
        start += len(batch)
        ids, names, descriptions = (batch[column].cast(pa.large_string()) for column in TEXTS.names)
        at = np.flatnonzero(np.isin(rows, list(changed))) if changed else np.zeros(0, np.int64)
        if len(at):
            mask = np.zeros(len(rows), bool)
            mask[at] = True
            texts = [changed[int(row)] for row in rows[at]]
            names = pc.replace_with_mask(names, mask, pa.array([text[0] for text in texts], pa.large_string()))
            descriptions = pc.replace_with_mask(descriptions, mask, pa.array([t[1] for t in texts], pa.large_string()))
        if len(kept):
            keep = pa.array(~np.isin(rows, kept))
            rows = rows[keep.to_numpy(zero_copy_only=False)]
            ids, names, descriptions = (column.filter(keep) for column in (ids, names, descriptions))
        nameless = pc.equal(names, "")
        textless.look(rows, ids, nameless, descriptions)
        if pc.any(nameless).as_py():
            names = pc.replace_with_mask(names, nameless, names_from_ids(ids.filter(nameless)))
        for writer, column in zip(writers, (ids, names, descriptions), strict=True):
            writer.append(column)
    textless.refuse(listing.where)


@dataclass
class _Textless:
    """Entities with neither name nor description, counted as they pass."""

    options: ReadOptions
    count: int = 0
    first: tuple[int, Any] = field(default=(-1, None))

    def look(self, rows: Int64, ids: pa.Array, nameless: pa.Array, descriptions: pa.Array) -> None:
        """Count those of a batch."""
        if self.options.textless != "error":
            return
        textless = pc.and_(nameless, pc.equal(descriptions, ""))
        if (number := pc.sum(textless).as_py()) and not self.count:
            at = pc.index(textless, True).as_py()
            self.first = int(rows[at]), ids[at].as_py()
        self.count += number or 0

    def refuse(self, where: Where) -> None:
        """Refuse them, if there were any."""
        if self.count:
            raise refuse_textless(self.first[1], self.count, where(self.first[0]))


def _distinct(area: Staging, listing: StagedListing, options: ReadOptions) -> tuple[Int64, dict[int, tuple[str, str]]]:
    """The rows to leave out because their id came before, and new texts of rows whose id comes again."""
    table = area.table(NAME)
    text = (
        f"SELECT id, name, description, file_row_number AS row FROM {table} WHERE id IN "
        f"(SELECT id FROM {table} GROUP BY id HAVING count(*) > 1) ORDER BY row"
    )
    batches = list(area.query(text))
    if not sum(map(len, batches)):
        return np.zeros(0, np.int64), {}
    again = pa.Table.from_batches(batches)
    rows = again["row"].to_numpy()
    ids, names, descriptions = (again[column].combine_chunks().cast(pa.large_string()) for column in TEXTS.names)
    shown = Listing(again["id"], None, None, listing.shown, lambda row: listing.where(int(rows[row])))
    kept, new_names, new_descriptions = choose_rows("entity", ids, names, descriptions, shown, options.duplicates)
    at = kept.to_numpy()
    texts = zip(new_names.take(kept).to_pylist(), new_descriptions.take(kept).to_pylist(), strict=True)
    return np.delete(rows, at), dict(zip(rows[at].tolist(), texts, strict=True))


def relation_vocabulary(
    codes: Mapping[str, int],
    first: Sequence[tuple[int, int]],
    where: Where,
    listing: Listing | None,
    options: ReadOptions,
) -> tuple[Int32, Vocabulary]:
    """The index of each relation's code, and the vocabulary; `first` has their first places, in all and in train."""
    last = len(codes) + max((train for _, train in first), default=0)
    seen = sorted(codes, key=lambda id: (first[codes[id]][1] if first[codes[id]][1] >= 0 else last, codes[id]))
    ids, names, descriptions = (pa.array([], pa.large_string()),) * 3
    if listing is not None:
        ids, names, descriptions = check_listing("relation", listing, options)
        listed = set(ids.to_pylist())
        new = [id for id in seen if id not in listed]
        if new and options.unlisted == "error":
            id = min(new, key=lambda id: first[codes[id]][0])
            raise SatkgcError(
                f"relation {id!r} is not listed in {listing.shown}",
                where=where(first[codes[id]][0]),
                remedy="list it there, or take unlisted ones in with --unlisted add",
            )
        if new:
            message = "%s taken in that the listing does not have, such as %a"
            log.warning(message, counted(len(new), "relation id"), new[0])
        seen = new
    more = pa.array(seen, pa.large_string())
    ids = pa.concat_arrays([ids, more])
    names = pa.concat_arrays([names, names_from_ids(more)])
    descriptions = pa.concat_arrays([descriptions, blank(len(more))])
    warn_of_likes("relation", ids)
    index = {id: i for i, id in enumerate(ids.to_pylist())}
    return np.array([index[id] for id in codes], np.int32), Vocabulary.build("relation", ids, names, descriptions)


def _warn_of_likes(area: Staging, ids: pa.LargeStringArray) -> None:
    """As `warn_of_likes`; only ids that are not plain themselves can look like another one."""
    twins: list[str] = []
    for start in range(0, len(ids), ROWS):
        piece = ids[start : start + ROWS]
        plain = pc.utf8_normalize(pc.utf8_trim_whitespace(piece), form="NFC")
        twins += plain.filter(pc.not_equal(plain, piece)).to_pylist()
    if twins:
        same = [ids[start : start + ROWS] for start in range(0, len(ids), ROWS)]
        plain_twins = pa.array(sorted(set(twins)), pa.large_string())
        alike = [
            piece.filter(pc.is_in(pc.utf8_normalize(pc.utf8_trim_whitespace(piece), form="NFC"), plain_twins))
            for piece in same
        ]
        warn_of_likes("entity", pa.concat_arrays(alike))
