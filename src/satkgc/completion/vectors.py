"""Entity vectors: a memory-mapped file, and the rows of entities added since."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from satkgc.arrays import Float32, Int32


class Vectors:
    """(E, dim) float32 rows; the stored ones stay on disk until they are read."""

    def __init__(self, stored: Float32) -> None:
        # One tuple, replaced as a whole by `add`: a search in another thread keeps the state it began with.
        self.parts: tuple[Float32, ...] = (stored,)

    @classmethod
    def open(cls, file: Path) -> Vectors:
        """Map a .npy file; copy-on-write, so that torch takes the rows without a copy and the file stays as it is."""
        return cls(np.load(file, mmap_mode="c", allow_pickle=False))

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    @property
    def dim(self) -> int:
        """The width of a row."""
        return int(self.parts[0].shape[1])

    def add(self, rows: Float32) -> None:
        """Append rows; the caller keeps two threads from adding at once."""
        stored, *added = self.parts
        self.parts = (stored, np.concatenate([*added, np.asarray(rows, np.float32)]))

    def rows(self, ids: Int32) -> Float32:
        """The rows of some entities, in the order asked for.  # (n, dim)"""
        stored, *added = self.parts
        if not added or ids.max(initial=0) < len(stored):
            return stored[ids]
        late = ids >= len(stored)
        result = np.empty((len(ids), self.dim), np.float32)
        result[~late] = stored[ids[~late]]
        result[late] = added[0][ids[late] - len(stored)]
        return result

    def blocks(self, rows: int) -> Iterator[tuple[int, Float32]]:
        """All rows in order, at most so many at a time, each block with the index of its first."""
        first = 0
        for part in self.parts:
            for start in range(0, len(part), rows):
                yield first + start, part[start : start + rows]
            first += len(part)
