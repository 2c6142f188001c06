"""A place on the disk for a source that is larger than memory: its triples as columns of text, numbered by DuckDB.

What is read goes into Parquet files, a few rows at a time. DuckDB then finds the distinct ids and joins them to the
triples, within its share of the memory; what does not fit goes to the disk. The arrays and texts that come out of it
are memory-mapped, and their files are removed at once: the system keeps them as long as they are used.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from satkgc import files
from satkgc.arrays import Int32, Int64
from satkgc.errors import SatkgcError
from satkgc.kg.pieces import TextWriter, mapped_triples
from satkgc.kg.readers.columns import blank
from satkgc.kg.vocabulary import Vocabulary, names_from_ids
from satkgc.progress import progress_bar

ROWS = 1 << 17  # in a batch that comes back
SHARE = 0.6  # of the memory is DuckDB's; the rest is for arrays and for what it takes beyond its limit
SCHEMA = pa.schema([("head", pa.string()), ("relation", pa.int32()), ("tail", pa.string()), ("place", pa.int64())])


class Staging:
    """A folder for one source. Triples have their place in the source, by which messages name them."""

    def __init__(self, folder: Path, memory: float) -> None:
        import duckdb

        self.folder, self.rows = folder, dict[str, int]()
        self._writers: dict[str, pq.ParquetWriter] = {}
        limit = f"{max(64, round(SHARE * memory * 1024))}MiB"
        settings: dict[str, Any] = {
            "memory_limit": limit,
            "temp_directory": str(folder / "spill"),
            "threads": os.cpu_count() or 1,
        }
        self.database = duckdb.connect(str(folder / "staging.db"), config=settings)
        self.database.execute("SET preserve_insertion_order = true; SET enable_progress_bar = false")

    def add(self, name: str, columns: Sequence[Any], schema: pa.Schema = SCHEMA) -> None:
        """Append rows to the Parquet file of this name."""
        if name not in self._writers:
            self._writers[name], self.rows[name] = pq.ParquetWriter(self.folder / f"{name}.parquet", schema), 0
        batch = pa.record_batch(
            [pa.array(column).cast(field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
        )
        self._writers[name].write_batch(batch)
        self.rows[name] += len(batch)

    def table(self, name: str) -> str:
        """The rows of a Parquet file, in SQL, with `file_row_number`."""
        if (writer := self._writers.get(name)) is not None and writer.is_open:
            writer.close()
        path = str(self.folder / f"{name}.parquet").replace("'", "''")
        return f"read_parquet('{path}', file_row_number = true)"

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a Parquet file in order, some at a time."""
        self.table(name)
        with pq.ParquetFile(self.folder / f"{name}.parquet", pre_buffer=False) as file:
            yield from file.iter_batches(ROWS, columns=list(columns))

    def query(self, text: str, **tables: pa.Table) -> Iterator[pa.RecordBatch]:
        """The rows of a query, a batch at a time; Arrow tables stand in it under their names."""
        for name, table in tables.items():
            self.database.register(name, table)
        yield from self.database.sql(text).fetch_record_batch(ROWS)
        for name in tables:
            self.database.unregister(name)

    def ids(self, cells: str, name: str = "ids", known: pa.LargeStringArray | None = None) -> TextWriter:
        """The distinct ids of `cells`, a query for (id, place), in the order of their places; not those `known`."""
        writer = TextWriter(self.folder, name)
        missing = "" if known is None else "ANTI JOIN known ON cells.id = known.id"
        tables = {} if known is None else {"known": pa.table({"id": known})}
        text = f"SELECT id FROM ({cells}) AS cells {missing} GROUP BY id ORDER BY min(place)"
        for batch in self.query(text, **tables):
            writer.append(batch["id"])
        return writer

    def number(self, splits: Sequence[str], ids: pa.LargeStringArray, relations: Int32) -> dict[str, Int32]:
        """The triples of each split as indices, (n, 3): of heads and tails among the ids, -1 where there is none."""
        arrays = {}
        numbered = {"known": pa.table({"id": ids, "number": pa.array(np.arange(len(ids), dtype=np.int32))})}
        with progress_bar() as bar:
            task = bar.add_task("numbering triples", total=3 * sum(self.rows[split] for split in splits))
            for split in splits:
                rows = self.rows[split]
                triples = arrays[split] = mapped_triples(self.folder / f"{split}.triples", rows)
                source = self.table(split)
                for column, role in ((0, "head"), (2, "tail")):
                    text = (
                        f"SELECT file_row_number AS row, coalesce(number, -1) AS number FROM {source} "
                        f"LEFT JOIN known ON {role} = id"
                    )
                    for batch in self.query(text, **numbered):
                        triples[batch["row"].to_numpy(), column] = batch["number"].to_numpy()
                        bar.advance(task, len(batch))
                row = 0
                for batch in self.batches(split, ["relation"]):
                    triples[row : row + len(batch), 1] = relations[batch["relation"].to_numpy()]
                    row += len(batch)
                    bar.advance(task, len(batch))
        return arrays

    def places(self, split: str, rows: Int64) -> Int64:
        """Where in the source these rows of a split stand."""
        chosen = pa.table({"row": pa.array(rows)})
        text = f"SELECT place FROM {self.table(split)} JOIN chosen ON file_row_number = row ORDER BY row"
        return np.concatenate([batch["place"].to_numpy() for batch in self.query(text, chosen=chosen)])

    def order(self, texts: pa.LargeStringArray) -> Int32:
        """The indices sorted by their texts."""
        numbered = pa.table({"text": texts, "number": pa.array(np.arange(len(texts), dtype=np.int32))})
        parts = [
            b["number"].to_numpy() for b in self.query("SELECT number FROM texts ORDER BY text, number", texts=numbered)
        ]
        order = np.concatenate(parts) if parts else np.zeros(0, np.int32)
        order.flags.writeable = False
        return order

    def vocabulary(self, kind: str, texts: Sequence[pa.LargeStringArray]) -> Vocabulary:
        """Ids, names and descriptions with their orders."""
        ids, names, descriptions = texts
        return Vocabulary(kind, ids, names, descriptions, self.order(ids), self.order(names))


