"""Columns of a Parquet file as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from satkgc.errors import SatkgcError
from satkgc.kg.readers.source import SourceFile, most_unpacked

ROWS = 1 << 16  # in a batch
DAMAGE = (pa.ArrowException, OSError, ValueError)  # the last for names that are not UTF-8


class ParquetTable:
    """A Parquet file of strings, or of what can be written as such."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        try:
            self._parquet = pq.ParquetFile(file.path)
            self.names: list[str] = self._parquet.schema_arrow.names
        except DAMAGE as error:
            self._refuse(error)

    def where(self, row: int) -> str:
        """The place that a message names."""
        return f"{self._file.shown}: row {row + 1:,}"

    def columns(self, wanted: Sequence[int]) -> list[pa.ChunkedArray]:
        """The wanted columns, as strings."""
        names = [self.names[i] for i in wanted]
        for name in names:
            if self.names.count(name) > 1:
                raise SatkgcError(
                    f"two columns are called {name!r}", where=self._file.shown, remedy="rename one of them"
                )
        batches, left = [], most_unpacked(self._file.path)
        try:
            for batch in self._parquet.iter_batches(ROWS, columns=names):
                left -= batch.nbytes
                if left < 0:
                    raise SatkgcError(
                        "the table takes far more memory than its file has bytes: it may be made to fill it",
                        where=self._file.shown,
                        remedy="if you trust it, write it again without compression",
                    )
                batches.append(batch)
        except DAMAGE as error:
            self._refuse(error)
        if not sum(len(batch) for batch in batches):  # what the file says of itself may be wrong
            raise SatkgcError("the table has no rows", where=self._file.shown, remedy="put rows in it")
        table = pa.Table.from_batches(batches)
        return [self._as_text(table.column(name), name) for name in names]

    def _as_text(self, column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
        try:
            text = column.cast(pa.large_string())
        except pa.ArrowException:
            if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
                self._refuse_bytes(column)
            raise SatkgcError(
                f"column {name!r} is no text but {column.type}", where=self._file.shown, remedy="choose another column"
            ) from None
        try:
            text.validate(full=True)
        except pa.ArrowInvalid:
            self._refuse_bytes(text)
        return text

    def _refuse_bytes(self, column: pa.ChunkedArray) -> NoReturn:
        """Say which cell is not UTF-8; Parquet does not check, and neither does Arrow when it reads."""
        for row, cell in enumerate(column.cast(pa.large_binary())):
            try:
                (cell.as_py() or b"").decode()
            except UnicodeDecodeError:
                raise SatkgcError("the text is not UTF-8", where=self.where(row), remedy="write it as UTF-8") from None
        raise SatkgcError("the text is not UTF-8", where=self._file.shown)

    def _refuse(self, error: Exception) -> NoReturn:
        raise SatkgcError(
            f"this is no Parquet file, or a damaged one ({str(error).partition(chr(10))[0]})",
            where=self._file.shown,
            remedy="write it again",
        ) from None
