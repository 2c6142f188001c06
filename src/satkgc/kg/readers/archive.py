"""A folder of TSV files packed as tar (plain, gzip, bzip2, xz) or zip.

Only the files that a graph consists of are unpacked, under names of our own, to a temporary folder: nothing in an
archive can choose where it is written. What an archive may unpack to is bounded, so that a bomb stops early.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from satkgc.errors import SatkgcError
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.readers import folder
from satkgc.kg.readers.options import ReadOptions
from satkgc.kg.readers.source import MOST_RATIO, SourceFile, most_unpacked

DAMAGE = (
    tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError, OSError,
    RuntimeError, ValueError, OverflowError,  # NotImplementedError, of a compression unknown here, is a RuntimeError
)  # fmt: skip


def read(source: Path, options: ReadOptions) -> KnowledgeGraph:
    """Read the graph in an archive: the files beside its train.tsv."""
    wanted = {f"{split}.tsv" for split in folder.SPLITS} | {f"{split}_entities.tsv" for split in folder.SPLITS[1:]}
    wanted |= {"relations.tsv", PurePosixPath(options.entities_file).name}
    with tempfile.TemporaryDirectory(prefix="satkgc-") as room:
        found = _unpack(source, wanted, Path(room))
        roots = sorted((path.parent for path in found if path.name == "train.tsv"), key=lambda p: (len(p.parts), p))
        if not roots:
            raise SatkgcError(
                "there is no train.tsv in this archive", where=source, remedy="pack a folder as docs/graphs.md has it"
            )

        def find(name: str) -> SourceFile | None:
            path = found.get(roots[0] / name)
            return SourceFile(path, f"{source}/{roots[0] / name}") if path else None

        return folder.read_files(options.name or _stem(source), find, options)


def _stem(source: Path) -> str:
    for ending in (".gz", ".xz", ".bz2", ".tgz", ".zip", ".tar"):
        source = source.with_suffix("") if source.suffix.lower() == ending else source
    return source.name


def _unpack(source: Path, wanted: set[str], room: Path) -> dict[PurePosixPath, Path]:
    """Copy the wanted files of an archive; a dictionary from their paths in it to where they now are."""
    found: dict[PurePosixPath, Path] = {}
    members = _zip_members if source.suffix.lower() == ".zip" else _tar_members
    try:
        for number, (name, stream) in enumerate(members(source)):
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or "\\" in name:
                raise SatkgcError(
                    f"the archive's member {name!r} points outside of it", where=source, remedy="do not trust this file"
                )
            if path.name in wanted and stream is not None:
                found[path] = room / f"{number}.tsv"  # of a path that comes twice the last counts, as in tar
                with found[path].open("wb") as target:
                    shutil.copyfileobj(stream, target, 1 << 20)
    except DAMAGE as error:
        if getattr(error, "errno", None) == errno.ENOSPC:
            raise SatkgcError(
                "no space to unpack it", where=room.parent, remedy="make room, or set TMPDIR to another folder"
            ) from None
        raise SatkgcError(
            f"the archive is cut short or damaged ({str(error).partition(chr(10))[0] or type(error).__name__})",
            where=source,
            remedy="fetch or pack it again",
        ) from None
    return found


def _tar_members(source: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    # The bytes are counted below tarfile, which would read headers of any length into memory.
    with (
        _open(source) as unpacked,
        tarfile.open(fileobj=_Bounded(source, unpacked), mode="r|") as archive,
    ):
        for member in archive:
            yield member.name, archive.extractfile(member) if member.isreg() else None


def _open(source: Path) -> IO[bytes] | gzip.GzipFile:
    if source.suffix.lower() == ".xz":
        return lzma.open(source)
    if source.suffix.lower() in (".gz", ".tgz"):
        return gzip.open(source)
    return bz2.open(source) if source.suffix.lower() == ".bz2" else source.open("rb")


def _zip_members(source: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    with zipfile.ZipFile(source) as archive:
        bound = _Bounded(source)
        for member in archive.infolist():
            if member.is_dir():
                yield member.filename, None
                continue
            with archive.open(member) as bound.stream:
                yield member.filename, bound


class _Bounded(io.BytesIO):
    """A stream that counts what is read through it, over all files of an archive, and stops at the bound."""

    def __init__(self, source: Path, stream: IO[bytes] | gzip.GzipFile | None = None) -> None:
        super().__init__()
        self.source = source
        self.stream = stream or io.BytesIO()
        self.left = most_unpacked(source)

    def read(self, size: int | None = -1) -> bytes:
        """As a file's."""
        data = self.stream.read(-1 if size is None else size)
        self.left -= len(data)
        if self.left < 0:
            raise SatkgcError(
                f"the archive unpacks to more than {MOST_RATIO} times its size: it may be made to fill the disk",
                where=self.source,
                remedy="if you trust it, unpack it yourself and give the folder",
            )
        return data
