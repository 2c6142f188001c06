"""From what people give to files on this machine: paths, patterns like `data/*.ttl`, folders of files, and URLs."""

from __future__ import annotations

import glob
import logging
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from satkgc.errors import SatkgcError
from satkgc.kg.download import fetch
from satkgc.kg.readers.columns import counted
from satkgc.kg.readers.source import SourceFile

log = logging.getLogger("satkgc.kg")

MOST_DOWNLOAD = 8 << 30  # bytes of one file; more is fetched with a tool for it
_URL = re.compile(r"https?://", re.IGNORECASE)
# Of files in a folder: these may be anything, and are read when they are named.
UNSURE = (".json", ".xml")


def is_url(source: str | Path) -> bool:
    """Whether a source is to be downloaded."""
    return _URL.match(str(source)) is not None


def is_pattern(source: str | Path) -> bool:
    """Whether a source is no path but a pattern for some."""
    return glob.has_magic(str(source)) and not Path(source).exists()


@contextmanager
def local_files(sources: Sequence[str | Path], is_known: Callable[[str], bool]) -> Iterator[list[SourceFile]]:
    """The files that the sources name, in order, each once; what is downloaded is there as long as the context.

    `is_known` tells of a file's name whether it can be read; the others in a folder are passed over.
    """
    with tempfile.TemporaryDirectory(prefix="satkgc-") as room:
        files: dict[Path, SourceFile] = {}
        for number, source in enumerate(sources):
            for file in _files(source, Path(room) / str(number), is_known):
                files.setdefault(file.path.resolve(), file)
        yield list(files.values())


def _files(source: str | Path, room: Path, is_known: Callable[[str], bool]) -> list[SourceFile]:
    if is_url(source):
        return [_downloaded(str(source), room)]
    if is_pattern(source):
        paths = sorted(path for match in glob.glob(str(source), recursive=True) if (path := Path(match)).is_file())
        if not paths:
            raise SatkgcError("no file is called so", where=source, remedy="check the pattern")
        return [SourceFile.of(path) for path in paths]
    path = Path(source)
    if not path.exists():
        raise SatkgcError(
            "there is no such file or folder", where=path, remedy="check the path; satkgc kg list names known graphs"
        )
    return _in_folder(path, is_known) if path.is_dir() else [SourceFile.of(path)]


def _in_folder(folder: Path, is_known: Callable[[str], bool]) -> list[SourceFile]:
    inside = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    inside = [path for path in inside if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    files = [path for path in inside if is_known(path.name) and not SourceFile.of(path).stem.lower().endswith(UNSURE)]
    if not files:
        held = [path.name for path in inside]
        raise SatkgcError(
            "this folder is no graph: it has no train.tsv, and no table or RDF file",
            where=folder,
            remedy=f"it holds {', '.join(held[:8])}{' …' if len(held) > 8 else ''}" if held else "it is empty",
        )
    if others := len(inside) - len(files):
        log.warning("%s: %s of other kinds not read", folder, counted(others, "file"))
    return [SourceFile.of(path) for path in files]


def _downloaded(url: str, room: Path) -> SourceFile:
    name = Path(unquote(urlsplit(url).path)).name or "index"
    return SourceFile(fetch(url, room / name, most=MOST_DOWNLOAD), url)
