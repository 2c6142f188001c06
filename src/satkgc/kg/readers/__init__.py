"""Readers: one for each form in which people hold graphs, chosen by what the source is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import chain
from pathlib import Path

from satkgc.errors import SatkgcError
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.readers.options import ReadOptions
from satkgc.kg.readers.source import SourceFile

__all__ = ["ARCHIVE_SUFFIXES", "ReadOptions", "read_graph"]

Reader = Callable[[Sequence[SourceFile], ReadOptions], KnowledgeGraph]

ARCHIVE_SUFFIXES = (".tar.xz", ".tar.gz", ".tgz", ".tar.bz2", ".tar", ".zip")

# A new reader is one module here with a function `read(files, options)`, and one line. It finds the columns of text;
# `assemble` does the rest: all checks on content, the numbering, the split. A module is imported when it is used.
READERS: dict[str, tuple[str, ...]] = {
    "table": (".csv", ".tsv", ".parquet"),
    "rdf": (".nt", ".nq", ".ttl", ".trig", ".rdf", ".xml", ".owl", ".jsonld", ".json"),
}
"""Which module reads a file, by the ending of its name; .gz and .zst after it are unpacked by `SourceFile`."""


def read_graph(source: Path, options: ReadOptions | None = None) -> KnowledgeGraph:
    """Read a folder, an archive of one, a table of triples or an RDF file into a graph."""
    source, options = Path(source), options or ReadOptions()
    if not source.exists():
        raise SatkgcError(
            "there is no such file or folder", where=source, remedy="check the path; satkgc kg list names known graphs"
        )
    name = source.name.lower()
    if source.is_dir():
        from satkgc.kg.readers import folder

        return folder.read(source, options)
    if name.endswith(ARCHIVE_SUFFIXES):
        from satkgc.kg.readers import folder

        return folder.read_archive(source, options)
    plain = name.removesuffix(".gz").removesuffix(".zst")
    packs_itself = plain != name and plain.endswith(".parquet")
    for module, endings in READERS.items():
        if plain.endswith(endings) and not packs_itself:
            read: Reader = import_module(f"{__name__}.{module}").read
            return read([SourceFile.of(source)], options)
    plain_endings, packed_endings = " ".join(chain(*READERS.values())), " ".join(ARCHIVE_SUFFIXES)
    raise SatkgcError(
        "this kind of file is not known",
        where=source,
        remedy=f"give a folder, or a file that ends in {plain_endings} (also .gz, .zst) {packed_endings}",
    )
