"""Readers: one for each form in which people hold graphs, chosen by what the source is called."""

from __future__ import annotations

from pathlib import Path

from satkgc.errors import SatkgcError
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.readers.options import ReadOptions

__all__ = ["ARCHIVE_SUFFIXES", "ReadOptions", "read_graph"]

ARCHIVE_SUFFIXES = (".tar.xz", ".tar.gz", ".tgz", ".tar.bz2", ".tar", ".zip")
TABLE_SUFFIXES = (".csv", ".tsv", ".parquet")
RDF_SUFFIXES = (".nt", ".nq", ".ttl", ".trig", ".rdf", ".xml", ".owl", ".jsonld", ".json")


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
    if plain.endswith(TABLE_SUFFIXES) and not (
        plain != name and plain.endswith(".parquet")
    ):  # it packs its own columns
        from satkgc.kg.readers import table

        return table.read(source, options)
    if plain.endswith(RDF_SUFFIXES):
        from satkgc.kg.readers import rdf

        return rdf.read(source, options)
    plain_endings, packed_endings = " ".join(TABLE_SUFFIXES + RDF_SUFFIXES), " ".join(ARCHIVE_SUFFIXES)
    raise SatkgcError(
        "this kind of file is not known",
        where=source,
        remedy=f"give a folder, or a file that ends in {plain_endings} (also .gz, .zst) {packed_endings}",
    )
