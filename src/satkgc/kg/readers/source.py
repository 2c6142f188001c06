"""One input file: opened through its compression, with errors that say where it is damaged."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from satkgc.errors import SatkgcError

COMPRESSION = {".gz": "gzip", ".zst": "zstd"}


@dataclass(frozen=True)
class SourceFile:
    """A file to read, and what messages call it (a file out of an archive is not where it seems)."""

    path: Path
    shown: str

    @classmethod
    def of(cls, path: Path) -> SourceFile:
        """A file that is shown by its own path."""
        return cls(path, str(path))

    def open(self) -> io.BufferedReader:
        """The unpacked bytes; a damaged or cut gzip or zstd stream raises SatkgcError while it is read."""
        return io.BufferedReader(_Unpacked(self), 1 << 16)

    def at(self, line: int) -> str:
        """The place that a message names."""
        return f"{self.shown}:{line}"


class _Unpacked(io.RawIOBase):
    """Arrow's decompressing stream (the zstandard package takes a cut file for a whole one), with a byte count."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self._count = 0
        try:
            kind = COMPRESSION.get(file.path.suffix.lower())
            self._stream = pa.input_stream(str(file.path), compression=kind)
        except OSError as error:
            raise SatkgcError(f"cannot be opened ({_first_line(error)})", where=file.shown) from None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            data = self._stream.read(len(buffer))
        except OSError as error:
            raise SatkgcError(
                f"the file is cut short or damaged after {self._count:,} unpacked bytes ({_first_line(error)})",
                where=self._file.shown,
                remedy="fetch or pack it again",
            ) from None
        buffer[: len(data)] = data
        self._count += len(data)
        return len(data)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
