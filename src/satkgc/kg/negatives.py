"""Triples that are known to be wrong, for triple classification: published beside a graph, or in files of one's own."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np

from satkgc.arrays import Int32
from satkgc.errors import SatkgcError
from satkgc.kg.catalogue import find_entry, local_copy
from satkgc.kg.graph import KnowledgeGraph


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
    """From a file of TSV without a header: head, relation, tail, by their ids."""
    return _parse(kg, file.read_bytes(), str(file))


def _parse(kg: KnowledgeGraph, content: bytes, shown: str) -> Int32:
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError as error:
        raise SatkgcError("this is not UTF-8", where=shown, remedy="write triples as TSV") from error
    rows = []
    for number, line in enumerate(lines, 1):
        parts = line.split("\t")
        if len(parts) != 3:
            raise SatkgcError("no triple", where=f"{shown}:{number}", remedy="write head, relation, tail with tabs")
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
