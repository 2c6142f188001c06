"""Entity vectors as files: Parquet with ids and texts, or a .npy array with ids beside it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from satkgc.completion.completer import Completer
from satkgc.errors import SatkgcError
from satkgc.export.strings import entity_strings
from satkgc.training import Run

ROWS = 8192  # entities written at once


def write_parquet(run: Run, out: Path) -> dict[str, Any]:
    """entities.parquet: id, name, the text that was read, vector."""
    completer = Completer.load(run.folder)
    kg, vectors = run.kg, completer.asker.vectors
    sep = completer.asker.towers.tokenizer.sep_token or ""
    kind = pa.list_(pa.float32(), vectors.dim)
    schema = pa.schema([("id", pa.string()), ("name", pa.string()), ("text", pa.string()), ("vector", kind)])
    with pq.ParquetWriter(out / "entities.parquet", schema, compression="zstd") as writer:
        for start, rows in vectors.blocks(ROWS):
            stop = start + len(rows)
            columns = [
                kg.entities.ids[start:stop].cast(pa.string()),
                kg.entities.names[start:stop].cast(pa.string()),
                pa.array(entity_strings(kg, run.config.text, sep, start, stop), pa.string()),
                pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), vectors.dim),
            ]
            writer.write_table(pa.table(columns, schema))
    return {"entities": len(vectors), "width": vectors.dim}


def write_npy(run: Run, out: Path) -> dict[str, Any]:
    """entities.npy (E, dim) float32, and ids.txt with one id a line."""
    Completer.load(run.folder)  # which makes the vectors where they are missing
    shutil.copyfile(run.folder / "index" / "entities.npy", out / "entities.npy")
    if broken := [id for id in _ids(run) if "\n" in id or "\r" in id]:
        raise SatkgcError(f"the id {broken[0]!r} has two lines, ids.txt one for each", remedy="export as parquet")
    with (out / "ids.txt").open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{id}\n" for id in _ids(run))
    shape = np.load(out / "entities.npy", mmap_mode="r").shape
    return {"entities": shape[0], "width": shape[1]}


def _ids(run: Run) -> Iterator[str]:
    ids = run.kg.entities.ids
    for start in range(0, len(ids), ROWS):
        yield from ids[start : start + ROWS].to_pylist()
