"""Parquet files: columns as text, and a fast way to number large tables of triples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq

from satkgc.arrays import Int32
from satkgc.errors import SatkgcError
from satkgc.kg.readers.options import SPLIT_VALUES
from satkgc.kg.readers.source import SourceFile, most_unpacked

ROWS, SCAN_ROWS = 1 << 16, 1 << 17  # in a batch of columns, and of triples to number
SPLITS = {value: split for split, values in SPLIT_VALUES.items() for value in values}
DAMAGE = (pa.ArrowException, OSError, ValueError)  # the last for names that are not UTF-8


class ParquetTable:
    """A Parquet file of strings, or of what can be written as such."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self.shown = file.shown
        try:
            schema = pq.ParquetFile(file.path).schema_arrow
            self.names: list[str] = schema.names
            # Repeated texts stay references to one until they have been counted: a few bytes may stand for gigabytes.
            texts = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
            # Pages that are read ahead stay in memory until the last row is read.
            self._parquet = pq.ParquetFile(file.path, read_dictionary=texts, pre_buffer=False)
        except DAMAGE as error:
            self._refuse(error)

    def where(self, row: int, header: bool = True) -> str:
        """The place that a message names; a Parquet file always has names of columns."""
        return f"{self._file.shown}: row {row + 1:,}"

    def columns(self, places: Sequence[int], header: bool = True) -> list[pa.ChunkedArray]:
        """The columns at these places, as strings."""
        table = pa.Table.from_batches(list(self._batches(places)))
        return [self._as_text(table.column(i), table.schema.names[i], 0) for i in range(len(places))]

    def batches(self, places: Sequence[int], header: bool = True) -> Iterator[list[pa.Array]]:
        """As `columns`, some rows at a time."""
        first = 0
        for batch in self._batches(places):
            columns = [pa.chunked_array([column]) for column in batch.columns]
            names = batch.schema.names
            yield [self._as_text(c, name, first).combine_chunks() for c, name in zip(columns, names, strict=True)]
            first += len(batch)

    def estimate(self) -> int:
        """How many rows it says that it has."""
        return self._parquet.metadata.num_rows

    def _batches(self, places: Sequence[int]) -> Iterator[pa.RecordBatch]:
        names = [self.names[i] for i in places]
        for name in names:
            if self.names.count(name) > 1:
                raise SatkgcError(
                    f"two columns are called {name!r}", where=self._file.shown, remedy="rename one of them"
                )
        rows, left = 0, most_unpacked(self._file.path)
        try:
            for batch in self._parquet.iter_batches(ROWS, columns=names):
                left -= sum(map(_written_out, batch.columns))
                if left < 0:
                    raise SatkgcError(
                        "the table takes far more memory than its file has bytes: it may be made to fill it",
                        where=self._file.shown,
                        remedy="if you trust it, write it again without compression",
                    )
                rows += len(batch)
                yield batch.select(names)
        except DAMAGE as error:
            self._refuse(error)
        if not rows:  # what the file says of itself may be wrong
            raise SatkgcError("the table has no rows", where=self._file.shown, remedy="put rows in it")

    def _as_text(self, column: pa.ChunkedArray, name: str, first: int) -> pa.ChunkedArray:
        try:
            text = column.cast(pa.large_string())
        except pa.ArrowException:
            if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
                self._refuse_bytes(column, first)
            raise SatkgcError(
                f"column {name!r} is no text but {column.type}", where=self._file.shown, remedy="choose another column"
            ) from None
        try:
            text.validate(full=True)
        except pa.ArrowInvalid:
            self._refuse_bytes(text, first)
        return text

    def _refuse_bytes(self, column: pa.ChunkedArray, first: int) -> NoReturn:
        """Say which cell is not UTF-8; Parquet does not check, and neither does Arrow when it reads."""
        for row, cell in enumerate(column.cast(pa.large_binary()), first):
            try:
                (cell.as_py() or b"").decode()
            except UnicodeDecodeError:
                raise SatkgcError("the text is not UTF-8", where=self.where(row), remedy="write it as UTF-8") from None
        raise SatkgcError("the text is not UTF-8", where=self._file.shown)

    def _refuse(self, error: Exception) -> NoReturn:
        if isinstance(error, MemoryError):
            raise SatkgcError("not enough memory to read on", where=self._file.shown, remedy="free some") from error
        raise SatkgcError(
            f"this is no Parquet file, or a damaged one ({str(error).partition(chr(10))[0]})",
            where=self._file.shown,
            remedy="write it again",
        ) from None


