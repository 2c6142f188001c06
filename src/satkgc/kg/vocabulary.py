"""The entities or relations of a graph: ids, names and descriptions, kept as Arrow columns; names made from ids."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from satkgc.arrays import Int32
from satkgc.errors import SatkgcError

_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//|[^\s/])")
# Between a small letter or digit and a capital that starts a word, and before the last capital of a run: DNASequence.
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[a-z]\d)(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Index → (id, name, description), and back by binary search over two stored orders.

    The columns are Arrow arrays, so that millions of texts open by memory map and are never turned into Python
    strings all at once; the orders stand in for hash tables, which would have to be built at every start.
    """

    kind: str  # "entity" or "relation": what messages call a member
    ids: pa.LargeStringArray
    names: pa.LargeStringArray
    descriptions: pa.LargeStringArray  # "" where there is none
    id_order: Int32  # indices sorted by id
    name_order: Int32  # indices sorted by name

    @classmethod
    def build(cls, kind: str, ids: Any, names: Any, descriptions: Any) -> Vocabulary:
        """Take three string columns of one length, of Arrow, pandas or lists; the ids must be distinct."""
        columns = [_large_string(column) for column in (ids, names, descriptions)]
        if len({len(column) for column in columns}) > 1 or any(column.null_count for column in columns):
            raise SatkgcError(f"{kind} columns of different lengths, or with gaps", remedy="give each a text, if empty")
        with ThreadPoolExecutor(max_workers=2) as pool:
            id_order, name_order = pool.map(_order, columns[:2])
        in_order = columns[0].take(pa.array(id_order))
        if (twice := pc.index(pc.equal(in_order[1:], in_order[:-1]), True).as_py()) >= 0:
            raise SatkgcError(f"{kind} {in_order[twice].as_py()!r} is listed twice", remedy="keep one of the two")
        return cls(kind, columns[0], columns[1], columns[2], id_order, name_order)

    def __len__(self) -> int:
        return len(self.ids)

    def id(self, index: int) -> str:
        """The id that the source used for this member."""
        return self.ids[int(index)].as_py()

    def name(self, index: int) -> str:
        """The name, for people and for the language model."""
        return self.names[int(index)].as_py()

    def description(self, index: int) -> str:
        """The description, or an empty string."""
        return self.descriptions[int(index)].as_py()

    def find(self, id: str) -> int | None:
        """The index of an id, or None."""
        at = _bisect(self.id_order, self.id, id)
        if at < len(self) and self.id(self.id_order[at]) == id:
            return int(self.id_order[at])
        return None

    def by_name(self, name: str) -> Int32:
        """All indices with exactly this name, ascending."""
        low = _bisect(self.name_order, self.name, name)
        high = _bisect(self.name_order, self.name, name, after=True)
        return np.sort(self.name_order[low:high])

    def index(self, id: str) -> int:
        """The index of an id; an unknown one is answered with those that look like it."""
        index = self.find(id)
        if index is None:
            near = difflib.get_close_matches(id, self._around(id), n=3, cutoff=0.5)
            hint = f"did you mean {', '.join(map(repr, near))}?" if near else f"no {self.kind} id looks like it"
            raise SatkgcError(f"unknown {self.kind} {id!r}", remedy=hint)
        return index

    def _around(self, id: str, width: int = 500) -> list[str]:
        """Ids to compare a misspelt one with: all of a small vocabulary, else the neighbours in sorted order."""
        if len(self) <= 20_000:
            return self.ids.to_pylist()
        at = _bisect(self.id_order, self.id, id)
        return [self.id(i) for i in self.id_order[max(0, at - width) : at + width]]


def _order(column: pa.LargeStringArray) -> Int32:
    order = pc.sort_indices(column).to_numpy().astype(np.int32)
    order.flags.writeable = False
    return order


def _large_string(column: Any) -> pa.LargeStringArray:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    elif not isinstance(column, pa.Array):
        column = pa.array(column, from_pandas=True)
    return column.cast(pa.large_string())


def _bisect(order: Int32, key: Callable[[int], str], text: str, after: bool = False) -> int:
    """The place of `text` among the keys in Arrow's sort order, which is that of the UTF-8 bytes."""
    target = text.encode()
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        value = key(order[middle]).encode()
        if value < target or (after and value == target):
            low = middle + 1
        else:
            high = middle
    return low


def name_from_id(id: str) -> str:
    """The words of an id or IRI; never empty.

    `http://x.org/birthPlace` → birth place, `/people/person` → people person, `new_york` → new york.
    """
    end = _iri_end(id) if _IRI.match(id) else id
    words = " ".join(end.replace("_", " ").replace("/", " ").split())
    if " " not in words:
        words = _split_camel(words)
    return words or id


def _iri_end(iri: str) -> str:
    """The last part of an IRI that holds anything: after its # or / or :, percent-escapes undone."""
    for part in reversed(re.split(r"[#/:]", iri)):
        if part:
            return unquote(part)
    return iri


def _split_camel(word: str) -> str:
    parts = _CAMEL.split(word)
    if len(parts) > 1 and word[0].islower():  # camelCase, of properties: birthPlace is "birth place", not "birth Place"
        parts = [part if part.isupper() and len(part) > 1 else part.lower() for part in parts]
    return " ".join(parts)


def names_from_ids(ids: pa.Array) -> pa.Array:
    """`name_from_id` of a whole column."""
    return pa.array((name_from_id(id) for id in ids.to_pylist()), pa.large_string(), size=len(ids))
