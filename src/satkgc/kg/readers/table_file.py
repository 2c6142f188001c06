"""One table as it lies in a file: its columns by place, its rows, and whether its first row names the columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from satkgc.errors import SatkgcError
from satkgc.kg.readers.delimited import Delimited, csv_delimiter
from satkgc.kg.readers.header import Choices, column_flags, looks_like_header, names_columns
from satkgc.kg.readers.parquet import ParquetTable
from satkgc.kg.readers.source import SourceFile

PACKED = 5  # times smaller is a text that is packed, about


class TextTable:
    """A CSV or TSV file; `names` is its first row, which may be a header."""

    def __init__(self, file: SourceFile) -> None:
        self.shown = file.shown
        self._file = file
        self._text = Delimited(file, csv_delimiter(file) if file.stem.lower().endswith(".csv") else "\t")
        self.names = self._text.first_row()

    def columns(self, places: Sequence[int], header: bool = True) -> list[pa.ChunkedArray]:
        """The columns at these places."""
        return self._text.columns(places, len(self.names), header)

    def batches(self, places: Sequence[int], header: bool = True) -> Iterator[list[pa.Array]]:
        """As `columns`, some rows at a time."""
        return self._text.batches(places, len(self.names), header)

    def estimate(self) -> int:
        """About how many rows it has, by the length of the first ones; what is packed has some times as many."""
        lines = list(itertools.islice(self._text.rows(), 1000))
        letters = sum(len(cell.encode()) + 1 for _, row in lines for cell in row)
        packed = self._file.stem != self._file.path.name
        return int((PACKED if packed else 1) * self._file.path.stat().st_size / max(1, letters) * len(lines)) or 1

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Line and cells of each row, the first one too."""
        return self._text.rows()

    def first_cell(self, place: int) -> str | None:
        """What the first row below the header has at a place."""
        return next((row[place] for _, row in itertools.islice(self.rows(), 1, 2) if place < len(row)), None)

    def where(self, row: int, header: bool = True) -> str:
        """The place that a message names."""
        return self._file.at(self._text.line_of(row, header))


FileTable = TextTable | ParquetTable


class Table(Protocol):
    """Columns by place, with their names; those of a text may be its first row of data."""

    shown: str
    names: list[str]

    def columns(self, places: Sequence[int], header: bool = True) -> list[pa.ChunkedArray]:
        """The columns at these places."""

    def where(self, row: int, header: bool = True) -> str:
        """The place that a message names."""


def open_table(file: SourceFile) -> FileTable:
    """A table by the ending of its name."""
    return ParquetTable(file) if file.stem.lower().endswith(".parquet") else TextTable(file)


def has_header(table: Table, choices: Choices, required: Sequence[str]) -> bool:
    """Whether the first row names the columns; asks where neither its names nor the other rows tell."""
    if not isinstance(table, TextTable) or names_columns(table.names, choices):
        return True
    width = len(table.names)
    if width != len(required) or any(choices[role] is not None for role in required):
        return False  # positions, or `locate` asks
    header = looks_like_header(table.names, table.batches(range(width), True))
    if header is None:
        titles = column_flags(dict(zip(required, table.names, strict=True)))
        positions = column_flags(dict(zip(required, range(width), strict=True)))
        raise SatkgcError(
            "whether the first row is a header cannot be told",
            where=table.shown,
            remedy=f"if it is: {titles}; if it is data: {positions}",
        )
    return header


def header_by_names(table: Table, choices: Choices) -> bool:
    """Whether the first row names the columns, as far as usual names and chosen ones tell."""
    return not isinstance(table, TextTable) or names_columns(table.names, choices)


def is_plain_triples(table: Table, choices: Choices) -> bool:
    """Whether a table is three columns of data and no more, of which none was chosen."""
    if not isinstance(table, TextTable) or len(table.names) != 3 or any(choices.values()):
        return False
    return looks_like_header(table.names, table.batches(range(3), True)) is False
