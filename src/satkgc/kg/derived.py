"""What is derived from a graph's triples, written as it is built: of a block of entities at a time, whatever its size.

Every block is one more pass over the triples, which may be memory-mapped.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from satkgc import manifest
from satkgc.arrays import Int32
from satkgc.kg.adjacency import as_triples
from satkgc.kg.pieces import ArrayWriter


def write_adjacency(folder: Path, triples: Int32, num_entities: int) -> dict[str, Any]:
    """The files of `Adjacency`, and its degrees."""
    from satkgc.kg import kernels

    triples = as_triples(triples)
    names: dict[str, type[np.generic]] = {
        "neighbour_ptr": np.int64, "neighbours": np.int32, "edge_ptr": np.int64, "edges": np.int32, "degree": np.int32,
    }  # fmt: skip
    with ExitStack() as stack:
        files = {
            name: stack.enter_context(ArrayWriter(folder / f"adjacency_{name}.npy", dtype))
            for name, dtype in names.items()
        }
        files["neighbour_ptr"].append([0])
        counts = kernels.count_entities(triples, 0, 2, num_entities)
        for low, high in kernels.entity_blocks(counts, kernels.BLOCK):
            neighbour_ptr, neighbours, edge_ptr, edges = kernels.build_adjacency(triples, low, high)
            files["degree"].append(np.diff(neighbour_ptr))
            files["neighbour_ptr"].append(neighbour_ptr[1:] + files["neighbours"].size)
            files["edge_ptr"].append(edge_ptr[:-1] + files["edges"].size)
            files["neighbours"].append(neighbours)
            files["edges"].append(edges)
        files["edge_ptr"].append([files["edges"].size])
    return {file.path.name: describe(file.path) for file in files.values()}


def write_known(folder: Path, prefix: str, triples: Int32, more: Int32, num_entities: int) -> dict[str, Any]:
    """The files of `KnownTriples`, of the triples and some more of them."""
    from satkgc.kg import kernels

    triples, more = as_triples(triples), as_triples(more)
    written = {}
    for first, last, end, other in ((0, 2, "head", "tails"), (2, 0, "tail", "heads")):
        stem = f"{prefix}_{end}"
        with ExitStack() as stack:
            pointers = stack.enter_context(ArrayWriter(folder / f"{stem}_ptr.npy", np.int64))
            columns = [
                stack.enter_context(ArrayWriter(folder / f"{stem}_{name}.npy", np.int32))
                for name in ("relations", other)
            ]
            pointers.append([0])
            counts = sum(kernels.count_entities(rows, first, first, num_entities) for rows in (triples, more))
            for low, high in kernels.entity_blocks(counts, kernels.BLOCK):
                ptr, *parts = kernels.sorted_by(triples, more, first, last, low, high)
                pointers.append(ptr[1:] + columns[0].size)
                for column, part in zip(columns, parts, strict=True):
                    column.append(part)
        for file in (pointers, *columns):
            written[file.path.name] = describe(file.path)
    return written


def describe(path: Path) -> dict[str, Any]:
    """The size and checksum of a file."""
    return {"bytes": path.stat().st_size, "sha256": manifest.sha256(path)}
