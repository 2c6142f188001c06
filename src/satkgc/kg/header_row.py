"""Rows of head, relation and tail, in the order of a header where there is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from satkgc.errors import SatkgcError
from satkgc.kg.readers.header import locate, names_columns

TRIPLE = ("head", "relation", "tail")


def triple_rows(rows: Iterable[tuple[int, Sequence[str]]], shown: str) -> Iterator[tuple[int, list[str]]]:
    """Numbered rows with their cells as head, relation and tail; a first row with names that an import knows is a
    header, and not among them. Without one, rows are left as they are."""
    places, width = list(range(3)), 3
    for at, (line, row) in enumerate(rows):
        choices = dict.fromkeys(TRIPLE)
        if at == 0 and len(row) >= 3 and names_columns(row, choices):
            found = locate(row, choices, TRIPLE, shown, header=True)
            places, width = [found[name] for name in TRIPLE], len(row)
        elif len(row) != width > 3:
            what = f"{len(row)} columns where the header has {width}"
            raise SatkgcError(what, where=f"{shown}:{line}", remedy="give every row as many")
        else:
            yield line, [row[place] for place in places] if len(row) == width else list(row)
