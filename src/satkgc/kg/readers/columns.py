"""What readers find in a source: columns of text, of triples and of lists of entities or relations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from satkgc.errors import SatkgcError
from satkgc.kg.vocabulary import names_from_ids

OTHER_NAMES, OTHER_LETTERS = 5, 120  # at most, in a description

Where = Callable[[int], str]  # a row's place, as messages name it


@dataclass(frozen=True)
class Triples:
    """Three columns of ids."""

    head: pa.ChunkedArray
    relation: pa.ChunkedArray
    tail: pa.ChunkedArray
    where: Where


@dataclass(frozen=True)
class Listing:
    """A table of entities or relations; without a column of names they are made from the ids."""

    ids: pa.ChunkedArray
    names: pa.ChunkedArray | None
    descriptions: pa.ChunkedArray | None
    shown: str  # the file, for messages
    where: Where
    labels: pa.ChunkedArray | None = None  # Neo4j's: the kinds of a node


def join_triples(parts: Sequence[Triples]) -> Triples:
    """The triples of several tables as one."""
    if len(parts) == 1:
        return parts[0]
    columns = [_join([getattr(part, role) for part in parts]) for role in ("head", "relation", "tail")]
    return Triples(columns[0], columns[1], columns[2], _where([(len(part.head), part.where) for part in parts]))


def join_listings(parts: Sequence[Listing]) -> Listing | None:
    """Several tables of entities as one; None of none."""
    if len(parts) < 2:
        return parts[0] if parts else None
    names = descriptions = labels = None
    if any(part.names is not None for part in parts):
        names = _join([names_from_ids(one_chunk(p.ids)) if p.names is None else p.names for p in parts])
    if any(part.descriptions is not None for part in parts):
        descriptions = _join([blank(len(p.ids)) if p.descriptions is None else p.descriptions for p in parts])
    if any(part.labels is not None for part in parts):
        labels = _join([blank(len(p.ids)) if p.labels is None else p.labels for p in parts])
    where = _where([(len(part.ids), part.where) for part in parts])
    shown = f"{parts[0].shown} and {counted(len(parts) - 1, 'more table')}"
    return Listing(_join([part.ids for part in parts]), names, descriptions, shown, where, labels)


def unlisted(inline: Sequence[Listing], listed: Sequence[Listing]) -> list[Listing]:
    """What names beside triples say of ids that no table lists: the first text of each."""
    if not inline:
        return []
    known = {id for listing in listed for id in listing.ids.to_pylist()}
    rows: dict[str, tuple[str, str, str]] = {}
    for listing in inline:
        names, descriptions = (
            [""] * len(listing.ids) if column is None else column.to_pylist()
            for column in (listing.names, listing.descriptions)
        )
        for row, id in enumerate(listing.ids.to_pylist()):
            if id and id not in known and id not in rows:
                rows[id] = id, names[row] or id, descriptions[row] or ""
    if not rows:
        return []
    ids, names, descriptions = (
        pa.chunked_array([pa.array(column, pa.large_string())]) for column in zip(*rows.values(), strict=True)
    )
    return [Listing(ids, names, descriptions, inline[0].shown, lambda _: inline[0].shown)]


def _join(columns: Sequence[pa.ChunkedArray | pa.Array]) -> pa.ChunkedArray:
    chunks = [column.cast(pa.large_string()) for column in columns]
    return pa.chunked_array(
        [part for chunk in chunks for part in (chunk.chunks if isinstance(chunk, pa.ChunkedArray) else [chunk])],
        pa.large_string(),
    )


def _where(parts: Sequence[tuple[int, Where]]) -> Where:
    """The place of a row of tables that were joined, each with so many rows."""
    ends = np.cumsum([rows for rows, _ in parts])

    def where(row: int) -> str:
        part = min(int(np.searchsorted(ends, row, "right")), len(parts) - 1)
        return parts[part][1](row - int(ends[part] - parts[part][0]))

    return where


def counted(number: int, what: str) -> str:
    """So many of something, in words that fit one."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def refuse_empty(column: pa.ChunkedArray, what: str, where: Where) -> None:
    """Refuse a column that lacks a text somewhere."""
    empty = pc.fill_null(pc.equal(column.cast(pa.large_string()), ""), True)
    if (row := pc.index(empty, True).as_py()) >= 0:
        raise SatkgcError(f"{what} is empty", where=where(row), remedy="fill it in, or take the line out")


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """The column in one piece."""
    # Cast before joining: 32-bit offsets end at two gigabytes of text.
    return pa.chunked_array(column.cast(pa.large_string())).combine_chunks()


def trimmed(column: pa.ChunkedArray) -> pa.Array:
    """The column in one piece, without spaces around its texts; "" where there is none."""
    return pc.utf8_trim_whitespace(pc.fill_null(one_chunk(column), ""))


def blank(count: int) -> pa.Array:
    """So many empty texts."""
    return pa.repeat(pa.scalar("", pa.large_string()), count)


def with_other_names(description: str, names: Sequence[str]) -> str:
    """A description that begins with other names of the thing, not too many of them."""
    chosen: list[str] = []
    for name in names[:OTHER_NAMES]:
        if len(", ".join([*chosen, name])) <= OTHER_LETTERS:
            chosen.append(name)
    if not chosen:
        return description
    also = f"also called {', '.join(chosen)}"
    return f"{also}; {description}" if description else also
