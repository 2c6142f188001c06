"""The folder of TSV files: train.tsv, and where there are any valid, test, inference, entities and relations.tsv.

UTF-8, tabs, no header and no quoting. `entities.tsv` and `relations.tsv` have the columns id, name, description; a file
with fewer columns lacks the later ones, further columns are ignored. `valid_entities.tsv` and `test_entities.tsv` (one
id a line) list the entities that an inductive graph holds out.

The folder may be packed as tar (plain, gzip, bzip2, xz) or zip. Only the files that a graph consists of are unpacked,
under names of our own, to a temporary folder: nothing in an archive can choose where it is written. What an archive
may unpack to is bounded, so that a bomb stops early.
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
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

import pyarrow as pa

from satkgc.errors import SatkgcError
from satkgc.kg.graph import SPLITS, KnowledgeGraph
from satkgc.kg.readers.assemble import assemble
from satkgc.kg.readers.columns import Listing, Triples, Where
from satkgc.kg.readers.delimited import Delimited
from satkgc.kg.readers.options import ReadOptions
from satkgc.kg.readers.source import MOST_RATIO, SourceFile, most_unpacked

HELD_OUT = ("valid", "test")
MOST_MEMBERS = 100_000  # of an archive
DAMAGE = (
    tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError, OSError,
    RuntimeError, ValueError, OverflowError,  # NotImplementedError, of a compression unknown here, is a RuntimeError
)  # fmt: skip


def read(source: Path, options: ReadOptions) -> KnowledgeGraph:
    """Read a folder from the disk."""
    return _read_files(options.name or source.resolve().name, lambda name: _existing(source / name), options)


def read_archive(source: SourceFile, options: ReadOptions) -> KnowledgeGraph:
    """Read the graph in an archive: the files beside its train.tsv."""
    names = {f"{split}.tsv" for split in SPLITS} | {f"{split}_entities.tsv" for split in HELD_OUT}
    names |= {"relations.tsv", PurePosixPath(options.entities_file).name}
    with tempfile.TemporaryDirectory(prefix="satkgc-") as folder:
        paths = _unpack(source, names, Path(folder))
        roots = sorted((path.parent for path in paths if path.name == "train.tsv"), key=lambda p: (len(p.parts), p))
        if not roots:
            raise SatkgcError(
                "there is no train.tsv in this archive",
                where=source.shown,
                remedy="pack a folder as docs/graphs.md has it",
            )

        def find(name: str) -> SourceFile | None:
            path = paths.get(roots[0] / name)
            return SourceFile(path, f"{source.shown}/{roots[0] / name}") if path else None

        return _read_files(options.name or _stem(source.path), find, options)


def _existing(path: Path) -> SourceFile | None:
    return SourceFile.of(path) if path.is_file() else None


def _read_files(name: str, find: Callable[[str], SourceFile | None], options: ReadOptions) -> KnowledgeGraph:
    """Read the files of a graph that `find` gives by their names; it answers None for one that is not there."""
    splits: dict[str, Triples] = {}
    for split in SPLITS:
        if file := find(f"{split}.tsv"):
            (head, relation, tail), where = _columns(file, 3, 3)
            splits[split] = Triples(head, relation, tail, where)
    held_out: dict[str, tuple[pa.ChunkedArray, Where]] = {}
    for split in HELD_OUT:
        if file := find(f"{split}_entities.tsv"):
            (ids,), where = _columns(file, 1)
            held_out[split] = ids, where
    entities_file = find(options.entities_file)
    if entities_file is None and options.entities_file != ReadOptions.entities_file:
        raise SatkgcError(f"there is no {options.entities_file} in it", where=name, remedy="check entities_file")
    relations_file = find("relations.tsv")
    entities = _listing(entities_file) if entities_file else None
    relations = _listing(relations_file) if relations_file else None
    return assemble(name, splits, entities, relations, options, held_out)


def _columns(file: SourceFile, most: int, exactly: int | None = None) -> tuple[list[pa.ChunkedArray], Where]:
    """The first columns of a file, at most so many, or an error where there must be that many."""
    text = Delimited(file)
    actual = len(text.first_row())
    width = exactly or actual
    columns = text.columns(range(min(width, most)), width)
    return columns, lambda row: file.at(text.line_of(row))


def _listing(file: SourceFile) -> Listing:
    columns, where = _columns(file, 3)
    ids, names, descriptions = [*columns, None, None][:3]
    return Listing(ids, names, descriptions, file.shown, where)


def _stem(source: Path) -> str:
    for ending in (".gz", ".xz", ".bz2", ".tgz", ".zip", ".tar"):
        source = source.with_suffix("") if source.suffix.lower() == ending else source
    return source.name


def _unpack(source: SourceFile, names: set[str], folder: Path) -> dict[PurePosixPath, Path]:
    """Copy the files of these names; a dictionary from their paths in the archive to where they now are."""
    paths: dict[PurePosixPath, Path] = {}
    members = _zip_members if source.path.suffix.lower() == ".zip" else _tar_members
    try:
        for number, (name, stream) in enumerate(members(source, names)):
            path = PurePosixPath(name)
            if number >= MOST_MEMBERS:
                what = f"the archive has more than {MOST_MEMBERS:,} members"
                raise SatkgcError(what, where=source.shown, remedy="pack the folder of the graph alone")
            if path.is_absolute() or ".." in path.parts or "\\" in name:
                raise SatkgcError(
                    f"the archive's member {name!r} points outside of it",
                    where=source.shown,
                    remedy="do not trust this file",
                )
            if stream is not None:
                paths[path] = folder / f"{number}.tsv"  # of a path that comes twice the last counts, as in tar
                with paths[path].open("wb") as target:
                    shutil.copyfileobj(stream, target, 1 << 20)
    except DAMAGE as error:
        if getattr(error, "errno", None) == errno.ENOSPC:
            raise SatkgcError(
                "no space to unpack it", where=folder.parent, remedy="free some, or set TMPDIR to another folder"
            ) from None
        raise SatkgcError(
            f"the archive is cut short or damaged ({str(error).partition(chr(10))[0] or type(error).__name__})",
            where=source.shown,
            remedy="fetch or pack it again",
        ) from None
    return paths


def _tar_members(source: SourceFile, names: set[str]) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Names of all members, and a stream of each file that has one of these names."""
    with _open(source.path) as unpacked:
        # The bytes are counted below tarfile, which would read headers of any length into memory.
        bounded = _Bounded(source, unpacked)
        with tarfile.open(fileobj=bounded, mode="r|") as archive:
            for member in archive:
                ours = member.isreg() and PurePosixPath(member.name).name in names
                if ours and member.issparse():  # what is not in the archive is not counted
                    what = f"{member.name} is a sparse file: it may be made to fill the disk"
                    raise SatkgcError(what, where=source.shown, remedy="pack it as a plain file")
                yield member.name, archive.extractfile(member) if ours else None
        while bounded.read(1 << 20):  # tar ends before its file does: the checksum comes last
            pass


