"""Rows of text with a delimiter, as Arrow columns: the fast parser first, and a slow look only to explain a failure."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.csv

from satkgc.errors import SatkgcError
from satkgc.kg.readers.source import SourceFile

LONGEST_LINE = 1 << 24  # bytes; the parser's block, which a line must fit


@dataclass(frozen=True)
class Delimited:
    """A delimited file. TSV has no quoting, as in the benchmark folders; CSV has, and its cells may hold newlines."""

    file: SourceFile
    delimiter: str = "\t"

    @property
    def quoted(self) -> bool:
        """Whether cells may stand in double quotes."""
        return self.delimiter != "\t"

    def first_row(self) -> list[str]:
        """The cells of the first row that is not blank."""
        for _, row in self.rows():
            return row
        raise SatkgcError("the file is empty", where=self.file.shown, remedy="put rows in it, or remove it")

    def columns(self, places: Sequence[int], width: int, header: bool = False) -> list[pa.ChunkedArray]:
        """The columns at these places of a file whose rows have `width` cells, as strings; blank lines do not count."""
        try:
            with self.file.open_for_arrow() as stream:
                table = pyarrow.csv.read_csv(stream, *self._parser(places, width))
        except pa.ArrowInvalid as error:
            self._explain(width, error)
        # Not skip_rows_after_names: that counts blank lines, too.
        return table.slice(int(header)).columns

    def batches(self, places: Sequence[int], width: int, header: bool = False) -> Iterator[list[pa.Array]]:
        """As `columns`, some rows at a time."""
        skip = int(header)
        try:
            with (
                self.file.open_for_arrow() as stream,
                pyarrow.csv.open_csv(stream, *self._parser(places, width)) as reader,
            ):
                for batch in reader:
                    yield batch.slice(skip).columns
                    skip = max(0, skip - len(batch))
        except pa.ArrowInvalid as error:
            self._explain(width, error)

    def _parser(self, places: Sequence[int], width: int) -> tuple[Any, Any, Any]:
        names = [str(i) for i in range(width)]
        return (
            pyarrow.csv.ReadOptions(column_names=names, block_size=LONGEST_LINE),
            pyarrow.csv.ParseOptions(
                delimiter=self.delimiter,
                quote_char='"' if self.quoted else False,
                double_quote=self.quoted,
                newlines_in_values=self.quoted,
            ),
            pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), include_columns=[names[i] for i in places]
            ),
        )

    def line_of(self, row: int, header: bool = False) -> int:
        """The line on which a row of `columns` starts or ends; slow, for messages."""
        for number, (line, _) in enumerate(self.rows()):
            if number == row + header:
                return line
        return 0

    def _explain(self, width: int, error: Exception) -> NoReturn:
        for line, row in self.rows():
            if len(row) != width:
                has_return = not self.quoted and any("\r" in cell for cell in row)
                raise SatkgcError(
                    f"{_count(len(row))} where {_count(width)} should be",
                    where=self.file.at(line),
                    remedy="take the carriage return out of it" if has_return else self._columns_remedy(width),
                )
        message = str(error).partition("\n")[0]
        raise SatkgcError(f"cannot be read as delimited text ({message})", where=self.file.shown)

    def _columns_remedy(self, width: int) -> str:
        by = "tabs" if self.delimiter == "\t" else f"{self.delimiter!r}"
        return f"give every line {_count(width)} separated by {by}"

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Line number and cells of each row that is not blank, the slow way."""
        lines = self._lines()
        if not self.quoted:
            for number, line in enumerate(lines, 1):
                if cut := line.rstrip("\r\n"):
                    yield number, cut.split(self.delimiter)
            return
        csv.field_size_limit(LONGEST_LINE)
        reader = csv.reader(lines, delimiter=self.delimiter)
        try:
            for row in reader:
                if row:
                    yield reader.line_num, row
        except csv.Error as error:
            what, remedy = f"cannot be read as CSV ({error})", "save it as CSV again"
            if "new-line" in str(error):
                what = "a carriage return stands in the middle of the line"
                remedy = "take it out, or quote its cell; if every line ends so, save the file with newlines"
            raise SatkgcError(what, where=self.file.at(reader.line_num), remedy=remedy) from None

    def _lines(self) -> Iterator[str]:
        with self.file.open() as stream:
            number = 0
            while line := stream.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise SatkgcError(
                        f"a line of more than {LONGEST_LINE >> 20} MiB",
                        where=self.file.at(number),
                        remedy="the file may have lost its newlines, or be of another kind",
                    )
                try:
                    yield line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise SatkgcError(
                        f"byte {error.start + 1} of the line is not UTF-8",
                        where=self.file.at(number),
                        remedy="save the file as UTF-8",
                    ) from None


def _count(cells: int) -> str:
    return "1 column" if cells == 1 else f"{cells} columns"


def csv_delimiter(file: SourceFile) -> str:
    """A comma, or what the first line has more of outside quotes: where commas are decimal, CSV has semicolons."""
    with file.open() as stream:
        line = next((line for line in stream.read(1 << 16).splitlines() if line.strip()), b"")
    plain = re.sub(rb'"[^"]*"', b"", line)
    return max(",;\t", key=lambda mark: plain.count(mark.encode()))