def add_unlisted(writers: Sequence[TextWriter], ids: pa.LargeStringArray) -> None:
    """Ids without texts: names are made from them."""
    for start in range(0, len(ids), ROWS):
        piece = ids[start : start + ROWS]
        for writer, column in zip(writers, (piece, names_from_ids(piece), blank(len(piece))), strict=True):
            writer.append(column)


@contextmanager
def staging(memory: float, spill: Path | None, shown: str) -> Iterator[Staging]:
    """A staging area that is gone afterwards; what a killed process left there is removed by the next one."""
    import tempfile

    import duckdb

    place = files.make_folder(spill or Path(tempfile.gettempdir()))
    folder = files.partial(place / "satkgc-staging")
    remedy = "the source needs a few times its size there; free some, or choose another folder with --spill"
    try:
        folder.mkdir()
        area = Staging(folder, memory)
        try:
            yield area
        finally:
            area.database.close()
    except duckdb.OutOfMemoryException as error:
        if not _says_full(error):
            what = f"DuckDB's share of {memory:g} GiB is not enough"
            raise SatkgcError(what, where=shown, remedy=f"give it more: --memory {2 * memory:g}") from error
        raise SatkgcError("no space left to sort in", where=place, remedy=remedy) from error
    except (duckdb.IOException, OSError) as error:
        full = _says_full(error) or files.is_full(error)
        what = "no space left to sort in" if full else f"cannot write there ({str(error).partition(chr(10))[0]})"
        raise SatkgcError(what, where=place, remedy=remedy) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _says_full(error: Exception) -> bool:
    return "space" in str(error).lower() or "disk" in str(error)
