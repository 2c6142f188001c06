"""Readers: one for each form in which people hold graphs, chosen by what the source is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import chain
from pathlib import Path

from satkgc.errors import SatkgcError
from satkgc.kg.bolt import is_bolt
from satkgc.kg.endpoint import is_endpoint
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.readers.options import ReadOptions, refuse_options
from satkgc.kg.readers.source import SourceFile
from satkgc.kg.readers.sources import is_pattern, is_url, local_files

__all__ = ["ARCHIVE_SUFFIXES", "ReadOptions", "Sources", "is_pattern", "is_url", "read_graph"]

Reader = Callable[[Sequence[SourceFile], ReadOptions], KnowledgeGraph]

ARCHIVE_SUFFIXES = (".tar.xz", ".tar.gz", ".tgz", ".tar.bz2", ".tar", ".zip")

# A new reader is one module here with a function `read(files, options)`, and one line. It finds the columns of text;
# `assemble` does the rest: all checks on content, the numbering, the split. A module is imported when it is used.
READERS: dict[str, tuple[str, ...]] = {
    "table": (".csv", ".tsv", ".parquet"),
    "rdf": (".nt", ".nq", ".ttl", ".trig", ".rdf", ".xml", ".owl", ".jsonld", ".json", ".ofn", ".omn", ".owx", ".obo"),
}
"""Which module reads a file, by the ending of its name; .gz and .zst after it are unpacked by `SourceFile`."""


Sources = str | Path | Sequence[str | Path]


def read_graph(source: Sources, options: ReadOptions | None = None) -> KnowledgeGraph:
    """Read a folder, an archive of one, an endpoint, or files that make one graph: tables or RDF, by path or URL."""
    from satkgc.kg.readers import folder

    options = options or ReadOptions()
    sources = [source] if isinstance(source, str | Path) else list(source)
    if not sources:
        raise SatkgcError("there is no source", remedy="give a file or a folder")
    if any(is_endpoint(source) or is_bolt(source) for source in sources):
        if len(sources) > 1:
            raise SatkgcError("an endpoint is read by itself", remedy="import it first, then add tables to that graph")
        if is_bolt(sources[0]):
            from satkgc.kg.readers.bolt import read_bolt

            return read_bolt(str(sources[0]), options)
        from satkgc.kg.readers.sparql import load_endpoint

        return load_endpoint(str(sources[0]), options)
    if len(sources) == 1 and (path := Path(sources[0])).is_dir():
        if (path / "train.tsv").is_file():
            refuse_options("folder", options, str(path))
            return folder.read(path, options)
        options = replace(options, name=options.name or path.resolve().name)
    with local_files(sources, lambda name: _form(name) not in (None, "folder")) as files:
        forms = {file.shown: _form(file.path.name) for file in files}
        for shown, form in forms.items():
            if form is None:
                raise _unknown(shown)
        kinds = list(dict.fromkeys(forms.values()))
        if len(kinds) > 1 or (len(files) > 1 and kinds == ["folder"]):
            shown = " and ".join(next(name for name, form in forms.items() if form == kind) for kind in kinds)
            what = "archives are read one at a time" if "folder" in kinds else "tables and RDF make no graph together"
            raise SatkgcError(what, where=shown, remedy="give files of one kind")
        refuse_options(str(kinds[0]), options, files[0].shown)
        if kinds == ["folder"]:
            return folder.read_archive(files[0], options)
        read: Reader = import_module(f"{__name__}.{kinds[0]}").read
        return read(files, options)


def _form(name: str) -> str | None:
    """Which module reads a file of this name."""
    name = name.lower()
    if name.endswith(ARCHIVE_SUFFIXES):
        return "folder"
    plain = name.removesuffix(".gz").removesuffix(".zst")
    packs_itself = plain != name and plain.endswith(".parquet")
    return next((form for form, endings in READERS.items() if plain.endswith(endings) and not packs_itself), None)


def _unknown(shown: str) -> SatkgcError:
    plain_endings, packed_endings = " ".join(chain(*READERS.values())), " ".join(ARCHIVE_SUFFIXES)
    return SatkgcError(
        "this kind of file is not known",
        where=shown,
        remedy=f"give a folder, or a file that ends in {plain_endings} (also .gz, .zst) {packed_endings}",
    )