def _written_out(column: pa.Array) -> int:
    """Bytes of a column whose every cell is written out."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    values = column.dictionary
    if pa.types.is_dictionary(values.type) or not len(values):
        return int(column.nbytes)
    text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    text = text or pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type)
    sizes = pc.binary_length(values).cast(pa.int64()) if text else pa.array([20] * len(values))
    counts = np.bincount(column.indices.drop_null().to_numpy(), minlength=len(values))
    return int(counts @ sizes.fill_null(0).to_numpy()) + 8 * len(column)


def number_triples(
    source: Path, columns: Mapping[str, str], entities: pa.Array, relations: pa.Array | None
) -> tuple[dict[str, Int32], pa.Array] | None:
    """Triples by split as indices, numbered while the table is read: its strings are never in memory all at once.

    Returns the triples and the relation ids, which are those of the table if none are given. `columns` names the
    columns of head, relation, tail and, if there is one, split. Takes only what needs no explaining: wherever an id is
    empty or not listed, a split has no known name or the file is damaged, it answers None; reading the table whole
    then says what is wrong.
    """
    names = {role: pyarrow.dataset.field(name).cast(pa.large_string()) for role, name in columns.items()}
    # As expressions, because Arrow then builds one hash table, and looks up in several threads while it reads.
    expressions = names | {role: pc.index_in(names[role], value_set=entities) for role in ("head", "tail")}
    numbers = {} if relations is None else {id: i for i, id in enumerate(relations.to_pylist())}
    listed = relations is not None
    parts: dict[str, list[Int32]] = {}
    left = most_unpacked(source)
    try:
        table = pyarrow.dataset.dataset(source, format="parquet")
        for batch in table.scanner(columns=expressions, batch_size=SCAN_ROWS).to_batches():
            relation = _codes(batch["relation"], numbers, grow=not listed)
            if batch["head"].null_count or batch["tail"].null_count or relation is None:
                return None
            rows = np.stack([batch["head"].to_numpy(), relation, batch["tail"].to_numpy()], 1)  # (n, 3)
            left -= rows.nbytes
            if left < 0:
                return None
            if "split" not in columns:
                parts.setdefault("train", []).append(rows)
                continue
            split = pc.utf8_lower(pc.utf8_trim_whitespace(batch["split"]))
            for value in pc.unique(split).to_pylist():
                if value not in SPLITS:
                    return None
                mask = pc.equal(split, value).to_numpy(zero_copy_only=False)
                parts.setdefault(SPLITS[value], []).append(rows[mask])
    except (pa.ArrowException, OSError, ValueError):  # the last for what is not UTF-8
        return None
    if "train" not in parts or "" in numbers:
        return None
    # In the order of the splits, whichever comes first in the file; each part is let go as it is joined.
    triples = {split: np.concatenate(parts.pop(split)) for split in SPLIT_VALUES if split in parts}
    trained = np.bincount(triples["train"][:, 1], minlength=len(numbers)) > 0
    if not all(trained[rows[:, 1]].all() for rows in triples.values()):
        return None
    return triples, relations if listed else pa.array(list(numbers), pa.large_string())


def _codes(column: pa.Array, numbers: dict[str, int], grow: bool) -> Any:
    """The numbers of a column of few distinct values; None where one is missing and may not be added."""
    encoded = column.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    if column.null_count or not (grow or numbers.keys() >= set(values)):
        return None
    codes = np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int32)
    return codes[encoded.indices.to_numpy()]