def _open(source: Path) -> IO[bytes] | gzip.GzipFile:
    if source.suffix.lower() == ".xz":
        return lzma.open(source)
    if source.suffix.lower() in (".gz", ".tgz"):
        return gzip.open(source)
    return bz2.open(source) if source.suffix.lower() == ".bz2" else source.open("rb")


def _zip_members(source: SourceFile, names: set[str]) -> Iterator[tuple[str, IO[bytes] | None]]:
    with zipfile.ZipFile(source.path) as archive:
        bound = _Bounded(source)
        for member in archive.infolist():
            if member.is_dir() or PurePosixPath(member.filename).name not in names:
                yield member.filename, None
                continue
            with archive.open(member) as bound.stream:
                yield member.filename, bound


class _Bounded(io.BytesIO):
    """A stream that counts what is read through it, over all files of an archive, and stops at the bound."""

    def __init__(self, source: SourceFile, stream: IO[bytes] | gzip.GzipFile | None = None) -> None:
        super().__init__()
        self.source = source
        self.stream = stream or io.BytesIO()
        self.left = most_unpacked(source.path)

    def read(self, size: int | None = -1) -> bytes:
        """As a file's."""
        data = self.stream.read(-1 if size is None else size)
        self.left -= len(data)
        if self.left < 0:
            raise SatkgcError(
                f"the archive unpacks to more than {MOST_RATIO} times its size: it may be made to fill the disk",
                where=self.source.shown,
                remedy="if you trust it, unpack it yourself and give the folder",
            )
        return data
