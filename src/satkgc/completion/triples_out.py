"""Write scored triples to a file as they come: TSV, CSV, Parquet or N-Triples, by the file's ending."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from satkgc.errors import SatkgcError
from satkgc.files import atomic_write
from satkgc.kg import NOT_TSV, KnowledgeGraph, check_tsv_ids, tsv_id_error

COLUMNS = ["head", "relation", "tail", "head_name", "relation_name", "tail_name", "score", "probability"]
SCHEMA = pa.schema(
    [(name, pa.string()) for name in COLUMNS[:6]] + [("score", pa.float32()), ("probability", pa.float32())]
)
ACCEPT = "accept"  # an empty column of a table, for whoever looks through it
IRI = re.compile(r"[a-z][a-z0-9+.-]*:[^\s<>\"{}|^`\\]+", re.IGNORECASE)
SAFE = "!~*'()"  # as the web page writes ids
OTHER = "write .csv or .parquet"  # where an id cannot stand in TSV
ENDINGS = (".tsv", ".csv", ".parquet", ".nt")
Row = tuple[str, str, str, str, str, str, float, float | None]


def check_ending(out: Path) -> None:
    """Refuse a file whose form cannot be told."""
    if out.suffix not in ENDINGS:
        raise SatkgcError(f"cannot tell the form of {out.name!r}", remedy=f"end its name in {', '.join(ENDINGS)}")


def check_graph(out: Path, kg: KnowledgeGraph) -> None:
    """Refuse a form in which the graph's ids cannot be written, before hours of work and not after them."""
    for vocabulary in (kg.entities, kg.relations):
        if out.suffix == ".tsv":
            check_tsv_ids(vocabulary, out, OTHER)


def write_triples(out: Path, batches: Iterable[list[Row]]) -> int:
    """Write rows, a batch at a time, and put the file in place when it is whole; returns how many there were."""
    check_ending(out)
    write = {".parquet": _parquet, ".nt": _ntriples}.get(out.suffix, _delimited)
    with atomic_write(out) as part:
        return write(part, batches, out)


def iri(kind: str, id: str) -> str:
    """An id as an IRI: as it is where it is one, else below `urn:satkgc:`, from where it can be read back."""
    return id if IRI.fullmatch(id) else f"urn:satkgc:{kind}:{quote(id, safe=SAFE)}"


def _delimited(part: Path, batches: Iterable[list[Row]], out: Path) -> int:
    count = 0
    tsv: dict[str, Any] = {"delimiter": "\t", "quoting": csv.QUOTE_NONE, "quotechar": None}  # as all TSV is read
    with part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n", **(tsv if out.suffix == ".tsv" else {}))
        writer.writerow([*COLUMNS, ACCEPT])
        for rows in batches:
            fitting = (_fit(row, out) for row in rows) if out.suffix == ".tsv" else rows
            writer.writerows(
                [*row[:6], f"{row[6]:.6f}", "" if row[7] is None else f"{row[7]:.6f}", ""] for row in fitting
            )
            count += len(rows)
    return count


def _fit(row: Row, out: Path) -> Row:
    """A row whose names are cells of TSV, and whose ids are so already."""
    for kind, id in zip(("entity", "relation", "entity"), row[:3], strict=True):
        if re.search(NOT_TSV, id):
            raise tsv_id_error(kind, id, out, OTHER)
    head, relation, tail = (" ".join(name.split()) for name in row[3:6])
    return *row[:3], head, relation, tail, *row[6:]


def _parquet(part: Path, batches: Iterable[list[Row]], out: Path) -> int:
    count = 0
    with pq.ParquetWriter(part, SCHEMA) as writer:
        for rows in batches:
            columns: list[Any] = list(zip(*rows, strict=True)) if rows else [[]] * len(COLUMNS)
            writer.write_table(pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA))
            count += len(rows)
    return count


def _ntriples(part: Path, batches: Iterable[list[Row]], out: Path) -> int:
    count = 0
    with part.open("w", encoding="utf-8") as file:
        for rows in batches:
            file.writelines(
                f"<{iri('entity', h)}> <{iri('relation', r)}> <{iri('entity', t)}> .\n" for h, r, t, *_ in rows
            )
            count += len(rows)
    return count
