"""Arrays and columns of text that are written piece by piece, so that memory need not hold them, and then mapped."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from satkgc import files
from satkgc.arrays import Int32


class ArrayWriter:
    """A one-dimensional .npy file, byte for byte what `np.save` makes of all pieces together."""

    def __init__(self, path: Path, dtype: type[np.generic]) -> None:
        self.path, self.size = path, 0
        self._dtype = np.dtype(dtype)
        self._stream = path.open("wb")
        self._head()

    def append(self, piece: Any) -> None:
        """Write one more piece."""
        self._stream.write(np.ascontiguousarray(piece, self._dtype).data)  # `tofile` does not say that a disk is full
        self.size += len(piece)

    def _head(self) -> None:
        """The header has room for a shape of any size, so that it can be written again over itself."""
        facts = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": (self.size,)}
        np.lib.format.write_array_header_1_0(self._stream, facts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._stream:
            if kind is None:
                self._stream.seek(0)
                self._head()


class TextWriter:
    """A column of text: two files, of offsets and of letters."""

    def __init__(self, folder: Path, name: str) -> None:
        self._paths = folder / f"{name}.offsets", folder / f"{name}.letters"
        self._streams = [path.open("wb") for path in self._paths]
        self._rows = self._bytes = 0
        self._streams[0].write(np.zeros(1, np.int64).data)

    def __len__(self) -> int:
        return self._rows

    def append(self, piece: pa.Array) -> None:
        """Write one more piece, which has no gaps."""
        if not len(piece):
            return
        piece = piece.cast(pa.large_string())
        _, offsets, letters = piece.buffers()
        ends = np.frombuffer(offsets, np.int64)[piece.offset : piece.offset + len(piece) + 1]
        self._streams[0].write((ends[1:] - ends[0] + self._bytes).data)
        if letters is not None:
            self._streams[1].write(memoryview(letters)[int(ends[0]) : int(ends[-1])])
        self._rows += len(piece)
        self._bytes += int(ends[-1] - ends[0])

    def finish(self) -> pa.LargeStringArray:
        """The whole column; nothing is appended after it."""
        for stream in self._streams:
            stream.close()
        return self.written()

    def written(self) -> pa.LargeStringArray:
        """What there is so far, by memory map."""
        for stream in self._streams:
            if not stream.closed:
                stream.flush()
        buffers = [pa.memory_map(str(path)).read_buffer() if path.stat().st_size else None for path in self._paths]
        return pa.LargeStringArray.from_buffers(self._rows, buffers[0], buffers[1] or pa.py_buffer(b""))


def mapped_triples(path: Path, rows: int) -> Int32:
    """An array of (rows, 3) to be filled in, in a file; the disk has the room for it."""
    if not rows:
        return np.zeros((0, 3), np.int32)
    files.reserve(path, 12 * rows)
    return np.memmap(path, np.int32, "r+", shape=(rows, 3)).view(np.ndarray)
