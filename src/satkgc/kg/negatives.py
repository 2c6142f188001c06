"""Triples that are known to be wrong, for triple classification: published beside a graph, or in files of one's own."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from satkgc.arrays import Int32
from satkgc.errors import SatkgcError
from satkgc.kg.catalogue import find_entry, local_copy
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.header_row import triple_rows
from satkgc.kg.readers.delimited import Delimited, csv_delimiter
from satkgc.kg.readers.source import SourceFile


def published_negatives(kg: KnowledgeGraph, split: str) -> Int32:
    """Those that come with a graph of the catalogue in the folder SATKGC_DATA, in a file such as `valid_neg.tsv`."""
    source = None if kg.benchmark is None else local_copy(find_entry(kg.benchmark))
    name = f"{split}_neg.tsv"
    if source is not None and source.is_dir() and (source / name).is_file():
        return read_negatives(kg, source / name)
    if source is not None and source.is_file():
        with tarfile.open(source) as archive:
            member = next((m for m in archive.getmembers() if m.isfile() and Path(m.name).name == name), None)
            if member is not None and (stream := archive.extractfile(member)) is not None:
                return _parse(kg, stream.read(), f"{source}, {name}")
    remedy = "give files of head, relation, tail: --valid-negatives and --test-negatives"
    raise SatkgcError(f"no wrong {split} triples are published with {kg.name} here", remedy=remedy)


def read_negatives(kg: KnowledgeGraph, file: Path) -> Int32:
    """From a file of TSV or CSV: head, relation, tail, by their ids; a header may name them."""
    if not file.is_file():
        raise SatkgcError("there is no such file", where=file, remedy="check the path")
    source = SourceFile.of(file)
    mark = csv_delimiter(source) if source.stem.lower().endswith(".csv") else "\t"
    return _numbered(kg, triple_rows(Delimited(source, mark).rows(), str(file)), str(file))


def _parse(kg: KnowledgeGraph, content: bytes, shown: str) -> Int32:
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError as error:
        raise SatkgcError("this is not UTF-8", where=shown, remedy="write triples as TSV") from error
    return _numbered(kg, ((number, line.split("\t")) for number, line in enumerate(lines, 1)), shown)


def _numbered(kg: KnowledgeGraph, lines: Iterable[tuple[int, list[str]]], shown: str) -> Int32:
    rows = []
    for number, parts in lines:
        if len(parts) != 3:
            remedy = "write head, relation, tail: with tabs, or in a file that ends in .csv"
            raise SatkgcError("no triple", where=f"{shown}:{number}", remedy=remedy)
        places = []
        for vocabulary, id in zip((kg.entities, kg.relations, kg.entities), parts, strict=True):
            if (place := vocabulary.find(id)) is None:
                what = f"the graph has no {vocabulary.kind} {id!r}"
                raise SatkgcError(what, where=f"{shown}:{number}", remedy="give an id of the graph, or leave it out")
            places.append(place)
        rows.append(places)
    if not rows:
        raise SatkgcError("the file is empty", where=shown, remedy="put triples in it")
    return np.array(rows, np.int32)
