"""Graphs by name: found in the package, in the folder SATKGC_DATA or on the network, checked, and cached."""

from __future__ import annotations

import difflib
import hashlib
import os
import tempfile
import warnings
from pathlib import Path

from satkgc.errors import SatkgcError
from satkgc.kg import binary
from satkgc.kg.download import fetch
from satkgc.kg.entries import CATALOGUE, Counts, Entry
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.readers import ReadOptions, read

READING = 1  # raise when a reader changes what it makes of the same files: older cached graphs are then left alone


def find(name: str) -> Entry:
    """The entry of this name, in whatever case; a wrong one is answered with those that look like it."""
    names = {entry.name.lower(): entry for entry in CATALOGUE}
    if entry := names.get(name.lower()):
        return entry
    near = [names[match].name for match in difflib.get_close_matches(name.lower(), names, n=2, cutoff=0.5)]
    raise SatkgcError(
        "neither a file or folder nor a graph in the catalogue",
        where=name,
        remedy=f"did you mean {' or '.join(near)}?" if near else "`satkgc kg list` shows the names",
    )


def cache_folder() -> Path:
    """Where downloads and graphs in binary form are kept: SATKGC_CACHE, or satkgc in the user's cache folder."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "satkgc"
    return Path(os.environ.get("SATKGC_CACHE") or default)


def local_copy(entry: Entry) -> Path | None:
    """The graph as it lies in the package or in the folder SATKGC_DATA, packed or not."""
    data = os.environ.get("SATKGC_DATA")
    if entry.bundled or not data or not entry.archive:
        return entry.bundled
    folder, packed = Path(data) / entry.archive, Path(data) / f"{entry.archive}.tar.xz"
    # kg-bert's files, too, have a train.tsv, but not a valid.tsv.
    if (folder / "train.tsv").is_file() and (folder / "valid.tsv").is_file():
        return folder
    return packed if packed.is_file() else None


def whereabouts(entry: Entry) -> str:
    """Where the graph would come from now, in a word."""
    if entry.bundled:
        return "bundled"
    source = local_copy(entry)
    try:
        if binary.is_folder(_cached(entry, source)):
            return "cached"
    except (SatkgcError, OSError):
        return "damaged"  # one bad archive must not keep a list from the others; `load` says what is wrong with it
    return "SATKGC_DATA" if source else "download"


def load(entry: Entry) -> KnowledgeGraph:
    """Open a graph from the cache, or find or download it, check its counts and cache it."""
    source = local_copy(entry)
    cached = _cached(entry, source)
    if binary.is_folder(cached):
        try:
            return _counted(entry, binary.open_folder(cached))
        except SatkgcError:
            pass  # a damaged copy is made anew below
    options = ReadOptions(**{"name": entry.name, **entry.options})
    if source is not None:
        graph = _counted(entry, read(source, options))
    else:
        graph = _counted(entry, _from_public_files(entry, options))
    try:
        return graph.save(cached, overwrite=True)
    except SatkgcError as error:
        warnings.warn(f"{entry.name} is read anew each time: {error}", stacklevel=2)
        return graph


def fetch_files(entry: Entry) -> dict[str, Path]:
    """The published files, each from the folder SATKGC_DATA, from an earlier download, or from the network."""
    found: dict[str, Path] = {}
    for file in entry.files:
        target = cache_folder() / "downloads" / file.folder / file.name
        data = os.environ.get("SATKGC_DATA")
        if data and (given := Path(data) / file.folder / file.name).is_file():
            target = given
        try:
            found[file.name] = fetch(file.url, target, file.sha256)
        except SatkgcError as error:
            raise SatkgcError(
                f"{entry.name} is not here, and {file.url} {error.what}",
                remedy=f"put {entry.archive}.tar.xz into a folder and name it in SATKGC_DATA, "
                f"or put {file.name} into {target.parent}",
            ) from error
    return found


def _from_public_files(entry: Entry, options: ReadOptions) -> KnowledgeGraph:
    assert entry.convert is not None
    files = fetch_files(entry)
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="converting-", dir=cache_folder()) as folder:
        entry.convert(files, Path(folder))
        return read(Path(folder), options)


def _counted(entry: Entry, graph: KnowledgeGraph) -> KnowledgeGraph:
    """The graph, if it holds what it must."""
    found = Counts.of(graph)
    for what, expected in vars(entry.counts).items():
        if getattr(found, what) != expected:
            raise SatkgcError(
                f"{entry.name} has {getattr(found, what):,} {what} instead of {expected:,}",
                where=graph.path or local_copy(entry) or cache_folder() / "downloads",
                remedy="this is not the published graph: replace the file, or load it by its path",
            )
    return graph


def _cached(entry: Entry, source: Path | None) -> Path:
    """The graph's place in the cache, by all that it depends on: versions, and the source's content or addresses."""
    digest = hashlib.sha256(f"{binary.VERSION} {READING} {sorted(entry.options.items())}".encode())
    if source is None:
        digest.update(" ".join(file.url for file in entry.files).encode())
    elif source.is_file():
        content = binary.describe(source)["sha256"]
        if entry.sha256 not in (None, content):
            raise SatkgcError(
                f"not the published archive of {entry.name}: its checksum differs",
                where=source,
                remedy="fetch it again, or load it by its path",
            )
        digest.update(content.encode())
    else:
        files = sorted(path for path in source.iterdir() if path.is_file())
        small = sum(path.stat().st_size for path in files) < 1 << 27
        for path in files:  # reading gigabytes only to look into the cache would defeat it
            state = f"{path.stat().st_size} {path.stat().st_mtime_ns}"
            digest.update(f"{path.name} {binary.describe(path)['sha256'] if small else state} ".encode())
    return cache_folder() / "graphs" / f"{entry.name}-{digest.hexdigest()[:16]}"
