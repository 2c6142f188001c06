"""Vectors on their way into an index: a file that is filled a chunk at a time, and gone on with after a stop."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Self

import numpy as np

from satkgc.arrays import Float32
from satkgc.files import reserve

PARTS = (".part.npy", ".part.sums")


class Rows:
    """`entities-KEY.part.npy`, and beside it a line for each chunk that is in it, with the chunk's sum.

    What was on its way to the disk when a machine stopped may be there in part: a chunk counts if its sum is right. The
    space is taken at once: a memory map on a full disk would kill the process.
    """

    def __init__(self, folder: Path, key: str, count: int, dim: int) -> None:
        self.file, self._sums = (folder / f"entities-{key}{ending}" for ending in PARTS)
        for other in folder.iterdir():
            if other.name.endswith(PARTS) and other not in (self.file, self._sums):
                other.unlink()
        whole = self.file.exists() and self.file.stat().st_size > 4 * count * dim
        if not whole:
            self._sums.unlink(missing_ok=True)
        self._rows = np.lib.format.open_memmap(self.file, "r+" if whole else "w+", np.float32, (count, dim))
        reserve(self.file, self.file.stat().st_size)
        lines = self._sums.read_text(encoding="ascii", errors="replace").splitlines() if self._sums.exists() else []
        self._known = set(lines)

    def has(self, start: int, stop: int) -> bool:
        """Whether these rows were written whole."""
        return f"{start} {_sum(self._rows[start:stop])}" in self._known

    def put(self, start: int, vectors: Float32) -> None:
        """Write rows, and their sum after them."""
        self._rows[start : start + len(vectors)] = vectors
        with self._sums.open("a", encoding="ascii") as stream:
            stream.write(f"{start} {_sum(self._rows[start : start + len(vectors)])}\n")

    def remove(self) -> None:
        """Take away what is left beside an index that has been made."""
        self.file.unlink(missing_ok=True)  # of an index that has not moved it
        self._sums.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.flush()
        del self._rows


def _sum(rows: Float32) -> str:
    return hashlib.sha256(np.ascontiguousarray(rows).data).hexdigest()
