"""A table of entities or relations: what is checked of it, and what becomes of ids that it has twice."""

from __future__ import annotations

import logging

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from satkgc.errors import SatkgcError
from satkgc.kg.readers.columns import Listing, blank, counted, one_chunk, refuse_empty, trimmed, with_other_names
from satkgc.kg.readers.options import Duplicates, ReadOptions
from satkgc.kg.vocabulary import names_from_ids

log = logging.getLogger("satkgc.kg")

FEW = 5  # examples in a message


def check_listing(kind: str, listing: Listing, options: ReadOptions) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Ids, names and descriptions, each in one piece, distinct and with a text where that is asked for."""
    refuse_empty(listing.ids, f"the {kind}'s id", listing.where)
    ids = one_chunk(listing.ids)
    rows: pa.Array | None = None
    descriptions = blank(len(ids)) if listing.descriptions is None else trimmed(listing.descriptions)
    names = names_from_ids(ids) if listing.names is None else trimmed(listing.names)
    if len(pc.unique(ids)) < len(ids):
        rows, names, descriptions = choose_rows(kind, ids, names, descriptions, listing, options.duplicates)
        ids, names, descriptions = (column.take(rows) for column in (ids, names, descriptions))
    nameless = pc.equal(names, "")
    if kind == "entity" and options.textless == "error":
        textless = pc.and_(nameless, pc.equal(descriptions, ""))
        if (row := pc.index(textless, True).as_py()) >= 0:
            where = listing.where(row if rows is None else rows[row].as_py())
            raise refuse_textless(ids[row].as_py(), pc.sum(textless).as_py(), where)
    if pc.any(nameless).as_py():
        names = pc.replace_with_mask(names, nameless, names_from_ids(ids.filter(nameless)))
    return ids, names, descriptions


def refuse_textless(id: str, count: int, where: str) -> SatkgcError:
    """What to say of so many entities without a text, of which this is the first."""
    return SatkgcError(
        f"entity {id!r} {f'and {count - 1:,} more have' if count > 1 else 'has'} neither name nor description",
        where=where,
        remedy="give each one, or let the id serve as the name with --textless allow",
    )


def choose_rows(
    kind: str, ids: pa.Array, names: pa.Array, descriptions: pa.Array, listing: Listing, duplicates: Duplicates
) -> tuple[pa.Array, pa.Array, pa.Array]:
    """The rows to keep, one for each id, and the texts with those that the kept ones get; the same row twice is one."""
    first = pc.index_in(ids, value_set=ids).to_numpy()  # each id's first row
    again = np.flatnonzero(first != np.arange(len(ids)))
    groups: dict[int, list[int]] = {}
    for row in again.tolist():
        groups.setdefault(int(first[row]), [int(first[row])]).append(row)
    texts = {row: (names[row].as_py(), descriptions[row].as_py()) for rows in groups.values() for row in rows}
    different = {head: rows for head, rows in groups.items() if len({texts[row] for row in rows}) > 1}
    if different and duplicates == "error":
        shown = ", ".join(
            f"{ids[head].as_py()!r} ({' and '.join(listing.where(row) for row in rows[:2])})"
            for head, rows in list(different.items())[:FEW]
        )
        one = len(different) == 1
        raise SatkgcError(
            f"{counted(len(different), f'{kind} id')} {'is' if one else 'are'} listed more than once with different "
            f"texts: {shown}{' …' if len(different) > FEW else ''}",
            where=listing.shown,
            remedy="keep one row of each with --duplicates first or last, or join their texts with --duplicates merge",
        )
    what = {"error": "they say the same", "first": "the first is kept", "last": "the last is kept"}
    log.warning(
        "%s: %s listed more than once: %s",
        listing.shown,
        counted(len(groups), f"{kind} id"),
        what.get(duplicates, "their texts are joined"),
    )
    if different and duplicates != "first":
        chosen = {
            head: texts[rows[-1]] if duplicates == "last" else _merged([texts[row] for row in rows])
            for head, rows in different.items()
        }
        mask = np.zeros(len(ids), bool)
        mask[list(chosen)] = True
        kept = [pa.array([chosen[row][i] for row in sorted(chosen)], pa.large_string()) for i in (0, 1)]
        names = pc.replace_with_mask(names, pa.array(mask), kept[0])
        descriptions = pc.replace_with_mask(descriptions, pa.array(mask), kept[1])
    return pa.array(np.flatnonzero(first == np.arange(len(ids)))), names, descriptions


def _merged(texts: list[tuple[str, str]]) -> tuple[str, str]:
    """The first name; all descriptions, after the other names."""
    names, descriptions = (list(dict.fromkeys(filter(None, column))) for column in zip(*texts, strict=True))
    return (names or [""])[0], with_other_names("; ".join(descriptions), names[1:])
