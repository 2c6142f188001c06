"""One input file: opened through its compression, with errors that say where it is damaged."""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from satkgc.errors import SatkgcError

COMPRESSION = {".gz": "gzip", ".zst": "zstd"}

FREE_BYTES = 256 << 20  # any file may unpack to this much …
MOST_RATIO = 200  # … and beyond it to this many times its own size; text shrinks by 5 to 20


def most_unpacked(path: Path) -> int:
    """How many bytes a packed file may turn into, before it counts as one made to fill the memory or the disk."""
    return max(FREE_BYTES, MOST_RATIO * path.stat().st_size)


@dataclass(frozen=True)
class SourceFile:
    """A file to read, and what messages call it (a file out of an archive is not where it seems)."""

    path: Path
    shown: str

    @classmethod
    def of(cls, path: Path) -> SourceFile:
        """A file that is shown by its own path; a pipe or a device would be waited for."""
        if path.exists() and not path.is_file() and not path.is_dir():
            what, remedy = "this is no file but a pipe or a device", "write what comes from it into a file"
            raise SatkgcError(what, where=path, remedy=remedy)
        return cls(path, str(path))

    @property
    def stem(self) -> str:
        """Its name without the ending of a compression."""
        return self.path.stem if self.path.suffix.lower() in COMPRESSION else self.path.name

    @property
    def graph_name(self) -> str:
        """What a graph is called that is read from it."""
        return self.stem.partition(".")[0]

    def open(self) -> io.BufferedReader:
        """The unpacked bytes; a damaged or cut gzip or zstd stream raises SatkgcError while it is read."""
        return io.BufferedReader(_Unpacked(self), 1 << 16)

    @contextmanager
    def open_for_arrow(self) -> Iterator[pa.NativeFile]:
        """The unpacked bytes without any Python in them: Arrow reads in threads of its own, which may outlive both an
        error and the interpreter. What is packed is unpacked to a temporary file first."""
        if self.path.suffix.lower() not in COMPRESSION:
            with pa.OSFile(str(self.path)) as file:
                yield file
            return
        with tempfile.NamedTemporaryFile(prefix="satkgc-") as room:
            try:
                with self.open() as stream:
                    shutil.copyfileobj(stream, room, 1 << 20)
                room.flush()
            except OSError as error:
                remedy = "free some, or set TMPDIR to another folder"
                what = f"no space to unpack it ({error.strerror})"
                raise SatkgcError(what, where=self.shown, remedy=remedy) from error
            with pa.OSFile(room.name) as file:
                yield file

    def at(self, line: int) -> str:
        """The place that a message names."""
        return f"{self.shown}:{line}"


class _Unpacked(io.RawIOBase):
    """Arrow's decompressing stream (the zstandard package takes a cut file for a whole one), with a byte count."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self._count = 0
        kind = COMPRESSION.get(file.path.suffix.lower())
        try:
            self._most = most_unpacked(file.path)
            self._stream = pa.input_stream(str(file.path), compression=kind)
        except OSError as error:
            raise SatkgcError(f"cannot be opened ({_first_line(error)})", where=file.shown) from None

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._count

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            # Not read(): that leaks what it has allocated when it fails.
            length: int = self._stream.readinto(buffer)
        except OSError as error:
            raise SatkgcError(
                f"the file is cut short or damaged after {self._count:,} unpacked bytes ({_first_line(error)})",
                where=self._file.shown,
                remedy="fetch or pack it again",
            ) from None
        self._count += length
        if self._count > self._most:
            raise SatkgcError(
                f"the file unpacks to more than {MOST_RATIO} times its size: it may be made to fill the memory",
                where=self._file.shown,
                remedy="if you trust it, unpack it yourself",
            )
        return length


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
